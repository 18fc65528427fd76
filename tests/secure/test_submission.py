"""Jobs on a real secured cluster, submitted over HTTP by clients that have neither Java nor Hadoop.

All jobs start at once; the tests look at their ends. One goes on: test_token_lifetimes.py looks at its end.
"""

import json
import re

import pytest

from support.secure import ask
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_running_job_shows_page_and_logs_and_only_its_user_ends_it(clients):
    application = clients.submitted("long")

    until(clients.listed.exists, 90)
    _, out, err = clients.ytf("look", "alice", "status", application, "--json", "-v")
    assert out, err
    shown = json.loads(out)
    assert [task["state"] for task in shown["tasks"]] == ["running"]
    assert (shown["user"], shown["state"]) == ("alice", "RUNNING")
    code, out, err = clients.ytf("live log", "alice", "logs", application, "--task", "worker:0", "-v")
    # One token for the pair of NameNodes, and one for the address of one of them.
    assert code == 0 and re.search(
        r"^tokens for \['127\.0\.0\.1:\d+', 'ha-hdfs:minicluster'\] home has \['\.skein'.*\]$", out, re.M
    ), (out, err)
    code, _, err = clients.ytf("kill by bob", "bob", "kill", application)
    assert code == 3, err
    code, _, err = clients.ytf("log by bob", "bob", "logs", application, "--task", "master")
    assert (code, "belongs to alice, and YARN shows you none of its logs" in err) == (3, True), err
    for path in (f"/user/alice/.skein/{application}?op=LISTSTATUS", "/user/alice/.skein/cache?op=LISTSTATUS"):
        assert clients.status_of("bob", path) == 403
    for page in (f"ws/v1/cluster/apps/{application}", f"cluster/app/{application}"):
        status, text = ask(clients.cluster, clients.tickets["bob"], f"{clients.cluster.resourcemanager_url}/{page}")
        clients.said[page] = text
        assert status in (200, 403)


def test_a_failed_job_leaves_no_directory(clients):
    code, report = clients.report("failed")
    assert (code, report["reason"]) == (1, "TASK_FAILED")
    assert clients.is_deleted("alice", report["application_id"])
    # No program yarn, and no log server: the whole log comes from HDFS.
    code, out, err = clients.ytf("log after the end", "alice", "logs", report["application_id"], "-v")
    assert code == 0 and "it fails\n" in out and "only the end" not in out, (out, err)
    # Coordinators write the records with their jobs' tokens; a client writes one that took more than a second.
    code, out, err = clients.ytf("history", "alice", "history", "--json", "-v")
    records = {job["application_id"]: job for job in json.loads(out)}
    assert (code, records[report["application_id"]]["reason"]) == (0, "TASK_FAILED"), err
    assert "coordinator" in {record["written_by"] for record in records.values()}, err


def test_racing_clients_of_a_gateway_have_one_application_of_bob(clients):
    """On a Python without packages; the gateway follows the job as bob."""
    ends = [clients.report(f"racer {number}") for number in range(2)]
    assert [(code, report["user"], report["reason"]) for code, report in ends] == [(0, "bob", "SUCCEEDED")] * 2, ends
    [application] = {report["application_id"] for _, report in ends}
    assert clients.is_deleted("bob", application)
    as_bob = (application, "--user", "bob")
    code, out, _ = clients.ytf("status for bob", "gateway", "status", *as_bob, "--json")
    assert (code, json.loads(out)["reason"]) == (0, "SUCCEEDED")
    code, out, err = clients.ytf("log for bob", "gateway", "logs", *as_bob, "-v")
    assert code == 0 and "the command ended with exit code 0" in out, (out, err)


def test_token_that_yarn_cannot_renew_is_reported_with_advice(clients):
    code, report = clients.report("wrong renewer")
    assert (code, report["reason"]) == (3, "SUBMISSION_REJECTED")
    assert re.search(r"Failed to renew token.*set token_renewer in site\.yaml", report["message"])
    assert clients.is_deleted("alice", report["application_id"])


def test_token_of_another_service_is_reported_with_advice(clients):
    """YARN starts the application master, which asks for itself in vain: Hadoop finds no token for its ResourceManager."""
    code, report = clients.report("wrong service")
    assert (code, report["reason"]) == (3, "SUBMISSION_REJECTED"), report
    assert re.search(
        r"Client cannot authenticate.*has no token for the address.*resourcemanager_service", report["message"]
    ), report
    assert clients.is_deleted("alice", report["application_id"])


def test_coordinator_without_interpreter_ends_the_job_by_its_token(clients):
    """Another Python of the node kills the application over REST, with the reason."""
    code, report = clients.report("no python")
    assert (code, report["reason"]) == (2, "ENVIRONMENT_INVALID"), report
    assert "there is no Python" in report["message"]
    assert clients.is_deleted("alice", report["application_id"])
