"""Rendezvous without YARN: the real coordinator, real TLS, N agents that all call at the same moment."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.spec import JobSpec, TaskSpec

from .appmaster import AppMaster
from .processes import child_of, cpu_seconds, peak_memory
from .samples import Figures, Samples, interleave

TITLE = "Rendezvous: first connect to the last received cluster spec; on paper tf-yarn sends 3 N^2 + 2 N messages"
#: Processes that play agents; one more than that would only take the coordinator's core.
CROWDS = 2


def measure(runs: int, quick: bool) -> Samples:
    """Measure 100, 300 and 1,000 agents."""
    sizes = (100,) if quick else (100, 300, 1000)
    return interleave({f"{size:,} agents": lambda size=size: figures(size) for size in sizes}, runs, Samples())


def figures(size: int) -> Figures:
    """Return the figures of one rendezvous."""
    with tempfile.TemporaryDirectory(prefix="ytf-bench-") as folder:
        told = meet(size, Path(folder) / "am")
    if len(told["specs"]) != 1:
        raise RuntimeError(f"{len(told['specs'])} different cluster specs were received")
    return {
        "seconds": told["seconds"],
        "messages": told["messages"],
        "messages of tf-yarn on paper": 3 * size * size + 2 * size,
        "KiB on the wire": told["bytes"] / 1024,
        "connections": told["connections"],
        "coordinator MiB": told["coordinator_mib"],
        "coordinator CPU s": told["coordinator_cpu"],
        "agents' CPU s": told["agents_cpu"],
    }


def meet(size: int, folder: Path, crowds: int = CROWDS) -> dict[str, Any]:
    """Run one rendezvous to the job's good end.

    Returns
    -------
    dict
        ``seconds``, ``messages``, ``bytes``, ``connections``, ``specs`` (the different ones that
        were received, as JSON), ``coordinator_mib`` (peak up to the publication),
        ``coordinator_cpu``, ``agents_cpu``, ``report``.
    """
    spec = JobSpec(command="true", tasks={"worker": TaskSpec(instances=size)}, deadlines=Deadlines(heartbeat=0))
    with AppMaster(folder, spec) as am:
        port, inner = am.port(), child_of(am.coordinator.pid)
        before = cpu_seconds(inner)
        shares = [range(size)[number::crowds] for number in range(crowds)]
        firsts = [sum(len(share) for share in shares[:number]) for number in range(crowds)]
        players = [_player(folder, port, first, len(share)) for first, share in zip(firsts, shares, strict=True)]
        try:
            for player in players:
                _line(player)
            told = [json.loads(answer) for answer in _ask(players)]
            memory, used = peak_memory(inner), cpu_seconds(inner) - before
            _echo(players)
            report = am.wait()
        finally:
            for player in players:
                player.kill()
                player.communicate()
    return {
        "seconds": max(part["last"] for part in told) - min(part["first"] for part in told),
        "messages": sum(part["sent"] + part["received"] for part in told),
        "bytes": sum(part["bytes"] for part in told),
        "connections": sum(part["connections"] for part in told),
        "specs": sorted({spec for part in told for spec in part["specs"]}),
        "coordinator_mib": memory,
        "coordinator_cpu": used,
        "agents_cpu": sum(part["cpu_seconds"] for part in told),
        "report": report,
    }


def _player(folder: Path, port: int, first: int, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.crowd", str(folder), str(port), "worker", str(first), str(count)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parent.parent
    )


def _echo(players: "list[subprocess.Popen[str]]") -> None:
    for player in players:
        assert player.stdin is not None
        player.stdin.write("go\n")
        player.stdin.flush()


def _ask(players: "list[subprocess.Popen[str]]") -> list[str]:
    _echo(players)
    return [_line(player) for player in players]


def _line(player: "subprocess.Popen[str]") -> str:
    assert player.stdout is not None
    line = player.stdout.readline()
    if not line:
        raise RuntimeError("a process of agents ended early; its error stands above")
    return line
