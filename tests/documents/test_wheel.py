"""The package without a clone: a wheel in a fresh environment without extras starts Hadoop, trains and reports.

On Java 25, where a job that fails is seen too: `tests/minicluster/test_hadoop.py` has 11.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from support.javas import java_home
from support.packages import product_wheel
from support.pythons import find_python
from support.source import PACKAGE, ROOT
from support.waiting import PATIENCE
from tf_yarn_ops.environments.pip_settings import read_pip_settings

pytestmark = pytest.mark.cluster


def run(*words, cwd, env=None, timeout=120):
    """Run a command; return what it printed on stdout."""
    ran = subprocess.run(
        list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout * PATIENCE
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def fresh(tmp_path):
    """Return the folder of a fresh environment into which the wheel is installed, without extras.

    Its Python is the oldest that is supported, where the machine has it.
    """
    wheel = product_wheel(tmp_path / "source")
    shutil.rmtree(tmp_path / "source" / PACKAGE.name)
    # In a list with hashes uv takes no wheel of ours.
    rows = [line.rstrip("\\") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    (tmp_path / "constraints.txt").write_text("\n".join(rows))
    uv, home = [sys.executable, "-m", "uv"], tmp_path / "fresh"
    run(*uv, "venv", "--quiet", "--python", find_python("3.10") or sys.executable, home, cwd=tmp_path)
    install = [*uv, "pip", "install", "--quiet", "--python", home / "bin/python", "-c", tmp_path / "constraints.txt"]
    run(*install, wheel, cwd=tmp_path, env=os.environ | read_pip_settings(os.environ), timeout=280)
    return home


@pytest.mark.timeout(600)
def test_the_wheel_starts_hadoop_trains_and_reports(fresh, tmp_path):
    home = tmp_path / "work"
    home.mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("YTF_", "PYTHON", "HADOOP_", "VIRTUAL_ENV")) or name == "YTF_CACHE"
    }
    java = java_home(25)
    env = {
        **kept,
        "PATH": f"{fresh}/bin:{os.environ['PATH']}",
        "YTF_MINICLUSTER_DIR": str(tmp_path / "hadoop"),
        "JAVA_HOME": str(java),
    }
    assert run(
        fresh / "bin" / "python", "-c", "import tf_yarn_ops; print(tf_yarn_ops.__file__)", cwd=home, env=env
    ).startswith(str(fresh))
    assert not {"tensorflow", "airflow"} & {path.name for path in fresh.glob("lib/python*/site-packages/*")}
    try:
        run("ytf", "minicluster", "up", "--light", cwd=home, env=env)
        train = f"""
            eval "$(ytf minicluster env)"
            ytf-submit --wait -n line -m 256 -r worker:1 --environment venv://{fresh} \\
                'test $JAVA_HOME = {java} && echo "{{\\"steps\\": 3}}" > $YTF_RESULT_FILE' >id &&
            ytf report --json "$(cat id)" || exit
            ytf-submit --wait -m 256 -r worker:1 --environment venv://{fresh} 'exit 3' >failed; echo $? >code
        """
        report = json.loads(run("bash", "-c", train, cwd=home, env=env))
    finally:
        run("ytf", "minicluster", "down", cwd=home, env=env)
    assert (report["reason"], report["name"], report["metrics"]) == ("SUCCEEDED", "line", {"steps": 3})
    assert (home / "code").read_text() == "1\n" and (home / "failed").read_text().startswith("application_")
    assert report["application_id"] == (home / "id").read_text().strip()
