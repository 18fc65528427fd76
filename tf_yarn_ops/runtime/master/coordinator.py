"""The coordinator: gathers the agents, publishes the cluster spec, watches exits, decides once.

It runs in the application master. Messages of agents and what Skein says of the
containers become events of `lifecycle`; its decisions become messages. What was
decided is final: clients may vanish, the verdict stands in YARN.
"""

import asyncio
import logging
import time
from typing import Any, Dict, List, Mapping, Optional

from ..common import protocol
from ..common.contract import MAX_TF_CONFIG, Job, TaskId, cluster_spec, tf_config
from ..common.reasons import Reason
from ..common.report import Round
from ..common.roles import TENSORBOARD
from . import lifecycle
from .containers import FINISHED, Container, Containers, SkeinFailed
from .lifecycle import Decision, Event, Exited, Expired, Registered
from .registry import Peer, Refused, Registry
from .server import Connection, Server

logger = logging.getLogger(__name__)

#: How long a replacement may be ahead of the news that its predecessor is lost, seconds.
VACANCY_SECONDS = 5.0
#: What a program writes that found its port taken.
_PORT_TAKEN = ("address already in use", "eaddrinuse")


class Coordinator:
    """One job's coordinator.

    Parameters
    ----------
    job : Job
    application_id : str
    containers : Containers
        Skein's application master.
    """

    def __init__(self, job: Job, application_id: str, containers: Containers):
        self.job = job
        self.application_id = application_id
        self.containers = containers
        self.rules = lifecycle.rules_of(job)
        self.state = lifecycle.begin(job)
        self.registry = Registry(job)
        self.server = Server(self.greet, self.heard, self.gone, self.failed, 2 * len(self.state.phases) + 64)
        self.known: Dict[str, Container] = {}
        self.cluster: Dict[str, List[str]] = {}
        self.rounds: List[Round] = []
        self.starts: Dict[TaskId, int] = {}
        self.started_at = time.time()
        self.began = time.monotonic()
        self.published_at: Optional[float] = None
        self.cause, self.not_before = "start", 0.0
        self.decided = asyncio.Event()
        self.stopping = False
        self.quiet = asyncio.Event()
        self.showing: Optional["asyncio.Future[None]"] = None
        self._listing = asyncio.Lock()
        self._listed_at = 0.0

    # -- agents -----------------------------------------------------------------------------

    async def greet(self, connection: Connection, message: Dict[str, Any]) -> Optional[Peer]:
        """Take a registration, or refuse it with the reason."""
        try:
            if message["type"] != "register":
                raise Refused("the first message is not a registration")
            await self._check_known(str(message.get("container")))
            await self._vacancy(str(message.get("container")))
            peer, resumed = self.registry.admit(message)
        except Refused as refused:
            logger.warning("Refused %s from %s: %s", message.get("container"), connection.address, refused)
            connection.send(protocol.encode("refused", why=str(refused)))
            return None
        old, peer.connection = peer.connection, connection
        peer.heard_at = time.monotonic()
        if old is not None:
            old.close()
        how = "is back" if resumed else "registered"
        logger.info("%s %s as %s on %s", peer.container, how, peer.task, peer.address)
        self.send(peer, "welcome", task=str(peer.task), round=self.state.round)
        self._catch_up(peer, message)
        return peer

    def _catch_up(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Tell an agent that has just come, or come back, what it may have missed."""
        started = bool(message.get("start"))
        if started and message.get("round") != self.state.round:
            self.send(peer, "renew", round=self.state.round, grace=self.job.deadlines["stop_grace"])
        elif self.stopping:
            self.send(peer, "stop", grace=self.job.deadlines["stop_grace"])
        elif peer.running and peer.round == self.state.round:
            self._started(peer, message)
            self._send_start(peer, 0.0)
        elif not started:
            peer.running = False
            self.apply(Registered(peer.task))

    async def _check_known(self, container: str) -> None:
        """Refuse containers that Skein does not know, or that it knows as ended."""
        if container not in self.known:
            await self.refresh()
        found = self.known.get(container)
        if found is None or found.state in FINISHED:
            raise Refused(f"Skein knows no live container {container!r}")

    async def _vacancy(self, container: str) -> None:
        """Let a replacement wait until the loss that it makes good has been noticed here as well."""
        until = time.monotonic() + VACANCY_SECONDS
        while container not in self.registry.peers and self.registry.vacant(container) is None:
            if time.monotonic() > until:
                return
            await asyncio.sleep(0.1)

    async def refresh(self) -> List[Container]:
        """Ask Skein for the containers; askers at the same time share one answer."""
        asked = time.monotonic()
        async with self._listing:
            if self._listed_at < asked:
                listed = time.monotonic()
                self.known = {container.id: container for container in await self.containers.list()}
                self._listed_at = listed
        return list(self.known.values())

    def heard(self, peer: Peer, connection: Connection, message: Dict[str, Any]) -> None:
        """Take one message of a registered agent; what is unknown or late changes nothing."""
        if peer.connection is not connection or self.registry.peers.get(peer.container) is not peer:
            return
        peer.heard_at = time.monotonic()
        kind = message["type"]
        if kind == "ping":
            connection.send(protocol.encode("pong"))
        elif kind == "terminated":
            peer.terminated = True
        elif kind == "register":
            self._renewed(peer, message)
        elif kind == "running":
            self._started(peer, message)
        elif kind == "exited":
            self.send(peer, "ack")
            if self._current(peer, message) and peer.running:
                self._started(peer, message)
                self._exited(peer, message)

    def _current(self, peer: Peer, message: Mapping[str, Any]) -> bool:
        return (message.get("round"), message.get("start")) == (peer.round, peer.start)

    def _started(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Note that a command began, from the first message that shows it: any may be lost with its connection."""
        start = (peer.round, peer.start)
        if not self._current(peer, message) or not peer.start or peer.noted == start:
            return
        peer.noted = start
        self.registry.started(peer)
        if peer.task.type == TENSORBOARD:
            self.showing = asyncio.ensure_future(self.show_page("tensorboard", peer.address, "TensorBoard"))

    def _renewed(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """An agent has ended its command and taken a new port for this round."""
        port = message.get("port")
        if message.get("round") == self.state.round and isinstance(port, int) and 0 < port < 65536:
            peer.port = port
            peer.running = False
            self.apply(Registered(peer.task))

    def _exited(self, peer: Peer, message: Dict[str, Any]) -> None:
        peer.running = False
        code, number = message.get("code"), message.get("signal")
        stopped = bool(message.get("stopped"))
        self.registry.ended(peer, message)
        how = f"was ended by signal {number}" if number else f"ended with exit code {code}"
        logger.info("%s %s after %s s%s", peer.task, how, message.get("seconds"), " (stopped)" if stopped else "")
        if stopped or self.state.verdict is not None:
            self.registry.records[peer.task]["state"] = (
                "stopped" if stopped else "failed" if code or number else "succeeded")
            if not any(other.running and other.connection for other in self.registry.peers.values()):
                self.quiet.set()
            return
        tail = str(message.get("log_tail") or "")
        seconds = message.get("seconds")
        seconds = float(seconds) if isinstance(seconds, (int, float)) else 0.0
        status = 128 + number if isinstance(number, int) else code if isinstance(code, int) else 1
        plan = self.job.types[peer.task.type]
        if status and plan.in_cluster and not plan.hold_port and any(words in tail.lower() for words in _PORT_TAKEN):
            self.apply(lifecycle.Lost(peer.task, Reason.CONTAINER_LOST, "its port was taken before it could use it"))
            return
        failed = f"was ended by signal {number}" if number else f"failed with exit code {code}"
        last = next((line.strip() for line in reversed(tail.splitlines()) if line.strip()), "")
        cause = f"{failed} on {peer.host} after {seconds:.1f} s" + (f": {last[:300]}" if last else "")
        self.apply(Exited(peer.task, status, seconds, cause))

    def gone(self, peer: Peer, connection: Connection) -> None:
        """Note that a connection has ended: a question, not a verdict; `Overseer` finds the answer."""
        if peer.connection is connection:
            peer.connection = None
            logger.info("Contact to %s on %s is lost", peer.task, peer.host)
            if self.stopping:
                self.quiet.set()

    def failed(self, error: Exception) -> None:
        """End the job when the coordinator itself is at fault: a silent one would let it hang."""
        self.apply(Expired(Reason.AM_FAILED, f"the coordinator failed: {error!r}"))

    def send(self, peer: Peer, kind: str, **fields: Any) -> None:
        """Send a message of `protocol`; an agent without a connection hears what it missed when it resumes."""
        if peer.connection is not None:
            peer.connection.send(protocol.encode(kind, **fields))

    # -- decisions --------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Let `lifecycle` decide on an event and do what it says."""
        self.state, decision = lifecycle.decide(self.rules, self.state, event)
        getattr(self, f"_do_{decision.action}")(decision)

    def _do_none(self, decision: Decision) -> None:
        pass

    def _do_publish(self, decision: Decision) -> None:
        """Send the cluster spec to all that wait for it."""
        self.cluster = cluster_spec(self.job, self.registry.addresses())
        size = len(tf_config(self.cluster, TaskId("worker", 0)))
        if size > MAX_TF_CONFIG:
            self.apply(Expired(Reason.SPEC_INVALID, f"TF_CONFIG would have {size} bytes, more than {MAX_TF_CONFIG}"))
            return
        now = time.time()
        self.published_at = self.published_at or time.monotonic()
        self.rounds.append(Round(self.state.round, round(now, 3), self.cause))
        delay = max(0.0, self.not_before - time.monotonic())
        logger.info("Published the cluster spec, round %d, %d tasks: %s", self.state.round,
                    len(self.state.phases), ", ".join(f"{n} x {len(h)}" for n, h in self.cluster.items()))
        self.starts.clear()
        for task, phase in self.state.phases.items():
            if phase == lifecycle.RUNNING and task in self.registry.serving:
                self._start(task, delay)

    def _do_start(self, decision: Decision) -> None:
        assert decision.task is not None
        logger.info("Starting %s again in %.1f s: %s", decision.task, decision.delay, decision.cause)
        self._start(decision.task, decision.delay)

    def _start(self, task: TaskId, delay: float) -> None:
        peer = self.registry.serving[task]
        self.starts[task] = self.starts.get(task, 0) + 1
        peer.round, peer.start, peer.running = self.state.round, self.starts[task], True
        self._send_start(peer, delay)

    def _send_start(self, peer: Peer, delay: float) -> None:
        self.send(peer, "start", round=peer.round, start=peer.start, task=str(peer.task),
                  cluster=self.cluster, delay=round(delay, 3))

    def _do_restart(self, decision: Decision) -> None:
        """All commands stop; the agents take new ports and register for the next round."""
        self.cause = decision.cause
        self.not_before = time.monotonic() + decision.delay
        logger.warning("Restarting the cluster as round %d: %s", self.state.round, decision.cause)
        for peer in self.registry.peers.values():
            self.send(peer, "renew", round=self.state.round, grace=self.job.deadlines["stop_grace"])

    def _do_finish(self, decision: Decision) -> None:
        assert self.state.verdict is not None
        logger.info("Verdict: %s: %s", self.state.verdict.reason.value, self.state.verdict.message)
        self.decided.set()

    # -- what it shows ----------------------------------------------------------------------

    async def show_page(self, route: str, address: str, link: str) -> None:
        """Add a page below the tracking URL; one that can't be shown does not end a training."""
        try:
            await self.containers.add_page(route, f"http://{address}", link)
        except SkeinFailed as error:
            logger.warning("%s has no page below the tracking URL: %s", link, error)

    def progress(self) -> float:
        """Give the share of the awaited tasks that have ended well, 0 to 1."""
        awaited = [phase for task, phase in self.state.phases.items() if self.rules.roles[task.type].awaited]
        return awaited.count(lifecycle.SUCCEEDED) / len(awaited) if awaited else 0.0
