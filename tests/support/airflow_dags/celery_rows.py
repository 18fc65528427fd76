"""The DAGs of the rows with Celery that ``rows.py`` lacks: tasks behind a training, a pool, a short limit, days."""

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

from airflow.sdk import DAG, task

from tf_yarn_ops.airflow import TensorFlowYarnOperator

SMALL = {
    "cluster_requirement": "worker:1",
    "task_memory": 128,
    "environment": f"venv://{sys.prefix}",
    "tag": "{{ run_id }}",
    "poll_interval": 1,
}
#: Texts that Python reads as something else.
TEXTS = ("1.10", "0x10", "1_000", "True", "{{ '1.10' }}")
#: A file that ends the trainings of the pool.
POOLED_OVER = Path(__file__).parents[1] / "pooled-over"
#: The day on which this folder was made, which all processes read alike; and a file that ends the days' trainings.
TODAY = datetime.fromtimestamp(Path(__file__).stat().st_mtime, timezone.utc).replace(
    hour=0, minute=0, second=0, microsecond=0
)
DAYS_OVER = Path(__file__).parents[1] / "days-over"


@task
def read(report):
    """Return what a task behind the training sees of it."""
    import socket

    return {"host": socket.gethostname(), "reason": report["reason"], "metrics": report["metrics"]}


for kind, deferrable in {"deferred": True, "sync": False}.items():
    with DAG(
        f"pipeline_{kind}", schedule=None, is_paused_upon_creation=False, render_template_as_native_obj=True
    ) as dag:
        train = TensorFlowYarnOperator(
            task_id="train", task_command="{{ dag_run.conf['command'] }}", deferrable=deferrable, stream_logs="chief",
            env={f"TEXT_{number}": text for number, text in enumerate(TEXTS)}, model_asset=f"hdfs:///models/{kind}",
            **SMALL)  # fmt: skip
        read(train.output)
    globals()[f"pipeline_{kind}"] = dag

with DAG("limited_sync", schedule=None, is_paused_upon_creation=False) as limited:
    TensorFlowYarnOperator(
        task_id="train", task_command="sleep 600", deferrable=False, execution_timeout=timedelta(seconds=60), **SMALL
    )

with DAG("pooled", schedule=None, is_paused_upon_creation=False) as pooled:
    TensorFlowYarnOperator.partial(task_id="train", deferrable=True, pool="trainings", **SMALL).expand(
        task_command=[f"until test -e {POOLED_OVER}; do sleep 1; done; exit {code}" for code in (0, 0, 3)]
    )

with DAG("deleted", schedule=None, is_paused_upon_creation=False) as deleted:
    TensorFlowYarnOperator(task_id="train", task_command="sleep 600", deferrable=True, **SMALL)

with DAG("daily", schedule="@daily", start_date=TODAY, catchup=True) as daily:
    TensorFlowYarnOperator(task_id="train", task_command=f"until test -e {DAYS_OVER}; do sleep 1; done", **SMALL)
