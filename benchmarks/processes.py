"""What the kernel knows of a process: peak memory and CPU time."""

import os
from pathlib import Path


def peak_memory(pid: int) -> float:
    """Return the peak of the resident memory so far, MiB (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process so far, without its children; to 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of(pid: int) -> int:
    """Return the first child of a process."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
