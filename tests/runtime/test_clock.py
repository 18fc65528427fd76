"""Times and durations as text, in UTC and in a zone."""

import time

import pytest

from tf_yarn_ops.runtime.common.clock import duration, local_clock, local_time, utc_clock, utc_time

#: 2023-11-14 22:13:20 UTC.
STAMP = 1_700_000_000


@pytest.mark.parametrize(
    "seconds, text",
    [
        (None, "-"),
        (-0.2, "0.0 s"),
        (0.04, "0.0 s"),
        (2.4, "2.4 s"),
        (9.96, "10 s"),
        (24.7, "25 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (190, "3 min 10 s"),
        (3599.7, "1 h 0 min"),
        (18120, "5 h 2 min"),
    ],
)
def test_duration_has_two_units_at_most(seconds, text):
    assert duration(seconds) == text


def test_pages_show_utc_and_terminals_the_local_zone(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert (utc_clock(STAMP), utc_time(STAMP)) == ("22:13:20", "2023-11-14 22:13Z")
        assert local_time(STAMP) == "2023-11-14 17:13:20 EST"
        assert local_clock() in {local_time(time.time() - seconds).split()[1] for seconds in range(60)}
    finally:
        monkeypatch.undo()
        time.tzset()
    assert utc_time(None) == local_time(None) == "-"
