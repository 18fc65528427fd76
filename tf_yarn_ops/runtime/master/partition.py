"""The coordinator's way to YARN: if YARN has lost the coordinator's node, the job ends by itself before a retry trains.

YARN reaches neither coordinator nor tasks on nodes that are cut off from it. It takes them for lost after a while, and
ends the application. The engine may then submit a retry, while the agents still reach their coordinator.
"""

import asyncio
import contextlib
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, Optional
from urllib.parse import urlsplit

from ..common.container_http import NO_ANSWER, RM_REQUEST_SECONDS, fetch_answer, query_yarn, token_header
from ..common.contract import Job
from ..common.reasons import Reason
from .lifecycle import Verdict

logger = logging.getLogger(__name__)

#: YARN ends the application at the first of both: the node is lost, or the application master.
_PROPERTIES = "yarn.nm.liveness-monitor.expiry-interval-ms", "yarn.am.liveness-monitor.expiry-interval-ms"
#: Hadoop's default for both, seconds.
EXPIRY = 600.0
#: Seconds between two connections; between two tries after a failure; for one try.
POLL_SECONDS, RETRY_SECONDS, CONNECT_SECONDS = 10.0, 1.0, 2.0
#: How often a ResourceManager that is reached is asked for the properties, as long as it does not show them.
_TRIES = 10


def read_expiry(job: Job) -> Optional[float]:
    """Return the seconds of silence after which YARN ends an application of this node; None if none shows them."""
    for base in job.resourcemanagers:
        with contextlib.suppress(*NO_ANSWER, AttributeError, LookupError):
            return min(_read_seconds(base, name, job.authorities) for name in _PROPERTIES)
    return None


def _read_seconds(base: str, name: str, authorities: str) -> float:
    headers = {"Accept": "application/json", **token_header()}
    document = fetch_answer(f"{base}/conf?name={name}", headers, RM_REQUEST_SECONDS, authorities).document()
    # Older releases answer with all properties.
    found = {one["key"]: one["value"] for one in document.get("properties") or [document["property"]]}
    return float(found[name]) / 1000


async def await_loss(job: Job) -> Verdict:
    """Return the end of the job when the network was silent for so long that YARN has lost this node.

    It is silent while one host of a ResourceManager is, and each other one is so too, refuses, or says it is a standby.

    Parameters
    ----------
    job : Job
        One of its ResourceManagers has been reached.

    Notes
    -----
    A connection is enough, also a refused one: a ResourceManager that is down or overloaded ends nothing, and its nodes
    have their whole time when it is back. Where one host of a pair is silent, the other one counts if it is active: a
    standby does not take part in the time that the active one counts.
    """
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1)  # a name service may be silent for long
    known: Dict[str, str] = {}
    reached, expiry, tries = loop.time(), None, 0
    while True:
        began = loop.time()
        if await loop.run_in_executor(thread, _reach_active, job, known):
            reached = began
            if expiry is None and tries < _TRIES:
                tries += 1
                expiry = await loop.run_in_executor(thread, read_expiry, job)
                if expiry is None and tries == _TRIES:
                    logger.warning("no ResourceManager shows %s; YARN's default counts", " and ".join(_PROPERTIES))
            await asyncio.sleep(POLL_SECONDS)
        elif loop.time() - reached < (expiry or EXPIRY):
            await asyncio.sleep(RETRY_SECONDS)
        else:
            seconds = f"{expiry or EXPIRY:.0f} s"
            cause = f"this node has reached no active ResourceManager for {seconds}, after which YARN takes it for lost"
            logger.error("%s", cause)
            return Verdict(Reason.NODE_LOST, cause)


def _reach_active(job: Job, known: Dict[str, str]) -> bool:
    """Return whether all hosts answer or refuse a connection, or one accepts it and is no known standby."""
    answers = {base: _reaches(base, known) for base in job.resourcemanagers}
    return None not in answers.values() or any(
        answer and query_yarn([base], "info", "clusterInfo", job.authorities).get("haState") != "STANDBY"
        for base, answer in answers.items()
    )


def _reaches(base: str, known: Dict[str, str]) -> Optional[bool]:
    """Return whether a host takes a connection, at its last address or by its name; None if it is silent."""
    place = urlsplit(base)
    port = place.port or (443 if place.scheme == "https" else 80)
    for host in filter(None, (known.get(base), place.hostname)):
        try:
            with socket.create_connection((host, port), CONNECT_SECONDS) as made:
                known[base] = made.getpeername()[0]
                return True
        except ConnectionRefusedError:
            return False
        except OSError:
            continue
    return None
