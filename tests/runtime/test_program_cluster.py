"""``hdfs://`` in programs on real nodes, with nothing imported or set by the program."""

import contextlib
import os

import pytest

from support.cluster_jobs import job
from support.framework_environments import pinned_python
from support.hdfs_programs import (
    FSSPEC,
    FSSPEC_RESULT,
    TABLES,
    TABLES_RESULT,
    TENSORFLOW,
    TENSORFLOW_RESULT,
)
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def launcher(minicluster):
    cluster = discover(minicluster.resourcemanager_url, environ={})
    with contextlib.closing(
        Launcher(cluster, environ={**os.environ, **minicluster.environ}, submit_with="rest")
    ) as launcher:
        yield launcher


def result_of(launcher, folder, program, python="python", **fields):
    """Return the result of a job whose one task runs a program."""
    path = folder / "program.py"
    path.write_text(program)
    report = launcher.run(
        job(f"{python} program.py", tasks={"worker": TaskSpec(memory=1024)}, script=str(path), **fields)
    )
    assert report.reason is Reason.SUCCEEDED, [report.message, *(task.log_tail for task in report.tasks)]
    return report.metrics


def test_fsspec_opens_hdfs(launcher, tmp_path):
    assert result_of(launcher, tmp_path, FSSPEC, output="hdfs:///tmp/fsspec") == FSSPEC_RESULT


@pytest.mark.slow
def test_tensorflow_opens_hdfs(launcher, tmp_path):
    assert (
        result_of(launcher, tmp_path, TENSORFLOW, output=f"{launcher.cluster.storage.filesystem}/tmp/tensorflow")
        == TENSORFLOW_RESULT
    )


@pytest.mark.matrix
@pytest.mark.timeout(900)
def test_pandas_and_pyarrow_open_hdfs(launcher, tmp_path):
    result = result_of(launcher, tmp_path, TABLES, pinned_python("arrow"), output="hdfs:///tmp/tables")
    assert result == TABLES_RESULT
