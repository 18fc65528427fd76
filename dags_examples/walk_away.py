"""Submit a training from a file without waiting, wait for it in another task, and read its log by the hook.

The sensor waits for every application of the cluster, also for one that Azkaban, Oozie or a person has submitted.

Needs
-----
connection ``tf_yarn_default``, variables ``digits_folder`` and ``tf_environment``
    See ``first_training.py``.
folder ``examples/digits``
    The programs, and the job ``job.yaml``, whose texts are templates. The folder ``examples`` must lie beside the
    folder of this file. If you copy this file into ``$AIRFLOW_HOME/dags``, also run ``cp -r examples $AIRFLOW_HOME``.
"""

from pathlib import Path

from airflow.sdk import DAG, Param, task

from tf_yarn_ops.airflow import TensorFlowYarnOperator, TensorFlowYarnSensor, YarnHook

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"

with DAG(
    "digits_walk_away",
    schedule=None,
    params={"steps": Param(300, type="integer", minimum=1), "programs": str(DIGITS)},
    tags=["tf_yarn", "example"],
) as dag:
    submit = TensorFlowYarnOperator(task_id="submit", spec=f"{DIGITS}/job.yaml", wait_for_completion=False, retries=2)
    wait = TensorFlowYarnSensor(
        task_id="wait", application_id="{{ ti.xcom_pull('submit')['application_id'] }}", deferrable=True, retries=2
    )

    @task
    def last_lines(report):
        """Return the last lines of the program's log."""
        log = "".join(YarnHook().logs(report["application_id"], "worker:0"))
        return log.splitlines()[-3:]

    submit >> wait
    last_lines(wait.output)

if __name__ == "__main__":
    dag.test()
