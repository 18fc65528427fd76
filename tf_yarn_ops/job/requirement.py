"""The notations of the command line: ``ps:2,worker:4`` and ``worker[0]:4`` to numbers.

Input: texts as people type them. Output: plain mappings. Each parser appends its faults to a list that the caller
passes, so that one message can name every fault of a request.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

from ..errors import Fault, FaultCode
from ..runtime.common.roles import ROLES
from ..validation import invalid, noting, parse_count

TASK_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
#: Other names of ``chief``, from the YARN-DTF design and from TensorFlow 1.
OTHER_CHIEFS = ("chiefworker", "master")
#: The names that a job usually has.
_USUAL = (*OTHER_CHIEFS, *ROLES)
_INTENDED = re.compile(f"(?:{'|'.join(_USUAL)})[-_0-9]")

#: What stands between two types in place of a comma.
_SEPARATOR = re.compile(r"\s*;\s*|(?<![,\s])\s+(?=[A-Za-z][\w-]*\s*:)")
_OVERRIDE = re.compile(r"(?:(?P<type>[^:\[\]]*?)\s*(?:\[(?P<index>[^\]]*)\])?\s*:)?\s*(?P<value>[^:]*)\Z")


class NotationFault(FaultCode):
    """Fault codes for a notation."""

    NOT_A_TYPE = "{given!r} is not a task type; use letters, digits, '-' and '_', a letter first"
    EXPECTED_INSTANCES = "expected task_type:instances, for example ps:2,worker:4"
    TYPE_TWICE = "task type {given!r} is given twice"
    NOT_COMMAS = "separate the task types by commas: {meant}"
    EXPECTED_VALUE = "expected a value, task_type:value or task_type[index]:value"
    VALUE_TWICE = "{what} already has the value {before}; give it once"
    NO_SUCH_TYPE = "there is no task type {given!r} in the request, which has {allowed}{hint}"
    INDEX_OUT_OF_RANGE = "index {index!r} is out of range; {type} has 0 to {last}"


def canonical_type(name: str) -> str:
    """Return the name of a task type in TensorFlow: ``chief`` for ``chiefworker`` and ``master``."""
    return "chief" if name in OTHER_CHIEFS else name


def misspelt_type(name: str) -> str | None:
    """Return the usual task type that ``name`` probably means; None if ``name`` is usual or looks intended.

    A name looks misspelt if it is a usual one in other letters' case, or at least four fifths similar to it. A usual
    name with a number or with a word behind ``-`` or ``_`` looks intended: ``worker2``, ``worker_gpu``.
    """
    if name in _USUAL or _INTENDED.match(name):
        return None
    near = difflib.get_close_matches(name.casefold(), _USUAL, n=1, cutoff=0.8)
    return near[0] if near else None


def parse_cluster_requirement(text: str, faults: list[Fault]) -> dict[str, int]:
    """Parse ``ps:2,worker:4``.

    Parameters
    ----------
    text : str
        Comma-separated ``task_type:instances``; blanks around names and commas are allowed.
        A type is ``[A-Za-z][A-Za-z0-9_-]*``, instances a whole number of at least 1.
    faults : list of Fault
        Every fault is appended, with the item and its position.

    Returns
    -------
    dict of str to int
        Instances per task type, in the order of the text.

    References
    ----------
    The YARN-DTF design, ``-r, --cluster_requirement``.
    """
    requirement: dict[str, int] = {}
    several = _SEPARATOR.split(text.strip())
    if len(several) > 1 and all(part.count(":") == 1 for one in several for part in one.split(",") if part.strip()):
        text = ",".join(several)  # the types are known, so that nothing else is missed
        faults.append(Fault("cluster_requirement", NotationFault.NOT_COMMAS, {"meant": text}))
    for position, item in enumerate(text.split(","), start=1):
        with noting(faults, "cluster_requirement", position=position, item=item.strip()):
            given, colon, count = (part.strip() for part in item.partition(":"))
            if not colon or not given or not count:
                raise invalid(NotationFault.EXPECTED_INSTANCES)
            if not TASK_TYPE.match(given):
                raise invalid(NotationFault.NOT_A_TYPE, given=given)
            if (name := canonical_type(given)) in requirement:
                raise invalid(NotationFault.TYPE_TWICE, given=name)
            requirement[name] = 1
            requirement[name] = parse_count(count)
    return requirement


def parse_overrides(
    option: str,
    texts: Iterable[str],
    requirement: Mapping[str, int],
    parse_value: Callable[[str], int],
    faults: list[Fault],
) -> dict[tuple[str, int | None], int]:
    """Parse the forms ``4``, ``worker:4`` and ``worker[0]:4``, repeated or comma-separated.

    Parameters
    ----------
    option : str
        The name of the option, for faults.
    texts : iterable of str
        One text per use of the option.
    requirement : mapping of str to int
        Instances per task type. A type or an index outside it is a fault.
    parse_value : callable
        Parses one value; raises SpecInvalid for an invalid one.
    faults : list of Fault
        Every fault is appended, with its item.

    Returns
    -------
    dict of (str, int or None) to int
        By task type and task index: None for all tasks of a type, with an empty type for every task. A value for one
        task wins over a value for its type, which wins over the value for all.

    References
    ----------
    The YARN-DTF design, ``-c`` and ``-m``; its authors had not implemented the second and third form.
    """
    overrides: dict[tuple[str, int | None], int] = {}
    for item in (item.strip() for text in texts for item in text.split(",")):
        with noting(faults, option, item=item):
            match = _OVERRIDE.match(item)
            if not match or not match["value"]:
                raise invalid(NotationFault.EXPECTED_VALUE)
            value = parse_value(match["value"])
            name, index, what = "", None, "every task"
            if match["type"] is not None:
                name = what = canonical_type(match["type"].strip())
                if name not in requirement:
                    raise invalid(NotationFault.NO_SUCH_TYPE, given=name, allowed=tuple(requirement))
                if match["index"] is not None:
                    given, last = match["index"].strip(), requirement[name] - 1
                    if not given.isdecimal() or len(given) > 9 or int(given) > last:
                        raise invalid(NotationFault.INDEX_OUT_OF_RANGE, index=given, type=name, last=last)
                    index, what = int(given), f"{name}[{given}]"
            before = overrides.get((name, index))
            overrides[name, index] = value
            if before is not None:
                raise invalid(NotationFault.VALUE_TWICE, what=what, before=before)
    return overrides
