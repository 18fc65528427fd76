"""Readers of single values that several rooms share."""

from datetime import datetime, timedelta, timezone

import pytest

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.validation import parse_since

NOON = datetime(2026, 11, 22, 12).timestamp()
NOON_UTC = 1795348800.0


@pytest.mark.parametrize(
    "text, moment",
    [
        ("90s", NOON - 90),
        ("10m", NOON - 600),
        ("1.5h", NOON - 5400),
        ("7d", NOON - 604800),
        ("1.5 w", NOON - 907200),
        ("2026-11-22T12:00", NOON),
        ("2026-11-22 12:00:00", NOON),
        ("2026-11-22", NOON - 12 * 3600),
        ("2026-11-22T12:00:00Z", NOON_UTC),
        ("2026-11-22T13:00+01:00", NOON_UTC),
    ],
)
def test_since_is_an_age_or_a_local_time(text, moment):
    assert parse_since(text, NOON) == moment


@pytest.mark.parametrize("hours", [-5, 0, 9])
def test_since_without_a_zone_takes_the_given_one(hours):
    assert parse_since("2026-11-22T12:00", NOON, timezone(timedelta(hours=hours))) == NOON_UTC - hours * 3600


@pytest.mark.parametrize(
    "text",
    ["9999-12-31", "0002-01-01", "1969-12-31", "99999999999d", "9" * 400 + "d", "700000d", "2026-11-24", "1969-12-30Z"],
)
def test_since_outside_of_history_is_rejected(text):
    with pytest.raises(SpecInvalid, match=r"is not between 1970 and now|is neither an age"):
        parse_since(text, NOON)


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "-5m", "12:00", "last week"])
def test_invalid_since_is_rejected(text):
    with pytest.raises(SpecInvalid, match="is neither an age such as 90s, 10m, 2h or 7d nor a time such as"):
        parse_since(text, NOON)
