"""Waiting for the end of an application, with deadlines, through restarts of the ResourceManager.

Blocking; `watching` does the same for many jobs at once.
"""

import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ApplicationNotFound, Cancelled, ClusterUnreachable, SubmissionRejected, WaitTimeout
from ..hadoop.resourcemanager import LIVE, RECOVERY_TIME
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from .identity import GIVEN_WAY, Identity, successor_of
from .yarn_report import lost_report, queue_overrun

if TYPE_CHECKING:
    from ..launch.launcher import Launcher

logger = logging.getLogger(__name__)

#: Looks in a row that have to say "unknown" of an application that was never seen.
LOST_AFTER = 2


class Unknown:
    """How often, and since when, YARN has not known an application; an answer between two begins anew."""

    def __init__(self) -> None:
        self._looks = 0
        self._since = 0.0

    def again(self, now: float, seen: bool) -> bool:
        """Tell whether it is lost by now; one that was ``seen`` before has a ResourceManager's time to be recovered."""
        self._since = self._since if self._looks else now
        self._looks += 1
        return self._looks >= LOST_AFTER and now - self._since >= (RECOVERY_TIME if seen else 0.0)

    def answered(self) -> None:
        """Note that YARN knows it."""
        self._looks = 0


class Waiting:
    """One wait.

    Parameters
    ----------
    launcher : Launcher
    application_id : str
    timeout : float or None
        Seconds until `WaitTimeout`.
    on_change : callable or None
        Called with every report that differs from the one before.
    poll_interval : float
        Seconds between two looks.
    queue_timeout : float
        Seconds in the queue after which the application is killed; 0 for none.
    identity : Identity or None
        Whose application it is: when it was killed in favour of another of the same
        generation, the wait goes on with that one.
    """

    def __init__(self, launcher: "Launcher", application_id: str, *, timeout: float | None = None,
                 on_change: Callable[[JobReport], None] | None = None, poll_interval: float = 0.5,
                 queue_timeout: float = 0.0, identity: Identity | None = None):
        self._launcher = launcher
        self._application_id = application_id
        self._timeout = timeout
        self._on_change = on_change
        self._poll_interval = poll_interval
        self._queue_timeout = queue_timeout
        self._identity = identity
        self._last: JobReport | None = None
        self._answered = time.monotonic()
        self._unknown = Unknown()
        self._refused = ""

    def run(self) -> JobReport:
        """Give the last report; see `Launcher.wait` for what it raises."""
        started = time.monotonic()
        while True:
            report = self._answer()
            if report is not None:
                return report
            if self._launcher.cancelled:
                why = self._launcher.why_cancelled or "Cancelled by the client that waited for it"
                self._launcher.kill(self._application_id, why)
                raise Cancelled(f"{self._application_id} was cancelled, and killed")
            if self._timeout is not None and time.monotonic() - started >= self._timeout:
                last = self._last
                state = f"{last.state}, {last.message or 'no message'}" if last else "never seen"
                raise WaitTimeout(f"{self._application_id} has not ended after {self._timeout:g} s ({state}); "
                                  "it goes on")
            time.sleep(self._poll_interval * random.uniform(0.9, 1.1))

    def _answer(self) -> JobReport | None:
        """Give the last report; None while the application goes on, and while nobody answers for not too long."""
        try:
            report = self._look()
            over = report is not None and report.reason is not None and not self._goes_on(report)
        except ClusterUnreachable as error:
            silent = time.monotonic() - self._answered
            if silent >= self._launcher.cluster.site.unreachable_timeout:
                raise ClusterUnreachable(f"waited {silent:.0f} s for {self._application_id}: {error}") from error
            logger.warning("still waiting for %s : %s", self._application_id, error)
            return None
        self._answered = time.monotonic()
        return report if over else None

    def _look(self) -> JobReport | None:
        """Give the report of now, killing what is over its deadline; None while YARN may be recovering."""
        try:
            application = self._launcher.resourcemanager.get(self._application_id)
        except ApplicationNotFound:
            if not self._unknown.again(time.monotonic(), self._last is not None):
                return None
            if self._last is None and self._launcher.resourcemanager.recovering(self._application_id):
                return None
            return self._changed(lost_report(self._application_id))
        except SubmissionRejected as error:
            # A refused ticket or a proxy's 403: the application runs on, whatever we are told.
            raise ClusterUnreachable(str(error)) from error
        self._unknown.answered()
        return self._changed(self._launcher.read(application) if not self._overdue(application) else
                             self._launcher.report(self._application_id))

    def _overdue(self, application: Mapping[str, Any]) -> bool:
        """Kill what is over its queue deadline; one that we may not kill is waited for, and tried again."""
        why = queue_overrun(application, self._queue_timeout)
        if why is None:
            return False
        try:
            self._launcher.kill(self._application_id, why, reason=Reason.QUEUE_TIMEOUT)
        except SubmissionRejected as error:
            if str(error) != self._refused:
                self._refused = str(error)
                logger.warning("%s is over its queue deadline and could not be killed: %s", self._application_id, error)
            return False
        return True

    def _changed(self, report: JobReport) -> JobReport:
        if report != self._last:
            self._last = report
            if self._on_change is not None:
                self._on_change(report)
        return report

    def _goes_on(self, report: JobReport) -> bool:
        """See by tag whether another one trains in its place."""
        if self._identity is None or report.reason not in GIVEN_WAY:
            return False
        found = self._launcher.resourcemanager.find(tags=[self._identity.tag], states=LIVE, user=report.user or None)
        successor = successor_of(report, found, self._identity)
        if successor is None:
            return False
        logger.info("%s was ended in favour of %s", self._application_id, successor)
        self._application_id = successor
        return True
