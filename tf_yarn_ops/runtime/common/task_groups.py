"""Tasks as people read many of them: failed and troubled ones first, equal ones as one group, ``worker:0-37``."""

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

#: A job of so many tasks shows each of them; so many equal tasks are a group.
SMALL_JOB, SMALL_GROUP = 12, 3
#: The most runs of indices in the name of a group.
_RUNS = 4
#: States that come first; the others follow in the order of the request.
_RANK = {"failed": 0, "lost": 0, "killed": 2, "pending": 3, "registered": 4, "running": 5}
_LAST = 6


class AlikeTasks(NamedTuple):
    """Equal tasks, or a task alone.

    Attributes
    ----------
    name : str
        ``worker:3``, or ``worker:0-2,4-37`` for several.
    tasks : sequence of mapping
        Fields of `TaskReport`, in the order of the request; at least one.
    """

    name: str
    tasks: Sequence[Mapping[str, Any]]


def order_tasks(tasks: Iterable[Mapping[str, Any]], troubled: Iterable[str] = ()) -> List[Mapping[str, Any]]:
    """Return tasks with failed and lost ones first, then the troubled ones, then those that wait.

    Parameters
    ----------
    tasks : iterable of mapping
        Fields of `TaskReport`.
    troubled : iterable of str, optional
        Names of tasks that deserve a look.
    """
    named = set(troubled)
    return sorted(tasks, key=lambda task: min(_RANK.get(task["state"], _LAST), 1 if task["task"] in named else _LAST))


def group_tasks(tasks: Sequence[Mapping[str, Any]], troubled: Iterable[str] = ()) -> List[AlikeTasks]:
    """Return all tasks in groups, ordered as by `order_tasks`; arguments as there.

    Tasks are equal if their type, state, exit and number of starts are. A troubled task is never part of a group.
    """
    named = set(troubled)
    equal: Dict[Any, List[Mapping[str, Any]]] = {}
    for task in order_tasks(tasks, named):
        alone = len(tasks) <= SMALL_JOB or task["task"] in named
        key = (
            task["task"]
            if alone
            else (
                task["task"].partition(":")[0],
                *(task.get(name) for name in ("state", "exit_code", "signal", "starts")),
            )
        )
        equal.setdefault(key, []).append(task)
    groups = []
    for found in equal.values():
        if len(found) < SMALL_GROUP:
            groups += [AlikeTasks(task["task"], (task,)) for task in found]
        else:
            groups.append(AlikeTasks(_span([task["task"] for task in found]), found))
    return groups


def _span(names: Sequence[str]) -> str:
    """Return the common name of tasks of one type: the runs of their indices."""
    runs: List[List[int]] = []
    for index in sorted(int(name.rpartition(":")[2]) for name in names):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    shown = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs[:_RUNS])
    rest = sum(high - low + 1 for low, high in runs[_RUNS:])
    return f"{names[0].partition(':')[0]}:{shown}{f' and {rest} more' if rest else ''}"
