"""The file system of the staging directory as clients use it.

`webhdfs.WebHdfs` asks NameNodes or an HttpFS; `MountedFileSystem` is a local folder that the cluster sees through a
viewfs mount, or that of ``local://``. Both translate their errors into ours.
"""

from typing import Protocol

from ..errors import SubmissionRejected
from ..runtime.common.file_storage import FileStatus, LocalFolder, Storage


class FileSystem(Storage, Protocol):
    """The operations that staging needs.

    Raises
    ------
    SubmissionRejected
        From every method, when the file system refuses.
    ClusterUnreachable
        From every method, when the file system does not answer, or can't write now.
    """

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path; None when it does not exist."""

    def set_modified(self, path: str, modified: int) -> None:
        """Set a file's modification time, milliseconds since the epoch."""

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """Return the content of a small file, or of a range of bytes; None when the file does not exist."""

    def close(self) -> None:
        """Close the connections; it is the last call."""


class MountedFileSystem(LocalFolder):
    """A folder of this machine that the cluster sees as a file system.

    Parameters
    ----------
    root : str
        The folder that is ``/`` of that file system.
    """

    def __init__(self, root: str):
        super().__init__(root, SubmissionRejected)
