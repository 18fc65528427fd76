"""`Backend`: what runs jobs, as their clients use it: the ResourceManagers of a cluster, or this machine.

`resourcemanager.ResourceManager` and `local_jobs.LocalJobs` implement it. Applications have the form of YARN's REST
interface, whatever runs them. A method with a body is for backends that have nothing of the kind.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from .filesystem import FileSystem


class Backend(Protocol):
    """The applications of one cluster, or of this machine.

    Attributes
    ----------
    ways : tuple of str
        The values of ``submit_with`` that have an effect; without ``rest`` nothing limits the memory of a task.

    Raises
    ------
    ApplicationNotFound
        From every method with an application id: there is no such application.
    ClusterUnreachable
        From every method, when nobody answers.
    """

    ways: tuple[str, ...]

    @property
    def address(self) -> str:
        """The address that answered last."""

    def get(self, application_id: str, patience: float = 0.0) -> dict[str, Any]:
        """Return one application; wait ``patience`` seconds while the backend recovers its applications."""

    def find(
        self, tags: Iterable[str] = (), states: Iterable[str] = (), user: str | None = None, finished_since: float = 0.0
    ) -> list[dict[str, Any]]:
        """Return all applications with any of the tags, in any of the states; see `ResourceManager.find`."""

    def find_live(self, tag: str | None, user: str) -> list[dict[str, Any]]:
        """Return live applications of a user; one that is missing may live all the same, so `get` it."""

    def kill(self, application_id: str, diagnostics: str, patience: float = 0.0) -> str:
        """Begin to kill an application, with a text for its diagnostics; return its state."""

    def set_lifetime(self, application_id: str, ends_at: float, leased: bool = False) -> None:
        """End an application at a time, seconds since the epoch, also if no client runs then."""

    def set_priority(self, application_id: str, priority: int) -> None:
        """Set the priority of an application in its queue, if there is one; larger ones come first."""
        return None

    def nodes(self) -> list[dict[str, Any]]:
        """Return the running nodes of a cluster."""
        return []

    def resource_requests(self, application_id: str) -> list[dict[str, Any]]:
        """Return the containers that an application has requested and not got."""
        return []

    def master_container(self, application_id: str) -> str:
        """Return the id of the container of the last application master; empty if it is not known."""
        return ""

    def log_path(self, application_id: str, container_id: str, name: str) -> Path | None:
        """Return the file of a container's log on this machine; None if nodes have it."""
        return None

    def node_files(self) -> FileSystem | None:
        """Return the folders of the machines that run tasks; None if this client can't see them."""
        return None

    def now(self) -> float:
        """Return the time of the clock by which applications begin and end, seconds since the epoch."""
        return time.time()

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        return None
