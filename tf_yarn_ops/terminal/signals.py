"""Ctrl-C and TERM: noticed once, at a place where nothing is half done."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The process was told to end; `number` is the signal."""

    def __init__(self, number: int):
        super().__init__(f"signal {number}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """128 + n, as shells say it."""
        return 128 + self.number


class Interruption:
    """Handles the first signal: by leaving at once, by raising, or by taking note, as the place in the program needs.

    Later signals are passed over, so that a second Ctrl-C does not break off the
    kill that the first one started.

    Attributes
    ----------
    number : int or None
        The signal that came.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._react: Callable[[int], object] = _leave
        self._before: dict[int, Any] = {}
        self._pipe: tuple[int, int] | None = None

    def __enter__(self) -> "Interruption":
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._pipe is not None:
            signal.set_wakeup_fd(-1)

    def wakeup(self) -> int:
        """Give a descriptor from which another thread reads each signal's number, as a byte.

        A handler waits until the main thread is back from C, and a search for a host's name
        takes long. To be called in the main thread; valid until the process ends.
        """
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        return self._pipe[0]

    @contextmanager
    def noted(self, note: Callable[[], object]) -> Iterator[None]:
        """Inside, a signal calls `note`, which must be safe in a signal handler."""
        with self._reacting(lambda number: note()):
            yield

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Inside, a signal raises `Interrupted`, so that the terminal is given back."""

        def react(number: int) -> None:
            raise Interrupted(number)

        with self._reacting(react):
            yield

    @contextmanager
    def _reacting(self, react: Callable[[int], object]) -> Iterator[None]:
        self._react = react
        try:
            yield
        finally:
            self._react = _leave

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
            self._react(number)


def _leave(number: int) -> None:
    """End the process where nothing is at stake; threads that wait for a hanging host do not hold it up."""
    os._exit(128 + number)
