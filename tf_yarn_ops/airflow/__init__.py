"""The Airflow provider: `TensorFlowYarnOperator`, its decorators, hook, trigger, links and exceptions.

Input: the arguments of a task, its connection and its task instance. Output: a job on YARN, the report as XCom, the
lines of the task's log and the exception that ends the task. This room never submits, watches or kills by rules of its
own: `launch` and `follow` do.

When the DAG is parsed, `operator` (or `decorator`) checks the arguments. In the Airflow worker, `execution` makes the
job (`job`), connects (`hook`) and submits it, and reports to Airflow (`task_instance`, `links`). In the triggerer,
`trigger` waits; its arguments are plain values (`serialization`). At the end, `outcome` turns the report into
an XCom, log lines and an exception.

The public names are loaded on first use: every start of an Airflow task imports this package for the description of
the provider.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "TensorFlowYarnOperator": "operator",
    "TensorFlowYarnTrigger": "trigger",
    "TensorFlowYarnSensor": "sensor",
    "TensorFlowYarnCleanupOperator": "cleanup",
    "YarnHook": "hook",
    "TrainingLink": "links",
    "YarnApplicationLink": "links",
    "YarnLogsLink": "links",
    "TensorBoardLink": "links",
    "TfYarnRetryPolicy": "retry_policy",
    "TfYarnJobFailed": "exceptions",
    "TfYarnInfrastructureError": "exceptions",
    "tf_yarn_task": "decorator",
    "tf_yarn_cmd_task": "decorator",
}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_NAMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
