"""The daemons: start, find and stop them, and read the end of their logs."""

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import MiniClusterError
from . import marked_processes as processes
from .daemon_settings import JVM_FLAGS, Daemon, Settings

_LOG_TAIL_LINES = 12


def build_command(settings: Settings, daemon: Daemon) -> list[str]:
    """Return the command line of a daemon that is a JVM."""
    return [
        f"{settings.java_home}/bin/java", f"-Xmx{daemon.heap}m", *JVM_FLAGS, *daemon.flags,
        *marks(settings.directory, daemon.name),
        "-Dhadoop.root.logger=INFO,console", f"-Djava.io.tmpdir={settings.directory}/tmp",
        f"-XX:ErrorFile={settings.logs}/{daemon.name}-crash.log", "-XX:+ExitOnOutOfMemoryError",
        "-cp", ":".join(settings.class_path(daemon)), daemon.main_class, *daemon.arguments,
    ]  # fmt: skip


def build_environment(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the daemons: the caller's without variables of another Hadoop or for every JVM."""
    foreign = ("KRB5", "HADOOP_", "YARN_", "HDFS_", "CLASSPATH", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS",
               "_JAVA_OPTIONS")  # fmt: skip
    return {
        "LANG": "C.UTF-8",
        **{name: value for name, value in environ.items() if not name.startswith(foreign)},
        **settings.variables,
        **settings.container_variables,
    }


def start(settings: Settings, daemon: Daemon, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a daemon in a session of its own; its log is ``logs/<name>.log``."""
    with (settings.logs / f"{daemon.name}.log").open("ab") as log:
        return subprocess.Popen(
            build_command(settings, daemon),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=dict(environ), cwd=settings.directory, start_new_session=True,
        )  # fmt: skip


def format_namenode(settings: Settings, namenode: Daemon, environ: Mapping[str, str]) -> None:
    """Format the NameNode's folder.

    Raises
    ------
    MiniClusterError
        The NameNode refused; the message ends with the last lines of its log.
    """
    words = ("-format", "-nonInteractive", "-force")
    formatter = replace(namenode, name="format", title="NameNode -format", arguments=(*namenode.arguments, *words))
    # An interrupted start may have left a formatting process behind.
    stop(settings.directory, filter(None, [find(settings.directory, formatter.name)]), 0.0)
    with start(settings, formatter, environ) as process:
        try:
            code = process.wait(timeout=120)
        except subprocess.TimeoutExpired as error:
            raise MiniClusterError(f"formatting HDFS did not end\n{log_tail(settings.directory, 'format')}") from error
        finally:
            process.kill()
    if code != 0:
        raise MiniClusterError(f"HDFS was not formatted (exit {code})\n{log_tail(settings.directory, 'format')}")


def find(directory: Path, name: str) -> int | None:
    """Return the pid of a daemon, or None if it does not run."""
    found = processes.find_by_arguments(marks(directory, name))
    # A forked process has the daemon's command line until it runs a container's shell, and may have a lower pid.
    return next((pid for pid in found if processes.parent(pid) not in found), None)


def find_all(directory: Path) -> tuple[int, ...]:
    """Return the pids of all processes that were started for the cluster in this folder."""
    return processes.find_by_arguments(marks(directory))


def stop(directory: Path, pids: Iterable[int], seconds: float) -> None:
    """Stop daemons: send SIGTERM to all, and after `seconds` SIGKILL to those that still run."""
    targets = set(pids)

    def left() -> set[int]:
        return targets & set(find_all(directory))

    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 10.0)):
        for pid in left():
            processes.signal_process(pid, number)
            # A stopped process handles the signal only after SIGCONT.
            processes.signal_process(pid, signal.SIGCONT)
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


def marks(directory: Path, name: str | None = None) -> tuple[str, ...]:
    """Return the arguments by which a daemon is found; without a name, those of all daemons of a cluster."""
    cluster = f"-Dytf.minicluster={directory}"
    return (cluster,) if name is None else (f"-Dproc_{name}", cluster)
