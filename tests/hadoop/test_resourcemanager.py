"""The ResourceManager's REST interface: what is sent, fail-over, deadlines, errors."""

import json
import re
import time
from dataclasses import replace

import pytest

from support.fake_yarn import STAMP, amount, application
from support.hadoop_clients import client
from support.real_yarn import RealYarn
from support.waiting import until
from tf_yarn_ops.errors import ApplicationNotFound, ClusterUnreachable, SubmissionRejected
from tf_yarn_ops.hadoop.resourcemanager import Allocation, parse_application
from tf_yarn_ops.hadoop.transport import LoginRefused, RestUnavailable

ID = f"application_{STAMP}_0001"


def test_every_request_says_who_asks_and_passes_the_csrf_filter(wire_and_real):
    resourcemanager = client(wire_and_real.url)
    resourcemanager.info()
    resourcemanager.new_application()
    for _, _, parameters, headers, _ in wire_and_real.requests:
        assert parameters["user.name"] == "ann" and "doAs" not in parameters
        assert {name.lower() for name in headers} >= {"x-xsrf-header", "accept"}


def test_another_user_is_asked_for_by_doas(yarn):
    client(yarn.url, user="bob").info()
    assert yarn.requests[0][2] == {"user.name": "ann", "doAs": "bob"}


def test_a_reservation_gives_id_and_maximum(wire_and_real):
    application_id, _ = client(wire_and_real.url).new_application()
    assert re.fullmatch(r"application_\d+_\d{4}", application_id)

    # A ResourceManager names what is configured until scheduling-wait-ms after its start: 2^63-1 GPUs.
    def maximum():
        return replace(client(wire_and_real.url).new_application()[1], others={})

    until(lambda: maximum() == Allocation(16384, 32, 2), 60, 0.1)
    assert client(wire_and_real.url).new_application()[0] > application_id


def test_allocation_without_gpus():
    assert Allocation.read({"memory": 1024, "vCores": 2}) == Allocation(1024, 2, 0)
    assert not Allocation.read(amount(1024, 2)).contains(Allocation(1024, 2, 1))


def test_find_asks_by_tags_states_and_user(wire_and_real):
    stamp = str(time.time())
    a, b = f"a{stamp}", f"b{stamp}"
    both = wire_and_real.add(application(1, "ACCEPTED", applicationTags=f"{a},{b}"))
    wire_and_real.add(application(2, "ACCEPTED", applicationTags=b))
    bobs = wire_and_real.add(application(3, "ACCEPTED", applicationTags=a, user="bob"))
    ended = wire_and_real.add(application(4, "FINISHED", applicationTags=a))
    resourcemanager = client(wire_and_real.url)

    def found(*words):
        return sorted(app["id"] for app in resourcemanager.find(*words))

    assert found([a], ["ACCEPTED", "RUNNING"], "ann") == [both]
    assert found([a]) == [both, bobs, ended]
    assert [query["deSelects"] for _, path, query, *_ in wire_and_real.requests if path.endswith("/apps")][
        -1
    ] == "resourceRequests"
    assert found([f"none{stamp}"]) == []


def test_one_application_is_given_as_yarn_has_it(wire_and_real):
    name = wire_and_real.add(application(1, "ACCEPTED", name="digits"))
    found = client(wire_and_real.url).get(name)
    assert (found["id"], found["name"], found["user"], found["state"]) == (name, "digits", "ann", "ACCEPTED")
    assert found["queue"].removeprefix("root.") == "default"
    with pytest.raises(ApplicationNotFound):
        client(wire_and_real.url).get("application_1_0001")


def test_kill_puts_the_state_with_our_words(wire_and_real):
    name = wire_and_real.add(application(1))
    resourcemanager = client(wire_and_real.url)
    assert resourcemanager.kill(name, "because") in ("KILLED", "ACCEPTED", "FINAL_SAVING", "KILLING")
    assert wire_and_real.requests[-1][4] == {"state": "KILLED", "diagnostics": "because"}
    until(lambda: resourcemanager.get(name)["state"] == "KILLED")
    assert "because" in resourcemanager.get(name)["diagnostics"]
    assert resourcemanager.kill(name, "again") == "KILLED"


def test_kill_of_what_is_unknown_says_so(wire_and_real):
    with pytest.raises(ApplicationNotFound, match=r"app with id: .* not found"):
        client(wire_and_real.url).kill(ID, "because")


def test_lifetime_is_a_time_of_day_in_utc(yarn):
    yarn.add(application(1))
    client(yarn.url).set_lifetime(ID, 1700000000.4)
    assert yarn.apps[ID]["lifetime"] == {"type": "LIFETIME", "expiryTime": "2023-11-14T22:13:20.000+0000"}


@pytest.mark.cluster
def test_yarn_ends_an_application_at_the_end_of_its_lifetime(minicluster):
    yarn = RealYarn(minicluster.resourcemanager_url)
    name = yarn.add(application(1))
    resourcemanager = client(minicluster.resourcemanager_url)
    resourcemanager.set_lifetime(name, time.time() + 2)
    until(lambda: resourcemanager.get(name)["state"] == "KILLED", 60, 0.1)
    assert "exceeded the lifetime period" in resourcemanager.get(name)["diagnostics"]
    yarn.close()


def test_old_hadoop_does_not_know_userinfo(yarn):
    yarn.faults.append(lambda method, path: (404, {}, "") if path.endswith("userinfo") else None)
    assert client(yarn.url).userinfo("requestedUser") is None


def remote(status, message):
    text = json.dumps({"RemoteException": {"message": message}})
    return lambda method, path: (status, {"Content-Type": "application/json"}, text)


@pytest.mark.parametrize(
    "status, message, error, says",
    [
        (400, "java.lang.Exception: x.y.BadException: no tag", SubmissionRejected, "YARN answers 400: no tag$"),
        (403, "not allowed", SubmissionRejected, "YARN answers 403: not allowed"),
        (403, "App submission via REST is disabled.", RestUnavailable, "via REST is disabled"),
        (401, "Authentication required", LoginRefused, "Kerberos or another login"),
        (404, "app unknown", ApplicationNotFound, "app unknown"),
        (500, "java.lang.NullPointerException", ClusterUnreachable, "answers 500"),
    ],
)
def test_answers_become_our_errors(yarn, status, message, error, says):
    fault = remote(status, message)
    yarn.faults.append(lambda method, path: fault(method, path) if path.endswith(ID) else None)
    with pytest.raises(error, match=says) as raised:
        client(yarn.url).get(ID)
    assert type(raised.value) is error


def test_simultaneous_submission_of_another_client_is_a_success(yarn):
    duplicate = remote(400, f"Application with id {ID} is already present! Cannot add a duplicate!")
    yarn.faults.append(lambda method, path: duplicate(method, path) if method == "POST" else None)
    client(yarn.url).submit({"application-id": ID})


@pytest.mark.parametrize("sent", [False, True], ids=["lost answer", "sent before"])
def test_refused_look_does_not_refuse_a_sent_submission(yarn, sent):
    refused = []

    def fault(method, path):
        if method == "POST":
            refused.append(path)
            return 503, {}, "away"
        return (401, {}, "Authentication required") if path.endswith("/info") and (sent or refused) else None

    yarn.faults.append(fault)
    with pytest.raises(ClusterUnreachable, match=f"YARN may have accepted {ID}.* Kerberos or another login"):
        client(yarn.url).submit({"application-id": ID}, sent=sent)


@pytest.mark.parametrize("sent", [False, True], ids=["lost answer", "sent before"])
def test_refused_repetition_does_not_refuse_a_sent_submission(yarn, sent):
    posts = []

    def fault(method, path):
        if method != "POST":
            return None
        posts.append(path)
        return (401, {}, "Authentication required") if sent or len(posts) > 1 else (503, {}, "away")

    yarn.faults.append(fault)
    with pytest.raises(ClusterUnreachable, match=f"YARN may have accepted {ID}"):
        client(yarn.url).submit({"application-id": ID}, sent=sent)
    assert len(posts) == 2 - sent


def test_a_refused_look_before_the_submission_is_a_refusal(yarn):
    yarn.faults.append(remote(401, "Authentication required"))
    with pytest.raises(RestUnavailable):
        client(yarn.url).submit({"application-id": ID})


@pytest.mark.parametrize(
    "text, found",
    [
        ('{"apps": null, "nodes": null}', []),
        ('{"apps": {}, "nodes": {}}', []),
        ("{}", []),
        (
            '{"apps": {"app": {"id": "x", "state": "NEW"}}, "nodes": {"node": {"id": "x", "state": "NEW"}}}',
            [{"id": "x", "state": "NEW"}],
        ),  # one of one, in some versions
    ],
)
def test_lists_as_yarn_writes_them(yarn, text, found):
    asker = client(yarn.url)
    asker.await_active()
    yarn.faults.append(
        lambda method, path: None if path.endswith("/info") else (200, {"Content-Type": "application/json"}, text)
    )
    assert (asker.find(), asker.nodes()) == (found, found)


@pytest.mark.parametrize(
    "changes, error", [(0, ApplicationNotFound), (1, ApplicationNotFound), (99, ClusterUnreachable)]
)
def test_a_404_counts_between_two_looks_at_one_activation(yarn, changes, error):
    left = [changes]

    def restart(method, path):
        if path.endswith(ID) and left[0]:
            left[0] -= 1
            yarn.started_on += 1

    yarn.faults.append(restart)
    with pytest.raises(error):
        client(yarn.url).get(ID)
    assert yarn.count("GET", f"/ws/v1/cluster/apps/{ID}") == {0: 2, 1: 2, 99: 4}[changes]


def test_a_404_is_asked_again_once_the_recovery_is_over(yarn):
    yarn.ha_state = "INITIALIZING"

    def recover(method, path):
        if yarn.count("GET", "/ws/v1/cluster/info") == 3:
            yarn.ha_state = "ACTIVE"
            yarn.apps.setdefault(ID, application(1))

    yarn.faults.append(recover)
    assert client(yarn.url).get(ID, 20)["id"] == ID


def test_a_list_is_read_again_when_another_one_became_active(yarn):
    resourcemanager = client(yarn.url)
    assert resourcemanager.find() == []

    def recover(method, path):
        if path.endswith("/info") and yarn.started_on == STAMP:
            yarn.started_on += 1
            yarn.add(application(1))

    yarn.faults.append(recover)
    assert [found["id"] for found in resourcemanager.find()] == [ID]


@pytest.mark.parametrize(
    "answer",
    [
        (404, {"Content-Type": "text/html"}, "no such topology"),
        (403, {}, "no"),
        (200, {"Content-Type": "text/html"}, "login"),
    ],
)
def test_a_gateway_that_hides_the_state_makes_no_application_lost(yarn, answer):
    yarn.faults.append(lambda method, path: answer if path.endswith("/info") else None)
    with pytest.raises((ClusterUnreachable, SubmissionRejected)):
        client(yarn.url).get(ID)


@pytest.mark.parametrize("value", ["x", [1], None, -1, True, 1.5, 10**400, float("inf"), float("nan")])
def test_time_of_an_application_that_is_none_counts_as_0(value):
    names = ("startedTime", "launchTime", "finishedTime")
    found = parse_application({"id": ID, "state": "RUNNING", **dict.fromkeys(names, value)})
    assert [found[name] for name in names] == [0, 0, 0]
    assert "launchTime" not in parse_application({"id": ID, "state": "RUNNING", "finishedTime": 5})
