"""The state of a job, and what follows from each event: without connections, threads or a clock of its own.

Events are messages and connections of agents, lost containers, and those of `lifecycle`, which decides. Each method
that takes an event returns the effects: what the coordinator does next. All but `on_disconnect` get the present time
(monotonic, seconds). Failures that wait are ordered by the seconds since their end, by each node's own clock
(``late``). Times of day are only recorded.
"""

import logging
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Set, Union

from ..common import protocol
from ..common.contract import MAX_STRING, Job, TaskId, cluster_spec
from ..common.frameworks import tf_config
from ..common.reasons import Reason
from ..common.report import Round
from ..common.roles import EVALUATOR, TENSORBOARD
from ..common.status import ALLOCATED, FAILED, LOST, REGISTERED, RUNNING, STOPPED, SUCCEEDED
from . import lifecycle
from .containers import Container, LostContainer
from .curves import Curves
from .deferred import Deferred, DeferredFailures
from .exits import explain_sigkill, read_exit
from .lifecycle import Decision, Event, Lost, NodeFailures, Registered, Verdict
from .registry import Peer, Registry
from .timeline import Timeline

logger = logging.getLogger(__name__)

#: Seconds without a message or sample of an agent, which come every 5 s, after which nothing is known of its task.
SILENT_AGENT_SECONDS = 10.0


class Send(NamedTuple):
    """An effect: send a message of `protocol`."""

    connection: Any
    kind: str
    fields: Mapping[str, Any]


class Close(NamedTuple):
    """An effect: close a connection that another one has replaced."""

    connection: Any


class LogTail(NamedTuple):
    """An effect: an agent has answered the request of this number, with a part of its log or its stacks."""

    container: str
    number: int
    text: str


Effect = Union[Send, Close, LogTail]
Effects = List[Effect]


class JobState:
    """The state of one job: its tasks, agents, containers and verdict.

    Parameters
    ----------
    job : Job
    application_id : str
    now : float
        Monotonic time, seconds, as in all methods.

    Attributes
    ----------
    lifecycle : State
        The state of `lifecycle.decide`, with the phases of the tasks and the verdict.
    registry : Registry
        The agents.
    known : dict of str to Container
        Skein's containers by id, as they were listed last.
    to_replace : list of Container
        Containers of no use, for which others must be requested.
    given_up : set of str
        The containers that have ended, are lost or are of no use; their agents are refused.
    deferred : DeferredFailures
    began : float
        When the coordinator began.
    finished_at : float or None
        When all commands had ended after the verdict, seconds since the epoch.
    published_at : float or None
        When the cluster spec of the first round was published; ``execution`` counts from it.
    restarts_at : float
        The end of the back-off, before which this round's publication starts no command; the restart itself after a
        loss, 0 in the first round. The registration of a later round has its time from here.
    cluster : dict
        The cluster spec of this round.
    stopping : bool
        Whether commands that run are to be stopped, because there is a verdict.
    lingering : list of Peer
        Agents whose commands may go on for a while after a success.
    times : mapping
        YARN's times of the submission and the launch, as in `report.yarn_times`.
    """

    def __init__(self, job: Job, application_id: str, now: float):
        self.job, self.application_id = job, application_id
        self.lifecycle = lifecycle.initial_state(job)
        self.registry = Registry(job)
        self.known: Dict[str, Container] = {}
        self.to_replace: List[Container] = []
        self.given_up: Set[str] = set()
        self.deferred = DeferredFailures(job)
        self.began, self.started_at = now, time.time()
        self.finished_at: Optional[float] = None
        self.published_at: Optional[float] = None
        self.restarts_at = 0.0
        self.cluster: Dict[str, List[str]] = {}
        self.rounds: List[Round] = []
        self.timeline, self.curves = Timeline(job, self.started_at), Curves()
        self.stopping = False
        self.lingering: List[Peer] = []
        self.linger_seconds = {EVALUATOR: job.deadlines["evaluator_grace"], TENSORBOARD: job.linger}
        self.times: Mapping[str, Any] = {}
        self._cause = "start"
        self._effects: Effects = []
        self._actions: Mapping[str, Callable[[Decision, float], None]] = {
            "none": lambda _decision, _now: None,
            "publish": self._publish,
            "start": self._start_tasks,
            "restart": self._restart,
            "finish": self._finish,
        }
        self._handlers: Mapping[str, Callable[[Peer, Mapping[str, Any], float], None]] = {
            "register": self._on_renewed,
            "running": self._on_running,
            "exited": self._on_exited,
            "terminated": self._on_terminated,
            "ping": self._on_ping,
            "pong": self._on_pong,
            "sample": self._on_sample,
            "log": self._on_log,
        }

    @property
    def has_succeeded(self) -> bool:
        """Whether the verdict is a success."""
        return self.lifecycle.verdict is not None and self.lifecycle.verdict.reason is Reason.SUCCEEDED

    @property
    def excluded(self) -> Dict[str, NodeFailures]:
        """The nodes of which no new container is taken, by their addresses."""
        return lifecycle.excluded_nodes(self.job, self.lifecycle)

    @property
    def progress(self) -> float:
        """The share of the awaited tasks that have succeeded, 0 to 1."""
        awaited = [phase for task, phase in self.lifecycle.phases.items() if self.job.types[task.type].awaited]
        return awaited.count(SUCCEEDED) / len(awaited) if awaited else 0.0

    def idle_seconds(self, now: float) -> float:
        """Return for how long no task has used CPU or GPUs, or written to its log or metrics.

        TensorBoard does not count. It is 0 while a task is missing, starts or ends, or its agent is silent: such a task
        may be busy.
        """
        if not self.lifecycle.published or self.lifecycle.verdict or self.missing():
            return 0.0
        idle = []
        for task, phase in self.lifecycle.phases.items():
            if phase == RUNNING and task.type != TENSORBOARD:
                peer, usage = self.registry.serving.get(task), self.timeline.usage.get(str(task))
                if peer is None or usage is None or not peer.running or peer.confirmed != (peer.round, peer.start):
                    return 0.0
                idle.append(usage.idle_seconds if now - peer.measured_at < SILENT_AGENT_SECONDS else 0.0)
        return min(idle, default=0.0)

    def missing(self) -> List[TaskId]:
        """Return the tasks that are missing, as `lifecycle.missing` names them."""
        return lifecycle.missing(self.job, self.lifecycle)

    def node_of(self, container: str) -> str:
        """Return the node of a container, as in `Container.node`."""
        return self.known[container].node if container in self.known else ""

    def is_unwanted(self, container: str) -> bool:
        """Return whether a new container is on an excluded node, so that it is about to be given back."""
        return container not in self.registry.peers and self.node_of(container) in self.excluded

    def expect_agents(self) -> Dict[TaskId, Optional[str]]:
        """Expect the agents of containers that run and are not unwanted, as `Registry.expect` does."""
        running = [one for one in self.known.values() if one.state == "RUNNING"]
        return self.registry.expect([one for one in running if not self.is_unwanted(one.id)])

    # -- events -----------------------------------------------------------------------------

    def on_connect(self, connection: Any, message: Mapping[str, Any], now: float) -> Effects:
        """Admit the agent that registers over a new connection, or raise `Refused`.

        A new agent that is unfit ends the job as ENVIRONMENT_INVALID.
        """
        peer, resumed = self.registry.admit(message)
        if peer.connection is not None:
            self._effects.append(Close(peer.connection))
        peer.connection, peer.received_at, peer.last_pong_at = connection, now, now
        logger.info(
            "%s %s as %s on %s", peer.container, "is back" if resumed else "registered", peer.task, peer.address
        )
        if not resumed:
            container = self.known.get(peer.container)
            if container and container.started_at is not None:
                self.timeline.note(peer.task, ALLOCATED, at=container.started_at, host=peer.host)
            self.timeline.note(peer.task, REGISTERED, host=peer.host, round=self.lifecycle.round)
        self._send(peer, "welcome", task=str(peer.task), round=self.lifecycle.round)
        self._resync(peer, message, now)
        return self._take_effects()

    def on_message(self, peer: Peer, connection: Any, message: Mapping[str, Any], now: float) -> Effects:
        """Handle a message of a registered agent; ignore unknown, malformed and late messages.

        Late are those of a connection that another one has replaced, and of an agent whose task is lost.
        """
        handle = self._handlers.get(message["type"])
        if peer.connection is connection:
            peer.received_at = now
            try:
                if handle is not None:
                    protocol.check_message(message, protocol.FROM_AGENT[message["type"]])
                    handle(peer, message, now)
            except protocol.ProtocolError as error:
                logger.warning("Ignored a message %s of %s: %s", message["type"], peer.task, error)
        return self._take_effects()

    def on_disconnect(self, peer: Peer, connection: Any) -> Effects:
        """Note that a connection has ended, which alone never fails a task."""
        if peer.connection is connection:
            peer.connection = None
            logger.info("Contact to %s on %s is lost", peer.task, peer.host)
        return self._take_effects()

    def on_lost(self, lost: LostContainer, now: float) -> Effects:
        """Remove a container from the job; its task is lost."""
        container, peer, end = self.known.get(lost.container), self.registry.peers.get(lost.container), lost.end
        reason, cause = lost.reason, f"{lost.cause}. YARN has the node as {end.node}" if end.node else lost.cause
        if peer:
            memory = self.job.services[peer.container.rpartition("_")[0]].memory
            if end.killed:
                begun = peer.confirmed == (peer.round, peer.start)  # else the usage is that of an earlier command
                reason, cause = explain_sigkill(
                    memory, self.timeline.usage.get(str(peer.task)) if begun else None, cause
                )
            self._send(peer, "bye")
            self.registry.release(peer)
            self.timeline.note(peer.task, LOST, host=peer.host, round=peer.round or None, cause=cause)
            before = self.lifecycle.phases[peer.task]
            self._decide(Lost(peer.task, reason, f"{cause} (on {peer.host})", self.node_of(peer.container)), now)
            if peer.task.type == TENSORBOARD and before != FAILED and self.lifecycle.phases[peer.task] == FAILED:
                self.registry.failed_by_yarn(
                    peer.task, f"{memory} MiB are too little, raise --tensorboard_memory: {cause}"
                )
                logger.warning("TensorBoard was ended by YARN: %s; the training goes on", cause)
        elif container and container.state == "FAILED":
            image = self.job.image_of(self.job.services[container.service].type)
            fault = end.start_fault(container.message, image) if reason is Reason.CONTAINER_LOST else None
            cause = str(fault) if fault else cause if end.detail in cause else f"{cause} {end.detail}"
            # A container without a log is of no use to those who look for one.
            for task in self.registry.expect([container._replace(yarn_id="") if end.has_no_log else container]):
                self.timeline.note(task, LOST, host=container.host or None, cause=cause)
                self._decide(
                    Verdict(fault.reason, f"{task} on {container.place}: {fault}", task)
                    if fault and fault.everywhere
                    else Lost(task, reason, f"before its agent called: {cause}", container.node),
                    now,
                )
        if lost.replace and container:
            self.to_replace.append(container)
        return self._take_effects()

    def apply(self, event: Event, now: float) -> Effects:
        """Let `lifecycle` decide on an event."""
        self._decide(event, now)
        return self._take_effects()

    def apply_deferred(self, now: float) -> Effects:
        """Apply the deferred failures that are due."""
        self._decide_deferred(now)
        return self._take_effects()

    def abort(self, verdict: Verdict, now: float) -> Effects:
        """End the job at the wish of a client, as YARN does: also a trained one in which commands still linger.

        Only a job of this machine is ended so. A success is replaced only while `lingering` is not empty; a commit that
        has begun goes on.
        """
        if self.lingering and self.has_succeeded:
            self.lifecycle = self.lifecycle._replace(verdict=None)
        return self.apply(verdict, now)

    # -- the shutdown -----------------------------------------------------------------------

    def begin_grace(self) -> List[Peer]:
        """Let the awaited commands that run after the chief's success linger, if they have time for it; return them.

        Their agents get no message, except ``trained`` after a lost connection. `begin_shutdown` sends it to evaluators
        and TensorBoard.
        """
        if self.has_succeeded and self.job.deadlines["success_grace"]:
            peers = self.registry.peers.values()
            self.lingering = [peer for peer in peers if peer.running and self.job.types[peer.task.type].awaited]
        return self.lingering

    def begin_shutdown(self) -> Effects:
        """Stop the commands that run; after a success evaluators and TensorBoard linger, if they have time for it."""
        self.stopping, self.lingering = True, []
        for peer in self.registry.peers.values():
            if self.has_succeeded and peer.running and self.linger_seconds.get(peer.task.type):
                self.lingering.append(peer)
                self._send(peer, "trained")
            else:
                self._stop(peer)
        return self._take_effects()

    def end_linger(self, task_type: str) -> Effects:
        """Stop the commands of this type that linger."""
        ended = [peer for peer in self.lingering if peer.task.type == task_type]
        self.lingering = [peer for peer in self.lingering if peer.task.type != task_type]
        for peer in ended:
            self._stop(peer)
        return self._take_effects()

    def dismiss(self) -> Effects:
        """Let all agents end."""
        for peer in self.registry.peers.values():
            self._send(peer, "bye")
        return self._take_effects()

    def has_left(self, peer: Peer, now: float) -> bool:
        """Return whether a disconnected agent will not come back."""
        heartbeat = self.job.deadlines["heartbeat"]
        silent = heartbeat and now - peer.received_at > heartbeat
        return peer.connection is None and bool(silent or peer.terminated)

    # -- messages of agents -----------------------------------------------------------------

    def _resync(self, peer: Peer, message: Mapping[str, Any], now: float) -> None:
        """Repeat the messages that a new agent, or one that is back, may have missed.

        One without a start has registered for the present round, whatever round it names.
        """
        has_received_start = message["start"] > 0
        if has_received_start and (message["round"] != self.lifecycle.round or self._needs_port(peer)):
            self._send_renew(peer)
        elif peer in self.lingering:
            self._send(peer, "trained")
        elif self.stopping:
            self._send(peer, "stop", grace=self.job.deadlines["stop_grace"])
        elif peer.running and peer.round == self.lifecycle.round:
            self._on_running(peer, message, now)
            self._send_start(peer, now)
        elif not has_received_start:
            peer.running = False
            why = message["unfit"]
            self._decide(
                Verdict(Reason.ENVIRONMENT_INVALID, f"{peer.task} on {peer.host}: {why}", peer.task)
                if why
                else Registered(peer.task),
                now,
            )

    def _needs_port(self, peer: Peer) -> bool:
        """Return whether the others go on while an agent takes another port, because its own was taken."""
        return self.lifecycle.published and self.lifecycle.phases[peer.task] == LOST

    def _on_ping(self, peer: Peer, _message: Mapping[str, Any], _now: float) -> None:
        self._send(peer, "pong")

    def _on_pong(self, peer: Peer, _message: Mapping[str, Any], now: float) -> None:
        peer.last_pong_at = now
        self._decide_deferred(now)

    def _on_sample(self, peer: Peer, message: Mapping[str, Any], now: float) -> None:
        """Take what a command uses and its new metrics; a late sample is about nothing that still runs."""
        self._send(peer, "pong")
        if peer.is_current(message) and peer.running:
            peer.measured_at = now
            self.timeline.measured(peer.task, message)
            self.curves.take(str(peer.task), message)

    def _on_log(self, peer: Peer, message: Mapping[str, Any], _now: float) -> None:
        self._effects.append(LogTail(peer.container, message["id"], message["text"]))

    def _on_terminated(self, peer: Peer, _message: Mapping[str, Any], _now: float) -> None:
        peer.terminated = True

    def _on_running(self, peer: Peer, message: Mapping[str, Any], _now: float) -> None:
        """Note that a command began. Every message that shows it counts, because each may be lost."""
        if peer.is_current(message) and self.registry.started(peer):
            self.timeline.started(peer.task, peer.host, peer.round, peer.cause)

    def _on_renewed(self, peer: Peer, message: Mapping[str, Any], now: float) -> None:
        """Take the new port of an agent that has ended its command for this round."""
        if message["round"] == self.lifecycle.round and 0 < message["port"] < 65536:
            peer.port, peer.running = message["port"], False
            self.timeline.note(peer.task, REGISTERED, host=peer.host, round=self.lifecycle.round)
            self._decide(Registered(peer.task), now)

    def _on_exited(self, peer: Peer, message: Mapping[str, Any], now: float) -> None:
        """Acknowledge the end of a command; handle it if it is the end of the last start."""
        self._send(peer, "ack")
        if not (peer.is_current(message) and peer.running):
            return
        if message["started_at"] is not None:
            self._on_running(peer, message, now)
        code, number, seconds, stopped = (message[name] for name in ("code", "signal", "seconds", "stopped"))
        how = f"was ended by signal {number}" if number else f"ended with exit code {code}"
        logger.info("%s %s after %s s%s", peer.task, how, seconds, " (stopped)" if stopped else "")
        event = read_exit(self.job, peer, message, self.node_of(peer.container))
        kind = STOPPED if stopped else FAILED if code or number else SUCCEEDED
        self.timeline.note(
            peer.task,
            kind,
            at=message["finished_at"],
            host=peer.host,
            round=peer.round,
            exit_code=code,
            signal=number,
            cause=event.cause if kind == FAILED else None,
        )
        if stopped or self.lifecycle.verdict is not None:
            self.registry.ended(peer, message, kind)
            return
        self.registry.ended(peer, message)
        if isinstance(event, Lost):
            if self.lifecycle.phases[peer.task] == RUNNING:  # else a new round gives it another port anyway
                self._decide(event, now)
            if self._needs_port(peer) and self.lifecycle.verdict is None:
                self._send_renew(peer)
            return
        if peer.task.type == TENSORBOARD:
            logger.warning("TensorBoard %s; the training goes on", event.cause)
        if not lifecycle.may_be_a_consequence(self.job, self.lifecycle, event):
            self._decide(event, now)
            return
        if self.deferred.defer(Deferred(now - message["late"], peer, message, event), now):
            for other in self.registry.peers.values():
                self._send(other, "ping")
        self._decide_deferred(now)

    # -- decisions --------------------------------------------------------------------------

    def _decide(self, event: Event, now: float) -> None:
        """Let `lifecycle` decide on an event, and act on the decision."""
        excluded = self.excluded
        self.lifecycle, decision = lifecycle.decide(self.job, self.lifecycle, event)
        for node in self.excluded.keys() - excluded:
            logger.warning("Node %s is excluded: %s", node, self.excluded[node])
        if decision.replaced_task is not None:  # its container is given back like any other on an excluded node
            self.registry.release(self.registry.serving[decision.replaced_task])
        self._actions[decision.action](decision, now)

    def _decide_deferred(self, now: float) -> None:
        for failure in self.deferred.due(self.registry.peers.values(), now):
            if failure.peer.is_current(failure.message):
                self._decide(failure.event, now)

    def _publish(self, decision: Decision, now: float) -> None:
        """Publish the cluster spec and start the tasks of the decision; end the job if TF_CONFIG is too large."""
        self.cluster = cluster_spec(self.job, {task: peer.address for task, peer in self.registry.serving.items()})
        size = len(tf_config(self.cluster, "worker", 0))
        if size > MAX_STRING:
            large = f"TF_CONFIG would have {size} bytes, more than {MAX_STRING}"
            self._decide(Verdict(Reason.SPEC_INVALID, large), now)
            return
        self.published_at = now if self.published_at is None else self.published_at
        self.rounds.append(Round(self.lifecycle.round, round(time.time(), 3), self._cause))
        logger.info(
            "Published the cluster spec, round %d, %d tasks: %s",
            self.lifecycle.round,
            len(self.lifecycle.phases),
            ", ".join(f"{name} x {len(hosts)}" for name, hosts in self.cluster.items()),
        )
        cause = self._cause if self.lifecycle.round > 1 else None
        for task in decision.tasks:
            self._start(task, self.restarts_at, now, cause)

    def _start_tasks(self, decision: Decision, now: float) -> None:
        """Start the command of one task, or of those that have waited for others; the rest goes on."""
        names, why = ", ".join(map(str, decision.tasks)), decision.cause or "those before have succeeded"
        logger.info("Starting %s in %.1f s: %s", names, decision.delay, why)
        for task in decision.tasks:
            self._start(task, now + decision.delay, now, decision.cause or None)

    def _start(self, task: TaskId, at: float, now: float, cause: Optional[str]) -> None:
        """Start the command of a task; the running ones first learn of an address that has changed."""
        peer, hosts = self.registry.serving[task], self.cluster.get(task.type)
        if hosts and hosts[task.index] != peer.address:
            moved = [*hosts[: task.index], peer.address, *hosts[task.index + 1 :]]
            self.cluster = {**self.cluster, task.type: moved}
            for other in self.registry.peers.values():
                if other.running:
                    self._send_start(other, now)
        peer.begin(self.lifecycle.round, at, cause)
        self._send_start(peer, now)

    def _restart(self, decision: Decision, now: float) -> None:
        """Let all commands end; the agents take new ports and register for the next round."""
        self._cause = decision.cause
        self.deferred.waiting.clear()
        self.restarts_at = now + decision.delay
        logger.warning("Restarting the cluster as round %d: %s", self.lifecycle.round, decision.cause)
        for peer in self.registry.peers.values():
            self._send_renew(peer)

    def _finish(self, _decision: Decision, _now: float) -> None:
        assert self.lifecycle.verdict is not None
        for failure in self.deferred.waiting:
            if failure.peer.is_current(failure.message):
                self.registry.ended(failure.peer, failure.message, FAILED)
        self.deferred.waiting.clear()
        logger.info("Verdict: %s: %s", self.lifecycle.verdict.reason.value, self.lifecycle.verdict.message)

    # -- effects ----------------------------------------------------------------------------

    def _send(self, peer: Peer, kind: str, **fields: Any) -> None:
        """Send a message. Without a connection, skip it: an agent that is back gets it again."""
        if peer.connection is not None:
            self._effects.append(Send(peer.connection, kind, fields))

    def _send_start(self, peer: Peer, now: float) -> None:
        self._send(
            peer,
            "start",
            round=peer.round,
            start=peer.start,
            task=str(peer.task),
            cluster=self.cluster,
            delay=round(max(0.0, peer.starts_at - now), 3),
        )

    def _send_renew(self, peer: Peer) -> None:
        self._send(peer, "renew", round=self.lifecycle.round, grace=self.job.deadlines["stop_grace"])

    def _stop(self, peer: Peer) -> None:
        if peer.running:
            if self.lifecycle.verdict is not None and self.lifecycle.verdict.reason is Reason.STALLED:
                self._send(peer, "stack", id=0)  # nobody awaits the answer: the stacks are in the log then
            self._send(peer, "stop", grace=self.job.deadlines["stop_grace"])

    def _take_effects(self) -> Effects:
        effects, self._effects = self._effects, []
        return effects
