"""A trigger in a thread: how a synchronous task waits while signals and alarms interrupt the main thread."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from .trigger import TensorFlowYarnTrigger

#: Seconds between two looks at whether the wait is over.
_TICK = 0.5


def run_trigger(trigger: TensorFlowYarnTrigger, checkpoint: Callable[[], None]) -> Mapping[str, Any]:
    """Run a trigger to its event.

    Parameters
    ----------
    trigger : TensorFlowYarnTrigger
    checkpoint : callable
        Called twice a second; what it raises ends the wait, as does what a signal handler raises.

    Returns
    -------
    mapping
        The payload of the event.
    """
    waiter = _Waiter(trigger)
    waiter.start()
    try:
        while True:
            try:
                return waiter.result.result(_TICK)
            except concurrent.futures.TimeoutError:
                checkpoint()
    finally:
        waiter.cancel()


class _Waiter(threading.Thread):
    """Runs a trigger in an event loop of its own."""

    def __init__(self, trigger: TensorFlowYarnTrigger):
        super().__init__(name="tf-yarn-wait", daemon=True)
        self.result: concurrent.futures.Future[Mapping[str, Any]] = concurrent.futures.Future()
        self._trigger = trigger
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Mapping[str, Any]] | None = None

    def run(self) -> None:
        try:
            self._task = self._loop.create_task(self._first_event())
            payload = self._loop.run_until_complete(self._task)
        except BaseException as error:  # whatever ended the thread is the main thread's to raise
            self.result.set_exception(error)
        else:
            self.result.set_result(payload)
        finally:
            self._loop.run_until_complete(self._end_the_rest())
            self._loop.close()

    async def _first_event(self) -> Mapping[str, Any]:
        async with contextlib.aclosing(self._trigger.run()) as events:
            payload: Mapping[str, Any] = (await anext(events)).payload
            return payload

    async def _end_the_rest(self) -> None:
        """End the shared poll, which would go to sleep once more."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def cancel(self) -> None:
        """End the thread, unless it has ended."""
        if self.is_alive() and self._task is not None and not self.result.done():
            with contextlib.suppress(RuntimeError):  # it has just closed its loop
                self._loop.call_soon_threadsafe(self._task.cancel)
        self.join(2.0)
