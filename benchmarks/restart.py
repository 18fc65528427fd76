"""What a failed worker costs: until the final status, and until a restarted cluster has its next spec."""

import sys
from pathlib import Path
from typing import Any

from tf_yarn_ops.job.parts import Environment, RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec

from .hadoop import MEMORY, Hadoop, hadoop, times
from .samples import Figures, Samples, interleave

TITLE = "A worker fails after 2 s of running, or at once: less than 1 s is wanted for each of these"


def measure(runs: int, quick: bool) -> Samples:
    """Measure 4 and 16 tasks."""
    cases = {}
    with hadoop() as cluster:
        for size in (4,) if quick else (4, 16):
            cases[f"job fails, N={size}"] = lambda size=size: failure_figures(cluster, size)
            cases[f"job fails at its start, N={size}"] = lambda size=size: failure_figures(cluster, size, after=0)
            cases[f"cluster restarts, N={size}"] = lambda size=size: restart_figures(cluster, size)
        failure_figures(cluster, 1)
        return interleave(cases, runs, Samples())


def failure_figures(cluster: Hadoop, size: int, after: float = 2) -> Figures:
    """Worker 0 fails, nothing is restarted: from its exit to the final status in YARN.

    With ``after=0`` the other commands have just been started, and fork while they are ended.
    """
    folder = cluster.marks()
    found = _run(cluster, size, folder, f"{_fail(folder, after)}; sleep 60; true", RestartPolicy())
    return {"failure -> final status s": found["finishedTime"] / 1000 - times(folder, "failed")[0]}


def restart_figures(cluster: Hadoop, size: int) -> Figures:
    """Worker 0 fails in the first round: from its exit to the next cluster spec, and until all run again."""
    folder = cluster.marks()
    command = (
        f"if [ $YTF_ROUND = 1 ]; then {_fail(folder)}; sleep 60; fi; "
        f"echo $EPOCHREALTIME > {folder}/again.$TASK_INDEX; sleep 1"
    )
    found = _run(cluster, size, folder, command, RestartPolicy("cluster", max_restarts=1, backoff=0))
    report = cluster.launcher.session.read(found)
    failed, again = times(folder, "failed")[0], times(folder, "again")
    if report.exit_code or len(again) != size:
        raise RuntimeError(f"{report.application_id}: {report.reason}, {len(again)} of {size} ran again")
    return {
        "failure -> next cluster spec s": report.rounds[1].started_at - failed,
        "failure -> all running again s": max(again) - failed,
    }


def _fail(folder: Path, after: float = 2) -> str:
    return f"[ $TASK_INDEX = 0 ] && {{ sleep {after:g}; echo $EPOCHREALTIME > {folder}/failed.0; exit 1; }}"


def _run(cluster: Hadoop, size: int, folder: Path, command: str, policy: RestartPolicy) -> dict[str, Any]:
    spec = JobSpec(
        name=folder.name,
        command=command,
        restart=policy,
        environment=Environment.parse(f"venv://{sys.prefix}"),
        tasks={"worker": TaskSpec(instances=size, memory=MEMORY)},
    )
    cluster.quieten()
    report = cluster.launcher.run(spec)
    return cluster.launcher.session.resourcemanager.get(report.application_id)
