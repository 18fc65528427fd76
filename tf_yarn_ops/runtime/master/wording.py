"""How the coordinator's messages say who and since when: short, whatever the size of the job."""

import time
from typing import Any, Callable, Sequence

#: So many are named; a report has to fit into YARN's diagnostics.
NAMED = 8


def some(items: Sequence[Any], name: Callable[[Any], str] = str) -> str:
    """Give the names of the first ones, and how many more there are."""
    more = len(items) - NAMED
    return ", ".join(map(name, items[:NAMED])) + (f" and {more} more" if more > 0 else "")


def moment(seconds_ago: float) -> str:
    """Give the time of day that was so many seconds ago."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() - seconds_ago))
