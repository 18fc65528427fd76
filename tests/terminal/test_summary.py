"""Reports, failures and progress as text for people."""

import re
from dataclasses import replace

import pytest

from support.job_reports import APP, FAILED
from tf_yarn_ops.runtime.common.escaping import escape_controls
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import Alert, JobReport, TaskReport
from tf_yarn_ops.runtime.page.page import render_parts
from tf_yarn_ops.terminal.output_properties import outputs_of
from tf_yarn_ops.terminal.progress import Lines
from tf_yarn_ops.terminal.summary import AFTER_REFUSAL, describe, describe_metrics, failure, timeline


def test_failure_ends_with_task_exit_code_log_and_next_command():
    assert list(failure(FAILED, " --resourcemanager http://rm:8088")) == [
        "worker:1 failed first: exit 3 on node1",
        "--- last lines of worker:1",
        "    Traceback (most recent call last):",
        "    ValueError: no data",
        "---",
        "Read the failed task's log and correct the program: it ended by itself.",
        f"next: ytf logs {APP} --task worker:1 --resourcemanager http://rm:8088",
    ]


def test_description_has_a_time_line_of_the_tasks():
    text = "\n".join(describe(FAILED, now=2000.0))
    assert text.startswith(f"{APP} TASK_FAILED: worker:1 failed with exit code 3 on node1 after 2.0 s\n")
    assert "took          9.5 s" in text
    assert "  ps:0      stopped  signal 15      4.0 s  node1  |================================|" in text
    assert "  worker:1  failed   exit 3         2.0 s  node1  |================                |" in text


@pytest.mark.parametrize(("size", "shown"), [(None, ""), (0, " (0.0 MB)"), (1_234_567_890, " (1234.6 MB)")])
def test_work_that_is_not_committed_is_shown_with_its_size(size, shown):
    lines = list(describe(replace(FAILED, working_path="hdfs:///m/_d.work-x", working_bytes=size), 2000.0))
    assert f"  work          hdfs:///m/_d.work-x{shown}" in lines


def test_next_command_names_no_application_that_was_only_reserved():
    *_, last = failure(JobReport(APP, reason=Reason.KILLED, message="cancelled before the application was submitted"))
    assert last == "next: ytf list"


@pytest.mark.parametrize("submitter", [True, False])
@pytest.mark.parametrize("application_id", ["", APP])
def test_next_line_is_a_command_that_helps_or_none(application_id, submitter):
    """A request's faults name what to correct; a door that is no command line has no command without an application."""
    without = {Reason.SPEC_INVALID} if application_id else {Reason.SPEC_INVALID, Reason.ENVIRONMENT_INVALID}
    for reason in set(Reason) - {Reason.SUCCEEDED}:
        *_, last = failure(JobReport(application_id, reason=reason, first_failure="worker:1"), submitter=submitter)
        elsewhere = not submitter and (not application_id or reason in AFTER_REFUSAL)
        if reason in without or elsewhere:
            assert last == reason.hint, reason
        else:
            command = re.fullmatch(r"next: ytf (logs|status|list|doctor)( [\w:/.-]+)*", last)
            assert command and "..." not in last, reason


FORGED = "x\n  state         FINISHED SUCCEEDED\rnext: ytf evil\u2028next: ytf evil"


@pytest.mark.parametrize("field", ["name", "queue", "user", "output_path", "tracking_url", "progress", "message"])
def test_line_break_in_a_value_of_a_report_forges_no_line(field):
    plain = "\n".join(describe(replace(FAILED, **{field: "x"}), 2000.0)).splitlines()
    lines = escape_controls("\n".join(describe(replace(FAILED, **{field: FORGED}), 2000.0))).splitlines()
    if field == "message":
        assert lines.pop(1).startswith("        state  ")
    assert len(lines) == len(plain)
    assert [line[:15] for line in lines] == [line[:15] for line in plain]


def test_line_break_in_a_host_or_an_alert_forges_no_line():
    task = replace(FAILED.tasks[0], host=FORGED)
    report = replace(FAILED, tasks=(task,), first_failure=task.task, alerts=(Alert("silent", FORGED, ()),))
    assert not [
        line
        for line in "\n".join(describe(report, 2000.0)).splitlines()
        if line.startswith(("  state  ", "next: ytf evil"))
    ][1:]
    written = []
    lines = Lines(written.append)
    lines.show(report)
    assert written and not [line for line in written if "\n" in line]


MANY = JobReport(
    APP,
    name="digits",
    state="RUNNING",
    submitted_at=1000.0,
    alerts=(Alert("silent", "worker:7: no CPU and no output for 24 min 0 s.", ("worker:7",)),),
    progress="step 300 of 1000, about 11 min 40 s left",
    tasks=tuple(
        TaskReport(
            f"worker:{index}",
            "failed" if index == 30 else "running",
            exit_code=3 if index == 30 else None,
            host=f"node{index % 4}.example.com",
            starts=1,
            started_at=1004.0,
        )
        for index in range(40)
    ),
)


def test_equal_tasks_are_one_row_behind_failed_and_silent_ones():
    lines = [line.split()[:3] for line in timeline(MANY, 1500.0)]
    assert lines == [
        ["worker:30", "failed", "exit"],
        ["worker:7", "running", "8"],
        ["worker:0-6,8-29,31-39", "running", "8"],
    ]


@pytest.mark.parametrize("columns, bar", [(60, True), (54, False), (100, True)])
def test_rows_of_tasks_fit_the_terminal(columns, bar):
    lines = list(timeline(MANY, 1500.0, columns))
    assert max(map(len, lines)) <= columns and any("=" in line for line in lines) is bar


def test_alerts_and_progress_are_shown_by_report_and_wait():
    text = "\n".join(describe(MANY, now=1500.0))
    assert "  ! worker:7: no CPU and no output for 24 min 0 s." in text
    assert "progress      step 300 of 1000, about 11 min 40 s left" in text
    lines = Lines()
    assert "alert: worker:7: no CPU and no output for 24 min 0 s." in lines.changes(MANY, 0.0)
    older = replace(MANY, alerts=(Alert("silent", "worker:7: no CPU and no output for 25 min 0 s.", ("worker:7",)),))
    assert not any("look" in line for line in lines.changes(older, 60.0))


def test_excluded_nodes_are_shown_after_the_end_too():
    report = JobReport(
        "application_1_1", reason=Reason.SUCCEEDED, excluded_nodes={"n1:8042": "2 failures, the last: x"}
    )
    sentence = "Node n1:8042 is excluded: 2 failures, the last: x"
    assert f"  ! {sentence}" in describe(report, 0.0)
    assert sentence in render_parts(report.to_dict(), live=False)["alerts"]


def test_metrics_line_and_outputs_have_the_same_names():
    report = JobReport(
        APP, metrics={"accuracy": 0.97, "nested": {"loss": 0.1, "at": {"best": 3}}, "bad key": 1, "bad_key": 2}
    )
    assert describe_metrics(report) == "accuracy 0.97, nested.loss 0.1, nested.at.best 3, bad_key_ 1, bad_key 2"
    outputs = {name.removeprefix("metric.") for name in outputs_of(report) if name.startswith("metric.")}
    assert outputs == {"accuracy", "nested.loss", "nested.at.best", "bad_key_", "bad_key"}
