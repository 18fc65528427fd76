"""From the state of a job to its report and the facts of its page."""

import pytest

from support.wire import exited, job, join, receive, state_of
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.job_state import SILENT_AGENT_SECONDS
from tf_yarn_ops.runtime.master.lifecycle import Verdict
from tf_yarn_ops.runtime.master.reporting import build_live_status, build_report

ALL = ("ps_0", "worker_0", "worker_1")


def test_report_of_a_job_that_waits_names_the_missing_tasks():
    state = state_of(job())
    join(state, "worker_0")
    report = build_report(state, None, None)
    assert (report.state, report.final_status, report.reason) == ("RUNNING", "UNDEFINED", None)
    assert report.message == "Waiting for ps:0, worker:1."
    join(state, "ps_0", "worker_1")
    assert build_report(state, None, None).message == "3 of 3 tasks run."


@pytest.mark.parametrize("live, state_of_a_running_task", [(True, "running"), (False, "lost")])
def test_task_that_still_runs_at_the_verdict_is_lost_in_the_final_report(live, state_of_a_running_task):
    state = state_of(job())
    join(state, *ALL)
    state.apply(Verdict(Reason.TOTAL_TIMEOUT, "too long"), 1.0)
    report = build_report(state, None, "http://board", live=live)
    assert {task.state for task in report.tasks} == {state_of_a_running_task}
    assert (report.reason, report.message, report.tensorboard_url) == (Reason.TOTAL_TIMEOUT, "too long", "http://board")


def test_final_reports_have_one_end():
    state = state_of(job())
    state.apply(Verdict(Reason.TOTAL_TIMEOUT, "too long"), 1.0)
    state.finished_at = 1234.5678
    assert [build_report(state, None, None, every_tail=tail).finished_at for tail in (True, False)] == [1234.568] * 2


@pytest.mark.parametrize("every_tail, tail", [(True, "the end"), (False, "")])
def test_logs_of_tasks_that_did_not_fail_are_left_out_of_diagnostics(every_tail, tail):
    state = state_of(job())
    _, worker, _ = join(state, *ALL)
    receive(state, worker, exited(code=0, log_tail="the end"))
    tails = {task.task: task.log_tail for task in build_report(state, None, None, every_tail=every_tail).tasks}
    assert tails["worker:0"] == tail


def test_agent_is_silent_from_ten_seconds_on():
    state = state_of(job())
    join(state, "worker_0", "ps_0", now=100.0)
    join(state, "worker_1", now=140.0 - SILENT_AGENT_SECONDS + 0.1)
    tasks = build_live_status(state, build_report(state, None, None), None, 140.0)["tasks"]
    silent = {task["task"]: task["silent_seconds"] for task in tasks if task["silent_seconds"] is not None}
    assert silent == {"worker:0": 40.0, "ps:0": 40.0}


def test_deadlines_of_the_job_have_a_begin_and_an_end():
    deadlines = Deadlines(total=600, execution=300)
    state = state_of(job(deadlines=deadlines, restart=RestartPolicy("task", max_restarts=2)), 100.0)
    status = build_live_status(state, build_report(state, None, None), None, 130.0)
    assert list(status["deadlines"]) == ["total"], "the training has not begun"
    begin, until = status["deadlines"]["total"]
    assert (round(until - begin), round(status["at"] - begin)) == (600, 30)
    join(state, *ALL, now=120.0)
    status = build_live_status(state, build_report(state, None, None), None, 130.0)
    begin, until = status["deadlines"]["execution"]
    assert (round(until - begin), status["restarts_left"]) == (300, 2)
