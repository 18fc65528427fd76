"""A task's own task instance in Airflow: its identity, its state and its XComs."""

import json
import logging
from typing import Any

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowRuntimeError

from ..follow.identity import Identity
from ..hadoop.gateway import tracking_page
from ..job.spec import JobSpec
from .links import urls_of

logger = logging.getLogger(__name__)

#: States of a task instance whose present try has ended.
_OVER = ("failed", "success", "skipped", "restarting", "removed", "up_for_retry")


def deployment_id() -> str:
    """Return the name of this Airflow: ``[tf_yarn] deployment_id``, else the API server's base URL."""
    named = conf.get("tf_yarn", "deployment_id", fallback="") or conf.get("api", "base_url", fallback="")
    if not named:
        logger.warning("neither [tf_yarn] deployment_id nor [api] base_url is set; another Airflow on this cluster "
                       "with DAGs and runs of the same names would take the applications of this one for its own")
    return str(named or "http://localhost:8080/").rstrip("/")


def identity_of(deployment: str, task_instance: Any) -> Identity:
    """Return the identity of a task instance.

    Parameters
    ----------
    deployment : str
        The name of this Airflow among all that use the cluster.
    task_instance : RuntimeTaskInstance
        Its ``max_tries`` is the generation: it grows when the task is cleared, and not on retries. Its ``try_number``
        is the attempt.
    """
    key = ["airflow", task_instance.dag_id, task_instance.run_id, task_instance.task_id, task_instance.map_index]
    return Identity(json.dumps(key), generation=max(0, int(task_instance.max_tries)),
                    attempt=max(0, int(task_instance.try_number)), deployment=deployment)


def ended_state(task_instance: Any) -> str:
    """Return the state with which Airflow has ended this running try; empty if the try may continue.

    The supervisor learns of such a state at its next heartbeat. That is too late for a task that is about to defer.

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
        logger.warning("Airflow did not tell the state of this task, which continues: %s", error)
        return ""
    return state if state in _OVER else ""


def push_application(task_instance: Any, application_id: str, spec: JobSpec, resourcemanager: str, user: str,
                     identity: Identity) -> dict[str, str]:
    """Push the XCom ``tf_yarn`` and the links, as soon as the application has an id. Return the links.

    Parameters
    ----------
    task_instance : RuntimeTaskInstance
    application_id : str
    spec : JobSpec
    resourcemanager : str
        Its URL.
    user : str
        The owner of the application.
    identity : Identity
    """
    links = urls_of(resourcemanager, application_id, spec.tensorboard is not None)
    task_instance.xcom_push("tf_yarn", {
        "application_id": application_id, "tracking_url": tracking_page(resourcemanager, application_id),
        "name": spec.name, "queue": spec.queue, "user": user, "resourcemanager": resourcemanager,
        "generation": identity.generation, "attempt": identity.attempt,
    })  # fmt: skip
    for key, url in links.items():
        task_instance.xcom_push(key, url)
    return links


def pull(task_instance: Any, key: str = "tf_yarn") -> Any:
    """Return an XCom that an earlier process of this task has pushed; None if there is none."""
    return task_instance.xcom_pull(task_ids=task_instance.task_id, map_indexes=task_instance.map_index, key=key)


def push_other_application(task_instance: Any, before: str, now: str) -> None:
    """Replace the application id in all XComs: another application of the same try has trained."""
    for key in ("tf_yarn", *urls_of("", now, False)):
        text = json.dumps(pull(task_instance, key))
        text = text.replace(before.removeprefix("application"), now.removeprefix("application"))
        task_instance.xcom_push(key, json.loads(text))
