"""Hand the verdict to YARN: wait for a ResourceManager, then let Skein end the application.

If Skein fails, a kill over REST carries the same report in its diagnostics. Readers believe the report, not YARN's
state.
"""

import asyncio
import contextlib
import json
import logging
import time
from typing import Any, Mapping, Optional

from ..common.container_http import (
    NO_ANSWER,
    RM_REQUEST_SECONDS,
    fetch_answer,
    query_yarn,
    token_header,
)
from ..common.contract import Job
from ..common.reasons import Reason
from ..common.report import JobReport, compose_diagnostics
from .containers import Containers
from .skein_calls import SkeinFailed

logger = logging.getLogger(__name__)

#: Seconds to wait after each failed call to Skein.
SHUTDOWN_PAUSES = (0.2, 1.0, 0.0)
#: Seconds for which a verdict waits for a ResourceManager, as long as Hadoop's own clients try to reach one.
RESOURCEMANAGER_SECONDS = 900.0
#: Seconds from the coordinator's start for which it waits for one that has not answered yet: it may be starting, or the
#: address may be of no use on this node, as that of a tunnel.
FIRST_CONTACT_SECONDS = 120.0
#: Seconds between two looks, and between two kills.
RESOURCEMANAGER_POLL_SECONDS = 1.0
#: The number of kills over REST after Skein has failed; `driver` then sends one more.
KILLS = 5
#: Seconds in which YARN ends the coordinator after it has accepted the kill.
KILL_SECONDS = 20.0


class VerdictRejected(Exception):
    """Neither Skein nor a ResourceManager has ended the application.

    Attributes
    ----------
    report : JobReport
        The verdict that they did not take.
    """

    def __init__(self, report: JobReport):
        super().__init__("neither Skein nor the ResourceManager took the verdict")
        self.report = report


async def wait_for_resourcemanager(job: Job, application_id: str, seconds: float, seen: bool) -> None:
    """Wait until a ResourceManager shows the application, or asks for authentication.

    Without a ResourceManager Skein gives up after 30 s, and YARN would never get the verdict.

    Parameters
    ----------
    job : Job
    application_id : str
    seconds : float
        How long to wait at most.
    seen : bool
        Whether one has answered before. Otherwise the wait ends when none can be reached from this node.

    References
    ----------
    Hadoop's ShutdownHookManager, in which Skein's application master unregisters
    (``hadoop.service.shutdown.timeout``, 30 s).
    """
    deadline = time.monotonic() + seconds
    logged = False
    while time.monotonic() < deadline:
        known = await asyncio.to_thread(resourcemanager_knows, job, application_id)
        if known or (known is None and not seen):
            return
        if not logged:
            logger.warning(
                "No ResourceManager answers at %s: the verdict waits for it", ", ".join(job.resourcemanagers)
            )
            logged = True
        await asyncio.sleep(RESOURCEMANAGER_POLL_SECONDS)


async def end_application(containers: Containers, job: Job, report: JobReport, secret: str = "") -> None:
    """Hand the verdict to YARN by Skein or, if that fails, by a kill that carries the same report.

    Parameters
    ----------
    containers : Containers
    job : Job
    report : JobReport
    secret : str, optional
        Proves the report; see `report.verdict_tag`. Default: none.

    Raises
    ------
    VerdictRejected
        No call ended the application.
    """
    diagnostics = compose_diagnostics(report, secret=secret)
    for pause in SHUTDOWN_PAUSES:
        try:
            await containers.shutdown(report.reason is Reason.SUCCEEDED, diagnostics)
            return
        except SkeinFailed as error:
            logger.warning("Skein did not take the verdict: %s", error)
            await asyncio.sleep(pause)
    for _ in range(KILLS):
        await asyncio.to_thread(kill_by_rest, job, report.application_id, diagnostics)
        await asyncio.sleep(RESOURCEMANAGER_POLL_SECONDS)
    raise VerdictRejected(report)


def resourcemanager_knows(job: Job, application_id: str) -> Optional[bool]:
    """Return whether a ResourceManager is active and has recovered the application; None if this node reaches none.

    An answer that asks for authentication counts too. A standby redirects to the active ResourceManager, whose address
    may be missing in the job file. A refused connection is a ResourceManager that is down.
    """
    known: Optional[bool] = None
    for base in job.resourcemanagers:
        url = f"{base}/ws/v1/cluster/apps/{application_id}/state"
        try:
            answer = fetch_answer(url, token_header(), RM_REQUEST_SECONDS, job.authorities)
            if answer.status in (401, 403) or (answer.status == 200 and "state" in answer.document()):
                return True
            known = False if answer.status >= 300 else known
        except ConnectionRefusedError:
            known = False
        except NO_ANSWER:
            continue
    return known


def fetch_application(job: Job, application_id: str) -> Mapping[str, Any]:
    """Return YARN's object of the application, with its times; empty if no ResourceManager shows it."""
    return query_yarn(job.resourcemanagers, f"apps/{application_id}?deSelects=resourceRequests", "app", job.authorities)


def kill_by_rest(job: Job, application_id: str, diagnostics: str) -> None:
    """Ask the ResourceManager to kill the application, with our diagnostics.

    On a secured cluster the container's own token proves who asks. The last resort if Skein does not take the
    verdict, or if the coordinator itself has failed. YARN ends this process after an accepted kill, so a return means
    that no ResourceManager accepted the kill, or that it was forgotten in a restart.
    """
    body = json.dumps({"state": "KILLED", "diagnostics": diagnostics}).encode()
    headers = {"Content-Type": "application/json", "X-XSRF-HEADER": "ytf", **token_header()}
    for base in job.resourcemanagers:
        url = f"{base}/ws/v1/cluster/apps/{application_id}/state?user.name={job.user}"
        with contextlib.suppress(*NO_ANSWER):
            if fetch_answer(url, headers, 10.0, job.authorities, "PUT", body).status in (200, 202):
                time.sleep(KILL_SECONDS)  # YARN keeps the first news of the end; an exit would be such news
