"""Detect what agents can't report: passed deadlines, ended containers, silent agents.

Each look compares Skein's list of containers with the coordinator's records, and returns the consequences for the job.
The overseer changes nothing in the job; it remembers only since when containers or tasks are missing.
"""

import logging
import time
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from ..common.clock import utc_time
from ..common.contract import Job, TaskId
from ..common.reasons import Reason
from ..common.report import list_names
from ..common.status import Waiting
from . import lifecycle
from .containers import FINISHED, Container, cause_of
from .deferred import ANSWER_SECONDS
from .lifecycle import Expired, Rules, State
from .registry import Peer

logger = logging.getLogger(__name__)

#: Seconds between two log lines that name the missing tasks.
LOG_SECONDS = 10.0
#: Containers in a row that YARN may give on excluded nodes; it often gives the same one until heartbeats have drifted.
MAX_UNWANTED = 60


class View(NamedTuple):
    """The coordinator's facts at one moment.

    Attributes
    ----------
    state : State
    peers : mapping of str to Peer
        By the id of the container.
    serving : mapping of TaskId to Peer
    containers : sequence of Container
        As Skein listed them last.
    began : float
        When the coordinator began; like all times here seconds of a monotonic clock.
    published_at : float or None
        When the first cluster spec was published.
    restarts_at : float
        When the current round may start at the earliest; 0 in the first round.
    """

    state: State
    peers: Mapping[str, Peer]
    serving: Mapping[TaskId, Peer]
    containers: Sequence[Container]
    began: float
    published_at: Optional[float] = None
    restarts_at: float = 0.0


class LostContainer(NamedTuple):
    """A container that is lost for the job; `replace`: whether the coordinator must request another one."""

    container: str
    reason: Reason
    cause: str
    replace: bool = False


def time_ago(seconds_ago: float) -> str:
    """Return the time that was so many seconds ago."""
    return utc_time(time.time() - seconds_ago, seconds=True)


class Overseer:
    """Looks after one job; `now` is a monotonic clock, seconds.

    Parameters
    ----------
    job : Job
    rules : Rules
    now : float
    """

    def __init__(self, job: Job, rules: Rules, now: float):
        self._job, self._rules = job, rules
        self._handled: Set[str] = set()
        self._running_since: Dict[str, float] = {}
        self._unwanted = 0
        self._allocating_since = self._alone_since = self._incomplete_since = now
        self._log_at = now + LOG_SECONDS

    def ended(self, containers: Iterable[Container]) -> List[LostContainer]:
        """Return the containers that have ended since the last look, with Skein's text as the cause."""
        gone = []
        for container in containers:
            if container.state in FINISHED and container.id not in self._handled:
                self._handled.add(container.id)
                text = " ".join(container.message.split()) or "no reason given"
                logger.warning("Container %s has ended: %s", container.id, text)
                gone.append(LostContainer(container.id, cause_of(container.message), text))
        return gone

    def silent(self, view: View, now: float) -> List[LostContainer]:
        """Return the containers whose agents have been silent for too long."""
        limit = self._job.deadlines["heartbeat"]
        gone = []
        for peer in view.peers.values():
            quiet = now - peer.received_at
            if peer.terminated and quiet > ANSWER_SECONDS:
                reason, cause = Reason.CONTAINER_LOST, "its container was ended from outside"
            elif limit and quiet > limit:
                reason, cause = (
                    Reason.HEARTBEAT_LOST,
                    f"its agent was silent for {quiet:.0f} s, since {time_ago(quiet)}",
                )
            else:
                continue
            self._handled.add(peer.container)
            listed = any(container.id == peer.container for container in view.containers)
            gone.append(LostContainer(peer.container, reason, cause, replace=listed))
        return gone

    def unwanted(self, view: View) -> List[Container]:
        """Return the new containers on excluded nodes, which Skein can't keep YARN from giving."""
        excluded = lifecycle.excluded_nodes(self._rules, view.state)
        found = [
            container
            for container in view.containers
            if container.state == "RUNNING"
            and container.node in excluded
            and container.id not in view.peers
            and container.id not in self._handled
        ]
        self._handled.update(container.id for container in found)
        self._unwanted = self._unwanted + len(found) if self._pending(view) else 0
        return found

    def without_nodes(self, view: View, nodes: Optional[Set[str]]) -> Optional[Expired]:
        """Return the end of the job, for the last failure's reason, if YARN has no other than excluded nodes.

        Parameters
        ----------
        view : View
        nodes : set of str or None
            All nodes that run; None if they are not known.
        """
        excluded = lifecycle.excluded_nodes(self._rules, view.state)
        if (nodes is None or nodes - {*excluded}) and self._unwanted < MAX_UNWANTED:
            return None
        last = list(excluded.values())[-1]
        why = "every node" if nodes and not nodes - {*excluded} else f"{self._unwanted} containers in a row were there"
        return Expired(
            last.reason, f"{last.cause}; no node is left: excluded are {list_names([*excluded])} ({why})", last.task
        )

    def missing(self, view: View, now: float) -> Optional[Expired]:
        """Return the end of the job if containers or registrations are missing for too long."""
        requested = [container for container in view.containers if container.state in ("WAITING", "REQUESTED")]
        running = [container for container in view.containers if container.state == "RUNNING"]
        for container in running:
            self._running_since.setdefault(container.id, now)
        if not requested:
            self._allocating_since = now
        pending = self._pending(view)
        coming = requested or any(container.id not in view.peers for container in running)
        alone = [] if coming else [task for task in pending if task not in view.serving]
        if not alone:
            self._alone_since = now
        if not pending:
            return None
        return (
            self._unallocated(view, requested, now)
            or self._orphaned(alone, now)
            or self._unregistered(view, running, pending, now)
        )

    def _unallocated(self, view: View, requested: Sequence[Container], now: float) -> Optional[Expired]:
        """End the job, so that it releases its containers, if YARN did not allocate all of them in time."""
        limit = self._job.deadlines["allocation"]
        waited = now - self._allocating_since
        if not limit or waited <= limit:
            return None
        return Expired(
            Reason.ALLOCATION_TIMEOUT,
            (
                f"{len(requested)} of {len(view.state.phases)} containers were not allocated within {limit:g} s: "
                f"{list_names([container.id for container in requested])} "
                f"(asked for in queue {self._job.queue} since {time_ago(waited)})"
            ),
        )

    def _orphaned(self, alone: Sequence[TaskId], now: float) -> Optional[Expired]:
        """End the job if a task waits for a container and none is requested or about to register."""
        if now - self._alone_since <= ANSWER_SECONDS:
            return None
        return Expired(Reason.CONTAINER_LOST, f"no container is left for {list_names(alone)}")

    def _unregistered(
        self, view: View, running: Sequence[Container], pending: Sequence[TaskId], now: float
    ) -> Optional[Expired]:
        """End the job if an agent did not register in time, for the first or a later round."""
        limit = self._job.deadlines["registration"]
        if not limit:
            return None
        late = [
            f"{container.id} (on {container.place} since {time_ago(now - self._running_since[container.id])})"
            for container in running
            if container.id not in view.peers
            and container.id not in self._handled
            and now - self._running_since[container.id] > limit
        ]
        if not late and view.restarts_at and not view.state.published:
            waited = now - view.restarts_at - self._job.deadlines["stop_grace"]
            called = [task for task in pending if waited > limit and task in view.serving]
            late = [self._describe(view, task) for task in called if not self._is_overdue(view.serving[task], now)]
        if not late:
            return None
        return Expired(Reason.REGISTRATION_TIMEOUT, f"no agent registered within {limit:g} s from {list_names(late)}")

    def _is_overdue(self, peer: Peer, now: float) -> bool:
        """Return whether an agent's heartbeat is overdue, so that the heartbeat's deadline decides on its task."""
        return bool(self._job.deadlines["heartbeat"]) and now - peer.received_at > ANSWER_SECONDS

    def overdue(self, view: View, now: float) -> Optional[Expired]:
        """Return the end of the job if a deadline of the whole job has passed; log the missing tasks."""
        total, execution = self._job.deadlines["total"], self._job.deadlines["execution"]
        if view.state.published:
            self._incomplete_since = now
        elif now >= self._log_at:
            self._log_at = now + LOG_SECONDS
            pending, tasks = self._pending(view), len(view.state.phases)
            logger.info(
                "Waiting for all ports (%d/%d), missing: %s",
                tasks - len(pending),
                tasks,
                list_names(pending, lambda task: self._describe(view, task)),
            )
        if total and now - view.began > total:
            return Expired(Reason.TOTAL_TIMEOUT, f"the job took longer than {total:g} s; {self._unfinished(view, now)}")
        if execution and view.published_at and now - view.published_at > execution:
            return Expired(
                Reason.EXECUTION_TIMEOUT,
                f"the training took longer than {execution:g} s; {self._unfinished(view, now)}",
            )
        return None

    def waiting(self, view: View, now: float) -> Optional[Waiting]:
        """Return what the cluster spec of this round waits for, and since when; None if it is published."""
        if view.state.published or view.state.verdict is not None:
            return None
        tasks = [self._describe(view, task) for task in self._pending(view)]
        return Waiting(tasks, time.time() - (now - self._incomplete_since)) if tasks else None

    def _pending(self, view: View) -> List[TaskId]:
        """Return the tasks for which the publication of the cluster spec waits."""
        return [
            task
            for task, phase in view.state.phases.items()
            if phase in (lifecycle.PENDING, lifecycle.LOST) and lifecycle.needed(self._rules, task)
        ]

    def _unfinished(self, view: View, now: float) -> str:
        """Return a text with the tasks that still run or are missing, where and since when."""
        running = []
        for task, phase in view.state.phases.items():
            peer = view.serving.get(task)
            if phase == lifecycle.RUNNING and peer is not None:
                since = time_ago(time.time() - peer.started_at if peer.started_at else 0)
                running.append(f"{task} (on {peer.host} since {since})")
        if running:
            return f"running: {list_names(running)}"
        missing = list_names(self._pending(view), lambda task: self._describe(view, task))
        return f"waiting since {time_ago(now - self._incomplete_since)} for: {missing}"

    def _describe(self, view: View, task: TaskId) -> str:
        """Return a text about a missing task: where its command ends, or the state of its container."""
        peer = view.serving.get(task)
        if peer:
            return f"{task} (ending its command on {peer.host})"
        found = {
            container.state.lower() + (f" on {container.place}" if container.node else "")
            for container in view.containers
            if container.id not in view.peers
            and container.id not in self._handled
            and self._job.services[container.service].type == task.type
        }
        return f"{task} (container {' or '.join(sorted(found)) or 'unknown'})"
