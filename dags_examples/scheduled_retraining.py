"""Train on the data of each day, and promote the model if it is better than the model in use.

- The logical date is in the paths: a repeated run reads the same data and writes to the same place. With
  ``catchup=True`` Airflow runs missed days one after the other, so each model is compared with the model that was in
  use before it.
- A failure of the cluster is retried, and the training continues from the last checkpoint. A failure of the program is
  not retried.
- The events of the asset ``digits_model_in_use`` tell which model is in use, and which ones were before. A DAG that
  serves the model can be scheduled by this asset.

Needs
-----
connection ``tf_yarn_default``, variable ``tf_environment``
    See ``first_training.py``.
variable ``digits_folder``
    A folder with the data of each day in ``days/<YYYY-MM-DD>.npz``. The models are written to ``models/<YYYY-MM-DD>``.
folder ``examples/digits``
    The programs. The folder ``examples`` must lie beside the folder of this file. If you copy this file into
    ``$AIRFLOW_HOME/dags``, also run ``cp -r examples $AIRFLOW_HOME``.
"""

from datetime import timedelta
from pathlib import Path

import pendulum
from airflow.sdk import DAG, Asset, task
from airflow.sdk.exceptions import AirflowSkipException

from tf_yarn_ops.airflow import TensorFlowYarnOperator, TfYarnRetryPolicy

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"
MODEL_IN_USE = Asset("digits_model_in_use")

with DAG(
    "digits_retraining",
    schedule="@daily",
    # With catchup=True Airflow trains every day since start_date: first write the first day of your data there.
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["tf_yarn", "example"],
) as dag:
    train = TensorFlowYarnOperator(
        task_id="train",
        task_command="python ${DTF_TASK_SCRIPT} --steps 300",
        cluster_requirement="worker:1",
        task_memory="1 GiB",
        script=f"{DIGITS}/single.py",
        file=[f"{DIGITS}/digits.py"],
        environment="{{ var.value.tf_environment }}",
        input="{{ var.value.digits_folder }}/days/{{ ds }}.npz",
        output_path="{{ var.value.digits_folder }}/models/{{ ds }}",
        name="digits {{ ds }}",
        deferrable=True,
        execution_timeout=timedelta(hours=2),
        retries=3,
        retry_policy=TfYarnRetryPolicy(retry_delay=timedelta(minutes=5)),
    )

    @task(inlets=[MODEL_IN_USE], outlets=[MODEL_IN_USE])
    def promote(report, *, inlet_events, outlet_events):
        """Promote the new model if it is better. Otherwise skip: a skipped task does not update the asset."""
        accuracy = report["metrics"]["accuracy"]
        promoted = inlet_events[MODEL_IN_USE]
        in_use = promoted[-1].extra if len(promoted) else {"model": "none", "accuracy": 0.0}
        if accuracy <= in_use["accuracy"]:
            raise AirflowSkipException(f"{in_use['model']} stays in use: {accuracy} against {in_use['accuracy']}")
        outlet_events[MODEL_IN_USE].extra = {"model": report["metrics"]["model"], "accuracy": accuracy}

    promote(train.output)
