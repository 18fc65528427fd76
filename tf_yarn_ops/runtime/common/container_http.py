"""How a container asks Hadoop's daemons over HTTP: its tokens, the CAs that it trusts, and no proxy."""

import functools
import http.client
import json
import logging
import os
import ssl
import time
import urllib.request
from typing import Any, Dict, List, Mapping, Sequence
from urllib.parse import urlsplit

from .contract import AGENT_LINE
from .tokens import RESOURCEMANAGER_KIND, TOKEN_HEADER, encode_token, read_credentials

logger = logging.getLogger(__name__)

#: Errors of a request to a server that dies, or that is not a daemon of Hadoop.
NO_ANSWER = (OSError, ValueError, TypeError, http.client.HTTPException)
#: The bytes of the end of a log.
LOG_END = 4096
#: Seconds for one look at a ResourceManager.
RM_LOOK_SECONDS = 5.0
#: Seconds for the whole of its answer, and the most bytes.
RM_ANSWER_SECONDS, RM_ANSWER_BYTES = 15.0, 64 << 20


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


def token_header(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the header with the container's token for the ResourceManager; empty on unsecured clusters."""
    tokens = container_tokens(environ, RESOURCEMANAGER_KIND)
    return {TOKEN_HEADER: tokens[0]} if tokens else {}


def ask_yarn(resourcemanagers: Sequence[str], path: str, key: str, authorities: str = "") -> Mapping[str, Any]:
    """Return the object with this key in the answer to ``/ws/v1/cluster/<path>``; empty if there is none."""
    for base in resourcemanagers:
        request = urllib.request.Request(f"{base}/ws/v1/cluster/{path}", headers=token_header(os.environ))
        try:
            with opener_of(authorities).open(request, timeout=RM_LOOK_SECONDS) as answer:
                found = json.loads(read_yarn_answer(answer)).get(key)
        except (*NO_ANSWER, AttributeError):
            continue
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
        CAs for https, as in `opener_of`.
    """
    split = urlsplit(url)
    *_, container, _, file = split.path.split("/")
    place = f"{split.scheme}://{split.netloc}/ws/v1/node/containerlogs/{container}/{file}?size=-{LOG_END}"
    request = urllib.request.Request(place, headers={"Accept": "text/plain"})
    try:
        with opener_of(authorities).open(request, timeout=RM_LOOK_SECONDS) as answer:
            text = answer.read(LOG_END).decode("utf-8", "replace")
    except NO_ANSWER:
        return ""
    lines = [line[len(AGENT_LINE) :].strip() for line in text.splitlines() if line.startswith(AGENT_LINE)]
    return lines[-1][:300] if lines else ""


def read_yarn_answer(answer: http.client.HTTPResponse) -> bytes:
    """Return the content of a ResourceManager's answer.

    Raises
    ------
    OSError
        It is longer than `RM_ANSWER_BYTES`, or not complete after `RM_ANSWER_SECONDS`.
    """
    content, until = bytearray(), time.monotonic() + RM_ANSWER_SECONDS
    while part := answer.read1(65536):
        content += part
        if len(content) > RM_ANSWER_BYTES or time.monotonic() > until:
            raise OSError("the answer is too long, or not complete in time")
    return bytes(content)


@functools.lru_cache(maxsize=None)
def opener_of(authorities: str, *handlers: "type[urllib.request.BaseHandler]") -> urllib.request.OpenerDirector:
    """Return an opener that takes no proxy from the environment, and trusts these CAs (PEM) or else the node's.

    If they can't be used, https gets no answer: a fault of a node's certificates must not fail a successful job.
    """
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _Https(authorities), *handlers)


def connection_to(url: str, authorities: str, seconds: float) -> http.client.HTTPConnection:
    """Return a connection to the host of a URL, not yet open, that trusts as `opener_of` does."""
    split = urlsplit(url)
    if split.scheme == "https":
        return http.client.HTTPSConnection(split.netloc, timeout=seconds, context=_trusting(authorities))
    return http.client.HTTPConnection(split.netloc, timeout=seconds)


class _Https(urllib.request.HTTPSHandler):
    """Reads the CAs at the first address with https: on a node with many CAs this takes 40 ms of CPU."""

    def __init__(self, authorities: str):
        urllib.request.AbstractHTTPHandler.__init__(self)  # HTTPSHandler's own would read the node's CAs
        self._authorities = authorities

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        context = _trusting(self._authorities)
        return self.do_open(http.client.HTTPSConnection, req, context=context)


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
