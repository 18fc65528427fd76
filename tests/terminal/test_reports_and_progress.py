"""Reports, failures and progress as text for people."""

import re
from dataclasses import replace

import pytest

from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import Concern, JobReport, JobUsage, Round, TaskReport
from tf_yarn_ops.terminal.progress import Lines
from tf_yarn_ops.terminal.summary import describe, describe_usage, failure, timeline

APP = "application_1700000000000_0001"


def task(name, state, **values):
    return TaskReport(name, state, host="node1", starts=1, **values)


FAILED = JobReport(
    APP, name="digits", queue="default", user="ann", state="FINISHED", final_status="FAILED", reason=Reason.TASK_FAILED,
    message="worker:1 failed with exit code 3 on node1 after 2.0 s", first_failure="worker:1",
    submitted_at=1000.0, finished_at=1009.5, queue_seconds=0.25,
    tasks=(
        task("ps:0", "stopped", signal=15, started_at=1004.0, finished_at=1008.0),
        task("worker:1", "failed", exit_code=3, started_at=1004.0, finished_at=1006.0,
             log_tail="Traceback (most recent call last):\nValueError: no data"),
    ),
)  # fmt: skip


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


def test_next_command_names_no_application_that_was_only_reserved():
    *_, last = failure(JobReport(APP, reason=Reason.KILLED, message="cancelled before the application was submitted"))
    assert last == "next: ytf list"


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not Reason.SUCCEEDED])
def test_every_reason_names_a_next_command(reason):
    for application_id in ("", APP):
        *_, last = failure(JobReport(application_id, reason=reason))
        assert re.match(r"next: ytf", last)
        assert "{" not in last and ("TASK" not in last)


def test_lines_say_only_what_is_new():
    lines = Lines()
    job = JobReport(APP, queue="low", state="ACCEPTED")
    assert lines.changes(job, 0.0) == [f"{APP} ACCEPTED in queue low"]
    assert lines.changes(job, 1.0) == []
    tasks = tuple(TaskReport(f"worker:{index}") for index in range(12))
    running = JobReport(APP, state="RUNNING", tracking_url="http://rm/proxy", tasks=tasks)
    assert lines.changes(running, 40.0) == [
        f"{APP} RUNNING, http://rm/proxy",
        "0 of 12 tasks have registered. Waiting for worker:0, worker:1, worker:2, worker:3, worker:4, worker:5, "
        "worker:6, worker:7 and 4 more.",
    ]  # fmt: skip
    started = tuple(task(f"worker:{index}", "running") for index in range(2))
    again = JobReport(APP, state="RUNNING", tracking_url="http://rm/proxy", tasks=started, tensorboard_url="http://n:1",
                      rounds=(Round(1, 0.0, "start"), Round(2, 5.0, "worker:1 failed")))  # fmt: skip
    assert lines.changes(again, 41.0) == [
        "round 2: worker:1 failed", "running: worker:0, worker:1", "TensorBoard at http://n:1"]  # fmt: skip
    assert lines.changes(FAILED, 42.0) == [
        f"{APP} FINISHED", "failed with exit 3: worker:1", "stopped: ps:0"]  # fmt: skip


def test_lines_show_yarns_reason_and_break_a_silence():
    lines = Lines()
    full = ("[Sun Nov 22 12:00:0{0} +0000 2026] Application is added to the scheduler and is not yet activated. Queue's AM "
            "resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; Queue AM Resource Usage = {0}")  # fmt: skip
    cause = "Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded."
    queued = [JobReport(APP, queue="low", state="ACCEPTED", message=full.format(number)) for number in range(3)]
    assert lines.changes(queued[0], 100.0) == [f"{APP} ACCEPTED in queue low"]
    assert lines.changes(queued[0], 101.0) == [], "a job that starts at once has reasons, too"
    assert lines.changes(queued[1], 106.0) == [f"waiting: {cause}"]
    assert lines.changes(queued[2], 107.0) == [], "only the numbers have changed"
    assert lines.changes(queued[2], 166.0) == [f"still ACCEPTED in queue low: {cause}, followed for 1 min 6 s"]
    running = JobReport(APP, state="RUNNING", tasks=(task("ps:0", "running"), task("worker:0", "running")))
    assert lines.changes(running, 170.0) == [f"{APP} RUNNING", "running: ps:0, worker:0"]
    assert lines.changes(running, 229.0) == []
    assert lines.changes(running, 230.0) == ["still RUNNING, 2 running, followed for 2 min 10 s"]


def test_lines_show_metrics_but_not_at_each_step():
    lines = Lines()

    def at(step):
        return JobReport(APP, state="RUNNING", metrics={"step": step, "loss": 1 / 3})

    assert lines.changes(at(1), 0.0) == [f"{APP} RUNNING", "metrics: step 1, loss 0.3333"]
    assert lines.changes(at(2), 29.0) == []
    assert lines.changes(at(3), 30.0) == ["metrics: step 3, loss 0.3333"]
    assert lines.changes(at(3), 65.0) == [], "nothing new"


def test_a_line_a_minute_has_states_metrics_cpu_and_memory():
    lines = Lines()
    usage = JobUsage(3.42, 5222.0, 8192, "worker:3", 0.923)

    def at(step, **fields):
        return JobReport(APP, state="RUNNING", metrics={"step": step}, **fields,
                         tasks=(task("ps:0", "running"), task("worker:3", "running")))

    lines.changes(at(1), 0.0)
    using = "2 running, cpu 3.4 cores, memory 5.1 of 8.0 GiB, most used: worker:3 92 %"
    assert lines.changes(at(2, usage=usage), 30.0) == [f"metrics: step 2 ({using})"]
    assert lines.changes(at(2, usage=replace(usage, cpu_cores=3.0)), 40.0) == [], "usage alone is nothing new"
    assert lines.changes(at(2, usage=usage), 90.0) == [
        f"still RUNNING, {using}, followed for 1 min 30 s; metrics: step 2"]  # fmt: skip
    assert describe_usage(at(2, usage=JobUsage(0.5, 512.0))) == "cpu 0.5 cores, memory 512 MiB"
    assert describe_usage(at(2, usage=JobUsage(0.0, 9.6, 128))) == "cpu 0.0 cores, memory 10 of 128 MiB"
    assert "  usage         cpu 3.4 cores" in "\n".join(describe(at(2, usage=usage), 0.0))
    ended = replace(FAILED, usage=usage)
    assert not any("cores" in line for line in (*lines.changes(ended, 200.0), *describe(ended, 200.0)))


MANY = JobReport(
    APP, name="digits", state="RUNNING", submitted_at=1000.0,
    concerns=(Concern("silent", "worker:7: no CPU and no output for 24 min 0 s.", ("worker:7",)),),
    progress="step 300 of 1000, about 11 min 40 s left",
    tasks=tuple(TaskReport(f"worker:{index}", "failed" if index == 30 else "running", exit_code=3 if index == 30 else None,
                           host=f"node{index % 4}.example.com", starts=1, started_at=1004.0) for index in range(40)))


def test_equal_tasks_are_one_row_behind_failed_and_silent_ones():
    lines = [line.split()[:3] for line in timeline(MANY, 1500.0)]
    assert lines == [["worker:30", "failed", "exit"], ["worker:7", "running", "8"],
                     ["worker:0-6,8-29,31-39", "running", "8"]]


@pytest.mark.parametrize("columns, bar", [(60, True), (54, False), (100, True)])
def test_rows_of_tasks_fit_the_terminal(columns, bar):
    lines = list(timeline(MANY, 1500.0, columns))
    assert max(map(len, lines)) <= columns and any("=" in line for line in lines) is bar


def test_concerns_and_progress_are_shown_by_report_and_wait():
    text = "\n".join(describe(MANY, now=1500.0))
    assert "  ! worker:7: no CPU and no output for 24 min 0 s." in text
    assert "progress      step 300 of 1000, about 11 min 40 s left" in text
    lines = Lines()
    assert "look: worker:7: no CPU and no output for 24 min 0 s." in lines.changes(MANY, 0.0)
    older = replace(MANY, concerns=(Concern("silent", "worker:7: no CPU and no output for 25 min 0 s.", ("worker:7",)),))
    assert not any("look" in line for line in lines.changes(older, 60.0))
