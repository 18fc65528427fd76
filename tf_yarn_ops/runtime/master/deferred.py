"""Failures that wait for their cause: a task that is lost makes its peers fail, often before its own loss is known.

The coordinator pings all agents. A failure is due once each agent that runs a command, and whose loss would restart the
others, has answered, is back, has ended its command or is lost, or the wait is over. A restart or a verdict in between
drops what still waits.
"""

from typing import Any, Collection, Iterator, List, Mapping, NamedTuple

from ..common.contract import Job
from .lifecycle import Exited, starts_alone
from .registry import Peer

#: Seconds for an answer where no other deadline bounds the wait. Of Skein: why a container ended, after its agent
#: has reported the end or lost its contact; a container for a task without one. Of an agent: to a ping, without a
#: heartbeat deadline; a sign of life while it ends its command for a new round.
ANSWER_SECONDS = 6.0


class Deferred(NamedTuple):
    """A failure that waits: when it happened (monotonic, seconds), its agent, the agent's message, and the event."""

    failed_at: float
    peer: Peer
    message: Mapping[str, Any]
    event: Exited


class DeferredFailures:
    """The failures of one job that wait, and the time of the ping for whose answers they wait.

    Parameters
    ----------
    job : Job

    Attributes
    ----------
    waiting : list of Deferred
    """

    def __init__(self, job: Job):
        self.waiting: List[Deferred] = []
        self._job = job
        self._pinged_at = 0.0

    def defer(self, failure: Deferred, now: float) -> bool:
        """Add a failure; return whether it is the first, for which all agents must be pinged now."""
        self.waiting.append(failure)
        if len(self.waiting) > 1:
            return False
        self._pinged_at = now
        return True

    def due(self, peers: Collection[Peer], now: float) -> Iterator[Deferred]:
        """Yield the failures in the order in which they happened, once no loss may be their cause.

        If `waiting` is cleared meanwhile, the rest is dropped.
        """
        if self.waiting and not self._is_undecided(peers, now):
            self.waiting.sort(key=lambda failure: failure.failed_at)
            while self.waiting:
                yield self.waiting.pop(0)

    def _is_undecided(self, peers: Collection[Peer], now: float) -> bool:
        """Return whether a task may be lost for which the others restart: its agent has not answered yet.

        The heartbeat's deadline bounds the wait; where there is none, `ANSWER_SECONDS` do. An agent whose container
        YARN ends (``terminated``) is awaited until it is lost.
        """
        may_answer = self._job.deadlines["heartbeat"] or now - self._pinged_at <= ANSWER_SECONDS
        return any(
            peer.running
            and not starts_alone(self._job, peer.task)
            and (peer.terminated or (may_answer and (peer.connection is None or peer.last_pong_at < self._pinged_at)))
            for peer in peers
        )
