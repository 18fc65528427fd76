"""A DAG on ``local://``: operator, sensor and trigger follow jobs of this machine, without YARN."""

import json
import shutil
import subprocess
import sys

import pytest

from support.airflow_site import plain_environ
from support.programs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

RUNNER = ROOT / "tests" / "support" / "airflow_dagtest.py"
DAG_FILE = """
from airflow.sdk import DAG
from tf_yarn_ops.airflow import TensorFlowYarnOperator, TensorFlowYarnSensor

JOB = {"cluster_requirement": "worker:1", "poll_interval": 0.2,
       "task_command": 'echo "learns"; echo "{\\\\"round\\\\": $YTF_ROUND}" > "$YTF_RESULT_FILE"'}

with DAG("tried", schedule=None):
    sync = TensorFlowYarnOperator(task_id="sync", stream_logs="all", **JOB)
    deferred = TensorFlowYarnOperator(task_id="deferred", deferrable=True, **JOB)
    walk = TensorFlowYarnOperator(task_id="walk", wait_for_completion=False, **JOB)
    seen = {"application_id": "{{ ti.xcom_pull('walk')['application_id'] }}", "poke_interval": 0.2}
    sensors = [TensorFlowYarnSensor(task_id="sensor", **seen),
               TensorFlowYarnSensor(task_id="deferred_sensor", deferrable=True, **seen)]
    sync >> deferred >> walk >> sensors
"""


def test_operator_sensor_and_trigger_follow_jobs_of_this_machine(airflow_database, tmp_path):
    home, answer = tmp_path / "home", tmp_path / "answer.json"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "tried.py").write_text(DAG_FILE)
    shutil.copy(airflow_database, home / "airflow.db")
    connection = {"conn_type": "tf_yarn", "host": f"local://{tmp_path}/jobs"}
    environ = {**plain_environ(), "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
               "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"), "AIRFLOW_CONN_TF_YARN_DEFAULT": json.dumps(connection)}
    done = subprocess.run([sys.executable, RUNNER, answer, "{}", "tried"], env=environ, cwd=home, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-6000:]
    run = json.loads(answer.read_text())["tried"]
    assert run["state"] == "success", done.stdout[-6000:]
    values = run["values"]
    assert all(values[task]["metrics"] == {"round": 1} for task in ("sync", "deferred", "sensor", "deferred_sensor"))
    assert values["sensor"]["application_id"] == values["walk"]["application_id"]
    assert "worker:0 | learns" in done.stdout and "/proxy/local_" not in done.stdout
    assert {folder.name for folder in (tmp_path / "jobs" / "jobs").iterdir()} == {
        values[task]["application_id"] for task in ("sync", "deferred", "walk")}
