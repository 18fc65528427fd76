"""Keras's ``fit`` trains on two workers, by tf_keras, on JAX and on PyTorch; after a SIGKILL it goes on from its checkpoint.

With tf_keras on YARN, the others on this machine; their frameworks on YARN: `test_frameworks`.
"""

import contextlib
from pathlib import Path

import pytest

from support.framework_environments import NEEDS_APT, jax_python, pytorch_python, tf_keras_python
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples" / "keras"
#: Of each way: the interpreter, its variable, the framework, the files of checkpoints, whose names end with a number of
#: epochs, and that of the model.
WAYS = {
    "tf_keras": (
        tf_keras_python,
        "TF_USE_LEGACY_KERAS=1",
        "tensorflow",
        "backup/chief/*.index",
        "model/saved_model.pb",
    ),
    "jax": (jax_python, "KERAS_BACKEND=jax", "jax", "epoch-*.keras", "model.keras"),
    "torch": (pytorch_python, "KERAS_BACKEND=torch", "pytorch", "epoch-*.keras", "model.keras"),
}
#: Worker 1 loses its program after the first checkpoint; three epochs follow the last one.
KILLED = """\
[ $YTF_ROUND = 1 ] || export EPOCHS=$(expr $(ls $DTF_OUTPUT_PATH/{mark} | grep -o '[0-9]*[.]' | tail -1 | tr -d .) + 3)
if [ $YTF_ROUND = 1 ] && [ $DTF_TASK_INDEX = 1 ]; then
  {train} & until ls $DTF_OUTPUT_PATH/{mark} >/dev/null 2>&1; do sleep 0.1; done; kill -9 $!; wait $!
else exec {train}; fi
"""


@pytest.mark.parametrize(
    "way, on_yarn",
    [
        pytest.param("tf_keras", True, marks=pytest.mark.cluster),
        ("jax", False),
        pytest.param("torch", False, marks=NEEDS_APT),
    ],
)
def test_killed_keras_fit_of_two_workers_resumes(way, on_yarn, tmp_path, request):
    environment, variable, framework, mark, model = WAYS[way]
    tmp_path.chmod(0o777)
    cluster = local(tmp_path / "state")
    if on_yarn:
        cluster = discover(request.getfixturevalue("minicluster").resourcemanager_url, environ={})
    interpreter, env = environment()
    output = tmp_path / "out"
    job = JobSpec(
        command=KILLED.format(train=f"{interpreter} $DTF_TASK_SCRIPT", mark=mark),
        tasks={"worker": TaskSpec(2, memory=1536)},
        framework=framework,
        env={**env, **dict([variable.split("=")])},
        script=str(EXAMPLES / f"fit_{way}.py"),
        restart=RestartPolicy("cluster"),
        output=str(output),
    )
    with contextlib.closing(Launcher(cluster)) as launcher:
        report = launcher.run(job)
    assert report.reason is Reason.SUCCEEDED, [report.message, *(task.log_tail for task in report.tasks)]
    assert report.metrics["accuracy"] > 0.8 and (output / model).exists()
    assert len(report.rounds) == 2 and report.metrics["first_epoch"] > 0
