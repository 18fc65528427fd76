"""`EventFiles`: a file system as `runtime.common.mirror` reads it."""

from ..runtime.common.mirror import Entry
from .filesystem import FileSystem

#: Longest piece of a file, bytes.
EVENT_PIECE = 4 * 2**20


class EventFiles:
    """Reads folders and growing files.

    Parameters
    ----------
    files : FileSystem
    """

    def __init__(self, files: FileSystem):
        self._files = files

    def entries(self, path: str) -> list[Entry]:
        """Return the entries of a folder; an empty list if there is none."""
        return [Entry(found.name, found.is_directory, found.length, found.block_size)
                for found in self._files.list(path)]

    def piece(self, path: str, offset: int, known: int) -> bytes | None:
        """Return bytes of a file from an offset on, empty if there are no more; None if the file is shorter."""
        return self._files.read_news(path, offset, known, EVENT_PIECE)
