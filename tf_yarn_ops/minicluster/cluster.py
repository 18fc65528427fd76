"""`MiniCluster`: start and stop the cluster or single daemons, and return its state and environment variables."""

import contextlib
import logging
import os
import shutil
import signal as signals
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import MiniClusterError
from . import daemons, health, processes, state
from .artefacts import cache_folder
from .configuration import MAX_NODES, Settings, node_names
from .daemons import KDC, Daemon
from .health import ClusterStatus
from .high_availability import ZOOKEEPER
from .installation import check_disk, install
from .kdc import listens
from .kerberos import Realm
from .labels import put_labels
from .ports import taken_ports
from .shims import lead_here
from .versions import find_version

_LOG = logging.getLogger(__name__)
_READY_SECONDS = 120.0
_STOP_SECONDS = 20.0
_PORT_SECONDS = 3.0


def default_directory(environ: Mapping[str, str]) -> Path:
    """Return the default folder of a cluster: ``$YTF_MINICLUSTER_DIR``, else ``minicluster`` in the cache folder."""
    named = environ.get("YTF_MINICLUSTER_DIR")
    return Path(named) if named else cache_folder(environ) / "minicluster"


class MiniCluster:
    """A real Hadoop on this machine, everything on 127.0.0.1.

    As a context manager it starts the cluster, and stops it at the end unless it ran before.

    Parameters
    ----------
    directory : path, optional
        The cluster's folder; each folder has a cluster of its own.
        Default: ``$YTF_MINICLUSTER_DIR``, else ``minicluster`` in the cache folder.
    nodes : int, optional
        Number of NodeManagers, 1 to 8. Default: that of a running cluster, else 1.
    light : bool, optional
        Leave HDFS out; files lie in a local folder behind a view file system. Default: as a running cluster, else
        False.
    stock : bool, optional
        Keep Hadoop's own heartbeat and off-switch settings. Default: as a running cluster, else False.
    labels : mapping of str to str, optional
        YARN node labels by the names of NodeManagers: ``{"nm2": "gpu"}``. Default: those of a running cluster, else
        none.
    version : str, optional
        Version of Hadoop; `versions.VERSIONS` has those that work. Default: that of the cluster in this folder, else
        3.4.3.
    ha : bool, optional
        Run two ResourceManagers with ZooKeeper, and two NameNodes. Default: as the cluster in this folder, else False.
    kerberos : bool, optional
        Demand Kerberos of every client: a KDC of its own, with the users ``alice``, ``bob``, and ``gateway``, which may
        act for them. Default: as a running cluster, else False.
    https : bool, optional
        Serve the daemons' pages by HTTPS only, with a certificate of a private authority. Default: as a running
        cluster, else False.
    ticket_lifetime : int, optional
        Longest life of a user's ticket, seconds. Default: that of a running cluster, else a day.
    properties : mapping of str to str, optional
        Further Hadoop properties by name, which win over the minicluster's own. Default: those of a running cluster,
        else none.
    progress : callable, optional
        Called with a line of text at each stage of `up` and `down`. Default: log the line.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        nodes: int | None = None,
        light: bool | None = None,
        stock: bool | None = None,
        labels: Mapping[str, str] | None = None,
        version: str | None = None,
        progress: Callable[[str], None] | None = None,
        *,
        ha: bool | None = None,
        kerberos: bool | None = None,
        https: bool | None = None,
        ticket_lifetime: int | None = None,
        properties: Mapping[str, str] | None = None,
    ):
        if nodes is not None and not 1 <= nodes <= MAX_NODES:
            raise MiniClusterError(f"a minicluster has 1 to {MAX_NODES} nodes, not {nodes}")
        if version is not None:
            find_version(version)
        self.directory = Path(directory if directory is not None else default_directory(os.environ)).resolve()
        wanted: dict[str, Any] = {
            "nodes": nodes, "light": light, "stock": stock, "labels": labels, "version": version, "ha": ha,
            "kerberos": kerberos, "https": https, "ticket_lifetime": ticket_lifetime, "properties": properties,
        }  # fmt: skip
        self._wanted = {name: value for name, value in wanted.items() if value is not None}
        self._progress = progress or _LOG.info
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._started = False

    @classmethod
    def attach(cls, directory: str | os.PathLike[str] | None = None) -> "MiniCluster":
        """Return the cluster that was started in this folder.

        Raises
        ------
        MiniClusterError
            No cluster was ever started there.
        """
        cluster = cls(directory)
        _ = cluster.settings
        return cluster

    def __enter__(self) -> "MiniCluster":
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started:
            self.down()

    @property
    def settings(self) -> Settings:
        """Return the settings of the cluster's last start."""
        settings = state.load(self.directory)
        if settings is None:
            raise MiniClusterError(f"there is no cluster in {self.directory}: start one with `ytf minicluster up`")
        return settings

    @property
    def resourcemanager_url(self) -> str:
        """Return the ResourceManager's web address, ``http://127.0.0.1:PORT`` (secured: localhost).

        Of a pair it is the first one, active or not.
        """
        return self.settings.web_address("rm")

    @property
    def resourcemanager_urls(self) -> tuple[str, ...]:
        """Return the web addresses of the ResourceManagers, one or two."""
        return tuple(map(self.settings.web_address, self.settings.resourcemanagers))

    @property
    def namenode_urls(self) -> tuple[str, ...]:
        """Return the web addresses of the NameNodes, one or two; none for a light cluster."""
        return tuple(map(self.settings.web_address, self.settings.namenodes))

    @property
    def namenode_url(self) -> str | None:
        """Return the NameNode's web address; None for a light cluster."""
        return None if self.settings.light else self.settings.web_address("nn")

    @property
    def default_filesystem(self) -> str:
        """Return ``hdfs://127.0.0.1:PORT``, or ``viewfs://minicluster`` for a light cluster.

        A secured cluster has ``localhost`` in place of the address, a pair of NameNodes ``hdfs://minicluster``.
        """
        return self.settings.default_filesystem

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables by which programs find this cluster; its shims stand first in PATH."""
        return lead_here(self.settings, os.environ.get("PATH", os.defpath))

    @property
    def ca_file(self) -> Path | None:
        """Return the certificate of the private authority (PEM); None without HTTPS."""
        return self.settings.stores.ca_file if self.settings.https else None

    @property
    def krb5_conf(self) -> Path:
        """Return the ``krb5.conf`` of a secured cluster, the value for KRB5_CONFIG."""
        return self._realm.krb5_conf

    def keytab(self, name: str) -> Path:
        """Return the keytab of a user (``alice``, ``bob``, ``gateway``) or daemon (``hdfs``, ``yarn``, ``HTTP``)."""
        return self._realm.keytab(name)

    def principal(self, name: str) -> str:
        """Return the principal of a user or daemon, such as ``alice@MINICLUSTER.LOCAL``."""
        return self._realm.principal(name)

    @property
    def _realm(self) -> Realm:
        if not self.settings.kerberos:
            raise MiniClusterError(f"the cluster in {self.directory} runs without Kerberos")
        return self.settings.realm

    def up(self) -> None:
        """Start the daemons that do not run yet, and return when the cluster is ready.

        On an error, the daemons that this call has started are stopped.

        Raises
        ------
        MiniClusterError
            Java or Maven is missing or does not fit, the disk is full, a port is taken, a daemon ended during the start
            (the message has its last log lines), or a cluster with other options runs in this folder.
        """
        with self._changing("started"):
            self.directory.mkdir(parents=True, exist_ok=True)
            with state.lock(self.directory):
                self._up()

    def down(self) -> None:
        """Stop all daemons of this folder and all processes of their containers; keep data and logs."""
        locked = state.lock(self.directory) if self.directory.is_dir() else contextlib.nullcontext()
        with self._changing("ended"), locked:
            self._down()

    def status(self) -> ClusterStatus:
        """Return the state of every daemon, and whether the cluster is ready."""
        settings = state.load(self.directory)
        return ClusterStatus(self.directory, (), 0, False) if settings is None else health.ask_status(settings)

    def pid(self, name: str) -> int | None:
        """Return the pid of a daemon (``nn``, ``dn``, ``rm``, ``nm``, ``nm2`` ...), or None if it does not run."""
        return daemons.find(self.directory, name)

    def stop_daemon(self, name: str, signal: int = signals.SIGTERM) -> None:
        """Send a signal to one daemon; after SIGTERM and SIGKILL, return when the process has ended.

        Raises
        ------
        MiniClusterError
            The daemon does not exist, does not run, or does not end.
        """
        self._daemon(name)
        pid = self.pid(name)
        if pid is None:
            raise MiniClusterError(f"{name} of {self.directory} does not run")
        processes.send(pid, signal)
        if signal not in (signals.SIGTERM, signals.SIGKILL):
            return
        if not processes.wait_until(lambda: self.pid(name) is None, _STOP_SECONDS):
            raise MiniClusterError(f"{name} (pid {pid}) did not end\n{daemons.log_tail(self.directory, name)}")
        self._reap()

    def start_daemon(self, name: str) -> None:
        """Start one stopped daemon on its old ports, and return when it answers.

        Raises
        ------
        MiniClusterError
            The daemon does not exist, runs already, ended during the start, or its port is taken.
        """
        daemon = self._daemon(name)
        settings = self.settings
        with self._changing("started"), state.lock(self.directory):
            if self.pid(name) is not None:
                raise MiniClusterError(f"{name} of {self.directory} runs already (pid {self.pid(name)})")
            with self._ending_on_failure():
                self._start(settings, [daemon])
                self._wait([daemon], lambda: None if _answers(settings, name) else f"the {daemon.title}'s answer")

    def active(self, kind: str) -> str | None:
        """Return the name of the active ResourceManager (kind ``rm``) or NameNode (``nn``); None if there is none."""
        return health.find_active(self.settings, self._pair(kind))

    def failover(self, kind: str, restart: bool = True) -> str:
        """Kill the active ResourceManager or NameNode, and return when the other one is active.

        A ResourceManager takes over when ZooKeeper has missed the other one for 4 s. A NameNode is made active by the
        command ``hdfs haadmin -transitionToActive``; it has left its safe mode then, so it takes writes.

        Parameters
        ----------
        kind : str
            ``rm`` or ``nn``.
        restart : bool, optional
            Start the killed daemon again, as the standby. Default: True.

        Returns
        -------
        str
            The name of the daemon that is active now.

        Raises
        ------
        MiniClusterError
            The cluster has no such pair, none of it is active, the other one does not run, or does not take over.
        """
        settings, pair = self.settings, self._pair(kind)
        if len(pair) < 2:
            raise MiniClusterError(f"the cluster in {self.directory} runs one {kind}: start one with `up --ha`")
        before = self.active(kind)
        if before is None:
            raise MiniClusterError(f"none of {', '.join(pair)} is active; see {settings.logs}")
        after = next(name for name in pair if name != before)
        if self.pid(after) is None:
            raise MiniClusterError(f"{after} of {self.directory} does not run, so that it cannot take over")
        self._progress(f"killing {before}")
        self.stop_daemon(before, signals.SIGKILL)
        if kind == "nn":
            daemons.make_active(settings, after)

        def has_taken_over() -> bool:
            return self.active(kind) == after and (kind == "rm" or health.has_left_safe_mode(settings, after))

        if not processes.wait_until(has_taken_over, _READY_SECONDS):
            raise MiniClusterError(f"{after} did not take over\n{daemons.log_tail(self.directory, after)}")
        self._progress(f"{after} is active")
        if restart:
            self._progress(f"starting {before} again")
            self.start_daemon(before)
        return after

    def _pair(self, kind: str) -> tuple[str, ...]:
        pairs = {"rm": self.settings.resourcemanagers, "nn": self.settings.namenodes}
        if kind not in pairs:
            raise MiniClusterError(f"{kind!r} is no kind of daemon that can fail over, only {', '.join(pairs)}")
        return pairs[kind]

    def _up(self) -> None:
        settings = self._decide()
        missing = [daemon for daemon in daemons.list_daemons(settings) if self.pid(daemon.name) is None]
        if not missing and health.describe_missing(settings) is None:
            put_labels(settings)  # A killed `up` may not have done this.
            return
        self._started = self._started or len(missing) == len(daemons.list_daemons(settings))
        begin = time.monotonic()
        with self._ending_on_failure():
            self._start(settings, missing)
            if settings.ha and not settings.light:
                self._activate_namenode(settings, missing)
            self._progress("waiting for an active node" + ("" if settings.light else " and HDFS"))
            self._wait(missing, lambda: health.describe_missing(settings))
            if not settings.light:
                health.make_folders(settings)
            put_labels(settings)
        self._progress(f"ready after {time.monotonic() - begin:.1f} s")

    def _activate_namenode(self, settings: Settings, started: list[Daemon]) -> None:
        """Make the first NameNode active, unless one is."""
        first = settings.namenodes[0]
        self._wait(started, lambda: None if _answers(settings, first) else "the NameNode's answer")
        if health.find_active(settings, settings.namenodes) is None:
            self._progress(f"making {first} active")
            daemons.make_active(settings, first)

    def _down(self) -> None:
        if daemons.find_all(self.directory):
            self._progress(f"stopping the cluster in {self.directory}")
        # First the NodeManagers: they end their containers and save the logs while there is a file system.
        nodes = [daemons.find(self.directory, name) for name in node_names(MAX_NODES)]
        daemons.stop(self.directory, filter(None, nodes), _STOP_SECONDS)
        daemons.end_containers(self.directory)
        # A ResourceManager that ends waits for ZooKeeper.
        others = set(daemons.find_all(self.directory)) - {daemons.find(self.directory, ZOOKEEPER)}
        daemons.stop(self.directory, others, _STOP_SECONDS)
        daemons.stop(self.directory, daemons.find_all(self.directory), _STOP_SECONDS)
        self._reap()
        self._started = False

    def _decide(self) -> Settings:
        settings = state.load(self.directory)
        if settings is None:
            # A running cluster whose folder was deleted has to end first.
            self._down()
        if settings is None or not daemons.find_all(self.directory):
            return install(self.directory, os.environ, self._progress, **self._wanted)
        for name, value in self._wanted.items():
            if getattr(settings, name) != value:
                raise MiniClusterError(
                    f"the cluster in {self.directory} runs with {name} {getattr(settings, name)}, not {value}:"
                    " `ytf minicluster down` first, or use another folder (--dir)"
                )
        check_disk(self.directory)
        return settings

    def _start(self, settings: Settings, wanted: list[Daemon]) -> None:
        names = [daemon.name for daemon in wanted]
        ports = {name: port for name, port in settings.ports.items() if name.partition("-")[0] in names}
        # The kernel closes the sockets of a killed process a moment after the process has left /proc.
        if not processes.wait_until(lambda: not taken_ports(ports), _PORT_SECONDS):
            taken = ", ".join(f"{port} ({name})" for name, port in taken_ports(ports).items())
            raise MiniClusterError(
                f"taken by another program: port {taken}; end that program, or run `ytf minicluster down` and"
                " `up`, which chooses other ports"
            )
        environ = daemons.build_environment(settings, os.environ, self.environ)
        for daemon in wanted:
            if daemon.name == "nn" and not (self.directory / "formatted").exists():
                self._progress("formatting HDFS")
                for data in ("nn", "nn2", "nn-shared", "dn"):
                    shutil.rmtree(self.directory / data, ignore_errors=True)
                daemons.format_namenode(settings, environ)
                (self.directory / "formatted").touch()
            self._progress(f"starting {daemon.title} ({daemon.name})")
            self._children[daemon.name] = daemons.start(settings, daemon, environ)
            if daemon.name == KDC:  # formatting and the other daemons begin with a log-in
                self._wait([daemon], lambda: None if _answers(settings, KDC) else "the KDC's answer")

    def _wait(self, started: list[Daemon], missing: Callable[[], str | None]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while (absent := missing()) is not None:
            for daemon in started:
                code = self._children[daemon.name].poll()
                if code is not None:
                    tail = daemons.log_tail(self.directory, daemon.name)
                    raise MiniClusterError(f"the {daemon.title} ended during the start (exit {code})\n{tail}")
            if time.monotonic() > deadline:
                raise MiniClusterError(
                    f"still missing after {_READY_SECONDS:.0f} s: {absent}; see {self.directory}/logs"
                )
            time.sleep(0.1)

    @contextlib.contextmanager
    def _changing(self, how: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MiniClusterError(f"the cluster in {self.directory} could not be {how}: {error}") from error

    @contextlib.contextmanager
    def _ending_on_failure(self) -> Iterator[None]:
        before, children = set(daemons.find_all(self.directory)), set(self._children.values())
        try:
            yield
        except BaseException:
            # The command line of a process that has just been started may still be missing in /proc.
            started = set(self._children.values()) - children
            for child in started:
                child.terminate()
            daemons.stop(self.directory, set(daemons.find_all(self.directory)) - before, 5.0)
            processes.wait_until(lambda: all(child.poll() is not None for child in started), 5.0)
            self._reap()
            raise

    def _daemon(self, name: str) -> Daemon:
        known = {daemon.name: daemon for daemon in daemons.list_daemons(self.settings)}
        if name not in known:
            raise MiniClusterError(f"{self.directory} has no daemon {name!r}, only {', '.join(known)}")
        return known[name]

    def _reap(self) -> None:
        for name in [name for name, child in self._children.items() if child.poll() is not None]:
            del self._children[name]


def _answers(settings: Settings, name: str) -> bool:
    if name == ZOOKEEPER:
        return bool(taken_ports({name: settings.ports[name]}))
    return listens(settings) if name == KDC else health.answers(settings, settings.web_address(name))
