"""The file system of the staging directory, behind one small interface.

`webhdfs.WebHdfs` asks NameNodes or an HttpFS; `MountedFileSystem` is a local folder that the cluster sees through a
viewfs mount. Both translate their errors into ours.
"""

import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import SubmissionRejected

#: All users in an ACL, and the mode of a file that all may read.
EVERYBODY, EVERYBODY_MAY_READ = "*", 0o644


@dataclass(frozen=True)
class FileStatus:
    """The facts of a file system about one path.

    Attributes
    ----------
    name : str
        The last part of the path.
    is_directory : bool
    length : int
        Bytes.
    modified, accessed : int
        Milliseconds since the epoch.
    owner : str
    permission : int
        The nine bits, and the sticky bit.
    block_size : int
        Bytes; 0 if the file system does not tell.
    """

    name: str
    is_directory: bool
    length: int
    modified: int
    accessed: int
    owner: str
    permission: int
    block_size: int = 0

    def describe(self) -> str:
        """Return the status as part of a message."""
        return f"owner {self.owner}, permission {self.permission:o}, {self.length} bytes"


class Content(Protocol):
    """The content of a file that is read in pieces; each iteration begins at the start.

    Attributes
    ----------
    size : int
        Bytes.
    """

    size: int

    def __iter__(self) -> Iterator[bytes]: ...


class FileSystem(Protocol):
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

    def list(self, path: str) -> list[FileStatus]:
        """Return the entries of a directory; an empty list when it does not exist."""

    def makedirs(self, path: str, permission: int) -> None:
        """Make a directory and its parents; those that exist stay as they are."""

    def create(self, path: str, data: bytes | Content, permission: int) -> bool:
        """Write a new file; return False and change nothing when the path exists."""

    def set_modified(self, path: str, modified: int) -> None:
        """Set a file's modification time, milliseconds since the epoch."""

    def let_read(self, path: str, users: Iterable[str], groups: Iterable[str]) -> None:
        """Let further users and groups read a file; ``*`` is every user."""

    def rename(self, source: str, target: str) -> bool:
        """Rename a file; return False when the target exists."""

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """Return the content of a small file, or of a range of bytes; None when the file does not exist."""

    def read_news(self, path: str, offset: int, known: int, most: int) -> bytes | None:
        """Return at most ``most`` bytes from an offset on, also those of a file that is being written.

        The result is empty if there are no more, and None if the file is shorter or gone. ``known`` is the length in
        its status.
        """

    def delete(self, path: str) -> bool:
        """Delete a file, or a directory with everything in it; return False when the path did not exist."""

    def delegation_token(self, renewer: str) -> str | None:
        """Return the text of a new token that ``renewer`` may renew; None for a file system that needs none."""

    def cancel_token(self, token: str) -> None:
        """Cancel a token, given as its text."""

    def close(self) -> None:
        """Close the connections; it is the last call."""


class MountedFileSystem:
    """A folder of this machine that the cluster sees as a file system.

    Parameters
    ----------
    root : str
        The folder that is ``/`` of that file system.
    """

    def __init__(self, root: str):
        self._root = Path(root)

    def _path(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SubmissionRejected(f"{what}: {error.strerror} ({error.filename})") from error

    def status(self, path: str) -> FileStatus | None:
        with self._translated(f"looking at {path}"):
            try:
                return _local_status(self._path(path))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def list(self, path: str) -> list[FileStatus]:
        with self._translated(f"listing {path}"):
            try:
                return [_local_status(item) for item in sorted(self._path(path).iterdir())]
            except FileNotFoundError:
                return []

    def makedirs(self, path: str, permission: int) -> None:
        with self._translated(f"making the directory {path}"):
            missing = [part for part in [self._path(path), *self._path(path).parents] if not part.exists()]
            for part in reversed(missing):
                part.mkdir(exist_ok=True)
                part.chmod(permission)

    def create(self, path: str, data: bytes | Content, permission: int) -> bool:
        with self._translated(f"writing {path}"):
            try:
                descriptor = os.open(self._path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, permission)
            except FileExistsError:
                return False
            with open(descriptor, "wb") as target:
                os.fchmod(descriptor, permission)
                target.writelines([data] if isinstance(data, bytes) else data)
        return True

    def set_modified(self, path: str, modified: int) -> None:
        with self._translated(f"setting the time of {path}"):
            os.utime(self._path(path), ns=(modified * 1_000_000, modified * 1_000_000))

    def let_read(self, path: str, users: Iterable[str], groups: Iterable[str]) -> None:
        if EVERYBODY in users:
            with self._translated(f"opening {path}"):
                self._path(path).chmod(EVERYBODY_MAY_READ)

    def rename(self, source: str, target: str) -> bool:
        with self._translated(f"renaming {source}"):
            try:
                os.link(self._path(source), self._path(target))
            except FileExistsError:
                return False
            self._path(source).unlink()
        return True

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes | None:
        with self._translated(f"reading {path}"):
            try:
                with self._path(path).open("rb") as file:
                    file.seek(offset)
                    return file.read(length)
            except FileNotFoundError:
                return None

    def read_news(self, path: str, offset: int, known: int, most: int) -> bytes | None:
        return self.read(path, offset, most) if offset <= known else None

    def delete(self, path: str) -> bool:
        target = self._path(path)
        with self._translated(f"deleting {path}"):
            if target.is_dir():
                # Rename it first, so that a reader sees the whole directory or nothing.
                grave = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
                try:
                    target.rename(grave)
                except FileNotFoundError:
                    return False
                shutil.rmtree(grave, ignore_errors=True)
                return True
            try:
                target.unlink()
            except FileNotFoundError:
                return False
        return True

    def delegation_token(self, renewer: str) -> str | None:
        return None

    def cancel_token(self, token: str) -> None:
        """Do nothing: there is no token."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _local_status(path: Path) -> FileStatus:
    import pwd

    found = path.stat()
    try:
        owner = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = str(found.st_uid)
    # Hadoop's local file system truncates to milliseconds.
    return FileStatus(path.name, stat.S_ISDIR(found.st_mode), found.st_size, found.st_mtime_ns // 1_000_000,
                      found.st_atime_ns // 1_000_000, owner, stat.S_IMODE(found.st_mode))
