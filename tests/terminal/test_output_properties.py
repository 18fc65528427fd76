"""Results as Java properties: what `java.util.Properties` reads back, and what does not fit."""

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport
from tf_yarn_ops.terminal.output_properties import MAX_OUTPUT, format_outputs, outputs_of, write_output_file

GOOD = JobReport(
    "application_1_1",
    state="FINISHED",
    final_status="SUCCEEDED",
    reason=Reason.SUCCEEDED,
    output_path="hdfs:///models/a=b",
    tracking_url="http://rm:8088/proxy/application_1_1/",
    metrics={"accuracy": 0.97, "by class": {"a:b": 1}, "note": "ok", "empty": None},
)


def test_outputs_are_named_and_in_the_order_of_their_worth():
    text = format_outputs(outputs_of(GOOD, report_path="hdfs:///r.json"))
    assert text.splitlines() == [
        "status=SUCCEEDED",
        "reason=SUCCEEDED",
        "application_id=application_1_1",
        "exit_code=0",
        "output_path=hdfs:///models/a=b",
        "report_path=hdfs:///r.json",
        "tracking_url=http://rm:8088/proxy/application_1_1/",
        "metric.accuracy=0.97",
        "metric.by_class.a_b=1",
        "metric.note=ok",
    ]
    assert javaproperties.loads(text)["output_path"] == "hdfs:///models/a=b"


def test_a_report_without_an_application_has_failed():
    outputs = outputs_of(JobReport("", reason=Reason.SPEC_INVALID, message="tasks: missing"))
    assert outputs == {"status": "FAILED", "reason": "SPEC_INVALID", "exit_code": "2", "message": "tasks: missing"}


@pytest.mark.parametrize(("value", "written"), [
    ("a 'quoted' \"text\"", "a 'quoted' \"text\""), ("two\nlines\r\n", "two lines"), ("\\u00zz", "_u00zz"),
    ("${wf:conf('x')} $HOME", "_{wf:conf('x')} $HOME"), ("</argument>&amp;", "_/argument__amp;"), ("über 模", "über 模"),
    (" # no comment = ! :", "# no comment = ! :"), ("\ud800", "_"), ("\x00\x85", "__"),
])  # fmt: skip
def test_a_value_needs_no_escape_sequence(value, written):
    text = format_outputs({"v": value})
    assert text == f"v={written}\n" and javaproperties.loads(text) == {"v": written}


_TEXTS = some.text(some.characters(), max_size=400)


@given(
    some.dictionaries(
        _TEXTS, _TEXTS | some.floats(allow_nan=False) | some.dictionaries(_TEXTS, _TEXTS, max_size=2), max_size=12
    ),
    _TEXTS,
)
def test_every_report_fits_and_is_read_back_line_by_line(metrics, message):
    report = JobReport(
        "application_1_1", final_status="FAILED", reason=Reason.TASK_FAILED, metrics=metrics, message=message
    )
    text = format_outputs(outputs_of(report))
    assert len(text.encode()) <= MAX_OUTPUT
    assert "\\" not in text and "${" not in text and not set(text) & set("<>&\r\t\0")
    pairs = dict(line.split("=", 1) for line in text.splitlines())
    assert javaproperties.loads(text) == pairs and pairs["application_id"] == "application_1_1"


def test_what_does_not_fit_is_counted_and_the_message_is_cut():
    report = JobReport(
        "application_1_1",
        final_status="FAILED",
        reason=Reason.TASK_FAILED,
        message="é" * 3000,
        metrics={f"m{number}": "x" * 90 for number in range(30)},
    )
    text = format_outputs(outputs_of(report))
    pairs = javaproperties.loads(text)
    kept = [name for name in pairs if name.startswith("metric.")]
    assert len(text.encode()) <= MAX_OUTPUT and int(pairs["left_out"]) == 30 - len(kept) > 0
    assert pairs["status"] == "FAILED" and set(pairs["message"]) == {"é"}


def test_outputs_that_are_read_are_the_last_to_be_left_out():
    report = JobReport(
        "application_1_1",
        final_status="SUCCEEDED",
        reason=Reason.SUCCEEDED,
        metrics={**{f"m{number}": number for number in range(300)}, "accuracy": 0.9},
    )
    assert "metric.accuracy" not in javaproperties.loads(format_outputs(outputs_of(report)))
    pairs = javaproperties.loads(format_outputs(outputs_of(report), first=["metric.accuracy"]))
    assert (pairs["metric.accuracy"], pairs["status"]) == ("0.9", "SUCCEEDED")


def test_metrics_whose_names_become_the_same_are_kept():
    report = JobReport("application_1_1", metrics={"a b": 1, "a_b": 2, "a%b": 3})
    metrics = {name: value for name, value in outputs_of(report).items() if name.startswith("metric.")}
    assert metrics == {"metric.a_b_": "1", "metric.a_b": "2", "metric.a_b__": "3"}


def test_a_file_that_can_not_be_written_is_a_fault(tmp_path):
    write_output_file(str(tmp_path / "out"), "status=SUCCEEDED\n")
    assert (tmp_path / "out").read_bytes() == b"status=SUCCEEDED\n"
    with pytest.raises(SpecInvalid, match=r"^output_properties: '.*none/out' can't be written"):
        write_output_file(str(tmp_path / "none" / "out"), "")
    with pytest.raises(SpecInvalid, match=r"can't be written: it is a folder; name a file$"):
        write_output_file(str(tmp_path), "")
