"""`WebHdfs`: HDFS over HTTP as the file system of the staging directory, by the ``hdfs`` package."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from ..errors import ClusterUnreachable, SubmissionRejected
from .authentication import Authentication
from .filesystem import FileStatus
from .transport import CONNECT_TIMEOUT

#: A DataNode takes longer to answer than the ResourceManager: it writes, and waits for others to have written.
SLOW_DATANODE = 3.0
_MISSING = ("FileNotFoundException", "PathNotFoundException")
_TAKEN = ("FileAlreadyExistsException", "AlreadyBeingCreatedException", "RecoveryInProgressException")
_NOT_NOW = ("SafeModeException", "StandbyException", "RetriableException", "NoRouteToHostException")


class WebHdfs:
    """HDFS over HTTP, by the ``hdfs`` package.

    Parameters
    ----------
    urls : tuple of str
        HTTP addresses of the NameNodes.
    authentication : SimpleAuthentication or KerberosAuthentication
    timeout : float
        Seconds in which a NameNode says what it knows; what has to be written is given three times as long.
    ca_file : str, optional
    """

    def __init__(self, urls: tuple[str, ...], authentication: Authentication, timeout: float,
                 ca_file: str | None = None):
        self._urls = urls
        connect = min(CONNECT_TIMEOUT, timeout)
        self._client = authentication.webhdfs_client(urls, (connect, timeout * SLOW_DATANODE), ca_file)
        # Looks come first and deletions last: a NameNode that hangs is told in seconds, and does not hold up the end.
        self._quick = authentication.webhdfs_client(urls, (connect, timeout), ca_file)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        import requests
        import urllib3
        from hdfs.util import HdfsError

        try:
            yield
        except HdfsError as error:
            name, text = getattr(error, "exception", None), str(error)
            if name in _NOT_NOW or "safe mode" in text:
                raise ClusterUnreachable(f"{what}: the file system can't write now: {_first_line(text)}") from error
            if "<html" in text.lower():
                raise self._no_namenode(what, "what answers is a web page") from error
            raise SubmissionRejected(f"{what}: the file system refused: {_first_line(text)}") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise self._no_namenode(what, str(error)) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._no_namenode(what, f"what answers is something else: {error!r}") from error

    def _no_namenode(self, what: str, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"{what}: no NameNode answers at {', '.join(self._urls)} ({why}). Check webhdfs in "
                                  "site.yaml (default: what the cluster's dfs.namenode.http-address says)")

    def status(self, path: str) -> FileStatus | None:
        with self._translated(f"looking at {path}"):
            answer = self._tolerating(lambda: self._quick.status(path), _MISSING)
        return _read_status(answer) if answer else None

    def list(self, path: str) -> list[FileStatus]:
        with self._translated(f"listing {path}"):
            answer = self._tolerating(lambda: self._quick.list(path, status=True), _MISSING)
        return [_read_status(item) for _, item in answer or ()]

    def makedirs(self, path: str, permission: int) -> None:
        with self._translated(f"making the directory {path}"):
            self._client.makedirs(path, permission=f"{permission:o}")

    def create(self, path: str, data: bytes | IO[bytes], permission: int) -> bool:
        with self._translated(f"writing {path}"):
            done = self._tolerating(lambda: self._client.write(path, data=data, permission=f"{permission:o}") or True,
                                    _TAKEN)
        return bool(done)

    def set_modified(self, path: str, modified: int) -> None:
        with self._translated(f"setting the time of {path}"):
            self._client.set_times(path, modification_time=modified)

    def rename(self, source: str, target: str) -> bool:
        from hdfs.util import HdfsError

        with self._translated(f"renaming {source}"):
            try:
                self._client.rename(source, target)
            except HdfsError as error:
                # WebHDFS answers false, without a cause, when the target is taken.
                if getattr(error, "exception", None) is None and self._client.status(target, strict=False):
                    return False
                raise
        return True

    def read(self, path: str) -> bytes | None:
        def fetch() -> bytes:
            with self._client.read(path) as stream:
                return bytes(stream.read())

        with self._translated(f"reading {path}"):
            content: bytes | None = self._tolerating(fetch, _MISSING)
        return content

    def delete(self, path: str) -> bool:
        with self._translated(f"deleting {path}"):
            return bool(self._quick.delete(path, recursive=True))

    def _tolerating(self, call: Any, names: tuple[str, ...]) -> Any:
        """Call; None when the file system raises one of these exceptions."""
        from hdfs.util import HdfsError

        try:
            return call()
        except HdfsError as error:
            if getattr(error, "exception", None) in names:
                return None
            raise


def _read_status(item: dict[str, Any]) -> FileStatus:
    return FileStatus(item["pathSuffix"], item["type"] == "DIRECTORY", int(item["length"]),
                      int(item["modificationTime"]), int(item["accessTime"]), str(item["owner"]),
                      int(item["permission"], 8))


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:500] if text.strip() else "no reason given"
