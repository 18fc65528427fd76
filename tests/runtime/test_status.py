"""The document of ``status.json``: a report with more keys, as its schema says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from support.strategies import reports
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, JobUsage, Round, TaskReport
from tf_yarn_ops.runtime.common.status import (
    Given,
    Series,
    TaskEvent,
    Usage,
    Waiting,
    build_status,
    describe_state,
)

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "status.schema.json").read_text())
TASKS = (TaskReport("worker:0", "running", starts=2), TaskReport("worker:1"))
RUNNING = JobReport(
    "application_1_1",
    name="digits",
    queue="ml",
    state="RUNNING",
    started_at=1000.0,
    tasks=TASKS,
    rounds=(Round(1, 1001.0, "start"), Round(2, 1060.0, "worker:0 failed")),
)
NOW = 1100.0
FACTS: dict[str, Any] = {
    "waiting": Waiting(("worker:1 (container requested)",), 1065.0),
    "events": {
        "worker:0": (
            TaskEvent("requested", 1000.0),
            TaskEvent("running", 1001.0, "n1", 1),
            TaskEvent("failed", 1050.0, "n1", 1, exit_code=1, cause="no data"),
        )
    },
    "given": {"worker:0": Given(2048, 2)},
    "usage": {"worker:0": Usage(1099.0, 1.5, 512.0, 1.9, 600.5, 80.0)},
    "series": [Series("worker:0", "loss", ((1.0, 0.5), (2.0, 0.25)), 2.0, 0.25, 1098.0)],
    "left_out": 1,
    "cluster_spec": {"worker": ("n1:1", "n2:2")},
    "options": {"name": "digits"},
}


@pytest.mark.slow
@settings(max_examples=40)
@given(reports)
def test_a_status_is_a_report_for_those_who_read_reports(report):
    document = json.loads(json.dumps(build_status(report, NOW, **FACTS)))
    assert JobReport.from_dict(document) == replace(report, usage=JobReport.from_dict(document).usage)
    jsonschema.validate(document, SCHEMA)


def test_a_status_has_what_the_coordinator_knows():
    document = build_status(RUNNING, NOW, **FACTS)
    jsonschema.validate(document, SCHEMA)
    worker, other = document["tasks"]
    assert worker["events"][-1] == {
        "kind": "failed",
        "at": 1050.0,
        "host": "n1",
        "round": 1,
        "exit_code": 1,
        "cause": "no data",
    }
    assert worker["given"] == {"memory_mib": 2048, "vcores": 2, "gpus": 0}
    assert worker["usage"]["peak_memory_mib"] == 600.5
    assert other["events"] == [] and other["given"] is None and other["usage"] is None
    assert document["series"] == [
        {
            "task": "worker:0",
            "name": "loss",
            "points": [[1.0, 0.5], [2.0, 0.25]],
            "step": 2.0,
            "value": 0.25,
            "at": 1098.0,
            "since": None,
        }
    ]
    assert document["waiting"] == {"tasks": ["worker:1 (container requested)"], "since": 1065.0}
    assert document["verdict"] is None


def test_the_running_tasks_use_together():
    gone = TaskReport("worker:2", "lost")
    report = replace(RUNNING, tasks=(TASKS[0], TaskReport("ps:0", "running"), gone))
    usage = {
        "worker:0": FACTS["usage"]["worker:0"],
        "ps:0": Usage(1099.0, 0.25, 900.0, 1.0, 900.0, 9.0),
        "worker:2": Usage(1000.0, 8.0, 4000.0, 8.0, 4000.0, 99.0),
    }
    given = {**FACTS["given"], "ps:0": Given(1000, 1), "worker:2": Given(4096, 8)}
    document = build_status(report, NOW, **(FACTS | {"usage": usage, "given": given}))
    jsonschema.validate(document, SCHEMA)
    assert JobReport.from_dict(document).usage == JobUsage(1.75, 1412.0, 3048, "ps:0", 0.9)
    assert JobReport.from_dict(build_status(report, NOW, **(FACTS | {"usage": usage, "given": {}}))).usage == JobUsage(
        1.75, 1412.0
    )
    assert build_status(report, NOW, **(FACTS | {"usage": {}}))["usage"] is None


def test_numbers_that_json_lacks_are_texts():
    document = build_status(RUNNING, NOW, **(FACTS | {"options": {"learning_rate": float("nan")}}))
    assert json.loads(json.dumps(document, allow_nan=False))["options"] == {"learning_rate": "nan"}


def test_the_verdict_says_what_to_do_next():
    ended = JobReport(
        "application_1_1",
        reason=Reason.TASK_FAILED,
        message="worker:1 failed with exit code 3",
        first_failure="worker:1",
        started_at=0.5,
        finished_at=190.5,
    )
    document = build_status(ended, 200.0)
    assert document["verdict"] == {
        "reason": "TASK_FAILED",
        "message": "worker:1 failed with exit code 3",
        "task": "worker:1",
        "hint": Reason.TASK_FAILED.hint,
        "next": "ytf logs application_1_1 --task worker:1",
    }
    assert document["sentence"] == "The job ended with TASK_FAILED after 3 min 10 s: worker:1 failed first."


@pytest.mark.parametrize(
    ("report", "waiting", "sentence"),
    [
        (JobReport("a", state="ACCEPTED", queue="ml"), None, "The job waits in queue ml for its application master."),
        (RUNNING, FACTS["waiting"], "The job waits for worker:1 (container requested) since 00:17:45 UTC (35 s)."),
        (RUNNING, None, "The job trains: 1 of 2 tasks run, round 2."),
        (
            JobReport("a", reason=Reason.SUCCEEDED, started_at=10.0, finished_at=7390.0),
            None,
            "The job succeeded after 2 h 3 min.",
        ),
    ],
)
def test_the_state_is_one_sentence(report, waiting, sentence):
    assert describe_state(report, 1100.0, waiting) == sentence
