"""`follow`: wait for the end of an application and write its progress into the task's log.

The trigger awaits it in the triggerer, and a synchronous task in a thread of its worker. All tasks of one deployment in
one event loop share one list call of the ResourceManager (`follow.watch`).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from ..errors import TfYarnError
from ..follow.lease import Lease
from ..follow.watch import watcher_for
from ..hadoop.cluster import Cluster
from ..launch.identity import Identity, deployment_tag
from ..launch.launcher import Launcher
from ..runtime.common.escaping import escape_controls
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.progress import SILENCE_SECONDS, Lines
from .outcome import without_texts
from .streamed_log import LAST_SECONDS, ProgramLines

#: Who holds the lease of an application, for the report of one that runs out.
HOLDER = "a worker or triggerer of Airflow"
#: Pages of running jobs that all tasks of one deployment in one event loop ask for in a second, at most.
PAGES = 2.0
#: Seconds between two tries to kill an application after its deadline, while YARN does not answer.
_KILL_AGAIN = 5.0


@dataclass(frozen=True)
class Followed:
    """The application to follow, and its limits.

    Attributes
    ----------
    cluster : Cluster
        With the user of the application.
    application_id : str
    identity : Identity
    deadline : float or None
        The end of the task's ``execution_timeout``, seconds since the epoch. None for no limit.
    queue_timeout : float
        Seconds in the queue after which the application is killed; 0 for no limit.
    poll_interval : float
        Seconds between two list calls.
    kill : bool
        Whether the application is killed at the deadline.
    lease : Lease or None
        The lease to move.
    """

    cluster: Cluster
    application_id: str
    identity: Identity
    deadline: float | None = None
    queue_timeout: float = 0.0
    poll_interval: float = 5.0
    kill: bool = True
    lease: Lease | None = None


async def follow(followed: Followed, log: logging.Logger, moved: Callable[[str], None],
                 program: ProgramLines | None = None) -> JobReport:
    """Wait for the end of an application, or for the deadline, and log each change of its state.

    Parameters
    ----------
    followed : Followed
    log : logging.Logger
        The task's log. It is written in the caller's context only.
    moved : callable
        Called with the application id of each report. The id changes when another application of the same training
        takes over.
    program : ProgramLines, optional
        Tells the lines of the job's program. It is closed at the end. Default: none.

    Returns
    -------
    JobReport
        With a reason: that of the application's end, or EXECUTION_TIMEOUT after the deadline.
    """
    tag = deployment_tag(followed.identity.deployment) if followed.identity.deployment else followed.identity.tag
    watcher = watcher_for(followed.cluster, tag=tag, interval=followed.poll_interval, pages=PAGES)
    lines = _Lines(log, followed.application_id)

    def show(report: JobReport) -> None:
        moved(report.application_id)
        lines.tell(report)

    waiting = asyncio.ensure_future(watcher.wait(
        followed.application_id, on_change=show, identity=followed.identity, queue_timeout=followed.queue_timeout,
        lease=followed.lease))
    telling = None if program is None else asyncio.ensure_future(program.follow(lambda: lines.application_id))
    try:
        while True:
            await asyncio.wait({waiting}, timeout=lines.pause(followed.deadline))
            if waiting.done():
                if program is not None and telling is not None:
                    program.end()
                    _, late = await asyncio.wait({telling}, timeout=LAST_SECONDS)
                    if late:
                        log.warning("stream_logs: the last lines of the program did not come within %.0f s; all of "
                                    "them: ytf logs %s", LAST_SECONDS, lines.application_id)
                return waiting.result()
            lines.remind()
            if followed.deadline is not None and time.time() >= followed.deadline:
                return await _overdue(followed, lines.application_id, log)
    finally:
        waiting.cancel()
        if program is not None and telling is not None:
            telling.cancel()
            program.close()


async def _overdue(followed: Followed, application_id: str, log: logging.Logger) -> JobReport:
    """Kill an application after its deadline; try again for the site's ``unreachable_timeout``."""
    why = "The task's execution_timeout is over"
    if not followed.kill:
        log.warning("%s ; %s is left alone", why, application_id)
        return JobReport(application_id, reason=Reason.EXECUTION_TIMEOUT, message=f"{why}; the application continues")
    until = time.monotonic() + followed.cluster.site.unreachable_timeout
    with closing(Launcher(followed.cluster)) as launcher:
        while True:
            try:
                report = await asyncio.to_thread(launcher.kill, application_id, why, reason=Reason.EXECUTION_TIMEOUT)
                if report.reason is Reason.KILLED and not report.state:  # YARN has forgotten it: nothing was killed
                    return JobReport(application_id, reason=Reason.EXECUTION_TIMEOUT,
                                     message=f"{why}, and YARN no longer knows the application")
                return report
            except TfYarnError as error:
                log.warning("%s , but %s could not be killed: %s", why, application_id, error)
                if time.monotonic() >= until:
                    return JobReport(application_id, reason=Reason.EXECUTION_TIMEOUT,
                                     message=f"{why}, and it could not be killed: {error}")
            await asyncio.sleep(_KILL_AGAIN)


class _Lines:
    """Logs each change of a report, and a line after `SILENCE_SECONDS` without one, as ``ytf-submit --wait`` does."""

    def __init__(self, log: logging.Logger, application_id: str):
        self.application_id = application_id
        self._log = log
        self._lines = Lines()
        self._report: JobReport | None = None

    def pause(self, deadline: float | None) -> float:
        """Return the seconds until the next look at the silence, or until the deadline."""
        return max(0.0, SILENCE_SECONDS / 4 if deadline is None else min(SILENCE_SECONDS / 4, deadline - time.time()))

    def tell(self, report: JobReport) -> None:
        """Log what has changed."""
        if report.application_id != self.application_id:
            self._log.info("%s was ended in favour of %s", self.application_id, report.application_id)
            self.application_id = report.application_id
        # The triggerer can't mask a secret that the program has printed.
        self._report = without_texts(report)
        self.remind()

    def remind(self) -> None:
        """Log what has changed, or a line after a silence."""
        if self._report is not None:
            for line in self._lines.changes(self._report, time.monotonic()):
                self._log.info("%s", escape_controls(line))
