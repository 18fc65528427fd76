"""When a training runs: cron or a fixed frequency, from start to end, as Oozie's coordinator reads them. Pure.

References
----------
Oozie 5.2.1, "Coordinator functional specification", sections 4.4 (frequency) and 6.1 (synchronous coordinators).
Oozie evaluates cron by Quartz in its processing time zone, which is UTC unless the server says otherwise; the time zone
of the coordinator counts for ``coord:days`` and ``coord:months`` only.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from ..errors import Fault, FaultCode
from ..validation import check_faults, invalid, read_text

#: The end of a schedule that names none.
NO_END = "2099-12-31T00:00Z"
#: Oozie refuses a shorter frequency, unless oozie.service.coord.check.maximum.frequency is false.
LEAST_MINUTES = 5
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class ScheduleFault(FaultCode):
    """Fault codes for a schedule."""

    TWO_SCHEDULES = "{other} also says when the training runs; give one of them"
    NOT_FIVE = (
        "{given!r} has {count} fields; give five: minute, hour, day of month, month, day of week, such as '0 2 * * *'"
    )
    NOT_IN_FIELD = "{given!r} is not a value for the {field} of cron: {allowed}"
    NUMBERED_DAY = (
        "{given!r} numbers a day of the week: Oozie counts from 1 for SUN, cron from 0; write names such as MON-FRI"
    )
    NOT_A_FREQUENCY = (
        "{given!r} is not a frequency; give a number of at least 1 and m, h, d, w or mo, such as 30m, 12h or 1d"
    )
    NOT_A_PERIOD = "{given!r} is not a time; give a number and m, h or d, such as 30m or 6h"
    ZONE_OF_CRON = (
        "Oozie reads cron in UTC, whatever the time zone; give {other} with it, or the hours of the schedule in UTC"
    )
    NO_ZONE = "{given!r} is not a time zone{hint}; give a name such as Europe/Berlin or GMT+01:00"
    NOT_A_TIME = "{given!r} is not a time; give 2026-11-21T02:00Z, or with an offset 2026-11-21T02:00+01:00"
    ENDS_FIRST = "{given} is not after the start {start}"
    NO_SUCH_DAY = "{given!r} never comes: no month of it has such a day"
    MOVING_DAY = (
        "Oozie names data by the day in UTC. At {time} in {zone} that is one day in summer and another in winter, so "
        "that data of one day would be missed and of another taken twice; start at another hour, or without timezone"
    )
    NEEDS_SCHEDULE = "needs {other}: only a coordinator has it"


class Frequency(NamedTuple):
    """A fixed frequency.

    Attributes
    ----------
    number : int
    unit : str
        ``minutes``, ``hours``, ``days`` or ``months``.
    """

    number: int
    unit: str

    @property
    def expression(self) -> str:
        """Oozie's expression, ``${coord:days(1)}``."""
        return f"${{coord:{self.unit}({self.number})}}"


@dataclass(frozen=True)
class Schedule:
    """When a coordinator runs.

    Attributes
    ----------
    expression : str
        The coordinator's attribute ``frequency``: five fields of cron, or Oozie's expression of the fixed frequency.
    frequency : Frequency or None
        None: cron.
    start, end : str
        UTC, ``2026-11-21T02:00Z``.
    timezone : str
    """

    expression: str
    frequency: Frequency | None
    start: str
    end: str
    timezone: str


_FREQUENCY = re.compile(r"([1-9][0-9]{0,5})\s*(m|min|minutes?|h|hours?|d|days?|w|weeks?|mo|months?)\Z", re.IGNORECASE)
_UNITS = {"mo": ("months", 1), "m": ("minutes", 1), "h": ("hours", 1), "d": ("days", 1), "w": ("days", 7)}
_NUMBER = re.compile(r"[0-9]{1,3}\Z")
_OFFSET_ZONE = re.compile(r"(GMT|UTC)([+-](0?[0-9]|1[0-4])(:?[0-5][0-9])?)?\Z")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:00)?)?(Z|[+-]\d{2}:?\d{2})?\Z", re.ASCII)


def read_schedule(options: Mapping[str, Any], now: datetime, faults: list[Fault]) -> Schedule | None:
    """Return the schedule of the options; None if there is none.

    Parameters
    ----------
    options : mapping of str to value
        Those of ``ytf oozie package``, as their readers return them.
    now : datetime
        With a time zone; the default start, cut to the minute.
    faults : list of Fault
        Faults of several options together are added to it.
    """
    cron, frequency, zone = options["schedule"], options["frequency"], options["timezone"]
    if not (cron or frequency):
        return None
    if cron and frequency:
        faults.append(Fault("frequency", ScheduleFault.TWO_SCHEDULES, {"other": "schedule"}))
    if cron and zone not in ("UTC", "GMT"):
        faults.append(Fault("timezone", ScheduleFault.ZONE_OF_CRON, {"other": "frequency"}))
    start, end = options["start"] or format_time(now), options["end"]
    if end <= start:
        faults.append(Fault("end", ScheduleFault.ENDS_FIRST, {"given": end, "start": start}))
    return Schedule(frequency.expression if frequency else cron, frequency, start, end, zone)


def read_cron(value: object) -> str:
    """Return a cron expression of Oozie, its fields separated by single blanks."""
    text = read_text(value)
    check_faults(cron_faults(text))
    return " ".join(text.split())


def read_frequency(value: object) -> Frequency:
    """Return the frequency of a text such as ``12h``."""
    match = _FREQUENCY.match(read_text(value).strip())
    if not match:
        raise invalid(ScheduleFault.NOT_A_FREQUENCY, given=value)
    word = match[2].lower()
    unit, factor = _UNITS["mo" if word.startswith("mo") else word[0]]
    return Frequency(int(match[1]) * factor, unit)


def read_minutes(value: object) -> int:
    """Return the minutes of a text such as ``6h``."""
    match = _FREQUENCY.match(read_text(value).strip())
    if not match or match[2].lower().startswith("mo"):
        raise invalid(ScheduleFault.NOT_A_PERIOD, given=value)
    return int(match[1]) * {"m": 1, "h": 60, "d": 1440, "w": 10080}[match[2][0].lower()]


def read_timeout(value: object) -> int:
    """Return the minutes of a text such as ``6h``; -1, for ever, for ``-1``."""
    return -1 if value == "-1" else read_minutes(value)


def read_zone(value: object) -> str:
    """Return the name of a time zone."""
    zone = read_text(value)
    if not _OFFSET_ZONE.match(zone) and zone not in available_timezones():
        raise invalid(ScheduleFault.NO_ZONE, given=zone, allowed=tuple(sorted(available_timezones())))
    return zone


def read_time(value: object) -> str:
    """Return a moment as Oozie writes it; a text without an offset is in UTC."""
    text = read_text(value).strip()
    try:
        if not _TIME.match(text):
            raise ValueError(text)
        moment = datetime.fromisoformat(re.sub(r"([+-]\d{2})(\d{2})\Z", r"\1:\2", text.replace("Z", "+00:00")))
        return format_time(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))
    except (ValueError, OverflowError):  # a day before the first year in UTC
        raise invalid(ScheduleFault.NOT_A_TIME, given=value) from None


def format_time(moment: datetime) -> str:
    """Return a moment as Oozie writes it: ``2026-11-21T02:00Z``."""
    return f"{moment.astimezone(timezone.utc):%Y-%m-%dT%H:%MZ}"


def find_schedule_warnings(schedule: Schedule, now: datetime) -> Iterator[str]:
    """Yield warnings about a valid schedule that is probably a mistake."""
    if schedule.frequency and schedule.frequency.unit == "minutes" and schedule.frequency.number < LEAST_MINUTES:
        yield (
            f"frequency: Oozie refuses less than {LEAST_MINUTES} minutes, unless the server sets "
            "oozie.service.coord.check.maximum.frequency=false"
        )
    if schedule.start < format_time(now - timedelta(days=1)):
        yield f"start: {schedule.start} is past; Oozie catches up from then on, unless execution is LAST_ONLY or NONE"
    if utc_days(schedule) - {0}:
        yield (
            f"timezone: the day in UTC, which nominalDate and the variables of data are, is not always that in "
            f"{schedule.timezone} at {local_start(schedule):%H:%M}"
        )


def local_start(schedule: Schedule) -> datetime:
    """Return the start in the zone of the schedule."""
    start = datetime.fromisoformat(schedule.start.replace("Z", "+00:00"))
    return start if _OFFSET_ZONE.match(schedule.timezone) else start.astimezone(ZoneInfo(schedule.timezone))


def utc_days(schedule: Schedule) -> set[int]:
    """Return by how many days the date in UTC differs from that in the schedule's zone, over the runs of a year."""
    if schedule.frequency is None or schedule.frequency.unit not in ("days", "months"):
        return set()
    local = local_start(schedule)
    days = (local + timedelta(days=number) for number in range(366))  # the wall clock stays
    return {(day.astimezone(timezone.utc).date() - day.date()).days for day in days}


def moving_day_faults(schedule: Schedule, path: str) -> Iterator[Fault]:
    """Yield the fault of daily data for a schedule whose day in UTC changes with the clock."""
    if len(utc_days(schedule)) > 1:
        yield Fault(
            path, ScheduleFault.MOVING_DAY, {"time": f"{local_start(schedule):%H:%M}", "zone": schedule.timezone}
        )


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    names: tuple[str, ...]
    special: str
    allowed: str


_FIELDS = (
    _Field("minute", 0, 59, (), r"(?!)", "0 to 59, *, lists, ranges and steps such as */15"),
    _Field("hour", 0, 23, (), r"(?!)", "0 to 23, *, lists, ranges and steps such as */6"),
    _Field("day of month", 1, 31, (), r"\?|L(-\d+)?|LW|\d+W", "1 to 31, *, ?, L, W, lists, ranges and steps"),
    _Field("month", 1, 12, MONTHS, r"(?!)", "1 to 12, JAN to DEC, *, lists, ranges and steps"),
    _Field(
        "day of week",
        1,
        7,
        DAYS,
        rf"\?|({'|'.join(DAYS)})(L|#[1-5])",
        "SUN to SAT, *, ?, L, #, lists, ranges and steps",
    ),
)


def cron_faults(text: str) -> Iterator[Fault]:
    """Yield the faults of a cron expression of Oozie."""
    fields = text.split()
    if len(fields) != len(_FIELDS):
        yield Fault("", ScheduleFault.NOT_FIVE, {"given": text, "count": len(fields)})
        return
    faults = [fault for value, field in zip(fields, _FIELDS, strict=True) for fault in _field_faults(value, field)]
    yield from faults
    if faults or fields[4] not in ("*", "?"):  # a day of the week counts beside a day of the month
        return
    days, months = ([_values(item, _FIELDS[at]) or set() for item in fields[at].upper().split(",")] for at in (2, 3))
    if all((*days, *months)) and min(map(min, days)) > max(_LONGEST[month] for named in months for month in named):
        yield Fault("", ScheduleFault.NO_SUCH_DAY, {"given": text})


#: The days of each month, at most.
_LONGEST = dict(zip(range(1, 13), (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))


def _field_faults(value: str, field: _Field) -> Iterator[Fault]:
    for item in value.upper().split(","):
        if field.names == DAYS and re.search(r"\d", item.partition("#")[0].partition("/")[0]):
            yield Fault("", ScheduleFault.NUMBERED_DAY, {"given": item})
        elif _values(item, field) is None:
            yield Fault("", ScheduleFault.NOT_IN_FIELD, {"given": item, "field": field.name, "allowed": field.allowed})


def _values(item: str, field: _Field) -> set[int] | None:
    """Return the values that an item of a field names: none for a special item such as L; None if it is no item."""
    if re.fullmatch(field.special, item):
        return set()
    span, slash, step = item.partition("/")
    ends = [field.least, field.most] if span == "*" else [_number(end, field) for end in span.split("-")]
    in_range = len(ends) <= 2 and all(field.least <= end <= field.most for end in ends)
    if not in_range or (slash and not (_NUMBER.match(step) and 1 <= int(step) <= field.most)):
        return None
    begin, end = ends[0], field.most if slash and len(ends) == 1 else ends[-1]
    count = field.most - field.least + 1
    # Quartz reads FRI-MON and 22-2 as ranges over the end.
    steps = range(0, (end - begin) % count + 1, int(step or 1))
    return {(begin - field.least + passed) % count + field.least for passed in steps}


def _number(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + field.least
    return int(text) if _NUMBER.match(text) else -1
