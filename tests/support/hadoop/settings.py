"""`HadoopSettings`: the cluster of the tests, with its realm, certificates, pairs and archives."""

import base64
import hashlib
import hmac
import re
import ssl
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tf_yarn_ops.minicluster import artefacts, health
from tf_yarn_ops.minicluster.daemon_settings import OPENS, Daemon, Settings, file_of, render_xml

from . import high_availability, kms, knox_server, throwaway_keys
from .additions import LINUX_EXECUTOR, LOCAL_FILES, LOCALIZING_EXECUTOR
from .certificates import Stores, build_https_properties
from .class_archive import DAEMONS, MASTER, class_path, use_archive
from .docker import DOCKERD, USER, Engine, build_docker_properties
from .high_availability import NAMENODES, RESOURCEMANAGERS, SERVICE, ZOOKEEPER
from .kerberos import HDFS, PROXY_USER, USERS, YARN, Realm, build_kerberos_properties
from .kms import KMS, build_kms_properties
from .knox_server import KNOX, KnoxHome
from .versions import find_version

#: The daemon that is not a JVM: the KDC of a secured cluster.
KDC = "kdc"

_KERBEROS_OPENS = "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
#: For Skein's application master, whose Netty makes a certificate at each start to try what OpenSSL can do: this saves
#: the 10,000 rounds that encrypt a key in a key store which is never written.
QUICK_TLS = ("-Dkeystore.pkcs12.keyPbeIterationCount=1",)
#: Jobs of the queue low lose containers soon.
_MONITOR = "yarn.resourcemanager.monitor.capacity.preemption"
_PREEMPTION = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.scheduler.monitor.policies":
        "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy",
    f"{_MONITOR}.monitoring_interval": "1000",
    f"{_MONITOR}.max_wait_before_kill": "3000",
    f"{_MONITOR}.total_preemption_per_round": "1.0",
    f"{_MONITOR}.natural_termination_factor": "1.0",
    f"{_MONITOR}.max_ignored_over_capacity": "0.0",
}  # fmt: skip
#: Seconds for which a cookie of the cluster's own requests is valid.
_COOKIE_SECONDS = 60


@dataclass(frozen=True)
class HadoopSettings(Settings):
    """The values that determine a cluster of the tests.

    Attributes
    ----------
    labels : mapping of str to str
        YARN node labels by the names of NodeManagers.
    version : str
        Number of the Hadoop version.
    ha : bool
        Run two ResourceManagers and two NameNodes.
    kerberos : bool
        Demand Kerberos of every client.
    https : bool
        Serve the daemons' pages by HTTPS only.
    ticket_lifetime : int, optional
        Longest life of a user's ticket, seconds; None: a day.
    docker : bool
        Run containers in a Docker engine of the cluster's own, where a job asks for it.
    kms : bool
        Run a key server; the home directory of the cluster's user, with Kerberos that of gateway, is an encryption zone.
    knox : bool
        Run an Apache Knox before the daemons.
    classes : Path, optional
        Folder with the archives of Hadoop's classes; None: there are none.
    additions : Path, optional
        Folder with what a cluster with Kerberos needs besides Hadoop's jars; None: it has no Kerberos.
    local_files : Path, optional
        Folder with the classes of YARN's local file system and localizer; None: they are Hadoop's own.
    """

    schema = "hadoop 3"

    labels: Mapping[str, str] = field(default_factory=dict)
    version: str = artefacts.VERSION
    ha: bool = False
    kerberos: bool = False
    https: bool = False
    ticket_lifetime: int | None = None
    docker: bool = False
    kms: bool = False
    knox: bool = False
    classes: Path | None = None
    additions: Path | None = None
    local_files: Path | None = None

    @property
    def host(self) -> str:
        # Kerberos knows services by name, and so do most certificates.
        return "localhost" if self.kerberos or self.https else super().host

    @property
    def superuser(self) -> str:
        return HDFS if self.kerberos else super().superuser

    @property
    def engine(self) -> Engine:
        """The Docker engine of a cluster with one."""
        return Engine(self.directory / "docker")

    @property
    def gateway(self) -> KnoxHome:
        """The gateway of a cluster with one."""
        return KnoxHome(self.directory / KNOX, self.host, self.ports[KNOX])

    @property
    def folders(self) -> Mapping[str, str]:
        if not self.kerberos:
            return {**super().folders, **({f"user/{USER}": "755"} if self.docker else {})}
        shared = {name: mode for name, mode in super().folders.items() if not name.startswith("user/")}
        return shared | {f"user/{user}": "700" for user in USERS}

    @property
    def realm(self) -> Realm:
        """The Kerberos realm of a secured cluster."""
        return Realm(self.directory / "kerberos")

    @property
    def kdc_address(self) -> str:
        """The ``address:port`` of the KDC of a secured cluster."""
        return f"127.0.0.1:{self.ports[KDC]}"

    @property
    def zookeeper(self) -> str:
        """The ``address:port`` of ZooKeeper of a cluster with pairs."""
        return f"127.0.0.1:{self.ports[ZOOKEEPER]}"

    @property
    def shared_edits(self) -> str:
        """URI of the edits that both NameNodes of a pair share."""
        return f"file://{self.directory}/nn-shared"

    def enter_host_of(self, name: str) -> tuple[str, ...]:
        """Return the words before a command that is to run on the host of a daemon."""
        return ()

    @property
    def zone(self) -> str:
        """The encryption zone of a cluster with a key server: a home directory."""
        return f"/user/{PROXY_USER}" if self.kerberos else f"/user/{self.user}"

    @property
    def stores(self) -> Stores:
        """The certificates of a cluster with HTTPS."""
        return Stores(self.directory / "https")

    @property
    def site_file(self) -> Path:
        """The ``site.yaml`` for clients of a cluster with HTTPS."""
        return self.directory / "site.yaml"

    @property
    def yarn_configuration(self) -> Path | None:
        """The folder with what only YARN's daemons read; None: nothing."""
        return self.configuration / "yarn" if self.local_files else None

    @property
    def linux_executor(self) -> str:
        """The class by which a NodeManager runs containers by ``container-executor``."""
        return LOCALIZING_EXECUTOR if self.local_files else LINUX_EXECUTOR

    @property
    def default_filesystem(self) -> str:
        return f"hdfs://{SERVICE}" if self.ha and not self.light else super().default_filesystem

    @property
    def resourcemanagers(self) -> tuple[str, ...]:
        return RESOURCEMANAGERS if self.ha else super().resourcemanagers

    @property
    def namenodes(self) -> tuple[str, ...]:
        return NAMENODES if self.ha and not self.light else super().namenodes

    @property
    def port_names(self) -> tuple[str, ...]:
        others = (*[KDC] * self.kerberos, *[ZOOKEEPER] * self.ha, *[KMS] * self.kms, *[KNOX] * self.knox)
        return (*others, *super().port_names)

    def web_address(self, name: str) -> str:
        address = super().web_address(name)
        return address.replace("http:", "https:") if self.https else address

    def active_page(self, names: Sequence[str]) -> str:
        return self.web_address(self.find_active(names) or names[0])

    def find_active(self, names: Sequence[str]) -> str | None:
        """Return the active one of several daemons of a kind; None if there is none."""
        if len(names) < 2:
            return next(iter(names), None)
        return next((name for name in names if self.ask_role(name) == "active"), None)

    def ask_role(self, name: str) -> str | None:
        """Return ``active``, ``standby`` or ``initializing`` for one of a pair; None if it does not answer."""
        if name in self.namenodes:
            beans = health.query_namenode(self, name, "NameNodeStatus")
            return str(beans[0]["State"]) if beans else None
        answer = health.get_json(self, f"{self.web_address(name)}/ws/v1/cluster/info") or {}
        info = answer.get("clusterInfo", {})
        return str(info["haState"]).lower() if "haState" in info else None

    def send(self, request: urllib.request.Request, seconds: float) -> Any:
        if self.kerberos:
            request.add_header("Cookie", self._sign_cookie(request.full_url))
        if not self.https:
            return super().send(request, seconds)
        context = ssl.create_default_context(cafile=self.stores.ca_file)
        context.check_hostname = False  # on several hosts the request goes to an address, which the certificate has not
        trusting = urllib.request.HTTPSHandler(context=context)
        return urllib.request.build_opener(urllib.request.ProxyHandler({}), trusting).open(request, timeout=seconds)

    def _sign_cookie(self, url: str) -> str:
        """Return the cookie that a daemon's page would give after SPNEGO.

        The daemons share one secret for it, which is the cluster's own, so that no ticket is needed here.

        References
        ----------
        hadoop-auth: ``AuthToken``, ``Signer``; the type is that of the page's ``AuthenticationHandler``.
        """
        of_yarn = any(url.startswith(self.web_address(name) + "/ws/") for name in self.resourcemanagers)
        user, kind = (YARN, "kerberos-dt") if of_yarn else (HDFS, "kerberos")
        expires = int((time.time() + _COOKIE_SECONDS) * 1000)
        token = f"u={user}&p={self.realm.principal(user)}&t={kind}&e={expires}"
        signature = hmac.digest(self.realm.web_secret.read_bytes(), token.encode(), hashlib.sha256)
        return f'hadoop.auth="{token}&s={base64.b64encode(signature).decode()}"'

    def list_daemons(self) -> tuple[Daemon, ...]:
        zookeeper = Daemon(
            ZOOKEEPER,
            "ZooKeeper",
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            128,
            arguments=(f"{self.configuration}/zoo.cfg",),
        )
        jvms = (*[zookeeper] * self.ha, *[kms.build_kms(self)] * self.kms, *super().list_daemons())
        others = (
            *[Daemon(KDC, "KDC", "", 0)] * self.kerberos,
            *[Daemon(DOCKERD, "Docker engine", "", 0)] * self.docker,
        )
        gateway = [Daemon(KNOX, "Knox", knox_server.MAIN_CLASS, 256, self.gateway.flags)] if self.knox else []
        return (*others, *map(self._extended, jvms), *gateway)

    def _extended(self, daemon: Daemon) -> Daemon:
        flags = [
            *daemon.flags,
            *self.kerberos_flags,
            *use_archive(self.classes, DAEMONS),
        ]
        if daemon.title in ("NameNode", "DataNode") and find_version(self.version).hdfs_opens:
            flags.append(OPENS)
        if daemon.title == "ResourceManager":
            flags += throwaway_keys.use_in_resourcemanager(self)
        arguments = list(daemon.arguments)
        if self.ha and daemon.name in (*RESOURCEMANAGERS, *NAMENODES):  # both of a pair have the same host
            key = "dfs.ha.namenode.id" if daemon.name in NAMENODES else "yarn.resourcemanager.ha.id"
            arguments.append(f"-D{key}={daemon.name}")
        return replace(daemon, flags=tuple(flags), arguments=tuple(arguments))

    @property
    def kerberos_flags(self) -> tuple[str, ...]:
        """The flags by which a JVM finds the realm of a secured cluster."""
        if not self.kerberos:
            return ()
        # Java reads KRB5_CONFIG nowhere. Hadoop's daemons share one service, and see replays where there are none.
        opens = (_KERBEROS_OPENS,) if find_version(self.version).kerberos_opens else ()
        return (f"-Djava.security.krb5.conf={self.realm.krb5_conf}", "-Dsun.security.krb5.rcache=none", *opens)

    def class_path(self, daemon: Daemon) -> tuple[str, ...]:
        if daemon.name == KNOX:
            return self.gateway.class_path
        _, *ours = super().class_path(daemon)
        if daemon.main_class == kms.MAIN_CLASS:
            ours = [f"{self.directory}/kms", *ours, f"{kms.kms_jars(self.version)}/*"]
        if self.ha and daemon.name in RESOURCEMANAGERS:
            ours.insert(0, str(self.configuration / daemon.name))
        if self.yarn_configuration and daemon.title in ("ResourceManager", "NodeManager"):
            at = len(ours) - 2
            ours[at:at] = [str(self.local_files), str(self.yarn_configuration)]
        # A NodeManager with another class than Hadoop's cannot use the archive, which needs the jars first.
        first = [f"{self.additions}/classes"] if self.additions and daemon.title == "NodeManager" else []
        return (*first, *class_path(self.hadoop, self.classes), *ours)

    @property
    def client_jars(self) -> tuple[Path, ...]:
        return (*super().client_jars, *([self.additions / "jars"] if self.additions else []))

    @property
    def tool_jars(self) -> tuple[str, ...]:
        return class_path(self.hadoop, self.classes)

    @property
    def client_flags(self) -> tuple[str, ...]:
        return (*super().client_flags, *self.kerberos_flags, *use_archive(self.classes, DAEMONS))

    @property
    def container_variables(self) -> Mapping[str, str]:
        # Not in JDK_JAVA_OPTIONS, which an application sets for its master.
        keys = throwaway_keys.use_in_containers(self)
        tools = (*self.kerberos_flags, *use_archive(self.classes, MASTER), *QUICK_TLS, *keys)
        return {**super().container_variables, "JAVA_TOOL_OPTIONS": " ".join(tools)}

    @property
    def client_variables(self) -> dict[str, str]:
        """The variables of programs that use the cluster."""
        variables = self.variables
        if self.https:
            variables["YTF_SITE"] = str(self.site_file)
        if self.kerberos:
            variables |= {
                "KRB5_CONFIG": str(self.realm.krb5_conf),
                # A cache of its own leaves the user's other tickets alone.
                "KRB5CCNAME": f"FILE:{self.realm.folder}/ticket",
                "JDK_JAVA_OPTIONS": " ".join(self.kerberos_flags),
            }
        return variables

    def build_sites(self) -> dict[str, dict[str, str]]:
        single = replace(self, ha=False)  # a pair has no addresses without a name
        sites = super(HadoopSettings, single).build_sites() if self.ha else super().build_sites()
        yarn = sites["yarn-site.xml"]
        jars = class_path(self.hadoop, self.classes)
        yarn |= _PREEMPTION
        # Many clusters share few cores: each heartbeat costs both daemons a millisecond, and a NodeManager reads all of
        # /proc to know the memory of its containers.
        yarn |= {
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "500",
            "yarn.nodemanager.container-monitor.interval-ms": "10000",
        }
        yarn["yarn.application.classpath"] = ",".join((*jars, str(self.configuration)))
        if self.ha:
            sites["core-site.xml"]["fs.defaultFS"] = self.default_filesystem
            high_availability.pair_yarn(yarn, self.address, self.zookeeper)
            if not self.light:
                hdfs = sites["hdfs-site.xml"]
                high_availability.pair_hdfs(hdfs, self.address, self.directory, self.shared_edits)
        if self.https:
            sites = {file: {by_https(name): value for name, value in values.items()} for file, values in sites.items()}
        for added in (
            build_kerberos_properties(self.realm) if self.kerberos else {},
            build_https_properties(self.stores) if self.https else {},
            _label_properties(self.labels, self.directory),
            {"yarn-site.xml": build_docker_properties(self.engine, self.linux_executor)} if self.docker else {},
            {"core-site.xml": build_kms_properties(self)} if self.kms else {},
        ):
            for name, values in added.items():
                sites[name] = sites.get(name, {}) | values
        return sites

    def build_files(self) -> dict[str, str]:
        files = super().build_files()
        if self.yarn_configuration:
            # Containers and clients do not have the class.
            core = LOCAL_FILES | self.build_sites()["core-site.xml"]
            core |= {name: value for name, value in self.properties.items() if file_of(name) == "core-site.xml"}
            files[f"{self.yarn_configuration.name}/core-site.xml"] = render_xml(core)
        if self.ha:
            files |= {
                f"{name}/yarn-site.xml": high_availability.build_yarn_site(name, self.configuration)
                for name in RESOURCEMANAGERS
            }
            files["zoo.cfg"] = high_availability.build_zookeeper_text(self.zookeeper, self.directory)
        return files

    def build_node_properties(self, node: str) -> dict[str, str]:
        values = super().build_node_properties(node)
        return {by_https(name): value for name, value in values.items()} if self.https else values


def by_https(name: str) -> str:
    """Return the name of the property with the HTTPS address of a page, in place of that with its HTTP address."""
    name = re.sub(r"(\.webapp)(\.address)", r"\1.https\2", name)
    return re.sub(r"^(dfs\.\w+\.)http([.-]address)", r"\1https\2", name)


def _label_properties(labels: Mapping[str, str], directory: Path) -> dict[str, dict[str, str]]:
    """Return the properties of a cluster with labels, by file name: exclusive, and for the queue ``default`` only."""
    prefix = "yarn.scheduler.capacity"
    scheduler = {
        f"{prefix}.{queue}.accessible-node-labels.{label}.capacity": "100"
        for label in sorted(set(labels.values()))
        for queue in ("root", "root.default")
    }
    return (
        {
            "yarn-site.xml": {
                "yarn.node-labels.enabled": "true",
                "yarn.node-labels.fs-store.root-dir": f"file://{directory}/rm/node-labels",
            },
            # A blank means no label; without the property the queue would have those of its parent.
            "capacity-scheduler.xml": scheduler | {f"{prefix}.root.low.accessible-node-labels": " "},
        }
        if labels
        else {}
    )
