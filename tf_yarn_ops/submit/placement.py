"""Check where the containers of a job could run: queues, node labels and node sizes, as the ResourceManager lists them.

An unknown queue, an unknown node label, or a label that the queue may not use is an error, because YARN refuses it for
ever. (YARN checks the label of a task type only when the application master asks for containers, and the master ends.)
A container that no running node could hold, and a job that is larger than all nodes together, are a warning, because
clusters grow.

Facts that the ResourceManager does not list are not checked: a check that refuses too much is worse than none.
"""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import ResourcesImpossible, SubmissionRejected, TfYarnError, did_you_mean, list_faults
from ..hadoop.resourcemanager import Allocation, ResourceManager
from ..job.spec import JobSpec
from .preflight import MASTER, check_maximum, every_container, maximum_of
from .queues import MAPPED, fault_of, find_queue, leaves_of, read_queues

logger = logging.getLogger(__name__)


class Surroundings(NamedTuple):
    """The lists of the ResourceManager: ``schedulerInfo``, the running nodes, each node label with its exclusivity.

    ``labels`` is None when the labels are unknown, or not needed.
    """

    scheduler: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, bool] | None = None


def read_surroundings(spec: JobSpec, resourcemanager: ResourceManager) -> Surroundings:
    """Ask the ResourceManager for the lists of `check_placement`; for labels only if the job or a node has one."""
    with ThreadPoolExecutor(2) as pool:
        scheduler_answer, nodes_answer = pool.submit(resourcemanager.scheduler), pool.submit(resourcemanager.nodes)
        scheduler, nodes = scheduler_answer.result(), nodes_answer.result()
    labelled = any(map(_label, nodes)) or _askers(spec)
    return Surroundings(scheduler, nodes, _read_labels(resourcemanager) if labelled else None)


def _read_labels(resourcemanager: ResourceManager) -> dict[str, bool] | None:
    try:
        document = resourcemanager.labels()
        found = document["nodeLabelInfo"] if document else []
        items = [found] if isinstance(found, dict) else found or []  # YARN writes a list with one item as that item
        return {str(item["name"]): str(item.get("exclusivity", True)).lower() == "true" for item in items}
    except (TfYarnError, ValueError, KeyError, TypeError, AttributeError) as error:
        logger.debug("the node labels can't be read, so YARN has to check them: %s", error)
        return None


def check_placement(spec: JobSpec, around: Surroundings, strict: bool) -> None:
    """Raise an error when YARN could not run the job.

    Parameters
    ----------
    spec : JobSpec
    around : Surroundings
    strict : bool
        Raise an error, instead of logging a warning, for a container that no running node could hold.

    Raises
    ------
    SubmissionRejected, ResourcesImpossible
        With every obstacle in one message.
    """
    refused = [*queue_faults(spec.queue, around.scheduler), *label_faults(spec, around)]
    maximum = maximum_of(around.scheduler)
    try:
        if maximum is not None:
            check_maximum(spec, maximum)
    except ResourcesImpossible as error:
        if not refused:
            raise
        refused.append(str(error))
    if refused:
        raise SubmissionRejected(list_faults(refused))
    warn_about_nodes(spec, around, strict)


def queue_faults(queue: str, scheduler: Mapping[str, Any]) -> list[str]:
    """Return why the queue accepts no applications (unknown, stopped, or not a leaf), as a list of at most one fault.

    Parameters
    ----------
    queue : str
        Its name or full path. YARN may map ``default`` to another queue, so a fault of it is only logged.
    scheduler : mapping
        ``schedulerInfo``. Only the CapacityScheduler lists enough to refuse; the FairScheduler makes queues when
        they are named.
    """
    found = read_queues(scheduler)
    fault = fault_of(queue, found) if found else None
    return _of_queue([fault] if fault else [], queue)


def label_faults(spec: JobSpec, around: Surroundings) -> list[str]:
    """Return a fault for each node label of the job that the cluster does not have, or that its queue may not use."""
    labels, askers = around.labels, _askers(spec)
    if labels is None or not askers:
        return []
    if not labels:
        everyone = dict.fromkeys(name for names in askers.values() for name in names)
        return [f"the cluster has no node labels, and {_requests(list(everyone))} {' and '.join(map(repr, askers))}"]
    found = read_queues(around.scheduler)
    queue = find_queue(spec.queue, found)
    unknown, closed = [], []
    for label, names in askers.items():
        if label not in labels:
            unknown.append(
                f"there is no node label {label!r}{did_you_mean(label, labels)}, which {_requests(names)}; "
                f"the cluster has {', '.join(sorted(labels))}"
            )
        elif queue and not queue.may_use(label):
            may = sorted(name for name, leaf in leaves_of(found).items() if leaf.may_use(label))
            closed.append(
                f"queue {spec.queue!r} may not use node label {label!r}, which {_requests(names)}; "
                f"these may: {', '.join(may) or 'none'}"
            )
    return unknown + _of_queue(closed, spec.queue)


def _of_queue(faults: list[str], queue: str) -> list[str]:
    """Return the faults of a queue; log them instead when YARN may map the queue to another one."""
    if queue not in MAPPED:
        return faults
    for fault in faults:
        logger.warning("%s; YARN refuses the job, unless it maps it to another queue", fault)
    return []


def warn_about_nodes(spec: JobSpec, around: Surroundings, strict: bool) -> None:
    """Log a warning for each container that no running node could hold, even if the node were empty.

    Another warning is for containers that all nodes, or those that the queue may use, could not hold together.

    Raises
    ------
    ResourcesImpossible
        Instead of the warning, when ``strict``.
    """
    problems = ["the cluster has no running node now"]
    if around.nodes:
        grouped = {
            label: (wanted, [_total(node) for node in _nodes_of(label, around)])
            for label, wanted in _by_label(spec, around).items()
        }
        problems = [problem for label, group in grouped.items() for problem in _too_large(*group, label or "")]
        queue = find_queue(spec.queue, read_queues(around.scheduler))
        if not around.labels:  # the containers of all groups go to all nodes
            grouped = {"": (list(every_container(spec)), list(map(_total, around.nodes)))}
        most = queue.most if queue and not around.labels else 100.0
        problems = problems or [
            problem for label, group in grouped.items() for problem in _too_many(*group, label or "", most)
        ]
    if not problems:
        return
    if strict:
        raise ResourcesImpossible("; ".join(problems))
    logger.warning("%s; the job waits until the cluster has room for it", "; ".join(problems))


def _by_label(spec: JobSpec, around: Surroundings) -> dict[str | None, list[tuple[str, Allocation]]]:
    """Return the containers by the label under which YARN places them: the type's, the job's, or the queue's.

    The label is None when any node may be meant: the cluster's labels are unknown, or the container is the master of a
    job without a label, for which YARN has its own setting.
    """
    found = read_queues(around.scheduler)
    queue = find_queue(spec.queue, found)
    default = queue.default_label if queue else ""
    grouped: dict[str | None, list[tuple[str, Allocation]]] = {}
    for name, size in every_container(spec):
        task = spec.tasks.get(name.partition(":")[0])
        own = (task.node_label if task else None) or spec.node_label
        unknown = around.labels is None or not found or (name == MASTER and not own)
        grouped.setdefault(None if unknown else own or default, []).append((name, size))
    return grouped


def _nodes_of(label: str | None, around: Surroundings) -> list[Mapping[str, Any]]:
    """Return the nodes for containers of a label; without a label also the nodes of labels that are not exclusive."""
    return [
        node
        for node in around.nodes
        if label is None or _label(node) == label or not (label or (around.labels or {}).get(_label(node), True))
    ]


def _too_large(wanted: list[tuple[str, Allocation]], totals: list[Allocation], label: str) -> list[str]:
    """Return one sentence about the containers that no node of a label could hold; an empty list if there are none."""
    above = {name: size for name, size in wanted if not any(total.contains(size) for total in totals)}
    if not above:
        return []
    labelled = f" with label {label!r}" if label else ""
    if not totals:
        return [f"the cluster has no running node{labelled or ' without a label'} now, for {', '.join(above)}"]
    others = {name: max(total.others.get(name, 0) for total in totals) for total in totals for name in total.others}
    largest = Allocation(
        max(total.memory for total in totals),
        max(total.vcores for total in totals),
        max(total.gpus for total in totals),
        others,
    )
    texts = (f"no node{labelled} could hold {name}, which asks for {size}" for name, size in above.items())
    return [f"{'; '.join(texts)}; the largest of {len(totals)} nodes{labelled}: {largest}"]


def _too_many(wanted: list[tuple[str, Allocation]], totals: list[Allocation], label: str, most: float) -> list[str]:
    """Return a sentence if the nodes of a label could not hold the containers at the same time, else an empty list.

    Parameters
    ----------
    wanted : list of tuple
        The name and the size of each container.
    totals : list of Allocation
        Of the nodes.
    label : str
    most : float
        Per cent of the nodes that the queue may use. YARN counts memory and GPUs; whether it counts cores depends on
        its calculator, which it does not list.
    """
    nothing = Allocation(0, 0)
    asked, there = sum((size for _, size in wanted), nothing), sum(totals, nothing)
    allowed = int(there.memory * most / 100)
    if asked.memory <= allowed and there.contains(replace(asked, memory=0, vcores=0)):
        return []
    labelled = f" with label {label!r}" if label else ""
    of_queue = f", of which the queue may use {allowed} MiB" if allowed < there.memory else ""
    return [
        f"the job asks for {asked} in {len(wanted)} containers{labelled}, and its tasks start together; the "
        f"{len(totals)} running nodes{labelled} have {there} in all{of_queue}; ask for less memory per "
        f"task (at most {max(size.memory for _, size in wanted)} MiB now) or fewer tasks"
    ]


def _requests(names: list[str]) -> str:
    return f"{' and '.join(names)} {'asks' if len(names) == 1 else 'ask'} for"


def _askers(spec: JobSpec) -> dict[str, list[str]]:
    """Return the labels of a job, each with the task types (or the job) that name it."""
    found: dict[str, list[str]] = {}
    for name, label in (
        ("the job", spec.node_label),
        *((name, task.node_label) for name, task in spec.tasks.items()),
    ):
        if label:
            found.setdefault(label, []).append(name)
    return found


def _label(node: Mapping[str, Any]) -> str:
    labels = node.get("nodeLabels") or ""
    return str(labels if isinstance(labels, str) else labels[0])  # a list with one item may come as that item


def _total(node: Mapping[str, Any]) -> Allocation:
    if node.get("totalResource"):
        return Allocation.read(node["totalResource"])
    return Allocation(
        int(node.get("usedMemoryMB", 0)) + int(node.get("availMemoryMB", 0)),
        int(node.get("usedVirtualCores", 0)) + int(node.get("availableVirtualCores", 0)),
    )
