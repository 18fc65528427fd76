"""The curves of the metrics that programs write: bounded in metrics, points and memory.

Points of the agents' samples come in; `Series` go out. A full curve is thinned to half its points, and takes every
second point from then on, so that it always covers the whole training.
"""

import time
from array import array
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..common.status import Series
from ..common.values import MAX_NUMBER

#: Points of a curve.
MAX_CURVE_POINTS = 240
#: Points of a job; with many curves each has fewer, but at least `MIN_POINTS`.
BUDGET = 24_000
MIN_POINTS = 12
#: Curves of a job.
MAX_SERIES = BUDGET // MIN_POINTS
#: Characters of a name.
MAX_CURVE_NAME = 64


class Curve:
    """One metric of one task. Steps and values are kept as doubles, 16 bytes a point."""

    def __init__(self) -> None:
        self.last: Tuple[float, float, float] = (0.0, 0.0, 0.0)
        self.since: Optional[Tuple[float, float]] = None
        self._steps, self._values = array("d"), array("d")
        self._every, self._number = 1, 0

    def add(self, points: List[Any], at: float, limit: int) -> int:
        """Add points, of which it keeps at most `limit`; return how many are no points."""
        unfit = 0
        for point in points:
            try:
                step, value = map(float, point)
                if not -MAX_NUMBER <= step <= MAX_NUMBER:
                    raise ValueError
            except (TypeError, ValueError, OverflowError):
                unfit += 1
                continue
            if self.since is None or step < self.last[0]:  # the program has started again
                self.since = step, round(at, 3)
            self.last = step, value, at
            if not -MAX_NUMBER <= value <= MAX_NUMBER:  # NaN, too
                continue
            while len(self._steps) >= limit:
                self._steps, self._values = self._steps[::2], self._values[::2]
                self._every *= 2
            if self._number % self._every == 0:
                self._steps.append(step)
                self._values.append(value)
            self._number += 1
        return unfit

    def points(self) -> List[List[float]]:
        """Return the points that are kept, and the last one."""
        points = [[step, self._values[index]] for index, step in enumerate(self._steps)]
        step, value, _ = self.last
        if abs(value) <= MAX_NUMBER and points and points[-1] != [step, value]:
            points.append([step, value])
        return points


class Curves:
    """All curves of a job.

    Attributes
    ----------
    left_out : int
        Lines and values that agents or this class did not keep.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._curves: Dict[Tuple[str, str], Curve] = {}

    def take(self, task: str, sample: Mapping[str, Any]) -> None:
        """Add the points of a message ``sample``; nothing in it is trusted."""
        self.left_out += max(0, sample["left_out"])
        now = time.time()
        for name, points in sample["metrics"].items():
            curve = self._curve(task, name)
            if curve is None or not isinstance(points, list):
                self.left_out += 1
                continue
            limit = max(MIN_POINTS, min(MAX_CURVE_POINTS, BUDGET // len(self._curves)))
            self.left_out += curve.add(points[:MAX_CURVE_POINTS], now, limit)

    def _curve(self, task: str, name: str) -> Optional[Curve]:
        found = self._curves.get((task, name))
        if found is None and len(name) <= MAX_CURVE_NAME and len(self._curves) < MAX_SERIES:
            found = self._curves[task, name] = Curve()
        return found

    def series(self) -> List[Series]:
        """Return all curves, by name, then in the order in which the tasks wrote first."""
        found = sorted(self._curves.items(), key=lambda item: item[0][1])
        return [
            Series(task, name, curve.points(), curve.last[0], curve.last[1], round(curve.last[2], 3), curve.since)
            for (task, name), curve in found
        ]

    def last_values(self, task: str) -> Optional[Dict[str, Any]]:
        """Return the last value of each metric of a task, and ``step``; None if it has written none."""
        mine = {name: curve.last for (owner, name), curve in self._curves.items() if owner == task}
        if not mine:
            return None
        step = max(last[0] for last in mine.values())
        return {"step": int(step) if step == int(step) else step, **{name: last[1] for name, last in mine.items()}}
