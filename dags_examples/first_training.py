"""A first training: handwritten digits on two workers, with MultiWorkerMirroredStrategy.

Trigger it by hand; the form asks for the number of steps. ``python first_training.py`` runs it without a scheduler.

Needs
-----
connection ``tf_yarn_default``
    Type ``tf_yarn``, host: the ResourceManager. Without it, the Airflow worker needs ``YTF_RESOURCEMANAGER`` or
    ``HADOOP_CONF_DIR``.
variable ``digits_folder``
    A folder that all nodes can read, such as ``hdfs:///user/airflow/digits``. Put the data there with
    ``python examples/digits/prepare.py webhdfs://airflow@namenode:9870/user/airflow/digits/digits.npz``.
variable ``tf_environment``
    A Python with tensorflow: a folder on all nodes, such as ``venv:///opt/tensorflow``, or an archive. On each node
    ``python3 -m venv /opt/tensorflow && /opt/tensorflow/bin/pip install "tf-yarn-ops[tensorflow,s3]"`` makes one.
folder ``examples/digits``
    The programs. The folder ``examples`` must lie beside the folder of this file. If you copy this file into
    ``$AIRFLOW_HOME/dags``, also run ``cp -r examples $AIRFLOW_HOME``.
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
        # The node expands ${...}, Airflow expands {{ ... }}.
        task_command="python ${DTF_TASK_SCRIPT} --steps {{ params.steps }}",
        cluster_requirement="worker:2",
        task_memory="1 GiB",
        script=f"{DIGITS}/multi_worker.py",
        file=[f"{DIGITS}/digits.py"],
        environment="{{ var.value.tf_environment }}",
        input="{{ var.value.digits_folder }}/digits.npz",
        # Not {{ run_id }}: it has colons, which HDFS does not allow.
        output_path="{{ var.value.digits_folder }}/first/{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
        # A retry attaches to what still trains, and takes the result of what has ended meanwhile.
        retries=2,
    )

    @task
    def show(report):
        """Print two values of the report. The program wrote its ``metrics``."""
        print(f"accuracy {report['metrics']['accuracy']:.3f}, the model is in {report['metrics']['model']}")

    show(train.output)

if __name__ == "__main__":
    dag.test()
