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
from tf_yarn_ops.hadoop.cluster import Cluster

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
    run = subprocess.run([sys.executable, "-c", f"from benchmarks.watcher import watch; watch({size})"],
                         capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise RuntimeError(run.stderr)
    told: dict[str, float] = json.loads(run.stdout)
    return told


def watch(size: int) -> None:
    """Watch for some intervals and write the figures to stdout."""
    with _server(size) as url:
        told = asyncio.run(_watch(url, size))
    sys.stdout.write(json.dumps(told))


async def _watch(url: str, size: int) -> dict[str, float]:
    watcher = Watcher(_cluster(url), interval=INTERVAL)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    waits = [asyncio.ensure_future(watcher.wait(_id(number))) for number in range(size)]
    await asyncio.sleep(INTERVAL)  # the first look tells every waiter its first report
    calls, kib, cpu, start = *(await _told(url)), time.process_time(), time.monotonic()
    await asyncio.sleep(INTERVAL * INTERVALS)
    passed = (time.monotonic() - start) / INTERVAL
    calls, kib = (now - then for now, then in zip(await _told(url), (calls, kib), strict=True))
    cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    return {"calls an interval": round(calls / passed, 1), "KiB an interval": kib / passed,
            "CPU ms an interval": 1000 * cpu / passed, "of one core, %": 100 * cpu / passed / INTERVAL,
            "peak MiB": peak, "of this for the jobs, MiB": peak - before}


def _cluster(url: str) -> Cluster:
    return Cluster((url,), "bench", "bench", "viewfs://bench", "viewfs://bench", "/user/{user}/.skein")


async def _told(url: str) -> tuple[int, float]:
    def ask() -> tuple[int, float]:
        with urlopen(f"{url}/told", timeout=10) as response:
            calls, sent = json.load(response)
        return calls, sent / 1024

    return await asyncio.to_thread(ask)


def _id(number: int) -> str:
    return f"application_{STAMP}_{number:05d}"


def _application(number: int) -> dict[str, Any]:
    """What Hadoop 3.4.3 lists of a running application with the fields that the watcher asks for."""
    return {
        "id": _id(number), "user": "bench", "name": f"train-{number}", "queue": "root.default", "state": "RUNNING",
        "finalStatus": "UNDEFINED", "progress": 0.0, "trackingUI": "ApplicationMaster", "diagnostics": "",
        "trackingUrl": f"http://resourcemanager:8088/proxy/{_id(number)}/", "clusterId": STAMP,
        "applicationType": "skein", "applicationTags": "tfy-" + "0" * 40 + ",tfyg-0,tfya-1", "priority": 0,
        "startedTime": STAMP, "launchTime": STAMP + 100, "finishedTime": 0, "elapsedTime": 1000,
        "amContainerLogs": f"http://node:8042/node/containerlogs/container_{STAMP}_{number:05d}_01_000001/bench",
        "amHostHttpAddress": "node:8042", "allocatedMB": 1280, "allocatedVCores": 2, "runningContainers": 2,
        "memorySeconds": 4000, "vcoreSeconds": 4, "preemptedResourceMB": 0, "logAggregationStatus": "NOT_START",
    }


@contextlib.contextmanager
def _server(size: int) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", _SERVER.format(count=size)], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def serve(count: int) -> None:
    """Answer every list of applications with the same running ones, until killed; first the URL on stdout."""
    content = json.dumps({"apps": {"app": [_application(number) for number in range(count)]}}).encode()
    calls = [0, 0]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                asked = b"/told" in head.split(b"\r\n", 1)[0]
                body = json.dumps(calls).encode() if asked else content
                if not asked:
                    calls[0] += 1
                    calls[1] += len(body)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                             % len(body) + body)
                await writer.drain()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await server.serve_forever()

    asyncio.run(run())
