"""The daemons: list, start, find and stop them, and read the end of their logs."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import MiniClusterError
from . import processes
from .class_archive import DAEMONS, MASTER, class_path, use_archive
from .configuration import Settings, build_node_properties, node_names
from .high_availability import NAMENODES, RESOURCEMANAGERS, ZOOKEEPER
from .kdc import get_ticket, start_kdc
from .kerberos import HDFS
from .throwaway_keys import use_in_containers, use_in_resourcemanager
from .versions import find_version

#: The serial collector and the first compiler halve the memory and the start time of daemons.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
OPENS = "--add-opens=java.base/java.lang=ALL-UNNAMED"
KERBEROS_OPENS = "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
#: For Skein's application master, whose Netty makes a certificate at each start to try what OpenSSL can do: this saves
#: the 10,000 rounds that encrypt a key in a key store which is never written.
QUICK_TLS = ("-Dkeystore.pkcs12.keyPbeIterationCount=1",)

_HDFS = "org.apache.hadoop.hdfs.server"
_YARN = "org.apache.hadoop.yarn.server"
_LOG_TAIL_LINES = 12

#: The daemon that is not a JVM: the KDC of a secured cluster.
KDC = "kdc"


@dataclass(frozen=True)
class Daemon:
    """One JVM of the cluster.

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


def open_java(release: int) -> tuple[str, ...]:
    """Return the flag by which Hadoop gets access to Java's own classes; Java 8 does not have it, and needs none."""
    return (OPENS,) if release >= 9 else ()


def list_daemons(settings: Settings) -> tuple[Daemon, ...]:
    """Return the daemons of a cluster in the order of their start."""
    audit = "-Dhdfs.audit.logger=INFO,audit"
    opens = open_java(settings.java)
    hdfs_opens = opens if find_version(settings.version).hdfs_opens else ()
    namenodes = tuple(
        Daemon(name, "NameNode", f"{_HDFS}.namenode.NameNode", 256, (*hdfs_opens, audit), _number(settings, name))
        for name in settings.namenodes
    )
    hdfs = (
        *namenodes,
        Daemon("dn", "DataNode", f"{_HDFS}.datanode.DataNode", 192, hdfs_opens),
    )
    resourcemanagers = tuple(
        Daemon(name, "ResourceManager", f"{_YARN}.resourcemanager.ResourceManager", 384,
               (*opens, *use_in_resourcemanager(settings)), _number(settings, name))
        for name in settings.resourcemanagers
    )  # fmt: skip
    zookeeper = Daemon(
        ZOOKEEPER, "ZooKeeper", "org.apache.zookeeper.server.ZooKeeperServerMain", 128,
        arguments=(f"{settings.configuration}/zoo.cfg",),
    )  # fmt: skip
    nodes = tuple(
        Daemon(
            name, "NodeManager", f"{_YARN}.nodemanager.NodeManager", 384, opens,
            tuple(f"-D{key}={value}" for key, value in build_node_properties(settings, name).items()),
        )
        for name in node_names(settings.nodes)
    )  # fmt: skip
    kdc = (Daemon(KDC, "KDC", "", 0),) if settings.kerberos else ()
    return kdc + ((zookeeper,) if settings.ha else ()) + (() if settings.light else hdfs) + resourcemanagers + nodes


def _number(settings: Settings, name: str) -> tuple[str, ...]:
    """Return the argument that tells a daemon which one of a pair it is; both have the same host."""
    key = "dfs.ha.namenode.id" if name in NAMENODES else "yarn.resourcemanager.ha.id"
    return (f"-D{key}={name}",) if settings.ha else ()


def build_command(settings: Settings, daemon: Daemon) -> list[str]:
    """Return the command line of a daemon that is a JVM."""
    # A NodeManager with another class than Hadoop's cannot use the archive, which needs the jars first.
    first = f"{settings.additions}/classes:" if settings.additions and daemon.title == "NodeManager" else ""
    own = f"{settings.configuration}/{daemon.name}:" if settings.ha and daemon.name in RESOURCEMANAGERS else ""
    if settings.yarn_configuration and daemon.title in ("ResourceManager", "NodeManager"):
        own += f"{settings.local_files}:{settings.yarn_configuration}:"
    jars = class_path(settings.hadoop, settings.classes)
    return [
        f"{settings.java_home}/bin/java", f"-Xmx{daemon.heap}m", *JVM_FLAGS, *daemon.flags, *kerberos_flags(settings),
        *_marks(settings.directory, daemon.name),
        "-Dhadoop.root.logger=INFO,console", f"-Djava.io.tmpdir={settings.directory}/tmp",
        f"-XX:ErrorFile={settings.logs}/{daemon.name}-crash.log", "-XX:+ExitOnOutOfMemoryError",
        *use_archive(settings.classes, DAEMONS),
        # No jar has a file with the same name as one of our files.
        "-cp", f"{first}{':'.join(jars)}:{own}{settings.configuration}:{settings.pages}",
        daemon.main_class, *daemon.arguments,
    ]  # fmt: skip


def kerberos_flags(settings: Settings) -> tuple[str, ...]:
    """Return the flags by which a JVM finds the realm of a secured cluster."""
    if not settings.kerberos:
        return ()
    # Java reads KRB5_CONFIG nowhere. Hadoop's daemons share one service, and see replays where there are none.
    conf = f"-Djava.security.krb5.conf={settings.realm.krb5_conf}"
    opens = (KERBEROS_OPENS,) if find_version(settings.version).kerberos_opens and settings.java > 8 else ()
    return (conf, "-Dsun.security.krb5.rcache=none", *opens)


def build_environment(settings: Settings, environ: Mapping[str, str], cluster: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the daemons; variables on the NodeManager's white list reach containers.

    Parameters
    ----------
    settings : Settings
        The cluster.
    environ : mapping
        The caller's environment; variables about another Hadoop or for every JVM are left out.
    cluster : mapping
        The variables of this cluster.
    """
    foreign = ("KRB5", "HADOOP_", "YARN_", "HDFS_", "CLASSPATH", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS",
               "_JAVA_OPTIONS")  # fmt: skip
    kept = {name: value for name, value in environ.items() if not name.startswith(foreign)}
    own = {name: value for name, value in cluster.items() if not name.startswith(("KRB5", "JDK_JAVA_OPTIONS"))}
    # Not by yarn.nodemanager.admin-env: YARN would join that to a container's own value with ":".
    options = {} if settings.stock else {"JDK_JAVA_OPTIONS": " ".join(JVM_FLAGS)}
    # Not in JDK_JAVA_OPTIONS, which an application sets for its master.
    tools = [*kerberos_flags(settings), *(() if settings.stock else use_archive(settings.classes, MASTER))]
    if settings.java > 8 and not settings.stock:
        tools += QUICK_TLS
    tools += use_in_containers(settings)
    if tools:
        options["JAVA_TOOL_OPTIONS"] = " ".join(tools)
    return {"LANG": "C.UTF-8"} | kept | own | options


def start(settings: Settings, daemon: Daemon, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a daemon in a session of its own; its log is ``logs/<name>.log``."""
    if daemon.name == KDC:
        return start_kdc(settings, environ, _marks(settings.directory, KDC))
    with (settings.logs / f"{daemon.name}.log").open("ab") as log:
        return subprocess.Popen(
            build_command(settings, daemon),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=dict(environ), cwd=settings.directory, start_new_session=True,
        )  # fmt: skip


def format_namenode(settings: Settings, environ: Mapping[str, str]) -> None:
    """Format the NameNode's folder, and copy it for the second NameNode of a pair.

    Raises
    ------
    MiniClusterError
        The NameNode refused; the message ends with the last lines of its log.
    """
    formatter = Daemon(
        "format", "NameNode -format", f"{_HDFS}.namenode.NameNode", 256,
        open_java(settings.java), (*_number(settings, "nn"), "-format", "-nonInteractive", "-force"),
    )  # fmt: skip
    # An interrupted start may have left a formatting process behind.
    stop(settings.directory, filter(None, [find(settings.directory, formatter.name)]), 0.0)
    process = start(settings, formatter, environ)
    try:
        code = process.wait(timeout=120)
    except subprocess.TimeoutExpired as error:
        raise MiniClusterError(f"formatting HDFS did not end\n{log_tail(settings.directory, 'format')}") from error
    finally:
        process.kill()
        process.wait()
    if settings.ha and code == 0:
        first, second = (settings.directory / name for name in settings.namenodes)
        shutil.copytree(first, second)
    if code != 0:
        raise MiniClusterError(f"HDFS was not formatted (exit {code})\n{log_tail(settings.directory, 'format')}")


def make_active(settings: Settings, name: str) -> None:
    """Make a NameNode active; the other one must not be.

    Raises
    ------
    MiniClusterError
        It did not become active; the message has the command's answer.
    """
    command = [f"{settings.shims}/hdfs", "haadmin", "-transitionToActive", "--forceactive", name]
    environ = {**os.environ, "JAVA_HOME": str(settings.java_home), "HADOOP_CONF_DIR": str(settings.configuration)}
    if settings.kerberos:
        environ |= get_ticket(settings, os.environ, HDFS)
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                             env=environ, timeout=120)  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise MiniClusterError(f"{name} did not become active in 120 s; see {settings.logs}") from error
    if ran.returncode != 0:
        raise MiniClusterError(f"{name} did not become active (exit {ran.returncode}): {ran.stderr.strip()[-2000:]}")


def find(directory: Path, name: str) -> int | None:
    """Return the pid of a daemon, or None if it does not run."""
    found = processes.find_by_arguments(_marks(directory, name))
    # A forked process has the daemon's command line until it runs a container's shell, and may have a lower pid.
    return next((pid for pid in found if processes.parent(pid) not in found), None)


def find_all(directory: Path) -> tuple[int, ...]:
    """Return the pids of all processes that were started for the cluster in this folder."""
    return processes.find_by_arguments(_marks(directory))


def stop(directory: Path, pids: Iterable[int], seconds: float) -> None:
    """Stop daemons: send SIGTERM to all, and after `seconds` SIGKILL to those that still run."""
    targets = set(pids)

    def left() -> set[int]:
        return targets & set(find_all(directory))

    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 10.0)):
        for pid in left():
            processes.send(pid, number)
            # A stopped process handles the signal only after SIGCONT.
            processes.send(pid, signal.SIGCONT)
        if processes.wait_until(lambda: not left(), patience):
            return
    raise MiniClusterError(f"processes of {directory} do not end: {', '.join(map(str, sorted(left())))}")


def end_containers(directory: Path) -> None:
    """Kill the processes that still run in containers of this cluster, and their process groups.

    YARN sets the variable LOCAL_DIRS in each container, and child processes inherit it.
    """
    mark = f"LOCAL_DIRS={directory}/"

    def end() -> bool:
        left = processes.find_by_environment(mark)
        processes.kill_groups(left)
        return not left

    if not processes.wait_until(end, 10.0):
        raise MiniClusterError(f"processes of containers do not end: {processes.find_by_environment(mark)}")


def log_tail(directory: Path, name: str) -> str:
    """Return the path of a daemon's log and its last lines, indented."""
    path = directory / "logs" / f"{name}.log"
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 16384))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        lines = []
    return "\n".join([f"the last lines of {path}:", *(f"  {line}" for line in lines[-_LOG_TAIL_LINES:])])


def _marks(directory: Path, name: str | None = None) -> tuple[str, ...]:
    cluster = f"-Dytf.minicluster={directory}"
    return (cluster,) if name is None else (f"-Dproc_{name}", cluster)
