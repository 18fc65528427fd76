"""The process of a session of ``ytf exec``: a command or a shell beside the task's own command, in its environment.

The agent starts it. It leaves the container's process group, because a shell needs one of its own, and gets SIGTERM
from the kernel when the agent ends. It ends with its connection and with the task, after all processes below it.
"""

import contextlib
import fcntl
import os
import select
import signal
import struct
import sys
import termios
import time
from typing import Any, Dict, List, Mapping, Tuple

from ..common import protocol
from ..common.contract import AGENT_LINE, RUNTIME_FILE, read_job, write_line
from ..common.exec_session import ATTACH, EXEC, MAX_PIECE, ExecChannel
from ..common.link import LinkLost, connect
from ..common.mutual_tls import client_context
from ..common.processes import end_with_parent, set_child_subreaper
from .command import Command, open_wakeup

#: Seconds without input and output after which a session ends.
MAX_IDLE_SECONDS = 3600.0
#: Seconds between SIGTERM and SIGKILL: less than the agent leaves to this process.
EXEC_GRACE = 0.4


def start_exec(host: str, number: str, env: Mapping[str, str]) -> None:
    """Start the process of a session in the environment of the task; raise OSError if the system refuses."""
    os.posix_spawn(
        sys.executable, [sys.executable, "-I", "-S", RUNTIME_FILE, "exec", host, number, str(os.getpid())], env
    )


class ExecProcess:
    """The command's end of a session, in a process that leads a session of the kernel and is a child subreaper.

    Parameters
    ----------
    channel : ExecChannel
    request : mapping
        The client's request.
    idle_seconds : float, optional
        Default `MAX_IDLE_SECONDS`.
    """

    def __init__(self, channel: ExecChannel, request: Mapping[str, Any], idle_seconds: float = MAX_IDLE_SECONDS):
        self._channel, self._idle_seconds = channel, idle_seconds
        self._active_at = time.monotonic()
        self._pending = b""
        self._signals: List[int] = []
        self._wakeup = open_wakeup()
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # keys of the terminal are for the command
        signal.signal(signal.SIGTERM, lambda *_: self._signals.append(1))
        self._terminal, self._input, self._outputs, ends = _open_terminal() if request["tty"] else _open_pipes()
        self._resize(request)
        env = {**os.environ, **({"TERM": request["term"] or "dumb"} if request["tty"] else {})}
        self._command = Command(request["command"] or "exec bash", env, ends)
        for file in {*ends}:
            os.close(file)
        for file in (self._input, *self._outputs.values()):
            os.set_blocking(file, False)

    def serve(self) -> None:
        """Pass input and output until the command ends, then send its exit code, or why the session ends before.

        Raises
        ------
        LinkLost
            Always at last: the client ends the connection.
        """
        try:
            self._channel.send("taken")
            why = ""
            while not why and (self._outputs or self._command.ending is None or not self._channel.free):
                self._step()
                if self._signals:
                    why = "the task ends"
                elif time.monotonic() > self._active_at + self._idle_seconds:
                    why = "no input and no output for %g minutes" % (self._idle_seconds / 60)
        finally:
            self._command.end_now(EXEC_GRACE)
        if why:
            self._channel.send("reason", why=why)
        elif self._command.ending:
            self._channel.send("exit", code=self._command.ending.code or 128 + (self._command.ending.signal or -128))
        while True:  # to close first could lose what is sent
            self._channel.receive()
            select.select([self._channel.link], [], [], 1)

    def _step(self) -> None:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        poll.register(self._channel.link, select.POLLIN)
        if self._pending:
            poll.register(self._input, select.POLLOUT)
        if self._channel.free:
            for file in self._outputs.values():
                poll.register(file, select.POLLIN)
        poll.poll(50 if self._command.waiting else 500)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        self._command.reap()
        for message in self._channel.receive():
            self._on_message(message)
        self._write_input()
        self._pass_output()

    def _on_message(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "size":
            self._resize(message)
        if message["type"] == "input":
            self._active_at = time.monotonic()
            if self._pending:
                raise protocol.ProtocolError("input before the last was taken")
            self._pending = message["data"]
            if not self._pending and self._input >= 0:
                os.close(self._input)
                self._input = -1

    def _write_input(self) -> None:
        """Write to the command's input, and let the client send more; what a closed input gets is dropped."""
        if self._pending:
            try:
                written = os.write(self._input, self._pending)
            except BlockingIOError:
                return
            except OSError:
                written = len(self._pending)
            self._pending = self._pending[written:]
            if not self._pending:
                self._channel.send("taken")

    def _pass_output(self) -> None:
        """Send what the command has written; forget an output that nobody can write any more."""
        for kind, file in list(self._outputs.items()):
            if not self._channel.free:
                return
            try:
                piece = os.read(file, MAX_PIECE)
            except BlockingIOError:
                if self._command.ending is None:
                    continue
                piece = b""  # only a process that SIGKILL has not ended has it open
            except OSError:  # a terminal without processes
                piece = b""
            del self._outputs[kind]
            if piece:
                self._active_at = time.monotonic()
                self._channel.send_piece(kind, piece)
                self._outputs[kind] = file  # the other one is next

    def _resize(self, size: Mapping[str, Any]) -> None:
        if self._terminal >= 0:
            rows, columns = (min(max(size[name], 0), 0xFFFF) for name in ("rows", "columns"))
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


#: A terminal or -1, the end of the command's input, those of its output by kind, and its own three.
_Ends = Tuple[int, int, Dict[str, int], Tuple[int, int, int]]


def _open_terminal() -> _Ends:
    """Open a terminal, which becomes the controlling terminal of this process and so of the command."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    return ours, os.dup(ours), {"output": ours}, (theirs, theirs, theirs)


def _open_pipes() -> _Ends:
    (stdin, ours), (out, stdout), (errors, stderr) = os.pipe(), os.pipe(), os.pipe()
    return -1, ours, {"output": out, "errors": errors}, (stdin, stdout, stderr)


def main(arguments: List[str]) -> int:
    """Serve a session.

    Parameters
    ----------
    arguments : list of str
        The application master's host, the id of the session, and the process id of the agent.

    Returns
    -------
    int
        0.
    """
    host, number, agent = arguments
    os.setsid()
    set_child_subreaper()
    end_with_parent(int(agent), signal.SIGTERM)
    try:
        channel = ExecChannel(connect(host, read_job().ports, client_context()))
        channel.send(ATTACH, id=number)
        while not (requests := [one for one in channel.receive() if one["type"] == EXEC]):
            select.select([channel.link], [], [], 1)
        ExecProcess(channel, requests[0]).serve()
    except (LinkLost, OSError, ValueError) as error:
        write_line(AGENT_LINE, "a session of ytf exec has ended: %s", error)
    return 0
