"""Handle Ctrl-C and TERM once, at a point where no step is half done."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The process received a signal to end; `Interruption` knows which."""


class Interruption:
    """Handles the first signal: exits at once, or, inside `on_signal` or `raised`, calls a function or raises an error.

    Later signals are ignored, so that a second Ctrl-C does not stop the kill that the first one started.

    Attributes
    ----------
    number : int or None
        The first signal; None before it.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._react: Callable[[int], object] = _exit_at_once
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)

    @property
    def exit_code(self) -> int:
        """The exit code of the process after a signal, 128 + its number as in shells."""
        return 128 + (self.number or signal.SIGINT)

    def wakeup(self) -> int:
        """Return a file descriptor from which another thread reads the number of each signal, one byte each.

        A Python handler runs only after the main thread has returned from C code, and looking up a host name can take
        long. Call this once, in the main thread. The descriptor is valid until the process ends.
        """
        reader, writer = os.pipe()
        for end in (reader, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        return reader

    def on_signal(self, note: Callable[[], object]) -> AbstractContextManager[None]:
        """Call `note` on a signal; it must be safe in a signal handler."""
        return self._reacting(lambda number: note())

    def raised(self) -> AbstractContextManager[None]:
        """Raise `Interrupted` on a signal, so that the terminal is restored."""

        def react(number: int) -> None:
            raise Interrupted(f"signal {number}")

        return self._reacting(react)

    @contextmanager
    def _reacting(self, react: Callable[[int], object]) -> Iterator[None]:
        self._react = react
        try:
            yield
        finally:
            self._react = _exit_at_once

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
            self._react(number)


def await_signal(wakeup: int, seconds: float | None = None) -> int | None:
    """Return the next of `SIGNALS` that comes, in any thread.

    Parameters
    ----------
    wakeup : int
        The file descriptor of `Interruption.wakeup`.
    seconds : float, optional
        After this time without a signal, return None. Default: no limit.
    """
    while select.select([wakeup], [], [], seconds)[0]:
        for number in os.read(wakeup, 64):
            if number in SIGNALS:
                return number
    return None


def _exit_at_once(number: int) -> None:
    """End the process without waiting for threads that hang on a host."""
    os._exit(128 + number)
