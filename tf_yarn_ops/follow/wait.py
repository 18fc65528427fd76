"""`waiting`: the one loop that waits for the end of an application; and its blocking driver.

The loop is a coroutine, and does no input or output itself. `wait_for` runs it for one application with a driver that
blocks, without an event loop; `follow.watch` runs it for many in one event loop, from shared list calls of the
ResourceManager.
"""

import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ..errors import (
    ApplicationNotFound,
    Cancelled,
    ClusterUnreachable,
    CredentialsRefused,
    KerberosRefused,
    SubmissionRejected,
    TfYarnError,
    TicketMissing,
    WaitTimeout,
)
from ..hadoop.resourcemanager import LIVE, has_launched
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from .kill import kill_application, take_back
from .lease import PART, Lease, note_holder
from .session import Session
from .yarn_report import lost_report, queue_overrun

logger = logging.getLogger(__name__)

#: Seconds after which a waiter is given an unchanged report again, so that it can say that the job goes on.
REPEAT = 20.0
#: Seconds in which the coordinator's report of a running application has to appear.
SILENT_AFTER = 60.0
#: Seconds before the next try to move a lease, if YARN did not answer, at most.
_AGAIN = 10.0
#: Seconds after the submission at which a lease may be moved although YARN has not launched the application master.
_SETTLED = 2.0
#: The reasons of an application that a client may have killed in favour of another one of the same training.
REPLACEABLE = (Reason.KILLED, Reason.SUPERSEDED)


class Training(Protocol):
    """The part of `launch.identity.Identity` that a wait uses."""

    @property
    def tag(self) -> str:
        """The YARN tag of its applications."""

    def successor_of(self, ended: JobReport, listed: Iterable[Mapping[str, Any]]) -> str | None:
        """Return the live application in whose favour another one was killed; None if there is none."""


@dataclass(frozen=True)
class Driver:
    """What a wait awaits. The errors of these calls reach the wait, which handles those of YARN.

    Attributes
    ----------
    poll : callable
        Returns YARN's object of an application and its report. ApplicationNotFound comes from an active ResourceManager
        only.
    call : callable
        Returns the answer of a blocking call with a session.
    renew : callable
        As ``call``, for the move of a lease.
    pause : callable
        Lets time pass until the next poll. Its argument is the last report.
    """

    poll: Callable[[str], Awaitable[tuple[Mapping[str, Any], JobReport]]]
    call: Callable[[Callable[[Session], Any]], Awaitable[Any]]
    renew: Callable[[Callable[[Session], bool]], Awaitable[bool]]
    pause: Callable[[JobReport | None], Awaitable[None]]


class Renewals:
    """Moves the lease of a client that waits.

    Parameters
    ----------
    lease : Lease
    clock : callable, optional
        Monotonic, seconds.
    """

    def __init__(self, lease: Lease, clock: Callable[[], float] = time.monotonic):
        self._lease = lease
        self._clock = clock
        self._application_id = ""
        self._next = -math.inf
        self._refused = False
        self._recorded = ""

    async def move(self, driver: Driver, application: Mapping[str, Any]) -> None:
        """Move the end of an application if it is time, and note the holder once; an error does not end the wait.

        A change that YARN stores while it launches the application master can break the launch.
        """
        name, user = str(application["id"]), str(application.get("user") or "")
        if name != self._application_id:
            self._application_id, self._next = name, -math.inf
        settled = has_launched(application) or int(application.get("elapsedTime") or 0) >= 1000 * _SETTLED
        end = self._lease.end(application) if settled and self._clock() >= self._next else None
        if end is None:
            return
        at, leased = end

        def request(session: Session) -> bool:
            session.resourcemanager.set_lifetime(name, at, leased)
            return self._recorded == name or note_holder(session.staging, name, user, self._lease)

        pause = PART * self._lease.seconds
        try:
            self._recorded = name if await driver.renew(request) else self._recorded
            if self._refused:
                logger.info("the lease of %s moves again", name)
            self._refused = False
            pause *= random.uniform(0.8, 1.0)
        except SubmissionRejected as error:
            logger.log(
                logging.DEBUG if self._refused else logging.WARNING,
                "%s: YARN does not let this client move the end of its lease (%s). If the end was set before, YARN "
                "ends the application then; otherwise the application continues when this client is gone",
                name,
                error,
            )
            self._refused = True
        except (ApplicationNotFound, ClusterUnreachable) as error:
            logger.debug("the lease of %s was not moved: %s", name, error)
            pause = min(_AGAIN, PART * pause)
        self._next = self._clock() + pause


class Outage:
    """Logs an outage of YARN once: when it begins, when the kind of its error changes, and when it ends.

    Parameters
    ----------
    clock : callable, optional
        Monotonic, seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._kind: type[Exception] | None = None
        self._since = 0.0

    def failed(self, error: Exception, text: str, *values: object) -> None:
        """Log an error at the level WARNING if its kind is new, with the format ``text``."""
        if self._kind is None:
            self._since = self._clock()
        logger.log(logging.DEBUG if self._kind is type(error) else logging.WARNING, text, *values)
        self._kind = type(error)

    def answered(self) -> None:
        """Log the end of an outage."""
        if self._kind is not None:
            logger.info("YARN answers again after %.0f s", self._clock() - self._since)
        self._kind = None


async def waiting(
    application_id: str,
    driver: Driver,
    *,
    on_change: Callable[[JobReport], None],
    queue_timeout: float = 0.0,
    identity: Training | None = None,
    unreachable_timeout: float = math.inf,
    obstacle: Callable[[], str] | None = None,
    lease: Lease | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> JobReport:
    """Wait for the end of an application, through restarts of the ResourceManager.

    Parameters
    ----------
    application_id : str
    driver : Driver
    on_change : callable
        Called with every report that differs from the one before, the last included, and every `REPEAT` seconds
        with the same one.
    queue_timeout : float, optional
        Seconds in the queue after which the application is killed. Default 0: no limit.
    identity : Training, optional
        When the application is killed in favour of another one of the same generation, wait for that one.
    unreachable_timeout : float, optional
        Seconds without an answer after which `ClusterUnreachable` is raised. Default: never.
    obstacle : callable, optional
        Returns why the driver could not ask for the tasks of the running job; empty if it could. A job that has run for
        `SILENT_AFTER` seconds without tasks in its reports is logged once. Default: its reports never have tasks.
    lease : Lease, optional
        The lease to move while the application lives. Default: none.
    clock : callable, optional
        Monotonic, seconds.

    Returns
    -------
    JobReport
        With a reason; LOST when YARN no longer knows the application.

    Raises
    ------
    ClusterUnreachable, TicketMissing, KerberosRefused, CredentialsRefused
        YARN has not answered for ``unreachable_timeout`` seconds.
    """
    last: JobReport | None = None
    reported = clock()
    outage, answered, refused = Outage(clock), clock(), ""
    silent_since = math.inf
    silence_logged = False
    renewals = Renewals(lease, clock) if lease is not None else None

    def changed(report: JobReport) -> None:
        nonlocal last, reported
        if report != last or clock() - reported >= REPEAT:
            last, reported = report, clock()
            on_change(report)

    while True:
        try:
            application, report = await driver.poll(application_id)
            outage.answered()
            if report.reason is not None:
                successor = await _successor(driver, report, identity)
                if successor is None:
                    final: JobReport = await driver.call(partial(Session.finish, ended=report))
                    changed(final)
                    return final
                logger.info("%s was ended in favour of %s", application_id, successor)
                application_id = successor
                continue
            changed(report)
            silent = application["state"] == "RUNNING" and not report.tasks
            silent_since = min(silent_since, clock()) if silent else math.inf
            if obstacle is not None and not silence_logged and clock() - silent_since > SILENT_AFTER:
                silence_logged = True
                if hidden := obstacle():
                    logger.warning("%s runs, but this client can't show its tasks: %s", application_id, hidden)
                else:
                    logger.warning(
                        "%s has run for %.0f s, and its coordinator does not show itself. Next: ytf logs %s "
                        "--task master . On a secured cluster its token may name another address of the "
                        "ResourceManager than the nodes use: see resourcemanager_service in site.yaml",
                        application_id,
                        SILENT_AFTER,
                        application_id,
                    )
            why = queue_overrun(application, queue_timeout)
            if why is not None:
                try:
                    await driver.call(
                        partial(kill_application, application_id=application_id, why=why, reason=Reason.QUEUE_TIMEOUT)
                    )
                    answered = clock()
                    continue
                except SubmissionRejected as error:
                    if str(error) != refused:
                        refused = str(error)
                        logger.warning(
                            "%s is over its queue deadline and could not be killed: %s", application_id, error
                        )
            answered = clock()
            if renewals is not None:
                await renewals.move(driver, application)
        except ApplicationNotFound as error:
            report = lost_report(application_id, error)
            changed(report)
            return report
        except (ClusterUnreachable, SubmissionRejected) as error:
            # A refused ticket, or a 403 of a proxy, does not end the application either: keep waiting.
            silent = clock() - answered
            if silent >= unreachable_timeout:
                refusals = (TicketMissing, KerberosRefused, CredentialsRefused)
                kind = next((kind for kind in refusals if isinstance(error, kind)), ClusterUnreachable)
                raise kind(f"waited {silent:.0f} s for {application_id}: {error}") from error
            outage.failed(error, "still waiting for %s: %s", application_id, error)
        await driver.pause(last)


async def _successor(driver: Driver, ended: JobReport, identity: Training | None) -> str | None:
    """Return the live application that trains instead of an ended one; None if there is none."""
    if identity is None or ended.reason not in REPLACEABLE:
        return None
    tags, user = [identity.tag], ended.user or None
    found = await driver.call(lambda session: session.resourcemanager.find(tags, LIVE, user))
    return identity.successor_of(ended, found)


def wait_for(
    session: Session,
    application_id: str,
    *,
    timeout: float | None = None,
    on_change: Callable[[JobReport], None] | None = None,
    poll_interval: float = 0.5,
    queue_timeout: float = 0.0,
    identity: Training | None = None,
    lease: Lease | None = None,
    ours: bool = True,
    on_poll: Callable[[Mapping[str, Any], JobReport], None] | None = None,
) -> JobReport:
    """Wait with blocking calls; see `Launcher.wait`.

    A cancellation, Ctrl-C and an exit in a signal handler kill the application, unless it is not ``ours``: then the
    wait only ends.
    """
    began = time.monotonic()
    seen: list[str] = [application_id]
    ended: list[tuple[Mapping[str, Any], JobReport]] = []

    def show_end() -> None:
        """Show an application that has ended, after its verdict: its log may be long."""
        while ended and on_poll is not None:
            on_poll(*ended.pop())

    async def poll(name: str) -> tuple[Mapping[str, Any], JobReport]:
        seen[0] = name
        application = session.resourcemanager.get(name)
        report = session.read_report(application)
        show_end()  # it was ended in favour of this one
        if report.reason is not None:
            ended.append((application, report))
        elif on_poll is not None:
            on_poll(application, report)
        return application, report

    async def call(request: Callable[[Session], Any]) -> Any:
        return request(session)

    async def pause(last: JobReport | None) -> None:
        if session.cancelled and not ours:
            raise Cancelled(f"cancelled while {seen[0]} was waited for, which continues")
        if session.cancelled:
            why = session.why_cancelled or "Cancelled by the client that waited for it"
            killed = kill_application(session, seen[0], why)
            if on_poll is not None:
                with suppress(TfYarnError):  # its last lines, such as "checkpoint saved"
                    on_poll(session.resourcemanager.get(seen[0]), killed)
            raise Cancelled(f"{seen[0]} was cancelled, and killed")
        if timeout is not None and time.monotonic() - began >= timeout:
            state = f"{last.state}, {last.message or 'no message'}" if last else "never seen"
            raise WaitTimeout(f"{seen[0]} has not ended after {timeout:g} s ({state}); it goes on")
        time.sleep(poll_interval * random.uniform(0.9, 1.1))

    wait = waiting(
        application_id,
        Driver(poll, call, call, pause),
        on_change=on_change or (lambda report: None),
        queue_timeout=queue_timeout,
        identity=identity,
        lease=lease,
        unreachable_timeout=session.cluster.site.unreachable_timeout,
        # A gateway may not lead to the page of the job.
        obstacle=(lambda: session.live.obstacle)
        if session.cluster.security.kerberos and session.cluster.site.credentials is None
        else None,
    )
    try:
        final = _run_blocking(wait)
    except (KeyboardInterrupt, SystemExit) as error:
        if ours:
            take_back(session, seen[0], error)
        raise
    show_end()
    return final


def _run_blocking(wait: Coroutine[Any, Any, JobReport]) -> JobReport:
    """Return the result of a coroutine whose awaited calls block, so that it ends without a pause."""
    try:
        wait.send(None)
    except StopIteration as end:
        report: JobReport = end.value
        return report
    raise AssertionError("a call of a blocking driver has awaited an event loop")
