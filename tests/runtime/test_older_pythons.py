"""Real interpreters of the oldest Python releases: 3.9 on the nodes, 3.10 where jobs are submitted too."""

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.appmaster import AppMaster, until
from support.runtime_jobs import job, task
from support.source import PACKAGE, ROOT
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow

#: Where pyenv and uv keep interpreters that are not on PATH.
FOLDERS = ("~/.pyenv/versions/{release}.*/bin/python", "~/.local/share/uv/python/cpython-{release}.*/bin/python")


def interpreter_of(release):
    """Return the path of an interpreter; skip the test where there is none."""
    on_path = shutil.which(f"python{release}")
    elsewhere = [path for pattern in FOLDERS for path in glob.glob(os.path.expanduser(pattern.format(release=release)))]
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{release}')"
    for path in filter(None, [on_path, *elsewhere]):
        if subprocess.run([path, "-c", check], capture_output=True, timeout=60).returncode == 0:
            return path
    pytest.skip(f"no Python {release} on PATH, of pyenv or of uv")


def venv_of(release, folder, *packages):
    """Make an environment with packages from the registry; return its folder."""
    subprocess.run([interpreter_of(release), "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    python = str(folder / "bin" / "python")
    pip = ["uv", "pip", "install", "--python", python] if shutil.which("uv") else [
        sys.executable, "-m", "pip", "--python", python, "install", "--no-compile", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "-q", *map(str, packages)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("release", ["3.9", "3.10"])
def test_a_cluster_restarts_and_succeeds_on_an_older_python(release, tmp_path):
    """The coordinator needs grpcio and protobuf, the agent nothing."""
    python = str(venv_of(release, tmp_path / "venv", "grpcio", "protobuf") / "bin" / "python")
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


def test_the_package_installs_and_builds_a_request_on_the_oldest_python(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(PACKAGE, source / "tf_yarn_ops", ignore=shutil.ignore_patterns("__pycache__"))
    home = venv_of("3.10", tmp_path / "venv", source)
    words = ["--dry_run", "--environment", "venv:///opt/tf", "-r", "ps:1,worker:2", "python train.py"]
    done = subprocess.run([home / "bin" / "ytf-submit", *words], capture_output=True, text=True, cwd=tmp_path, timeout=120,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "exec /opt/tf/bin/python" in done.stdout and "instances: 2" in done.stdout
    everything = "import pkgutil, tf_yarn_ops; [__import__(m.name) for m in pkgutil.walk_packages(tf_yarn_ops.__path__, " \
                 "'tf_yarn_ops.') if '.airflow' not in m.name]"
    done = subprocess.run([home / "bin" / "python", "-c", everything], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
