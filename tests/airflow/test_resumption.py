"""A task that resumes after a failed deferral, or after an application that never trained, on a fake ResourceManager."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from airflow.sdk.exceptions import TaskDeferred

from support import airflow_setup
from support.airflow_task import ID, SECOND, Running, deferral, first_event, report_of, resume, run, task_log
from support.fake_yarn import STAMP
from support.waiting import until
from tf_yarn_ops.airflow import TfYarnInfrastructureError, TfYarnJobFailed, execution
from tf_yarn_ops.airflow.outcome import build_event
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.terminal.progress import Lines

pytestmark = pytest.mark.slow


def test_a_deferral_that_timed_out_kills_the_application(site):
    deferral(site.operator(deferrable=True))
    with pytest.raises(TfYarnJobFailed, match="EXECUTION_TIMEOUT"):
        resume(site.operator(deferrable=True), "Trigger timeout")
    assert site.yarn.apps[ID]["state"] == "KILLED"


@pytest.mark.parametrize("way", ["event", "Trigger failure"])
def test_a_clear_of_another_task_does_not_disturb_a_deferred_one(site, way):
    """It raises the number of clears of the run, which a new try of this task would have in its identity."""
    operator, ti = site.operator(deferrable=True), airflow_setup.TaskInstance()
    deferred, _ = deferral(operator, ti)
    ti.clear_number = 1
    context = airflow_setup.context_of(ti)
    with site.not_launching() if way == "event" else nullcontext():
        event = asyncio.run(first_event(deferred.trigger)) if way == "event" else None
    with site.ending(SECOND if event else ID):
        if event:
            value = site.operator(deferrable=True).execute_complete(context, event)
        else:
            value = site.operator(deferrable=True).resume_execution("__fail__", {"error": way}, context)
    assert value["reason"] == "SUCCEEDED"
    assert {
        tag for app in site.yarn.apps.values() for tag in app["applicationTags"].split(",") if tag.startswith("tfyg-")
    } == {"tfyg-0-1"}


def test_event_of_an_older_trigger_does_not_end_the_newer_try(site):
    """Airflow on SQLite gives a new trigger the number of a deleted one, whose event then reaches the newer try."""
    first, _ = deferral(site.operator(deferrable=True))
    cleared = airflow_setup.TaskInstance(try_number=2, clear_number=1)
    second, context = deferral(site.operator(deferrable=True), cleared)
    event = asyncio.run(first_event(first.trigger))
    assert event["application_id"] == ID and second.trigger.application_id == SECOND
    with pytest.raises(TaskDeferred) as again:
        site.operator(deferrable=True).execute_complete(context, event)
    assert again.value.trigger.application_id == SECOND and site.submissions() == 2
    site.end(SECOND)
    event = asyncio.run(first_event(again.value.trigger))
    assert site.operator(deferrable=True).execute_complete(context, event)["application_id"] == SECOND


def test_a_deferral_that_timed_out_after_the_end_gives_the_result(site):
    deferral(site.operator(deferrable=True))
    site.end(ID, metrics={"a": 1})
    value, _ = resume(site.operator(deferrable=True), "Trigger timeout")
    assert value["metrics"] == {"a": 1}


def test_a_kill_of_a_task_whose_deferral_timed_out_reaches_the_application(site):
    """YARN answers slowly, and the worker is shut down meanwhile."""
    _, context = deferral(site.operator(deferrable=True))
    operator = site.operator(deferrable=True)
    arrived, go = threading.Event(), threading.Event()

    def hold(method, path):
        if method == "GET" and path.endswith("/apps"):
            arrived.set()
            go.wait(60)

    site.yarn.faults.append(hold)
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(operator.resume_execution, "__fail__", {"error": "Trigger timeout"}, context)
        assert arrived.wait(60)
        operator.on_kill()
        killer = site.killer()
        go.set()
        assert killer == 1
        assert isinstance(task.exception(20), TfYarnInfrastructureError)


def test_a_deferral_that_timed_out_leaves_what_is_to_be_left(site):
    deferral(site.operator(deferrable=True))
    with pytest.raises(TfYarnJobFailed, match="the application continues"):
        resume(site.operator(deferrable=True, on_kill="leave"), "Trigger timeout")
    assert site.yarn.apps[ID]["state"] == "ACCEPTED"


def test_a_trigger_that_failed_is_replaced_by_the_worker(site):
    deferral(site.operator(deferrable=True))
    with site.ending():
        value, _ = resume(site.operator(deferrable=True), "Trigger failure")
    assert (value["reason"], value["application_id"], site.submissions()) == ("SUCCEEDED", ID, 1)


@pytest.mark.parametrize("at_once", [False, True])
def test_allocation_timeout_is_submitted_again_where_the_job_asks_for_it(site, monkeypatch, at_once):
    """It may have ended when the call that submits it returns."""
    ensure = Launcher.ensure

    def ended(launcher, *arguments):
        report = ensure(launcher, *arguments)
        if at_once:
            site.end(ID, Reason.ALLOCATION_TIMEOUT)
        return launcher.report(report.application_id)

    monkeypatch.setattr(Launcher, "ensure", ended)
    spec = {"tasks": {"worker": {"memory": 256}}, "command": "true", "restart": {"allocation_retries": 1}}
    operator = site.operator(spec=spec, task_command=None, cluster_requirement=None, task_memory=None)
    with nullcontext() if at_once else site.ending(looks=3, reason=Reason.ALLOCATION_TIMEOUT), site.ending(SECOND):
        value, ti, _ = run(operator)
    assert value["application_id"] == ti.xcoms["tf_yarn"]["application_id"] == SECOND


def test_what_yarn_could_not_launch_is_submitted_again(site, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.LAUNCH_PAUSE", 0.01)
    with site.not_launching(), site.ending(SECOND):
        value, _, _ = run(site.operator())
    assert (value["application_id"], value["reason"], site.submissions()) == (SECOND, "SUCCEEDED", 2)


def test_unlaunched_job_of_a_deferred_task_is_submitted_again(site, capsys):
    deferred, context = deferral(site.operator(deferrable=True))
    with site.not_launching():
        event = asyncio.run(first_event(deferred.trigger))
    with site.ending(SECOND, looks=12):
        value = site.operator(deferrable=True).execute_complete(context, event)
    assert f"{SECOND} FINISHED" in task_log(capsys), "the progress of the second application"
    assert (value["application_id"], value["reason"], site.submissions()) == (SECOND, "SUCCEEDED", 2)


def test_secret_with_a_control_character_is_masked_in_lines_of_progress(site, monkeypatch, capsys):
    monkeypatch.setattr(Lines, "changes", lambda *_: ["its login is hush\u200ehush"])
    monkeypatch.setattr(
        execution, "redact", lambda value: value.replace("hush\u200ehush", "***") if isinstance(value, str) else value
    )
    deferred, context = deferral(site.operator(deferrable=True))
    with site.not_launching():
        event = asyncio.run(first_event(deferred.trigger))
    with site.ending(SECOND, looks=12):
        site.operator(deferrable=True).execute_complete(context, event)
    log = task_log(capsys)
    assert "its login is ***" in log and "hush" not in log


def test_nothing_is_submitted_again_after_the_deadline(site):
    spec = {"tasks": {"worker": {"memory": 256}}, "command": "true", "restart": {"allocation_retries": 1}}
    operator = site.operator(
        spec=spec,
        task_command=None,
        cluster_requirement=None,
        task_memory=None,
        deferrable=True,
        execution_timeout=timedelta(seconds=1),
    )
    ti = airflow_setup.TaskInstance(start_date=datetime.now(timezone.utc) - timedelta(seconds=2))
    event = build_event(ID, report_of(Reason.ALLOCATION_TIMEOUT))
    with pytest.raises(TfYarnInfrastructureError, match="ALLOCATION_TIMEOUT"):
        operator.execute_complete(airflow_setup.context_of(ti), event)
    assert not site.yarn.apps and site.submissions() == 0


def test_task_does_not_defer_again_after_failed_triggers(site):
    first = site.operator(deferrable=True)
    deferral(first)
    second, ti = site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2)
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(
            second.resume_execution, "__fail__", {"error": "Trigger failure"}, airflow_setup.context_of(ti)
        )
        until(lambda: "tf_yarn" in ti.xcoms and second._execution._submitting is False)
        first.on_kill()  # of a worker that was cut off
        until(lambda: SECOND in site.yarn.apps)
        site.end(SECOND)
        assert task.result(60)["application_id"] == SECOND


def test_airflow_learns_the_id_of_the_application_that_trained(site):
    ti = airflow_setup.TaskInstance()
    _, context = deferral(site.operator(deferrable=True), ti)
    event = build_event(ID, replace(report_of(Reason.SUCCEEDED), application_id=SECOND))
    site.operator(deferrable=True).execute_complete(context, event)
    assert ti.xcoms["tf_yarn"]["application_id"] == SECOND
    assert ti.xcoms["tf_yarn_link_yarn_logs"].endswith(f"/application_{STAMP}_0002")


def test_retry_after_a_lost_node_waits_for_the_old_tasks(site, caplog):
    """YARN can't end the tasks of a node that it has lost: they train until their own deadline."""
    options = {"retries": 1, "heartbeat_timeout": 5}
    with site.ending(reason=Reason.NODE_LOST), pytest.raises(TfYarnInfrastructureError, match="NODE_LOST"):
        run(site.operator(**options), max_tries=1)
    site.yarn.apps[ID]["finishedTime"] = int(time.time() * 1000)
    caplog.set_level("INFO", "tf_yarn_ops")
    retry = Running(site.operator(**options), max_tries=1, try_number=2)
    until(lambda: f"tasks of '{ID}' may still run on nodes that YARN has lost" in caplog.text)
    assert SECOND not in site.yarn.apps
    site.yarn.apps[ID]["finishedTime"] -= 100_000
    until(lambda: site.submissions() == 2)
    site.end(SECOND)
    retry.join(60)
    assert (retry.is_alive(), retry.error, site.submissions()) == (False, None, 2)
