"""What an agent costs in a container, from start to bye: peak memory, CPU without the user's command."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import RUNTIME_FILE

from .appmaster import APPLICATION, AppMaster
from .samples import Figures, Samples, interleave

TITLE = "Agent with the command `true`: at most 20 MiB and 60 ms are wanted"
#: Runs a program and prints its peak memory (KiB) and CPU seconds; small itself, because a
#: child's peak begins with what its parent held when it was started.
_METER = """\
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
print('{"code": %d, "kib": %d, "cpu": %f}' % (os.waitstatus_to_exitcode(status), used.ru_maxrss,
                                            used.ru_utime + used.ru_stime))
"""


def measure(runs: int, quick: bool) -> Samples:
    """Measure agents, and a bare interpreter beside them."""
    samples = Samples(against={"agent": "python -I -S -c pass"})
    return interleave({"python -I -S -c pass": bare_figures, "agent": agent_figures}, runs, samples)


def agent_figures() -> Figures:
    """Return the figures of one agent; without the CPU time of the command and its shell."""
    spec = JobSpec(command="true", tasks={"worker": TaskSpec()})
    with tempfile.TemporaryDirectory(prefix="ytf-bench-") as name, AppMaster(Path(name) / "am", spec) as am:
        am.port()
        folder = Path(name) / "worker_0"
        am.lay_out(folder)
        told = _metered(am, [sys.executable, "-I", "-S", RUNTIME_FILE, "agent", "worker", APPLICATION], folder)
        report = am.wait()
    if report.exit_code:
        raise RuntimeError(f"the job ended with {report.reason}: {report.message}")
    return {"peak MiB": told["kib"] / 1024, "CPU ms": 1000 * (told["cpu"] - (report.tasks[0].cpu_seconds or 0.0))}


def bare_figures() -> Figures:
    """Return the figures of an interpreter that does nothing."""
    spec = JobSpec(command="true", tasks={"worker": TaskSpec()})
    with tempfile.TemporaryDirectory(prefix="ytf-bench-") as name, AppMaster(Path(name) / "am", spec) as am:
        told = _metered(am, [sys.executable, "-I", "-S", "-c", "pass"], Path(name))
    return {"peak MiB": told["kib"] / 1024, "CPU ms": 1000 * told["cpu"]}


def _metered(am: AppMaster, command: list[str], folder: Path) -> dict[str, float]:
    process = am.run(
        [sys.executable, "-I", "-S", "-c", _METER, *command],
        folder,
        {"SKEIN_CONTAINER_ID": "worker_0", "CONTAINER_ID": "container_1", "NM_HTTP_PORT": "1"},
    )
    try:
        process.wait(60)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{(folder / 'log').read_text()}\n{am.log.read_text()}") from error
    lines = (folder / "log").read_text().splitlines()
    told: dict[str, float] = json.loads(lines[-1])
    if told["code"]:
        raise RuntimeError("\n".join(lines[-20:]))
    return told
