"""Ctrl-C on ``dag.test()``, which is what ``airflow dags test`` and ``airflow tasks test`` call: nothing trains on."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from support.airflow_site import plain_environ
from support.airflow_task import ID, SECOND
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

#: After the first Ctrl-C Airflow goes on to the second task.
DAG_FILE = """
from airflow.sdk import DAG
from tf_yarn_ops.airflow import TensorFlowYarnOperator

JOB = {"cluster_requirement": "worker:1", "task_command": "sleep 600", "poll_interval": 0.2}

with DAG("tried", schedule=None) as dag:
    sync = TensorFlowYarnOperator(task_id="sync", **JOB)
    sync >> TensorFlowYarnOperator(task_id="deferred", deferrable=True, trigger_rule="all_done", **JOB)

if __name__ == "__main__":
    dag.test()
"""


def test_ctrl_c_kills_what_the_task_or_its_trigger_waits_for(site, airflow_database, tmp_path):
    home, log = tmp_path / "home", tmp_path / "log"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "tried.py").write_text(DAG_FILE)
    shutil.copy(airflow_database, home / "airflow.db")
    own = ("AIRFLOW_CONN_TF_YARN_DEFAULT", "AIRFLOW_VAR_TF_YARN_DEPLOYMENT_ID")  # the fake ResourceManager
    environ = {**plain_environ(), **{name: os.environ[name] for name in own}, "AIRFLOW_HOME": str(home),
               "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
               "NO_PROXY": "127.0.0.1,localhost"}  # fmt: skip

    def press(application):
        until(lambda: f"{application} ACCEPTED in queue" in log.read_text(), 200, 0.1)
        process.send_signal(signal.SIGINT)
        until(lambda: site.yarn.apps[application]["state"] == "KILLED", 60)

    with open(log, "w") as output:
        process = subprocess.Popen([sys.executable, home / "dags" / "tried.py"], env=environ, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output, start_new_session=True)  # fmt: skip
    try:
        press(ID)
        press(SECOND)
        assert process.wait(60) != 0
    except BaseException:
        print(log.read_text()[-8000:])
        raise
    finally:
        process.kill()
        process.wait()
