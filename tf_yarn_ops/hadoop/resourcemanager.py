"""`ResourceManager`: a blocking client of YARN's REST interface, with a deadline for every call.

Input: ids, tags and bodies. Output: YARN's own JSON objects and our errors.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeVar

from ..errors import ApplicationNotFound, ClusterUnreachable, CredentialsRefused, SubmissionRejected
from ..runtime.common.contract import GPU
from .backend import Backend
from .gateway import from_outside, is_gateway
from .security.authentication import Authentication
from .site import SUBMIT_WITH
from .transport import (
    CALL_PATIENCE,
    Addresses,
    Failover,
    RestUnavailable,
    UnexpectedAnswer,
    check_response,
    explain_response,
    open_client,
    read_items,
    read_json,
    seconds_ahead,
    send_request,
)

Answered = TypeVar("Answered")

LIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
ENDED = ("FINISHED", "FAILED", "KILLED")
#: How often another ResourceManager may become active during one request.
_MOST_ACTIVATIONS = 3
#: YARN reports 2^63 - 1 for a resource without a configured maximum; no node has 2^31.
_UNLIMITED = 2**31
#: The header that names the token to cancel; it proves nothing about the sender.
TOKEN_TO_CANCEL = "Hadoop-YARN-RM-Delegation-Token"
#: The milliseconds of the end of an application. YARN keeps them, and nothing else of a client's that lasts longer than
#: the application and may change: the end of a lease has other ones than the end by the deadlines.
_NOT_LEASED, _LEASED = "000", "777"
#: Parts of a list that no watcher reads. An older Hadoop refuses unknown names and gets a shorter list.
_DESELECTED = "resourceRequests,resourceInfo,timeouts,appNodeLabelExpression,amNodeLabelExpression"
#: The path of YARN's REST interface.
CLUSTER_PATH = "/ws/v1/cluster"


@dataclass(frozen=True)
class Allocation:
    """An amount of resources, in YARN's units.

    Attributes
    ----------
    memory : int
        MiB.
    vcores : int
    gpus : int
        The number of ``yarn.io/gpu``; 0 if the cluster has no such resource.
    others : mapping of str to int
        Other resources by their names, without memory, vcores and GPUs.
    """

    memory: int
    vcores: int
    gpus: int = 0
    others: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Allocation":
        """Read a ``resource`` object of the REST interface."""
        details = (document.get("resourceInformations") or {}).get("resourceInformation") or []
        others = {item["name"]: int(item["value"]) for item in details if item["name"] not in ("memory-mb", "vcores")}
        return cls(int(document["memory"]), int(document["vCores"]), others.pop(GPU, 0), others)

    def contains(self, other: "Allocation") -> bool:
        """Return whether ``other`` fits into this amount."""
        fits = other.memory <= self.memory and other.vcores <= self.vcores and other.gpus <= self.gpus
        return fits and all(amount <= self.others.get(name, 0) for name, amount in other.others.items())

    def __add__(self, other: "Allocation") -> "Allocation":
        others = {
            name: self.others.get(name, 0) + other.others.get(name, 0) for name in {**self.others, **other.others}
        }
        return Allocation(self.memory + other.memory, self.vcores + other.vcores, self.gpus + other.gpus, others)

    def __str__(self) -> str:
        amounts = {"GPUs": self.gpus, **self.others}
        named = (f"{'any number of' if amount >= _UNLIMITED else amount} {name}" for name, amount in amounts.items())
        return f"{self.memory} MiB, {self.vcores} vcores, {', '.join(named)}"


class ResourceManager(Backend):
    """The ResourceManagers of one cluster.

    Parameters
    ----------
    urls : sequence of str
        Their HTTP addresses; requests find out which one is active.
    authentication : SimpleAuthentication, KerberosAuthentication or GatewayAuthentication
    request_timeout : float, optional
        Seconds for one request. Default 10.
    patience : float, optional
        Seconds for which a call tries again. Default 5.
    ca_file : str, optional
        Certificates (PEM) for https. Default: the machine's.
    clock, sleep : callable, optional
        For tests.

    Raises
    ------
    ClusterUnreachable
        From every method, when no ResourceManager answers.
    """

    ways = SUBMIT_WITH

    def __init__(
        self,
        urls: Iterable[str],
        authentication: Authentication,
        *,
        request_timeout: float = 10.0,
        patience: float = CALL_PATIENCE,
        ca_file: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
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
        self._activation: int | None = None
        self._deselected = _DESELECTED
        self._ahead = 0.0

    @property
    def address(self) -> str:
        """The address that answered last."""
        return self.addresses.urls[0]

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> Any:
        """Send one request, and repeat it until a ResourceManager answers.

        Parameters
        ----------
        method, path : str
        params : mapping of str to value, optional
            The query, without the parameters of the authentication. Default: none.
        json : optional
            Plain values for the body. Default: no body.
        headers : mapping of str to str, optional
            Further headers. Default: none.
        patience : float, optional
            Seconds for which the request is repeated. Default: that of this client.

        Returns
        -------
        httpx.Response
            The answer of the active ResourceManager, of any status.
        """
        failover = Failover(self.addresses, self._patience if patience is None else patience, self._clock)
        response = send_request(
            self._http(),
            failover,
            method,
            path,
            self._sleep,
            json=json,
            headers=headers,
            params={**self.authentication.parameters(), **(params or {})},
        )
        self._ahead = seconds_ahead(response, time.time()) or self._ahead
        return response

    def now(self) -> float:
        return time.time() + self._ahead

    def _http(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = open_client(self.authentication, self._configured, self._timeout, self._ca_file)
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
        """Return the JSON of ``/conf``."""
        return self._get("/conf", "reading the cluster's configuration")

    def info(self) -> dict[str, Any]:
        """Return ``clusterInfo``: version, state, start."""
        try:
            return dict(self._get(f"{CLUSTER_PATH}/info", "asking for the cluster's version", "clusterInfo"))
        except ApplicationNotFound as error:
            raise UnexpectedAnswer(str(error)) from error

    def userinfo(self, key: str) -> str | None:
        """Return a user that the ResourceManager names; None if this version of Hadoop can't tell.

        Parameters
        ----------
        key : {"requestedUser", "rmLoginUser"}
            The user of our requests as it sees them, or the one that it runs as.
        """
        try:
            document = self._get(f"{CLUSTER_PATH}/userinfo", "asking who we are")
        except ApplicationNotFound:
            return None
        return str((document.get("clusterUserInfo") or document).get(key) or "") or None

    def delegation_token(self, renewer: str) -> str:
        """Return the text of a new token for the user of our requests, which ``renewer`` may renew."""
        response = self.request("POST", f"{CLUSTER_PATH}/delegation-token", json={"renewer": renewer})
        return str(read_json(response, "asking the ResourceManager for a token", "token"))

    def cancel_token(self, token: str) -> None:
        """Cancel a token, given as its text; it is worth nothing afterwards."""
        check_response(
            self.request("DELETE", f"{CLUSTER_PATH}/delegation-token", headers={TOKEN_TO_CANCEL: token}),
            "cancelling a token of the ResourceManager",
        )

    def scheduler(self) -> dict[str, Any]:
        """Return ``schedulerInfo``: the scheduler's type and its queues."""
        return dict(self._get(f"{CLUSTER_PATH}/scheduler", "reading the queues", "scheduler", "schedulerInfo"))

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes that are running now."""
        return read_items(
            self._get(f"{CLUSTER_PATH}/nodes", "reading the nodes", params={"states": "RUNNING"}), "nodes", "node"
        )

    def labels(self) -> Any:
        """Return the JSON of the cluster's node labels."""
        return self._get(f"{CLUSTER_PATH}/get-node-labels", "reading the node labels")

    def new_application(self) -> tuple[str, Allocation]:
        """Reserve an application id; return the id and the maximum allocation of a container."""
        response = self.request("POST", f"{CLUSTER_PATH}/apps/new-application")
        what = "reserving an application id"
        maximum = Allocation.read(read_json(response, what, "maximum-resource-capability"))
        return str(read_json(response, what, "application-id")), maximum

    def submit(self, body: Mapping[str, Any], *, sent: bool = False) -> None:
        """Submit an application under its reserved id; a second submission changes nothing.

        Wait before each request until the ResourceManager is active: if it gets an application while it recovers the
        others, it finds the new one in its state store too, and exits (seen on Hadoop 3.4.3, "Cannot add a duplicate").

        Parameters
        ----------
        body : mapping of str to value
            The submission as YARN reads it.
        sent : bool, optional
            Whether YARN may have this submission from an earlier request. Default False.

        Raises
        ------
        SubmissionRejected
            YARN refuses the submission, or, before the first request, the question whether it is active.
        ClusterUnreachable
            YARN does not answer; or it may have the submission from an earlier request, and refuses to be asked again.
        """
        until = self._clock() + self._patience
        while True:
            with _unclear_if(sent, body, SubmissionRejected):
                self.await_active(until)
                try:
                    response = self.request("POST", f"{CLUSTER_PATH}/apps", json=body, patience=0.0)
                    break
                except ClusterUnreachable:
                    sent = True
                    if self._clock() >= until:
                        raise
        # YARN accepts a known id again, except while another client is submitting it.
        if response.status_code == 400 and "Cannot add a duplicate" in response.text:
            return
        # One that is refused as a request says nothing about an earlier one.
        with _unclear_if(sent, body, RestUnavailable, CredentialsRefused):
            check_response(response, f"submitting {body['application-id']}")

    def await_active(self, until: float | None = None) -> int:
        """Wait until a ResourceManager is active, and ask that one first from now on.

        A ResourceManager is active once it has recovered its applications. Before that it answers, but knows none.

        Parameters
        ----------
        until : float, optional
            Time of the monotonic clock. Default: now and the patience.

        Returns
        -------
        int
            The time of its activation, which YARN calls ``startedOn``. Two calls return the same time only if the same
            ResourceManager was active between them.

        Raises
        ------
        ClusterUnreachable
            None is active at that time.
        """
        until = self._clock() + self._patience if until is None else until
        while not is_active(info := self.info()):
            if info["haState"] == "STANDBY":
                # It answers this look by itself; any other one leads to the active ResourceManager.
                self.request("GET", f"{CLUSTER_PATH}/metrics", patience=max(0.0, until - self._clock()))
                if is_active(info := self.info()) or is_gateway(self.address):
                    break
            if self._clock() >= until:
                break
            self._sleep(0.2)
        self._activation = read_activation(info, self.addresses)
        return self._activation

    def _settled(self, send: Callable[[], Answered], before: int | None = None, patience: float = 0.0) -> Answered:
        """Return an answer, or raise its 404, that one ResourceManager gives while it is active.

        Parameters
        ----------
        ask : callable
            The request. It is repeated if another ResourceManager has become active meanwhile.
        before : int, optional
            The activation that was seen last. Default: ask for it.
        patience : float, optional
            Seconds to wait for a ResourceManager that recovers its applications. Default 0.
        """
        until, missing = self._clock() + patience, None
        for _ in range(_MOST_ACTIVATIONS):
            if before is None:
                before = self.await_active(until)
            try:
                answer, missing = send(), None
            except ApplicationNotFound as error:
                missing = error
            after = self.await_active(until)
            if before == after:
                if missing is not None:
                    raise missing
                return answer
            before = after
        raise ClusterUnreachable(f"another ResourceManager becomes active again and again at {self.addresses}")

    def _of_one(self, send: Callable[[], Answered], patience: float = 0.0) -> Answered:
        """Return an answer about one application; its 404 counts only as in `_settled`."""
        try:
            return send()
        except ApplicationNotFound:
            return self._settled(send, patience=patience)

    def resource_requests(self, application_id: str) -> list[dict[str, Any]]:
        """Return the containers that an application has asked for and not got; some versions of YARN list none."""
        return list(self._get_application(application_id).get("resourceRequests") or [])

    def master_container(self, application_id: str) -> str:
        """Return the id of the container of the last application master; empty if there was none."""
        path, what = f"{CLUSTER_PATH}/apps/{application_id}/appattempts", f"asking for the attempts of {application_id}"
        attempts = read_items(self._get(path, what), "appAttempts", "appAttempt")
        last = max(attempts, key=lambda attempt: int(attempt.get("id") or 0), default={})
        return str(last.get("containerId") or "")

    def get(self, application_id: str, patience: float = 0.0) -> dict[str, Any]:
        """Return one application.

        Parameters
        ----------
        application_id : str
        patience : float, optional
            Seconds to wait for a ResourceManager that does not know it, and recovers its applications. Default 0.

        Returns
        -------
        dict
            YARN's ``app`` object.

        Raises
        ------
        ApplicationNotFound
            An active ResourceManager does not know it.
        ClusterUnreachable
            No ResourceManager answers, or the one that does is not active.
        """
        found = self._of_one(
            lambda: parse_application(self._get_application(application_id, deSelects="resourceRequests")), patience
        )
        return from_outside(found, self.address)

    def _get_application(self, application_id: str, **parameters: str) -> Any:
        what = f"asking for {application_id}"
        return self._get(f"{CLUSTER_PATH}/apps/{application_id}", what, "app", params=parameters)

    def find(
        self, tags: Iterable[str] = (), states: Iterable[str] = (), user: str | None = None, finished_since: float = 0.0
    ) -> list[dict[str, Any]]:
        """Return the applications that have any of the tags and are in any of the states.

        The list is complete: the same ResourceManager is active before and after it.

        Parameters
        ----------
        tags, states : iterable of str, optional
            Default: all.
        user : str, optional
            The user whose applications are returned. Default: all users.
        finished_since : float, optional
            Only those that ended at this moment or later, seconds since the epoch. Default: all.

        Returns
        -------
        list of dict
            YARN's ``app`` objects.
        """
        parameters = find_parameters(tags, states, user, finished_since)
        return self._settled(
            lambda: self._read_list(self.request("GET", f"{CLUSTER_PATH}/apps", params=parameters)),
            self._activation,
            self._patience,
        )

    def find_live(self, tag: str | None, user: str) -> list[dict[str, Any]]:
        """Return live applications of a user by one request; a ResourceManager that recovers may list too few.

        Parameters
        ----------
        tag : str or None
            Default: all applications of the user.
        user : str
        """
        parameters = find_parameters([tag] if tag else [], LIVE, user)
        response = self.request("GET", f"{CLUSTER_PATH}/apps", params={**parameters, "deSelects": self._deselected})
        if response.status_code == 400 and self._deselected != parameters["deSelects"]:
            self._deselected = parameters["deSelects"]
            response = self.request("GET", f"{CLUSTER_PATH}/apps", params=parameters)
        return self._read_list(response)

    def _read_list(self, response: Any) -> list[dict[str, Any]]:
        items = read_items(read_json(response, "looking for applications"), "apps", "app")
        return [from_outside(parse_application(item), self.address) for item in items]

    def kill(self, application_id: str, diagnostics: str, patience: float = 0.0) -> str:
        """Ask YARN to kill an application; return the state that it answers.

        Parameters
        ----------
        application_id : str
        diagnostics : str
            Text that YARN keeps with the application.
        patience : float, optional
            As in `get`.

        Returns
        -------
        str
            YARN's state of the application, which may still be live.

        Raises
        ------
        ApplicationNotFound, ClusterUnreachable
            As in `get`.
        SubmissionRejected
            The user may not kill it.
        """
        body = {"state": "KILLED", "diagnostics": diagnostics}
        path, what = f"{CLUSTER_PATH}/apps/{application_id}/state", f"killing {application_id}"
        return self._of_one(lambda: str(read_json(self.request("PUT", path, json=body), what, "state")), patience)

    def set_lifetime(self, application_id: str, ends_at: float, leased: bool = False) -> None:
        """Let YARN end an application at a time, even if no client runs then.

        Parameters
        ----------
        application_id : str
        ends_at : float
            Seconds since the epoch, in the future.
        leased : bool, optional
            Mark the time as the end of a lease, which `ends_by_lease` recognises. Default False.
        """
        when = datetime.fromtimestamp(ends_at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        end = {"type": "LIFETIME", "expiryTime": f"{when}.{_LEASED if leased else _NOT_LEASED}+0000"}
        self._set(application_id, "timeout", {"timeout": end})

    def set_priority(self, application_id: str, priority: int) -> None:
        """Set the priority of an application in its queue; larger ones come first."""
        self._set(application_id, "priority", {"priority": priority})

    def _set(self, application_id: str, what: str, body: Mapping[str, Any]) -> None:
        def send() -> None:
            response = self.request("PUT", f"{CLUSTER_PATH}/apps/{application_id}/{what}", json=body)
            if response.status_code >= 400:
                refused = ApplicationNotFound if response.status_code == 404 else SubmissionRejected
                raise refused(f"setting the {what} of {application_id}: {explain_response(response)}")

        self._of_one(send)


def ends_by_lease(application: Mapping[str, Any]) -> bool:
    """Return whether the end of an application that YARN has is marked as the end of a lease."""
    return any(
        str(item.get("expiryTime")).partition("+")[0].endswith(f".{_LEASED}")
        for item in read_items(application, "timeouts", "timeout")
    )


def has_launched(application: Mapping[str, Any]) -> bool:
    """Return whether YARN has launched the application master, or the application has ended."""
    return application["state"] in ("RUNNING", *ENDED) or int(application.get("launchTime") or 0) > 0


def is_active(info: Mapping[str, Any]) -> bool:
    """Return whether the ResourceManager of a ``clusterInfo`` is active, and has recovered its applications."""
    return bool(info.get("haState", "ACTIVE") == "ACTIVE")


def read_activation(info: Mapping[str, Any], addresses: Addresses) -> int:
    """Return the time at which the ResourceManager of a ``clusterInfo`` became active, milliseconds since the epoch.

    0 if a gateway has led this look to the standby. It leads all others to the active one, as the standby answers none.

    Raises
    ------
    ClusterUnreachable
        It is not active.
    """
    if info.get("haState") == "STANDBY" and is_gateway(addresses.urls[0]):
        return 0
    if not is_active(info):
        raise ClusterUnreachable(
            f"the ResourceManager at {addresses.urls[0]} is still starting, and recovers its applications"
            if info["haState"] == "INITIALIZING"
            else f"no ResourceManager is active at {addresses} ({info['haState']})"
        )
    return int(info.get("startedOn") or 0)


def find_parameters(
    tags: Iterable[str] = (), states: Iterable[str] = (), user: str | None = None, finished_since: float = 0.0
) -> dict[str, str]:
    """Build the query of a list call; it leaves out parts of the answer that no caller reads."""
    parameters = {
        "applicationTags": ",".join(tags),
        "states": ",".join(states),
        "user": user or "",
        "finishedTimeBegin": str(round(1000 * finished_since)) if finished_since else "",
    }
    return {"deSelects": "resourceRequests", **{name: value for name, value in parameters.items() if value}}


def parse_application(item: Any) -> dict[str, Any]:
    """Return YARN's object of an application; raise UnexpectedAnswer if it lacks what each of them has.

    A time that is none counts as 0, as YARN writes a moment that has not come.
    """
    if not isinstance(item, dict) or not all(isinstance(item.get(name), str) for name in ("id", "state")):
        raise UnexpectedAnswer(f"the ResourceManager's answer is no application: {item!r:.200}")
    times = {name: item[name] for name in ("startedTime", "launchTime", "finishedTime") if name in item}
    return item | {name: time if type(time) is int and 0 <= time < 2**53 else 0 for name, time in times.items()}


@contextmanager
def _unclear_if(sent: bool, body: Mapping[str, Any], *refusals: type[SubmissionRejected]) -> Iterator[None]:
    """Raise ClusterUnreachable for these errors of a submission that was sent before: YARN may have accepted it."""
    try:
        yield
    except refusals as error:
        if not sent:
            raise
        found = ClusterUnreachable(f"YARN may have accepted {body['application-id']}, but does not tell: {error}")
        if isinstance(error, CredentialsRefused):  # another try would be refused as well
            found.reason, found.command = error.reason, error.command
        raise found from error
