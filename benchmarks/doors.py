"""Command lines from a cold process: help, a dry run, a local job, the import of Airflow's operator."""

import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .samples import Figures, Samples, interleave

TITLE = "Command lines from a cold process, without a cluster"
_JOB = ("-r", "worker:1", "true")
#: Programs beside the interpreter, and their words. Nothing here imports the package: another commit's serve as well.
DOORS = {
    "ytf-submit --help": ("ytf-submit", "--help"),
    "ytf --help": ("ytf", "--help"),
    "ytf-submit --dry_run": ("ytf-submit", "--dry_run", "--resourcemanager", "http://127.0.0.1:1", *_JOB),
    "ytf-submit --local": ("ytf-submit", "--local", *_JOB),
    "import of the operator": ("python", "-c", "import tf_yarn_ops.airflow.operator"),
}


def measure(runs: int, quick: bool) -> Samples:
    """Measure each command line, after one run that leaves byte code behind."""
    with tempfile.TemporaryDirectory(prefix="ytf-bench-") as folder:
        cases = {door: functools.partial(_figures, words, folder) for door, words in DOORS.items()}
        for case in cases.values():
            case()
        return interleave(cases, runs, Samples())


def _figures(words: tuple[str, ...], folder: str) -> Figures:
    environ = {**os.environ, "AIRFLOW_HOME": folder}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / words[0]), *words[1:]],
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return {
        "CPU s": used.ru_utime + used.ru_stime,
        "wall s": time.monotonic() - began,
        "peak MiB": used.ru_maxrss / 1024,
    }
