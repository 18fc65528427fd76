"""``hdfs://`` in programs on real nodes, with nothing imported or set by the program."""

import contextlib
import json

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

pytestmark = [pytest.mark.cluster, pytest.mark.matrix, pytest.mark.timeout(900)]

#: Of each library: the program, what it has to find, and its interpreter.
PROGRAMS = {
    "fsspec": (FSSPEC, FSSPEC_RESULT, lambda: "python"),
    "tensorflow": (TENSORFLOW, TENSORFLOW_RESULT, lambda: "python"),
    "tables": (TABLES, TABLES_RESULT, lambda: pinned_python("arrow")),
}


@pytest.fixture(scope="module")
def found(minicluster, tmp_path_factory):
    """Run the programs in one task; return its log, and what each program has found."""
    folder = tmp_path_factory.mktemp("programs")
    files, commands = {}, []
    for name, (program, _, python) in PROGRAMS.items():
        (folder / f"run_{name}.py").write_text(program)
        files[f"run_{name}.py"] = str(folder / f"run_{name}.py")
        place = "$DTF_OUTPUT_PATH" if name == "tensorflow" else "hdfs:///tmp/programs"
        variables = f"YTF_RESULT_FILE={folder}/{name}.json DTF_OUTPUT_PATH={place}/{name}"
        commands.append(f"{variables} {python()} run_{name}.py || echo {name} has failed")
    cluster = discover(minicluster.resourcemanager_url, environ={})
    with contextlib.closing(Launcher(cluster)) as launcher:
        report = launcher.run(
            job(
                "; ".join(commands),
                tasks={"worker": TaskSpec(memory=1024)},
                files=files,
                output=f"{launcher.cluster.storage.filesystem}/tmp/programs",
            )
        )
        log = "".join(launcher.log(report.application_id, "worker:0"))
    assert report.reason is Reason.SUCCEEDED, (report, log)
    return log, {name: (folder / f"{name}.json").read_text() for name in PROGRAMS if (folder / f"{name}.json").exists()}


def check(found, name):
    log, results = found
    assert name in results and f"{name} has failed" not in log, log
    assert json.loads(results[name]) == PROGRAMS[name][1]


def test_fsspec_opens_hdfs(found):
    check(found, "fsspec")


def test_tensorflow_opens_hdfs(found):
    check(found, "tensorflow")


def test_pandas_and_pyarrow_open_hdfs(found):
    check(found, "tables")
