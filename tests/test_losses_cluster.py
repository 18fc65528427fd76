"""Containers that YARN takes away: preempted by another queue, lost with their node."""

import contextlib
import json
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
from appmaster import until

from tf_yarn_ops.cluster import discover
from tf_yarn_ops.launcher import Launcher
from tf_yarn_ops.minicluster import MiniCluster
from tf_yarn_ops.parts import Deadlines, Environment, RestartPolicy
from tf_yarn_ops.runtime.reasons import Reason
from tf_yarn_ops.spec import JobSpec, TaskSpec

pytestmark = pytest.mark.cluster

FOREVER = "exec tail -f /dev/null"
IN_FIRST_GENERATION_FOREVER = f"if [ $YTF_GENERATION = 1 ]; then {FOREVER}; fi"
#: More than the queue low is guaranteed.
HUNGRY = {"worker": TaskSpec(instances=7, memory=2048)}


def job(command, tasks, losses=0, **fields):
    return JobSpec(command=command, tasks=tasks, environment=Environment("venv", sys.prefix),
                   deadlines=Deadlines(stop_grace=2), restart=RestartPolicy(max_container_losses=losses), **fields)


@contextlib.contextmanager
def jobs(cluster):
    """Give a launcher; what it has left running is killed."""
    launcher = Launcher(discover(cluster.resourcemanager_url, environ={}))
    try:
        yield launcher
    finally:
        for report in launcher.list():
            launcher.kill(report.application_id, "its test ended")
        launcher.close()


def all_run(launcher, application):
    report = launcher.report(application)
    return bool(report.tasks) and all(task.attempts for task in report.tasks)


def commands_of(application):
    """The processes that hold the job's YTF_APPLICATION_ID: the user's."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"YTF_APPLICATION_ID={application}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def test_preempted_containers_are_named(minicluster):
    with jobs(minicluster) as launcher:
        strict = launcher.submit(job(FOREVER, HUNGRY, queue="low"))
        until(lambda: all_run(launcher, strict), 120, "the job in the low queue")
        other = launcher.submit(job("sleep 8", {"worker": TaskSpec(instances=2, memory=3072)}, queue="default"))
        report = launcher.wait(strict, timeout=90)
        assert (report.reason, report.retryable) == (Reason.PREEMPTED, True), report.message
        assert "preempted" in report.message.lower()
        assert launcher.wait(other, timeout=90).reason is Reason.SUCCEEDED


def test_preempted_containers_are_replaced_within_the_budget(minicluster):
    """They come back when the other queue has no more use for them; then all start again as one cluster."""
    with jobs(minicluster) as launcher:
        patient = launcher.submit(job(IN_FIRST_GENERATION_FOREVER, HUNGRY, losses=7, queue="low"))
        until(lambda: all_run(launcher, patient), 120, "the job in the low queue")
        other = launcher.submit(job("sleep 3", {"worker": TaskSpec(instances=2, memory=3072)}, queue="default"))
        assert launcher.wait(other, timeout=90).reason is Reason.SUCCEEDED
        report = launcher.wait(patient, timeout=90)
        assert report.reason is Reason.SUCCEEDED, report.message
        assert "preempted" in report.generations[-1].cause.lower()
        assert [task.task for task in report.tasks] == [f"worker:{index}" for index in range(7)]
        assert {task.state for task in report.tasks} == {"succeeded"}


def test_containers_of_a_lost_node_are_replaced_within_the_budget_and_named_beyond_it(tmp_path):
    """Each node holds one of the two workers, so that the lost one comes back when its node does."""
    spread = {"worker": TaskSpec(instances=2, memory=9 * 1024)}
    with MiniCluster(tmp_path / "hadoop", nodes=2) as cluster, jobs(cluster) as launcher:
        patient = launcher.submit(job(IN_FIRST_GENERATION_FOREVER, spread, losses=1))
        victim = lose_a_node(cluster, launcher, patient)
        until(lambda: any(task.state == "lost" for task in launcher.report(patient).tasks), 60, "the loss")
        cluster.start_daemon(victim)
        report = launcher.wait(patient, timeout=120)
        assert report.reason is Reason.SUCCEEDED, report.message
        assert "node" in report.generations[1].cause and len(report.generations) == 2

        strict = launcher.submit(job(FOREVER, spread))
        lose_a_node(cluster, launcher, strict)
        report = launcher.wait(strict, timeout=120)
        assert (report.reason, report.retryable) == (Reason.NODE_LOST, True), report.message
        until(lambda: not commands_of(strict), 20, "the end of the commands on the lost node")


def lose_a_node(cluster, launcher, application):
    """Kill the NodeManager that has a worker and not the application master; give its name."""
    until(lambda: all_run(launcher, application), 120, "both workers")
    url = f"{cluster.resourcemanager_url}/ws/v1/cluster/apps/{application}"
    app = json.load(urllib.request.urlopen(url, timeout=10))["app"]
    master = app["amHostHttpAddress"].rpartition(":")[2]
    victim, = (name for name in ("nm", "nm2") if not serves(cluster, name, master))
    cluster.stop_daemon(victim, signal.SIGKILL)
    return victim


def serves(cluster, daemon, port):
    """Whether this NodeManager listens on the port, by its own sockets."""
    pid = cluster.pid(daemon)
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(entry.readlink())
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == int(port) and fields[9] in inodes:
                return True
    return False
