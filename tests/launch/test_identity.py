"""Identity: its tags, and the table that decides about a submission."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.forged import ENDS
from support.own_applications import ME, mine, number
from support.place import USER, job
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.spec import MAX_TAGS_USER
from tf_yarn_ops.launch.identity import (
    Action,
    Identity,
    SubmissionDecision,
    attempt_of,
    decide_submission,
    deployment_tag,
    generation_of,
    is_repeatable,
    latest_of,
    may_try_again,
    old_tasks_end,
)
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, verdict_tag


@given(st.text(min_size=1), st.text(), st.integers(0, 10**9), st.integers(0, 10**9))
def test_tags_are_what_yarn_takes_and_read_back(key, deployment, generation, attempt):
    identity = Identity(key, generation, attempt, deployment)
    assert len(identity.tags) + len([verdict_tag("")]) + MAX_TAGS_USER <= 10
    for tag in identity.tags:
        assert tag.isascii() and tag == tag.lower() and 1 <= len(tag) <= 100 and "," not in tag
    document = {"applicationTags": ",".join(["other", *identity.tags])}
    assert (generation_of(document), attempt_of(document)) == (generation, attempt)
    assert len(identity.tags) == (3 if deployment else 2)


def test_key_alone_distinguishes_trainings():
    assert Identity("a").tag == Identity("a", 3, 4).tag != Identity("b").tag
    assert Identity("a", deployment="x").tag != Identity("a", deployment="y").tag
    assert deployment_tag("x") in Identity("a", deployment="x").tags


@pytest.mark.parametrize("values", [{"key": ""}, {"key": "a", "generation": -1}, {"key": "a", "attempt": "1"}])
def test_invalid_identity_is_refused(values):
    with pytest.raises(SpecInvalid, match="identity"):
        Identity(**values)


@pytest.mark.parametrize("tag", ["tfy-0", "TFYG-9", " tfyv-1", "tfyd-0", "mine,tfyg-9"])
def test_no_tag_of_a_job_passes_for_an_identity(tag):
    with pytest.raises(
        SpecInvalid, match="would look like a tag of an identity, which begins with tfy-, tfyg-, tfyd-, tfyv-"
    ):
        ME.check(job(tags=["mine", tag]))
    ME.check(job(tags=["tfy", "tfyx-1", "my-tfy-1"]))


TABLE = [
    ([], SubmissionDecision(Action.SUBMIT)),
    ([mine(1, generation=2), mine(2)], SubmissionDecision(Action.SUPERSEDED, number(1), (number(2),))),
    (
        [mine(1, generation=0), mine(2), mine(3, generation=2), mine(4, generation=2)],
        SubmissionDecision(Action.SUPERSEDED, number(4), (number(1), number(2))),
    ),
    ([mine(1, generation=2, reason=Reason.TASK_FAILED)], SubmissionDecision(Action.SUPERSEDED, number(1))),
    (
        [mine(1, generation=0), mine(2, generation=0), mine(3)],
        SubmissionDecision(Action.KILL, kill=(number(1), number(2))),
    ),
    (
        [mine(3), mine(1), mine(2, "ACCEPTED", attempt=9)],
        SubmissionDecision(Action.ATTACH, number(1), (number(2), number(3))),
    ),
    ([mine(1, attempt=1)], SubmissionDecision(Action.ATTACH, number(1))),
    (
        [mine(1, attempt=0, reason=Reason.SUCCEEDED), mine(2, reason=Reason.TASK_FAILED)],
        SubmissionDecision(Action.REPORT, number(1)),
    ),
    (
        [mine(1, reason=Reason.TASK_FAILED), mine(2, "KILLED", finalStatus="KILLED")],
        SubmissionDecision(Action.REPORT, number(2)),
    ),
    ([mine(1, attempt=1, reason=Reason.TASK_FAILED)], SubmissionDecision(Action.SUBMIT)),
    ([mine(1, generation=0, reason=Reason.SUCCEEDED)], SubmissionDecision(Action.SUBMIT)),
    ([mine(1, user="stranger"), mine(2, user="stranger", generation=9)], SubmissionDecision(Action.SUBMIT)),
    (
        [mine(1, reason=Reason.SUPERSEDED), mine(2), mine(3, generation=0)],
        SubmissionDecision(Action.SUPERSEDED, kill=(number(2),)),
    ),
    ([mine(1, reason=Reason.ALLOCATION_TIMEOUT)], SubmissionDecision(Action.REPORT, number(1))),
]


@pytest.mark.parametrize("found, decision", TABLE)
def test_the_table(found, decision):
    assert decide_submission(found, ME, USER) == decision


def test_ids_are_ordered_by_number_not_by_letter():
    ids = ["application_9_10000", "application_9_9999", "application_10_0001"]
    found = [mine(1) | {"id": name} for name in ids]
    assert decide_submission(found, ME, USER).application_id == "application_9_9999"


def test_a_missed_allocation_may_be_submitted_again_as_often_as_allowed():
    once, twice = (
        [mine(1, reason=Reason.ALLOCATION_TIMEOUT)],
        [mine(n, reason=Reason.ALLOCATION_TIMEOUT) for n in (1, 2)],
    )
    assert decide_submission(once, ME, USER, allocation_retries=1).action is Action.SUBMIT
    assert decide_submission(twice, ME, USER, allocation_retries=1) == SubmissionDecision(Action.REPORT, number(2))
    failed = [*once, mine(2, reason=Reason.TASK_FAILED)]
    assert decide_submission(failed, ME, USER, allocation_retries=5) == SubmissionDecision(Action.REPORT, number(2))


def test_the_latest_of_a_generation_is_known_whatever_its_state_and_user():
    found = [mine(2, user="stranger", reason=Reason.TASK_FAILED), mine(1), mine(3, generation=0), mine(4, generation=2)]
    assert latest_of(found, ME)["id"] == number(2)
    assert latest_of(found[2:], ME) is None


@pytest.mark.parametrize(
    "reason, listed, successor",
    [
        (Reason.KILLED, [mine(1)], number(1)),
        (Reason.SUPERSEDED, [mine(1, attempt=0), mine(3)], number(1)),
        (Reason.KILLED, [], None),
        (Reason.KILLED, [mine(1, reason=Reason.SUCCEEDED), mine(3, "KILLED", finalStatus="KILLED")], None),
        (Reason.KILLED, [mine(1, generation=2)], None),
        (Reason.KILLED, [mine(1, user="stranger")], None),
    ],
)
def test_a_killed_one_has_a_successor_when_another_of_its_generation_lives(reason, listed, successor):
    ended = JobReport(number(2), user=USER, reason=reason)
    assert ME.successor_of(ended, listed) == successor


def test_unlaunched_job_is_submitted_twice_more_in_one_attempt():
    """Seen on 3.4.3 as an EOFException: nothing has trained, so nothing trains twice."""
    lost = "Application x failed 1 times due to Error launching appattempt_1_0001_000001. Got exception: EOFException"
    ended = [mine(n, "FAILED", finalStatus="FAILED", diagnostics=lost) for n in (1, 2, 3)]
    assert [decide_submission(ended[:n], ME, USER).action for n in (1, 2, 3)] == [
        Action.SUBMIT,
        Action.SUBMIT,
        Action.REPORT,
    ]
    missed = [mine(n, reason=Reason.ALLOCATION_TIMEOUT) for n in (4, 5)]
    assert decide_submission([*ended, missed[0]], ME, USER, allocation_retries=1).action is Action.SUBMIT
    assert decide_submission([*ended, *missed], ME, USER, allocation_retries=1) == SubmissionDecision(
        Action.REPORT, number(5)
    )
    crashed = mine(1, "FAILED", finalStatus="FAILED", diagnostics="AM Container exited with  exitCode: 1")
    assert decide_submission([crashed], ME, USER) == SubmissionDecision(Action.REPORT, number(1))


def test_an_identity_that_ignores_others_sees_its_own_generation_only():
    alone = Identity(ME.key, ME.generation, ME.attempt, ME.deployment, previous="ignore")
    assert decide_submission([mine(1, generation=2), mine(2, generation=0)], alone, USER).action is Action.SUBMIT
    assert decide_submission([mine(1, generation=2), mine(3)], alone, USER).application_id == number(3)


@pytest.mark.parametrize(
    "ended, repeatable",
    [
        ({"reason": Reason.ALLOCATION_TIMEOUT}, True),
        ({"reason": Reason.TASK_FAILED}, False),
        ({"reason": Reason.SUCCEEDED}, False),
        ({"reason": Reason.OUT_OF_MEMORY, "first_failure": "worker:0"}, False),
        ({"reason": Reason.OUT_OF_MEMORY, "first_failure": "worker:0", "memory_mib": {"worker": 1}}, True),
    ],
)
def test_only_a_job_without_training_or_with_growth_is_repeated(ended, repeatable):
    report = JobReport(number(1), message="x", **ended)
    assert is_repeatable(report) is may_try_again([report], 1) is repeatable


def test_waiting_generation_waits_for_the_oldest():
    waiting = replace(ME, previous="wait")
    assert decide_submission([mine(2, generation=0), mine(1, generation=0)], waiting, USER) == SubmissionDecision(
        Action.WAIT, number(1)
    )


@pytest.mark.parametrize("how", ENDS)
def test_forged_report_neither_ends_nor_blocks_the_next_attempt(how):
    state, final, text = ENDS[how](number(1))
    forged = mine(1, state, attempt=1, finalStatus=final, diagnostics=text)
    assert decide_submission([forged], ME, USER).action is Action.SUBMIT


ENDED_AT = 1_700_000_000.0
#: YARN's words where the application master's expiry is shorter than the node's.
CUT_OFF = (
    "Application application_1_0001 failed 1 times due to ApplicationMaster for attempt appattempt_1_01 timed out."
)


@pytest.mark.parametrize(
    "found, now, expected",
    [
        ([mine(1, reason=Reason.NODE_LOST)], 0, (number(1), 75)),
        ([mine(1, reason=Reason.NODE_LOST)], 74, (number(1), 75)),
        ([mine(1, reason=Reason.NODE_LOST)], 75, None),
        ([mine(1, reason=Reason.NODE_LOST, generation=0)], 0, (number(1), 75)),
        ([mine(1, reason=Reason.NODE_LOST), mine(2, reason=Reason.NODE_LOST)], 0, (number(2), 75)),
        ([mine(1, reason=Reason.NODE_LOST)], -600, (number(1), 75)),  # after a failover, by another clock
        ([mine(1, reason=Reason.NODE_LOST)], -661, None),
        ([mine(1, reason=Reason.NODE_LOST, user="stranger")], 0, None),
        ([mine(1, "FAILED", diagnostics=CUT_OFF)], 0, (number(1), 75)),
        ([mine(1, reason=Reason.TASK_FAILED)], 0, None),
        ([mine(1)], 0, None),
        ([], 0, None),
    ],
)
def test_old_tasks_end_with_their_heartbeats_deadline(found, now, expected):
    found = [{**one, "finishedTime": int(ENDED_AT * 1000)} for one in found]
    deadlines = Deadlines(heartbeat=60, stop_grace=5)
    known = old_tasks_end(found, USER, deadlines, ENDED_AT + now)
    assert (known and (known[0], known[1] - ENDED_AT)) == expected
    assert old_tasks_end(found, USER, Deadlines(heartbeat=0), ENDED_AT + now) is None
