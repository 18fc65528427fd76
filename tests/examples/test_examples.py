"""The smaller examples train, on this machine where HDFS is not their point.

Others: test_digits.py, test_demo.py, test_frameworks.py, those of the engines. TensorFlow's strategies on YARN:
tests/launch/test_jobs_cluster.py.
"""

import contextlib
from pathlib import Path

import pytest

from support.cluster_jobs import job
from support.framework_environments import pinned_python
from support.programs import ROOT
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.agent.metrics import MetricsFile
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.slow, pytest.mark.matrix]

EXAMPLES = ROOT / "examples"
#: What prepares the points and what trains on them, in one process: TensorFlow is imported once.
BOTH = 'python -c \'import os, runpy, prepare; prepare.main(); runpy.run_path(os.environ["DTF_TASK_SCRIPT"], run_name="__main__")\''


def train(cluster, script, command="python ${DTF_TASK_SCRIPT}", workers=1, others=(), **fields):
    """Run an example; return its result."""
    tasks = {"worker": TaskSpec(workers, memory=1024), **{name: TaskSpec(memory=1024) for name in others}}
    with contextlib.closing(Launcher(cluster)) as launcher:
        report = launcher.run(job(command, tasks=tasks, script=str(EXAMPLES / script), **fields))
    assert report.reason is Reason.SUCCEEDED, [report.message, *(task.log_tail for task in report.tasks)]
    return report.metrics


def test_quickstart_trains_two_workers(tmp_path):
    found = train(local(tmp_path / "state"), "quickstart/train.py", workers=2, output=str(tmp_path / "model"))
    assert found == pytest.approx({"slope": 3, "offset": 2}, abs=0.01)
    assert (tmp_path / "model/saved_model.pb").is_file()


@pytest.mark.parametrize(
    "script, flags, workers, others, success",
    [
        ("parameter_server.py", "", 1, ["chief", "ps"], "chief"),
        (
            "tf1_flags.py",
            " --ps_hosts $DTF_PS_HOSTS --worker_hosts $DTF_WORKER_HOSTS --job_name $DTF_TASK_JOB_NAME "
            "--task_index $DTF_TASK_INDEX",
            2,
            ["ps"],
            "all_workers",
        ),
    ],
)
def test_program_with_its_own_servers_trains_and_ends(tmp_path, script, flags, workers, others, success):
    """The tutorial's chief ends the job; with the flags of TensorFlow 1 both workers train."""
    command = "python ${DTF_TASK_SCRIPT}" + flags
    found = train(local(tmp_path), f"tensorflow/{script}", command, workers=workers, others=others, success=success)
    assert found == {"weights": [1.0, 2.0], "workers": workers}


def test_callback_writes_the_metrics_of_every_hundredth_step(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    command = f"python ${{DTF_TASK_SCRIPT}} && cp $YTF_METRICS_FILE {metrics}"
    train(local(tmp_path / "state"), "metrics/train.py", command, env={"EPOCHS": "1"})
    points, left_out = MetricsFile(str(metrics)).read(last=True)
    assert left_out == 0 and {"loss", "accuracy"} == set(points)
    assert [step for step, _ in points["loss"]] == [float(step) for step in range(100, 1001, 100)]


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_each_format_in_hdfs_feeds_a_training(minicluster):
    """TensorFlow is that of the tests, the other libraries are of an environment beside it."""
    (packages,) = Path(pinned_python("arrow")).parents[1].glob("lib/python*/site-packages")
    folder = "hdfs:///tmp/points"
    found = train(
        discover(minicluster.resourcemanager_url, environ={}),
        "formats/train.py",
        BOTH + " tfrecord avro orc parquet",
        input=folder,
        output=folder,
        files={"prepare.py": str(EXAMPLES / "formats/prepare.py")},
        env={"PYTHONPATH": str(packages)},
    )
    assert found == {name: pytest.approx([3, 2], abs=0.01) for name in ("tfrecord", "avro", "orc", "parquet")}
