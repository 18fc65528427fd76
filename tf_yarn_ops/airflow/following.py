"""`follow`: wait for the end of an application and write its progress into the task's log.

The trigger awaits it in the triggerer. A synchronous task calls `run_in_thread`, so that signals still reach its
main thread. All tasks of one deployment in one event loop share one list call of the ResourceManager (`follow.watch`).
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import TfYarnError
from ..follow.lease import Lease, lease_of
from ..follow.watch import watcher_for
from ..hadoop.cluster import Cluster, SecurityFacts, StorageFacts
from ..hadoop.site import Site
from ..job.parts import values_that_differ
from ..job.spec import JobSpec
from ..launch.identity import Identity, deployment_tag
from ..launch.launcher import Launcher
from ..runtime.common.escaping import escape_controls
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.progress import SILENCE_SECONDS, Lines
from .outcome import without_texts

if TYPE_CHECKING:
    from .streamed_log import ProgramLines

Made = TypeVar("Made")

#: Who holds the lease of an application, for the report of one that runs out.
HOLDER = "a worker or triggerer of Airflow"
#: Pages of running jobs that all tasks of one deployment in one event loop ask for in a second, at most.
PAGES = 2.0
#: Seconds between two tries to kill an application after its deadline, while YARN does not answer.
_KILL_AGAIN = 5.0
#: Seconds between two calls of the checkpoint.
_TICK = 0.5
#: Facts that only a submission or a log needs, and are long; and secrets.
_LEFT_OUT = ("nodes", "logs", "tokens")
_SITE_FOR_SUBMISSION = (
    "application_classpath",
    "am_java_options",
    "docker_folders",
    "namenodes",
    "resourcemanager_service",
    "token_renewer",
)


@dataclass(frozen=True)
class FollowedJob:
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


async def follow(
    followed: FollowedJob, log: logging.Logger, moved: Callable[[str], None], program: "ProgramLines | None" = None
) -> JobReport:
    """Wait for the end of an application, or for the deadline, and log each change of its state.

    Parameters
    ----------
    followed : FollowedJob
    log : logging.Logger
        The task's log. It is written in the caller's context only.
    moved : callable
        Called with the application id of each report. The id changes when another application of the same training
        takes over.
    program : ProgramLines, optional
        Logs the lines of the job's program. Closed at the end. Default: none.

    Returns
    -------
    JobReport
        With a reason: that of the application's end, or EXECUTION_TIMEOUT after the deadline.
    """
    tag = deployment_tag(followed.identity.deployment)
    watcher = watcher_for(followed.cluster, tag=tag, interval=followed.poll_interval, pages=PAGES)
    lines, application_id = Lines(), followed.application_id
    last: JobReport | None = None

    def show(report: JobReport) -> None:
        nonlocal application_id, last
        moved(report.application_id)
        if report.application_id != application_id:
            log.info("%s was ended in favour of %s", application_id, report.application_id)
            application_id = report.application_id
        last = without_texts(report)  # the triggerer can't mask a secret that the program has printed
        remind()

    def remind() -> None:
        """Log what has changed, or a line after a silence, as ``ytf-submit --wait`` does."""
        if last is not None:
            for line in lines.changes(last, time.monotonic()):
                log.info("%s", escape_controls(line))

    async def wait() -> JobReport:
        if program is not None:
            await program.start(lambda: application_id)
        return await watcher.wait(
            followed.application_id,
            on_change=show,
            identity=followed.identity,
            queue_timeout=followed.queue_timeout,
            lease=followed.lease,
        )

    waiting = asyncio.ensure_future(wait())
    try:
        while True:
            left = math.inf if followed.deadline is None else followed.deadline - time.time()
            await asyncio.wait({waiting}, timeout=max(0.0, min(SILENCE_SECONDS / 4, left)))
            if waiting.done():
                if program is not None:
                    await program.finish()
                return waiting.result()
            remind()
            if followed.deadline is not None and time.time() >= followed.deadline:
                return await _overdue(followed, application_id, log)
    finally:
        waiting.cancel()
        if program is not None:
            program.close()


async def _overdue(followed: FollowedJob, application_id: str, log: logging.Logger) -> JobReport:
    """Kill an application after its deadline; try again for the site's ``unreachable_timeout``."""
    why = "The task's execution_timeout is over"
    if not followed.kill:
        log.warning("%s; %s is left alone", why, application_id)
        return JobReport(application_id, reason=Reason.EXECUTION_TIMEOUT, message=f"{why}; the application continues")
    until = time.monotonic() + followed.cluster.site.unreachable_timeout
    with closing(Launcher(followed.cluster)) as launcher:
        while True:
            try:
                report = await asyncio.to_thread(launcher.kill, application_id, why, reason=Reason.EXECUTION_TIMEOUT)
                if report.reason is Reason.KILLED and not report.state:  # YARN has forgotten it: nothing was killed
                    return JobReport(
                        application_id,
                        reason=Reason.EXECUTION_TIMEOUT,
                        message=f"{why}, and YARN no longer knows the application",
                    )
                return report
            except TfYarnError as error:
                log.warning("%s, but %s could not be killed: %s", why, application_id, error)
                if time.monotonic() >= until:
                    return JobReport(
                        application_id,
                        reason=Reason.EXECUTION_TIMEOUT,
                        message=f"{why}, and it could not be killed: {error}",
                    )
            await asyncio.sleep(_KILL_AGAIN)


def run_in_thread(work: Callable[[], Coroutine[Any, Any, Made]], checkpoint: Callable[[], None]) -> Made:
    """Run a coroutine in a thread; return its result.

    Parameters
    ----------
    work : callable
        Returns the coroutine, as that of `follow`.
    checkpoint : callable
        Called twice a second. An error of the checkpoint, or of a signal handler, ends the wait.
    """
    thread: _Thread[Made] = _Thread(work)
    try:
        thread.start()
        while True:
            try:
                return thread.result.result(_TICK)
            except concurrent.futures.TimeoutError:
                checkpoint()
    finally:
        thread.cancel()


class _Thread(threading.Thread, Generic[Made]):
    """Runs a coroutine in an event loop of its own.

    The thread makes the loop: Airflow's alarm raises in the main thread, and would leave half a loop there.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Made]]):
        super().__init__(name="tf-yarn-wait", daemon=True)
        self.result: concurrent.futures.Future[Made] = concurrent.futures.Future()
        self._work = work
        self._task: asyncio.Task[Made] | None = None
        self._cancelled = False

    def run(self) -> None:
        try:
            self.result.set_result(asyncio.run(self._main()))  # its end cancels the shared poll, which may sleep
        except BaseException as error:  # the main thread raises it
            self.result.set_exception(error)

    async def _main(self) -> Made:
        self._task = asyncio.ensure_future(self._work())
        if self._cancelled:  # before there was a task
            self._task.cancel()
        return await self._task

    def cancel(self) -> None:
        """End the thread if it still runs."""
        self._cancelled = True
        if self._task is not None and not self.result.done():
            with contextlib.suppress(RuntimeError):  # the loop was closed a moment ago
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        if self.is_alive():
            self.join(2.0)


# --- arguments of a trigger, which lie in clear text in Airflow's database: addresses, names and paths, no secrets ---
def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Return the fields of a cluster that a client needs to watch and to kill, as values for JSON."""
    parts: dict[str, Any] = {"storage": StorageFacts(), "security": SecurityFacts()}
    found = {
        **values_that_differ(cluster, Cluster((), "", "", **parts)),
        **{name: values_that_differ(getattr(cluster, name), plain) for name, plain in parts.items()},
        "site": values_that_differ(cluster.site),
    }
    for name in _SITE_FOR_SUBMISSION:
        found["site"].pop(name, None)
    return {name: value for name, value in found.items() if name not in _LEFT_OUT}


def cluster_from_dict(document: Mapping[str, Any]) -> Cluster:
    """Read the document of `cluster_to_dict`."""
    parts = {"storage": StorageFacts, "security": SecurityFacts, "site": Site}
    made = {name: part(**_with_tuples(document.get(name, {}))) for name, part in parts.items()}
    return Cluster(**{"resourcemanagers": (), "user": "", "login": ""} | _with_tuples(document) | made)


def lease_to_dict(spec: JobSpec) -> dict[str, Any] | None:
    """Return the lease of a job as values for JSON, without its holder; None if it has none."""
    lease = lease_of(spec, "")
    return None if lease is None else {"seconds": lease.seconds, "lifetime": lease.lifetime}


def _with_tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}
