"""Compare the machines of one Airflow: one that finds another cluster, or another user, would train a task again.

Before it submits, each task records the facts of its machine in Airflow's database, and reads those of the others.
"""

import json
import logging
import socket
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from ..doctor.machine import differing_facts, machine_facts
from ..errors import ClusterUnreachable, TfYarnError
from ..follow.session import Session
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import LIVE
from ..launch.identity import Identity
from ..runtime.common.clock import DAY
from ..runtime.common.local_job import SCHEME
from .versions import ServerError, put_variable, read_variable

logger = logging.getLogger(__name__)

#: The variable in Airflow's database with the facts of its machines.
MACHINES_VARIABLE = "tf_yarn_machines"
#: Seconds after which a machine is recorded again, and forgotten; machines of a connection, at most.
_RECORD_INTERVAL, _KEPT, _MOST = 3600.0, 7 * DAY, 50
#: Seconds for one request to the cluster that another machine has found, and for all of them.
_REQUEST, _PATIENCE = 3.0, 6.0

#: The facts of each machine by their names, and ``seen``, seconds since the epoch; by the machine's host name.
Machines = dict[str, dict[str, Any]]


def read_machines() -> dict[str, Machines]:
    """Return the machines that have run a task in the last seven days, by the connection that the task has used.

    Raises
    ------
    ServerError
        Airflow's server does not answer.
    """
    try:
        document = json.loads(read_variable(MACHINES_VARIABLE) or "{}")
    except ValueError:  # somebody has written it
        document = {}
    since = time.time() - _KEPT
    return {
        connection: {host: facts for host, facts in machines.items() if _is_current(facts, since)}
        for connection, machines in (document.items() if isinstance(document, dict) else ())
        if isinstance(machines, dict)
    }


def _is_current(facts: Any, since: float) -> bool:
    seen, addresses = (facts.get("seen"), facts.get("resourcemanagers")) if isinstance(facts, dict) else (None, None)
    texts = isinstance(addresses, list) and all(isinstance(one, str) for one in (facts.get("user"), *addresses))
    return texts and isinstance(seen, int) and seen > since


def record_machine(connection: str, cluster: Cluster) -> Machines:
    """Record the facts of this machine, unless that was done within the hour. Return the machines of a connection.

    Parameters
    ----------
    connection : str
        Its id.
    cluster : Cluster
        As this machine finds it.
    """
    host, now, facts = socket.gethostname(), int(time.time()), machine_facts(cluster)
    try:
        known = read_machines()
        machines = known.setdefault(connection, {})
        recorded = machines.get(host, {})
        if recorded != {**facts, "seen": recorded.get("seen")} or now - recorded["seen"] > _RECORD_INTERVAL:
            machines[host] = {**facts, "seen": now}
            known[connection] = machines = dict(sorted(machines.items(), key=lambda one: one[1]["seen"])[-_MOST:])
            put_variable(MACHINES_VARIABLE, json.dumps(known), "What the machines of this Airflow know of its clusters")
    except ServerError as error:
        logger.warning("this machine is not compared with the others: no variable %s: %s", MACHINES_VARIABLE, error)
        return {}
    return machines


def differences(connection: str, machines: Machines) -> list[str]:
    """Return a sentence for each fact in which machines differ, with its values and the machines that have them."""
    return [
        f"machines of this Airflow differ in {name} of {connection}: {values}"
        for name, values in differing_facts(machines).items()
    ]


def check_other_clusters(cluster: Cluster, user: str, identity: Identity, machines: Machines) -> None:
    """Raise an error if an application of a training lives where another machine looks for it, and this one does not.

    Parameters
    ----------
    cluster : Cluster
        As this machine finds it, with the user of the application.
    user : str
        The user that the job names; empty if it names none.
    identity : Identity
    machines : mapping
        See `record_machine`.

    Raises
    ------
    ClusterUnreachable
        There is one; this machine can neither follow nor kill it.
    """
    own = (tuple(sorted(cluster.resourcemanagers)), cluster.user)
    places: dict[tuple[tuple[str, ...], str], str] = {}
    for host, facts in machines.items():
        places.setdefault((tuple(facts["resourcemanagers"]), user or facts["user"]), host)
    for (addresses, owner), host in places.items():
        if (addresses, owner) == own or any(one.startswith(SCHEME) for one in (*addresses, *own[0])):
            continue
        try:
            elsewhere = _live(replace(cluster, resourcemanagers=addresses), owner, identity)
            found = elsewhere.keys() - _live(cluster, cluster.user, identity).keys() if elsewhere else ()
        except TfYarnError as error:
            logger.warning("no answer of %s, where %s finds its cluster: %s", ", ".join(addresses), host, error)
            continue
        for name in sorted(found):
            raise ClusterUnreachable(
                f"{name} of this task is {elsewhere[name]} already, as {owner} in {', '.join(addresses)}, where {host} "
                f"looks for it; {socket.gethostname()} looks as {own[1]} in {', '.join(own[0])}. Nothing was "
                "submitted: make the machines equal"
            )


def _live(cluster: Cluster, user: str, identity: Identity) -> Mapping[str, str]:
    with closing(Session.with_short_timeout(cluster, _REQUEST, _PATIENCE)) as session:
        return {str(a["id"]): str(a["state"]) for a in session.resourcemanager.find([identity.tag], LIVE, user)}
