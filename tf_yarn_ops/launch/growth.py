"""More memory for a job that is submitted again after OUT_OF_MEMORY: `memory_growth` of `job.parts.RestartPolicy`."""

import logging
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..errors import ResourcesImpossible
from ..follow.session import Session
from ..hadoop.resourcemanager import ResourceManager
from ..job.spec import JobSpec, TaskSpec
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..submit.preflight import maximum_of

logger = logging.getLogger(__name__)


def _failed_type(ended: JobReport) -> str:
    return (ended.first_failure or "").partition(":")[0]


def outgrew_memory(ended: JobReport) -> bool:
    """Return whether a task ran out of memory whose type may get more; only jobs with ``memory_growth`` report it."""
    return ended.reason is Reason.OUT_OF_MEMORY and _failed_type(ended) in ended.memory_mib


def _largest(task: TaskSpec) -> int:
    return max(task.resources_of(index).memory for index in range(task.instances))


def with_more_memory(spec: JobSpec, ended: Iterable[JobReport], most: int) -> JobSpec:
    """Return a job in which each type that ran out of memory has more of it than then.

    Parameters
    ----------
    spec : JobSpec
        Memory that it gives itself is never reduced.
    ended : iterable of JobReport
        Of applications of the job, in any order; those with another reason change nothing.
    most : int
        MiB of the largest container.
    """
    tasks = dict(spec.tasks)
    for report in filter(outgrew_memory, ended):
        name = _failed_type(report)
        wanted = min(most, math.ceil(report.memory_mib[name] * spec.restart.memory_growth))
        if name in tasks and wanted > (now := _largest(tasks[name])):
            task = tasks[name]
            indices = {
                index: replace(own, memory=-(-own.memory * wanted // now)) for index, own in task.indices.items()
            }
            tasks[name] = replace(task, memory=-(-task.memory * wanted // now), indices=indices)
    return replace(spec, tasks=tasks)


def grow_memory(session: Session, spec: JobSpec, ended: Sequence[JobReport]) -> JobSpec:
    """Return a job with the memory for its next submission, and log what changes; see `with_more_memory`."""
    failed = [report for report in ended if outgrew_memory(report)]
    if not failed or not spec.restart.memory_growth or not isinstance(session.resourcemanager, ResourceManager):
        return spec
    maximum = maximum_of(session.resourcemanager.scheduler())  # a scheduler without one is asked at the submission
    grown = with_more_memory(spec, failed, maximum.memory if maximum else sys.maxsize)
    for name, task in grown.tasks.items():
        if task != spec.tasks[name]:
            logger.info(
                "memory_growth %g: %s gets %d instead of %d MiB of memory, because tasks ran out of it in %s",
                spec.restart.memory_growth,
                name,
                _largest(task),
                _largest(spec.tasks[name]),
                ", ".join(report.application_id for report in failed if _failed_type(report) == name),
            )
    return grown


def check_growth(spec: JobSpec, ended: JobReport) -> None:
    """Raise `ResourcesImpossible` unless a job has more memory than an application that ran out of it."""
    name = _failed_type(ended)
    if outgrew_memory(ended) and not (name in spec.tasks and _largest(spec.tasks[name]) > ended.memory_mib[name]):
        raise ResourcesImpossible("more memory is not possible")


def log_no_growth(ended: JobReport, why: object) -> None:
    """Log why a job is not submitted again after an application that ran out of memory."""
    name = _failed_type(ended)
    logger.info(
        "%s: not submitted again: the largest task of %s had %d MiB of memory: %s",
        ended.application_id,
        name,
        ended.memory_mib[name],
        why,
    )
