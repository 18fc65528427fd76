"""Two ResourceManagers and two NameNodes, whose active one is killed at every step of a job.

A ResourceManager is killed in tests/secure/test_pairs.py, where tokens must survive it too.
"""

import os
import subprocess
from dataclasses import replace

import pytest

from support import failover_rows
from support.access import REQUEST_TIMEOUT, plain
from support.commit_rows import read, train
from support.hadoop import HadoopCluster
from support.httpfs import running_httpfs
from support.programs import YTF
from support.tls import Authority
from support.two_nodes import launcher_by
from support.wire_proxy import Proxy
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.runtime.common.committed_output import CommitPlan, read_success
from tf_yarn_ops.runtime.common.hdfs import Hdfs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


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
