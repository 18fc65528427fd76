"""The DAGs of dags_examples without a scheduler, as their authors try them: imported, and run by ``dag.test()``.

The one on S3 trains with TensorFlow, the others with a stand-in; their programs themselves run in
tests/examples/test_digits.py.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag

from support.airflow_examples import DAGS, EDITS, ROOT, TRAINING, Lake, copy_dags, digits, variables
from support.airflow_site import plain_environ
from support.s3_server import KEY, SECRET, s3_server

pytestmark = pytest.mark.slow

#: Runs in a process of its own, with an Airflow of its own; what is asked of it comes and goes as JSON.
RUNNER = Path(__file__).parents[1] / "support" / "airflow_dagtest.py"


class Notebook:
    """An Airflow of which nothing runs.

    Parameters
    ----------
    folder : Path
        AIRFLOW_HOME and the DAGs lie in it.
    environ : dict
        Connections and variables.
    """

    def __init__(self, folder, environ):
        self.home = folder / "home"
        self.dags = copy_dags(folder, EDITS)
        self.environ = {
            **plain_environ(),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "NO_PROXY": "127.0.0.1,localhost",
            **environ,
        }  # fmt: skip
        self.home.mkdir()

    def test(self, *dag_ids, **conf):
        """Run DAGs by ``dag.test()``. Return state, values of the tasks and rendered fields of each run."""
        answer = self.home / "answer.json"
        done = subprocess.run(
            [sys.executable, RUNNER, answer, json.dumps(conf), *dag_ids],
            env=self.environ,
            cwd=self.home,
            text=True,
            timeout=2 * TRAINING,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        runs = json.loads(answer.read_text())
        assert {run["state"] for run in runs.values()} == {"success"}, done.stdout[-6000:]
        return {dag_id: SimpleNamespace(**run, log=done.stdout) for dag_id, run in runs.items()}

    def leaks(self, *secrets):
        """Return the files of this Airflow that hold one of the secrets: its database, its logs."""
        return [
            str(file)
            for file in self.home.rglob("*")
            if file.is_file() and any(secret.encode() in file.read_bytes() for secret in secrets)
        ]


def test_every_example_is_imported_and_names_what_it_shows_and_needs(tmp_path):
    bag = DagBag(copy_dags(tmp_path))
    assert bag.import_errors == {}
    dags = {}
    for dag_id, dag in sorted(bag.dags.items()):
        dags.setdefault(Path(dag.fileloc).name, []).append(dag_id)
    assert dags == {
        "asset_serving.py": ["digits_model_training", "digits_predictions"],
        "cleanup.py": ["tf_yarn_cleanup"],
        "first_training.py": ["digits_first_training"],
        "hyperparameter_search.py": ["digits_search"],
        "s3_training.py": ["digits_s3_training"],
        "scheduled_retraining.py": ["digits_retraining"],
        "walk_away.py": ["digits_walk_away"],
    }
    assert sorted(dags) == sorted(file.name for file in DAGS.glob("*.py"))
    # Airflow repeats a task whose worker or API server was away; its next try attaches. The cleanup runs every ten minutes.
    assert [
        task.task_id
        for dag in bag.dags.values()
        for task in dag.tasks
        if task.task_type.startswith("TensorFlowYarn") and not task.retries
    ] == ["end_abandoned"]
    for file in DAGS.glob("*.py"):
        docstring = file.read_text().split('"""')[1]
        assert "\nNeeds\n-----\nconnection ``tf_yarn_default``" in docstring, file.name
        assert "/root" not in file.read_text() and "/work" not in file.read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        server.client.create_bucket(Bucket="lake")
        yield server


@pytest.fixture(scope="module")
def lake(minicluster):
    lake = Lake(minicluster, "first-digits")
    lake.write("digits.npz", digits())
    return lake


@pytest.fixture(scope="module")
def notebook(minicluster, lake, server, airflow_database, tmp_path_factory):
    notebook = Notebook(tmp_path_factory.mktemp("dagtest"), {
        "AIRFLOW_CONN_TF_YARN_DEFAULT": json.dumps({"conn_type": "tf_yarn", "host": minicluster.resourcemanager_url}),
        **variables(digits_folder=lake.url, digits_bucket="s3://lake/digits", aws_config_file=str(server.config)),
    })  # fmt: skip
    shutil.copy(airflow_database, notebook.home / "airflow.db")
    return notebook


@pytest.fixture(scope="module")
def runs(notebook, server, lake):
    """Run the examples that need no scheduler, all in one process: it imports Airflow once."""
    server.client.put_object(Bucket="lake", Key="digits/digits.npz", Body=lake.read(f"{lake.url}/digits.npz"))
    programs = notebook.home / "programs"
    programs.mkdir()
    shutil.copy(ROOT / "examples/digits/digits.py", programs)
    shutil.copy(ROOT / "tests/support/softmax_training.py", programs / "single.py")
    dags = "digits_first_training", "digits_s3_training", "digits_walk_away", "tf_yarn_cleanup"
    return notebook.test(*dags, steps=250, programs=str(programs))


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_the_first_training_trains_two_workers_with_the_steps_of_the_form(runs, lake):
    run = runs["digits_first_training"]
    report = run.values["train"]
    assert [task["task"] for task in report["tasks"]] == ["worker:0", "worker:1"]
    assert report["metrics"]["steps"] == 250 and report["metrics"]["accuracy"] >= 0.9
    rendered = run.rendered["train"]
    assert rendered["input"] == f"{lake.url}/digits.npz"
    assert rendered["task_command"] == "python ${DTF_TASK_SCRIPT} --steps 250"
    assert rendered["output_path"] == report["output_path"]
    assert report["metrics"]["model"] == f"{report['output_path']}/model"
    assert lake.files(report["metrics"]["model"]) == ["weights.npz"]
    assert f"accuracy {report['metrics']['accuracy']:.3f}, the model is in" in run.log


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_training_from_a_file_is_awaited_by_a_sensor_and_its_log_is_read(runs, lake):
    run = runs["digits_walk_away"]
    submitted, ended = run.values["submit"], run.values["wait"]
    assert (submitted["reason"], ended["reason"]) == (None, "SUCCEEDED")
    assert submitted["application_id"] == ended["application_id"] and ended["metrics"]["steps"] == 250
    assert lake.files(ended["metrics"]["model"]) == ["weights.npz"]
    assert run.values["last_lines"]
    assert runs["tf_yarn_cleanup"].values["end_abandoned"] == []


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_data_and_model_live_in_s3_and_airflow_has_no_key(runs, notebook, server):
    run = runs["digits_s3_training"]
    report = run.values["train"]
    assert report["metrics"]["steps"] == 250 and report["metrics"]["accuracy"] >= 0.9
    model = report["metrics"]["model"]
    assert model.startswith("s3://lake/digits/models/") and model == f"{report['output_path']}/model"
    assert f"{model.removeprefix('s3://lake/')}/saved_model.pb" in server.keys("lake")
    assert run.rendered["train"]["file"]["aws-config"] == str(server.config)
    assert notebook.leaks(server.address) == []  # the file's content as a whole stays outside
    assert notebook.leaks(KEY, SECRET) == []
    assert SECRET not in run.log and KEY not in run.log
