"""The coordinator: gather the agents, publish the cluster spec, watch the exits, decide once.

It runs in the application master, or for `local://` in a process of this machine. `lifecycle.decide` decides on an
event, and `JobState` makes effects of the decision; the parts around it make events of messages (`AgentServer`) and of
Skein's containers (`ContainerMonitor`). A verdict needs no client. It is final, except that a success is replaced by a
commit that fails, by an exception that ends the coordinator (`driver.main`), and on this machine by an abort while
commands linger.
"""

import asyncio
import contextlib
import functools
import logging
import socket
import time
from typing import Any, Awaitable, Dict, List, Optional

from ..common.contract import Job
from ..common.mutual_tls import server_context
from ..common.reasons import Reason
from ..common.report import JobReport, yarn_times
from . import web
from .agent_server import AgentServer
from .commit import OutputCommit, commit_of, persist
from .containers import Containers, show_page
from .job_state import JobState
from .lifecycle import Event, Prepared, Verdict
from .monitor import ContainerMonitor
from .reporting import build_live_status, build_report
from .shutdown import Shutdown
from .tunnel import Tunnel
from .verdict import fetch_application
from .viewers import Viewers

logger = logging.getLogger(__name__)

#: Seconds between two measurements of the work that is not committed, and for the last one.
MEASURE_SECONDS = 60.0


class Coordinator:
    """One job's coordinator.

    Parameters
    ----------
    job : Job
    application_id : str
    containers : Containers
        Skein's application master, or this machine.

    Attributes
    ----------
    state : JobState
    containers : Containers
    agents : AgentServer
    """

    def __init__(self, job: Job, application_id: str, containers: Containers):
        self.state, self.containers = JobState(job, application_id, time.monotonic()), containers
        self._changed = asyncio.Event()
        viewers = Viewers(job, application_id)
        self._monitor = ContainerMonitor(self.state, containers, lambda effects: self.agents.perform(effects))
        self.agents = AgentServer(self.state, self._monitor.poll, self._changed, self._on_error)
        self._tunnel = Tunnel(self.state, viewers) if job.tensorboard else None
        self._website = web.Website(
            self.status, self.agents.tail, self.agents.read_log, self.live_report, viewers, application_id
        )
        self._output = commit_of(job, application_id)

    async def run(self, listener: Optional[socket.socket], *others: Awaitable[None]) -> None:
        """Coordinate the job to its verdict, then end its tasks.

        Parameters
        ----------
        listener : socket or None
            Where agents connect; None if it could not be opened, so that the job has its verdict.
        *others : awaitable
            Run beside the parts of the coordinator; an error of one before the verdict ends the job.
        """
        times = asyncio.ensure_future(self._read_times())
        keeping = asyncio.ensure_future(self._keep_output(self._output))
        background: List["asyncio.Future[Any]"] = [asyncio.ensure_future(self._monitor.run()), keeping]
        if listener is not None:
            others = (*others, self.agents.server.serve(listener, server_context()))
        if self._tunnel is not None:
            others = (*others, self._tunnel.run(self.containers))
        _server, port = await self._website.server.start()
        page = show_page(self.containers, "ytf", port, "Training")
        background += [asyncio.ensure_future(part) for part in (page, *others)]
        verdict = asyncio.ensure_future(self._changed.wait())
        while not verdict.done():
            await asyncio.wait([verdict, *background], return_when=asyncio.FIRST_COMPLETED)
            for part in [part for part in background if part.done()]:
                background.remove(part)
                error = part.exception()
                if error is not None:
                    logger.error("A part of the coordinator ended", exc_info=error)
                    self._on_error(error)
        keeping.cancel()
        self._website.renew()
        await Shutdown(self.state, self.agents.perform, self._changed).run(self._commit_output)
        self.state.finished_at = time.time()
        self._website.renew(final=True)
        times.cancel()

    def apply(self, event: Event) -> None:
        """Apply an event of the lifecycle."""
        self.agents.perform(self.state.apply(event, time.monotonic()))

    def abort(self, end: Verdict) -> None:
        """End the job at the wish of a client."""
        self.agents.perform(self.state.abort(end, time.monotonic()))

    def _on_error(self, error: BaseException) -> None:
        """End the job after an error in one of the parts, as it would hang otherwise; after the verdict do nothing.

        An error in a request to a page, in a snapshot or in the query for YARN's times is at most logged. So is
        `SkeinFailed`; OSError and ValueError in a message only end its connection.
        """
        self.apply(Verdict(Reason.AM_FAILED, f"the coordinator failed: {error!r}"))

    # -- the output -------------------------------------------------------------------------

    async def _keep_output(self, output: Optional[OutputCommit]) -> None:
        """Prepare the output, for which the tasks wait; then note how large the work is, until there is a verdict."""
        if output is None:
            return
        verdict = await persist(output.prepare)
        self.apply(verdict or Prepared())
        while self.state.lifecycle.verdict is None:
            await asyncio.to_thread(output.measure)
            await asyncio.sleep(MEASURE_SECONDS)

    async def _commit_output(self) -> None:
        """Commit the output of a training that has succeeded; a commit that fails is the verdict."""
        state, output = self.state, self._output
        if output is not None and state.has_succeeded:
            end = await persist(functools.partial(output.commit, self.report().to_dict()))
            if end is not None:
                logger.error("%s", end.message)
                if state.has_succeeded:  # else a client has killed the job meanwhile
                    state.lifecycle = state.lifecycle._replace(verdict=end)
        if output is not None and not state.has_succeeded:
            with contextlib.suppress(asyncio.TimeoutError):  # a hard mount of NFS may hang for ever
                await asyncio.wait_for(asyncio.to_thread(output.measure), MEASURE_SECONDS)

    # -- page and report --------------------------------------------------------------------

    def report(self, *, live: bool = False, every_tail: bool = False) -> JobReport:
        """Return the present report; the options are those of `build_report`."""
        url = self._tunnel.url if self._tunnel else None
        return build_report(self.state, self._output, url, live=live, every_tail=every_tail)

    def status(self, *, live: bool = True) -> Dict[str, Any]:
        """Return the document of ``status.json``, for the page, clients and the history; ``live`` as in `report`."""
        report = self.report(live=live, every_tail=self.state.lifecycle.verdict is not None)
        return {
            **self._status_of(report),
            "lasting_page": self.state.job.lasting_page(self.state.application_id),
        }

    def live_report(self) -> Dict[str, Any]:
        """Return the report in ``status.json`` without the rest of it, as plain values for JSON."""
        report = self.report(live=True)
        status = self._status_of(report)
        return {**report.to_dict(), **{name: status[name] for name in ("usage", "alerts", "progress")}}

    def _status_of(self, report: JobReport) -> Dict[str, Any]:
        now = time.monotonic()
        return build_live_status(self.state, report, self._monitor.checks.waiting(now), now)

    async def _read_times(self) -> None:
        """Take YARN's times of the submission and of the launch; older releases know no launch."""
        application = await asyncio.to_thread(fetch_application, self.state.job, self.state.application_id)
        self.state.times = yarn_times(application, round(self.state.started_at, 3))
