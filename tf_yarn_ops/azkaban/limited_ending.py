"""End the launcher within seconds after a cancel or after the end of the executor.

To cancel a job, Azkaban sends SIGTERM, and SIGKILL 30 s later. An executor that stops or is killed sends nothing to
its jobs. Azkaban then marks them as failed, so their applications must be killed too.
"""

import os
import select
import stat
import threading
import time
from collections.abc import Callable

from ..terminal.signals import await_signal

#: Seconds that the ordinary ending may take; then the last call kills the application.
ENDING_SECONDS = 12.0
#: Seconds that the last call may take; then the process ends even without an answer.
LAST_CALL = 5.0
#: Seconds for the message about an unanswered last call, because a full pipe without a reader blocks.
_LAST_MESSAGE_SECONDS = 1.0
#: Seconds between two checks of the parent process.
_INTERVAL = 0.25
EXECUTOR_ENDED = "the Azkaban executor has gone"


class LimitedEnding:
    """Watches, in a thread of its own, for the request to end, and ends the process within a limited time after it.

    Parameters
    ----------
    on_end : callable
        Called after a signal or the end of the parent process, perhaps more than once. It must be safe in any thread
        and in a signal handler.
    last_call : callable
        Called in a thread `ENDING_SECONDS` seconds after the request to end.
    no_answer : callable
        Called in a thread if `last_call` has not returned after `LAST_CALL` seconds.
    leave : callable, optional
        Ends the process with an exit code. Default: `os._exit`, which does not wait for threads that hang.

    Attributes
    ----------
    why : str
        The cause of the end; empty before the request to end.
    code : int
        The exit code for the requested end.
    """

    def __init__(
        self,
        on_end: Callable[[], object],
        last_call: Callable[[], object],
        no_answer: Callable[[], object],
        leave: Callable[[int], object] = os._exit,
    ):
        self.why = ""
        self._on_end = on_end
        self._last_call = last_call
        self._no_answer = no_answer
        self._leave = leave
        self._requested_at: float | None = None
        self.code = 1
        self._parent = os.getppid()
        self._stdin = _is_pipe(0)

    def start(self, signals: int) -> None:
        """Start to watch; ``signals`` is the file descriptor of `Interruption.wakeup`."""
        threading.Thread(target=self._watch, args=(signals,), daemon=True, name="ending").start()

    def request(self, why: str, code: int) -> None:
        """Request the end of the process with this exit code; safe in a signal handler."""
        if not self.why:
            self.why, self.code, self._requested_at = why, code, time.monotonic()

    def signalled(self, number: int) -> None:
        """Request the end because of a signal; the handler and the pipe may both call this for one signal."""
        self.request(f"Azkaban has cancelled the job (signal {number})", 128 + number)
        self._on_end()

    def _watch(self, signals: int) -> None:
        while True:
            if not self.why and self._parent_has_ended():
                self.request(EXECUTOR_ENDED, 1)
                self._on_end()
            if self._requested_at is not None and time.monotonic() - self._requested_at >= ENDING_SECONDS:
                last = threading.Thread(target=self._last_call, daemon=True, name="last-call")
                last.start()
                last.join(LAST_CALL)
                if last.is_alive():
                    words = threading.Thread(target=self._no_answer, daemon=True, name="last-words")
                    words.start()
                    words.join(_LAST_MESSAGE_SECONDS)
                self._leave(self.code)
                return
            number = await_signal(signals, _INTERVAL)  # also one that the main thread cannot handle now
            if number and not self.why:
                self.signalled(number)

    def _parent_has_ended(self) -> bool:
        """Return whether we have another parent process now, or the other end of our standard input is closed."""
        if os.getppid() != self._parent:
            return True
        if self._stdin and select.select([0], [], [], 0)[0]:
            return not os.read(0, 65536)
        return False


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
