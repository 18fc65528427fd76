"""`run_until_trained`: the one place that submits a job again, when no task of it has run."""

import logging
import random
import time
from collections.abc import Callable

from ..follow.session import Session
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from .identity import may_try_again

logger = logging.getLogger(__name__)

#: Seconds before the next submission, with jitter, longer each time: two jobs that each hold half of the containers
#: that they need should not meet again.
RETRY_PAUSE = 10.0
#: Seconds before the next submission when YARN could not launch the application master.
LAUNCH_PAUSE = 1.0


def pause_before(retry: int) -> float:
    """Return the seconds to wait before a retry, counted from 1."""
    return RETRY_PAUSE * retry * random.uniform(0.5, 1.5)


def run_until_trained(session: Session, start: Callable[[], JobReport], wait: Callable[[str], JobReport],
                      allocation_retries: int, after: JobReport | None = None) -> JobReport:
    """Start a job and wait for its end; start it again when it ended before a task ran.

    Parameters
    ----------
    session : Session
        Its cancellation ends the pause before a further start.
    start : callable
        Submits, or attaches to the running application; returns its report, with a reason if the job has ended.
    wait : callable
        Waits for the end of an application id.
    allocation_retries : int
        How often the job is submitted again after ALLOCATION_TIMEOUT.
    after : JobReport, optional
        The report of a first application, which another process has started and waited for. Default: start one.

    Returns
    -------
    JobReport
        The report of the last application, with a reason.

    Raises
    ------
    Cancelled
        The session was cancelled during a pause.
    """
    ended: list[JobReport] = []
    while True:
        if after is not None and not ended:
            report = after
        else:
            report = start()
            if report.reason is None:
                report = wait(report.application_id)
        ended.append(report)
        if not may_try_again(ended, allocation_retries):
            return report
        pause = pause_before(len(ended)) if report.reason is Reason.ALLOCATION_TIMEOUT else LAUNCH_PAUSE
        logger.info("%s: no task has run; submitting again in %.0f s: %s",
                    report.application_id, pause, report.message)
        until = time.monotonic() + pause
        while (left := until - time.monotonic()) > 0:
            session.checkpoint()
            time.sleep(min(0.2, left))
