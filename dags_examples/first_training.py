"""A first training: the handwritten digits on two workers, MultiWorkerMirroredStrategy.

Start it by hand; the form asks for the number of steps. ``python first_training.py`` runs it without a scheduler.

Needs
-----
connection ``tf_yarn_default``
    The ResourceManager, type ``tf_yarn``; without it ``YTF_RESOURCEMANAGER`` or ``HADOOP_CONF_DIR`` of the worker.
variable ``digits_folder``
    A folder that all nodes reach, such as ``hdfs:///user/airflow/digits``, with the data in it:
    ``python examples/digits/prepare.py hdfs:///user/airflow/digits/digits.npz``.
variable ``tf_environment``
    The nodes' Python with tensorflow and hdfs, such as ``venv:///opt/tensorflow``, or an archive of one.
folder ``examples/digits``
    The programs, beside the folder of this file; of a copy in ``$AIRFLOW_HOME/dags``: ``cp -r examples $AIRFLOW_HOME``.
"""

from pathlib import Path

from airflow.sdk import DAG, Param, task

from tf_yarn_ops.airflow import TensorFlowYarnOperator

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"

with DAG(
    "digits_first_training",
    schedule=None,
    params={"steps": Param(600, type="integer", minimum=1, description="Train until this step")},
    tags=["tf_yarn", "example"],
) as dag:
    train = TensorFlowYarnOperator(
        task_id="train",
        # ${...} is expanded on the node, {{ ... }} by Airflow.
        task_command="python ${DTF_TASK_SCRIPT} --steps {{ params.steps }}",
        cluster_requirement="worker:2",
        task_memory="1 GiB",
        script=f"{DIGITS}/multi_worker.py",
        file=[f"{DIGITS}/digits.py", f"{DIGITS}/storage.py"],
        environment="{{ var.value.tf_environment }}",
        input="{{ var.value.digits_folder }}/digits.npz",
        # Not {{ run_id }}: HDFS takes no colons.
        output_path="{{ var.value.digits_folder }}/first/{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
    )

    @task
    def show(report):
        """The report of the job is the task's value; what the program measured is in its ``metrics``."""
        print(f"accuracy {report['metrics']['accuracy']:.3f}, the model is in {report['metrics']['model']}")

    show(train.output)

if __name__ == "__main__":
    dag.test()
