"""`obtain`: the tokens with which an application acts for its user on a secured cluster.

Input: a cluster, its clients and the file systems of a job. Output: `DelegationTokens` for one submission. Containers
have no ticket: the application master and the NodeManagers show these tokens instead, and the ResourceManager renews
them until the application ends.

References
----------
Hadoop, "WebHDFS REST API" (GETDELEGATIONTOKEN) and "ResourceManager REST API" (Cluster Delegation Tokens API).
"""

import logging
import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

from ...errors import ApplicationNotFound, ClusterUnreachable, CredentialsRefused, KerberosRefused, SubmissionRejected
from ...runtime.common.tokens import HDFS_KIND, RESOURCEMANAGER_KIND, Token, decode_token, encode_token
from ..cluster import Cluster
from ..filesystem import FileSystem
from ..kms import KeyServer
from ..resourcemanager import ResourceManager
from ..transport import RestUnavailable
from ..webhdfs import WebHdfs

logger = logging.getLogger(__name__)
Client = TypeVar("Client", FileSystem, KeyServer)

#: A NameNode's default port for Hadoop's own clients.
NAMENODE_PORT = 8020
#: The kinds that WebHDFS gives over http and https. The ResourceManager would renew them over HTTP, and fail.
_WEBHDFS_KINDS = ("WEBHDFS delegation", "SWEBHDFS delegation")
#: The user that most ResourceManagers run as.
_USUAL_RENEWER = "yarn"


class TokensUnavailable(RestUnavailable):
    """The cluster gives no tokens over HTTP that an application could use."""


class ForeignToken(TokensUnavailable):
    """The token of a file system is not a NameNode's own."""


class DelegationTokens:
    """The tokens of one submission.

    Once YARN has accepted the application it renews them, and cancels them when the application ends. A submission that
    fails cancels them itself.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, Token] = {}
        self._cancels: list[tuple[str, Callable[[str], None], str]] = []
        self._clients = ExitStack()

    def opened(self, client: Client) -> Client:
        """Keep a client of a file system or KMS, which `cancel` and `close` close; return it."""
        return self._clients.enter_context(closing(client))

    def close(self) -> None:
        """Close the clients of file systems and key servers; the tokens stay."""
        self._clients.close()

    def request(self, client: WebHdfs | ResourceManager, what: str, renewer: str) -> Token:
        """Return a new token of a daemon; raise TokensUnavailable where Skein's client may get one."""
        try:
            text = client.delegation_token(renewer)
        except (SubmissionRejected, ApplicationNotFound) as error:
            if _is_final(error):
                raise
            raise TokensUnavailable(f"{what} gives no token over HTTP: {error}") from error
        return self.got(text, what, client.cancel_token)

    def got(self, text: str, what: str, cancel: Callable[[str], None]) -> Token:
        """Return the token of a text that a daemon gave; note how to cancel it."""
        self._cancels.append((what, cancel, text))
        try:
            return decode_token(text)
        except ValueError as error:
            raise TokensUnavailable(f"the answer of {what} is not a token of Hadoop: {error}") from error

    def keep(self, token: Token) -> None:
        """Keep a token as applications use it."""
        self._tokens[token.service] = token

    def texts(self) -> dict[str, str]:
        """Return the text of each token by its service, for the submission."""
        return {service: encode_token(token) for service, token in self._tokens.items()}

    def cancel(self) -> None:
        """Cancel the tokens; an error is only logged, because tokens that nobody renews end by themselves."""
        while self._cancels:
            what, cancel, original = self._cancels.pop()
            try:
                cancel(original)
            except (SubmissionRejected, ApplicationNotFound, ClusterUnreachable) as error:
                logger.debug("the token of %s is not cancelled: %s", what, error)
        self.close()


def obtain(
    cluster: Cluster,
    resourcemanager: ResourceManager,
    staging: FileSystem,
    needed: Iterable[str],
    wished: Iterable[str] = (),
) -> DelegationTokens:
    """Return new tokens for one submission.

    Parameters
    ----------
    cluster : Cluster
    resourcemanager : ResourceManager
    staging : FileSystem
        The staging directory's, for the same user.
    needed : iterable of str
        URLs on further file systems that the job can't run without.
    wished : iterable of str, optional
        URLs whose file systems may do without a token; a failure is only logged.

    Raises
    ------
    TokensUnavailable
        The cluster gives none, or its configuration does not tell for which addresses they are used.
    SubmissionRejected
        The login may not act for the user.
    ClusterUnreachable
        The ResourceManager or a NameNode does not answer.
    """
    credentials = DelegationTokens()
    if cluster.tokens is not None:  # the cluster gives no token for a token
        for token in (*cluster.tokens.filesystems, cluster.tokens.resourcemanager):
            credentials.keep(token)
        return credentials
    try:
        services = resourcemanager_services(cluster)
        renewer = cluster.nodes.token_renewer or resourcemanager.userinfo("rmLoginUser") or _USUAL_RENEWER
        seen = {_root(cluster, cluster.storage.filesystem)}
        # An HttpFS gives no token of the NameNodes; site file or configuration may name these.
        own, filesystem = staging, cluster.storage.filesystem
        if named := filesystem in cluster.site.namenodes:
            own = credentials.opened(cluster.open_namenodes(filesystem))
        try:
            _from_filesystem(credentials, cluster, filesystem, own, renewer)
        except ForeignToken:
            if named or not cluster.nodes.namenodes:
                raise
            credentials.cancel()
            _from_configured_namenodes(credentials, cluster, renewer)
        for url, must in [*((url, True) for url in needed), *((url, False) for url in wished)]:
            root = _root(cluster, url)
            if root in seen or not root.startswith("hdfs://"):
                continue
            seen.add(root)
            try:
                _from_filesystem(credentials, cluster, root, credentials.opened(cluster.open_namenodes(root)), renewer)
            except (SubmissionRejected, ClusterUnreachable) as error:
                if must:
                    raise
                logger.warning("the job gets no token for %s: %s", root, error)
        token = credentials.request(resourcemanager, "the ResourceManager", renewer)
        credentials.keep(replace(token, kind=RESOURCEMANAGER_KIND, service=services))
    except BaseException:
        credentials.cancel()
        raise
    logger.debug("got tokens for %s, renewed by %s", ", ".join(credentials.texts()), renewer)
    return credentials


def resourcemanager_services(cluster: Cluster) -> str:
    """Return the service of a ResourceManager's token: its addresses, each by IP address and by name.

    Programs take the token whose service contains the address that they use, in the form that
    ``hadoop.security.token.service.use_ip`` says where they run. Both forms are in it, so that each finds its own.

    Raises
    ------
    TokensUnavailable
        No address is known.

    References
    ----------
    Hadoop, ``RMDelegationTokenSelector.checkService``, ``RMDelegationTokenIdentifier.Renewer``,
    ``SecurityUtil.buildTokenService``.
    """
    found = [form for address in cluster.nodes.resourcemanager_services for form in (_by_ip(address), address)]
    if not found:
        raise TokensUnavailable(
            "the address of the ResourceManager for Hadoop's own clients is not known: its /conf does not tell it. "
            "Add a line to site.yaml with yarn.resourcemanager.address: 'resourcemanager_service: host:8032'"
        )
    return ",".join(dict.fromkeys(found))


def _by_ip(address: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        return f"{socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]}:{port}"
    except (OSError, UnicodeError):  # the nodes may know a name that this machine does not
        return address


def _root(cluster: Cluster, url: str) -> str:
    """Return the beginning of a URL that names its file system; empty for a text that is not a URL."""
    try:
        split = urlsplit(url)
    except ValueError:  # for example a pattern with brackets, which the program interprets
        return ""
    return f"{split.scheme}://{split.netloc}" if split.netloc or split.scheme != "hdfs" else cluster.storage.default


def _from_filesystem(
    credentials: DelegationTokens, cluster: Cluster, url: str, filesystem: FileSystem, renewer: str
) -> None:
    if not isinstance(filesystem, WebHdfs):  # a folder that the nodes see needs no token
        return
    token = credentials.request(filesystem, url, renewer)
    logical = cluster.logical_name(url)
    if token.kind not in (*_WEBHDFS_KINDS, HDFS_KIND) or not _is_of(cluster, url, token.service):
        raise ForeignToken(
            f"{url} gives a {token.kind!r} token for {token.service!r}, which is not a NameNode's own: an HttpFS gives "
            f"tokens for itself. Add the NameNodes to site.yaml: 'namenodes: {{{url}: http://host:9870}}'"
        )
    credentials.keep(replace(token, kind=HDFS_KIND, service=f"ha-hdfs:{logical}" if logical else token.service))
    _from_key_server(credentials, cluster, filesystem.key_provider(), renewer)


def _from_configured_namenodes(credentials: DelegationTokens, cluster: Cluster, renewer: str) -> None:
    url = cluster.storage.filesystem
    try:
        _from_filesystem(credentials, cluster, url, credentials.opened(cluster.open_namenodes(url)), renewer)
    except ClusterUnreachable as error:
        raise ClusterUnreachable(
            f"an HttpFS gives no tokens of the NameNodes behind it, and these do not answer: {error}. Let this machine "
            f"reach the NameNodes, or add their other addresses to site.yaml: 'namenodes: {{{url}: http://host:9870}}'"
        ) from error


def _from_key_server(credentials: DelegationTokens, cluster: Cluster, uri: str, renewer: str) -> None:
    """Get the token of the KMS of a file system, with which NodeManagers and programs read encryption zones."""
    if not uri.startswith("kms:") or uri in credentials.texts():
        return
    if cluster.site.credentials is not None:
        logger.info("the job gets no token for %s, which a gateway does not lead to", uri)
        return
    try:
        keys = credentials.opened(
            KeyServer(uri, cluster.authentication, cluster.site.request_timeout, cluster.site.ca_file)
        )
        token = credentials.got(keys.delegation_token(renewer), uri, keys.cancel_token)
    except (SubmissionRejected, ApplicationNotFound, ValueError) as error:
        # Only jobs in zones need the token. A KMS has proxy users, and rules for principals, of its own: a user whom it
        # does not know stops no other job.
        logger.warning("the job gets no token for the KMS %s, and can read no encryption zone: %s", uri, error)
        return
    # Programs look for the token by the URI; the ResourceManager finds the KMS by it to renew the token.
    credentials.keep(replace(token, service=uri))


def _is_final(error: Exception) -> bool:
    """Return whether Skein's client could not do better: no ticket to show, or no right to act for the user."""
    return isinstance(error, KerberosRefused | CredentialsRefused) or "not allowed to impersonate" in str(
        error
    )  # Hadoop's own text


def _is_of(cluster: Cluster, url: str, service: str) -> bool:
    """Return whether a token's service is a NameNode's address: an HttpFS names itself, or nothing."""
    port = service.rpartition(":")[2]
    if cluster.logical_name(url):  # the port of each of the pair is not known
        return bool(port) and port not in [str(urlsplit(address).port) for address in cluster.storage.webhdfs]
    return port == str(urlsplit(url).port or NAMENODE_PORT)
