"""Where containers could run: queues, node labels and the sizes of nodes, from what the ResourceManager lists.

A queue or a node label that is not there, or a label that the queue may not use: errors, because YARN
refuses them for ever; the label of a task type only when the application master asks, and ends by it.
No node that could hold a container now: a warning, because clusters grow.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any, NamedTuple

from .errors import ResourcesImpossible, SubmissionRejected
from .preflight import check_maximum, containers, maximum_of
from .requirement import did_you_mean
from .resourcemanager import Allocation, ResourceManager
from .spec import JobSpec

logger = logging.getLogger(__name__)

#: What a queue that may use every node label has in its list.
_EVERY = "*"


class Surroundings(NamedTuple):
    """What the ResourceManager lists: ``schedulerInfo``, running nodes, and node labels with whether each is exclusive.

    ``labels`` is None where they are unknown, and where nobody needs them.
    """

    scheduler: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, bool] | None = None


class _Queue(NamedTuple):
    """One queue: whether it has queues below it, its state, whether it makes queues, and its labels, None unknown."""

    parent: bool
    state: str
    creates: bool
    labels: tuple[str, ...] | None
    default_label: str


def read_surroundings(spec: JobSpec, resourcemanager: ResourceManager) -> Surroundings:
    """Ask for all that `check_placement` looks at; for labels only where the job names one or a node has one."""
    with ThreadPoolExecutor(2) as pool:
        scheduler_answer, nodes_answer = pool.submit(resourcemanager.scheduler), pool.submit(resourcemanager.nodes)
        scheduler, nodes = scheduler_answer.result(), nodes_answer.result()
    named = spec.node_label or any(task.node_label for task in spec.tasks.values())
    labels = resourcemanager.labels() if named or any(map(_label, nodes)) else None
    return Surroundings(scheduler, nodes, labels)


def check_placement(spec: JobSpec, around: Surroundings, strict: bool) -> None:
    """See whether YARN could run the job.

    Parameters
    ----------
    spec : JobSpec
    around : Surroundings
    strict : bool
        Refuse what no running node could hold, instead of warning.

    Raises
    ------
    SubmissionRejected, ResourcesImpossible
        It could not, with all that is in the way.
    """
    looks: list[Callable[[], None]] = [
        lambda: check_queue(spec.queue, around.scheduler), lambda: check_labels(spec, around)]
    maximum = maximum_of(around.scheduler)
    if maximum is not None:
        looks.append(lambda: check_maximum(spec, maximum))
    refused: list[SubmissionRejected | ResourcesImpossible] = []
    for look in looks:
        try:
            look()
        except (SubmissionRejected, ResourcesImpossible) as error:
            refused.append(error)
    if refused:
        raise type(refused[0])("; ".join(map(str, refused)))
    check_nodes(spec, around, strict)


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
    found = _queues_of(scheduler)
    if not found:
        return
    leaves = {path.rsplit(".", 1)[-1]: item for path, item in found.items() if not item.parent}
    has = f"the cluster has {', '.join(sorted(leaves))}"
    item = _find(queue, found)
    if item is None:
        above = found.get(queue.rpartition(".")[0] or "root")
        if above and above.creates:
            return
        raise SubmissionRejected(f"there is no queue {queue!r}{did_you_mean(queue, leaves)}; {has}")
    if item.parent:
        raise SubmissionRejected(f"queue {queue!r} has queues below it and takes no applications itself; {has}")
    if item.state not in ("", "RUNNING"):
        running = sorted(name for name, leaf in leaves.items() if leaf.state in ("", "RUNNING"))
        raise SubmissionRejected(f"queue {queue!r} is {item.state} and takes no applications; "
                                 f"these do: {', '.join(running) or 'none'}")


def check_labels(spec: JobSpec, around: Surroundings) -> None:
    """See whether the cluster has the job's node labels, and its queue may use them.

    Raises
    ------
    SubmissionRejected
        With every label that can't be had.
    """
    labels = around.labels
    if labels is None:
        return
    found = _queues_of(around.scheduler)
    queue = _find(spec.queue, found)
    faults = []
    for label, askers in _askers(spec).items():
        ask = f"{' and '.join(askers)} {'asks' if len(askers) == 1 else 'ask'} for"
        if not labels:
            faults.append(f"the cluster has no node labels, and {ask} {label!r}")
        elif label not in labels:
            faults.append(f"there is no node label {label!r}{did_you_mean(label, labels)}, which {ask}; "
                          f"the cluster has {', '.join(sorted(labels))}")
        elif queue and not _may_use(queue, label):
            may = sorted(path.rsplit(".", 1)[-1] for path, item in found.items()
                         if not item.parent and _may_use(item, label))
            faults.append(f"queue {spec.queue!r} may not use node label {label!r}, which {ask}; "
                          f"these may: {', '.join(may) or 'none'}")
    if faults:
        raise SubmissionRejected("; ".join(faults))


def check_nodes(spec: JobSpec, around: Surroundings, strict: bool) -> None:
    """See whether some node could hold each container if it were empty; a warning where none could.

    Raises
    ------
    ResourcesImpossible
        Only when ``strict``.
    """
    totals = [(_total(node), _label(node)) for node in around.nodes]
    queue = _find(spec.queue, _queues_of(around.scheduler))
    default, exclusive = queue.default_label if queue else "", around.labels or {}
    problems = []
    if not totals:
        problems.append("the cluster has no running node now")
    wanted = [(_label_of(spec, name) or default, name, size) for name, size in containers(spec).items()]
    for label, group in groupby(sorted(wanted, key=lambda item: item[0]), key=lambda item: item[0]) if totals else ():
        fitting = [total for total, own in totals if own == label or not (label or exclusive.get(own, True))]
        problems += _too_large([(name, size) for _, name, size in group], fitting, label)
    if not problems:
        return
    text = "; ".join(problems)
    if strict:
        raise ResourcesImpossible(text)
    logger.warning("%s; the job waits for such a node", text)


def _too_large(wanted: list[tuple[str, Allocation]], totals: list[Allocation], label: str) -> list[str]:
    """Give what no node of a label could hold, in one sentence; none when all is well."""
    above = [(name, size) for name, size in wanted if not any(total.holds(size) for total in totals)]
    if not above:
        return []
    labelled = f" with label {label!r}" if label else ""
    if not totals:
        names = ", ".join(name for name, _ in above)
        return [f"the cluster has no running node{labelled or ' without a label'} now, for {names}"]
    largest = Allocation(*(max(getattr(total, field) for total in totals) for field in ("memory", "vcores", "gpus")))
    texts = (f"no node{labelled} could hold {name}, which asks for {size}" for name, size in above)
    return [f"{'; '.join(texts)}; the largest of {len(totals)} nodes{labelled}: {largest}"]


def _askers(spec: JobSpec) -> dict[str, list[str]]:
    """Give the labels of a job with who names them."""
    named = [("the job", spec.node_label), *((name, task.node_label) for name, task in spec.tasks.items())]
    found: dict[str, list[str]] = {}
    for name, label in named:
        if label:
            found.setdefault(label, []).append(name)
    return found


def _label_of(spec: JobSpec, container: str) -> str:
    """Give the label under which YARN places a container of `containers`: its type's, else the job's."""
    task = spec.tasks.get(container.partition(":")[0])
    return (task.node_label if task else None) or spec.node_label or ""


def _label(node: Mapping[str, Any]) -> str:
    labels = node.get("nodeLabels") or ""
    return str(labels if isinstance(labels, str) else labels[0])  # some YARNs write a list of one as its item


def _total(node: Mapping[str, Any]) -> Allocation:
    if node.get("totalResource"):
        return Allocation.read(node["totalResource"])
    return Allocation(int(node.get("usedMemoryMB", 0)) + int(node.get("availMemoryMB", 0)),
                      int(node.get("usedVirtualCores", 0)) + int(node.get("availableVirtualCores", 0)))


def _may_use(queue: _Queue, label: str) -> bool:
    return queue.labels is None or _EVERY in queue.labels or label in queue.labels


def _find(queue: str, found: Mapping[str, _Queue]) -> _Queue | None:
    """Give a queue by its name or path; a leaf rather than a parent."""
    matching = [item for path, item in found.items() if queue in (path, path.rsplit(".", 1)[-1])]
    return next((item for item in matching if not item.parent), matching[0] if matching else None)


def _queues_of(scheduler: Mapping[str, Any]) -> dict[str, _Queue]:
    """Give the CapacityScheduler's queues by their paths; none of another scheduler, which does not tell."""
    if scheduler.get("type") != "capacityScheduler":
        return {}
    found = dict(_queues(scheduler, "root"))
    if all(item.labels is None for item in found.values()):
        return found
    # One queue tells its labels, so those that tell none have none.
    return {path: item._replace(labels=item.labels or ()) for path, item in found.items()}


def _queues(info: Mapping[str, Any], path: str) -> Iterable[tuple[str, _Queue]]:
    children = (info.get("queues") or {}).get("queue") or []
    creates = bool(info.get("autoCreateChildQueueEnabled") or
                   info.get("autoCreationEligibility", "off") in ("legacy", "flexible"))
    leaf = "leaf" in str(info.get("type", "")).lower() and not children
    labels = info.get("nodeLabels")
    yield path, _Queue(bool(children) or (creates and not leaf), str(info.get("state") or ""), creates,
                       None if labels is None else tuple([labels] if isinstance(labels, str) else labels),
                       str(info.get("defaultNodeLabelExpression") or ""))
    for child in children:
        yield from _queues(child, str(child.get("queuePath") or f"{path}.{child['queueName']}"))
