"""A report as text for people: the job, its tasks, the first failure and the next command to type."""

import shlex
from collections.abc import Iterator

from ..runtime.common.clock import duration, format_work, local_time
from ..runtime.common.escaping import escape_controls
from ..runtime.common.local_job import SCHEME, is_local
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, TaskReport, describe_cost, list_names, run_seconds
from ..runtime.common.roles import TENSORBOARD
from ..runtime.common.task_groups import AlikeTasks, group_tasks
from .output import format_number
from .output_properties import named_metrics

#: Width of a task's timeline and of a report, characters.
WIDTH, COLUMNS = 32, 100
#: Lines shown of the failed task's log by default.
LOG_LINES = 20

#: The next command after a refusal; empty where the message names the value to correct, and no command knows more.
AFTER_REFUSAL = {
    Reason.SPEC_INVALID: "",
    Reason.SUBMISSION_REJECTED: "ytf doctor",
    Reason.RESOURCES_IMPOSSIBLE: "ytf doctor",
}
#: The next command where there is no application.
_WITHOUT_APPLICATION = AFTER_REFUSAL | {
    Reason.ENVIRONMENT_INVALID: "",
    Reason.CLUSTER_UNREACHABLE: "ytf list --resourcemanager http://HOST:8088",
}
#: The next command where there is an application, which is ``{app}``; ``{task}`` names the task that failed first.
_WITH_APPLICATION = AFTER_REFUSAL | {
    Reason.TASK_FAILED: "ytf logs {app}{task}",
    Reason.ENVIRONMENT_INVALID: "ytf logs {app}{task}",
    Reason.OUT_OF_MEMORY: "ytf logs {app}{task}",
    Reason.CLUSTER_UNREACHABLE: "ytf status {app}",
    Reason.AM_FAILED: "ytf logs {app} --task {master_log}",
    Reason.LOST: "ytf list",
}


def ending(task: TaskReport) -> str:
    """Return how a task's command ended: ``exit 1``, ``signal 9``, or an empty text while it runs."""
    if task.signal:
        return f"signal {task.signal}"
    return "" if task.exit_code is None else f"exit {task.exit_code}"


def describe_tensorboard(report: JobReport) -> str:
    """Return TensorBoard's address, or how it failed with the last line of its log; empty if the job has none."""
    board = next((task for task in report.tasks if task.task == f"{TENSORBOARD}:0"), None)
    if board is None or board.state != "failed":
        return report.tensorboard_url or ""
    last = next((line.strip() for line in reversed(board.log_tail.splitlines()) if line.strip()), "")
    how = f" with {ending(board)}" if ending(board) else ""
    return f"failed{how}{f': {last}' if last else ''}"


def describe_addresses(report: JobReport) -> str:
    """Return the addresses of the first tasks, ``worker:0 at host:port``; that of TensorBoard takes no browser."""
    running = [task for task in report.tasks if task.address and task.task != f"{TENSORBOARD}:0"]
    return list_names(running, lambda task: f"{task.task} at {task.address}")


def elapsed(task: TaskReport, now: float) -> float | None:
    """Return the seconds that the task's last command has run; None if it never started."""
    return None if task.started_at is None else max(0.0, (task.finished_at or now) - task.started_at)


def describe(
    report: JobReport,
    now: float,
    options: str = "",
    columns: int = COLUMNS,
    log_lines: int = LOG_LINES,
    submitter: bool = True,
    interrupted: bool = False,
) -> Iterator[str]:
    """Yield the lines of a report: the job, its results, its tasks with a timeline, its failure.

    Parameters
    ----------
    report : JobReport
    now : float
        Seconds since the epoch; counts as the end of tasks that still run.
    options : str, optional
        Appended to the next command, such as `` --resourcemanager URL``.
    columns : int, optional
        As in `timeline`.
    log_lines, submitter, interrupted : optional
        As in `failure`.
    """
    now = report.finished_at or now
    status = report.reason.value if report.reason else report.state or "UNKNOWN"
    yield f"{report.application_id} {status}".strip() + (f": {indent_message(report)}" if report.message else "")
    facts = {
        "name": report.name, "queue": report.queue, "user": report.user,
        "state": f"{report.state} {report.final_status}" if report.state else "",
        "submitted": local_time(report.submitted_at) if report.submitted_at else "",
        "in the queue": duration(report.queue_seconds) if report.queue_seconds is not None else "",
        "took": duration(run_seconds(vars(report), now)) if report.started_at or report.submitted_at else "",
        "cost": ", ".join(f"{value} {unit}" for unit, value in describe_cost(vars(report)).items() if value),
        "rounds": str(len(report.rounds)) if len(report.rounds) > 1 else "",
        "tracking URL": report.tracking_url or "",
        "TensorBoard": describe_tensorboard(report),
        "addresses": describe_addresses(report),
        "output": report.output_path or "",
        "work": format_work(report.working_path, report.working_bytes) if report.working_path else "",
        "metrics": describe_metrics(report),
        "memory": ", ".join(f"{name} {mib} MiB" for name, mib in report.memory_mib.items()),
        "usage": describe_usage(report),
        "progress": report.progress,
    }  # fmt: skip
    for name, value in facts.items():
        if value.strip():
            yield _one_line(f"  {name:<13} {value}")
    yield from (_one_line(f"  ! {alert.text}") for alert in report.alerts)
    yield from (_one_line(f"  ! Node {node} is excluded: {why}") for node, why in report.excluded_nodes.items())
    if report.tasks:
        yield ""
        yield from timeline(report, now, columns)
    if report.omitted_tasks:
        yield f"  and {report.omitted_tasks} more tasks, which neither YARN's diagnostics nor the history have"
    if report.reason not in (None, Reason.SUCCEEDED):
        yield ""
        yield from failure(report, options, log_lines, submitter, interrupted)


def group_report(report: JobReport) -> list[AlikeTasks]:
    """Return the tasks of a report in groups, those that deserve a look first."""
    return group_tasks([vars(task) for task in report.tasks], [name for alert in report.alerts for name in alert.tasks])


def timeline(report: JobReport, now: float, columns: int = COLUMNS) -> Iterator[str]:
    """Yield one line for each task or group of equal tasks: its state, its seconds and a bar of its last command.

    Parameters
    ----------
    report : JobReport
    now : float
        As in `describe`.
    columns : int, optional
        Width of the lines. Where it is small the bars go first, then the hosts.
    """
    tasks = {task.task: task for task in report.tasks}
    begin = min((task.started_at for task in report.tasks if task.started_at), default=now)
    end = max((task.finished_at or now for task in report.tasks if task.started_at), default=now)
    span = max(end - begin, 1e-6)
    rows = []
    for group in group_report(report):
        task = max((tasks[found["task"]] for found in group.tasks), key=lambda found: found.started_at or 0.0)
        hosts = {_one_line(found["host"] or "-") for found in group.tasks}
        rows.append(
            (
                task,
                (
                    group.name,
                    task.state,
                    ending(task),
                    f"{duration(elapsed(task, now)):>9}",
                    hosts.pop() if len(hosts) == 1 else f"{len(hosts)} nodes",
                ),
            )
        )
    widths = [max(len(row[column]) for _, row in rows) for column in range(5)]
    if sum(widths) + 12 > columns:
        widths.pop()
    room = min(WIDTH, columns - sum(widths) - 2 * len(widths) - 4)
    for task, row in rows:
        line = "".join(f"  {cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        seconds, bar = elapsed(task, now), ""
        if task.started_at and seconds is not None:
            left = round((task.started_at - begin) / span * room)
            bar = " " * left + "=" * max(1, round(seconds / span * room))
        yield (f"{line}  |{bar[:room]:<{room}}|" if room >= 4 else line).rstrip()


def failure(
    report: JobReport,
    options: str = "",
    log_lines: int = LOG_LINES,
    submitter: bool = True,
    interrupted: bool = False,
) -> Iterator[str]:
    """Yield the lines about a failure: the task that failed first, the end of its log, a hint, the next command.

    Parameters
    ----------
    report : JobReport
        The report of a job that did not succeed.
    options : str, optional
        As in `describe`.
    log_lines : int, optional
        Lines shown of the failed task's log; 0 for none.
    submitter : bool, optional
        Whether the reader can submit the corrected job by a command. Default True.
    interrupted : bool, optional
        Whether the reader has killed the job with Ctrl-C, and needs no hint. Default False.
    """
    reason = report.reason or Reason.TASK_FAILED
    first = next((task for task in report.tasks if task.task == report.first_failure), None)
    if first:
        where = f" on {_one_line(first.host)}" if first.host else ""
        yield f"{first.task} failed first: {ending(first) or first.state}{where}"
        if lines := first.log_tail.splitlines()[-log_lines:] if log_lines else []:
            yield from (f"--- last lines of {first.task}", *(f"    {line}" for line in lines), "---")
    if not (interrupted and reason is Reason.KILLED):
        yield reason.hint
    if submitter or (report.application_id and reason not in AFTER_REFUSAL):
        yield from next_lines(report, options)


def next_lines(report: JobReport, options: str = "") -> Iterator[str]:
    """Yield the line with the next command to type, if one helps; ``options`` as in `describe`."""
    reason = report.reason or Reason.TASK_FAILED
    # YARN has no state for an id that was reserved only.
    if not report.application_id or (reason is Reason.KILLED and not report.state):
        command = _WITHOUT_APPLICATION.get(reason, "ytf list")
    else:
        task = f" --task {shlex.quote(report.first_failure)}" if report.first_failure else ""
        command = _WITH_APPLICATION.get(reason, "ytf logs {app}").format(
            app=report.application_id, task=task, master_log=report.master_log
        )
        if not options and command == _WITH_APPLICATION[Reason.LOST] and is_local(report.application_id):
            options = f" --resourcemanager {SCHEME}"
    if command:
        yield f"next: {command}{options}"


def describe_metrics(report: JobReport) -> str:
    """Return the metrics of a report in one line, by the names of the outputs; empty if there are none."""
    named = named_metrics(report.metrics).items()
    return escape_controls(", ".join(f"{name} {format_number(value)}" for name, value in named), "")


def describe_usage(report: JobReport) -> str:
    """Return the CPU and the memory that the running tasks use, in one line; empty if they are not measured."""
    usage = report.usage
    if usage is None or report.reason is not None:
        return ""
    most = max(usage.memory_mib, usage.given_memory_mib or 0)
    size, digits, unit = (1024, 1, "GiB") if most >= 1024 else (1, 0, "MiB")
    given = f" of {usage.given_memory_mib / size:.{digits}f}" if usage.given_memory_mib else ""
    fullest = f", most used: {usage.fullest} {100 * usage.fullest_part:.0f} %" if usage.fullest_part else ""
    return f"cpu {usage.cpu_cores:.1f} cores, memory {usage.memory_mib / size:.{digits}f}{given} {unit}{fullest}"


def indent_message(report: JobReport) -> str:
    """Return the message of a report; its further lines are indented, so that none looks like one of ours."""
    return report.message.replace("\n", "\n      ")


def _one_line(text: str) -> str:
    return escape_controls(text, kept="\t")
