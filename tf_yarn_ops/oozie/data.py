"""The data sets of a coordinator: what a training waits for, and where its output goes. Pure.

Oozie fills ``${YEAR}``, ``${MONTH}``, ``${DAY}``, ``${HOUR}`` and ``${MINUTE}`` of a URI for each instance, in UTC.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import Fault, FaultCode
from .packed_job import COORDINATOR_NAMES, DATA_OUT, WORKFLOW_NAMES
from .schedule import Frequency, Schedule

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
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)
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


def read_data(
    path: str,
    texts: Iterable[str],
    default: str,
    schedule: Schedule | None,
    frequency: Frequency | None,
    done_flag: str,
    instances: str | None,
    properties: Iterable[str],
    faults: list[Fault],
) -> list[DataSet]:
    """Return the data sets of texts ``[NAME=]URI``.

    Parameters
    ----------
    path : str
        The option's name.
    texts : iterable of str
    default : str
        The name of a data set without a name, ``dataIn`` or ``dataOut``.
    schedule : Schedule or None
    frequency : Frequency or None
        None: by the finest variable of each URI.
    done_flag : str
    instances : str or None
        ``-6:0``. None: ``0``.
    properties : iterable of str
        The names of the request's own properties, which URIs may use too.
    faults : list of Fault
        Every fault is added to it.
    """
    found: list[DataSet] = []
    output = default == DATA_OUT
    allowed = (*_VARIABLES, "nameNode", *properties)
    for text in texts:
        match = _NAMED.match(text)
        name, uri = (match[1], match[2]) if match else (default, text)
        item = {"item": text}
        faults += [
            Fault(path, fault.code, {**fault.values, **item})
            for fault in name_faults(path, name, [one.name for one in found])
        ]
        uri = read_uri(path, uri, faults)
        used = _USE.findall(uri)
        faults += [
            Fault(path, DataSetFault.UNKNOWN_VARIABLE, {"given": one, "allowed": allowed, **item})
            for one in used
            if one not in allowed
        ]
        finest = next((one for one in reversed(_VARIABLES) if one in used), "DAY")
        every = frequency or _VARIABLES[finest] or (schedule.frequency if schedule else None)
        if every is None and schedule is not None:
            faults.append(Fault(path, DataSetFault.NO_FREQUENCY, {"other": "data_frequency", **item}))
        found.append(
            DataSet(
                name,
                uri,
                every or Frequency(1, "days"),
                done_flag,
                (0, 0) if output else _read_instances(instances, faults),
                output,
            )
        )
    return found


def read_uri(path: str, text: str, faults: list[Fault]) -> str:
    """Return a URL for an absolute path in the cluster's file system, or for a URI."""
    if not re.match(r"(/|[A-Za-z][A-Za-z0-9+.-]*:/|\$\{)", text) or re.search(r"\s", text):
        faults.append(Fault(path, DataSetFault.NOT_A_URI, {"given": text}))
    return f"${{nameNode}}{text}" if text.startswith("/") else text


def name_faults(path: str, name: str, others: Iterable[str]) -> list[Fault]:
    """Return the faults of the name of a value."""
    if not VALUE_NAME.match(name):
        return [Fault(path, DataSetFault.BAD_NAME, {"given": name})]
    if name in _TAKEN or name.startswith(("oozie", "YTF_", "DTF_", "SKEIN_")):
        return [Fault(path, DataSetFault.TAKEN, {"given": name})]
    return [Fault(path, DataSetFault.TWICE, {"given": name})] if name in others else []


def _read_instances(text: str | None, faults: list[Fault]) -> tuple[int, int]:
    match = _INSTANCES.match((text or "0").strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not first <= last <= 0:
        fault = Fault("data_instances", DataSetFault.NOT_INSTANCES, {"given": text})
        if fault not in faults:
            faults.append(fault)
        return 0, 0
    return first, last
