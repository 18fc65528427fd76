"""java.util.Properties: Java's own rules as a table, and the round trip as a law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_yarn_ops.azkaban.properties import escape_letters, format_properties, parse_properties, repair_mojibake
from tf_yarn_ops.errors import SpecInvalid

#: What java.util.Properties.load returns; each row was run through Java 17.
READ = [
    (b"", {}),
    (b"a=b", {"a": "b"}),
    (b"a=b\n", {"a": "b"}),
    (b"a:b", {"a": "b"}),
    (b"a b", {"a": "b"}),
    (b"a\tb", {"a": "b"}),
    (b"a\fb", {"a": "b"}),
    (b"a = b", {"a": "b"}),
    (b"a : = b", {"a": "= b"}),
    (b"a==b", {"a": "=b"}),
    (b"a=b ", {"a": "b "}),
    (b"   a=b", {"a": "b"}),
    (b"a", {"a": ""}),
    (b"a=", {"a": ""}),
    (b"=b", {"": "b"}),
    (b"a=1\na=2\nb=3\na=4", {"a": "4", "b": "3"}),
    (b"# a=b\n! c=d\n  # e=f\ng=h", {"g": "h"}),
    (b"#a\\\nb=c", {"b": "c"}),
    (b"\n\r\n \t\f\na=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
    (b"a=b\\\n   c", {"a": "bc"}),
    (b"a=b\\\r\n   c\nd=e", {"a": "bc", "d": "e"}),
    (b"a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    (b"a=b\\\\\\\nc=d", {"a": "b\\c=d"}),
    (b"a=b\\\n#c", {"a": "b#c"}),
    (b"a=b\\\n\nc=d", {"a": "b", "c": "d"}),
    (b"\\\n#a=b", {}),
    (b"\\", {"": ""}),
    (b"\\\n", {"": ""}),
    (b"\\\r\n", {}),
    (b"\\\n ", {}),
    (b"\\\n\na=b", {"a": "b"}),
    (b"a=b\\", {"a": "b"}),
    (b"a\\=b=c", {"a=b": "c"}),
    (b"a\\:b\\ c\\#=d", {"a:b c#": "d"}),
    (b"a=\\t\\n\\r\\f\\b\\q\\\\", {"a": "\t\n\r\fbq\\"}),
    (b"a=\\ b", {"a": " b"}),
    (b"a=\\u00e9\\u00E9", {"a": "éé"}),
    (b"a=\\ud83d\\ude00", {"a": "\U0001f600"}),
    (b"a=\\uD83D", {"a": "\ud83d"}),
    (b"\\u0061=b", {"a": "b"}),
    (b"a=\xe9", {"a": "é"}),
    (b"a=\xc3\xa9", {"a": "Ã©"}),
    (b"a=\\uuu0061".replace(b"uuu", b"u"), {"a": "a"}),
    (b"a=b#c!d", {"a": "b#c!d"}),
    (b"a\\\r\\\r\n\nb", {"a": "", "b": ""}),
    (b"\\\r", {"": ""}),
    (b"\\\r!a", {}),
]


@pytest.mark.parametrize(("content", "pairs"), READ, ids=[repr(content) for content, _ in READ])
def test_reads_as_java_does(content, pairs):
    assert parse_properties(content) == pairs


@pytest.mark.parametrize("content", [b"a=\\u12", b"a=\\u12g4", b"\\u=b", b"a=\\uu0061"])
def test_a_broken_unicode_escape_is_named(content):
    with pytest.raises(SpecInvalid, match=r"is not \\u and four hexadecimal digits"):
        parse_properties(content)


#: What java.util.Properties.store writes, without its date; its hexadecimal digits are upper case.
WRITTEN = [
    ({"a": "b"}, b"a=b\n"),
    ({"a b": " c d "}, b"a\\ b=\\ c d \n"),
    ({"a=b:c#d!e": "=:#!"}, b"a\\=b\\:c\\#d\\!e=\\=\\:\\#\\!\n"),
    ({"a": "\t\n\r\f\\\x01\x7f"}, b"a=\\t\\n\\r\\f\\\\\\u0001\\u007f\n"),
    ({"a": "é\U0001f600"}, b"a=\\u00e9\\ud83d\\ude00\n"),
    ({"": ""}, b"=\n"),
]


@pytest.mark.parametrize(("pairs", "content"), WRITTEN, ids=[repr(pairs) for pairs, _ in WRITTEN])
def test_writes_as_java_does(pairs, content):
    assert format_properties(pairs) == content


def test_a_comment_comes_first_and_is_not_read():
    content = format_properties({"a": "b"}, "one = 1\n\ntwo \\")
    assert content == b"#one = 1\n#\n#two \\\na=b\n"
    assert parse_properties(content) == {"a": "b"}


def test_the_order_is_kept():
    assert list(parse_properties(format_properties({"z": "1", "a": "2", "m": "3"}))) == ["z", "a", "m"]


@given(st.dictionaries(st.text(st.characters()), st.text(st.characters())))
def test_what_is_written_is_read_back(pairs):
    assert parse_properties(format_properties(pairs)) == pairs


@given(st.binary())
def test_any_file_is_read_or_refused(content):
    try:
        pairs = parse_properties(content)
    except SpecInvalid:
        return
    assert parse_properties(format_properties(pairs)) == pairs


@pytest.mark.parametrize("text", ["grüße", "日本", "naïve \U0001f600", "/data/é x"])
def test_utf8_read_as_latin1_is_seen(text):
    assert repair_mojibake(text.encode().decode("iso-8859-1")) == text


@pytest.mark.parametrize("text", ["", "plain", "é", "für", "日本", "Âb", "x\xa0y", "\xed\xa0\x80",
                                  "«R\xc9SUM\xc9»", "»Spa\xdf«", "»Spa\xdf« für 日本"])  # fmt: skip
def test_real_letters_are_not_taken_for_mojibake(text):
    assert repair_mojibake(text) is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_mojibake_is_repaired_or_absent(text):
    arrived = text.encode().decode("iso-8859-1")
    assert repair_mojibake(arrived) == (None if text.isascii() else text)


def test_escaped_letters_beside_what_was_lost_stay():
    assert repair_mojibake("gr\xc3\xbc\xc3\x9fe 日本") == "grüße 日本"


def test_letters_are_escaped_as_people_type_them():
    assert escape_letters("a b=é\U0001f600") == "a b=\\u00e9\\ud83d\\ude00"
