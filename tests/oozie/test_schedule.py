"""Cron, frequencies, times and zones, as people write them and as Oozie reads them."""

from datetime import datetime, timezone

import pytest

from tf_yarn_ops.oozie.package_options import read_options
from tf_yarn_ops.oozie.schedule import (
    Frequency,
    Schedule,
    find_schedule_warnings,
    moving_day_faults,
    read_schedule,
    utc_days,
)

NOW = datetime(2026, 11, 21, 10, 7, 33, tzinfo=timezone.utc)


def read(cron=None, frequency=None, zone=None, start=None, end=None):
    faults = []
    words = {"schedule": cron, "frequency": frequency, "timezone": zone, "start": start, "end": end}
    schedule = read_schedule(read_options(words, faults), NOW, faults)
    return schedule, [str(fault) for fault in faults]


@pytest.mark.parametrize("cron", [
    "0 2 * * *", "*/15 * * * *", "0 2,14 * * MON-FRI", "30 4 1,15 * ?", "0 0 L * ?", "0 0 15W JAN-MAR ?", "5/10 22-2 ? * FRI#2",
    "0 0 ? * SUNL", "0 0 L-3 * *", "0  2 *  * sat,sun",
    "0 0 29 2 *", "0 0 31 2,3 *", "0 0 31 2 MON", "0 0 30-2 FEB *", "0 0 31,L FEB *", "0 0 31 NOV-JAN *", "0 0 */30 2 *",
])  # fmt: skip
def test_cron_of_oozie_is_taken(cron):
    schedule, faults = read(cron)
    assert not faults
    assert schedule == Schedule(" ".join(cron.split()), None, "2026-11-21T10:07Z", "2099-12-31T00:00Z", "UTC")


@pytest.mark.parametrize(("cron", "fault"), [
    ("0 2 * *", "schedule: '0 2 * *' has 4 fields; give five: minute, hour, day of month, month, day of week, such as "
                "'0 2 * * *'"),
    ("@daily", "schedule: '@daily' has 1 fields; give five"),
    ("60 2 * * *", "schedule: '60' is not a value for the minute of cron: 0 to 59"),
    ("0 24 * * *", "schedule: '24' is not a value for the hour"),
    ("0 2 0 * *", "schedule: '0' is not a value for the day of month"),
    ("0 2 * FOO *", "schedule: 'FOO' is not a value for the month"),
    ("0 2 * * MOM", "schedule: 'MOM' is not a value for the day of week of cron: SUN to SAT"),
    ("0 2 * * 1-5", "schedule: '1-5' numbers a day of the week: Oozie counts from 1 for SUN, cron from 0; write names "
                    "such as MON-FRI"),
    ("*/0 2 * * *", "schedule: '*/0' is not a value for the minute"),
    ("0 2-3-4 * * *", "schedule: '2-3-4' is not a value for the hour"),
    ("? 2 * * *", "schedule: '?' is not a value for the minute"),
    ("\uff10 2 * * *", "schedule: '\uff10' is not a value for the minute"),
    ("0 2 * * */\uff12", "schedule: '*/\uff12' is not a value for the day of week"),
    ("0 0 31 2 *", "schedule: '0 0 31 2 *' never comes: no month of it has such a day"),
    ("0 0 30-31 FEB ?", "schedule: '0 0 30-31 FEB ?' never comes"),
    ("0 0 31 4,JUN,9-9,11 *", "schedule: '0 0 31 4,JUN,9-9,11 *' never comes"),
    ("0 0 31/2 FEB/12 *", "schedule: '0 0 31/2 FEB/12 *' never comes"),
])  # fmt: skip
def test_invalid_cron_is_rejected(cron, fault):
    _, faults = read(cron)
    assert len(faults) == 1 and faults[0].startswith(fault), faults


@pytest.mark.parametrize(("text", "expression"), [
    ("30m", "${coord:minutes(30)}"), ("12 hours", "${coord:hours(12)}"), ("1d", "${coord:days(1)}"),
    ("2w", "${coord:days(14)}"), ("1mo", "${coord:months(1)}"), ("3 Months", "${coord:months(3)}"),
])  # fmt: skip
def test_a_frequency_is_a_number_and_a_unit(text, expression):
    schedule, faults = read(frequency=text, zone="Europe/Berlin")
    assert not faults and (schedule.expression, schedule.timezone) == (expression, "Europe/Berlin")


@pytest.mark.parametrize(("given", "faults"), [
    ({"cron": "0 2 * * *", "frequency": "1d"}, ["frequency: schedule also says when the training runs; give one of them"]),
    ({"cron": "0 2 * * *", "zone": "Europe/Berlin"}, [
        "timezone: Oozie reads cron in UTC, whatever the time zone; give frequency with it, or the hours of the schedule "
        "in UTC"]),
    ({"frequency": "0d"}, ["frequency: '0d' is not a frequency; give a number of at least 1 and m, h, d, w or mo, such as "
                           "30m, 12h or 1d"]),
    ({"frequency": "1d", "zone": "Europe/Berln"}, [
        "timezone: 'Europe/Berln' is not a time zone (did you mean 'Europe/Berlin'?); give a name such as Europe/Berlin or "
        "GMT+01:00"]),
    ({"frequency": "1d", "start": "tomorrow"}, [
        "start: 'tomorrow' is not a time; give 2026-11-21T02:00Z, or with an offset 2026-11-21T02:00+01:00"]),
    ({"frequency": "1d", "start": "2026-13-01", "end": "2026-11-31"}, [
        "start: '2026-13-01' is not a time; give 2026-11-21T02:00Z, or with an offset 2026-11-21T02:00+01:00",
        "end: '2026-11-31' is not a time; give 2026-11-21T02:00Z, or with an offset 2026-11-21T02:00+01:00"]),
    ({"frequency": "1d", "end": "2026-11-21T10:07Z"}, ["end: 2026-11-21T10:07Z is not after the start 2026-11-21T10:07Z"]),
])  # fmt: skip
def test_invalid_schedule_is_rejected(given, faults):
    if "end" in given and "start" not in given:
        given = {**given, "start": "2026-11-21T10:07Z"}
    assert read(**given)[1] == faults


@pytest.mark.parametrize(("text", "utc"), [
    ("2026-12-01", "2026-12-01T00:00Z"), ("2026-12-01T02:00", "2026-12-01T02:00Z"), ("2026-12-01T02:00Z", "2026-12-01T02:00Z"),
    ("2026-12-01 02:00+0100", "2026-12-01T01:00Z"), ("2026-12-01T02:00:00-05:30", "2026-12-01T07:30Z"),
])  # fmt: skip
def test_a_time_is_written_in_utc(text, utc):
    schedule, faults = read(frequency="1d", start=text)
    assert not faults and schedule.start == utc


@pytest.mark.parametrize(("frequency", "zone", "start", "days"), [
    ("1d", "Europe/Berlin", "2026-11-21T01:30+01:00", {0, -1}),
    ("1d", "Europe/Berlin", "2026-07-21T00:30+02:00", {-1}),
    ("1mo", "Europe/Berlin", "2026-11-21T02:00+01:00", {0}),
    ("1d", "America/New_York", "2026-11-21T19:30-05:00", {0, 1}),
    ("1w", "Australia/Lord_Howe", "2026-11-21T10:45+11:00", {0, -1}),
    ("1d", "GMT+01:00", "2026-11-21T00:30+01:00", {0}),
    ("24h", "Europe/Berlin", "2026-11-21T01:30+01:00", set()),
])  # fmt: skip
def test_utc_days_are_the_dates_beside_those_of_the_zone(frequency, zone, start, days):
    schedule, faults = read(frequency=frequency, zone=zone, start=start)
    assert not faults and utc_days(schedule) == days
    assert bool(list(moving_day_faults(schedule, "data"))) == (len(days) == 2)
    warned = [text for text in find_schedule_warnings(schedule, NOW) if text.startswith("timezone: the day in UTC")]
    assert bool(warned) == bool(days - {0})


def test_minutes_are_a_number_with_its_unit():
    faults = []
    words = {"timeout": "30m", "sla_end": "6h", "sla_start": "2d", "sla_duration": "5"}
    options = read_options(words, faults)
    assert [options[name] for name in words] == [30, 360, 2880, None]
    assert read_options({"timeout": "-1"}, faults)["timeout"] == -1
    assert [str(fault) for fault in faults] == [
        "sla_duration: '5' is not a time; give a number and m, h or d, such as 30m or 6h"
    ]


@pytest.mark.parametrize("time", ["0001-01-01T00:00+05:00", "9999-12-31T23:59-05:00"])
def test_time_outside_of_the_calendar_in_utc_is_rejected(time):
    assert read(frequency="1d", start=time)[1] == [
        f"start: {time!r} is not a time; give 2026-11-21T02:00Z, or with an offset 2026-11-21T02:00+01:00"
    ]


def test_doubts_are_about_what_oozie_refuses_and_about_the_past():
    doubtful = Schedule("", Frequency(1, "minutes"), "2026-01-01T00:00Z", "2099-12-31T00:00Z", "UTC")
    assert [text.partition(":")[0] for text in find_schedule_warnings(doubtful, NOW)] == ["frequency", "start"]
    assert list(find_schedule_warnings(read("0 2 * * *")[0], NOW)) == []
