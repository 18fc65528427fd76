"""``dag.test()`` without YARN, as in ``airflow dags test``: jobs of this machine (``local://``), and Ctrl-C on the wire."""

import json
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from support.airflow_site import plain_environ
from support.airflow_task import ID, SECOND, serving_site
from support.programs import ROOT
from support.secret_spellings import job_of_secrets
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

RUNNER = ROOT / "tests" / "support" / "airflow_dagtest.py"
DAG_FILE = """
import json
from pathlib import Path

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
    leaky = TensorFlowYarnOperator(task_id="leaky", cluster_requirement="worker:1", poll_interval=0.2,
                                   report_log_tail=8192, **json.loads(Path(SECRETS).read_text()))
"""


FUNCTION_FILE = """
from airflow.sdk import DAG, task

JOB = {"cluster_requirement": "chief:1", "poll_interval": 0.2, "tf_yarn_conn_id": "functions"}
FACTOR = 10


def scaled(number):
    return FACTOR * number


with DAG("functions", schedule=None):

    @task
    def choose():
        return {"rate": 0.5}

    @task.tf_yarn(**{**JOB, "cluster_requirement": "chief:1,worker:1"})
    def sync(best, secret, context=None, run_id=None):
        context.metrics(1, loss=0.25)
        return {"scaled": scaled(best["rate"]), "run": run_id, "task": context.type, "length": len(secret)}

    @task.tf_yarn(deferrable=True, **JOB)
    def deferred(before, **context):
        return before["scaled"] + 1

    @task.tf_yarn(**JOB)
    def failing(number):
        raise KeyError(f"no feature {number}")

    failing(deferred(sync(choose(), "{{ conn.hidden.password }}")))
"""


#: After the first Ctrl-C Airflow goes on to the second task.
INTERRUPTED = """
from airflow.sdk import DAG
from tf_yarn_ops.airflow import TensorFlowYarnOperator

JOB = {"cluster_requirement": "worker:1", "task_command": "sleep 600", "poll_interval": 0.2, "tf_yarn_conn_id": "wire"}

with DAG("interrupted", schedule=None) as dag:
    sync = TensorFlowYarnOperator(task_id="sync", **JOB)
    sync >> TensorFlowYarnOperator(task_id="deferred", deferrable=True, trigger_rule="all_done", **JOB)

if __name__ == "__main__":
    dag.test()
"""


@pytest.fixture(scope="module")
def ran(airflow_database, tmp_path_factory):
    """Run two DAGs in one process, whose Airflow has this machine as its connections; return their ends and the output.

    The process goes on to the DAG to interrupt, whose connection is a fake YARN: a second one would import Airflow again.
    """
    folder = tmp_path_factory.mktemp("local")
    secret = job_of_secrets(folder, waits=False)
    command = secret.command.replace("exit 4", "exit 0")
    (folder / "secrets.json").write_text(json.dumps({"task_command": command, "env": secret.env}))
    home, answer, log, temporary = (folder / name for name in ("home", "answer.json", "log", "temporary"))
    dags = home / "dags"
    dags.mkdir(parents=True)
    temporary.mkdir()
    (dags / "tried.py").write_text(DAG_FILE.replace("SECRETS", repr(str(folder / "secrets.json"))))
    (dags / "functions.py").write_text(FUNCTION_FILE)
    (dags / "interrupted.py").write_text(INTERRUPTED)
    shutil.copy(airflow_database, home / "airflow.db")
    words = [sys.executable, RUNNER, answer, "{}", "tried", "functions", "--", dags / "interrupted.py"]
    with serving_site(folder / "files") as site, open(log, "w") as output:
        connections = {
            "tf_yarn_default": {"conn_type": "tf_yarn", "host": f"local://{folder}/jobs"},
            "functions": {"conn_type": "tf_yarn", "host": f"local://{folder}/functions"},
            "hidden": {"conn_type": "aws", "login": "me", "password": "geheim-1"},
            "wire": site.connection,
        }
        environ = {
            **plain_environ(),
            **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(value) for name, value in connections.items()},
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "NO_PROXY": "127.0.0.1,localhost",
            "TMPDIR": str(temporary),
        }
        process = subprocess.Popen(words, env=environ, cwd=home, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, start_new_session=True)  # fmt: skip
        try:
            until(lambda: answer.exists() or process.poll() is not None, 300)
            assert answer.exists(), log.read_text()[-6000:]
            yield SimpleNamespace(**json.loads(answer.read_text()), output=log.read_text(), secret=secret, folder=folder,
                                  process=process, log=log, site=site)  # fmt: skip
        finally:
            process.kill()
            process.wait()


def test_operator_sensor_and_trigger_follow_jobs_of_this_machine(ran):
    assert ran.tried["state"] == "success", ran.output[-6000:]
    values = ran.tried["values"]
    assert all(values[task]["metrics"] == {"round": 1} for task in ("sync", "deferred", "sensor", "deferred_sensor"))
    assert values["sensor"]["application_id"] == values["walk"]["application_id"]
    assert "worker:0 | learns" in ran.output and "/proxy/local_" not in ran.output
    assert ran.secret.found_in({"XCom": json.dumps(values["leaky"]), "log": ran.output}) == {}
    assert "***" in values["leaky"]["metrics"]["free"]
    assert {folder.name for folder in (ran.folder / "jobs" / "jobs").iterdir()} == {
        values[task]["application_id"] for task in ("sync", "deferred", "walk", "leaky")
    }


def test_function_trains_with_its_arguments_and_its_value_is_the_xcom(ran):
    run, output = ran.functions, ran.output
    assert run["values"]["sync"] == {"scaled": 5.0, "run": run["values"]["sync"]["run"], "task": "chief", "length": 8}
    assert run["values"]["sync"]["run"].startswith("manual__") and run["values"]["deferred"] == 6.0
    assert run["state"] == "failed" and "in failing" in output and "KeyError: 'no feature 6" in output, output[-9000:]
    assert "geheim" not in output
    assert [*(ran.folder / "temporary").glob("ytf-function-*")] == []


def test_ctrl_c_kills_what_the_task_or_its_trigger_waits_for(ran):
    """Nothing trains on."""
    for application in (ID, SECOND):
        until(lambda name=application: f"{name} ACCEPTED in queue" in ran.log.read_text(), 200, 0.1, ran.log.read_text)
        ran.process.send_signal(signal.SIGINT)
        until(lambda name=application: ran.site.yarn.apps[name]["state"] == "KILLED", 60, what=ran.log.read_text)
    assert ran.process.wait(60) != 0
