"""The agent and the coordinator on real interpreters of the oldest releases that the nodes may have."""

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.appmaster import AppMaster, until
from support.runtime_jobs import job, task
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow

#: Where pyenv and uv keep interpreters that are not on PATH.
FOLDERS = ("~/.pyenv/versions/{release}.*/bin/python", "~/.local/share/uv/python/cpython-{release}.*/bin/python")


def interpreters(release):
    """Return the paths where an interpreter of a release may lie."""
    on_path = shutil.which(f"python{release}")
    elsewhere = [path for pattern in FOLDERS for path in glob.glob(os.path.expanduser(pattern.format(release=release)))]
    return [on_path, *elsewhere] if on_path else elsewhere


@pytest.fixture(params=["3.9", "3.10"])
def old_python(request, tmp_path):
    """Return the release and an interpreter of it that has what the coordinator needs: grpcio and protobuf."""
    release = request.param
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{release}')"
    found = [path for path in interpreters(release)
             if subprocess.run([path, "-c", check], capture_output=True, timeout=60).returncode == 0]
    if not found:
        pytest.skip(f"no Python {release} on PATH, of pyenv or of uv")
    home = tmp_path / "venv"
    python = str(home / "bin" / "python")
    subprocess.run([found[0], "-m", "venv", "--without-pip", home], check=True, timeout=120)
    pip = ["uv", "pip", "install", "--python", python] if shutil.which("uv") else [
        sys.executable, "-m", "pip", "--python", python, "install"]
    packages = subprocess.run([*pip, "-q", "--only-binary", ":all:", "grpcio", "protobuf"],
                              capture_output=True, text=True, timeout=300)
    if packages.returncode:
        pytest.skip(f"grpcio and protobuf for Python {release} could not be installed: {packages.stderr[-300:]}")
    return release, python


def test_a_cluster_restarts_and_succeeds_on_an_older_python(old_python, tmp_path):
    release, python = old_python
    command = """[ -e again ] || { touch again; [ $TASK_INDEX = 1 ] && exit 7; sleep 60; }
        until [ -e ../go ]; do sleep 0.05; done; echo '{"accuracy": 0.9}' > $YTF_RESULT_FILE"""
    spec = job(command, restart=RestartPolicy("cluster", backoff=0.1))
    with AppMaster(tmp_path / "job", spec, python=python, master_python=python) as am:
        am.log_says("Published the cluster spec, round 2")
        until(lambda: "ytf" in am.pages)
        for process in (am.coordinator, am.container("ps_0").process, am.container("worker_1").process):
            assert os.path.basename(os.readlink(f"/proc/{process.pid}/exe")) == f"python{release}"
        Path(am.folder, "go").touch()
        report = am.wait()
    assert (report.reason, report.metrics) == (Reason.SUCCEEDED, {"accuracy": 0.9}), report.message
    assert "worker:1 failed with exit code 7" in report.rounds[1].cause
    assert task(report, "ps:0").state == "stopped" and task(report, "worker:1").starts == 2
