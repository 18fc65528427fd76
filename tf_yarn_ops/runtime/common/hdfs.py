"""`Hdfs`: folders and files of HDFS, read over WebHDFS from inside a container.

On a secured cluster the container's own delegation token proves who reads.

References
----------
Hadoop, "WebHDFS REST API": a NameNode redirects a read to a DataNode, an HttpFS answers itself. A NameNode refuses an
offset at or after the length that it knows; a DataNode knows the bytes of a file that is being written.
"""

import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.request
from typing import Any, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import quote, urlencode

from .mirror import Entry
from .tokens import HDFS_KIND, encode_token, read_credentials

#: Longest piece of a file, bytes.
PIECE = 4 * 1024 * 1024
#: Seconds for one request.
SECONDS = 30.0
_MISSING = ("FileNotFoundException", "PathNotFoundException")
_OFFSET = re.compile(r"(?<=[?&]offset=)\d+")


class HdfsUnreadable(OSError):
    """No NameNode answers, or all refuse; the text says why, without the token."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Hdfs:
    """Reads one file system.

    Parameters
    ----------
    urls : sequence of str
        HTTP addresses of the NameNodes, or of an HttpFS.
    user : str
        Who reads, on a cluster without Kerberos.
    environ : mapping of str to str
        Names the file with the container's tokens.
    authorities : str
        Certificates (PEM) of the CAs for https; empty: the node's own.
    """

    def __init__(self, urls: Sequence[str], user: str, environ: Mapping[str, str], authorities: str = ""):
        self._urls = list(urls)
        tokens = _read_tokens(environ)
        self._logins = [("delegation", token) for token in tokens] or [("user.name", user)]
        context = ssl.create_default_context(cadata=authorities or None)
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), _NoRedirect())

    def entries(self, path: str) -> List[Entry]:
        """Return the entries of a folder; an empty list if there is none."""
        status, content = self._ask(path, "LISTSTATUS")
        if status == 404:
            return []
        try:
            return [Entry(item["pathSuffix"], item["type"] == "DIRECTORY", int(item["length"]),
                          int(item.get("blockSize") or 0))
                    for item in json.loads(content)["FileStatuses"]["FileStatus"] if item["pathSuffix"]]
        except (ValueError, KeyError, TypeError) as error:
            raise HdfsUnreadable("the answer about %s is not a NameNode's: %r" % (path, error)) from None

    def piece(self, path: str, offset: int, known: int) -> Optional[bytes]:
        """Return at most `PIECE` bytes of a file from an offset on; None if the file is shorter or gone.

        Parameters
        ----------
        path : str
        offset : int
        known : int
            The length that the NameNode has named.
        """
        asked = offset if offset < known else max(0, known - 1)
        status, content = self._ask(path, "OPEN", offset=asked, length=PIECE + offset - asked)
        if status == 404:
            return None
        if status == 200:
            return content[offset - asked:]
        status, content = self._get(_OFFSET.sub(str(offset), content.decode()))
        return content if status == 200 else None

    def _ask(self, path: str, operation: str, **values: int) -> Tuple[int, bytes]:
        """Return status and content of the first NameNode that knows: 200, 404, or 307 and the address."""
        why = "no address is known"
        for login in self._logins:
            for url in list(self._urls):
                query = urlencode([("op", operation), login, *values.items()])
                try:
                    status, content = self._get("%s/webhdfs/v1%s?%s" % (url, quote(path), query))
                except OSError as error:
                    why = "%s: %s" % (url, getattr(error, "reason", error))
                    continue
                if status in (200, 307):
                    self._urls.sort(key=lambda known: known != url)
                    self._logins.sort(key=lambda known: known != login)
                    return status, content
                name, message = _exception(content)
                if status == 404 and name in _MISSING:
                    return status, content
                why = "%s: %d %s" % (url, status, message)
        raise HdfsUnreadable("%s can't be read: %s" % (path, why))

    def _get(self, url: str) -> Tuple[int, bytes]:
        try:
            with self._opener.open(url, timeout=SECONDS) as answer:
                return 200, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                location = error.headers.get("Location") if error.code == 307 else None
                return error.code, location.encode() if location else error.read(PIECE)
        except http.client.HTTPException as error:
            raise HdfsUnreadable(repr(error)) from None


def _read_tokens(environ: Mapping[str, str]) -> List[str]:
    path = environ.get("HADOOP_TOKEN_FILE_LOCATION")
    if not path or not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return [encode_token(token) for token in read_credentials(file.read()) if token.kind == HDFS_KIND]


def _exception(content: bytes) -> Tuple[str, str]:
    """Return name and message of Hadoop's exception in an answer."""
    try:
        found = json.loads(content)["RemoteException"]
        return str(found["exception"]), " ".join(str(found["message"]).split())[:300]
    except (ValueError, KeyError, TypeError):
        return "", ""
