"""The monitor of containers: it detects what agents can't report, lost containers and passed deadlines.

`ContainerMonitor` polls Skein's list of containers. `ContainerChecks` compares it with the state of the job and returns
the consequences; it remembers since when containers run or are missing, and counts those on excluded nodes.
"""

import asyncio
import logging
import time
from typing import Callable, Dict, List, Optional, Sequence, Set

from ..common.clock import utc_time
from ..common.container_http import last_line_of_agent
from ..common.contract import TaskId
from ..common.reasons import Reason
from ..common.report import list_names
from ..common.status import RUNNING, Waiting
from .containers import FINISHED, Container, Containers, LostContainer, cause_of
from .deferred import ANSWER_SECONDS
from .job_state import Effects, JobState
from .lifecycle import Verdict, needed
from .skein_calls import SkeinFailed

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.5
#: Seconds between two polls of Skein's containers while the commands run and every agent is connected.
STEADY_POLL_SECONDS = 2.0
#: The most logs that are read for the cause of a missing registration.
LOGS_READ = 3
#: Containers whose nodes are asked why they ended, of those that end at the same time.
MAX_EXPLAINED = 4
#: What all tasks wait for while the working folder of the output is not there.
OUTPUT = "the file system of the output"
#: Seconds between two log lines that name the missing tasks.
LOG_SECONDS = 10.0
#: Containers that YARN may give on excluded nodes; each poll at which no task is missing starts the count again. YARN
#: often gives the same one until heartbeats have drifted.
MAX_UNWANTED = 60


def time_ago(seconds_ago: float) -> str:
    """Return the time that was so many seconds ago."""
    return utc_time(time.time() - seconds_ago, seconds=True)


class ContainerChecks:
    """Checks one job; `now` is the present monotonic time, seconds.

    Parameters
    ----------
    state : JobState
    """

    def __init__(self, state: JobState):
        self._state, self._job = state, state.job
        self._requested_since: Dict[str, float] = {}
        self._running_since: Dict[str, float] = {}
        self._unwanted = 0
        self._checked_at = self._alone_since = self._incomplete_since = state.began
        self._log_at = state.began + LOG_SECONDS

    def find_exited(self) -> List[LostContainer]:
        """Return the containers that have ended since the last check, with Skein's text as the cause."""
        gone = []
        for container in self._state.known.values():
            if container.state in FINISHED and container.id not in self._state.given_up:
                self._state.given_up.add(container.id)
                text = " ".join(container.message.split()) or "no reason given"
                logger.warning("Container %s has ended: %s", container.id, text)
                gone.append(LostContainer(container.id, cause_of(container.message), text))
        return gone

    def find_unresponsive(self, now: float) -> List[LostContainer]:
        """Return the containers whose agents have been silent for too long."""
        limit = self._job.deadlines["heartbeat"]
        gone = []
        for peer in self._state.registry.peers.values():
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
            self._state.given_up.add(peer.container)
            gone.append(LostContainer(peer.container, reason, cause, replace=peer.container in self._state.known))
        return gone

    def find_on_excluded_nodes(self) -> List[Container]:
        """Return the new containers on excluded nodes, which Skein can't keep YARN from giving."""
        found = [
            container
            for container in self._state.known.values()
            if container.state == "RUNNING"
            and self._state.is_unwanted(container.id)
            and container.id not in self._state.given_up
        ]
        self._state.given_up.update(container.id for container in found)
        self._unwanted = self._unwanted + len(found) if self._state.missing() else 0
        return found

    def check_remaining_nodes(self, nodes: Optional[Set[str]]) -> Optional[Verdict]:
        """Return the end of the job, for the reason of the last failure on an excluded node, if no other node is left.

        Parameters
        ----------
        nodes : set of str or None
            All nodes that run; None if they are not known.
        """
        excluded = self._state.excluded
        if (nodes is None or nodes - {*excluded}) and self._unwanted < MAX_UNWANTED:
            return None
        last = list(excluded.values())[-1]
        why = (
            "every node"
            if nodes and not nodes - {*excluded}
            else f"{self._unwanted} containers that YARN gave were there"
        )
        return Verdict(
            last.reason, f"{last.cause}; no node is left: excluded are {list_names([*excluded])} ({why})", last.task
        )

    def check_missing(self, now: float) -> Optional[Verdict]:
        """Return the end of the job if containers or registrations are missing for too long."""
        job = self._job
        wanted = [one for one in self._state.known.values() if needed(job, job.services[one.service].type)]
        requested = [container for container in wanted if container.state in ("WAITING", "REQUESTED")]
        running = [container for container in wanted if container.state == "RUNNING"]
        self._requested_since = {one.id: self._requested_since.get(one.id, self._checked_at) for one in requested}
        self._running_since = {one.id: self._running_since.get(one.id, now) for one in running}
        self._checked_at = now
        pending = self._state.missing()
        coming = requested or any(container.id not in self._state.registry.peers for container in running)
        without_container = [] if coming else [task for task in pending if task not in self._state.registry.serving]
        if not without_container:
            self._alone_since = now
        if not pending:
            return None
        trains = self._state.lifecycle.published and any(
            phase == RUNNING and job.types[task.type].awaited for task, phase in self._state.lifecycle.phases.items()
        )
        return (
            (None if trains else self._unallocated(requested, now))
            or self._orphaned(without_container, now)
            or self._unregistered(running, pending, now)
        )

    def _unallocated(self, requested: Sequence[Container], now: float) -> Optional[Verdict]:
        """End the job, so that it releases its containers, if YARN did not allocate all of them in time.

        It is not called while others train, which needs no container that is replaced alone.
        """
        limit = self._job.deadlines["allocation"]
        waited = max((now - self._requested_since[container.id] for container in requested), default=0.0)
        if not limit or waited <= limit:
            return None
        return Verdict(
            Reason.ALLOCATION_TIMEOUT,
            (
                f"{len(requested)} of {len(self._state.lifecycle.phases)} containers were not allocated within "
                f"{limit:g} s: "
                f"{list_names([container.id for container in requested])} "
                f"(asked for in queue {self._job.queue} since {time_ago(waited)})"
            ),
        )

    def _orphaned(self, tasks: Sequence[TaskId], now: float) -> Optional[Verdict]:
        """End the job if needed tasks lack a container and none of any is requested or about to register."""
        if now - self._alone_since <= ANSWER_SECONDS:
            return None
        return Verdict(Reason.CONTAINER_LOST, f"no container is left for {list_names(tasks)}")

    def _unregistered(self, running: Sequence[Container], pending: Sequence[TaskId], now: float) -> Optional[Verdict]:
        """End the job if an agent did not register in time, for the first or a later round."""
        limit = self._job.deadlines["registration"]
        if not limit:
            return None
        late = [
            f"{container.id} (on {container.place} since {time_ago(now - self._running_since[container.id])})"
            for container in running
            if container.id not in self._state.registry.peers
            and container.id not in self._state.given_up
            and now - self._running_since[container.id] > limit
        ]
        if not late and self._state.restarts_at and not self._state.lifecycle.published:
            waited = now - self._state.restarts_at - self._job.deadlines["stop_grace"]
            peers = {
                task: self._state.registry.serving[task] for task in pending if task in self._state.registry.serving
            }
            # An agent whose heartbeat is overdue is left to the heartbeat's deadline.
            silence = ANSWER_SECONDS if self._job.deadlines["heartbeat"] else now
            late = [
                self._describe(task) for task in peers if waited > limit and now - peers[task].received_at <= silence
            ]
        if not late:
            return None
        return Verdict(Reason.REGISTRATION_TIMEOUT, f"no agent registered within {limit:g} s from {list_names(late)}")

    def check_deadlines(self, now: float) -> Optional[Verdict]:
        """Return the end of the job if a deadline of the whole job has passed; log the missing tasks."""
        total, execution, stall = (self._job.deadlines[name] for name in ("total", "execution", "stall"))
        if self._state.lifecycle.published:
            self._incomplete_since = now
        elif now >= self._log_at:
            self._log_at = now + LOG_SECONDS
            pending, tasks = self._state.missing(), len(self._state.lifecycle.phases)
            logger.info(
                "Waiting for all ports (%d/%d), missing: %s",
                tasks - len(pending),
                tasks,
                list_names(self._missing()),
            )
        if total and now - self._state.began > total:
            return Verdict(Reason.TOTAL_TIMEOUT, f"the job took longer than {total:g} s; {self._unfinished(now)}")
        if execution and self._state.published_at and now - self._state.published_at > execution:
            return Verdict(
                Reason.EXECUTION_TIMEOUT,
                f"the training took longer than {execution:g} s; {self._unfinished(now)}",
            )
        if stall and (idle := self._state.idle_seconds(now)) >= stall:
            return Verdict(
                Reason.STALLED,
                f"no task has used CPU or GPUs, or written to its log or metrics for {idle:.0f} s; "
                f"{self._unfinished(now)}",
            )
        return None

    def waiting(self, now: float) -> Optional[Waiting]:
        """Return what the cluster spec of this round waits for, and since when; None if it is published."""
        if self._state.lifecycle.published or self._state.lifecycle.verdict is not None:
            return None
        tasks = self._missing()
        return Waiting(tasks, time.time() - (now - self._incomplete_since)) if tasks else None

    def _unfinished(self, now: float) -> str:
        """Return a text with the tasks that still run or are missing, where and since when."""
        serving, now_utc = self._state.registry.serving, time.time()
        running = [
            f"{task} (on {serving[task].host} since {utc_time(serving[task].started_at or now_utc, seconds=True)})"
            for task, phase in self._state.lifecycle.phases.items()
            if phase == RUNNING and task in serving
        ]
        if running:
            return f"running: {list_names(running)}"
        return f"waiting since {time_ago(now - self._incomplete_since)} for: {list_names(self._missing())}"

    def _missing(self) -> List[str]:
        """Return texts about what the cluster spec waits for."""
        tasks = [self._describe(task) for task in self._state.missing()]
        return tasks or ([OUTPUT] if self._state.lifecycle.preparing else [])

    def _describe(self, task: TaskId) -> str:
        """Return a text about a missing task: where its command ends, or the state of its container."""
        peer = self._state.registry.serving.get(task)
        if peer:
            return f"{task} (ending its command on {peer.host})"
        found = {
            container.state.lower() + (f" on {container.place}" if container.node else "")
            for container in self._state.known.values()
            if container.id not in self._state.registry.peers
            and container.id not in self._state.given_up
            and self._job.services[container.service].type == task.type
        }
        return f"{task} (container {' or '.join(sorted(found)) or 'unknown'})"


class ContainerMonitor:
    """Monitors the containers of one job.

    Parameters
    ----------
    state : JobState
    containers : Containers
    perform : callable
        Carries out the effects of an event.

    Attributes
    ----------
    checks : ContainerChecks
    """

    def __init__(self, state: JobState, containers: Containers, perform: Callable[[Effects], None]):
        self.checks = ContainerChecks(state)
        self._state, self._containers, self._perform = state, containers, perform
        self._polling = asyncio.Lock()
        self._polled_at = self._check_at = 0.0
        self._progress = -1.0

    async def run(self) -> None:
        """Check agents and deadlines at each tick until there is a verdict.

        Skein is polled every `STEADY_POLL_SECONDS` while the cluster spec is published and every agent is connected and
        not terminated, else at each tick.
        """
        while self._state.lifecycle.verdict is None:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._check(time.monotonic())
            except SkeinFailed as error:
                logger.warning("Skein did not answer: %s", error)
            now = time.monotonic()
            for lost in self.checks.find_unresponsive(now):
                self._perform(self._state.on_lost(lost, now))
            self._perform(self._state.apply_deferred(now))
            self._end_if(self.checks.check_deadlines(now))

    async def poll(self) -> None:
        """Update the state's list of containers; callers at the same time share one answer."""
        requested = time.monotonic()
        async with self._polling:
            if self._polled_at < requested:
                polled = time.monotonic()
                self._state.known = {container.id: container for container in await self._containers.list()}
                self._state.expect_agents()
                self._polled_at = polled

    async def _check(self, now: float) -> None:
        state = self._state
        questions = any(peer.connection is None or peer.terminated for peer in state.registry.peers.values())
        if questions or not state.lifecycle.published or now >= self._check_at:
            self._check_at = now + STEADY_POLL_SECONDS
            await self.poll()
            for lost in await self._explain_ends(self.checks.find_exited()):
                self._perform(state.on_lost(lost, now))
            unwanted = self.checks.find_on_excluded_nodes()
            if unwanted:
                logger.info("Giving back %s, on excluded nodes", list_names([container.id for container in unwanted]))
                state.to_replace += unwanted
                self._end_if(self.checks.check_remaining_nodes(await self._containers.nodes()))
            self._end_if(await self._explain_missing(self.checks.check_missing(now)))
        while state.to_replace and state.lifecycle.verdict is None:
            await self._containers.replace(state.to_replace[0])
            state.to_replace.pop(0)
        if state.progress != self._progress:
            self._progress = state.progress
            await self._containers.progress(self._progress)

    async def _explain_ends(self, exited: List[LostContainer]) -> List[LostContainer]:
        """Add what the nodes know of containers where Skein says too little."""
        unclear = [lost for lost in exited if lost.reason in (Reason.CONTAINER_LOST, Reason.NODE_LOST)][:MAX_EXPLAINED]
        ends = await asyncio.gather(*(self._containers.explain(self._state.known[lost.container]) for lost in unclear))
        known = {lost.container: end for lost, end in zip(unclear, ends)}  # noqa: B905
        return [lost._replace(end=known.get(lost.container, lost.end)) for lost in exited]

    async def _explain_missing(self, verdict: Optional[Verdict]) -> Optional[Verdict]:
        """Add the last line of an agent that can't register: it names what a firewall or DNS does."""
        if verdict is None or verdict.reason is not Reason.REGISTRATION_TIMEOUT:
            return verdict
        for task, url in [*self._state.expect_agents().items()][:LOGS_READ]:
            line = url and await asyncio.to_thread(last_line_of_agent, url, self._state.job.authorities)
            if line:
                return verdict._replace(message=f"{verdict.message}. The log of {task} ends with: {line}")
        return verdict

    def _end_if(self, verdict: Optional[Verdict]) -> None:
        if verdict is not None:
            self._perform(self._state.apply(verdict, time.monotonic()))
