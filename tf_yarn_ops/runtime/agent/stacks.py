"""The stacks of a running command: each of its Python processes writes them into the log at a signal.

`program.sitecustomize` registers faulthandler for that signal, which needs no lock of Python: a program that hangs in a
C library answers, too.
"""

import select
import time

from ..common.processes import STACK_SIGNAL, descendants, send_signal
from .command import log_size, read_log_end

#: Seconds for the stacks of all processes, and the pause after which a log that has not grown is complete.
_SECONDS, _PAUSE = 1.0, 0.05


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""


def _status_of(pid: int, name: str) -> str:
    """Return a value of a process's status; empty if it has ended."""
    lines = _read("/proc/%d/status" % pid).splitlines()
    return next((line[len(name) :].strip() for line in lines if line.startswith(name)), "")


def _has_handler(pid: int) -> bool:
    """Return whether a process handles the signal, which would end another one (proc(5), SigCgt)."""
    return bool(int(_status_of(pid, "SigCgt:") or "0", 16) >> (STACK_SIGNAL - 1) & 1)


def read_stacks(limit: int) -> str:
    """Return the stacks of all processes of the command, at most `limit` characters of each.

    A process without the handler, such as bash, is listed with its state.
    """
    until = time.monotonic() + _SECONDS
    parts = []
    for pid in descendants():
        words = " ".join(_read("/proc/%d/cmdline" % pid).replace("\0", " ").split())
        parts.append("process %d, %s: %s\n" % (pid, _status_of(pid, "State:"), words[:200]))
        if not _has_handler(pid):
            continue
        start = size = log_size()
        send_signal([pid], STACK_SIGNAL)
        while time.monotonic() < until:
            select.select([], [], [], _PAUSE)
            if start < log_size() == size:
                break
            size = log_size()
        parts.append(read_log_end(limit, start) or "its stack is not in the log: its standard error leads elsewhere\n")
    return "".join(parts) or "no process runs\n"
