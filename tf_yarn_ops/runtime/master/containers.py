"""The containers of a job: the calls that ask for them and end them, by Skein here, by `local_containers` without YARN.

Every call of Skein has a deadline, so that an application master that hangs cannot stop the coordinator.
"""

import asyncio
import logging
import os
import random
import re
import urllib.parse
from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Set

from ..common.container_http import NO_ANSWER, fetch_answer, query_yarn
from ..common.contract import AGENT_LINE, AGENT_WARNING, Job
from ..common.mutual_tls import client_context
from ..common.reasons import Reason, StartFault, find_localisation_fault
from .skein_calls import Channel, SkeinFailed, decode_message

logger = logging.getLogger(__name__)

#: Seconds for one call.
CALL_SECONDS = 20.0
#: Seconds for which a NodeManager may be silent.
_NODE_SECONDS = 2.0
#: What a NodeManager, ``container-executor`` and Docker say of an image that no node can start, and what to do.
_IMAGE_FAULTS = (
    # Docker says of each image that it pulls that it does not find it locally.
    (
        re.compile(r"no basic auth credentials|unauthorized|authentication required", re.I),
        "its registry wants another login: give docker_client_config (YARN hands it over from Hadoop 3.1 on)",
    ),
    (
        re.compile(r"Unable to find image|No such image|pull access denied|manifest.{0,80}(unknown|not found)", re.I),
        "no node has it or can pull it: correct its name, or put it on every node",
    ),
    (
        # Without mounts bash does not find the script of YARN.
        re.compile(r"exit ?code:? 127\b|launch_container\.sh: No such file|image.{0,300} is not trusted", re.I),
        "nothing was mounted: let docker.trusted.registries of container-executor.cfg name its registry",
    ),
    (re.compile(r"executable file not found|exec: .?bash", re.I), "it has no bash, which YARN starts: install it"),
    (
        re.compile(r"invalid docker.{0,20} mount|mount access error|real path of mount", re.I),
        "a folder can't be mounted: it must be on every node, and docker.allowed.ro-mounts or docker.allowed.rw-mounts "
        "of container-executor.cfg must name it (input, output, docker_folders of site.yaml)",
    ),
    (
        re.compile(r"disallowed network|requested network in allowed|invalid docker network", re.I),
        "it needs the network host, in docker.allowed.networks of container-executor.cfg and in "
        "yarn.nodemanager.runtime.linux.docker.allowed-container-networks",
    ),
    (
        re.compile(
            r"disallowed runtime|requested runtime in allowed|invalid docker runtime|unknown (or invalid )?runtime",
            re.I,
        ),
        "its runtime is not allowed: docker.allowed.runtimes of container-executor.cfg and "
        "yarn.nodemanager.runtime.linux.docker.allowed-container-runtimes must name it, and the engine must have it",
    ),
    (
        re.compile(r"invalid docker|image name", re.I),
        "container-executor.cfg does not allow what the job needs",
    ),
)
#: Causes in Skein's text for a lost container; the first match counts.
_CAUSES = (
    (re.compile(r"(physical|virtual)'? memory (limit|used)|exceeding memory limits", re.I), Reason.OUT_OF_MEMORY),
    (re.compile(r"preempted", re.I), Reason.PREEMPTED),
    (re.compile(r"lost\W* node|node\b.{0,300}\b(lost|removed|unusable|decommission)", re.I | re.S), Reason.NODE_LOST),
)
FINISHED = ("SUCCEEDED", "FAILED", "KILLED")
#: ``Container.State`` of skein.proto, by number; the numbers of ``FinalStatus.Type`` that we use.
_STATES = ("WAITING", "REQUESTED", "RUNNING", *FINISHED)
_SUCCEEDED, _FAILED = 1, 2


class Container(NamedTuple):
    """One container, as Skein lists it.

    Attributes
    ----------
    id : str
        Skein's id, ``worker_0``.
    service : str
        The Skein service.
    state : str
        ``WAITING``, ``REQUESTED``, ``RUNNING`` or one of `FINISHED`.
    message : str
        Why it ended; empty before the end.
    node : str
        ``host:port`` of the NodeManager's pages; empty until it is known.
    yarn_id : str
        YARN's id; empty until it is known.
    started_at : float or None
        When it was started, seconds since the epoch; None until then.
    """

    id: str
    service: str
    state: str
    message: str
    node: str = ""
    yarn_id: str = ""
    started_at: Optional[float] = None

    @property
    def host(self) -> str:
        """The node's host; empty if Skein does not name it."""
        return self.node.rpartition(":")[0]

    @property
    def place(self) -> str:
        """The host, for a message."""
        return self.host or "a node that Skein does not name"


class ContainerEnd(NamedTuple):
    """What the node of an ended container knows of it.

    Attributes
    ----------
    diagnostics : str
        The NodeManager's text, on one line; empty if it has forgotten the container, which takes it some seconds.
    last_line : str or None
        The last line of its log; None if there is no log, so that nothing in the container has run.
    node : str
        What YARN says of the node, if it is not in service: its state, and which disk is full; else empty.
    exit_code : int or None
        Of the container's first process; None if it is not known.
    """

    diagnostics: str = ""
    last_line: Optional[str] = None
    node: str = ""
    exit_code: Optional[int] = None

    @property
    def has_no_log(self) -> bool:
        """Whether the node knows the container and has no log of it."""
        return bool(self.diagnostics) and self.last_line is None

    def start_fault(self, message: str, image: Optional[str]) -> Optional[StartFault]:
        """Return why the container could not start an agent; None if nothing says so.

        Only for containers whose agents never called: no program of the user has written into their logs.

        Parameters
        ----------
        message : str
            What YARN says of the end.
        image : str or None
            The container's image, the same on all nodes.
        """
        fault = self._image_fault() if image else None
        if fault:
            return StartFault(Reason.ENVIRONMENT_INVALID, f"the image {image}: {fault}", True)
        if self.killed:
            return StartFault(
                Reason.CONTAINER_LOST, "SIGKILL has ended it: raise its memory, unless its NodeManager was restarted"
            )
        return find_localisation_fault(f"{message}\n{self.diagnostics}")

    def _image_fault(self) -> Optional[str]:
        if self.last_line and not self.last_line.startswith((AGENT_LINE, AGENT_WARNING)):
            return f"its Python can't start: {self.last_line[:300]}"
        found = next((advice for pattern, advice in _IMAGE_FAULTS if pattern.search(self.diagnostics)), None)
        return f"{found} ({_shell_errors(self.diagnostics)})" if found else None

    @property
    def detail(self) -> str:
        """What says most about the end, for a message; empty if nothing is known."""
        return self.last_line or _shell_errors(self.diagnostics)

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended the container's first process."""
        return self.exit_code == 137


class LostContainer(NamedTuple):
    """A container that is lost for the job.

    Attributes
    ----------
    container : str
    reason : Reason
    cause : str
    replace : bool
        Whether the coordinator must request another: for an agent that is silent or terminated while Skein lists its
        container. Skein itself replaces one that has failed, up to ``max_container_losses``; nobody any other.
    end : ContainerEnd
        What its node knows.
    """

    container: str
    reason: Reason
    cause: str
    replace: bool = False
    end: ContainerEnd = ContainerEnd()


def _shell_errors(diagnostics: str) -> str:
    """Return the errors in a NodeManager's text, without its stack trace."""
    found = re.search(r"Shell error output:\s*(.*?)\s*(Shell output:|Container exited|$)", diagnostics)
    return (found[1] if found and found[1] not in ("", "<unknown>") else diagnostics)[-300:]


def cause_of(message: str) -> Reason:
    """Return the reason that Skein's exit message names; CONTAINER_LOST if it names none."""
    return next((reason for pattern, reason in _CAUSES if pattern.search(message)), Reason.CONTAINER_LOST)


class Containers(Protocol):
    """What the coordinator asks of the containers' manager.

    A call to Skein that fails raises SkeinFailed, and is repeated; on this machine any other error ends the job.
    """

    async def connect(self) -> None:
        """Get ready to be called; on this machine the tasks start with it."""

    async def list(self) -> List[Container]:
        """Return all containers, finished ones included."""

    async def explain(self, container: Container) -> ContainerEnd:
        """Return what is known of a container that has ended."""
        return ContainerEnd()

    async def replace(self, container: Container) -> None:
        """Kill a container that is of no use, and request another one for its service."""

    async def nodes(self) -> Optional[Set[str]]:
        """Return the addresses of all nodes that run, as in `Container.node`; None if they are not known."""

    async def progress(self, fraction: float) -> None:
        """Report the job's progress, 0 to 1."""

    async def add_page(self, route: str, target: str, link: str) -> str:
        """Add a page below the tracking URL, ``/pages/<route>/``; return its URL."""

    async def shutdown(self, succeeded: bool, diagnostics: str) -> None:
        """End the application with a final status and diagnostics."""


async def show_page(containers: Containers, route: str, port: int, link: str) -> Optional[str]:
    """Add a page below the tracking URL; return its URL, or log a failure, because the training needs no page."""
    try:
        return await containers.add_page(route, f"http://127.0.0.1:{port}", link)
    except SkeinFailed as error:
        logger.warning("%s has no page below the tracking URL: %s", link, error)
        return None


class SkeinContainers(Containers):
    """The calls of Skein's application master; the numbers of fields are those of skein.proto.

    Parameters
    ----------
    job : Job
    """

    def __init__(self, job: Job):
        self._job = job

    async def connect(self) -> None:
        self._master = Channel(os.environ["SKEIN_APPMASTER_ADDRESS"], client_context(), CALL_SECONDS)

    async def list(self) -> List[Container]:
        answer = await self._master.call("getContainers", *((1, state) for state in range(len(_STATES))))
        return [_read_container(decode_message(found)) for found in answer.get(1, ())]

    async def explain(self, container: Container) -> ContainerEnd:
        query = _query_yarn if cause_of(container.message) is Reason.NODE_LOST else _query_node
        return await asyncio.to_thread(query, self._job, container)

    async def replace(self, container: Container) -> None:
        try:
            await self._master.call("killContainer", (1, container.service), (2, int(container.id.rpartition("_")[2])))
        except SkeinFailed as error:  # it may have ended just now; request the other one anyway
            logger.warning("Could not kill %s: %s", container.id, error)
        await self._master.call("addContainer", (1, container.service))

    async def nodes(self) -> Optional[Set[str]]:
        found = await asyncio.to_thread(
            query_yarn, self._job.resourcemanagers, "nodes?states=RUNNING", "nodes", self._job.authorities
        )
        return {str(node.get("nodeHTTPAddress")) for node in found.get("node") or ()} or None

    async def progress(self, fraction: float) -> None:
        await self._master.call("SetProgress", (1, float(fraction)))

    async def add_page(self, route: str, target: str, link: str) -> str:
        await self._master.call("AddProxy", (1, route), (2, link), (3, target))
        info = await self._master.call("UiInfo")
        return f"{random.choice(info[1]).decode().rstrip('/')}{_text(info, 2)}/{route}/"

    async def shutdown(self, succeeded: bool, diagnostics: str) -> None:
        await self._master.call("shutdown", (1, _SUCCEEDED if succeeded else _FAILED), (2, diagnostics))


def _query_yarn(job: Job, container: Container) -> ContainerEnd:
    """Ask the ResourceManager why a container's node is lost; it names the addresses of pages of live nodes only."""
    path = "nodes?states=DECOMMISSIONING,DECOMMISSIONED,LOST,REBOOTED,SHUTDOWN,UNHEALTHY"
    answer = query_yarn(job.resourcemanagers, path, "nodes", job.authorities)
    try:
        found = [
            ": ".join(filter(None, [str(node["state"]), " ".join(str(node.get("healthReport") or "").split())[:300]]))
            for node in answer.get("node") or ()
            if node.get("nodeHTTPAddress") in ("", None, container.node) and node.get("nodeHostName") == container.host
        ]
    except (AttributeError, KeyError, TypeError):
        return ContainerEnd()
    return ContainerEnd(node=found[0] if len(found) == 1 else "")


def _query_node(job: Job, container: Container) -> ContainerEnd:
    """Ask the NodeManager about a container; it needs Kerberos on a secured cluster, and then nothing is known."""
    if not container.node or not container.yarn_id:
        return ContainerEnd()
    # yarn.http.policy holds for the pages of ResourceManagers and NodeManagers alike.
    scheme = "https" if any(url.startswith("https:") for url in job.resourcemanagers) else "http"
    base, user = f"{scheme}://{container.node}/ws/v1/node", urllib.parse.urlencode({"user.name": job.user})
    log = f"containerlogs/{container.yarn_id}/{container.service}.log?size=-4096&{user}"
    try:
        described = fetch_answer(
            f"{base}/containers/{container.yarn_id}?{user}",
            {"Accept": "application/json"},
            _NODE_SECONDS,
            job.authorities,
        )
        printed = fetch_answer(f"{base}/{log}", {"Accept": "text/plain"}, _NODE_SECONDS, job.authorities)
    except NO_ANSWER:
        return ContainerEnd()
    last_line = _read_last_line(printed.content.decode("utf-8", "replace"))
    try:
        found = described.document()["container"]
        return ContainerEnd(" ".join(str(found["diagnostics"]).split()), last_line, exit_code=found.get("exitCode"))
    except (KeyError, TypeError, AttributeError):  # the node has forgotten it, or does not show it
        return ContainerEnd(last_line=last_line)


def _read_last_line(answer: str) -> Optional[str]:
    """Return the last line of a log in a NodeManager's frame; None if the answer is no log."""
    _, start, content = answer.partition("LogContents:\n")
    return last_line_of(content.rpartition("End of LogType:")[0]) if start else None


def last_line_of(text: str) -> str:
    """Return the last line of a text that is not blank; empty if there is none."""
    return next(filter(None, (line.strip() for line in reversed(text.splitlines()))), "")


def _read_container(fields: Dict[int, List[Any]]) -> Container:
    """Return a ``Container`` of skein.proto."""
    service, started = _text(fields, 1), _number(fields, 6)
    return Container(
        f"{service}_{_number(fields, 2)}",
        service,
        _STATES[_number(fields, 3)],
        _text(fields, 8),
        _text(fields, 5),
        _text(fields, 4),
        started / 1000 if started else None,
    )


def _text(fields: Dict[int, List[Any]], number: int) -> str:
    return str(fields.get(number, [b""])[-1], "utf-8", "replace")


def _number(fields: Dict[int, List[Any]], number: int) -> int:
    return int(fields.get(number, [0])[-1])
