"""From what the coordinator knows to the report: of the running job for its page, of its end for YARN."""

import platform
import time
from typing import Any, Dict, Mapping

from ..common.contract import TaskId
from ..common.reasons import Reason
from ..common.report import JobReport
from ..common.roles import TENSORBOARD
from . import lifecycle
from .coordinator import Coordinator
from .wording import some


def build_report(coordinator: Coordinator, *, live: bool = False) -> JobReport:
    """Give the report as of now; the final one when there is a verdict.

    Parameters
    ----------
    coordinator : Coordinator
    live : bool, optional
        Between verdict and end the other tasks still run, and are on their way out.
    """
    job, registry, verdict = coordinator.job, coordinator.registry, coordinator.state.verdict
    board = registry.serving.get(TaskId(TENSORBOARD, 0))
    shown = board is not None and "starts" in registry.records[board.task]
    final = "UNDEFINED"
    if verdict:
        final = "SUCCEEDED" if verdict.reason is Reason.SUCCEEDED else "FAILED"
    return JobReport(
        application_id=coordinator.application_id,
        name=job.name,
        queue=job.queue,
        user=job.user,
        state="FINISHED" if verdict else "RUNNING",
        final_status=final,
        reason=verdict.reason if verdict else None,
        message=verdict.message if verdict else _standing(coordinator),
        started_at=round(coordinator.started_at, 3),
        finished_at=round(time.time(), 3) if verdict else None,
        rounds=tuple(coordinator.rounds),
        tasks=registry.reports(coordinator.state.phases if live else _phases(coordinator)),
        first_failure=str(verdict.task) if verdict and verdict.task else None,
        metrics=registry.metrics(),
        tensorboard_url=f"http://{board.address}" if board is not None and shown else None,
        output_path=job.output,
        versions={"tf_yarn_ops": job.version_of_package, "skein": coordinator.containers.version,
                  "python": platform.python_version()},
    )


def status(coordinator: Coordinator) -> Dict[str, Any]:
    """Give the live report with the cluster spec, for the page and for clients."""
    return {**build_report(coordinator, live=True).to_dict(), "cluster_spec": coordinator.cluster}


def _phases(coordinator: Coordinator) -> Mapping[TaskId, str]:
    """The tasks' states; after the verdict nothing runs: what did not report its end went with its container."""
    phases = coordinator.state.phases
    if coordinator.state.verdict is None:
        return phases
    return {task: lifecycle.LOST if phase == lifecycle.RUNNING else phase for task, phase in phases.items()}


def _standing(coordinator: Coordinator) -> str:
    phases = list(coordinator.state.phases.values())
    if coordinator.state.published:
        return f"{phases.count(lifecycle.RUNNING)} of {len(phases)} tasks run."
    missing = coordinator.registry.missing(coordinator.state.phases)
    return f"Waiting for {some(missing)}."
