"""Where the time of a run on several workers went: for each worker its last test, for each file its seconds.

A file that takes minutes and begins late leaves the other workers, and cores, idle at the end.
"""

import collections
import os
import time

#: Files that are shown.
LONGEST = 25


class RunTimes:
    """A plugin of pytest's controlling process, which gets the result of each test of each worker."""

    def __init__(self):
        self._began = time.time()
        self._idle = idle_seconds()
        self._files = collections.Counter()
        self._workers = {}

    def pytest_runtest_logreport(self, report):
        if node := getattr(report, "node", None):
            worker = node.gateway.id
            self._files[worker, report.nodeid.partition("::")[0]] += report.duration
            self._workers[worker] = report.nodeid, report.stop

    def pytest_terminal_summary(self, terminalreporter):
        if len(self._workers) < 2:
            return
        now = time.time()
        terminalreporter.section("where the time went")
        idle = (idle_seconds() - self._idle) / (now - self._began) / (os.cpu_count() or 1)
        terminalreporter.write_line(f"{now - self._began:.0f} s, of which the cores were idle for {idle:.0%}")
        for worker, (nodeid, stop) in sorted(self._workers.items()):
            terminalreporter.write_line(f"{worker} ended after {stop - self._began:5.0f} s with {nodeid}")
        for (worker, file), seconds in self._files.most_common(LONGEST):
            terminalreporter.write_line(f"{seconds:5.0f} s {worker} {file}")


def idle_seconds():
    """Return the seconds that all cores of this machine have been idle, waiting for disks included."""
    with open("/proc/stat", encoding="ascii") as file:
        _, *jiffies = file.readline().split()
    return (int(jiffies[3]) + int(jiffies[4])) / os.sysconf("SC_CLK_TCK")
