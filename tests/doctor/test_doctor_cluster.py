"""``ytf doctor`` on the real Hadoop: HDFS, queues, rights, nodes, an application."""

import json
import os
import re
import subprocess
import sys

import pytest

from support.programs import ROOT, YTF

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def doctor(cluster, *words):
    """Return the exit code and the results by the names of the checks."""
    done = subprocess.run(
        [*YTF, "doctor", "--json", *words],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **cluster.environ, "PYTHONPATH": str(ROOT)},
    )
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"], done.stderr
    return done.returncode, {item["check"]: item for item in document["checks"]}


def test_everything_is_checked_and_an_application_reports_its_python(minicluster):
    code, found = doctor(minicluster, "--submit", "--environment", f"venv://{sys.prefix}")
    told = {name: item["symptom"] for name, item in found.items() if item["symptom"]}
    assert (code, told) == (0, {"security": "UNSECURED", "queue_acl": "ANYBODY_KILLS"}), found
    assert re.search(r"hdfs://\S+ over HTTP: http://\S+ ACTIVE", found["filesystem"]["message"])
    assert abs(next(iter(found["clock"]["facts"]["ahead_seconds"].values()))) < 60
    assert len(found["clock"]["facts"]["ahead_seconds"]) == 2, "the NameNode's clock too"
    assert found["rights"]["message"].endswith("mode 711")
    assert found["queue"]["facts"] | {"applications": 0, "most_applications": 0} == {
        "queue": "default",
        "scheduler": "capacityScheduler",
        "capacity": 80.0,
        "most_capacity": 100.0,
        "applications": 0,
        "most_applications": 0,
        "lifetime": -1,
    }
    application = found["application"]["facts"]
    assert application["node"]["executable"] == f"{sys.prefix}/bin/python"
    assert application["node"]["python"] == application["master"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "TensorFlow 2." in found["application"]["message"]
    assert found["logs"]["facts"]["lines"] > 3


def test_an_interpreter_that_the_nodes_lack_is_a_fault_of_the_application(minicluster):
    code, found = doctor(minicluster, "--submit", "--environment", "venv:///nowhere")
    assert (code, found["application"]["symptom"]) == (2, "APPLICATION_FAILED")
    assert re.search(
        "there is no Python /nowhere/bin/python on .+: correct the environment", found["application"]["message"]
    )
    assert found["application"]["facts"]["application"] in found["application"]["advice"]


def test_an_application_that_waits_too_long_is_killed(minicluster):
    code, found = doctor(minicluster, "--submit", "--environment", f"venv://{sys.prefix}", "--timeout", "1")
    assert (code, found["application"]["symptom"]) == (5, "APPLICATION_SLOW"), found["application"]
    application = found["application"]["facts"]["application"]
    state = subprocess.run(
        [*YTF, "status", "--json", application],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **minicluster.environ, "PYTHONPATH": str(ROOT)},
    )
    assert json.loads(state.stdout)["final_status"] == "KILLED"
