"""`Pauses`: whether this triggerer stood still so long that another one may follow its applications.

Airflow calls ``on_kill`` when a task is over, and also when another triggerer has taken the trigger over, which it does
only after the heartbeat of this one has stopped. A trigger that asked for the state of its task each time would hold up
all others: for its first answer Airflow's triggerer builds an API server in itself.
"""

import asyncio
import contextlib
import contextvars
import logging
import math
import time
import weakref
from collections.abc import Callable, Iterator

from .versions import conf, ping_supervisor

logger = logging.getLogger(__name__)

#: Parts of ``[triggerer] triggerer_health_check_threshold``: between two pings, and of a pause that counts.
_INTERVAL, _PAUSE = 1 / 6, 2 / 3
#: Seconds after a pause within which Airflow notices that another triggerer has the triggers, at most.
_NOTICED = 300.0


class Pauses:
    """The pauses of one triggerer: of its event loop, and of the process that renews its heartbeat.

    Parameters
    ----------
    threshold : float
        Seconds without a heartbeat after which Airflow gives the triggers to another triggerer.
    clock : callable, optional
        Monotonic, seconds.
    """

    def __init__(self, threshold: float, clock: Callable[[], float] = time.monotonic):
        self._threshold = threshold
        self._clock = clock
        self._answered = clock()
        self._paused = -math.inf
        self._running = 0
        self._pinging: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Measure while a trigger runs; all triggers of an event loop share the pings."""
        if not self._running:
            self._answered = self._clock()
            # In a context of its own, without the log of the first trigger's task.
            loop = asyncio.get_running_loop()
            self._pinging = contextvars.Context().run(loop.create_task, self._ping())
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running and self._pinging is not None:
                self._pinging.cancel()

    def may_be_replaced(self) -> bool:
        """Return whether another triggerer may have the triggers of this one."""
        now = self._clock()
        return now - self._answered > _PAUSE * self._threshold or now - self._paused < _NOTICED

    async def _ping(self) -> None:
        while True:
            await ping_supervisor()
            now = self._clock()
            if now - self._answered > _PAUSE * self._threshold:
                logger.info("the triggerer stood still for %.0f s", now - self._answered)
                self._paused = now
            self._answered = now
            await asyncio.sleep(_INTERVAL * self._threshold)


_pauses: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pauses]" = weakref.WeakKeyDictionary()


def pauses() -> Pauses:
    """Return the pauses of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _pauses:
        _pauses[loop] = Pauses(conf.getfloat("triggerer", "triggerer_health_check_threshold", fallback=30.0))
    return _pauses[loop]
