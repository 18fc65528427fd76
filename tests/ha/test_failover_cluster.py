"""Two ResourceManagers and two NameNodes, whose active one is killed at every step of a job.

A ResourceManager is killed in tests/secure/test_pairs.py, where tokens must survive it too.
"""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from support import failover_rows
from support.access import REQUEST_TIMEOUT, plain
from support.cluster_jobs import job, until_it_runs
from support.commit_rows import read, train
from support.hadoop import HadoopCluster
from support.httpfs import running_httpfs
from support.programs import SUBMIT, YTF
from support.tls import Authority
from support.two_nodes import launcher_by
from support.waiting import PATIENCE
from support.wire_proxy import Proxy
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.runtime.common.committed_output import CommitPlan, read_success
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

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


def test_gateway_with_a_path_for_each_works(hadoop, tmp_path):
    failover_rows.a_gateway_with_a_path_for_each_works(hadoop, Authority(tmp_path), tmp_path)


def test_commit_survives_a_failover_inside_its_last_rename(hadoop):
    """The active NameNode renames, and is killed before it answers; the other one finds no source."""
    user, path = hadoop.settings.user, f"/tmp/commit-{os.getpid()}/digits"
    first, second = sorted(hadoop.settings.namenodes, key=lambda name: name != hadoop.active("nn"))
    with Proxy(hadoop.settings.web_address(first)) as proxy:

        def lose(when, method, place, parameters):
            if (when, parameters.get("destination")) == ("after", path):
                proxy.stop_at = None
                hadoop.failover("nn")
                raise ConnectionResetError

        proxy.stop_at = lose
        files = Hdfs((proxy.url, hadoop.settings.web_address(second)), user, {}, patience=60.0)
        made = train(files, CommitPlan("replace", path, "", "a" * 16), 1)
        assert proxy.stop_at is None and made.path == path
        assert read_success(read(files, f"{path}/_SUCCESS")).application_id == "application_1700000000000_0001"


def test_hung_namenode_holds_up_neither_client_nor_program(hadoop, tmp_path):
    """It takes connections and answers nothing; who starts anew asks it first, but Hadoop's own clients wait for it."""
    tmp_path.chmod(0o777)
    hung, gate = hadoop.settings.namenodes[0], tmp_path / "gate"
    if hadoop.active("nn") == hung:
        hadoop.failover("nn")

    def call(*words):
        environ = {**plain(hadoop).environ, "PATH": os.environ["PATH"]}
        ran = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=180 * PATIENCE)
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
        return ran.stdout

    with launcher_by(plain(hadoop)) as launcher:
        output = f"hdfs:///tmp/hung-{os.getpid()}"
        ours = launcher.submit(job(WRITE_AND_READ.format(gate=gate), output=output, commit="new"))
        until_it_runs(launcher, ours)
        hadoop.stop_daemon(hung, signal.SIGSTOP)
        try:
            gate.touch()
            report = launcher.wait(ours, timeout=240 * PATIENCE)
            assert (report.reason, report.output_path) == (Reason.SUCCEEDED, output), report
            assert [task.starts for task in report.tasks] == [1] and len(report.rounds) == 1, report
            assert "word-for-the-log" in call(*YTF, "logs", ours)
            assert ours in call(*YTF, "history", "--json")
            own = ("--environment", f"venv://{sys.prefix}", "-m", "256", "-r", "worker:1", "true")
            staged = call(*SUBMIT, *own).strip()
            launcher.kill(staged, "it is staged")
        finally:
            hadoop.stop_daemon(hung, signal.SIGCONT)


@pytest.fixture
def by_httpfs(hadoop, tmp_path):
    """Return the access of clients, and of the nodes, that reach HDFS through one HttpFS only."""
    with running_httpfs(hadoop, tmp_path / "httpfs") as url:
        file = tmp_path / "site.yaml"
        file.write_text(f"webhdfs: {url}\nrequest_timeout: {REQUEST_TIMEOUT}\n")
        access = plain(hadoop)
        environ = {**access.environ, "YTF_SITE": str(file)}
        yield replace(access, site=Site(webhdfs=[url], request_timeout=REQUEST_TIMEOUT), environ=environ)


def test_nothing_is_lost_when_the_namenode_behind_an_httpfs_is_killed(by_httpfs):
    """HttpFS follows the active one, for clients and for the nodes that commit and write the record."""
    with launcher_by(by_httpfs) as launcher:
        assert launcher.cluster.storage.webhdfs == by_httpfs.site.webhdfs
        ours = failover_rows.nothing_is_lost_when_the_namenode_is_killed(by_httpfs, launcher)
    words = [*YTF, "history", "--json"]
    listed = subprocess.run(words, env=by_httpfs.environ, capture_output=True, text=True, timeout=60)
    assert ours in listed.stdout, listed.stderr
