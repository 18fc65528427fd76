"""`keep_record`: write the record of an ended application from YARN's report, if its coordinator could not."""

import logging
from collections.abc import Mapping
from typing import Any

from ..errors import SubmissionRejected, TfYarnError
from ..runtime.common.contract import Job, load_job
from ..runtime.common.masking import mask_texts
from ..runtime.common.record import CLIENT, build_record, pack_record
from ..runtime.common.report import JobReport
from ..runtime.common.status import build_status
from ..staging.staging_directory import JOB_NAME, StagingDirectory
from .records import records_of

logger = logging.getLogger(__name__)

#: Facts that the end of a command shows, and the last measurement of one that was lost.
_LAST_USAGE = ("cpu_seconds", "peak_memory_mib")
#: Keys of the status that a coordinator knows, and YARN does not.
_OF_COORDINATOR = (
    "started_at",
    "rounds",
    "first_failure",
    "metrics",
    "output_path",
    "working_path",
    "working_bytes",
    "tensorboard_logdir",
    "versions",
    "series",
    "metrics_left_out",
    "cluster_spec",
    "options",
)


def keep_record(staging: StagingDirectory, report: JobReport) -> bool:
    """Write the record of an ended application of our user, unless there is one; return whether it was written.

    The application's directory, while it exists, holds the job's options and who may read its record. Skein's
    application master deletes it when it ends, also after the end of the coordinator. The timeline and the curves are
    those that the coordinator has left last.

    Parameters
    ----------
    staging : StagingDirectory
    report : JobReport
        With a reason. Without times it belongs to an application that never was one, and gets no record.
    """
    ended = report.finished_at
    if not staging.cluster.site.history_days or report.submitted_at is None or ended is None:
        return False
    try:
        records = records_of(staging)
        if records.has(report.application_id, ended):
            return False
        job, snapshot = read_job_file(staging, report.application_id), records.snapshot(report.application_id)
        written = records.write(
            report.application_id,
            ended,
            pack_record(_record_of(report, job, snapshot)),
            *((job.history.view_users, job.history.view_groups) if job and job.history else ()),
        )
        if snapshot is not None:
            records.delete_snapshot(report.application_id)
    except (TfYarnError, OSError) as error:  # the end of the application is reported all the same
        logger.warning("the record of %s could not be written: %s", report.application_id, error)
        return False
    if written:
        logger.info("wrote the record of %s , because its coordinator has not", report.application_id)
    return written


def read_job_file(staging: StagingDirectory, application_id: str) -> Job | None:
    """Return the job file in an application's directory; None if the directory or the file is gone.

    Raises
    ------
    SubmissionRejected
        Another version has written it: its secrets, and who may read, are not known.
    """
    folder = staging.cluster.directory(application_id)
    for status in staging.filesystem.list(folder):
        content = staging.filesystem.read(f"{folder}/{status.name}/{JOB_NAME}") if status.is_directory else None
        if content is not None:
            try:
                return load_job(content)
            except (ValueError, TypeError, KeyError) as error:
                raise SubmissionRejected(
                    f"{folder}/{status.name}/{JOB_NAME} is of another version: {error!r}"
                ) from error
    return None


def _record_of(report: JobReport, job: Job | None, snapshot: Mapping[str, Any] | None) -> dict[str, object]:
    at = report.finished_at or 0.0
    status = build_status(report, at, options=job.options if job else {})
    masked = mask_texts(status, job.secrets) if job else status
    return build_record(complete_status(masked, snapshot) if snapshot else masked, CLIENT, at)


def complete_status(status: Mapping[str, Any], snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of an ended job with what only its coordinator knew.

    Parameters
    ----------
    status : mapping
        From YARN's report, or from a report of ours that YARN has kept, which may know the tasks.
    snapshot : mapping
        The last status that the coordinator has left; its secrets are masked.
    """
    found = {**status, **{name: status.get(name) or snapshot.get(name) for name in _OF_COORDINATOR}}
    reported = {task["task"]: task for task in status.get("tasks") or ()}
    tasks: list[dict[str, Any]] = []
    omitted = int(status.get("omitted_tasks") or 0)
    for task in snapshot.get("tasks") or ():
        state = "lost" if task.get("state") == "running" else task.get("state")
        facts = {name: task.get(name) for name in ("events", "given", "usage")}
        last = {name: value for name, value in (task.get("usage") or {}).items() if name in _LAST_USAGE}
        omitted -= task.get("task") not in reported
        known = {name: value for name, value in reported.pop(str(task.get("task")), {}).items() if value is not None}
        tasks.append({**task, **(last if state == "lost" else {}), "state": state, **known, **facts})
    return {**found, "tasks": tasks + list(reported.values()), "omitted_tasks": max(0, omitted)}
