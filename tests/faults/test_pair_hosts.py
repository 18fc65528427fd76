"""Two ResourceManagers and two NameNodes on hosts of their own, and cuts between them, ZooKeeper, edits and nodes."""

import signal

import pytest

from support.faults import Matrix, Outcome, check
from support.hadoop.cluster import make_active
from support.hadoop.hosts import HostsCluster, host_of, missing_for_hosts
from support.hosts_rig import (
    BEATS,
    HEARTBEAT,
    RESOURCEMANAGER,
    WRITE,
    HostsRig,
    beating,
    releasable,
    release,
    restoring,
    second_trains_alone,
    trained_once,
)
from support.waiting import PATIENCE, until
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600 * PATIENCE)]

MATRIX = Matrix()
#: Hadoop's are 10 minutes, and 20 s until a NameNode that can't write its edits ends.
PROPERTIES = {
    "yarn.nm.liveness-monitor.expiry-interval-ms": f"{20_000 * PATIENCE:.0f}",
    "dfs.qjournal.write-txns.timeout.ms": "8000",
}
NODE = "n1"
#: Ports of ZooKeeper, the JournalNode and a NameNode, and those to which their answers go.
ZOOKEEPER, EDITS, NAMENODE = "{ 2181 }", "{ 8480, 8485 }", "{ 8020, 9870, 32768-60999 }"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if missing := missing_for_hosts():
        pytest.skip(f"several hosts need {missing}")
    with HostsCluster(tmp_path_factory.mktemp("pairs"), 1, ha=True, properties=PROPERTIES) as running:
        yield running


@pytest.fixture(scope="module")
def rig(cluster):
    return PairsRig(cluster)


class PairsRig(HostsRig):
    """Hosts with pairs of masters."""

    def restore(self):
        """Undo all that was done to the network, and wait until one of each pair is active, the other its standby."""
        cluster, settings = self.cluster, self.cluster.settings
        for host in settings.hosts:
            cluster.unblock(host)
        for pair in (settings.namenodes, settings.resourcemanagers):
            if [settings.ask_role(name) for name in pair] == ["active", "active"]:
                cluster.stop_daemon(pair[0], signal.SIGKILL)
            for name in pair:
                if cluster.pid(name) is None:
                    cluster.start_daemon(name)
        if cluster.active("nn") is None:
            make_active(settings, settings.namenodes[0])
        for pair in (settings.namenodes, settings.resourcemanagers):
            until(lambda pair=pair: {settings.ask_role(name) for name in pair} == {"active", "standby"}, 60)
        super().restore()

    def of_pair(self, kind):
        """Return the active and the standby daemon of a kind."""
        active = self.cluster.active(kind)
        return active, f"{kind}2" if active == kind else kind

    def training(self, name, *words, command=BEATS):
        """Return a client whose task beats."""
        client = self.submit(*releasable(self, name), "-r", "worker:1", *words, command)
        until(lambda: client.application[11:] in "".join(beating(self, name)), 120, 0.2, client.lines)
        return client


def row(fault, reason, limit):
    """Add a row whose network and masters are restored behind it."""
    return lambda play: MATRIX.row(fault, reason, limit, alone=True)(restoring(play))


@row("the active ResourceManager is cut off from ZooKeeper and from the other one", Reason.SUCCEEDED, 120)
def resourcemanager_cut_off_from_zookeeper(rig):
    """Nodes and clients reach both."""
    client, (active, standby) = rig.training("zookeeper"), rig.of_pair("rm")
    began = rig.clock()
    rig.cluster.block(host_of("zk"), host_of(active), ZOOKEEPER)
    rig.cluster.block(host_of(active), host_of(standby), RESOURCEMANAGER)
    roles = {active: "standby", standby: "active"}
    until(lambda: {name: rig.cluster.settings.ask_role(name) for name in roles} == roles, 60, 0.2)
    release(rig, "zookeeper")
    return client.end(began, trained_once)


@row("the active ResourceManager is cut off from the nodes until they expire, and the other one takes over",
     Reason.SUCCEEDED, 300)  # fmt: skip
def resourcemanager_cut_off_from_nodes(rig):
    """Clients and ZooKeeper reach it. The client calls again at once, while the old task trains."""
    words = "--run_id", "nodes", *HEARTBEAT
    client, (active, _) = rig.training("nodes", *words), rig.of_pair("rm")
    began = rig.clock()
    rig.cluster.block(host_of(active), NODE, RESOURCEMANAGER)
    lost = client.wait()
    assert lost["reason"] == "NODE_LOST" and lost["retryable"], lost
    words = *releasable(rig, "nodes"), "-r", "worker:1", *words, BEATS
    client = rig.submit(*words)
    rig.cluster.failover("rm", restart=False)
    if client.process.poll() is not None:  # a submission is patient for 5 s, ZooKeeper for 10 s
        assert "no ResourceManager answers" in client.lines()
        client = rig.submit(*words)
    return second_trains_alone(rig, client, "nodes", began)


def publishing(rig, name, *options):
    """Return a client whose task beats, and then writes into its output."""
    words = "-o", f"hdfs:///tmp/{name}", "--commit", "new", *options
    return rig.training(name, *words, command=f"{BEATS}; {WRITE}")


def is_published(rig, name):
    assert rig.query_path(f"/tmp/{name}/file")["length"] == len("the output")
    rig.query_path(f"/tmp/{name}/_SUCCESS")


@row("the active NameNode is cut off from the shared edits and ends, and the other one is made active", Reason.SUCCEEDED,
     200)  # fmt: skip
def namenode_cut_off_from_edits(rig):
    """Nodes and clients reach both. The task's first write waits for the edits, and then for the other NameNode."""
    client, (active, standby) = publishing(rig, "edits"), rig.of_pair("nn")
    began = rig.clock()
    rig.cluster.block(host_of("jn"), host_of(active), EDITS)
    rig.cluster.block(host_of(active), host_of(standby), NAMENODE)
    release(rig, "edits")
    until(lambda: rig.cluster.pid(active) is None, 60, what=f"the end of {active}")
    make_active(rig.cluster.settings, standby)
    outcome = client.end(began, trained_once)
    is_published(rig, "edits")
    return outcome


@row("the active NameNode is cut off from the nodes, and the other one is made active beside it",
     Reason.SUCCEEDED, 200)  # fmt: skip
def namenode_cut_off_from_nodes(rig):
    """The client reaches both, the tasks the new one."""
    client, (active, standby) = publishing(rig, "files"), rig.of_pair("nn")
    began = rig.clock()
    rig.cluster.block(host_of(active), NODE, NAMENODE)
    make_active(rig.cluster.settings, standby)
    assert {rig.cluster.settings.ask_role(name) for name in (active, standby)} == {"active"}
    release(rig, "files")
    report = client.wait()
    if rig.cluster.pid(active):
        rig.cluster.stop_daemon(active, signal.SIGKILL)
    trained_once(report)
    is_published(rig, "files")
    application = report["application_id"]
    return Outcome(Reason(report["reason"]), rig.clock() - began, (application,), rig.left(application))


@MATRIX.row("the standbys take over with clocks 9 minutes behind, lease of 60 s", Reason.SUCCEEDED, 200, alone=True)
def masters_with_other_clocks(rig):
    """Both active ones get SIGKILL while a task runs, which commits afterwards.

    The last row: what it restores would take as much CPU as all the rest of it.
    """
    cluster, standbys = rig.cluster, [rig.of_pair(kind)[1] for kind in ("rm", "nn")]
    for daemon in standbys:
        cluster.stop_daemon(daemon, signal.SIGKILL)
        cluster.set_clock(host_of(daemon), -540)
        cluster.start_daemon(daemon)
    client = publishing(rig, "clocks", "--lease", "60")
    began = rig.clock()
    assert [cluster.failover(kind, restart=False) for kind in ("rm", "nn")] == standbys
    release(rig, "clocks")
    outcome = client.end(began, trained_once)
    is_published(rig, "clocks")
    return outcome


@pytest.mark.parametrize("row", MATRIX.rows, ids=str)
def test_cut_between_masters_ends_as_the_matrix_says(row, played):
    check(row, played)
