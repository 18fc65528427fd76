"""`StagingDirectory`: the files of applications in the cluster's file system.

Input: local files, folders, bytes and URIs. Output: `LocalResource` values with the URL, size and time that YARN
demands. Files that jobs share lie once in a cache that is addressed by content, ``<staging>/cache/<sha256>/<name>``;
secrets lie in the application's own directory.

``<staging>/<application id>`` has mode 700 from the start, before it holds a file. Every submitter writes into a folder
of its own below it. So two clients that submit the same reserved id never touch each other's files; YARN uses the files
of the first.
"""

import hashlib
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from ..errors import Cancelled, SpecInvalid, SubmissionRejected
from ..hadoop.cluster import Cluster
from ..hadoop.filesystem import FileSystem
from ..runtime.common.file_storage import Content, FileStatus
from ..validation import ARCHIVE_SUFFIXES

logger = logging.getLogger(__name__)
#: Logs the progress of large transfers; the command line always shows it.
_transfers = logging.getLogger("tf_yarn_ops.transfers")

#: Other users may pass through the staging directory, as YARN's public files need, but may not list it.
PASSABLE, _READABLE, _OURS_ALONE = 0o711, 0o755, 0o700
_PUBLIC_FILE, _PRIVATE_FILE = 0o644, 0o600
#: What lies in the staging directory besides the directories of applications.
CACHE_FOLDER, CLAIMS_FOLDER, LEASES_FOLDER, REPORTS_FOLDER = "cache", "claims", "leases", "reports"
_WRITABLE_BY_OTHERS, _STICKY = 0o022, 0o1000
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
#: Characters of a name in the cache; HDFS and YARN put more around it, and take at most 255.
_LONGEST_NAME = 100
#: Tries for a file that changes while it is uploaded.
_TRIES = 3
#: Bytes that are read, digested and sent at a time.
_PIECE = 1 << 18
#: Seconds until the first line about a transfer, and between two of them.
_FIRST_LINE, _NEXT_LINE = 1.0, 5.0
#: How YARN shares a file on a node, and what it does with it there.
PUBLIC, PRIVATE, APPLICATION = "PUBLIC", "PRIVATE", "APPLICATION"
FILE, ARCHIVE = "FILE", "ARCHIVE"
#: The job file in the folder of a submitter.
JOB_NAME = "job.json"


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


class ApplicationDirectory:
    """The directory of one application, with the folder of this submitter.

    Parameters
    ----------
    cluster : Cluster
    filesystem : FileSystem
    application_id : str
    """

    def __init__(self, cluster: Cluster, filesystem: FileSystem, application_id: str):
        self._cluster = cluster
        self._filesystem = filesystem
        self.path = cluster.directory(application_id)
        self.own = f"{self.path}/{uuid.uuid4().hex[:12]}"
        self._modified = int(time.time()) * 1000
        self._begun = False

    def make(self) -> None:
        """Make the directory.

        Raises
        ------
        SubmissionRejected
            The directory belongs to another user, or other users can open it.
        """
        self._begun = True
        self._filesystem.makedirs(self.own, _OURS_ALONE)
        status = self._filesystem.status(self.path)
        if status is None or status.owner != self._cluster.user or status.permission & 0o777 != _OURS_ALONE:
            raise SubmissionRejected(
                f"the application's directory {self.path} is not ours alone "
                f"({status.describe() if status else 'missing'})"
            )

    def planned(self, name: str, data: bytes) -> LocalResource:
        """Return a file as the resource that it will be after `put`.

        `put` sets the modification time that is chosen here. So the specification, which holds the times of the other
        files, can be written at the same time as these files: closing a small file takes HDFS 10 ms, and 400 ms when
        the DataNode reports it a moment too late.
        """
        return LocalResource(
            f"{self._cluster.storage.filesystem}{self.own}/{name}", len(data), self._modified, type=type_of(name)
        )

    def put(self, name: str, data: bytes) -> None:
        """Write a file with mode 600."""
        path = f"{self.own}/{name}"
        self._filesystem.replace(path, data, _PRIVATE_FILE)
        self._filesystem.set_modified(path, self._modified)

    def upload(self, source: Content, digest: str, name: str) -> LocalResource:
        """Upload a file that can't go into the cache; return it as a resource."""
        folder = f"{self.own}/{digest[:16]}"
        path = f"{folder}/{name}"
        self._filesystem.makedirs(folder, _OURS_ALONE)
        self._filesystem.replace(path, source, _PRIVATE_FILE)
        status = self._filesystem.status(path)
        if status is None:
            raise SubmissionRejected(f"{path} vanished right after it was written")
        return LocalResource(
            self._cluster.storage.filesystem + path, status.length, status.modified, type=type_of(name)
        )

    def discard(self) -> None:
        """Delete the files of this submitter, and then the directory if it is empty."""
        if not self._begun:
            return
        self._filesystem.delete(self.own)
        if not self._filesystem.list(self.path):
            self._filesystem.delete(self.path)


def plain_name(name: str) -> str:
    """Return a name like that of a local file that bash, Java and URLs take literally; its suffix stays."""
    return _UNSAFE.sub("_", name)[-_LONGEST_NAME:]


class StagingDirectory:
    """The staging directory of one user.

    Parameters
    ----------
    cluster : Cluster
    """

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.filesystem = cluster.open_filesystem()
        self.cache = f"{cluster.staging}/{CACHE_FOLDER}"
        self._trusted = {cluster.user, *filter(None, [cluster.site.trusted_owner])}
        self._known: dict[str, FileStatus | None] = {}

    def prepare(self, pool: Executor) -> None:
        """Make the staging directory and the cache if they are missing; read the status of both and of their parents.

        Raises
        ------
        SubmissionRejected
            They can't be made.
        """
        caches = [self.cache, *filter(None, [self.cluster.site.shared_cache])]
        self._find_statuses([str(part) for cache in caches for part in (cache, *PurePosixPath(cache).parents)], pool)
        if self._known[self.cache] is None:
            try:
                self.filesystem.makedirs(self.cache, PASSABLE)
            except SubmissionRejected as error:
                raise SubmissionRejected(
                    f"{error}. The staging directory {self.cluster.staging} can't be made: ask the administrator to "
                    f"make the home directory of {self.cluster.user}, or set another directory in site.yaml "
                    "(staging: /path/{user})"
                ) from error
            self._find_statuses([path for path, status in self._known.items() if status is None], pool)

    def make_private(self, folder: str) -> None:
        """Make a folder below the staging directory that only its user may open.

        The staging directory comes first: HDFS gives missing parents the mode of the requested directory, and
        NodeManagers share cached files only below directories that all users may pass.
        """
        self.filesystem.makedirs(self.cluster.staging, PASSABLE)
        self.filesystem.makedirs(folder, _OURS_ALONE)

    def check_owner(self) -> None:
        """Raise SubmissionRejected if another user could exchange the directories of applications.

        Who owns a directory, or may write it while it is not sticky, can rename what lies in it and put something else
        in its place, however closed that is.
        """
        path, user = self.cluster.staging, self.cluster.user
        status = self._status(path)
        if status is None:
            return
        if status.owner not in self._trusted:
            raise SubmissionRejected(
                f"the staging directory {path} belongs to {status.owner}, who could exchange the files of your jobs. "
                f"Let the administrator delete it or give it to you (hdfs dfs -chown {user} {path}), or set another "
                "directory in site.yaml (staging: /path/{user})"
            )
        if status.permission & 0o002 and not status.permission & _STICKY:
            raise SubmissionRejected(
                f"every user can write the staging directory {path} ({status.describe()}) and exchange the files of "
                f"your jobs. Close it: hdfs dfs -chmod go-w {path}"
            )

    def _find_statuses(self, paths: Iterable[str], pool: Executor) -> None:
        missing = list(dict.fromkeys(paths))
        self._known.update(zip(missing, pool.map(self.filesystem.status, missing), strict=True))

    def _status(self, path: str) -> FileStatus | None:
        """Return the status of a directory; ask the file system only once."""
        if self._known.get(path) is None:
            self._known[path] = self.filesystem.status(path)
        return self._known[path]

    def directory(self, application_id: str) -> ApplicationDirectory:
        """Return the directory of an application, for this submitter to fill."""
        return ApplicationDirectory(self.cluster, self.filesystem, application_id)

    def delete(self, application_id: str) -> bool:
        """Delete an application's directory with the key in it; return False if there was none.

        Skein's client always puts the directory into the user's home directory.
        """
        places = (self.cluster.directory(application_id), f"/user/{self.cluster.user}/.skein/{application_id}")
        deleted = [self.filesystem.delete(place) for place in dict.fromkeys(places)]
        return any(deleted)

    def store(
        self,
        directory: ApplicationDirectory,
        source: Path | bytes,
        name: str,
        *,
        public: bool = False,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> LocalResource:
        """Return a file of the cache; upload it if the cache does not have it.

        Parameters
        ----------
        directory : ApplicationDirectory
            Takes the file if the cache can't be trusted.
        source : Path or bytes
            A local file, or its content.
        name : str
            File name, by which YARN recognises archives.
        public : bool, optional
            Whether every user may read it, so that all users of a node share one copy. Default False.
        checkpoint : callable, optional
            Called between the pieces of a file; raises an error to end the transfer. Default: nothing ends it.

        Raises
        ------
        SpecInvalid
            The file changes each time it is uploaded.
        """
        name = plain_name(name)
        for _ in range(_TRIES):
            try:
                return self._store(
                    directory,
                    _Bytes(source) if isinstance(source, bytes) else LocalContent(source, checkpoint),
                    name,
                    public,
                )
            except (FileChanged, FileNotFoundError):
                logger.warning("%s has changed while it was uploaded; reading it again", name)
        raise SpecInvalid(
            f"{name} was changed or removed {_TRIES} times while it was uploaded; submit again when the "
            "program that writes it has finished"
        )

    def _store(
        self, directory: ApplicationDirectory, source: "_Bytes | LocalContent", name: str, public: bool
    ) -> LocalResource:
        digest = source.digest()
        for cache in filter(None, [self.cluster.site.shared_cache, self.cache]):
            path = f"{cache}/{digest}/{name}"
            status = self.filesystem.status(path)
            if status and self._trustworthy(path, status, source.size):
                return self._resource(path, status, public)
            if status:
                logger.warning(
                    "not using the cached file %s: %s; expected %s bytes of %s that no other user can write",
                    path,
                    status.describe(),
                    source.size,
                    "/".join(sorted(self._trusted)),
                )
                return directory.upload(source, digest, name)
        return self._upload(directory, source, digest, name, public)

    def _upload(
        self, directory: ApplicationDirectory, source: "_Bytes | LocalContent", digest: str, name: str, public: bool
    ) -> LocalResource:
        folder = f"{self.cache}/{digest}"
        path, passing = f"{folder}/{name}", f"{folder}/.{uuid.uuid4().hex}"
        self.filesystem.makedirs(folder, _READABLE if public else _OURS_ALONE)
        if not self._ours(self._status(folder)) or not self._ours(self._status(self.cache)):
            logger.warning(
                "other users can write the cache %s; %s is staged for this application alone", self.cache, name
            )
            return directory.upload(source, digest, name)
        logger.info("uploading %s (%s bytes) to %s", name, source.size, path)
        try:
            self.filesystem.replace(passing, source, _PUBLIC_FILE if public else _PRIVATE_FILE)
            if source.read_digest != digest:
                raise FileChanged(name)
        except (FileChanged, Cancelled):
            self.filesystem.delete(passing)
            raise
        if not self.filesystem.rename(passing, path):
            self.filesystem.delete(passing)  # another client was faster; the content is the same
        status = self.filesystem.status(path)
        if status is None or not self._trustworthy(path, status, source.size):
            return directory.upload(source, digest, name)
        return self._resource(path, status, public)

    def _trustworthy(self, path: str, status: FileStatus, length: int) -> bool:
        """Return whether a cached file is complete, and only we or the trusted owner could have written it."""
        folder = str(PurePosixPath(path).parent)
        return (
            not status.is_directory
            and status.length == length
            and self._ours(status)
            and self._ours(self._status(folder))
            and self._ours(self._status(str(PurePosixPath(folder).parent)))
        )

    def _ours(self, status: FileStatus | None) -> bool:
        return bool(status and status.owner in self._trusted and not status.permission & _WRITABLE_BY_OTHERS)

    def _resource(self, path: str, status: FileStatus, public: bool) -> LocalResource:
        return LocalResource(
            self.cluster.storage.filesystem + path,
            status.length,
            status.modified,
            PUBLIC if public and self._is_public(path, status) else PRIVATE,
            type_of(path),
        )

    def _is_public(self, path: str, status: FileStatus) -> bool:
        """Return whether every user can read a file; NodeManagers refuse any other public file."""
        parents = [self._status(str(parent)) for parent in PurePosixPath(path).parents]
        return bool(status.permission & 0o004) and all(found and found.permission & 0o001 for found in parents)

    def locate(self, uri: str, kind: str) -> LocalResource:
        """Return a resource for a file that the cluster already has.

        Parameters
        ----------
        uri : str
            On the default file system (with or without its authority), or ``http(s)://``.
        kind : str
            ``FILE`` or ``ARCHIVE``.

        Raises
        ------
        SpecInvalid
            There is no such file, or its file system can't be asked over HTTP.
        """
        split = urlsplit(uri)
        if split.scheme in ("http", "https"):
            # YARN's reader of http knows neither size nor time, and reports both as 0.
            return LocalResource(uri, 0, 0, PRIVATE, kind)
        default, own = urlsplit(self.cluster.storage.default), urlsplit(self.cluster.storage.filesystem)
        ours = [default, own] if default.scheme == "viewfs" or default == own else [own]
        if (split.scheme, split.netloc or default.netloc) not in [(known.scheme, known.netloc) for known in ours]:
            raise SpecInvalid(
                f"{uri} is on a file system that can't be asked over HTTP; copy the file to "
                f"{self.cluster.storage.filesystem}, or submit with Skein (submit_with: skein)"
            )
        status = self.filesystem.status(split.path)
        if status is None or status.is_directory:
            raise SpecInvalid(
                f"{uri}: {'there is no such file' if status is None else 'is a directory, not a file'} "
                f"on {self.cluster.storage.filesystem}"
            )
        return replace(self._resource(split.path, status, False), type=kind)


class FileChanged(SubmissionRejected):
    """A file has changed its length or content since it was digested."""


class LocalContent(Content):
    """A local file with the length that it had at first; digests the content while it is read.

    The request announces the length before the content. So leave out the rest of a file that has grown, and raise
    `FileChanged` for a file that has shrunk: the other side would wait for the missing bytes.
    """

    def __init__(self, path: Path, checkpoint: Callable[[], None] = lambda: None):
        self._path = path
        self._checkpoint = checkpoint
        self.size = path.stat().st_size
        self.read_digest = ""

    def __iter__(self) -> Iterator[bytes]:
        found, left, tell_at = hashlib.sha256(), self.size, time.monotonic() + _FIRST_LINE
        try:
            stream = self._path.open("rb")
        except FileNotFoundError as error:
            raise FileChanged(f"{self._path} has been removed") from error
        with stream:
            while left:
                piece = stream.read(min(left, _PIECE))
                if not piece:
                    raise FileChanged(f"{self._path} has changed while it was uploaded; try again")
                self._checkpoint()
                found.update(piece)
                left -= len(piece)
                if time.monotonic() >= tell_at:
                    tell_at = time.monotonic() + _NEXT_LINE
                    _transfers.info(
                        "%s %s: %.0f of %.0f MiB",
                        "uploading" if self.read_digest else "reading",
                        self._path.name,
                        (self.size - left) / 2**20,
                        self.size / 2**20,
                    )
                yield piece
        self.read_digest = found.hexdigest()

    def digest(self) -> str:
        """Read the file; return the digest of its content."""
        for _ in self:
            pass
        return self.read_digest


class _Bytes(Content):
    """Content that is in memory."""

    def __init__(self, content: bytes):
        self._content = content
        self.size = len(content)
        self.read_digest = hashlib.sha256(content).hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    def digest(self) -> str:
        """Return the digest of the bytes."""
        return self.read_digest
