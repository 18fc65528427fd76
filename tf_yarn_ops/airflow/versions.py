"""What differs between the versions of Airflow, 2.11 to the newest 3: the places of names, and the calls that are new.

The other modules of this room import Airflow's names from here, and never ask for a version. A name is loaded on first
use, because every start of a task imports the modules of its operators.
"""

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import airflow

if TYPE_CHECKING:
    from airflow.sdk import Asset, BaseHook, BaseOperator, BaseOperatorLink, BaseSensorOperator
    from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, determine_kwargs, task_decorator_factory
    from airflow.sdk.bases.sensor import PokeReturnValue
    from airflow.sdk.configuration import conf
    from airflow.sdk.definitions._internal.templater import render_template_to_string  # type: ignore[attr-defined]
    from airflow.sdk.definitions.context import context_merge, get_parsing_context
    from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        AirflowTaskTimeout,
        TaskDeferralError,
        TaskDeferralTimeout,
    )
    from airflow.sdk.exceptions import AirflowRuntimeError as ServerError
    from airflow.sdk.execution_time.xcom import XCom
    from airflow.sdk.log import redact  # type: ignore[attr-defined]

logger = logging.getLogger(__name__)

Version = tuple[int, int]

#: The oldest version that works; tests/airflow/test_versions.py runs rows on it.
OLDEST: Version = (2, 11)
_EXCEPTION: Mapping[Version, str] = {(2, 11): "airflow.exceptions", (3, 2): "airflow.sdk.exceptions"}
#: For each name, the oldest first: from which version on it lies in which module, and its name there if that differs.
_PLACES: Mapping[str, Mapping[Version, str]] = {
    "Asset": {(2, 11): "airflow.datasets.Dataset", (3, 0): "airflow.sdk"},
    "BaseHook": {(2, 11): "airflow.hooks.base", (3, 1): "airflow.sdk"},
    "BaseOperator": {(2, 11): "airflow.models.baseoperator", (3, 0): "airflow.sdk"},
    "BaseOperatorLink": {(2, 11): "airflow.models.baseoperatorlink", (3, 0): "airflow.sdk"},
    "BaseSensorOperator": {(2, 11): "airflow.sensors.base", (3, 0): "airflow.sdk"},
    "PokeReturnValue": {(2, 11): "airflow.sensors.base", (3, 0): "airflow.sdk.bases.sensor"},
    "DecoratedOperator": {(2, 11): "airflow.decorators.base", (3, 0): "airflow.sdk.bases.decorator"},
    "TaskDecorator": {(2, 11): "airflow.decorators.base", (3, 0): "airflow.sdk.bases.decorator"},
    "task_decorator_factory": {(2, 11): "airflow.decorators.base", (3, 0): "airflow.sdk.bases.decorator"},
    "determine_kwargs": {(2, 11): "airflow.utils.operator_helpers", (3, 2): "airflow.sdk.bases.decorator"},
    "context_merge": {(2, 11): "airflow.utils.context", (3, 1): "airflow.sdk.definitions.context"},
    "get_parsing_context": {(2, 11): "airflow.utils.dag_parsing_context", (3, 0): "airflow.sdk"},
    "conf": {(2, 11): "airflow.configuration", (3, 2): "airflow.sdk.configuration"},
    "redact": {(2, 11): "airflow.utils.log.secrets_masker", (3, 0): "airflow.sdk.execution_time.secrets_masker",
               (3, 1): "airflow.sdk.log"},
    "render_template_to_string": {(2, 11): "airflow.template.templater",
                                  (3, 0): "airflow.sdk.definitions._internal.templater"},
    "Variable": {(2, 11): "airflow.models", (3, 0): "airflow.sdk"},
    "XCom": {(2, 11): "airflow.models.xcom", (3, 0): "airflow.sdk.execution_time.xcom"},
    "AirflowException": _EXCEPTION,
    "AirflowFailException": _EXCEPTION,
    "AirflowNotFoundException": _EXCEPTION,
    "AirflowSkipException": _EXCEPTION,
    "AirflowTaskTimeout": _EXCEPTION,
    "TaskDeferralError": _EXCEPTION,
    # See `has_timed_out`.
    "TaskDeferralTimeout": {(2, 11): "airflow.exceptions.TaskDeferralError", (3, 0): "airflow.exceptions",
                            (3, 2): "airflow.sdk.exceptions"},
    # What a question for the state of a task raises.
    "ServerError": {(2, 11): "sqlalchemy.exc.SQLAlchemyError", (3, 0): "airflow.sdk.exceptions.AirflowRuntimeError"},
    "RetryPolicy": {(3, 3): "airflow.sdk.definitions.retry_policy"},
    "RetryDecision": {(3, 3): "airflow.sdk.definitions.retry_policy"},
}  # fmt: skip


def parse_airflow_version(text: str) -> Version:
    """Return major and minor number of a version of Airflow."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


_HERE = parse_airflow_version(airflow.__version__)


def _lacking(name: str, needed: Version) -> ImportError:
    name = "TfYarnRetryPolicy" if name in ("RetryDecision", "RetryPolicy") else name
    return ImportError(f"{name} needs Airflow {needed[0]}.{needed[1]} or later; this is Airflow {airflow.__version__}")


if _HERE < OLDEST:
    raise _lacking("tf-yarn-ops", OLDEST)


def place_of(name: str, version: Version) -> tuple[str, str]:
    """Return the module of a name in a version of Airflow, and the name that it has there.

    Raises
    ------
    ImportError
        The version lacks it.
    """
    found = [place for since, place in _PLACES[name].items() if since <= version]
    if not found:
        raise _lacking(name, min(_PLACES[name]))
    module, _, last = found[-1].rpartition(".")
    return (module, last) if last[0].isupper() else (found[-1], name)


def _load(name: str) -> Any:
    module, there = place_of(name, _HERE)
    value = globals()[name] = getattr(import_module(module), there)
    return value


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _load(name)


def has_timed_out(error: BaseException) -> bool:
    """Return whether Airflow has ended a deferral at its deadline; otherwise the trigger has failed.

    Parameters
    ----------
    error : TaskDeferralError or TaskDeferralTimeout
        In 2.11 there is one class for both, and the text is Airflow's own.
    """
    if _HERE < (3, 0):
        return str(error) == "Trigger/execution timeout"
    return isinstance(error, _load("TaskDeferralTimeout"))


def _supervisor() -> Any:
    """Return this process's connection to the part of Airflow that started it; None outside of Airflow 3's tasks."""
    from airflow.sdk.execution_time import task_runner

    return getattr(task_runner, "SUPERVISOR_COMMS", None)


def read_variable(key: str) -> str | None:
    """Return an Airflow variable as Airflow's server has it, whatever this machine's environment says; None if unset.

    Raises
    ------
    ServerError
        The server does not answer.
    """
    if _HERE >= (3, 1) and (supervisor := _supervisor()) is not None:
        from airflow.sdk.exceptions import ErrorType
        from airflow.sdk.execution_time.comms import ErrorResponse, GetVariable

        try:
            answer = supervisor.send(GetVariable(key=key))
        except _load("ServerError") as error:
            if error.error.error is not ErrorType.VARIABLE_NOT_FOUND:
                raise
            return None
        return None if isinstance(answer, ErrorResponse) else answer.value
    variable = _load("Variable")
    if _HERE >= (3, 0):
        return cast("str | None", variable.get(key, default=None))
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(variable).filter(variable.key == key).first()
        return None if found is None else found.get_val()


def put_variable(key: str, value: str, description: str) -> None:
    """Set an Airflow variable on Airflow's server; without one, in a process that is no task, do nothing."""
    if _HERE >= (3, 1) and (supervisor := _supervisor()) is not None:
        from airflow.sdk.execution_time.comms import PutVariable

        supervisor.send(PutVariable(key=key, value=value, description=description))
    elif _HERE >= (3, 1):
        logger.debug("no server of Airflow for the variable %s", key)
    else:
        _load("Variable").set(key, value, description)


def task_states(*, dag_id: str, task_ids: list[str], run_ids: list[str], map_index: int | None) -> dict[str, Any]:
    """Return the states of task instances, as ``RuntimeTaskInstance.get_task_states`` does.

    Parameters
    ----------
    dag_id : str
    task_ids, run_ids : list of str
    map_index : int or None
        None for tasks that are not mapped.

    Returns
    -------
    dict
        By run id and task id; the index of a mapped task follows its id, after ``_``.
    """
    if _HERE >= (3, 0):
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        return dict(
            RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=task_ids, run_ids=run_ids, map_index=map_index)
        )
    from airflow.models import TaskInstance
    from airflow.utils.session import create_session

    states: dict[str, Any] = {run_id: {} for run_id in run_ids}
    with create_session() as session:
        rows = session.query(TaskInstance.run_id, TaskInstance.task_id, TaskInstance.state).filter(
            TaskInstance.dag_id == dag_id, TaskInstance.task_id.in_(task_ids), TaskInstance.run_id.in_(run_ids),
            TaskInstance.map_index == (-1 if map_index is None else map_index))  # fmt: skip
        for run_id, task_id, state in rows:
            states[run_id][task_id if map_index is None else f"{task_id}_{map_index}"] = state
    return states


def has_worker(task_instance: Any) -> bool:
    """Return whether Airflow keeps the state of a task; ``dag.test()`` of 2.11 runs tasks without one."""
    return _HERE >= (3, 0) or task_instance.job_id is not None


def is_replaced(task_instance: Any) -> bool:
    """Return whether Airflow has given the place of this try of a task to another try; False if it does not answer.

    In Airflow 3 each try has an id of its own, and no request for a state takes it. The check of a task's assets does,
    and answers 404 for the id of an earlier try.
    """
    if _HERE >= (3, 0):
        try:
            from airflow.sdk.execution_time.comms import ValidateInletsAndOutlets

            _supervisor().send(ValidateInletsAndOutlets(ti_id=task_instance.id))
        except _load("ServerError") as error:
            return bool((error.error.detail or {}).get("status_code") == 404)
        except (ImportError, AttributeError, OSError, EOFError):
            return False
        return False
    from airflow.models import TaskInstance
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(TaskInstance.try_number).filter_by(
            dag_id=task_instance.dag_id, task_id=task_instance.task_id, run_id=task_instance.run_id,
            map_index=task_instance.map_index).scalar()  # fmt: skip
    return found is not None and int(found) != int(task_instance.try_number)


async def ping_supervisor() -> None:
    """Return when the process that renews a triggerer's heartbeat has answered; at once before 3.3.

    It answers this request without an API server.
    """
    if _HERE < (3, 3):
        return
    from airflow.sdk.execution_time.comms import MaskSecret

    if (supervisor := _supervisor()) is not None:
        await supervisor.asend(MaskSecret(value=""))


def cancelled_triggers_query_state() -> bool:
    """Return whether a cancelled trigger asks for the state of its task, to know whether a person has ended it.

    From 3.3 on a triggerer calls ``on_kill``. Before, it only cancels the trigger, also where another triggerer
    continues. In 3.0 to 3.2 the question would make the triggerer build an API server inside itself.
    """
    return _HERE < (3, 0)
