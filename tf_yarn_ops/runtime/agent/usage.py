"""What the user's command uses: CPU and memory of all its processes, read from /proc."""

import os
import time
from typing import Dict, Tuple

from ..common.processes import descendants

_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2.0**20
_TICKS = float(os.sysconf("SC_CLK_TCK"))


def read_processes() -> Tuple[float, float]:
    """Return the CPU seconds and the resident memory, MiB, of all descendants, also CPU of those that have ended.

    Memory is the sum over the processes, as NodeManagers count it.
    """
    ended = os.times()
    seconds, pages = ended.children_user + ended.children_system, 0
    for pid in descendants():
        try:
            with open("/proc/%d/stat" % pid, "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        # utime, stime, and the same of its children that have ended: fields 14 to 17 of proc(5); rss is field 24.
        seconds += sum(map(int, fields[11:15])) / _TICKS
        pages += int(fields[21])
    return seconds, pages * _PAGE_MIB


class Meter:
    """Measures one run of the command, from its start on.

    Attributes
    ----------
    peak_cores, peak_mib : float
        The highest values of all measurements.
    """

    def __init__(self) -> None:
        self.peak_cores = self.peak_mib = 0.0
        self._base = read_processes()[0]
        self._last: Tuple[float, float] = (time.monotonic(), 0.0)

    def measure(self) -> Dict[str, float]:
        """Return the fields of the message ``sample`` about CPU and memory."""
        now = time.monotonic()
        total, memory = read_processes()
        seconds = max(total - self._base, self._last[1])  # a process that ends between two reads counts later
        cores = (seconds - self._last[1]) / max(now - self._last[0], 0.01)
        self._last = now, seconds
        self.peak_cores, self.peak_mib = max(cores, self.peak_cores), max(memory, self.peak_mib)
        return {"cpu_seconds": round(seconds, 2), "cpu_cores": round(cores, 2), "memory_mib": round(memory, 1),
                "peak_cpu_cores": round(self.peak_cores, 2), "peak_memory_mib": round(self.peak_mib, 1)}
