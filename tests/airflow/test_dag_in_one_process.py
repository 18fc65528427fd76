"""A DAG as people try it: ``dag.test()`` in one process, on real daemons, with everything that only Airflow itself can show."""

import json
import shutil
import subprocess
import sys
import textwrap

import pytest

from support.airflow_site import plain_environ

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(800)]

DAG_FILE = """
import json, sys
from airflow.sdk import DAG, Asset, task
from tf_yarn_ops.airflow import TensorFlowYarnOperator, TfYarnRetryPolicy

HERE = {"environment": f"venv://{sys.prefix}", "task_memory": 256, "poll_interval": 0.5}

with DAG("tried", schedule=None, default_args={"retry_policy": TfYarnRetryPolicy()}) as dag:

    @task
    def choose():
        return {"rate": 0.5}

    @task.tf_yarn(cluster_requirement="worker:2", deferrable=True, model_asset="hdfs:///models/tried", **HERE)
    def train(best, run_id=None):
        result = '{"rate": %s, "loss": NaN}' % best["rate"]
        return {"task_command": f"echo '{result}' > $YTF_RESULT_FILE", "output_path": "hdfs:///models/{{ dag.dag_id }}",
                "name": "tried in Airflow"}

    @task
    def told(report, ti=None):
        return {"report": report, "tf_yarn": ti.xcom_pull(task_ids="train", key="tf_yarn")}

    failing = TensorFlowYarnOperator(
        task_id="failing", cluster_requirement="worker:1", task_command="echo it went wrong; exit 3", retries=2, **HERE)
    told(train(choose())) >> failing

if __name__ == "__main__":
    run = dag.test()
    from airflow.models.asset import AssetEvent
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    with create_session() as session:
        out = {"states": {ti.task_id: ti.state for ti in run.get_task_instances(session=session)},
               "tries": {ti.task_id: ti.try_number for ti in run.get_task_instances(session=session)},
               "events": [event.extra for event in session.query(AssetEvent)],
               "xcoms": {f"{x.task_id}.{x.key}": XComModel.deserialize_value(x) for x in session.query(XComModel)}}
    print("RESULT " + json.dumps(out))
"""


@pytest.fixture(scope="module")
def tried(minicluster, airflow_database, tmp_path_factory):
    """Return what Airflow knows after the DAG has run."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    (home / "dags" / "tried.py").write_text(textwrap.dedent(DAG_FILE))
    environ = {
        **plain_environ(),
        "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__TF_YARN__DEPLOYMENT_ID": "tried", "NO_PROXY": "127.0.0.1,localhost",
        "AIRFLOW_CONN_TF_YARN_DEFAULT": json.dumps({"conn_type": "tf_yarn", "host": minicluster.resourcemanager_url}),
    }  # fmt: skip
    shutil.copy(airflow_database, home / "airflow.db")
    done = subprocess.run([sys.executable, str(home / "dags" / "tried.py")], env=environ, capture_output=True, text=True,
                          timeout=400)
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert results, done.stdout[-4000:] + done.stderr[-4000:]
    return {**json.loads(results[0].removeprefix("RESULT ")), "log": done.stdout + done.stderr}


def test_a_decorated_function_trains_deferred_and_its_metrics_reach_the_next_task(tried):
    assert (tried["states"]["train"], tried["states"]["told"]) == ("success", "success")
    told = tried["xcoms"]["told.return_value"]
    assert told["report"]["metrics"] == {"rate": 0.5, "loss": "nan"}
    assert told["report"]["name"] == told["tf_yarn"]["name"] == "tried in Airflow"
    assert told["report"] == tried["xcoms"]["train.tf_yarn_status"] == tried["xcoms"]["train.return_value"]


def test_the_asset_has_the_models_path_metrics_and_application(tried):
    report = tried["xcoms"]["train.return_value"]
    assert tried["events"] == [{"model_path": "hdfs:///models/tried", "metrics": report["metrics"],
                                "application_id": report["application_id"]}]


def test_the_links_are_in_airflows_database(tried):
    application_id = tried["xcoms"]["train.return_value"]["application_id"]
    for key in ("tf_yarn_link_yarn_application", "tf_yarn_link_yarn_logs"):
        assert application_id.removeprefix("application") in tried["xcoms"][f"train.{key}"]
    assert tried["xcoms"]["train.tf_yarn_link_tensorboard"] == ""


def test_a_failing_program_is_not_retried_where_the_policy_says_so_and_its_log_is_told(tried):
    assert (tried["states"]["failing"], tried["tries"]["failing"]) == ("failed", 1)
    assert tried["xcoms"]["failing.tf_yarn_status"]["reason"] == "TASK_FAILED"
    assert "failing.return_value" not in tried["xcoms"]
    assert "it went wrong" in tried["log"] and "TfYarnJobFailed" in tried["log"]


def test_the_log_is_short(tried):
    """Neither a line for each staged file nor one for each request. (Airflow itself warns of its own use of httpx.)"""
    lines = tried["log"].splitlines()
    assert not [line for line in lines if "HTTP Request" in line]
    assert len([line for line in lines if "tf_yarn_ops" in line]) < 60
