"""`WebHdfs`: HDFS over HTTP, through WebHDFS or HttpFS, as the file system of the staging directory.

References
----------
Hadoop, "WebHDFS REST API". A file's content takes two requests: the NameNode, or the HttpFS, redirects the first one
to the address (307) that takes or gives the content.
"""

import logging
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

from ..errors import ClusterUnreachable, KmsUnreachable, SubmissionRejected
from ..runtime.common.datanodes import (
    DATANODE_CONNECT_SECONDS,
    NO_DATANODE,
    PIPELINE_FACTOR,
    DatanodeUnreachable,
    UnreachableDatanodes,
)
from ..runtime.common.file_storage import Content, FileStatus, read_file_status
from .fast_import import import_httpx
from .security.authentication import Authentication
from .transport import (
    CONNECT_TIMEOUT,
    FILE_LIMITS,
    NAMENODE,
    Addresses,
    Failover,
    address_of,
    client_options,
    explain_body,
    explain_failure,
    explain_response,
    is_redirect,
    refused_login,
    remote_exception,
    send_request,
)

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

Parsed = TypeVar("Parsed")

_OFFSET = re.compile(r"(?<=[?&]offset=)\d+")

#: HttpFS takes content of this type only, and answers a read with another type than JSON.
_HEADERS = {"Accept": "*/*", "Content-Type": "application/octet-stream"}
#: A transfer may take this many times as long as a look.
SLOW_DATANODE = 3.0
_MISSING = ("FileNotFoundException", "PathNotFoundException")
_TAKEN = ("FileAlreadyExistsException", "AlreadyBeingCreatedException", "RecoveryInProgressException")
_NOT_NOW = ("SafeModeException", "StandbyException", "RetriableException")
#: What NameNodes and DataNodes answer while a server behind them is away; in an encryption zone it is the KMS.
_BEHIND = re.compile(
    r"\b(?:NoRouteToHost|Connect|ConnectTimeout|SocketTimeout|UnknownHost)Exception\b|"
    r"^(?:Connection (?:refused|reset)|Read timed out|connect timed out|No route to host)"
)
_CAUSED_BY = re.compile(r"^Caused by: (.*)", re.MULTILINE)


class WebHdfs:
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

    def __init__(
        self, urls: tuple[str, ...], authentication: Authentication, timeout: float, ca_file: str | None = None
    ):
        httpx = import_httpx()
        self._addresses = Addresses(urls, NAMENODE)
        self._parameters = {name.lower(): value for name, value in authentication.parameters().items()}
        self._client = httpx.Client(**client_options(authentication, urls, timeout, ca_file, FILE_LIMITS))
        self._client.headers.update(_HEADERS)
        self._slow = httpx.Timeout(timeout * SLOW_DATANODE, connect=min(CONNECT_TIMEOUT, timeout))
        self._datanodes = UnreachableDatanodes()

    def status(self, path: str) -> FileStatus | None:
        what = f"looking at {path}"
        answer = self._quick(what, "GET", path, "GETFILESTATUS", tolerated=_MISSING)
        return answer and self._parse(what, answer, lambda document: read_file_status(document["FileStatus"]))

    def list(self, path: str) -> list[FileStatus]:
        what = f"listing {path}"
        answer = self._quick(what, "GET", path, "LISTSTATUS", tolerated=_MISSING)
        if answer is None:
            return []
        found = self._parse(
            what, answer, lambda document: [read_file_status(item) for item in document["FileStatuses"]["FileStatus"]]
        )
        if [status.name for status in found] == [""]:
            raise SubmissionRejected(f"{what}: it is a file, not a directory")
        return found

    def makedirs(self, path: str, permission: int) -> None:
        self._ask(f"making the directory {path}", "PUT", path, "MKDIRS", permission=f"{permission:o}")

    def create(self, path: str, data: bytes | Content, permission: int) -> bool:
        return self._write(path, data, permission, "false")

    def replace(self, path: str, data: bytes | Content, permission: int) -> None:
        self._write(path, data, permission, "true")

    def _write(self, path: str, data: bytes | Content, permission: int, overwrite: str) -> bool:
        what = f"writing {path}"
        length = {} if isinstance(data, bytes) else {"Content-Length": str(data.size)}
        parameters = {"overwrite": overwrite, "permission": f"{permission:o}"}
        located, written = self._transfer(
            (what, "PUT", path, "CREATE"), parameters, tolerated=_TAKEN, repeatable=overwrite == "true",
            content=data, headers=length,
        )  # fmt: skip
        if located is not None and not is_redirect(located):
            raise self._no_namenode(what, f"the answer is {located.status_code}, and names no DataNode")
        return written is not None

    def set_modified(self, path: str, modified: int) -> None:
        self._ask(f"setting the time of {path}", "PUT", path, "SETTIMES", modificationtime=str(modified))

    def let_read(self, path: str, users: Sequence[str], groups: Sequence[str]) -> str:
        entries = [f"user:{name}:r--" for name in users] + [f"group:{name}:r--" for name in groups]
        try:
            self._ask(f"setting the ACL of {path}", "PUT", path, "MODIFYACLENTRIES", aclspec=",".join(entries))
        except SubmissionRejected as error:
            return str(error)
        return ""

    def rename(self, source: str, target: str) -> bool:
        what = f"renaming {source}"
        answer = self._ask(what, "PUT", source, "RENAME", destination=posixpath.normpath(target))
        if self._parse(what, answer, lambda document: bool(document["boolean"])):
            return True
        # WebHDFS answers false, without a cause, when the target is taken.
        if self.status(target):
            return False
        raise SubmissionRejected(f"{what}: the file system refused to rename it to {target}")

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes | None:
        part = {"offset": str(offset)} if length is None else {"offset": str(offset), "length": str(length)}
        located, content = self._transfer((f"reading {path}", "GET", path, "OPEN"), part, tolerated=_MISSING)
        if located is not None and not is_redirect(located):
            content = located
        return None if content is None else bytes(content.content)

    def read_news(self, path: str, offset: int, known: int, most: int) -> bytes | None:
        if offset < known:
            return self.read(path, offset, most)
        # A NameNode refuses an offset at or after the length that it knows; the DataNode may know more.
        asked = max(0, known - 1)
        part = {"offset": str(asked), "length": str(most + offset - asked)}
        try:
            located, content = self._transfer(
                (f"reading {path}", "GET", path, "OPEN"), part, tolerated=_MISSING,
                change=lambda url: _OFFSET.sub(str(offset), url),
            )  # fmt: skip
        except SubmissionRejected:
            return None
        if located is not None and not is_redirect(located):
            return bytes(located.content)[offset - asked :]
        return None if content is None else bytes(content.content)

    def delete(self, path: str) -> bool:
        what = f"deleting {path}"
        answer = self._quick(what, "DELETE", path, "DELETE", recursive="true")
        return self._parse(what, answer, lambda document: bool(document["boolean"]))

    def delegation_token(self, renewer: str) -> str | None:
        what = "asking the file system for a token"
        answer = self._quick(what, "GET", "/", "GETDELEGATIONTOKEN", renewer=renewer)
        return self._parse(what, answer, lambda document: str(document["Token"]["urlString"]))

    def key_provider(self) -> str:
        try:
            answer = self._quick("asking for the file system's defaults", "GET", "/", "GETSERVERDEFAULTS")
            return str(answer.json()["FsServerDefaults"].get("keyProviderUri") or "")
        except (SubmissionRejected, ClusterUnreachable, KeyError, TypeError, AttributeError, ValueError) as error:
            logger.debug("no key provider: %s", error)  # older versions and other servers do not know the operation
            return ""

    def cancel_token(self, token: str) -> None:
        self._quick("cancelling a token of the file system", "PUT", "/", "CANCELDELEGATIONTOKEN", token=token)

    def close(self) -> None:
        self._client.close()

    def _quick(self, *words: str, **options: Any) -> Any:
        """Ask with the client's own time limit: a NameNode that hangs is reported in seconds."""
        return self._ask(*words, timeout=self._client.timeout, **options)

    def _ask(
        self,
        what: str,
        method: str,
        path: str,
        operation: str,
        *,
        tolerated: tuple[str, ...] = (),
        leads_on: bool = False,
        timeout: Any = None,
        **parameters: str,
    ) -> Any:
        """Return the response of the active NameNode; None when it raises one of the tolerated exceptions.

        A redirect counts as a response only where ``leads_on`` says so.
        """
        place = "/webhdfs/v1" + quote(posixpath.normpath(path), "/= ")
        try:
            response = send_request(
                self._client,
                Failover(self._addresses, patience=0.0),
                method,
                place,
                params={"op": operation, **self._parameters, **parameters},
                timeout=timeout or self._slow,
            )
        except ClusterUnreachable as error:
            found = type(error)(f"{what}: {error}")
            found.command = error.command  # a missing ticket has a hint of its own
            raise found from error
        return response if leads_on and is_redirect(response) else self._checked(what, response, tolerated)

    def _transfer(
        self,
        asked: tuple[str, str, str, str],
        parameters: Mapping[str, str],
        *,
        tolerated: tuple[str, ...],
        repeatable: bool = True,
        change: Callable[[str], str] = str,
        **options: Any,
    ) -> tuple[Any, Any]:
        """Send or fetch a file's content at the address to which the NameNode redirects.

        A DataNode that can't be reached is left out, and the NameNode names another one.

        Parameters
        ----------
        asked : tuple of str
            What is done, in words; method, path and operation.
        parameters : mapping of str to str
        tolerated : tuple of str
            Exceptions of Hadoop that are no errors.
        repeatable : bool, optional
            Whether a request that a DataNode may have carried out can be sent again. Default: True.
        change : callable, optional
            Returns the address to use instead of the NameNode's.

        Returns
        -------
        tuple
            The responses of the NameNode and of the DataNode; None for a tolerated exception, and where there was no
            redirect.
        """
        httpx = import_httpx()
        what, method, path, operation = asked
        located, url = None, ""

        def locate(excluded: Mapping[str, str]) -> str | None:
            nonlocal located
            located = self._ask(
                what, method, path, operation, tolerated=tolerated, leads_on=True, **parameters, **excluded
            )
            if located is None or not is_redirect(located):
                return None
            return change(str(located.url.join(located.headers["location"])))

        def transfer(location: str, last_chance: bool) -> Any:
            nonlocal url
            url = location
            try:
                return self._client.request(method, location, timeout=self._patience(method, last_chance), **options)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                if repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    raise DatanodeUnreachable(error) from error
                raise

        try:
            response = self._datanodes.follow(locate, transfer)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ClusterUnreachable(
                f"{what}: the DataNode {urlsplit(url).netloc} does not answer: {explain_failure(error)}. A file's "
                "content goes to the DataNodes directly: let this machine reach them, or set webhdfs in site.yaml to "
                "an HttpFS"
            ) from error
        return located, None if response is None else self._checked(what, response, tolerated)

    def _patience(self, method: str, last_chance: bool) -> "httpx.Timeout":
        """Return the time limits of a request to a DataNode."""
        connect = float(self._client.timeout.read or 0.0)
        slow = connect * SLOW_DATANODE * (1.0 if method == "GET" else PIPELINE_FACTOR)
        # Without another DataNode to try: on a busy one a handshake of TLS alone has taken 5 s.
        limits: httpx.Timeout = import_httpx().Timeout(
            slow, connect=connect if last_chance else min(DATANODE_CONNECT_SECONDS, connect)
        )
        return limits

    def _checked(self, what: str, response: "httpx.Response", tolerated: tuple[str, ...]) -> Any:
        """Return a successful response, or None for a tolerated exception; raise an error for any other response."""
        if response.status_code < 300:
            return response
        name, message = remote_exception(response)
        why = explain_response(response)
        if name in tolerated:
            return None
        if response.status_code == 401:
            raise refused_login(response, what, NAMENODE)
        if _BEHIND.search(f"{name}: {message}") or _BEHIND.search(why):
            why = explain_body((_CAUSED_BY.findall(message) or [why])[-1])
            if provider := self.key_provider():
                raise KmsUnreachable(f"{what}: the KMS {provider} does not answer the file system: {why}")
            raise ClusterUnreachable(f"{what}: a server behind the file system does not answer: {why}")
        if name in _NOT_NOW or "safe mode" in message:
            raise ClusterUnreachable(f"{what}: the file system can't write now: {why}")
        if NO_DATANODE.search(message):
            raise ClusterUnreachable(
                f"{what}: HDFS has no DataNode for the content now: {why}. Check with hdfs "
                "dfsadmin -report which DataNodes are alive and have space"
            )
        if not name:
            where = address_of(response)
            why = f"{where} answers {response.status_code}, not as a NameNode: {why}"
            # A gateway does not pass on what a DataNode says while it takes content.
            if response.status_code >= 500 and (provider := self.key_provider()):
                raise KmsUnreachable(f"{what}: {why}. If it lies in an encryption zone, check the KMS {provider}")
            raise self._no_namenode(what, why)
        raise SubmissionRejected(f"{what}: the file system refused: {why}")

    def _parse(self, what: str, response: "httpx.Response", read: Callable[[Any], Parsed]) -> Parsed:
        try:
            return read(response.json())
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._no_namenode(what, f"{address_of(response)} does not answer as a NameNode: {error!r}") from error

    def _no_namenode(self, what: str, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"{what}: no NameNode answers at {self._addresses}: {why}. {NAMENODE.advice}")
