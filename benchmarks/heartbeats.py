"""Samples of many agents and the job's page, without the network: a sample takes the place of a ping on it."""

import asyncio
import gc
import json
import resource
import time
from typing import Any

from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common import protocol
from tf_yarn_ops.runtime.common.contract import VERSION
from tf_yarn_ops.runtime.master.containers import Container, SkeinContainers
from tf_yarn_ops.runtime.master.coordinator import Coordinator
from tf_yarn_ops.runtime.master.web import compact
from tf_yarn_ops.runtime.page.page import render_parts
from tf_yarn_ops.submit.application import build_runtime_job

from .samples import Figures, Samples, interleave

TITLE = "Heartbeats with CPU, memory and two metrics, each 5 s: the coordinator's CPU, memory and bytes, without TLS"
#: Samples of each agent: five minutes.
ROUNDS = 60


class Line:
    """An agent's end that drops all messages."""

    address = "bench"

    def send(self, line: bytes) -> None:
        """Take a line."""

    def close(self) -> None:
        """Do nothing."""


def measure(runs: int, quick: bool) -> Samples:
    """Measure 100 and 1,000 agents."""
    sizes = (100,) if quick else (100, 1000)
    cases = {f"{size:,} agents": lambda size=size: asyncio.run(figures(size)) for size in sizes}
    return interleave(cases, runs, Samples())


def resident_mib() -> float:
    """Return this process's resident memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def sample(step: int) -> bytes:
    """Return the line of one sample: two metrics, five points each."""
    points = [[float(step * 5 + number), 1.0 / (step * 5 + number + 1)] for number in range(5)]
    return protocol.encode(
        "sample",
        round=1,
        start=1,
        cpu_seconds=5.0 * step,
        cpu_cores=1.25,
        memory_mib=2048.5,
        peak_cpu_cores=1.5,
        peak_memory_mib=2100.0,
        left_out=0,
        idle_seconds=0.0,
        gpus=None,
        gpu_percent=None,
        gpu_memory_mib=None,
        gpu_given_mib=None,
        gpu_uuids=None,
        metrics={"loss": points, "accuracy": points},
    )


async def figures(size: int) -> Figures:
    """Return the figures of one job of `size` workers after `ROUNDS` samples of each."""
    spec = JobSpec(command="true", tasks={"worker": TaskSpec(instances=size)})
    job = build_runtime_job(spec)._replace(user="bench")
    coordinator = Coordinator(job, "application_1_1", SkeinContainers(job))
    coordinator.state.known = {
        f"worker_{number}": Container(f"worker_{number}", "worker", "RUNNING", "") for number in range(size)
    }
    peers: list[tuple[Any, Line]] = []
    for number in range(size):
        line = Line()
        peers.append(
            (
                await coordinator.agents.on_connect(
                    line,
                    {
                        "type": "register",
                        "version": VERSION,
                        "container": f"worker_{number}",
                        "nonce": f"{number}",
                        "host": f"node{number}",
                        "port": 2000,
                        "round": 1,
                        "start": 0,
                        "yarn_container": f"c{number}",
                        "node_http": "n:8042",
                        "unfit": None,
                    },
                ),
                line,
            )
        )  # type: ignore[arg-type]
    for peer, line in peers:
        coordinator.agents.on_message(peer, line, {"type": "running", "round": 1, "start": 1})  # type: ignore[arg-type]
    lines = [sample(step) for step in range(ROUNDS)]
    gc.collect()
    before = resident_mib()
    spent = 0.0
    for text in lines:
        began = time.process_time()
        for peer, line in peers:
            coordinator.agents.on_message(peer, line, protocol.decode(text))  # type: ignore[arg-type]
        spent += time.process_time() - began
    grown = resident_mib() - before
    began = time.process_time()
    document = coordinator.status()
    content = json.dumps(document)
    parts = json.dumps(render_parts(document, live=True))
    page = time.process_time() - began
    report = compact(coordinator.live_report())
    return {
        "bytes of a sample": len(lines[-1]),
        "KiB/s of all": len(lines[-1]) * size / 5 / 1024,
        "us of CPU per sample": spent / (size * ROUNDS) * 1e6,
        "% of a core": spent / ROUNDS / 5 * 100,
        "page, ms of CPU": page * 1000,
        "MiB of curves": grown,
        "status.json KiB": len(content) / 1024,
        "its report KiB": len(report) / 1024,
        "parts.json KiB": len(parts) / 1024,
    }
