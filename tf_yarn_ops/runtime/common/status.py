"""The status of a job, the document of ``status.json``: its report with what waits, the timeline, usage and metrics.

The coordinator builds it for its page and, when the job ends, for the history; the page, the commands and the history
read it. It is a report with more keys, so that every reader of a report reads it too. All values are plain; times are
seconds since the epoch, UTC.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .alerts import all_idle, describe_progress, find_alerts
from .clock import duration, utc_clock
from .reasons import Reason
from .report import JobReport, JobUsage, TaskReport, list_names, name_unknown_reason, run_seconds
from .values import Amount, Count, Moment, Point, TaskName, Url, fit_document, plain_values

#: Version of the keys that a status adds to the report. A new key does not change it.
STATUS_SCHEMA = 1
#: The header of each answer of a coordinator's page, with the application's id.
APPLICATION_HEADER = "YTF-Application"

PENDING, REQUESTED, ALLOCATED, REGISTERED, RUNNING = "pending", "requested", "allocated", "registered", "running"
SUCCEEDED, FAILED, STOPPED, LOST, KILLED = "succeeded", "failed", "stopped", "lost", "killed"
#: The states of a task that has not ended.
LIVE_TASK = (PENDING, REGISTERED, RUNNING)
#: The kinds that end a command.
ENDS = (SUCCEEDED, FAILED, STOPPED, LOST, KILLED)


class TaskEvent(NamedTuple):
    """A moment in the life of a task.

    Attributes
    ----------
    kind : str
        ``requested``, ``allocated``, ``registered``, ``running``, or one of `ENDS`.
    at : float
    host : str or None
        The node, once it is known.
    round : int or None
        The number of the round in which the command runs.
    exit_code, signal : int or None
        How the command ended.
    cause : str or None
        Why the task was lost, failed, or runs again.
    """

    kind: str
    at: Moment
    host: Optional[str] = None
    round: Optional[Count] = None
    exit_code: Optional[int] = None
    signal: Optional[Count] = None
    cause: Optional[str] = None

    def to_dict(self) -> Dict[str, Any]:
        """Return the fields that have a value."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Given(NamedTuple):
    """What YARN gave a task: memory in MiB, vcores, GPUs."""

    memory_mib: Count
    vcores: Count
    gpus: Count = 0


class Usage(NamedTuple):
    """What the processes of a task use.

    Attributes
    ----------
    at : float
        When it was measured.
    cpu_cores : float
        Cores in use since the measurement before.
    memory_mib : float
        Resident memory of all processes of the command now.
    peak_cpu_cores, peak_memory_mib : float
        The highest values since the command was started last.
    cpu_seconds : float
        Of the command since its start.
    idle_seconds : float
        Since the command used CPU or GPUs, or wrote to its log or metrics.
    gpus : int or None
        The GPUs that ``nvidia-smi`` shows the task; None, like the next four, where there is none.
    gpu_percent : float or None
        Their mean use.
    gpu_memory_mib, gpu_given_mib : float or None
        Their memory in use, and all of it.
    gpu_uuids : str or None
        Their names, the same in each container of a node.
    """

    at: Moment
    cpu_cores: Amount
    memory_mib: Amount
    peak_cpu_cores: Amount
    peak_memory_mib: Amount
    cpu_seconds: Amount
    idle_seconds: Amount = 0.0
    gpus: Optional[Count] = None
    gpu_percent: Optional[Amount] = None
    gpu_memory_mib: Optional[Amount] = None
    gpu_given_mib: Optional[Amount] = None
    gpu_uuids: Optional[str] = None


class Series(NamedTuple):
    """The curve of one metric of one task.

    Attributes
    ----------
    task, name : str
    points : sequence of sequence of float
        ``[step, value]``, in the order in which the program wrote them. Thinned where there are too many.
    step, value, at : float
        Of the last point; the value may be infinite or no number, a text in documents.
    since : tuple of float or None
        Step and time of the first point of this start of the program.
    """

    task: TaskName
    name: str
    points: Sequence[Point]
    step: float
    value: Union[float, str]
    at: Moment
    since: Optional[Tuple[float, float]] = None


class Waiting(NamedTuple):
    """What the job waits for: texts such as ``worker:1 (container requested)``, and since when."""

    tasks: Sequence[str]
    since: Moment


@dataclass(frozen=True)
class TaskStatus(TaskReport):
    """The fields of a task of ``status.json``, with their types."""

    events: Tuple[TaskEvent, ...] = ()
    given: Optional[Given] = None
    usage: Optional[Usage] = None
    silent_seconds: Optional[Amount] = None


@dataclass(frozen=True)
class JobStatus(JobReport):
    """The fields of ``status.json`` and of a record, with their types; see docs/reference/status.md."""

    schema: Optional[int] = None
    retryable: bool = False
    tasks: Tuple[TaskStatus, ...] = ()
    status_schema: Optional[int] = None
    at: Optional[Moment] = None
    sentence: str = ""
    waiting: Optional[Waiting] = None
    verdict: Optional[Mapping[str, Any]] = None
    series: Tuple[Series, ...] = ()
    metrics_left_out: Count = 0
    cluster_spec: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    deadlines: Mapping[str, Tuple[Moment, Moment]] = field(default_factory=dict)
    restarts_left: Optional[Count] = None
    lasting_page: Optional[Url] = None
    record_schema: Optional[int] = None
    written_by: Optional[str] = None
    written_at: Optional[Moment] = None


def read_status(document: Mapping[str, Any], what: str) -> Dict[str, Any]:
    """Return a document of ``status.json``, or a record, that others have written: what fits the types of `JobStatus`.

    Parameters
    ----------
    document : mapping
    what : str
        What it is, for the log line about what does not fit.
    """
    return fit_document(JobStatus, name_unknown_reason(document), what)


def build_status(
    report: JobReport,
    at: float,
    *,
    waiting: Optional[Waiting] = None,
    events: Mapping[str, Sequence[TaskEvent]] = {},
    given: Mapping[str, Given] = {},
    usage: Mapping[str, Usage] = {},
    series: Sequence[Series] = (),
    left_out: int = 0,
    cluster_spec: Mapping[str, Sequence[str]] = {},
    options: Mapping[str, Any] = {},
    deadlines: Mapping[str, Tuple[float, float]] = {},
    restarts_left: Optional[int] = None,
    silent: Mapping[str, float] = {},
) -> Dict[str, Any]:
    """Return the document of ``status.json``: the report, and what the coordinator knows beyond it.

    Parameters
    ----------
    report : JobReport
    at : float
        The moment of the status.
    waiting : Waiting, optional
        Default: the job waits for nothing.
    events : mapping of str to sequence of TaskEvent, optional
        By task, ``worker:1``, like `given`, `usage` and `silent`.
    given : mapping of str to Given, optional
    usage : mapping of str to Usage, optional
    series : sequence of Series, optional
    left_out : int, optional
        Lines and points of metrics that were not kept: broken, too long or too many.
    cluster_spec : mapping of str to sequence of str, optional
    options : mapping, optional
        The options of the job, secrets masked.
    deadlines : mapping of str to tuple of float, optional
        When each deadline of the whole job began and when it ends the job.
    restarts_left : int, optional
        Default: the job does not start again after failures.
    silent : mapping of str to float, optional
        Seconds without a message of an agent; only of agents that are silent for longer than their pings.

    Returns
    -------
    dict
        The keys of `JobReport.to_dict`, and those of docs/reference/status.md; plain values for JSON.
    """
    document = report.to_dict()
    for task in document["tasks"]:
        name = task["task"]
        task.update(
            events=[event.to_dict() for event in events.get(name, ())],
            given=given[name]._asdict() if name in given else None,
            usage=usage[name]._asdict() if name in usage else None,
            silent_seconds=silent.get(name),
        )
    document.update(
        status_schema=STATUS_SCHEMA,
        at=round(at, 3),
        sentence=describe_state(report, at, waiting, idle=all_idle(document["tasks"])),
        progress="" if report.reason else describe_progress(series, at),
        waiting={"tasks": list(waiting.tasks), "since": round(waiting.since, 3)} if waiting else None,
        verdict=build_verdict(report),
        series=[{**item._asdict(), "points": [list(point) for point in item.points]} for item in series],
        metrics_left_out=left_out,
        usage=total_usage(report, given, usage),
        cluster_spec={name: list(hosts) for name, hosts in cluster_spec.items()},
        options=dict(options),
        deadlines={name: list(times) for name, times in deadlines.items()},
        restarts_left=restarts_left,
    )
    document["alerts"] = [asdict(alert) for alert in find_alerts(document)]
    return dict(plain_values(document))


def total_usage(report: JobReport, given: Mapping[str, Given], usage: Mapping[str, Usage]) -> Optional[Dict[str, Any]]:
    """Return the values of `JobUsage` for the tasks that run and are measured; None if there is no such task."""
    measured = {task.task: usage[task.task] for task in report.tasks if task.state == "running" and task.task in usage}
    if not measured:
        return None
    parts = {
        name: used.memory_mib / given[name].memory_mib
        for name, used in measured.items()
        if name in given and given[name].memory_mib
    }
    fullest = max(parts, key=lambda name: parts[name]) if parts else None
    return asdict(
        JobUsage(
            round(sum(used.cpu_cores for used in measured.values()), 3),
            round(sum(used.memory_mib for used in measured.values()), 1),
            sum(given[name].memory_mib for name in parts) if len(parts) == len(measured) else None,
            fullest,
            round(parts[fullest], 3) if fullest else None,
        )
    )


def build_verdict(report: JobReport) -> Optional[Dict[str, Any]]:
    """Return why the job ended and the next step; None while it runs."""
    if report.reason is None:
        return None
    task = f" --task {report.first_failure}" if report.first_failure else ""
    return {
        "reason": report.reason.value,
        "message": report.message,
        "task": report.first_failure,
        "hint": report.reason.hint,
        "next": None if report.reason is Reason.SUCCEEDED else f"ytf logs {report.application_id}{task}",
    }


def describe_state(report: JobReport, at: float, waiting: Optional[Waiting] = None, *, idle: bool = False) -> str:
    """Return what the job does or how it ended, in one sentence.

    Parameters
    ----------
    report : JobReport
    at : float
        Now, seconds since the epoch.
    waiting : Waiting, optional
    idle : bool, optional
        Whether no task trains: all have used no CPU and written nothing for a while.
    """
    if report.reason is not None:
        seconds = run_seconds(vars(report))
        took = "" if seconds is None else f" after {duration(seconds)}"
        if report.reason is Reason.SUCCEEDED:
            return f"The job succeeded{took}."
        first = f": {report.first_failure} failed first" if report.first_failure else ""
        return f"The job ended with {report.reason.value}{took}{first}."
    if report.state in ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"):
        return f"The job waits in queue {report.queue} for its application master."
    if waiting is not None and waiting.tasks:
        return (
            f"The job waits for {list_names(waiting.tasks)} since {utc_clock(waiting.since)} UTC "
            f"({duration(at - waiting.since)})."
        )
    running = sum(task.state == "running" for task in report.tasks)
    restarts = f", round {len(report.rounds)}" if len(report.rounds) > 1 else ""
    tasks = f"{running} of {len(report.tasks)} tasks run{restarts}"
    return f"The job is idle: {tasks}, and none uses CPU." if idle else f"The job trains: {tasks}."
