"""A ResourceManager and a NameNode behind TLS: whose certificates are trusted, and what a refusal says."""

import asyncio
import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest

from support.fake_yarn import STAMP, FakeYarn, application, serving
from support.tls import Authority
from tf_yarn_ops.errors import ClusterUnreachable, SpecInvalid
from tf_yarn_ops.follow.live_report import LiveReports
from tf_yarn_ops.follow.log_reader import Logs
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.follow.watch import Watcher
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts, discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.runtime.common.report import JobReport

ID = f"application_{STAMP}_0001"
ENVIRON = {"HOME": "/nowhere", "HADOOP_USER_NAME": "ann"}
STATUS = {
    "FileStatus": {
        "pathSuffix": "",
        "type": "FILE",
        "length": 5,
        "modificationTime": 1,
        "accessTime": 1,
        "owner": "ann",
        "permission": "644",
    }
}
CREATE = """
import json, sys
from tf_yarn_ops.hadoop.cluster import Cluster, discover
print(discover(sys.argv[1], json.loads(sys.argv[2])).open_filesystem().create("/x", b"12345", 0o600))
"""


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """A certificate that is refused is refused again and again for so long."""
    monkeypatch.setattr("tf_yarn_ops.hadoop.cluster.DISCOVERY_PATIENCE", 0.5)


@pytest.fixture
def secure(authority):
    """Return a ResourceManager and NameNode that serve https only, as its ``/conf`` says too."""
    yarn = FakeYarn()
    with serving(yarn, authority.server("localhost", "127.0.0.1")) as url:
        yarn.conf |= {"dfs.http.policy": "HTTPS_ONLY", "dfs.namenode.https-address": url.removeprefix("https://")}
        yarn.pages["/webhdfs/v1/x"] = ("application/json", json.dumps(STATUS))
        yarn.faults.append(
            lambda method, path: (
                (307, {"Location": f"{url}/content/x"}, "") if (method, path) == ("PUT", "/webhdfs/v1/x") else None
            )
        )
        yarn.faults.append(lambda method, path: (201, {}, "") if path == "/content/x" else None)
        yield yarn


def site(authority):
    return Site(ca_file=str(authority.file))


def test_with_the_sites_ca_file_everything_is_asked_over_https(secure, authority):
    cluster = discover(secure.url, ENVIRON, site=site(authority))
    assert cluster.resourcemanagers == cluster.storage.webhdfs == (secure.url,)
    files = cluster.open_filesystem()
    assert files.status("/x").length == 5
    assert files.create("/x", b"12345", 0o600)


def test_logs_live_reports_and_the_watcher_trust_it_too(secure, authority):
    container = f"container_{STAMP}_0001_01_000001"
    node = f"{secure.url}/node/containerlogs/{container}/ann"
    secure.add(application(1, trackingUrl=f"{secure.url}/proxy/{ID}/", amContainerLogs=node))
    secure.pages[f"/proxy/{ID}/pages/ytf/status.json"] = (
        "application/json",
        json.dumps(JobReport(ID, message="soon").to_dict()),
    )
    secure.pages[f"/ws/v1/node/containerlogs/{container}/application.driver.log"] = ("text/plain", "what it says\n")
    cluster = discover(secure.url, ENVIRON, site=site(authority))
    assert LiveReports(cluster).fetch(secure.apps[ID]).message == "soon"
    assert "".join(Logs(Session(cluster), environ={}).read(ID, "coordinator")) == "what it says\n"
    secure.end(ID, "", "FINISHED", "SUCCEEDED")
    assert asyncio.run(Watcher(cluster, interval=0.05).wait(ID)).reason.name == "SUCCEEDED"


REFUSED = (
    r"its certificate is not trusted \(.*certificate.*\); set ca_file in site.yaml to a PEM file with the "
    "certificate of the CA that signed it"
)


@pytest.mark.slow
def test_an_unknown_authority_is_refused_with_what_to_set(secure, authority, tmp_path):
    for stranger in (Site(), Site(ca_file=str(Authority(tmp_path / "other").file))):
        with pytest.raises(ClusterUnreachable, match=f"no ResourceManager answers at {secure.url}: {REFUSED}"):
            discover(secure.url, ENVIRON, site=stranger)
    assert secure.requests == []


def test_a_namenode_with_an_unknown_authority_is_refused_with_what_to_set(secure):
    yarn = FakeYarn()
    yarn.conf |= {"dfs.http.policy": "HTTPS_ONLY", "dfs.namenode.https-address": secure.url.removeprefix("https://")}
    with serving(yarn) as url:
        files = discover(url, ENVIRON, site=Site()).open_filesystem()
        with pytest.raises(
            ClusterUnreachable, match=f"looking at /x: no NameNode answers at {secure.url}: .*{REFUSED}"
        ):
            files.status("/x")
    assert secure.requests == []


@pytest.mark.slow
def test_a_redirect_from_http_to_https_is_verified_all_the_same(secure):
    """Neither another ResourceManager nor a DataNode is believed because the first address was http."""
    standby = FakeYarn()
    standby.faults.append(lambda method, path: (307, {"Location": f"{secure.url}{path}"}, ""))
    with serving(standby) as url:
        with pytest.raises(ClusterUnreachable, match=REFUSED):
            discover(url, ENVIRON, site=Site())
        standby.faults.clear()
        standby.conf |= {"dfs.namenode.http-address": url.removeprefix("http://")}
        standby.faults.append(
            lambda method, path: (307, {"Location": f"{secure.url}/content/x"}, "") if method == "PUT" else None
        )
        files = discover(url, ENVIRON, site=Site()).open_filesystem()
        with pytest.raises(ClusterUnreachable, match=f"writing /x: the DataNode {secure.url[8:]} .*{REFUSED}"):
            files.create("/x", b"12345", 0o600)
    assert secure.requests == []


def refusal(url, authority):
    """Return the error of discovery at an address."""
    with pytest.raises(ClusterUnreachable) as raised:
        discover(url, ENVIRON, site=site(authority))
    return str(raised.value)


@pytest.mark.slow
def test_a_certificate_for_another_host_is_refused_with_its_names(authority):
    with serving(FakeYarn(), authority.server("elsewhere", "*.example.org", "10.0.0.1")) as url:
        assert (
            f"no ResourceManager answers at {url}: its certificate is for elsewhere, *.example.org, 10.0.0.1, and not for "
            f"{urlsplit(url).hostname}; write a name of the certificate in the address, or let the administrator add this "
            "name to the certificate."
        ) in refusal(url, authority)


def test_an_unknown_authority_is_named(secure, tmp_path):
    assert (
        refusal(secure.url, Authority(tmp_path / "other"))
        .split(". ")[0]
        .endswith("that signed it, CN=the CA of the test")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "begins, ends, said",
    [
        (
            -9,
            -2,
            r"its certificate, or one of its CA's, has expired \(20\d\d-\d\d-\d\d \d\d:\d\dZ\); the administrator has to renew it",
        ),
        (2, 9, r"its certificate is not valid before 20\d\d-\d\d-\d\d \d\d:\d\dZ; check this machine's clock"),
    ],
    ids=["expired", "early"],
)
def test_dates_of_a_certificate_are_reported(authority, begins, ends, said):
    with serving(FakeYarn(), authority.server("localhost", "127.0.0.1", days=(begins, ends))) as url:
        assert re.search(said, refusal(url, authority))


def test_port_with_plain_http_is_reported(yarn, authority):
    address = yarn.url.replace("http:", "https:")
    assert (
        f"no ResourceManager answers at {address}: it does not speak https; if it serves plain HTTP, write {yarn.url}. "
        in refusal(address, authority)
    )


def test_port_with_https_is_reported(secure, authority):
    address = secure.url.replace("https:", "http:")
    assert f"no ResourceManager answers at {address}: it speaks https, not plain HTTP; write {secure.url}. " in refusal(
        address, authority
    )


@pytest.mark.slow
def test_a_refusal_is_explained_once_however_often_it_was_tried():
    """The explanation connects again, which may take 3 s; the address is no server of TLS, so each try fails at once."""
    made = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        made.append(connection.recv(4096)[:3])

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterUnreachable, match=f"no ResourceManager answers at {url}: Server disconnected"):
            Cluster((url,), "ann", "ann", StorageFacts("hdfs://n", "hdfs://n", "/")).resourcemanager(0.5).info()
    assert made.count(b"GET") > 1 and len(made) == made.count(b"GET") + 1


def test_without_a_ca_file_the_machines_certificates_are_trusted(secure, authority):
    """OpenSSL reads those of the machine from where SSL_CERT_FILE says."""
    done = subprocess.run(
        [sys.executable, "-c", CREATE, secure.url, json.dumps(ENVIRON)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"SSL_CERT_FILE": str(authority.file)},
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize(
    ("name", "why"), [("missing", "No such file or directory$"), ("other", ""), (".", "it is a folder; name a file$")]
)
def test_invalid_ca_file_is_a_fault_of_the_site_file(yarn, tmp_path, name, why):
    path = tmp_path / name
    (tmp_path / "other").write_text("no certificates")
    with pytest.raises(SpecInvalid, match=f"ca_file: {path} can't be read as certificates in PEM format: {why}"):
        discover(yarn.url, ENVIRON, site=Site(ca_file=str(path)))
