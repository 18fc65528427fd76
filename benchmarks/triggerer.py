"""N deferred trainings in one event loop, as in Airflow's triggerer, on a ResourceManager's wire."""

import asyncio
import json
import logging
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict

from .samples import Figures, Samples, interleave
from .watcher import cluster_at, id_of, sent_by, server

TITLE = "N deferred trainings in one triggerer at an interval of 5 s: below 50 open files and 5 % of a core are wanted"
INTERVAL = 5.0
SIZES = (100, 1_000, 5_000)
#: Seconds until the first pages of jobs are read, and seconds of one run.
_BEFORE, _SECONDS = 12.0, 30.0


def measure(runs: int, quick: bool) -> Samples:
    """Measure all sizes, each in a process of its own."""
    sizes = SIZES[:1] if quick else SIZES
    return interleave({f"{size:,} trainings": lambda size=size: _figures(size) for size in sizes}, runs, Samples())


def _figures(size: int) -> Figures:
    run = subprocess.run(
        [sys.executable, "-c", f"from benchmarks.triggerer import defer; defer({size})"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    figures: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return figures


def defer(size: int) -> None:
    """Run the triggers for a while and write the figures to stdout."""
    with server(size) as url:
        figures = asyncio.run(_defer(url, size))
    sys.stdout.write(json.dumps(figures))


async def _defer(url: str, size: int) -> dict[str, float]:
    from tf_yarn_ops.airflow import TensorFlowYarnTrigger
    from tf_yarn_ops.airflow.following import cluster_to_dict
    from tf_yarn_ops.launch.identity import Identity

    cluster, quiet = cluster_to_dict(cluster_at(url)), logging.Logger("of a task", logging.CRITICAL)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def start(number: int) -> asyncio.Task[None]:
        identity = asdict(Identity(f"task {number}", deployment="bench"))
        trigger = TensorFlowYarnTrigger(id_of(number), cluster, identity, poll_interval=INTERVAL)
        trigger.trigger_id, trigger._log = number, quiet
        return asyncio.ensure_future(_fire(trigger))

    running = [start(number) for number in range(size)]
    await asyncio.sleep(_BEFORE)
    (lists, _, pages), cpu, began = await sent_by(url), time.process_time(), time.monotonic()
    files = 0
    while time.monotonic() - began < _SECONDS:
        await asyncio.sleep(1)
        files = max(files, len(os.listdir("/proc/self/fd")))
    passed, cpu = time.monotonic() - began, time.process_time() - cpu
    lists, _, pages = (now - then for now, then in zip(await sent_by(url), (lists, 0, pages), strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return {
        "open files": files,
        "of one core, %": 100 * cpu / passed,
        "lists a second": lists / passed,
        "pages a second": pages / passed,
        "MiB for the trainings": peak - before,
    }


async def _fire(trigger: object) -> None:
    async for _ in trigger.run():  # type: ignore[attr-defined]
        return
