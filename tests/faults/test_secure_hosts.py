"""A secured cluster of several hosts: each service has a principal of its host's name, and one certificate has all names."""

import contextlib

import pytest

from support.hadoop.hosts import HostsCluster, missing_for_hosts
from support.hosts_rig import (
    UNTIL_RELEASED,
    HostsRig,
    cut_off_until_silent,
    cut_off_until_waiting,
    releasable,
    release,
    trained_once,
)
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
    with contextlib.closing(HostsRig(cluster, "alice")) as rig:
        yield rig


def test_job_of_a_ticket_trains_on_two_hosts_despite_cuts(cluster, alice):
    """A worker's node is cut off from all others for a while, then the client while it waits."""
    client = alice.submit(*releasable(alice, "cuts"), "-r", "worker:2", f"{FILES} && {UNTIL_RELEASED}")
    hosts = client.running(2)
    assert {*hosts.values()} == {"n1", "n2"}
    logs = [[*YTF, "logs", client.application, "--task", f"worker:{index}"] for index in range(2)]
    for words in logs:
        until(lambda words=words: "\nfiles were read\n" in alice.run(*words).stdout, 60, 2, client.lines)
    # Only the job's page, behind YARN's proxy, knows the states of its tasks.
    address = client.report()["tracking_url"]
    assert address.startswith("https://master.lab.test:8088/proxy/")
    assert "worker:1" in fetch_by_curl(alice, f"{address.rstrip('/')}/pages/ytf/")
    with contextlib.closing(HostsRig(cluster, "bob")) as bob:
        ran = bob.run(*YTF, "kill", client.application)
    assert (ran.returncode, "by remote user bob@" in ran.stderr) == (3, True), ran.stderr
    cut_off_until_silent(client, next(host for host in hosts.values() if host != client.master()))
    cut_off_until_waiting(client)
    release(alice, "cuts")
    outcome = client.end(alice.clock(), trained_once)
    assert (outcome.reason, outcome.left) == (Reason.SUCCEEDED, ()), outcome
    for words in logs:
        until(lambda words=words: "the command ended with exit code 0" in alice.run(*words).stdout, 60, 2, client.lines)


def fetch_by_curl(rig, url):
    """Return a page by curl with SPNEGO, which takes the name of a reverse lookup unless krb5.conf forbids it."""
    conf = rig.cluster.directory / "edge" / "krb5.conf"
    text = rig.cluster.krb5_conf.read_text()
    conf.write_text(text.replace("[libdefaults]\n", "[libdefaults]\n  rdns = false\n"))
    words = "--silent", "--fail", "--show-error", "--max-time", "30", "--negotiate", "--user", ":"
    ran = rig.run("env", f"KRB5_CONFIG={conf}", "curl", *words, "--cacert", str(rig.cluster.ca_file), url)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_client_without_a_ticket_is_refused(cluster):
    with contextlib.closing(HostsRig(cluster)) as nobody:
        for words in ([*SUBMIT, "-r", "worker:1", "true"], [*YTF, "list"]):
            ran = nobody.run(*words)
            assert (ran.returncode, "there is no valid Kerberos ticket" in ran.stderr) == (3, True), ran.stderr
