"""Properties files through Azkaban's own class and through ours, in both directions: they never disagree."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.azkaban_site import AzkabanError, AzkabanServer
from tf_yarn_ops.azkaban.properties import format_properties, parse_properties
from tf_yarn_ops.errors import SpecInvalid

pytestmark = pytest.mark.cluster

FILES = settings(max_examples=400)
#: What has a meaning in such a file, much more often than anything else.
PIECES = ["\\", "\\\\", "\\u00e9", "\\u0041", "\\uD83D\\uDE00", "\\uD83D", "\\u12", "\\U0041", "\\t", "\\n", "\\r", "\\f", "\\ ",
          "\\:", "\\=", "\\#", "\\!", "\\\n", "\\\r\n", "\\\r", " ", "\t", "\f", "\n", "\r", "\r\n", "=", ":", "#", "!", "a",
          "key", "tf.command", "value", "\u00e9", "\u00c3\u00a9", "\x00", "\x7f", "\x85", "\xff", "\x1c", "\x0b"]  # fmt: skip
files = st.lists(st.sampled_from(PIECES) | st.characters(max_codepoint=0xFF), max_size=60).map(
    lambda pieces: "".join(pieces).encode("iso-8859-1")
)
letters = st.characters() | st.sampled_from(" \t\n\r\f\\=:#!\x00\u00e9\u20ac\U0001f600\ud83d\ude00")
#: Java's strings are UTF-16: two halves that stand side by side are one letter.
texts = st.text(letters, max_size=20).map(
    lambda text: text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
)
values = st.dictionaries(texts, texts, max_size=8)


@pytest.fixture(scope="module")
def azkaban(classpath, tmp_path_factory):
    with AzkabanServer(tmp_path_factory.mktemp("properties"), classpath) as server:
        yield server


@given(content=files)
@example(b"a=1\\")
@example(b"a=1\\\n")
@example(b"a=1\\\\\n b = 2")
@example(b"a\\\n\n  b: c")
@example(b"#c\\\na=1\n!\n\\\n#x=1")
@example(b" a  b c\n=d\n:e\na\\ b\\=c = d e \n")
@FILES
def test_a_file_means_the_same_to_azkaban_and_to_us(azkaban, content):
    file = azkaban.folder / "in.properties"
    file.write_bytes(content)
    try:
        expected = azkaban.load(file)
    except AzkabanError as error:
        assert "Malformed" in str(error)
        with pytest.raises(SpecInvalid, match="four hexadecimal digits"):
            parse_properties(content)
        return
    assert parse_properties(content) == expected


@given(values=values)
@FILES
def test_what_azkaban_writes_we_read(azkaban, values):
    file = azkaban.folder / "out.properties"
    azkaban.store(values, file)
    assert parse_properties(file.read_bytes()) == values


@given(values=values, comment=texts.filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text)))
@FILES
def test_what_we_write_azkaban_reads(azkaban, values, comment):
    file = azkaban.folder / "ours.properties"
    file.write_bytes(format_properties(values, comment))
    assert azkaban.load(file) == values
