"""Turn a `JobReport` into the value of an XCom, the event of a trigger, lines of the log, and an exception.

Airflow stores an event in its database and writes it to the triggerer's log, both as it is. A value of the program may
hold a secret, which only the task's process can mask, and one that Airflow can't pack would end the triggerer. So an
event has no value of the program, and the task reads the report from YARN again.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from ..errors import TfYarnError
from ..runtime.common.escaping import escape_controls
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, small_document
from ..runtime.common.values import MAX_INTEGER, map_values
from ..terminal.summary import describe
from .exceptions import TfYarnFailure, TfYarnInfrastructureError, TfYarnJobFailed
from .versions import AirflowFailException, AirflowNotFoundException, AirflowSkipException

#: Bytes of a report in an XCom. Airflow's database adds blanks and type names; 16 KiB is the limit with them.
MAX_BYTES = 12 * 1024
#: Exit codes of the reasons for which a further try is useless: the request is wrong, YARN refuses it, or somebody has
#: killed the application on purpose.
FATAL = (2, 3, 8)
#: Reasons of errors without an application; the message has the next step, and that of the reason may be another one:
#: an expired ticket is no wrong address.
_COMPLETE = (Reason.CLUSTER_UNREACHABLE, Reason.SUBMISSION_REJECTED)
#: The reason that a trigger decides on and YARN may not know, with its message.
_DECIDED_HERE, _TIMED_OUT = Reason.EXECUTION_TIMEOUT, "The task's execution_timeout is over; it may still run"
#: The cause of a kill by the task itself. The report names the attempt: ``killed_by_attempt``.
KILLED_BY_AIRFLOW = "Killed by Airflow: the task was cleared, marked or timed out, or its worker was shut down"


def to_xcom(report: JobReport) -> dict[str, Any]:
    """Return a report as the value of an XCom: plain values of at most 16 KiB of JSON in Airflow's database.

    PostgreSQL stores 1e30 in JSON as an integer of 31 digits, which Airflow can't pass to the task that reads it. So a
    float beyond 64 bits becomes a text, as an integer does.
    """
    return small_document(replace(report, metrics=map_values(report.metrics, _without_large_float)), MAX_BYTES)


def _without_large_float(_: str, value: Any) -> Any:
    return str(value) if isinstance(value, float) and abs(value) >= MAX_INTEGER else value


def mask_with(value: Any, mask: Callable[[str], Any]) -> Any:
    """Return plain values with every text masked, at any depth; the names in mappings stay and decide nothing.

    Airflow's own walk over a document masks all that has a name like ``token_accuracy``, and stops at depth 5.
    """
    return map_values(value, lambda _, item: mask(item) if isinstance(item, str) else item)


def masked(report: JobReport, mask: Callable[[str], Any]) -> JobReport:
    """Return a report with the texts masked that the program may have written."""
    return replace(
        report,
        message=mask(report.message),
        metrics=mask_with(report.metrics, mask),
        rounds=tuple(replace(item, cause=mask(item.cause)) for item in report.rounds),
        tasks=tuple(replace(task, log_tail=mask(task.log_tail)) for task in report.tasks),
    )


def without_texts(report: JobReport) -> JobReport:
    """Return a report without the texts of the program: log tails, quotes of them, and metrics that have a text."""
    return replace(
        report,
        message=report.message.partition(": ")[0] if report.first_failure else report.message,
        metrics=report.metrics and {name: value for name, value in report.metrics.items() if not _has_text(value)},
        rounds=tuple(replace(item, cause=item.cause.partition(": ")[0]) for item in report.rounds),
        tasks=tuple(replace(task, log_tail="") for task in report.tasks),
    )


def _has_text(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_text(item) for item in value.values())
    return any(map(_has_text, value)) if isinstance(value, list | tuple) else isinstance(value, str)


def sentence_of(report: JobReport) -> str:
    """Return the log line with the reason, the message and the next step."""
    reason = report.reason or Reason.LOST
    head = f"{report.application_id or 'nothing was submitted:'} {reason.value}"
    message = f"{head}: {escape_controls(report.message)}" if report.message else head
    complete = reason is Reason.SUCCEEDED or (report.submitted_at is None and reason in _COMPLETE)
    return message if complete else f"{message.rstrip('.')}. {reason.hint}"


def exception_of(
    report: JobReport, skip_on_exit_code: Collection[int] = (), attempt: int | None = None
) -> Exception | None:
    """Return the exception that ends the task; None for success.

    Parameters
    ----------
    report : JobReport
        With a reason.
    skip_on_exit_code : collection of int, optional
        If the task of the job that failed first has one of these exit codes, the Airflow task is skipped.
    attempt : int, optional
        The attempt that ends. A kill by this attempt is retryable, because Airflow kills when it shuts down a worker.
    """
    reason = report.reason or Reason.LOST
    if reason is Reason.SUCCEEDED:
        return None
    message = sentence_of(report)
    if attempt is not None and report.killed_by_attempt == attempt:
        return TfYarnInfrastructureError(message, reason.value, report.application_id)
    first = next((task for task in report.tasks if task.task == report.first_failure), None)
    if reason is Reason.TASK_FAILED and first and first.exit_code in skip_on_exit_code:
        why = f"{first.task} ended with exit code {first.exit_code}, which is one of skip_on_exit_code"
        return AirflowSkipException(f"{why}. {message}")
    if reason.exit_code in FATAL:
        return AirflowFailException(message)
    kind: type[TfYarnFailure] = TfYarnInfrastructureError if reason.retryable else TfYarnJobFailed
    return kind(message, reason.value, report.application_id)


def conclude(
    report: JobReport,
    mask: Callable[[str], Any],
    log: Any,
    log_tail_lines: int,
    skip_on_exit_code: Collection[int] = (),
    attempt: int | None = None,
) -> tuple[Any, Exception | None]:
    """Write the last lines of a task's log; return the value of the task, and the exception that ends it.

    Parameters
    ----------
    report : JobReport
        With a reason.
    mask : callable
        Airflow masks the task's log, but its scheduler prints the same lines as they are.
    log : logger
    log_tail_lines : int
        Lines of the failed task's log. 0 for none.
    skip_on_exit_code, attempt : optional
        As in `exception_of`.
    """
    report = masked(report, mask)
    for line in describe(report, time.time(), log_lines=log_tail_lines, submitter=False):
        log.info("%s", escape_controls(line))
    return mask_with(to_xcom(report), mask), exception_of(report, skip_on_exit_code, attempt)


def build_event(application_id: str, report: JobReport) -> dict[str, str]:
    """Return the event for the end of an application: nothing in it is the program's.

    Parameters
    ----------
    application_id : str
        The one for which the trigger was made.
    report : JobReport
        That of this application, or of another one of the same training.

    Returns
    -------
    dict
        ``application_id``; ``ended``, the application that ended; and the ``reason``.
    """
    return {
        "application_id": application_id,
        "ended": report.application_id,
        "reason": (report.reason or Reason.LOST).value,
    }


def read_report_of_event(
    event: Mapping[str, Any], read: Callable[[str], JobReport], warn: Callable[..., None]
) -> JobReport:
    """Return the report of the application in an event; with the reason alone, after a warning, if YARN has none.

    Parameters
    ----------
    event : mapping
        Of `build_event`.
    read : callable
        Returns the report of an application that YARN has.
    warn : callable
        Logs the warning: a format and its values.
    """
    ended, reason = event["ended"], Reason(event["reason"])
    why: object = "YARN no longer knows the application"
    try:
        report = read(ended)
    except (TfYarnError, AirflowNotFoundException) as error:
        why = error
    else:
        if report.reason is reason or (report.reason not in (None, Reason.LOST) and reason is not _DECIDED_HERE):
            return report
        if reason is _DECIDED_HERE:
            return replace(report, reason=reason, message=_TIMED_OUT)
    warn(
        "the report could not be read from YARN (%s), so the metrics and the log of a failed task are missing; "
        "to see them, if YARN still has them: ytf report %s",
        why,
        ended,
    )
    message = _TIMED_OUT if reason is _DECIDED_HERE else f"The application ended with {reason.value}"
    return JobReport(ended, reason=reason, message=message)
