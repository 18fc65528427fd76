"""Launch distributed TensorFlow on YARN, from a workflow engine, a shell or Python.

The public names are imported when they are first used, so that ``import tf_yarn_ops`` stays light:
schedulers import it with every DAG.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        ApplicationNotFound,
        Cancelled,
        ClusterUnreachable,
        Fault,
        FunctionFailed,
        HadoopClientUnfit,
        KerberosRefused,
        LogMissing,
        MiniClusterError,
        ResourceManagerUnknown,
        ResourcesImpossible,
        SpecInvalid,
        SubmissionRejected,
        Superseded,
        TfYarnError,
        TicketMissing,
        WaitTimeout,
    )
    from .hadoop.cluster import Cluster, discover, local
    from .job.parts import Acls, Deadlines, Environment, Resources, RestartPolicy, TensorBoard
    from .job.spec import JobSpec, TaskSpec
    from .launch.function import FunctionOutcome, run
    from .launch.identity import Identity
    from .launch.launcher import Launcher
    from .runtime.common.reasons import Reason
    from .runtime.common.report import JobReport, TaskReport

__version__ = "0.1.0"

__all__ = [
    "Acls",
    "ApplicationNotFound",
    "Cancelled",
    "Cluster",
    "ClusterUnreachable",
    "Deadlines",
    "Environment",
    "Fault",
    "FunctionFailed",
    "FunctionOutcome",
    "HadoopClientUnfit",
    "Identity",
    "JobReport",
    "JobSpec",
    "KerberosRefused",
    "Launcher",
    "LogMissing",
    "MiniClusterError",
    "Reason",
    "ResourceManagerUnknown",
    "Resources",
    "ResourcesImpossible",
    "RestartPolicy",
    "SpecInvalid",
    "SubmissionRejected",
    "Superseded",
    "TaskReport",
    "TaskSpec",
    "TensorBoard",
    "TfYarnError",
    "TicketMissing",
    "WaitTimeout",
    "__version__",
    "discover",
    "local",
    "run",
]

#: The module of each public name that is not in `errors`.
_MODULES = {
    "Acls": "job.parts",
    "Cluster": "hadoop.cluster",
    "Deadlines": "job.parts",
    "Environment": "job.parts",
    "FunctionOutcome": "launch.function",
    "Identity": "launch.identity",
    "JobReport": "runtime.common.report",
    "JobSpec": "job.spec",
    "Launcher": "launch.launcher",
    "Reason": "runtime.common.reasons",
    "Resources": "job.parts",
    "RestartPolicy": "job.parts",
    "TaskReport": "runtime.common.report",
    "TaskSpec": "job.spec",
    "TensorBoard": "job.parts",
    "discover": "hadoop.cluster",
    "local": "hadoop.cluster",
    "run": "launch.function",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
