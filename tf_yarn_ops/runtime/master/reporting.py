"""From the state of a job to its report and to ``status.json``: pure but for the time of day."""

import contextlib
import functools
import importlib.metadata
import platform
import time
from typing import Any, Dict, Mapping, Optional

from ..common.alerts import LEAST_IDLE
from ..common.report import JobReport, list_names
from ..common.roles import TENSORBOARD
from ..common.status import FAILED, LOST, RUNNING, Waiting, build_status
from .commit import OutputCommit
from .job_state import SILENT_AGENT_SECONDS, JobState
from .lifecycle import SHARED
from .monitor import OUTPUT

#: Libraries of the environment whose versions the page shows.
_LIBRARIES = ("tensorflow", "tensorflow-cpu", "keras", "numpy", "tensorboard")


@functools.lru_cache(maxsize=1)
def installed_versions() -> Mapping[str, str]:
    """Return the versions of the libraries that matter to a training, as far as this interpreter has them."""
    found = {}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def build_report(
    state: JobState,
    output: Optional[OutputCommit],
    tensorboard_url: Optional[str],
    *,
    live: bool = False,
    every_tail: bool = False,
) -> JobReport:
    """Return the present report; it is final if there is a verdict.

    Parameters
    ----------
    state : JobState
    output : OutputCommit or None
    tensorboard_url : str or None
        Where TensorBoard answers.
    live : bool, optional
        True keeps the present states of the tasks. False (default) reports a command that ran at the verdict as lost if
        it may not linger and no agent has told its end: its container ends with the job.
    every_tail : bool, optional
        True keeps the ends of all tasks' logs. Default false: of failed tasks only, as YARN's diagnostics are small.
    """
    job, board, verdict = state.job, state.job.tensorboard, state.lifecycle.verdict
    failed = {failure.peer.task for failure in state.deferred.waiting if failure.peer.is_current(failure.message)}
    phases = {**state.lifecycle.phases, **dict.fromkeys(failed, FAILED)}
    if verdict and not live:
        lingering = {peer.task for peer in state.lingering}
        phases = {task: LOST if phase == RUNNING and task not in lingering else phase for task, phase in phases.items()}
    final = "SUCCEEDED" if state.has_succeeded else "FAILED"
    working = output.working_url if output else None
    grown = [plan for plan in job.services.values() if job.restart["memory_growth"] and plan.type != TENSORBOARD]
    memory = {one.type: max(plan.memory for plan in grown if plan.type == one.type) for one in grown}
    return JobReport(
        application_id=state.application_id,
        name=job.name,
        queue=job.queue,
        user=job.user,
        state="FINISHED" if verdict else "RUNNING",
        final_status=final if verdict else "UNDEFINED",
        reason=verdict.reason if verdict else None,
        message=verdict.message if verdict else _describe_progress(state),
        tracking_url=job.lasting_page(state.application_id) if verdict else None,
        finished_at=round(state.finished_at or time.time(), 3) if verdict else None,
        rounds=tuple(state.rounds),
        tasks=state.registry.reports(phases, every_tail),
        first_failure=str(verdict.task) if verdict and verdict.task else None,
        metrics=state.registry.metrics(state.curves) or (output.metrics if output else None),
        tensorboard_url=tensorboard_url,
        output_path=(output and output.url) or job.output,
        working_path=working,
        working_bytes=output.working_bytes if output and working else None,
        tensorboard_logdir=(board.logdir if board.logdir != job.output else working) if board else None,
        excluded_nodes={node: str(failures) for node, failures in state.excluded.items()},
        memory_mib=memory,
        versions={"tf_yarn_ops": job.version_of_package, "python": platform.python_version(), **installed_versions()},
        **{"started_at": round(state.started_at, 3), **state.times},
    )


def _describe_progress(state: JobState) -> str:
    phases = list(state.lifecycle.phases.values())
    if state.lifecycle.published:
        return f"{phases.count(RUNNING)} of {len(phases)} tasks run."
    missing = [task for task in state.missing() if task not in state.registry.serving] or state.missing()
    return f"Waiting for {list_names(missing or [OUTPUT])}."


def build_live_status(state: JobState, report: JobReport, waiting: Optional[Waiting], now: float) -> Dict[str, Any]:
    """Return the document of ``status.json`` for a report; `now` is monotonic, seconds."""
    wall, idle = time.time(), state.idle_seconds(now)
    stalled_at = now - idle if idle >= LEAST_IDLE else None
    began = {"total": state.began, "execution": state.published_at, "stall": stalled_at}
    return build_status(
        report,
        wall,
        waiting=waiting,
        events=state.timeline.events,
        given=state.timeline.given,
        usage=state.timeline.usage,
        series=state.curves.series(),
        left_out=state.curves.left_out,
        cluster_spec=state.cluster,
        options=state.job.options,
        deadlines={
            name: (wall - now + since, wall - now + since + state.job.deadlines[name])
            for name, since in began.items()
            if since is not None and state.job.deadlines[name]
        },
        restarts_left=state.lifecycle.restarts_left[SHARED] if state.job.restart["max_restarts"] else None,
        silent={
            str(task): round(now - peer.received_at, 1)
            for task, peer in state.registry.serving.items()
            if now - peer.received_at >= SILENT_AGENT_SECONDS
        },
    )
