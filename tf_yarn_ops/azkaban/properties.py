"""Properties files, the format in which Azkaban hands over a job and reads its plugins.

Azkaban reads and writes them by ``java.util.Properties``, this package by `javaproperties`. The two treat a line with
only a backslash in different ways; this module follows Java.

References
----------
Java, ``java.util.Properties``: ``load(InputStream)`` and ``store(OutputStream, String)``.
"""

import re
from collections.abc import Mapping

import javaproperties

from ..errors import SpecInvalid

_LINE_END = re.compile(r"\r\n?(?=.)", re.DOTALL)
#: A line with only a backslash, except the last line. Java drops it; javaproperties joins it to the next line, even if
#: that is a comment.
_ONLY_A_BACKSLASH = re.compile(r"^[ \t\f]*\\\n(?=.)", re.DOTALL | re.MULTILINE)
#: Characters of ISO-8859-1.
_LATIN = re.compile("[\0-\xff]+")


def parse_properties(content: bytes) -> dict[str, str]:
    """Read a properties file.

    Parameters
    ----------
    content : bytes
        ISO-8859-1; other characters as ``\\uXXXX``.

    Returns
    -------
    dict of str to str
        In the order of the file. If a key stands twice, its last value counts. Half of a surrogate pair stays as it
        is.

    Raises
    ------
    SpecInvalid
        A ``\\u`` is not followed by four hexadecimal digits. Java refuses such a file too.
    """
    pairs: dict[str, str] = {}
    text = _LINE_END.sub("\n", content.decode("iso-8859-1"))
    try:
        for part in javaproperties.parse(_ONLY_A_BACKSLASH.sub("", text)):
            if isinstance(part, javaproperties.KeyValue):
                pairs[part.key] = part.value
            elif isinstance(part, javaproperties.Whitespace) and "\\" in part.source:
                pairs[""] = ""  # The last line is a backslash: for Java an empty key.
    except javaproperties.InvalidUEscapeError as error:
        raise SpecInvalid(f"not a properties file: {error.escape!r} is not \\u and four hexadecimal digits") from error
    return pairs


def format_properties(pairs: Mapping[str, str], comment: str | None = None) -> bytes:
    """Return the content of a properties file, from which Java and `parse_properties` read the same pairs.

    Parameters
    ----------
    pairs : mapping of str to str
    comment : str, optional
        The first lines of the file, each behind a ``#``.

    Returns
    -------
    bytes
        ASCII.
    """
    return javaproperties.dumps(pairs, comments=comment, timestamp=None, ensure_ascii_comments=True).encode("ascii")


def repair_mojibake(value: str) -> str | None:
    """Return the text that was written as UTF-8 and read as ISO-8859-1; None if `value` is not such a text.

    Azkaban reads ``.job`` files as ISO-8859-1, so the two bytes of ``é`` arrive as ``Ã©``. Characters beyond
    ISO-8859-1 had been escaped and stay.
    """
    try:
        text = _LATIN.sub(lambda match: match[0].encode("iso-8859-1").decode("utf-8"), value)
    except UnicodeDecodeError:  # Letters such as É» only begin like UTF-8.
        return None
    return None if text == value else text


def escape_letters(value: str) -> str:
    """Return a text as people write it into a ``.job``: characters beyond ASCII as ``\\uXXXX``."""
    return value.encode("ascii", "javapropertiesreplace").decode("ascii")
