"""`with_holder`: complete the report of a lease that has run out with the client that held it last."""

import logging
from collections.abc import Callable
from dataclasses import replace

from ..errors import TfYarnError
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..staging.holders import Holders
from ..staging.staging_directory import StagingDirectory
from .lease import Lease

logger = logging.getLogger(__name__)


def note_holder(staging: Callable[[], StagingDirectory], application_id: str, lease: Lease) -> None:
    """Write who holds the lease of an application; an error is only logged, because the lease itself is YARN's.

    Parameters
    ----------
    staging : callable
        Returns the staging directory of the application's user, or raises `TfYarnError`.
    application_id : str
    lease : Lease
    """
    try:
        Holders(staging()).note(application_id, lease.holder, lease.seconds)
    except (TfYarnError, OSError) as error:
        logger.debug("the holder of the lease of %s is not noted: %s", application_id, error)


def with_holder(staging: Callable[[], StagingDirectory], report: JobReport) -> JobReport:
    """Return a report of a lease that has run out with its last holder, if it is known; any other report as it is.

    Parameters
    ----------
    staging : callable
        As in `note_holder`.
    report : JobReport
    """
    if report.reason is not Reason.LEASE_EXPIRED:
        return report
    try:
        found = Holders(staging()).last(report.application_id)
    except (TfYarnError, OSError) as error:
        logger.debug("the holder of the lease of %s is not known: %s", report.application_id, error)
        return report
    if found is None:
        return report
    holder, seconds = found
    return replace(report, message=f"{report.message.rstrip('.')}. Its last holder, {holder}, had to renew it "
                                   f"within {seconds:g} s.")
