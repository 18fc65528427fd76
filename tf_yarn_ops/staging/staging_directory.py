"""`StagingDirectory`: what an application needs, put where YARN's nodes find it.

In come local files, folders, bytes and URIs; out go `LocalResource` values with the URL, size
and time that YARN demands. What jobs share lies once in a content-addressed cache,
``<staging>/cache/<sha256>/<name>``; what is secret in the application's own directory.
"""

import hashlib
import io
import logging
import os
import re
import uuid
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import urlsplit

from ..errors import SpecInvalid, SubmissionRejected
from ..hadoop.cluster import Cluster
from ..hadoop.filesystem import FileStatus, FileSystem, MountedFileSystem
from ..hadoop.transport import RestUnavailable
from ..hadoop.webhdfs import WebHdfs
from .application_directory import ApplicationDirectory
from .local_resource import PRIVATE, PUBLIC, LocalResource, type_of

logger = logging.getLogger(__name__)

#: Others may pass through the staging directory (YARN's public files need it), not look into it.
PASSABLE, _READABLE, _OURS_ALONE = 0o711, 0o755, 0o700
_PUBLIC_FILE, _PRIVATE_FILE = 0o644, 0o600
_WRITABLE_BY_OTHERS = 0o022
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
#: How often a file is looked at that somebody edits while it is uploaded.
_LOOKS = 3


def open_filesystem(cluster: Cluster) -> FileSystem:
    """Give the file system of the cluster's staging directory.

    Raises
    ------
    RestUnavailable
        It can't be reached over HTTP.
    """
    if cluster.local_root is not None:
        return MountedFileSystem(cluster.local_root)
    if cluster.webhdfs:
        site = cluster.site
        return WebHdfs(cluster.webhdfs, cluster.storage_authentication, site.request_timeout, site.ca_file)
    raise RestUnavailable(
        f"the file system {cluster.filesystem} has no known HTTP address; add lines to site.yaml: "
        "'webhdfs: http://namenode:9870' (or an HttpFS), and 'staging_url: hdfs://...' for another file system")


class StagingDirectory:
    """The staging directory of one user.

    Parameters
    ----------
    cluster : Cluster
    filesystem : FileSystem, optional
        Default: what `open_filesystem` gives.
    """

    def __init__(self, cluster: Cluster, filesystem: FileSystem | None = None):
        self.cluster = cluster
        self.filesystem = filesystem or open_filesystem(cluster)
        self.cache = f"{cluster.staging}/cache"
        self._trusted = {cluster.user, *filter(None, [cluster.site.trusted_owner])}
        self._known: dict[str, FileStatus | None] = {}

    def prepare(self, pool: Executor) -> None:
        """Make the staging directory and the cache where they are missing; look at them and their parents once.

        Raises
        ------
        SubmissionRejected
            They can't be made.
        """
        caches = [self.cache, *filter(None, [self.cluster.site.shared_cache])]
        self._look([str(part) for cache in caches for part in (cache, *PurePosixPath(cache).parents)], pool)
        if self._known[self.cache] is None:
            try:
                self.filesystem.makedirs(self.cache, PASSABLE)
            except SubmissionRejected as error:
                raise SubmissionRejected(
                    f"{error}. The staging directory {self.cluster.staging} can't be made: let the administrator "
                    f"make the home directory of {self.cluster.user}, or name another one in site.yaml "
                    "(staging: /path/{user})") from error
            self._look([path for path, status in self._known.items() if status is None], pool)

    def _look(self, paths: Iterable[str], pool: Executor) -> None:
        missing = list(dict.fromkeys(paths))
        self._known.update(zip(missing, pool.map(self.filesystem.status, missing), strict=True))

    def _status(self, path: str) -> FileStatus | None:
        """Give the status of a directory, asked for once."""
        if self._known.get(path) is None:
            self._known[path] = self.filesystem.status(path)
        return self._known[path]

    def directory(self, application_id: str) -> ApplicationDirectory:
        """Give the directory of an application, for this submitter to fill."""
        return ApplicationDirectory(self.cluster, self.filesystem, application_id)

    def delete(self, application_id: str) -> bool:
        """Delete an application's directory with the key in it; False when there was none.

        Skein's client knows no other place than the user's home.
        """
        places = (self.cluster.directory(application_id), f"/user/{self.cluster.user}/.skein/{application_id}")
        deleted = [self.filesystem.delete(place) for place in dict.fromkeys(places)]
        return any(deleted)

    def store(self, directory: ApplicationDirectory, source: Path | bytes, name: str, *,
              public: bool = False) -> LocalResource:
        """Give a file from the cache; upload it when it is not there.

        Parameters
        ----------
        directory : ApplicationDirectory
            Takes the file when the cache can't be trusted.
        source : Path or bytes
        name : str
            File name, by which YARN judges archives.
        public : bool, optional
            Whether everybody may read it: then all users of a node share one copy.

        Raises
        ------
        SpecInvalid
            The file changes each time it is uploaded.
        """
        name = _UNSAFE.sub("_", name)
        for _ in range(_LOOKS):
            try:
                return self._store(directory, source, name, public)
            except (_Changed, FileNotFoundError):
                logger.warning("%s has changed while it was uploaded; looking again", name)
        raise SpecInvalid(f"{name} was changed or removed {_LOOKS} times while it was uploaded: let what writes it end")

    def _store(self, directory: ApplicationDirectory, source: Path | bytes, name: str,
               public: bool) -> LocalResource:
        digest, length = _digest(source)
        for cache in filter(None, [self.cluster.site.shared_cache, self.cache]):
            path = f"{cache}/{digest}/{name}"
            status = self.filesystem.status(path)
            if status and self._trustworthy(path, status, length):
                return self._resource(path, status, public)
            if status:
                logger.warning("not using the cached file %s: %s, expected %s bytes of %s that nobody else can write",
                               path, status.describe(), length, "/".join(sorted(self._trusted)))
                return self._unshared(directory, source, digest, name)
        return self._upload(directory, source, digest, name, length, public)

    def _upload(self, directory: ApplicationDirectory, source: Path | bytes, digest: str, name: str, length: int,
                public: bool) -> LocalResource:
        folder = f"{self.cache}/{digest}"
        path, passing = f"{folder}/{name}", f"{folder}/.{uuid.uuid4().hex}"
        self.filesystem.makedirs(folder, _READABLE if public else _OURS_ALONE)
        if not self._ours(self._status(folder)) or not self._ours(self._status(self.cache)):
            logger.warning("the cache %s can be written by others; %s is staged for this application alone",
                           self.cache, name)
            return self._unshared(directory, source, digest, name)
        logger.info("uploading %s (%s bytes) to %s", name, length, path)
        try:
            with _opened(source) as stream:
                self.filesystem.create(passing, stream, _PUBLIC_FILE if public else _PRIVATE_FILE)
            if isinstance(stream, _Digesting) and stream.digest.hexdigest() != digest:
                raise _Changed
        except _Changed:
            self.filesystem.delete(passing)
            raise
        if not self.filesystem.rename(passing, path):
            self.filesystem.delete(passing)  # somebody was faster; the content is the same
        status = self.filesystem.status(path)
        if status is None or not self._trustworthy(path, status, length):
            return self._unshared(directory, source, digest, name)
        return self._resource(path, status, public)

    def _unshared(self, directory: ApplicationDirectory, source: Path | bytes, digest: str, name: str) -> LocalResource:
        with _opened(source) as stream:
            return directory.upload(stream, digest, name)

    def _trustworthy(self, path: str, status: FileStatus, length: int) -> bool:
        """A hit: complete, and nobody but us or the trusted owner could have written it."""
        folder = str(PurePosixPath(path).parent)
        return (not status.is_directory and status.length == length and self._ours(status)
                and self._ours(self._status(folder)) and self._ours(self._status(str(PurePosixPath(folder).parent))))

    def _ours(self, status: FileStatus | None) -> bool:
        return bool(status and status.owner in self._trusted and not status.permission & _WRITABLE_BY_OTHERS)

    def _resource(self, path: str, status: FileStatus, public: bool) -> LocalResource:
        return LocalResource(self.cluster.filesystem + path, status.length, status.modified,
                        PUBLIC if public and self._is_public(path, status) else PRIVATE, type_of(path))

    def _is_public(self, path: str, status: FileStatus) -> bool:
        """What the NodeManager will check: it refuses a public file that not everybody can read."""
        parents = [self._status(str(parent)) for parent in PurePosixPath(path).parents]
        return bool(status.permission & 0o004) and all(found and found.permission & 0o001 for found in parents)

    def locate(self, uri: str, kind: str) -> LocalResource:
        """Give a file that is in the cluster already.

        Parameters
        ----------
        uri : str
            On the default file system (with or without its authority), or ``http(s)://``.
        kind : str
            ``FILE`` or ``ARCHIVE``.

        Raises
        ------
        SpecInvalid
            There is no such file, or nobody can ask for its size over HTTP.
        """
        split = urlsplit(uri)
        if split.scheme in ("http", "https"):
            # YARN's reader of http knows neither size nor time and reports both as 0.
            return LocalResource(uri, 0, 0, PRIVATE, kind)
        default, own = urlsplit(self.cluster.default_filesystem), urlsplit(self.cluster.filesystem)
        ours = [default, own] if default.scheme == "viewfs" or default == own else [own]
        if (split.scheme, split.netloc or default.netloc) not in [(known.scheme, known.netloc) for known in ours]:
            raise SpecInvalid(f"{uri} is on a file system that can't be asked over HTTP; copy the file to "
                              f"{self.cluster.filesystem}, or submit with Skein (submit_with: skein)")
        status = self.filesystem.status(split.path)
        if status is None or status.is_directory:
            raise SpecInvalid(f"{uri}: {'there is no such file' if status is None else 'is a directory, not a file'} "
                              f"on {self.cluster.filesystem}")
        return replace(self._resource(split.path, status, False), type=kind)


class _Changed(Exception):
    """A file is not what it was when it was opened, or digested."""


class _Digesting(io.BufferedReader):
    """A file as long as it was when it was opened, of which one knows at its end what was read.

    Whoever sends it has announced that length: of one that grows the rest is left, and one that shrinks
    would keep the other side waiting.
    """

    def __init__(self, path: Path):
        super().__init__(io.FileIO(path))
        self._length = os.fstat(self.fileno()).st_size
        self.digest = hashlib.sha256()

    def read(self, size: int | None = -1, /) -> bytes:
        left = self._length - self.tell()
        chunk = super().read(left if size is None or size < 0 else min(size, left))
        if left and size and not chunk:
            raise _Changed
        self.digest.update(chunk)
        return chunk

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.digest = hashlib.sha256()  # what sends it begins anew, at 0
        return super().seek(offset, whence)


def _digest(source: Path | bytes) -> tuple[str, int]:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest(), len(source)
    length = 0
    with _Digesting(source) as stream:
        while chunk := stream.read(1 << 20):
            length += len(chunk)
    return stream.digest.hexdigest(), length


def _opened(source: Path | bytes) -> IO[bytes]:
    return io.BytesIO(source) if isinstance(source, bytes) else _Digesting(source)
