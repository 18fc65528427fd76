"""The report travels in diagnostics: bounded, found whatever stands around it, read by later versions."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import examples, logs, reports
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import (
    MAX_DIAGNOSTICS,
    REPORT_SCHEMA,
    JobReport,
    TaskReport,
    compose_diagnostics,
    parse_diagnostics,
    small_document,
)

APP = "application_1700000000000_0001"
SECRET = "0123456789abcdef"


def parsed(text):
    """Return the report of the application in a text, whoever wrote it."""
    return parse_diagnostics(text, APP)[0]


@given(reports)
def test_from_dict_reads_what_to_dict_gives(report):
    assert JobReport.from_dict(report.to_dict()) == report
    assert JobReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report


@given(reports)
def test_parse_reads_what_compose_gives(report):
    assert parsed(compose_diagnostics(report)) == report


@given(reports, logs.filter(lambda text: "{" not in text), logs)
def test_report_is_found_whatever_stands_around_it(report, before, behind):
    assert parsed(f"{before}\n{compose_diagnostics(report)}{behind}") == report


@examples(30)
@given(reports, st.integers(0, 6000), st.text(min_size=1, max_size=2), st.integers(0, 60))
def test_diagnostics_are_bounded_and_stay_readable(report, length, letters, tasks):
    many = tuple(TaskReport(f"worker:{index}", "failed", 1, log_tail=letters * length) for index in range(tasks))
    report = JobReport(**{**vars(report), "tasks": report.tasks + many, "message": letters * length,
                          "metrics": {"note": letters * length}})  # fmt: skip
    text = compose_diagnostics(report)
    assert len(text.encode()) <= MAX_DIAGNOSTICS
    read = parsed(text)
    assert (read.application_id, read.reason, read.first_failure) == (APP, report.reason, report.first_failure)
    assert len(read.tasks) + read.omitted_tasks == len(report.tasks) + report.omitted_tasks


def test_starts_with_a_sentence_on_one_line():
    report = JobReport(APP, reason=Reason.TASK_FAILED, message="worker:1\nfailed")
    sentence, document = compose_diagnostics(report).split("\n", 1)
    assert sentence == "worker:1 failed"
    assert document.startswith('{"schema":1,\n"application_id":"application_1700000000000_0001"')


def test_diagnostics_fit_the_width_of_yarns_page():
    tasks = tuple(TaskReport(f"worker:{index}", "running", host="node1.example.com") for index in range(20))
    assert max(map(len, compose_diagnostics(JobReport(APP, name="digits", tasks=tasks)).splitlines())) < 100


def failing(tails):
    tasks = tuple(TaskReport(name, "failed", 1, log_tail=tail) for name, tail in tails.items())
    return JobReport(APP, reason=Reason.TASK_FAILED, message="no", first_failure="worker:1", tasks=tasks,
                     metrics={"accuracy": 0.5})  # fmt: skip


def test_a_report_that_the_sentence_quotes_is_passed_over():
    report = JobReport(APP, message='{"schema":1} is quoted')
    assert parsed(compose_diagnostics(report)) == report


def test_sheds_log_tails_of_other_tasks_first():
    report = failing({"worker:0": "a" * 9000, "worker:1": "b" * 2000, "worker:2": "c" * 9000})
    read = parsed(compose_diagnostics(report))
    assert [len(task.log_tail) for task in read.tasks] == [0, 2000, 0]
    assert read.metrics == {"accuracy": 0.5}


def test_the_end_of_the_first_failures_log_is_kept():
    read = parsed(compose_diagnostics(failing({"worker:0": "a" * 9000, "worker:1": "b" * 9000 + "THE END"})))
    (tail,) = [task.log_tail for task in read.tasks if task.log_tail]
    assert tail.endswith("THE END")


def test_sheds_tasks_before_metrics_and_the_first_failure_last():
    read = parsed(compose_diagnostics(failing({f"worker:{index}": "" for index in range(300)})))
    assert read.metrics == {"accuracy": 0.5}
    assert 0 < len(read.tasks) < 300
    assert "worker:1" in [task.task for task in read.tasks]


def large(number, **fields):
    tasks = tuple(
        TaskReport(f"worker:{index}", "succeeded", 0, None, f"node{index}.example.com",
                   f"container_e17_1700000000000_0001_01_{index:06}", 1, 1.7e9 + index / 7, 1.7e9 + index / 3, 3.25,
                   812.5, f"http://node{index}.example.com:8042/node/containerlogs/container_e17_1_{index}/ann/worker.log")
        for index in range(number)
    )  # fmt: skip
    return JobReport(APP, reason=Reason.SUCCEEDED, message="ok", metrics={"loss": 0.5}, tasks=tasks, **fields)


def test_a_report_of_64_tasks_has_all_states_and_containers():
    read = parsed(compose_diagnostics(large(64)))
    assert read.omitted_tasks == 0
    for task, sent in zip(read.tasks, large(64).tasks, strict=True):
        assert task == replace(sent, log_url=None, cpu_seconds=task.cpu_seconds, peak_memory_mib=task.peak_memory_mib,
                               started_at=task.started_at, finished_at=task.finished_at)  # fmt: skip


@pytest.mark.parametrize("number", [35, 128, 1000])
def test_a_report_counts_the_tasks_that_it_omits(number):
    report = large(number)
    failed = replace(report.tasks[-1], state="failed", exit_code=1, log_tail="why " * 2000)
    report = replace(report, tasks=(*report.tasks[:-1], failed), first_failure=failed.task)
    text = compose_diagnostics(report)
    read = parsed(text)
    assert len(read.tasks) + read.omitted_tasks == number
    assert (read.tasks[-1].task, read.tasks[-1].finished_at) == (failed.task, failed.finished_at)
    assert len(text.encode()) > 0.98 * MAX_DIAGNOSTICS or not read.omitted_tasks  # as many as there is room for
    again = parsed(compose_diagnostics(read, 4096))
    assert len(again.tasks) + again.omitted_tasks == number


@pytest.mark.parametrize("number", [1, 64, 300])
def test_a_small_document_is_small_with_all_keys(number):
    document = small_document(large(number), 12 * 1024)
    assert len(json.dumps(document)) <= 12 * 1024
    assert len(document["tasks"]) + document["omitted_tasks"] == number
    assert set(document["tasks"][0]) == set(vars(TaskReport("worker:0")))


@pytest.mark.parametrize(
    "text",
    ["", "killed by ann", '{"schema":', '{"schema":1}', '{"schema":2,"application_id":"x"}',
     '{"schema":1,"application_id":3}'],
)  # fmt: skip
def test_text_without_a_report_is_not_one(text):
    assert parsed(text) is None


@given(st.text(max_size=80))
def test_no_text_makes_the_reader_fail(text):
    parsed(text)
    parsed('{"schema":1,"application_id":' + text)


def test_keys_of_a_later_version_are_passed_over():
    document = {**JobReport(APP, tasks=(TaskReport("worker:0"),)).to_dict(), "later": 1}
    document["tasks"][0]["later"] = 2
    assert JobReport.from_dict(document).tasks == (TaskReport("worker:0"),)


def test_yarn_puts_text_in_front():
    text = compose_diagnostics(JobReport(APP, reason=Reason.SUCCEEDED, message="ok"))
    assert parsed(f"Attempt recovered after RM restart{text}").reason is Reason.SUCCEEDED


def test_exit_code_and_retryable_follow_the_reason():
    assert (JobReport(APP).exit_code, JobReport(APP).retryable) == (0, False)
    report = JobReport(APP, reason=Reason.NODE_LOST)
    assert (report.exit_code, report.retryable, report.to_dict()["retryable"]) == (5, True, True)
    assert report.to_dict()["schema"] == REPORT_SCHEMA
