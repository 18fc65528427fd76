"""The law of what Airflow gets of a report: its serialiser, msgpack, pydantic and a database hold it."""

import json
from decimal import Decimal

import msgspec
from airflow.sdk.serde import deserialize, serialize

from support import airflow_setup  # noqa: F401  gives Airflow a home
from support.hostile_values import Law, holds, statuses
from tf_yarn_ops.airflow.outcome import MAX_BYTES, build_event, conclude, exception_of, to_xcom
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport


class Silent:
    """A logger that writes nothing."""

    def info(self, *words):
        """Take a line."""


def read_as_postgresql(text):
    """Return a number as a column of type JSONB holds it: 1e30 is an integer there."""
    number = Decimal(text)
    return int(number) if "e" in text and number == number.to_integral_value() else float(text)


def any_report_reaches_airflow(document):
    report = JobReport.from_dict(document)
    event = build_event(report.application_id, report)
    assert event == {"application_id": report.application_id, "ended": report.application_id,
                     "reason": (report.reason or Reason.LOST).value}  # fmt: skip
    value, failure = conclude(report, str, Silent(), 50, (3,), 1)
    assert type(failure) is type(exception_of(report, (3,), 1)) and value == to_xcom(report)
    for part in (event, value):
        holds(part)
        packed = msgspec.msgpack.encode(part)
        assert msgspec.msgpack.decode(packed) == part
        assert deserialize(json.loads(json.dumps(serialize(part)))) == part
        msgspec.msgpack.encode(json.loads(json.dumps(part), parse_float=read_as_postgresql))
    assert len(json.dumps(value)) <= MAX_BYTES


AIRFLOW = Law(statuses, any_report_reaches_airflow)
