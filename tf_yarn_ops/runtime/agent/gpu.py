"""The use of GPUs as ``nvidia-smi`` shows it, where the node has the program. The agent never waits for it."""

import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional

#: What each line of the answer has: use in per cent, memory in use and all of it in MiB.
_QUERY = ["--query-gpu=utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits"]
_UNKNOWN: Dict[str, Any] = {"gpus": None, "gpu_percent": None, "gpu_memory_mib": None, "gpu_given_mib": None}


class GpuMeter:
    """Reads the answer of the last question, and asks again."""

    def __init__(self) -> None:
        program, devices = shutil.which("nvidia-smi"), os.environ.get("CUDA_VISIBLE_DEVICES", "")
        chosen = [f"--id={devices}"] if devices.replace(",", "").replace("-", "").isalnum() and devices != "-1" else []
        self._command: List[str] = [program, *_QUERY, *chosen] if program else []
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
    rows = []
    for line in answer.decode("utf-8", "replace").splitlines():
        try:
            use, used, given = map(float, line.split(","))
        except ValueError:  # [N/A], or an error in words
            continue
        rows.append((use, used, given))
    if not rows:
        return _UNKNOWN
    use, used, given = (sum(row[column] for row in rows) for column in range(3))
    return {"gpus": len(rows), "gpu_percent": round(use / len(rows), 1), "gpu_memory_mib": used, "gpu_given_mib": given}
