"""The DAGs of the rows with Celery: tasks behind a training, days, a pool, a short limit, losses."""

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

from airflow.sdk import DAG, task

from tf_yarn_ops.airflow import TensorFlowYarnOperator

SMALL = {
    "cluster_requirement": "worker:1",
    "task_memory": 128,
    "environment": f"venv://{sys.prefix}",
    # By this tag a row finds all its applications, also those of another identity.
    "tag": "{{ run_id }}",
    "poll_interval": 1,
}
#: The folder of the files that end trainings, and of the result of a pipeline.
FOLDER = Path(__file__).parents[1]
#: Texts that Python reads as something else.
TEXTS = ("1.10", "0x10", "1_000", "True", "{{ '1.10' }}")
#: The day on which this file was copied, which all processes read alike.
TODAY = datetime.fromtimestamp(Path(__file__).stat().st_mtime, timezone.utc).replace(
    hour=0, minute=0, second=0, microsecond=0
)
PIPELINES = {
    "sync": {"schedule": "@daily", "start_date": TODAY, "catchup": True},
    "deferred": {"schedule": None, "is_paused_upon_creation": False},
}


def train_until(name):
    """Return a command that trains until a file is there."""
    return f"until test -e {FOLDER}/{name}-over; do sleep 1; done; "


@task
def read(report):
    """Return what a task behind the training sees of it."""
    import socket

    return {"host": socket.gethostname(), "reason": report["reason"], "metrics": report["metrics"]}


for kind, options in PIPELINES.items():
    command = (
        f'env | grep ^TEXT_; cp {FOLDER}/result.json "$YTF_RESULT_FILE"; cp {FOLDER}/result.json "$YTF_METRICS_FILE"'
    )
    with DAG(f"pipeline_{kind}", render_template_as_native_obj=True, **options) as dag:
        train = TensorFlowYarnOperator(
            task_id="train", task_command=train_until(f"pipeline_{kind}") + command, deferrable=kind == "deferred",
            env={f"TEXT_{number}": text for number, text in enumerate(TEXTS)}, model_asset=f"hdfs:///models/{kind}",
            stream_logs="chief", **SMALL)  # fmt: skip
        read(train.output)
    globals()[f"pipeline_{kind}"] = dag

with DAG("lost_sync", schedule=None, is_paused_upon_creation=False) as lost:
    TensorFlowYarnOperator(
        task_id="train", task_command="{{ dag_run.conf['command'] }}", deferrable=False, retries=30,
        retry_delay=timedelta(seconds=5), **SMALL)  # fmt: skip

with DAG("limited_sync", schedule=None, is_paused_upon_creation=False) as limited:
    TensorFlowYarnOperator(
        task_id="train", task_command="sleep 600", deferrable=False, execution_timeout=timedelta(seconds=60), **SMALL
    )

with DAG("pooled", schedule=None, dagrun_timeout=timedelta(hours=1), is_paused_upon_creation=False) as pooled:
    TensorFlowYarnOperator.partial(task_id="train", deferrable=True, pool="trainings", **SMALL).expand(
        task_command=[f"{train_until('pooled')}exit 0", f"{train_until('pooled')}exit 3", "sleep 600"]
    )

with DAG("deleted", schedule=None, is_paused_upon_creation=False) as deleted:
    TensorFlowYarnOperator(task_id="train", task_command="sleep 600", deferrable=True, **SMALL)
