"""The DAGs of the soak on several hosts: two workers of a cluster, the application named as the DAG run, many retries."""

import sys
from datetime import timedelta

from airflow.sdk import DAG

from tf_yarn_ops.airflow import TensorFlowYarnOperator, TfYarnRetryPolicy

for kind, deferrable in {"deferred": True, "sync": False}.items():
    with DAG(f"soak_{kind}", schedule=None, is_paused_upon_creation=False) as dag:
        TensorFlowYarnOperator(
            task_id="train",
            task_command="{{ dag_run.conf['command'] }}",
            name="{{ run_id }}",
            deferrable=deferrable,
            retries=30,
            retry_policy=TfYarnRetryPolicy(timedelta(seconds=2)),
            retry_delay=timedelta(seconds=2),
            cluster_requirement="worker:2",
            task_memory=256,
            stop_grace=2,
            heartbeat_timeout=20,
            environment=f"venv://{sys.prefix}",
            poll_interval=1,
        )
    globals()[f"soak_{kind}"] = dag
