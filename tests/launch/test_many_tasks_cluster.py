"""A job of 64 tasks on one node that believes it has room for them: nobody loses sight of a task."""

import pytest

from support.cluster_jobs import job, until_it_runs
from support.two_nodes import launcher_on
from support.waiting import until
from tf_yarn_ops.minicluster import MiniCluster
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.matrix, pytest.mark.timeout(600)]

SIZE = 64
ROOM = {"yarn.nodemanager.resource.memory-mb": "65536", "yarn.nodemanager.resource.cpu-vcores": "256"}


def test_every_one_of_64_tasks_is_reported_and_has_its_log(tmp_path):
    with MiniCluster(tmp_path / "hadoop", light=True, properties=ROOM) as cluster, launcher_on(cluster) as launcher:
        application_id = launcher.submit(job("echo log of $TASK_INDEX; sleep 600", instances=SIZE))
        until_it_runs(launcher, application_id)
        last = f"worker:{SIZE - 1}"
        until(lambda: f"log of {SIZE - 1}\n" in "".join(launcher.log(application_id, last)), 60, 0.5)
        report = launcher.kill(application_id, "seen")
        assert report.reason is Reason.KILLED
        # The diagnostics of YARN are too short for all; the history has the rest.
        names = {task.task for task in launcher.report(application_id).tasks}
        assert names == {f"worker:{index}" for index in range(SIZE)}, (len(names), report.omitted_tasks)
        assert f"log of {SIZE - 1}\n" in "".join(launcher.log(application_id, last))
