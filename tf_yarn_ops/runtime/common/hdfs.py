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
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence
from urllib.parse import quote, urlencode

from .container_http import container_tokens, opener_of
from .mirror import Entry
from .tokens import HDFS_KIND

#: Longest piece of a file, bytes.
HDFS_PIECE = 4 * 1024 * 1024
#: Seconds for one request.
HDFS_SECONDS = 30.0
_MISSING = ("FileNotFoundException", "PathNotFoundException")
_OFFSET = re.compile(r"(?<=[?&]offset=)\d+")
#: HttpFS takes content of this type only, and a NameNode may want the other header of each request that writes.
_HEADERS = {"Content-Type": "application/octet-stream", "X-XSRF-HEADER": "ytf"}


class HdfsRefused(OSError):
    """No NameNode does what it is asked for; the text says why, without the token."""


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
    """Reads and writes one file system; each method raises `HdfsRefused` if no NameNode answers, or all refuse.

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

    def entries(self, path: str) -> List[Entry]:
        """Return the entries of a folder; an empty list if there is none."""
        try:
            answer = self._ask("GET", path, "LISTSTATUS")
        except FileNotFoundError:
            return []
        try:
            return [Entry(item["pathSuffix"], item["type"] == "DIRECTORY", int(item["length"]),
                          int(item.get("blockSize") or 0))
                    for item in answer.document()["FileStatuses"]["FileStatus"] if item["pathSuffix"]]
        except (ValueError, KeyError, TypeError) as error:
            raise HdfsRefused("the answer about %s is not a NameNode's: %r" % (path, error)) from None

    def piece(self, path: str, offset: int, known: int) -> Optional[bytes]:
        """Return at most `HDFS_PIECE` bytes of a file from an offset on; None if the file is shorter or gone.

        Parameters
        ----------
        path : str
        offset : int
        known : int
            The length that the NameNode has named.
        """
        asked = offset if offset < known else max(0, known - 1)
        try:
            answer = self._ask("GET", path, "OPEN", offset=asked, length=HDFS_PIECE + offset - asked)
        except FileNotFoundError:
            return None
        if answer.status == 200:
            return answer.content[offset - asked:]
        answer = self._send("GET", _OFFSET.sub(str(offset), answer.location))
        return answer.content if answer.status == 200 else None

    def makedirs(self, path: str, mode: int) -> None:
        """Make a folder, and those above it, if it does not exist."""
        self._ask("PUT", path, "MKDIRS", permission="%o" % mode)

    def create(self, path: str, content: bytes, mode: int, overwrite: bool = False) -> None:
        """Write a file: the NameNode names the DataNode that takes the content."""
        place = self._ask("PUT", path, "CREATE", permission="%o" % mode, overwrite=str(overwrite).lower()).location
        if not place:
            raise HdfsRefused("CREATE %s: the answer names no DataNode" % path)
        answer = self._send("PUT", place, content)
        if answer.status >= 300:
            raise HdfsRefused("CREATE %s: %s" % (path, answer.refusal()))

    def rename(self, path: str, target: str) -> bool:
        """Rename a file; return False if there is a target already."""
        return bool(self._ask("PUT", path, "RENAME", destination=target).document().get("boolean"))

    def delete(self, path: str) -> None:
        """Delete a file, if there is one."""
        self._ask("DELETE", path, "DELETE")

    def let_read(self, path: str, users: Sequence[str], groups: Sequence[str]) -> None:
        """Add readers to the ACL of a file."""
        entries = ["user:%s:r--" % name for name in users] + ["group:%s:r--" % name for name in groups]
        self._ask("PUT", path, "MODIFYACLENTRIES", aclspec=",".join(entries))

    def _ask(self, method: str, path: str, operation: str, **values: object) -> _Answer:
        """Return what the first NameNode answers that accepts one of the tokens: the result, or a redirect.

        Raises
        ------
        FileNotFoundError
            There is no such path.
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
                if answer.exception() in _MISSING:
                    raise FileNotFoundError("%s %s: %s" % (operation, path, why))
        raise HdfsRefused("%s %s: %s" % (operation, path, why))

    def _send(self, method: str, url: str, content: Optional[bytes] = None) -> _Answer:
        try:
            request = urllib.request.Request(url, content, _HEADERS, method=method)
            with self._opener.open(request, timeout=self._seconds) as answer:
                return _Answer(answer.status, answer.read(), answer.headers.get("Location") or "")
        except (http.client.HTTPException, ValueError) as error:
            raise HdfsRefused(repr(error)) from None
