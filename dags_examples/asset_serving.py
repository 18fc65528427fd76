"""Train in one DAG, predict in another that runs whenever there is a new model.

The training names its model as an asset. When it succeeds, the asset's event carries ``model_path``, ``metrics`` and
``application_id``; a training that fails updates nothing. The second DAG may belong to other people, in another file:
all it has to know is the asset's name.

Needs
-----
connection ``tf_yarn_default``, variables ``digits_folder`` and ``tf_environment``
    As ``first_training.py`` says.
folder ``examples/digits``
    The programs, beside the folder of this file; of a copy in ``$AIRFLOW_HOME/dags``: ``cp -r examples $AIRFLOW_HOME``.
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
    "file": [f"{DIGITS}/digits.py", f"{DIGITS}/storage.py"],
    "deferrable": True,
}

with DAG("digits_model_training", schedule=None, tags=["tf_yarn", "example"]) as training:
    TensorFlowYarnOperator(
        task_id="train",
        task_command="python ${DTF_TASK_SCRIPT} --steps 300",
        script=f"{DIGITS}/single.py",
        output_path="{{ var.value.digits_folder }}/served/{{ dag_run.run_after | ts_nodash }}",
        model_asset=MODEL,
        **JOB,
    )

with DAG("digits_predictions", schedule=[MODEL], tags=["tf_yarn", "example"]) as serving:

    @task
    def newest_model(*, triggering_asset_events):
        """Several trainings may have ended since the last run: take the newest model."""
        newest = max(triggering_asset_events[MODEL], key=lambda event: event.timestamp)
        return f"{newest.extra['model_path']}/model"

    newest_model() >> TensorFlowYarnOperator(
        task_id="predict",
        task_command="python ${DTF_TASK_SCRIPT} {{ ti.xcom_pull('newest_model') }}",
        script=f"{DIGITS}/predict.py",
        output_path="{{ var.value.digits_folder }}/predictions/{{ dag_run.run_after | ts_nodash }}",
        **JOB,
    )
