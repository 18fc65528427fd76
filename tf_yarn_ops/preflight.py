"""What can be known to be impossible before anything is reserved or staged.

Missing files, a queue that is not there, containers above the maximum allocation:
errors. No node that could hold a container now: a warning, because clusters grow.

The maximum allocation is YARN's (ClusterNodeTracker): for ``scheduling-wait-ms`` after the
ResourceManager's start what the configuration says, then at most the largest memory, vcores and
GPUs of any node, each on its own. Above it YARN refuses the container inside the application master.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import ResourcesImpossible, SpecInvalid, SubmissionRejected
from .parts import ARCHIVE_SUFFIXES
from .requirement import did_you_mean
from .resourcemanager import Allocation
from .spec import JobSpec

logger = logging.getLogger(__name__)


def local_path(source: str) -> Path | None:
    """Give the path of a local source (``/path``, ``path``, ``file:///path``); None for what lies elsewhere."""
    if source.startswith("file://"):
        return Path("/" + source[len("file://"):].lstrip("/"))
    return None if urlsplit(source).scheme and "://" in source else Path(source)


def with_absolute_sources(spec: JobSpec) -> JobSpec:
    """Give the job with every local source as ``file://`` and an absolute path.

    Skein would read ``data#1.csv`` as a URL and lose what stands behind the ``#``.
    """
    def absolute(source: str) -> str:
        path = local_path(source)
        return source if path is None else f"file://{path.absolute()}"

    environment = spec.environment
    if environment and environment.scheme == "archive":
        environment = replace(environment, location=absolute(environment.location))
    return replace(
        spec, environment=environment, script=absolute(spec.script) if spec.script else None,
        files={name: absolute(source) for name, source in spec.files.items()},
        archives={name: absolute(source) for name, source in spec.archives.items()})


def check_files(spec: JobSpec) -> None:
    """See whether every local file is there.

    Raises
    ------
    SpecInvalid
        With all that are missing or can't be read.
    """
    faults = []
    named = {**{f"files: {name}": source for name, source in spec.files.items()},
             **{f"archives: {name}": source for name, source in spec.archives.items()}}
    if spec.script:
        named["script"] = spec.script
    if spec.environment and spec.environment.scheme == "archive":
        named["environment"] = spec.environment.location
    for where, source in named.items():
        path = local_path(source)
        if path is None:
            continue
        if not path.exists():
            faults.append(f"{where}: there is no {path} on this machine")
        elif path.is_dir() and source.endswith(ARCHIVE_SUFFIXES):
            faults.append(f"{where}: {path} is a folder, not an archive")
        elif path.is_file() and not os.access(path, os.R_OK):
            faults.append(f"{where}: {path} can't be read")
    if faults:
        raise SpecInvalid(faults)


def containers(spec: JobSpec) -> dict[str, Allocation]:
    """Give what each kind of container asks for, by a name for messages; the application master first."""
    wanted = {"the application master": Allocation(spec.am_memory, spec.am_vcores)}
    for name, task in spec.tasks.items():
        for index in range(task.instances):
            resources = task.resources(index)
            where = f"{name}:{index}" if index in task.indices else name
            wanted[where] = Allocation(resources.memory, resources.vcores, resources.gpus)
    if spec.tensorboard:
        wanted["tensorboard"] = Allocation(spec.tensorboard.memory, spec.tensorboard.vcores)
    return wanted


def check_maximum(spec: JobSpec, maximum: Allocation) -> None:
    """Compare every container with the cluster's maximum allocation.

    Raises
    ------
    ResourcesImpossible
        With each container that is above it.
    """
    above = [f"{name} asks for {wanted}" for name, wanted in containers(spec).items() if not maximum.holds(wanted)]
    if above:
        raise ResourcesImpossible(f"{'; '.join(above)}; the cluster's maximum allocation is {maximum}")


def maximum_of(scheduler: Mapping[str, Any]) -> Allocation | None:
    """Give the maximum allocation as the scheduler's description has it; None where it has none."""
    document = scheduler.get("maximumAllocation")
    return Allocation.read(document) if document else None


def check_nodes(spec: JobSpec, nodes: Iterable[Mapping[str, Any]], strict: bool) -> None:
    """See whether some node could hold each container if it were empty.

    Parameters
    ----------
    spec : JobSpec
    nodes : iterable of mapping
        As the ResourceManager lists them.
    strict : bool
        Refuse instead of warning.

    Raises
    ------
    ResourcesImpossible
        Only when ``strict``.
    """
    totals = [_total(node) for node in nodes]
    if not totals:
        problems = ["the cluster has no running node now"]
    else:
        problems = [f"no node could hold {name}, which asks for {wanted}" for name, wanted in containers(spec).items()
                    if not any(total.holds(wanted) for total in totals)]
    if not problems:
        return
    largest = Allocation(max((t.memory for t in totals), default=0), max((t.vcores for t in totals), default=0),
                         max((t.gpus for t in totals), default=0))
    text = f"{'; '.join(problems)}; the largest of {len(totals)} nodes: {largest}"
    if strict:
        raise ResourcesImpossible(text)
    logger.warning("%s; the job waits for a larger node", text)


def _total(node: Mapping[str, Any]) -> Allocation:
    if node.get("totalResource"):
        return Allocation.read(node["totalResource"])
    return Allocation(int(node.get("usedMemoryMB", 0)) + int(node.get("availMemoryMB", 0)),
                      int(node.get("usedVirtualCores", 0)) + int(node.get("availableVirtualCores", 0)))


def check_queue(queue: str, scheduler: Mapping[str, Any]) -> None:
    """See whether the queue takes applications.

    Parameters
    ----------
    queue : str
        Its name or full path.
    scheduler : mapping
        ``schedulerInfo``. Only the CapacityScheduler tells enough to refuse; the FairScheduler
        makes queues when they are named.

    Raises
    ------
    SubmissionRejected
        It is unknown, stopped, or not a leaf.
    """
    if scheduler.get("type") != "capacityScheduler":
        return
    found = dict(_queues(scheduler, "root"))
    names = {path for path, item in found.items() if not item["children"]}
    leaves = sorted(path.rsplit(".", 1)[-1] for path in names)
    matching = [item for path, item in found.items() if queue == path or queue == path.rsplit(".", 1)[-1]]
    if not matching:
        parent = found.get(queue.rpartition(".")[0] or "root")
        if parent and parent["creates"]:
            return
        raise SubmissionRejected(f"there is no queue {queue!r}{did_you_mean(queue, leaves)}; "
                                 f"the cluster has {', '.join(leaves)}")
    item = next((item for item in matching if not item["children"]), matching[0])
    if item["children"]:
        raise SubmissionRejected(f"queue {queue!r} has queues below it and takes no applications itself; "
                                 f"the cluster has {', '.join(leaves)}")
    if item["state"] not in ("", "RUNNING"):
        running = sorted(path.rsplit(".", 1)[-1] for path in names if found[path]["state"] in ("", "RUNNING"))
        raise SubmissionRejected(f"queue {queue!r} is {item['state']} and takes no applications; "
                                 f"these do: {', '.join(running) or 'none'}")


def _queues(info: Mapping[str, Any], path: str) -> Iterable[tuple[str, dict[str, Any]]]:
    children = (info.get("queues") or {}).get("queue") or []
    creates = bool(info.get("autoCreateChildQueueEnabled") or
                   info.get("autoCreationEligibility", "off") in ("legacy", "flexible"))
    leaf = "leaf" in str(info.get("type", "")).lower() and not children
    yield path, {"children": bool(children) or (creates and not leaf), "state": str(info.get("state") or ""),
                 "creates": creates}
    for child in children:
        yield from _queues(child, str(child.get("queuePath") or f"{path}.{child['queueName']}"))
