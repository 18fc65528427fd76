"""``./dev bench --against COMMIT``: the same benchmarks in a checkout of another commit, in turn with ours."""

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from .samples import Figures, Samples, interleave

FOLDER = Path(".ytf/against")


def measure(name: str, runs: int, quick: bool, commit: str) -> Samples:
    """Measure a benchmark here and there; each run is a process, and each figure has its case in its name."""
    here, there = Path.cwd(), checkout(commit)
    # An older commit may lack the benchmark of the doors, which needs its programs only.
    where = here if name == "doors" else there
    cases = {
        commit: functools.partial(_figures, there / ".venv/bin/python", where, name, quick),
        "this checkout": functools.partial(_figures, Path(sys.executable), here, name, quick),
    }
    return interleave(cases, runs, Samples(against={"this checkout": commit}))


def checkout(commit: str) -> Path:
    """Return a folder with the files of a commit and their virtual environment, which the next call finds again."""
    commit = subprocess.check_output(["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], text=True).strip()
    folder = FOLDER.absolute() / commit
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "x", "-C", folder], input=subprocess.check_output(["git", "archive", commit]), check=True)
    subprocess.run(["./dev", "venv"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    return folder


def _figures(python: Path, where: Path, name: str, quick: bool) -> Figures:
    with tempfile.TemporaryDirectory(prefix="ytf-bench-") as output:
        words = [
            str(python),
            "-m",
            "benchmarks",
            name,
            "--runs",
            "1",
            "--output",
            output,
            *(["--quick"] if quick else []),
        ]
        subprocess.run(words, check=True, cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        rows = json.loads((Path(output) / f"{name}.json").read_text())["rows"]
    return {f"{row['case']}: {row['figure']}": row["median"] for row in rows}
