"""Train on data that lies in S3, and push the model to S3.

The program reads and writes ``s3://`` itself, through boto3: the paths are handed over as they are. The keys travel as
a file, readable for the job's owner only; as variables of ``env`` they would stand in Airflow's database and pages.

Needs
-----
connection ``tf_yarn_default``, variable ``tf_environment`` with boto3 in it
    As ``first_training.py`` says.
variable ``digits_bucket``
    Such as ``s3://lake/digits``, with the data in it: ``python examples/digits/prepare.py s3://lake/digits/digits.npz``.
variable ``aws_config_file``
    A file of the Airflow worker in the form of ``~/.aws/config`` with keys and region, and ``endpoint_url`` for another
    store than Amazon's. Nodes that have an identity of their own need neither it nor the two lines about it.
folder ``examples/digits``
    The programs, beside the folder of this file; of a copy in ``$AIRFLOW_HOME/dags``: ``cp -r examples $AIRFLOW_HOME``.
"""

from pathlib import Path

from airflow.sdk import DAG, Param

from tf_yarn_ops.airflow import TensorFlowYarnOperator

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"

with DAG(
    "digits_s3_training",
    schedule=None,
    params={"steps": Param(600, type="integer", minimum=1, description="Train until this step")},
    tags=["tf_yarn", "example"],
) as dag:
    TensorFlowYarnOperator(
        task_id="train",
        task_command="python ${DTF_TASK_SCRIPT} --steps {{ params.steps }}",
        cluster_requirement="worker:1",
        task_memory="1 GiB",
        script=f"{DIGITS}/single.py",
        file={
            "digits.py": f"{DIGITS}/digits.py",
            "storage.py": f"{DIGITS}/storage.py",
            "aws-config": "{{ var.value.aws_config_file }}",
        },
        env={"AWS_CONFIG_FILE": "aws-config"},
        environment="{{ var.value.tf_environment }}",
        input="{{ var.value.digits_bucket }}/digits.npz",
        output_path="{{ var.value.digits_bucket }}/models/{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
    )

if __name__ == "__main__":
    dag.test()
