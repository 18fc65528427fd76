"""Each framework trains on two workers of the cluster, by the way that its own users take.

DTensor trains in a job of this machine. Keras: `test_keras`.
"""

import sys
from pathlib import Path

import pytest

from support.framework_environments import HAVE_APT, jax_python, pinned_python, pytorch_python
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples"
#: As `docs/concepts/program.md` has it; PyTorch 1.13 with Python 3.11 needs the last two options (`Std.from_str`).
TORCHRUN = (
    "-m torch.distributed.run --nnodes $WORLD_SIZE --node_rank $RANK --master_addr $MASTER_ADDR "
    "--master_port $MASTER_PORT --nproc_per_node 2 --redirects 1 --tee 1"
)
NEEDS_APT = pytest.mark.skipif(not HAVE_APT, reason="PyTorch is Debian's package")


def train(cluster, script, interpreter="python", **fields):
    """Return the report of an example that two workers run."""
    job = JobSpec(
        command=f"{interpreter} $DTF_TASK_SCRIPT",
        tasks={"worker": TaskSpec(2, memory=1024)},
        script=str(EXAMPLES / script),
        **fields,
    )
    launcher = Launcher(cluster)
    try:
        report = launcher.run(job)
    finally:
        launcher.close()
    assert report.reason is Reason.SUCCEEDED, [report.message, *(task.log_tail for task in report.tasks)]
    return report


@pytest.fixture(scope="module")
def cluster(minicluster):
    return discover(minicluster.resourcemanager_url, environ={})


def test_dtensor_has_a_mesh_of_two_local_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    report = train(local(), "tensorflow/dtensor.py", sys.executable)
    assert report.metrics == {"weights": [1.0, 2.0], "clients": 2}


@pytest.mark.cluster
def test_jax_finds_its_processes_on_the_cluster(cluster):
    interpreter, env = jax_python()
    report = train(cluster, "frameworks/train_jax.py", interpreter, framework="jax", env=env)
    assert report.metrics == {"weights": [1.0, 2.0], "ranks": 2}


@pytest.mark.cluster
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_trees_grow_from_the_data_of_two_workers_of_the_cluster(cluster, library):
    report = train(cluster, f"frameworks/train_{library}.py", pinned_python("trees"), framework="none")
    assert report.metrics == {"accuracy": pytest.approx(1, abs=0.05), "workers": 2}


@NEEDS_APT
@pytest.mark.cluster
def test_pytorch_trains_on_two_workers_of_the_cluster(cluster):
    interpreter, env = pytorch_python()
    report = train(cluster, "frameworks/train_pytorch.py", interpreter, framework="pytorch", env=env)
    assert report.metrics == {"weights": [1.0, 2.0], "ranks": 2}


@NEEDS_APT
def test_torchrun_starts_two_processes_in_each_local_task(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    interpreter, env = pytorch_python()
    script = "frameworks/train_pytorch.py"
    report = train(local(), script, f"{interpreter} {TORCHRUN}", framework="pytorch", env=env)
    assert report.metrics == {"weights": [1.0, 2.0], "ranks": 4}
