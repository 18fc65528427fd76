"""`Watcher`: many applications of one process, one list call per interval.

Asynchronous, for triggerers and servers. The loop asks YARN for the live applications of
the deployment; whoever is missing there has ended, and is asked for once. It never raises
into its waiters: each has a deadline of its own.
"""

import asyncio
import contextlib
import contextvars
import logging
import random
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ApplicationNotFound, WaitTimeout
from ..hadoop.cluster import Cluster
from ..hadoop.imports import import_httpx
from ..hadoop.resourcemanager import CLUSTER_PATH, ENDED, LIVE, ResourceManager, find_parameters, read_applications
from ..hadoop.transport import Addresses, Attempt, client_options, read_json
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, compose_diagnostics
from ..staging.store import Staging
from .identity import GIVEN_WAY, Identity, successor_of
from .wait import Unknown
from .yarn_report import kill_report, lost_report, queue_overrun, read_report

logger = logging.getLogger(__name__)

#: Seconds between two list calls.
INTERVAL = 2.0
#: Seconds between two list calls while nobody answers, at most.
MAX_INTERVAL = 30.0
#: Ended applications that are asked for at the same time.
_AT_ONCE = 8
#: What nobody reads here; an older Hadoop that does not know it is asked without.
_DESELECTED = "resourceRequests,resourceInfo,timeouts,appNodeLabelExpression,amNodeLabelExpression"
_APPLICATIONS = f"{CLUSTER_PATH}/apps"


@dataclass(eq=False)
class _Waiter:
    application_id: str
    identity: Identity | None
    on_change: Callable[[JobReport], None] | None
    queue_timeout: float
    done: "asyncio.Future[JobReport]"
    last: JobReport | None = None
    unknown: Unknown = field(default_factory=Unknown)


@dataclass
class _Asker:
    """Asynchronous calls of the ResourceManager; the decisions are those of the blocking client."""

    cluster: Cluster
    addresses: Addresses = field(init=False)
    client: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.addresses = Addresses(self.cluster.resourcemanagers)

    async def get(self, path: str, parameters: Mapping[str, str]) -> Any:
        httpx = import_httpx()
        if self.client is None:
            options = client_options(self.cluster.site.request_timeout, self.cluster.site.ca_file, self.addresses.urls)
            negotiation = self.cluster.authentication.http_options(self.cluster.resourcemanagers)
            self.client = httpx.AsyncClient(**options, **negotiation)
        attempt = Attempt(self.addresses)
        asked = {**self.cluster.authentication.parameters(), **parameters}
        while True:
            try:
                response = await self.client.get(attempt.address + path, params=asked)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                delay: float | None = attempt.failed(f"{attempt.address}: {error or type(error).__name__}")
            else:
                delay = attempt.answered(response)
                if delay is None:
                    return response
            await asyncio.sleep(delay or 0.0)

    async def close(self) -> None:
        if self.client is not None:
            await self.client.aclose()
            self.client = None


class Watcher:
    """Watches applications of one cluster from one event loop.

    Parameters
    ----------
    cluster : Cluster
    tag : str, optional
        What all applications carry, see `identity.deployment_tag`; keeps the list short.
        Default: the user's applications.
    interval : float, optional
        Seconds between two list calls. Default 2.
    """

    def __init__(self, cluster: Cluster, *, tag: str | None = None, interval: float = INTERVAL):
        self._cluster = cluster
        self._tag = tag
        self._interval = interval
        self._asker = _Asker(cluster)
        self._waiters: set[_Waiter] = set()
        self._loop_task: asyncio.Task[None] | None = None
        self._deselected = _DESELECTED
        self._staging: Staging | None = None

    async def wait(self, application_id: str, *, timeout: float | None = None,
                   on_change: Callable[[JobReport], None] | None = None,
                   identity: Identity | None = None, queue_timeout: float = 0.0) -> JobReport:
        """Wait for the end of an application.

        Parameters
        ----------
        application_id : str
        timeout : float, optional
            Seconds. Default: for ever.
        on_change : callable, optional
            Called in the event loop with each report that differs from the one before. Reports of
            running applications hold what YARN knows, not the single tasks.
        identity : Identity, optional
            When the application is killed in favour of another one of the same generation,
            the wait goes on with that one.
        queue_timeout : float, optional
            Seconds in the queue after which it is killed as QUEUE_TIMEOUT. Default 0: none.

        Raises
        ------
        WaitTimeout
            The application goes on.
        """
        waiter = _Waiter(application_id, identity, on_change, queue_timeout,
                         asyncio.get_running_loop().create_future())
        self._waiters.add(waiter)
        self._start()
        try:
            return await asyncio.wait_for(waiter.done, timeout)
        except asyncio.TimeoutError as error:
            last = waiter.last
            raise WaitTimeout(f"{waiter.application_id} has not ended after {timeout:g} s "
                              f"({last.state if last else 'never seen'}); it goes on") from error
        finally:
            self._waiters.discard(waiter)

    def _start(self) -> None:
        if self._loop_task is None or self._loop_task.done():
            # In a context of its own: the waiter's variables (a task's log in Airflow) are not the loop's.
            loop = asyncio.get_running_loop()
            self._loop_task = contextvars.Context().run(loop.create_task, self._run())

    async def _run(self) -> None:
        interval = 0.0
        while self._waiters:
            await asyncio.sleep(interval)
            try:
                await self._look()
                interval = self._interval
            except Exception as error:  # the loop serves everybody: no fault of one look may end it
                interval = min(MAX_INTERVAL, max(self._interval, interval * 2) * random.uniform(0.8, 1.2))
                logger.warning("watching %s applications goes on in %.0f s: %s", len(self._waiters), interval, error)
            if not self._waiters:
                await self._asker.close()  # somebody may come while it closes; the loop looks again

    async def _look(self) -> None:
        live = {item["id"]: item for item in await self._list()}
        missing, killing = [], []
        for waiter in list(self._waiters):
            if waiter.application_id in live:
                application = live[waiter.application_id]
                self._tell(waiter, application)
                if why := queue_overrun(application, waiter.queue_timeout):
                    killing.append(self._kill(application, why))
            else:
                missing.append(waiter)
        limit = asyncio.Semaphore(_AT_ONCE)
        asking = (self._ask(waiter, limit) for waiter in missing)
        for result in await asyncio.gather(*killing, *asking, return_exceptions=True):
            if isinstance(result, Exception):
                logger.warning("an application could not be asked for, or killed: %s", result)
            elif isinstance(result, BaseException):
                raise result

    async def _kill(self, application: Mapping[str, Any], why: str) -> None:
        """End an application that is over its queue deadline; the next look sees its end."""
        text = compose_diagnostics(kill_report(application, Reason.QUEUE_TIMEOUT, why))
        logger.info("killing %s : %s", application["id"], why)
        with self._blocking() as resourcemanager:
            await asyncio.to_thread(resourcemanager.kill, application["id"], text)

    async def _list(self) -> list[dict[str, Any]]:
        tags = [self._tag] if self._tag else []
        parameters = find_parameters(tags, LIVE, self._cluster.user)
        response = await self._asker.get(_APPLICATIONS, {**parameters, "deSelects": self._deselected})
        if response.status_code == 400 and self._deselected != parameters["deSelects"]:
            self._deselected = parameters["deSelects"]
            response = await self._asker.get(_APPLICATIONS, parameters)
        return read_applications(await asyncio.to_thread(read_json, response, "looking for applications"))

    async def _ask(self, waiter: _Waiter, limit: asyncio.Semaphore) -> None:
        """Ask for one that is not in the list of the live ones."""
        async with limit:
            response = await self._asker.get(f"{_APPLICATIONS}/{waiter.application_id}",
                                             {"deSelects": "resourceRequests"})
            try:
                application = read_json(response, f"asking for {waiter.application_id}", "app")
            except ApplicationNotFound:
                gone = waiter.unknown.again(time.monotonic(), waiter.last is not None)
                if gone and not await self._recovering(waiter):
                    self._finish(waiter, lost_report(waiter.application_id))
                return
            if application["state"] in ENDED:
                if await self._moved_on(waiter, application):
                    return
                if application["user"] == self._cluster.user:
                    await self._forget(waiter.application_id)
            self._tell(waiter, application)
            if why := queue_overrun(application, waiter.queue_timeout):
                await self._kill(application, why)

    async def _recovering(self, waiter: _Waiter) -> bool:
        """Whether one that this watcher has never seen may be known again in a moment."""
        if waiter.last is not None:
            return False
        with self._blocking() as resourcemanager:
            return await asyncio.to_thread(resourcemanager.recovering, waiter.application_id)

    @contextlib.contextmanager
    def _blocking(self) -> Iterator[ResourceManager]:
        """Give a client for a thread, which begins with the address that has answered last."""
        with contextlib.closing(self._cluster.resourcemanager()) as resourcemanager:
            resourcemanager.addresses.prefer(self._asker.addresses.current())
            yield resourcemanager

    async def _moved_on(self, waiter: _Waiter, application: Mapping[str, Any]) -> bool:
        """See by tag whether another one trains in its place."""
        identity, ended = waiter.identity, read_report(application)
        if identity is None or ended.reason not in GIVEN_WAY:
            return False
        response = await self._asker.get(_APPLICATIONS, find_parameters([identity.tag], LIVE, application["user"]))
        found = read_applications(read_json(response, "looking for applications"))
        successor = successor_of(ended, found, identity)
        if successor is None:
            return False
        logger.info("%s was ended in favour of %s", waiter.application_id, successor)
        waiter.application_id = successor
        return True

    async def _forget(self, application_id: str) -> None:
        """Whoever sees the end deletes the directory: the key is in it."""
        try:
            if self._staging is None:
                self._staging = Staging(self._cluster)
            await asyncio.to_thread(self._staging.delete, application_id)
        except Exception as error:  # whatever it is, the end has to be told
            logger.warning("the directory of %s could not be deleted: %s", application_id, error)

    def _tell(self, waiter: _Waiter, application: Mapping[str, Any]) -> None:
        waiter.unknown.answered()
        report = read_report(application)
        if report.reason is not None:
            self._finish(waiter, report)
        elif report != waiter.last:
            self._notify(waiter, report)

    def _finish(self, waiter: _Waiter, report: JobReport) -> None:
        if not waiter.done.done():
            self._notify(waiter, report)
            waiter.done.set_result(report)
        self._waiters.discard(waiter)

    def _notify(self, waiter: _Waiter, report: JobReport) -> None:
        waiter.last = report
        if waiter.on_change is None:
            return
        try:
            waiter.on_change(report)
        except Exception:  # a stranger's callback must not end the watch of all the others
            logger.exception("the callback for %s failed", waiter.application_id)


_watchers: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, Watcher]]" = weakref.WeakKeyDictionary()


def watcher_for(cluster: Cluster, *, tag: str | None = None, interval: float = INTERVAL) -> Watcher:
    """Give the running event loop's watcher of a cluster and tag; all who ask share it."""
    watchers = _watchers.setdefault(asyncio.get_running_loop(), {})
    key = (cluster, tag, interval)
    if key not in watchers:
        watchers[key] = Watcher(cluster, tag=tag, interval=interval)
    return watchers[key]
