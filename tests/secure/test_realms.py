"""Users of another realm, which the cluster's realm trusts and hadoop.security.auth_to_local maps to users of the cluster."""

import json
import os
import re
import subprocess
import sys
import time
from unittest import mock

import pytest
import yaml

from support.client_rows import FULL_DISK, NO_PROXIES
from support.programs import SUBMIT
from support.secure import ask, get_environment
from support.secure_clients import call_as
from support.waiting import until
from tf_yarn_ops.cli import main, submit_main
from tf_yarn_ops.hadoop.cluster import discover

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

JOB = ("--environment", f"venv://{sys.prefix}", "--am_memory", "512", "-m", "256", "-r", "worker:1")
#: Of a client's variables: neither Java nor Hadoop is on its machine.
KEPT = ("KRB5_CONFIG", "KRB5CCNAME", "HOME", "LANG", "TMPDIR", "YTF_SITE", "YTF_RESOURCEMANAGER")


@pytest.fixture(scope="module")
def clients(secure_cluster, tmp_path_factory):
    """Return the variables of a client with a ticket of each user."""
    folder, users = tmp_path_factory.mktemp("tickets"), ("corp-alice", "corp-bob", "corp-gateway", "stranger", "alice")
    found = {user: get_environment(secure_cluster, folder, user) for user in users}
    return {
        user: {name: environ[name] for name in KEPT if name in environ} | {"PATH": "/nowhere"}
        for user, environ in found.items()
    }


def ytf(environ, *words, program=main):
    """Call a program; return exit code and both outputs."""
    done = call_as(environ, program, *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def login_and_user(environ, user=None):
    """Return login and user of a client's requests, after a look at the user's home directory."""
    with mock.patch.dict(os.environ, environ, clear=True):
        cluster = discover(user=user)
        cluster.open_filesystem().list(f"/user/{cluster.user}")
        return cluster.login, cluster.user


@pytest.fixture(scope="module")
def running(clients, tmp_path_factory):
    """Return the id of a job that corp-alice has submitted with a ticket, when it runs."""
    said = tmp_path_factory.mktemp("said") / "hello"
    command = f"echo hello; touch {said}; sleep 600"
    code, out, err = ytf(clients["corp-alice"], "-v", "--submit_with", "rest", *JOB, command, program=submit_main)
    assert code == 0, err
    found = re.search(r"application_\d+_\d+", out)[0]
    until(said.exists, 120)
    assert "hello" in ytf(clients["corp-alice"], "logs", found, "--task", "worker:0")[1]
    yield found
    ytf(clients["alice"], "kill", found)


def test_job_of_another_realm_is_that_of_the_mapped_user(secure_cluster, clients, running):
    page = f"{secure_cluster.resourcemanager_url}/proxy/{running}/pages/ytf/status.json"
    for user, status in (("corp-alice", 200), ("alice", 200), ("corp-bob", 403)):
        curl = {**clients[user], "PATH": "/usr/bin:/bin"}
        assert ask(secure_cluster, curl, page)[0] == status, user
    code, out, err = ytf(clients["corp-alice"], "list", "--json")
    assert (code, {item["user"] for item in json.loads(out)}) == (0, {"alice"}), err
    assert running in out


def test_only_the_mapped_user_ends_the_job(clients, running):
    code, _, err = ytf(clients["corp-bob"], "kill", running)
    assert code == 3 and "bob" in err, err
    code, _, err = ytf(clients["corp-alice"], "kill", running)
    code, out, err = ytf(clients["corp-alice"], "status", running, "--json")
    assert (json.loads(out)["reason"], json.loads(out)["user"]) == ("KILLED", "alice"), err


@pytest.fixture
def by_keytab(secure_cluster, clients, tmp_path):
    """Return what gives the variables of a client that has nothing but the address, a keytab of corp-alice and a name."""

    def named(principal):
        settings = yaml.safe_load(secure_cluster.settings.site_file.read_text())
        settings["keytab"] = str(secure_cluster.keytab("corp-alice"))
        (tmp_path / "site.yaml").write_text(yaml.safe_dump(settings | ({"principal": principal} if principal else {})))
        return {**clients["stranger"], "YTF_SITE": str(tmp_path / "site.yaml"), "HADOOP_USER_NAME": "bob"}

    return named


@pytest.mark.parametrize("principal", ["corp-alice", "corp-alice@CORP.LOCAL"])
def test_keytab_of_another_realm_is_that_of_the_mapped_user(by_keytab, principal):
    assert login_and_user(by_keytab(principal)) == ("alice", "alice")


def test_keytab_of_another_realm_trains_without_java(by_keytab, tmp_path):
    """Even where no file may grow, and where the variables of proxies lead to nowhere."""
    environ = by_keytab(None) | NO_PROXIES | {"KRB5CCNAME": f"FILE:{tmp_path}/none"}
    words = [*FULL_DISK, *SUBMIT, "-v", "--wait", *JOB, 'echo "$USER"']
    done = subprocess.run(
        words, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0 and "  user          alice\n" in done.stderr, done.stderr
    assert "submitting with Skein" not in done.stderr and not (tmp_path / "none").exists()


@pytest.mark.parametrize("program, words", [
    pytest.param(main, ["list"], id="list"),
    pytest.param(submit_main, ["--submit_with", "rest", *JOB, "true"], id="submit"),
    pytest.param(main, ["kill", "application_1_0001"], id="kill"),
    pytest.param(main, ["doctor"], id="doctor"),
])  # fmt: skip
def test_principal_without_a_rule_is_refused_at_once(clients, program, words):
    began = time.monotonic()
    code, out, err = ytf(clients["stranger"], *words, program=program)
    text = " ".join((out + err).split())
    assert code == 3, text
    assert "No rules applied to stranger@CORP.LOCAL" in text and "hadoop.security.auth_to_local" in text
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("login, user", [("corp-alice", "alice"), ("corp-gateway", "bob")])
def test_user_may_be_named_by_the_mapped_name(clients, login, user):
    """The cluster says who the login is; a proxy user of another realm acts for its users."""
    assert login_and_user(clients[login], user) == (login.removeprefix("corp-"), user)
