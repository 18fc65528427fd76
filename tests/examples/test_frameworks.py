"""Each framework trains on two workers by the way that its own users take, PyTorch and JAX also on the cluster.

Keras: `test_keras`. TensorFlow on the cluster: tests/launch/test_jobs_cluster.py.
"""

import sys
from pathlib import Path

import pytest

from support.framework_environments import NEEDS_APT, jax_python, pinned_python, pytorch_python
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples"
#: As `docs/concepts/program.md` has it.
TORCHRUN = (
    "-m torch.distributed.run --nnodes $WORLD_SIZE --nproc_per_node 2 --max_restarts 1 --rdzv_id $YTF_APPLICATION_ID "
    "--rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --rdzv_conf is_host=$((RANK == 0))"
)
#: One of four processes dies; torchrun starts all of them again, in the same containers.
DIES_ONCE = """\
import os, runpy, signal
died = os.environ["DTF_OUTPUT_PATH"] + "/died"
if not os.path.exists(died):
    if os.environ["RANK"] != "3":
        signal.pause()
    os.mkdir(died)
    os._exit(9)
runpy.run_path("train_pytorch.py", run_name="__main__")
"""


def train(cluster, script, interpreter="python", **fields):
    """Return the report of an example that two workers run."""
    job = JobSpec(
        command=f"{interpreter} $DTF_TASK_SCRIPT",
        script=str(EXAMPLES / script),
        **{"tasks": {"worker": TaskSpec(2, memory=1024)}, **fields},
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


@pytest.fixture
def machine(tmp_path):
    """Return this machine as a cluster."""
    return local(tmp_path / "state")


def test_dtensor_has_a_mesh_of_two_workers(machine):
    report = train(machine, "tensorflow/dtensor.py", sys.executable)
    assert report.metrics == {"weights": [1.0, 2.0], "clients": 2}


@pytest.mark.cluster
def test_jax_finds_two_processes_of_each_task_of_the_cluster(cluster):
    """One process in each task: Keras's row on JAX."""
    interpreter, env = jax_python()
    report = train(cluster, "frameworks/train_jax.py", interpreter, framework="jax", env=env, procs_per_task=2)
    assert report.metrics == {"weights": [1.0, 2.0], "ranks": 4}


def test_xgboost_grows_trees_from_the_data_of_two_workers(machine):
    report = train(machine, "frameworks/train_xgboost.py", pinned_python("trees"), framework="none")
    assert report.metrics == {"accuracy": pytest.approx(1, abs=0.05), "workers": 2}


@pytest.mark.cluster
def test_lightgbm_grows_trees_in_two_workers_that_start_after_another(cluster):
    """The preparation has ended before a worker begins, and is not of its cluster."""
    tasks = {"worker": TaskSpec(2, memory=512, after="prepare"), "prepare": TaskSpec(command="true", memory=256)}
    report = train(cluster, "frameworks/train_lightgbm.py", pinned_python("trees"), framework="none", tasks=tasks)
    assert report.metrics == {"accuracy": pytest.approx(1, abs=0.05), "workers": 2}
    ended = next(task.finished_at for task in report.tasks if task.task == "prepare:0")
    assert all(task.started_at >= ended for task in report.tasks if task.task != "prepare:0"), report


@NEEDS_APT
def test_fsdp_splits_a_model_over_two_processes_of_a_task(machine):
    """Gloo, as there is no GPU; without a launcher of PyTorch's own. In two tasks: torchrun's row, JAX's row."""
    interpreter, env = pytorch_python()
    report = train(
        machine,
        "frameworks/train_fsdp.py",
        interpreter,
        framework="pytorch",
        env=env,
        procs_per_task=2,
        tasks={"worker": TaskSpec(memory=1024)},
    )
    assert report.metrics == {"weights": [1.0, 2.0], "own_weights": 1, "ranks": 2}


@NEEDS_APT
@pytest.mark.cluster
def test_torchrun_in_two_tasks_of_the_cluster_restarts_four_processes(cluster, tmp_path):
    """They train by DDP."""
    tmp_path.chmod(0o777)
    script = tmp_path / "dies_once.py"
    script.write_text(DIES_ONCE)
    interpreter, env = pytorch_python()
    example = str(EXAMPLES / "frameworks/train_pytorch.py")
    report = train(
        cluster, script, f"{interpreter} {TORCHRUN}", framework="pytorch", env=env, output=str(tmp_path),
        files={"train_pytorch.py": example},
    )  # fmt: skip
    assert report.metrics == {"weights": [1.0, 2.0], "ranks": 4}
    assert [task.starts for task in report.tasks] == [1, 1] and (tmp_path / "died").is_dir()
