"""A packed environment on the secured cluster's nodes, whose Python is bare; a training on ``hdfs://`` is killed and resumes."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.faults import processes_of
from support.framework_environments import PINS
from support.programs import SUBMIT, YTF
from support.secure import ask
from support.waiting import until

#: Fits a line to points of a file, with a checkpoint every ten steps. The first run waits at step 50 for its death.
TRAIN = """
import fsspec, importlib.util, io, json, numpy, os, time
files, home = fsspec.url_to_fs(os.environ["DTF_OUTPUT_PATH"])

def write(path, array):
    content = io.BytesIO()
    numpy.save(content, array)
    files.pipe(path + ".part", content.getvalue())
    files.mv(path + ".part", path)

data = os.environ["DTF_INPUT_PATH"]
if not files.exists(data):
    x = numpy.linspace(-1, 1, 10_000)
    with fsspec.open(data, "wb") as file:
        numpy.save(file, numpy.stack([x, 3 * x + 2]))
with fsspec.open(data) as file:
    x, y = numpy.load(file)
inputs = numpy.stack([x, numpy.ones(len(x))], 1)
files.makedirs(home + "/checkpoints", exist_ok=True)
saved = sorted(files.glob(home + "/checkpoints/*.npy"))
start, weights = int(saved[-1][-8:-4]) if saved else 0, numpy.zeros(2)
if saved:
    weights = numpy.load(io.BytesIO(files.cat(saved[-1])))
for step in range(start + 1, 101):
    weights -= 0.5 * inputs.T @ (inputs @ weights - y) / len(inputs)
    if step % 10 == 0:
        write("%s/checkpoints/%04d.npy" % (home, step), weights)
    while (start, step) == (0, 50):
        time.sleep(0.1)
write(home + "/model.npy", weights)
model = numpy.load(io.BytesIO(files.cat(home + "/model.npy")))
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump({"weights": model.round(3).tolist(), "resumed_from_step": start, "home": os.path.realpath(numpy.__file__),
               "has_grpc": bool(importlib.util.find_spec("grpc"))}, file)
"""


pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(600)]


def run(environ, *words):
    ran = subprocess.run([str(word) for word in words], env=environ, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_packed_training_on_hdfs_resumes_after_its_container_is_lost(secure_cluster, as_alice, tmp_path):
    packed, node_python = tmp_path / "packed.tar.gz", os.path.realpath(sys.executable)
    (tmp_path / "requirements.txt").write_text(f"-c {PINS / 'arrow.txt'}\nfsspec\nnumpy\n")
    run(os.environ, *YTF, "env", "pack", tmp_path / "requirements.txt", "-o", packed, "--node_python", node_python)
    (tmp_path / "train.py").write_text(TRAIN)
    output = run(
        as_alice,
        *SUBMIT,
        "--environment",
        packed,
        "-m",
        "512",
        "-r",
        "worker:1",
        "-s",
        tmp_path / "train.py",
        "-i",
        "hdfs:///user/alice/points.npy",
        "-o",
        "hdfs:///user/alice/line",
        "python ${DTF_TASK_SCRIPT}",
    )
    application = re.search(r"application_\d+_\d+", output)[0]
    checkpoint = f"{secure_cluster.namenode_url}/webhdfs/v1/user/alice/line/checkpoints/0050.npy?op=GETFILESTATUS"
    until(lambda: ask(secure_cluster, as_alice, checkpoint)[0] == 200, 120, 0.5, what="the fifth checkpoint")
    (agent,) = (pid for pid, words in processes_of(application) if " agent worker " in words and "bash" not in words)
    os.kill(agent, signal.SIGKILL)
    run(as_alice, *YTF, "wait", application)
    report = json.loads(run(as_alice, *YTF, "report", "--json", application))
    assert len(report["rounds"]) == 2 and "was lost" in report["rounds"][1]["cause"]
    home = Path(report["metrics"].pop("home"))
    assert "filecache" in home.parts and packed.name in home.parts
    assert report["metrics"] == {"weights": [3, 2], "resumed_from_step": 50, "has_grpc": False}
