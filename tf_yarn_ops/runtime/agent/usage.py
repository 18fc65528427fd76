"""What the user's command uses: CPU and memory of all its processes by /proc, GPUs as ``nvidia-smi`` shows them."""

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from ..common.processes import descendants, find_program

if TYPE_CHECKING:
    import subprocess

_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2.0**20
_TICKS = float(os.sysconf("SC_CLK_TCK"))
#: What each line of nvidia-smi has: the device, use in per cent, memory in use and all of it in MiB.
_QUERY = ["--query-gpu=uuid,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits"]
_UNKNOWN: Dict[str, Any] = dict.fromkeys(("gpus", "gpu_percent", "gpu_memory_mib", "gpu_given_mib", "gpu_uuids"))


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

    Parameters
    ----------
    env : mapping of str to str
        The variables of the command, which may see fewer GPUs than this process.

    Attributes
    ----------
    peak_cores, peak_mib : float
        The highest values of all measurements.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.peak_cores = self.peak_mib = 0.0
        self._base = read_processes()[0]
        self._last: Tuple[float, float] = (time.monotonic(), 0.0)
        program, devices = find_program("nvidia-smi"), env.get("CUDA_VISIBLE_DEVICES")
        chosen = [f"--id={devices}"] if devices and devices.replace(",", "").replace("-", "").isalnum() else []
        self._command: List[str] = [program, *_QUERY, *chosen] if program and devices not in ("", "-1") else []
        self._query: Optional["subprocess.Popen[bytes]"] = None
        self._gpus = _UNKNOWN

    def measure(self) -> Dict[str, Any]:
        """Return the fields of the message ``sample`` about CPU, memory and GPUs; None for what is not known."""
        now = time.monotonic()
        total, memory = read_processes()
        seconds = max(total - self._base, self._last[1])  # a process that ends between two reads counts later
        cores = (seconds - self._last[1]) / max(now - self._last[0], 0.01)
        self._last = now, seconds
        self.peak_cores, self.peak_mib = max(cores, self.peak_cores), max(memory, self.peak_mib)
        self._query_gpus()
        return {
            "cpu_seconds": round(seconds, 2),
            "cpu_cores": round(cores, 2),
            "memory_mib": round(memory, 1),
            "peak_cpu_cores": round(self.peak_cores, 2),
            "peak_memory_mib": round(self.peak_mib, 1),
            **self._gpus,
        }

    def _query_gpus(self) -> None:
        """Read the answer of nvidia-smi if it has ended, and start it again; never wait for it."""
        if self._query is not None and self._query.poll() is not None:  # `Command` may have collected it
            assert self._query.stdout is not None
            with self._query.stdout as answer:  # a pipe holds all that is ever read of it
                os.set_blocking(answer.fileno(), False)
                self._gpus, self._query = read_answer(answer.read(65536) or b""), None
        if self._command and self._query is None:
            import subprocess  # takes a task without GPUs too long

            try:
                self._query = subprocess.Popen(
                    self._command,
                    bufsize=0,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError:
                self._command = []


def read_answer(answer: bytes) -> Dict[str, Any]:
    """Return the fields of the message ``sample`` of the program's answer; lines without numbers do not count."""
    rows = []
    for line in answer.decode("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError):  # [N/A], or an error in words
            uuid, *numbers = line.split(",")
            use, used, given = map(float, numbers)
            rows.append((uuid.strip(), use, used, given))
    if not rows:
        return _UNKNOWN
    return {
        "gpus": len(rows),
        "gpu_percent": round(sum(use for _, use, _, _ in rows) / len(rows), 1),
        "gpu_memory_mib": sum(used for _, _, used, _ in rows),
        "gpu_given_mib": sum(given for _, _, _, given in rows),
        "gpu_uuids": ", ".join(uuid for uuid, _, _, _ in rows),
    }
