"""End trainings whose tasks in Airflow are over, every ten minutes: a task was marked as failed while no triggerer ran.

Needs
-----
connection ``tf_yarn_default``
    See ``first_training.py``.
setting ``[tf_yarn] deployment_id``
    Another Airflow on the same cluster must have another one.
"""

from datetime import datetime

from airflow.sdk import DAG

from tf_yarn_ops.airflow import TensorFlowYarnCleanupOperator

with DAG("tf_yarn_cleanup", schedule="*/10 * * * *", start_date=datetime(2026, 11, 1), catchup=False,
         max_active_runs=1, tags=["tf_yarn"]):  # fmt: skip
    TensorFlowYarnCleanupOperator(task_id="end_abandoned")
