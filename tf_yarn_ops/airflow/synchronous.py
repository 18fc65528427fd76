"""`run_trigger`: run a trigger in a thread, so that signals still reach the main thread of a synchronous task."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from .trigger import TensorFlowYarnTrigger

#: Seconds between two calls of the checkpoint.
_TICK = 0.5


def run_trigger(trigger: TensorFlowYarnTrigger, checkpoint: Callable[[], None]) -> Mapping[str, Any]:
    """Run a trigger to its event.

    Parameters
    ----------
    trigger : TensorFlowYarnTrigger
    checkpoint : callable
        Called twice a second. An error of the checkpoint, or of a signal handler, ends the wait.

    Returns
    -------
    mapping
        The payload of the event.
    """
    trigger.stored = False
    thread = _TriggerThread(trigger)
    try:
        thread.start()
        while True:
            try:
                return thread.result.result(_TICK)
            except concurrent.futures.TimeoutError:
                checkpoint()
    finally:
        thread.cancel()


class _TriggerThread(threading.Thread):
    """Runs a trigger in an event loop of its own.

    The thread makes the loop: Airflow's alarm raises in the main thread, and would leave half a loop there.
    """

    def __init__(self, trigger: TensorFlowYarnTrigger):
        super().__init__(name="tf-yarn-wait", daemon=True)
        self.result: concurrent.futures.Future[Mapping[str, Any]] = concurrent.futures.Future()
        self._trigger = trigger
        self._task: asyncio.Task[Mapping[str, Any]] | None = None
        self._cancelled = False

    def run(self) -> None:
        try:
            payload = self._wait()
        except BaseException as error:  # the main thread raises it
            self.result.set_exception(error)
        else:
            self.result.set_result(payload)

    def _wait(self) -> Mapping[str, Any]:
        loop = asyncio.new_event_loop()
        try:
            self._task = loop.create_task(self._first_event())
            if self._cancelled:  # before there was a task
                self._task.cancel()
            return loop.run_until_complete(self._task)
        finally:
            loop.run_until_complete(self._end_the_rest())
            loop.close()

    async def _first_event(self) -> Mapping[str, Any]:
        async with contextlib.aclosing(self._trigger.run()) as events:
            payload: Mapping[str, Any] = (await anext(events)).payload
            return payload

    async def _end_the_rest(self) -> None:
        """Cancel the shared poll, which would sleep for one more interval."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def cancel(self) -> None:
        """End the thread if it still runs."""
        self._cancelled = True
        if self._task is not None and not self.result.done():
            with contextlib.suppress(RuntimeError):  # the loop was closed a moment ago
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        if self.is_alive():
            self.join(2.0)
