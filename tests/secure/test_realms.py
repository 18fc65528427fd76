"""Users of another realm, which the cluster's realm trusts and hadoop.security.auth_to_local maps to users of the cluster."""

import json
import re
import subprocess
import sys
import time

import pytest
import yaml

from support.programs import SUBMIT, YTF
from support.secure import ask, get_environment
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

JOB = ("--environment", f"venv://{sys.prefix}", "--am_memory", "512", "-m", "256", "-r", "worker:1")
#: Of a client's variables: neither Java nor Hadoop is on its machine.
KEPT = ("KRB5_CONFIG", "KRB5CCNAME", "HOME", "LANG", "TMPDIR", "YTF_SITE", "YTF_RESOURCEMANAGER")
#: A program that shows login and user of its requests, and lists the user's home directory.
USER = """
import sys
from tf_yarn_ops.hadoop.cluster import discover
cluster = discover(user=sys.argv[1] if sys.argv[1:] else None)
cluster.open_filesystem().list(f"/user/{cluster.user}")
print(cluster.login, cluster.user)
"""


@pytest.fixture(scope="module")
def clients(secure_cluster, tmp_path_factory):
    """Return the variables of a client with a ticket of each user."""
    folder, users = tmp_path_factory.mktemp("tickets"), ("corp-alice", "corp-bob", "corp-gateway", "stranger", "alice")
    found = {user: get_environment(secure_cluster, folder, user) for user in users}
    return {
        user: {name: environ[name] for name in KEPT if name in environ} | {"PATH": "/nowhere"}
        for user, environ in found.items()
    }


def run(environ, *words):
    """Run a program; return exit code and both outputs."""
    ran = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def running(clients, tmp_path_factory):
    """Return the id of a job that corp-alice has submitted with a ticket, when it runs."""
    said = tmp_path_factory.mktemp("said") / "hello"
    command = f"echo hello; touch {said}; sleep 600"
    code, out, err = run(clients["corp-alice"], *SUBMIT, "-v", "--submit_with", "rest", *JOB, command)
    assert code == 0, err
    found = re.search(r"application_\d+_\d+", out)[0]
    until(said.exists, 120)
    assert "hello" in run(clients["corp-alice"], *YTF, "logs", found, "--task", "worker:0")[1]
    yield found
    run(clients["alice"], *YTF, "kill", found)


def test_job_of_another_realm_is_that_of_the_mapped_user(secure_cluster, clients, running):
    page = f"{secure_cluster.resourcemanager_url}/proxy/{running}/pages/ytf/status.json"
    for user, status in (("corp-alice", 200), ("alice", 200), ("corp-bob", 403)):
        curl = {**clients[user], "PATH": "/usr/bin:/bin"}
        assert ask(secure_cluster, curl, page)[0] == status, user
    code, out, err = run(clients["corp-alice"], *YTF, "list", "--json")
    assert (code, {item["user"] for item in json.loads(out)}) == (0, {"alice"}), err
    assert running in out


def test_only_the_mapped_user_ends_the_job(clients, running):
    code, _, err = run(clients["corp-bob"], *YTF, "kill", running)
    assert code == 3 and "bob" in err, err
    code, _, err = run(clients["corp-alice"], *YTF, "kill", running)
    code, out, err = run(clients["corp-alice"], *YTF, "status", running, "--json")
    assert (json.loads(out)["reason"], json.loads(out)["user"]) == ("KILLED", "alice"), err


@pytest.mark.parametrize("principal", ["corp-alice", "corp-alice@CORP.LOCAL", None])
def test_keytab_of_another_realm_trains(secure_cluster, clients, tmp_path, principal):
    settings = yaml.safe_load(secure_cluster.settings.site_file.read_text())
    settings |= {"keytab": str(secure_cluster.keytab("corp-alice")), **({"principal": principal} if principal else {})}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(settings))
    environ = {**clients["stranger"], "YTF_SITE": str(tmp_path / "site.yaml")}
    if principal is None:
        code, _, err = run(environ, *SUBMIT, "-v", "--submit_with", "rest", "--wait", *JOB, "true")
        assert "  user          alice\n" in err
    else:
        code, out, err = run(environ, sys.executable, "-c", USER)
        assert out == "alice alice\n", err
    assert code == 0, err


@pytest.mark.parametrize("words", [
    pytest.param((*YTF, "list"), id="list"),
    pytest.param((*SUBMIT, "--submit_with", "rest", *JOB, "true"), id="submit"),
    pytest.param((*YTF, "kill", "application_1_0001"), id="kill"),
    pytest.param((*YTF, "doctor"), id="doctor"),
])  # fmt: skip
def test_principal_without_a_rule_is_refused_at_once(clients, words):
    began = time.monotonic()
    code, out, err = run(clients["stranger"], *words)
    text = " ".join((out + err).split())
    assert code == 3, text
    assert "No rules applied to stranger@CORP.LOCAL" in text and "hadoop.security.auth_to_local" in text
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("login, user", [("corp-alice", "alice"), ("corp-gateway", "bob")])
def test_user_may_be_named_by_the_mapped_name(clients, login, user):
    """The cluster says who the login is; a proxy user of another realm acts for its users."""
    _, out, err = run(clients[login], sys.executable, "-c", USER, user)
    assert out == f"{login.removeprefix('corp-')} {user}\n", err
