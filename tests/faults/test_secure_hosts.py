"""A secured cluster of several hosts: each service has a principal of its host's name, and one certificate has all names."""

import pytest

from support.hadoop.hosts import HostsCluster, missing_for_hosts
from support.hosts_rig import FOREVER, HostsRig
from support.programs import SUBMIT, YTF
from support.waiting import PATIENCE, until
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300 * PATIENCE)]

#: Writes a file of HDFS, in two ways, and reads it.
FILES = """python3 -c '
import fsspec, os
path = "hdfs:///user/alice/file-" + os.environ["DTF_TASK_INDEX"]
for mode in ("wb", "ab"):
    with fsspec.open(path, mode) as file:
        file.write(b"x" * 300000)
with fsspec.open(path, "rb") as file:
    assert file.read() == b"x" * 600000
' && echo files were read"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if missing := missing_for_hosts():
        pytest.skip(f"several hosts need {missing}")
    with HostsCluster(tmp_path_factory.mktemp("secure-hosts"), 2, kerberos=True, https=True) as running:
        # A reverse lookup on edge finds names that no principal and no certificate has.
        running.set_names("edge", {f"ip-10-77-0-{number}": [f"10.77.0.{number}"] for number in (10, 11, 12)})
        yield running


@pytest.fixture
def alice(cluster):
    rig = HostsRig(cluster, "alice")
    yield rig
    rig.close()


def test_job_of_a_ticket_trains_on_two_hosts(cluster, alice):
    flag = cluster.directory / "go on"
    client = alice.submit("-r", "worker:2", f'{FILES} && until [ -e "{flag}" ]; do sleep 0.2; done')
    assert {*client.running(2).values()} == {"n1", "n2"}
    logs = [[*YTF, "logs", client.application, "--task", f"worker:{index}"] for index in range(2)]
    for words in logs:
        until(lambda words=words: "\nfiles were read\n" in alice.run(*words).stdout, 60, 1, client.lines)
    # Only the job's page, behind YARN's proxy, knows the states of its tasks.
    assert client.report()["tracking_url"].startswith("https://master.lab.test:8088/proxy/")
    ran = HostsRig(cluster, "bob").run(*YTF, "kill", client.application)
    assert (ran.returncode, "by remote user bob@" in ran.stderr) == (3, True), ran.stderr
    flag.touch()
    outcome = client.end(alice.clock())
    assert (outcome.reason, outcome.left) == (Reason.SUCCEEDED, ()), outcome
    for words in logs:
        until(lambda words=words: "the command ended with exit code 0" in alice.run(*words).stdout, 60, 1, client.lines)


def test_kill_leaves_nothing_on_any_host(alice):
    client = alice.submit("-r", "worker:2", FOREVER)
    client.running(2)
    began = alice.clock()
    assert alice.run(*YTF, "kill", client.application).returncode == 0
    outcome = client.end(began)
    assert (outcome.reason, outcome.left) == (Reason.KILLED, ()), outcome


def test_client_without_a_ticket_is_refused(cluster):
    nobody = HostsRig(cluster)
    for words in ([*SUBMIT, "-r", "worker:1", "true"], [*YTF, "list"]):
        ran = nobody.run(*words)
        assert (ran.returncode, "there is no valid Kerberos ticket" in ran.stderr) == (3, True), ran.stderr
