"""When an application that YARN does not know is lost; the waits themselves are in test_launcher.py."""

import pytest

from tf_yarn_ops.follow.wait import LOST_AFTER, REPEAT, Look, Unknown, waiting
from tf_yarn_ops.hadoop.resourcemanager import RECOVERY_TIME
from tf_yarn_ops.runtime.common.report import JobReport

RUNNING = {"id": "application_1_0001", "state": "RUNNING"}


@pytest.mark.parametrize("seen, looks, lost", [
    (False, [0], [False]),
    (False, [0, 0], [False, True]),
    (True, [0, 1, RECOVERY_TIME - 0.1, RECOVERY_TIME], [False, False, False, True]),
    (True, [0], [False]),
])
def test_unknown_twice_is_lost_and_one_that_was_seen_not_before_a_restart_is_over(seen, looks, lost):
    unknown = Unknown()
    assert [unknown.again(1000 + at, seen) for at in looks] == lost


def test_an_answer_between_two_looks_begins_anew():
    unknown = Unknown()
    for at in (0.0, 2 * RECOVERY_TIME):
        assert not unknown.again(at, True)
        unknown.answered()
    assert [unknown.again(at, False) for at in range(LOST_AFTER)] == [False] * (LOST_AFTER - 1) + [True]


def test_an_unchanged_report_is_repeated_for_those_who_write_a_log():
    now, told = [0.0], []
    steps = waiting("application_1_0001", on_change=lambda report: told.append(now[0]), clock=lambda: now[0])
    step = next(steps)
    for at in (0.0, 1.0, REPEAT - 1, REPEAT, 2 * REPEAT - 1, 2 * REPEAT):
        now[0] = at
        while not isinstance(step, Look):
            step = steps.send(None)
        step = steps.send((RUNNING, JobReport(RUNNING["id"], state="RUNNING")))
    assert told == [0.0, REPEAT, 2 * REPEAT]
