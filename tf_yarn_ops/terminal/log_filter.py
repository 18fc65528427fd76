"""`LogFilter`: choose lines of tasks' logs by a pattern, and by the time with which they begin."""

import re
import time
from collections.abc import Callable
from datetime import datetime

from ..errors import SpecInvalid

#: The time in front of a line: ISO 8601 (Python's logging, TensorFlow), absl's (W1122 17:05:01.2), Hadoop's (26/11/22).
_TIMES = (
    (re.compile(r"\W*(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,:]\d+)?\s?(Z|[+-]\d\d:?\d\d)?"), "%Y-%m-%d %H:%M:%S"),
    (re.compile(r"[IWEF](\d{4}) (\d\d:\d\d:\d\d)()"), "%Y %m%d %H:%M:%S"),
    (re.compile(r"(\d\d/\d\d/\d\d) (\d\d:\d\d:\d\d)()"), "%y/%m/%d %H:%M:%S"),
)


class LogFilter:
    """Chooses lines of several logs.

    Parameters
    ----------
    pattern : str, optional
        A regular expression that a line has to contain. Default: all lines.
    since : float, optional
        Seconds since the epoch. A line without a time has that of the line before it in the same log. Default: all.
    now : callable, optional
        Seconds since the epoch.

    Attributes
    ----------
    saw_a_time : bool
        Whether a line began with a time.

    Raises
    ------
    SpecInvalid
        The pattern is not a regular expression.
    """

    def __init__(self, pattern: str | None = None, since: float | None = None, now: Callable[[], float] = time.time):
        try:
            self._pattern = re.compile(pattern) if pattern else None
        except re.error as error:
            raise SpecInvalid(f"--grep {pattern!r} is not a regular expression: {error}") from None
        self._since = since
        self._now = now
        self._late: dict[str, bool] = {}
        self.saw_a_time = False

    def shows(self, task: str, text: str) -> bool:
        """Return whether a line of a task's log is shown."""
        if self._since is not None:
            moment = line_time(text, self._now())
            if moment is not None:
                self.saw_a_time = True
                self._late[task] = moment >= self._since
            if not self._late.get(task, True):
                return False
        return self._pattern is None or self._pattern.search(text) is not None


def line_time(text: str, now: float) -> float | None:
    """Return the moment with which a line begins, in seconds since the epoch; None if it begins with none."""
    for form, meaning in _TIMES:
        found = form.match(text)
        if found is None:
            continue
        year = f"{time.localtime(now).tm_year} " if meaning.startswith("%Y %m") else ""
        try:
            moment = datetime.strptime(f"{year}{found[1]} {found[2]}", meaning)
            if found[3]:
                zone = datetime.strptime(found[3], "%z").tzinfo  # it reads Z, +0100 and +01:00
                moment = moment.replace(tzinfo=zone)
            return moment.timestamp()
        except (ValueError, OverflowError):
            return None
    return None
