"""The memory cgroup of this process: its limit, its peak, and how many of its processes the kernel has killed.

References
----------
Linux, ``Documentation/admin-guide/cgroup-v1/memory.rst`` and ``cgroup-v2.rst``; proc(5), ``mountinfo``.
"""

import os
import time
from typing import Any, Dict, Iterator, NamedTuple, Optional

_MIB = 2.0**20
#: A limit above this many bytes is none: version 1 shows an unset limit as a large number.
_NO_LIMIT = 2**60
#: A kill that is older when the program fails is not why it fails, seconds.
_RECENT_SECONDS = 60.0


class _Files(NamedTuple):
    """The files of a version of cgroups: the counters with ``oom_kill``, the limit and the peak."""

    counters: str
    limit: str
    peak: str


_VERSION_1 = _Files("memory.oom_control", "memory.limit_in_bytes", "memory.max_usage_in_bytes")
_VERSION_2 = _Files("memory.events", "memory.max", "memory.peak")


class MemoryCgroup:
    """Watches the memory cgroup of this process, from now on; without cgroups nothing is ever found.

    Parameters
    ----------
    process : str, optional
        Folder of this process in ``/proc``.
    """

    def __init__(self, process: str = "/proc/self") -> None:
        self._folder = ""
        self._files = _VERSION_2
        # Others share a cgroup that is neither a container's nor that of this container of YARN.
        self._own = os.getpid() == 1
        for folder, path, files in _list_cgroups(process):
            if _read_counter(folder, files) is not None:
                self._folder, self._files = folder, files
                container = os.environ.get("CONTAINER_ID", "")
                self._own = self._own or bool(container and container in path)
                break
        self._kills = self._known = self._count()
        self._killed_at = 0.0

    def begin(self) -> None:
        """Forget the kills so far: a command starts."""
        self._kills = self._known = self._count()

    def poll(self) -> None:
        """Note whether the kernel has killed a process since the last call."""
        count = self._count()
        if count > self._known:
            self._known, self._killed_at = count, time.monotonic()

    def kill_of(self, code: Optional[int], number: Optional[int]) -> Optional[Dict[str, Any]]:
        """Return the kills for memory that made a command fail; None if there are none.

        Parameters
        ----------
        code, number : int or None
            Its exit code, or the signal that ended it.

        Returns
        -------
        dict or None
            ``kills``, and in MiB ``limit`` and ``peak``, None where there is no limit or the kernel keeps no peak.
        """
        self.poll()
        recent = self._known > self._kills and time.monotonic() - self._killed_at <= _RECENT_SECONDS
        killed = number == 9 or code == 137  # a shell's code for a program that signal 9 has ended
        if not recent or not (killed or (self._own and (code or number))):
            return None
        return {
            "kills": self._known - self._kills,
            "limit": _read_mib(self._folder, self._files.limit),
            "peak": _read_mib(self._folder, self._files.peak),
        }

    def _count(self) -> int:
        return (_read_counter(self._folder, self._files) or 0) if self._folder else 0


def _list_cgroups(process: str) -> Iterator["tuple[str, str, _Files]"]:
    """Yield the folders that may be the memory cgroup of a process, their paths in the hierarchy, and their files."""
    paths: Dict[str, str] = {}  # by controller; that of version 2 has none
    try:
        with open(f"{process}/cgroup") as file:
            for line in file:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                paths.update(dict.fromkeys(controllers.split(","), path))
        with open(f"{process}/mountinfo") as file:
            mounts = [line.split() for line in file]
    except (OSError, ValueError):
        return
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind == "cgroup" and "memory" in options and "memory" in paths:
            yield _place(fields, paths["memory"]), paths["memory"], _VERSION_1
        elif kind == "cgroup2" and "" in paths:
            yield _place(fields, paths[""]), paths[""], _VERSION_2


def _place(mount: "list[str]", path: str) -> str:
    """Return the folder of a cgroup below a mount, whose root may be that cgroup, as in a container."""
    root, folder = mount[3].rstrip("/"), mount[4]
    return folder + path[len(root) :] if (path + "/").startswith(root + "/") else folder


def _read_counter(folder: str, files: _Files) -> Optional[int]:
    try:
        with open(os.path.join(folder, files.counters)) as file:
            return int(dict(line.split() for line in file)["oom_kill"])
    except (OSError, ValueError, KeyError):  # Linux before 4.13 does not count
        return None


def _read_mib(folder: str, name: str) -> Optional[float]:
    try:
        with open(os.path.join(folder, name)) as file:
            value = int(file.read())  # version 2 shows an unset limit as "max"
    except (OSError, ValueError):
        return None
    return round(value / _MIB, 1) if value < _NO_LIMIT else None
