"""One watcher and N applications on a ResourceManager's wire: calls, bytes, CPU and memory of each interval."""

import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

from tf_yarn_ops.follow.watch import Watcher
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

from .samples import Figures, Samples, interleave

TITLE = "Watching N jobs at an interval of 2 s: one call per interval is wanted, however many they are"
INTERVAL = 2.0
SIZES = (100, 1_000, 10_000)
#: Intervals of one run.
INTERVALS = 5
STAMP = 1700000000000
#: What the watcher is measured without: the server is a process of its own.
_SERVER = "from benchmarks.watcher import serve; serve({count})"


def measure(runs: int, quick: bool) -> Samples:
    """Measure all sizes, each in a process of its own."""
    sizes = SIZES[:1] if quick else SIZES
    return interleave({f"{size:,} jobs": lambda size=size: _figures(size) for size in sizes}, runs, Samples())


def _figures(size: int) -> Figures:
    """Run one case in a process of its own, whose peak memory is then that of this case."""
    run = subprocess.run(
        [sys.executable, "-c", f"from benchmarks.watcher import watch; watch({size})"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    told: dict[str, float] = json.loads(run.stdout)
    return told


def watch(size: int) -> None:
    """Watch for some intervals and write the figures to stdout."""
    with server(size) as url:
        told = asyncio.run(_watch(url, size))
    sys.stdout.write(json.dumps(told))


async def _watch(url: str, size: int) -> dict[str, float]:
    watcher = Watcher(cluster_at(url), interval=INTERVAL)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    waits = [asyncio.ensure_future(watcher.wait(id_of(number))) for number in range(size)]
    await asyncio.sleep(INTERVAL)  # the first look tells every waiter its first report
    (calls, kib, _), cpu, start = await sent_by(url), time.process_time(), time.monotonic()
    await asyncio.sleep(INTERVAL * INTERVALS)
    passed = (time.monotonic() - start) / INTERVAL
    calls, kib, _ = (now - then for now, then in zip(await sent_by(url), (calls, kib, 0), strict=True))
    cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    return {
        "calls an interval": round(calls / passed, 1),
        "KiB an interval": kib / passed,
        "CPU ms an interval": 1000 * cpu / passed,
        "of one core, %": 100 * cpu / passed / INTERVAL,
        "peak MiB": peak,
        "of this for the jobs, MiB": peak - before,
    }


def cluster_at(url: str) -> Cluster:
    """Return a cluster whose ResourceManager is a `server`."""
    return Cluster((url,), "bench", "bench", StorageFacts("viewfs://bench", "viewfs://bench", "/user/{user}/.skein"))


async def sent_by(url: str) -> tuple[int, float, int]:
    """Return what a server has sent so far: lists of applications, their KiB, and pages of jobs."""

    def ask() -> tuple[int, float, int]:
        with urlopen(f"{url}/told", timeout=10) as response:
            lists, sent, pages = json.load(response)
        return lists, sent / 1024, pages

    return await asyncio.to_thread(ask)


def id_of(number: int) -> str:
    """Return the application id of a job."""
    return f"application_{STAMP}_{number:05d}"


def _application(number: int, url: str) -> dict[str, Any]:
    """What Hadoop 3.4.3 lists of a running application with the fields that the watcher asks for."""
    return {
        "id": id_of(number),
        "user": "bench",
        "name": f"train-{number}",
        "queue": "root.default",
        "state": "RUNNING",
        "finalStatus": "UNDEFINED",
        "progress": 0.0,
        "trackingUI": "ApplicationMaster",
        "diagnostics": "",
        "trackingUrl": f"{url}/proxy/{id_of(number)}/",
        "clusterId": STAMP,
        "applicationType": "skein",
        "applicationTags": "tfy-" + "0" * 40 + ",tfyg-0-1",
        "priority": 0,
        "startedTime": STAMP,
        "launchTime": STAMP + 100,
        "finishedTime": 0,
        "elapsedTime": 1000,
        "amContainerLogs": f"http://node:8042/node/containerlogs/container_{STAMP}_{number:05d}_01_000001/bench",
        "amHostHttpAddress": "node:8042",
        "allocatedMB": 1280,
        "allocatedVCores": 2,
        "runningContainers": 2,
        "memorySeconds": 4000,
        "vcoreSeconds": 4,
        "preemptedResourceMB": 0,
        "logAggregationStatus": "NOT_START",
    }


@contextlib.contextmanager
def server(size: int) -> Iterator[str]:
    """Serve so many running applications from a process of its own; give its URL."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER.format(count=size)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def serve(count: int) -> None:
    """Answer every list of applications with the same running ones, until killed; first the URL on stdout."""
    tasks = tuple(TaskReport(f"worker:{number}", "running", starts=1) for number in range(8))
    page = json.dumps({"report": JobReport("", state="RUNNING", tasks=tasks, metrics={"loss": 0.5}).to_dict()}).encode()
    content, sent = b"", [0, 0, 0]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0]
                if b"/told" in head:
                    body = json.dumps(sent).encode()
                elif b"/proxy/" in head:
                    body = page
                    sent[2] += 1
                else:
                    body = content
                    sent[0] += 1
                    sent[1] += len(body)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                    + body
                )
                await writer.drain()

    async def run() -> None:
        nonlocal content
        listening = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        content = json.dumps({"apps": {"app": [_application(number, url) for number in range(count)]}}).encode()
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await listening.serve_forever()

    asyncio.run(run())
