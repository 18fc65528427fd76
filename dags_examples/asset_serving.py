"""Publish a model in one DAG; predict in another DAG, which Airflow starts for each new model.

The training publishes its model (``commit``) as the next version, ``served/1``, ``served/2``: each appears whole, after
its training has succeeded. That updates the asset, and the event has ``model_path`` with the version, ``metrics`` and
``application_id``. A failure publishes and updates nothing. The second DAG needs only the name of the asset, so it may
belong to another team and lie in another file.

Needs
-----
connection ``tf_yarn_default``, variables ``digits_folder`` and ``tf_environment``
    See ``first_training.py``.
folder ``examples/digits``
    The programs. The folder ``examples`` must lie beside the folder of this file. If you copy this file into
    ``$AIRFLOW_HOME/dags``, also run ``cp -r examples $AIRFLOW_HOME``.
"""

from pathlib import Path

from airflow.sdk import DAG, Asset, task

from tf_yarn_ops.airflow import TensorFlowYarnOperator

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"
MODEL = Asset("digits_model")
JOB = {
    "cluster_requirement": "worker:1",
    "task_memory": "1 GiB",
    "environment": "{{ var.value.tf_environment }}",
    "input": "{{ var.value.digits_folder }}/digits.npz",
    "file": [f"{DIGITS}/digits.py"],
    "deferrable": True,
    "retries": 2,
}

with DAG("digits_model_training", schedule=None, tags=["tf_yarn", "example"]) as training:
    TensorFlowYarnOperator(
        task_id="train",
        task_command="python ${DTF_TASK_SCRIPT} --steps 300",
        script=f"{DIGITS}/single.py",
        output_path="{{ var.value.digits_folder }}/served",
        commit="version",
        model_asset=MODEL,
        **JOB,
    )

with DAG("digits_predictions", schedule=[MODEL], tags=["tf_yarn", "example"]) as serving:

    @task
    def newest_model(*, triggering_asset_events):
        """Return the newest model: several trainings may have ended since the last run."""
        newest = max(triggering_asset_events[MODEL], key=lambda event: event.timestamp)
        return f"{newest.extra['model_path']}/model"

    newest_model() >> TensorFlowYarnOperator(
        task_id="predict",
        task_command="python ${DTF_TASK_SCRIPT} {{ ti.xcom_pull('newest_model') }}",
        script=f"{DIGITS}/predict.py",
        output_path="{{ var.value.digits_folder }}/predictions/{{ dag_run.run_after | ts_nodash }}",
        **JOB,
    )
