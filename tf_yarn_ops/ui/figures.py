"""Numbers for the drawings of the pages: sparklines, reasons over time, waits in queues; pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..runtime.common.clock import DAY, utc_day
from ..runtime.common.reasons import Reason

#: Size of a sparkline and of a chart, in the units of its own.
SPARK_WIDTH, SPARK_HEIGHT = 90.0, 22.0
CHART_HEIGHT = 120.0
#: The most reasons and queues with a colour of their own.
COLOURS = 8


class Piece(NamedTuple):
    """A piece of a bar: the number of its colour, its place from above, its height, and its text."""

    colour: int
    top: float
    height: float
    tip: str


class Bar(NamedTuple):
    """The bar of one day."""

    day: str
    pieces: tuple[Piece, ...]


class Reasons(NamedTuple):
    """Reasons over time: names, how many jobs of each, a bar for each day, and the most jobs of a day.

    SUCCEEDED comes first, then the most frequent.
    """

    names: list[str]
    totals: list[int]
    bars: list[Bar]
    most: int


class Wait(NamedTuple):
    """The waits of the jobs in one queue: how many jobs, the median, the 95th percentile, the longest; seconds."""

    queue: str
    jobs: int
    median: float
    high: float
    longest: float


def draw_spark(curve: Sequence[Any] | None) -> str:
    """Return the points of a sparkline, as SVG's polyline takes them; empty if there is no curve."""
    values = [
        value
        for value in (curve[1] if curve and len(curve) == 2 else ())
        if isinstance(value, int | float) and math.isfinite(value)
    ]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    across, up = SPARK_WIDTH / (len(values) - 1), (SPARK_HEIGHT - 4) / (high - low) if high > low else 0.0
    return " ".join(
        f"{number * across:.1f},{SPARK_HEIGHT - 2 - (value - low) * up:.1f}" for number, value in enumerate(values)
    )


def count_reasons(summaries: Iterable[Mapping[str, Any]], since: float, until: float) -> Reasons:
    """Return how many jobs ended for which reason, per day in UTC from ``since`` to ``until``."""
    days = [utc_day(since + number * DAY) for number in range(int((until - since) // DAY) + 1)]
    last = utc_day(until)
    days = days if days[-1] == last else [*days, last]
    counted: dict[str, Counter[str]] = {day: Counter() for day in days}
    totals: Counter[str] = Counter()
    for summary in summaries:
        day = utc_day(float(summary.get("finished_at") or 0.0))
        if day in counted:
            reason = str(summary.get("reason"))
            counted[day][reason] += 1
            totals[reason] += 1
    names = sorted(totals, key=lambda name: (name != Reason.SUCCEEDED.value, -totals[name], name))
    most = max((sum(counter.values()) for counter in counted.values()), default=0)
    return Reasons(
        names,
        [totals[name] for name in names],
        [Bar(day, _pieces(day, counter, names, most)) for day, counter in counted.items()],
        most,
    )


def _pieces(day: str, counter: Mapping[str, int], names: Sequence[str], most: int) -> tuple[Piece, ...]:
    pieces, bottom = [], CHART_HEIGHT
    for number, name in enumerate(names):
        if counter.get(name):
            height = CHART_HEIGHT * counter[name] / most
            bottom -= height
            pieces.append(
                Piece(min(number, COLOURS - 1), round(bottom, 2), round(height, 2), f"{day}: {counter[name]} {name}")
            )
    return tuple(pieces)


def count_waits(summaries: Iterable[Mapping[str, Any]]) -> list[Wait]:
    """Return how long jobs waited in each queue for their application master, the longest median first."""
    waits: dict[str, list[float]] = {}
    for summary in summaries:
        seconds = summary.get("queue_seconds")
        if isinstance(seconds, int | float):
            waits.setdefault(str(summary.get("queue") or "-"), []).append(float(seconds))
    found = []
    for queue, seconds_of_queue in waits.items():
        ordered = sorted(seconds_of_queue)
        found.append(Wait(queue, len(ordered), _share(ordered, 0.5), _share(ordered, 0.95), ordered[-1]))
    return sorted(found, key=lambda wait: wait.median, reverse=True)


def _share(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
