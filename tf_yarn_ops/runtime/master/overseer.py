"""Deadlines and lost containers: what no agent can tell.

Asks Skein for the containers, compares them with who has registered, and turns
what is missing for too long into events. Logs who is missing every ten seconds.
"""

import asyncio
import logging
import time
from typing import Dict, List, Set

from ..common import protocol
from ..common.contract import TaskId
from ..common.reasons import Reason
from . import lifecycle
from .containers import FINISHED, Container, SkeinFailed, cause_of
from .coordinator import Coordinator
from .lifecycle import Expired, Lost
from .registry import Peer
from .wording import moment, some

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.5
#: Between two looks at Skein's containers while all is well, seconds.
CALM_SECONDS = 2.0
#: How long Skein may take to say why a container ended that told us so itself, seconds.
ANSWER_SECONDS = 6.0
LOG_SECONDS = 10.0


def host_of(container: Container) -> str:
    """Give the host on which a container runs, for a message."""
    return container.node.rpartition(":")[0] or "a node that Skein does not name"


class Overseer:
    """Watches over a coordinator until there is a verdict."""

    def __init__(self, coordinator: Coordinator):
        self.coordinator = coordinator
        self.job = coordinator.job
        self.handled: Set[str] = set()
        self.allocated_since: Dict[str, float] = {}
        self.silent_since: Dict[str, float] = {}
        self.waiting_since = time.monotonic()
        self.alone_since = self.incomplete_since = self.waiting_since
        self.log_at = time.monotonic() + LOG_SECONDS
        self.look_at = 0.0
        self.to_replace: List[Container] = []
        self.told = -1.0

    async def watch(self) -> None:
        """Tick until there is a verdict."""
        while self.coordinator.state.verdict is None:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self.tick(time.monotonic())
            except SkeinFailed as error:
                logger.warning("Skein did not answer: %s", error)
            self.whole_job(time.monotonic())

    async def tick(self, now: float) -> None:
        """Look once."""
        state = self.coordinator.state
        peers = self.coordinator.registry.peers.values()
        questions = [peer for peer in peers if peer.connection is None or peer.terminated]
        if questions or not state.published or now >= self.look_at:
            self.look_at = now + CALM_SECONDS
            containers = await self.coordinator.refresh()
            self.finished(containers)
            self.unallocated([c for c in containers if c.state in ("WAITING", "REQUESTED")], now)
            self.unregistered([c for c in containers if c.state == "RUNNING"], now)
        for peer in list(self.coordinator.registry.peers.values()):
            self.silence(peer, now)
        while self.to_replace and self.coordinator.state.verdict is None:
            await self.coordinator.containers.replace(self.to_replace[0])
            self.to_replace.pop(0)
        if self.coordinator.progress() != self.told:
            self.told = self.coordinator.progress()
            await self.coordinator.containers.progress(self.told)

    def finished(self, containers: List[Container]) -> None:
        """Turn containers that have ended into lost tasks, with Skein's text as the cause."""
        for container in containers:
            if container.state not in FINISHED or container.id in self.handled:
                continue
            self.handled.add(container.id)
            peer = self.coordinator.registry.peers.get(container.id)
            text = " ".join(container.message.split()) or "no reason given"
            logger.warning("Container %s has ended: %s", container.id, text)
            if peer:
                self.lose(peer, cause_of(container.message), text)
            elif container.state == "FAILED":
                task = self.coordinator.registry.vacant(container.id)
                if task:
                    self.coordinator.registry.occupied(task, container.id, container.node.rpartition(":")[0],
                                                       container.yarn_id, container.node)
                    self.coordinator.apply(Lost(task, cause_of(container.message), f"before its agent called: {text}"))

    def lose(self, peer: Peer, reason: Reason, cause: str) -> None:
        """Take a container out of the job."""
        if peer.connection is not None:
            peer.connection.send(protocol.encode("bye"))
        self.coordinator.registry.vacate(peer)
        self.coordinator.apply(Lost(peer.task, reason, f"{cause} (on {peer.host})"))

    def unallocated(self, requested: List[Container], now: float) -> None:
        """End the job when not all of its containers came in time: it gives back what it holds."""
        limit = self.job.deadlines["allocation"]
        if not requested:
            self.waiting_since = now
        elif limit and now - self.waiting_since > limit and self.pending():
            cause = (f"{len(requested)} of {len(self.coordinator.state.phases)} containers were not allocated within "
                     f"{limit:g} s: {some([container.id for container in requested])} "
                     f"(asked for in queue {self.job.queue} since {moment(now - self.waiting_since)})")
            self.coordinator.apply(Expired(Reason.ALLOCATION_TIMEOUT, cause))

    def unregistered(self, running: List[Container], now: float) -> None:
        """End the job when an agent did not call in time."""
        limit = self.job.deadlines["registration"]
        registry = self.coordinator.registry
        late = []
        for container in running:
            since = self.allocated_since.setdefault(container.id, now)
            known = container.id in registry.peers or container.id in self.handled
            if not known and limit and now - since > limit:
                late.append(f"{container.id} (on {host_of(container)} since {moment(now - since)})")
        if not late and limit and self.coordinator.not_before and not self.coordinator.state.published:
            waited = now - self.coordinator.not_before - self.job.deadlines["stop_grace"]
            late = [self.describe(task) for task in self.pending() if waited > limit and task in registry.serving]
        self.orphaned(running, now)
        if late and self.pending():
            cause = f"no agent registered within {limit:g} s from {some(late)}"
            self.coordinator.apply(Expired(Reason.REGISTRATION_TIMEOUT, cause))

    def orphaned(self, running: List[Container], now: float) -> None:
        """End the job when a task waits for a container and none is on its way."""
        registry = self.coordinator.registry
        coming = any(container.id not in registry.peers for container in running) or self.waiting_since != now
        alone = [] if coming else [task for task in self.pending() if task not in registry.serving]
        if not alone:
            self.alone_since = now
        elif now - self.alone_since > ANSWER_SECONDS:
            self.coordinator.apply(Expired(Reason.CONTAINER_LOST, f"no container is left for {some(alone)}"))

    def silence(self, peer: Peer, now: float) -> None:
        """Give up on an agent that has been silent for too long, and replace its container."""
        limit = self.job.deadlines["heartbeat"]
        quiet = now - peer.heard_at
        if peer.terminated and quiet > ANSWER_SECONDS:
            reason, cause = Reason.CONTAINER_LOST, "its container was ended from outside"
        elif limit and quiet > limit:
            reason, cause = Reason.HEARTBEAT_LOST, f"no word from it for {quiet:.0f} s, since {moment(quiet)}"
        else:
            return
        container = self.coordinator.known.get(peer.container)
        self.handled.add(peer.container)
        self.lose(peer, reason, cause)
        if container:
            self.to_replace.append(container)

    def pending(self) -> List[TaskId]:
        """Give the tasks that the publication waits for."""
        return [task for task, phase in self.coordinator.state.phases.items()
                if phase in (lifecycle.PENDING, lifecycle.LOST) and lifecycle.needed(self.coordinator.rules, task)]

    def whole_job(self, now: float) -> None:
        """Hold the deadlines of the whole job, and say who is missing."""
        coordinator = self.coordinator
        total, execution = self.job.deadlines["total"], self.job.deadlines["execution"]
        if total and now - coordinator.began > total:
            cause = f"the job took longer than {total:g} s; {self.unfinished()}"
            coordinator.apply(Expired(Reason.TOTAL_TIMEOUT, cause))
        elif execution and coordinator.published_at and now - coordinator.published_at > execution:
            cause = f"the training took longer than {execution:g} s; {self.unfinished()}"
            coordinator.apply(Expired(Reason.EXECUTION_TIMEOUT, cause))
        if coordinator.state.published:
            self.incomplete_since = now
        elif now >= self.log_at:
            self.log_at = now + LOG_SECONDS
            total_tasks = len(coordinator.state.phases)
            logger.info("Waiting for all ports (%d/%d), missing: %s", total_tasks - len(self.pending()), total_tasks,
                        some(self.pending(), self.describe))

    def unfinished(self) -> str:
        """Say which tasks still run or are waited for, where, since when."""
        now = time.time()
        running = []
        for task, phase in self.coordinator.state.phases.items():
            if phase == lifecycle.RUNNING:
                record = self.coordinator.registry.records[task]
                since = moment(now - (record.get("started_at") or now))
                running.append(f"{task} (on {record.get('host')} since {since})")
        if running:
            return f"running: {some(running)}"
        since = moment(time.monotonic() - self.incomplete_since)
        return f"waiting since {since} for: {some(self.pending(), self.describe)}"

    def describe(self, task: TaskId) -> str:
        """Say what is known of a task that is missing."""
        peer = self.coordinator.registry.serving.get(task)
        if peer:
            return f"{task} (ending its command on {peer.host})"
        found = {c.state.lower() + (f" on {host_of(c)}" if c.node else "") for c in self.coordinator.known.values()
                 if c.id not in self.coordinator.registry.peers and c.id not in self.handled
                 and self.job.services[c.service].type == task.type}
        return f"{task} (container {' or '.join(sorted(found)) or 'unknown'})"
