"""The DAGs of the rows: one task ``train`` each; the command comes with the run, the rest stands here."""

import sys
from datetime import timedelta

from airflow.sdk import DAG, get_parsing_context

from tf_yarn_ops.airflow import TensorFlowYarnCleanupOperator, TensorFlowYarnOperator

KINDS = {"deferred": True, "sync": False}
SMALL = {
    "cluster_requirement": "worker:1",
    "task_memory": 128,
    "environment": f"venv://{sys.prefix}",
    # By this tag a row finds all its applications, also those of another identity.
    "tag": "{{ run_id }}",
    "yarn_queue": "{{ dag_run.conf.get('queue', 'default') }}",
    "poll_interval": 1,
    "retry_delay": timedelta(seconds=1),
}
PRINTING = {"env": {"VAULT": "{{ conn.vault.password }}"}, "stream_logs": "chief"}
#: A task makes its DAG alone, and that which warns: to make all of them takes each task 0.1 s of CPU.
WANTED = get_parsing_context().dag_id


def add(name, deferrable, **options):
    if WANTED not in (None, name) and name != "fileless":
        return
    with DAG(name, schedule=None, is_paused_upon_creation=False) as dag:
        TensorFlowYarnOperator(
            task_id="train", task_command="{{ dag_run.conf['command'] }}", deferrable=deferrable, **{**SMALL, **options}
        )
    globals()[name] = dag


for kind, deferrable in KINDS.items():
    add(f"once_{kind}", deferrable, **PRINTING)
    add(f"retry_{kind}", deferrable, retries=1)
    # A try that starts while the API server is still away is burnt.
    add(f"lost_{kind}", deferrable, retries=15, retry_delay=timedelta(seconds=15))
    # A worker is ended in a gap of each try but the last.
    add(f"gaps_{kind}", deferrable, retries=2, tf_yarn_conn_id=f"gaps_{kind}")
    add(f"hung_{kind}", deferrable, tf_yarn_conn_id=f"hung_{kind}")

add("printing_deferred", True, retries=1, **PRINTING)
add("often_sync", False, retries=5)
add("short_task_deferred", True, execution_timeout=timedelta(seconds=90))
add("gap_deferred", True, retries=1, tf_yarn_conn_id="gap_deferred")
add("held_deferred", True, retries=1, tf_yarn_conn_id="held_deferred")
# Both fail before they submit.
add("fileless", False, file=["train.py=not/there.py"], queue="ml", yarn_queue=None)
add("unrendered", False, input="{{ nothing.there }}")
add("secured", True, tf_yarn_conn_id="secured")
add("backstop", True, execution_timeout=timedelta(seconds=60), tf_yarn_conn_id="backstop")

with DAG("cleanup", schedule=None, is_paused_upon_creation=False) as cleanup:
    TensorFlowYarnCleanupOperator(task_id="train")

with DAG("many", schedule=None, is_paused_upon_creation=False) as many:
    TensorFlowYarnOperator.partial(
        task_id="train", deferrable=True, tf_yarn_conn_id="many", **{**SMALL, "poll_interval": 2}
    ).expand(task_command=["sleep 600"] * 2)
