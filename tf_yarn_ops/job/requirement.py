"""Words of the command line to numbers: ``ps:2,worker:4``, ``worker[0]:4``, ``8 GiB``.

In come texts as people type them; out go plain mappings. Each parser appends
what is wrong to a list that the caller passes, so that one message can name
every fault of a request.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..validation import did_you_mean, parse_count

TASK_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
#: Other spellings of ``chief`` (Slider's seed and TensorFlow 1).
CHIEF_SPELLINGS = ("chiefworker", "master")

_OVERRIDE = re.compile(r"(?:(?P<type>[^:\[\]]*?)\s*(?:\[(?P<index>[^\]]*)\])?\s*:)?\s*(?P<value>[^:]*)\Z")


class Overrides(NamedTuple):
    """One kind of resource as the three forms of ``-c``, ``-m`` and ``--task_gpus`` give it.

    Attributes
    ----------
    general : int or None
        For every task, None when not given.
    by_type : mapping of str to int
        Per task type; wins over ``general``.
    by_index : mapping of (str, int) to int
        Per task; wins over both.
    """

    general: int | None
    by_type: Mapping[str, int]
    by_index: Mapping[tuple[str, int], int]


def canonical_type(name: str) -> str:
    """Give the task type's name in TensorFlow: ``chiefworker`` and ``master`` are ``chief``."""
    return "chief" if name in CHIEF_SPELLINGS else name


def parse_cluster_requirement(text: str, faults: list[str]) -> dict[str, int]:
    """Read ``ps:2,worker:4``.

    Parameters
    ----------
    text : str
        Comma-separated ``task_type:instances``; blanks around names and commas are allowed.
        A type is ``[A-Za-z][A-Za-z0-9_-]*``, instances a whole number of at least 1.
    faults : list of str
        Every fault is appended, with its position.

    Returns
    -------
    dict of str to int
        Instances per task type, in the order of the text.

    References
    ----------
    Seed 001 (YARN-DTF), ``-r, --cluster_requirement``.
    """
    requirement: dict[str, int] = {}
    for position, item in enumerate(text.split(","), start=1):
        where = f"cluster_requirement {text!r}, item {position} {item.strip()!r}"
        name, colon, count = (part.strip() for part in item.partition(":"))
        if not colon or not name or not count:
            faults.append(f"{where}: expected task_type:instances, for example ps:2,worker:4")
            continue
        if not TASK_TYPE.match(name):
            faults.append(f"{where}: {name!r} is not a task type; use letters, digits, '-' and '_', a letter first")
            continue
        name = canonical_type(name)
        if name in requirement:
            faults.append(f"{where}: task type {name!r} is named twice")
            continue
        try:
            requirement[name] = parse_count(count)
        except ValueError as error:
            faults.append(f"{where}: {error}")
            requirement[name] = 1
    return requirement


def parse_overrides(
    option: str,
    texts: Iterable[str],
    requirement: Mapping[str, int],
    parse_value: Callable[[str], int],
    faults: list[str],
) -> Overrides:
    """Read the forms ``4``, ``worker:4`` and ``worker[0]:4``, repeated or comma-separated.

    Parameters
    ----------
    option : str
        The option's name, for messages.
    texts : iterable of str
        One text per use of the option.
    requirement : mapping of str to int
        Instances per task type; what may be overridden.
    parse_value : callable
        Reads one value and raises ValueError with what is allowed.
    faults : list of str
        Every fault is appended.

    Returns
    -------
    Overrides
        Task-level wins over type-level wins over general.

    References
    ----------
    Seed 001, ``-c`` and ``-m``; its authors had not implemented the second and third form.
    """
    general: int | None = None
    by_type: dict[str, int] = {}
    by_index: dict[tuple[str, int], int] = {}
    for item in (item.strip() for text in texts for item in text.split(",")):
        where = f"{option} {item!r}"
        match = _OVERRIDE.match(item)
        if not match or not match["value"]:
            faults.append(f"{where}: expected a value, task_type:value or task_type[index]:value")
            continue
        try:
            value = parse_value(match["value"])
        except ValueError as error:
            faults.append(f"{where}: {error}")
            continue
        if match["type"] is None:
            if general is not None:
                faults.append(f"{where}: the general value was given before ({general})")
            general = value
            continue
        name = canonical_type(match["type"].strip())
        if name not in requirement:
            known = ", ".join(requirement) or "none"
            faults.append(f"{where}: no task type {name!r} in the request, which has {known}"
                          f"{did_you_mean(name, requirement)}")
        elif match["index"] is None:
            if name in by_type:
                faults.append(f"{where}: {name!r} was given before ({by_type[name]})")
            by_type[name] = value
        else:
            index = match["index"].strip()
            if not index.isdecimal() or int(index) >= requirement[name]:
                faults.append(f"{where}: index {index!r} is out of range; {name} has 0 to {requirement[name] - 1}")
                continue
            if (name, int(index)) in by_index:
                faults.append(f"{where}: {name}[{index}] was given before ({by_index[name, int(index)]})")
            by_index[name, int(index)] = value
    return Overrides(general, by_type, by_index)
