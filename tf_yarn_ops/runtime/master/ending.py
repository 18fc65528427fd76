"""From the verdict to the application's end: the tasks stop, a ResourceManager is there, YARN hears why."""

import asyncio
import logging
import time
from typing import List, Sequence

from ..common.contract import Job, TaskId
from ..common.reasons import Reason
from ..common.report import JobReport, compose_diagnostics
from ..common.roles import TENSORBOARD
from .containers import Containers, SkeinFailed
from .coordinator import Coordinator
from .registry import Peer
from .yarn import kill_by_rest, knows_us

logger = logging.getLogger(__name__)

#: Commands that report after their SIGKILL are waited for so long, seconds.
AFTER_KILL = 3.0
#: After each failed call that ends the application, seconds.
SHUTDOWN_PAUSES = (0.2, 1.0, 0.0)
#: How long a verdict waits for a ResourceManager: as long as Hadoop's own clients try to reach one.
RESOURCEMANAGER_SECONDS = 900.0
RESOURCEMANAGER_LOOKS = 1.0
#: How often a ResourceManager is asked to end us where Skein does not.
KILLS = 5


class VerdictNotTaken(Exception):
    """Neither Skein nor a ResourceManager has ended the application.

    Attributes
    ----------
    report : JobReport
        The verdict that they did not take.
    """

    def __init__(self, report: JobReport):
        super().__init__("neither Skein nor the ResourceManager took the verdict")
        self.report = report


async def stop_tasks(coordinator: Coordinator) -> None:
    """End what still runs: SIGTERM, the grace, SIGKILL; each agent does it for its own."""
    coordinator.stopping = True
    verdict, registry = coordinator.state.verdict, coordinator.registry
    succeeded = verdict is not None and verdict.reason is Reason.SUCCEEDED
    linger = coordinator.job.linger
    board = registry.serving.get(TaskId(TENSORBOARD, 0))
    lingering = board if succeeded and linger and board is not None and board.running else None
    await _stop(coordinator, [peer for peer in registry.peers.values() if peer is not lingering])
    if lingering:
        logger.info("TensorBoard stays for %g s", linger)
        await asyncio.sleep(linger)
        await _stop(coordinator, [lingering])
    for peer in registry.peers.values():
        coordinator.send(peer, "bye")


async def _stop(coordinator: Coordinator, peers: List[Peer]) -> None:
    grace = coordinator.job.deadlines["stop_grace"]
    for peer in peers:
        if peer.running:
            coordinator.send(peer, "stop", grace=grace)
    until = time.monotonic() + grace + AFTER_KILL
    while any(peer.running and peer.connection for peer in peers):
        left = until - time.monotonic()
        if left <= 0:
            logger.warning("Gave up waiting for %s", ", ".join(str(p.task) for p in peers if p.running))
            return
        coordinator.quiet.clear()
        try:
            await asyncio.wait_for(coordinator.quiet.wait(), min(left, 0.2))
        except asyncio.TimeoutError:
            pass


async def until_known(resourcemanagers: Sequence[str], application_id: str) -> None:
    """Wait for a ResourceManager: Skein gives up the ending after 30 s, and YARN would never hear the verdict.

    References
    ----------
    Hadoop's ShutdownHookManager, in which Skein's application master unregisters
    (``hadoop.service.shutdown.timeout``, 30 s).
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + RESOURCEMANAGER_SECONDS
    told = False
    while not await loop.run_in_executor(None, knows_us, resourcemanagers, application_id) and loop.time() < deadline:
        if not told:
            logger.warning("No ResourceManager answers at %s: the verdict waits for it", ", ".join(resourcemanagers))
            told = True
        await asyncio.sleep(RESOURCEMANAGER_LOOKS)


async def end_application(containers: Containers, job: Job, report: JobReport) -> None:
    """Hand the verdict to YARN: through Skein, and where that fails, by a kill that carries the same report."""
    diagnostics = compose_diagnostics(report)
    for pause in SHUTDOWN_PAUSES:
        try:
            await containers.shutdown(report.reason is Reason.SUCCEEDED, diagnostics)
            return
        except SkeinFailed as error:
            logger.warning("Skein did not take the verdict: %s", error)
            await asyncio.sleep(pause)
    loop = asyncio.get_running_loop()
    for _ in range(KILLS):
        await loop.run_in_executor(
            None, kill_by_rest, job.resourcemanagers, report.application_id, job.user, diagnostics)
        await asyncio.sleep(RESOURCEMANAGER_LOOKS)
    raise VerdictNotTaken(report)
