"""What both ends in the cluster ask of Linux: prctl(2), the process tree below this process, and a port of its own."""

import contextlib
import ctypes
import os
import signal
import socket
from typing import Dict, Iterable, List, Optional

#: The signal at which a Python program writes its stacks: a real-time signal, which few programs use.
STACK_SIGNAL = 50
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def set_child_subreaper() -> None:
    """Make this process the child subreaper: orphaned descendants become its children (Linux 3.4)."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def set_parent_death_signal(number: int = signal.SIGKILL) -> None:
    """Make the kernel send a signal to this process when its parent ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def end_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Make the kernel send a signal to this process when its parent, which has this id, ends; end now if it has ended.

    Parameters
    ----------
    parent : int
    number : int, optional
        The signal. Default SIGKILL.
    """
    set_parent_death_signal(number)
    if os.getppid() != parent:
        os._exit(1)


def find_program(name: str) -> Optional[str]:
    """Return the first program of this name on the PATH of this process; shutil would load its archivers."""
    found = (os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(":") if folder)
    return next((file for file in found if os.path.isfile(file) and os.access(file, os.X_OK)), None)


def descendants() -> Dict[int, int]:
    """Return the living descendants of this process, read from /proc: pid to parent pid, parents before children."""
    children: Dict[int, List[int]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError), open("/proc/%s/stat" % entry, "rb") as stat:
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(entry))
    found: Dict[int, int] = {}
    parents = [os.getpid()]
    for pid in parents:  # grows while it is read
        below = children.get(pid, [])
        found.update(dict.fromkeys(below, pid))
        parents += below
    return found


def send_signal(pids: Iterable[int], number: int) -> None:
    """Send a signal to each process; skip those that have ended or belong to another user."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reserve_port(host: str = "") -> socket.socket:
    """Bind a free port with SO_REUSEPORT and do not listen; it is ours, and that of our programs, until it is closed.

    Parameters
    ----------
    host : str, optional
        An address of this machine. Default: all.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, 0))
    return held
