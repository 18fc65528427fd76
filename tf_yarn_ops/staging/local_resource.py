"""`LocalResource`: a file as YARN localizes it."""

from dataclasses import dataclass

from ..validation import ARCHIVE_SUFFIXES

PUBLIC, PRIVATE, APPLICATION = "PUBLIC", "PRIVATE", "APPLICATION"
FILE, ARCHIVE = "FILE", "ARCHIVE"


@dataclass(frozen=True)
class LocalResource:
    """A file as YARN localizes it.

    Attributes
    ----------
    url : str
        Not percent-encoded.
    size : int
        Bytes.
    timestamp : int
        Modification time in milliseconds since the epoch; YARN refuses a file with another one.
    visibility : str
        ``PUBLIC``, ``PRIVATE`` or ``APPLICATION``.
    type : str
        ``FILE`` or ``ARCHIVE``.
    """

    url: str
    size: int
    timestamp: int
    visibility: str = APPLICATION
    type: str = FILE


def type_of(name: str) -> str:
    """Return the type that a file's name suggests."""
    return ARCHIVE if name.endswith(ARCHIVE_SUFFIXES) else FILE
