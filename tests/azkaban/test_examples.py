"""The shipped example projects train the digits; a job as TonY's documentation has it runs unmodified.

Stand-ins without TensorFlow take the place of their programs, which tests/examples/test_digits.py runs.
"""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.azkaban_jobs import ROOT, Site, install

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

#: For a flow beside others on a small machine, seconds.
TRAINED = 400


@pytest.fixture(scope="module")
def site(minicluster, classpath, tmp_path_factory):
    with Site(tmp_path_factory.mktemp("azkaban"), classpath, minicluster) as server:
        install(server.plugins, "--name", "TensorFlowJob")
        install(server.plugins, "--name", "TonYJob")
        yield server


@pytest.fixture(scope="module")
def runs(site, tmp_path_factory):
    """Run all of them at once."""
    folder = tmp_path_factory.mktemp("examples")
    one = site.start(exchange(pack(folder, "one") / "digits-flow1.zip"), "promote")
    two = site.start(exchange(pack(folder, "two") / "digits-flow2.zip"), "digits")
    one.wait(until=lambda seen: seen.attempts)  # prepare has written the data of the others
    started = {
        "flow1": one,
        "flow2": two,
        "tony": site.start(exchange(folder / "one" / "digits-tony.zip"), "digits"),
        "documented": site.start(write_tony(folder), "train"),
    }
    return folder, started


def pack(folder, name):
    """Make the zips, with a data folder of this name; return their folder."""
    settings = {"data": folder / name / "data", "environment": f"venv://{sys.prefix}", "python": sys.executable}
    settings["data"].mkdir(parents=True)
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    subprocess.run(
        [sys.executable, ROOT / "jobtypes" / "examples" / "pack.py", folder / name, *words],
        check=True,
        timeout=60,
        capture_output=True,
        cwd=folder,
    )
    return folder / name


#: In place of evaluate.py, for what softmax_training.py has trained.
EVALUATE = """\
import json, os, sys
import numpy as np
with np.load(sys.argv[2]) as data, np.load(os.environ["DTF_INPUT_PATH"] + "/model/weights.npz") as model:
    images = data["test_images"]
    seen = np.argmax(np.c_[images, np.ones(len(images))] @ model["weights"], axis=1)
    accuracy = float(np.mean(seen == data["test_labels"]))
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump({"accuracy": accuracy}, file)
"""


def exchange(packed):
    """Make a zip with stand-ins for the programs that use TensorFlow; return its path."""
    programs = {"multi_worker.py": (ROOT / "tests/support/softmax_training.py").read_text(), "evaluate.py": EVALUATE}
    exchanged = packed.with_name(f"exchanged-{packed.name}")
    with zipfile.ZipFile(packed) as archive, zipfile.ZipFile(exchanged, "w") as made:
        names = archive.namelist()
        assert "multi_worker.py" in {Path(name).name for name in names}
        for name in names:
            made.writestr(name, programs.get(Path(name).name) or archive.read(name))
    return exchanged


#: As TonY's documentation has its jobs: paths relative to src_dir, the program's options in one text.
TONY = """\
type=TonYJob
executes=models/digits_distributed.py
src_dir=src
task_params=--data_dir {data} --working_dir {output} --steps 200
python_binary_path={python}
worker_env.MY_MODE=nightly run
azkaban.input.dataset=/data/a,/data/b
tony.worker.instances=2
tony.worker.memory=1g
tony.worker.vcores=1
tony.am.memory=512m
tony.application.name=tony-digits
tony.application.security.enabled=false
"""
#: A program of a TonY user reports what it finds. It needs no TensorFlow: the other job of TonY trains.
TONY_PROGRAM = """\
import json, os, sys
names = ("AZKABAN_INPUT_DATASET", "MY_MODE", "JOB_NAME", "TASK_INDEX", "TASK_NUM", "CLUSTER_SPEC", "TF_CONFIG")
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump({"argv": " ".join(sys.argv[1:]), "python": sys.executable, **{name: os.environ[name] for name in names}}, file)
"""


def write_tony(folder):
    """Write the project of a TonY user; return its zip."""
    source = folder / "documented" / "src" / "models"
    source.mkdir(parents=True)
    (source / "digits_distributed.py").write_text(TONY_PROGRAM)
    (folder / "documented" / "train.job").write_text(
        TONY.format(data=folder / "one" / "data" / "digits.npz", output=folder / "out", python=sys.executable)
    )
    return shutil.make_archive(str(folder / "upload"), "zip", folder / "documented")


@pytest.mark.parametrize("flow", ["flow1", "flow2"])
def test_an_example_prepares_trains_evaluates_and_promotes(site, runs, flow):
    folder, started = runs
    execution = started[flow].wait(TRAINED)
    jobs = ["prepare", "train", "evaluate", "promote"]
    # Their retries are part of the examples: on a crowded machine a training may need one.
    assert [job for job, _, status in execution.attempts if status == "SUCCEEDED"] == jobs, execution.all_logs()
    outputs = execution.outputs
    accuracy = outputs["evaluate"]["tf.result.metrics.accuracy"]
    assert float(accuracy) >= 0.9
    assert float(accuracy) == pytest.approx(float(outputs["train"]["tf.result.metrics.accuracy"]))
    current = json.loads((folder / {"flow1": "one", "flow2": "two"}[flow] / "data" / "current.json").read_text())
    assert current == {"model": outputs["train"]["tf.result.output_path"], "accuracy": float(accuracy)}
    ids = [outputs[job]["tf.result.application_id"] for job in ("train", "evaluate")]
    final = {item["id"]: item["finalStatus"] for item in site.applications(execution)}
    assert [name for name, status in final.items() if status == "SUCCEEDED"] == ids
    published = Path(outputs["train"]["tf.result.output_path"])
    assert (published / "model").exists()
    if flow == "flow1":  # it publishes versions
        assert (published.name, (published.parent / "LATEST").read_text()) == ("1", "1\n")
        assert json.loads((published / "_SUCCESS").read_text())["application_id"] == ids[0]
    site.assert_nothing_left(execution)


def test_the_flow_of_version_2_runs_every_night(site, runs, tmp_path):
    with zipfile.ZipFile(runs[0] / "two" / "digits-flow2.zip") as archive:
        archive.extractall(tmp_path)
    assert site.read_cron(tmp_path / "digits.flow") == "0 0 2 ? * *"


def test_an_unmodified_job_of_tony_trains_the_digits(site, runs):
    folder, started = runs
    execution = started["tony"].wait(TRAINED)
    assert execution.status == "SUCCEEDED", execution.all_logs()
    outputs = execution.outputs["digits"]
    assert float(outputs["tf.result.metrics.accuracy"]) >= 0.9
    assert execution.log("digits").count("tony.application.security.enabled") == 1  # in the one warning
    (application,) = site.applications(execution)
    assert application["name"] == "digits"
    assert (folder / "one/data/tony/model").exists()
    site.assert_nothing_left(execution)


def test_a_job_as_tonys_documentation_has_it_runs_unmodified(site, runs):
    folder, started = runs
    execution = started["documented"].wait(TRAINED)
    assert execution.status == "SUCCEEDED", execution.all_logs()
    seen = {name.removeprefix("tf.result.metrics."): text for name, text in execution.outputs["train"].items()}
    assert seen["argv"] == f"--data_dir {folder}/one/data/digits.npz --working_dir {folder}/out --steps 200"
    assert (seen["AZKABAN_INPUT_DATASET"], seen["MY_MODE"]) == ("/data/a;/data/b", "nightly run")
    assert (seen["JOB_NAME"], seen["TASK_INDEX"], seen["TASK_NUM"]) == ("worker", "0", "2")
    workers = json.loads(seen["CLUSTER_SPEC"])["worker"]
    assert len(workers) == 2 and json.loads(seen["TF_CONFIG"])["cluster"]["worker"] == workers
    assert seen["python"] == sys.executable
    assert execution.log("train").count("tony.application.security.enabled") == 1  # in the one warning
    (application,) = site.applications(execution)
    assert application["name"] == "tony-digits"
    site.assert_nothing_left(execution)
