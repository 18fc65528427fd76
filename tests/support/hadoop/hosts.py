"""`HostsCluster`: a Hadoop whose daemons run on several hosts, and the faults of the network between them.

Each host is a process that holds Linux namespaces: a network, a host name, and mounts. The daemons and programs of a
host enter them. The namespaces end with the last process in them, so that nothing is left on the machine, whatever ends
a run, and two clusters never meet.

| host | runs | addresses |
|---|---|---|
| ``master`` | ResourceManager, NameNode; the KDC of a secured cluster | 10.77.0.10, 2001:db8:77::10 |
| ``n1``, ``n2`` ... | a NodeManager and a DataNode each, on disks of their own; containers have 256 MiB | 10.77.0.11 ..., 2001:db8:77::11 ... |
| ``edge`` | clients; reaches ports 8088, 9870 and 88 of masters, 8042, 9864 and 14000 (HttpFS) of the nodes | 10.77.0.20 |
| ``master2`` | with ``ha`` the second ResourceManager and NameNode | 10.77.0.2, 2001:db8:77::2 |
| ``master3`` | with ``ha`` ZooKeeper, and the JournalNode with the NameNodes' shared edits | 10.77.0.3, 2001:db8:77::3 |
| ``switch`` | the bridge between them, and a name server; reaches every port, for the rig's own requests | 10.77.0.1 |
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import daemons, health
from tf_yarn_ops.minicluster import marked_processes as processes
from tf_yarn_ops.minicluster.daemon_settings import MAX_NODES, Daemon, node_names

from .cluster import HadoopCluster
from .high_availability import NAMENODES, RESOURCEMANAGERS, SERVICE, ZOOKEEPER
from .kerberos import Realm
from .settings import KDC, HadoopSettings, by_https

DOMAIN = "lab.test"
#: Programs that the hosts need, besides the rights of root.
PROGRAMS = ("ip", "nft", "nsenter", "unshare")
_HOST = "host"
JOURNALNODE = "jn"
_NET, _NET6 = "10.77.0", "2001:db8:77:"
#: Hadoop's own ports, by the names of this project.
_PORTS = {
    "nn": 8020, "nn-web": 9870, "dn": 9866, "dn-web": 9864, "dn-ipc": 9867, "rm": 8032, "rm-scheduler": 8030,
    "rm-tracker": 8031, "rm-admin": 8033, "rm-web": 8088, "nm": 8041, "nm-localizer": 8040, "nm-web": 8042, KDC: 88,
    ZOOKEEPER: 2181, JOURNALNODE: 8485, f"{JOURNALNODE}-web": 8480,
}  # fmt: skip
_CLONE_NEWNET = 0x40000000
_OTHER_CLOCK = Path(__file__).with_name("other_clock.c")
_NAME_SERVER = Path(__file__).with_name("name_server.py")
_UP_SECONDS = 30.0
_PAUSE = "import pathlib, signal, sys; pathlib.Path(sys.argv[1]).touch(); signal.pause()"

# Arguments: host, its number, the pid of the switch (0 for the switch itself), the cluster's folder, the command, marks.
_SCRIPT = f"""\
set -e
host=$1 number=$2 switch=$3 folder=$4
shift 4
ip link set lo up
if [ "$switch" = 0 ]; then
  ip link add br0 type bridge
  ip addr add {_NET}.1/24 dev br0
  ip link set br0 up
else
  hostname "$host.{DOMAIN}"
  mount --bind "$folder/$host/hosts" /etc/hosts
  mount --bind "$folder/$host/nsswitch.conf" /etc/nsswitch.conf
  mount --bind "$folder/$host/resolv.conf" /etc/resolv.conf
  mount --bind "$folder/$host/disk" "$folder/disk"
  mount --bind "$folder/$host/conf" "$folder/conf"
  mkdir -p "$folder/disk/local"
  mount -t tmpfs -o size=256m none "$folder/disk/local"
  for other in "$folder"/*/hosts; do
    [ "$other" = "$folder/$host/hosts" ] || mount -t tmpfs -o size=1m none "${{other%/hosts}}"
  done
  nsenter -t "$switch" -n ip link add "to-$host" type veth peer name eth0 netns $$
  nsenter -t "$switch" -n ip link set dev "to-$host" master br0 up
  ip addr add {_NET}.$number/24 dev eth0
  [ "$host" = edge ] || ip addr add {_NET6}:$number/64 dev eth0 nodad
  ip link set eth0 up
  nft 'add table inet faults'
  nft 'add chain inet faults incoming {{ type filter hook input priority 0; }}'
fi
if [ "$host" = edge ]; then
  nft 'add table inet firewall'
  nft 'add chain inet firewall outgoing {{ type filter hook output priority 0; }}'
  nft 'add rule inet firewall outgoing ip daddr {{ {_NET}.2, {_NET}.3, {_NET}.10 }} tcp dport != {{ 88, 8088, 9870 }} drop'
  nft 'add rule inet firewall outgoing ip daddr {_NET}.11-{_NET}.19 tcp dport != {{ 8042, 9864, 14000 }} drop'
fi
exec "$@"
"""


def missing_for_hosts() -> str | None:
    """Return what this machine lacks for a cluster of several hosts; None if it has all."""
    if os.geteuid() != 0:
        return "root, which makes network namespaces"
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    absent = [name for name in PROGRAMS if not shutil.which(name, path=search)]
    return f"{', '.join(absent)}: install iproute2, nftables and util-linux" if absent else None


@dataclass(frozen=True)
class HostsSettings(HadoopSettings):
    """The values that determine a cluster of several hosts; ``nodes`` is their number."""

    schema = "hosts 1"

    @property
    def hosts(self) -> Mapping[str, int]:
        """The last part of each host's address, by the host's name."""
        nodes = {f"n{number}": 10 + number for number in range(1, self.nodes + 1)}
        others = {"master2": 2, "master3": 3} if self.ha else {}
        return {"master": 10, **others, **nodes, "edge": 20}

    @property
    def port_names(self) -> tuple[str, ...]:
        return ()  # each host has all of them for itself

    @property
    def host(self) -> str:
        return full_name("master")

    @property
    def realm(self) -> Realm:
        # For any number of nodes, so that a later start may change it.
        return replace(
            super().realm,
            hosts=tuple(full_name(f"n{number}" if number else "master") for number in range(MAX_NODES + 1)),
        )

    @property
    def kdc_address(self) -> str:
        return f"{_NET}.{self.hosts['master']}:{_PORTS[KDC]}"

    @property
    def zookeeper(self) -> str:
        return self.address(ZOOKEEPER)

    @property
    def shared_edits(self) -> str:
        # By its address, as the first NameNode's folder is formatted where hosts have no names.
        host = host_of(JOURNALNODE)
        return f"qjournal://{_NET}.{self.hosts[host]}:{_PORTS[JOURNALNODE]}/{SERVICE}"

    def enter_host_of(self, name: str) -> tuple[str, ...]:
        return self.enter(host_of(name))

    def enter(self, host: str) -> tuple[str, ...]:
        """Return the words before a command that is to run on a host."""
        return ("nsenter", "-t", str(daemons.find(self.directory, host)), "--net", "--uts", "--mount")

    def address(self, name: str) -> str:
        daemon, _, end = name.partition("-")
        kind = daemon.rstrip("0123456789")
        return f"{full_name(host_of(daemon))}:{_PORTS['-'.join(filter(None, (kind, end)))]}"

    def send(self, request: urllib.request.Request, seconds: float) -> Any:
        host, _, port = request.host.partition(":")
        request.host = f"{_NET}.{self.hosts[host.partition('.')[0]]}:{port}"
        with network_of(daemons.find(self.directory, "switch")):
            return super().send(request, seconds)

    def list_daemons(self) -> tuple[Daemon, ...]:
        hosts = [Daemon(name, _HOST, "", 0) for name in ("switch", *self.hosts)]
        journal = Daemon(
            JOURNALNODE, "JournalNode", "org.apache.hadoop.hdfs.qjournal.server.JournalNode", 128
        )  # fmt: skip
        journals = [self._extended(journal)] if self.ha else []
        known = super().list_daemons()
        datanode = next(daemon for daemon in known if daemon.name == "dn")
        others = [replace(datanode, name=f"dn{name[2:]}") for name in node_names(self.nodes)[1:]]
        return (*hosts, *journals, *known, *others)

    def build_node_properties(self, node: str) -> dict[str, str]:
        return {}

    def build_sites(self) -> dict[str, dict[str, str]]:
        sites = super().build_sites()
        hdfs, yarn, disk = sites["hdfs-site.xml"], sites["yarn-site.xml"], self.directory / "disk"
        page = by_https if self.https else str
        del hdfs["dfs.datanode.hostname"]
        any_address = {
            f"dfs.datanode.{key}": f"0.0.0.0:{_PORTS[name]}"
            for key, name in (("address", "dn"), ("http.address", "dn-web"), ("ipc.address", "dn-ipc"))
        }
        hdfs |= {page(name): value for name, value in any_address.items()} | {
            "dfs.datanode.data.dir": f"file://{disk}/dn",
            "dfs.replication": "2",
        }
        # A NameNode believes that a dead DataNode lives, and lets it copy blocks: it takes another one after 10 s.
        hdfs["dfs.namenode.reconstruction.pending.timeout-sec"] = "10"
        if self.ha:
            hdfs["dfs.journalnode.edits.dir"] = f"{self.directory}/{JOURNALNODE}"
        yarn |= {
            "yarn.nodemanager.address": "0.0.0.0:8041",
            "yarn.nodemanager.localizer.address": "0.0.0.0:8040",
            page("yarn.nodemanager.webapp.address"): "0.0.0.0:8042",
            "yarn.nodemanager.local-dirs": f"{disk}/local",
            "yarn.nodemanager.log-dirs": f"{disk}/logs",
            "yarn.nodemanager.recovery.dir": f"{disk}/recovery",
            "yarn.scheduler.include-port-in-node-name": "false",
            # A container has the clock of its NodeManager.
            "yarn.nodemanager.env-whitelist": f"{yarn['yarn.nodemanager.env-whitelist']},LD_PRELOAD,OTHER_CLOCK",
            "yarn.resourcemanager.nodes.exclude-path": str(self.directory / "excluded"),
            # A node is healthy again at the next look; Hadoop waits for two minutes.
            "yarn.nodemanager.disk-health-checker.interval-ms": "10000",
        }
        # One container for each node's heartbeat, as Hadoop has it: tasks are spread over the hosts.
        del sites["capacity-scheduler.xml"]["yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments"]
        return sites


def set_by_clock(folder: Path, seconds: int) -> list[str]:
    """Return the variables, as words of ``env``, of programs whose clock is ahead by seconds; below 0 behind.

    The folder gets the library that changes it.
    """
    library = folder / "other_clock.so"
    if not library.exists():
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, _OTHER_CLOCK], check=True)
    return [f"LD_PRELOAD={library}", f"OTHER_CLOCK={seconds}"]


def full_name(host: str) -> str:
    """Return the name by which hosts know each other."""
    return f"{host}.{DOMAIN}"


def host_of(daemon: str) -> str:
    """Return the host of a daemon: ``n2`` for ``nm2`` and ``dn2``."""
    if daemon.rstrip("0123456789") in ("nm", "dn"):
        return f"n{daemon[2:] or 1}"
    if daemon in (ZOOKEEPER, JOURNALNODE):
        return "master3"
    return "master2" if daemon in (RESOURCEMANAGERS[1], NAMENODES[1]) else "master"


class HostsCluster(HadoopCluster):
    """A real Hadoop on several hosts of this machine.

    Parameters
    ----------
    directory, nodes, properties, progress, kerberos, https, ticket_lifetime, ha
        As for `HadoopCluster`; each node is a host. With ``ha``, without Kerberos and HTTPS, there are three masters.
    """

    settings_type: ClassVar[type[HadoopSettings]] = HostsSettings
    settings: HostsSettings

    def run(self, host: str, words: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run a program on a host to its end, as `subprocess.run` does; its output is text."""
        return subprocess.run(self.on(host, words), **{"text": True, "capture_output": True, **options})

    def start(self, host: str, words: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
        """Start a program on a host, as `subprocess.Popen` does; its output is text."""
        return subprocess.Popen(self.on(host, words), **{"text": True, "stdout": subprocess.PIPE, **options})

    def on(self, host: str, words: Sequence[str]) -> list[str]:
        """Return the command that runs a program on a host; it begins in the host's own folder."""
        own = [f"HOME={self.directory / host}", *self._clocks.get(host, ())]
        return [*self.settings.enter(host), "env", "-C", str(self.directory / host), *own, *words]

    @cached_property
    def _clocks(self) -> dict[str, list[str]]:
        """Variables of all that starts on a host whose clock is another."""
        return {}

    def set_clock(self, host: str, seconds: int) -> None:
        """Set the clock of all that starts on a host from now on.

        Parameters
        ----------
        host : str
        seconds : int
            Ahead of the clock of this machine; below 0 behind it.
        """
        self._clocks[host] = set_by_clock(self.directory, seconds) if seconds else []

    def unplug(self, host: str) -> None:
        """Cut a host off from all others."""
        self._configure("switch", "ip", "link", "set", "dev", f"to-{host}", "down")

    def plug(self, host: str) -> None:
        """Connect a host that was unplugged."""
        self._configure("switch", "ip", "link", "set", "dev", f"to-{host}", "up")

    def block(self, host: str, peer: str, ports: str = "1-65535", verdict: str = "drop") -> None:
        """Let a host refuse what a peer sends to its TCP ports; answers to the host are refused too for all ports.

        Parameters
        ----------
        host, peer : str
        ports : str, optional
            As nft takes them. Default: all, which cuts the two off from each other.
        verdict : str, optional
            ``drop`` or ``reject``.
        """
        rule = f"add rule inet faults incoming ip saddr {_NET}.{self.settings.hosts[peer]} tcp dport {ports} {verdict}"
        self._configure(host, "nft", rule)

    def unblock(self, host: str) -> None:
        """Let a host take again what all others send."""
        self._configure(host, "nft", "flush chain inet faults incoming")

    def set_names(self, host: str, addresses: Mapping[str, Sequence[str]]) -> None:
        """Change the addresses that names have on a host; all other names keep theirs.

        Parameters
        ----------
        host : str
        addresses : mapping of str to sequence of str
            Addresses by the first part of a name, such as ``n1``; none: the name is unknown.
        """
        known = {name: [f"{_NET}.{number}"] for name, number in self.settings.hosts.items()}
        lines = ["127.0.0.1 localhost"]
        for name, found in {**addresses, **known, **addresses}.items():  # a reverse lookup finds the first one
            lines += [f"{address} {full_name(name)} {name}" for address in found]
        self._set_lookup(host, "files", lines)

    def use_dns(self, host: str) -> None:
        """Let a host look up names in DNS, which knows no name of an address; `set_names` ends it."""
        self._set_lookup(host, "files dns", ["127.0.0.1 localhost"])

    def _set_lookup(self, host: str, order: str, lines: Sequence[str]) -> None:
        # Not by a rename: the host has mounted these very files.
        (self.directory / host / "nsswitch.conf").write_text(f"passwd: files\ngroup: files\nhosts: {order}\n")
        (self.directory / host / "hosts").write_text("\n".join(lines) + "\n")

    def set_own_name(self, host: str, name: str, address: str | None = None) -> None:
        """Change the name of a host, which the others do not learn.

        Parameters
        ----------
        host, name : str
        address : str, optional
            What the name leads to on the host. Default: the address by which the others reach it.
        """
        self._configure(host, "hostname", name)
        known = self.directory / host / "hosts"
        own = f"{address or f'{_NET}.{self.settings.hosts[host]}'} {name}\n"
        known.write_text(own + known.read_text())

    def decommission(self, *nodes: str, grace: int = 0) -> None:
        """Take nodes out of service, and all others into it.

        Parameters
        ----------
        *nodes : str
            Hosts.
        grace : int, optional
            Seconds for which running containers may go on.
        """
        (self.directory / "excluded").write_text("".join(f"{full_name(node)}\n" for node in nodes))
        yarn = f"{self.settings.shims}/yarn"
        environ = {
            **os.environ, "JAVA_HOME": str(self.settings.java_home), "HADOOP_CONF_DIR": str(self.settings.configuration)
        }  # fmt: skip
        self._configure(
            "master", yarn, "rmadmin", "-refreshNodes", *(["-g", str(grace), "-server"] if grace else []), env=environ
        )

    def address6(self, host: str) -> str:
        """Return the IPv6 address of a host."""
        return f"{_NET6}:{self.settings.hosts[host]}"

    def processes_on(self, host: str, application_id: str) -> list[int]:
        """Return the processes of an application's containers that run on a host."""
        network = os.stat(f"/proc/{self.pid(host)}/ns/net").st_ino
        found = processes.find_by_environment(f"YTF_APPLICATION_ID={application_id}")
        return [pid for pid in found if _network(pid) == network]

    def _configure(self, host: str, *words: str, **options: Any) -> None:
        ran = self.run(host, words, **options)
        if ran.returncode:
            raise MiniClusterError(f"{' '.join(words)} on {host}: {ran.stderr.strip()}")

    def _install(self) -> HostsSettings:
        if missing := missing_for_hosts():
            raise MiniClusterError(f"a cluster of several hosts needs {missing}")
        if self._wanted.get("ha") and (self._wanted.get("kerberos") or self._wanted.get("https")):
            raise MiniClusterError("pairs on several hosts (--ha) run without Kerberos and HTTPS")
        settings = super()._install()
        assert isinstance(settings, HostsSettings)
        (self.directory / "disk").mkdir(exist_ok=True)
        (settings.pages / "webapps" / "journal").mkdir(exist_ok=True)  # Hadoop's jars have no pages of it
        (self.directory / "excluded").write_text("")
        for host in settings.hosts:
            folder = self.directory / host
            shutil.rmtree(folder / "conf", ignore_errors=True)
            shutil.copytree(settings.configuration, folder / "conf")
            (folder / "disk").mkdir(exist_ok=True)
            (folder / "resolv.conf").write_text(f"search {DOMAIN}\nnameserver {_NET}.1\n")
        return settings

    def _missing(self, settings: HadoopSettings) -> str | None:
        missing = super()._missing(settings)
        if missing is None:
            live = sum(bean["NumLiveDataNodes"] for bean in health.query_namenode(settings, "nn", "FSNamesystemState"))
            missing = f"{settings.nodes - live} DataNodes" if live < settings.nodes else None
        return missing

    def _launch(self, settings: HadoopSettings, daemon: Daemon, environ: Mapping[str, str]) -> None:
        assert isinstance(settings, HostsSettings)
        if daemon.title == _HOST:
            self._start_host(settings, daemon.name)
            return
        if daemon.name == KDC:
            with network_of(self.pid("master")):
                super()._launch(settings, daemon, environ)
            return
        with (settings.logs / f"{daemon.name}.log").open("ab") as log:
            self._children[daemon.name] = subprocess.Popen(
                self.on(host_of(daemon.name), daemons.build_command(settings, daemon)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(environ), start_new_session=True,
            )  # fmt: skip
        if daemon.name == JOURNALNODE:  # formatting makes its folder
            self._wait([daemon], lambda: None if self._answers(settings, JOURNALNODE) else "the JournalNode's answer")

    def _format(self, settings: HadoopSettings, environ: Mapping[str, str]) -> None:
        shutil.rmtree(self.directory / JOURNALNODE, ignore_errors=True)
        with network_of(self.pid("master")):  # it begins with a log-in, or the JournalNode
            super()._format(settings, environ)

    def _answers(self, settings: HadoopSettings, name: str) -> bool:
        if name == ZOOKEEPER:  # its port is on a host; ResourceManagers answer only with it
            return True
        with network_of(self.pid("switch")):
            return super()._answers(settings, name)

    def _start_host(self, settings: HostsSettings, name: str) -> None:
        ready = self.directory / f"{name}.up"
        ready.unlink(missing_ok=True)
        (self.directory / name).mkdir(exist_ok=True)
        switch = 0 if name == "switch" else self.pid("switch") or 0
        if switch and name == next(iter(settings.hosts)):
            for host in settings.hosts:  # all, as each host hides the folders of the others
                self.set_names(host, {})
        number = settings.hosts.get(name, 1)
        names = [f"{full_name(host)}={_NET}.{last}" for host, last in settings.hosts.items()]
        words = ["bash", "-c", _SCRIPT, "host", name, number, switch, self.directory]
        words += [sys.executable, "-c", _PAUSE, ready] if switch else [sys.executable, _NAME_SERVER, ready, *names]
        with (settings.logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                ["unshare", "--net", "--uts", "--mount", *map(str, words), *daemons.marks(self.directory, name)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
            )  # fmt: skip
        self._children[name] = child
        if not processes.wait_until(lambda: ready.exists() or child.poll() is not None, _UP_SECONDS) or child.poll():
            raise MiniClusterError(f"the host {name} did not start\n{daemons.log_tail(self.directory, name)}")


def _network(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


@contextlib.contextmanager
def network_of(pid: int | None) -> Iterator[None]:
    """Let this thread open its connections in the network of another process."""
    if pid is None:
        raise ConnectionError("the network of the cluster does not run")
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY)
    try:
        other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            if libc.setns(other, _CLONE_NEWNET):
                raise ConnectionError(os.strerror(ctypes.get_errno()))
        finally:
            os.close(other)
        try:
            yield
        finally:
            libc.setns(own, _CLONE_NEWNET)
    finally:
        os.close(own)
