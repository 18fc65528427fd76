"""The shutdown after the verdict: stop the commands, and let some of them linger after a success.

First those that the chief has not waited for have their time, while parameter servers go on; then evaluators; then the
output is committed; then, unless that fails, TensorBoard.
"""

import asyncio
import contextlib
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
        Set after each event from the verdict on.
    """

    def __init__(self, state: JobState, perform: Callable[[Effects], None], changed: asyncio.Event):
        self._state, self._perform, self._changed = state, perform, changed

    async def run(self, commit: Callable[[], Awaitable[None]]) -> None:
        """End all commands after any verdict; call `commit`, for a success, when nothing trains or evaluates."""
        state = self._state
        await self._linger(state.begin_grace(), state.job.deadlines["success_grace"])
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
        state, now = self._state, time.monotonic
        for peer in peers:
            logger.info("%s stays for %g s", peer.task, seconds)
        until = min(now() + seconds, state.began + (state.job.deadlines["total"] or math.inf))
        await self._wait_while(
            lambda: state.has_succeeded and any(peer.running and not state.has_left(peer, now()) for peer in peers),
            until,
        )

    async def _wait_stopped(self, peers: List[Peer]) -> None:
        """Wait until the commands of these agents have ended, or their grace is over."""
        until = time.monotonic() + self._state.job.deadlines["stop_grace"] + AFTER_KILL
        if await self._wait_while(lambda: any(peer.running and peer.connection for peer in peers), until):
            logger.warning("Gave up waiting for %s", ", ".join(str(peer.task) for peer in peers if peer.running))

    async def _wait_while(self, holds: Callable[[], bool], until: float) -> bool:
        """Wait while a condition holds, which each event may change; return whether it still does."""
        while holds() and time.monotonic() < until:
            self._changed.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(LEFT_POLL_SECONDS, until - time.monotonic()))
        return holds()
