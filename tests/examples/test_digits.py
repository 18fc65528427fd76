"""The digits example in jobs of this machine: trainings to their accuracy, through kills and restarts.

With a parameter server: test_demo.py and tests/launch/test_jobs_cluster.py.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import until
from tf_yarn_ops.hadoop.cluster import local
from tf_yarn_ops.job.parts import Deadlines, Environment
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.contract import RESULT_FILE
from tf_yarn_ops.runtime.common.reasons import Reason

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"
#: Of Azkaban's example, which measures the model that a training has exported.
EVALUATE = Path(__file__).parents[2] / "jobtypes" / "examples" / "programs" / "evaluate.py"
#: Both programs in one process, for one import of TensorFlow.
PREDICT_AND_EVALUATE = """\
import os, runpy, shutil, sys
_, model, data = sys.argv
sys.argv = ["predict.py", model]
runpy.run_path("predict.py", run_name="__main__")
shutil.move(os.environ["YTF_RESULT_FILE"], os.environ["DTF_OUTPUT_PATH"] + "/predicted.json")
os.environ["DTF_INPUT_PATH"] = os.environ["DTF_OUTPUT_PATH"]
sys.argv = ["evaluate.py", "--data", data]
runpy.run_path("evaluate.py", run_name="__main__")
"""
DEADLINE = 240  # seconds for one wait: TensorFlow's import alone takes 6 s of CPU in each process


class Trainings:
    """Jobs of this machine that share one output folder, as the runs of one training do."""

    def __init__(self, folder, data):
        self.folder, self.data, self.output = folder, data, folder / "output"
        self.launcher = Launcher(local(folder / "state"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for report in self.launcher.list():
            self.launcher.kill(report.application_id, "its test ended")
        self.launcher.close()

    def start(self, command, tasks, **fields):
        """Start a job; return its id."""
        return self.launcher.submit(
            JobSpec(
                command=f"python {command}",
                files={file.name: str(file) for file in (*EXAMPLE.glob("*.py"), *self.folder.glob("*.py"), EVALUATE)},
                input=str(self.data),
                output=str(self.output),
                environment=Environment("venv", sys.prefix),
                tasks=tasks,
                deadlines=Deadlines(stop_grace=1),
                **fields,
            )
        )

    def wait(self, application_id):
        """Return the report of a job that has succeeded."""
        report = self.launcher.wait(application_id, timeout=DEADLINE)
        assert report.reason is Reason.SUCCEEDED, [report.message, *(task.log_tail for task in report.tasks)]
        return report

    def run(self, command, tasks, **fields):
        return self.wait(self.start(command, tasks, **fields))

    def wait_for_checkpoint(self, application_id, step):
        """Wait for a checkpoint while the job goes on; return its step."""

        def reached():
            report = self.launcher.report(application_id)
            assert report.reason is None, [report.message, *(task.log_tail for task in report.tasks)]
            return self.latest_checkpoint() >= step and self.latest_checkpoint()

        return until(reached, DEADLINE, what=f"checkpoint {step}")

    def latest_checkpoint(self):
        """The step that a restart goes on from."""
        state = self.output / "checkpoints" / "checkpoint"
        found = re.match(r'model_checkpoint_path: "ckpt-(\d+)"', state.read_text()) if state.exists() else None
        return int(found[1]) if found else 0


@pytest.fixture
def trainings(tmp_path, data):
    with Trainings(tmp_path, data) as trainings:
        yield trainings


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    target = tmp_path_factory.mktemp("data") / "digits.npz"
    subprocess.run([sys.executable, EXAMPLE / "prepare.py", target], check=True, timeout=DEADLINE)
    return target


@pytest.mark.slow
def test_two_workers_go_on_from_a_checkpoint_and_their_model_predicts(trainings):
    """One task is killed as it trains; after the two workers all have exited 0."""
    first = trainings.start("single.py --steps 500 --step_delay 0.03", {"worker": 1})
    trainings.wait_for_checkpoint(first, 100)
    trainings.launcher.kill(first, "to go on")
    stopped_at = trainings.latest_checkpoint()
    report = trainings.run("multi_worker.py", {"worker": 2})
    trained, model = report.metrics, str(trainings.output / "model")
    assert (trained["steps"], trained["resumed_from_step"], trained["model"]) == (600, stopped_at, model)
    assert trained["accuracy"] >= 0.95 and list((trainings.output / "logs" / "train").glob("events.*"))
    assert [task.state for task in report.tasks] == ["succeeded"] * 2
    written = [path.parent.name for path in trainings.folder.rglob(RESULT_FILE)]
    assert written == ["container_worker_0"], "one writes for all"
    saved = {path.name.partition(".")[0] for path in (trainings.output / "checkpoints").glob("ckpt-*")}
    assert saved == {"ckpt-400", "ckpt-500", "ckpt-600"}
    (trainings.folder / "both.py").write_text(PREDICT_AND_EVALUATE)
    evaluated = trainings.run(f"both.py {model} {trainings.data}", {"worker": 1}).metrics
    assert (evaluated["images"], evaluated["accuracy"]) == (360, pytest.approx(trained["accuracy"]))
    predicted = json.loads((trainings.output / "predicted.json").read_text())
    assert predicted == {"predictions": 360, "accuracy": trained["accuracy"], "model": model}
    import numpy as np  # here: each worker collects this file

    with np.load(trainings.data) as arrays:
        right = np.loadtxt(trainings.output / "predictions.csv", dtype=int) == arrays["test_labels"]
    assert np.mean(right) == trained["accuracy"]
