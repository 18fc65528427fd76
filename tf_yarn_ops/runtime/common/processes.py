"""Linux processes of one container: death with the parent, adoption of orphans, signals to all descendants."""

import ctypes
import os
import signal
from typing import Dict, List

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make orphans of our descendants our children (Linux 3.4)."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def descendants() -> List[int]:
    """Give the pids of all living descendants of this process, from /proc."""
    children: Dict[int, List[int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, "rb") as stat:
                state, parent = stat.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state not in (b"Z", b"X"):
            children.setdefault(int(parent), []).append(int(entry))
    result: List[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        result += below
        todo += below
    return result


def signal_all(pids: List[int], number: int) -> None:
    """Send a signal to each; those that are gone, or somebody else's by now, are no matter."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass
