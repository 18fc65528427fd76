"""Progress of a running job on stderr: a live table on a terminal, plain lines elsewhere."""

import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..runtime.common.clock import duration, local_clock
from ..runtime.common.escaping import escape_controls
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, TaskReport, list_names
from .output import echo
from .summary import describe_metrics, describe_tensorboard, describe_usage, elapsed, ending, group_report

#: Seconds between two lines that name the missing tasks.
REMINDER_SECONDS = 30.0
#: Seconds between two lines with the metrics of a job that trains.
METRICS_SECONDS = 30.0
#: Seconds without a line after which a line says what the job does.
SILENCE_SECONDS = 60.0
#: Seconds in the queue before YARN's reason is shown. A job that starts at once has reasons, too, one after the other.
SETTLED_SECONDS = 5.0
#: States in which the application has no running master.
_QUEUED = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")
#: The time in front of YARN's reason, and the numbers behind it, which change all the time.
_CAUSE = re.compile(r"(?:\[[^\]]*\])?\s*(?P<cause>.*?)\s*(?:Details\s*:.*)?", re.DOTALL)
#: Rows of tasks and groups that fit on a screen.
_ROWS = 24
_FAILURES = ("failed", "lost")
_COLOURS = {
    "running": "cyan",
    "succeeded": "green",
    "failed": "bold red",
    "lost": "bold red",
    "stopped": "dim",
    "killed": "dim",
}


def make_progress(*, plain: bool = False) -> "AbstractContextManager[Lines | Table]":
    """Return a context manager that shows reports: a table if stderr is a terminal and `plain` is false, else lines."""
    return nullcontext(Lines()) if plain or not sys.stderr.isatty() else Table()


class Lines:
    """Writes one line per change; overwrites nothing.

    Parameters
    ----------
    write : callable, optional
        Default: write the line to stderr, with the time of day.
    """

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._write = write or (lambda line: echo(f"{local_clock()} {line}"))
        self._application_id = ""
        self._state = ""
        self._tasks: dict[str, str] = {}
        self._round = 0
        self._tensorboard = ""
        self._reminded = -REMINDER_SECONDS
        self._metrics: tuple[float, str] = (-METRICS_SECONDS, "")
        self._alerts: set[tuple[str, tuple[str, ...]]] = set()
        self._cause = ""
        self._began: float | None = None
        self._printed_at = 0.0

    def show(self, report: JobReport) -> None:
        """Write the changes since the last report."""
        for line in self.changes(report, time.monotonic()):
            self._write(escape_controls(line, kept="\t"))

    def changes(self, report: JobReport, now: float) -> list[str]:
        """Return the lines for the changes since the last report; `now` is a monotonic clock in seconds."""
        self._began = now if self._began is None else self._began
        if lines := self._changes(report, now - self._began):
            self._printed_at = now
        elif now - self._printed_at >= SILENCE_SECONDS and report.reason is None:
            self._printed_at = now
            metrics = describe_metrics(report)
            lines = [
                f"still {_describe_job(report, self._cause)}, followed for {duration(now - self._began)}"
                f"{f'; metrics: {metrics}' if metrics else ''}"
            ]
        return lines

    def _changes(self, report: JobReport, followed: float) -> list[str]:
        """Return the lines for the changes; ``followed`` is the time since the first report, in seconds."""
        lines = []
        if report.application_id != self._application_id:  # submitted again
            self._application_id, self._tasks, self._round, self._state = report.application_id, {}, 0, ""
        if report.state != self._state:
            where = f" in queue {report.queue}" if report.queue and report.state in ("SUBMITTED", "ACCEPTED") else ""
            page = f", {report.tracking_url}" if report.state == "RUNNING" and report.tracking_url else ""
            verdict = f": {report.reason.value}" if report.reason not in (None, Reason.SUCCEEDED) else ""
            lines.append(f"{report.application_id} {report.state}{where}{page}{verdict}")
        self._state = report.state
        cause = _cause_of_waiting(report) if followed >= SETTLED_SECONDS else ""
        if cause and cause != self._cause:
            lines.append(f"waiting: {cause}")
        self._cause = cause
        if len(report.rounds) > max(1, self._round):
            last = report.rounds[-1]
            lines.append(f"round {last.number}: {last.cause}")
        self._round = max(self._round, len(report.rounds))  # YARN's own report has none
        lines += self._task_changes(report)
        alerts = {(alert.code, alert.tasks): alert.text for alert in report.alerts}
        lines += [f"alert: {text}" for about, text in alerts.items() if about not in self._alerts]
        self._alerts = set(alerts)
        board = describe_tensorboard(report)
        if board and board != self._tensorboard:
            lines.append(f"TensorBoard {'at ' if board == report.tensorboard_url else ''}{board}")
            self._tensorboard = board
        metrics = describe_metrics(report) if report.reason is None else ""
        if metrics not in ("", self._metrics[1]) and followed - self._metrics[0] >= METRICS_SECONDS:
            self._metrics = followed, metrics
            standing = _standing(report)
            lines.append(f"metrics: {metrics}{f' ({standing})' if standing else ''}")
        waiting = [task.task for task in report.tasks if task.state == "pending"]
        if waiting and report.reason is None and followed - self._reminded >= REMINDER_SECONDS:
            self._reminded = followed
            lines.append(
                f"{len(report.tasks) - len(waiting)} of {len(report.tasks)} tasks have registered. "
                f"{report.message or f'Waiting for {list_names(waiting)}.'}"
            )
        return lines

    def _task_changes(self, report: JobReport) -> list[str]:
        """Return one line per new state with its tasks; failures first, because they cause the other changes."""
        new: dict[tuple[str, str], list[str]] = {}
        for task in report.tasks:
            words = _describe_state(task)
            if self._tasks.get(task.task, "pending") != words:
                self._tasks[task.task] = words
                if task.state != "pending":
                    new.setdefault((task.state, words), []).append(task.task)
        failures_first = sorted(new.items(), key=lambda item: item[0][0] not in _FAILURES)
        return [f"{words}: {list_names(tasks)}" for (_, words), tasks in failures_first]


def _describe_job(report: JobReport, cause: str) -> str:
    """Return what the job does now: where and why it waits, or what its tasks do and use."""
    if report.state in _QUEUED:
        return f"{report.state} in queue {report.queue}{f': {cause}' if cause else ''}"
    return ", ".join(filter(None, (report.state, _standing(report))))


def _standing(report: JobReport) -> str:
    """Return how many tasks are in each state, and the CPU and memory that they use."""
    states = Counter(task.state for task in report.tasks)
    return ", ".join(filter(None, (*(f"{number} {state}" for state, number in states.items()), describe_usage(report))))


def _cause_of_waiting(report: JobReport) -> str:
    """Return YARN's reason why the application master does not run yet; empty if it runs or YARN gives none."""
    found = _CAUSE.fullmatch(report.message) if report.state in _QUEUED else None
    return found["cause"] if found else ""


def _describe_state(task: TaskReport) -> str:
    again = f" (start {task.starts})" if task.starts > 1 and task.state == "running" else ""
    how = f" with {ending(task)}" if task.state == "failed" and ending(task) else ""
    return f"{task.state}{how}{again}"


class Table:
    """Draws a table and redraws it in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._report: JobReport | None = None
        self._live = Live(
            console=Console(stderr=True),
            refresh_per_second=2,
            get_renderable=self.render,
            transient=True,
            redirect_stdout=False,
        )

    def __enter__(self) -> "Table":
        self._live.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._live.stop()

    def show(self, report: JobReport) -> None:
        """Draw the current state of the job."""
        self._report = report
        self._live.refresh()

    def render(self) -> Any:
        """Return the table for a console of rich."""
        from rich.console import Group
        from rich.table import Table as Grid
        from rich.text import Text

        if (report := self._report) is None:
            return Text("submitting", style="dim")
        now = time.time()
        head = Text.assemble(
            (report.application_id, "bold"),
            f"  {escape_controls(report.name, kept='')}  ",
            (report.state, "cyan"),
            f"  queue {escape_controls(report.queue, kept='')}  ",
            duration((report.finished_at or now) - report.submitted_at) if report.submitted_at else "",
        )
        links = [
            Text(f"{name} {escape_controls(url)}", style="dim", overflow="fold")
            for name, url in (
                ("page", report.tracking_url),
                ("TensorBoard", describe_tensorboard(report)),
                ("using", describe_usage(report)),
                ("progress", report.progress),
            )
            if url
        ]
        grid = Grid(box=None, pad_edge=False, header_style="dim")
        for column in ("task", "state", "", "for", "host", "starts"):
            grid.add_column(column, no_wrap=True)
        alerts = [Text(f"! {escape_controls(one.text)}", style="yellow") for one in report.alerts]
        groups = group_report(report)
        for group in groups[:_ROWS]:
            task = TaskReport(**group.tasks[0])
            grid.add_row(
                group.name,
                Text(task.state, style=_COLOURS.get(task.state, "")),
                ending(task),
                duration(elapsed(task, now)),
                escape_controls(task.host or "-"),
                str(task.starts or "-"),
            )
        hidden = sum(len(group.tasks) for group in groups[_ROWS:])
        rest = [Text(f"and {hidden} more", style="dim")] if hidden else []
        return Group(head, *links, *alerts, grid, *rest)
