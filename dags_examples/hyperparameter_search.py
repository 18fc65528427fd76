"""Search for the best learning rate and batch size: ten trainings by one mapped task, three at a time.

Each candidate is a YARN application. The pool limits how many run at the same time. If a candidate fails, clear its
mapped task; the other candidates keep their results.

Needs
-----
connection ``tf_yarn_default``, variables ``digits_folder`` and ``tf_environment``
    See ``first_training.py``.
pool ``tf_yarn``
    It must count deferred tasks, otherwise it limits nothing:
    ``airflow pools set tf_yarn 3 "trainings on YARN" --include-deferred``.
folder ``examples/digits``
    The programs. The folder ``examples`` must lie beside the folder of this file. If you copy this file into
    ``$AIRFLOW_HOME/dags``, also run ``cp -r examples $AIRFLOW_HOME``.
"""

from itertools import product
from pathlib import Path

from airflow.sdk import DAG, Param, task

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"
CANDIDATES = [
    {"learning_rate": learning_rate, "batch_size": batch_size}
    for learning_rate, batch_size in product([0.1, 0.03, 0.005, 0.001, 0.00001], [32, 128])
]

with DAG(
    "digits_search",
    schedule=None,
    params={"steps": Param(200, type="integer", minimum=1, description="Train each candidate until this step")},
    tags=["tf_yarn", "example"],
) as dag:

    @task.tf_yarn_cmd(
        cluster_requirement="worker:1",
        task_memory="1 GiB",
        script=f"{DIGITS}/single.py",
        file=[f"{DIGITS}/digits.py"],
        environment="{{ var.value.tf_environment }}",
        input="{{ var.value.digits_folder }}/digits.npz",
        output_path="{{ var.value.digits_folder }}/search/{{ dag_run.run_after | ts_nodash }}/{{ ti.map_index }}",
        pool="tf_yarn",
        deferrable=True,
        retries=2,
    )
    def train(learning_rate, batch_size, *, params):
        """Return the command. This function runs in Airflow, the command runs on the cluster."""
        options = f"--learning_rate {learning_rate} --batch_size {batch_size} --steps {params['steps']}"
        return f"python ${{DTF_TASK_SCRIPT}} --checkpoint_steps {params['steps']} {options}"

    @task
    def best(reports):
        """Return the best candidate. The reports are in the order of the candidates."""
        accuracies = [report["metrics"]["accuracy"] for report in reports]
        for candidate, accuracy in zip(CANDIDATES, accuracies, strict=True):
            print(f"{accuracy:.3f}  {candidate}")
        winner = accuracies.index(max(accuracies))
        return {**CANDIDATES[winner], "accuracy": accuracies[winner], "model": reports[winner]["metrics"]["model"]}

    best(train.expand_kwargs(CANDIDATES))
