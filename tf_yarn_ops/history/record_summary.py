"""`summarise`: what tables show of a record; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..runtime.common.report import COSTS, run_seconds
from ..runtime.common.status import read_status
from ..runtime.common.values import Count, fit_document, read_value

#: The most metrics in the summary of a record, the points of its curve, and the characters of its message.
_METRICS, _POINTS, _MESSAGE = 8, 24, 300
#: The keys of a record that its summary repeats.
_REPEATED = (
    "application_id",
    "name",
    "queue",
    "user",
    "state",
    "final_status",
    "reason",
    "submitted_at",
    "started_at",
    "finished_at",
    "queue_seconds",
    *COSTS,
    "output_path",
    "first_failure",
    "written_by",
)


_Acls = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class _Derived:
    """The fields of a summary that a record has not, or in another form, with their types."""

    message: str = ""
    tasks: Count = 0
    rounds: Count = 0
    metrics: Mapping[str, float] | None = None
    curve: tuple[str, tuple[float, ...]] | None = None
    acls: _Acls | None = None


def read_summary(summary: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return a summary that others have written: what fits its fields.

    Parameters
    ----------
    summary : mapping
    what : str
        What it is, for the log line about what does not fit.
    """
    repeated, derived = ({name: summary.get(name) for name in names} for names in (_REPEATED, _Derived.__annotations__))
    return {**read_status(repeated, what), **fit_document(_Derived, derived, what)}


def read_acls(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return who may see a job, by the options in its status; None if they do not say it."""
    found: Mapping[str, Any] | None = read_value(_Acls, (record.get("options") or {}).get("acls"))
    return found


def summarise(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table of records shows of one: the report's keys, ``tasks``, ``rounds``, ``metrics``, ``curve``.

    Returns
    -------
    dict
        ``metrics``: numbers by name, the last values. ``curve``: the name and at most 24 values of the first metric
        that has a curve; None if none has.
    """
    return {
        **{name: record.get(name) for name in _REPEATED},
        "message": str(record.get("message") or "")[:_MESSAGE],
        "tasks": len(record.get("tasks") or ()),
        "rounds": len(record.get("rounds") or ()),
        "metrics": last_metrics(record),
        "curve": _curve(record),
        "acls": read_acls(record),
    }


def last_metrics(record: Mapping[str, Any], most: int = _METRICS) -> dict[str, float]:
    """Return the last value of each metric: of the program's result, else of the first task's curve."""
    found: dict[str, float] = {}
    for item in record.get("series") or ():
        found.setdefault(str(item.get("name")), item.get("value"))
    found.update(record.get("metrics") or {})
    numbers = {
        name: value for name, value in found.items() if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return dict(list(numbers.items())[:most])


def _curve(record: Mapping[str, Any]) -> list[Any] | None:
    for item in record.get("series") or ():
        points = [point for point in item.get("points") or () if len(point) > 1]
        values = [point[1] for point in points if isinstance(point[1], (int, float))]
        if len(values) > 1:
            step = max(1.0, (len(values) - 1) / (_POINTS - 1))
            chosen = [values[min(len(values) - 1, round(step * number))] for number in range(min(_POINTS, len(values)))]
            return [str(item.get("name")), [float(f"{value:.5g}") for value in chosen]]
    return None


def total_costs(summaries: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return what jobs have cost together, the most memory first.

    Parameters
    ----------
    summaries : iterable of mapping
    keys : sequence of str
        Of the summaries, such as ``user``: jobs with the same values are one row.

    Returns
    -------
    list of dict
        The keys; ``jobs``: how many; ``run_seconds``; those of `COSTS`.
    """
    totals: dict[tuple[str, ...], dict[str, Any]] = {}
    for summary in summaries:
        group = tuple(str(summary.get(key) or "-") for key in keys)
        nothing = {"jobs": 0, "run_seconds": 0.0, **dict.fromkeys(COSTS, 0)}
        total = totals.setdefault(group, {**dict(zip(keys, group, strict=True)), **nothing})
        job = {"jobs": 1, "run_seconds": run_seconds(summary), **{name: summary.get(name) for name in COSTS}}
        total.update({name: total[name] + (value or 0) for name, value in job.items()})
    return sorted(totals.values(), key=lambda total: total["memory_seconds"], reverse=True)
