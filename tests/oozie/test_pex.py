"""The package in one file."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.oozie_package import ADDRESSES, run
from support.programs import ROOT

LAUNCH = ROOT / "tf_yarn_ops" / "oozie" / "launch.sh"


def launch(folder, python, **env):
    return subprocess.run(
        ["bash", str(LAUNCH), python],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", **env},
    )


@pytest.mark.matrix
def test_a_pex_runs_the_action_on_an_interpreter_without_the_package(place):
    packed = run("package", "job.yaml", "--out", "app", "--pex", *ADDRESSES)
    assert packed.returncode == 0 and (place / "app" / "ytf.pex").stat().st_size > 10 << 20, packed.stderr
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    asked = launch(place / "app", str(base), HOME="/nowhere")
    assert asked.returncode == 2 and "only Oozie starts this program" in asked.stderr, asked.stderr
    assert "reason=SPEC_INVALID\n" in asked.stdout
    with zipfile.ZipFile(io.BytesIO((place / "app" / "ytf.pex").read_bytes())) as pex:
        assert {"tf_yarn_ops/oozie/launch.sh", "tf_yarn_ops/oozie/schemas/NOTICE"} <= set(pex.namelist())
