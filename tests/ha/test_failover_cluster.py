"""Two ResourceManagers and two NameNodes: the active one is killed at every step of a job, cut off, or the first hangs.

A ResourceManager is killed in tests/secure/test_pairs.py, where tokens must survive it too.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest

from support import failover_rows
from support.access import REQUEST_TIMEOUT, plain
from support.cluster_jobs import job, until_it_runs, until_its_log_is_stored
from support.commit_rows import read, train
from support.hadoop import HadoopCluster
from support.hadoop.cluster import make_active
from support.hadoop.hosts import missing_for_hosts
from support.httpfs import running_httpfs
from support.programs import SUBMIT, YTF
from support.tls import Authority
from support.two_nodes import launcher_by
from support.waiting import PATIENCE, until
from support.wire_proxy import Proxy
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.minicluster import health
from tf_yarn_ops.runtime.common.committed_output import CommitPlan, read_success
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

#: Seconds for which our clients await an answer here, and that none of them may take as long as.
LONG, BRIEF = 600.0, 30.0 * PATIENCE
#: A group that nobody has: of the clients that a partition cuts off.
CUT_OFF = 4242424
WITH_SBIN = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
WRITE_AND_READ = """\
echo word-for-the-log; until [ -e {gate} ]; do sleep 0.1; done; python3 -c '
import fsspec, os
path = os.environ["DTF_OUTPUT_PATH"] + "/file"
with fsspec.open(path, "wb") as file:
    file.write(b"x" * 300000)
with fsspec.open(path, "rb") as file:
    assert file.read() == b"x" * 300000
'"""


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    with HadoopCluster(tmp_path_factory.mktemp("ha"), ha=True) as cluster:
        yield cluster


def test_one_address_is_enough(hadoop):
    failover_rows.one_address_is_enough(plain(hadoop))


def test_gateway_that_asks_the_standby_works(hadoop, tmp_path):
    failover_rows.a_gateway_that_asks_the_standby_is_no_obstacle(hadoop, Authority(tmp_path), tmp_path)


@contextlib.contextmanager
def hung(hadoop, kind, role="standby"):
    """Stop the first daemon of a pair: it takes connections, and answers nothing.

    If it is the active one, ZooKeeper makes the other ResourceManager active, an administrator the other NameNode, who
    then kills the first.
    """
    pair = {"nn": hadoop.settings.namenodes, "rm": hadoop.settings.resourcemanagers}[kind]
    # A failover costs the start of a daemon; in the order of this file none is needed here.
    if (hadoop.active(kind) == pair[0]) != (role == "active"):
        hadoop.failover(kind)
    hadoop.stop_daemon(pair[0], signal.SIGSTOP)
    fenced = (kind, role) == ("nn", "active")
    try:
        if fenced:
            make_active(hadoop.settings, pair[1])
        yield
    finally:
        hadoop.stop_daemon(pair[0], signal.SIGKILL if fenced else signal.SIGCONT)
        if fenced:
            hadoop.start_daemon(pair[0])
        until(lambda: {hadoop.settings.ask_role(name) for name in pair} == {"active", "standby"}, 60)


@pytest.fixture
def brief(hadoop, tmp_path):
    """Return a function that runs a command, whose requests may take `LONG`, and asserts that it is `BRIEF`."""
    file = tmp_path / "site.yaml"
    file.write_text(f"request_timeout: {LONG}\n")
    environ = {**plain(hadoop).environ, "YTF_SITE": str(file)}

    def run(*words):
        began = time.monotonic()
        ran = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=LONG)
        took = time.monotonic() - began
        print(f"{took:.1f} s: {words[len(YTF) - 1 :]}")
        assert (ran.returncode, took < BRIEF) == (0, True), (words, took, ran.stdout, ran.stderr)
        return ran.stdout

    return run


def test_hung_resourcemanager_costs_each_client_a_short_wait(hadoop, brief):
    """As the active one, and as the standby that it is when it goes on."""
    own = ("--environment", f"venv://{sys.prefix}", "-m", "256", "-r", "worker:1", "sleep 600")
    with hung(hadoop, "rm", "active"):
        ours = brief(*SUBMIT, *own).strip()
        assert ours in brief(*YTF, "list")
    with hung(hadoop, "rm", "standby"):
        try:
            assert ours in brief(*YTF, "status", ours)
        finally:
            brief(*YTF, "kill", ours)


def test_hung_namenode_holds_up_no_running_training(hadoop, brief, tmp_path):
    """Program and coordinator go on; what Hadoop's own clients wait for comes when it answers again."""
    tmp_path.chmod(0o777)
    gate, output = tmp_path / "gate", f"hdfs:///tmp/trained-{os.getpid()}"
    with launcher_by(plain(hadoop)) as launcher:
        spec = job(WRITE_AND_READ.format(gate=gate), output=output, commit="new")
        ours = launcher.submit(spec)
        until_it_runs(launcher, ours)
        with hung(hadoop, "nn", "active"):
            began = time.monotonic()
            gate.touch()
            report = launcher.wait(ours, timeout=60 * PATIENCE)
            print(f"{time.monotonic() - began:.1f} s until the verdict")
            assert (report.reason, report.output_path) == (Reason.SUCCEEDED, output), report
            assert [task.starts for task in report.tasks] == [1] and len(report.rounds) == 1, report
            files, path = launcher.cluster.open_path(f"{output}/file")
            assert files.status(path).length == 300000
        assert ours in brief(*YTF, "history", "--json")
        until_its_log_is_stored(launcher, ours)
        assert "word-for-the-log" in brief(*YTF, "logs", ours)


def test_hung_namenode_costs_each_client_a_short_wait(hadoop, brief):
    user, folder = hadoop.settings.user, f"/tmp/hung-{os.getpid()}"
    with hung(hadoop, "nn"):
        files = Hdfs(hadoop.namenode_urls, user, {}, seconds=LONG)
        began = time.monotonic()
        files.makedirs(folder, 0o755)
        files.create(f"{folder}/one", b"content", 0o644)
        files.move(f"{folder}/one", f"{folder}/two")
        assert read(files, f"{folder}/two") == b"content"
        assert [found.name for found in files.list(folder)] == ["two"]
        made = train(files, CommitPlan("replace", f"{folder}/digits", "", "a" * 16), 1)
        took = {"container": time.monotonic() - began}
        assert read_success(read(files, f"{made.path}/_SUCCESS")).application_id == "application_1700000000000_0001"
        client = plain(hadoop).discover(request_timeout=LONG).open_filesystem()
        began = time.monotonic()
        client.replace(f"{folder}/three", b"more", 0o600)
        assert client.read(f"{folder}/three") == b"more"
        assert client.delete(folder)
        took["client"] = time.monotonic() - began
        print(took)
        assert max(took.values()) < BRIEF, took
        brief(*YTF, "history", "--json")


def commit_and_kill(hadoop, first, path):
    """Commit while the active NameNode renames the output, and is killed before it answers; return path and marker.

    The other one, which is active some time later, finds no source.
    """
    other = next(name for name in hadoop.settings.namenodes if name != first)
    with Proxy(hadoop.settings.web_address(first)) as proxy:

        def lose(when, method, place, parameters):
            if (when, parameters.get("destination")) == ("after", path):
                proxy.stop_at = None
                hadoop.stop_daemon(first, signal.SIGKILL)
                raise ConnectionResetError

        proxy.stop_at = lose
        files = Hdfs((proxy.url, hadoop.settings.web_address(other)), hadoop.settings.user, {}, patience=LONG)
        made = train(files, CommitPlan("replace", path, "", "a" * 16), 1)
        assert proxy.stop_at is None
        return made.path, read_success(read(files, f"{path}/_SUCCESS"))


@pytest.fixture(scope="module")
def killed(hadoop, tmp_path_factory):
    """Kill the active NameNode inside the last rename of a commit, amid what is done behind an HttpFS.

    Clients, and the nodes, reach HDFS through this HttpFS only. Return what the commit has made, the job that ran
    meanwhile, and the history that a client lists then.
    """
    folder, seen = tmp_path_factory.mktemp("killed"), SimpleNamespace(path=f"/tmp/commit-{os.getpid()}/digits")
    with running_httpfs(hadoop, folder / "httpfs") as url, ThreadPoolExecutor(1) as pool:
        file, access = folder / "site.yaml", plain(hadoop)
        file.write_text(f"webhdfs: {url}\nrequest_timeout: {REQUEST_TIMEOUT}\n")
        site = Site(webhdfs=[url], request_timeout=REQUEST_TIMEOUT)
        access = replace(access, site=site, environ={**access.environ, "YTF_SITE": str(file)})
        commits = []

        def kill(namenode):
            commits.append(pool.submit(commit_and_kill, hadoop, namenode, seen.path))
            until(lambda: hadoop.pid(namenode) is None or (commits[0].done() and commits[0].result()), 120)

        with launcher_by(access) as launcher:
            assert launcher.cluster.storage.webhdfs == site.webhdfs
            seen.job = failover_rows.nothing_is_lost_when_the_namenode_is_killed(access, launcher, kill)
        seen.committed = commits[0].result()
        words = [*YTF, "history", "--json"]
        seen.listed = subprocess.run(words, env=access.environ, capture_output=True, text=True, timeout=60)
    return seen


def test_commit_survives_a_failover_inside_its_last_rename(killed):
    path, success = killed.committed
    assert (path, success.application_id) == (killed.path, "application_1700000000000_0001")


def test_nothing_is_lost_when_the_namenode_behind_an_httpfs_is_killed(killed):
    """HttpFS follows the active one, for clients and for the nodes that commit and write the record."""
    assert killed.job in killed.listed.stdout, killed.listed.stderr


@contextlib.contextmanager
def cut_off(hadoop, daemon):
    """Let the kernel drop what processes of the group `CUT_OFF` send to a daemon."""
    ports = ", ".join(str(port) for name, port in hadoop.settings.ports.items() if name.partition("-")[0] == daemon)
    table = f"inet ytf-{os.getpid()}"
    rules = f"""
    add table {table}
    add chain {table} outgoing {{ type filter hook output priority 0; }}
    add rule {table} outgoing meta skgid {CUT_OFF} tcp dport {{ {ports} }} drop
    """
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True, env=WITH_SBIN)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete", "table", *table.split()], check=True, env=WITH_SBIN)


def applications(hadoop):
    """Return the states of all applications that the active ResourceManager knows, by id."""
    urls = dict(zip(("rm", "rm2"), hadoop.resourcemanager_urls, strict=True))
    found = health.get_json(hadoop.settings, f"{urls[hadoop.active('rm')]}/ws/v1/cluster/apps")
    return {one["id"]: one["state"] for one in (found["apps"] or {}).get("app", [])}


def test_active_ones_that_a_client_cannot_reach_are_left_for_the_others(hadoop, tmp_path):
    """The standbys answer it. Before the failover a call ends as an outage; afterwards all goes on, with one training.

    So does a job behind a gateway with a path for each ResourceManager, whose client is not cut off.
    """
    gateway = failover_rows.a_gateway_with_a_path_for_each(hadoop, Authority(tmp_path), tmp_path)
    if missing := missing_for_hosts():
        with gateway:
            hadoop.failover("rm", restart=False)
        pytest.skip(f"a partition needs {missing}")
    gate, log = tmp_path / "gate", tmp_path / "log"
    own = ("--json", "--environment", f"venv://{sys.prefix}", "-m", "256", "-r", "worker:1")
    options = {"env": plain(hadoop).environ, "text": True, "group": CUT_OFF, "stdout": subprocess.PIPE}

    def run(*words):
        began = time.monotonic()
        ran = subprocess.run(words, **options, stderr=subprocess.PIPE, timeout=LONG)
        print(f"{time.monotonic() - began:.1f} s, exit {ran.returncode}: {words[3:]} {ran.stderr[-500:]}")
        assert time.monotonic() - began < 2 * BRIEF, (words, ran)
        return ran

    def trained_once(report):
        assert (report["reason"], [task["starts"] for task in report["tasks"]]) == ("SUCCEEDED", [1]), report

    before = applications(hadoop)
    with log.open("w") as file:
        words = [*SUBMIT, "--wait", *own, f"until [ -e {gate} ]; do sleep 0.1; done"]
        waiting = subprocess.Popen(words, **options, stderr=file)
    try:
        ours = until(lambda: re.search(r"application_\S+(?= RUNNING)", log.read_text()), 120, what=log.read_text)[0]
        with cut_off(hadoop, hadoop.active("rm")):
            until(lambda: "still waiting" in log.read_text(), 120, what=log.read_text)
            asked = run(*YTF, "status", ours)
            assert (asked.returncode, "timed out" in asked.stderr) == (4, True), asked
            with gateway as other:
                hadoop.failover("rm", restart=False)  # nothing comes after this test
            assert ours in run(*YTF, "list").stdout
            gate.touch()
            trained_once(json.loads(waiting.communicate(timeout=LONG)[0]))
        with cut_off(hadoop, hadoop.active("nn")):
            again = *SUBMIT, "--wait", "--run_id", "cut-off", *own, "echo the-log"
            report = json.loads(run(*again).stdout)
            assert report["reason"] == "CLUSTER_UNREACHABLE", report
            assert "timed out" in report["message"] and "is not active" in report["message"], report
            hadoop.failover("nn", restart=False)
            trained_once(report := json.loads(run(*again).stdout))
            assert report["application_id"] in run(*YTF, "history", "--json").stdout
            until(lambda: "the-log" in run(*YTF, "logs", report["application_id"]).stdout, 120, 1)
        begun = {name: state for name, state in applications(hadoop).items() if name not in before}
        assert begun == dict.fromkeys((ours, other, report["application_id"]), "FINISHED")
    finally:
        gate.touch()
        waiting.kill()
        waiting.communicate()
