"""`HadoopCluster`: a `MiniCluster` with what only tests need."""

import os
import pwd
import shutil
import signal as signals
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from support.reaper import unmount_all
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster, artefacts, daemons, health
from tf_yarn_ops.minicluster import marked_processes as processes
from tf_yarn_ops.minicluster.cluster_folder import load_settings, lock_folder, node_memory, prepare_folder
from tf_yarn_ops.minicluster.daemon_settings import Daemon, node_names
from tf_yarn_ops.minicluster.hadoop import READY_SECONDS, STOP_SECONDS
from tf_yarn_ops.minicluster.java import find_java
from tf_yarn_ops.minicluster.ports import taken_ports

from . import additions, class_archive, docker
from .certificates import make_stores
from .high_availability import ZOOKEEPER
from .kdc import check_programs, get_ticket, listens, make_realms, start_kdc
from .kerberos import HDFS, USERS, Realm
from .kms import KMS, build_kms_files, make_zone
from .knox_server import KNOX
from .labels import check_labels, put_labels
from .settings import KDC, HadoopSettings
from .throwaway_keys import write_keys
from .versions import HadoopVersion, find_version

#: The folders that formatting makes, or makes void.
_DATA = ("nn", "nn2", "nn-shared", "dn")


class HadoopCluster(MiniCluster):
    """A real Hadoop on this machine, as tests need it.

    Parameters
    ----------
    directory, nodes, light, progress, properties
        As for `MiniCluster`.
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
    docker : bool, optional
        Run a Docker engine, in which jobs of the user ``nobody`` may run their tasks; needs root. Default: as a running
        cluster, else False.
    kms : bool, optional
        Run a key server; the home directory of the cluster's user is an encryption zone. Default: as a running cluster,
        else False.
    knox : bool, optional
        Run an Apache Knox before the daemons. Default: as a running cluster, else False.
    """

    settings_type: ClassVar[type[HadoopSettings]] = HadoopSettings
    command = "./dev hadoop"
    settings: HadoopSettings

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        nodes: int | None = None,
        light: bool | None = None,
        labels: Mapping[str, str] | None = None,
        version: str | None = None,
        progress: Callable[[str], None] | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        ha: bool | None = None,
        kerberos: bool | None = None,
        https: bool | None = None,
        ticket_lifetime: int | None = None,
        docker: bool | None = None,
        kms: bool | None = None,
        knox: bool | None = None,
    ):
        super().__init__(directory, nodes, light, progress, properties=properties)
        if version is not None:
            find_version(version)
        self._want(
            labels=labels, version=version, ha=ha, kerberos=kerberos, https=https, ticket_lifetime=ticket_lifetime,
            docker=docker, kms=kms, knox=knox,
        )  # fmt: skip

    @property
    def environ(self) -> dict[str, str]:
        return self.settings.client_variables

    @property
    def resourcemanager_urls(self) -> tuple[str, ...]:
        """Return the web addresses of the ResourceManagers, one or two."""
        return tuple(map(self.settings.web_address, self.settings.resourcemanagers))

    @property
    def namenode_urls(self) -> tuple[str, ...]:
        """Return the web addresses of the NameNodes, one or two; none for a light cluster."""
        return tuple(map(self.settings.web_address, self.settings.namenodes))

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
        processes.signal_process(pid, signal)
        if signal not in (signals.SIGTERM, signals.SIGKILL):
            return
        if not processes.wait_until(lambda: self.pid(name) is None, STOP_SECONDS):
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
        with self._changing("started"), lock_folder(self.directory):
            if self.pid(name) is not None:
                raise MiniClusterError(f"{name} of {self.directory} runs already (pid {self.pid(name)})")
            with self._ending_on_failure():
                self._start(settings, [daemon])
                self._wait([daemon], lambda: None if self._answers(settings, name) else f"the {daemon.title}'s answer")

    def describe(self) -> dict[str, Any]:
        described = super().describe()
        if "daemons" in described and self.settings.ha:
            described |= {
                "resourcemanager_urls": self.resourcemanager_urls,
                "namenode_urls": self.namenode_urls,
                "active": {kind: self.active(kind) for kind in ("rm", "nn")},
            }
        return described

    def active(self, kind: str) -> str | None:
        """Return the name of the active ResourceManager (kind ``rm``) or NameNode (``nn``); None if there is none."""
        return self.settings.find_active(self._pair(kind))

    def failover(self, kind: str, restart: bool = True) -> str:
        """Kill the active ResourceManager or NameNode, and return when the other one is active.

        A ResourceManager takes over when ZooKeeper has missed the other one for 10 s. A NameNode is made active by the
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
            make_active(settings, after)

        def has_taken_over() -> bool:
            return self.active(kind) == after and (kind == "rm" or health.has_left_safe_mode(settings, after))

        if not processes.wait_until(has_taken_over, READY_SECONDS):
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

    def _install(self) -> HadoopSettings:
        before, wanted = load_settings(self.directory, self.settings_type), self._wanted
        version = find_version(wanted.get("version") or (before.version if before else artefacts.VERSION))
        ha = wanted.get("ha", bool(before and before.ha))
        if before and (before.version, before.ha) != (version.number, ha):
            raise MiniClusterError(
                f"{self.directory} has data of Hadoop {before.version}"
                f" {'with' if before.ha else 'without'} high availability: use another folder (--dir), or delete this one"
            )
        self._check_security()
        check_labels(wanted.get("labels", {}), wanted.get("nodes", 1))
        java_home = find_java(os.environ, version.oldest_java, version.newest_java)
        hadoop, kerberos = self._fetch(java_home, version), wanted.get("kerberos", False)
        default = version.number == artefacts.VERSION  # the lists of classes were recorded with it
        settings = self.settings_type(
            self.directory, hadoop, java_home, pwd.getpwuid(os.getuid()).pw_name, node_memory(),
            **{**wanted, "version": version.number, "ha": ha},
            classes=class_archive.prepare(hadoop, java_home, self._progress) if default else None,
            local_files=additions.prepare_local_files(hadoop, java_home, self._progress) if default else None,
            additions=(additions.prepare_security(hadoop, version.number, os.environ, java_home, self._progress)
                       if kerberos else None),
        )  # fmt: skip
        settings = prepare_folder(settings)
        write_keys(settings)
        if settings.https:
            make_stores(settings.stores, settings.realm.hosts)
            settings.site_file.write_text(f"ca_file: {settings.stores.ca_file}\n")
        if settings.kerberos:
            make_realms(settings, os.environ)
        if settings.kms:
            folder = settings.directory / KMS
            folder.mkdir(exist_ok=True)
            for name, text in build_kms_files(settings, folder).items():
                (folder / name).write_text(text)
        if settings.knox and daemons.find(self.directory, KNOX) is None:
            resourcemanager, namenode = (settings.web_address(name) for name in ("rm", "nn"))
            services = {
                "YARNUI": resourcemanager,
                "RESOURCEMANAGER": f"{resourcemanager}/ws",
                "WEBHDFS": f"{namenode}/webhdfs",
            }
            settings.gateway.write(settings.java_home, settings.user, services)
        if settings.docker:
            docker.write_executor(
                settings.engine,
                [settings.hadoop, settings.configuration, settings.java_home],
                [self.directory / node for node in node_names(settings.nodes)],
            )
        return settings

    def _fetch(self, java_home: Path, version: HadoopVersion) -> Path:
        options = [f"-DexcludeGroupIds={version.left_out}"] if version.left_out else []
        return artefacts.fetch_hadoop(os.environ, java_home, self._progress, version.number, version.size, options)

    def _check_security(self) -> None:
        kerberos, lifetime = self._wanted.get("kerberos", False), self._wanted.get("ticket_lifetime")
        if lifetime is not None and (not kerberos or lifetime <= 0):
            raise MiniClusterError(
                "a ticket's lifetime is at least 1 second, and needs a cluster with Kerberos (--kerberos)"
            )
        if kerberos and self._wanted.get("light"):
            raise MiniClusterError(
                "Kerberos needs HDFS, which a light cluster leaves out: leave out --light or --kerberos"
            )
        if kerberos:
            check_programs(os.environ)
        if self._wanted.get("docker", False):
            docker.check_engine()
        if self._wanted.get("knox") and any(self._wanted.get(name) for name in ("kerberos", "https", "ha", "light")):
            raise MiniClusterError("--knox runs with a plain cluster only: without Kerberos, HTTPS and pairs")
        if self._wanted.get("kms") and self._wanted.get("light"):
            raise MiniClusterError("--kms needs HDFS, which a light cluster leaves out")

    def _missing(self, settings: HadoopSettings) -> str | None:
        for name in settings.resourcemanagers if settings.ha else ():
            if settings.ask_role(name) is None:
                return f"the answer of {name}"
        for daemon in settings.list_daemons():
            if daemon.name in (KMS, KNOX) and not self._answers(settings, daemon.name):
                return f"the answer of {daemon.title}"
        if settings.namenodes and settings.find_active(settings.namenodes) is None:
            return "an active NameNode"
        return super()._missing(settings)

    def _activate(self, settings: HadoopSettings, started: list[Daemon]) -> None:
        """Make the first NameNode of a pair active, unless one is."""
        if len(settings.namenodes) < 2:
            return
        first = settings.namenodes[0]
        self._wait(started, lambda: None if self._answers(settings, first) else "the NameNode's answer")
        if settings.find_active(settings.namenodes) is None:
            self._progress(f"making {first} active")
            make_active(settings, first)

    def _finish(self, settings: HadoopSettings) -> None:
        super()._finish(settings)
        for user in USERS if settings.kerberos else ():
            health.put(settings, f"/user/{user}", {"op": "SETOWNER", "owner": user})
        put_labels(settings)
        if settings.kms and not (settings.directory / KMS / "zone").exists():
            superuser = os.environ | (get_ticket(settings, os.environ, HDFS) if settings.kerberos else {})
            make_zone(settings, settings.zone, superuser)
        if settings.docker:
            owner = {"op": "SETOWNER", "owner": docker.USER, "user.name": settings.superuser}
            health.put(settings, f"/user/{docker.USER}", owner)
            docker.import_images(settings.engine)

    def _daemon(self, name: str) -> Daemon:
        known = {daemon.name: daemon for daemon in self.settings.list_daemons()}
        if name not in known:
            raise MiniClusterError(f"{self.directory} has no daemon {name!r}, only {', '.join(known)}")
        return known[name]

    def _answers(self, settings: HadoopSettings, name: str) -> bool:
        if name in (ZOOKEEPER, KMS, KNOX):
            return bool(taken_ports({name: settings.ports[name]}))
        if name == KDC:
            return listens(settings)
        if name == docker.DOCKERD:
            return settings.engine.answers()
        # A NameNode reads its classes for WebHDFS at the first request for it, which takes seconds.
        path = "/webhdfs/v1/?op=GETFILESTATUS" if name in settings.namenodes else ""
        if name in settings.resourcemanagers:  # a standby redirects other paths to the active one
            path = "/ws/v1/cluster/info"
        return health.answers(settings, settings.web_address(name) + path)

    def _launch(self, settings: HadoopSettings, daemon: Daemon, environ: Mapping[str, str]) -> None:
        marks = daemons.marks(self.directory, daemon.name)
        if daemon.name == KDC:
            self._children[KDC] = start_kdc(settings, os.environ, marks)
        elif daemon.name == docker.DOCKERD:
            log = settings.logs / f"{docker.DOCKERD}.log"
            self._children[docker.DOCKERD] = docker.start_engine(settings.engine, marks, log)
        else:
            super()._launch(settings, daemon, environ)
            return
        # Formatting and the other daemons begin with a log-in; a NodeManager may start containers at once.
        self._wait([daemon], lambda: None if self._answers(settings, daemon.name) else f"the {daemon.title}'s answer")

    def _format(self, settings: HadoopSettings, environ: Mapping[str, str]) -> None:
        """Format HDFS, or copy what a cluster without Kerberos on this machine has formatted before: a JVM less."""
        known = settings.hadoop / f"formatted-{settings.superuser}{'-pair' * settings.ha}"
        journal = settings.ha and not settings.shared_edits.startswith("file:")  # formatting changes a JournalNode
        for name in _DATA:
            shutil.rmtree(self.directory / name, ignore_errors=True)
        if known.is_dir() and not settings.kerberos and not journal:
            for folder in known.iterdir():
                shutil.copytree(folder, self.directory / folder.name)
            return
        super()._format(settings, environ)
        if settings.ha:
            shutil.copytree(*(self.directory / name for name in settings.namenodes))
        if not settings.kerberos and not journal:
            staging = Path(tempfile.mkdtemp(prefix=f".{known.name}-", dir=known.parent))
            for name in filter(lambda name: (self.directory / name).is_dir(), _DATA):
                shutil.copytree(self.directory / name, staging / name)
            artefacts.publish(staging, known)
            shutil.rmtree(staging, ignore_errors=True)

    def _down(self) -> None:
        self._end_nodes()
        if daemons.find(self.directory, docker.DOCKERD):
            self.settings.engine.remove_containers()
        # A ResourceManager that ends waits for ZooKeeper.
        others = set(daemons.find_all(self.directory)) - {daemons.find(self.directory, ZOOKEEPER)}
        daemons.stop(self.directory, others, STOP_SECONDS)
        super()._down()
        unmount_all(self.directory / "docker")


def make_active(settings: HadoopSettings, name: str, in_place_of: str | None = None) -> None:
    """Make a NameNode active; the other one must not be, unless it is named: then it becomes the standby.

    Raises
    ------
    MiniClusterError
        It did not become active; the message has the command's answer.
    """
    # A standby that was just started is in safe mode until it has read the other one's edits.
    order = ("-failover", "--forceactive", in_place_of) if in_place_of else ("-transitionToActive", "--forceactive")
    command = [*settings.enter_host_of(name), f"{settings.shims}/hdfs", "haadmin", *order, name]
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
