"""`Cluster`: the facts about a Hadoop cluster, learned from the ResourceManager's URL alone.

Input: an address, the environment, a site file or a HADOOP_CONF_DIR. Output: a frozen value with the facts for
staging, submission and logs.
"""

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import (
    ClusterUnreachable,
    Fault,
    ResourceManagerUnknown,
    SpecInvalid,
    SubmissionRejected,
    TfYarnError,
)
from ..runtime.common.contract import ViewersPlan
from ..runtime.common.local_job import SCHEME
from ..runtime.common.tokens import encode_token
from ..runtime.common.web_address import is_url
from ..validation import ValueFault, check_faults, is_expanded, unexpected_position
from . import gateway
from .backend import Backend
from .configuration import CROSS_PLATFORM_CLASSPATH, Configuration, system_user
from .filesystem import FileSystem, MountedFileSystem
from .local_jobs import LocalJobs, parse_folder
from .resourcemanager import ResourceManager, is_active
from .security.authentication import (
    Authentication,
    GatewayAuthentication,
    KerberosAuthentication,
    SimpleAuthentication,
)
from .security.container_tokens import ContainerTokens, TokenAuthentication
from .security.tickets import short_name
from .site import Site, find_site
from .transport import CALL_PATIENCE, KerberosDemanded, RestUnavailable, UnexpectedAnswer
from .webhdfs import WebHdfs

logger = logging.getLogger(__name__)

#: A host's name or IP address as `urlsplit` returns it; names of other letters are resolved as they are.
_HOST = re.compile(r"[^\s\"'`;,\\<>{}|^$]+")

#: YARN's default port for its pages, for an address without a port.
RESOURCEMANAGER_PORT = 8088
#: The first parts of the paths at which a ResourceManager serves pages.
_OWN_PAGES = ("app", "cluster", "conf", "node", "proxy", "ui2", "ws")
#: Seconds for which `discover` tries; a person waits for the answer.
DISCOVERY_PATIENCE = 3.0


@dataclass(frozen=True)
class StorageFacts:
    """Where a cluster keeps the files of jobs.

    Attributes
    ----------
    default : str
        ``fs.defaultFS``, without a slash at the end.
    filesystem : str
        The beginning of URLs in the staging directory's file system: the default file system, the target of a
        viewfs mount, or the site's ``staging_url``.
    staging_template : str
        Path of the staging directory, with ``{user}`` for the user.
    webhdfs : tuple of str
        HTTP addresses of its NameNodes or HttpFS; empty if none is known.
    local_root : str or None
        The local folder that is ``/`` of the file system, if it is a mount of a local one.
    """

    default: str = ""
    filesystem: str = ""
    staging_template: str = ""
    webhdfs: tuple[str, ...] = ()
    local_root: str | None = None


@dataclass(frozen=True)
class SecurityFacts:
    """The security of a cluster, as far as its users meet it.

    Attributes
    ----------
    kerberos : bool
        Whether Kerberos is on.
    negotiates : bool or None
        Whether the ResourceManager asks for tickets over HTTP, which is a setting of its own. None: as ``kerberos``.
    enforces_acls : bool
        Whether only viewers may see an application: on a secured cluster, and with ``yarn.acl.enable``.
    administrators : ViewersPlan
        Those of ``yarn.admin.acl``.
    """

    kerberos: bool = False
    negotiates: bool | None = None
    enforces_acls: bool = False
    administrators: ViewersPlan = field(default=ViewersPlan(), hash=False)


@dataclass(frozen=True)
class LogFacts:
    """Where the logs of finished containers are.

    Attributes
    ----------
    services : tuple of str
        REST addresses that serve them.
    directory, suffix : str
        Where NodeManagers aggregate them: ``yarn.nodemanager.remote-app-log-dir``, a path or a URL, empty if it is not
        known, and ``yarn.nodemanager.remote-app-log-dir-suffix``.
    linked : bool
        Whether a NodeManager's page of a log leads to the text after the end: to the server of
        ``yarn.log.server.url``, or to its own file where logs are not aggregated.
    """

    services: tuple[str, ...] = ()
    directory: str = ""
    suffix: str = "logs"
    linked: bool = False


@dataclass(frozen=True)
class NodeFacts:
    """Facts for the containers of a job; only a submission reads them.

    Attributes
    ----------
    classpath : tuple of str
        ``yarn.application.classpath``.
    resourcemanagers : tuple of str or None
        HTTP addresses of the ResourceManagers inside a cluster that stands behind a gateway; empty if they are not
        known. None: no gateway, so they are those of the cluster.
    resourcemanager_services : tuple of str
        ``host:port`` of each ResourceManager for Hadoop's own clients, which tokens name.
    token_renewer : str
        The principal that renews tokens of applications; empty if the configuration does not name it.
    nameservices : mapping of str to tuple of str
        HTTP addresses of the NameNodes by the name of each high-available pair.
    namenodes : tuple of str
        Those of the staging directory's file system by the configuration; empty if it does not name them, and behind a
        gateway.
    """

    classpath: tuple[str, ...] = ()
    resourcemanagers: tuple[str, ...] | None = None
    resourcemanager_services: tuple[str, ...] = ()
    token_renewer: str = ""
    nameservices: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    namenodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """The facts about a cluster that its clients need.

    Attributes
    ----------
    resourcemanagers : tuple of str
        HTTP addresses of the ResourceManagers.
    user : str
        The user that applications run as.
    login : str
        The user that sends the requests; differs from ``user`` only with Hadoop's ``proxyuser`` settings.
    storage : StorageFacts
    security : SecurityFacts
    proxies : tuple of str
        Further HTTP addresses that show pages of applications and are shown a ticket.
    logs : LogFacts
    nodes : NodeFacts
    version : str
        Hadoop's version.
    site : Site
        The settings of the site.
    tokens : ContainerTokens or None
        The tokens of the container in which this program runs, in place of tickets.
    """

    resourcemanagers: tuple[str, ...]
    user: str
    login: str
    storage: StorageFacts
    security: SecurityFacts = field(default_factory=SecurityFacts)
    proxies: tuple[str, ...] = ()
    logs: LogFacts = field(default_factory=LogFacts)
    nodes: NodeFacts = field(default_factory=NodeFacts)
    version: str = ""
    site: Site = field(default_factory=Site)
    tokens: ContainerTokens | None = None

    def __post_init__(self) -> None:
        used = {
            "user": self.user.removesuffix("$"),
            "staging": f"{self.storage.filesystem}{self.storage.staging_template}",
        }
        check_faults(
            Fault(name, ValueFault.EXPANDED, {"given": text}) for name, text in used.items() if is_expanded(text)
        )

    @property
    def staging(self) -> str:
        """The path of the staging directory."""
        return self.storage.staging_template.replace("{user}", self.user)

    @property
    def history(self) -> str:
        """The path of the folder with the records of ended jobs."""
        return f"{self.staging}/history"

    def acting_for(self, user: str) -> "Cluster":
        """Return the same cluster for another user; Hadoop's ``proxyuser`` settings have to allow it."""
        return self if user == self.user else replace(self, user=user)

    @property
    def authentication(self) -> Authentication:
        """How requests to the ResourceManager are authenticated."""
        if self.tokens is not None:
            return TokenAuthentication(self.login, encode_token(self.tokens.resourcemanager))
        negotiates = self.security.negotiates
        return self._authenticate(self.security.kerberos if negotiates is None else negotiates)

    @property
    def storage_authentication(self) -> Authentication:
        """How requests to the file system are authenticated: a NameNode with Kerberos always asks for tickets."""
        if self.tokens is not None and (token := self.tokens.of_filesystem(self.storage.filesystem)) is not None:
            return TokenAuthentication(self.login, encode_token(token), of_namenode=True)
        return self._authenticate(self.security.kerberos)

    def _authenticate(self, kerberos: bool) -> Authentication:
        if self.site.credentials is not None:
            return GatewayAuthentication(self.login, self.user, self.site.credentials)
        return (
            KerberosAuthentication(self.login, self.user, self.site.tickets)
            if kerberos
            else SimpleAuthentication(self.login, self.user)
        )

    def resourcemanager(self, patience: float = CALL_PATIENCE) -> ResourceManager:
        """Return a client of this cluster's ResourceManagers."""
        return ResourceManager(
            self.resourcemanagers,
            self.authentication,
            ca_file=self.site.ca_file,
            request_timeout=self.site.request_timeout,
            patience=patience,
        )

    def backend(self, patience: float = CALL_PATIENCE) -> Backend:
        """Return what runs the jobs: the ResourceManagers, or this machine."""
        first = self.resourcemanagers[0]
        return LocalJobs(first) if first.startswith(SCHEME) else self.resourcemanager(patience)

    def open_filesystem(self) -> FileSystem:
        """Return a client of the staging directory's file system.

        Raises
        ------
        RestUnavailable
            It can't be reached over HTTP.
        """
        if self.storage.local_root is not None:
            return MountedFileSystem(self.storage.local_root)
        if self.storage.webhdfs:
            return WebHdfs(
                self.storage.webhdfs, self.storage_authentication, self.site.request_timeout, self.site.ca_file
            )
        raise RestUnavailable(
            f"the file system {self.storage.filesystem} has no known HTTP address; add lines to site.yaml: "
            "'webhdfs: http://namenode:9870' (or an HttpFS), and 'staging_url: hdfs://...' for another file system"
        )

    def logical_name(self, url: str) -> str:
        """Return the name of the high-available pair of NameNodes in a URL; empty for a single NameNode."""
        split = urlsplit(url)
        known = split.netloc in self.nodes.nameservices
        several = url == self.storage.filesystem and len(self.storage.webhdfs) > 1 and ":" not in split.netloc
        return split.netloc if split.scheme == "hdfs" and (known or several) else ""

    def open_namenodes(self, filesystem: str) -> FileSystem:
        """Return a client of any ``hdfs://`` file system, at the usual port if no other address is configured.

        With Kerberos the address gets a ticket for its own host, of which no other host has a use. A gateway's password
        or token would be of use to any host, and a job may name any: it goes to configured addresses only.

        Raises
        ------
        RestUnavailable
            The cluster stands behind a gateway, and the site file does not name the addresses of the file system.
        """
        if self.tokens is not None and filesystem != self.storage.filesystem:
            raise RestUnavailable(f"the container has no token for {filesystem} that could be shown to it")
        if self.site.credentials is not None and filesystem not in self.site.namenodes:
            raise RestUnavailable(
                f"behind a gateway the address of {filesystem} has to be configured; add a line to "
                f"site.yaml: 'namenodes: {{{filesystem}: https://...}}'"
            )
        return WebHdfs(
            self._namenodes(filesystem), self.storage_authentication, self.site.request_timeout, self.site.ca_file
        )

    def _namenodes(self, filesystem: str) -> tuple[str, ...]:
        scheme, port = (
            ("https", 9871) if self.storage.webhdfs and self.storage.webhdfs[0].startswith("https:") else ("http", 9870)
        )
        split = urlsplit(filesystem)
        return (
            self.site.namenodes.get(filesystem)
            or (self.nodes.namenodes if filesystem == self.storage.filesystem else ())
            or self.nodes.nameservices.get(split.netloc)
            or (f"{scheme}://{split.hostname}:{port}",)
        )

    def namenodes_of(self, url: str) -> tuple[str, ...]:
        """Return the addresses at which the nodes of the cluster read a URL over WebHDFS; none if it is not in HDFS.

        Those that the site file names come first, with Kerberos those of the configuration: containers have tokens of
        the NameNodes, which an HttpFS refuses.
        """
        split = urlsplit(url)
        if split.scheme != "hdfs":
            return ()
        filesystem = f"hdfs://{split.netloc}" if split.netloc else self.storage.default
        own = filesystem == self.storage.filesystem and self.storage.webhdfs and self.nodes.resourcemanagers is None
        if own and not (filesystem in self.site.namenodes or (self.security.kerberos and self.nodes.namenodes)):
            return self.storage.webhdfs
        return self._namenodes(filesystem) if filesystem.startswith("hdfs://") else ()

    def open_path(self, url: str) -> tuple[FileSystem, str]:
        """Return a client of the file system of a URL or path, and the path there; raise `RestUnavailable`."""
        try:
            split = urlsplit(url)
        except ValueError as error:
            raise RestUnavailable(f"{url!r} is not a URL: {error}") from error
        storage = self.storage
        filesystem = f"{split.scheme}://{split.netloc}" if split.netloc else storage.default
        # Behind the mount of a viewfs is the staging directory's file system; else the site may name two.
        own = filesystem == storage.filesystem or (filesystem == storage.default and filesystem.startswith("viewfs:"))
        if own and (storage.webhdfs or storage.local_root):
            return self.open_filesystem(), split.path
        if not filesystem.startswith("hdfs:"):
            raise RestUnavailable(f"{url} is not in HDFS; give a URL such as hdfs:///models/digits")
        return self.open_namenodes(filesystem), split.path

    def open_logs(self) -> tuple[FileSystem, str] | None:
        """Return a client of the file system of aggregated logs, and their directory there; None if it is not HDFS.

        Raises
        ------
        RestUnavailable
            It can't be reached over HTTP.
        """
        split = urlsplit(self.logs.directory)
        filesystem = f"{split.scheme}://{split.netloc}" if split.scheme and split.netloc else self.storage.default
        mounted = filesystem == self.storage.default and self.storage.local_root is not None
        if not split.path or not (filesystem.startswith("hdfs:") or mounted):
            return None
        own = mounted or filesystem == self.storage.filesystem
        return self.open_filesystem() if own else self.open_namenodes(filesystem), split.path

    def directory(self, application_id: str) -> str:
        """Return the path of an application's directory."""
        return f"{self.staging}/{application_id}"


def current_user(environ: Mapping[str, str]) -> str:
    """Return the user as Hadoop's clients determine it: $HADOOP_USER_NAME, else the system's user.

    Raises
    ------
    SpecInvalid
        The variable is not UTF-8, or this process has a user id without a name.
    """
    if name := environ.get("HADOOP_USER_NAME"):
        if unexpected_position(name):
            raise SpecInvalid("HADOOP_USER_NAME is not UTF-8; set it to the name of your user in Hadoop")
        return name
    name = system_user()
    if name.isdecimal():
        raise SpecInvalid(
            f"the user id {name} has no name on this machine; set HADOOP_USER_NAME to your user in Hadoop"
        )
    return name


def discover(
    resourcemanager: str | None = None,
    environ: Mapping[str, str] | None = None,
    user: str | None = None,
    site: Site | None = None,
    tokens: ContainerTokens | None = None,
) -> Cluster:
    """Learn the facts about a cluster.

    Parameters
    ----------
    resourcemanager : str, optional
        One or several addresses, separated by commas. Default: $YTF_RESOURCEMANAGER, the site file, then
        HADOOP_CONF_DIR.
    environ : mapping of str to str, optional
        Default: the process's environment.
    user : str, optional
        The submitting user. Default: $HADOOP_USER_NAME, else the system's user.
    site : Site, optional
        Default: the site file of this machine.
    tokens : ContainerTokens, optional
        Show these where the cluster demands a ticket, and the site file names no keytab. Default: tickets.

    Returns
    -------
    Cluster

    Raises
    ------
    ClusterUnreachable
        No address answers, or the answer is not a ResourceManager's.
    SubmissionRejected
        The ResourceManager takes the requests for those of another user.
    SpecInvalid
        No address is known (`ResourceManagerUnknown`), or the site file has faults.
    """
    environ = os.environ if environ is None else environ
    site = find_site(environ) if site is None else site
    found = find_addresses(resourcemanager, environ, site)
    if found.urls[0].startswith(SCHEME):
        return _this_machine(found.urls[0], environ, site)
    if site.credentials is not None:
        login = site.credentials.login()
        return _discover(found, GatewayAuthentication(login, user or login, site.credentials), site)
    login = current_user(environ)
    try:
        return _discover(found, SimpleAuthentication(login, user or login), site)
    except KerberosDemanded as demanded:
        logger.debug("asking again with a ticket: %s", demanded)
    if tokens is not None and not site.keytab:
        cluster = _discover(found, TokenAuthentication(login, encode_token(tokens.resourcemanager)), site)
        if user not in (None, "", cluster.login):
            raise SubmissionRejected(
                f"the tokens of this container are those of {cluster.login!r}, and serve no other "
                f"user such as {user!r}; run the workflow as {user!r}"
            )
        return replace(cluster, tokens=tokens, security=replace(cluster.security, kerberos=True))
    # The ticket names the user, as in Hadoop's own clients; $HADOOP_USER_NAME does not count. The cluster's rules
    # (hadoop.security.auth_to_local) may give its principal any name.
    login = short_name(site.tickets.inquire()[0])
    cluster = _discover_by_ticket(found, KerberosAuthentication(login, login, site.tickets), site)
    if user in (None, "", cluster.login):
        return cluster
    return _discover_by_ticket(found, KerberosAuthentication(cluster.login, user, site.tickets), site)


def local(folder: str | os.PathLike[str] = "") -> Cluster:
    """Return this machine in place of a cluster: a job's tasks are processes, without YARN, HDFS and Java.

    Parameters
    ----------
    folder : path, optional
        Where jobs, logs and the history lie. Default: ``~/.local/state/tf_yarn_ops``.
    """
    return _this_machine(SCHEME + os.fspath(folder), os.environ, Site())


def _this_machine(address: str, environ: Mapping[str, str], site: Site) -> Cluster:
    if sys.platform != "linux":
        raise SpecInvalid("local:// runs jobs on Linux only; name a cluster: --resourcemanager http://host:8088")
    folder, user = parse_folder(address, environ), system_user()
    storage = StorageFacts("file://", "file://", "/staging", local_root=folder)
    return Cluster((SCHEME + folder,), user, user, storage, nodes=NodeFacts(resourcemanagers=()), site=site)


class FoundCluster(NamedTuple):
    """Where to ask for a cluster.

    Attributes
    ----------
    urls : tuple of str
        Addresses of ResourceManagers, at least one.
    source : str
        What names them: ``--resourcemanager``, ``YTF_RESOURCEMANAGER``, ``site file`` or ``HADOOP_CONF_DIR``.
    configuration : Configuration or None
        The content of HADOOP_CONF_DIR, if it names them.
    """

    urls: tuple[str, ...]
    source: str
    configuration: Configuration | None = None


def find_addresses(resourcemanager: str | None, environ: Mapping[str, str], site: Site) -> FoundCluster:
    """Return the addresses of the ResourceManagers; parameters and errors as in `discover`."""
    named = {
        "--resourcemanager": resourcemanager,
        "YTF_RESOURCEMANAGER": environ.get("YTF_RESOURCEMANAGER"),
        "site file": ",".join(site.resourcemanager),
    }
    source, text = next(((source, text) for source, text in named.items() if text), ("", ""))
    if urls := parse_addresses(text):
        return FoundCluster(urls, source)
    if environ.get("HADOOP_CONF_DIR"):
        directory = environ["HADOOP_CONF_DIR"]
        try:
            local = Configuration.from_directory(directory, environ)
        except (OSError, ValueError) as error:
            raise ClusterUnreachable(f"HADOOP_CONF_DIR {directory} can't be read: {error}") from error
        if found := local.resourcemanagers():
            for url in found:
                _check_url("yarn.resourcemanager.webapp.address", url)
            return FoundCluster(found, "HADOOP_CONF_DIR", local)
    raise ResourceManagerUnknown(
        "no ResourceManager is known. Give --resourcemanager http://host:8088 (or $YTF_RESOURCEMANAGER), "
        "a line 'resourcemanager: http://host:8088' in ~/.config/tf_yarn_ops/site.yaml, or a HADOOP_CONF_DIR "
        "whose yarn-site.xml has yarn.resourcemanager.webapp.address. To try a Hadoop on this machine, on Linux: "
        'ytf minicluster up, then eval "$(ytf minicluster env)". Without YARN: ytf-submit --local; its jobs: '
        "--resourcemanager local://"
    )


def _open(urls: tuple[str, ...], authentication: Authentication, site: Site) -> ResourceManager:
    return ResourceManager(
        urls, authentication, patience=DISCOVERY_PATIENCE, request_timeout=site.request_timeout, ca_file=site.ca_file
    )


def _discover(found: FoundCluster, authentication: Authentication, site: Site) -> Cluster:
    with closing(_open(found.urls, authentication, site)) as client:
        return build_cluster(_request_facts(client), found, authentication, site)


def _discover_by_ticket(found: FoundCluster, kerberos: KerberosAuthentication, site: Site) -> Cluster:
    try:
        return _discover(found, kerberos, site)
    except KerberosDemanded:
        # A standby leads to the active ResourceManager, which is shown a ticket if a configuration names it.
        with closing(_open(found.urls, kerberos, site)) as client:
            conf = read_conf(client)  # which a standby answers itself
            pair = _complete(client.addresses.urls, found.urls, conf, negotiates=True)
        if set(pair) == set(found.urls):
            raise
    return _discover(found._replace(urls=pair), kerberos, site)


def parse_addresses(text: str, scheme: str = "http", port: int = RESOURCEMANAGER_PORT) -> tuple[str, ...]:
    """Parse addresses that are separated by commas: ``host``, ``host:port`` or a URL.

    Returns
    -------
    tuple of str
        URLs without a slash at the end. A bare host gets scheme and port. Only a gateway's address keeps its path.

    Raises
    ------
    SpecInvalid
        A part is not an address.
    """
    urls = []
    for part in filter(None, map(str.strip, text.split(","))):
        if part.startswith(SCHEME):
            return (part,)
        if "://" not in part:
            part = f"{scheme}://{part}" if ":" in part else f"{scheme}://{part}:{port}"
        split = urlsplit(part if is_url(part) else "")
        is_http = split.scheme in ("http", "https") and _HOST.fullmatch(split.hostname or "")
        if not is_http or unexpected_position(part):
            raise SpecInvalid(
                f"{part!r} is not the address of a ResourceManager; give http://host:8088, two as "
                "http://host1:8088,http://host2:8088"
            )
        path = split.path.rstrip("/")
        # A user may have copied the address of a page of the ResourceManager.
        path = "" if path.startswith("/") and path.split("/")[1] in _OWN_PAGES else path
        urls.append(f"{split.scheme}://{split.netloc}{path}")
    return tuple(urls)


class ClusterAnswers(NamedTuple):
    """The answers of a ResourceManager to discovery.

    Attributes
    ----------
    info : mapping
        YARN's ``clusterInfo``.
    user : str or None
        The user of the requests as the ResourceManager sees it; None if this version of Hadoop can't tell.
    conf : Configuration
        Its ``/conf``; empty if it is not shown.
    addresses : tuple of str
        The known addresses, first the one that has answered.
    """

    info: Mapping[str, Any]
    user: str | None
    conf: Configuration
    addresses: tuple[str, ...]


def _request_facts(client: ResourceManager) -> ClusterAnswers:
    first = client.address
    # A password that is wrong must not be tried three times at once.
    with ThreadPoolExecutor(1 if isinstance(client.authentication, GatewayAuthentication) else 3) as pool:
        info_answer = pool.submit(client.info)
        user_answer = pool.submit(client.userinfo, "requestedUser")
        conf_answer = pool.submit(read_conf, client)
        try:
            info = info_answer.result()
        except UnexpectedAnswer as error:
            raise ClusterUnreachable(
                f"{client.addresses} answers, but is no YARN ResourceManager ({error}); "
                "its address looks like http://host:8088, or at Knox like "
                "https://host:8443/gateway/TOPOLOGY/yarn"
            ) from error
        user, conf = user_answer.result(), conf_answer.result()
    # Before a ResourceManager is active, its /conf may lack the values of hdfs-site.xml. When the address has changed,
    # the three answers may come from different ResourceManagers; a restart between them keeps the address.
    if not is_active(info) or client.address != first or not conf.names("dfs."):
        activation = client.await_active()
        conf = read_conf(client)
        if not activation and conf.get("hadoop.security.authentication") == "kerberos" and not conf.names("dfs."):
            raise ClusterUnreachable(
                f"{client.addresses} shows the configuration of a standby ResourceManager, which "
                f"lacks the settings of HDFS. {gateway.ADVICE}"
            )
    return ClusterAnswers(info, user, conf, tuple(client.addresses.urls))


def build_cluster(answers: ClusterAnswers, found: FoundCluster, authentication: Authentication, site: Site) -> Cluster:
    """Derive the facts about a cluster; pure.

    Parameters
    ----------
    answers : ClusterAnswers
    found : FoundCluster
        A configuration here precedes that of the answers, but for settings of the nodes.
    authentication : Authentication
        With which the answers came.
    site : Site

    Raises
    ------
    ClusterUnreachable
        Nothing names the default file system.
    SubmissionRejected
        The ResourceManager takes the requests for those of another user.
    """
    conf, (login, user) = answers.conf, _identify(authentication, answers.user)
    negotiates = isinstance(authentication, KerberosAuthentication)
    known = found.configuration or conf
    filesystem = site.default_filesystem or known.get("fs.defaultFS") or conf.get("fs.defaultFS")
    if not filesystem or filesystem.startswith("file:"):
        raise ClusterUnreachable(
            f"the cluster's default file system is not known ({filesystem or 'no fs.defaultFS'}); "
            "add a line to site.yaml: 'default_filesystem: hdfs://namenode:8020'"
        )
    for name, url in (
        ("fs.defaultFS", filesystem),
        ("yarn.log.server.url", conf.get("yarn.log.server.url")),
        ("yarn.nodemanager.remote-app-log-dir", conf.get("yarn.nodemanager.remote-app-log-dir")),
        *(("yarn.resourcemanager.webapp.address", url) for url in known.resourcemanagers()),
    ):
        _check_url(name, url)
    resourcemanagers = _complete(answers.addresses, found.urls, known, negotiates)
    kerberos = negotiates or conf.get("hadoop.security.authentication", "simple") != "simple"
    host = urlsplit(answers.addresses[0]).hostname or ""
    topology = gateway.topology(found.urls[0])
    storage = _locate(filesystem.rstrip("/"), site, (known, conf), topology)
    services = (site.resourcemanager_service, conf.resourcemanager_services(host), known.resourcemanager_services(host))
    return Cluster(
        resourcemanagers=resourcemanagers,
        user=user,
        login=login,
        storage=storage,
        security=SecurityFacts(
            kerberos,
            negotiates,
            enforces_acls=kerberos or known.get("yarn.acl.enable") == "true",
            administrators=known.administrators(),
        ),
        proxies=(known.proxies() or conf.proxies()) if negotiates else (),
        logs=LogFacts(
            _log_services(site, conf),
            conf.get("yarn.nodemanager.remote-app-log-dir") or "",
            conf.get("yarn.nodemanager.remote-app-log-dir-suffix") or "logs",
            bool(conf.get("yarn.log.server.url")) or conf.get("yarn.log-aggregation-enable") == "false",
        ),
        nodes=NodeFacts(
            classpath=site.application_classpath or conf.list("yarn.application.classpath") or CROSS_PLATFORM_CLASSPATH,
            resourcemanagers=known.resourcemanagers() if any(map(gateway.is_gateway, resourcemanagers)) else None,
            resourcemanager_services=next(filter(None, services), ()),
            token_renewer=site.token_renewer or conf.renewer(host) or known.renewer(host),
            nameservices={**known.nameservices(), **conf.nameservices()},
            namenodes=() if topology else _configured_namenodes(storage.filesystem, (known, conf)),
        ),
        version=str(answers.info.get("hadoopVersion", "")),
        site=site,
    )


def _check_url(name: str, url: str) -> str:
    """Return a URL of a configuration; raise ClusterUnreachable if it is none, such as ``hdfs://[``."""
    if not is_url(url):
        raise ClusterUnreachable(
            f"{name} of the cluster's configuration is not a URL ({url!r}), such as scheme://host:port; correct it in "
            "HADOOP_CONF_DIR or on the cluster"
        )
    return url


def _complete(known: Sequence[str], given: tuple[str, ...], conf: Configuration, negotiates: bool) -> tuple[str, ...]:
    """Return the known addresses in their order, and after them the configured ones of a pair that are missing.

    An address that only a standby's redirect has named is left out where the configuration names the pair, as it may be
    another name of one of them, and where it would be shown a ticket.
    """
    inside = any(map(gateway.is_gateway, given))  # a gateway follows the active one itself
    pair = conf.resourcemanagers() if conf.get("yarn.resourcemanager.ha.enabled") == "true" and not inside else ()
    kept = [url for url in known if url in given or url in pair or not (pair or negotiates)]
    return tuple(dict.fromkeys([*kept, *pair]))


def _identify(authentication: Authentication, seen_as: str | None) -> tuple[str, str]:
    """Return login and user; raise SubmissionRejected if the ResourceManager sees a user that was not requested."""
    login, user = authentication.login, authentication.user
    if seen_as is None:
        return login, user
    if isinstance(authentication, SimpleAuthentication):
        if seen_as != user:
            raise SubmissionRejected(
                f"the ResourceManager takes us for {seen_as!r}, not for {user!r}: "
                "its web interface ignores user.name; ask the administrator for simple "
                "authentication, or use Kerberos"
            )
        return login, user
    seen_as = short_name(seen_as)
    if user == login:
        return seen_as, seen_as  # hadoop.security.auth_to_local, or a gateway, may give us any name
    if isinstance(authentication, GatewayAuthentication) and seen_as != user:
        raise SubmissionRejected(
            f"the gateway takes us for {seen_as!r}, not for {user!r}: it does not let us act for "
            "other users; give the password or token of that user"
        )
    if seen_as != user:
        raise SubmissionRejected(
            f"the ResourceManager takes us for {seen_as!r}, not for {user!r}: ask the "
            f"administrator to set hadoop.proxyuser.{login}.*, or run kinit as {user!r}"
        )
    return login, user


def read_conf(client: ResourceManager) -> Configuration:
    """Return the ResourceManager's configuration; an empty one if it does not show it. Raise `KerberosDemanded`."""
    try:
        return Configuration.from_conf(client.conf())
    except KerberosDemanded:
        raise
    except (TfYarnError, ValueError) as error:
        logger.debug("no /conf from %s: %s", client.addresses, error)
        return Configuration({})


def _log_services(site: Site, conf: Configuration) -> tuple[str, ...]:
    """Return the configured REST address of logs, and the REST address of the configured job history server."""
    services = [site.log_server or conf.get("yarn.log.server.web-service.url")]
    if (pages := urlsplit(conf.get("yarn.log.server.url"))).netloc:
        services.append(f"{pages.scheme}://{pages.netloc}/ws/v1/history")
    return tuple(service.rstrip("/") for service in services if service)


def _locate(default: str, site: Site, configurations: Sequence[Configuration], topology: str | None) -> StorageFacts:
    filesystem, staging = (site.staging_url or default).rstrip("/"), site.staging.rstrip("/")
    for known in configurations if filesystem.startswith("viewfs:") else ():
        target = urlsplit(_check_url("the target of a viewfs mount", known.mounted(filesystem, staging)))
        if target.scheme == "file":
            root = str(Path(target.path[: len(target.path) - len(staging)] or "/"))
            return StorageFacts(default, filesystem, staging, local_root=root)
        if target.scheme:
            filesystem, staging = f"{target.scheme}://{target.netloc}", target.path
            break
    webhdfs = tuple(url.rstrip("/") for url in site.webhdfs)
    if filesystem.startswith("hdfs:") and not webhdfs:
        webhdfs = (topology,) if topology else _configured_namenodes(filesystem, configurations)
    return StorageFacts(default, filesystem, staging, webhdfs)


def _configured_namenodes(filesystem: str, configurations: Sequence[Configuration]) -> tuple[str, ...]:
    named = (known.namenodes(filesystem) for known in configurations if filesystem.startswith("hdfs:"))
    return next(filter(None, named), ())
