"""N applications whose leases one client moves: what that costs the ResourceManager and the client."""

import asyncio
import contextlib
import logging
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.hadoop import HadoopCluster
from tf_yarn_ops.follow.lease import Lease
from tf_yarn_ops.follow.watch import Watcher
from tf_yarn_ops.hadoop.cluster import Cluster, discover
from tf_yarn_ops.hadoop.resourcemanager import ResourceManager

from .processes import cpu_seconds
from .samples import Figures, Samples, interleave

TITLE = "Moving the leases of N jobs: a lease of 120 s moves each 27 s, so 7.5 times as often as one of 900 s"
SIZES = (100, 1_000)
#: Seconds of a lease here, and of one run after the first round of moves.
LEASE, WINDOW = 120.0, 30.0


def measure(runs: int, quick: bool) -> Samples:
    """Measure the same jobs, watched by one client, without leases and with them."""
    size = SIZES[0] if quick else SIZES[-1]
    samples = Samples()
    with tempfile.TemporaryDirectory() as folder, HadoopCluster(Path(folder), nodes=1) as hadoop:
        cluster = discover(hadoop.resourcemanager_url, environ={})
        names = [_submit(cluster.resourcemanager()) for _ in range(size)]
        pid = hadoop.pid("rm") or 0
        cases = {
            f"{size:,} jobs, {what}": lambda lease=lease: asyncio.run(_watch(cluster, names, lease, pid))
            for what, lease in (("no leases", None), (f"leases of {LEASE:g} s", Lease(LEASE, None, "bench")))
        }
        interleave(cases, runs, samples)
        for name in names:
            with contextlib.suppress(Exception):  # the cluster ends anyway
                cluster.resourcemanager().kill(name, "measured")
    return samples


def _submit(resourcemanager: ResourceManager) -> str:
    """Submit an application that YARN keeps as ACCEPTED and starts nothing for."""
    name, _ = resourcemanager.new_application()
    resourcemanager.submit(
        {
            "application-id": name,
            "application-name": "lease",
            "application-type": "skein",
            "unmanaged-AM": True,
            "queue": "default",
            "max-app-attempts": 1,
            "am-container-spec": {"commands": {"command": "true"}},
            "resource": {"memory": 64, "vCores": 1},
        }
    )
    resourcemanager.close()
    return name


class _Moves(logging.Handler):
    """Counts the moves, by the log lines of the HTTP client."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "/timeout" in record.getMessage()


async def _watch(cluster: Cluster, names: Sequence[str], lease: Lease | None, pid: int) -> Figures:
    moves, log = _Moves(), logging.getLogger("httpx")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(moves)
    watcher = Watcher(cluster, interval=2.0)
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(watcher.wait(name, lease=lease)) for name in names]
    began = time.monotonic()
    while lease is not None and moves.count < len(names):  # the first round, with a note about each holder
        await asyncio.sleep(0.1)
    first = time.monotonic() - began
    await asyncio.sleep(2.0)
    start, count, yarn, own = time.monotonic(), moves.count, cpu_seconds(pid), time.process_time()
    await asyncio.sleep(WINDOW)
    passed, moved = time.monotonic() - start, moves.count - count
    figures = {
        "moves a second": moved / passed,
        "RM's CPU ms a second": 1000 * (cpu_seconds(pid) - yarn) / passed,
        "client's CPU ms a second": 1000 * (time.process_time() - own) / passed,
    }
    if lease is not None:
        figures["first round, seconds"] = first
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    log.removeHandler(moves)
    return figures
