"""``java.util.Properties`` read and written: the language in which Azkaban hands a job over.

In come the bytes of a file, out goes a mapping, and the reverse. Both follow Java's own
reader and writer to the letter, so that a value arrives as it was meant.

References
----------
Java, ``java.util.Properties``: ``load(InputStream)`` and ``store(OutputStream, String)``.
"""

import re
from collections.abc import Iterator, Mapping

from ..errors import SpecInvalid

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\", "=": "\\=", ":": "\\:", "#": "\\#",
            "!": "\\!"}
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]{4}")
#: Letters that ISO-8859-1 can have brought.
_LATIN = re.compile("[\0-\xff]+")


def parse_properties(content: bytes) -> dict[str, str]:
    """Read a properties file.

    Parameters
    ----------
    content : bytes
        ISO-8859-1, other letters as ``\\uXXXX``.

    Returns
    -------
    dict of str to str
        In the order of the file; of a key that stands twice the last value holds. Half of
        a surrogate pair stays as it is.

    Raises
    ------
    SpecInvalid
        For ``\\u`` without four hexadecimal digits; Java refuses the whole file as well.
    """
    pairs: dict[str, str] = {}
    for line in _logical_lines(content.decode("iso-8859-1")):
        key, value = _split(line)
        pairs[_unescape(key)] = _unescape(value)
    return pairs


def format_properties(pairs: Mapping[str, str], comment: str = "") -> bytes:
    """Write a properties file.

    Parameters
    ----------
    pairs : mapping of str to str
    comment : str, optional
        Its lines come first, each behind a ``#``.

    Returns
    -------
    bytes
        ASCII; `parse_properties`, and Java, read the same pairs from it.
    """
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{_escape(key, key=True)}={_escape(value)}" for key, value in pairs.items()]
    return "".join(f"{line}\n" for line in lines).encode("ascii", "backslashreplace")


def repair_mojibake(value: str) -> str | None:
    """Give what a text meant that was written as UTF-8 and read as ISO-8859-1; None for any other text.

    All of it has to be such; letters beyond ISO-8859-1, which were escaped, stay.

    Azkaban reads ``.job`` files as ISO-8859-1: the two bytes of an e with an acute
    accent arrive as a capital A with a tilde and a copyright sign.
    """
    try:
        text = _LATIN.sub(lambda match: match[0].encode("iso-8859-1").decode("utf-8"), value)
    except UnicodeDecodeError:  # French quotation marks behind an e with an accent only begin like UTF-8
        return None
    return None if text == value else text


def escape_letters(value: str) -> str:
    """Give a value as people write it into a ``.job``: letters beyond ASCII as ``\\uXXXX``, all else as it is."""
    return "".join(letter if letter.isascii() else _units(letter) for letter in value)


def _logical_lines(text: str) -> Iterator[str]:
    """Give the lines that are neither blank nor a comment, continued ones joined."""
    line: list[str] = []
    skipping, joined, escaped, comment, after_return = True, False, False, False, False
    for index, letter in enumerate(text):
        if after_return:
            after_return = False
            if letter == "\n":
                continue
        if skipping and (letter in _BLANKS or (not joined and letter in "\r\n")):
            continue
        skipping, joined = False, False
        comment = comment or (not line and letter in "#!")
        if letter not in "\r\n":
            if not comment:
                line.append(letter)
                escaped = letter == "\\" and not escaped
        elif not line:
            skipping, comment = True, False
        elif not escaped:
            yield "".join(line)
            skipping, line = True, []
        elif index == len(text) - 1:
            break
        else:
            line.pop()
            skipping, joined, escaped, after_return = True, True, False, letter == "\r"
    if line:
        yield "".join(line[:-1] if escaped else line)


def _split(line: str) -> tuple[str, str]:
    """Cut a logical line at the first ``=``, ``:`` or blank that is not escaped."""
    end, escaped = len(line), False
    for index, letter in enumerate(line):
        if not escaped and letter in "=:" + _BLANKS:
            end = index
            break
        escaped = letter == "\\" and not escaped
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    letters: list[str] = []
    index = 0
    while index < len(text):
        letter = text[index]
        index += 1
        if letter == "\\" and index < len(text):
            letter = text[index]
            index += 1
            if letter == "u":
                match = _HEXADECIMAL.match(text, index)
                if not match:
                    raise SpecInvalid(f"not a properties file: {text[:60]!r} has \\u without four hexadecimal digits")
                letter = chr(int(match[0], 16))
                index += 4
            else:
                letter = _ESCAPES.get(letter, letter)
        letters.append(letter)
    # Two halves of a surrogate pair become their letter.
    return "".join(letters).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escape(text: str, *, key: bool = False) -> str:
    written = []
    for index, letter in enumerate(text):
        if letter == " ":
            written.append("\\ " if key or index == 0 else " ")
        elif letter in _WRITTEN:
            written.append(_WRITTEN[letter])
        else:
            written.append(letter if " " < letter <= "~" else _units(letter))
    return "".join(written)


def _units(letter: str) -> str:
    """A letter as one or two UTF-16 units."""
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
