"""A report as text for people: what became of each task, what failed first, what to type next."""

import shlex
import time
from collections.abc import Iterator

from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, TaskReport

#: How wide the timeline of a task is drawn, characters.
WIDTH = 32
#: Lines of the failed task's log.
LOG_LINES = 20

#: The next command per reason; {app} and {task} are filled in.
NEXT = {
    Reason.TASK_FAILED: "ytf logs {app} --task {task}",
    Reason.OUT_OF_MEMORY: "ytf logs {app} --task {task}",
    Reason.SPEC_INVALID: "ytf-submit -h",
    Reason.SUBMISSION_REJECTED: "ytf-submit --dry-run ...",
    Reason.RESOURCES_IMPOSSIBLE: "ytf-submit --dry-run ...",
    Reason.CLUSTER_UNREACHABLE: "ytf list --resourcemanager http://HOST:8088",
    Reason.AM_FAILED: "ytf logs {app} --task coordinator",
    Reason.LOST: "ytf list",
}
_DEFAULT_NEXT = "ytf logs {app}"


def clock(moment: float | None) -> str:
    """Give the local time of day, or a dash."""
    return time.strftime("%H:%M:%S", time.localtime(moment)) if moment else "-"


def duration(seconds: float | None) -> str:
    """Give seconds as people say them: ``2.4 s``, ``3 min 10 s``, ``5 h 2 min``."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def ending(task: TaskReport) -> str:
    """Give how a task ended: ``exit 1``, ``signal 9``, or nothing while it runs."""
    if task.signal:
        return f"signal {task.signal}"
    return "" if task.exit_code is None else f"exit {task.exit_code}"


def elapsed(task: TaskReport, now: float) -> float | None:
    """Give for how long the task's last command ran, seconds."""
    return None if task.started_at is None else max(0.0, (task.finished_at or now) - task.started_at)


def describe(report: JobReport, now: float, options: str = "") -> Iterator[str]:
    """Give the lines of a report: the job, its results, its tasks on a time line, its failure.

    Parameters
    ----------
    report : JobReport
    now : float
        Seconds since the epoch, for what has not ended.
    options : str, optional
        What has to stand behind the next command, such as `` --resourcemanager URL``.
    """
    ended = report.reason is not None
    status = report.reason.value if report.reason else report.state or "UNKNOWN"
    yield f"{report.application_id} {status}" + (f": {report.message}" if report.message else "")
    facts = {
        "name": report.name, "queue": report.queue, "user": report.user,
        "state": f"{report.state} {report.final_status}" if report.state else "",
        "submitted": clock(report.submitted_at) if report.submitted_at else "",
        "in the queue": duration(report.queue_seconds) if report.queue_seconds is not None else "",
        "took": duration((report.finished_at or now) - report.submitted_at) if report.submitted_at else "",
        "rounds": str(len(report.rounds)) if len(report.rounds) > 1 else "",
        "tracking URL": report.tracking_url or "",
        "TensorBoard": report.tensorboard_url or "",
        "output": report.output_path or "",
        "metrics": ", ".join(f"{name} {_number(value)}" for name, value in (report.metrics or {}).items()),
    }  # fmt: skip
    for name, value in facts.items():
        if value.strip():
            yield f"  {name:<13} {value}"
    if report.tasks:
        yield ""
        yield from timeline(report, now)
    if ended and report.reason is not Reason.SUCCEEDED:
        yield ""
        yield from failure(report, options)


def timeline(report: JobReport, now: float) -> Iterator[str]:
    """Give a line per task: when its command ran, as figures and as a bar."""
    starts = [task.started_at for task in report.tasks if task.started_at]
    begin = min(starts, default=now)
    end = max([task.finished_at or now for task in report.tasks if task.started_at], default=now)
    span = max(end - begin, 1e-6)
    width = max(len(task.task) for task in report.tasks)
    hosts = max(len(task.host or "-") for task in report.tasks)
    for task in report.tasks:
        seconds = elapsed(task, now)
        bar = ""
        if task.started_at and seconds is not None:
            left = round((task.started_at - begin) / span * WIDTH)
            bar = " " * left + "=" * max(1, round(seconds / span * WIDTH))
        yield (
            f"  {task.task:<{width}}  {task.state:<10} {ending(task):<9}  {duration(seconds):>11}"
            f"  {task.host or '-':<{hosts}}  |{bar[:WIDTH]:<{WIDTH}}|"
        ).rstrip()


def failure(report: JobReport, options: str = "") -> Iterator[str]:
    """Give what failed first, its exit code, the last lines of its log, the hint and the next command.

    Parameters
    ----------
    report : JobReport
        Of a job that did not succeed.
    options : str, optional
        As in `describe`.
    """
    reason = report.reason or Reason.TASK_FAILED
    first = next((task for task in report.tasks if task.task == report.first_failure), None)
    if first:
        where = f" on {first.host}" if first.host else ""
        yield f"{first.task} failed first: {ending(first) or first.state}{where}"
        lines = first.log_tail.splitlines()[-LOG_LINES:]
        if lines:
            yield f"--- last lines of {first.task}"
            yield from (f"    {line}" for line in lines)
            yield "---"
    yield reason.hint
    yield next_line(report, options)


def next_line(report: JobReport, options: str = "") -> str:
    """Give the line with the next command to type."""
    application_id, reason = report.application_id, report.reason or Reason.TASK_FAILED
    command = NEXT.get(reason, _DEFAULT_NEXT if application_id else "ytf list")
    if application_id and reason is Reason.CLUSTER_UNREACHABLE:
        command = "ytf status {app}"
    if not application_id and "{app}" in command:
        command = "ytf list"
    command = command.format(app=application_id, task=shlex.quote(report.first_failure or "TASK"))
    return f"next: {command.replace(' --task TASK', '')}{options}"


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
