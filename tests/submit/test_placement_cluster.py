"""Containers that no node could hold, on nodes of two sizes: a warning, or refused with ``--strict_placement``.

Hadoop's maximum allocation is what the configuration says until ``scheduling-wait-ms`` after the
ResourceManager's start (time for the nodes to come back), then the largest memory, vcores and GPUs
that any node has, each on its own. Above it: RESOURCES_IMPOSSIBLE. Below it, and yet no node: the warning.
"""

import json
import re
import signal
from dataclasses import replace

import pytest

from support.cluster_jobs import job
from support.hadoop import HadoopCluster
from support.two_nodes import directories, launcher_on, submit
from support.waiting import until
from tf_yarn_ops.hadoop.resourcemanager import Allocation
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.minicluster.daemons import log_tail
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

WAIT = "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms"
A100 = "yarn.io/gpu-a100"
GPUS = "yarn.nodemanager.resource-type.yarn.io/gpu"
MEMORY = "yarn.nodemanager.resource.memory-mb"
MAXIMUM = "yarn.scheduler.maximum-allocation-mb"


def configure(cluster, **values):
    """Change the cluster's yarn-site.xml as an administrator does; a daemon reads it when it starts."""
    path = cluster.directory / "conf" / "yarn-site.xml"
    text = path.read_text()
    for name, value in values.items():
        text, found = re.subn(rf"(<name>{re.escape(name)}</name><value>)[^<]*", rf"\g<1>{value}", text)
        assert found, name
    path.write_text(text)


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    """Return a cluster of one node with two GPUs and 16,384 MiB, and one with none and 20,000 MiB."""
    larger = {WAIT: 2000, MAXIMUM: 32000, GPUS: 2, MEMORY: 16384}
    with HadoopCluster(
        tmp_path_factory.mktemp("placement"),
        light=True,
        nodes=2,
        properties={name: str(value) for name, value in larger.items()},
    ) as cluster:
        cluster.stop_daemon("nm2")
        configure(cluster, **{GPUS: 0, MEMORY: 20000})
        cluster.start_daemon("nm2")
        yield cluster


@pytest.fixture
def launcher(hadoop):
    with launcher_on(hadoop) as made:
        yield made


#: A worker fails on the node on which the first of them has begun.
FAILS_THERE = """echo $NM_HTTP_PORT > {0}/$SKEIN_CONTAINER_ID; ln {0}/$SKEIN_CONTAINER_ID {0}/bad
    [ $(cat {0}/bad) != $NM_HTTP_PORT ] || exit 3"""


def test_job_trains_on_the_node_that_is_not_excluded(launcher, tmp_path):
    patient = RestartPolicy("cluster", max_restarts=9, backoff=0, exclude_node_after=1)
    workers = TaskSpec(instances=2, memory=256, resources={A100: 1})
    # Without the archive of classes, which has Skein's own names of resources: YARN here has no yarn.io/fpga.
    site = launcher.cluster.site
    unshared = replace(site, am_java_options=f"{site.am_java_options} -Xshare:off")
    launcher.session.cluster = replace(launcher.cluster, site=unshared)
    report = launcher.run(
        job(FAILS_THERE.format(tmp_path), tasks={"worker": workers}, restart=patient), poll_interval=0.1
    )
    assert report.reason is Reason.SUCCEEDED, "".join(launcher.log(report.application_id, "master"))
    ((node, why),) = report.excluded_nodes.items()
    assert node.endswith(f":{(tmp_path / 'bad').read_text().strip()}") and "failed with exit code 3" in why


def nodes_are(hadoop, launcher, count=2):
    """Wait for the nodes; where they don't come, say what YARN and their logs say."""
    try:
        until(lambda: len(launcher.session.resourcemanager.nodes()) == count, 60, 0.1)
    except AssertionError:
        seen = launcher.session.resourcemanager.request("GET", "/ws/v1/cluster/nodes").text
        logs = (f"{name} (pid {hadoop.pid(name)})\n{log_tail(hadoop.directory, name)}" for name in ("rm", "nm", "nm2"))
        pytest.fail("\n".join([f"not {count} nodes: {seen}", *logs]))


FIVE = ["-r", "worker:1", "-m", "256", "--task_gpus", "5"]
BOTH = ["-r", "worker:1", "-m", "18000", "--task_gpus", "1"]
NO_NODE = (
    "no node could hold worker, which asks for 18000 MiB, 1 vcores, 1 GPUs; "
    f"the largest of 2 nodes: 20000 MiB, 32 vcores, 2 GPUs, 2 {A100}"
)


def test_memory_and_gpus_of_different_nodes_are_a_warning(hadoop, launcher):
    nodes_are(hadoop, launcher)
    until(lambda: launcher.session.resourcemanager.new_application()[1] == Allocation(20000, 32, 2, {A100: 2}), 60, 0.1)
    refused = submit(hadoop, "--strict_placement", "--json", *BOTH, "true")
    assert (refused.returncode, json.loads(refused.stdout)["reason"]) == (3, "RESOURCES_IMPOSSIBLE")
    assert NO_NODE in refused.stderr
    assert launcher.list() == [] and directories(launcher) == []

    above = submit(hadoop, *FIVE, "true")
    assert above.returncode == 3
    assert "worker asks for 256 MiB, 1 vcores, 5 GPUs; the cluster's maximum allocation is 20000 MiB" in above.stderr
    assert launcher.list() == [] and directories(launcher) == []

    unknown = submit(hadoop, "-r", "worker:1", "--resource", "chip=1", "true")
    assert unknown.returncode == 3
    assert "0 GPUs, 1 chip; the cluster's maximum allocation is" in unknown.stderr
    assert f"any number of {A100}" in unknown.stderr
    assert launcher.list() == [] and directories(launcher) == []

    taken = submit(hadoop, *BOTH, "--allocation_timeout", "3", "true")
    assert taken.returncode == 0 and f"{NO_NODE}; the job waits until the cluster has room for it" in taken.stderr
    report = launcher.wait(taken.stdout.strip(), timeout=120)
    assert report.reason is Reason.ALLOCATION_TIMEOUT and "worker_0" in report.message
    until(lambda: directories(launcher) == [])


def test_more_gpus_than_present_nodes_have_is_a_warning(hadoop, launcher):
    hadoop.stop_daemon("rm", signal.SIGKILL)
    configure(hadoop, **{WAIT: 3600_000})
    hadoop.start_daemon("rm")
    nodes_are(hadoop, launcher)
    refused = submit(hadoop, "--strict_placement", "--json", *FIVE, "true")
    assert (refused.returncode, json.loads(refused.stdout)["reason"]) == (3, "RESOURCES_IMPOSSIBLE")
    assert "no node could hold worker, which asks for 256 MiB, 1 vcores, 5 GPUs" in refused.stderr
    assert launcher.list() == [] and directories(launcher) == []

    taken = submit(hadoop, *FIVE, "true")
    assert taken.returncode == 0 and "5 GPUs; the largest of 2 nodes" in taken.stderr
    application_id = taken.stdout.strip()
    assert launcher.kill(application_id, "enough").reason is Reason.KILLED
    until(lambda: directories(launcher) == [])

    above = submit(hadoop, "-r", "worker:1", "-m", "900g", "true")
    assert above.returncode == 3
    assert "the cluster's maximum allocation is 32000 MiB, 32 vcores, any number of GPUs" in above.stderr
