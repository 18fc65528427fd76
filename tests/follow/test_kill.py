"""A kill with its reason, through restarts and refusals."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from support.fake_yarn import application
from support.place import ID, USER, job
from tf_yarn_ops.errors import (
    ClusterUnreachable,
    SubmissionRejected,
)
from tf_yarn_ops.follow import kill as killing
from tf_yarn_ops.runtime.common.reasons import Reason


def test_kill_says_why_waits_and_deletes(place):
    launcher = place.launcher()
    launcher.submit(job())
    report = launcher.kill(ID, "Ann wants it")
    assert (report.state, report.reason, report.message) == ("KILLED", Reason.KILLED, "Ann wants it")
    assert place.directories() == []
    assert launcher.kill(ID, "again").message == "Ann wants it"
    assert place.yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") == 1


@pytest.mark.slow
@pytest.mark.parametrize("forgets", ["the kill", "the application at the kill", "the application after the kill"])
def test_a_kill_is_repeated_where_a_restart_has_lost_it(place, monkeypatch, forgets):
    """A ResourceManager that recovers knows no application for a while, and no kill that it had not yet done."""
    monkeypatch.setattr(killing, "_REPEAT_SECONDS", 0.2)
    launcher = place.launcher()
    launcher.submit(job())
    yarn, looks = place.yarn, []

    def restart(method, path):
        if path.endswith("/info") and yarn.ha_state != "ACTIVE":
            looks.append(path)
            yarn.ha_state = "ACTIVE" if len(looks) > 2 else "INITIALIZING"
        elif ID in path and yarn.ha_state != "ACTIVE":
            return 404, {}, ""
        elif method == "PUT" and yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") == 1:
            yarn.ha_state = "ACTIVE" if forgets == "the kill" else "INITIALIZING"
            return (
                (404, {}, "")
                if "at the kill" in forgets
                else (202, {"Content-Type": "application/json"}, '{"state": "RUNNING"}')
            )
        return None

    yarn.faults.append(restart)
    assert launcher.kill(ID, "Ann wants it").message == "Ann wants it"
    assert yarn.apps[ID]["state"] == "KILLED" and place.directories() == []
    assert yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") >= 2 and len(looks) == (
        0 if forgets == "the kill" else 3
    )


def test_kill_is_sent_again_every_five_seconds_while_the_application_lives(place, monkeypatch):
    """A ResourceManager has accepted it, and has lost it in a restart."""
    place.yarn.add(application(1, user=USER))
    launcher, now, sent = place.launcher(), [0.0], []

    def forget(method, path):
        if method == "PUT":
            sent.append(now[-1])
            return 202, {"Content-Type": "application/json"}, '{"state": "RUNNING"}'
        return None

    place.yarn.faults.append(forget)
    clock = SimpleNamespace(monotonic=lambda: now[-1], sleep=lambda seconds: now.append(now[-1] + seconds))
    monkeypatch.setattr(killing, "time", clock)
    with pytest.raises(killing.StillEnding, match="is RUNNING 12 s after the kill"):
        launcher.kill(ID, timeout=12.0)
    assert sent == [0.0, pytest.approx(5.25, abs=0.25), pytest.approx(10.5, abs=0.5)]


def test_a_kill_that_may_not_take_any_time_is_sent_all_the_same(place):
    launcher = place.launcher()
    launcher.submit(job())
    place.yarn.faults.append(
        lambda method, path: (
            (202, {"Content-Type": "application/json"}, '{"state": "RUNNING"}') if method == "PUT" else None
        )
    )
    with pytest.raises(ClusterUnreachable, match="0 s after the kill"):
        launcher.kill(ID, timeout=0)
    assert place.yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") == 1


def test_kill_and_list_survive_any_error_of_a_page(place):
    """A page is another user's program: an error that nobody expects must not protect its application."""
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    launcher = place.launcher()
    launcher.session.live.fetch = Mock(side_effect=lambda app: 1 / 0 if app["state"] == "RUNNING" else None)
    assert [job.application_id for job in launcher.list(alerts=True)] == [ID]
    report = launcher.kill(ID, "enough")
    assert (report.reason, report.message, place.yarn.apps[ID]["state"]) == (Reason.KILLED, "enough", "KILLED")


def test_kill_that_yarn_did_not_accept_is_not_repeated(place):
    launcher = place.launcher()
    launcher.submit(job())
    launcher.session.resourcemanager.kill = Mock(side_effect=ClusterUnreachable("gone"))
    with pytest.raises(ClusterUnreachable) as raised:
        killing.kill_application(launcher.session, ID, "why", timeout=30.0)
    assert not isinstance(raised.value, killing.StillEnding) and launcher.session.resourcemanager.kill.call_count == 1


def test_pause_between_two_looks_has_a_limit(place, monkeypatch):
    launcher, slept = place.launcher(), []
    launcher.submit(job())
    accepted = (202, {"Content-Type": "application/json"}, '{"state": "RUNNING"}')
    place.yarn.faults.append(lambda method, path: accepted if method == "PUT" and len(slept) < 20 else None)
    monkeypatch.setattr(killing.time, "sleep", slept.append)
    monkeypatch.setattr(killing, "_REPEAT_SECONDS", 0.0)
    assert launcher.kill(ID).reason is Reason.KILLED
    assert slept[:2] == [0.05, pytest.approx(0.075)] and max(slept) == 0.5


def test_what_yarn_has_dropped_under_a_kill_is_lost(place):
    launcher = place.launcher()
    launcher.submit(job())
    place.yarn.faults.append(lambda method, path: place.yarn.apps.pop(ID, None) and None if method == "PUT" else None)
    assert launcher.kill(ID, "Ann wants it").reason is Reason.LOST


def test_kill_of_a_reserved_id_that_yarn_does_not_know_is_a_success(place):
    launcher = place.launcher()
    launcher.session.staging(USER).directory(ID).make()
    assert launcher.kill(ID, "not wanted").reason is Reason.KILLED
    assert place.directories() == []


def test_refused_kill_is_reported(place):
    place.yarn.add(application(1, user="bob"))
    place.yarn.faults.append(
        lambda method, path: (
            (403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "bob only"}}')
            if method == "PUT"
            else None
        )
    )
    with pytest.raises(SubmissionRejected, match=r"killing application_.*: YARN answers 403: bob only"):
        place.launcher().kill(ID, "mine")
