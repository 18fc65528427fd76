"""`WebHdfs`: HDFS over HTTP, through WebHDFS or HttpFS, as the file system of the staging directory.

The calls are those of `runtime.common.webhdfs_calls`; here are fail-over, logins, time limits and errors of a client.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import ClusterUnreachable, KmsUnreachable, SubmissionRejected
from ..runtime.common.datanodes import (
    DATANODE_CONNECT_SECONDS,
    NO_DATANODE,
    PIPELINE_FACTOR,
    DatanodeUnreachable,
    Transferred,
)
from ..runtime.common.webhdfs_calls import (
    CONTENT,
    CONTENT_HEADERS,
    LATER,
    OPERATIONS,
    Answer,
    ContentStep,
    WebHdfsCalls,
    build_place,
    describe_call,
    is_tolerated,
)
from .fast_import import import_httpx
from .security.authentication import Authentication
from .transport import (
    CONNECT_TIMEOUT,
    FILE_LIMITS,
    NAMENODE,
    Addresses,
    Failover,
    address_of,
    check_mapped,
    explain_body,
    explain_failure,
    explain_response,
    is_redirect,
    open_client,
    refused_login,
    remote_exception,
    send_request,
)

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

#: A transfer may take this many times as long as a look.
SLOW_DATANODE = 3.0
#: What a NameNode answers at once.
_BRIEF = ("GETFILESTATUS", "LISTSTATUS", "DELETE", "GETSERVERDEFAULTS", "GETDELEGATIONTOKEN", "CANCELDELEGATIONTOKEN")
#: What NameNodes and DataNodes answer while a server behind them is away; in an encryption zone it is the KMS.
_BEHIND = re.compile(
    r"\b(?:NoRouteToHost|Connect|ConnectTimeout|SocketTimeout|UnknownHost)Exception\b|"
    r"^(?:Connection (?:refused|reset)|Read timed out|connect timed out|No route to host|Failed to connect to: )"
)
#: The request for the KMS, which the failure of another request sends.
_DEFAULTS = describe_call("GETSERVERDEFAULTS", "/")
_CAUSED_BY = re.compile(r"^Caused by: (.*)", re.MULTILINE)


class WebHdfs(WebHdfsCalls):
    """HDFS over HTTP.

    Parameters
    ----------
    urls : tuple of str
        HTTP addresses of the NameNodes, or of an HttpFS.
    authentication : SimpleAuthentication, KerberosAuthentication or GatewayAuthentication
    timeout : float
        Seconds for a look, a deletion, and the opening of a connection to a DataNode. Every other request, and each
        pause of a DataNode during a transfer, may take three times as long, and during a write nine times.
    ca_file : str, optional
        Certificates (PEM) for https.
    """

    _refusal = SubmissionRejected

    def __init__(
        self, urls: tuple[str, ...], authentication: Authentication, timeout: float, ca_file: str | None = None
    ):
        super().__init__()
        self._addresses = Addresses(urls, NAMENODE)
        self._parameters = {name.lower(): value for name, value in authentication.parameters().items()}
        self._client = open_client(authentication, urls, timeout, ca_file, FILE_LIMITS)
        self._client.headers.update(CONTENT_HEADERS)
        self._slow = import_httpx().Timeout(timeout * SLOW_DATANODE, connect=min(CONNECT_TIMEOUT, timeout))

    status = WebHdfsCalls.find

    def set_modified(self, path: str, modified: int) -> None:
        self._request("SETTIMES", path, {"modificationtime": modified})

    def delegation_token(self, renewer: str) -> str:
        """Return the text of a new token that ``renewer`` may renew."""
        return str(
            self._query(
                "GETDELEGATIONTOKEN", "/", lambda document: document["Token"]["urlString"], {"renewer": renewer}
            )
        )

    def key_provider(self) -> str:
        """Return the URI of the KMS for its encryption zones, ``kms://http@host:9600/kms``; empty if it has none."""
        try:
            return str(
                self._query(
                    "GETSERVERDEFAULTS", "/", lambda document: document["FsServerDefaults"].get("keyProviderUri") or ""
                )
            )
        except (SubmissionRejected, ClusterUnreachable) as error:
            logger.debug("no key provider: %s", error)  # older versions and other servers do not know the operation
            return ""

    def cancel_token(self, token: str) -> None:
        """Cancel a token, given as its text."""
        self._request("CANCELDELEGATIONTOKEN", "/", {"token": token})

    def close(self) -> None:
        self._client.close()

    def _request(
        self, operation: str, path: str, parameters: Mapping[str, object] = {}, tolerated: Sequence[str] = ()
    ) -> Answer | None:
        what = describe_call(operation, path)
        try:
            response = send_request(
                self._client,
                Failover(self._addresses, patience=0.0),
                OPERATIONS[operation][0],
                build_place(operation, path, {**self._parameters, **parameters}),
                timeout=self._client.timeout if operation in _BRIEF else self._slow,
            )
        except ClusterUnreachable as error:
            # A missing ticket has a command of its own.
            raise type(error)(f"{what}: {error}").with_command(error.command) from error
        if operation in CONTENT and is_redirect(response):
            location = str(response.url.join(response.headers["location"]))
            return Answer(response.status_code, response.content, address_of(response.url), location)
        return self._checked(what, response, tolerated)

    def _namenodes(self) -> Sequence[str]:
        return self._addresses.urls

    def _probe(self, url: str, seconds: float) -> Answer | None:
        errors = import_httpx()
        try:
            response = self._client.get(url, auth=None, timeout=seconds)
            return Answer(response.status_code, response.content)
        except errors.TimeoutException:
            return None
        except (errors.TransportError, errors.InvalidURL, UnicodeError):  # as in `send_request`
            return Answer(0, b"")

    def _exchange(self, step: ContentStep, location: str, last_chance: bool) -> Answer | None:
        errors = import_httpx()
        try:
            response = self._client.request(
                OPERATIONS[step.operation][0],
                location,
                content=step.data,
                headers=step.length(),
                timeout=self._patience(step.operation, last_chance),
            )
        except (errors.TransportError, errors.InvalidURL) as error:
            if step.repeatable or isinstance(error, errors.ConnectError | errors.ConnectTimeout):
                raise DatanodeUnreachable from error
            raise
        return self._checked(describe_call(step.operation, step.path), response, step.tolerated)

    def _transfer(
        self,
        step: ContentStep,
        parameters: Mapping[str, object],
        exchange: Callable[[ContentStep, str, bool], Transferred],
        change: Callable[[str], str] = str,
    ) -> tuple[Answer | None, Transferred | None]:
        errors = import_httpx()
        try:
            return super()._transfer(step, parameters, exchange, change)
        except (errors.TransportError, errors.InvalidURL) as error:
            request = getattr(error, "_request", None)
            where = f" {request.url.netloc.decode('ascii')}" if request else ""
            raise ClusterUnreachable(
                f"{describe_call(step.operation, step.path)}: the DataNode{where} does not answer: "
                f"{explain_failure(error)}. A file's content goes to the DataNodes directly: let this machine reach "
                "them, or set webhdfs in site.yaml to an HttpFS"
            ) from error

    def _patience(self, operation: str, last_chance: bool) -> "httpx.Timeout":
        """Return the time limits of a request to a DataNode."""
        connect = float(self._client.timeout.read or 0.0)
        slow = connect * SLOW_DATANODE * (1.0 if operation == "OPEN" else PIPELINE_FACTOR)
        # Without another DataNode to try: on a busy one a handshake of TLS alone has taken 5 s.
        limits: httpx.Timeout = import_httpx().Timeout(
            slow, connect=connect if last_chance else min(DATANODE_CONNECT_SECONDS, connect)
        )
        return limits

    def _checked(self, what: str, response: "httpx.Response", tolerated: Sequence[str]) -> Answer | None:
        """Return a success, or None for a tolerated exception; raise an error for any other response."""
        if response.status_code < 300:
            return Answer(response.status_code, response.content, address_of(response.url))
        name, message = remote_exception(response)
        why = explain_response(response)
        if name in tolerated:
            return None
        if response.status_code == 401:
            raise refused_login(response, what, NAMENODE)
        check_mapped(why, response, what, NAMENODE)
        if _BEHIND.search(f"{name}: {message}") or _BEHIND.search(why):
            why = explain_body((_CAUSED_BY.findall(message) or [why])[-1])
            if what != _DEFAULTS and (provider := self.key_provider()):
                raise KmsUnreachable(f"{what}: the KMS {provider} does not answer the file system: {why}")
            raise ClusterUnreachable(f"{what}: a server behind the file system does not answer: {why}")
        if name in LATER or "safe mode" in message:
            raise ClusterUnreachable(f"{what}: the file system can't write now: {why}")
        if NO_DATANODE.search(message):
            raise ClusterUnreachable(
                f"{what}: HDFS has no DataNode for the content now: {why}. Check with hdfs "
                "dfsadmin -report which DataNodes are alive and have space"
            )
        if is_tolerated(name, tolerated):
            return None
        if not name:
            why = f"{address_of(response.url)} answers {response.status_code}, not as a NameNode: {why}"
            # A gateway does not pass on what a DataNode says while it takes content.
            if response.status_code >= 500 and what != _DEFAULTS and (provider := self.key_provider()):
                raise KmsUnreachable(f"{what}: {why}. If it lies in an encryption zone, check the KMS {provider}")
            raise self._unexpected_answer(what, why)
        raise SubmissionRejected(f"{what}: the file system refused: {why}")

    def _unexpected_answer(self, what: str, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"{what}: no NameNode answers at {self._addresses}: {why}. {NAMENODE.advice}")
