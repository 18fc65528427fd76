"""`Hdfs`: folders and files of HDFS over WebHDFS, from inside a container.

The coordinator writes the record of the ended job, the task of TensorBoard reads event files, and programs open
``hdfs://``. On a secured cluster the container's own delegation token proves who asks.

References
----------
Hadoop, "WebHDFS REST API": a NameNode redirects a read and a write to a DataNode, an HttpFS a write to itself. A
NameNode refuses an offset at or after the length that it knows; a DataNode knows the bytes of a file that is being
written.
"""

import errno
import functools
import http.client
import json
import re
import time
import urllib.request
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union
from urllib.parse import quote, urlencode, urlsplit

from .container_http import connection_to, container_tokens, opener_of
from .datanodes import (
    DATANODE_CONNECT_SECONDS,
    PIPELINE_FACTOR,
    DatanodeUnreachable,
    Transferred,
    UnreachableDatanodes,
)
from .file_storage import Content, FileStatus, StorageAway, StorageRefused, read_file_status
from .tokens import HDFS_KIND

#: Seconds for one request.
HDFS_SECONDS = 30.0
_MISSING = ("FileNotFoundException", "PathNotFoundException")
#: The errors that end a request at once, by Hadoop's exceptions.
_ERRORS: Mapping[str, Callable[[str], OSError]] = {
    "FileAlreadyExistsException": FileExistsError,
    **dict.fromkeys(_MISSING, FileNotFoundError),
    **dict.fromkeys(("ParentNotDirectoryException", "PathIsNotDirectoryException"), NotADirectoryError),
    "PathIsNotEmptyDirectoryException": functools.partial(OSError, errno.ENOTEMPTY),
    "AccessControlException": PermissionError,
    **dict.fromkeys(
        ("DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"),
        functools.partial(OSError, errno.EDQUOT),
    ),
}
#: What a NameNode answers that will do it soon, or leaves it to the other one.
_LATER = ("StandbyException", "RetriableException", "SafeModeException")
#: Seconds between two tries.
_PAUSE = 1.0
_OFFSET = re.compile(r"(?<=[?&]offset=)\d+")
#: HttpFS takes content of this type only, and a NameNode may want the other header of each request that writes.
_HEADERS = {"Content-Type": "application/octet-stream", "X-XSRF-HEADER": "ytf"}


class _AsTheyAre(urllib.request.HTTPErrorProcessor):
    """Return redirects and refusals like other answers."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class _Answer(NamedTuple):
    status: int
    content: bytes
    location: str

    def document(self) -> Mapping[str, Any]:
        """Return the JSON object of the answer; empty if it is another text."""
        try:
            found = json.loads(self.content)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def exception(self) -> str:
        """Return the name of Hadoop's exception; empty if there is none."""
        found = self.document().get("RemoteException")
        return str(found.get("exception", "")) if isinstance(found, dict) else ""

    def refusal(self) -> str:
        """Return Hadoop's exception, else the status; never the address, which may hold a token."""
        name = self.exception()
        if not name:
            return "HTTP status %d" % self.status
        return "%s: %s" % (name, " ".join(str(self.document()["RemoteException"].get("message")).split())[:300])

    def error(self, what: str) -> OSError:
        """Return the error for a refusal; `what` was asked for."""
        return _ERRORS.get(self.exception(), StorageRefused)("%s: %s" % (what, self.refusal()))


class Hdfs:
    """Reads and writes one file system.

    Each method raises an OSError if no NameNode answers, or all refuse: `StorageRefused`, or the subclass for what
    Hadoop names, such as FileNotFoundError, PermissionError, or EDQUOT for a quota.

    Parameters
    ----------
    urls : sequence of str
        HTTP addresses of the NameNodes, or of an HttpFS.
    user : str
        Who asks, on a cluster without Kerberos.
    environ : mapping of str to str
        Names the file with the container's tokens.
    authorities : str
        Certificates (PEM) of the CAs for https; empty: the node's own.
    seconds : float
        The time limit of one request; a write may take three times as long.
    patience : float
        Seconds for which NameNodes that are down, on standby, or in safe mode are asked again.
    """

    def __init__(
        self,
        urls: Sequence[str],
        user: str,
        environ: Mapping[str, str],
        authorities: str = "",
        seconds: float = HDFS_SECONDS,
        patience: float = 0.0,
    ):
        self._urls, self._user = list(urls), user
        tokens = container_tokens(environ, HDFS_KIND)
        self._logins = [("delegation", token) for token in tokens] or [("user.name", user)]
        self._opener, self._seconds, self._authorities = opener_of(authorities, _AsTheyAre), seconds, authorities
        self.patience = patience
        self._datanodes = UnreachableDatanodes()

    def status(self, path: str) -> FileStatus:
        """Return the status of a path; raise FileNotFoundError."""
        try:
            return read_file_status(self._ask("GET", path, "GETFILESTATUS").document()["FileStatus"])
        except (ValueError, KeyError, TypeError) as error:
            raise StorageRefused("the answer about %s is not a NameNode's: %r" % (path, error)) from None

    def owner_of_new(self, folder: str) -> str:
        """Return the owner of the files that this process makes."""
        return self._user

    def exists(self, path: str) -> bool:
        try:
            self.status(path)
        except FileNotFoundError:
            return False
        return True

    def list(self, path: str) -> List[FileStatus]:
        try:
            answer = self._ask("GET", path, "LISTSTATUS")
        except FileNotFoundError:
            return []
        try:
            found = map(read_file_status, answer.document()["FileStatuses"]["FileStatus"])
            return [status for status in found if status.name]
        except (ValueError, KeyError, TypeError) as error:
            raise StorageRefused("the answer about %s is not a NameNode's: %r" % (path, error)) from None

    def read_news(self, path: str, offset: int, known: int, most: int) -> Optional[bytes]:
        asked = offset if offset < known else max(0, known - 1)
        try:
            located, answer = self._transfer(
                "GET",
                path,
                "OPEN",
                {"offset": asked, "length": most + offset - asked},
                _whole_answer,
                change=lambda url: _OFFSET.sub(str(offset), url),
            )
        except FileNotFoundError:
            return None
        if answer is None:
            return located.content[offset - asked :]
        return answer.content if answer.status == 200 else None

    def makedirs(self, path: str, permission: int) -> None:
        self._ask("PUT", path, "MKDIRS", permission="%o" % permission)

    def create(self, path: str, data: Union[bytes, Content], permission: int) -> bool:
        try:
            self._write("CREATE", path, data, permission="%o" % permission, overwrite="false")
        except FileExistsError:
            return False
        return True

    def replace(self, path: str, data: Union[bytes, Content], permission: int) -> None:
        self._write("CREATE", path, data, permission="%o" % permission, overwrite="true")

    def append(self, path: str, data: Union[bytes, Content]) -> None:
        """Write to the end of a file; raise FileNotFoundError if there is none."""
        self._write("APPEND", path, data)

    def _write(self, operation: str, path: str, data: Union[bytes, Content], **values: object) -> None:
        """Write to a file: the NameNode names the DataNode that takes the content."""
        method = "POST" if operation == "APPEND" else "PUT"
        repeatable = values.get("overwrite") == "true"
        _, answer = self._transfer(method, path, operation, values, _whole_answer, data, repeatable)
        if answer is None:
            raise StorageRefused("%s %s: the answer names no DataNode" % (operation, path))
        if answer.status >= 300:
            raise answer.error("%s %s" % (operation, path))

    def open_range(self, path: str, offset: int, length: int) -> http.client.HTTPResponse:
        """Return the open answer with these bytes, at most; the caller closes it. The offset lies within the file."""
        _, answer = self._transfer("GET", path, "OPEN", {"offset": offset, "length": length}, _open_answer)
        if answer is None:
            raise StorageRefused("OPEN %s: the answer names no DataNode" % path)
        if answer.status != 200:
            with answer:
                raise _Answer(answer.status, answer.read(), "").error("OPEN %s" % path)
        return answer

    def leave_out(self, answer: http.client.HTTPResponse) -> None:
        """Read from other DataNodes for a while than that of an answer, which ended early."""
        self._datanodes.add(urlsplit(answer.url).netloc)

    def open_upload(self, path: str, operation: str) -> "Upload":
        """Return the open request that takes a file's content.

        Parameters
        ----------
        path : str
        operation : str
            ``CREATE``, which overwrites the file, or ``APPEND``.
        """
        method, values = ("POST", {}) if operation == "APPEND" else ("PUT", {"overwrite": "true"})
        what = "%s %s" % (operation, path)

        def begin(connection: http.client.HTTPConnection, method: str, url: str, _: object) -> "Upload":
            return Upload(connection, method, url, what)

        _, upload = self._transfer(method, path, operation, values, begin)
        if upload is None:
            raise StorageRefused("%s: the answer names no DataNode" % what)
        return upload

    def rename(self, source: str, target: str) -> bool:
        return bool(self._ask("PUT", source, "RENAME", destination=target).document().get("boolean"))

    def move(self, source: str, target: str) -> None:
        """Rename a file or directory to a path that nothing has; its parent exists.

        Raises
        ------
        FileNotFoundError, FileExistsError
        """
        if self.exists(target):
            raise FileExistsError("RENAME %s: %s exists" % (source, target))
        # Without the option HDFS would move the source into a directory that has appeared meanwhile.
        answer = self._ask("PUT", source, "RENAME", destination=target, renameoptions="NONE")
        # An HttpFS doesn't know the option, and answers as without it.
        renamed = answer.document().get("boolean")
        inside = "%s/%s" % (target, source.rpartition("/")[2])
        if renamed and self.exists(inside):
            self._ask("PUT", inside, "RENAME", destination=source)
        elif renamed is False:
            self.status(source)
            self.status(target.rpartition("/")[0] or "/")
        else:
            return
        raise FileExistsError("RENAME %s: %s exists" % (source, target))

    def move_over(self, source: str, target: str) -> None:
        """Rename a file or directory; a file takes the place of another one at once.

        Raises
        ------
        FileNotFoundError, FileExistsError
        """
        answer = self._ask("PUT", source, "RENAME", destination=target, renameoptions="OVERWRITE")
        # An HttpFS doesn't know the option, and answers as without it.
        if answer.document().get("boolean") is False:
            self.status(source)
            if self.status(target).is_directory or not self.delete(target) or not self.rename(source, target):
                raise FileExistsError("RENAME %s: %s can't be replaced" % (source, target))

    def delete(self, path: str, recursive: bool = True) -> bool:
        answer = self._ask("DELETE", path, "DELETE", recursive=str(recursive).lower())
        return bool(answer.document().get("boolean"))

    def let_read(self, path: str, users: Sequence[str], groups: Sequence[str]) -> str:
        entries = ["user:%s:r--" % name for name in users] + ["group:%s:r--" % name for name in groups]
        try:
            self._ask("PUT", path, "MODIFYACLENTRIES", aclspec=",".join(entries))
        except StorageRefused as error:
            return str(error)
        return ""

    def _ask(self, method: str, path: str, operation: str, **values: object) -> _Answer:
        """Return what the first NameNode answers that accepts one of the tokens: the result, or a redirect."""
        until = time.monotonic() + self.patience
        what = "%s %s" % (operation, path)
        while True:
            fault: OSError = StorageRefused("%s: no address is known" % what)
            later = False
            for url in list(self._urls):
                for login in list(self._logins):
                    query = urlencode([("op", operation), login, *values.items()])
                    try:
                        answer = self._send(method, "%s/webhdfs/v1%s?%s" % (url, quote(path), query))
                    except OSError as error:
                        fault = StorageAway("%s: %s: %s" % (what, url, getattr(error, "reason", error)))
                        later = True
                        break
                    if answer.status in (200, 201, 307):
                        self._urls.sort(key=lambda known: known != url)
                        self._logins.sort(key=lambda known: known != login)
                        return answer
                    fault = answer.error("%s: %s" % (what, url))
                    if answer.exception() in _ERRORS:
                        raise fault
                    later = later or answer.exception() in _LATER
            if not later:
                raise fault
            if time.monotonic() > until:
                raise StorageAway(str(fault))
            time.sleep(_PAUSE)

    def _send(self, method: str, url: str) -> _Answer:
        try:
            request = urllib.request.Request(url, None, _HEADERS, method=method)
            with self._opener.open(request, timeout=self._seconds) as answer:
                return _Answer(answer.status, answer.read(), answer.headers.get("Location") or "")
        except (http.client.HTTPException, ValueError) as error:
            raise StorageRefused(repr(error)) from None

    def _transfer(
        self,
        method: str,
        path: str,
        operation: str,
        values: Mapping[str, object],
        exchange: Callable[[http.client.HTTPConnection, str, str, Union[bytes, Content, None]], Transferred],
        data: Union[bytes, Content, None] = None,
        repeatable: bool = True,
        change: Callable[[str], str] = str,
    ) -> Tuple[_Answer, Optional[Transferred]]:
        """Send or fetch content where the NameNode says; leave out DataNodes that can't be reached.

        Parameters
        ----------
        method, path, operation : str
        values : mapping of str to object
            Parameters of the request.
        exchange : callable
            Gets a connection that is open, the method, the address and the content.
        data : bytes or Content, optional
        repeatable : bool, optional
            Whether a request that a DataNode may have carried out can be sent again. Default: True.
        change : callable, optional
            Returns the address to use instead of the NameNode's.

        Returns
        -------
        tuple
            The NameNode's answer, and what `exchange` returned; None if the answer names no address.
        """
        located = _Answer(0, b"", "")
        what = "%s %s" % (operation, path)

        def locate(excluded: Mapping[str, str]) -> Optional[str]:
            nonlocal located
            located = self._ask(method, path, operation, **{**values, **excluded})
            return change(located.location) if located.location else None

        def transfer(location: str, last_chance: bool) -> Transferred:
            netloc = urlsplit(location).netloc
            connection = connection_to(location, self._authorities, self._seconds)
            sent = False
            try:
                if not last_chance:
                    connection.timeout = min(DATANODE_CONNECT_SECONDS, self._seconds)
                connection.connect()
                connection.sock.settimeout(self._seconds * (1.0 if method == "GET" else PIPELINE_FACTOR))
                sent = True
                return exchange(connection, method, location, data)
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                fault = StorageRefused("%s: the DataNode %s does not answer: %r" % (what, netloc, error))
                if sent and not repeatable:
                    raise fault from None
                raise DatanodeUnreachable(fault) from None

        result = self._datanodes.follow(locate, transfer)
        return located, result


def _open_answer(
    connection: http.client.HTTPConnection, method: str, url: str, data: Union[bytes, Content, None]
) -> http.client.HTTPResponse:
    """Send a request with its content; return the answer, which keeps the connection open until it is closed."""
    split = urlsplit(url)
    length = {} if data is None or isinstance(data, bytes) else {"Content-Length": str(data.size)}
    headers = {**_HEADERS, **length, "Connection": "close"}
    connection.request(method, "%s?%s" % (split.path, split.query), data, headers)
    answer = connection.getresponse()
    answer.url = url
    if connection.sock:
        connection.sock.close()
    return answer


def _whole_answer(
    connection: http.client.HTTPConnection, method: str, url: str, data: Union[bytes, Content, None]
) -> _Answer:
    with _open_answer(connection, method, url, data) as answer:
        return _Answer(answer.status, answer.read(), "")


class Upload:
    """A request to a DataNode whose content is sent piece by piece; `finish` makes the file whole.

    Parameters
    ----------
    connection : http.client.HTTPConnection
    method, url : str
    what : str
        For messages: the operation and the path.
    """

    def __init__(self, connection: http.client.HTTPConnection, method: str, url: str, what: str):
        self._connection, self._what = connection, what
        split = urlsplit(url)
        with self._failing():
            connection.putrequest(method, "%s?%s" % (split.path, split.query))
            for name, value in {**_HEADERS, "Transfer-Encoding": "chunked"}.items():
                connection.putheader(name, value)
            connection.endheaders()

    def send(self, data: memoryview) -> None:
        if data:
            with self._failing():
                self._connection.send(b"".join((b"%x\r\n" % len(data), data, b"\r\n")))

    def finish(self) -> None:
        """End the content, and wait until the DataNodes have it."""
        with self._failing():
            self._connection.send(b"0\r\n\r\n")
            self._end()

    def _end(self) -> None:
        with self._connection.getresponse() as answer:
            if answer.status >= 300:
                raise _Answer(answer.status, answer.read(), "").error(self._what)
        self._connection.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn a lost connection into the DataNode's own words, if it has left some."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            try:
                if isinstance(error, ConnectionError):
                    self._end()
            except (ConnectionError, http.client.HTTPException):
                pass
            finally:
                self._connection.close()
            if isinstance(error, OSError) and not isinstance(error, ConnectionError):
                raise
            raise StorageRefused("%s: %r" % (self._what, error)) from None
