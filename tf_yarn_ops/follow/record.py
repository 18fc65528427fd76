"""`keep_record`: write the record of an ended application from YARN's report, if its coordinator could not."""

import logging

from ..errors import TfYarnError
from ..runtime.common.contract import Job, load_job
from ..runtime.common.masking import mask_texts, secrets_of
from ..runtime.common.record import CLIENT, build_record, pack_record
from ..runtime.common.report import JobReport
from ..runtime.common.status import Facts, build_status
from ..staging.application_directory import JOB_NAME
from ..staging.staging_directory import StagingDirectory

logger = logging.getLogger(__name__)


def keep_record(staging: StagingDirectory, report: JobReport) -> bool:
    """Write the record of an ended application of our user, unless there is one; return whether it was written.

    The application's directory, while it exists, tells the job's options and who may read its record. Skein's
    application master deletes it when it ends, also after the end of the coordinator.

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
        records = staging.records()
        if records.has(report.application_id, ended):
            return False
        job = read_job(staging, report.application_id)
        written = records.write(report.application_id, ended, pack_record(_record_of(report, job)),
                                *((job.history.view_users, job.history.view_groups) if job and job.history else ()))
    except (TfYarnError, OSError) as error:  # the end of the application is told all the same
        logger.warning("the record of %s could not be written: %s", report.application_id, error)
        return False
    if written:
        logger.info("wrote the record of %s , because its coordinator has not", report.application_id)
    return written


def read_job(staging: StagingDirectory, application_id: str) -> Job | None:
    """Return the job file in an application's directory; None if the directory or the file is gone."""
    folder = staging.cluster.directory(application_id)
    for status in staging.filesystem.list(folder):
        content = staging.filesystem.read(f"{folder}/{status.name}/{JOB_NAME}") if status.is_directory else None
        if content is not None:
            try:
                return load_job(content)
            except (ValueError, TypeError, KeyError):  # of another version
                return None
    return None


def _record_of(report: JobReport, job: Job | None) -> dict[str, object]:
    at = report.finished_at or 0.0
    options = job.options if job else {}
    status = build_status(report, Facts(at, options=options))
    masked = mask_texts(status, secrets_of(plan.env for plan in job.types.values())) if job else status
    return build_record(masked, CLIENT, at)
