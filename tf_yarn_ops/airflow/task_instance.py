"""A task's own task instance in Airflow: its identity, its state and its XComs."""

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..hadoop.gateway import tracking_page
from ..job.spec import JobSpec
from ..launch.identity import Identity
from .exceptions import TfYarnInfrastructureError
from .links import urls_of
from .versions import ServerError, conf, put_variable, read_variable, task_states

logger = logging.getLogger(__name__)

#: The part of a generation that one clear of the DAG run adds; the rest is the task's ``max_tries``.
CLEAR = 1_000_000
#: The variable in Airflow's database with the name of this Airflow among all that use the cluster.
DEPLOYMENT_VARIABLE = "tf_yarn_deployment_id"
#: Seconds after which the name that a task has given is read again: another task may give one at the same time.
_SETTLED = 5.0


def deployment_id(context: Any) -> str:
    """Return the name of this Airflow, which is in its database: machines of one Airflow may differ in all they have.

    The first task gives the name: ``[tf_yarn] deployment_id`` of its machine, else the time at which its DAG run has
    started, which has microseconds, so that no other Airflow has it.

    Parameters
    ----------
    context : Context

    Raises
    ------
    TfYarnInfrastructureError
        Airflow's server does not answer. Without the name, a running application of the task would not be found.
    """
    try:
        known = read_variable(DEPLOYMENT_VARIABLE)
        if not known:
            started = getattr(context.get("dag_run"), "start_date", None)
            known = _name_deployment(_own_name() or f"an Airflow since {started or uuid.uuid4()}")
    except ServerError as error:
        raise TfYarnInfrastructureError(
            f"Airflow's server did not return the variable {DEPLOYMENT_VARIABLE}, by which a task finds its "
            f"application: {error}"
        ) from error
    if other := deployment_conflict(known):
        logger.warning("%s", other)
    return known


def _name_deployment(name: str) -> str:
    """Store the name of this Airflow; return the one that stays."""
    while True:
        put_variable(DEPLOYMENT_VARIABLE, name, "Tags the YARN applications of this Airflow. Never change it.")
        time.sleep(_SETTLED)
        found = read_variable(DEPLOYMENT_VARIABLE) or name
        if found == name:
            return name
        name = found


def deployment_conflict(known: str | None = None) -> str:
    """Return a sentence if this machine names its Airflow otherwise than Airflow's database does; else an empty text.

    Parameters
    ----------
    known : str, optional
        The name in the database. Default: read it.
    """
    own = _own_name()
    known = (own and read_variable(DEPLOYMENT_VARIABLE)) if known is None else known
    if not own or not known or own == known:
        return ""
    return (
        f"[tf_yarn] deployment_id of this machine is {own!r} and has no effect: the variable {DEPLOYMENT_VARIABLE} "
        f"in Airflow's database says {known!r}; correct the setting"
    )


def _own_name() -> str:
    return str(conf.get("tf_yarn", "deployment_id", fallback="") or "")


def identity_of(deployment: str, context: Any, *, watched: bool = False) -> Identity:
    """Return the identity of a task instance at the start of a try.

    Airflow raises ``max_tries`` when a task is cleared, and leaves it when the task shows ``running`` at that moment;
    it raises the ``clear_number`` of the DAG run with each clear of a task of the run, unless the REST API got
    ``reset_dag_runs=false``. Neither changes on a retry. The generation is made of both.

    Parameters
    ----------
    deployment : str
        The name of this Airflow among all that use the cluster.
    context : Context
        The ``try_number`` of its task instance is the attempt.
    watched : bool, optional
        See `Identity`.
    """
    task_instance = context["ti"]
    key = ["airflow", task_instance.dag_id, task_instance.run_id, task_instance.task_id, task_instance.map_index]
    clears = int(getattr(context.get("dag_run"), "clear_number", None) or 0)
    return Identity(
        json.dumps(key),
        generation=clears * CLEAR + max(0, int(task_instance.max_tries)),
        attempt=max(0, int(task_instance.try_number)),
        deployment=deployment,
        watched=watched,
    )


def resumed_identity(context: Any, *, watched: bool) -> Identity:
    """Return the identity with which this try has deferred: another task may have been cleared since then."""
    known = pull(context["ti"]) or {}
    identity = identity_of(known.get("deployment") or deployment_id(context), context, watched=watched)
    if known.get("attempt") != identity.attempt:
        return identity
    return replace(identity, generation=int(known["generation"]))


def state_of(dag_id: str, run_id: str, task_id: str, map_index: int, ask: Callable[..., Any] | None = None) -> str:
    """Return the state of a task instance as Airflow's server has it.

    Parameters
    ----------
    dag_id, run_id, task_id : str
    map_index : int
        -1 for a task that is not mapped.
    ask : callable, optional
        Default: `versions.task_states`.

    Returns
    -------
    str
        ``no_status`` for a task instance that Airflow has not scheduled yet, ``deleted`` if there is none; empty if
        the server does not answer.
    """
    mapped = map_index >= 0
    try:
        states = (ask or task_states)(
            dag_id=dag_id, task_ids=[task_id], run_ids=[run_id], map_index=map_index if mapped else None
        )
        state = states.get(run_id, {}).get(f"{task_id}_{map_index}" if mapped else task_id, "deleted")
    except (
        ServerError,
        ImportError,
        NameError,
        LookupError,
        OSError,
        EOFError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        logger.warning("Airflow did not tell the state of task %s of %s: %s", task_id, run_id, error)
        return ""
    return "no_status" if state is None else str(state)


def state_by_key(key: str) -> str:
    """Return the state of the task of an identity, see `state_of`; empty for an identity of another engine.

    Parameters
    ----------
    key : str
        See `identity_of`.
    """
    engine, *names = json.loads(key) if key.startswith("[") else [""]
    return state_of(names[0], names[1], names[2], int(names[3])) if engine == "airflow" else ""


def answer_within(seconds: float, ask: Callable[[], str]) -> str:
    """Return what ``ask`` returns; empty without an answer in time."""
    answers: list[str] = []
    # In a thread: the interrupted code may hold the lock of the connection to Airflow's supervisor.
    asking = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
    asking.start()
    asking.join(seconds)
    return answers[0] if answers else ""


def present_state(task_instance: Any) -> str:
    """Return the state of a task's own task instance, see `state_of`.

    Parameters
    ----------
    task_instance : RuntimeTaskInstance
    """
    return state_of(
        task_instance.dag_id,
        task_instance.run_id,
        task_instance.task_id,
        task_instance.map_index,
        getattr(task_instance, "get_task_states", None),
    )


def push_application(
    task_instance: Any, application_id: str, spec: JobSpec, resourcemanager: str, user: str, identity: Identity
) -> dict[str, str]:
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
        "generation": identity.generation, "attempt": identity.attempt, "deployment": identity.deployment,
        "input": spec.input, "output_path": spec.output,
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
