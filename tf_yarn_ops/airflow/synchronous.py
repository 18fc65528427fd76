"""`follow_in_thread`: follow an application in a thread, so that signals still reach the main thread of a task."""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from ..runtime.common.report import JobReport
from .following import Followed, follow
from .streamed_log import ProgramLines

#: Seconds between two calls of the checkpoint.
_TICK = 0.5


def follow_in_thread(followed: Followed, log: logging.Logger, program: ProgramLines | None,
                     checkpoint: Callable[[], None]) -> JobReport:
    """Wait for the end of an application; return its report.

    Parameters
    ----------
    followed : Followed
    log : logging.Logger
    program : ProgramLines or None
        See `following.follow`.
    checkpoint : callable
        Called twice a second. An error of the checkpoint, or of a signal handler, ends the wait.
    """
    thread = _Thread(lambda: follow(followed, log, lambda application_id: None, program))
    try:
        thread.start()
        while True:
            try:
                return thread.result.result(_TICK)
            except concurrent.futures.TimeoutError:
                checkpoint()
    finally:
        thread.cancel()


class _Thread(threading.Thread):
    """Runs a coroutine in an event loop of its own.

    The thread makes the loop: Airflow's alarm raises in the main thread, and would leave half a loop there.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, JobReport]]):
        super().__init__(name="tf-yarn-wait", daemon=True)
        self.result: concurrent.futures.Future[JobReport] = concurrent.futures.Future()
        self._work = work
        self._task: asyncio.Task[JobReport] | None = None
        self._cancelled = False

    def run(self) -> None:
        try:
            self.result.set_result(asyncio.run(self._main()))  # its end cancels the shared poll, which may sleep
        except BaseException as error:  # the main thread raises it
            self.result.set_exception(error)

    async def _main(self) -> JobReport:
        self._task = asyncio.ensure_future(self._work())
        if self._cancelled:  # before there was a task
            self._task.cancel()
        return await self._task

    def cancel(self) -> None:
        """End the thread if it still runs."""
        self._cancelled = True
        if self._task is not None and not self.result.done():
            with contextlib.suppress(RuntimeError):  # the loop was closed a moment ago
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        if self.is_alive():
            self.join(2.0)
