"""The sensor and the hook's methods, for applications that somebody else has submitted, on a fake ResourceManager."""

import asyncio

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
    TaskDeferred,
)

from support import airflow_setup
from support.airflow_task import ID, Running, first_event, report_of
from support.fake_yarn import STAMP
from support.forged import ENDS, end_forged
from support.waiting import until
from tf_yarn_ops import JobSpec
from tf_yarn_ops.airflow import TensorFlowYarnSensor, TfYarnJobFailed, YarnHook
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow
JOB = {"name": "elsewhere", "tasks": {"worker": {"instances": 1, "memory": 256}}, "command": "true"}


def sensor(**arguments):
    return TensorFlowYarnSensor(**{"task_id": "wait", "application_id": ID, "poke_interval": 0.05, **arguments})


def waited(site, deferrable, **arguments):
    """Run a sensor to its end, in the worker or by its trigger."""
    operator, context = (
        sensor(deferrable=deferrable, **arguments),
        airflow_setup.context_of(airflow_setup.TaskInstance()),
    )
    if not deferrable:
        return operator.execute(context)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(context)
    event = asyncio.run(first_event(deferred.value.trigger))
    return sensor(deferrable=True, **arguments).execute_complete(context, event)


@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "triggerer"])
def test_sensor_succeeds_with_the_report_of_a_foreign_submission(site, deferrable):
    YarnHook().submit(JOB)
    with site.ending(metrics={"accuracy": 0.9, "note": "a text"}):
        value = waited(site, deferrable)
    assert (value["application_id"], value["reason"]) == (ID, "SUCCEEDED")
    assert value["metrics"] == {"accuracy": 0.9, "note": "a text"}


def test_sensor_succeeds_when_yarn_forgets_the_application(site):
    YarnHook().submit(JOB)
    with pytest.raises(TaskDeferred) as deferred:
        sensor(deferrable=True).execute(airflow_setup.context_of(airflow_setup.TaskInstance()))
    site.end(ID, metrics={"accuracy": 0.9, "note": "a text"})
    event = asyncio.run(first_event(deferred.value.trigger))
    del site.yarn.apps[ID]
    value = sensor(deferrable=True).execute_complete(airflow_setup.context_of(airflow_setup.TaskInstance()), event)
    assert (value["reason"], value["metrics"]) == ("SUCCEEDED", None)


@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "triggerer"])
def test_a_sensor_waits_for_a_resourcemanager_that_recovers(site, deferrable):
    YarnHook().submit(JOB)
    looks = []

    def recover(method, path):
        """Know no application at the sensor's first looks."""
        if path.endswith(ID):
            looks.append(path)
            site.yarn.ha_state = "INITIALIZING" if len(looks) < 4 else "ACTIVE"
            return (404, {}, "") if len(looks) < 4 else None
        return None

    site.yarn.faults.append(recover)
    with site.ending(metrics={}):
        value = waited(site, deferrable)
    assert value["reason"] == "SUCCEEDED" and len(looks) >= 4


def test_rescheduled_sensor_survives_that_no_resourcemanager_is_active(site):
    YarnHook().submit(JOB)
    context = airflow_setup.context_of(airflow_setup.TaskInstance(get_first_reschedule_date=lambda context: None))
    site.yarn.ha_state = "INITIALIZING"
    with pytest.raises(AirflowRescheduleException):  # a process of its own looks each time
        sensor(mode="reschedule").execute(context)
    site.yarn.ha_state = "ACTIVE"
    site.end(ID)
    assert sensor(mode="reschedule").execute(context)["reason"] == "SUCCEEDED"
    assert context["ti"].xcoms["tf_yarn_link_yarn_application"] == f"{site.url}/cluster/app/{ID}"


@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "triggerer"])
@pytest.mark.parametrize(
    ("reason", "soft", "error"),
    [
        (Reason.TASK_FAILED, False, TfYarnJobFailed),
        (Reason.KILLED, False, AirflowFailException),
        (Reason.TASK_FAILED, True, AirflowSkipException),
    ],
)
def test_a_sensor_fails_as_the_application_does(site, deferrable, reason, soft, error):
    YarnHook().submit(JOB)
    site.end(ID, reason)
    with pytest.raises(error, match=reason.value):
        waited(site, deferrable, soft_fail=soft)


@pytest.mark.parametrize("how", ENDS)
def test_sensor_fails_at_a_forged_report(site, how):
    YarnHook().submit(JOB)
    end_forged(site.yarn, ID, how)
    with pytest.raises(AirflowException, match="KILLED" if how.startswith("killed") else "AM_FAILED"):
        waited(site, False)


def test_the_end_of_a_sensor_leaves_the_application_alone(site):
    YarnHook().submit(JOB)
    context = airflow_setup.context_of(airflow_setup.TaskInstance())
    with pytest.raises(TaskDeferred) as deferred:
        sensor(deferrable=True, timeout=60).execute(context)
    assert deferred.value.timeout.total_seconds() == 60
    asyncio.run(deferred.value.trigger.on_kill())
    assert site.yarn.apps[ID]["state"] == "ACCEPTED"
    assert context["ti"].xcoms["tf_yarn_link_yarn_application"] == f"{site.url}/cluster/app/{ID}"


@pytest.mark.parametrize("spec", [JOB, JobSpec.from_dict(JOB), "job.yaml"], ids=["mapping", "JobSpec", "file"])
def test_the_hook_submits_reports_and_kills(site, spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JobSpec.from_dict(JOB).to_yaml())
    hook = YarnHook()
    assert hook.submit(spec) == ID and site.yarn.apps[ID]["name"] == "elsewhere"
    assert (hook.report(ID).state, hook.report(ID).reason) == ("ACCEPTED", None)
    report = hook.kill(ID, "no longer needed")
    assert report.reason is Reason.KILLED and "no longer needed" in site.yarn.apps[ID]["diagnostics"]


def test_the_texts_of_a_spec_file_are_rendered_and_its_path_too(site, tmp_path):
    text = JobSpec.from_dict({**JOB, "name": "digits {{ ds }}"}).to_yaml()
    (tmp_path / "job-2026-11-21.yaml").write_text(text)
    operator = site.operator(
        spec=f"{tmp_path}/job-{{{{ ds }}}}.yaml", task_command=None, cluster_requirement=None, task_memory=None
    )
    context = airflow_setup.context_of(airflow_setup.TaskInstance())
    operator.render_template_fields(context)
    with site.ending():
        operator.execute(context)
    assert site.yarn.apps[ID]["name"] == "digits 2026-11-21"


def test_links_lead_to_pages_that_are_there_after_the_end(site):
    site.yarn.conf["yarn.log-aggregation-enable"] = "false"
    failed, task = report_of(), Running(site.operator(tensorboard=True, output_path="hdfs:///models"))
    operator, ti = task.operator, task.ti
    until(lambda: "tf_yarn_link_training" in ti.xcoms and ID in site.yarn.apps)
    assert {link.name: link.get_link(operator, ti_key=ti) for link in operator.operator_extra_links} == {
        "Training": f"{site.url}/proxy/{ID}/pages/ytf/",
        "YARN application": f"{site.url}/cluster/app/{ID}",
        "YARN logs": f"{site.url}/cluster/appattempt/appattempt_{STAMP}_0001_000001",
        "TensorBoard": f"{site.url}/proxy/{ID}/pages/tensorboard/",
    }
    tasks = tuple(type(item)(**{**vars(item), "log_url": f"http://node:8042/{item.task}"}) for item in failed.tasks)
    site.end(ID, Reason.TASK_FAILED, tasks=tasks, first_failure=failed.first_failure)
    task.join(60)
    assert isinstance(task.error, TfYarnJobFailed)
    page = f"{site.url}/cluster/app/{ID}"
    assert {link.name: link.get_link(operator, ti_key=ti) for link in operator.operator_extra_links} == {
        "Training": page,
        "YARN application": page,
        "YARN logs": "http://node:8042/worker:1",
        "TensorBoard": "",
    }
    assert {key: ti.xcoms[key] for key in operator.tf_yarn_links} == operator.tf_yarn_links


def test_sensor_refuses_arguments_of_other_types():
    with pytest.raises(
        ValueError,
        match=r"^wait: application_id: 3 is not a text; tf_yarn_conn_id: 4 is not a text; deferrable: 'yes' is "
        r"neither True nor False; log_tail_lines: '9' is not a whole number$",
    ):
        sensor(application_id=3, tf_yarn_conn_id=4, deferrable="yes", log_tail_lines="9")
