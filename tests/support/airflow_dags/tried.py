"""A program for tests, for every version of Airflow: run its DAGs by ``dag.test()``, one after the other.

After the first one it tells what Airflow knows; in the second one it is ended.
"""

import importlib
import json
import logging
import sys
from datetime import timedelta

try:
    from airflow.sdk import DAG, task
except ImportError:  # Airflow 2
    from airflow.decorators import task  # type: ignore[no-redef]

    from airflow import DAG
import tf_yarn_ops.airflow
from airflow import __version__
from tf_yarn_ops.airflow import TensorFlowYarnOperator

VERSION = tuple(map(int, __version__.split(".")[:2]))
HERE = {"environment": f"venv://{sys.prefix}", "task_memory": 256, "poll_interval": 0.5}
# What Airflow makes of these tasks does not depend on YARN.
LOCAL = {**HERE, "tf_yarn_conn_id": "here"}
# What a version lacks: see the table of versions in docs/guides/airflow.md.
POLICY = {}
if VERSION >= (3, 3):
    POLICY["retry_policy"] = tf_yarn_ops.airflow.TfYarnRetryPolicy()
# dag.test() of Airflow 3.0 takes assets that no DAG processor has seen for inactive ones.
ASSET = {} if VERSION == (3, 0) else {"model_asset": "hdfs:///models/tried"}

with DAG("tried", schedule=None, default_args=POLICY) as tried:

    @task
    def choose():
        return {"rate": 0.5}

    @task.tf_yarn_cmd(cluster_requirement="worker:1", deferrable=True, **LOCAL)
    def command(best, run_id=None):
        result = f'{{"rate": {best["rate"]}, "loss": NaN}}'
        return {
            "task_command": f"echo '{result}' > $YTF_RESULT_FILE",
            "output_path": "/models/{{ dag.dag_id }}",
            "name": "tried in Airflow",
        }

    @task
    def told(report, ti=None):
        return {"report": report, "tf_yarn": ti.xcom_pull(task_ids="command", key="tf_yarn")}

    @task.tf_yarn(
        cluster_requirement="worker:1",
        deferrable=True,
        input="hdfs:///data",
        output_path="hdfs:///models/{{ dag.dag_id }}",
        **ASSET,
        **HERE,
    )
    def train(before, context=None):
        hostile = {"big": 2**100, "nul": "a\0b", "half": "\ud800", "__classname__": "builtins.int"}
        return {"metrics": before["report"]["metrics"], "task": context.type, **hostile}

    failing = TensorFlowYarnOperator(
        task_id="failing",
        cluster_requirement="worker:1",
        task_command="echo it went wrong in {{ dag.dag_id }}; exit 3",
        retries=1,
        retry_delay=timedelta(seconds=0),
        **LOCAL,
    )
    train(told(command(choose()))) >> failing

with DAG("ended", schedule=None) as ended:
    job = {"command": "sleep 600", "tasks": {"worker": {"instances": 1}}, "input": "s3://lake/digits/"}
    TensorFlowYarnOperator(task_id="train", spec=job, **HERE)


def first_of(*places):
    """Return the first name that this version has."""
    for module, name in places:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(str(places))


def lacking():
    """Return the error of each public name that this version lacks."""
    errors = {}
    for name in tf_yarn_ops.airflow.__all__:
        try:
            getattr(tf_yarn_ops.airflow, name)
        except ImportError as error:
            errors[name] = str(error)
    return errors


def known_of(dag, run):
    """Return what Airflow's database and its pages show of a run."""
    from airflow.utils.session import create_session

    event = first_of(("airflow.models.asset", "AssetEvent"), ("airflow.models.dataset", "DatasetEvent"))
    xcom = first_of(("airflow.models.xcom", "XComModel"), ("airflow.models.xcom", "XCom"))
    fields = first_of(("airflow.models.renderedtifields", "RenderedTaskInstanceFields"))
    serialized = first_of(
        ("airflow.serialization.serialized_objects", "DagSerialization"),
        ("airflow.serialization.serialized_objects", "SerializedDAG"),
    )
    stored = serialized.from_dict(json.loads(json.dumps(serialized.to_dict(dag))))
    with create_session() as session:
        instances = {ti.task_id: ti for ti in run.get_task_instances(session=session)}
        values = {
            f"{row.task_id}.{row.key}": row.value if VERSION < (3, 0) else xcom.deserialize_value(row)
            for row in session.query(xcom)
        }
        links = {
            f"{name}.{link}": stored.get_task(name).get_extra_links(ti, link)
            for name, ti in instances.items()
            for link in stored.get_task(name).extra_links
        }
        return {"states": {name: ti.state for name, ti in instances.items()},
                "tries": {name: ti.try_number for name, ti in instances.items()},
                "events": [row.extra for row in session.query(event)],
                "rendered": {row.task_id: row.rendered_fields for row in session.query(fields)},
                "xcoms": values, "links": links, "lacking": lacking()}  # fmt: skip


def main():
    if VERSION < (3, 0):
        tried.sync_to_db()  # so that the dataset is known
    run = tried.test()
    logging.disable()
    print("RESULT " + json.dumps(known_of(tried, run)), flush=True)
    logging.disable(logging.NOTSET)
    ended.test()


if __name__ == "__main__":
    main()
