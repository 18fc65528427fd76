"""The shutdown after the verdict: stop the commands, and let evaluators and TensorBoard linger after a success.

Evaluators have their time before the output is committed, TensorBoard after it.
"""

import asyncio
import logging
import math
import time
from typing import Awaitable, Callable, List

from ..common.roles import EVALUATOR, TENSORBOARD
from .job_state import Effects, JobState
from .registry import Peer

logger = logging.getLogger(__name__)

#: Seconds between two checks whether an agent has left.
LEFT_POLL_SECONDS = 0.5
#: Seconds within which an agent reports the end of a command after SIGKILL.
AFTER_KILL = 3.0


class Shutdown:
    """Ends the commands of one job.

    Parameters
    ----------
    state : JobState
        Of a job with a verdict.
    perform : callable
        Carries out the effects of an event.
    changed : asyncio.Event
        Set after each event.
    """

    def __init__(self, state: JobState, perform: Callable[[Effects], None], changed: asyncio.Event):
        self._state, self._perform, self._changed = state, perform, changed

    async def run(self, commit: Callable[[], Awaitable[None]]) -> None:
        """End all commands, and call `commit` once nothing that trains or evaluates runs."""
        state = self._state
        peers = list(state.registry.peers.values())
        self._perform(state.begin_shutdown())
        await self._wait_stopped([peer for peer in peers if peer not in state.lingering])
        for task_type in (EVALUATOR, TENSORBOARD):
            lingering = [peer for peer in state.lingering if peer.task.type == task_type]
            await self._linger(lingering, state.linger_seconds[task_type])
            self._perform(state.end_linger(task_type))
            await self._wait_stopped(lingering)
            if task_type == EVALUATOR:
                await commit()
        self._perform(state.dismiss())

    async def _linger(self, peers: List[Peer], seconds: float) -> None:
        """Wait for so long, within the job's own deadline, while the command of one of these agents runs."""
        state = self._state
        for peer in peers:
            logger.info("%s stays for %g s", peer.task, seconds)
        until = min(time.monotonic() + seconds, state.began + (state.job.deadlines["total"] or math.inf))
        while state.has_succeeded and any(p.running and not state.has_left(p, time.monotonic()) for p in peers):
            if not await self._wait_for_change(until):
                return

    async def _wait_stopped(self, peers: List[Peer]) -> None:
        """Wait until the commands of these agents have ended, or their grace is over."""
        until = time.monotonic() + self._state.job.deadlines["stop_grace"] + AFTER_KILL
        while any(peer.running and peer.connection for peer in peers):
            if not await self._wait_for_change(until):
                logger.warning("Gave up waiting for %s", ", ".join(str(p.task) for p in peers if p.running))
                return

    async def _wait_for_change(self, until: float) -> bool:
        """Wait for an event, for `LEFT_POLL_SECONDS` at most; return False if the time is over."""
        left = until - time.monotonic()
        if left <= 0:
            return False
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), min(LEFT_POLL_SECONDS, left))
        except asyncio.TimeoutError:
            pass
        return True
