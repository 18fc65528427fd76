"""``ytf report``: a report from YARN or from the history, and the job's page as one file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SpecInvalid, TfYarnError
from ..history.histories import read_record
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..runtime.common.status import Facts, build_status
from ..runtime.page.page import render_page
from ..terminal.output import echo

if TYPE_CHECKING:
    from ..launch.launcher import Launcher


def read_live_report(launcher: "Launcher", application_id: str, whole: bool) -> tuple[JobReport, Mapping[str, Any]]:
    """Return the report of an application, and the document of its page.

    Parameters
    ----------
    launcher : Launcher
    application_id : str
    whole : bool
        Whether the document must have the curves and the timeline, which YARN does not keep.

    Returns
    -------
    report : JobReport
        From the history if YARN has forgotten the application; LOST if both do not know it.
    document : mapping
        The keys of ``status.json``.
    """
    report = launcher.report(application_id)
    record: Mapping[str, Any] | None = None
    if report.reason is Reason.LOST or (whole and report.reason is not None):
        record = _record(launcher, report)
    if record is not None and report.reason is Reason.LOST:
        try:
            report = JobReport.from_dict(record)
            echo(f"YARN no longer knows {application_id}; this is from the history")
        except ValueError:
            record = None
    if record is None and whole and report.reason is None:
        session = launcher.session
        record = session.live.fetch_document(session.resourcemanager.get(application_id))
    ended = report.finished_at or report.started_at or 0.0
    return report, record or build_status(report, Facts(ended))


def _record(launcher: "Launcher", report: JobReport) -> Mapping[str, Any] | None:
    try:
        return read_record(launcher.cluster, report.application_id, report.user)
    except TfYarnError as error:
        echo(f"the history can't be read: {error}")
        return None


def write_page(path: str, document: Mapping[str, Any]) -> None:
    """Write the page of a job as one file without references to others; raise SpecInvalid if it can't be written."""
    try:
        Path(path).write_text(render_page(document, live=False), encoding="utf-8")
    except OSError as error:
        raise SpecInvalid(f"{path} can't be written: {error.strerror}") from error
    echo(f"wrote {path}")
