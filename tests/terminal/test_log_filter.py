"""Which lines of a log are shown: by a pattern, and by the time with which they begin."""

import time

import pytest

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.terminal.log_filter import LogFilter, line_time

NOON = time.mktime((2026, 11, 22, 12, 0, 0, 0, 0, -1))
NOON_UTC = 1795348800.0


@pytest.mark.parametrize(
    "text, moment",
    [
        ("2026-11-22 12:00:00,123 INFO step 1", NOON),
        ("2026-11-22 12:00:00.123456: I tensorflow/core/x.cc:1] y", NOON),
        ("[2026-11-22T12:00:00Z] x", NOON_UTC),
        ("2026-11-22T13:00:00+01:00 x", NOON_UTC),
        ("2026-11-22 13:00:00 +0100 x", NOON_UTC),
        ("W1122 12:00:00.5 12 x.py:1] y", NOON),
        ("26/11/22 12:00:00 INFO x", NOON),
        ("step 1 at 2026-11-22 12:00:00", None),
        ("2026-99-22 12:00:00 x", None),
        ("", None),
    ],
)
def test_the_time_in_front_of_a_line(text, moment):
    assert line_time(text, NOON) == moment


def test_a_line_without_a_time_belongs_to_the_line_before_it():
    chosen = LogFilter(since=NOON, now=lambda: NOON)
    lines = ["before any time", "2026-11-22 11:59:59 old", "  its trace", "2026-11-22 12:00:01 new", "  its trace"]
    assert [chosen.shows("worker:0", line) for line in lines] == [True, False, False, True, True]
    assert chosen.shows("worker:1", "each task has its own time") and chosen.saw_a_time


def test_a_pattern_and_a_wrong_one():
    chosen = LogFilter("loss=[0-9]")
    assert [chosen.shows("a", line) for line in ("loss=1", "loss=x")] == [True, False] and not chosen.saw_a_time
    with pytest.raises(SpecInvalid, match="'loss=.' is not a regular expression".replace(".'", r"\['")):
        LogFilter("loss=[")
