"""The user's command on a node: start it, end it with all its processes, and report how it ended.

The command stays in the container's process group, because NodeManagers kill by group. The agent is a child
subreaper: processes that the command leaves behind become its children, so that it can find and end them.
"""

import os
import resource
import select
import signal
import time
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ..common.contract import AGENT_WARNING, write_line
from ..common.escaping import last_states
from ..common.processes import descendants, end_with_parent, send_signal
from .usage import Meter

#: Bytes that are read from the end of the log.
TAIL = 64 * 1024
#: Time between SIGTERM and SIGKILL for orphaned processes of the command, seconds.
ORPHAN_GRACE = 1.0
#: Time after SIGKILL until the command counts as ended although processes are left, seconds.
UNKILLABLE_SECONDS = 5.0


class CommandEnd(NamedTuple):
    """How a command ended: exit code or signal, seconds, CPU seconds, peak memory in MiB."""

    code: Optional[int]
    signal: Optional[int]
    seconds: float
    cpu_seconds: float
    peak_memory_mib: float


class Command:
    """One run of the user's command, started by ``bash -c`` with exactly this environment.

    Parameters
    ----------
    text : str
    env : mapping of str to str
    files : sequence of int, optional
        The descriptors that it gets as input, output and errors. Default: no input, and the outputs of this process.
    processes : sequence of mapping of str to str, optional
        The environments of several processes that run it together, with labels on their lines. The first failure ends
        the others and is that of the command. Default: one process, with ``env``.
    grace : float, optional
        Time between SIGTERM and SIGKILL for the others, seconds.

    Attributes
    ----------
    ending : CommandEnd or None
        Set once the command has ended and none of its processes is left.
    stopping : bool
        Whether the agent ends the command.
    started_at, finished_at : float
        Seconds since the epoch.
    meter : Meter
        Measures what it uses.
    """

    def __init__(
        self,
        text: str,
        env: Mapping[str, str],
        files: Sequence[int] = (),
        processes: Sequence[Mapping[str, str]] = (),
        grace: float = ORPHAN_GRACE,
    ):
        self.ending: Optional[CommandEnd] = None
        self.stopping = False
        self.started_at = time.time()
        self.finished_at = 0.0
        self._exited: Optional[CommandEnd] = None
        self._kill_at: Optional[float] = None  # when all processes that are left get SIGKILL
        self._kill_times: Dict[int, float] = {}  # time of SIGKILL by process that has got SIGTERM
        self._started = time.monotonic()
        self._log_start = log_size()
        self.meter = Meter(env)
        self._grace = grace
        self._failed: Optional[CommandEnd] = None
        self._cpu_seconds = 0.0
        self._running: Dict[int, int] = {}  # the number of each process by its id
        self._labels = 0  # the process that writes their lines
        agent = os.getpid()
        writers: List[int] = []
        if processes:
            from .line_labels import start_labels  # few jobs need it

            self._labels, writers = start_labels(len(processes))
        for number, own in enumerate(processes or [env]):
            pid = os.fork()
            if pid == 0:
                _exec_command(text, own, agent, files, writers[number : number + 1] * 2)
            self._running[pid] = number
        for writer in writers:
            os.close(writer)

    def end(self, grace: float, *, sent: bool = False) -> None:
        """Send SIGTERM, unless it is `sent`, to all processes of the command; `reap` sends SIGKILL after the grace."""
        self.stopping = self.stopping or self._exited is None
        if sent:
            self._kill_times.update(dict.fromkeys(descendants(), time.monotonic() + grace))
        self._terminate(descendants(), grace)

    def end_now(self, grace: float) -> None:
        """End the command and wait until it has ended or cannot be killed."""
        self.end(grace)
        until = time.monotonic() + grace + UNKILLABLE_SECONDS
        while not self.reap() and time.monotonic() < until:
            select.select([], [], [], 0.05)

    def _terminate(self, pids: Iterable[int], grace: float) -> None:
        """Send SIGTERM to processes that have not got it; plan SIGKILL for all in at most `grace` seconds."""
        due = time.monotonic() + grace
        self._kill_at = due if self._kill_at is None else min(due, self._kill_at)
        self._send_sigterm(pids, due)

    def _send_sigterm(self, pids: Iterable[int], due: float) -> None:
        for pid in pids:
            if pid not in self._kill_times:
                self._kill_times[pid] = due
                send_signal([pid], signal.SIGTERM)

    def reap(self) -> Optional[CommandEnd]:
        """Collect processes that have ended, and end the others; return how the command has ended, None before that.

        Call it at SIGCHLD, and every 50 ms while `waiting`.
        """
        childless = self._collect()
        if not self.waiting:
            return self.ending
        left = {} if childless else descendants()
        self._kill_times = {pid: due for pid, due in self._kill_times.items() if pid in left}
        if self._exited and not (self.stopping and self._exited.signal == signal.SIGTERM):
            self._terminate(left, self._grace if self._running else ORPHAN_GRACE)
        # A shell without a trap dies of SIGTERM at once; its programs keep the whole grace. A process that it forked
        # at that moment has missed SIGTERM. Leave a child to a parent that has got SIGTERM: its trap may need the
        # child to save a checkpoint.
        orphans = [pid for pid, parent in left.items() if parent == os.getpid()]
        self._send_sigterm(orphans, time.monotonic() + ORPHAN_GRACE)
        self._kill(left)
        if self._exited and (not left or self._unkillable()):
            self.ending = self._exited
        return self.ending

    def _collect(self) -> bool:
        """Collect the children that have ended; return True if no child, and so no descendant, is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid in self._running:
                process = self._running.pop(pid)
                self._cpu_seconds += usage.ru_utime + usage.ru_stime
                if self._exited:
                    continue
                code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
                number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
                self.finished_at = time.time()
                seconds, peak = time.monotonic() - self._started, usage.ru_maxrss / 1024.0
                ending = CommandEnd(code, number, seconds, self._cpu_seconds, peak)
                if code != 0 and self._failed is None:
                    self._failed = ending
                # While the agent ends the command, each process keeps its time for a last checkpoint.
                if not self._running or (self._failed and not self.stopping):
                    self._exited = self._failed or ending
                if self._running and self._exited:
                    how = "signal %d" % number if number else "exit code %s" % code
                    write_line(AGENT_WARNING, "LOCAL_RANK %d has ended with %s; the others get SIGTERM", process, how)

    def _kill(self, left: Mapping[int, int]) -> None:
        """Send SIGKILL to the processes for which it is due, and to their children."""
        now = time.monotonic()
        overdue: Dict[int, None] = {}
        for pid, parent in left.items():
            if parent in overdue or now >= min(self._kill_times.get(pid, now + 1), self._kill_at or now + 1):
                overdue[pid] = None
        overdue.pop(self._labels, None)  # it ends after the last line
        send_signal(overdue, signal.SIGKILL)

    def _unkillable(self) -> bool:
        """Return whether SIGKILL has no effect: on another user's process, a hang in the kernel, or a fork bomb."""
        return self._kill_at is not None and time.monotonic() > self._kill_at + UNKILLABLE_SECONDS

    @property
    def waiting(self) -> bool:
        """Whether the command is ending, so that the caller must call `reap` every 50 ms."""
        return self.ending is None and (self.stopping or self._exited is not None)

    def log_tail(self, limit: int) -> str:
        """Return at most `limit` characters of the end of its output; empty when stdout is not a file."""
        return read_log_end(limit, self._log_start)


def read_log_end(limit: int, start: int = 0) -> str:
    """Return at most `limit` characters of the end of the container's log, of what stands behind `start` (bytes)."""
    try:
        with open("/proc/self/fd/1", "rb") as log:
            log.seek(max(start, log_size() - TAIL))
            content = log.read(TAIL)
    except OSError:
        return ""
    text = last_states(content.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}"))
    if len(text) <= limit:
        return text
    return text[-limit:].partition("\n")[2] or text[-limit:] if limit else ""


def _exec_command(text: str, env: Mapping[str, str], agent: int, files: Sequence[int], outputs: Sequence[int]) -> None:
    """Turn the forked child into the user's command; never returns."""
    try:
        end_with_parent(agent)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # A NodeManager leaves an open pipe: a program that reads its input would wait until the deadline.
        for place, file in enumerate(files or [os.open(os.devnull, os.O_RDONLY), *outputs]):
            os.dup2(file, place)
        # A training whose output goes through tee fails with its program.
        os.execvpe("bash", ["bash", "-o", "pipefail", "-c", text], dict(env))
    except OSError as error:
        write_line(AGENT_WARNING, "cannot start bash: %s", error)
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)


def open_wakeup() -> int:
    """Return a descriptor that is readable after each signal that this process handles, SIGCHLD among them."""
    wakeup, writer = os.pipe()
    for end in (wakeup, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wakeup


def end_as(ending: CommandEnd) -> int:
    """Return the exit code of a command; if a signal ended it, end this process by the same one."""
    if ending.signal:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if ending.signal != signal.SIGKILL:
            signal.signal(ending.signal, signal.SIG_DFL)
        os.kill(os.getpid(), ending.signal)
    return ending.code or 0


def log_size() -> int:
    """Return the bytes of the container's log; 0 if stdout is not a file."""
    try:
        return os.fstat(1).st_size
    except OSError:
        return 0
