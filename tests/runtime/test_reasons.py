"""The table of reasons is complete, and its exit codes stay."""

import pytest

from tf_yarn_ops.runtime.common.reasons import OUTCOMES, Reason

EXIT_CODES = {
    0: "SUCCEEDED", 1: "TASK_FAILED UNKNOWN_REASON", 2: "SPEC_INVALID ENVIRONMENT_INVALID", 3: "SUBMISSION_REJECTED RESOURCES_IMPOSSIBLE COMMIT_REFUSED",
    4: "CLUSTER_UNREACHABLE",
    5: "QUEUE_TIMEOUT ALLOCATION_TIMEOUT REGISTRATION_TIMEOUT HEARTBEAT_LOST CONTAINER_LOST PREEMPTED NODE_LOST "
       "AM_FAILED LEASE_EXPIRED COMMIT_FAILED",
    6: "OUT_OF_MEMORY", 7: "EXECUTION_TIMEOUT STALLED TOTAL_TIMEOUT", 8: "KILLED SUPERSEDED", 9: "LOST",
}  # fmt: skip


def test_each_reason_has_its_row():
    assert set(OUTCOMES) == set(Reason)
    assert all(reason.value == reason.name for reason in Reason)


@pytest.mark.parametrize("code", EXIT_CODES)
def test_exit_codes(code):
    assert {reason.value for reason in Reason if reason.exit_code == code} == set(EXIT_CODES[code].split())


def test_only_failures_of_the_infrastructure_are_retryable():
    assert {reason.exit_code for reason in Reason if reason.retryable} == {4, 5}
    assert all(reason.retryable for reason in Reason if reason.exit_code in (4, 5))


#: First words of the hints: what the operator does next.
VERBS = {"Ask", "Check", "Correct", "Find", "Follow", "Poll", "Raise", "Read", "Submit", "Use"}


def test_hints_are_sentences_that_say_what_to_do():
    for reason in Reason:
        assert reason.hint.endswith("."), reason
        assert reason.hint.split()[0] in VERBS or reason is Reason.SUCCEEDED, reason
