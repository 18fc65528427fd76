"""The user's command on a node: start it, end it with all that it started, say how it ended.

The command stays in the container's process group, because NodeManagers kill by
group. The agent is a child subreaper, so that whatever the command leaves behind
becomes its child and can be found and ended.
"""

import os
import signal
import time
from typing import List, Mapping, NamedTuple, Optional

from ..common.processes import descendants, die_with_parent, signal_all

#: How much of the end of the log is looked at, bytes.
TAIL = 64 * 1024
#: What a command that has ended may take to end what it left behind, seconds.
ORPHAN_GRACE = 1.0
#: How long SIGKILL may take before the command's ending is told without it, seconds.
UNKILLABLE_SECONDS = 5.0


class Ending(NamedTuple):
    """How a command ended: exit code or signal, seconds, CPU seconds, peak memory in MiB."""

    code: Optional[int]
    signal: Optional[int]
    seconds: float
    cpu_seconds: float
    peak_memory_mib: float


class Command:
    """One run of the user's command, started by ``bash -c`` with exactly this environment.

    Attributes
    ----------
    ending : Ending or None
        Set once the command has ended and nothing of it is left.
    stopping : bool
        Whether we ended it.
    started_at, finished_at : float
        Seconds since the epoch.
    """

    def __init__(self, text: str, env: Mapping[str, str]):
        self.ending: Optional[Ending] = None
        self.stopping = False
        self.started_at = time.time()
        self.finished_at = 0.0
        self._ended: Optional[Ending] = None
        self._kill_at: Optional[float] = None
        self._started = time.monotonic()
        self._log_start = _log_size()
        agent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _become(text, env, agent)

    def end(self, grace: float) -> None:
        """Send SIGTERM to all of it; SIGKILL follows `grace` seconds later, as `reap` is called."""
        self.stopping = True
        self._terminate(grace)

    def _terminate(self, grace: float) -> None:
        if self._kill_at is None:
            self._kill_at = time.monotonic() + grace
            signal_all(descendants(), signal.SIGTERM)

    def reap(self) -> bool:
        """Collect what has ended and push on what should; True once all of it is over.

        Call it at SIGCHLD, and every 50 ms while `waiting`.
        """
        left: List[int] = []
        childless = False
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                childless = True  # and no descendants then: orphans become our children
                break
            if pid == 0:
                break
            if pid == self.pid:
                code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
                number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
                self.finished_at = time.time()
                self._ended = Ending(code, number, time.monotonic() - self._started,
                                     usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024.0)
        if not childless and self._ended is None and self._kill_at is None:
            left = [self.pid]
        elif not childless:
            left = descendants()
        if self._ended and (not left or self._hopeless()):
            self.ending = self._ended
        elif self._ended:
            self._terminate(ORPHAN_GRACE)
        if left and self._kill_at is not None and time.monotonic() >= self._kill_at:
            signal_all(left, signal.SIGKILL)
        return self.ending is not None

    def _hopeless(self) -> bool:
        """Whether what is left can't be killed (another user's, or hanging in the kernel); YARN has to end it."""
        return self._kill_at is not None and time.monotonic() > self._kill_at + UNKILLABLE_SECONDS

    @property
    def waiting(self) -> bool:
        """Whether the end is under way, so that `reap` has to be called often."""
        return self._kill_at is not None and self.ending is None

    def log_tail(self, limit: int) -> str:
        """Give at most `limit` characters of the end of what it wrote; empty when stdout is no file."""
        try:
            with open("/proc/self/fd/1", "rb") as log:
                size = _log_size()
                log.seek(max(self._log_start, size - TAIL))
                content = log.read(TAIL)
        except OSError:
            return ""
        text = content.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        if len(text) <= limit:
            return text
        return text[-limit:].partition("\n")[2] or text[-limit:] if limit else ""


def _become(text: str, env: Mapping[str, str], agent: int) -> None:
    """Turn the forked child into the user's command; never returns."""
    try:
        die_with_parent()
        if os.getppid() != agent:
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe("bash", ["bash", "-c", text], dict(env))
    except OSError as error:
        os.write(2, ("tf_yarn_ops agent: can't start bash: %s\n" % error).encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)


def _log_size() -> int:
    try:
        return os.fstat(1).st_size
    except OSError:
        return 0
