"""The containers of a job: the calls that ask for them and end them, by Skein here, by `local_containers` without YARN.

The only module of the coordinator that imports skein. Every call of Skein runs in a thread with a deadline, so that an
application master that hangs cannot stop the coordinator.
"""

import asyncio
import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, NamedTuple, Optional, Protocol

from ..common.contract import CERTIFICATE_FILE, KEY_FILE
from ..common.fast_import import import_skein
from ..common.reasons import Reason

logger = logging.getLogger(__name__)

#: Seconds for one call.
CALL_SECONDS = 20.0
#: Causes in Skein's text for a lost container; the first match counts.
_CAUSES = (
    (re.compile(r"(physical|virtual)'? memory (limit|used)|exceeding memory limits", re.I), Reason.OUT_OF_MEMORY),
    (re.compile(r"preempted", re.I), Reason.PREEMPTED),
    (re.compile(r"lost\W* node|node\b.*\b(lost|removed|unusable|decommission)", re.I | re.S), Reason.NODE_LOST),
)
FINISHED = ("SUCCEEDED", "FAILED", "KILLED")


class SkeinFailed(OSError):
    """Skein's application master did not answer, or answered with an error."""


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


def cause_of(message: str) -> Reason:
    """Return the reason that Skein's exit message names; CONTAINER_LOST if it names none."""
    for pattern, reason in _CAUSES:
        if pattern.search(message):
            return reason
    return Reason.CONTAINER_LOST


class Containers(Protocol):
    """What the coordinator asks of the containers' manager; a call that fails raises SkeinFailed.

    Attributes
    ----------
    version : str
        Of Skein; empty without it.
    """

    version: str = ""

    async def connect(self) -> None:
        """Get ready; from then on the containers of all tasks are requested."""
        ...

    async def list(self) -> List[Container]:
        """Return all containers, finished ones included."""
        ...

    async def replace(self, container: Container) -> None:
        """Kill a container that no longer answers, and request another one for its service."""
        ...

    async def progress(self, fraction: float) -> None:
        """Report the job's progress, 0 to 1."""
        ...

    async def add_page(self, route: str, target: str, link: str) -> str:
        """Add a page below the tracking URL, ``/pages/<route>/``; return its URL."""
        ...

    async def shutdown(self, succeeded: bool, diagnostics: str) -> None:
        """End the application with a final status and diagnostics."""
        ...


class SkeinContainers(Containers):
    """The calls of Skein's application master."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="skein")
        self._client: Any = None

    async def connect(self) -> None:
        """Import skein and connect; raise ImportError if the interpreter lacks grpcio or protobuf."""
        await self._call(self._connect)

    def _connect(self) -> None:
        skein = import_skein()
        with open(CERTIFICATE_FILE, "rb") as certificate, open(KEY_FILE, "rb") as key:
            security = skein.Security(cert_bytes=certificate.read(), key_bytes=key.read())
        address, application_id = os.environ["SKEIN_APPMASTER_ADDRESS"], os.environ["SKEIN_APPLICATION_ID"]
        self._client = skein.ApplicationClient(address, application_id, security=security)
        self.version = getattr(skein, "__version__", "")

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wait_for(loop.run_in_executor(self._threads, function, *arguments), CALL_SECONDS)
        except ImportError:
            raise
        except Exception as error:  # Skein's errors have no common base
            raise SkeinFailed(f"{type(error).__name__}: {error}") from error

    async def list(self) -> List[Container]:
        states = ("WAITING", "REQUESTED", "RUNNING", *FINISHED)
        found = await self._call(lambda: self._client.get_containers(states=states))
        return [Container(c.id, c.service_name, str(c.state), c.exit_message or "", c.yarn_node_http_address or "",
                          c.yarn_container_id or "", c.start_time.timestamp() if c.start_time else None) for c in found]

    async def replace(self, container: Container) -> None:
        try:
            await self._call(self._client.kill_container, container.id)
        except SkeinFailed as error:  # it may have ended just now; request the other one anyway
            logger.warning("Could not kill %s: %s", container.id, error)
        await self._call(self._client.add_container, container.service)

    async def progress(self, fraction: float) -> None:
        await self._call(self._client.set_progress, fraction)

    async def add_page(self, route: str, target: str, link: str) -> str:
        page = await self._call(self._client.ui.add_page, route, target, link)
        return str(page.address)

    async def shutdown(self, succeeded: bool, diagnostics: str) -> None:
        await self._call(self._client.shutdown, "SUCCEEDED" if succeeded else "FAILED", diagnostics)


def exit_now(code: int) -> None:
    """End the process at once: threads may hang in a call."""
    os._exit(code)
