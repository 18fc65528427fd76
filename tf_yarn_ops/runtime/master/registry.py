"""The coordinator's records: which container serves which task, and the facts about each task.

Registrations, containers and ends of commands come in; peers, metrics and the tasks of the report go out. It decides
only which task a container gets, and which registrations it refuses.
"""

import time
from dataclasses import dataclass, replace
from typing import Any, Collection, Dict, Iterable, Mapping, Optional, Tuple

from ..common import protocol
from ..common.contract import VERSION, Job, TaskId
from ..common.report import TaskReport
from ..common.status import FAILED, LOST, RUNNING
from .containers import Container
from .curves import Curves


class Refused(Exception):
    """The coordinator does not accept a registration; the text says why."""


@dataclass
class Peer:
    """An agent that has registered.

    Attributes
    ----------
    container : str
        Skein's id, ``worker_0``.
    task : TaskId
    nonce : str
        A random text of the agent; an agent that comes back must send it again.
    host, port, yarn_container, node_http
        As in the agent's registration.
    connection : object
        None while the contact is lost.
    received_at : float
        Monotonic time of its last message.
    measured_at : float
        Monotonic time of the last sample of its command.
    last_pong_at : float
        Monotonic time of its last answer to a ping, or of its connection.
    round, start : int
        Of the last start that was sent to it; 0 before the first. ``start`` is 0 again after `Registry.release`.
    starts_at : float
        Monotonic time from which that start is due.
    cause : str or None
        Why that start was sent: the cause of the restart, or of a start alone; None for a start with the first
        publication, or after the success of others.
    confirmed : tuple of int
        Round and start of the last start that it has confirmed.
    started_at : float or None
        When the news came that its command began, seconds since the epoch.
    running : bool
        Whether its command may be running: from the start that was sent, delays included, to the news of its end. The
        lifecycle's phase stays RUNNING for longer if the failure is deferred.
    terminated : bool
        Whether it has reported that YARN ends its container; its command may still run.
    """

    container: str
    task: TaskId
    nonce: str
    host: str
    port: int
    yarn_container: str
    node_http: str
    connection: Any = None
    received_at: float = 0.0
    measured_at: float = 0.0
    last_pong_at: float = 0.0
    round: int = 0
    start: int = 0
    starts_at: float = 0.0
    cause: Optional[str] = None
    confirmed: Tuple[int, int] = (0, 0)
    started_at: Optional[float] = None
    running: bool = False
    terminated: bool = False

    @property
    def address(self) -> str:
        """``host:port`` of its task, as in the cluster spec; of TensorBoard that of the front."""
        return f"{self.host}:{self.port}"

    def begin(self, round_number: int, at: float, cause: Optional[str]) -> None:
        """Note the start that the coordinator sends next; starts are numbered from 1 in each round."""
        self.start = self.start + 1 if self.round == round_number else 1
        self.round, self.starts_at, self.cause, self.running = round_number, at, cause, True

    def is_current(self, message: Mapping[str, Any]) -> bool:
        """Return whether a message is about the last start that was sent."""
        return bool(self.start) and (message["round"], message["start"]) == (self.round, self.start)


class Registry:
    """The present peers of a job and the records of its tasks.

    Parameters
    ----------
    job : Job

    Attributes
    ----------
    peers : mapping of str to Peer
        By the id of the container.
    serving : mapping of TaskId to Peer
    """

    def __init__(self, job: Job):
        self._job = job
        self.peers: Dict[str, Peer] = {}
        self.serving: Dict[TaskId, Peer] = {}
        self._records: Dict[TaskId, Dict[str, Any]] = {task: {"task": str(task)} for task in job.tasks()}
        self._results: Dict[TaskId, Mapping[str, Any]] = {}

    def admit(self, message: Mapping[str, Any]) -> Tuple[Peer, bool]:
        """Accept a registration.

        Parameters
        ----------
        message : mapping
            ``register`` of `protocol`; nothing in it is trusted.

        Returns
        -------
        peer : Peer
        resumed : bool
            Whether the agent had registered before.

        Raises
        ------
        Refused
            With the reason: another version, missing fields, no vacant index, a second agent.
        """
        version = message.get("version")
        if version != VERSION:
            raise Refused(f"it speaks version {version!r} of the protocol, the coordinator {VERSION}")
        try:
            protocol.check_message(message, protocol.FROM_AGENT["register"])
        except protocol.ProtocolError as error:
            raise Refused(f"the registration is incomplete: {error}") from None
        container, nonce, host, port = (message[name] for name in ("container", "nonce", "host", "port"))
        if not host or not 0 < port < 65536:
            raise Refused(f"the registration has no address: host {host!r}, port {port}")
        known = self.peers.get(container)
        if known:
            if known.nonce != nonce:
                raise Refused(f"{container} is registered already, by another agent")
            known.host, known.port = host, port
            return known, True
        task = self.free_task(container)
        if task is None:
            raise Refused(f"no task is waiting for {container}")
        peer = Peer(container, task, nonce, host, port, message["yarn_container"], message["node_http"])
        self.peers[container] = self.serving[task] = peer
        self._locate(task, container, host, peer.yarn_container, peer.node_http)
        return peer, False

    def free_task(self, container: str, taken: Collection[TaskId] = ()) -> Optional[TaskId]:
        """Return the free task at the container's place in its service, else the service's first free one, else None.

        Those of `taken` are not free.
        """
        service, _, instance = container.rpartition("_")
        plan = self._job.services.get(service)
        if plan is None:
            return None
        busy = {*self.serving, *taken}
        free = [index for index in plan.indices if TaskId(plan.type, index) not in busy]
        own = plan.indices[int(instance)] if instance.isdigit() and int(instance) < len(plan.indices) else -1
        return TaskId(plan.type, own if own in free else free[0]) if free else None

    def expects(self, container: str) -> bool:
        """Return whether a container has registered, or a task is free for it."""
        return container in self.peers or self.free_task(container) is not None

    def release(self, peer: Peer) -> None:
        """Remove a peer, whose messages count no more; its task waits for another container."""
        peer.connection, peer.start = None, 0
        self._records[peer.task].pop("state", None)  # its command may have been stopped for a new round
        del self.peers[peer.container], self.serving[peer.task]

    def expect(self, containers: Iterable[Container]) -> Dict[TaskId, Optional[str]]:
        """Note the places of containers whose agents have not called; return their tasks and the URLs of their logs."""
        tasks: Dict[TaskId, Optional[str]] = {}
        for container in containers:
            task = None if container.id in self.peers else self.free_task(container.id, tasks)
            if task is not None:
                tasks[task] = self._locate(task, container.id, container.host, container.yarn_id, container.node)
        return tasks

    def _locate(self, task: TaskId, container: str, host: str, yarn_container: str, node_http: str) -> Optional[str]:
        url = None
        if yarn_container and not node_http.endswith(":"):
            file = f"{self._job.user}/{container.rpartition('_')[0]}.log"
            # yarn.http.policy holds for the pages of ResourceManagers and NodeManagers alike.
            scheme = "https" if any(url.startswith("https:") for url in self._job.resourcemanagers) else "http"
            url = f"{scheme}://{node_http}/node/containerlogs/{yarn_container}/{file}"
        self._records[task].update(host=host or None, container_id=yarn_container or None, log_url=url)
        return url

    def started(self, peer: Peer) -> bool:
        """Note that the command of the last start began; return False if that was noted before."""
        if peer.confirmed == (peer.round, peer.start):
            return False
        peer.confirmed = peer.round, peer.start
        peer.started_at = time.time()
        record = self._records[peer.task]
        record.update(
            starts=record.get("starts", 0) + 1,
            started_at=peer.started_at,
            finished_at=None,
            exit_code=None,
            signal=None,
            log_tail="",
        )
        record.pop("state", None)
        return True

    def ended(self, peer: Peer, message: Mapping[str, Any], state: Optional[str] = None) -> None:
        """Note how a command ended by the agent's message; `state` replaces the phase of the lifecycle."""
        peer.running = False
        record = self._records[peer.task]
        record.update(
            {
                name: message[name]
                for name in ("signal", "started_at", "finished_at", "cpu_seconds", "peak_memory_mib", "log_tail")
            },
            exit_code=message["code"],
        )
        if state is not None:
            record["state"] = state
        if message["result"] is not None:
            self._results[peer.task] = message["result"]

    def failed_by_yarn(self, task: TaskId, why: str) -> None:
        """Note why YARN ended the container of a task that is not started again; it stands where a log would end."""
        self._records[task].update(finished_at=round(time.time(), 3), exit_code=None, signal=None, log_tail=why)
        self._records[task].pop("state", None)

    def metrics(self, curves: Curves) -> Optional[Mapping[str, Any]]:
        """Return the metrics of the chief, else of worker 0, else of the first awaited task that has some.

        They are the last values of its curves, and its result, of which a value replaces one with the same name. A
        launcher such as torchrun may give rank 0 to any task.
        """
        awaited = [task for task in self._job.tasks() if self._job.types[task.type].awaited]
        for task in (TaskId("chief", 0), TaskId("worker", 0), *sorted(awaited, key=lambda task: task.index)):
            result, last = self._results.get(task), curves.last_values(str(task))
            if result is not None or last is not None:
                return {**(last or {}), **(result or {})}
        return None

    def reports(self, phases: Mapping[TaskId, str], every_tail: bool = False) -> Tuple[TaskReport, ...]:
        """Return the tasks of the report, in the order of the request; only failed ones have log tails by default.

        The state is the phase, except of a command that was stopped or has ended after the verdict: its record has one.
        """
        addresses = {task: peer.address for task, peer in self.serving.items() if phases[task] == RUNNING}
        found = (
            TaskReport(**{"state": phases[task], "address": addresses.get(task), **self._records[task]})
            for task in self._job.tasks()
        )
        return tuple(
            task if every_tail or task.state in (FAILED, LOST) else replace(task, log_tail="") for task in found
        )
