"""`ResourceManager`: YARN's REST interface, blocking, with deadlines on every call.

In come ids, tags and bodies; out go YARN's own JSON objects and our errors.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from ..errors import ApplicationNotFound, ClusterUnreachable, SubmissionRejected
from .authentication import Authentication
from .fast_import import import_httpx
from .transport import PATIENCE, Addresses, Failover, check, client_options, explain, read_items, read_json, send

LIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
ENDED = ("FINISHED", "FAILED", "KILLED")
#: Seconds for which a known application has to be unknown: a ResourceManager that restarts answers
#: 404 until it has recovered its applications (seen on Hadoop 3.4.3 on a busy machine).
RECOVERY_TIME = 30.0
GPU = "yarn.io/gpu"
#: YARN names 2^63 - 1 of a resource whose maximum nobody has configured; no node has 2^31.
_UNLIMITED = 2**31
#: Below which everything of YARN's REST interface lies.
CLUSTER_PATH = "/ws/v1/cluster"


@dataclass(frozen=True)
class Allocation:
    """An amount of resources as YARN gives it.

    Attributes
    ----------
    memory : int
        MiB.
    vcores : int
    gpus : int
        Of ``yarn.io/gpu``; 0 where the cluster has no such resource.
    """

    memory: int
    vcores: int
    gpus: int = 0

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Allocation":
        """Read a ``resource`` object of the REST interface."""
        details = (document.get("resourceInformations") or {}).get("resourceInformation") or []
        values = {item["name"]: int(item["value"]) for item in details}
        return cls(int(document["memory"]), int(document["vCores"]), values.get(GPU, 0))

    def holds(self, other: "Allocation") -> bool:
        """Tell whether ``other`` fits into this."""
        return other.memory <= self.memory and other.vcores <= self.vcores and other.gpus <= self.gpus

    def __str__(self) -> str:
        gpus = "any number of" if self.gpus >= _UNLIMITED else self.gpus
        return f"{self.memory} MiB, {self.vcores} vcores, {gpus} GPUs"


class ResourceManager:
    """The ResourceManagers of one cluster.

    Parameters
    ----------
    urls : sequence of str
        Their HTTP addresses; the active one is found by asking.
    authentication : SimpleAuthentication or KerberosAuthentication
        Who asks.
    request_timeout : float, optional
        Seconds for one request. Default 10.
    patience : float, optional
        Seconds for which a call goes on trying. Default 5.
    ca_file : str, optional
        Certificates for https.
    clock, sleep : callable, optional
        For tests.

    Raises
    ------
    ClusterUnreachable
        From every method, when nobody answers.
    """

    def __init__(self, urls: Iterable[str], authentication: Authentication, *, request_timeout: float = 10.0,
                 patience: float = PATIENCE, ca_file: str | None = None,
                 clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep):
        self.addresses = Addresses(urls)
        self._configured = tuple(self.addresses.urls)
        self.authentication = authentication
        self._timeout = request_timeout
        self._patience = patience
        self._ca_file = ca_file
        self._clock = clock
        self._sleep = sleep
        self._client: Any = None
        self._lock = threading.Lock()

    def request(self, method: str, path: str, *, params: Mapping[str, Any] | None = None,
                json: Any = None, patience: float | None = None) -> Any:
        """Send one request; give the answer (an ``httpx.Response``) whatever its status."""
        failover = Failover(self.addresses, self._patience if patience is None else patience, self._clock)
        return send(self._http(), failover, method, path, self._sleep, json=json,
                    params={**self.authentication.parameters(), **(params or {})})

    def _http(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = import_httpx().Client(**client_options(
                    self.authentication, self._configured, self._timeout, self._ca_file))
            return self._client

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _get(self, path: str, what: str, *keys: str, params: Mapping[str, Any] | None = None) -> Any:
        return read_json(self.request("GET", path, params=params), what, *keys)

    def conf(self) -> Any:
        """Give the JSON of ``/conf``."""
        return self._get("/conf", "reading the cluster's configuration")

    def info(self) -> dict[str, Any]:
        """Give ``clusterInfo``: version, state, start."""
        return dict(self._get(f"{CLUSTER_PATH}/info", "asking for the cluster's version", "clusterInfo"))

    def user(self) -> str | None:
        """Give the user that the ResourceManager takes us for; None on Hadoop that can't tell."""
        try:
            document = self._get(f"{CLUSTER_PATH}/userinfo", "asking who we are")
        except ApplicationNotFound:
            return None
        return str((document.get("clusterUserInfo") or document).get("requestedUser") or "") or None

    def recovering(self, application_id: str) -> bool:
        """Tell whether the ResourceManager may still have to recover an application that it does not know.

        It answers 404 after a restart until it has; its own clock counts, and ids tell in which of its lives
        they were given.
        """
        response = self.request("GET", f"{CLUSTER_PATH}/info")
        info = read_json(response, "asking when the ResourceManager was started", "clusterInfo")
        started = int(info.get("startedOn") or 0)
        given = re.match(r"application_(\d+)_", application_id)
        date = response.headers.get("date")
        now = parsedate_to_datetime(date).timestamp() if date else time.time()
        return given is not None and int(given[1]) < started and now - started / 1000 < RECOVERY_TIME

    def scheduler(self) -> dict[str, Any]:
        """Give ``schedulerInfo``: the scheduler's type and its queues."""
        return dict(self._get(f"{CLUSTER_PATH}/scheduler", "reading the queues", "scheduler", "schedulerInfo"))

    def nodes(self) -> list[dict[str, Any]]:
        """Give the nodes that run containers now."""
        document = self._get(f"{CLUSTER_PATH}/nodes", "reading the nodes", params={"states": "RUNNING"})
        return read_items(document, "nodes", "node")

    def labels(self) -> Any:
        """Give the JSON of the cluster's node labels."""
        return self._get(f"{CLUSTER_PATH}/get-node-labels", "reading the node labels")

    def new_application(self) -> tuple[str, Allocation]:
        """Reserve an application id; give it with the maximum allocation of a container."""
        response = self.request("POST", f"{CLUSTER_PATH}/apps/new-application")
        what = "reserving an application id"
        maximum = Allocation.read(read_json(response, what, "maximum-resource-capability"))
        return str(read_json(response, what, "application-id")), maximum

    def submit(self, body: Mapping[str, Any]) -> None:
        """Submit an application under its reserved id; a second time changes nothing.

        Each time after a ResourceManager has said that it is active: one that is given an application while
        it recovers the others finds that one in its state store as well, and ends (seen on Hadoop 3.4.3,
        "Cannot add a duplicate").
        """
        until = self._clock() + self._patience
        while True:
            self.await_active(until)
            try:
                response = self.request("POST", f"{CLUSTER_PATH}/apps", json=body, patience=0.0)
                break
            except ClusterUnreachable:
                if self._clock() >= until:
                    raise
        # A known id is accepted again, except in the very moment in which another client submits it.
        if response.status_code == 400 and "Cannot add a duplicate" in response.text:
            return
        check(response, f"submitting {body['application-id']}")

    def await_active(self, until: float | None = None) -> None:
        """Wait while the ResourceManager is still starting, until a time of our clock; default: for our patience."""
        until = self._clock() + self._patience if until is None else until
        while self.info().get("haState") == "INITIALIZING":
            if self._clock() >= until:
                raise ClusterUnreachable(f"the ResourceManager at {self.addresses.current()} is still starting")
            self._sleep(0.2)

    def get(self, application_id: str) -> dict[str, Any]:
        """Give one application; ApplicationNotFound when the ResourceManager does not know it."""
        return dict(self._get(f"{CLUSTER_PATH}/apps/{application_id}", f"asking for {application_id}", "app",
                              params={"deSelects": "resourceRequests"}))

    def get_recovered(self, application_id: str, patience: float = 0.0) -> dict[str, Any]:
        """Give one application; wait so many seconds while a restarted ResourceManager may have to recover it.

        Raises
        ------
        ApplicationNotFound
            It is unknown, and will be.
        ClusterUnreachable
            It is unknown, and may be known in a moment.
        """
        deadline = self._clock() + patience
        while True:
            try:
                return self.get(application_id)
            except ApplicationNotFound as error:
                if not self.recovering(application_id):
                    raise
                if self._clock() >= deadline:
                    raise ClusterUnreachable("the ResourceManager was restarted a moment ago and does not know "
                                             f"{application_id} yet; ask again in {RECOVERY_TIME:.0f} s") from error
            self._sleep(0.5)

    def find(self, tags: Iterable[str] = (), states: Iterable[str] = (),
             user: str | None = None) -> list[dict[str, Any]]:
        """Give the applications that carry any of the tags and are in any of the states.

        Parameters
        ----------
        tags, states : iterable of str, optional
            Default: all.
        user : str, optional
            Only applications of this user.
        """
        return read_applications(self._get(f"{CLUSTER_PATH}/apps", "looking for applications",
                                           params=find_parameters(tags, states, user)))

    def state(self, application_id: str) -> str:
        """Give YARN's state of one application."""
        return str(self._get(f"{CLUSTER_PATH}/apps/{application_id}/state", f"asking for {application_id}", "state"))

    def kill(self, application_id: str, diagnostics: str) -> str:
        """Ask YARN to kill an application; give its state in the answer.

        Parameters
        ----------
        application_id : str
        diagnostics : str
            What YARN shall keep as the cause.

        Raises
        ------
        ApplicationNotFound
            The ResourceManager does not know it.
        SubmissionRejected
            We may not kill it.
        """
        response = self.request("PUT", f"{CLUSTER_PATH}/apps/{application_id}/state",
                                json={"state": "KILLED", "diagnostics": diagnostics})
        return str(read_json(response, f"killing {application_id}", "state"))

    def set_lifetime(self, application_id: str, ends_at: float) -> None:
        """Let YARN end an application at a time (seconds since the epoch), whoever else is alive."""
        when = datetime.fromtimestamp(ends_at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000+0000")
        self._set(application_id, "timeout", {"timeout": {"type": "LIFETIME", "expiryTime": when}})

    def set_priority(self, application_id: str, priority: int) -> None:
        """Give an application its priority in the queue, larger first."""
        self._set(application_id, "priority", {"priority": priority})

    def _set(self, application_id: str, what: str, body: Mapping[str, Any]) -> None:
        response = self.request("PUT", f"{CLUSTER_PATH}/apps/{application_id}/{what}", json=body)
        if response.status_code >= 400:
            raise SubmissionRejected(f"setting the {what} of {application_id}: {explain(response)}")


def find_parameters(tags: Iterable[str] = (), states: Iterable[str] = (), user: str | None = None) -> dict[str, str]:
    """Build the query of a list call; what nobody reads is left out of the answer."""
    parameters = {"applicationTags": ",".join(tags), "states": ",".join(states), "user": user or ""}
    return {"deSelects": "resourceRequests", **{name: value for name, value in parameters.items() if value}}


def read_applications(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read the answer of a list call; OddAnswer when it is none."""
    return read_items(document, "apps", "app")
