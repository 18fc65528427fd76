"""`JobReport`: how a job ended and why, on its way from the coordinator to every reader.

The coordinator writes it into the application's diagnostics: a sentence, a newline and the report as JSON. Anybody who
may kill the application can write there too. Therefore the coordinator's report carries a secret whose hash is a tag of
the application: YARN shows tags to every reader, and nobody can change them. Clients find the report by its first key,
check the secret, and add what YARN knows (states, times, tracking URL). Times are seconds since the epoch, UTC.
"""

import json
import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from .contract import GPU
from .reasons import Reason
from .values import Amount, ContainerId, Count, Moment, TaskName, Url, plain_values, read_fields, read_value

REPORT_SCHEMA = 1
#: Bytes; YARN keeps 64 KB of diagnostics.
MAX_DIAGNOSTICS = 16 * 1024
#: Characters of the sentence in diagnostics that are too long.
MAX_MESSAGE = 800
#: The most tasks or containers that a message names, because a report must fit into YARN's diagnostics.
NAMED = 8
#: How the JSON of a report begins.
REPORT_START = '{"schema":'
#: The key of the secret in the JSON of the diagnostics, and how the tag with its hash begins.
_SECRET, VERDICT_TAG = "verdict_secret", "tfyv-"
#: Lines of the diagnostics that are read as reports, at most.
_MOST_REPORTS = 100
#: YARN's page shows each line of the diagnostics in a row of its own, and breaks no long line.
_SEPARATORS = (",\n", ":")
#: What YARN counts of an application: the unit for people, and how many of the report's own make one.
COSTS = {
    "memory_seconds": ("GiB-hours", 1024 * 3600),
    "vcore_seconds": ("vcore-hours", 3600),
    "gpu_seconds": ("GPU-hours", 3600),
}
_DIGITS = re.compile("[0-9]{1,16}\\Z")
#: The name of a reason.
_REASON = re.compile(r"[A-Z][A-Z0-9_]{1,40}\Z")
#: What a report that is too long drops next, and of which tasks: of all, or only of those that did not fail.
_DROPPED = (
    (("log_url", "address"), True),
    (("cpu_seconds", "peak_memory_mib"), False),
    (("started_at", "finished_at"), False),
)
_FAILED = ("failed", "lost")


@dataclass(frozen=True)
class TaskReport:
    """One task of the job.

    Attributes
    ----------
    task : str
        ``type:index``, for example ``worker:1``.
    state : str
        ``pending``, ``registered``, ``running``, ``succeeded``, ``failed``, ``stopped`` (ended by us), ``lost`` or
        ``killed`` (with the whole application).
    exit_code : int or None
        Of the command; None while it runs and if a signal ended it.
    signal : int or None
        The signal that ended the command.
    host, container_id : str or None
        Where it ran last.
    starts : int
        The number of times that its command was started.
    started_at, finished_at : float or None
        Of the last command.
    cpu_seconds, peak_memory_mib : float or None
        The CPU seconds and the peak memory, MiB, of the command and its descendants.
    log_url : str or None
        The NodeManager's page of the log, while the container runs.
    log_tail : str
        The last lines of its log, if it failed; in a record also those of a task that succeeded or was stopped.
    address : str or None
        ``host:port`` in the cluster spec, while its command runs: a web server that listens on YTF_PORT is reached
        there.
    """

    task: TaskName
    state: str = "pending"
    exit_code: Optional[int] = None
    signal: Optional[Count] = None
    host: Optional[str] = None
    container_id: Optional[ContainerId] = None
    starts: Count = 0
    started_at: Optional[Moment] = None
    finished_at: Optional[Moment] = None
    cpu_seconds: Optional[Amount] = None
    peak_memory_mib: Optional[Amount] = None
    log_url: Optional[Url] = None
    log_tail: str = ""
    address: Optional[str] = None


@dataclass(frozen=True)
class Round:
    """A round: one publication of the cluster spec.

    Attributes
    ----------
    number : int
        From 1.
    started_at : float
        When the cluster spec was published.
    cause : str
        Why the cluster spec was published again; ``start`` for the first.
    """

    number: Count
    started_at: Moment
    cause: str


@dataclass(frozen=True)
class JobUsage:
    """What the running tasks use together, by their last measurements.

    Attributes
    ----------
    cpu_cores : float
        Cores in use.
    memory_mib : float
        Resident memory.
    given_memory_mib : int or None
        What YARN gave these tasks; None if it is not known for each of them.
    fullest : str or None
        The task that uses the largest part of its memory.
    fullest_part : float or None
        This part; 1.0 is all.
    """

    cpu_cores: Amount = 0.0
    memory_mib: Amount = 0.0
    given_memory_mib: Optional[Count] = None
    fullest: Optional[str] = None
    fullest_part: Optional[Amount] = None


@dataclass(frozen=True)
class Alert:
    """One thing of a running job that deserves attention; see `alerts.find_alerts`.

    Attributes
    ----------
    code : str
        ``contact``, ``chief``, ``silent``, ``memory``, ``gpus``, ``slow``, ``waiting``, ``deadline``, ``metrics`` or
        ``restarts``.
    text : str
        A sentence, with the option that helps if there is one.
    tasks : tuple of str
        The tasks that it is about; empty if it is about the job.
    """

    code: str
    text: str
    tasks: Tuple[str, ...] = ()


@dataclass(frozen=True)
class JobReport:
    """The whole job.

    Attributes
    ----------
    application_id : str
    name, queue, user : str
    state : str
        YARN's: ``NEW``, ``NEW_SAVING``, ``SUBMITTED``, ``ACCEPTED``, ``RUNNING``, ``FINISHED``, ``FAILED``, ``KILLED``.
    final_status : str
        YARN's: ``UNDEFINED`` until the end, then ``SUCCEEDED``, ``FAILED`` or ``KILLED``.
    reason : Reason or None
        None until the end.
    message : str
        A sentence that names what failed first.
    tracking_url : str or None
    submitted_at, started_at, finished_at : float or None
        When the ResourceManager accepted it; when the application master started; the end.
    queue_seconds : float or None
        From submission to the start of the application master.
    memory_seconds, vcore_seconds, gpu_seconds : int or None
        What YARN has counted of the application's containers: MiB, vcores and GPUs, each times seconds; 0
        is a count. None where YARN gives none. Reports that differ in nothing else are equal.
    rounds : tuple of Round
    tasks : tuple of TaskReport
    omitted_tasks : int
        The number of tasks that ``tasks`` lacks, because YARN's diagnostics are small. The job's record has them all,
        except after a kill in the first 10 s, which leaves no snapshot.
    first_failure : str or None
        The task that failed first.
    metrics : mapping or None
        Of the chief, else of worker 0, else of the first awaited task that wrote some: the last value of each metric,
        and the JSON object in YTF_RESULT_FILE, whose values win. The values of the job's secret variables are masked.
    tensorboard_url, output_path : str or None
    working_path : str or None
        Where the work of a job with ``commit`` lies that is not committed.
    working_bytes : int or None
        Its size, as the coordinator found it within the last minute, or at the end.
    tensorboard_logdir : str or None
        The folder that TensorBoard shows, if it is not ``output_path``.
    killed_by_attempt : int or None
        The engine's attempt whose client killed the application; None for every other end.
    usage : JobUsage or None
        Only in a report of a running job that the coordinator has given to a client.
    alerts : tuple of Alert
        What deserves attention now; like ``usage`` and ``progress`` of running jobs only.
    progress : str
        ``step 300 of 1000, about 14 min 0 s left``; empty unless the program writes ``step`` and ``steps``.
    excluded_nodes : mapping of str to str
        Why no new container of these nodes is taken, by ``host:port`` of their pages; see ``exclude_node_after``.
    memory_mib : mapping of str to int
        The memory of the largest task of each type; only of jobs with ``memory_growth``, which may change it.
    versions : mapping of str to str
        Of this package, Skein and Python in the application master.
    """

    application_id: str
    name: str = ""
    queue: str = ""
    user: str = ""
    state: str = ""
    final_status: str = "UNDEFINED"
    reason: Optional[Reason] = None
    message: str = ""
    tracking_url: Optional[Url] = None
    submitted_at: Optional[Moment] = None
    started_at: Optional[Moment] = None
    finished_at: Optional[Moment] = None
    queue_seconds: Optional[Amount] = None
    # YARN counts on for a moment after the verdict, so two readings of one end may differ in these three.
    memory_seconds: Optional[Count] = field(default=None, compare=False)
    vcore_seconds: Optional[Count] = field(default=None, compare=False)
    gpu_seconds: Optional[Count] = field(default=None, compare=False)
    rounds: Tuple[Round, ...] = ()
    tasks: Tuple[TaskReport, ...] = ()
    omitted_tasks: Count = 0
    first_failure: Optional[str] = None
    metrics: Optional[Mapping[str, Any]] = None
    tensorboard_url: Optional[Url] = None
    output_path: Optional[str] = None
    working_path: Optional[str] = None
    working_bytes: Optional[Count] = None
    tensorboard_logdir: Optional[str] = None
    killed_by_attempt: Optional[int] = None
    usage: Optional[JobUsage] = None
    alerts: Tuple[Alert, ...] = ()
    progress: str = ""
    excluded_nodes: Mapping[str, str] = field(default_factory=dict)
    memory_mib: Mapping[str, Count] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return one line; `to_dict` has the rest."""
        how = self.reason.value if self.reason else self.state
        return f"<JobReport {self.application_id} {how}{f': {self.message[:200]}' if self.message else ''}>"

    @property
    def master_log(self) -> str:
        """The log of the application master that says why it failed: Skein's if the coordinator wrote no report."""
        return "coordinator" if self.versions or self.reason is None else "master"

    @property
    def exit_code(self) -> int:
        """Exit code of a program that ends with this report; 0 while the job runs."""
        return self.reason.exit_code if self.reason else 0

    @property
    def retryable(self) -> bool:
        """Whether the infrastructure failed, so that the same job may be submitted again."""
        return bool(self.reason and self.reason.retryable)

    def to_dict(self) -> Dict[str, Any]:
        """Return plain values for JSON, with ``schema`` as the first key and ``retryable``."""
        document: Dict[str, Any] = {"schema": REPORT_SCHEMA}
        for name, value in plain_values(self).items():
            document[name] = value
            if name == "message":
                document["retryable"] = self.retryable
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "JobReport":
        """Return the report of a document; leave out what does not fit its field, and keys of a later version.

        Raises
        ------
        ValueError
            The document is not a report of this schema.
        """
        if document.get("schema") != REPORT_SCHEMA or not isinstance(document.get("application_id"), str):
            raise ValueError(f"not a report of schema {REPORT_SCHEMA}")
        document = name_unknown_reason(document)
        return cls(**read_fields(cls, document, f"the report of {document['application_id'][:100]}"))


def name_unknown_reason(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a report's document with a reason that this release knows; the message names the one that it replaces.

    Only the document says whether a retry can help. The end of a job that has succeeded follows YARN's own state.
    """
    reason = document.get("reason")
    if (
        not isinstance(reason, str)
        or reason in Reason.__members__
        or not _REASON.match(reason)
        or document.get("final_status") == "SUCCEEDED"
    ):
        return document
    known = Reason.AM_FAILED if document.get("retryable") is True else Reason.UNKNOWN_REASON
    message = f"{reason}, a reason of a newer release: {document.get('message') or 'without a message'}"
    return {**document, "reason": known.value, "message": message}


def from_milliseconds(value: Any) -> Optional[float]:
    """Return a time of YARN in seconds since the epoch; None for 0, -1 and what is no number."""
    return value / 1000 if isinstance(value, int) and value > 0 else None


def yarn_times(application: Mapping[str, Any], started: Optional[float]) -> Dict[str, Any]:
    """Return the report's ``submitted_at``, ``started_at`` and ``queue_seconds`` by YARN's object of an application.

    The result is empty if YARN does not say when it was submitted.

    Parameters
    ----------
    application : mapping
    started : float or None
        When the application master began, for releases of Hadoop without ``launchTime``.
    """
    submitted, begun = (from_milliseconds(application.get(name)) for name in ("startedTime", "launchTime"))
    begun = begun or started
    waited = round(max(0.0, begun - submitted), 3) if begun and submitted else None
    return {"submitted_at": submitted, "started_at": begun, "queue_seconds": waited} if submitted else {}


def yarn_cost(application: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the report's ``memory_seconds``, ``vcore_seconds`` and ``gpu_seconds`` by YARN's object of an application.

    Parameters
    ----------
    application : mapping
        Of somebody else's application YARN says -1. ``resourceSecondsMap`` is ``{"entry": ...}``, one entry or a list,
        with texts as values.
    """
    found = application.get("resourceSecondsMap")
    entries = found.get("entry") if isinstance(found, dict) else None
    entries = entries if isinstance(entries, list) else [entries]
    gpus = next((one.get("value") for one in entries if isinstance(one, dict) and one.get("key") == GPU), None)
    return {
        "memory_seconds": read_value(Count, application.get("memorySeconds")),
        "vcore_seconds": read_value(Count, application.get("vcoreSeconds")),
        "gpu_seconds": read_value(Count, int(gpus) if isinstance(gpus, str) and _DIGITS.match(gpus) else gpus),
    }


def describe_cost(job: Mapping[str, Any]) -> Dict[str, str]:
    """Return what YARN has counted of a job, for people: texts by unit, such as ``GiB-hours``; empty for none."""
    found = {unit: (job.get(name) or 0) / size for name, (unit, size) in COSTS.items()}
    return {
        unit: "" if not value else f"{value:.3g}" if value < 1000 else f"{value:.0f}" for unit, value in found.items()
    }


def run_seconds(job: Mapping[str, Any], now: Optional[float] = None) -> Optional[float]:
    """Return how long a job has run, seconds; every page and command shows this one number.

    Parameters
    ----------
    job : mapping
        Fields of a report: from ``started_at`` (the launch of the application master; ``submitted_at`` if it is not
        known) to ``finished_at``.
    now : float, optional
        Counts as the end of a job that runs. Default: such a job has no length, None.
    """
    begin, end = job.get("started_at") or job.get("submitted_at"), job.get("finished_at") or now
    return max(0.0, end - begin) if begin and end else None


def verdict_tag(secret: str) -> str:
    """Return the YARN tag by which readers know the coordinator's report: ``tfyv-``, 40 digits of the SHA-256."""
    import hashlib  # it loads OpenSSL, which no program needs for its help

    return VERDICT_TAG + hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()[:40]


def compose_diagnostics(report: JobReport, limit: int = MAX_DIAGNOSTICS, secret: str = "") -> str:
    """Return the diagnostics of the application: the sentence, a newline, the report as JSON; see `shorten_report`.

    Parameters
    ----------
    report : JobReport
    limit : int, optional
        Bytes. Default 16 KiB.
    secret : str, optional
        The secret of `verdict_tag`, which only the coordinator has. Default: none, for a client's kill.
    """
    return _diagnostics(shorten_report(report, limit - len(_SECRET + secret) - len('"":"",\n')), secret)


def shorten_report(report: JobReport, limit: int, write: Optional[Callable[[JobReport], str]] = None) -> JobReport:
    """Return a report of at most ``limit`` bytes.

    A longer one first loses the log tails (that of the first failure last), then addresses of logs, then measurements
    and times of tasks that did not fail, then tasks (failed ones last), then the metrics. It keeps the states, exit
    codes and containers of its tasks; ``omitted_tasks`` counts the others.

    Parameters
    ----------
    report : JobReport
    limit : int
    write : callable, optional
        Returns the text that is measured. Default: the diagnostics.
    """

    def fits(short: JobReport) -> bool:
        return len((write or _diagnostics)(short).encode()) <= limit

    def keep(number: int) -> JobReport:
        names = {task.task for task in order[:number]}
        tasks = tuple(task for task in report.tasks if task.task in names)
        return replace(report, tasks=tasks, omitted_tasks=report.omitted_tasks + len(report.tasks) - len(tasks))

    if fits(report):
        return report
    if len(report.message) > MAX_MESSAGE:
        report = replace(report, message=report.message[:MAX_MESSAGE] + "...")
    for tail in (3072, 0):
        tasks = (
            replace(task, log_tail=task.log_tail[-tail:] if tail and task.task == report.first_failure else "")
            for task in report.tasks
        )
        report = replace(report, tasks=tuple(tasks))
        if fits(report):
            return report
    for names, everywhere in _DROPPED:
        nothing: Dict[str, Any] = dict.fromkeys(names)
        tasks = (replace(task, **nothing) if everywhere or task.state not in _FAILED else task for task in report.tasks)
        report = replace(report, tasks=tuple(tasks))
        if fits(report):
            return report
    order = sorted(report.tasks, key=lambda task: (task.task != report.first_failure, task.state not in _FAILED))
    for metrics in (report.metrics, None):
        report = replace(report, metrics=metrics)
        least, most = 0, len(order)
        while least < most:
            middle = (least + most + 1) // 2
            least, most = (middle, most) if fits(keep(middle)) else (least, middle - 1)
        if fits(keep(least)):
            return keep(least)
    return _bare(keep(0))


def _bare(report: JobReport) -> JobReport:
    """Return a report without tasks and metrics with short texts; a letter may take 12 bytes in JSON."""
    return replace(
        report,
        excluded_nodes={},
        memory_mib={},
        rounds=tuple(replace(item, cause=item.cause[:200]) for item in report.rounds[-1:]),
        message=report.message[:200],
        name=report.name[:200],
        output_path=report.output_path and report.output_path[:200],
        working_path=report.working_path and report.working_path[:300],
    )


def _diagnostics(report: JobReport, secret: str = "") -> str:
    values = report.to_dict()
    values["tasks"] = [
        {name: value for name, value in task.items() if value not in (None, "")} for task in values["tasks"]
    ]
    if secret:
        values[_SECRET] = secret
    # YARN's protocol buffers refuse text that is not UTF-8, and a program's output may not be.
    sentence = " ".join(values["message"].split())
    page = f"\nIts page: {report.tracking_url}" if report.tracking_url else ""
    return f"{sentence}{page}\n{json.dumps(values, separators=_SEPARATORS)}"


def parse_diagnostics(text: str, application_id: str, tags: Iterable[str] = ()) -> Tuple[Optional[JobReport], bool]:
    """Return the report of an application in its diagnostics, and whether its coordinator wrote it.

    A report stands at the start of a line, which a sentence that quotes another report cannot reach. YARN may put text
    in front (``Attempt recovered after RM restart``) and behind.

    Parameters
    ----------
    text : str
        The diagnostics.
    application_id : str
        Reports of other applications do not count.
    tags : iterable of str, optional
        The application's tags. Default: none, so that no report counts as the coordinator's.

    Returns
    -------
    tuple of (JobReport or None, bool)
        The report with the secret of one of the tags, else the first one, else None.
    """
    known, first = set(tags), None
    # Each that is no JSON costs a look at the whole text, which a killer may fill with them.
    for found in islice(re.finditer("^" + re.escape(REPORT_START), text, re.MULTILINE), _MOST_REPORTS):
        try:
            document, _ = json.JSONDecoder().raw_decode(text, found.start())
            report = JobReport.from_dict(document)
        except (ValueError, TypeError, AttributeError, RecursionError):
            continue
        if report.application_id == application_id:
            if verdict_tag(str(document.get(_SECRET))) in known:
                return report, True
            first = first or report
    return first, False


def small_document(report: JobReport, limit: int) -> Dict[str, Any]:
    """Return a report as plain values of at most so many bytes of JSON, for an engine's database."""
    return shorten_report(report, limit, lambda short: json.dumps(short.to_dict())).to_dict()


def list_names(items: Sequence[Any], name: Callable[[Any], str] = str) -> str:
    """Return the names of the first items, and the number of the others: ``ps:0, worker:0 and 12 more``."""
    more = len(items) - NAMED
    return ", ".join(map(name, items[:NAMED])) + (f" and {more} more" if more > 0 else "")


def flatten(values: Mapping[str, Any], above: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield the names and values of nested mappings; the names are joined by dots."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
