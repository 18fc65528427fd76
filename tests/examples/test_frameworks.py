"""The examples of PyTorch and JAX train on two workers: on the cluster, and by torchrun as processes of this machine.

JAX's processes of this machine are those of Keras (`test_keras`).
"""

from pathlib import Path

import pytest

from support.framework_environments import HAVE_APT, jax_python, pytorch_python
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.matrix

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"
FRAMEWORKS = [
    pytest.param(
        "pytorch", pytorch_python, marks=pytest.mark.skipif(not HAVE_APT, reason="PyTorch is Debian's package")
    ),
    ("jax", jax_python),
]
#: As `docs/concepts/program.md` has it; PyTorch 1.13 with Python 3.11 needs the last two options (`Std.from_str`).
TORCHRUN = (
    "-m torch.distributed.run --nnodes $WORLD_SIZE --node_rank $RANK --master_addr $MASTER_ADDR "
    "--master_port $MASTER_PORT --nproc_per_node 2 --redirects 1 --tee 1"
)


def train(cluster, framework, environment, launcher=""):
    """Return the report of the framework's example on two workers."""
    interpreter, env = environment()
    job = JobSpec(
        command=f"{interpreter} {launcher} $DTF_TASK_SCRIPT",
        tasks={"worker": TaskSpec(2, memory=1024)},
        framework=framework,
        env=env,
        script=str(EXAMPLES / f"train_{framework}.py"),
    )
    launcher = Launcher(cluster)
    try:
        return launcher.run(job)
    finally:
        launcher.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("framework, environment", FRAMEWORKS[:1])
def test_torchrun_starts_two_processes_in_each_local_task(framework, environment, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    report = train(local(), framework, environment, TORCHRUN)
    assert (report.reason, report.metrics) == (Reason.SUCCEEDED, {"weights": [1.0, 2.0], "ranks": 4}), report.message


@pytest.mark.cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize("framework, environment", FRAMEWORKS)
def test_framework_trains_on_the_cluster(framework, environment, minicluster):
    report = train(discover(minicluster.resourcemanager_url, environ={}), framework, environment)
    assert (report.reason, report.metrics) == (Reason.SUCCEEDED, {"weights": [1.0, 2.0], "ranks": 2}), report.message
