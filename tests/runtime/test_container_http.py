"""HTTPS from containers: the authorities that are trusted."""

import pytest

from support.fake_yarn import FakeYarn, application, killed_text, serving
from support.hostile_page import KINDS, hostile_page
from support.http_server import Handler, running
from support.tls import Authority
from support.wire import job_of
from tf_yarn_ops.hadoop.tls import read_authorities
from tf_yarn_ops.runtime.common import container_http as rest
from tf_yarn_ops.runtime.master import verdict as ending


@pytest.fixture
def yarn():
    made = FakeYarn()
    made.add(application(42))
    return made


def test_the_coordinator_trusts_the_cas_that_travel_with_the_job(tmp_path, monkeypatch):
    """Its look and its kill go to a ResourceManager with https and a private CA."""
    monkeypatch.setattr(ending, "KILL_SECONDS", 0.0)
    authority, yarn = Authority(tmp_path / "ca"), FakeYarn()
    name = yarn.add(application(1))
    with serving(yarn, authority.server("127.0.0.1")) as url:
        assert not ending.resourcemanager_knows(job_of(url), name)
        authorities = read_authorities(str(authority.file))
        job = job_of(url, user="ann", authorities=authorities)
        assert ending.resourcemanager_knows(job, name)
        ending.kill_by_rest(job, name, "enough")
    assert yarn.apps[name]["diagnostics"] == killed_text(name, "enough")


@pytest.fixture
def fresh_authorities():
    """Forget what other tests have read, and what this one reads."""
    rest._trusting.cache_clear()
    yield
    rest._trusting.cache_clear()


def test_the_nodes_cas_are_read_only_for_https(monkeypatch, fresh_authorities):
    """Reading them takes as much CPU as all else that the coordinator does at the end of a job."""
    read = []
    monkeypatch.setattr("ssl.SSLContext.load_default_certs", lambda context, purpose: read.append(purpose))
    yarn = FakeYarn()
    name = yarn.add(application(1))
    with serving(yarn) as http:
        assert ending.resourcemanager_knows(job_of(http), name) and read == []
        assert not ending.resourcemanager_knows(job_of(http.replace("http:", "https:")), name) and len(read) == 1


@pytest.mark.parametrize("of_the_job", [True, False], ids=["of the job", "of the node"])
def test_unusable_cas_are_logged_once_and_end_nothing(tmp_path, monkeypatch, caplog, fresh_authorities, of_the_job):
    """A successful job must not fail over them: https counts as no answer, plain HTTP goes on."""
    monkeypatch.setattr(ending, "KILL_SECONDS", 0.0)
    wrong = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(wrong)
    if not of_the_job:
        monkeypatch.setattr(
            "ssl.SSLContext.load_default_certs",
            lambda context, purpose: context.load_verify_locations(str(tmp_path / "ca.pem")),
        )
    authorities = wrong if of_the_job else ""
    plain, secure = FakeYarn(), FakeYarn()
    name = plain.add(application(1))
    with serving(plain) as http, serving(secure, Authority(tmp_path / "ca").server("127.0.0.1")) as https:
        job = job_of(https, http, user="ann", authorities=authorities)
        assert not ending.resourcemanager_knows(job._replace(resourcemanagers=(https,)), name)
        assert ending.resourcemanager_knows(job, name)
        ending.kill_by_rest(job, name, "enough")
    assert plain.apps[name]["state"] == "KILLED" and secure.requests == []
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 1 and told[0].startswith("No daemon is asked over https: the certificates of its CAs ")


def test_only_certificates_travel_with_the_job(tmp_path):
    """A ca_file may be a bundle that has a key too."""
    authority = Authority(tmp_path / "ca")
    authority.server("localhost")
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(authority.file.read_bytes() + b"a comment\n" + (tmp_path / "ca" / "localhost.pem").read_bytes())
    found = read_authorities(str(bundle))
    assert (found.count("BEGIN CERTIFICATE"), "KEY" in found, "comment" in found) == (2, False, False)


class NodeManager(Handler):
    """Serves one log as a NodeManager does."""

    log = b""

    def do_GET(self):
        known = "/ws/v1/node/containerlogs/container_1_0001_01_000002/worker.log?size=-4096"
        if self.path != known or self.headers["Accept"] != "text/plain":
            self.reply(404, {}, b"")
        else:
            self.reply(200, {"Content-Type": "text/plain"}, self.log)


@pytest.mark.parametrize(
    "log, line",
    [
        (b"tf_yarn_ops agent: a\ntf_yarn_ops agent: no coordinator on n1\nbash: b\n", "no coordinator on n1"),
        (b"\xff\xfe\x00\n", ""),
        (b"", ""),
        (b"tf_yarn_ops agent: " + b"x" * 5000, "x" * 300),
    ],
)
def test_last_line_of_an_agent(monkeypatch, log, line):
    monkeypatch.setattr(NodeManager, "log", log)
    with running(NodeManager) as server:
        url = f"http://127.0.0.1:{server.server_port}/node/containerlogs/container_1_0001_01_000002/ann/worker.log"
        assert rest.last_line_of_agent(url) == line
        assert rest.last_line_of_agent(url.replace("_01_", "_02_")) == ""
    assert rest.last_line_of_agent("http://127.0.0.1:1/node/containerlogs/c/ann/worker.log") == ""


@pytest.mark.parametrize("kind", KINDS)
def test_coordinator_gives_up_an_answer_without_end(monkeypatch, kind):
    monkeypatch.setattr(rest, "ANSWER_TIMEOUTS", 0.2)
    with hostile_page(kind) as url:
        assert rest.last_line_of_agent(f"{url}node/containerlogs/container_1/ann/worker.log") == ""
        assert rest.query_yarn([url.rstrip("/")], "apps/x", "app") == {}
        assert ending.resourcemanager_knows(job_of(url.rstrip("/")), "application_1_1") is None
