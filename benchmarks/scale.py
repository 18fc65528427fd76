"""Jobs of many tasks on four NodeManagers: until all run, run again, and what coordinator and readers pay."""

import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from support.faults import processes_of
from tf_yarn_ops.runtime.common.reasons import Reason

from .hadoop import Hadoop, hadoop, times
from .processes import cpu_seconds, peak_memory
from .restart import restart_figures
from .samples import Figures, Samples, interleave

TITLE = "Jobs of many tasks on four NodeManagers, against bare Skein; many jobs at the same time"
NODES = 4
#: Each node believes that it has this much.
ROOM = {"yarn.nodemanager.resource.memory-mb": "65536", "yarn.nodemanager.resource.cpu-vcores": "256"}
SIZES, QUICK_SIZES = (64, 128, 256), (16,)
#: Jobs at the same time, and tasks of each.
JOBS, TASKS = 20, 16
_SECONDS = 600.0


def measure(runs: int, quick: bool) -> Samples:
    """Measure one job of each size, both ways, and many jobs at the same time."""
    sizes = QUICK_SIZES if quick else SIZES
    cases: dict[str, Callable[[], Figures]] = {}
    against = {}
    with hadoop(nodes=NODES, properties=ROOM) as cluster:
        own_figures(cluster, 1)
        bare_figures(cluster, 1)
        for size in sizes:
            cases[f"bare Skein, N={size}"] = functools.partial(bare_figures, cluster, size)
            cases[f"ytf-submit, N={size}"] = functools.partial(own_figures, cluster, size)
            against[f"ytf-submit, N={size}"] = f"bare Skein, N={size}"
            cases[f"cluster restarts, N={size}"] = functools.partial(restart_figures, cluster, size)
        if not quick:
            cases[f"{JOBS} jobs of {TASKS}"] = functools.partial(crowd_figures, cluster)
        return interleave(cases, runs, Samples(against=against))


def own_figures(cluster: Hadoop, size: int) -> Figures:
    """Return the figures of a job that runs until it is killed."""
    cluster.quieten()
    folder = cluster.marks()
    ended = cluster.submit(size, command(folder))
    running = _until_all_run(folder, size)
    # The watchdog, its parent, has the same words.
    coordinator = max(
        (
            pid
            for pid, words in processes_of(ended.answer)
            if f".ytf.zip coordinator {ended.answer}" in words and "bash" not in words
        ),
        key=cpu_seconds,
    )
    url = cluster.launcher.report(ended.answer).tracking_url or ""
    began = time.monotonic()
    page = httpx.get(f"{url}pages/ytf/", follow_redirects=True, trust_env=False, timeout=60).raise_for_status()
    page_seconds, began = time.monotonic() - began, time.monotonic()
    status = httpx.get(f"{url}pages/ytf/status.json", trust_env=False, timeout=60).raise_for_status()
    status_seconds = time.monotonic() - began
    cpu, peak = cpu_seconds(coordinator), peak_memory(coordinator)
    began = time.monotonic()
    report = cluster.launcher.kill(ended.answer, "measured")
    killed = time.monotonic() - began
    if report.reason is not Reason.KILLED or len(report.tasks) + report.omitted_tasks != size:
        raise RuntimeError(f"{ended.answer}: {report.reason}, {len(report.tasks)} tasks of {size}")
    found = cluster.launcher.session.resourcemanager.get(ended.answer)
    return {
        "submit -> all running s": running - ended.began,
        "coordinator's CPU until then s": cpu,
        "coordinator's peak MiB": peak,
        "page s": page_seconds,
        "page KiB": len(page.content) / 1024,
        "status.json s": status_seconds,
        "status.json KiB": len(status.content) / 1024,
        "kill -> verdict s": killed,
        "report in YARN KiB": len(found["diagnostics"].encode()) / 1024,
        "tasks that it leaves out": report.omitted_tasks,
    }


def bare_figures(cluster: Hadoop, size: int) -> Figures:
    """Return the figures of bare Skein."""
    cluster.quieten()
    folder = cluster.marks()
    ended = cluster.submit_bare(size, command(folder))
    running = _until_all_run(folder, size)
    cluster.launcher.session.resourcemanager.kill(ended.answer, "measured")
    return {"submit -> all running s": running - ended.began}


def crowd_figures(cluster: Hadoop) -> Figures:
    """Return the figures of many jobs at the same time."""
    cluster.quieten()
    folder = cluster.marks()
    began = time.time()
    with ThreadPoolExecutor(JOBS) as pool:
        clients = [pool.submit(cluster.submit, TASKS, command(folder)) for _ in range(JOBS)]
        names = [client.result().answer for client in clients]
        running = _until_all_run(folder, JOBS * TASKS)
        start = time.monotonic()
        reports = list(pool.map(lambda name: cluster.launcher.kill(name, "measured"), names))
    if {report.reason for report in reports} != {Reason.KILLED}:
        raise RuntimeError(f"a job of {JOBS} has ended by itself")
    return {"first submit -> all running s": running - began, "kill of all s": time.monotonic() - start}


def command(folder: Path) -> str:
    """Return the command of every task: it writes down its start, and goes on."""
    return f"echo $EPOCHREALTIME > {folder}/start.$CONTAINER_ID; sleep 600"


def _until_all_run(folder: Path, size: int) -> float:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if len(list(folder.glob("start.*"))) == size and len(found := times(folder, "start")) == size:
            return max(found)
        time.sleep(0.1)
    raise RuntimeError(f"{len(list(folder.glob('start.*')))} of {size} tasks run after {_SECONDS:.0f} s")
