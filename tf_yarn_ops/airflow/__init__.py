"""The Airflow provider: `TensorFlowYarnOperator` and what stands around it.

The public names are found when they are first used: Airflow imports this package at every
start of a task, to read the provider's description.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "TensorFlowYarnOperator": "operator",
    "TensorFlowYarnTrigger": "trigger",
    "YarnHook": "hook",
    "YarnApplicationLink": "links",
    "YarnLogsLink": "links",
    "TensorBoardLink": "links",
    "TfYarnRetryPolicy": "retry",
    "TfYarnJobFailed": "exceptions",
    "TfYarnInfrastructureError": "exceptions",
    "tf_yarn_task": "decorator",
}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_NAMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
