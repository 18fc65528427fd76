"""The DAGs of the rows with Celery that ``rows.py`` lacks: tasks behind a training, a pool, a short limit."""

import sys
from datetime import timedelta

from airflow.sdk import DAG, task

from tf_yarn_ops.airflow import TensorFlowYarnOperator

SMALL = {
    "cluster_requirement": "worker:1",
    "task_memory": 128,
    "environment": f"venv://{sys.prefix}",
    "tag": "{{ run_id }}",
    "poll_interval": 1,
}


@task
def read(report):
    """Return what a task behind the training sees of it."""
    import socket

    return {"host": socket.gethostname(), "reason": report["reason"], "metrics": report["metrics"]}


for kind, deferrable in {"deferred": True, "sync": False}.items():
    with DAG(f"pipeline_{kind}", schedule=None, is_paused_upon_creation=False) as dag:
        train = TensorFlowYarnOperator(
            task_id="train", task_command="{{ dag_run.conf['command'] }}", deferrable=deferrable, **SMALL
        )
        read(train.output)
    globals()[f"pipeline_{kind}"] = dag

with DAG("limited_sync", schedule=None, is_paused_upon_creation=False) as limited:
    TensorFlowYarnOperator(
        task_id="train", task_command="sleep 600", deferrable=False, execution_timeout=timedelta(seconds=40), **SMALL
    )

with DAG("pooled", schedule=None, is_paused_upon_creation=False) as pooled:
    TensorFlowYarnOperator.partial(task_id="train", deferrable=True, pool="trainings", **SMALL).expand(
        task_command=["sleep 8", "sleep 8", "exit 3"]
    )
