"""`kill`: the one function that ends an application, with a reason that YARN keeps, and waits until it is gone."""

import contextlib
import logging
import time

from ..errors import ApplicationNotFound, ClusterUnreachable
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
_ASK_AGAIN = 5.0
#: Seconds between two looks: the first pause, and the longest.
_PAUSE, _LONGEST_PAUSE = 0.05, 0.5


class StillEnding(ClusterUnreachable):
    """YARN has accepted the kill, and the application has not ended in time."""


def kill(session: Session, application_id: str, why: str, *, reason: Reason = Reason.KILLED,
         timeout: float | None = KILL_TIMEOUT, look_first: bool = True, attempt: int | None = None) -> JobReport:
    """Kill an application, wait until it is gone, delete its directory.

    A ResourceManager that restarts knows no application until it has recovered them, and may forget a kill that it has
    accepted. Therefore ask for the application until its end, and kill it again if it still runs.

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
    unseen = JobReport(application_id, state="KILLED", final_status="KILLED", reason=reason, message=why,
                       user=session.cluster.user, killed_by_attempt=attempt)
    text = "" if look_first else compose_diagnostics(unseen, _KILL_DIAGNOSTICS)
    known, accepted, ask_at, pause = False, False, 0.0, _PAUSE
    while True:
        try:
            if look_first or accepted:
                found = resourcemanager.get_recovered(application_id, max(0.0, until - time.monotonic()))
                known = True
                if found["state"] in ENDED:
                    return session.read(found)
                if accepted and time.monotonic() >= until:
                    raise StillEnding(f"{application_id} is {found['state']} {timeout:g} s after the kill")
                text = text or compose_diagnostics(kill_report(found, reason, why, session.live.fetch(found), attempt),
                                                   _KILL_DIAGNOSTICS)
            if time.monotonic() >= ask_at:
                with contextlib.suppress(ApplicationNotFound) if known else contextlib.nullcontext():
                    resourcemanager.kill(application_id, text)
                if not accepted:  # log after the request: a full pipe without a reader blocks
                    logger.info("killing %s : %s", application_id, why)
                accepted, ask_at = True, time.monotonic() + _ASK_AGAIN
                if timeout is None:
                    return unseen
        except ApplicationNotFound as error:
            if look_first or accepted or not resourcemanager.recovering(application_id):
                session.forget(unseen)
                return lost_report(application_id) if known else unsubmitted_report(application_id, why)
            if time.monotonic() >= until:
                raise ClusterUnreachable(f"the ResourceManager is still recovering: {error}") from error
        except ClusterUnreachable as error:
            if not accepted:
                raise
            if time.monotonic() >= until:
                raise error if isinstance(error, StillEnding) else StillEnding(
                    f"YARN has accepted the kill of {application_id}, and does not answer since: {error}") from error
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.5)
