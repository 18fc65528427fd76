"""SPNEGO with a real KDC and the real library on both sides; the clients are processes of their own."""

import ctypes
import glob
import json
import os
import re
import subprocess
import sys
import time

import pytest

from support.fake_yarn import STAMP, FakeYarn, application
from support.fake_yarn import serving as serving_simple
from support.kerberos import Kdc, SecureYarn, serving
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.security.authentication import KerberosAuthentication, SimpleAuthentication
from tf_yarn_ops.hadoop.security.spnego import Negotiation
from tf_yarn_ops.hadoop.security.tickets import Tickets, short_name
from tf_yarn_ops.hadoop.site import Site

pytestmark = pytest.mark.cluster

#: The library that gives a process another clock, by the package of Debian and Ubuntu.
FAKETIME = sorted(glob.glob("/usr/lib/*/faketime/libfaketime.so.1"))
ANN = "ann@EXAMPLE.COM"
ID = f"application_{STAMP}_0001"
YTF = "import sys; from tf_yarn_ops.cli import main; sys.argv[0] = 'ytf'; main()"
GET_TWENTY_TIMES = f"""
from tf_yarn_ops.hadoop.cluster import discover
manager = discover().resourcemanager()
for _ in range(20):
    print(manager.get({ID!r})["state"])
"""
CREATE = """
from tf_yarn_ops.hadoop.cluster import discover
class Pieces:
    size = 600_000
    def __iter__(self):
        return iter([b"[", *[b"12345," * 99] * 1010, b"12345," * 9, b"1234]"])
print(discover().open_filesystem().create("/user/ann/x", Pieces(), 0o600))
"""
WATCH = f"""
import asyncio
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.follow.watch import Watcher
report = asyncio.run(Watcher(discover(), interval=0.05).wait({ID!r}))
print(report.reason.name)
"""
WHO = """
import sys
from tf_yarn_ops.hadoop.cluster import discover
cluster = discover(user=sys.argv[1] if sys.argv[1:] else None)
print(cluster.login, cluster.user, cluster.security.kerberos, *cluster.resourcemanagers)
print(len(cluster.resourcemanager().find(user="ann")))
"""


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    with Kdc(tmp_path_factory.mktemp("kdc")).running() as running, pytest.MonkeyPatch.context() as patch:
        # For the service's side, which is in this process.
        patch.setenv("KRB5_CONFIG", running.variables["KRB5_CONFIG"])
        patch.setenv("KRB5RCACHENAME", running.variables["KRB5RCACHENAME"])
        yield running


@pytest.fixture
def yarn(kdc):
    fake = SecureYarn(kdc.service_keytab)
    with serving(fake):
        fake.add(application(1))
        yield fake


@pytest.fixture
def environ(yarn, kdc, tmp_path):
    """Return a function that returns the variables of a client, with a ticket or with other variables."""

    def build(url=None, **variables):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "YTF_RESOURCEMANAGER": url or yarn.url,
            "HADOOP_USER_NAME": "mallory",
            **(variables or kdc.kinit()),
        }

    return build


@pytest.fixture
def client(environ, fork, tmp_path):
    """Return a function that runs a script in a process of its own, and returns exit code and both outputs."""

    def run(script, *words, **variables):
        done = fork(script, words, environ(**variables), tmp_path)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def start(environ, tmp_path):
    """Return a function that starts a Python of its own."""

    def start(script, *words, **variables):
        return subprocess.Popen(
            [sys.executable, "-c", script, *words],
            env=environ(**variables),
            text=True,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


def result(process):
    """Return exit code and both outputs."""
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def all_of_ann(yarn):
    """Check that everybody who was let in was ann, and that no claim of a name stood beside a proof."""
    assert {principal for principal, *_ in yarn.seen} == {ANN}
    for _, parameters, headers in yarn.raw:
        # The filter's 401 sets an empty cookie, which proves nothing.
        proof = headers.get("Authorization") or headers.get("Cookie", "").partition("=")[2]
        assert not (proof and "user.name" in parameters)
    assert all("user.name" not in parameters for *_, parameters in yarn.seen)


def test_the_command_line_lists_looks_and_kills(yarn, client):
    code, out, err = client(YTF, "list", "--json")
    assert (code, [item["application_id"] for item in json.loads(out)]) == (0, [ID]), err
    code, out, err = client(YTF, "status", ID, "--json")
    assert (code, json.loads(out)["user"]) == (0, "ann"), err
    code, _, err = client(YTF, "kill", ID)
    assert yarn.apps[ID]["state"] == "KILLED", err
    assert "could not be deleted" not in err
    assert ("PUT", f"/ws/v1/cluster/apps/{ID}/state") in [row[1:3] for row in yarn.seen]
    # The application's directory, which has its key, is deleted with a ticket as well.
    assert ("DELETE", f"/webhdfs/v1/user/ann/.skein/{ID}") in [row[1:3] for row in yarn.seen]
    all_of_ann(yarn)


def test_a_watch_ends_with_the_application(yarn, start):
    process = start(WATCH)
    until(lambda: yarn.count("GET", "/ws/v1/cluster/apps") >= 3)
    yarn.apps[ID].update(state="FINISHED", finalStatus="SUCCEEDED")
    assert result(process)[:2] == (0, "SUCCEEDED\n")
    all_of_ann(yarn)


def test_one_handshake_serves_many_calls(yarn, client):
    assert client(GET_TWENTY_TIMES)[:2] == (0, "RUNNING\n" * 20)
    found = [headers for path, _, headers in yarn.raw if path.endswith(ID)]
    assert len(found) == 21
    assert sum("Authorization" in headers for headers in found) == 1
    all_of_ann(yarn)


def test_a_cookie_that_ran_out_is_replaced(yarn, client):
    yarn.cookie_uses = 4
    assert client(GET_TWENTY_TIMES)[:2] == (0, "RUNNING\n" * 20)
    found = [headers for path, _, headers in yarn.raw if path.endswith(ID)]
    assert sum("Authorization" in headers for headers in found) == 4
    all_of_ann(yarn)


def test_the_ticket_says_who_one_is(yarn, client):
    assert client(WHO)[:2] == (0, f"ann ann True {yarn.url}\n1\n")
    all_of_ann(yarn)


def test_on_behalf_of_another_user(yarn, client):
    assert client(WHO, "bob")[:2] == (0, f"ann bob True {yarn.url}\n1\n")
    # First as ann, to learn whom the cluster takes the principal for.
    assert [parameters.get("doAs") for *_, path, parameters in yarn.seen if path.endswith("/userinfo")] == [None, "bob"]
    assert yarn.seen[-1][-1]["doAs"] == "bob"
    all_of_ann(yarn)


@pytest.mark.parametrize("user, acting", [("alice", [None]), ("ann", [None, "ann"])])
def test_user_is_compared_with_the_mapped_name_of_the_principal(yarn, client, user, acting):
    yarn.mapped[ANN] = "alice"
    assert client(WHO, user)[1].startswith(f"alice {user} ")
    assert [parameters.get("doAs") for *_, path, parameters in yarn.seen if path.endswith("/userinfo")] == acting


def test_a_keytab_does_without_kinit(yarn, client, kdc):
    variables = kdc.cache("by-keytab") | {"KRB5_CLIENT_KTNAME": str(kdc.user_keytab)}
    assert client(WHO, **variables)[:2] == (0, f"ann ann True {yarn.url}\n1\n")
    all_of_ann(yarn)


def test_a_keytab_of_the_site_leaves_no_cache(yarn, client, kdc, tmp_path):
    """The ticket cache of the environment has another user's ticket, and stays as it is."""
    site = tmp_path / "site.yaml"
    site.write_text(f"keytab: {kdc.user_keytab}\nprincipal: ann\n")
    cache = kdc.cache("not-used")
    assert client(WHO, **cache | {"YTF_SITE": str(site)})[:2] == (0, f"ann ann True {yarn.url}\n1\n")
    assert not (kdc.folder / "not-used").exists()
    all_of_ann(yarn)


def kernel_keeps_keys():
    """Add a key to the keyring of this process, with the library that Kerberos uses; many containers forbid the call."""
    process_keyring = -2
    return ctypes.CDLL("libkeyutils.so.1").add_key(b"user", b"ytf", b"x", 1, process_keyring) != -1


@pytest.mark.parametrize("kind", ["DIR", "KEYRING", "MEMORY"])
def test_any_ticket_cache(yarn, client, kdc, tmp_path, kind):
    """A cache in memory ends with its process, so there the keytab fills it."""
    (tmp_path / "tickets").mkdir(mode=0o700)
    variables = kdc.cache("other") | {
        "KRB5CCNAME": {
            "DIR": f"DIR:{tmp_path}/tickets",
            "KEYRING": f"KEYRING:session:{tmp_path.name}",
            "MEMORY": "MEMORY:x",
        }[kind]
    }
    if kind == "MEMORY":
        variables["KRB5_CLIENT_KTNAME"] = str(kdc.user_keytab)
    elif kind == "KEYRING" and not kernel_keeps_keys():
        pytest.skip("this kernel keeps no keys for processes")
    else:
        kdc.tool("kinit", "-k", "-t", str(kdc.user_keytab), "ann", **variables)
    assert client(WHO, **variables)[:2] == (0, f"ann ann True {yarn.url}\n1\n")
    all_of_ann(yarn)


@pytest.fixture
def other_realm(kdc, tmp_path):
    """Return the variables of a client whose ticket is of another realm, and whose krb5.conf knows the cluster's."""
    (tmp_path / "other").mkdir()
    with Kdc(tmp_path / "other", "OTHER.ORG").running() as other:
        realms = (
            f"  EXAMPLE.COM = {{\n    kdc = 127.0.0.1:{kdc.port}\n  }}\n[domain_realm]\n  localhost = EXAMPLE.COM\n"
        )
        other.config.write_text(other.config.read_text() + realms)
        yield other.kinit()


@pytest.mark.parametrize("settings, code, said, command", [
    ("keytab: /none/ann.keytab", 3, "the keytab /none/ann.keytab can't be read (No such file or directory)", "klist -kt /none/ann.keytab"),
    ("keytab: {keytab}\nprincipal: bob", 3, "the keytab {keytab} has no key of bob", "klist -kt {keytab}"),
    ("keytab: {config}", 3, "the file {config} is not a keytab", "klist -kt {config}"),
    ("principal: bob@EXAMPLE.COM", 3, "there is no valid Kerberos ticket (Can't find client principal bob@EXAMPLE.COM",
     "kinit bob@EXAMPLE.COM"),
])  # fmt: skip
def test_a_keytab_of_no_use(yarn, client, kdc, tmp_path, settings, code, said, command):
    names = {"keytab": kdc.user_keytab, "config": kdc.config}
    site = tmp_path / "site.yaml"
    site.write_text(settings.format(**names) + "\n")
    found, _, err = client(YTF, "status", ID, **kdc.kinit() | {"YTF_SITE": str(site)})
    assert (found, said.format(**names) in err) == (code, True), err
    assert err.endswith(f"\nnext: {command.format(**names)}\n")
    assert yarn.seen == []


def test_a_ticket_of_another_realm_is_final_and_names_both(yarn, client, other_realm):
    code, _, err = client(YTF, "status", ID, **other_realm)
    assert (code, "your ticket is of realm OTHER.ORG, the cluster's is EXAMPLE.COM (" in err) == (3, True), err
    assert err.endswith("\nnext: kinit ann@EXAMPLE.COM\n") and yarn.seen == []
    code, out, _ = client(YTF, "doctor", "--json", **other_realm)
    found = {item["check"]: item for item in json.loads(out)["checks"]}["identity"]
    assert (code, found["reason"]) == (3, "SUBMISSION_REJECTED")
    assert found["advice"].endswith(" Next: kinit ann@EXAMPLE.COM") and "OTHER.ORG" in found["message"]


def test_a_keytab_with_an_old_key(yarn, client, kdc, tmp_path):
    keytab, site = tmp_path / "eve.keytab", tmp_path / "site.yaml"
    kdc.tool("kadmin.local", "-q", "addprinc -randkey eve")
    kdc.tool("kadmin.local", "-q", f"ktadd -k {keytab} eve")
    kdc.tool("kadmin.local", "-q", "change_password -randkey eve")
    site.write_text(f"keytab: {keytab}\nprincipal: eve\n")
    code, _, err = client(YTF, "status", ID, **kdc.cache("none") | {"YTF_SITE": str(site)})
    assert (code, "the KDC refuses the key of eve (" in err) == (3, True), err
    assert err.endswith(f"\nnext: kinit -kt {keytab} eve\n")
    kdc.tool("kadmin.local", "-q", "delprinc -force eve")
    code, _, err = client(YTF, "status", ID, **kdc.cache("none") | {"YTF_SITE": str(site)})
    assert (code, "the KDC does not know eve (" in err) == (3, True), err


def waiting(yarn, kdc, tmp_path, program, **variables):
    """Return a program that waits, with a handshake at each look, and the file of its stderr."""
    yarn.cookie_uses = 1
    said = tmp_path / "said"
    with said.open("wb") as stderr:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "YTF_RESOURCEMANAGER": yarn.url, **variables}
        process = subprocess.Popen(
            [sys.executable, "-c", program, "wait", ID],
            env=environ,
            cwd=tmp_path,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    return process, said


@pytest.mark.parametrize("program", [YTF, WATCH], ids=["ytf wait", "Airflow's triggerer"])
def test_a_wait_renews_its_tickets_from_the_keytab(yarn, kdc, tmp_path, program):
    config, site = tmp_path / "krb5.conf", tmp_path / "site.yaml"
    config.write_text(kdc.config.read_text().replace("[libdefaults]", "[libdefaults]\n  ticket_lifetime = 2s"))
    site.write_text(f"keytab: {kdc.user_keytab}\n")
    began = time.monotonic()
    process, said = waiting(yarn, kdc, tmp_path, program, KRB5_CONFIG=str(config), YTF_SITE=str(site))
    try:
        until(lambda: yarn.handshakes and time.monotonic() >= began + 4)  # twice the life of a ticket
        let_in = len(yarn.handshakes)
        until(lambda: len(yarn.handshakes) >= let_in + 2)
        assert process.poll() is None
        yarn.apps[ID].update(state="FINISHED", finalStatus="SUCCEEDED")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert "waiting" not in said.read_text() and "goes on" not in said.read_text()
    all_of_ann(yarn)


@pytest.mark.parametrize(
    "program, warning",
    [(YTF, "still waiting"), (WATCH, "watching 1 applications goes on")],
    ids=["ytf wait", "Airflow's triggerer"],
)
def test_a_wait_without_keytab_warns_once_and_goes_on_after_kinit(yarn, kdc, tmp_path, program, warning):
    process, said = waiting(yarn, kdc, tmp_path, program, **kdc.kinit("waits"))
    try:
        # A slow start would outlive a ticket of two seconds.
        until(lambda: yarn.count("GET", f"/ws/v1/cluster/apps/{ID}") or yarn.count("GET", "/ws/v1/cluster/apps"), 60)
        kdc.kinit("waits", lifetime="2s")
        until(lambda: warning in said.read_text(), 60)
        refused = len(yarn.raw)
        until(lambda: len(yarn.raw) >= refused + 4, 60)
        let_in = len(yarn.handshakes)
        kdc.kinit("waits")
        until(lambda: len(yarn.handshakes) >= let_in + 2, 60)
        yarn.apps[ID].update(state="FINISHED", finalStatus="SUCCEEDED")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert said.read_text().count(warning) == 1
    assert "there is no valid Kerberos ticket (it has expired). Run kinit" in said.read_text()
    all_of_ann(yarn)


def test_the_library_gives_all_memory_back(yarn, client, kdc):
    grown = """
import resource
from tf_yarn_ops.hadoop.security.tickets import PROCESS_TICKETS
def begin(times):
    for _ in range(times):
        PROCESS_TICKETS.begin("localhost")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = begin(200)
print(begin(1000) - before)
"""
    code, out, err = client(grown)
    assert code == 0, err
    assert int(out) < 1024  # KiB; a token alone is 1 KiB


def test_without_a_ticket_it_says_kinit(yarn, client, kdc):
    code, _, err = client(YTF, "status", ID, **kdc.cache("none"))
    assert code == 3
    assert "there is no valid Kerberos ticket (" in err and err.endswith("\nnext: kinit\n")
    assert yarn.seen == []


def test_with_an_expired_ticket_it_says_kinit(yarn, client, kdc):
    variables = kdc.kinit("short", lifetime="1s")
    until(lambda: kdc.expired(variables))
    code, _, err = client(YTF, "status", ID, **variables)
    assert code == 4
    assert "there is no valid Kerberos ticket (it has expired)" in err and "\nnext: kinit" in err
    assert yarn.seen == []


def test_without_the_library_it_says_what_to_install(yarn, client):
    missing = "import tf_yarn_ops.hadoop.security.gssapi as it; it.LIBRARY = 'libnone.so.2'"
    code, _, err = client(f"{missing}; {YTF}", "status", ID)
    assert code == 3
    assert "libnone.so.2: install libgssapi-krb5-2 (apt-get) or krb5-libs (dnf)" in err
    assert "Check the addresses" not in err and "Correct the queue" not in err
    assert yarn.seen == []


def test_another_login_than_kerberos_is_named(yarn, client):
    yarn.offers = 'Basic realm="hadoop"'
    code, _, err = client(YTF, "status", ID)
    assert code == 3
    assert 'wants a login that is not Kerberos: Basic realm="hadoop"' in err and err.endswith("\nnext: ytf doctor\n")
    assert not any("Authorization" in headers for *_, headers in yarn.raw)


def test_a_ticket_that_is_refused(yarn, client, kdc):
    yarn.keytab = str(kdc.user_keytab)  # the service has lost its key
    code, _, err = client(YTF, "status", ID)
    assert code == 3
    assert "does not accept the Kerberos ticket (Authentication required)" in err and err.endswith(
        "\nnext: ytf doctor\n"
    )


@pytest.mark.skipif(not FAKETIME, reason="the package libfaketime is missing")
@pytest.mark.parametrize("offset", ["+20m", "-20m"])
def test_a_kdc_whose_clock_is_wrong(client, tmp_path, offset):
    """MIT's library follows the KDC's clock; the service does not."""
    wrong = Kdc(tmp_path)
    with wrong.running(LD_PRELOAD=FAKETIME[0], FAKETIME=offset), pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", wrong.variables["KRB5_CONFIG"])
        fake = SecureYarn(wrong.service_keytab)
        with serving(fake):
            code, _, err = client(YTF, "status", ID, url=fake.url, **wrong.kinit())
    assert code == 3 and fake.seen == []
    assert "does not accept the Kerberos ticket (Authentication required): its clock or the KDC's differs" in err
    assert err.endswith("\nnext: ytf doctor\n")


@pytest.mark.skipif(not FAKETIME, reason="the package libfaketime is missing")
def test_a_client_whose_clock_is_wrong_works_and_doctor_warns(yarn, kdc, start):
    """libkrb5 corrects the offset by the KDC's clock."""
    wrong = kdc.cache("wrong") | {"LD_PRELOAD": FAKETIME[0], "FAKETIME": "-10m"}
    kdc.tool("kinit", "-k", "-t", str(kdc.user_keytab), "ann", **wrong)
    code, out, err = result(start(YTF, "list", "--json", **wrong))
    assert (code, [item["application_id"] for item in json.loads(out)]) == (0, [ID]), err
    _, out, _ = result(start(YTF, "doctor", "--json", **wrong))
    found = {item["check"]: item for item in json.loads(out)["checks"]}
    assert (found["clock"]["outcome"], found["clock"]["symptom"]) == ("warning", "CLOCK_DIFFERS")
    assert found["ticket"]["outcome"] in ("ok", "warning") and found["identity"]["outcome"] == "ok"


def test_a_service_that_proves_to_be_another(yarn, client):
    yarn.false_proof = True
    code, _, err = client(YTF, "status", ID)
    assert code == 4
    assert f"{yarn.url} can't prove that it is HTTP/localhost" in err


def test_a_service_that_the_kdc_does_not_know(yarn, client):
    code, _, err = client(YTF, "status", ID, url=yarn.url.replace("localhost", "127.0.0.1"))
    assert code == 4
    assert "Kerberos gives no ticket for HTTP/127.0.0.1 (" in err
    assert yarn.seen == []


def test_reverse_lookup_hides_no_service_that_the_address_names(client, tmp_path):
    """Debian's krb5.conf has no ``rdns = false``: libkrb5 asks for a ticket of localhost here."""
    with Kdc(tmp_path).running() as one:
        one.tool("kadmin.local", "-q", "renprinc -force HTTP/localhost HTTP/127.0.0.1")
        one.tool("kadmin.local", "-q", f"ktadd -k {one.service_keytab} HTTP/127.0.0.1")
        one.config.write_text(re.sub(" .*(rdns|canonicalize).*", "", one.config.read_text()))
        fake = SecureYarn(one.service_keytab)
        with serving(fake):
            fake.add(application(1))
            named = fake.url.replace("localhost", "127.0.0.1")
            code, _, err = client(YTF, "status", ID, url=named, **one.kinit())
    assert code == 0, err
    all_of_ann(fake)


def test_a_kdc_that_does_not_answer(yarn, client, kdc, tmp_path):
    config = tmp_path / "krb5.conf"
    config.write_text(kdc.config.read_text().replace(f":{kdc.port}", ":1"))
    code, _, err = client(YTF, "status", ID, **kdc.kinit() | {"KRB5_CONFIG": str(config)})
    assert code == 4
    assert "no KDC answers (" in err and err.endswith("\nnext: ytf doctor\n")


def test_a_log_server_that_a_person_has_named_is_shown_a_ticket(yarn, client, kdc, tmp_path):
    container = "container_1700000000000_0001_01_000001"
    yarn.apps[ID].update(
        state="KILLED", finalStatus="KILLED", amContainerLogs=f"http://localhost:1/node/{container}/ann"
    )
    server = SecureYarn(kdc.service_keytab)
    server.pages[f"/logs/containerlogs/{container}/application.driver.log"] = ("text/plain", "what it says\n")
    site = tmp_path / ".config" / "tf_yarn_ops" / "site.yaml"
    site.parent.mkdir(parents=True)
    with serving(server):
        site.write_text(f"log_server: {server.url}/logs\n")
        code, out, err = client(YTF, "logs", ID, "--task", "coordinator", **kdc.kinit() | {"PATH": "/none"})
    assert (code, out) == (0, "what it says\n"), err
    all_of_ann(yarn)
    all_of_ann(server)


@pytest.mark.parametrize("listed", [True, False], ids=["a node of the cluster", "a stranger"])
def test_a_node_is_shown_a_ticket_if_the_resourcemanager_lists_it(yarn, client, kdc, listed):
    """The application, which any user may have written, names the nodes of its tasks."""
    container, node = "container_1700000000000_0001_01_000001", SecureYarn(kdc.service_keytab)
    node.pages[f"/ws/v1/node/containerlogs/{container}/application.driver.log"] = ("text/plain", "what it says\n")
    with serving(node):
        yarn.apps[ID].update(amContainerLogs=f"{node.url}/node/containerlogs/{container}/ann")
        yarn.nodes[0]["nodeHTTPAddress"] = node.url[len("http://") :] if listed else "localhost:1"
        code, out, err = client(YTF, "logs", ID, "--task", "coordinator", **kdc.kinit() | {"PATH": "/none"})
    assert (code, out) == ((0, "what it says\n") if listed else (9, "")), err
    assert bool(node.handshakes) == listed == any("Authorization" in headers for *_, headers in node.raw)
    all_of_ann(yarn)


def test_content_goes_to_a_datanode_without_ticket_and_cookie(yarn, client):
    """The NameNode's redirect has a token for it."""
    datanode = FakeYarn()
    datanode.faults.append(lambda method, path: (201, {}, ""))
    with serving_simple(datanode) as yarn.content_at:
        code, out, err = client(CREATE)
    assert (code, out) == (0, "True\n"), err
    method, path, _, headers, _ = datanode.requests[0]
    assert (method, path) == ("PUT", "/webhdfs/v1/user/ann/x")
    assert headers["Content-Length"] == "600000" and not {"Authorization", "Cookie"} & set(headers)
    all_of_ann(yarn)


@pytest.mark.parametrize("cookie_uses, sent", [(10, 1), (0, 2)], ids=["with the cookie", "a cookie that ran out"])
def test_an_httpfs_takes_the_content_itself(yarn, client, cookie_uses, sent):
    """When it asks for a ticket again, the content is sent again from its start."""
    yarn.content_at, yarn.cookie_uses = yarn.url, cookie_uses
    code, out, err = client(CREATE)
    assert (code, out) == (0, "True\n"), err
    assert yarn.content == [b"[" + b"12345," * 99_999 + b"1234]"]
    assert sum("data" in parameters for _, parameters, _ in yarn.raw) == sent
    all_of_ann(yarn)


def test_a_submission_goes_by_skein_where_no_token_is_to_be_had(yarn, client, kdc):
    submit = "from tf_yarn_ops.cli import submit_main; submit_main()"
    code, _, err = client(submit, "-v", "-r", "worker:1", "true", **kdc.kinit() | {"PATH": "/none"})
    assert code == 3
    assert "because HTTP is closed: the address of the ResourceManager" in err and "no 'yarn' on PATH" in err
    all_of_ann(yarn)


def test_a_standby_leads_to_the_other_configured_address(yarn, client, kdc):
    active = SecureYarn(kdc.service_keytab)
    with serving(active):
        active.add(application(1))
        yarn.location = active.url
        code, out, _ = client(WHO, url=f"{yarn.url},{active.url}")
    assert (code, out) == (0, f"ann ann True {active.url} {yarn.url}\n1\n")
    all_of_ann(active)


def test_a_standby_alone_is_enough_if_its_own_configuration_names_the_pair(yarn, client, kdc):
    active = SecureYarn(kdc.service_keytab)
    with serving(active):
        active.add(application(1))
        yarn.location = active.url
        pair = {
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
            **{
                f"yarn.resourcemanager.webapp.address.rm{number}": url[len("http://") :]
                for number, url in enumerate((yarn.url, active.url), 1)
            },
        }
        for fake in (yarn, active):
            fake.conf |= pair
        code, out, err = client(WHO, url=yarn.url)
    assert (code, out) == (0, f"ann ann True {active.url} {yarn.url}\n1\n"), err
    all_of_ann(active)


def test_no_ticket_and_no_cookie_for_an_address_that_was_not_configured(yarn, start, kdc):
    stranger = SecureYarn(kdc.service_keytab)
    with serving(stranger):
        process = start(f"""
import sys, time
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.errors import TfYarnError
manager = discover().resourcemanager()
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    try:
        manager.get({ID!r})
    except TfYarnError as error:
        sys.exit(str(error))
""")
        until(lambda: yarn.count("GET", f"/ws/v1/cluster/apps/{ID}") >= 3)
        yarn.location = stranger.url
        code, _, err = result(process)
    assert code == 1
    assert f"{stranger.url[len('http://') :]} wants a Kerberos ticket. Only an address that is configured" in err
    assert stranger.raw and stranger.handshakes == []
    assert not any({"Authorization", "Cookie"} & set(headers) for *_, headers in stranger.raw)


@pytest.mark.parametrize("configured", [True, False])
def test_a_page_behind_a_web_proxy_needs_its_configured_address(yarn, client, kdc, configured):
    proxy, document = SecureYarn(kdc.service_keytab), {"application_id": ID}
    with serving(proxy):
        proxy.pages[f"/proxy/{ID}/pages/ytf/status.json"] = "application/json", json.dumps(document)
        if configured:
            yarn.conf["yarn.web-proxy.address"] = proxy.url.partition("://")[2]
        code, out, err = client(f"""
from tf_yarn_ops.follow.live_report import LiveReports
from tf_yarn_ops.hadoop.cluster import discover
live = LiveReports(discover())
print(live.fetch_document({{"id": {ID!r}, "state": "RUNNING", "trackingUrl": "{proxy.url}/proxy/{ID}/"}}), live.obstacle)
""")
    if configured:
        assert (code, out) == (0, f"{document} \n"), err
    else:
        assert (code, proxy.handshakes) == (0, []), err
        assert re.match(
            r"None localhost:\d+ wants a Kerberos ticket. Only an address .*; name .*yarn.web-proxy.address", out
        )


def test_open_web_interface_of_a_secured_cluster_gets_a_user_name():
    yarn = FakeYarn()
    yarn.conf["hadoop.security.authentication"] = "kerberos"
    with serving_simple(yarn) as url:
        cluster = discover(url, environ={"HADOOP_USER_NAME": "ann"}, site=Site())
    assert cluster.security.kerberos
    assert cluster.authentication == SimpleAuthentication("ann", "ann")
    assert cluster.storage_authentication == KerberosAuthentication("ann", "ann")


@pytest.mark.parametrize(
    "header, kept",
    [
        ('hadoop.auth="u=ann&t=kerberos&s=x="; Path=/', 'hadoop.auth="u=ann&t=kerberos&s=x="'),
        ("other=1, hadoop.auth=token; Path=/", "hadoop.auth=token"),
        ("hadoop.auth=; Path=/", None),
        ('hadoop.auth=""; Path=/', None),
        ("other=1", None),
    ],
)
def test_the_cookie_is_kept_as_it_came(header, kept):
    negotiation = Negotiation(["http://rm:8088/"], Tickets())
    negotiation.learn("http://rm:8088/ws", header)
    negotiation.learn("http://rm:9999/ws", "hadoop.auth=evil")
    assert negotiation.cookie("http://RM:8088/conf") == kept
    assert negotiation.cookie("http://rm:9999/ws") is None


@pytest.mark.parametrize(
    "url, status, header, asked",
    [
        ("http://rm:8088/ws", 401, "Negotiate", True),
        ("http://rm:8088/ws", 401, "Basic realm=x, negotiate", True),
        ("http://rm:8088/ws", 401, "Basic", False),
        ("http://rm:8088/ws", 200, "Negotiate", False),
        ("https://rm:8088/ws", 401, "Negotiate", False),
        ("http://rm/ws", 401, "Negotiate", False),
        ("http://rm:8088@evil/ws", 401, "Negotiate", False),
    ],
)
def test_who_may_ask_for_a_ticket(url, status, header, asked):
    assert Negotiation(["http://rm:8088"], Tickets()).requires_ticket(url, status, header) is asked


@pytest.mark.parametrize("name", ["ann", "ann@EXAMPLE.COM", "ann/host@EXAMPLE.COM"])
def test_the_short_name_of_a_principal(name):
    assert short_name(name) == "ann"
