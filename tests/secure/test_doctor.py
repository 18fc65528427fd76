"""``ytf doctor`` on a secured cluster: ticket, identity, tokens, rights."""

import json
import sys

import pytest

from support.secure import kinit
from support.secure_clients import call_as
from tf_yarn_ops.cli import main

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def doctor(environ, *words):
    """Return the exit code and the results by the names of the checks."""
    done = call_as(environ, main, "doctor", "--json", *words)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"]
    return done.returncode, {item["check"]: item for item in document["checks"]}


def test_with_a_ticket_everything_is_checked_and_an_application_runs(as_alice):
    code, found = doctor(as_alice, "--submit", "--environment", f"venv://{sys.prefix}")
    complaints = {name: item["message"] for name, item in found.items() if item["outcome"] in ("fault", "skipped")}
    assert (code, complaints) == (0, {"environment": "--environment names no archive of this machine"})
    assert found["identity"]["facts"]["user"] == "alice"
    assert found["security"]["message"] == "Kerberos, for requests over HTTP too"
    assert found["ticket"]["facts"]["principal"].startswith("alice@")
    assert len(found["tokens"]["facts"]["services"]) == 3  # that of the KMS, too
    assert (found["queue_acl"]["outcome"], found["submission"]["facts"]["way"]) == ("ok", "rest")
    assert found["application"]["facts"]["node"]["executable"].startswith(sys.prefix)


def test_without_a_ticket_it_says_what_to_run(as_nobody):
    code, found = doctor(as_nobody)
    assert (code, found["ticket"]["symptom"]) == (3, "TICKET_MISSING")
    assert "kinit" in found["ticket"]["advice"]
    assert {
        item["skipped_for"] for name, item in found.items() if name in ("identity", "tokens", "staging", "queue")
    } == {"ticket"}


def test_a_ticket_that_ends_soon_is_a_warning(secure_cluster, as_alice):
    kinit(secure_cluster, as_alice, "alice", "-l", "600")
    code, found = doctor(as_alice)
    assert (code, found["ticket"]["symptom"]) == (0, "TICKET_ENDS_SOON")
    assert 0 < found["ticket"]["facts"]["seconds_left"] <= 600


def test_acting_for_another_user_is_checked(as_alice, as_gateway):
    code, found = doctor(as_alice, "--user", "bob")
    assert (code, found["identity"]["symptom"]) == (3, "REFUSED")
    assert "not allowed to impersonate bob" in found["identity"]["message"]
    assert "hadoop.proxyuser" in found["identity"]["advice"]
    code, found = doctor(as_gateway, "--user", "bob")
    assert (code, found["identity"]["message"].split(";")[0]) == (0, "bob, impersonated by gateway")
    assert found["staging"]["outcome"] == "ok"


def test_naming_only_the_standby_is_a_warning(secure_cluster, as_alice):
    settings, active = secure_cluster.settings, secure_cluster.active("rm")
    (standby,) = (settings.web_address(name) for name in settings.resourcemanagers if name != active)
    code, found = doctor(as_alice, "--resourcemanager", standby)
    assert (code, found["resourcemanager"]["symptom"], found["identity"]["outcome"]) == (0, "RM_STANDBY_NAMED", "ok")
