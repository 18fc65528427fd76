"""Containers that YARN takes away for another queue and gives back; what ends a job instead is in the fault matrix."""

import contextlib
import sys

import pytest

from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.job.parts import Deadlines, Environment, RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

FOREVER = "exec tail -f /dev/null"
IN_FIRST_ROUND_FOREVER = f"if [ $YTF_ROUND = 1 ]; then {FOREVER}; fi"
#: More than the queue low is guaranteed.
HUNGRY = {"worker": TaskSpec(instances=3, memory=4800)}


def job(command, tasks, losses=0, **fields):
    return JobSpec(
        command=command,
        tasks=tasks,
        environment=Environment("venv", sys.prefix),
        deadlines=Deadlines(stop_grace=2),
        restart=RestartPolicy(max_container_losses=losses),
        **fields,
    )


@contextlib.contextmanager
def jobs(cluster):
    """Return a launcher; what it has left running is killed."""
    launcher = Launcher(discover(cluster.resourcemanager_url, environ={}))
    try:
        yield launcher
    finally:
        for report in launcher.list():
            launcher.kill(report.application_id, "its test ended")
        launcher.close()


def all_run(launcher, application):
    report = launcher.report(application)
    return bool(report.tasks) and all(task.starts for task in report.tasks)


def test_preempted_containers_are_replaced_within_the_budget(minicluster):
    """They come back when the other queue has no more use for them; then all start again as one cluster."""
    with jobs(minicluster) as launcher:
        patient = launcher.submit(job(IN_FIRST_ROUND_FOREVER, HUNGRY, losses=3, queue="low"))
        until(lambda: all_run(launcher, patient), 120, what="the job in the low queue")
        other = launcher.submit(job("sleep 3", {"worker": TaskSpec(memory=6144)}, queue="default"))
        assert launcher.wait(other, timeout=90).reason is Reason.SUCCEEDED
        report = launcher.wait(patient, timeout=90)
        assert report.reason is Reason.SUCCEEDED, report.message
        assert report.queue == "low" and "preempted" in report.rounds[-1].cause.lower()
        assert [task.task for task in report.tasks] == [f"worker:{index}" for index in range(3)]
        assert {task.state for task in report.tasks} == {"succeeded"}
