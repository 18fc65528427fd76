"""`kill_application`: the one function that ends an application, with a reason that YARN keeps, and waits until it is
gone.

`take_back` calls it where an exception ends the caller of an application.
"""

import logging
import time

from ..errors import ApplicationNotFound, ClusterUnreachable, TfYarnError
from ..hadoop.resourcemanager import ENDED
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, compose_diagnostics
from .session import Session
from .yarn_report import kill_report, lost_report, unsubmitted_report

logger = logging.getLogger(__name__)

#: Seconds until the application has to be gone; YARN needs 0.1 s, and more after a fail-over.
KILL_TIMEOUT = 30.0
#: Bytes of the diagnostics of our kills; YARN keeps 64 KB but sends them with every list.
_KILL_DIAGNOSTICS = 8 * 1024
#: Seconds after which an application that still lives is killed again.
_REPEAT_SECONDS = 5.0
#: Seconds between two looks: the first pause, and the longest.
_PAUSE, _LONGEST_PAUSE = 0.05, 0.5


class StillEnding(ClusterUnreachable):
    """YARN has accepted the kill, and the application has not ended in time."""


def kill_application(
    session: Session,
    application_id: str,
    why: str,
    *,
    reason: Reason = Reason.KILLED,
    timeout: float | None = KILL_TIMEOUT,
    look_first: bool = True,
    attempt: int | None = None,
) -> JobReport:
    """Kill an application, wait until it is gone, delete its directory.

    A ResourceManager that restarts may forget a kill that it has accepted. Therefore ask for the application until its
    end, and kill it again if it still runs.

    Parameters
    ----------
    session : Session
    application_id : str
        May be an id that was only reserved.
    why : str
        A sentence for the report, which YARN keeps.
    reason : Reason, optional
        Default KILLED.
    timeout : float, optional
        Seconds. Default 30. None returns as soon as YARN has accepted the kill, and leaves the directory.
    look_first : bool, optional
        Ask for the application before the kill (default): YARN then keeps the states of its tasks with the reason, and
        an ended application stays unchanged. False sends the kill first, for a client with only seconds left.
    attempt : int, optional
        The engine's attempt that kills, for the report's ``killed_by_attempt``. Default: none.

    Returns
    -------
    JobReport
        The application's own end if it had ended before; otherwise the kill with ``reason``. KILLED for an id that
        was never submitted.

    Raises
    ------
    SubmissionRejected
        The user may not kill it.
    StillEnding
        YARN has accepted the kill, and the application has not ended in time.
    ClusterUnreachable
        YARN has not answered in time.
    """
    resourcemanager, until = session.resourcemanager, time.monotonic() + (timeout or 0.0)
    unseen = JobReport(
        application_id,
        state="KILLED",
        final_status="KILLED",
        reason=reason,
        message=why,
        user=session.cluster.user,
        killed_by_attempt=attempt,
    )
    text = "" if look_first else compose_diagnostics(unseen, _KILL_DIAGNOSTICS)
    known, accepted, ask_at, pause = False, False, 0.0, _PAUSE
    while True:
        try:
            left = max(0.0, until - time.monotonic())
            if look_first or accepted:
                found = resourcemanager.get(application_id, left)
                known = True
                if found["state"] in ENDED:
                    return session.read(found)
                if accepted and time.monotonic() >= until:
                    raise StillEnding(f"{application_id} is {found['state']} {timeout:g} s after the kill")
                if not text:
                    try:
                        killed = kill_report(found, reason, why, session.live.fetch(found), attempt)
                    except Exception as error:  # the page is its user's program, and must not prevent the kill
                        logger.warning("the kill of %s omits the states of its tasks: %r", application_id, error)
                        killed = unseen
                    text = compose_diagnostics(killed, _KILL_DIAGNOSTICS)
            if time.monotonic() >= ask_at:
                resourcemanager.kill(application_id, text, left)
                if not accepted:  # log after the request: a full pipe without a reader blocks
                    logger.info("killing %s: %s", application_id, why)
                accepted, ask_at = True, time.monotonic() + _REPEAT_SECONDS
                if timeout is None:
                    return unseen
        except ApplicationNotFound:
            session.forget(unseen)
            return lost_report(application_id) if known else unsubmitted_report(application_id, why)
        except ClusterUnreachable as error:
            if not accepted:
                raise
            if time.monotonic() >= until:
                raise (
                    error
                    if isinstance(error, StillEnding)
                    else StillEnding(
                        f"YARN has accepted the kill of {application_id}, and does not answer since: {error}"
                    )
                ) from error
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.5)


def take_back(session: Session, application_id: str, error: BaseException) -> None:
    """Kill an application during the handling of an error, without masking the error.

    Another Ctrl-C during the kill gives up; the log then names the application.
    """
    again = "; a second Ctrl-C leaves it running" if isinstance(error, KeyboardInterrupt) else ""
    logger.log(
        logging.INFO if isinstance(error, Exception) else logging.WARNING,
        "killing %s after %s%s",
        application_id,
        type(error).__name__,
        again,
    )
    try:
        kill_application(
            session, application_id, session.why_cancelled or f"Its client ended with {type(error).__name__}"
        )
    except (TfYarnError, KeyboardInterrupt) as second:
        logger.warning(
            "%s may still run (%s); next: ytf kill %s",
            application_id,
            str(second) or type(second).__name__,
            application_id,
        )
