"""`compare`: several ended jobs side by side, what differs first; pure."""

import itertools
from collections.abc import Mapping, Sequence
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
    sides = [_values(record) for record in records]
    found = {key: tuple(side.get(key) for side in sides) for key in itertools.chain(*sides)}
    rows = [ComparedRow(*key, values, any(value != values[0] for value in values)) for key, values in found.items()]
    order = (RESULT, METRICS, OPTIONS, ENVIRONMENT)
    return sorted(rows, key=lambda row: (not row.differs, order.index(row.section)))


def _values(record: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the values of a job by section and name."""
    tasks, seconds = record.get("tasks") or (), run_seconds(record)
    peak = max((task.get("peak_memory_mib") or 0.0 for task in tasks), default=0.0)
    options = dict(record.get("options") or {})
    sections: dict[str, Mapping[str, Any]] = {
        RESULT: {
            **{name: record.get(name) for name in _RESULT},
            **({} if seconds is None else {"seconds": round(seconds, 1)}),
            "queue_seconds": record.get("queue_seconds"),
            "tasks": len(tasks),
            "rounds": len(record.get("rounds") or ()),
            "peak_memory_mib": round(peak, 1) or None,
        },
        METRICS: last_metrics(record, _METRICS),
        ENVIRONMENT: {"environment": options.pop("environment", None), **(record.get("versions") or {})},
        OPTIONS: {name: tuple(value) if isinstance(value, list) else value for name, value in flatten(options)},
    }
    return {(section, name): value for section, values in sections.items() for name, value in values.items()}
