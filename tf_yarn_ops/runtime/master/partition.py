"""The coordinator's way to YARN: a job whose node YARN has lost ends by itself, before a retry of it trains.

YARN reaches neither coordinator nor tasks on nodes that are cut off from it. It takes them for lost after a while, ends
the application and lets a retry train, while the agents still reach their coordinator.
"""

import asyncio
import logging
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, Sequence
from urllib.parse import urlsplit

from ..common.container_http import NO_ANSWER, RM_REQUEST_SECONDS, fetch_answer, token_header
from ..common.reasons import Reason
from .lifecycle import Expired

logger = logging.getLogger(__name__)

_PROPERTY = "yarn.nm.liveness-monitor.expiry-interval-ms"
#: Hadoop's default for the property, seconds.
NODE_EXPIRY = 600.0
#: Seconds between two connections; between two tries after a failure; for one try.
POLL_SECONDS, RETRY_SECONDS, CONNECT_SECONDS = 10.0, 1.0, 2.0


def read_node_expiry(resourcemanagers: Sequence[str], authorities: str = "") -> float:
    """Return the seconds of silence after which YARN takes a node for lost; Hadoop's default if none shows them."""
    for base in resourcemanagers:
        url, headers = f"{base}/conf?name={_PROPERTY}", {"Accept": "application/json", **token_header(os.environ)}
        try:
            document = fetch_answer(url, headers, RM_REQUEST_SECONDS, authorities).document()
            # Older releases answer with all properties.
            found = document.get("properties") or [document["property"]]
            return next(float(one["value"]) / 1000 for one in found if one["key"] == _PROPERTY)
        except (*NO_ANSWER, AttributeError, LookupError, StopIteration):
            continue
    return NODE_EXPIRY


async def await_loss(resourcemanagers: Sequence[str], expiry: float) -> Expired:
    """Return the end of the job when no ResourceManager was reached for so long that YARN has lost this node.

    Parameters
    ----------
    resourcemanagers : sequence of str
        One of them has been reached.
    expiry : float
        As from `read_node_expiry`.

    Notes
    -----
    A connection is enough, also a refused one: a ResourceManager that is down or overloaded ends nothing, and its nodes
    have their whole time when it is back.
    """
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1)  # a name service may be silent for long
    known: Dict[str, str] = {}
    reached = loop.time()
    while True:
        began = loop.time()
        if await loop.run_in_executor(thread, lambda: any(_reaches(base, known) for base in resourcemanagers)):
            reached = began
            await asyncio.sleep(POLL_SECONDS)
        elif loop.time() - reached < expiry:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            cause = f"this node has reached no ResourceManager for {expiry:.0f} s, after which YARN takes it for lost"
            logger.error("%s", cause)
            return Expired(Reason.NODE_LOST, cause)


def _reaches(base: str, known: Dict[str, str]) -> bool:
    """Return whether a host answers a connection, at its last address or by its name."""
    place = urlsplit(base)
    port = place.port or (443 if place.scheme == "https" else 80)
    for host in filter(None, (known.get(base), place.hostname)):
        try:
            with socket.create_connection((host, port), CONNECT_SECONDS) as made:
                known[base] = made.getpeername()[0]
                return True
        except ConnectionRefusedError:
            return True
        except OSError:
            continue
    return False
