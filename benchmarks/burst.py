"""Many submissions at once: as a scheduler's clock strikes, each from a cold process of its own."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from .hadoop import Hadoop, hadoop
from .samples import Figures, Samples, interleave

TITLE = "50 cold processes submit at the same moment on this machine's cores"
SIZE, QUICK_SIZE = 50, 5
#: One application master fills the node: the others wait in the queue, and no JVM starts while we measure.
AM_MEMORY = "10 GiB"
_REQUEST = re.compile(rb"(?:GET|POST|PUT) \S+ HTTP/1\.1\r\n")


def measure(runs: int, quick: bool) -> Samples:
    """Measure one submission and many at once."""
    size = QUICK_SIZE if quick else SIZE
    with hadoop() as cluster, counting(cluster.cluster.resourcemanager_url) as (url, calls):

        def figures(count: int) -> Figures:
            return _figures(cluster, url, calls, count)

        figures(1)
        many = f"{size} at once"
        return interleave(
            {"1 alone": lambda: figures(1), many: lambda: figures(size)}, runs, Samples(against={many: "1 alone"})
        )


def _figures(cluster: Hadoop, url: str, calls: list[int], count: int) -> Figures:
    before, began = calls[0], time.time()
    told = cluster.submit_at_once(count, "sleep 60", "--resourcemanager", url, "--am_memory", AM_MEMORY)
    asked = calls[0] - before
    names = [ended.answer for ended in told]
    if len(set(names)) != count:
        raise RuntimeError(f"{count} submissions gave {len(set(names))} applications")
    accepted = max(cluster.launcher.session.resourcemanager.get(name)["startedTime"] for name in names) / 1000
    for name in names:
        cluster.launcher.kill(name, "measured")
    cluster.quieten()
    return {
        "start -> last accepted s": accepted - began,
        "RM calls a submission": asked / count,
        "peak MiB, sum of all": sum(ended.peak_mib for ended in told),
        "slowest process s": max(ended.seconds for ended in told),
    }


@contextlib.contextmanager
def counting(target: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the URL of a proxy in front of a server, and the number of requests that have passed it."""
    calls, ready, loop = [0], threading.Event(), asyncio.new_event_loop()
    address: list[int] = []
    where = urlsplit(target)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: bool) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                calls[0] += len(_REQUEST.findall(chunk)) if count else 0
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(where.hostname, where.port)
        await asyncio.gather(pump(reader, back, True), pump(there, writer, False))

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address.append(server.sockets[0].getsockname()[1])
        ready.set()

    loop.create_task(run())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        ready.wait(10)
        yield f"http://127.0.0.1:{address[0]}", calls
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
