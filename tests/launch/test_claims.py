"""Claims: the files that make a submission happen once, and those of an engine's runs."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest

from support.own_applications import ME, claims_of, mine, number
from support.place import USER
from support.staging_place import staged_at
from tf_yarn_ops.errors import SubmissionRejected
from tf_yarn_ops.launch.claims import Claims, watching_caller
from tf_yarn_ops.launch.identity import Identity, Run
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.staging.staging_directory import StagingDirectory


@pytest.mark.slow
def test_a_claim_is_made_once_and_whole(place):
    claims = claims_of(place)
    assert claims.latest() is None
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: claims_of(place).make(0, number(n)), range(8)))
    assert made.count(True) == 1
    claim = claims.latest()
    assert (claim.number, claim.application_id, claim.submitted) == (0, number(made.index(True)), False)
    claims.mark_submitted(0)
    assert claims.latest().submitted
    assert claims.make(1, number(9)) and claims.latest().number == 1 and not claims.latest().submitted
    newer = claims_of(place, Identity(ME.key, 2, 0, ME.deployment))
    assert newer.latest().generation == 1 and claims.newer() is None
    assert newer.make(2, number(10)) and not claims.make(2, number(11)) and claims.newer().application_id == number(10)
    beside = claims_of(place, Identity(ME.key, 1, previous="ignore", deployment=ME.deployment))
    assert beside.latest() is None and beside.newer().generation == 2
    folder = place.staging / "claims" / ME.hash
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


def test_malformed_claim_is_reported(place):
    claims = claims_of(place)
    claims.make(0, number(1))
    (place.staging / "claims" / ME.hash / "0").write_text("{}")
    with pytest.raises(SubmissionRejected, match="holds no claim; delete the file when no application of this"):
        claims.latest()


def test_the_claim_of_another_user_is_refused(place):
    claims_of(place).make(0, number(1))
    cluster = place.cluster()
    other = StagingDirectory(staged_at(replace(cluster, user="bob"), cluster.staging))
    session = SimpleNamespace(staging=lambda user: other, resourcemanager=place.launcher().session.resourcemanager)
    with pytest.raises(SubmissionRejected, match=rf"/0 belongs to {USER}, not to bob"):
        Claims(session, "bob", ME).latest()


@pytest.mark.parametrize(
    "retries, applications, seconds",
    [
        (0, [], 60),
        (0, [mine(1)], 60),
        (0, [mine(1, reason=Reason.TASK_FAILED)], None),  # no attempt follows
        (0, [mine(1, reason=Reason.ALLOCATION_TIMEOUT)], 60),  # the attempt itself submits again
        (1, [mine(1, reason=Reason.SUCCEEDED)], None),
        (1, [mine(1, attempt=1, reason=Reason.SUCCEEDED)], 60),  # of an earlier attempt
    ],
)
def test_an_older_run_may_train_until_its_patience_is_over(place, retries, applications, seconds):
    older = Identity(ME.key, ME.generation, ME.attempt, ME.deployment, run=Run(retries, 60.0))
    claims_of(place, older).start_run()
    newer = Identity(ME.key, ME.generation + 1, 0, ME.deployment, run=Run(0, 60.0))
    found = claims_of(place, newer).older_runs(applications)
    assert set(found) == (set() if seconds is None else {ME.generation})
    if seconds is not None:
        assert found[ME.generation] == pytest.approx(time.time() + seconds, abs=120)
    assert claims_of(place, older).older_runs(applications) == {}


def test_patience_for_an_older_run_begins_at_the_end_of_its_attempt(place):
    claims_of(place, Identity(ME.key, ME.generation, ME.attempt, ME.deployment, run=Run(1, 60.0))).start_run()
    newer = Identity(ME.key, ME.generation + 1, 0, ME.deployment, run=Run(0, 60.0))
    ended = mine(1, reason=Reason.TASK_FAILED, finishedTime=round((time.time() + 1000) * 1000))
    assert claims_of(place, newer).older_runs([ended]) == {ME.generation: pytest.approx(time.time() + 1060, abs=120)}


def test_the_caller_that_watches_an_application_is_named_by_its_claim(place):
    watched = Identity(ME.key, ME.generation, ME.attempt, ME.deployment, watched=True)
    claims_of(place, watched).make(0, number(1))
    staging = place.launcher().session.staging(USER)
    assert watching_caller(staging, mine(1)) == ME.key
    assert watching_caller(staging, mine(2)) is None
    assert watching_caller(staging, {**mine(1), "applicationTags": ""}) is None


@pytest.mark.parametrize("ahead", [600, -600])
@pytest.mark.parametrize("newer_differs", [False, True])
def test_patience_for_an_older_run_ends_by_the_resourcemanagers_clock(place, monkeypatch, ahead, newer_differs):
    """One of two executors has a clock that is so many seconds ahead."""
    began, right = time.time(), time.time

    def client(generation, differs):
        place.yarn.ahead = -ahead if differs else 0
        monkeypatch.setattr(time, "time", lambda: right() + (ahead if differs else 0))
        session = place.launcher().session
        session.resourcemanager.find(user=USER)
        return Claims(session, USER, Identity(ME.key, generation, 0, ME.deployment, run=Run(0, 60.0)))

    client(1, not newer_differs).start_run()
    assert client(2, newer_differs).older_runs([]) == {1: pytest.approx(began + 60, abs=30)}


def test_end_of_a_run_leaves_the_runs_of_other_generations(place):
    older = claims_of(place, Identity(ME.key, 1, 0, ME.deployment, run=Run(1, 60.0)))
    newer = claims_of(place, Identity(ME.key, 2, 0, ME.deployment, run=Run(1, 60.0)))
    older.start_run()
    newer.start_run()
    newer.end_run()
    assert set(claims_of(place, Identity(ME.key, 3, 0, ME.deployment)).older_runs([])) == {1}


def test_rename_that_was_not_answered_counts_if_the_claim_is_ours(place, monkeypatch):
    claims = claims_of(place)
    rename = claims._files.rename
    monkeypatch.setattr(claims._files, "rename", lambda *paths: rename(*paths) and False)
    assert claims.make(0, number(1))


def test_claim_of_a_stranger_names_no_caller(place):
    claims_of(place, replace(ME, watched=True)).make(0, number(1))
    staging = place.launcher().session.staging(USER)
    assert watching_caller(staging, mine(1)) == ME.key
    of_bob = staged_at(replace(staging.cluster, user="bob"), staging.cluster.staging)
    assert watching_caller(StagingDirectory(of_bob), mine(1)) is None
