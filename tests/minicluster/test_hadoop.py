"""The embedded Hadoop as real daemons: start and end, shims, containers, and every way to disturb it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.access import plain
from support.cluster_jobs import job
from support.javas import java_home
from support.two_nodes import launcher_on
from support.waiting import PATIENCE, until
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster, daemons
from tf_yarn_ops.minicluster.java import find_java
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

CLI = [sys.executable, "-c", "from tf_yarn_ops.minicluster.commands import minicluster; minicluster()"]


def run_cli(*arguments):
    return subprocess.run([*CLI, *map(str, arguments)], capture_output=True, text=True, timeout=180)


def run(cluster, *command):
    """Run a program that the cluster's shims answer; give what it printed."""
    environ = {**os.environ, **cluster.environ}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, env=environ)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def get(url, accept="application/json"):
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return answer.read().decode()


def get_json(url):
    return json.loads(get(url))


def list_pids(cluster):
    return dict(cluster.status().daemons)


def start_shell(cluster, command, **variables):
    """Submit an application whose master is a shell with these variables, without a JVM."""
    with contextlib.closing(plain(cluster).launcher()) as launcher:
        application, _ = launcher.session.resourcemanager.new_application()
        entries = [{"key": name, "value": value} for name, value in variables.items()]
        launcher.session.resourcemanager.submit(
            {
                "application-id": application,
                "application-name": "trial",
                "application-type": "shell",
                "queue": "default",
                "max-app-attempts": 1,
                "am-container-spec": {"commands": {"command": command}, "environment": {"entry": entries}},
                "resource": {"memory": 128, "vCores": 1},
            }
        )


@pytest.fixture(scope="module")
def two_ups(tmp_path_factory):
    """Start a cluster after an `up` that was killed while it formatted, by two `up`s at once; return what they print."""
    directory = tmp_path_factory.mktemp("full")
    with subprocess.Popen([*CLI, "up", "--dir", str(directory)], stderr=subprocess.PIPE, text=True) as interrupted:
        assert "formatting HDFS\n" in iter(interrupted.stderr.readline, "")
        interrupted.kill()
    command = [*CLI, "up", "--json", "--dir", str(directory)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    yield [json.loads(process.communicate(timeout=180)[0]) for process in both]
    assert run_cli("down", "--dir", directory).returncode == 0


@pytest.fixture(scope="module")
def full(two_ups):
    return MiniCluster.attach(two_ups[0]["directory"])


def interrupt_up(folder, number):
    """Send an `up` a signal while it waits for its daemons; return the pids that it leaves."""
    command = [*CLI, "up", "--light", "--nodes", "2", "--dir", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        for line in program.stderr:
            if line.startswith("waiting for"):
                program.send_signal(number)
                break
    if number == signal.SIGINT:
        return daemons.find_all(folder)
    # A JVM that begins has no command line for a moment.
    return until(lambda: len(found := daemons.find_all(folder)) == 3 and found, 30)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Start a cluster of two nodes without HDFS on Java 11, after an `up` that gets Ctrl-C and one that is killed.

    Return the cluster, its status and its daemons' pids as they were then, and the pids that each interrupted `up` has left,
    by the signal.
    """
    folder, java = tmp_path_factory.mktemp("light"), java_home(11)
    cluster, left = MiniCluster(folder, nodes=2, light=True), {}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JAVA_HOME", str(java))
            for number in (signal.SIGINT, signal.SIGKILL):
                left[number] = interrupt_up(folder, number)
            cluster.up()
        yield SimpleNamespace(cluster=cluster, java=java, left=left, status=cluster.status(), pids=list_pids(cluster))
    finally:
        cluster.down()  # ``with`` leaves a cluster that it found running
    assert daemons.find_all(folder) == ()


@pytest.fixture(scope="module")
def two_nodes(interrupted):
    """Two nodes, no HDFS, beside the full one."""
    return interrupted.cluster


@pytest.fixture
def ready(full):
    """The full cluster, whatever the test before did to it."""
    full.up()
    return full


@pytest.fixture
def light(two_nodes):
    """The light cluster, whatever the test before did to it."""
    two_nodes.up()
    return two_nodes


@pytest.fixture
def folder(tmp_path):
    """A folder for a cluster of the test's own, in which nothing is left running."""
    yield tmp_path
    MiniCluster(tmp_path).down()


# ---------------------------------------------------------------- up, status, env


def test_an_up_killed_while_formatting_can_be_repeated(full, two_ups):
    assert full.status().ready and all(told["ready"] for told in two_ups)
    assert list(full.status().daemons) == ["nn", "dn", "rm", "nm"]


def test_two_ups_at_once_make_one_cluster(full, two_ups):
    first, second = two_ups
    assert first == second
    assert len(daemons.find_all(full.directory)) == 4


def test_up_shows_the_next_step_and_is_idempotent(ready):
    before = list_pids(ready)
    assert all(before.values())
    ran = run_cli("up", "--dir", ready.directory)
    assert (ran.returncode, ran.stdout) == (0, "")
    for line in (f"{ready.resourcemanager_url}/cluster", ready.namenode_url, 'eval "$(ytf minicluster env --dir '):
        assert line in ran.stderr
    assert list_pids(ready) == before
    described = json.loads(run_cli("up", "--json", "--dir", ready.directory).stdout)
    assert described == {
        "directory": str(ready.directory), "ready": True, "active_nodes": 1, "daemons": before,
        "resourcemanager_url": ready.resourcemanager_url, "namenode_url": ready.namenode_url,
        "default_filesystem": ready.default_filesystem,
    }  # fmt: skip


def test_the_job_that_up_proposes_runs(ready):
    proposed = re.search(r"^ +(ytf-submit .*)$", run_cli("up", "--dir", ready.directory).stderr, re.M)[1]
    environ = {**os.environ, **ready.environ}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    ran = subprocess.run(["bash", "-c", proposed], capture_output=True, text=True, timeout=180, env=environ)
    assert ran.returncode == 0, ran.stderr
    application = ran.stdout.strip()
    page = f"{ready.resourcemanager_url}/ws/v1/cluster/apps/{application}"
    until(lambda: get_json(page)["app"]["logAggregationStatus"] == "SUCCEEDED", what="the aggregated log")
    log = run(ready, "yarn", "logs", "-applicationId", application, "-log_files", "worker.log")
    assert "I am worker 1\n" in log


def test_other_options_are_refused_while_it_runs(ready):
    with pytest.raises(MiniClusterError, match=r"runs with light False, not True: `ytf minicluster down` first"):
        MiniCluster(ready.directory, light=True).up()


def test_leaving_a_context_that_found_it_running_leaves_it_running(ready):
    before = list_pids(ready)
    with MiniCluster(ready.directory):
        pass
    assert list_pids(ready) == before


def test_command_without_an_address_names_the_running_cluster(ready, tmp_path):
    unknown = {
        name: value for name, value in os.environ.items() if name not in ("HADOOP_CONF_DIR", "YTF_RESOURCEMANAGER")
    }
    environ = {**unknown, "HOME": str(tmp_path), "YTF_MINICLUSTER_DIR": str(ready.directory)}
    ran = subprocess.run(
        [sys.executable, "-c", "from tf_yarn_ops.cli import main; main()", "list"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 2 and 'next: eval "$(ytf minicluster env)"' in ran.stderr, ran.stderr


def test_env_leads_a_shell_to_the_cluster(ready):
    command = " ".join(f"'{word}'" for word in [*CLI, "env", "--dir", str(ready.directory)])
    script = f'eval "$({command})"; yarn classpath --glob; hdfs getconf -confKey fs.defaultFS'
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True).stdout
    classpath, filesystem = said.splitlines()
    assert "hadoop-yarn-client" in classpath
    assert filesystem == ready.default_filesystem


# ---------------------------------------------------------------- what it serves


def test_pages_answer(ready):
    node = get_json(f"{ready.resourcemanager_url}/ws/v1/cluster/nodes")["nodes"]["node"][0]
    assert get_json(f"{ready.resourcemanager_url}/ws/v1/cluster/info")["clusterInfo"]["state"] == "STARTED"
    assert "Cluster Metrics" in get(f"{ready.resourcemanager_url}/cluster", accept="text/html")
    assert "NodeManager" in get(f"http://{node['nodeHTTPAddress']}/node", accept="text/html")
    assert "NameNode" in get(ready.namenode_url, accept="text/html")


def test_resourcemanager_shows_clients_all_they_need(ready):
    properties = get_json(f"{ready.resourcemanager_url}/conf?format=json")["properties"]
    told = {entry["key"]: entry["value"] for entry in properties}
    assert told["fs.defaultFS"] == ready.default_filesystem
    assert f"http://{told['dfs.namenode.http-address']}" == ready.namenode_url
    assert told["yarn.application.classpath"].endswith(f",{ready.directory}/conf")


def open_sockets(pid):
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link)):
                yield found[1]


def test_nothing_listens_beyond_this_machine(ready):
    pids = list(list_pids(ready).values())
    sockets = {inode for pid in pids for inode in open_sockets(pid)}
    rows = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    listening = [row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets]
    assert len(listening) >= 13
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_hdfs_takes_and_gives_files_and_audits_them(ready, tmp_path):
    (tmp_path / "in").write_bytes(bytes(range(256)) * 100)
    run(ready, "hdfs", "dfs", "-put", str(tmp_path / "in"), "kept.bin")
    home = f"{ready.namenode_url}/webhdfs/v1/user/{ready.settings.user}"
    with urllib.request.urlopen(f"{home}/kept.bin?op=OPEN", timeout=60) as answer:
        assert answer.read() == (tmp_path / "in").read_bytes()
    audit = (ready.directory / "logs" / "hdfs-audit.log").read_text()
    assert re.search(r"cmd=create\tsrc=/user/\w+/kept\.bin", audit)
    listed = run(ready, "hadoop", "fs", "-ls", "/", "/tmp")
    assert re.search(r"^drwxrwxrwt .* /tmp$", listed, re.M)
    assert re.search(r"^drwxrwxrwt .* /tmp/logs$", listed, re.M)


def test_a_node_has_two_gpus_to_count(ready):
    node = get_json(f"{ready.resourcemanager_url}/ws/v1/cluster/nodes")["nodes"]["node"][0]
    resources = node["totalResource"]["resourceInformations"]["resourceInformation"]
    assert {entry["name"]: entry["value"] for entry in resources}["yarn.io/gpu"] == 2


def test_safe_mode_is_not_ready(ready):
    try:
        run(ready, "hdfs", "dfsadmin", "-safemode", "enter")
        assert not ready.status().ready
    finally:  # the other tests of the cluster would wait for it
        run(ready, "hdfs", "dfsadmin", "-safemode", "leave")
    assert ready.status().ready


# ---------------------------------------------------------------- containers


def test_containers_have_the_white_list_and_jvm_options_of_their_own(light, tmp_path):
    """A value joined to the cluster's own by ":" would keep the application master's JVM from starting."""
    own = {"own": {"JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -Xshare:auto"}, "none": {}}
    for name, variables in own.items():
        start_shell(light, f"env > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/{name}", **variables)
        until((tmp_path / name).exists, 60)
        options = variables.get("JDK_JAVA_OPTIONS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        assert {
            f"HADOOP_CONF_DIR={light.directory}/conf", f"JAVA_HOME={light.environ['JAVA_HOME']}",
            f"JDK_JAVA_OPTIONS={options}",
        } <= {*(tmp_path / name).read_text().splitlines()}  # fmt: skip


def test_a_queue_can_be_stopped_and_started(ready):
    file = ready.settings.configuration / "capacity-scheduler.xml"
    running = file.read_text()
    key = "<name>yarn.scheduler.capacity.root.low.state</name><value>"
    for text, state in ((running.replace(f"{key}RUNNING", f"{key}STOPPED"), "STOPPED"), (running, "RUNNING")):
        file.write_text(text)
        run(ready, "yarn", "rmadmin", "-refreshQueues")
        scheduler = get_json(f"{ready.resourcemanager_url}/ws/v1/cluster/scheduler")["scheduler"]["schedulerInfo"]
        assert {queue["queueName"]: queue["state"] for queue in scheduler["queues"]["queue"]}["low"] == state


# ---------------------------------------------------------------- light, two nodes, side by side


def test_two_nodes_are_active_and_a_full_cluster_runs_beside_them(ready, light):
    assert light.status().ready
    assert light.status().active_nodes == 2
    assert list(light.status().daemons) == ["rm", "nm", "nm2"]
    assert light.namenode_url is None
    assert light.default_filesystem == "viewfs://minicluster"
    assert not set(light.settings.ports.values()) & set(ready.settings.ports.values())
    assert ready.status().ready
    ids = {node["id"] for node in get_json(f"{light.resourcemanager_url}/ws/v1/cluster/nodes")["nodes"]["node"]}
    assert len(ids) == 2


def test_job_succeeds_and_fails_on_java_11(light, interrupted):
    """The others run on the machine's own. On 21: tests/examples/test_demo.py; on 25: tests/documents/test_wheel.py."""
    assert find_java({**os.environ, "JAVA_HOME": light.environ["JAVA_HOME"]}, newest=11)
    with launcher_on(light) as launcher:
        failing = launcher.submit(job("exit 3"))
        report = launcher.wait(launcher.submit(job(f"test $JAVA_HOME = {interrupted.java}")), timeout=180)
        assert report.reason is Reason.SUCCEEDED, report
        assert launcher.wait(failing, timeout=180).reason is Reason.TASK_FAILED


def test_a_light_cluster_keeps_its_files_in_its_folder(light, tmp_path):
    (tmp_path / "in").write_text("hello")
    run(light, "hdfs", "dfs", "-put", str(tmp_path / "in"), "/tmp/hello")
    assert (light.directory / "files" / "tmp" / "hello").read_text() == "hello"
    home = light.directory / "files" / "user" / light.settings.user
    assert home.is_dir()


def test_down_ends_containers_of_a_crashed_node_too(light):
    """Even a process that left its container's session, as daemons of users do."""
    for _ in range(2):
        start_shell(light, "setsid sleep 6021 & exec sleep 6021")
    until(lambda: len(_sleepers()) == 4, what="four sleeping processes")
    os.kill(light.pid("nm"), signal.SIGKILL)
    os.kill(light.pid("nm2"), signal.SIGSTOP)
    light.down()
    assert _sleepers() == []
    assert daemons.find_all(light.directory) == ()


def _sleepers():
    asked = subprocess.run(["pgrep", "-fx", "sleep 6021"], capture_output=True, text=True)
    return asked.stdout.split()


# ---------------------------------------------------------------- daemons that go and come


def make_folder(cluster, name):
    made = f"{cluster.namenode_url}/webhdfs/v1/tmp/{name}?op=MKDIRS&user.name={cluster.settings.user}"
    urllib.request.urlopen(urllib.request.Request(made, method="PUT"), timeout=60).close()


def list_folder(cluster):
    return get(f"{cluster.namenode_url}/webhdfs/v1/tmp?op=LISTSTATUS")


def test_a_killed_daemon_is_shown_and_up_starts_only_that(ready):
    make_folder(ready, "before-the-kill")
    before = list_pids(ready)
    os.kill(ready.pid("nn"), signal.SIGKILL)
    until(lambda: ready.pid("nn") is None, 30)
    told = run_cli("status", "--dir", ready.directory)
    assert told.returncode == 3
    assert re.search(r"^nn +NameNode +down$", told.stdout, re.M)
    assert told.stdout.endswith("not ready\n")
    assert run_cli("up", "--dir", ready.directory).returncode == 0
    after = list_pids(ready)
    assert after.pop("nn") != before.pop("nn")
    assert after == before
    assert "before-the-kill" in list_folder(ready), "the next up formats nothing"


def test_a_daemon_that_dies_on_the_way_is_quoted_and_the_rest_ended(folder):
    # The ResourceManager looks at this value first.
    cluster = MiniCluster(folder, light=True, properties={"yarn.resourcemanager.am.max-attempts": "0"})
    with pytest.raises(MiniClusterError) as caught:
        cluster.up()
    assert str(caught.value).startswith("the ResourceManager ended during the start (exit ")
    assert f"{cluster.directory}/logs/rm.log" in str(caught.value)
    assert "SHUTDOWN_MSG" in str(caught.value)
    assert daemons.find_all(cluster.directory) == ()


def test_an_interrupted_up_can_be_repeated(interrupted):
    """Ctrl-C stops what was started, a kill -9 cannot; the next call goes on from there."""
    assert interrupted.status.ready
    left = {number: len(pids) for number, pids in interrupted.left.items()}
    assert left == {signal.SIGINT: 0, signal.SIGKILL: 3}
    assert set(interrupted.left[signal.SIGKILL]) <= set(interrupted.pids.values())


def test_down_leaves_no_process_and_keeps_the_files(ready):
    """The next `up` formats nothing: see the test of a killed daemon."""
    make_folder(ready, "still-there")
    ended = run_cli("down", "--dir", ready.directory)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert daemons.find_all(ready.directory) == ()
    assert run_cli("status", "--dir", ready.directory).returncode == 3
    assert any(b"/tmp/still-there" in path.read_bytes() for path in ready.directory.rglob("edits_*"))
