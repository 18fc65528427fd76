"""A real Apache Knox and a real KMS: staging, input and output of a job lie in an encryption zone, behind the gateway."""

import json
import os
import re
import signal
import urllib.request
from contextlib import closing

import pytest

from support.cluster_jobs import job, until_it_runs
from support.commit_rows import commits_whole_and_once, train
from support.hadoop import HadoopCluster
from support.hadoop.kms import build_kms_uri, make_zone, second_kms
from support.waiting import until
from tf_yarn_ops.errors import CommitRefused, CredentialsRefused, KmsUnreachable, LogMissing, TfYarnError
from tf_yarn_ops.follow.log_reader import Logs, find_log
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.committed_output import CommitPlan
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.commit import ResultExists

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

#: A machine without a Hadoop client: no program and no variable leads past the gateway.
ENVIRON = {"HOME": "/nowhere", "PATH": "/usr/bin:/bin"}
#: An address that Knox takes for one of YARN's.
URL = "http://rm:8088/cluster/app/1"


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    with HadoopCluster(tmp_path_factory.mktemp("knox"), kms=True, knox=True) as cluster:
        home = cluster.settings.gateway
        # Knox makes a topology ready at its first request, which takes seconds.
        site = Site(ca_file=str(home.ca_file), gateway_password_file=str(home.password_file), request_timeout=60)
        yield cluster, home, site


def test_job_in_an_encryption_zone_is_followed_through_knox(hadoop, tmp_path):
    cluster, home, site = hadoop
    user = cluster.settings.user
    (tmp_path / "data").write_text("from the zone")
    found = discover(f"{home.url}/default/yarn", ENVIRON, site=site)
    assert (found.user, found.storage.webhdfs) == (user, (f"{home.url}/default",))
    spec = job(
        f"echo '<hello> & more {URL}'; cat data; sleep 300",
        instances=2,
        deadlines=Deadlines(total=600),
        files={"data": str(tmp_path / "data")},
        output="/logs/mnist",
    )
    with closing(Launcher(found, environ=ENVIRON)) as launcher:
        application_id = launcher.submit(spec)
        until_it_runs(launcher, application_id)
        report = launcher.report(application_id)
        assert report.tracking_url == f"{home.url}/default/yarn/proxy/{application_id}/"
        # Knox rewrites what looks like its own in JSON: paths, and texts that end with an address of YARN.
        document = launcher.session.live.fetch_document(launcher.session.resourcemanager.get(application_id))
        assert (document["output_path"], URL in document["options"]["command"]) == ("/logs/mnist", True), document
        # On a node's page it replaces such an address and words before it, too; the coordinator serves bytes.
        own = f"<hello> & more {URL}\nfrom the zone"
        assert until(lambda: own in "".join(launcher.log(application_id, "worker:1")), 60, 0.2)
        application = launcher.session.resourcemanager.get(application_id)
        file = find_log(application, launcher.report(application_id), "worker:0")
        with closing(Logs(launcher.session, environ=ENVIRON)) as logs:
            content = until(lambda: logs.new_bytes(file, 0), 60)
            assert own.encode() in content
            assert logs.new_bytes(file, len(content) - 4) == content[-4:]
        assert "Listening on port" in "".join(launcher.log(application_id, "coordinator"))
        directory = f"{cluster.namenode_url}/webhdfs/v1{found.directory(application_id)}"
        with urllib.request.urlopen(f"{directory}?op=GETFILESTATUS&user.name={user}", timeout=60) as answer:
            assert json.load(answer)["FileStatus"]["encBit"] is True
        report = launcher.kill(application_id, "enough of it")
        assert (report.reason, report.message) == (Reason.KILLED, "enough of it")
        assert report.tasks[0].log_url.startswith(f"{home.url}/default/yarn/nodemanager/node/containerlogs/container_")
        assert own in "".join(launcher.log(application_id, "worker:1"))
        assert found.open_filesystem().status(found.directory(application_id)) is None
    rest = Site(**vars(site) | {"default_filesystem": found.storage.default})
    with closing(
        Launcher(discover(f"{home.url}/rest/resourcemanager", ENVIRON, site=rest), environ=ENVIRON)
    ) as launcher:
        assert launcher.report(application_id).reason is Reason.KILLED
        # Without /conf nothing leads to the logs in HDFS, but the container is known.
        with pytest.raises(LogMissing, match=f"yarn logs -applicationId {application_id} -containerId container_"):
            "".join(launcher.log(application_id, "master"))


def test_output_in_a_zone_is_committed_and_a_zone_is_no_output(hadoop):
    """HDFS would rename a result to the place of the zone, where it lies unencrypted."""
    settings = hadoop[0].settings
    files = Hdfs(hadoop[0].namenode_urls, settings.user, {})
    commits_whole_and_once(files, f"/user/{settings.user}/models")
    files.makedirs("/zones/digits", 0o755)
    make_zone(settings, "/zones/digits", os.environ)
    with pytest.raises(ResultExists, match="is an encryption zone"):
        train(files, CommitPlan("replace", "/zones/digits"), 1)
    with closing(Launcher(discover(hadoop[0].resourcemanager_url, {}, settings.user))) as launcher:
        for commit in ("new", "replace"):
            with pytest.raises(CommitRefused, match=r"hdfs:///zones/digits is an encryption zone.*give a folder in it"):
                launcher.run(job(output="hdfs:///zones/digits", commit=commit))
        assert launcher.list(states=["FINISHED", "FAILED", "RUNNING"]) == []
    assert [status.name for status in files.list("/zones")] == ["digits"]
    assert train(files, CommitPlan("version", "/zones/digits"), 2).path == "/zones/digits/1"
    assert files.status("/zones/digits/1/variables/model").encrypted


def test_wrong_password_at_knox_is_not_retryable(hadoop, tmp_path):
    cluster, home, site = hadoop
    (tmp_path / "password").write_text(f"{cluster.settings.user}:wrong")
    (tmp_path / "password").chmod(0o600)
    with pytest.raises(CredentialsRefused, match="does not accept the user and password") as raised:
        wrong = Site(**vars(site) | {"gateway_password_file": str(tmp_path / "password")})
        discover(f"{home.url}/default/yarn", ENVIRON, site=wrong)
    assert (raised.value.reason.exit_code, raised.value.reason.retryable) == (3, False)
    with pytest.raises(TfYarnError) as unknown:  # Knox answers with JSON
        discover(f"{home.url}/nosuch/yarn", ENVIRON, site=site)
    assert "Not Found" in str(unknown.value) and "{" not in str(unknown.value), unknown.value


def test_second_kms_serves_a_job_and_two_away_are_an_outage(hadoop, tmp_path):
    cluster, home, site = hadoop
    user, address = cluster.settings.user, build_kms_uri(cluster.settings)
    (tmp_path / "data").write_text("from the zone")
    inside = discover(cluster.resourcemanager_url, {}, user)
    with second_kms(cluster.settings):
        cluster.stop_daemon("kms", signal.SIGKILL)
        spec = job(
            'cat data > "$DTF_OUTPUT_PATH/result"',
            files={"data": str(tmp_path / "data")},
            output=f"hdfs:///user/{user}/by-the-second",
            commit="new",
            mirror="all",
        )
        with closing(Launcher(inside)) as launcher:
            report = launcher.run(spec)
            assert report.reason is Reason.SUCCEEDED, report
        with closing(inside.open_filesystem()) as files:
            assert files.read(f"/user/{user}/by-the-second/result") == b"from the zone"
    assert address.count(";") == 1
    for found in (inside, discover(f"{home.url}/default/yarn", ENVIRON, site=site)):
        with (
            closing(found.open_filesystem()) as files,
            pytest.raises(KmsUnreachable, match=re.escape(f"the KMS {address}")) as raised,
        ):
            # A NameNode has some keys in store.
            for number in range(20):
                files.create(f"/user/{user}/while-away-{number}", b"x" * 100_000, 0o600)
        assert (raised.value.reason.exit_code, raised.value.reason.retryable) == (4, True)
