"""`MiniCluster`: start and stop the cluster or single daemons, and return its state and environment variables."""

import contextlib
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from ..errors import MiniClusterError
from . import daemons, health
from . import marked_processes as processes
from .artefacts import cache_folder, fetch_hadoop
from .cluster_folder import check_disk, load_settings, lock_folder, node_memory, prepare_folder
from .daemon_settings import MAX_NODES, Daemon, Settings, node_names
from .health import ClusterStatus
from .java import find_java
from .ports import taken_ports

_Cluster = TypeVar("_Cluster", bound="MiniCluster")
_LOG = logging.getLogger(__name__)
#: Time for a daemon, or all of them, to get ready.
READY_SECONDS = 120.0
#: Time for daemons to end after SIGTERM.
STOP_SECONDS = 20.0
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
    properties : mapping of str to str, optional
        Further Hadoop properties by name, which win over the minicluster's own. Default: those of a running cluster,
        else none.
    progress : callable, optional
        Called with a line of text at each stage of `up` and `down`. Default: log the line.
    """

    #: What describes this kind of cluster, and the command that starts it.
    settings_type: ClassVar[type[Settings]] = Settings
    command: ClassVar[str] = "ytf minicluster"

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        nodes: int | None = None,
        light: bool | None = None,
        progress: Callable[[str], None] | None = None,
        *,
        properties: Mapping[str, str] | None = None,
    ):
        if sys.platform != "linux":
            raise MiniClusterError("a minicluster runs on Linux only")
        if nodes is not None and not 1 <= nodes <= MAX_NODES:
            raise MiniClusterError(f"a minicluster has 1 to {MAX_NODES} nodes, not {nodes}")
        # Path.resolve raises RuntimeError for a circle of links.
        self.directory = Path(os.path.realpath(default_directory(os.environ) if directory is None else directory))
        self._wanted: dict[str, Any] = {}
        self._want(nodes=nodes, light=light, properties=properties)
        self._progress = progress or _LOG.info
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._started = False

    def _want(self, **options: Any) -> None:
        self._wanted |= {name: value for name, value in options.items() if value is not None}

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

    def __enter__(self: _Cluster) -> _Cluster:
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
        if (settings := load_settings(self.directory, self.settings_type)) is None:
            raise MiniClusterError(f"there is no cluster in {self.directory}: start one with `{self.command} up`")
        return settings

    @property
    def resourcemanager_url(self) -> str:
        """Return the ResourceManager's web address, ``http://127.0.0.1:PORT``."""
        return self.settings.web_address("rm")

    @property
    def namenode_url(self) -> str | None:
        """Return the NameNode's web address; None for a light cluster."""
        return None if self.settings.light else self.settings.web_address("nn")

    @property
    def default_filesystem(self) -> str:
        """Return ``hdfs://127.0.0.1:PORT``, or ``viewfs://minicluster`` for a light cluster."""
        return self.settings.default_filesystem

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables by which programs find this cluster; its shims stand first in PATH."""
        return self.settings.variables

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
            with lock_folder(self.directory):
                self._up()

    def down(self) -> None:
        """Stop all daemons of this folder and all processes of their containers; keep data and logs."""
        locked = lock_folder(self.directory) if self.directory.is_dir() else contextlib.nullcontext()
        with self._changing("ended"), locked:
            self._down()

    def status(self) -> ClusterStatus:
        """Return the state of every daemon, and whether the cluster is ready."""
        if (settings := load_settings(self.directory, self.settings_type)) is None:
            return ClusterStatus({}, 0, False)
        pids = {daemon.name: self.pid(daemon.name) for daemon in settings.list_daemons()}
        ready = all(pids.values()) and self._missing(settings) is None
        return ClusterStatus(pids, health.count_active_nodes(settings) or 0, ready)

    def describe(self) -> dict[str, Any]:
        """Return the state and the addresses as JSON has them."""
        now = self.status()
        described: dict[str, Any] = {"directory": str(self.directory), "ready": now.ready}
        if now.daemons:
            described |= {
                "resourcemanager_url": self.resourcemanager_url,
                "namenode_url": self.namenode_url,
                "default_filesystem": self.default_filesystem,
                "active_nodes": now.active_nodes,
                "daemons": dict(now.daemons),
            }
        return described

    def pid(self, name: str) -> int | None:
        """Return the pid of a daemon (``nn``, ``dn``, ``rm``, ``nm``, ``nm2`` ...), or None if it does not run."""
        return daemons.find(self.directory, name)

    def _up(self) -> None:
        settings = self._decide()
        missing = [daemon for daemon in settings.list_daemons() if self.pid(daemon.name) is None]
        if not missing and self._missing(settings) is None:
            self._finish(settings)  # A killed `up` may not have done this.
            return
        self._started = self._started or len(missing) == len(settings.list_daemons())
        begin = time.monotonic()
        with self._ending_on_failure():
            self._start(settings, missing)
            self._activate(settings, missing)
            self._progress("waiting for an active node" + ("" if settings.light else " and HDFS"))
            self._wait(missing, lambda: self._missing(settings))
            self._finish(settings)
        self._progress(f"ready after {time.monotonic() - begin:.1f} s")

    def _missing(self, settings: Settings) -> str | None:
        """Return the part that the cluster still lacks to be ready, as text; None if it is ready."""
        return health.describe_missing(settings)

    def _activate(self, settings: Settings, started: list[Daemon]) -> None:
        """Do what daemons that have just been started need before they can get ready."""

    def _finish(self, settings: Settings) -> None:
        """Set up a cluster that is ready; it may be done already."""
        if not settings.light:
            health.make_folders(settings)

    def _launch(self, settings: Settings, daemon: Daemon, environ: Mapping[str, str]) -> None:
        self._children[daemon.name] = daemons.start(settings, daemon, environ)

    def _format(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Format HDFS."""
        namenode = next(daemon for daemon in settings.list_daemons() if daemon.name == "nn")
        for data in ("nn", "dn"):
            shutil.rmtree(self.directory / data, ignore_errors=True)
        daemons.format_namenode(settings, namenode, environ)

    def _down(self) -> None:
        if daemons.find_all(self.directory):
            self._progress(f"stopping the cluster in {self.directory}")
        self._end_nodes()
        daemons.stop(self.directory, daemons.find_all(self.directory), STOP_SECONDS)
        self._reap()
        self._started = False

    def _end_nodes(self) -> None:
        # First the NodeManagers: they end their containers and save the logs while there is a file system.
        nodes = [daemons.find(self.directory, name) for name in node_names(MAX_NODES)]
        daemons.stop(self.directory, filter(None, nodes), STOP_SECONDS)
        daemons.end_containers(self.directory)

    def _install(self) -> Settings:
        """Fetch what is missing, and prepare the folder."""
        import pwd  # like fcntl not on Windows, where this module has to be imported

        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            raise MiniClusterError(
                f"the user id {os.getuid()} of this process has no name, without which Hadoop does not start; add a "
                "line with it to /etc/passwd"
            ) from None
        java_home = find_java(os.environ)
        hadoop = fetch_hadoop(os.environ, java_home, self._progress)
        return prepare_folder(Settings(self.directory, hadoop, java_home, user, node_memory(), **self._wanted))

    def _decide(self) -> Settings:
        settings = load_settings(self.directory, self.settings_type)
        if settings is None:
            # A running cluster whose folder was deleted has to end first.
            self._down()
        if settings is None or not daemons.find_all(self.directory):
            return self._install()
        for name, value in self._wanted.items():
            if getattr(settings, name) != value:
                raise MiniClusterError(
                    f"the cluster in {self.directory} runs with {name} {getattr(settings, name)}, not {value}:"
                    f" `{self.command} down` first, or use another folder (--dir)"
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
                f"taken by another program: port {taken}; end that program, or run `{self.command} down`"
                " and `up`, which chooses other ports"
            )
        environ = daemons.build_environment(settings, os.environ)
        for daemon in wanted:
            if daemon.name == "nn" and not (self.directory / "formatted").exists():
                self._progress("formatting HDFS")
                self._format(settings, environ)
                (self.directory / "formatted").touch()
            self._progress(f"starting {daemon.title} ({daemon.name})")
            self._launch(settings, daemon, environ)

    def _wait(self, started: list[Daemon], missing: Callable[[], str | None]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while (absent := missing()) is not None:
            for daemon in started:
                if (code := self._children[daemon.name].poll()) is not None:
                    raise MiniClusterError(
                        f"the {daemon.title} ended during the start (exit {code})\n"
                        f"{daemons.log_tail(self.directory, daemon.name)}"
                    )
            if time.monotonic() > deadline:
                raise MiniClusterError(
                    f"still missing after {READY_SECONDS:.0f} s: {absent}; see {self.directory}/logs"
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

    def _reap(self) -> None:
        self._children = {name: child for name, child in self._children.items() if child.poll() is None}
