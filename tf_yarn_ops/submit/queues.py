"""The CapacityScheduler's queues, read from ``schedulerInfo``, and why a queue takes no applications."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import did_you_mean

#: The CapacityScheduler's placement rules, which YARN does not list, may move applications of this queue to another
#: one (CSMappingPlacementRule).
MAPPED = ("default", "root.default")


class Queue(NamedTuple):
    """One queue of the CapacityScheduler."""

    parent: bool  # it has queues below it
    state: str
    creates: bool  # YARN makes a queue below it when an application names one
    labels: tuple[str, ...] | None  # node labels that it may use, * for all; None if YARN does not show them
    default_label: str  # for applications that name no label
    most: float = 100.0  # per cent of the nodes without a label that it may use

    def may_use(self, label: str) -> bool:
        """Return whether its applications may run on nodes of a label."""
        return self.labels is None or "*" in self.labels or label in self.labels


def read_queues(scheduler: Mapping[str, Any]) -> dict[str, Queue]:
    """Return the CapacityScheduler's queues by their paths; empty for another scheduler, which lists none."""
    if scheduler.get("type") != "capacityScheduler":
        return {}
    found = dict(_walk(scheduler, "root"))
    if all(item.labels is None for item in found.values()):
        return found
    # One queue lists its labels, so queues without a list have none.
    return {path: item._replace(labels=item.labels or ()) for path, item in found.items()}


def find_queue(queue: str, found: Mapping[str, Queue]) -> Queue | None:
    """Return a queue by its name or path, preferably a leaf; None when there is none."""
    matching = [item for path, item in found.items() if queue in (path, path.rsplit(".", 1)[-1])]
    return next((item for item in matching if not item.parent), matching[0] if matching else None)


def leaves_of(found: Mapping[str, Queue]) -> dict[str, Queue]:
    """Return the queues that take applications, by their names."""
    return {path.rsplit(".", 1)[-1]: item for path, item in found.items() if not item.parent}


def fault_of(queue: str, found: Mapping[str, Queue]) -> str | None:
    """Return why a queue takes no applications: it is unknown, stopped, or not a leaf. Return None if it takes them."""
    leaves = leaves_of(found)
    has = f"the cluster has {', '.join(sorted(leaves))}"
    if (item := find_queue(queue, found)) is None:
        if _is_made(queue, found):
            return None
        return f"there is no queue {queue!r}{did_you_mean(queue, leaves)}; {has}"
    if item.parent:
        return f"queue {queue!r} has queues below it and takes no applications itself; {has}"
    if item.state not in ("", "RUNNING"):
        running = sorted(name for name, leaf in leaves.items() if leaf.state in ("", "RUNNING"))
        return f"queue {queue!r} is {item.state} and takes no applications; these do: {', '.join(running) or 'none'}"
    return None


def _is_made(queue: str, found: Mapping[str, Queue]) -> bool:
    """Return whether YARN may make a missing queue together with its missing parents."""
    above, item = queue, None
    while above and item is None:
        above = above.rpartition(".")[0]
        item = find_queue(above or "root", found)
    return item is not None and item.creates


def _walk(info: Mapping[str, Any], path: str) -> Iterable[tuple[str, Queue]]:
    children = (info.get("queues") or {}).get("queue") or []
    creates = bool(
        info.get("autoCreateChildQueueEnabled") or info.get("autoCreationEligibility", "off") in ("legacy", "flexible")
    )
    leaf = "leaf" in str(info.get("type", "")).lower() and not children
    labels = info.get("nodeLabels")
    yield (
        path,
        Queue(
            bool(children) or (creates and not leaf),
            str(info.get("state") or ""),
            creates,
            None if labels is None else tuple([labels] if isinstance(labels, str) else labels),
            str(info.get("defaultNodeLabelExpression") or ""),
            float(info.get("absoluteMaxCapacity") or 100.0),
        ),
    )
    for child in children:
        yield from _walk(child, str(child.get("queuePath") or f"{path}.{child['queueName']}"))
