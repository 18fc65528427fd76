"""Find this user's processes in /proc by marks in their command lines or environments.

There are no pid files. A pid in a file may be stale; a mark on a command line always belongs to a running process.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def find_by_arguments(marks: Iterable[str]) -> tuple[int, ...]:
    """Return the pids of this user's processes that have all marks among their arguments, lowest first."""
    wanted = {mark.encode() for mark in marks}
    return tuple(pid for pid in _own_pids() if wanted <= set(_read(pid, "cmdline").split(b"\0")))


def find_by_environment(prefix: str) -> tuple[int, ...]:
    """Return the pids of this user's processes with a variable that begins with ``NAME=prefix``, lowest first."""
    wanted = prefix.encode()
    return tuple(
        pid for pid in _own_pids() if any(entry.startswith(wanted) for entry in _read(pid, "environ").split(b"\0"))
    )


def signal_process(pid: int, number: int) -> None:
    """Send a signal; do nothing if the process has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_groups(pids: Iterable[int]) -> None:
    """Send SIGKILL to the process groups of these processes, except the caller's own group."""
    groups = set()
    for pid in pids:  # all before the first kill: without its leader a group has no marked process left
        with suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    for group in groups - {os.getpgid(0)}:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def parent(pid: int) -> int | None:
    """Return the pid of a process's parent, or None if the process has ended."""
    fields = _read(pid, "stat").rpartition(b") ")[2].split()
    return int(fields[1]) if fields else None


def wait_until(condition: Callable[[], bool], seconds: float, interval: float = 0.05) -> bool:
    """Poll a condition; return whether it became true before the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True


def _own_pids() -> Iterator[int]:
    user = os.getuid()
    for entry in sorted(int(name) for name in os.listdir(_PROC) if name.isdigit()):
        with suppress(FileNotFoundError):
            if os.stat(_PROC / str(entry)).st_uid == user:
                yield entry


def _read(pid: int, name: str) -> bytes:
    # A process may end between listing and reading; the command line of a zombie is empty.
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
