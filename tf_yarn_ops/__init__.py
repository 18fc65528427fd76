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
        CommitRefused,
        CredentialsRefused,
        Fault,
        FunctionFailed,
        HadoopClientUnfit,
        KerberosRefused,
        KmsUnreachable,
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
    "CommitRefused",
    "CredentialsRefused",
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
    "KmsUnreachable",
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

#: The public names of each module; all others are in `errors`.
_NAMES = {
    "hadoop.cluster": ("Cluster", "discover", "local"),
    "job.parts": ("Acls", "Deadlines", "Environment", "Resources", "RestartPolicy", "TensorBoard"),
    "job.spec": ("JobSpec", "TaskSpec"),
    "launch.function": ("FunctionOutcome", "run"),
    "launch.identity": ("Identity",),
    "launch.launcher": ("Launcher",),
    "runtime.common.reasons": ("Reason",),
    "runtime.common.report": ("JobReport", "TaskReport"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = next((module for module, names in _NAMES.items() if name in names), "errors")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
