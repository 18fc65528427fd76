"""Times and sizes as text: pages and documents show UTC, terminals show local time; durations look alike everywhere."""

import time
from typing import Optional

#: Seconds of a day.
DAY = 24 * 3600.0


def duration(seconds: Optional[float]) -> str:
    """Return seconds as text: ``2.4 s``, ``22 s``, ``3 min 10 s``, ``5 h 2 min``; ``-`` for None, 0 if negative."""
    if seconds is None:
        return "-"
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return "%.1f s" % seconds
    whole = round(seconds)
    if whole < 60:
        return "%d s" % whole
    minutes, rest = divmod(whole, 60)
    return "%d min %d s" % (minutes, rest) if minutes < 60 else "%d h %d min" % (minutes // 60, minutes % 60)


def format_work(path: str, size: Optional[int]) -> str:
    """Return where work lies that is not committed, and its size if that is known: ``/models/_d.work-... (1.2 MB)``."""
    return path if size is None else "%s (%.1f MB)" % (path, size / 1e6)


def utc_clock(moment: float) -> str:
    """Return the time of day of a moment in seconds since the epoch, UTC: ``22:13:20``."""
    return time.strftime("%H:%M:%S", time.gmtime(moment))


def utc_time(moment: Optional[float], seconds: bool = False) -> str:
    """Return day and time of a moment in UTC, ``2026-11-22 17:05Z``, or with seconds; ``-`` for None."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ" if seconds else "%Y-%m-%d %H:%MZ", time.gmtime(moment)) if moment else "-"


def local_clock() -> str:
    """Return the local time of day, without its zone, as the lines of a log begin: ``23:13:20``."""
    return time.strftime("%H:%M:%S")


def local_time(moment: Optional[float]) -> str:
    """Return day, local time and zone of a moment, ``2026-11-22 18:05:01 CET``; ``-`` for None."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(moment)) if moment else "-"
