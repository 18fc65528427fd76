"""`run`: train a Python function on the tasks of a job, and return its value."""

import inspect
import logging
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import FunctionFailed, SpecInvalid
from ..hadoop.cluster import Cluster, discover
from ..job.spec import MAX_LOG_TAIL, JobSpec
from ..runtime.common.contract import FUNCTION_FOLDER, FUNCTION_PICKLE, RETURNED, runtime_command
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.progress import Lines
from .launcher import Launcher

if TYPE_CHECKING:
    from .identity import Identity

logger = logging.getLogger(__name__)

#: The command of each task; the agent knows the interpreter of the job's environment.
FUNCTION_COMMAND = runtime_command(f"function {sys.version_info[0]}.{sys.version_info[1]}", "-u")
#: Fixed, so that the same function makes the same archive.
_TIMELESS = (2000, 1, 1, 0, 0, 0)


class FunctionOutcome(NamedTuple):
    """The value that the chief's function returned (without a chief worker 0's), and the report of the job."""

    value: Any
    report: JobReport


def run(
    function: Callable[..., Any],
    tasks: Mapping[str, Any],
    *,
    args: Sequence[Any] | Mapping[str, Any] = (),
    environment: Any = None,
    cluster: Cluster | str | None = None,
    identity: "Identity | None" = None,
    on_change: Callable[[JobReport], None] | None = None,
    **options: Any,
) -> FunctionOutcome:
    """Call a function in every task of a job, and wait for the end.

    The function travels by cloudpickle, with what it uses of its own module; other modules must be in the environment
    or among ``files``. A parameter ``context`` gets a `runtime.agent.function_task.TaskContext`. A terminal
    shows a line per change; elsewhere the log of this module gets the lines, with level INFO.

    Parameters
    ----------
    function : callable
    tasks : mapping
        As in `JobSpec`: ``{"chief": 1, "worker": 4}``.
    args : sequence or mapping, optional
        The arguments, by position or by name. Default: none.
    environment : Environment or str, optional
        With the Python release of this process. Default: the nodes' own Python.
    cluster : Cluster or str, optional
        An address of the ResourceManager, or ``local://``. Default: as in `discover`.
    identity, on_change : optional
        As in `Launcher.run`; ``on_change`` replaces the table and the lines.
    **options
        Other fields of `JobSpec`.

    Returns
    -------
    FunctionOutcome
        The value is what JSON can hold, at most 8 KiB of it: tuples come back as lists.

    Raises
    ------
    FunctionFailed
        The job failed; with the traceback of the task that failed first.
    SpecInvalid
        The function can't be pickled or called with these arguments, or the job has faults.
    SubmissionRejected, ResourcesImpossible, ClusterUnreachable, Superseded, Cancelled
        As in `Launcher.run`.
    """
    positional, named = ((), args) if isinstance(args, Mapping) else (args, {})
    with TemporaryDirectory(prefix="ytf-function-") as folder:
        archives = {**options.pop("archives", {}), FUNCTION_FOLDER: pack_function(function, positional, named, folder)}
        job = JobSpec.from_dict(
            {
                "tasks": tasks,
                "command": FUNCTION_COMMAND,
                "environment": environment,
                "archives": archives,
                "name": getattr(function, "__name__", "function"),
                "report_log_tail": MAX_LOG_TAIL,
                **options,
            }
        )
        with closing(Launcher(cluster if isinstance(cluster, Cluster) else discover(cluster))) as launcher:
            show = Lines(None if sys.stderr.isatty() else partial(logger.info, "%s")).show
            report = launcher.run(job, identity, on_change=on_change or show)
    if report.reason is not Reason.SUCCEEDED:
        raise FunctionFailed(report)
    return FunctionOutcome(returned_value(report.metrics), report)


def pack_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], folder: str) -> str:
    """Write a function, its arguments and cloudpickle into an archive in ``folder``; return its path.

    Raises
    ------
    SpecInvalid
        cloudpickle is missing, or the function can't be pickled or called with these arguments.
    """
    try:
        import cloudpickle
    except ImportError:
        raise SpecInvalid("a function travels by cloudpickle, which is missing here: pip install cloudpickle") from None
    try:
        signature = inspect.signature(function)
        parameter = signature.parameters.get("context")
        wanted = parameter is not None and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        given = signature.bind_partial(*args, **kwargs).arguments
        context = {"context": None} if wanted and "context" not in given else {}
        signature.bind(*args, **kwargs, **context)
        with _by_value(cloudpickle, sys.modules.get(getattr(function, "__module__", ""))):
            pickled = cloudpickle.dumps((function, tuple(args), dict(kwargs), bool(context)))
    except Exception as error:  # cloudpickle lets through what the objects themselves raise
        raise SpecInvalid(f"{getattr(function, '__name__', function)!s} can't be sent to the tasks: {error}") from error
    members = {f"cloudpickle/{file.name}": file.read_bytes() for file in Path(cloudpickle.__file__).parent.glob("*.py")}
    path = Path(folder) / "function.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {FUNCTION_PICKLE: pickled, **dict(sorted(members.items()))}.items():
            archive.writestr(zipfile.ZipInfo(name, _TIMELESS), content, zipfile.ZIP_DEFLATED)
    return str(path)


@contextmanager
def _by_value(cloudpickle: ModuleType, module: ModuleType | None) -> Iterator[None]:
    """Pickle what a module of the user's own defines by value: no task could import a notebook's or a DAG's module."""
    file = getattr(module, "__file__", None) or ""
    installed = any(file.startswith(sysconfig.get_path(place)) for place in ("stdlib", "purelib", "platlib"))
    ours = module is not None and not installed and module.__name__ not in cloudpickle.list_registry_pickle_by_value()
    if ours:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        if ours:
            cloudpickle.unregister_pickle_by_value(module)


def returned_value(metrics: Mapping[str, Any] | None) -> Any:
    """Return the value that `function_task.dump_value` has written; None if the function returned nothing."""
    return (metrics or {}).get(RETURNED)
