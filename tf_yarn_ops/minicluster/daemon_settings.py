"""The settings of a cluster, its daemons, and Hadoop's configuration files, without touching a disk.

A subclass of `Settings` describes another cluster, such as the tests' own with Kerberos and pairs of daemons.
"""

import os
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import ClassVar, cast
from xml.sax.saxutils import escape

#: Authority of the view file system of a light cluster.
VIEWFS = "viewfs://minicluster"

#: The most NodeManagers. Each is a JVM, and no test needs more.
MAX_NODES = 8

#: The serial collector and the first compiler halve the memory and the start time of a JVM.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
#: Hadoop needs access to Java's own classes.
OPENS = "--add-opens=java.base/java.lang=ALL-UNNAMED"

#: The resources of a node besides memory and vcores, which are only counted.
_RESOURCES = {"yarn.io/gpu": 2, "yarn.io/gpu-a100": 2}
_ENVIRONMENT = (
    "JAVA_HOME", "HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_CONF_DIR", "HADOOP_YARN_HOME", "HADOOP_HOME",
    "PATH", "LANG", "TZ", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS",
)  # fmt: skip
_SERVER = "org.apache.hadoop.{}.server"


@dataclass(frozen=True)
class Daemon:
    """One process of the cluster, as a rule a JVM.

    Attributes
    ----------
    name : str
        ``nn``, ``dn``, ``rm``, ``nm``, ``nm2`` ...
    title : str
        Hadoop's name of the daemon.
    main_class : str
        Java class to run.
    heap : int
        Maximum heap, MiB.
    flags : tuple of str
        Further flags of the JVM.
    arguments : tuple of str
        Words after the main class.
    """

    name: str
    title: str
    main_class: str
    heap: int
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """The values that determine a cluster, and what follows from them.

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
    memory : int
        Memory that each NodeManager offers to containers, MiB.
    ports : mapping of str to int
        A port for each of the `port_names`.
    nodes : int
        Number of NodeManagers.
    light : bool
        Leave HDFS out.
    properties : mapping of str to str
        Further Hadoop properties, which win over all others.
    """

    #: The kind of ``state.json``.
    schema: ClassVar[str] = "minicluster 2"

    directory: Path
    hadoop: Path
    java_home: Path
    user: str
    memory: int
    ports: Mapping[str, int] = field(default_factory=dict)
    nodes: int = 1
    light: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The name of this machine in addresses."""
        return "127.0.0.1"

    @property
    def folders(self) -> Mapping[str, str]:
        """The folders of the file system that jobs need, with their permissions."""
        return {"user": "755", "tmp": "1777", "tmp/logs": "1777", f"user/{self.user}": "755"}

    @property
    def superuser(self) -> str:
        """The superuser of HDFS."""
        return self.user

    @property
    def configuration(self) -> Path:
        return self.directory / "conf"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def pages(self) -> Path:
        return self.directory / "pages"

    @property
    def shims(self) -> Path:
        return self.directory / "bin"

    @property
    def default_filesystem(self) -> str:
        return VIEWFS if self.light else f"hdfs://{self.address('nn')}"

    @property
    def resourcemanagers(self) -> tuple[str, ...]:
        """The names of the ResourceManagers."""
        return ("rm",)

    @property
    def namenodes(self) -> tuple[str, ...]:
        """The names of the NameNodes; empty for a light cluster."""
        return () if self.light else ("nn",)

    @property
    def port_names(self) -> tuple[str, ...]:
        """The names of all ports on which the daemons listen."""
        return (
            *(f"{name}{end}" for name in self.resourcemanagers for end in RESOURCEMANAGER_PORTS),
            *(f"{name}{end}" for name in self.namenodes for end in ("", "-web")),
            *(() if self.light else ("dn", "dn-web", "dn-ipc")),
            *(f"{node}{end}" for node in node_names(self.nodes) for end in _NODE_PORTS),
        )

    def address(self, name: str) -> str:
        """Return the ``host:port`` of a port."""
        return f"{self.host}:{self.ports[name]}"

    def web_address(self, name: str) -> str:
        """Return the URL of a daemon's pages."""
        return f"http://{self.address(f'{name}-web')}"

    def active_page(self, names: Sequence[str]) -> str:
        """Return the URL of the pages of the active one of several daemons of a kind, or of the first."""
        return self.web_address(names[0])

    def send(self, request: urllib.request.Request, seconds: float) -> HTTPResponse:
        """Send a request to a daemon's page as the superuser; past proxies, because the daemons run on this machine."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return cast(HTTPResponse, opener.open(request, timeout=seconds))

    def list_daemons(self) -> tuple[Daemon, ...]:
        """Return the daemons in the order of their start."""
        hdfs, yarn = _SERVER.format("hdfs"), _SERVER.format("yarn")
        audit = ("-Dhdfs.audit.logger=INFO,audit",)
        return (
            *(Daemon(name, "NameNode", f"{hdfs}.namenode.NameNode", 256, audit) for name in self.namenodes),
            *([] if self.light else [Daemon("dn", "DataNode", f"{hdfs}.datanode.DataNode", 192)]),
            *(Daemon(name, "ResourceManager", f"{yarn}.resourcemanager.ResourceManager", 384, (OPENS,))
              for name in self.resourcemanagers),
            *(Daemon(name, "NodeManager", f"{yarn}.nodemanager.NodeManager", 384, (OPENS,),
                     tuple(f"-D{key}={value}" for key, value in self.build_node_properties(name).items()))
              for name in node_names(self.nodes)),
        )  # fmt: skip

    def class_path(self, daemon: Daemon) -> tuple[str, ...]:
        """Return the class path of a daemon."""
        return (f"{self.hadoop}/jars/*", str(self.configuration), str(self.pages))

    @property
    def client_jars(self) -> tuple[Path, ...]:
        """Folders with jars that programs on this cluster need."""
        return (self.hadoop / "jars",)

    @property
    def tool_jars(self) -> tuple[str, ...]:
        """The jars of the shims' JVMs."""
        return (f"{self.hadoop}/jars/*",)

    @property
    def client_flags(self) -> tuple[str, ...]:
        """Flags for the JVMs of the shims."""
        return (*JVM_FLAGS, OPENS)

    @property
    def container_variables(self) -> Mapping[str, str]:
        """Variables of the NodeManagers, which pass those of their white list on to containers."""
        # Not by yarn.nodemanager.admin-env: YARN would join that to a container's own value with ":".
        return {"JDK_JAVA_OPTIONS": " ".join(JVM_FLAGS)}

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which daemons and programs find the cluster; the caller's PATH comes after the shims."""
        homes = ("HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_YARN_HOME")
        others = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry != str(self.shims)]
        return {
            "PATH": os.pathsep.join([str(self.shims), *others]),
            "JAVA_HOME": str(self.java_home),
            "HADOOP_CONF_DIR": str(self.configuration),
            **dict.fromkeys(homes, str(self.directory)),
            "YTF_RESOURCEMANAGER": ",".join(map(self.web_address, self.resourcemanagers)),
        }

    def build_sites(self) -> dict[str, dict[str, str]]:
        """Return Hadoop's properties by the name of their file."""
        sites = {
            "core-site.xml": _core(self),
            "yarn-site.xml": _yarn(self),
            "capacity-scheduler.xml": _scheduler(),
            "resource-types.xml": {"yarn.resource-types": ",".join(_RESOURCES)},
        }
        return sites if self.light else sites | {"hdfs-site.xml": _hdfs(self)}

    def build_files(self) -> dict[str, str]:
        """Return the files of the configuration folder: text by file name."""
        sites = self.build_sites()
        for name, value in self.properties.items():
            sites.setdefault(file_of(name), {})[name] = value
        return {name: render_xml(values) for name, values in sites.items()} | {"log4j.properties": _LOG4J}

    def build_node_properties(self, node: str) -> dict[str, str]:
        """Return the properties of one NodeManager, which are passed as ``-D`` arguments after the main class."""
        folder = self.directory / node
        return {
            **{f"yarn.nodemanager.{key}": self.address(node + end) for end, key in _NODE_PORTS.items()},
            "yarn.nodemanager.local-dirs": str(folder / "local"),
            "yarn.nodemanager.log-dirs": str(folder / "logs"),
            "yarn.nodemanager.recovery.dir": str(folder / "recovery"),
        }


def node_names(nodes: int) -> tuple[str, ...]:
    """Return the names of the NodeManagers: ``nm``, ``nm2``, ``nm3`` ..."""
    return tuple("nm" if number == 1 else f"nm{number}" for number in range(1, nodes + 1))


def render_xml(values: Mapping[str, str]) -> str:
    """Return the text of a Hadoop configuration file."""
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            "<configuration>",
            *(
                f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
                for name, value in values.items()
            ),
            "</configuration>",
            "",
        ]
    )


def file_of(name: str) -> str:
    """Return the file of a Hadoop property."""
    return next((file for prefix, file in _FILES.items() if name.startswith(prefix)), "core-site.xml")


def _core(settings: Settings) -> dict[str, str]:
    # Skein fails with file:/// as the default file system.
    viewfs = {"fs.viewfs.mounttable.minicluster.linkMergeSlash": f"file://{settings.directory}/files"}
    return {
        "fs.defaultFS": settings.default_filesystem,
        "hadoop.tmp.dir": str(settings.directory / "tmp"),
        **(viewfs if settings.light else {}),
    }


def _hdfs(settings: Settings) -> dict[str, str]:
    return {
        "dfs.namenode.rpc-address": settings.address("nn"),
        "dfs.namenode.http-address": settings.address("nn-web"),
        "dfs.namenode.name.dir": f"file://{settings.directory}/nn",
        "dfs.namenode.safemode.extension": "0",
        "dfs.datanode.address": settings.address("dn"),
        "dfs.datanode.http.address": settings.address("dn-web"),
        "dfs.datanode.ipc.address": settings.address("dn-ipc"),
        # WebHDFS redirects clients to this name; the machine's own name may belong to another interface.
        "dfs.datanode.hostname": settings.host,
        "dfs.datanode.data.dir": f"file://{settings.directory}/dn",
        # A client that closes a file too early asks the NameNode again after 400 ms: half of a submission's time.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
        # Each of these threads wakes up once a second, and this look for deleted blocks a hundred times.
        "dfs.namenode.handler.count": "4",
        "dfs.datanode.handler.count": "2",
        "dfs.namenode.block.deletion.unlock.interval.ms": "1000",
        "dfs.replication": "1",
        "dfs.permissions.enabled": "true",
    }


def _yarn(settings: Settings) -> dict[str, str]:
    directory = settings.directory
    return {
        "yarn.resourcemanager.hostname": settings.host,
        **{f"yarn.resourcemanager.{key}": settings.address(f"rm{end}") for end, key in RESOURCEMANAGER_PORTS.items()},
        "yarn.resourcemanager.store.class":
            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
        "yarn.resourcemanager.fs.state-store.uri": f"file://{directory}/rm",
        "yarn.resourcemanager.connect.retry-interval.ms": "1000",
        "yarn.resourcemanager.recovery.enabled": "true",
        # Hadoop's default is one folder in /tmp for all clusters of a user.
        "yarn.node-attribute.fs-store.root-dir": f"file://{directory}/rm/node-attributes",
        "yarn.resourcemanager.scheduler.class":
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
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
        **{f"yarn.nodemanager.resource-type.{name}": str(amount) for name, amount in _RESOURCES.items()},
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "true",
        # With true the NodeManager leaves the limit to cgroups, which it does not use here.
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.container-monitor.interval-ms": "3000",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.0",
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
        "yarn.nodemanager.env-whitelist": ",".join(_ENVIRONMENT),
        "yarn.nodemanager.remote-app-log-dir": f"file://{directory}/files/tmp/logs" if settings.light else "/tmp/logs",
        "yarn.log-aggregation-enable": "true",
        "yarn.application.classpath": f"{settings.hadoop}/jars/*,{settings.configuration}",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        # Each of these threads wakes up once a second, to look for a call.
        **{f"yarn.{name}.thread-count": str(number) for name, number in _THREADS.items()},
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "2000",
        # Five processes for each container, which list its folder into its logs.
        "yarn.nodemanager.log-container-debug-info.enabled": "false",
    }  # fmt: skip


def _scheduler() -> dict[str, str]:
    prefix = "yarn.scheduler.capacity"
    values = {
        f"{prefix}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        f"{prefix}.maximum-am-resource-percent": "1.0",
        f"{prefix}.root.queues": "default,low",
        # With Hadoop's value 1 sixteen containers take 20.7 s to start instead of 7.0 s.
        f"{prefix}.per-node-heartbeat.maximum-offswitch-assignments": "100",
    }
    for queue, capacity in (("default", 80), ("low", 20)):
        values |= {
            f"{prefix}.root.{queue}.capacity": str(capacity),
            f"{prefix}.root.{queue}.maximum-capacity": "100",
            # One user may fill the queue up to its maximum.
            f"{prefix}.root.{queue}.user-limit-factor": "10",
            f"{prefix}.root.{queue}.state": "RUNNING",
        }
    return values


#: The file of a property by the beginning of its name, the longest first; all others stand in core-site.xml.
_FILES = {
    "yarn.scheduler.capacity.": "capacity-scheduler.xml", "yarn.": "yarn-site.xml", "dfs.": "hdfs-site.xml",
}  # fmt: skip


#: Ports of a ResourceManager by the ends of their names, and the properties below ``yarn.resourcemanager``.
RESOURCEMANAGER_PORTS = {
    "": "address", "-scheduler": "scheduler.address", "-tracker": "resource-tracker.address", "-admin": "admin.address",
    "-web": "webapp.address",
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
