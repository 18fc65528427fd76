"""Faults of the network between hosts: clients, coordinator and tasks on machines of their own."""

import contextlib
import hashlib
import os
import re
import signal
import sys
import time

import pytest

from support.faults import Matrix, check, once
from support.hadoop.hosts import HostsCluster, missing_for_hosts
from support.hosts_rig import (
    BEATS,
    FOREVER,
    HEARTBEAT,
    RESOURCEMANAGER,
    UNTIL_RELEASED,
    WRITE,
    HostsRig,
    beating,
    cut_off_until_silent,
    cut_off_until_waiting,
    pass_time,
    releasable,
    release,
    restoring,
    second_trains_alone,
    trained_once,
    worker_away_from_master,
)
from support.httpfs import proxy_properties, running_httpfs
from support.programs import ROOT, YTF
from support.waiting import PATIENCE, until
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900 * PATIENCE)]

MATRIX = Matrix()
HOSTS = 3
#: Seconds until YARN takes a node for lost; longer than a status, or the start of a NodeManager.
EXPIRY = 20 * PATIENCE
NODES = tuple(f"n{number}" for number in range(1, HOSTS + 1))
#: Writes its TF_CONFIG, and dials all other tasks by the names there; a ps waits to be ended.
RING = """python3 -c '
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
me = config["task"]
addresses = [address for found in config["cluster"].values() for address in found]
own = config["cluster"][me["type"]][me["index"]]
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("", int(own.rpartition(":")[2])))
server.listen()
until = time.monotonic() + 300
for address in addresses:
    host, _, port = address.rpartition(":")
    while True:
        try:
            socket.create_connection((host, int(port)), 2).close()
            break
        except OSError:
            assert time.monotonic() < until, address
            time.sleep(0.1)
json.dump({"addresses": addresses, "host": socket.gethostname()}, open(os.environ["YTF_RESULT_FILE"], "w"))
server.settimeout(300)
for _ in addresses:
    server.accept()  # all dial before the first one ends
'"""


#: Writes files of HDFS in two ways, and reads them.
FILES = """python3 -c '
import fsspec, os
for number in range(3):
    path = "hdfs:///tmp/files/%s-%d" % (os.environ["DTF_TASK_INDEX"], number)
    with fsspec.open(path, "wb") as file:
        file.write(b"x" * 300000)
    with fsspec.open(path, "ab") as file:
        file.write(b"y" * 300000)
    with fsspec.open(path, "rb") as file:
        assert file.read() == b"x" * 300000 + b"y" * 300000
'"""
#: What an administrator sets at the NameNode where DNS has no names of addresses.
ALLOW_NAMELESS = (
    "<property><name>dfs.namenode.datanode.registration.ip-hostname-check</name><value>false</value></property>"
)
#: Seconds by which the clocks of hosts are ahead.
CLOCKS = {"n2": -600, "n3": 540}
#: Writes and reads files of HDFS until a file exists.
SMALL_FILES = """python3 -c '
import fsspec, itertools, os, time
for number in itertools.takewhile(lambda number: not os.path.exists(os.environ["RELEASED"] + ".written"), itertools.count()):
    path = "hdfs:///tmp/small/%s-%d" % (os.environ["YTF_APPLICATION_ID"], number)
    with fsspec.open(path, "wb") as file:
        file.write(b"x" * 100000)
    with fsspec.open(path, "rb") as file:
        assert file.read() == b"x" * 100000
    time.sleep(1)
'"""
#: Takes a connection and drops each request.
HANG = "tcp flags & psh == psh drop"
#: Fills the disk of the host that `release` names.
FILL = f"""until [ -s $RELEASED ]; do sleep 0.2; done
[ $(hostname -s) != $(cat $RELEASED) ] || head -c 300M /dev/zero > filled; {FOREVER}"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if missing := missing_for_hosts():
        pytest.skip(f"several hosts need {missing}")
    properties = {"yarn.nm.liveness-monitor.expiry-interval-ms": f"{EXPIRY * 1000:.0f}"}
    properties |= proxy_properties("root")  # for HttpFS
    with HostsCluster(tmp_path_factory.mktemp("hosts"), HOSTS, properties=properties) as running:
        yield running


@pytest.fixture(scope="module")
def rig(cluster):
    with contextlib.closing(HostsRig(cluster)) as made:
        yield made


def row(fault, reason, limit):
    """Add a row whose network is restored behind it."""
    return lambda play: MATRIX.row(fault, reason, limit, alone=True)(restoring(play))


def rows_of(play, *faults):
    """Add rows of one job, which end well; the network is restored behind it, not behind each of them."""
    for fault in faults:
        MATRIX.row(fault, Reason.SUCCEEDED, 600, alone=True)(play)


def on_different_hosts(report):
    trained_once(report)
    hosts = [task["host"] for task in report["tasks"]]
    assert len(set(hosts)) == len(hosts), hosts


def test_tensorflow_trains_on_three_hosts_from_and_to_hdfs(rig):
    """It comes before the faults: the last of them changes what names mean. Page and TensorBoard answer meanwhile."""
    digits, data = ROOT / "examples" / "digits", "/tmp/digits.npz"
    prepared = rig.run(sys.executable, str(digits / "prepare.py"), f"webhdfs://root@master.lab.test:9870{data}")
    assert prepared.returncode == 0, prepared.stderr
    words = ["-r", "worker:3", "-i", f"hdfs://{data}", "-o", "hdfs:///tmp/digits"]
    board = ["--tensorboard", "--tensorboard_memory", "1g", "--tensorboard_args", "--reload_interval=1"]
    files = [word for name in ("multi_worker.py", "digits.py") for word in ("--file", str(digits / name))]
    program = f"python multi_worker.py --batch_size 63 --steps 300 && {UNTIL_RELEASED}"
    client = rig.submit(*releasable(rig, "trains"), *words, *board, *files, program)

    until(lambda: "TensorBoard " in client.lines(), 180, 0.5, client.lines)
    address = until(lambda: client.report().get("tensorboard_url"), 60, 2, client.lines)
    assert address.startswith("http://master.lab.test:8088/proxy/"), address
    until(lambda: "loss" in rig.fetch(f"{address}data/plugin/scalars/tags"), 120, 1, client.lines)
    assert "worker:2" in rig.fetch(client.report()["tracking_url"].rstrip("/") + "/pages/ytf/")
    release(rig, "trains")

    def expect(report):
        on_different_hosts({**report, "tasks": [task for task in report["tasks"] if task["task"] != "tensorboard:0"]})
        assert report["metrics"]["accuracy"] >= 0.95, report

    outcome = client.end(rig.clock(), expect)
    assert outcome.reason is Reason.SUCCEEDED, outcome.message
    rig.query_path("/tmp/digits/model/saved_model.pb")


@once
@restoring
def uploaded_despite_cut(rig):
    """Cut the client off while it uploads to two DataNodes, slowly; it can neither reach nor name the third one."""
    rig.cluster.set_names("edge", {"n3": []})
    rig.cluster.block("n3", "edge", "9864")
    (rig.cluster.directory / "edge" / "large.bin").write_bytes(content := os.urandom(20_000_000))
    for node in ("n1", "n2"):
        rig.cluster.block(node, "edge", "9864", "limit rate over 1 mbytes/second burst 256 kbytes drop")
    command = "echo the-log; [ $(wc -c < large.bin) = 20000000 ]"
    client = rig.submit("-r", "worker:1", "--file", "large.bin", command)
    began = rig.clock()
    begun = re.compile(rf"cmd=create\tsrc=\S+/cache/{hashlib.sha256(content).hexdigest()}/")
    audit = rig.cluster.settings.logs / "hdfs-audit.log"
    until(lambda: begun.search(audit.read_text()), 60, what=client.lines)
    rig.cluster.unplug("edge")
    pass_time(rig, 15)
    rig.cluster.plug("edge")
    for node in ("n1", "n2"):
        rig.cluster.unblock(node)
    outcome = client.end(began, trained_once)
    # The task may have run on n3, whose NodeManager edge can't name: its log is then in HDFS a moment later.
    until(lambda: "the-log" in rig.run(*YTF, "logs", client.application).stdout, 60, 1, "a log")
    return outcome


rows_of(
    uploaded_despite_cut,
    "the client can neither reach nor name one of the DataNodes",
    "the client is cut off for 15 s while it uploads",
)


def close_datanodes(rig, verdict):
    """Refuse what the client sends to the DataNodes' HTTP ports."""
    for node in NODES:
        rig.cluster.unblock(node)
        rig.cluster.block(node, "edge", "9864", verdict)


@row("a firewall rejects or drops what the client sends to DataNodes", Reason.CLUSTER_UNREACHABLE, 60)
def datanodes_closed_to_client(rig):
    """The message names the port and the way round it; no application is submitted."""
    known = len(rig.applications())
    for verdict in ("reject", "drop"):
        close_datanodes(rig, verdict)
        outcome = rig.play("-r", "worker:1", FOREVER)
        assert rig.clients[-1].process.returncode == 4, outcome
        assert re.search(r"DataNode n\d.lab.test:9864 .* set webhdfs in site.yaml to an HttpFS", outcome.message), (
            outcome
        )
    assert len(rig.applications()) == known, rig.applications()
    return outcome


@row("a firewall drops what the client sends to DataNodes; it reaches HDFS through an HttpFS", Reason.SUCCEEDED, 120)
def datanodes_closed_to_client_of_httpfs(rig):
    close_datanodes(rig, "drop")
    site = rig.cluster.directory / "edge" / ".config" / "tf_yarn_ops" / "site.yaml"
    site.parent.mkdir(parents=True, exist_ok=True)
    with running_httpfs(rig.cluster, rig.cluster.directory / "httpfs", "n1") as url:
        site.write_text(f"webhdfs: {url}\n")
        try:
            words = "-o", "hdfs:///tmp/by-httpfs", "--commit", "new", "--file", __file__
            outcome = rig.play("-r", "worker:1", *words, f"echo the-log; {WRITE}", expect=trained_once)
            (application,) = outcome.applications
            assert "the-log" in rig.run(*YTF, "logs", application).stdout
            assert application in rig.run(*YTF, "history", "--json").stdout
            assert "the output" in rig.fetch(f"{url}/webhdfs/v1/tmp/by-httpfs/file?op=OPEN&user.name=root")
            return outcome
        finally:
            site.unlink()


STRIKES = {}


def striking(fault):
    """Add the decorated function as a row: it strikes at a running job, which has to go on.

    It gets the job's client, and the host of a worker away from the application master.
    """

    def add(strike):
        STRIKES[fault] = strike
        survived(fault)
        return strike

    return add


def survived(fault):
    """Add a row of the job that survives all these faults, one after the other."""

    def play(rig):
        outcome, failed = survivor(rig)
        if failed.get(fault):
            raise failed[fault]
        return outcome

    rows_of(play, fault)


@once
@restoring
def survivor(rig):
    """Start a job where the names of hosts are odd, and strike at it; return its outcome, and what failed."""
    client, failed = start_where_names_are_odd(rig), {}
    hosts, master, began = client.running(3), client.master(), rig.clock()
    log = *YTF, "logs", client.application, "--task", "worker:2"
    until(lambda: "step 1\n" in rig.run(*log).stdout, 60, 1, client.lines)
    rig.restore()
    for fault, strike in STRIKES.items():
        try:
            strike(rig, client, next(host for host in hosts.values() if host != master))
        except Exception as error:
            failed[fault] = error
        finally:
            rig.restore()
        assert client.process.poll() is None, (fault, client.lines())
    release(rig, "survivor")
    return client.end(began, on_different_hosts), failed


def start_where_names_are_odd(rig):
    """Own names are in capitals, at 127.0.1.1, or unknown to the other hosts; each host takes names for IPv6 addresses.

    Nor does a reverse lookup on a host give the name by which the others know it. The application master starts on one of
    the last two hosts: Skein registers its page at 127.0.1.1 on the first one, and no task would be shown.
    """
    names = {node: [f"2001:db8:77::9{node[1:]}", rig.cluster.address6(node), f"10.77.0.1{node[1:]}"] for node in NODES}
    loop, capitals, unknown = NODES
    for node, name in {
        loop: f"{loop}.lab.test",
        capitals: capitals.upper(),
        unknown: f"ip-10-77-0-1{unknown[1:]}",
    }.items():
        rig.cluster.set_names(node, names)
        rig.cluster.set_own_name(node, name, "127.0.1.1" if node == loop else None)
    writes = f"[ $DTF_TASK_INDEX != 0 ] || {SMALL_FILES}"
    command = f"{RING} && {{ {writes}; }} && {{ {UNTIL_RELEASED}; }}"
    rig.cluster.block("master", loop, RESOURCEMANAGER)
    client = rig.submit(*releasable(rig, "survivor"), "-r", "worker:3", command)
    assert client.master() != loop
    rig.cluster.unblock("master")
    return client


survived("own names in capitals, at 127.0.1.1, or unknown to the other hosts")
survived("the nodes' names lead to a dead, then to a live IPv6 address first")


@striking("each DataNode gets SIGKILL, one after the other, while a task writes")
def datanodes_killed_in_turn(rig, client, host):
    """One is back, and all blocks have their copies, before the next one."""
    for node in NODES:
        datanode = daemon_of(node, "dn")
        rig.cluster.stop_daemon(datanode, signal.SIGKILL)
        pass_time(rig, 2)
        rig.cluster.start_daemon(datanode)
        until(rig.has_all_copies, 90, what="all copies of blocks")
    (rig.cluster.directory / "survivor.released.written").touch()


@striking("a firewall drops what the client sends to NodeManagers; they accept connections and hang")
def nodemanagers_unreachable_for_client(rig, client, host):
    """The coordinator serves the log of a running task."""
    for verdict in ("drop", HANG):
        for node in NODES:
            rig.cluster.unblock(node)
            rig.cluster.block(node, "edge", "8042", verdict)
        log = rig.run(*YTF, "logs", client.application, "--task", "worker:2").stdout
        assert "step 1\n" in log and client.process.poll() is None, log


@striking("a worker's node is cut off until the status says so")
def node_cut_off_for_a_while(rig, client, host):
    cut_off_until_silent(client, host)


@striking("a worker's NodeManager gets SIGKILL and starts again after 10 s")
def nodemanager_recovers(rig, client, host):
    """It takes its containers over again; they go on meanwhile."""
    nodemanager = daemon_of(host, "nm")
    rig.cluster.stop_daemon(nodemanager, signal.SIGKILL)
    pass_time(rig, 10)
    rig.cluster.start_daemon(nodemanager)


@striking("the client is cut off while it waits")
def client_cut_off_while_it_waits(rig, client, host):
    cut_off_until_waiting(client)


@row("a firewall rejects or drops what goes to the coordinator's ports", Reason.REGISTRATION_TIMEOUT, 120)
def closed_ports(rig):
    for host in NODES:
        rejected, dropped = sorted({*NODES} - {host})
        rig.cluster.block(host, rejected, "20000-29999", "reject")
        rig.cluster.block(host, dropped, "20000-29999", "drop")
    # Agents have to start meanwhile, and try all ports once.
    limit = "--registration_timeout", f"{20 * PATIENCE:g}"
    outcome = rig.play("-r", "worker:3", *limit, FOREVER, expect=has_places)
    assert "no coordinator on n" in outcome.message, outcome.message
    logs = "".join(rig.run(*YTF, "logs", *outcome.applications, "--task", f"worker:{n}").stdout for n in range(HOSTS))
    assert "Connection refused" in logs and "a firewall drops" in logs, logs
    return outcome


def has_places(report):
    """Hold that a task has a log, although its agent never called."""
    assert all(task["host"] and task["container_id"] and task["log_url"] for task in report["tasks"]), report


def daemon_of(host, kind):
    return f"{kind}{host[1:]}".removesuffix("1")


@once
@restoring
def nodes_lost_in_turn(rig):
    """Decommission a worker's node, cut off the next one for ever, and let the first one come back.

    Two tasks and the application master need two nodes. HDFS takes the host that is cut off for alive: each write may go
    to a DataNode that has it in its pipeline, and waits for a minute.
    """
    client = rig.submit("-r", "worker:2", *HEARTBEAT, f"[ $YTF_ROUND -gt 2 ] || exec tail -f /dev/null; {FILES}")
    first = worker_away_from_master(client)
    nodemanager = daemon_of(first, "nm")
    began = rig.clock()
    try:
        rig.cluster.decommission(first, grace=3)
        until(lambda: client.report()["rounds"][1:], 60, 2, client.lines)
        second = worker_away_from_master(client)
        until(lambda: rig.cluster.pid(nodemanager) is None, 60, what=f"the end of {nodemanager}")
        rig.cluster.unplug(second)
        until(lambda: client.lines().count(" lost: ") == 2, 120, what=client.lines)  # its round begins with its node
    finally:
        rig.cluster.decommission()
        rig.cluster.start_daemon(nodemanager)

    def expect(report):
        assert len(report["rounds"]) == 3 and "DECOMMISSIONED" in report["rounds"][1]["cause"], report
        assert {task["host"].partition(".")[0] for task in report["tasks"]} == {*NODES} - {second}, report

    return client.end(began, expect)


rows_of(
    nodes_lost_in_turn,
    "a node with a worker is decommissioned, with 3 s for its containers",
    "a worker's node is cut off for ever, and no other one has room until one comes back",
    "the host of a DataNode is cut off for ever",
)


@row("a task fills the disk of its node", Reason.NODE_LOST, 150)
def disk_full(rig):
    """The NodeManager takes it out of service; Hadoop's default is 90 %."""
    client = rig.submit(*releasable(rig, "full"), "-r", "worker:2", "--max_container_losses", "0", FILL)
    host = worker_away_from_master(client)
    began = rig.clock()
    release(rig, "full", host)
    outcome = client.end(began)
    assert "UNHEALTHY" in outcome.message and "/disk/local" in outcome.message, outcome.message
    return outcome


@row("the coordinator's node and that of one worker are cut off from each other", Reason.HEARTBEAT_LOST, 120)
def worker_cut_off_from_coordinator(rig):
    client = rig.submit("-r", "worker:2", *HEARTBEAT, "--max_container_losses", "0", FOREVER)
    host, master = worker_away_from_master(client), client.master()
    began = rig.clock()
    rig.cluster.block(master, host)
    return client.end(began)


@row("the coordinator's node is cut off from all other nodes", Reason.HEARTBEAT_LOST, 120)
def all_nodes_cut_off_from_coordinator(rig):
    client = rig.submit("-r", "worker:3", *HEARTBEAT, "--max_container_losses", "0", FOREVER)
    hosts, master = {*client.running(3).values()}, client.master()
    began = rig.clock()
    for host in hosts - {master}:
        rig.cluster.block(master, host)
    return client.end(began)


@row("the ResourceManager is cut off until all nodes expire; the client calls again at once", Reason.SUCCEEDED, 300)
def resourcemanager_cut_off(rig):
    """The old task reaches its coordinator all the time; the retry begins on the first node that is back."""
    words = *releasable(rig, "beats"), "--run_id", "cut-off", *HEARTBEAT, "-r", "worker:1", BEATS
    client = rig.submit(*words)
    client.running(1)
    began = rig.clock()
    for node in NODES:
        rig.cluster.block("master", node, RESOURCEMANAGER)
    lost = client.wait()
    assert lost["reason"] == "NODE_LOST" and lost["retryable"], lost
    known = len(rig.applications())
    client = rig.submit(*words)
    until(lambda: client.process.poll() is not None or len(rig.applications()) > known, 120, 0.5, client.lines)
    old = beating(rig, "beats")
    pass_time(rig, 2)
    assert len(old) == 1 and beating(rig, "beats") == old, (old, client.lines())
    rig.cluster.unblock("master")
    return second_trains_alone(rig, client, "beats", began)


@row("the ResourceManager and the coordinator's node are cut off from each other; the client calls again at once",
     Reason.SUCCEEDED, 300)  # fmt: skip
def resourcemanager_cut_off_from_coordinator(rig):
    """Coordinator and agents reach each other all the time; YARN takes the application master for lost."""
    words = *releasable(rig, "apart"), "--run_id", "apart", *HEARTBEAT, "-r", "worker:1", BEATS
    client = rig.submit(*words)
    client.running(1)
    began = rig.clock()
    rig.cluster.block("master", client.master(), RESOURCEMANAGER)
    lost = client.wait()
    assert lost["reason"] == "NODE_LOST" and lost["retryable"], lost
    return second_trains_alone(rig, rig.submit(*words), "apart", began)


@once
def nameless(rig):
    """Run and kill a job where no address has a name, and clocks differ; return both outcomes.

    A NameNode refuses such DataNodes until a property allows them; YARN names the nodes by their addresses, and lets no
    container start on a node whose clock is 10 minutes ahead. The last job: what it restores would take more CPU.
    """
    refused, file = "because hostname cannot be resolved", rig.cluster.directory / "master" / "conf" / "hdfs-site.xml"
    for node in ("master", "edge", *NODES):
        rig.cluster.use_dns(node)
    restart(rig, "dn3")
    until(lambda: refused in (rig.cluster.settings.logs / "dn3.log").read_text(), 60, what=refused)
    file.write_text(file.read_text().replace("</configuration>", f"{ALLOW_NAMELESS}</configuration>"))
    for host, seconds in CLOCKS.items():
        rig.cluster.set_clock(host, seconds)
    restart(rig, "nn", *(daemon_of(node, "nm") for node in NODES))
    until(lambda: rig.live_datanodes() == HOSTS, 60, what="all DataNodes are live")
    now = time.time()  # a task starts less than five minutes later
    tests = [f"{{ [ $(hostname -s) != {host} ] || [ $((($(date +%s) - {now + seconds:.0f}) / 300)) = 0 ]; }}"
             for host, seconds in CLOCKS.items()]  # fmt: skip
    trained = rig.play("-r", "worker:3", f"echo the-log; {' && '.join(tests)} && {RING}", expect=named_by_addresses)
    assert "the-log" in rig.run(*YTF, "logs", *trained.applications).stdout, trained
    client = rig.submit("-r", "worker:1", FOREVER)
    until(lambda: " RUNNING, http" in client.lines(), 60, what=client.lines)
    began = rig.clock()
    rig.cluster.unplug("edge")
    client.process.terminate()
    pass_time(rig, 10)
    rig.cluster.plug("edge")
    return trained, client.end(began)


@MATRIX.row("no address has a name, nor has a host a file of names", Reason.SUCCEEDED, 150, alone=True)
def no_reverse_lookup(rig):
    return nameless(rig)[0]


@MATRIX.row("the clock of one node is 10 minutes behind, that of another 9 ahead", Reason.SUCCEEDED, 150, alone=True)
def clocks_differ(rig):
    return nameless(rig)[0]


@MATRIX.row("the client gets SIGTERM while it is cut off for 10 s", Reason.KILLED, 150, alone=True)
def client_cut_off_while_it_kills(rig):
    return nameless(rig)[1]


def named_by_addresses(report):
    on_different_hosts(report)
    found = sorted(address.rpartition(":")[0] for address in report["metrics"]["addresses"])
    assert found == ["10.77.0.11", "10.77.0.12", "10.77.0.13"], report


def restart(rig, *names):
    """End daemons as an administrator does, and start them again."""
    for name in names:
        rig.cluster.stop_daemon(name)
    for name in names:
        rig.cluster.start_daemon(name)


@pytest.mark.parametrize("row", MATRIX.rows, ids=str)
def test_fault_of_the_network_ends_as_the_matrix_says(row, played):
    check(row, played)
