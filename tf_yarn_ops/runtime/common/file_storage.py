"""`Storage`: the file system in which jobs leave files; `LocalFolder` is the one of this machine.

The coordinator, the task of TensorBoard and all clients use the same calls. `hdfs.Hdfs` answers them inside a container
and `tf_yarn_ops.hadoop.webhdfs.WebHdfs` at a client, which needs more of them (`tf_yarn_ops.hadoop.filesystem`).
"""

import errno
import logging
import os
import shutil
import stat
import tempfile
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Type, Union

from .contract import EVERYBODY
from .values import MAX_INTEGER, MIN_INTEGER, open_regular

logger = logging.getLogger(__name__)

#: Bytes of the longest piece of a file that is read at a time.
PIECE = 4 * 1024 * 1024


class StorageRefused(OSError):
    """The file system does not answer, or refuses; the text says why, without a token."""


class StorageAway(StorageRefused):
    """No NameNode or DataNode answers, or none can do it now; the same call may succeed later."""


class FileStatus(NamedTuple):
    """The facts of a file system about one path.

    Attributes
    ----------
    name : str
        The last part of the path.
    is_directory : bool
    length : int
        Bytes, as the NameNode knows them: without the last block of a file that is being written.
    modified, accessed : int
        Milliseconds since the epoch.
    owner : str
        Of a symbolic link that another user has made: that user.
    permission : int
        The nine bits, and the sticky bit.
    block_size : int
        Bytes; 0 if the file system does not name it.
    links : int
        Names of a file on this machine or a file server; 1 for a directory, and elsewhere.
    encrypted : bool
        Whether it lies in an encryption zone of HDFS, or is one.
    """

    name: str
    is_directory: bool
    length: int
    modified: int
    accessed: int
    owner: str
    permission: int
    block_size: int = 0
    links: int = 1
    encrypted: bool = False

    def is_made_by(self, user: str) -> bool:
        """Return whether a user has made this file, or directory, here.

        Where ``fs.protected_hardlinks`` is off, anybody can give another user's file a further name.
        """
        return self.owner == user and self.links == 1

    def describe(self) -> str:
        """Return the status as part of a message."""
        return "owner %s, permission %o, %d bytes" % (self.owner, self.permission, self.length)


def read_file_status(item: Mapping[str, Any]) -> FileStatus:
    """Return WebHDFS's JSON object ``FileStatus``; raise ValueError, KeyError or TypeError for any other document."""
    name = item["pathSuffix"]
    if not isinstance(name, str) or "/" in name or name in (".", ".."):
        raise ValueError("%r is no name in a directory" % (name,))
    try:
        length, modified, accessed = (int(item[key]) for key in ("length", "modificationTime", "accessTime"))
        block_size = int(item.get("blockSize") or 0)
    except OverflowError:  # of 1e400
        raise ValueError("a number of %s is infinite" % name) from None
    if not all(MIN_INTEGER <= number <= MAX_INTEGER for number in (length, modified, accessed, block_size)):
        raise ValueError("a number of %s is out of range" % name)
    return FileStatus(
        name,
        item["type"] == "DIRECTORY",
        length,
        modified,
        accessed,
        str(item["owner"]),
        int(item["permission"], 8),
        block_size,
        encrypted=item.get("encBit") is True,
    )


class Content(Protocol):
    """The content of a file that is read in pieces; each iteration begins at the start.

    Attributes
    ----------
    size : int
        Bytes.
    """

    size: int

    def __iter__(self) -> Iterator[bytes]: ...


class Storage(Protocol):
    """The calls that containers and clients use; each raises `StorageRefused`, or the client's own errors."""

    def list(self, path: str) -> List[FileStatus]:
        """Return the entries of a directory; an empty list when it does not exist."""

    def makedirs(self, path: str, permission: int) -> None:
        """Make a directory and its parents; those that exist stay as they are."""

    def create(self, path: str, data: Union[bytes, Content], permission: int) -> bool:
        """Write a new file; return False and change nothing when the path exists.

        An answer that is lost is an error, because the file may be another client's: `replace` is repeated.
        """

    def replace(self, path: str, data: Union[bytes, Content], permission: int) -> None:
        """Write a file over the one that has this path, if there is one."""

    def rename(self, source: str, target: str) -> bool:
        """Rename a file; return False when the target exists."""

    def allow_read(self, path: str, users: Sequence[str], groups: Sequence[str]) -> str:
        """Let further users and groups read a file; return why the file system has no ACLs, else an empty text."""

    def read_appended(self, path: str, offset: int, known: int, most: int) -> Optional[bytes]:
        """Return at most ``most`` bytes from an offset on, also those of a file that is being written.

        The result is empty if there are no more, and None if the file is shorter or gone. ``known`` is the length in
        its status.
        """

    def delete(self, path: str) -> bool:
        """Delete a file, or a directory with everything in it; return False when the path did not exist."""


def put_whole(files: Storage, path: str, data: bytes, users: Sequence[str] = (), groups: Sequence[str] = ()) -> bool:
    """Write a new file that appears whole; return False if the path exists.

    Parameters
    ----------
    files : Storage
    path : str
        Its directory exists.
    data : bytes
    users, groups : sequence of str, optional
        Who may read it besides the owner; ``*`` is every user.
    """
    folder, _, name = path.rpartition("/")
    passing = "%s/.%s.%s" % (folder, name, uuid.uuid4().hex[:12])
    everybody = EVERYBODY in users
    files.replace(passing, data, 0o644 if everybody else 0o600)
    if (users or groups) and not everybody:
        why = files.allow_read(passing, users, groups)
        if why:
            logger.warning("Only the owner may read %s: %s", path, why)
    if files.rename(passing, path):
        return True
    files.delete(passing)
    return False


def walk_files(files: Storage, folder: str, hidden: bool = True) -> Iterator[Tuple[str, FileStatus]]:
    """Yield the files in a folder and in those below it, each with its path below the folder.

    Parameters
    ----------
    files : Storage
    folder : str
    hidden : bool, optional
        Whether also those in folders whose names begin with a dot or an underscore. Default True.
    """
    waiting = [""]
    while waiting:
        below = waiting.pop()
        for status in files.list(os.path.join(folder, below) if below else folder):
            name = os.path.join(below, status.name)
            if not status.is_directory:
                yield name, status
            elif hidden or not status.name.startswith((".", "_")):
                waiting.append(name)


class LocalFolder:
    """A folder of this machine: that of ``local://``, or one that the cluster sees through a viewfs mount.

    Parameters
    ----------
    root : str
        The folder that is ``/`` of the file system.
    refusal : type of Exception, optional
        The error for what the operating system refuses. Default: `StorageRefused`.
    """

    def __init__(self, root: str, refusal: Type[Exception] = StorageRefused):
        self._root, self._refusal = Path(root), refusal

    def _path(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._refusal("%s: %s (%s)" % (what, error.strerror, error.filename)) from error

    def status(self, path: str) -> Optional[FileStatus]:
        """Return the status of a path; None when it does not exist."""
        with self._translated("looking at %s" % path):
            try:
                return _local_status(self._path(path))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def list(self, path: str) -> List[FileStatus]:
        with self._translated("listing %s" % path):
            found = []
            with suppress(FileNotFoundError):
                for item in sorted(self._path(path).iterdir()):
                    with suppress(FileNotFoundError):  # somebody has just deleted or renamed it
                        found.append(_local_status(item))
            return found

    def makedirs(self, path: str, permission: int) -> None:
        with self._translated("making the directory %s" % path):
            folder = self._path(path)
            missing = [part for part in (folder, *folder.parents) if not part.exists()]
            for part in reversed(missing):
                part.mkdir(exist_ok=True)
                part.chmod(permission)

    def create(self, path: str, data: Union[bytes, Content], permission: int) -> bool:
        with self._translated("writing %s" % path):
            try:
                descriptor = os.open(self._path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, permission)
            except FileExistsError:
                return False
            with open(descriptor, "wb") as target:
                os.fchmod(descriptor, permission)
                target.writelines([data] if isinstance(data, bytes) else data)
        return True

    def replace(self, path: str, data: Union[bytes, Content], permission: int) -> None:
        passing = "%s.%s" % (path, uuid.uuid4().hex)
        try:
            self.create(passing, data, permission)
            with self._translated("writing %s" % path):
                self._path(passing).replace(self._path(path))
        except BaseException:
            self.delete(passing)
            raise

    def append(self, path: str, data: Union[bytes, Content]) -> None:
        """Write to the end of a file that exists."""
        with (
            self._translated("writing %s" % path),
            open(os.open(self._path(path), os.O_WRONLY | os.O_APPEND), "wb") as target,
        ):
            target.writelines([data] if isinstance(data, bytes) else data)

    def move_over(self, source: str, target: str) -> None:
        """Rename a file to a path that another one may have; a reader sees the one or the other."""
        with self._translated("renaming %s" % source):
            self._path(source).replace(self._path(target))

    def owner_of_new(self, folder: str) -> str:
        """Return the owner of the files that this process makes in a folder; a file server may choose another one."""
        with self._translated("writing in %s" % folder), tempfile.TemporaryFile(dir=self._path(folder)) as file:
            return _name_of(os.fstat(file.fileno()).st_uid)

    def set_modified(self, path: str, modified: int) -> None:
        """Set a file's modification time, milliseconds since the epoch."""
        with self._translated("setting the time of %s" % path):
            os.utime(self._path(path), ns=(modified * 1_000_000, modified * 1_000_000))

    def allow_read(self, path: str, users: Sequence[str], groups: Sequence[str]) -> str:
        return ""

    def move(self, source: str, target: str) -> None:
        """Rename a file or directory to a path that nothing has; its parent exists.

        Raises
        ------
        FileNotFoundError, FileExistsError
        """
        try:
            if os.path.lexists(self._path(target)):
                raise FileExistsError(errno.EEXIST, "it exists", target)
            self._path(source).rename(self._path(target))
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise FileExistsError(errno.EEXIST, "it exists", target) from None
            raise

    def rename(self, source: str, target: str) -> bool:
        with self._translated("renaming %s" % source):
            try:
                os.link(self._path(source), self._path(target))
            except FileExistsError:
                return False
            self._path(source).unlink()
        return True

    def read(self, path: str, offset: int = 0, length: Optional[int] = None) -> Optional[bytes]:
        """Return the content of a small file, or of a range of bytes; None when the file does not exist."""
        with self._translated("reading %s" % path):
            try:
                with open_regular(self._path(path)) as file:
                    file.seek(offset)
                    return file.read(-1 if length is None else length)
            except FileNotFoundError:
                return None

    def read_appended(self, path: str, offset: int, known: int, most: int) -> Optional[bytes]:
        return self.read(path, offset, most) if offset <= known else None

    def delete(self, path: str) -> bool:
        target = self._path(path)
        with self._translated("deleting %s" % path):
            try:
                if not target.is_dir():
                    target.unlink()
                    return True
                # Rename it first, so that a reader sees the whole directory or nothing.
                grave = target.with_name(".%s.%s" % (target.name, uuid.uuid4().hex))
                target.rename(grave)
            except FileNotFoundError:
                return False
            shutil.rmtree(grave, ignore_errors=True)
        return True

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _name_of(number: int) -> str:
    """Return the name of a user of this machine; the number of one without a name."""
    try:
        import pwd  # not on Windows

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def _local_status(path: Path) -> FileStatus:
    found, link = path.stat(), path.lstat()
    # A link counts as that of who made it: anyone can link to a file of somebody else. Ours and root's are trusted.
    if link.st_uid in (0, getattr(os, "geteuid", int)()):
        try:
            owner = path.owner()
        except (KeyError, RuntimeError):  # no user of this number; no owners, as on Windows
            owner = str(found.st_uid)
    else:
        owner = _name_of(link.st_uid)
    # Hadoop's local file system truncates to milliseconds.
    return FileStatus(
        path.name,
        stat.S_ISDIR(found.st_mode),
        found.st_size,
        found.st_mtime_ns // 1_000_000,
        found.st_atime_ns // 1_000_000,
        owner,
        stat.S_IMODE(found.st_mode),
        links=1 if stat.S_ISDIR(found.st_mode) else found.st_nlink,
    )
