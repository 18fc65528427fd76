"""The trainings of an application: one job, or a list of jobs with ``needs``, and how their actions nest. Pure.

The list is a YAML file::

    name: nightly                               # optional
    jobs:
    - {name: features, job: features.yaml}      # the name of the action; default: that of the file
    - {name: wide, job: wide.yaml, needs: features}
    - {name: deep, job: deep.yaml, needs: features}
    - {name: pick, job: pick.yaml, needs: [wide, deep]}
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Fault, FaultCode, GeneralFault
from ..validation import noting, read_texts
from .packed_job import ACTION_NAME

#: The keys of a list, and of a job in it.
_LIST, _JOB = ("name", "jobs"), ("name", "job", "needs")
#: Oozie's rule for names of nodes (``ParamChecker.validateActionName``), and the names of the other nodes.
_NODE, _OTHERS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,119}\Z"), re.compile(r"end|failed|((fork|join)-.*)\Z")


class TrainingFault(FaultCode):
    """Fault codes for a list of jobs."""

    NOT_A_LIST = "{given!r} is not a list of jobs; write each as a mapping with {allowed}"
    NO_JOB = "missing; give the path of the job's YAML"
    NOT_A_NODE = "{given!r} is not the name of an action; use a letter or _, then letters, digits, _ and -, at most 120"
    NODE_TAKEN = "{given!r} is the name of another node of the workflow; choose another one"
    TWO_JOBS = "two jobs have the name {given!r}"
    NO_SUCH_JOB = "there is no job {given!r}{hint}; jobs: {allowed}"
    CYCLE = "{given}: each of these jobs waits for the next one"


@dataclass(frozen=True)
class TrainingAction:
    """One action that trains.

    Attributes
    ----------
    name : str
        The name of the action.
    job : str
        The path of the job's YAML on this machine.
    needs : tuple of str
        The names of trainings that have to succeed first.
    suffix : str
        Between name and extension of its files in the application; empty for a job that is not in a list.
    document : mapping
        The job as the action reads it: its local sources are paths below ``files/``.
    sources : mapping of str to Path
        The local file or folder of each path below ``files/``.
    queue : str
        The queue of the job; empty for YARN's default.
    """

    name: str
    job: str
    needs: tuple[str, ...] = ()
    suffix: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Path] = field(default_factory=dict)
    queue: str = ""

    @property
    def document_file(self) -> str:
        """The name of the document in the application."""
        return f"job{self.suffix}.yaml"

    @property
    def archive_file(self) -> str:
        """The name of the archive of its sources in the application."""
        return f"files{self.suffix}.tar.gz"


class Fork(NamedTuple):
    """Trainings side by side.

    Attributes
    ----------
    number : int
        From 1.
    branches : list of list of str or Fork
        Each a sequence.
    """

    number: int
    branches: "list[list[str | Fork]]"


def read_trainings(path: str, document: Mapping[str, Any], faults: list[Fault]) -> list[TrainingAction]:
    """Return the trainings of a job's document, or of a list of jobs, without their own documents.

    Parameters
    ----------
    path : str
        The path of the document.
    document : mapping
    faults : list of Fault
        Every fault is added to it.
    """
    if "jobs" not in document:
        return [TrainingAction(ACTION_NAME, path)]
    faults += _key_faults("", document, _LIST)
    listed = document["jobs"]
    if not isinstance(listed, list) or not listed or not all(isinstance(one, Mapping) for one in listed):
        faults.append(Fault("jobs", TrainingFault.NOT_A_LIST, {"given": listed, "allowed": _JOB}))
        return []
    trainings = []
    for position, one in enumerate(listed, 1):
        where = str(one.get("name") or f"jobs.{position}")
        faults += _key_faults(f"{where}.", one, _JOB)
        if not isinstance(one.get("job"), str):
            faults.append(Fault(f"{where}.job", TrainingFault.NO_JOB))
            continue
        job = os.path.join(os.path.dirname(path), one["job"])
        name = str(one.get("name") or Path(job).stem)
        needs: tuple[str, ...] = ()
        with noting(faults, f"{where}.needs"):
            needs = read_texts(one.get("needs") or ())
        trainings.append(TrainingAction(name, job, needs, suffix=f"-{name}"))
    names = [one.name for one in trainings]
    for name in dict.fromkeys(names):
        if not _NODE.match(name):
            faults.append(Fault("name", TrainingFault.NOT_A_NODE, {"given": name}))
        elif _OTHERS.match(name):
            faults.append(Fault("name", TrainingFault.NODE_TAKEN, {"given": name}))
        elif names.count(name) > 1:
            faults.append(Fault("name", TrainingFault.TWO_JOBS, {"given": name}))
    faults += [
        Fault(f"{one.name}.needs", TrainingFault.NO_SUCH_JOB, {"given": need, "allowed": tuple(names)})
        for one in trainings
        for need in one.needs
        if need not in names
    ]
    faults += _cycle_faults({one.name: set(one.needs) for one in trainings})
    return trainings


def nest(needs: Mapping[str, Collection[str]]) -> list[str | Fork]:
    """Return a sequence of actions and forks in which each action comes after those that it needs.

    Oozie's forks and joins nest. A job of a graph that does not nest so waits for more than it needs.

    Parameters
    ----------
    needs : mapping of str to collection of str
        Without cycles.
    """
    before: dict[str, set[str]] = {}
    for name in TopologicalSorter(needs).static_order():
        before[name] = {*needs[name]}.union(*(before[need] for need in needs[name]))
    return _sequence([*needs], before, count(1))


def _sequence(names: list[str], before: Mapping[str, set[str]], numbers: Iterator[int]) -> list[str | Fork]:
    inner = {name: before[name] & {*names} for name in names}
    branches: list[list[str]] = []
    for name in names:
        apart = [one for one in branches if not any(name in inner[other] or other in inner[name] for other in one)]
        linked = {name}.union(*(one for one in branches if one not in apart))
        branches = sorted([*apart, sorted(linked, key=names.index)], key=lambda one: names.index(one[0]))
    if len(branches) > 1:
        return [Fork(next(numbers), [_sequence(branch, before, numbers) for branch in branches])]
    if len(names) == 1:
        return [*names]
    # All of a first part may come before the rest if each of the rest needs it; otherwise go on by levels.
    order = sorted(names, key=lambda name: len(inner[name]))
    cuts = ({*order[:at]} for at in range(1, len(order)) if all({*order[:at]} <= inner[name] for name in order[at:]))
    first = next(cuts, {name for name in names if not inner[name]})
    return [
        *_sequence([name for name in names if name in first], before, numbers),
        *_sequence([name for name in names if name not in first], before, numbers),
    ]


def _cycle_faults(needs: Mapping[str, set[str]]) -> Iterator[Fault]:
    while True:
        try:
            TopologicalSorter(needs).prepare()
            return
        except CycleError as error:
            cycle = error.args[1]  # each is needed by the next one
            yield Fault("needs", TrainingFault.CYCLE, {"given": " -> ".join(reversed(cycle))})
            needs[cycle[1]].discard(cycle[0])


def _key_faults(parent: str, given: Mapping[Any, Any], allowed: tuple[str, ...]) -> Iterator[Fault]:
    for key in given:
        if key not in allowed:
            yield Fault(f"{parent}{key}", GeneralFault.UNKNOWN_KEY, {"given": str(key), "allowed": allowed})
