"""`compare`: several ended jobs side by side, what differs first; pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..runtime.common.report import COSTS, flatten, run_seconds
from .record_summary import last_metrics

RESULT, METRICS, OPTIONS, ENVIRONMENT = "result", "metrics", "options", "environment"
#: Keys of the record that count as its result.
_RESULT = ("reason", "message", "first_failure", "queue", "user", "output_path", *COSTS)
#: The most metrics of one job.
_METRICS = 100


class ComparedRow(NamedTuple):
    """One value of every job.

    Attributes
    ----------
    section : str
        `RESULT`, `METRICS`, `OPTIONS` or `ENVIRONMENT`.
    name : str
        Such as ``loss``, or ``tasks.worker.instances``.
    values : tuple
        One per job; None where it has none.
    differs : bool
        Whether the values are not all equal.
    """

    section: str
    name: str
    values: tuple[Any, ...]
    differs: bool


def compare(records: Sequence[Mapping[str, Any]]) -> list[ComparedRow]:
    """Return the values of jobs side by side: first those that differ, by section.

    Parameters
    ----------
    records : sequence of mapping
        At least one.
    """
    sides = [dict(_values(record)) for record in records]
    names = dict.fromkeys(name for side in sides for name in side)
    rows = [_row(section, name, tuple(side.get((section, name)) for side in sides)) for section, name in names]
    order = (RESULT, METRICS, OPTIONS, ENVIRONMENT)
    return sorted(rows, key=lambda row: (not row.differs, order.index(row.section)))


def _row(section: str, name: str, values: tuple[Any, ...]) -> ComparedRow:
    return ComparedRow(section, name, values, any(value != values[0] for value in values))


def _values(record: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    for name in _RESULT:
        yield (RESULT, name), record.get(name)
    seconds = run_seconds(record)
    if seconds is not None:
        yield (RESULT, "seconds"), round(seconds, 1)
    yield (RESULT, "queue_seconds"), record.get("queue_seconds")
    yield (RESULT, "tasks"), len(record.get("tasks") or ())
    yield (RESULT, "rounds"), len(record.get("rounds") or ())
    peaks = [task.get("peak_memory_mib") or 0.0 for task in record.get("tasks") or ()]
    yield (RESULT, "peak_memory_mib"), round(max(peaks, default=0.0), 1) or None
    for name, value in last_metrics(record, _METRICS).items():
        yield (METRICS, name), value
    options = dict(record.get("options") or {})
    yield (ENVIRONMENT, "environment"), options.pop("environment", None)
    for name, value in flatten(options):
        yield (OPTIONS, name), tuple(value) if isinstance(value, list) else value
    for name, value in (record.get("versions") or {}).items():
        yield (ENVIRONMENT, str(name)), value
