"""``ytf exec``: a shell or a command beside a running task, over the coordinator's port.

The job's key proves the right. Its owner alone can read it, in the application's directory.
"""

import os
import select
import shlex
import signal
import ssl
import tempfile
import termios
import tty
from collections.abc import Iterator
from pathlib import Path
from socket import gethostname

import click

from ..errors import ClusterUnreachable, SpecInvalid, SubmissionRejected
from ..history.missing_record import read_job_file
from ..runtime.common.contract import CERTIFICATE_FILE, KEY_FILE, VERSION
from ..runtime.common.escaping import escape_controls
from ..runtime.common.exec_session import EXEC, MAX_PIECE, ExecChannel
from ..runtime.common.link import LinkLost, connect
from ..runtime.common.mutual_tls import client_context
from ..staging.staging_directory import StagingDirectory
from ..terminal.output import echo
from .command_line import ClusterCall, application_ids_only, cluster_options

#: The exit code of a session that ends without the command's, as that of ssh.
BROKEN_SESSION = 255


@click.command(name="exec")
@cluster_options
@click.argument("application_id", metavar="APP", callback=application_ids_only)
@click.argument("task")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
def exec_command(application_id: str, task: str, words: tuple[str, ...], call: ClusterCall) -> int:
    """Run a shell or a command beside a running task.

    It has the task's environment, working directory and rights, and ends with the task. It gets a terminal if this
    command has one. The exit code is that of the command, 255 if the session ends before. The site must allow it, by
    allow_exec; only the owner of the job can use it.
    """
    session = call.launcher().session
    if session.resourcemanager.node_files() is not None:
        raise SpecInvalid(f"the tasks of {application_id} are processes of this machine: any shell here is beside them")
    application, user = session.resourcemanager.get(application_id), session.cluster.user
    if application["state"] != "RUNNING":
        raise SpecInvalid(f"{application_id} does not run: its state in YARN is {application['state']}")
    if application["user"] != user:
        raise SpecInvalid(
            f"{application_id} belongs to {application['user']}, who alone may use ytf exec; you are {user}"
        )
    if (job := read_job_file(session.staging(), application_id)) is None:
        raise SubmissionRejected(f"{session.cluster.directory(application_id)} has no job file of this version")
    size = os.get_terminal_size(1) if os.isatty(0) and os.isatty(1) else None
    rows, columns = (size.lines, size.columns) if size else (0, 0)
    host, why = str(application.get("amHostHttpAddress") or "").rpartition(":")[0], "its key is gone"
    for context in _read_keys(session.staging(), application_id):
        try:
            channel = ExecChannel(connect(host, job.ports, context))
            channel.send(
                EXEC, version=VERSION, task=task, command=shlex.join(words), tty=bool(size), rows=rows,
                columns=columns, term=os.environ.get("TERM", ""), user=user, host=gethostname(),
            )  # fmt: skip
        except LinkLost as error:
            why = str(error)
            continue
        code, reason = follow_session(channel, size)
        if reason:
            echo(f"ytf exec: {escape_controls(reason, '')}")
        return code
    raise ClusterUnreachable(
        f"the coordinator of {application_id} can't be reached: {why}. ytf exec connects to it directly, not through "
        "a gateway; a firewall must let this machine reach the coordinator_ports of the site file"
    )


def _read_keys(staging: StagingDirectory, application_id: str) -> Iterator[ssl.SSLContext]:
    """Yield a context for each key in an application's directory, which belongs to us alone.

    Each client that has submitted the application has left one; YARN uses that of the first.
    """
    files, folder = staging.filesystem, staging.cluster.directory(application_id)
    staging.check_owner()
    status = files.status(folder)
    if status is None or status.owner != staging.cluster.user or status.permission & 0o077:
        raise SubmissionRejected(f"{folder} is not ours alone ({status.describe() if status else 'missing'})")
    for place in (folder, *(f"{folder}/{one.name}" for one in files.list(folder) if one.is_directory)):
        parts = {name: files.read(f"{place}/{name}") for name in (CERTIFICATE_FILE, KEY_FILE)}
        if all(parts.values()):
            with tempfile.TemporaryDirectory() as own:  # of mode 700; ssl reads keys from files only
                for name, content in parts.items():
                    Path(own, name).write_bytes(content or b"")
                context = client_context(own)
            yield context


def follow_session(channel: ExecChannel, size: os.terminal_size | None) -> tuple[int, str]:
    """Pass input and output until the session ends; a terminal is raw meanwhile.

    Parameters
    ----------
    channel : ExecChannel
        With the request sent.
    size : os.terminal_size or None
        Of the terminal; None without one.

    Returns
    -------
    tuple of int and str
        The exit code, and the reason if it is not that of the command.
    """
    pending, target, reads = b"", 1, True
    channel.free = False  # until the process takes input
    saved = termios.tcgetattr(0) if size else None
    try:
        if size:  # each key reaches the command, Ctrl-C and what is typed already too
            tty.setraw(0, termios.TCSADRAIN)
        while True:
            poll = select.poll()
            poll.register(channel.link, select.POLLIN)
            if pending:
                poll.register(target, select.POLLOUT)
            if reads and channel.free:
                poll.register(0, select.POLLIN)
            ready = dict(poll.poll(500))
            for message in channel.receive():
                if message["type"] in ("output", "errors"):
                    pending, target = message["data"], 1 if message["type"] == "output" else 2
                elif message["type"] == "exit":
                    return message["code"] & 0xFF, ""
                elif message["type"] == "reason":
                    return BROKEN_SESSION, message["why"]
            if pending and target in ready:
                # So many bytes never block, and an end that does not answer ends the session.
                pending = pending[os.write(target, pending[: select.PIPE_BUF]) :]
                if not pending:
                    channel.send("taken")
            if 0 in ready:
                piece = os.read(0, MAX_PIECE)
                reads = bool(piece)
                channel.send_piece("input", piece)
            if size and (now := os.get_terminal_size(1)) != size:
                size = now
                channel.send("size", rows=size.lines, columns=size.columns)
    except BrokenPipeError:
        return 128 + signal.SIGPIPE, ""
    except (LinkLost, OSError, ValueError) as error:
        return BROKEN_SESSION, f"the session is lost: {error}"
    finally:
        if saved:
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
