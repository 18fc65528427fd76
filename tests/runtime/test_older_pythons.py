"""The agent and the coordinator on real interpreters of the oldest releases that nodes may have."""

import os
import subprocess
from pathlib import Path

import pytest

from support.appmaster import AppMaster
from support.pythons import find_python
from support.runtime_jobs import job, task
from support.waiting import until
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.matrix


@pytest.fixture(params=["3.9", "3.10"])
def old_python(request, tmp_path):
    """Return a release and its interpreter, without any package."""
    base = find_python(request.param)
    if base is None:
        pytest.skip(f"no Python {request.param} on PATH, of pyenv or of uv")
    subprocess.run([base, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=120)
    return request.param, str(tmp_path / "venv" / "bin" / "python")


def test_a_cluster_restarts_and_succeeds_on_an_older_python(old_python, tmp_path):
    release, python = old_python
    # The second round may come before worker:0 has started in the first one.
    command = """[ $YTF_ROUND = 2 ] || { [ $TASK_INDEX = 1 ] && exit 7; sleep 600; }
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
