"""Being told to end: by a signal, or by the executor's disappearance; and being gone within seconds.

Azkaban's cancel is SIGTERM, and SIGKILL 30 s later. An executor that stops or is killed
tells nobody: its jobs are marked as failed, so what they run has to go as well.
"""

import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable

#: Seconds that the ordinary way of ending may take; then the application is killed by a call of its own.
PATIENCE = 12.0
#: Seconds for that call; whatever it says, the process ends then.
LAST_CALL = 5.0
#: Seconds that the words about its silence may take: a full pipe that nobody reads takes none.
_LAST_WORDS = 1.0
#: Seconds between two looks at the parent.
_INTERVAL = 0.25
EXECUTOR_GONE = "the Azkaban executor has gone"


class Ending:
    """Watches for the end in a thread of its own, and sees to it that it comes.

    Parameters
    ----------
    on_end : callable
        Told that the parent has gone or that a signal has come, perhaps more than once; must be safe in any
        thread and in a signal handler.
    last_call : callable
        Called in a thread when `PATIENCE` has run out.
    no_answer : callable
        Called when that has not come back after `LAST_CALL`; the last that is done.
    leave : callable, optional
        Ends the process with an exit code. Default: at once, threads that hang do not count.

    Attributes
    ----------
    why : str
        Empty until the end was asked for.
    """

    def __init__(self, on_end: Callable[[], object], last_call: Callable[[], object],
                 no_answer: Callable[[], object], leave: Callable[[int], object] = os._exit):
        self.why = ""
        self._on_end = on_end
        self._last_call = last_call
        self._no_answer = no_answer
        self._leave = leave
        self._asked_at: float | None = None
        self._code = 1
        self._parent = os.getppid()
        self._stdin = _is_pipe(0)
        self._signals: int | None = None

    def start(self, signals: int | None = None) -> None:
        """Begin to watch; ``signals`` is the descriptor of `Interruption.wakeup`."""
        self._signals = signals
        threading.Thread(target=self._watch, daemon=True, name="ending").start()

    def ask(self, why: str, code: int) -> None:
        """Take note that the process has to end with this exit code; safe in a signal handler."""
        if not self.why:
            self.why, self._code, self._asked_at = why, code, time.monotonic()

    def signalled(self, number: int) -> None:
        """Take a signal, from its handler or from the pipe: who is second changes nothing."""
        self.ask(f"Azkaban has cancelled the job (signal {number})", 128 + number)
        self._on_end()

    @property
    def code(self) -> int:
        """The exit code of the end that was asked for."""
        return self._code

    def _watch(self) -> None:
        while True:
            if not self.why and self._parent_has_gone():
                self.ask(EXECUTOR_GONE, 1)
                self._on_end()
            if self._asked_at is not None and time.monotonic() - self._asked_at >= PATIENCE:
                last = threading.Thread(target=self._last_call, daemon=True, name="last-call")
                last.start()
                last.join(LAST_CALL)
                if last.is_alive():
                    words = threading.Thread(target=self._no_answer, daemon=True, name="last-words")
                    words.start()
                    words.join(_LAST_WORDS)
                self._leave(self._code)
                return
            self._rest()

    def _rest(self) -> None:
        """Wait for the next look; a signal ends it, even one that the main thread can't handle now."""
        if self._signals is None:
            time.sleep(_INTERVAL)
        elif select.select([self._signals], [], [], _INTERVAL)[0]:
            for number in os.read(self._signals, 64):
                if number in (signal.SIGTERM, signal.SIGINT) and not self.why:
                    self.signalled(number)

    def _parent_has_gone(self) -> bool:
        """Whether another process is our parent now, or nobody holds the other end of our standard input."""
        if os.getppid() != self._parent:
            return True
        if self._stdin:
            poll = select.poll()
            poll.register(0, select.POLLIN)
            for _, event in poll.poll(0):
                return not (event & select.POLLIN and os.read(0, 65536))
        return False


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
