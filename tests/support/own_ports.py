"""Ports for servers of the tests: each test process has a range of its own.

A server that is stopped and started again would otherwise find its port taken by a cluster of another process. The
ranges are outside those of `ytf minicluster`, of coordinators, and of the kernel's outgoing connections.
"""

import os
import re

from tf_yarn_ops.minicluster import ports

OF_USERS = ports._RANGE
FIRST, END = 30000, 32768


def use_own_ports():
    """Let `choose_ports` choose from the range of this process."""
    ports._RANGE = own_ports()


def own_ports(environ=os.environ):
    """Return the range of ports of this process of pytest-xdist; without one, all ports for tests."""
    count = int(environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    # A worker that replaces a crashed one has a higher number.
    place = int(re.sub(r"\D", "", environ.get("PYTEST_XDIST_WORKER", "")) or 0) % count
    width = (END - FIRST) // count
    return range(FIRST + place * width, FIRST + (place + 1) * width)
