"""A lease: when its end is moved and to where, and what its client says when YARN refuses or the lease has run out."""

import asyncio
import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from support.fake_yarn import STAMP, application, verdict_text
from support.place import ID, USER, job
from support.real_yarn import WIRE_AND_REAL, one_of
from support.waiting import until_async
from tf_yarn_ops.errors import ClusterUnreachable, SubmissionRejected
from tf_yarn_ops.follow.kill import kill_application
from tf_yarn_ops.follow.lease import (
    End,
    Lease,
    first_end,
    lease_of,
    lifetime_of,
    note_holder,
    usual_lease,
    with_holder,
    with_lease,
)
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.follow.wait import Driver, Renewals, wait_for
from tf_yarn_ops.follow.watch import Watcher
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

SUBMITTED = STAMP / 1000
EXCEEDED = "Application is killed by ResourceManager as it has exceeded the lifetime period."
NOT_ALLOWED = {"RemoteException": {"message": "ann may not MODIFY_APP"}}


def seen(elapsed, **fields):
    return application(1, **{"launchTime": STAMP + 1, "elapsedTime": elapsed * 1000, **fields})


def moves(yarn):
    return [body["timeout"]["expiryTime"] for method, path, *_, body in yarn.requests
            if method == "PUT" and path.endswith("/timeout")]  # fmt: skip


def clock_of_the_fake(at):
    return datetime.fromtimestamp(SUBMITTED + at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize(
    "lifetime, elapsed, end",
    [
        (None, 50, End(SUBMITTED + 150, True)),
        (1000.0, 50, End(SUBMITTED + 150, True)),
        (120.0, 50, End(SUBMITTED + 120, False)),  # the job's own deadlines come first
        (120.0, 118.5, End(SUBMITTED + 120, False)),
        (120.0, 119, None),  # YARN refuses a time in the past
        (120.0, 500, None),
    ],
)
def test_the_end_follows_yarns_clock_and_is_never_later_than_the_deadlines(lifetime, elapsed, end):
    assert Lease(100.0, lifetime).end(seen(elapsed)) == end


def moves_of(renewals, application, error=None):
    """Return how often a look at an application asks YARN to move its end, which answers with an error or not."""
    asked = []

    async def renew(request):
        asked.append(request)
        if error is not None:
            raise error
        return True

    asyncio.run(renewals.move(Driver(None, None, renew, None), application))
    return len(asked)


def test_a_lease_moves_each_quarter_and_soon_again_after_a_silence():
    now = [0.0]
    renewals = Renewals(Lease(100.0), lambda: now[0])
    moved, step = [], 0.5
    for number in range(200):
        now[0] = number * step
        if moves_of(renewals, seen(now[0])):
            moved.append(now[0])
    gaps = [later - earlier for earlier, later in pairwise(moved)]
    assert moved[0] == 0.0 and all(20 <= gap <= 25 for gap in gaps)
    now[0] += 30
    assert moves_of(renewals, seen(now[0]), ClusterUnreachable("away"))
    now[0] += 6.25
    assert moves_of(renewals, seen(now[0]))


def test_lease_moves_for_each_application_after_its_launch():
    renewals = Renewals(Lease(100.0), lambda: 0.0)
    assert not moves_of(renewals, seen(1, state="ACCEPTED", launchTime=0))
    assert moves_of(renewals, seen(3, state="ACCEPTED", launchTime=0))
    assert not moves_of(renewals, seen(4))
    assert moves_of(renewals, seen(4) | {"id": "application_1_0002"})


@pytest.mark.parametrize("unreachable, seconds", [(600, 900), (5, 900), (1125, 1600), (float("inf"), 115300)])
def test_a_usual_lease_outlasts_an_outage_that_its_client_waits_for(unreachable, seconds):
    lease = usual_lease(unreachable)
    assert lease == seconds
    assert lease * 3 / 4 >= min(unreachable, 86400) + 75


def test_with_lease_keeps_what_the_job_says():
    assert [with_lease(job(lease=lease), 600).lease for lease in (None, 0.0, 20.0)] == [900.0, 0.0, 20.0]


def test_the_first_end_is_that_of_the_deadlines_without_a_lease():
    limits = Deadlines(queue=10, total=20)
    assert first_end(job(deadlines=limits), seen(1)) == End(SUBMITTED + lifetime_of(job(deadlines=limits)), False)
    assert first_end(job(deadlines=limits, lease=20), seen(1)).leased is True


def test_only_a_leased_job_has_a_lease_and_knows_its_lifetime():
    assert lease_of(job(), "x") is None and lease_of(job(lease=0), "x") is None
    limits = Deadlines(queue=100, total=200)
    lease = lease_of(job(lease=60, deadlines=limits), "x")
    assert (lease.seconds, lease.lifetime) == (60, lifetime_of(job(deadlines=limits))) == (60, 600)
    assert lease.holder.startswith("x (process ")


# -- on the wire ----------------------------------------------------------------------------------


def ends_after_moves(yarn, number, diagnostics=EXCEEDED, state="KILLED", final="KILLED"):
    """Let the application end when its lease has moved so often."""
    yarn.faults.append(
        lambda method, path: (
            yarn.end(ID, diagnostics, state, final) if len(moves(yarn)) >= number and method == "GET" else None
        )
    )


def test_the_submission_takes_the_lease_and_the_wait_moves_it(place):
    launcher = place.launcher()
    launcher.submit(job(lease=20))
    assert moves(place.yarn) == [clock_of_the_fake(21) + ".777+0000"]
    place.yarn.apps[ID] |= {"elapsedTime": 7000}
    ends_after_moves(place.yarn, 2)
    report = launcher.wait(ID, poll_interval=0.01, timeout=60)
    assert moves(place.yarn)[1:] == [clock_of_the_fake(27) + ".777+0000"]
    assert report.reason is Reason.LEASE_EXPIRED and report.retryable and report.exit_code == 5


def test_a_job_with_a_short_lifetime_is_leased_until_its_end_only(place):
    place.launcher().submit(job(lease=900, deadlines=Deadlines(queue=1, total=2)))
    assert moves(place.yarn) == [clock_of_the_fake(303) + ".000+0000"]
    place.yarn.end(ID, EXCEEDED)
    assert place.launcher().report(ID).reason is Reason.TOTAL_TIMEOUT


def test_the_end_of_a_lease_names_its_last_holder_to_all_who_look_later(place):
    place.yarn.add(seen(10, user=USER))
    session = Session(place.cluster())
    note_holder(session.staging, ID, USER, Lease(900.0, None, "an earlier client"))
    ends_after_moves(place.yarn, 1)
    lease = Lease(20.0, None, "the launcher of 12 (process 7 on exec1)")
    report = wait_for(session, ID, lease=lease, poll_interval=0.01, timeout=60)
    sentence = (
        "No client renewed the lease of the application, so YARN ended it: Application is killed by "
        "ResourceManager as it has exceeded the lifetime period. Its last holder, the launcher of 12 (process 7 on "
        "exec1), had to renew it within 20 s."
    )
    assert (report.reason, report.message) == (Reason.LEASE_EXPIRED, sentence)
    assert place.launcher().report(ID).message == sentence


def test_another_end_than_that_of_the_lease_names_no_holder(place):
    session = Session(place.cluster())
    note_holder(session.staging, ID, USER, Lease(900.0, None, "a client"))
    report = JobReport(ID, user=USER, reason=Reason.KILLED, message="Killed.")
    assert with_holder(session.staging, report) is report


def test_a_success_leaves_no_note_of_the_holder(place):
    place.yarn.add(seen(10, user=USER))
    ends_after_moves(place.yarn, 1, "", "FINISHED", "SUCCEEDED")
    report = wait_for(Session(place.cluster()), ID, lease=Lease(20.0, None, "x"), poll_interval=0.01, timeout=60)
    assert report.reason is Reason.SUCCEEDED
    assert list((place.staging / "leases").iterdir()) == []


def test_a_kill_leaves_no_note_of_the_holder(place):
    place.yarn.add(seen(10, user=USER))
    session = Session(place.cluster())
    note_holder(session.staging, ID, USER, Lease(20.0, None, "x"))
    assert kill_application(session, ID, "enough").reason is Reason.KILLED
    assert list((place.staging / "leases").iterdir()) == []


def test_refused_lease_is_logged_once_and_the_wait_goes_on(place, caplog):
    place.yarn.add(seen(10, user=USER))
    refusals = []

    def refused(method, path):
        if method == "PUT" and path.endswith("/timeout"):
            refusals.append(path)
            return 403, {"Content-Type": "application/json"}, json.dumps(NOT_ALLOWED)
        if len(refusals) >= 3:
            place.yarn.end(ID, "", "FINISHED", "SUCCEEDED")
        return None

    place.yarn.faults.append(refused)
    report = wait_for(Session(place.cluster()), ID, lease=Lease(0.4, None, "x"), poll_interval=0.01, timeout=60)
    assert report.reason is Reason.SUCCEEDED
    told = [text for text in caplog.messages if "move the end of its lease" in text]
    assert len(told) == 1 and "ann may not MODIFY_APP" in told[0] and told[0].startswith(f"{ID}: ")


def test_a_lease_that_yarn_took_back_moves_again(caplog):
    caplog.set_level("INFO")
    now = [0.0]
    renewals = Renewals(Lease(100.0), lambda: now[0])
    for now[0], error in ((0.0, SubmissionRejected("no")), (25.0, None), (50.0, None)):
        assert moves_of(renewals, seen(3), error)
    assert [text for text in caplog.messages if "moves again" in text] == [f"the lease of {ID} moves again"]


def test_deadlines_stay_deadlines():
    """A lifetime that ends by deadlines has whole seconds, so no client takes it for a lease."""
    killed = seen(10, state="KILLED", finalStatus="KILLED", diagnostics=EXCEEDED)
    for text, reason in (
        (".000", Reason.TOTAL_TIMEOUT),
        (".777", Reason.LEASE_EXPIRED),
        (".123", Reason.TOTAL_TIMEOUT),
    ):
        timeouts = {"timeout": [{"type": "LIFETIME", "expiryTime": f"2026-11-22T17:43:17{text}+0000"}]}
        assert read_yarn_report(killed | {"timeouts": timeouts}).reason is reason
    assert (
        read_yarn_report(killed | {"timeouts": {"timeout": [{"type": "LIFETIME", "expiryTime": "UNLIMITED"}]}}).reason
        is Reason.TOTAL_TIMEOUT
    )


# -- on the wire and on a real ResourceManager ----------------------------------------------------


@pytest.fixture(params=WIRE_AND_REAL)
def both(request):
    with one_of(request) as server:
        yield server


def test_the_watcher_moves_each_lease_and_yarn_ends_the_one_that_is_left(both, cluster):
    """A real ResourceManager ends the left one by itself; the other one lives on beside it."""
    cluster = replace(cluster, resourcemanagers=(both.url,))
    held, left = (both.add(application(number)) for number in (1, 2))

    async def main():
        watcher = Watcher(cluster, interval=0.05 if both.apps else 0.5)
        holding = asyncio.create_task(watcher.wait(held, lease=Lease(12.0, None, "the watcher")))
        dropped = asyncio.create_task(watcher.wait(left, lease=Lease(12.0, None, "a client that goes")))
        folder = Path(cluster.storage.local_root, "user", "ann", ".skein", "leases")
        await until_async(lambda: (folder / left).exists() and (folder / held).exists())
        dropped.cancel()
        if left in both.apps:  # on the wire
            both.end(left, EXCEEDED)
        ended = await watcher.wait(left)
        assert not holding.done()
        holding.cancel()
        return ended

    report = asyncio.run(main())
    assert report.reason is Reason.LEASE_EXPIRED
    assert "Its last holder, a client that goes, had to renew it within 12 s." in report.message
    assert all(".777" in text for text in moves(both))
    assert Session(cluster).report(held).reason is None


#: What befalls the first move of a lease, or the note behind it.
FIRST_FAULTS = ("refused", "not answered", "not noted")


def test_holder_is_noted_although_first_move_or_note_fails(both, cluster, caplog):
    """The end of a lease names the client that held it last, not an earlier one. Each move after the second is refused."""
    caplog.set_level("DEBUG", "tf_yarn_ops.follow")
    cluster = replace(cluster, resourcemanagers=(both.url,))
    faults = {both.add(application(at, elapsedTime=3000)): fault for at, fault in enumerate(FIRST_FAULTS, 1)}
    on_the_wire = bool(both.apps)
    seconds = 0.4 if on_the_wire else 12.0
    tries, answered, take = Counter(), Counter(), both.answer

    def answer(method, path, parameters, body):
        if method != "PUT" or not path.endswith("/timeout"):
            return take(method, path, parameters, body)
        name = path.split("/")[-2]
        tries[name] += 1
        if faults[name] == "refused" and tries[name] == 1:
            return 403, NOT_ALLOWED
        if answered[name] == 2:  # YARN ends what no client renews
            if on_the_wire:
                both.end(name, EXCEEDED)
            return 403, NOT_ALLOWED
        given = take(method, path, parameters, body)
        if faults[name] == "not answered" and f"the lease of {name} was not moved" not in caplog.text:
            raise ConnectionResetError
        answered[name] += 1
        if faults[name] == "not noted" and answered[name] == 2:
            shutil.rmtree(folder / name)
        return given

    session, folder = Session(cluster), Path(cluster.storage.local_root, "user", "ann", ".skein", "leases")
    for name, fault in faults.items():
        note_holder(session.staging, name, "ann", Lease(900.0, None, "an earlier client"))
        if fault == "not noted":
            (folder / name).unlink()
            (folder / name / "in the way").mkdir(parents=True)
    both.answer = answer

    def wait(name):
        lease = Lease(seconds, None, f"the last client of {name}")
        return wait_for(Session(cluster), name, lease=lease, poll_interval=0.05 if on_the_wire else 0.5, timeout=120)

    with ThreadPoolExecutor() as pool:
        for name, report in zip(faults, pool.map(wait, faults), strict=True):
            holder = f"Its last holder, the last client of {name}, had to renew it within {seconds:g} s"
            assert report.reason is Reason.LEASE_EXPIRED and holder in report.message, (faults[name], report)


def test_ended_application_is_not_renewed_for_its_successor(both, cluster):
    first, second = (both.add(application(at, elapsedTime=3000)) for at in (1, 2))
    trained = JobReport(second, reason=Reason.SUCCEEDED, message="Trained.")
    both.end(first, verdict_text(JobReport(first, reason=Reason.SUPERSEDED, message="Gave way.")))

    class Successor:
        tag = "tfy-x"

        def successor_of(self, ended, listed):
            return second if ended.application_id == first else None

    shown, take = [], both.answer

    def answer(method, path, parameters, body):
        given = take(method, path, parameters, body)
        if method == "PUT" and path.endswith("/timeout"):
            both.end(second, verdict_text(trained), "FINISHED", "SUCCEEDED")
        return given

    both.answer = answer
    report = wait_for(
        Session(replace(cluster, resourcemanagers=(both.url,))), first, lease=Lease(20.0, None, "x"),
        identity=Successor(), on_change=shown.append, poll_interval=0.01, timeout=60,
    )  # fmt: skip
    assert (report.application_id, report.reason) == (second, Reason.SUCCEEDED)
    moved = [path for method, path, *_ in both.requests if method == "PUT" and path.endswith("/timeout")]
    assert moved and all(second in path for path in moved)
    assert {one.application_id for one in shown} == {second}


@pytest.mark.parametrize("queue, total", [(0, 200), (100, 0)])
def test_lifetime_needs_both_deadlines(queue, total):
    assert lifetime_of(job(deadlines=Deadlines(queue=queue, total=total))) is None
