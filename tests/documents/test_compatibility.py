"""docs/reference/compatibility.md has the numbers and versions of the code, and an older client reads a newer job so."""

import json
import re

import pytest

from support.records import record
from support.source import PACKAGE, ROOT
from tf_yarn_ops import Identity
from tf_yarn_ops.doctor.examination import EXAMINATION_SCHEMA
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.runtime.common.contract import VERSION
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import RECORD_SCHEMA, pack_record, unpack_record
from tf_yarn_ops.runtime.common.report import REPORT_SCHEMA, JobReport, compose_diagnostics, verdict_tag
from tf_yarn_ops.runtime.common.status import APPLICATION_HEADER, STATUS_SCHEMA

PAGE = (ROOT / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
APP = "application_1700000000000_0001"
SECRET = "a secret"


def cells(heading):
    """Return the rows of the table below a heading."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[1:]]


def test_numbers_of_formats_are_those_of_the_code():
    assert [(row[1].strip("`"), int(row[2])) for row in cells("Numbers of formats")] == [
        ("schema", REPORT_SCHEMA),
        ("status_schema", STATUS_SCHEMA),
        ("record_schema", RECORD_SCHEMA),
        ("schema", EXAMINATION_SCHEMA),
        ("version", VERSION),
    ]
    assert f"the header `{APPLICATION_HEADER}`" in PAGE


def test_supported_versions_are_those_of_the_code():
    supported = {row[0]: re.findall(r"\d+\.\d+", row[1]) for row in cells("Versions of other software")}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pythons = re.findall(r"Python :: (3\.\d+)", project)
    assert supported["Python where you submit"] == [pythons[0], pythons[-1]]
    assert re.search(r'requires-python = ">=(.+?)"', project)[1] == pythons[0]
    assert f"needs Python {supported['Python on the nodes'][0]}," in (PACKAGE / "runtime" / "entry.py").read_text()
    oldest = re.search(r"^OLDEST: Version = \((\d+), (\d+)\)$", (PACKAGE / "airflow" / "versions.py").read_text(), re.M)
    assert supported["Airflow"] == [".".join(oldest.groups())]


@pytest.mark.parametrize(
    ("final", "change", "reason"),
    [
        ("FAILED", {}, Reason.TASK_FAILED),
        ("FAILED", {"later": 1}, Reason.TASK_FAILED),
        ("FAILED", {"reason": "LATER"}, Reason.UNKNOWN_REASON),
        ("FAILED", {"reason": "LATER", "retryable": True}, Reason.AM_FAILED),
        ("FAILED", {"reason": "later <b>"}, Reason.AM_FAILED),
        ("FAILED", {"schema": REPORT_SCHEMA + 1}, Reason.AM_FAILED),
        ("SUCCEEDED", {"schema": REPORT_SCHEMA + 1}, Reason.SUCCEEDED),
    ],
)
def test_report_of_a_newer_job_counts_for_this_client_as_the_page_says(final, change, reason):
    text = compose_diagnostics(JobReport(APP, reason=Reason.TASK_FAILED, message="it failed"), secret=SECRET)
    sentence, _, document = text.partition("\n")
    changed = json.dumps({**json.loads(document), **change}, separators=(",\n", ":"))
    application = {
        "id": APP,
        "state": "FINISHED",
        "finalStatus": final,
        "applicationTags": verdict_tag(SECRET),
        "diagnostics": f"{sentence}\n{changed}",
    }
    report = read_yarn_report(application)
    assert report.reason is reason
    assert Reason.AM_FAILED.retryable and not Reason.UNKNOWN_REASON.retryable
    if change.get("reason") == "LATER":
        assert report.message == "LATER, a reason of a newer release: it failed"


def test_record_of_a_newer_job_has_an_unknown_reason():
    made = {**record(reason=Reason.TASK_FAILED), "reason": "LATER"}
    read = unpack_record(pack_record(made))
    assert (read["reason"], read["message"].partition(":")[0]) == (
        "UNKNOWN_REASON",
        "LATER, a reason of a newer release",
    )
    assert JobReport.from_dict(read).reason is Reason.UNKNOWN_REASON


def test_tag_of_a_training_is_that_of_the_release_before():
    """Another tag would train a second time what runs at the moment of the upgrade."""
    assert Identity("digits").tag == "tfy-f020bed4dfc5d827a646f85484558fdfde349141"
    assert Identity("digits", deployment="prod").tag == "tfy-76fda3898e574cc7145dbbcad6e2882676e0817e"
