"""Build Hadoop's configuration files from the cluster's settings, without touching a disk.

``docs/guides/minicluster.md`` gives the reason for each value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from . import high_availability, versions
from .additions import LOCAL_FILES
from .certificates import Stores, build_https_properties
from .class_archive import class_path
from .high_availability import NAMENODES, RESOURCEMANAGER_PORTS, RESOURCEMANAGERS, SERVICE, ZOOKEEPER
from .kerberos import Realm, build_kerberos_properties

#: Authority of the view file system of a light cluster.
VIEWFS = "viewfs://minicluster"

#: The most NodeManagers. Each is a JVM, and no test needs more.
MAX_NODES = 8

_GPU = "yarn.io/gpu"
_ENVIRONMENT = (
    "JAVA_HOME", "HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_CONF_DIR", "HADOOP_YARN_HOME", "HADOOP_HOME",
    "PATH", "LANG", "TZ", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """The values that determine a cluster's configuration.

    Attributes
    ----------
    directory : Path
        The cluster's folder with its configuration, data, logs and shims.
    hadoop : Path
        Folder with Hadoop's ``jars``.
    java_home : Path
        The Java that daemons, shims and containers use.
    user : str
        The user that runs the daemons; superuser of HDFS.
    ports : mapping of str to int
        A port for each of the `port_names`.
    memory : int
        Memory that each NodeManager offers to containers, MiB.
    nodes : int
        Number of NodeManagers.
    light : bool
        Leave HDFS out.
    stock : bool
        Keep Hadoop's own heartbeat and off-switch settings, for measurements.
    labels : mapping of str to str
        YARN node labels by the names of NodeManagers; exclusive, and for the queue ``default`` only.
    classes : Path, optional
        Folder with the archives of Hadoop's classes; None: there are none.
    version : str
        Number of the Hadoop version.
    java : int
        Feature release of the Java.
    ha : bool
        Run two ResourceManagers and two NameNodes.
    kerberos : bool
        Demand Kerberos of every client.
    https : bool
        Serve the daemons' pages by HTTPS only.
    ticket_lifetime : int, optional
        Longest life of a user's ticket, seconds; None: a day.
    properties : mapping of str to str
        Further Hadoop properties, which win over all others.
    additions : Path, optional
        Folder with what a cluster with Kerberos needs besides Hadoop's jars; None: it has no Kerberos.
    local_files : Path, optional
        Folder with the class of YARN's local file system; None: it is Hadoop's own.
    """

    directory: Path
    hadoop: Path
    java_home: Path
    user: str
    ports: Mapping[str, int]
    memory: int
    nodes: int = 1
    light: bool = False
    stock: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    classes: Path | None = None
    version: str = versions.DEFAULT
    java: int = 17
    ha: bool = False
    kerberos: bool = False
    https: bool = False
    ticket_lifetime: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    additions: Path | None = None
    local_files: Path | None = None

    @property
    def host(self) -> str:
        """The name of this machine in addresses; Kerberos knows services by name, and so do most certificates."""
        return "localhost" if self.kerberos or self.https else "127.0.0.1"

    @property
    def superuser(self) -> str:
        """The superuser of HDFS."""
        return "hdfs" if self.kerberos else self.user

    @property
    def realm(self) -> Realm:
        """The Kerberos realm of a secured cluster."""
        return Realm(self.directory / "kerberos")

    @property
    def stores(self) -> Stores:
        """The certificates of a cluster with HTTPS."""
        return Stores(self.directory / "https")

    @property
    def configuration(self) -> Path:
        return self.directory / "conf"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def site_file(self) -> Path:
        """The ``site.yaml`` for clients of a cluster with HTTPS."""
        return self.directory / "site.yaml"

    @property
    def yarn_configuration(self) -> Path | None:
        """The folder with what only YARN's daemons read; None: nothing."""
        return self.configuration / "yarn" if self.local_files and not self.stock else None

    @property
    def pages(self) -> Path:
        return self.directory / "pages"

    @property
    def shims(self) -> Path:
        return self.directory / "bin"

    @property
    def default_filesystem(self) -> str:
        return VIEWFS if self.light else f"hdfs://{SERVICE if self.ha else _address(self, 'nn')}"

    @property
    def resourcemanagers(self) -> tuple[str, ...]:
        """The names of the ResourceManagers."""
        return RESOURCEMANAGERS if self.ha else RESOURCEMANAGERS[:1]

    @property
    def namenodes(self) -> tuple[str, ...]:
        """The names of the NameNodes; empty for a light cluster."""
        return () if self.light else NAMENODES if self.ha else NAMENODES[:1]

    def web_address(self, name: str) -> str:
        """Return the URL of a daemon's pages."""
        return f"{'https' if self.https else 'http'}://{_address(self, f'{name}-web')}"


def node_names(nodes: int) -> tuple[str, ...]:
    """Return the names of the NodeManagers: ``nm``, ``nm2``, ``nm3`` ..."""
    return tuple("nm" if number == 1 else f"nm{number}" for number in range(1, nodes + 1))


def port_names(nodes: int, light: bool, kerberos: bool = False, ha: bool = False) -> tuple[str, ...]:
    """Return the names of all ports on which the daemons of a cluster listen."""
    kdc = ("kdc",) if kerberos else ()
    zookeeper = (ZOOKEEPER,) if ha else ()
    pairs = RESOURCEMANAGERS if ha else RESOURCEMANAGERS[:1]
    resourcemanagers = tuple(f"{name}{end}" for name in pairs for end in RESOURCEMANAGER_PORTS)
    namenodes = tuple(f"{name}{end}" for name in (NAMENODES if ha else NAMENODES[:1]) for end in ("", "-web"))
    hdfs = () if light else (*namenodes, "dn", "dn-web", "dn-ipc")
    nodemanagers = tuple(f"{node}{end}" for node in node_names(nodes) for end in _NODE_PORTS)
    return kdc + zookeeper + resourcemanagers + hdfs + nodemanagers


def build_configuration(settings: Settings) -> dict[str, str]:
    """Return the files of the configuration folder: text by file name."""
    files = {
        "core-site.xml": _core(settings),
        "yarn-site.xml": _yarn(settings),
        "capacity-scheduler.xml": _scheduler(settings),
        "resource-types.xml": {"yarn.resource-types": _GPU},
    }
    if not settings.light:
        files["hdfs-site.xml"] = _hdfs(settings)
    for secured in (
        build_kerberos_properties(settings.realm) if settings.kerberos else {},
        build_https_properties(settings.stores) if settings.https else {},
    ):
        for name, values in secured.items():
            files[name] = files.get(name, {}) | values
    for name, value in settings.properties.items():
        files.setdefault(_file_of(name), {})[name] = value
    if settings.yarn_configuration:
        # Containers and clients do not have the class.
        files[f"{settings.yarn_configuration.name}/core-site.xml"] = LOCAL_FILES | files["core-site.xml"]
    texts = {name: render_xml(values) for name, values in files.items()} | {"log4j.properties": _LOG4J}
    if settings.ha:
        texts |= {f"{name}/yarn-site.xml": high_availability.build_yarn_site(name, settings.configuration)
                  for name in RESOURCEMANAGERS}
        texts["zoo.cfg"] = high_availability.build_zookeeper_text(settings.ports[ZOOKEEPER], settings.directory)
    return texts


def build_node_properties(settings: Settings, node: str) -> dict[str, str]:
    """Return the properties of one NodeManager, which are passed as ``-D`` arguments after the main class."""
    folder = settings.directory / node
    addresses = {
        f"yarn.nodemanager.{_web(settings, key)}": _address(settings, node + end) for end, key in _NODE_PORTS.items()
    }
    return addresses | {
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.recovery.dir": str(folder / "recovery"),
    }


def render_xml(values: Mapping[str, str]) -> str:
    """Return the text of a Hadoop configuration file."""
    lines = (
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in values.items()
    )
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<configuration>", *lines, "</configuration>", ""])


def _file_of(name: str) -> str:
    for prefix, file in _FILES.items():
        if name.startswith(prefix):
            return file
    return "core-site.xml"


def _core(settings: Settings) -> dict[str, str]:
    values = {
        "fs.defaultFS": settings.default_filesystem,
        "hadoop.tmp.dir": str(settings.directory / "tmp"),
    }
    if settings.light:
        # Skein fails with file:/// as the default file system.
        values["fs.viewfs.mounttable.minicluster.linkMergeSlash"] = f"file://{settings.directory}/files"
    return values


def _hdfs(settings: Settings) -> dict[str, str]:
    namenodes = {
        "dfs.namenode.rpc-address": _address(settings, "nn"),
        f"dfs.namenode.{'https' if settings.https else 'http'}-address": _address(settings, "nn-web"),
        "dfs.namenode.name.dir": f"file://{settings.directory}/nn",
    }
    if settings.ha:
        namenodes = high_availability.build_hdfs_properties(
            settings.host, settings.ports, settings.directory, settings.https
        )
    return namenodes | {
        "dfs.namenode.safemode.extension": "0",
        "dfs.datanode.address": _address(settings, "dn"),
        f"dfs.datanode.{'https' if settings.https else 'http'}.address": _address(settings, "dn-web"),
        "dfs.datanode.ipc.address": _address(settings, "dn-ipc"),
        # WebHDFS redirects clients to this name; the machine's own name may belong to another interface.
        "dfs.datanode.hostname": settings.host,
        "dfs.datanode.data.dir": f"file://{settings.directory}/dn",
        # A client that closes a file too early asks the NameNode again after 400 ms: half of a submission's time.
        **({} if settings.stock else {"dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20"}),
        # Each of these threads wakes up once a second, and this look for deleted blocks a hundred times.
        **({} if settings.stock else {"dfs.namenode.handler.count": "4", "dfs.datanode.handler.count": "2",
                                      "dfs.namenode.block.deletion.unlock.interval.ms": "1000"}),
        "dfs.replication": "1",
        "dfs.permissions.enabled": "true",
    }


def _yarn(settings: Settings) -> dict[str, str]:
    directory = settings.directory
    classes = class_path(settings.hadoop, None if settings.stock else settings.classes)
    aggregated = f"file://{directory}/files/tmp/logs" if settings.light else "/tmp/logs"
    values = {
        "yarn.resourcemanager.connect.retry-interval.ms": "1000",
        "yarn.resourcemanager.recovery.enabled": "true",
        # Hadoop's default is one folder in /tmp for all clusters of a user.
        "yarn.node-attribute.fs-store.root-dir": f"file://{directory}/rm/node-attributes",
        "yarn.resourcemanager.scheduler.class":
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        "yarn.resourcemanager.scheduler.monitor.policies":
            "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy",
        "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": "1000",
        "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "3000",
        "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1.0",
        "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1.0",
        "yarn.resourcemanager.monitor.capacity.preemption.max_ignored_over_capacity": "0.0",
        "yarn.cluster.max-application-priority": "10",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "20000",
        "yarn.scheduler.minimum-allocation-mb": "64",
        "yarn.scheduler.maximum-allocation-mb": str(settings.memory),
        "yarn.scheduler.maximum-allocation-vcores": "32",
        # Two NodeManagers on one host differ only by their ports.
        "yarn.scheduler.include-port-in-node-name": "true" if settings.nodes > 1 else "false",
        "yarn.nodemanager.container-executor.class":
            "org.apache.hadoop.yarn.server.nodemanager.DefaultContainerExecutor",
        "yarn.nodemanager.resource.memory-mb": str(settings.memory),
        "yarn.nodemanager.resource.cpu-vcores": "32",
        f"yarn.nodemanager.resource-type.{_GPU}": "2",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "true",
        # With true the NodeManager leaves the limit to cgroups, which it does not use here.
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.container-monitor.interval-ms": "3000",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.0",
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
        "yarn.nodemanager.env-whitelist": ",".join(_ENVIRONMENT),
        "yarn.nodemanager.remote-app-log-dir": aggregated,
        "yarn.log-aggregation-enable": "true",
        "yarn.application.classpath": ",".join((*classes, str(settings.configuration))),
    }  # fmt: skip
    if settings.ha:
        values |= high_availability.build_yarn_properties(
            settings.host, settings.ports, settings.stock, settings.https
        )
    else:
        values |= {
            "yarn.resourcemanager.hostname": settings.host,
            **{f"yarn.resourcemanager.{_web(settings, key)}": _address(settings, f"rm{end}")
               for end, key in RESOURCEMANAGER_PORTS.items()},
            "yarn.resourcemanager.store.class":
                "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
            "yarn.resourcemanager.fs.state-store.uri": f"file://{directory}/rm",
        }  # fmt: skip
    if not settings.stock:
        values["yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"] = "200"
        # Each of these threads wakes up once a second, to look for a call.
        values |= {f"yarn.{name}.thread-count": str(number) for name, number in _THREADS.items()}
        values["yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms"] = "2000"
        # Five processes for each container, which list its folder into its logs.
        values["yarn.nodemanager.log-container-debug-info.enabled"] = "false"
    if settings.labels:
        values["yarn.node-labels.enabled"] = "true"
        values["yarn.node-labels.fs-store.root-dir"] = f"file://{directory}/rm/node-labels"
    return values


def _scheduler(settings: Settings) -> dict[str, str]:
    prefix = "yarn.scheduler.capacity"
    values = {
        f"{prefix}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        f"{prefix}.maximum-am-resource-percent": "1.0",
        f"{prefix}.root.queues": "default,low",
    }
    for queue, capacity in (("default", 80), ("low", 20)):
        values[f"{prefix}.root.{queue}.capacity"] = str(capacity)
        values[f"{prefix}.root.{queue}.maximum-capacity"] = "100"
        # One user may fill the queue up to its maximum.
        values[f"{prefix}.root.{queue}.user-limit-factor"] = "10"
        values[f"{prefix}.root.{queue}.state"] = "RUNNING"
    for label in sorted(set(settings.labels.values())):
        for queue in ("root", "root.default"):
            values[f"{prefix}.{queue}.accessible-node-labels.{label}.capacity"] = "100"
    if settings.labels:
        # A blank means no label; without the property the queue would have those of its parent.
        values[f"{prefix}.root.low.accessible-node-labels"] = " "
    if not settings.stock:
        # With Hadoop's value 1 sixteen containers take 20.7 s to start instead of 7.0 s.
        values[f"{prefix}.per-node-heartbeat.maximum-offswitch-assignments"] = "100"
    return values


def _address(settings: Settings, name: str) -> str:
    return f"{settings.host}:{settings.ports[name]}"


def _web(settings: Settings, key: str) -> str:
    return key.replace("webapp.", "webapp.https.") if settings.https else key


#: The file of a property by the beginning of its name, the longest first; all others stand in core-site.xml.
_FILES = {
    "yarn.scheduler.capacity.": "capacity-scheduler.xml", "yarn.": "yarn-site.xml", "dfs.": "hdfs-site.xml",
}  # fmt: skip


#: Suffix of a NodeManager's port names, and the property below ``yarn.nodemanager``.
_NODE_PORTS = {"": "address", "-localizer": "localizer.address", "-web": "webapp.address"}

#: The threads that answer calls, by the part of a daemon; Hadoop has 50 of each of the first three, 20 and 5.
_THREADS = {
    "resourcemanager.client": 8, "resourcemanager.scheduler.client": 8, "resourcemanager.resource-tracker.client": 4,
    "nodemanager.container-manager": 8, "nodemanager.localizer.client": 2,
}  # fmt: skip

#: Clients log warnings only; the daemons' command lines raise the level and name the audit log.
_LOG4J = """\
hadoop.root.logger=WARN,console
hdfs.audit.logger=WARN,none
log4j.rootLogger=${hadoop.root.logger}
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=${hdfs.audit.logger}
log4j.additivity.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=false
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.datanode.webhdfs=WARN
log4j.logger.http.requests.namenode=WARN
log4j.appender.none=org.apache.log4j.varia.NullAppender
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.appender.audit=org.apache.log4j.FileAppender
log4j.appender.audit.File=${ytf.minicluster}/logs/hdfs-audit.log
log4j.appender.audit.layout=org.apache.log4j.PatternLayout
log4j.appender.audit.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
