"""Keras's ``fit`` trains on two workers, by tf_keras and on JAX; after a SIGKILL it goes on from its checkpoint."""

from pathlib import Path

import pytest

from support.framework_environments import jax_python, tf_keras_python
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples" / "keras"
#: Of each way: the interpreter, the variable, the files of its first checkpoint and of the model.
WAYS = {
    "tf_keras": (tf_keras_python, {"TF_USE_LEGACY_KERAS": "1"}, "backup/*/*.index", "model/saved_model.pb"),
    "jax": (jax_python, {"KERAS_BACKEND": "jax"}, "epoch-0001.keras", "model.keras"),
}
#: Worker 1 loses its program after the first checkpoint.
KILLED = """\
if [ $YTF_ROUND = 1 ] && [ $DTF_TASK_INDEX = 1 ]; then
  {train} & until ls $DTF_OUTPUT_PATH/{mark} >/dev/null 2>&1; do sleep 0.1; done; kill -9 $!; wait $!
else exec {train}; fi
"""


def train(cluster, way, output, command="{train}"):
    """Train one way on two workers; return the report."""
    environment, env, mark, model = WAYS[way]
    interpreter, variables = environment()
    job = JobSpec(
        command=command.format(train=f"{interpreter} $DTF_TASK_SCRIPT", mark=mark),
        tasks={"worker": TaskSpec(2, memory=1536)},
        framework="jax" if way == "jax" else "tensorflow",
        env={**env, **variables, "EPOCHS": "20"},
        script=str(EXAMPLES / f"fit_{way}.py"),
        restart=RestartPolicy("cluster"),
        output=str(output),
    )
    launcher = Launcher(cluster)
    try:
        report = launcher.run(job)
    finally:
        launcher.close()
    assert report.reason is Reason.SUCCEEDED, report.message
    assert report.metrics["accuracy"] > 0.8 and (output / model).exists()
    return report


def test_killed_keras_fit_of_two_local_workers_resumes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    check_resumed(train(local(), "jax", tmp_path / "out", KILLED))


@pytest.mark.cluster
def test_killed_keras_fit_of_two_workers_of_the_cluster_resumes(minicluster, tmp_path):
    tmp_path.chmod(0o777)
    cluster = discover(minicluster.resourcemanager_url, environ={})
    check_resumed(train(cluster, "tf_keras", tmp_path / "out", KILLED))


def check_resumed(report):
    assert len(report.rounds) == 2 and report.metrics["first_epoch"] > 0
