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


def test_preempted_containers_are_named_and_replaced_within_the_budget(minicluster):
    with jobs(minicluster) as launcher:
        hungry = {"worker": TaskSpec(instances=7, memory=2048)}
        strict = launcher.submit(job(FOREVER, hungry, queue="low"))
        until(lambda: all_run(launcher, strict), 60, "the job in the low queue")
        other = launcher.submit(job("sleep 8", {"worker": TaskSpec(instances=2, memory=3072)}, queue="default"))
        report = launcher.wait(strict, timeout=90)
        assert (report.reason, report.retryable) == (Reason.PREEMPTED, True), report.message
        assert "preempted" in report.message.lower()
        assert launcher.wait(other, timeout=90).reason is Reason.SUCCEEDED


def test_a_lost_node_is_named_and_its_commands_are_ended(tmp_path):
    with MiniCluster(tmp_path / "hadoop", nodes=2) as cluster, jobs(cluster) as launcher:
        spread = {"worker": TaskSpec(instances=2, memory=9 * 1024)}
        application = launcher.submit(job(FOREVER, spread))
        until(lambda: all_run(launcher, application), 60, "both workers")
        url = f"{cluster.resourcemanager_url}/ws/v1/cluster/apps/{application}"
        app = json.load(urllib.request.urlopen(url, timeout=10))["app"]
        nodes = json.load(urllib.request.urlopen(f"{cluster.resourcemanager_url}/ws/v1/cluster/nodes", timeout=10))
        master = app["amHostHttpAddress"].rpartition(":")[2]
        web = {node["nodeHTTPAddress"].rpartition(":")[2] for node in nodes["nodes"]["node"]}
        assert master in web and len(web) == 2
        victim = next(name for name in ("nm", "nm2") if not serves(cluster, name, master))
        cluster.stop_daemon(victim, signal.SIGKILL)
        report = launcher.wait(application, timeout=120)
        assert (report.reason, report.retryable) == (Reason.NODE_LOST, True), report.message
        until(lambda: not commands_of(application), 20, "the end of the commands on the lost node")


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
