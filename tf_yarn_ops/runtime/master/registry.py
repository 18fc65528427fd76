"""Who sits where: which container serves which task, and what is known of each task.

The coordinator's memory, without sockets: registrations in, peers and the tasks of
the report out. A replacement takes the vacated index.
"""

import time
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ..common.contract import VERSION, Job, TaskId
from ..common.report import TaskReport


class Refused(Exception):
    """A registration that is not accepted; the text says why."""


@dataclass
class Peer:
    """An agent that has registered.

    Attributes
    ----------
    container : str
        Skein's id, ``worker_0``.
    task : TaskId
    nonce : str
        Made by the agent; whoever comes back has to know it.
    host, port, yarn_container, node_http
        As the agent says.
    connection : object
        Where to send; None while the contact is lost.
    heard_at : float
        Monotonic time of its last message.
    round, start : int
        Of the last start that was sent to it.
    noted : tuple of int
        Round and start of the last start that it confirmed.
    running : bool
        Whether its command may be running.
    terminated : bool
        Whether it said that YARN ends its container.
    """

    container: str
    task: TaskId
    nonce: str
    host: str
    port: int
    yarn_container: str
    node_http: str
    connection: Any = None
    heard_at: float = 0.0
    round: int = 0
    start: int = 0
    noted: Tuple[int, int] = (0, 0)
    running: bool = False
    terminated: bool = False

    @property
    def address(self) -> str:
        """``host:port`` in the cluster spec."""
        return f"{self.host}:{self.port}"


class Registry:
    """All peers of a job and the records of its tasks.

    Parameters
    ----------
    job : Job
    """

    def __init__(self, job: Job):
        self.job = job
        self.peers: Dict[str, Peer] = {}
        self.serving: Dict[TaskId, Peer] = {}
        self.records: Dict[TaskId, Dict[str, Any]] = {task: {"task": str(task)} for task in job.tasks()}
        self.results: Dict[TaskId, Mapping[str, Any]] = {}

    def admit(self, message: Mapping[str, Any]) -> Tuple[Peer, bool]:
        """Take a registration.

        Parameters
        ----------
        message : mapping
            As `protocol` describes ``register``; nothing in it is trusted.

        Returns
        -------
        peer : Peer
        resumed : bool
            Whether it was there before.

        Raises
        ------
        Refused
            With the reason: another version, an unknown service, no vacant index, a second agent.
        """
        version = message.get("version")
        if version != VERSION:
            raise Refused(f"it speaks version {version!r} of the protocol, the coordinator {VERSION}")
        container, nonce, host, port = (message.get(name) for name in ("container", "nonce", "host", "port"))
        if not (isinstance(container, str) and isinstance(nonce, str) and isinstance(host, str) and host
                and isinstance(port, int) and 0 < port < 65536):
            raise Refused("the registration is incomplete")
        known = self.peers.get(container)
        if known:
            if known.nonce != nonce:
                raise Refused(f"{container} is registered already, by another agent")
            known.host, known.port = host, port
            return known, True
        task = self.vacant(container)
        if task is None:
            raise Refused(f"no task is waiting for {container}")
        peer = Peer(container, task, nonce, host, port, str(message.get("yarn_container") or ""),
                    str(message.get("node_http") or ""))
        self.peers[container] = self.serving[task] = peer
        self.occupied(task, container, host, peer.yarn_container, peer.node_http)
        return peer, False

    def occupied(self, task: TaskId, container: str, host: str, yarn_container: str, node_http: str) -> None:
        """Note which container a task has or, where its agent never called, had: its log says why."""
        self.records[task].update(host=host or None, container_id=yarn_container or None, log_url=None)
        if yarn_container and node_http:
            file = f"{self.job.user}/{container.rpartition('_')[0]}.log"
            self.records[task].update(log_url=f"http://{node_http}/node/containerlogs/{yarn_container}/{file}")

    def vacant(self, container: str) -> Optional[TaskId]:
        """Give the task that a container of this id would get: its own number if that is free, else the lowest."""
        service, _, instance = container.rpartition("_")
        plan = self.job.services.get(service)
        if plan is None:
            return None
        free = [index for index in plan.indices if TaskId(plan.type, index) not in self.serving]
        own = plan.indices[int(instance)] if instance.isdigit() and int(instance) < len(plan.indices) else -1
        if not free:
            return None
        return TaskId(plan.type, own if own in free else free[0])

    def vacate(self, peer: Peer) -> None:
        """Take a container out; its task waits for another."""
        if self.peers.get(peer.container) is peer:
            del self.peers[peer.container]
        if self.serving.get(peer.task) is peer:
            del self.serving[peer.task]

    def addresses(self) -> Dict[TaskId, str]:
        """Give ``host:port`` of every served task."""
        return {task: peer.address for task, peer in self.serving.items()}

    def missing(self, tasks: Iterable[TaskId]) -> List[str]:
        """Give the names of the tasks without an agent."""
        return [str(task) for task in tasks if task not in self.serving]

    def started(self, peer: Peer) -> None:
        """Note that a command began."""
        record = self.records[peer.task]
        record.update(starts=record.get("starts", 0) + 1, started_at=time.time(), finished_at=None,
                      exit_code=None, signal=None, log_tail="")
        record.pop("state", None)

    def ended(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Note how a command ended, as the agent tells it."""
        numbers = ("exit_code", "code"), ("signal", "signal"), ("started_at", "started_at"), \
            ("finished_at", "finished_at"), ("cpu_seconds", "cpu_seconds"), ("peak_memory_mib", "peak_memory_mib")
        self.records[peer.task].update({name: message.get(key) for name, key in numbers},
                                       log_tail=str(message.get("log_tail") or ""))
        if isinstance(message.get("result"), dict):
            self.results[peer.task] = message["result"]

    def metrics(self) -> Optional[Mapping[str, Any]]:
        """Give the result of the chief, else of worker 0, else of the first awaited type's task 0."""
        awaited = [TaskId(name, 0) for name, plan in self.job.types.items() if plan.awaited]
        for task in (TaskId("chief", 0), TaskId("worker", 0), *awaited):
            if task in self.results:
                return self.results[task]
        return None

    def reports(self, phases: Mapping[TaskId, str]) -> Tuple[TaskReport, ...]:
        """Give the tasks of the report, in the order of the request."""
        return tuple(TaskReport(**{"state": phases[task], **self.records[task]}) for task in self.job.tasks())
