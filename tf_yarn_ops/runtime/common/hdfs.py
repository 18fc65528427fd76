"""`Hdfs`: folders and files of HDFS over WebHDFS, from inside a container.

The coordinator writes the record of the ended job, the task of TensorBoard reads event files. On a secured cluster the
container's own delegation token proves who asks.

References
----------
Hadoop, "WebHDFS REST API": a NameNode redirects a read and a write to a DataNode, an HttpFS a write to itself. A
NameNode refuses an offset at or after the length that it knows; a DataNode knows the bytes of a file that is being
written.
"""

import http.client
import json
import re
import urllib.request
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Union
from urllib.parse import quote, urlencode

from .container_http import container_tokens, opener_of
from .file_storage import Content, FileStatus, StorageRefused, read_file_status
from .tokens import HDFS_KIND

#: Seconds for one request.
HDFS_SECONDS = 30.0
_MISSING = ("FileNotFoundException", "PathNotFoundException")
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


class Hdfs:
    """Reads and writes one file system; each method raises `StorageRefused` if no NameNode answers, or all refuse.

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
        The time limit of one request.
    """

    def __init__(self, urls: Sequence[str], user: str, environ: Mapping[str, str], authorities: str = "",
                 seconds: float = HDFS_SECONDS):
        self._urls = list(urls)
        tokens = container_tokens(environ, HDFS_KIND)
        self._logins = [("delegation", token) for token in tokens] or [("user.name", user)]
        self._opener, self._seconds = opener_of(authorities, _AsTheyAre), seconds

    def status(self, path: str) -> FileStatus:
        """Return the status of a path; raise FileNotFoundError."""
        try:
            return read_file_status(self._ask("GET", path, "GETFILESTATUS").document()["FileStatus"])
        except (ValueError, KeyError, TypeError) as error:
            raise StorageRefused("the answer about %s is not a NameNode's: %r" % (path, error)) from None

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
            answer = self._ask("GET", path, "OPEN", offset=asked, length=most + offset - asked)
        except FileNotFoundError:
            return None
        if answer.status == 200:
            return answer.content[offset - asked:]
        answer = self._send("GET", _OFFSET.sub(str(offset), answer.location))
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
        place = self._ask(method, path, operation, **values).location
        if not place:
            raise StorageRefused("%s %s: the answer names no DataNode" % (operation, path))
        answer = self._send(method, place, data)
        if answer.status >= 300:
            raise StorageRefused("%s %s: %s" % (operation, path, answer.refusal()))

    def rename(self, source: str, target: str) -> bool:
        return bool(self._ask("PUT", source, "RENAME", destination=target).document().get("boolean"))

    def move_over(self, source: str, target: str) -> None:
        """Rename a file to a path that another one may have; a reader sees the one or the other.

        An HttpFS ignores the option and refuses, so there the old file is deleted first.
        """
        answer = self._ask("PUT", source, "RENAME", destination=target, renameoptions="OVERWRITE")
        if answer.document().get("boolean", True):
            return
        self.status(source)
        self.delete(target)
        if not self.rename(source, target):
            raise StorageRefused("RENAME %s: %s exists" % (source, target))

    def delete(self, path: str) -> bool:
        return bool(self._ask("DELETE", path, "DELETE", recursive="true").document().get("boolean"))

    def let_read(self, path: str, users: Sequence[str], groups: Sequence[str]) -> str:
        entries = ["user:%s:r--" % name for name in users] + ["group:%s:r--" % name for name in groups]
        try:
            self._ask("PUT", path, "MODIFYACLENTRIES", aclspec=",".join(entries))
        except StorageRefused as error:
            return str(error)
        return ""

    def _ask(self, method: str, path: str, operation: str, **values: object) -> _Answer:
        """Return what the first NameNode answers that accepts one of the tokens: the result, or a redirect.

        Raises
        ------
        FileNotFoundError, FileExistsError
            There is no such path, or it can't be created.
        """
        why = "no address is known"
        for url in list(self._urls):
            for login in list(self._logins):
                query = urlencode([("op", operation), login, *values.items()])
                try:
                    answer = self._send(method, "%s/webhdfs/v1%s?%s" % (url, quote(path), query))
                except OSError as error:
                    why = "%s: %s" % (url, getattr(error, "reason", error))
                    break
                if answer.status in (200, 307):
                    self._urls.sort(key=lambda known: known != url)
                    self._logins.sort(key=lambda known: known != login)
                    return answer
                why = "%s: %s" % (url, answer.refusal())
                if answer.exception() == "FileAlreadyExistsException":
                    raise FileExistsError("%s %s: %s" % (operation, path, why))
                if answer.exception() in _MISSING:
                    raise FileNotFoundError("%s %s: %s" % (operation, path, why))
        raise StorageRefused("%s %s: %s" % (operation, path, why))

    def _send(self, method: str, url: str, content: Union[bytes, Content, None] = None) -> _Answer:
        length = {} if content is None or isinstance(content, bytes) else {"Content-Length": str(content.size)}
        try:
            request = urllib.request.Request(url, content, {**_HEADERS, **length}, method=method)
            with self._opener.open(request, timeout=self._seconds) as answer:
                return _Answer(answer.status, answer.read(), answer.headers.get("Location") or "")
        except (http.client.HTTPException, ValueError) as error:
            raise StorageRefused(repr(error)) from None
