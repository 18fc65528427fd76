"""`ensure` with every client that dies on the way."""

import json
import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.fake_yarn import verdict_text
from support.own_applications import ME, claims_of, mine, number
from support.place import ID, REQUESTS, cancel_at, job
from support.waiting import until
from tf_yarn_ops.errors import Cancelled, SubmissionRejected, Superseded
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import VERDICT_TAG, JobReport


def live(place):
    return [name for name, app in place.yarn.apps.items() if app["state"] in LIVE]


def end(place, name, reason):
    final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
    place.yarn.apps[name].update(
        state="FINISHED",
        finalStatus=final,
        diagnostics=verdict_text(JobReport(name, reason=reason, message="x")),
    )


def again(attempt=ME.attempt, generation=ME.generation):
    return Identity(ME.key, generation, attempt, ME.deployment)


@pytest.mark.slow
def test_the_first_call_submits_with_all_tags_and_the_second_attaches(place):
    known = []
    report = place.launcher().ensure(job(tags=["Extra"]), ME, known.append)
    assert (report.application_id, report.reason, known) == (ID, None, [ID])
    tags = place.yarn.apps[ID]["applicationTags"].split(",")
    assert {tag for tag in tags if not tag.startswith(VERDICT_TAG)} == {"extra", *ME.tags}
    for attempt in (2, 3):
        assert place.launcher().ensure(job(), again(attempt), known.append).application_id == ID
    assert known == [ID] * 3 and len(place.yarn.apps) == 1


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [0, 600, -600])
def test_retry_waits_while_tasks_may_run_on_lost_nodes(place, monkeypatch, caplog, ahead):
    """The ResourceManager was cut off for longer than its nodes expire; two tasks trained on for a while.

    Its clock is so many seconds ahead of the client's.
    """
    place.yarn.ahead = ahead
    monkeypatch.setattr("tf_yarn_ops.launch.identity.NOTICE_SECONDS", 0.0)
    spec = job(deadlines=Deadlines(heartbeat=5, stop_grace=1))
    place.launcher().ensure(spec, ME)
    end(place, ID, Reason.NODE_LOST)
    ended = time.time()
    place.yarn.apps[ID]["finishedTime"] = int((ended + ahead) * 1000)
    with caplog.at_level("INFO"):
        assert place.launcher().ensure(spec, again(3)).application_id == number(2)
    assert time.time() >= ended + 6 - 0.5  # YARN's time comes in whole seconds
    assert f"tasks of '{ID}' may still run on nodes that YARN has lost" in caplog.text


@pytest.mark.slow
def test_success_is_never_repeated_and_failure_only_by_another_attempt(place):
    place.launcher().ensure(job(), ME)
    end(place, ID, Reason.TASK_FAILED)
    assert place.launcher().ensure(job(), ME).reason is Reason.TASK_FAILED
    second = place.launcher().ensure(job(), again(3))
    assert (second.application_id, second.reason) == (number(2), None)
    end(place, number(2), Reason.SUCCEEDED)
    for attempt in (2, 3, 4):
        assert place.launcher().ensure(job(), again(attempt)).application_id == number(2)
    assert len(place.yarn.apps) == 2
    third = place.launcher().ensure(job(), again(4, generation=2))
    assert (third.application_id, third.reason) == (number(3), None)


@pytest.mark.slow
def test_older_generation_is_killed_and_a_stale_caller_superseded(place):
    place.launcher().ensure(job(), ME)
    newer = place.launcher().ensure(job(), again(0, generation=2))
    assert live(place) == [newer.application_id]
    assert place.launcher().report(ID).reason is Reason.SUPERSEDED
    with pytest.raises(Superseded, match=f"{newer.application_id} is of a newer generation than 1"):
        place.launcher().ensure(job(), again(3))
    assert live(place) == [newer.application_id] and len(place.yarn.apps) == 2


def test_what_a_stale_client_left_behind_is_killed_when_it_is_called_again(place):
    """It was submitted after the newer generation's last look, and its client killed before its own."""
    stale, newer = place.yarn.add(mine(98, "RUNNING")), place.yarn.add(mine(99, "RUNNING", generation=2))
    with pytest.raises(Superseded):
        place.launcher().ensure(job(), ME)
    assert live(place) == [newer]
    assert place.launcher().report(stale).message == f"Superseded by {newer}"


@pytest.mark.slow
def test_a_newer_generation_that_comes_during_the_submission_wins(place):
    newer = mine(99, "ACCEPTED", generation=2)
    place.yarn.faults.append(
        lambda method, path: (
            place.yarn.add(newer) and None if (method, path) == ("POST", "/ws/v1/cluster/apps") else None
        )
    )
    with pytest.raises(Superseded):
        place.launcher().ensure(job(), ME)
    assert live(place) == [newer["id"]]
    assert place.launcher().report(ID).reason is Reason.SUPERSEDED
    assert place.directories() == []


def test_foreign_application_with_our_tags_is_left_alone(place):
    for at, generation in ((50, 0), (51, 1), (52, 2)):
        place.yarn.add(mine(at, generation=generation, user="stranger"))
    assert place.launcher().ensure(job(), ME).application_id == ID
    assert set(live(place)) == {ID, number(50), number(51), number(52)}


def test_further_applications_of_the_generation_are_killed(place):
    for at in (40, 41, 42):
        place.yarn.add(mine(at))
    assert place.launcher().ensure(job(), ME).application_id == number(40)
    assert live(place) == [number(40)]


def test_a_claim_that_was_never_submitted_is_submitted_under_its_id(place):
    claims_of(place).make(0, number(7))
    known = []
    report = place.launcher().ensure(job(), ME, known.append)
    assert (report.application_id, known) == (number(7), [number(7)])
    assert not place.yarn.count("POST", "/ws/v1/cluster/apps/new-application")
    assert claims_of(place).latest().submitted


@pytest.mark.slow
def test_forgotten_submitted_claim_is_lost_and_never_resubmitted(place):
    place.launcher().ensure(job(), ME)
    place.yarn.apps.clear()
    for identity in (ME, again(3)):
        report = place.launcher().ensure(job(), identity)
        assert (report.reason, report.application_id) == (Reason.LOST, ID)
    assert place.yarn.apps == {}


def test_submitted_but_not_marked_is_attached(place):
    place.launcher().ensure(job(), ME)
    for path in (place.staging / "claims").glob("*/*.submitted"):
        path.unlink()
    assert place.launcher().ensure(job(), again(3)).application_id == ID
    assert len(place.yarn.apps) == 1


def test_a_claim_that_can_not_be_marked_leaves_no_application_to_itself(place):
    """The application runs: the client that has submitted it says so and waits for it."""

    def lose_the_claims(method, path):
        if (method, path) == ("POST", "/ws/v1/cluster/apps"):
            shutil.rmtree(place.staging / "claims")

    place.yarn.faults.append(lose_the_claims)
    assert place.launcher().ensure(job(), ME).application_id == ID
    assert live(place) == [ID]


class Alarm(BaseException):
    """As Airflow's ``AirflowTaskTimeout``, which is no `Exception`."""


def ring(*_):
    raise Alarm


def test_an_alarm_during_a_submission_takes_it_back(place):
    """The request is on its way when the alarm rings."""

    def hold(method, path):
        if (method, path) == ("POST", "/ws/v1/cluster/apps"):
            os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, ring)
    place.yarn.faults.append(hold)
    try:
        with pytest.raises(Alarm):
            place.launcher().ensure(job(), ME)
    finally:
        signal.signal(signal.SIGALRM, before)
    until(lambda: [app["state"] for app in place.yarn.apps.values()] in ([], ["KILLED"]))


@pytest.mark.slow
def test_racing_clients_submit_one(place):
    for round_ in range(5):
        identity = Identity(f"race {round_}")
        barrier = threading.Barrier(2)

        def go(identity=identity, barrier=barrier):
            launcher = place.launcher()
            barrier.wait(60)
            return launcher.ensure(job(), identity).application_id

        with ThreadPoolExecutor(2) as pool:
            first, second = (future.result() for future in [pool.submit(go), pool.submit(go)])
        assert first == second
        tagged = [app for app in place.yarn.apps.values() if identity.tag in app["applicationTags"].split(",")]
        assert len(tagged) == 1


@pytest.mark.parametrize("method, start", REQUESTS)
def test_cancelled_in_each_gap_leaves_nothing(place, method, start):
    launcher = place.launcher()
    cancel_at(place, launcher, method, start)
    with pytest.raises(Cancelled):
        launcher.ensure(job(), ME)
    assert live(place) == [] and place.directories() == []


def test_a_callback_that_fails_leaves_a_claim_that_the_next_call_continues(place):
    def fail(application_id):
        raise RuntimeError("database gone")

    with pytest.raises(RuntimeError):
        place.launcher().ensure(job(), ME, fail)
    assert place.yarn.apps == {}
    assert place.launcher().ensure(job(), ME).application_id == ID


def test_a_wait_for_one_of_two_goes_on_with_the_other(place):
    place.yarn.add(mine(1))
    place.yarn.add(mine(2, "KILLED", finalStatus="KILLED"))

    def end_the_other(report):
        if report.reason is None:
            end(place, number(1), Reason.SUCCEEDED)

    report = place.launcher().wait(number(2), identity=ME, poll_interval=0.02, timeout=60, on_change=end_the_other)
    assert (report.application_id, report.reason) == (number(1), Reason.SUCCEEDED)
    place.yarn.add(mine(3, "KILLED", finalStatus="KILLED"))
    assert place.launcher().wait(number(3), identity=ME, poll_interval=0.02).reason is Reason.KILLED


@pytest.mark.slow
def test_run_with_an_identity_submits_again_after_a_missed_allocation(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.RETRY_PAUSE", 0.01)
    spec = job(restart=RestartPolicy(allocation_retries=1))

    def fault(method, path):
        name = path.rsplit("/", 1)[-1]
        if method == "GET" and name in live(place) and place.yarn.apps[name].setdefault("seen", 0) >= 3:
            end(place, name, Reason.ALLOCATION_TIMEOUT)
        elif name in place.yarn.apps:
            place.yarn.apps[name]["seen"] = place.yarn.apps[name].get("seen", 0) + 1

    place.yarn.faults.append(fault)
    report = place.launcher().run(spec, ME, poll_interval=0.01)
    assert (report.reason, report.application_id) == (Reason.ALLOCATION_TIMEOUT, number(2))
    assert place.launcher().ensure(spec, ME).application_id == number(2)
    assert len(place.yarn.apps) == 2


def test_a_first_claim_leaves_the_staging_directory_passable(place):
    """Else NodeManagers would share nothing below it, for as long as it exists."""
    shutil.rmtree(place.staging, ignore_errors=True)
    claims_of(place).make(0, number(7))
    assert [path.stat().st_mode & 0o777 for path in (place.staging, place.staging / "claims")] == [0o711, 0o700]


def test_claims_hold_ids_and_nothing_of_the_key(place):
    place.launcher().ensure(job(), ME)
    texts = [path.read_text() for path in (place.staging / "claims").glob("*/*")]
    assert sorted(texts) == ["", json.dumps({"id": ID, "generation": 1})]
    assert not any("dag" in path.name for path in (place.staging / "claims").glob("*/*"))


# -- what a review found ----------------------------------------------------------------------


def test_cancelled_older_attempt_spares_a_newer_submission(place):
    """Between its claim and its submission the next attempt goes on with the claim; then it gets SIGTERM."""
    old, new, reports = place.launcher(), place.launcher(), []

    def on_reserved(_):
        reports.append(new.ensure(job(), Identity("k", attempt=2)))
        old.cancel()

    with pytest.raises(Cancelled):
        old.ensure(job(), Identity("k", attempt=1), on_reserved)
    assert [report.application_id for report in reports] == [ID]
    assert new.report(ID).reason is None
    assert place.directories() == [ID]


def test_late_refusal_by_yarn_is_raised(place):
    """YARN's own end of the application is no success of another client."""
    place.yarn.faults.append(
        lambda method, path: (
            place.yarn.end(ID, "Application submitted by user to unknown queue: x", "FAILED", "FAILED")
            if path.endswith(ID) and ID in place.yarn.apps
            else None
        )
    )
    with pytest.raises(SubmissionRejected, match="unknown queue: x"):
        place.launcher().ensure(job(), ME)
    assert place.directories() == []


@pytest.mark.slow
def test_the_queue_deadline_holds_for_a_client_that_attaches(place):
    spec = job(deadlines=Deadlines(queue=1))
    first = place.launcher().ensure(spec, ME)
    place.yarn.apps[first.application_id].update(state="ACCEPTED", elapsedTime=3600_000)
    assert place.launcher().run(spec, ME, timeout=60, poll_interval=0.05).reason is Reason.QUEUE_TIMEOUT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ended", "reason"),
    [({}, None), ({"state": "FINISHED", "finalStatus": "SUCCEEDED", "finishedTime": 1}, Reason.SUCCEEDED)],
    ids=["which runs", "which has ended"],
)
def test_refused_racer_takes_the_application_of_the_other(place, ended, reason):
    """The end of an application deletes the files of all its racers, so the file system refuses a late one too."""
    go_on, seen = threading.Event(), []

    def on_reserved(application_id):
        seen.append(application_id)
        assert go_on.wait(60)

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(place.launcher().ensure, job(), ME, on_reserved)
        until(lambda: seen)
        report = place.launcher().ensure(job(), ME)
        place.yarn.faults.append(
            lambda method, path: (
                (403, {}, "quota exceeded") if method == "POST" and path.endswith("/cluster/apps") else None
            )
        )
        place.yarn.apps[report.application_id].update(ended)
        go_on.set()
        taken = slow.result(60)
    assert (taken.application_id, taken.reason) == (report.application_id, reason)
    assert place.directories() == ([] if ended else [report.application_id])


@pytest.mark.slow
def test_an_outage_in_the_middle_of_a_look_does_not_end_a_wait(place):
    launcher = place.launcher()
    report = launcher.ensure(job(), ME)
    place.yarn.apps[report.application_id].update(state="KILLED", finalStatus="KILLED", finishedTime=1)
    outage = iter(range(12))
    place.yarn.faults.append(
        lambda method, path: (
            (503, {}, "restarting") if path.endswith("/apps") and next(outage, None) is not None else None
        )
    )
    assert launcher.wait(report.application_id, identity=ME, timeout=60, poll_interval=0.05).reason is Reason.KILLED
