"""When an application that YARN does not know is lost; the waits themselves are in test_launcher.py."""

import pytest

from tf_yarn_ops.follow.wait import LOST_AFTER, Unknown
from tf_yarn_ops.hadoop.resourcemanager import RECOVERY_TIME


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
