"""The use of GPUs as ``nvidia-smi`` shows it, where the node has the program. The agent never waits for it."""

import os
import shutil
import subprocess
from typing import Any, Dict, List, Mapping, Optional

#: What each line of the answer has: the device, use in per cent, memory in use and all of it in MiB.
_QUERY = ["--query-gpu=uuid,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits"]
_UNKNOWN: Dict[str, Any] = dict.fromkeys(("gpus", "gpu_percent", "gpu_memory_mib", "gpu_given_mib", "gpu_uuids"))


class GpuMeter:
    """Reads the answer of the last question, and asks again.

    Parameters
    ----------
    env : mapping of str to str
        The variables of the program, which may see fewer GPUs than this process.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        program, devices = shutil.which("nvidia-smi"), env.get("CUDA_VISIBLE_DEVICES")
        chosen = [f"--id={devices}"] if devices and devices.replace(",", "").replace("-", "").isalnum() else []
        self._command: List[str] = [program, *_QUERY, *chosen] if program and devices not in ("", "-1") else []
        self._asked: Optional["subprocess.Popen[bytes]"] = None
        self._answer = b""
        self._last = _UNKNOWN

    def measure(self) -> Dict[str, Any]:
        """Return the fields of the message ``sample`` about GPUs; None without an answer."""
        if self._asked is not None and self._answered(self._asked):
            self._last, self._asked, self._answer = read_answer(self._answer), None, b""
        if self._command and self._asked is None:
            try:
                self._asked = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                               stderr=subprocess.DEVNULL)
            except OSError:
                self._command = []
            else:
                assert self._asked.stdout is not None
                os.set_blocking(self._asked.stdout.fileno(), False)
        return self._last

    def _answered(self, asked: "subprocess.Popen[bytes]") -> bool:
        """Take what the program has written; return whether it has ended."""
        assert asked.stdout is not None
        while True:
            part = asked.stdout.read(65536)
            if not part:
                break
            self._answer += part
        if part is None:
            return False
        asked.stdout.close()
        asked.poll()  # `Command` may have collected it
        return True


def read_answer(answer: bytes) -> Dict[str, Any]:
    """Return the fields of the message ``sample`` of the program's answer; lines without numbers do not count."""
    rows, uuids = [], []
    for line in answer.decode("utf-8", "replace").splitlines():
        try:
            uuid, *numbers = line.split(",")
            use, used, given = map(float, numbers)
        except ValueError:  # [N/A], or an error in words
            continue
        rows.append((use, used, given))
        uuids.append(uuid.strip())
    if not rows:
        return _UNKNOWN
    use, used, given = (sum(row[column] for row in rows) for column in range(3))
    return {"gpus": len(rows), "gpu_percent": round(use / len(rows), 1), "gpu_memory_mib": used, "gpu_given_mib": given,
            "gpu_uuids": ", ".join(uuids)}
