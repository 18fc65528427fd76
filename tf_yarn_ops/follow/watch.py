"""`Watcher`: waits for many applications in one event loop, with one list call of the ResourceManager per interval.

For triggerers and servers. The shared loop lists the live applications of the deployment, and asks for each awaited
application that is missing in the list. It is the driver of `follow.wait.waiting`, which makes the decisions.
"""

import asyncio
import contextvars
import logging
import random
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..hadoop.cluster import Cluster
from ..runtime.common.report import JobReport
from .lease import Lease
from .session import Session
from .wait import Driver, Outage, Training, waiting
from .yarn_report import read_yarn_report

logger = logging.getLogger(__name__)

#: Seconds between two list calls.
WATCH_INTERVAL = 2.0
#: Longest pause between two list calls while YARN does not answer, seconds.
MAX_INTERVAL = 30.0
#: Requests for single applications at the same time.
_AT_ONCE = 8
#: Seconds between two requests for the page of a job: until all its tasks have started, and then.
STARTING_SECONDS, METRICS_SECONDS = 10.0, 60.0


@dataclass(eq=False)
class _Waiter:
    """One wait: the application that it looks at, and the future that the shared loop resolves with the answer.

    ``page`` is the last report of the job's coordinator, ``asked`` the time of the last request for it.
    """

    application_id: str = ""
    seen: "asyncio.Future[Mapping[str, Any]] | None" = None
    page: JobReport | None = None
    asked: float = field(default_factory=time.monotonic)

    def due(self) -> float:
        """Return the time, by the monotonic clock, from which the page may be asked for again."""
        tasks = () if self.page is None else self.page.tasks
        starting = not tasks or any(task.state in ("pending", "registered") for task in tasks)
        return self.asked + (STARTING_SECONDS if starting else METRICS_SECONDS)


class Watcher:
    """Watches applications of one cluster from one event loop.

    Parameters
    ----------
    cluster : Cluster
    tag : str, optional
        A tag that all these applications carry, see `identity.deployment_tag`; it keeps the list short.
        Default: list all applications of the user.
    interval : float, optional
        Seconds between two list calls. Default 2.
    pages : float, optional
        Pages of running jobs to read in a second, at most: for the tasks, metrics and usage in the reports. The jobs
        take turns, each once a minute or less often. Default 0: reports of running jobs lack these.
    """

    def __init__(
        self, cluster: Cluster, *, tag: str | None = None, interval: float = WATCH_INTERVAL, pages: float = 0.0
    ):
        self._session = Session(cluster)
        self._tag = tag
        self._interval = interval
        self._pages = pages
        self._reading: asyncio.Task[None] | None = None
        self._waiters: set[_Waiter] = set()
        self._loop_task: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Future[Any]] = set()
        self._renewing, self._asking = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_AT_ONCE)

    async def wait(
        self,
        application_id: str,
        *,
        on_change: Callable[[JobReport], None] = lambda report: None,
        identity: Training | None = None,
        queue_timeout: float = 0.0,
        lease: Lease | None = None,
    ) -> JobReport:
        """Wait for the end of an application.

        Parameters
        ----------
        application_id : str
        on_change : callable, optional
            Called in the event loop, in the context of this wait, with each report that differs from the one before,
            and every 20 s (`wait.REPEAT`) with the same one.
            Reports of running applications hold what YARN knows, and the job's page if it was read, see ``pages``.
        identity : Training, optional
            When the application is killed in favour of another one of the same generation, wait for that one.
        queue_timeout : float, optional
            Seconds in the queue after which the application is killed as QUEUE_TIMEOUT. Default 0: no limit.
        lease : Lease, optional
            The lease to move while the application lives. Default: none.

        Returns
        -------
        JobReport
            With a reason; LOST when YARN no longer knows the application.
        """
        waiter = _Waiter(application_id)
        self._waiters.add(waiter)

        def note(report: JobReport) -> None:
            try:
                on_change(report)
            except Exception:  # a foreign callback must not end the wait
                logger.exception("the callback for %s failed", waiter.application_id)

        driver = Driver(partial(self._await_poll, waiter), self._call, self._renew, self._pause)
        try:
            return await waiting(
                application_id, driver, on_change=note, queue_timeout=queue_timeout, identity=identity, lease=lease
            )
        finally:
            self._waiters.discard(waiter)

    async def _await_poll(self, waiter: _Waiter, application_id: str) -> tuple[Mapping[str, Any], JobReport]:
        """Return an application and its report once the shared loop has seen it."""
        if application_id != waiter.application_id:
            waiter.application_id, waiter.page = application_id, None
        waiter.seen = asyncio.get_running_loop().create_future()
        self._start()
        application = await waiter.seen
        return application, read_yarn_report(application, waiter.page)

    async def _call(self, request: Callable[[Session], Any]) -> Any:
        """Make a blocking request; a wait that is cancelled leaves it to its end, before which no connection closes."""
        call = asyncio.ensure_future(asyncio.to_thread(request, self._session))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return await asyncio.shield(call)

    async def _renew(self, request: Callable[[Session], bool]) -> bool:
        """Leave threads to the polls when all leases move at once."""
        async with self._renewing:
            return bool(await self._call(request))

    async def _pause(self, last: JobReport | None) -> None:
        """Return at once: the next look waits for the shared loop."""

    def _start(self) -> None:
        if self._loop_task is None or self._loop_task.done():
            # In a context of its own, without the variables of the first waiter (in Airflow the log of its task).
            loop = asyncio.get_running_loop()
            self._loop_task = contextvars.Context().run(loop.create_task, self._run())

    async def _run(self) -> None:
        """Poll for all waiters until none is left; an error of one poll does not end the loop."""
        interval, outage = 0.0, Outage()
        while self._waiters:
            await asyncio.sleep(interval)
            try:
                await self._poll()
                interval = self._interval
                outage.answered()
            except Exception as error:
                interval = min(MAX_INTERVAL, max(self._interval, interval * 2) * random.uniform(0.8, 1.2))
                outage.failed(
                    error,
                    "watching %s applications goes on, with up to %.0f s between two looks: %s",
                    len(self._waiters),
                    MAX_INTERVAL,
                    error,
                )
            if not self._waiters:
                if self._reading is not None:
                    await self._reading
                await asyncio.gather(*self._calls, return_exceptions=True)
                if not self._waiters:  # a new waiter may come during these awaits; the loop polls again
                    self._session.close()

    async def _poll(self) -> None:
        """List the live applications once, and ask for each awaited application that is missing in the list."""
        looking = [
            (waiter.application_id, waiter.seen)
            for waiter in self._waiters
            if waiter.seen is not None and not waiter.seen.done()
        ]
        if not looking:  # all are at another step: an end, a kill
            return
        found = await asyncio.to_thread(self._session.resourcemanager.find_live, self._tag, self._session.cluster.user)
        live = {item["id"]: item for item in found}
        for application_id, seen in looking:
            if application_id in live and not seen.done():
                seen.set_result(live[application_id])
        await asyncio.gather(*(self._request(*one) for one in looking if one[0] not in live))
        if self._pages and (self._reading is None or self._reading.done()):
            self._reading = asyncio.ensure_future(self._read_pages(live))

    async def _read_pages(self, live: Mapping[str, Mapping[str, Any]]) -> None:
        """Read the pages of those running jobs that have waited longest, as many as an interval may take."""
        now = time.monotonic()
        due = [
            waiter
            for waiter in self._waiters
            if waiter.due() <= now and live.get(waiter.application_id, {}).get("state") == "RUNNING"
        ]
        due = sorted(due, key=lambda waiter: waiter.asked)[: max(1, int(self._pages * self._interval))]
        limit = asyncio.Semaphore(_AT_ONCE)

        async def read(waiter: _Waiter) -> None:
            application_id, waiter.asked = waiter.application_id, now
            async with limit:
                page = await asyncio.to_thread(self._session.live.fetch, live[application_id])
            if page is not None and waiter.application_id == application_id:
                waiter.page = page

        for error in await asyncio.gather(*map(read, due), return_exceptions=True):
            if error is not None:
                logger.debug("no page of a job: %s", error)

    async def _request(self, application_id: str, seen: "asyncio.Future[Mapping[str, Any]]") -> None:
        """Resolve a future with an application, or with the error of the request."""
        try:
            async with self._asking:
                application = await asyncio.to_thread(self._session.resourcemanager.get, application_id)
            if not seen.done():
                seen.set_result(application)
        except Exception as error:
            if not seen.done():
                seen.set_exception(error)


_watchers: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, Watcher]]" = weakref.WeakKeyDictionary()


def watcher_for(
    cluster: Cluster, *, tag: str | None = None, interval: float = WATCH_INTERVAL, pages: float = 0.0
) -> Watcher:
    """Return the watcher that all callers in the running event loop share.

    Parameters
    ----------
    cluster : Cluster
    tag, interval, pages : optional
        As in `Watcher`; callers with equal arguments share a watcher.
    """
    watchers = _watchers.setdefault(asyncio.get_running_loop(), {})
    key = (cluster, tag, interval, pages)
    if key not in watchers:
        watchers[key] = Watcher(cluster, tag=tag, interval=interval, pages=pages)
    return watchers[key]
