"""Checks of what a submission meets in YARN: the way of submitting, the queue, its rights, the nodes, logs."""

import enum
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any
from urllib.parse import quote

from ..errors import SubmissionRejected, TfYarnError
from ..follow.log_reader import COORDINATOR, Logs
from ..hadoop.cluster import Cluster
from ..hadoop.gateway import is_gateway
from ..hadoop.resourcemanager import CLUSTER_PATH, ResourceManager
from ..hadoop.transport import RestUnavailable, read_json
from ..submit.queues import MAPPED, fault_of, read_queues
from .known import KnownFacts
from .probe import probe_all
from .symptoms import Finding, Symptom, ill, skip, well

SUBMIT, ADMINISTER = "SUBMIT_APPLICATIONS", "ADMINISTER_QUEUE"
#: The names of the same rights in the lists of ``schedulerInfo``.
_LISTED = {SUBMIT: ("SUBMIT_APP", SUBMIT), ADMINISTER: (ADMINISTER,)}
#: A user name to which no administrator grants a right.
ANYBODY = "nobody"
#: NodeManagers that are asked, at most.
MOST_NODES = 20
#: YARN writes 2^31 - 1 for no limit.
_UNLIMITED = 2**31 - 1
#: The limits of a queue, each by its key in ``schedulerInfo``.
_LIMITS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "capacity": ("absoluteCapacity", float), "most_capacity": ("absoluteMaxCapacity", float),
    "applications": ("numApplications", int), "most_applications": ("maxApplications", int),
    "most_parallel": ("maxParallelApps", int), "lifetime": ("maxApplicationLifetime", int),
}  # fmt: skip


class Right(enum.Enum):
    """What YARN says of a user's right in a queue."""

    GRANTED = enum.auto()
    LACKED = enum.auto()
    REFUSED = enum.auto()
    UNKNOWN = enum.auto()


def check_submission(known: KnownFacts) -> Finding:
    """Reserve an application id over HTTP, which costs nothing; look for Skein's Java client where it is needed."""
    way = known.session.cluster.site.submit_with
    causes = {
        "submit_with is skein": way == "skein",
        "the file system is closed over HTTP": not known.http_storage,
        "the cluster gives no tokens over HTTP": not known.tokens,
    }
    if why := next((cause for cause, holds in causes.items() if holds), ""):
        if missing := known.missing_for_skein:
            return ill(Symptom.SKEIN_UNUSABLE, why=why, missing=missing)
        return well(f"with Skein's Java client, because {why}", way="skein")
    try:
        _, maximum = known.session.yarn.new_application()
    except RestUnavailable as error:
        if way == "rest":
            return ill(Symptom.REST_NEEDED, error=error)
        if missing := known.missing_for_skein:
            return ill(Symptom.SKEIN_UNUSABLE, why=f"HTTP is closed: {error}", missing=missing)
        return ill(Symptom.REST_CLOSED, error=error)
    return well(
        f"over HTTP; a container may have {maximum}",
        way="rest",
        maximum={"memory": maximum.memory, "vcores": maximum.vcores, "gpus": maximum.gpus},
    )


def check_queue(known: KnownFacts) -> Finding:
    """Tell whether the queue takes applications of ours, and its limits."""
    queue, user = known.question.queue, known.session.cluster.user
    resourcemanager = known.session.yarn
    scheduler = resourcemanager.scheduler()
    learned = {"scheduler": scheduler}
    queues = read_queues(scheduler)
    if queues and (fault := fault_of(queue, queues)):
        return ill(
            Symptom.QUEUE_MAPPED if queue in MAPPED else Symptom.QUEUE_CLOSED,
            learned,
            error=SubmissionRejected(fault),
            facts={"queue": queue, "error": fault},
        )
    path = _path_to(queue, scheduler)
    limits = _limits(path[-1]) if path else {}
    facts = {"queue": queue, "scheduler": str(scheduler.get("type", "")), **limits}
    may, who = _may_submit(resourcemanager, queue, user, path)
    if may is False:
        return ill(Symptom.QUEUE_FORBIDDEN, learned, facts=facts, user=user, queue=queue, who=who)
    number, most = limits.get("applications", 0), limits.get("most_applications", _UNLIMITED)
    if number >= most:
        return ill(Symptom.QUEUE_FULL, learned, facts=facts, queue=queue, number=number, most=most)
    parallel, lifetime = limits.get("most_parallel"), limits.get("lifetime", -1)
    waits = ", so a further one waits" if parallel is not None and number >= parallel else ""  # YARN accepts more
    details = (
        f"{user} may submit to {queue}" if may else f"{queue} (whether {user} may submit shows at a submission)",
        f"{limits['capacity']:g} % of the cluster, at most {limits['most_capacity']:g} %"
        if {"capacity", "most_capacity"} <= limits.keys()
        else "",
        f"{number} of {most} applications" if most < _UNLIMITED else "",
        f"at most {parallel} run at the same time{waits}" if parallel is not None else "",
        f"YARN ends applications after {lifetime} s" if lifetime > 0 else "",
        "" if queues else f"{scheduler.get('type', 'this scheduler')} lists no limits",
    )
    return well("; ".join(filter(None, details)), learned, **facts)


def _path_to(queue: str, info: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the objects of ``schedulerInfo`` from the root to a queue; empty if it is not listed."""

    def walk(info: Mapping[str, Any], above: list[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
        here = [*above, info]
        if queue in (info.get("queueName"), info.get("queuePath")):
            yield here
        for child in (info.get("queues") or {}).get("queue") or []:
            yield from walk(child, here)

    return max(walk(info, []), key=len, default=[])


def _limits(info: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: read(info[key]) for name, (key, read) in _LIMITS.items() if key in info}
    return {name: limit for name, limit in found.items() if name != "most_parallel" or limit < _UNLIMITED}


def _may_submit(
    resourcemanager: ResourceManager, queue: str, user: str, path: list[Mapping[str, Any]]
) -> tuple[bool | None, str]:
    """Return whether a user may submit, None if only a submission can tell, and who may, for a message."""
    right = check_right(resourcemanager, queue, SUBMIT, user)
    if right in (Right.GRANTED, Right.LACKED):
        return right is Right.GRANTED, ""
    lists = _lists(path, SUBMIT)
    if any(_names(text, user) for text in lists):
        return True, ""
    if lists and not any(text.strip() for text in lists):
        return False, ": its lists name no user and no group"
    return None, ""  # a group may be ours; only the cluster knows


def check_right(resourcemanager: ResourceManager, queue: str, right: str, user: str) -> Right:
    """Ask YARN whether a user has a right in a queue.

    Parameters
    ----------
    resourcemanager : ResourceManager
    queue : str
    right : str
        `SUBMIT` or `ADMINISTER`.
    user : str

    Returns
    -------
    Right
        `Right.REFUSED` if the ResourceManager does not answer us: it answers only those who may administer the queue.
        `Right.UNKNOWN` for any other failure; versions before 3.3 do not know the question.
    """
    response = resourcemanager.request(
        "GET", f"{CLUSTER_PATH}/queues/{quote(queue, safe='')}/access", params={"queue-acl-type": right, "user": user}
    )
    try:
        allowed = read_json(response, "asking for the rights in the queue", "allowed")
    except TfYarnError:
        return Right.REFUSED if response.status_code == 403 else Right.UNKNOWN
    return Right.GRANTED if str(allowed).lower() == "true" else Right.LACKED


def _lists(path: list[Mapping[str, Any]], right: str) -> list[str]:
    """Return the access lists of a queue and of those above it, whose rights it inherits."""
    return [
        str(item.get("accessControlList", ""))
        for info in path
        for item in (info.get("queueAcls") or {}).get("queueAcl") or []
        if item.get("accessType") in _LISTED[right]
    ]


def _names(access_list: str, user: str) -> bool:
    """Return whether a list ``user1,user2 group1,group2`` names everybody or a user."""
    return access_list.strip() == "*" or user in access_list.split(" ")[0].split(",")


def check_queue_acl(known: KnownFacts) -> Finding:
    """Tell whether any user may kill applications of the queue."""
    queue = known.question.queue
    right = check_right(known.session.yarn, queue, ADMINISTER, ANYBODY)
    lists = _lists(_path_to(queue, known.scheduler), ADMINISTER)
    unknown = right in (Right.REFUSED, Right.UNKNOWN)
    if right is Right.GRANTED or (
        unknown
        and (known.configuration.get("yarn.acl.enable") == "false" or any(text.strip() == "*" for text in lists))
    ):
        return ill(Symptom.ANYBODY_KILLS, queue=queue)
    if right is Right.LACKED or lists:
        return well(f"only some users may kill other users' applications in {queue}", queue=queue)
    if right is Right.UNKNOWN:
        return skip("YARN does not show the queue's rights")
    return well("not everybody may administer the queue: YARN does not show us its rights", queue=queue)


def examine_nodes(known: KnownFacts) -> Finding:
    """Count the running nodes, and ask some NodeManagers."""
    cluster = known.session.cluster
    if not (nodes := known.session.yarn.nodes()):
        return ill(Symptom.NO_NODES)
    versions = sorted({str(node["version"]) for node in nodes if node.get("version")})
    learned = {"nodes": tuple(nodes)}
    scheme = "https" if known.configuration.get("yarn.http.policy") == "HTTPS_ONLY" else "http"
    # Behind a gateway nobody but the gateway reaches the nodes.
    asked = () if is_gateway(known.urls[0]) else nodes[:MOST_NODES]
    urls = [f"{scheme}://{node['nodeHTTPAddress']}" for node in asked if node.get("nodeHTTPAddress")]
    facts = {"running": len(nodes), "asked": len(urls), "versions": versions}
    answers = probe_all(urls, "/ws/v1/node/info", cluster.authentication, known.site, cluster.resourcemanagers)
    # A NodeManager that asks for a ticket, or knows no such page, can be reached.
    if silent := {url: answer.why for url, answer in answers.items() if answer.status is None}:
        return ill(
            Symptom.NODE_UNREACHABLE,
            learned,
            facts={**facts, "silent": silent},
            number=len(silent),
            asked=len(urls),
            states=", ".join(f"{url} ({why})" for url, why in list(silent.items())[:3]),
        )
    shown = f"{len(nodes)} running" + (f", Hadoop {' and '.join(versions)}" if versions else "")
    return well(f"{shown}; {len(urls)} asked, all answer" if urls else shown, learned, **facts)


def check_logs(known: KnownFacts) -> Finding:
    """Tell whether logs can be read while a job runs and after its end."""
    session = known.session
    if known.application_id:
        try:
            with closing(Logs(session, environ=known.question.environ)) as logs:
                lines = "".join(logs.read(known.application_id, COORDINATOR)).splitlines()
        except TfYarnError as error:
            return ill(Symptom.LOG_MISSING, error=error, application=known.application_id)
        return well(f"read {len(lines)} lines of the coordinator of {known.application_id}", lines=len(lines))
    if known.configuration.get("yarn.log-aggregation-enable") == "false":
        return ill(Symptom.NO_AGGREGATION)
    services = session.cluster.logs.services
    trusted = [*session.cluster.resourcemanagers, *filter(None, [known.site.log_server])]
    answers = probe_all(services, "", session.cluster.authentication, known.site, trusted)
    silent = {url: answer.why for url, answer in answers.items() if answer.status is None}
    program = shutil.which("yarn", path=known.question.environ.get("PATH"))
    directory = _log_directory(session.cluster)
    facts: dict[str, Any] = {"log_services": services, "log_directory": directory, "yarn": program}
    if not program and not directory and len(silent) == len(services):
        states = ", ".join(f"{url} ({why})" for url, why in silent.items())
        return ill(Symptom.LOG_SERVER_SILENT if services else Symptom.NO_LOG_SERVER, facts=facts, states=states)
    after = ", ".join(
        [
            *(url for url in services if url not in silent),
            *([directory] if directory else []),
            *(["'yarn logs'"] if program else []),
        ]
    )
    shown = known.configuration.get("yarn.log-aggregation-enable") == "true"
    aggregated = "aggregation is on;" if shown else "whether logs are aggregated is not shown; if so,"
    return well(f"{aggregated} after the end from {after}", **facts)


def _log_directory(cluster: Cluster) -> str:
    """Return the directory of aggregated logs if this machine can read it over HTTP, else an empty text."""
    with suppress(RestUnavailable):
        if opened := cluster.open_logs():
            opened[0].close()
            return cluster.logs.directory
    return ""
