"""The coordinator: gather the agents, publish the cluster spec, watch the exits, decide once.

It runs in the application master. It turns messages of agents and Skein's list of containers into events of
`lifecycle`, and the decisions of `lifecycle` into messages. A verdict is final, and needs no client.
"""

import asyncio
import dataclasses
import functools
import importlib.metadata
import logging
import math
import platform
import socket
import ssl
import time
from types import MappingProxyType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ..common import protocol
from ..common.container_http import last_line_of_agent
from ..common.contract import MAX_STRING, Job, TaskId, cluster_spec
from ..common.frameworks import tf_config
from ..common.mutual_tls import client_context
from ..common.reasons import Reason
from ..common.report import JobReport, Round, list_names, yarn_times
from ..common.roles import EVALUATOR, TENSORBOARD
from ..common.status import FAILED, LOST, STOPPED, SUCCEEDED, Facts, build_status
from . import lifecycle
from .commit import Ending, commit_of, persist
from .containers import FINISHED, Container, ContainerEnd, Containers, last_line_of
from .curves import Curves
from .deferred import Deferred, DeferredFailures
from .exits import explain_sigkill, read_exit
from .lifecycle import Decision, Event, Exited, Expired, Lost, Registered, Verdict
from .listener import Connection, Server
from .overseer import LostContainer, Overseer, View
from .registry import Peer, Refused, Registry
from .skein_calls import SkeinFailed
from .timeline import Timeline
from .tunnel import Tunnel
from .viewers import Viewers

logger = logging.getLogger(__name__)

#: Seconds for which a replacement waits for the news that the container before it is lost.
REPLACEMENT_SECONDS = 5.0
TICK_SECONDS = 0.5
#: Seconds between two looks at the size of the work that is not committed.
MEASURE_SECONDS = 60.0
#: Seconds between two looks at Skein's containers while every agent is connected.
CALM_SECONDS = 2.0
#: Seconds within which an agent sends the end of its log, and the most requests for logs at a time.
TAIL_SECONDS = 5.0
MAX_TAILS = 32
#: Seconds within which an agent reports the end of a command after SIGKILL.
AFTER_KILL = 3.0
#: Seconds without a message of an agent, which sends one every 5 s, after which the status reports its silence.
SILENT_AGENT_SECONDS = 10.0
#: The most logs that are read for the cause of a missing registration.
LOGS_READ = 3
#: Containers whose nodes are asked why they ended, of those that end at the same time.
MAX_EXPLAINED = 4
#: Libraries of the environment whose versions the page shows.
_LIBRARIES = ("tensorflow", "tensorflow-cpu", "keras", "numpy", "tensorboard")


def installed_versions() -> Dict[str, str]:
    """Return the versions of the libraries that matter to a training, as far as this interpreter has them."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class Coordinator:
    """One job's coordinator.

    Parameters
    ----------
    job : Job
    application_id : str
    containers : Containers
        Skein's application master, or this machine.
    """

    def __init__(self, job: Job, application_id: str, containers: Containers):
        self.job = job
        self.application_id = application_id
        self.state = lifecycle.begin(job)
        self.registry = Registry(job)
        self.known: Dict[str, Container] = {}
        self.containers = containers
        self._rules = lifecycle.rules_of(job)
        self._output = commit_of(job, application_id)
        self._server = Server(
            self.on_connect, self.on_message, self.on_disconnect, self.failed, 2 * len(self.state.phases) + 64
        )
        self._started_at = time.time()
        self._began = time.monotonic()
        self._overseer = Overseer(job, self._rules, self._began)
        self._timeline = Timeline(job, self._started_at)
        self._curves = Curves()
        self._allocated: Dict[str, float] = {}
        self._tails: Dict[int, Tuple[Peer, "asyncio.Future[str]"]] = {}
        self._tail = 0
        self._times: Dict[str, Any] = {}
        self._installed = installed_versions()
        self._cluster: Dict[str, List[str]] = {}
        self._rounds: List[Round] = []
        self._starts: Dict[TaskId, int] = {}
        self._published_at: Optional[float] = None
        self._cause, self._restarts_at = "start", 0.0
        self._decided = asyncio.Event()
        self._stopping = False
        self._staying: List[Peer] = []
        self._changed = asyncio.Event()
        self._direct = job.tensorboard is not None and job.tensorboard.direct
        self.viewers = Viewers(job, application_id)
        self._tunnel = job.tensorboard and Tunnel(
            None if self._direct else client_context(), self._why_no_tensorboard, self.viewers
        )
        self._board_shown: Optional["asyncio.Future[None]"] = None
        self._board_page: Optional[str] = None
        self._listing = asyncio.Lock()
        self._listed_at = self._check_at = 0.0
        self._to_replace: List[Container] = []
        self._excluded: Dict[str, str] = {}
        self._progress = -1.0
        self._deferred = DeferredFailures(job, self._rules)
        self._actions = {
            "none": self._nothing,
            "publish": self._publish,
            "start": self._start_again,
            "restart": self._restart,
            "finish": self._finish,
        }
        self._message_handlers = {
            "register": self._renewed,
            "running": self._started,
            "exited": self._exited,
            "terminated": self._terminated,
            "ping": self._pinged,
            "pong": self._answered,
            "sample": self._sampled,
            "log": self._logged,
        }

    # -- agents -----------------------------------------------------------------------------

    async def serve(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        """Accept agents until cancelled."""
        await self._server.serve(listener, context)

    async def on_connect(self, connection: Connection, message: Dict[str, Any]) -> Optional[Peer]:
        """Accept a registration and return its peer, or refuse it with the reason and return None."""
        try:
            if message["type"] != "register":
                raise Refused("the first message is not a registration")
            await self._check_known(str(message.get("container")))
            if self._is_unwanted(str(message.get("container"))):
                return None  # refused, it would count as lost; its container is about to be given back
            await self._await_removal(str(message.get("container")))
            peer, resumed = self.registry.admit(message)
        except Refused as refused:
            logger.warning("Refused %s from %s: %s", message.get("container"), connection.address, refused)
            connection.send(protocol.encode("refused", why=str(refused)))
            return None
        peer.connect(connection)
        how = "is back" if resumed else "registered"
        logger.info("%s %s as %s on %s", peer.container, how, peer.task, peer.address)
        if not resumed:
            self._timeline.registered(peer.task, peer.host, self.state.round, self._allocated.get(peer.container))
        peer.send("welcome", task=str(peer.task), round=self.state.round)
        self._catch_up(peer, message)
        return peer

    def _catch_up(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Repeat the messages that a new agent, or one that is back, may have missed."""
        has_started = message["start"] > 0
        if has_started and message["round"] != self.state.round:
            self._send_renew(peer)
        elif peer in self._staying:
            peer.send("trained")
        elif self._stopping:
            peer.send("stop", grace=self.job.deadlines["stop_grace"])
        elif peer.running and peer.round == self.state.round:
            self._started(peer, message)
            self._send_start(peer, 0.0)
        elif not has_started:
            peer.running = False
            why = message["unfit"]
            self.apply(
                Expired(Reason.ENVIRONMENT_INVALID, f"{peer.task} on {peer.host}: {why}", peer.task)
                if why
                else Registered(peer.task)
            )

    async def _check_known(self, container: str) -> None:
        """Refuse a container that Skein does not know, or that has ended.

        A container that was known before it ran has no node yet, without which no failure of it would count.
        """
        if container not in self.known or (self._rules.exclude_node_after and not self._node_of(container)):
            await self._refresh()
        found = self.known.get(container)
        if found is None or found.state in FINISHED:
            raise Refused(f"Skein knows no live container {container!r}")

    def _is_unwanted(self, container: str) -> bool:
        return container not in self.registry.peers and self._node_of(container) in self._excluded

    def _node_of(self, container: str) -> str:
        return self.known[container].node if container in self.known else ""

    async def _await_removal(self, container: str) -> None:
        """Let a replacement wait until the coordinator has noticed the loss of the container before it."""
        until = time.monotonic() + REPLACEMENT_SECONDS
        while container not in self.registry.peers and self.registry.free_task(container) is None:
            if time.monotonic() > until:
                return
            await asyncio.sleep(0.1)

    async def _refresh(self) -> List[Container]:
        """Return Skein's containers; callers at the same time share one answer."""
        asked = time.monotonic()
        async with self._listing:
            if self._listed_at < asked:
                listed = time.monotonic()
                self.known = {container.id: container for container in await self.containers.list()}
                for container in self.known.values():
                    if container.state == "RUNNING":
                        self._allocated.setdefault(container.id, container.started_at or time.time())
                self.registry.expect(self._uncalled())
                self._listed_at = listed
        return list(self.known.values())

    def _uncalled(self) -> List[Container]:
        """Return the containers that run, and whose agents have not registered."""
        return [
            container
            for container in self.known.values()
            if container.state == "RUNNING"
            and container.id not in self.registry.peers
            and not self._is_unwanted(container.id)
        ]

    def on_message(self, peer: Peer, connection: Connection, message: Dict[str, Any]) -> None:
        """Handle one message of a registered agent; ignore unknown, malformed and late messages."""
        if peer.connection is not connection or self.registry.peers.get(peer.container) is not peer:
            return
        peer.received_at = time.monotonic()
        kind = message["type"]
        if kind not in self._message_handlers:
            return
        try:
            protocol.check_message(message, protocol.FROM_AGENT[kind])
        except protocol.ProtocolError as error:
            logger.warning("Ignored a message %s of %s: %s", kind, peer.task, error)
            return
        self._message_handlers[kind](peer, message)

    def _pinged(self, peer: Peer, message: Mapping[str, Any]) -> None:
        peer.send("pong")

    def _answered(self, peer: Peer, message: Mapping[str, Any]) -> None:
        peer.answered_at = time.monotonic()
        self._apply_deferred()

    def _sampled(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Take what a command uses and its new metrics; a late sample is about nothing that still runs."""
        peer.send("pong")
        if peer.means(message) and peer.running:
            self._timeline.measured(peer.task, message)
            self._curves.take(str(peer.task), message)

    def _logged(self, peer: Peer, message: Mapping[str, Any]) -> None:
        asked, answer = self._tails.get(message["id"], (None, None))
        if asked is peer and answer is not None and not answer.done():
            answer.set_result(message["text"])

    def _terminated(self, peer: Peer, message: Mapping[str, Any]) -> None:
        peer.terminated = True

    def _started(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Note that a command began. Every message that shows it counts, because each may be lost."""
        if not (peer.means(message) and self.registry.started(peer)):
            return
        self._timeline.started(peer.task, peer.host, peer.round)
        if peer.task.type == TENSORBOARD:
            self._board_shown = asyncio.ensure_future(self._show_tensorboard(peer))

    def _renewed(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Take the new port of an agent that has ended its command for this round."""
        if message["round"] == self.state.round and 0 < message["port"] < 65536:
            peer.renew(message["port"])
            self._timeline.registered(peer.task, peer.host, self.state.round)
            self.apply(Registered(peer.task))

    def _exited(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Acknowledge the end of a command; handle it if it is the end of the last start."""
        peer.send("ack")
        if not (peer.means(message) and peer.running):
            return
        if message["started_at"] is not None:
            self._started(peer, message)
        code, number, seconds, stopped = (message[name] for name in ("code", "signal", "seconds", "stopped"))
        how = f"was ended by signal {number}" if number else f"ended with exit code {code}"
        logger.info("%s %s after %s s%s", peer.task, how, seconds, " (stopped)" if stopped else "")
        event = read_exit(self.job, peer, message, self._node_of(peer.container))
        self._timeline.note(
            peer.task,
            STOPPED if stopped else FAILED if code or number else SUCCEEDED,
            at=message["finished_at"],
            host=peer.host,
            round=peer.round,
            exit_code=code,
            signal=number,
            cause=event.cause if (code or number) and not stopped else None,
        )
        if stopped or self.state.verdict is not None:
            self.registry.ended(peer, message, "stopped" if stopped else "failed" if code or number else "succeeded")
            if not any(other.running and other.connection for other in self.registry.peers.values()):
                self._changed.set()
            return
        self.registry.ended(peer, message)
        if peer.task.type == TENSORBOARD and isinstance(event, Exited):
            logger.warning("TensorBoard %s; the training goes on", event.cause)
        if isinstance(event, Exited) and lifecycle.may_be_a_consequence(self._rules, self.state, event):
            now = time.monotonic()
            self._defer(Deferred(now - message["late"], peer, message, event), now)
        else:
            self.apply(event)

    def _defer(self, failure: Deferred, now: float) -> None:
        """Ping the others before a failure is applied: a task that is lost or fails makes the others fail."""
        if self._deferred.defer(failure, now):
            for other in self.registry.peers.values():
                other.send("ping")
        self._apply_deferred()

    def _apply_deferred(self) -> None:
        """Apply the deferred failures that are due and still about the present start of their task."""
        for failure in self._deferred.due(self.registry.peers.values(), time.monotonic()):
            if self._is_present(failure.peer, failure.message):
                self.apply(failure.event)

    def _is_present(self, peer: Peer, message: Mapping[str, Any]) -> bool:
        """Return whether a message is about the present start of the peer's task."""
        return peer.means(message) and self.registry.serving.get(peer.task) is peer

    def on_disconnect(self, peer: Peer, connection: Connection) -> None:
        """Note that a connection has ended; `watch` finds out whether the task is lost."""
        if peer.connection is connection:
            peer.connection = None
            logger.info("Contact to %s on %s is lost", peer.task, peer.host)
            if self._stopping:
                self._changed.set()

    def failed(self, error: BaseException) -> None:
        """End the job after an error in the coordinator itself; otherwise the job would hang."""
        self.apply(Expired(Reason.AM_FAILED, f"the coordinator failed: {error!r}"))

    # -- containers and deadlines -----------------------------------------------------------

    async def watch(self) -> None:
        """Poll for lost containers and passed deadlines until there is a verdict."""
        while self.state.verdict is None:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._check_containers(time.monotonic())
            except SkeinFailed as error:
                logger.warning("Skein did not answer: %s", error)
            self.remove_containers(self._overseer.silent(self._view(), time.monotonic()))
            self._apply_deferred()
            self._end_if(self._overseer.overdue(self._view(), time.monotonic()))

    async def _check_containers(self, now: float) -> None:
        peers = self.registry.peers.values()
        questions = any(peer.connection is None or peer.terminated for peer in peers)
        if questions or not self.state.published or now >= self._check_at:
            self._check_at = now + CALM_SECONDS
            await self._remove_ended(self._overseer.ended(await self._refresh()))
            unwanted = self._overseer.unwanted(self._view())
            if unwanted:
                logger.info("Giving back %s, on excluded nodes", list_names([container.id for container in unwanted]))
                self._to_replace += unwanted
                self._end_if(self._overseer.without_nodes(self._view(), await self.containers.nodes()))
            self._end_if(await self._explained(self._overseer.missing(self._view(), now)))
        while self._to_replace and self.state.verdict is None:
            await self.containers.replace(self._to_replace[0])
            self._to_replace.pop(0)
        if self._share_done() != self._progress:
            self._progress = self._share_done()
            await self.containers.progress(self._progress)

    def _view(self) -> View:
        return View(
            self.state,
            self.registry.peers,
            self.registry.serving,
            list(self.known.values()),
            self._began,
            self._published_at,
            self._restarts_at,
        )

    async def _explained(self, expired: Optional[Expired]) -> Optional[Expired]:
        """Add the last line of an agent that can't register: it names what a firewall or DNS does."""
        if expired is None or expired.reason is not Reason.REGISTRATION_TIMEOUT:
            return expired
        loop = asyncio.get_running_loop()
        for task in self.registry.expect(self._uncalled())[:LOGS_READ]:
            url = self.registry.log_url(task)
            line = url and await loop.run_in_executor(None, last_line_of_agent, url, self.job.authorities)
            if line:
                return expired._replace(cause=f"{expired.cause}. The log of {task} ends with: {line}")
        return expired

    def _end_if(self, expired: Optional[Expired]) -> None:
        if expired is not None:
            self.apply(expired)

    async def _remove_ended(self, gone: List[LostContainer]) -> None:
        """Remove containers that have ended, for the reason that their nodes know where Skein says too little."""
        unclear = [one.container for one in gone if one.reason in (Reason.CONTAINER_LOST, Reason.NODE_LOST)]
        unclear = unclear[:MAX_EXPLAINED]
        ends = await asyncio.gather(*(self.containers.explain(self.known[container]) for container in unclear))
        self.remove_containers(gone, {unclear[number]: end for number, end in enumerate(ends)})

    def remove_containers(
        self, gone: Iterable[LostContainer], ends: Mapping[str, ContainerEnd] = MappingProxyType({})
    ) -> None:
        """Remove containers from the job; their tasks are lost.

        Parameters
        ----------
        gone : iterable of LostContainer
        ends : mapping of str to ContainerEnd, optional
            What the nodes know, by the id of the container.
        """
        for container_id, reason, cause, replace in gone:
            container, peer = self.known.get(container_id), self.registry.peers.get(container_id)
            end = ends.get(container_id, ContainerEnd())
            if end.node:
                cause = f"{cause}. YARN has the node as {end.node}"
            if peer:
                if end.killed:
                    memory = self.job.services[container_id.rpartition("_")[0]].memory
                    reason, cause = explain_sigkill(memory, self._timeline.usage.get(str(peer.task)), cause)
                peer.send("bye")
                self.registry.vacate(peer)
                self._timeline.note(peer.task, LOST, host=peer.host, round=peer.round or None, cause=cause)
                self.apply(Lost(peer.task, reason, f"{cause} (on {peer.host})", self._node_of(container_id)))
                if peer.task.type == TENSORBOARD and self.state.phases[peer.task] == lifecycle.FAILED:
                    self._tensorboard_is_too_small(peer, cause)
            elif container and container.state == "FAILED":
                cause = cause if end.detail in cause else f"{cause} {end.detail}"
                image = self.job.docker_image
                fault = end.image_fault() if image else None
                # A container without a log is of no use to those who look for one.
                for task in self.registry.expect([container._replace(yarn_id="") if end.has_no_log else container]):
                    self._timeline.note(task, LOST, host=container.host or None, cause=cause)
                    self.apply(
                        Expired(
                            Reason.ENVIRONMENT_INVALID, f"{task} on {container.place}: the image {image}: {fault}", task
                        )
                        if fault
                        else Lost(task, reason, f"before its agent called: {cause}", container.node)
                    )
            if replace and container:
                self._to_replace.append(container)

    def _tensorboard_is_too_small(self, board: Peer, cause: str) -> None:
        memory = self.job.services[TENSORBOARD].memory
        self.registry.failed_by_yarn(board.task, f"{memory} MiB are too little, raise --tensorboard_memory: {cause}")
        logger.warning("TensorBoard was ended by YARN: %s; the training goes on", cause)

    def _share_done(self) -> float:
        """Return the share of the awaited tasks that have succeeded, 0 to 1."""
        awaited = [phase for task, phase in self.state.phases.items() if self._rules.roles[task.type].awaited]
        return awaited.count(lifecycle.SUCCEEDED) / len(awaited) if awaited else 0.0

    # -- decisions --------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Let `lifecycle` decide on an event, and carry out the decision."""
        self.state, decision = lifecycle.decide(self._rules, self.state, event)
        for node, failures in lifecycle.excluded_nodes(self._rules, self.state).items():
            if node not in self._excluded:
                logger.warning("Node %s is excluded: %s", node, failures)
            self._excluded[node] = str(failures)
        if decision.leaves is not None:
            self._leave(decision.leaves)
        self._actions[decision.action](decision)

    def _leave(self, task: TaskId) -> None:
        """Free a task that failed on an excluded node; the overseer gives its container back like any other there."""
        self.registry.vacate(self.registry.serving[task])

    def end(self, expired: Expired) -> None:
        """End the job at the wish of a client, as YARN does: also a trained one in which commands still have time."""
        if self._staying:
            self.state = self.state._replace(verdict=None)
        self.apply(expired)

    def _nothing(self, decision: Decision) -> None:
        pass

    def _publish(self, decision: Decision) -> None:
        """Publish the cluster spec: start the command of every task that waits for it."""
        self._cluster = cluster_spec(self.job, self.registry.addresses())
        size = len(tf_config(self._cluster, "worker", 0))
        if size > MAX_STRING:
            self.apply(Expired(Reason.SPEC_INVALID, f"TF_CONFIG would have {size} bytes, more than {MAX_STRING}"))
            return
        self._published_at = self._published_at or time.monotonic()
        self._rounds.append(Round(self.state.round, round(time.time(), 3), self._cause))
        delay = max(0.0, self._restarts_at - time.monotonic())
        logger.info(
            "Published the cluster spec, round %d, %d tasks: %s",
            self.state.round,
            len(self.state.phases),
            ", ".join(f"{name} x {len(hosts)}" for name, hosts in self._cluster.items()),
        )
        self._starts.clear()
        for task, phase in self.state.phases.items():
            if phase == lifecycle.RUNNING and task in self.registry.serving:
                if self.state.round > 1:
                    self._timeline.explain(task, self._cause)
                self._start(task, delay)

    def _start_again(self, decision: Decision) -> None:
        """Start the command of one task; the others go on."""
        assert decision.task is not None
        logger.info("Starting %s again in %.1f s: %s", decision.task, decision.delay, decision.cause)
        self._timeline.explain(decision.task, decision.cause)
        hosts, address = self._cluster.get(decision.task.type), self.registry.serving[decision.task].address
        if hosts and hosts[decision.task.index] != address:
            hosts[decision.task.index] = address
            for peer in self.registry.peers.values():
                if peer.running:
                    self._send_start(peer, 0.0)
        self._start(decision.task, decision.delay)

    def _start(self, task: TaskId, delay: float) -> None:
        peer = self.registry.serving[task]
        self._starts[task] = self._starts.get(task, 0) + 1
        peer.begin(self.state.round, self._starts[task])
        self._send_start(peer, delay)

    def _send_start(self, peer: Peer, delay: float) -> None:
        peer.send(
            "start",
            round=peer.round,
            start=peer.start,
            task=str(peer.task),
            cluster=self._cluster,
            delay=round(delay, 3),
        )

    def _restart(self, decision: Decision) -> None:
        """Let all commands end; the agents take new ports and register for the next round."""
        self._cause = decision.cause
        self._deferred.waiting.clear()
        self._restarts_at = time.monotonic() + decision.delay
        logger.warning("Restarting the cluster as round %d: %s", self.state.round, decision.cause)
        for peer in self.registry.peers.values():
            self._send_renew(peer)

    def _send_renew(self, peer: Peer) -> None:
        peer.send("renew", round=self.state.round, grace=self.job.deadlines["stop_grace"])

    def _finish(self, decision: Decision) -> None:
        assert self.state.verdict is not None
        for failure in self._deferred.waiting:
            if self._is_present(failure.peer, failure.message):
                self.registry.ended(failure.peer, failure.message, "failed")
        self._deferred.waiting.clear()
        logger.info("Verdict: %s: %s", self.state.verdict.reason.value, self.state.verdict.message)
        self._decided.set()

    # -- the output -------------------------------------------------------------------------

    async def prepare_output(self) -> None:
        """Make the working folder of a job whose output is committed; end a job whose result is there already."""
        if self._output is not None:
            ending = await persist(self._output.prepare)
            if ending is not None:
                self.apply(Expired(*ending))

    async def measure_output(self) -> None:
        """Note how large the work of a job is whose output is committed, until there is a verdict."""
        while self._output is not None and self.state.verdict is None:
            await asyncio.get_running_loop().run_in_executor(None, self._output.measure)
            await asyncio.sleep(MEASURE_SECONDS)

    async def _commit_output(self) -> None:
        """Commit the output of a training that has succeeded; a commit that fails is the verdict."""
        if self._output is not None and self._has_succeeded():
            document = self._full_report(False, False).to_dict()
            ending = await persist(functools.partial(self._output.commit, document))
            if isinstance(ending, Ending):
                logger.error("%s", ending.message)
                self.state = self.state._replace(verdict=Verdict(*ending))
        if self._output is not None and not self._has_succeeded():
            await asyncio.get_running_loop().run_in_executor(None, self._output.measure)

    # -- the end ----------------------------------------------------------------------------

    async def verdict(self) -> Verdict:
        """Wait for the verdict and return it."""
        await self._decided.wait()
        assert self.state.verdict is not None
        return self.state.verdict

    async def stop_tasks(self) -> None:
        """End the commands that still run, and commit the output.

        After a success evaluators have their time before the commit, and TensorBoard after it.
        """
        self._stopping = True
        peers = self.registry.peers.values()
        stays = {EVALUATOR: self.job.deadlines["evaluator_grace"], TENSORBOARD: self.job.linger}
        if self._has_succeeded():
            self._staying = [peer for peer in peers if peer.running and stays.get(peer.task.type)]
        for peer in self._staying:
            peer.send("trained")
        await self._stop([peer for peer in peers if peer not in self._staying])
        for task_type, seconds in stays.items():
            staying = [peer for peer in self._staying if peer.task.type == task_type]
            await self._stay(staying, seconds)
            self._staying = [peer for peer in self._staying if peer not in staying]
            await self._stop(staying)
            if task_type == EVALUATOR:
                await self._commit_output()
        for peer in peers:
            peer.send("bye")

    async def _stay(self, peers: List[Peer], seconds: float) -> None:
        """Wait for so long, within the job's own deadline, while the command of one of these agents runs."""
        for peer in peers:
            logger.info("%s stays for %g s", peer.task, seconds)
        until = min(time.monotonic() + seconds, self._began + (self.job.deadlines["total"] or math.inf))
        while self._has_succeeded() and any(peer.running and not self._has_left(peer) for peer in peers):
            left = until - time.monotonic()
            if left <= 0:
                return
            await self._wait_for_change(min(TICK_SECONDS, left))

    def _has_succeeded(self) -> bool:
        return self.state.verdict is not None and self.state.verdict.reason is Reason.SUCCEEDED

    def _has_left(self, peer: Peer) -> bool:
        """Return whether a disconnected agent will not come back."""
        heartbeat = self.job.deadlines["heartbeat"]
        silent = heartbeat and time.monotonic() - peer.received_at > heartbeat
        return peer.connection is None and bool(silent or peer.terminated)

    async def _wait_for_change(self, seconds: float) -> None:
        """Wait until a command ends, a contact is lost, or the time has passed."""
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    async def _stop(self, peers: List[Peer]) -> None:
        grace = self.job.deadlines["stop_grace"]
        for peer in peers:
            if peer.running:
                peer.send("stop", grace=grace)
        until = time.monotonic() + grace + AFTER_KILL
        while any(peer.running and peer.connection for peer in peers):
            left = until - time.monotonic()
            if left <= 0:
                logger.warning("Gave up waiting for %s", ", ".join(str(p.task) for p in peers if p.running))
                return
            await self._wait_for_change(min(left, 0.2))

    # -- page and report --------------------------------------------------------------------

    async def show_page(self, route: str, address: str, link: str) -> Optional[str]:
        """Add a page below the tracking URL; return its URL, or log a failure, because the training needs no page."""
        try:
            return await self.containers.add_page(route, f"http://{address}", link)
        except SkeinFailed as error:
            logger.warning("%s has no page below the tracking URL: %s", link, error)
            return None

    async def offer_tensorboard(self) -> None:
        """Add TensorBoard's page. Until TensorBoard answers, and if it fails, the page says so."""
        if self._tunnel is not None:
            port = await self._tunnel.listen()
            self._board_page = await self.show_page("tensorboard", f"127.0.0.1:{port}", "TensorBoard")

    async def _show_tensorboard(self, board: Peer) -> None:
        """Wait until TensorBoard answers, then show its address; after a lost container it has another one."""
        if self._tunnel and await self._tunnel.reach(board.address, lambda: board.running):
            logger.info("TensorBoard answers at %s", self._tensorboard_url())

    def _tensorboard_url(self) -> Optional[str]:
        """Return the address of TensorBoard; None until it answers, and after it has failed."""
        failed = self.state.phases.get(TaskId(TENSORBOARD, 0)) == lifecycle.FAILED
        if self._tunnel is None or self._tunnel.address is None or failed:
            return None
        return f"http://{self._tunnel.address}" if self._direct else self._board_page

    def _why_no_tensorboard(self) -> str:
        board = next(task for task in self.registry.reports(self.state.phases) if task.task == f"{TENSORBOARD}:0")
        last = last_line_of(board.log_tail)
        return f"TensorBoard does not answer; its task is {board.state}" + (f": {last[:300]}" if last else "")

    def report(self, *, live: bool = False, every_tail: bool = False) -> JobReport:
        """Return the present report; it is final if there is a verdict.

        Parameters
        ----------
        live : bool, optional
            True keeps the present states of the tasks. False (default) counts a task as lost that has not ended at the
            verdict: its container ends with the job.
        every_tail : bool, optional
            True keeps the ends of the logs of tasks that did not fail. Default false: YARN's diagnostics are small.
        """
        job, board, verdict = self.job, self.job.tensorboard, self.state.verdict
        held = {one.peer.task for one in self._deferred.waiting if self._is_present(one.peer, one.message)}
        phases = {**self.state.phases, **dict.fromkeys(held, lifecycle.FAILED)}
        if verdict and not live:
            phases = {task: lifecycle.LOST if phase == lifecycle.RUNNING else phase for task, phase in phases.items()}
        final = "SUCCEEDED" if self._has_succeeded() else "FAILED"
        working = self._output.working_url if self._output else None
        return JobReport(
            application_id=self.application_id,
            name=job.name,
            queue=job.queue,
            user=job.user,
            state="FINISHED" if verdict else "RUNNING",
            final_status=final if verdict else "UNDEFINED",
            reason=verdict.reason if verdict else None,
            message=verdict.message if verdict else self._standing(),
            tracking_url=job.lasting_page(self.application_id) if verdict else None,
            started_at=round(self._started_at, 3),
            finished_at=round(time.time(), 3) if verdict else None,
            rounds=tuple(self._rounds),
            tasks=self.registry.reports(phases, every_tail),
            first_failure=str(verdict.task) if verdict and verdict.task else None,
            metrics=self.registry.metrics(self._curves) or (self._output.metrics if self._output else None),
            tensorboard_url=self._tensorboard_url(),
            output_path=(self._output and self._output.url) or job.output,
            working_path=working,
            working_bytes=self._output.working_bytes if self._output and working else None,
            tensorboard_logdir=(board.logdir if board.logdir != job.output else working) if board else None,
            excluded_nodes=dict(self._excluded),
            versions={"tf_yarn_ops": job.version_of_package, "python": platform.python_version()},
        )

    def take_times(self, application: Mapping[str, Any]) -> None:
        """Take YARN's times of the submission and of the launch; older releases know no launch."""
        self._times = yarn_times(application, round(self._started_at, 3))

    def status(self, *, live: bool = True) -> Dict[str, Any]:
        """Return the document of ``status.json``, for the page, clients and the history; ``live`` as in `report`."""
        status = build_status(self._full_report(live, self.state.verdict is not None), self._facts())
        return {**status, "lasting_page": self.job.lasting_page(self.application_id)}

    def _facts(self) -> Facts:
        now = time.monotonic()
        began = {"total": self._began, "execution": self._published_at}
        deadlines = {
            name: (time.time() - now + since, time.time() - now + since + self.job.deadlines[name])
            for name, since in began.items()
            if since is not None and self.job.deadlines[name]
        }
        return Facts(
            time.time(),
            self._overseer.waiting(self._view(), now),
            self._timeline.events,
            self._timeline.given,
            self._timeline.usage,
            self._curves.series(),
            self._curves.left_out,
            self._cluster,
            self.job.options,
            deadlines,
            self.state.restarts_left if self.job.restart["max_restarts"] else None,
            {
                str(task): round(now - peer.received_at, 1)
                for task, peer in self.registry.serving.items()
                if now - peer.received_at >= SILENT_AGENT_SECONDS
            },
        )

    def live_report(self) -> Dict[str, Any]:
        """Return the report in ``status.json`` without the rest of it, as plain values for JSON."""
        report = self._full_report(True, False)
        status = build_status(report, self._facts())
        return {**report.to_dict(), **{name: status[name] for name in ("usage", "concerns", "progress")}}

    def _full_report(self, live: bool, every_tail: bool) -> JobReport:
        report = self.report(live=live, every_tail=every_tail)
        times = self._times if self._times.get("submitted_at") else {}
        return dataclasses.replace(report, versions={**report.versions, **self._installed}, **times)

    async def tail(self, name: str) -> Optional[str]:
        """Return the end of a task's log from its agent; None if there is no such task, or no agent answers.

        Parameters
        ----------
        name : str
            ``worker:1``.
        """
        peer = next((peer for task, peer in self.registry.serving.items() if str(task) == name), None)
        if peer is None or peer.connection is None or len(self._tails) >= MAX_TAILS:
            return None
        self._tail += 1
        number = self._tail
        answer: "asyncio.Future[str]" = asyncio.get_running_loop().create_future()
        self._tails[number] = peer, answer
        peer.send("tail", id=number)
        try:
            return await asyncio.wait_for(answer, TAIL_SECONDS)
        except asyncio.TimeoutError:
            return None
        finally:
            del self._tails[number]

    def _standing(self) -> str:
        phases = list(self.state.phases.values())
        if self.state.published:
            return f"{phases.count(lifecycle.RUNNING)} of {len(phases)} tasks run."
        return f"Waiting for {list_names(self.registry.missing(self.state.phases))}."
