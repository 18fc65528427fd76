"""Following an application to its end: a coroutine that serves the trigger and, in a thread, the synchronous task.

All who follow applications of one deployment in one event loop share one poll (`watching`).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import TfYarnError
from ..follow.identity import Identity, deployment_tag
from ..follow.watch import watcher_for
from ..hadoop.cluster import Cluster
from ..launch.launcher import Launcher
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.summary import duration

#: Seconds between two lines about an application that just goes on.
REMINDER = 600.0
#: Seconds between two tries to kill what is over its deadline while nobody answers.
_KILL_AGAIN = 5.0


@dataclass(frozen=True)
class Followed:
    """What is followed, and for how long.

    Attributes
    ----------
    cluster : Cluster
        As the application's user sees it.
    application_id : str
    identity : Identity
    deadline : float or None
        Seconds since the epoch.
    queue_timeout : float
        Seconds in the queue after which it is killed; 0 for no limit.
    poll_interval : float
        Seconds.
    kill : bool
        Whether it is killed at the deadline.
    """

    cluster: Cluster
    application_id: str
    identity: Identity
    deadline: float | None = None
    queue_timeout: float = 0.0
    poll_interval: float = 5.0
    kill: bool = True


async def follow(followed: Followed, log: logging.Logger, moved: Callable[[str], None]) -> JobReport:
    """Wait for the end of an application, or for the deadline, and say in the log how it gets on.

    Parameters
    ----------
    followed : Followed
    log : logging.Logger
        Of the task; used only in the caller's own context.
    moved : callable
        Called with the id of the application that is followed now, when it is another one.
    """
    tag = deployment_tag(followed.identity.deployment) if followed.identity.deployment else followed.identity.tag
    watcher = watcher_for(followed.cluster, tag=tag, interval=followed.poll_interval)
    changes: asyncio.Queue[JobReport] = asyncio.Queue()
    waiting = asyncio.ensure_future(watcher.wait(
        followed.application_id, on_change=changes.put_nowait, identity=followed.identity,
        queue_timeout=followed.queue_timeout))  # fmt: skip
    teller = _Teller(log, followed.application_id)
    news = None
    try:
        while not waiting.done():
            news = asyncio.ensure_future(changes.get())
            await asyncio.wait({waiting, news}, timeout=teller.pause(followed.deadline),
                               return_when=asyncio.FIRST_COMPLETED)
            reports = [news.result()] if news.done() else []
            news.cancel()
            while not changes.empty():
                reports.append(changes.get_nowait())
            for report in reports:
                moved(report.application_id)
                teller.tell(report)
            teller.remind()
            if not waiting.done() and followed.deadline is not None and time.time() >= followed.deadline:
                return await _overdue(followed, teller.application_id, log)
        return waiting.result()
    finally:
        waiting.cancel()
        if news is not None:
            news.cancel()


async def _overdue(followed: Followed, application_id: str, log: logging.Logger) -> JobReport:
    """End what has passed its deadline, for as long as it takes to reach YARN."""
    why = "The task's execution_timeout is over"
    if not followed.kill:
        log.warning("%s ; %s is left alone", why, application_id)
        return JobReport(application_id, reason=Reason.EXECUTION_TIMEOUT, message=f"{why}; the application goes on")
    launcher = Launcher(followed.cluster)
    until = time.monotonic() + followed.cluster.site.unreachable_timeout
    try:
        while True:
            try:
                report = await asyncio.to_thread(launcher.kill, application_id, why, reason=Reason.EXECUTION_TIMEOUT)
                if report.reason is Reason.KILLED and not report.state:  # nobody killed what is forgotten
                    return JobReport(application_id, reason=Reason.EXECUTION_TIMEOUT,
                                     message=f"{why}, and YARN no longer knows the application")
                return report
            except TfYarnError as error:
                log.warning("%s , but %s could not be killed: %s", why, application_id, error)
                if time.monotonic() >= until:
                    return JobReport(application_id, reason=Reason.EXECUTION_TIMEOUT,
                                     message=f"{why}, and it could not be killed: {error}")
            await asyncio.sleep(_KILL_AGAIN)
    finally:
        launcher.close()


class _Teller:
    """Says what changes, and now and then that nothing does."""

    def __init__(self, log: logging.Logger, application_id: str):
        self.application_id = application_id
        self._log = log
        self._state = ""
        self._message = ""
        self._began = self._told = time.monotonic()

    def pause(self, deadline: float | None) -> float:
        """Give the seconds until there is something to do."""
        quiet = self._told + REMINDER - time.monotonic()
        return max(0.0, quiet if deadline is None else min(quiet, deadline - time.time()))

    def tell(self, report: JobReport) -> None:
        """Write a line when the state is another one."""
        self._message = report.message
        if report.application_id != self.application_id:
            self._log.info("%s was ended in favour of %s", self.application_id, report.application_id)
            self.application_id = report.application_id
        if report.state != self._state:
            self._state = report.state
            where = f" in queue {report.queue}" if report.state == "ACCEPTED" and report.queue else ""
            page = f", {report.tracking_url}" if report.state == "RUNNING" and report.tracking_url else ""
            self._write(f"{report.application_id} {report.state}{where}{page}")

    def remind(self) -> None:
        """Write a line when there was none for a long time."""
        if time.monotonic() - self._told >= REMINDER:
            cause = f": {self._message}" if self._message and self._state != "RUNNING" else ""
            so_far = duration(time.monotonic() - self._began)
            self._write(f"{self.application_id} still {self._state or 'unknown'}, watched for {so_far}{cause}")

    def _write(self, line: str) -> None:
        self._told = time.monotonic()
        self._log.info("%s", line)
