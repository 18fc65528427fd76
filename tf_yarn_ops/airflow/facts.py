"""From Airflow's task instance to an `Identity`, and a `Cluster` as plain values and back.

A trigger's arguments lie in clear text in the metadata database, so what is known of the
cluster travels there as addresses, names and paths, and nothing else.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowRuntimeError

from ..follow.identity import Identity
from ..hadoop.cluster import Cluster
from ..hadoop.site import Site

logger = logging.getLogger(__name__)

#: States of a task instance for which nothing is to be trained any more by the try that asks.
_OVER = ("failed", "success", "skipped", "restarting", "removed", "up_for_retry")
#: Only a submission needs these; they are long.
_FOR_SUBMISSION = ("application_classpath", "log_services")
_SITE_FOR_SUBMISSION = ("application_classpath", "am_java_options", "docker_folders")


def deployment_id() -> str:
    """Give what names this Airflow: ``[tf_yarn] deployment_id``, else the API server's base URL."""
    named = conf.get("tf_yarn", "deployment_id", fallback="") or conf.get("api", "base_url", fallback="")
    if not named:
        logger.warning("neither [tf_yarn] deployment_id nor [api] base_url is set: another Airflow on this cluster "
                       "would take the applications of DAGs and runs with the same names for its own")
    return str(named or "http://localhost:8080/").rstrip("/")


def identity_of(deployment: str, task_instance: Any) -> Identity:
    """Give the identity of a task instance.

    Parameters
    ----------
    deployment : str
        What names this Airflow among all that use the cluster.
    task_instance : RuntimeTaskInstance
        ``max_tries`` grows with every clear and stays on retries, so it is the generation;
        ``try_number`` is the attempt.
    """
    key = ["airflow", task_instance.dag_id, task_instance.run_id, task_instance.task_id, task_instance.map_index]
    return Identity(json.dumps(key), generation=max(0, int(task_instance.max_tries)),
                    attempt=max(0, int(task_instance.try_number)), deployment=deployment)


def ended_meanwhile(task_instance: Any) -> str:
    """Give the state in which Airflow has put a task that still runs; empty when it is to go on.

    The supervisor learns of it at its next heartbeat, which is too late for a task that hands over.

    Parameters
    ----------
    task_instance : RuntimeTaskInstance
    """
    mapped = task_instance.map_index >= 0
    key = f"{task_instance.task_id}_{task_instance.map_index}" if mapped else task_instance.task_id
    try:
        states = task_instance.get_task_states(
            dag_id=task_instance.dag_id, task_ids=[task_instance.task_id], run_ids=[task_instance.run_id],
            map_index=task_instance.map_index if mapped else None)  # fmt: skip
        state = str(states[task_instance.run_id][key])
    except (AirflowRuntimeError, LookupError, OSError, EOFError, RuntimeError, TypeError, ValueError) as error:
        logger.warning("whether Airflow has ended this task meanwhile is not known: %s", error)
        return ""
    return state if state in _OVER else ""


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Give what watching and killing need of a cluster, as values for JSON."""
    document = _given(cluster, Cluster((), "", "", "", "", ""), _FOR_SUBMISSION)
    document["site"] = _given(cluster.site, Site(), _SITE_FOR_SUBMISSION)
    return document


def cluster_from_dict(document: Mapping[str, Any]) -> Cluster:
    """Read `cluster_to_dict`'s document."""
    needed: dict[str, Any] = dict.fromkeys(("resourcemanagers",), ())
    needed |= dict.fromkeys(("user", "login", "default_filesystem", "filesystem", "staging_template"), "")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}
    return Cluster(**{**needed, **values, "site": Site(**document.get("site", {}))})


def identity_to_dict(identity: Identity) -> dict[str, Any]:
    """Give an identity as values for JSON."""
    return asdict(identity)


def _given(part: Any, plain: Any, without: tuple[str, ...]) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(part) if field.name not in (*without, "site")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
            if value != getattr(plain, name)}
