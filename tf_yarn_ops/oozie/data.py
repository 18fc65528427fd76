"""The data sets of a coordinator: what a training waits for, and where its output goes. Pure.

Oozie fills ``${YEAR}``, ``${MONTH}``, ``${DAY}``, ``${HOUR}`` and ``${MINUTE}`` of a URI for each instance, in UTC.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Fault, FaultCode
from ..validation import invalid, noting, read_text
from .packed_job import COORDINATOR_NAMES, WORKFLOW_NAMES
from .schedule import Frequency, Schedule, moving_day_faults

#: Instances of all data sets are counted from here; Oozie knows none before it.
FIRST_INSTANCE = "2000-01-01T00:00Z"
#: The variables of a URI, the finest last, with the frequency of a data set that uses it as its finest.
_VARIABLES = {
    "YEAR": Frequency(12, "months"),
    "MONTH": Frequency(1, "months"),
    "DAY": Frequency(1, "days"),
    "HOUR": Frequency(1, "hours"),
    "MINUTE": None,
}
#: The names that job.properties gives a value.
FIXED = ("nameNode", "resourceManager", "appPath", "start", "end")
#: A name of a value, which is also a variable of the tasks and an identifier of Oozie.
VALUE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,38}\Z")
_TAKEN = (*FIXED, *(name.name for name in (*WORKFLOW_NAMES, *COORDINATOR_NAMES)), *_VARIABLES)
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_USE = re.compile(r"\$\{([^{}]*)\}")
_INSTANCES = re.compile(r"(-?\d{1,5})(?::(-?\d{1,5}))?\Z")


class DataSetFault(FaultCode):
    """Fault codes for a data set, or with the name of a value."""

    BAD_NAME = "{given!r} is not a name; use a letter, then letters, digits and _, at most 39"
    TAKEN = "{given!r} is a name of Oozie's or ours; choose another one"
    TWICE = "{given!r} is given twice; name each with NAME=PATH"
    NOT_A_URI = "{given!r} is not an absolute path or a URI such as hdfs:///clicks/${{YEAR}}-${{MONTH}}-${{DAY}}"
    UNKNOWN_VARIABLE = "unknown variable ${{{given}}}{hint}; a URI may use {allowed}"
    NO_FREQUENCY = "the URI has ${{MINUTE}} and the schedule is cron; say with {other} how often the data comes"
    NOT_A_FILE = "{given!r} is not the name of a file; give one such as _SUCCESS, or '' for the folder itself"
    NOT_INSTANCES = "{given!r} is not a range of instances; give 0 for the newest, -1 for the one before, or -6:0"


@dataclass(frozen=True)
class DataSet:
    """A data set.

    Attributes
    ----------
    name : str
        The job's fields use its URIs as ``${name}``; several ones are separated by commas.
    uri : str
        With Oozie's variables.
    frequency : Frequency
    done_flag : str
        The file that says that an instance is complete; empty for the folder itself.
    instances : tuple of int
        The first and the last instance, relative to the nominal time: 0 is the newest.
    output : bool
        Whether the training writes it. Oozie does not wait for an output.
    """

    name: str
    uri: str
    frequency: Frequency
    done_flag: str
    instances: tuple[int, int]
    output: bool


def read_named_uri(default: str, value: object) -> tuple[str, str]:
    """Return the name and the URI of a text ``[NAME=]URI``; ``default`` is the name of a text without one."""
    text = read_text(value)
    name, uri = text.split("=", 1) if _NAMED.match(text) else (default, text)
    return read_name(name), uri


def read_uri(text: str) -> str:
    """Return a URL for an absolute path in the cluster's file system, or for a URI."""
    if not re.match(r"(/|[A-Za-z][A-Za-z0-9+.-]*:/|\$\{)", text) or re.search(r"\s", text):
        raise invalid(DataSetFault.NOT_A_URI, given=text)
    return f"${{nameNode}}{text}" if text.startswith("/") else text


def read_name(name: str) -> str:
    """Return the name of a value; refuse one that Oozie or we use."""
    if not VALUE_NAME.match(name):
        raise invalid(DataSetFault.BAD_NAME, given=name)
    if name in _TAKEN or name.startswith(("oozie", "YTF_", "DTF_", "SKEIN_")):
        raise invalid(DataSetFault.TAKEN, given=name)
    return name


def read_instances(value: object) -> tuple[int, int]:
    """Return the first and the last instance of a text such as ``-6:0``."""
    match = _INSTANCES.match(read_text(value).strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not first <= last <= 0:
        raise invalid(DataSetFault.NOT_INSTANCES, given=value)
    return first, last


def read_done_flag(value: object) -> str:
    """Return the name of a file, or an empty text for the folder itself."""
    if re.search(r"[\s/$]", read_text(value)):
        raise invalid(DataSetFault.NOT_A_FILE, given=value)
    return str(value)


def read_data(options: Mapping[str, Any], schedule: Schedule | None, faults: list[Fault]) -> list[DataSet]:
    """Return the data sets of the options.

    Parameters
    ----------
    options : mapping of str to value
        Those of ``ytf oozie package``, as their readers return them.
    schedule : Schedule or None
    faults : list of Fault
        Faults of several options together are added to it.
    """
    found: list[DataSet] = []
    named = [(path, name) for path in ("property", "data", "output_data") for name, _ in options[path]]
    names = [name for _, name in named]
    faults += [
        Fault(path, DataSetFault.TWICE, {"given": name}) for at, (path, name) in enumerate(named) if name in names[:at]
    ]
    allowed = (*_VARIABLES, "nameNode", *dict(options["property"]))
    for path in ("data", "output_data"):
        for name, uri in options[path]:
            with noting(faults, path):
                uri = read_uri(uri)
            used = _USE.findall(uri)
            faults += [
                Fault(path, DataSetFault.UNKNOWN_VARIABLE, {"given": one, "allowed": allowed, "item": uri})
                for one in used
                if one not in allowed
            ]
            finest = next((one for one in reversed(_VARIABLES) if one in used), "DAY")
            every = options["data_frequency"] or _VARIABLES[finest] or (schedule and schedule.frequency)
            if schedule and not every:
                faults.append(Fault(path, DataSetFault.NO_FREQUENCY, {"other": "data_frequency", "item": uri}))
            output = path == "output_data"
            instances = (0, 0) if output else options["data_instances"]
            found.append(DataSet(name, uri, every or Frequency(1, "days"), options["done_flag"], instances, output))
            if schedule and found[-1].frequency.unit in ("days", "months"):
                faults += moving_day_faults(schedule, path)
    return found
