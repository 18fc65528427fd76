"""Reads the metrics that the user's program appends to YTF_METRICS_FILE: one JSON object a line, ``step`` and numbers.

The file may grow as it likes: each look reads a bounded part of it and returns a bounded number of points. A line that
is not understood costs only itself.
"""

import json
import math
import os
from typing import Any, Dict, List, Optional, Tuple

from ..common.values import open_regular, plain_text

#: Bytes of a look; if the file has grown by more, the older lines are skipped.
MAX_NEW_BYTES = 256 * 1024
#: Bytes of a line.
MAX_METRICS_LINE = 4096
#: Characters of a metric's name.
MAX_METRIC_NAME = 64
#: Metrics of a task; a later name is not kept.
MAX_NAMES = 32
#: Points of a message, over all metrics; more are thinned. With the names they fit into a line of the protocol.
MAX_MESSAGE_POINTS = 320

#: By name of the metric: ``[step, value]``, in the order of the file.
Points = Dict[str, List[List[float]]]


class MetricsFile:
    """The file of one run of the command.

    Parameters
    ----------
    path : str
        Need not exist.
    """

    def __init__(self, path: str):
        self._path = path
        self._offset = 0
        self._names: Dict[str, None] = {}
        self._step = 0.0
        self._skipping = False  # up to the end of a line
        self._left_out = 0

    def read(self, *, last: bool = False) -> Tuple[Points, int]:
        """Return the points that were added since the last call, at most `MAX_MESSAGE_POINTS`.

        Parameters
        ----------
        last : bool, optional
            Whether the program has ended, so that a line without an end is complete. Default false.

        Returns
        -------
        points : dict
            By name of the metric.
        left_out : int
            The number of lines and values since the last call that were not understood or not kept.
        """
        points: Points = {}
        self._left_out = 0
        for line in self._lines(last):
            if line.strip():
                self._add(line, points)
        return thin(points), self._left_out

    def _lines(self, last: bool) -> List[bytes]:
        """Return the new lines; after a jump, or in a line that is too long, skip up to its end."""
        try:
            file = open_regular(self._path)
        except OSError:
            return []
        with file:
            size = os.fstat(file.fileno()).st_size
            if size < self._offset:  # the program has begun the file anew
                self._offset, self._skipping = 0, False
            if size - self._offset > MAX_NEW_BYTES:
                self._offset, self._skipping = size - MAX_NEW_BYTES, True
                self._left_out += 1
            file.seek(self._offset)
            content = file.read(MAX_NEW_BYTES)
        *lines, rest = content.split(b"\n")
        if last and rest:
            lines.append(rest)
            rest = b""
        if self._skipping and lines:
            lines.pop(0)
            self._skipping = False
        if self._skipping or len(rest) > MAX_METRICS_LINE:
            self._left_out += not self._skipping
            self._skipping = True
            rest = b""
        self._offset += len(content) - len(rest)
        return lines

    def _add(self, line: bytes, points: Points) -> None:
        try:
            if len(line) > MAX_METRICS_LINE:
                raise ValueError
            values = json.loads(line)
            step = _number(values.pop("step", self._step + 1))
            if step is None or not math.isfinite(step):
                raise ValueError
        except (ValueError, TypeError, AttributeError, RecursionError):  # no JSON, no object, no step
            self._left_out += 1
            return
        self._step = step
        for key, value in values.items():
            name, number = plain_text(key), _number(value)
            if (
                number is None
                or len(name) > MAX_METRIC_NAME
                or (name not in self._names and len(self._names) >= MAX_NAMES)
            ):
                self._left_out += 1
                continue
            self._names[name] = None
            points.setdefault(name, []).append([step, number])


def _number(value: Any) -> Optional[float]:
    """Return a number of JSON; None for another value. Infinity and NaN are numbers: people have to see them."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def thin(points: Points) -> Points:
    """Return at most `MAX_MESSAGE_POINTS`, evenly over the metrics and over each curve; the last of each stays."""
    most = max(1, MAX_MESSAGE_POINTS // max(1, len(points)))
    return {name: _spread(curve, most) for name, curve in points.items()}


def _spread(curve: List[List[float]], most: int) -> List[List[float]]:
    if len(curve) <= most:
        return curve
    every = len(curve) / float(most)
    return [curve[int((number + 1) * every) - 1] for number in range(most - 1)] + [curve[-1]]
