"""The event with which a trigger wakes its task: the report, without the texts that the program has written.

Airflow stores an event in its database and writes it to the triggerer's log, both as it is. A text of the program may
hold a secret, which only the task's process can mask, so the task reads the whole report from YARN again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import TfYarnError
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from .outcome import to_xcom, without_texts
from .versions import AirflowNotFoundException


def build_event(application_id: str, report: JobReport) -> dict[str, Any]:
    """Return the event for the end of an application, as plain values.

    Parameters
    ----------
    application_id : str
        The one for which the trigger was made.
    report : JobReport
        That of this application, or of another one of the same training.

    Returns
    -------
    dict
        ``application_id``; ``report``; and ``whole``, whether the report lacks no text of the program.
    """
    shown = without_texts(report)
    return {"application_id": application_id, "report": to_xcom(shown), "whole": shown == report}


def read_event(event: Mapping[str, Any]) -> JobReport:
    """Return the report in an event."""
    return JobReport.from_dict(event["report"])


def is_whole(event: Mapping[str, Any]) -> bool:
    """Return whether the report of an event lacks no text of the program."""
    return bool(event.get("whole"))


def complete_report(report: JobReport, read: Callable[[str], JobReport], warn: Callable[..., None]) -> JobReport:
    """Return the whole report of an application; if it cannot be read, return the one of the event, after a warning.

    Parameters
    ----------
    report : JobReport
        The one of the event.
    read : callable
        Returns the report of an application that YARN has.
    warn : callable
        Logs the warning: a format and its values.
    """
    why: object = "YARN no longer knows the application"
    try:
        full = read(report.application_id)
    except (TfYarnError, AirflowNotFoundException) as error:
        why = error
    else:
        if full.reason is not Reason.LOST:
            return full if full.reason is report.reason else report
    warn("the texts of the program (its metrics, the log of a failed task) could not be read from YARN (%s); "
         "to see them, if YARN still has them: ytf report %s", why, report.application_id)
    return report
