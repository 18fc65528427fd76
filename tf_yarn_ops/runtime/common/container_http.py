"""How a container asks Hadoop's daemons over HTTP: its tokens, the CAs that it trusts, and no proxy."""

import contextlib
import functools
import http.client
import io
import logging
import os
import socket
import ssl
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Union
from urllib.parse import urljoin, urlsplit

from .contract import AGENT_LINE
from .tokens import RESOURCEMANAGER_KIND, TOKEN_HEADER, encode_token, read_credentials
from .webhdfs_calls import Answer

logger = logging.getLogger(__name__)

#: Errors of a request to a server that dies, or that is not a daemon of Hadoop.
NO_ANSWER = (OSError, ValueError, TypeError, RecursionError, http.client.HTTPException)
#: The bytes of the end of a log.
LOG_END = 4096
#: Seconds for which a ResourceManager may be silent.
RM_REQUEST_SECONDS = 5.0
#: An answer may take so many times the seconds for which its server may be silent, and so many bytes.
ANSWER_TIMEOUTS, ANSWER_BYTES = 3, 64 << 20
#: A standby ResourceManager leads to the active one, a NameNode to a DataNode.
REDIRECTS, MAX_HOPS = (302, 307, 308), 4

#: ResourceManagers that have not answered this process when it asked them last.
_silent: Set[str] = set()


def container_tokens(environ: Mapping[str, str], kind: str) -> List[str]:
    """Return the texts of the container's tokens of one kind; empty on unsecured clusters.

    Parameters
    ----------
    environ : mapping of str to str
        Names the file with the tokens.
    kind : str
        `tokens.HDFS_KIND` or `tokens.RESOURCEMANAGER_KIND`.
    """
    path = environ.get("HADOOP_TOKEN_FILE_LOCATION")
    if not path:
        return []
    try:
        with open(path, "rb") as file:
            return [encode_token(token) for token in read_credentials(file.read()) if token.kind == kind]
    except (OSError, ValueError) as error:
        logger.warning("No %s is used: %s can't be read: %s", kind, path, error)
        return []


def token_header() -> Dict[str, str]:
    """Return the header with the container's token for the ResourceManager; empty on unsecured clusters."""
    tokens = container_tokens(os.environ, RESOURCEMANAGER_KIND)
    return {TOKEN_HEADER: tokens[0]} if tokens else {}


def query_yarn(resourcemanagers: Sequence[str], path: str, key: str, authorities: str = "") -> Mapping[str, Any]:
    """Return the object with this key in the answer to ``/ws/v1/cluster/<path>``; empty if there is none."""
    for base in sorted(resourcemanagers, key=_silent.__contains__):
        try:
            answer = fetch_answer(f"{base}/ws/v1/cluster/{path}", token_header(), RM_REQUEST_SECONDS, authorities)
            found = answer.document().get(key)
        except (*NO_ANSWER, AttributeError):
            _silent.add(base)
        else:
            _silent.discard(base)
            if isinstance(found, dict):
                return found
    return {}


def last_line_of_agent(url: str, authorities: str = "") -> str:
    """Return the last line that an agent has logged, from its NodeManager; empty if there is none.

    Parameters
    ----------
    url : str
        As in the report: ``http://node:8042/node/containerlogs/<container>/<user>/<file>``.
    authorities : str, optional
        CAs for https, as in `fetch_answer`.
    """
    split = urlsplit(url)
    *_, container, _, file = split.path.split("/")
    place = f"{split.scheme}://{split.netloc}/ws/v1/node/containerlogs/{container}/{file}?size=-{LOG_END}"
    try:
        text = fetch_answer(place, {"Accept": "text/plain"}, RM_REQUEST_SECONDS, authorities).content.decode(
            "utf-8", "replace"
        )
    except NO_ANSWER:
        return ""
    lines = [line[len(AGENT_LINE) :].strip() for line in text.splitlines() if line.startswith(AGENT_LINE)]
    return lines[-1][:300] if lines else ""


def fetch_answer(
    url: str,
    headers: Mapping[str, str],
    seconds: float,
    authorities: str = "",
    method: str = "GET",
    data: Optional[bytes] = None,
    hops: int = MAX_HOPS,
) -> Answer:
    """Send a request; return the answer as a whole, of any status. A GET follows so many redirects.

    Parameters
    ----------
    url : str
    headers : mapping of str to str
    seconds : float
        How long the server may be silent.
    authorities : str, optional
        The CAs for https (PEM), else the node's. If they can't be used, https gets no answer: a fault of a node's
        certificates must not fail a successful job.
    method : str, optional
    data : bytes, optional
    hops : int, optional

    Raises
    ------
    OSError, ValueError, http.client.HTTPException
        There is no answer, see `NO_ANSWER`.
    """
    with contextlib.closing(connection_to(url, authorities, seconds)) as connection:
        answer = begin_answer(connection, method, url, headers, data)
        target = answer.headers.get("Location") if answer.status in REDIRECTS else None
        found = Answer(answer.status, read_whole(answer), url.partition("?")[0], urljoin(url, target) if target else "")
    if found.location and method == "GET" and hops:
        return fetch_answer(found.location, headers, seconds, authorities, hops=hops - 1)
    return found


def begin_answer(
    connection: http.client.HTTPConnection,
    method: str,
    url: str,
    headers: Mapping[str, str],
    data: Union[bytes, Iterable[bytes], None] = None,
) -> "TimedAnswer":
    """Send a request; return the answer, which keeps the connection open until it is closed."""
    split = urlsplit(url)
    place = "%s?%s" % (split.path, split.query) if split.query else split.path
    connection.request(method, place, data, {**headers, "Connection": "close"})
    answer = connection.getresponse()
    answer.url = url
    if connection.sock:
        connection.sock.close()
    assert isinstance(answer, TimedAnswer)
    return answer


def read_whole(answer: http.client.HTTPResponse, most: int = ANSWER_BYTES) -> bytes:
    """Return the content of an answer.

    Raises
    ------
    OSError
        It is longer than so many bytes, or ends early.
    """
    content = bytearray()
    while part := answer.read1(65536):
        content += part
        if len(content) > most:
            raise OSError("the answer is longer than %d bytes" % most)
    if answer.length:
        raise OSError("the answer ends %d bytes early" % answer.length)
    return bytes(content)


class _TimedReader(io.RawIOBase):
    """The bytes of a connection, until a deadline."""

    def __init__(self, raw: Any, connection: socket.socket):
        self._raw, self._connection, self._silence = raw, connection, connection.gettimeout() or 0.0
        self.seconds = ANSWER_TIMEOUTS * self._silence
        self._began = time.monotonic()

    def readinto(self, buffer: Any) -> Any:
        if self.seconds:
            left = self._began + self.seconds - time.monotonic()
            if left <= 0:
                raise TimeoutError("the answer is not complete after %g s" % self.seconds)
            self._connection.settimeout(min(left, self._silence))
        return self._raw.readinto(buffer)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()


class TimedAnswer(http.client.HTTPResponse):
    """An answer that is complete, with its head, in `ANSWER_TIMEOUTS` times the seconds that its server may be silent.

    A timeout of Python's sockets limits each read only: a server that sends a byte a second would hold the reader for
    ever.
    """

    def __init__(self, sock: socket.socket, *words: Any, **options: Any):
        super().__init__(sock, *words, **options)
        self._reader = _TimedReader(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self._reader)

    def lift_deadline(self) -> None:
        """Limit only the server's silence from now on."""
        self._reader.seconds = 0.0


def connection_to(url: str, authorities: str, seconds: float) -> http.client.HTTPConnection:
    """Return a connection to the host of a URL, not yet open; it takes no proxy, and trusts as `fetch_answer` does."""
    split = urlsplit(url)
    if split.scheme == "https":
        found: http.client.HTTPConnection = http.client.HTTPSConnection(
            split.netloc, timeout=seconds, context=_trusting(authorities)
        )
    else:
        found = http.client.HTTPConnection(split.netloc, timeout=seconds)
    found.response_class = TimedAnswer
    return found


@functools.lru_cache(maxsize=None)
def _trusting(authorities: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authorities or None)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        logger.warning(
            "No daemon is asked over https: the certificates of its CAs (%s) can't be used: %s",
            "from the job" if authorities else "of this node",
            error,
        )
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
