"""``python -m benchmarks.crowd FOLDER PORT SERVICE FIRST COUNT``: many agents in one process.

They speak the agents' own protocol and keep to their patience: 2 s for connection and
handshake, then a back-off from 0.1 to 2 s. All call at the same moment, once a line
comes on stdin. Prints what happened as JSON; a further line lets all of them end well.
"""

import asyncio
import json
import os
import random
import resource
import sys
import time
from typing import Any

from tf_yarn_ops.runtime.common import protocol
from tf_yarn_ops.runtime.common.contract import VERSION
from tf_yarn_ops.runtime.common.mutual_tls import client_context

#: Longest line from the coordinator: a cluster spec of thousands of tasks.
LIMIT = 1 << 24


class Crowd:
    """The agents of one process, and what is counted about them."""

    def __init__(self, port: int, service: str):
        self.port, self.service = port, service
        self.context = client_context()
        self.counts = {"sent": 0, "received": 0, "bytes": 0, "connections": 0}
        self.specs: set[str] = set()
        self.first, self.last = 0.0, 0.0
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect as `agent` does: try, back off, try again."""
        backoff = 0.1
        while True:
            self.counts["connections"] += 1
            try:
                opened = asyncio.open_connection("127.0.0.1", self.port, ssl=self.context, limit=LIMIT)
                return await asyncio.wait_for(opened, protocol.CONTACT_SECONDS)
            except (OSError, asyncio.TimeoutError):
                await asyncio.sleep(backoff * random.uniform(0.5, 1.0))
                backoff = min(2.0, backoff * 2)

    async def attend(self, instance: int) -> None:
        """Be one agent until its start has come."""
        reader, writer = await self.connect()
        self.writers.append(writer)
        self.echo(
            writer,
            "register",
            version=VERSION,
            container=f"{self.service}_{instance}",
            nonce=f"{instance:032x}",
            round=1,
            start=0,
            host="127.0.0.1",
            port=10000 + instance,
            yarn_container=f"container_1700000000000_0043_01_{instance:06d}",
            node_http="127.0.0.1:8042",
            unfit=None,
        )
        while True:
            line = await reader.readline()
            if not line:
                raise RuntimeError(f"{self.service}_{instance}: the coordinator closed the connection")
            self.last = time.monotonic()
            self.counts["received"] += 1
            self.counts["bytes"] += len(line)
            message = protocol.decode(line)
            if message["type"] == "start":
                self.specs.add(json.dumps(message["cluster"], sort_keys=True))
                return
            if message["type"] != "welcome":
                raise RuntimeError(f"{self.service}_{instance}: {message}")

    def echo(self, writer: asyncio.StreamWriter, kind: str, **fields: Any) -> None:
        """Send and count a message."""
        line = protocol.encode(kind, **fields)
        self.counts["sent"] += 1
        self.counts["bytes"] += len(line)
        writer.write(line)

    async def gather(self, first: int, count: int) -> dict[str, Any]:
        """Let all agents call; give what happened. Times are of the machine's monotonic clock."""
        before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        self.first = time.monotonic()
        await asyncio.gather(*(self.attend(first + number) for number in range(count)))
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
        return {**self.counts, "first": self.first, "last": self.last, "specs": sorted(self.specs), "cpu_seconds": used}

    async def leave(self) -> None:
        """Report exit code 0 for everyone."""
        for writer in self.writers:
            self.echo(
                writer,
                "exited",
                round=1,
                start=1,
                stopped=False,
                code=0,
                signal=None,
                seconds=1.0,
                started_at=time.time() - 1,
                finished_at=time.time(),
                late=0.0,
                cpu_seconds=1.0,
                peak_memory_mib=1.0,
                log_tail="",
                result=None,
                out_of_memory=None,
                port_taken=False,
            )
            await writer.drain()
        await asyncio.sleep(0.5)


async def main(port: int, service: str, first: int, count: int) -> None:
    """Play the whole part."""
    crowd = Crowd(port, service)
    loop = asyncio.get_running_loop()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.readline)
    sys.stdout.write(json.dumps(await crowd.gather(first, count)) + "\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.readline)
    await crowd.leave()


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    asyncio.run(main(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
