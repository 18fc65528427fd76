"""Train on data in S3, and write the model to S3.

The program itself copies from and to ``s3://`` with boto3; the operator passes on the paths. The keys travel as
a file that only the owner of the job can read. As variables in ``env`` they would be visible in Airflow.

Needs
-----
connection ``tf_yarn_default``, variable ``tf_environment`` with boto3 in it
    See ``first_training.py``.
variable ``digits_bucket``
    Such as ``s3://lake/digits``. Put the data there with
    ``python examples/digits/prepare.py digits.npz`` and ``aws s3 cp digits.npz s3://lake/digits/``.
variable ``aws_config_file``
    A file on the Airflow worker in the form of ``~/.aws/config``, with keys and region, and with ``endpoint_url`` for a
    store that is not Amazon's. If the nodes have their own rights to the bucket, leave out the file and ``env``.
folder ``examples/digits``
    The programs. The folder ``examples`` must lie beside the folder of this file. If you copy this file into
    ``$AIRFLOW_HOME/dags``, also run ``cp -r examples $AIRFLOW_HOME``.
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
            "s3_copy.py": f"{DIGITS}/s3_copy.py",
            "aws-config": "{{ var.value.aws_config_file }}",
        },
        env={"AWS_CONFIG_FILE": "aws-config"},
        environment="{{ var.value.tf_environment }}",
        input="{{ var.value.digits_bucket }}/digits.npz",
        output_path="{{ var.value.digits_bucket }}/models/{{ dag_run.run_after | ts_nodash }}",
        deferrable=True,
        retries=2,
    )

if __name__ == "__main__":
    dag.test()
