"""The operator, from its arguments to the end of the task, on a ResourceManager on the wire."""

import asyncio
import inspect
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from airflow.sdk import DAG, Asset
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRuntimeError,
    AirflowSkipException,
    AirflowTaskTimeout,
    ErrorType,
    TaskDeferred,
)
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.sdk.execution_time.timeout import timeout

from support import airflow_setup
from support.fake_yarn import STAMP, FakeYarn, application, serving, until
from tf_yarn_ops.airflow import TensorFlowYarnOperator, TfYarnInfrastructureError, TfYarnJobFailed, TfYarnRetryPolicy
from tf_yarn_ops.airflow.job import job_of
from tf_yarn_ops.airflow.operator import OPTIONS, RENAMED
from tf_yarn_ops.airflow.outcome import exception_of, lines_of, to_xcom
from tf_yarn_ops.airflow.task_instance import deployment_id, identity_of
from tf_yarn_ops.hadoop.cluster import current_user
from tf_yarn_ops.job.options import OPERATOR, options_of
from tf_yarn_ops.job.request import NAMES, build_job
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport, compose_diagnostics, parse_diagnostics

pytestmark = pytest.mark.slow

ID = f"application_{STAMP}_0001"
SECOND = f"application_{STAMP}_0002"
USER = current_user({})
JOB = {"task_command": "true", "cluster_requirement": "worker:2", "task_memory": 256}


class Site:
    """A fake YARN with a real file system, a connection to it, and operators for it."""

    def __init__(self, yarn, url):
        self.yarn, self.url = yarn, url

    def operator(self, **arguments):
        return TensorFlowYarnOperator(**{"task_id": "train", "poll_interval": 0.05, **JOB, **arguments})

    def end(self, name, reason=Reason.SUCCEEDED, **values):
        """End an application as its coordinator would."""
        final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
        report = JobReport(name, reason=reason, message=values.pop("message", "it ended"), **values)
        self.yarn.apps[name].update(state="FINISHED", finalStatus=final, diagnostics=compose_diagnostics(report),
                                    launchTime=STAMP + 1000, finishedTime=STAMP + 5000)

    @contextmanager
    def ending(self, name=ID, **values):
        """End an application as soon as there is one."""
        thread = threading.Thread(target=lambda: (until(lambda: name in self.yarn.apps), self.end(name, **values)))
        thread.start()
        yield
        thread.join()

    @contextmanager
    def not_launching(self):
        """Say of the first application that its master could not be launched."""
        words = "failed 1 times due to Error launching appattempt_1_0001_000001. Got exception: java.io.EOFException"
        failed = {"state": "FAILED", "finalStatus": "FAILED", "diagnostics": words}
        thread = threading.Thread(target=lambda: (until(lambda: ID in self.yarn.apps), self.yarn.apps[ID].update(failed)))
        thread.start()
        yield
        thread.join()

    def killer(self):
        """Give the attempt that has killed the first application, as YARN's diagnostics tell it."""
        return parse_diagnostics(self.yarn.apps[ID]["diagnostics"]).killed_by_attempt

    def submissions(self):
        return self.yarn.count("POST", "/ws/v1/cluster/apps") - self.yarn.count("POST", "/ws/v1/cluster/apps/new")


@pytest.fixture
def site(tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    yarn = FakeYarn()
    yarn.conf = {"fs.defaultFS": "viewfs://mini", "yarn.application.classpath": "/etc/hadoop/conf",
                 "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path / 'files'}"}
    with serving(yarn) as url:
        connection = {"conn_type": "tf_yarn", "host": url, "extra": {"unreachable_timeout": 1}}
        monkeypatch.setenv("AIRFLOW_CONN_TF_YARN_DEFAULT", json.dumps(connection))
        monkeypatch.setenv("AIRFLOW__TF_YARN__DEPLOYMENT_ID", "test")
        yield Site(yarn, url)


def run(operator, **values):
    """Execute an operator; gives its value, its task instance and its context."""
    ti = airflow_setup.TaskInstance(**values)
    context = airflow_setup.context_of(ti)
    return operator.execute(context), ti, context


def deferral(operator, ti=None):
    context = airflow_setup.context_of(ti or airflow_setup.TaskInstance())
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(context)
    return deferred.value, context


def task_log(capsys):
    """Give the messages that the operator and the trigger have logged."""
    logged = re.findall(r"\[(?:info|warning|error) *\] (.*?) *\[[\w.]*tf_yarn_ops\.airflow\.[\w.]+\]", capsys.readouterr().out)
    return [line for line in logged if "outside of the Task Runner" not in line]


def report_of(reason=Reason.TASK_FAILED, **values):
    task = TaskReport("worker:1", "failed", exit_code=3, host="node1", log_tail="one\ntwo\nthree\n")
    return JobReport(ID, **{"reason": reason, "message": "it ended", "tasks": (TaskReport("worker:0"), task),
                            "first_failure": "worker:1"} | values)


# -- arguments -------------------------------------------------------------------------------------------------

def test_the_signature_has_every_option_of_the_table_and_no_default_of_its_own():
    given = inspect.signature(TensorFlowYarnOperator.__init__).parameters
    table = {RENAMED.get(name, name) for name in options_of(OPERATOR)}
    assert table <= set(given) and set(NAMES) == set(options_of(OPERATOR, submission=False))
    assert {name: given[name].default for name in OPTIONS} == dict.fromkeys(OPTIONS)
    assert len(OPTIONS) == len(NAMES) == len(set(OPTIONS))
    assert set(given) - table == {
        "self", "kwargs", "tf_yarn_conn_id", "deferrable", "poll_interval", "on_kill", "wait_for_completion",
        "model_asset", "skip_on_exit_code", "log_tail_lines", "yarn_lifetime"}


def test_every_option_reaches_the_request_by_its_own_name():
    values = {name: f"value of {name}" for name in OPTIONS} | {"success": "chief", "restart": "task", "tensorboard": True}
    operator = TensorFlowYarnOperator(task_id="train", **values)
    back = {here: name for name, here in RENAMED.items()}
    assert operator.options() == {back.get(name, name): value for name, value in values.items()}


def test_template_fields_are_assigned_as_they_were_given_and_only_those_are_shown():
    env = {"DAY": "{{ ds }}"}
    operator = TensorFlowYarnOperator(task_id="train", env=env, task_command="{{ ds }}", cluster_requirement="worker:1")
    assert operator.env is env
    assert set(operator.template_fields) == {"env", "task_command", "cluster_requirement"}
    assert set(TensorFlowYarnOperator.template_fields) == {"spec", *OPTIONS}
    assert TensorFlowYarnOperator.template_ext == ()


def test_every_text_within_is_rendered():
    spec = {"tasks": {"worker": {"instances": 1, "env": {"DAY": "{{ ds }}"}}}, "command": "run.sh", "tags": ["d{{ ds }}"]}
    operator = TensorFlowYarnOperator(task_id="train", spec=spec, output_path="s3://models/{{ ds }}", dag=DAG("d"))
    operator.render_template_fields({"ds": "2026-11-21"})
    assert operator.spec == {"tasks": {"worker": {"instances": 1, "env": {"DAY": "2026-11-21"}}},
                             "command": "run.sh", "tags": ["d2026-11-21"]}  # a name like a file's is no file
    assert operator.options() == {"output": "s3://models/2026-11-21"}
    assert spec["tags"] == ["d{{ ds }}"]


@pytest.mark.parametrize(("arguments", "message"), [
    ({}, "there is no job: give spec, or cluster_requirement and task_command"),
    ({"cluster_requirement": "worker:1"}, "task_command: missing; give it, or command with one command per task type"),
    ({**JOB, "spec": {}}, "spec and task_command: both say what the job runs; give only one of them"),
    ({**JOB, "task_memroy": 1}, "task_memroy: unknown option (did you mean 'task_memory'?)"),
    ({**JOB, "output": "x"}, "output: Airflow uses this name itself; here the option is called output_path"),
    ({**JOB, "on_kill": "leav"}, "on_kill: 'leav' is not one of kill, leave (did you mean 'leave'?)"),
    ({**JOB, "restart": "always"}, "restart: 'always' is not one of never, task, cluster"),
    ({**JOB, "submit_with": "java"}, "submit_with: 'java' is not one of auto, rest, skein"),
    ({**JOB, "poll_interval": 0}, "poll_interval: 0 is not a number of seconds above 0"),
    ({**JOB, "log_tail_lines": "many"}, "log_tail_lines: 'many' is not a whole number"),
    ({**JOB, "yarn_lifetime": 0}, "yarn_lifetime: 0 is not above 0; None leaves the job's own deadlines"),
    ({**JOB, "yarn_lifetime": timedelta()}, "yarn_lifetime: datetime.timedelta(0) is not above 0; None leaves the job's own deadlines"),
    ({**JOB, "yarn_lifetime": "long"}, "yarn_lifetime: 'long' is not 'auto', a number of seconds, a timedelta or None"),
    ({**JOB, "wait_for_completion": False, "model_asset": "s3://models/x"},
     "model_asset: a task with wait_for_completion=False ends before the model exists"),
    ({**JOB, "skip_on_exit_code": "99"}, "skip_on_exit_code: '99' is neither an exit code nor a collection of exit codes"),
])
def test_what_is_wrong_in_the_file_is_said_when_it_is_parsed(arguments, message):
    with pytest.raises(ValueError, match=f"^train: {re.escape(message)}$"):
        TensorFlowYarnOperator(task_id="train", **arguments)


def test_all_faults_of_the_file_come_together():
    with pytest.raises(ValueError, match=r"^train: tsk: unknown option.*; on_kill: 'x' is not.*; poll_interval: -1 is"):
        TensorFlowYarnOperator(task_id="train", **JOB, tsk=1, on_kill="x", poll_interval=-1)


def test_a_template_may_stand_where_a_choice_is():
    assert TensorFlowYarnOperator(task_id="train", **JOB, restart="{{ params.restart }}").restart == "{{ params.restart }}"


def test_importing_the_operator_loads_airflow_and_the_table_of_options_only():
    script = ("import sys; from airflow.sdk import Asset, BaseOperator, BaseOperatorLink; import airflow.sdk.configuration, "
              "airflow.sdk.exceptions; before = set(sys.modules); from tf_yarn_ops.airflow import TensorFlowYarnOperator; "
              "print(*sorted(name for name in sys.modules if name.split('.')[0] not in sys.stdlib_module_names "
              "and (name not in before or name.startswith(('tf_yarn_ops', 'skein', 'hdfs')))))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    light = ("errors", "job", "job.options", "runtime", "runtime.common", "runtime.common.reasons",
             "airflow", "airflow.links", "airflow.operator", "airflow.provider")
    assert set(done.stdout.split()) == {"tf_yarn_ops", *(f"tf_yarn_ops.{name}" for name in light)}


# -- the job ---------------------------------------------------------------------------------------------------

def test_faults_of_the_request_end_the_task_for_good_and_are_all_named(site):
    operator = site.operator(task_memory="much", priority=-1, environment="conda")
    with pytest.raises(AirflowFailException) as failed:
        run(operator)
    for option in ("task_memory", "priority", "environment"):
        assert option in str(failed.value)
    assert site.submissions() == 0


def test_a_spec_may_be_a_mapping_a_value_or_a_file(tmp_path):
    document = {"tasks": {"worker": {"memory": 512}}, "command": "true", "queue": "low"}
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(document))
    job = JobSpec.from_dict(document)
    assert job_of({}, document, None, None) == job_of({}, job, None, None) == job_of({}, str(path), None, None) == job
    assert job_of({"queue": "default"}, document, None, None).queue == "default"


@pytest.mark.parametrize(("lifetime", "timeout", "total", "queue"), [
    ("auto", None, 604800, 86400), ("auto", timedelta(hours=1), 3900, 3900), (None, timedelta(hours=1), 604800, 86400),
    (7200, None, 7200, 7200), (timedelta(days=30), None, 604800, 86400),
])
def test_the_cluster_ends_what_everybody_has_forgotten(lifetime, timeout, total, queue):
    deadlines = job_of(JOB, None, lifetime, timeout).deadlines
    assert (deadlines.total, deadlines.queue) == (total, queue)
    assert job_of(JOB, None, None, None) == build_job(JOB)


def test_the_lifetime_follows_the_timeout_only_of_a_task_that_waits_and_may_kill(site):
    limits = {"execution_timeout": timedelta(hours=1), "deferrable": True, "queue_timeout": 1000}
    waiting, _ = deferral(site.operator(**limits))
    leaving, _ = deferral(site.operator(**limits, on_kill="leave"), airflow_setup.TaskInstance(task_id="b"))
    run(site.operator(**limits, wait_for_completion=False), task_id="c")
    ids = (ID, SECOND, f"application_{STAMP}_0003")
    assert (waiting.trigger.application_id, leaving.trigger.application_id) == ids[:2]
    ends = [datetime.strptime(site.yarn.apps[name]["lifetime"]["expiryTime"], "%Y-%m-%dT%H:%M:%S.000%z").timestamp()
            for name in ids]
    assert [round(end - STAMP / 1000) for end in ends] == [1000 + 3900 + 300, 1000 + 604800 + 300, 1000 + 604800 + 300]


def test_the_application_is_named_like_its_task(site):
    run(site.operator(wait_for_completion=False))
    run(site.operator(wait_for_completion=False), task_id="group.search", map_index=3)
    run(site.operator(wait_for_completion=False, name="mine"), task_id="c")
    spec = {"tasks": {"worker": {"memory": 256}}, "command": "true", "name": "of the spec"}
    run(site.operator(wait_for_completion=False, spec=spec, task_command=None, cluster_requirement=None), task_id="d")
    assert [app["name"] for app in site.yarn.apps.values()] == [
        "daily.train", "daily.group.search[3]", "mine", "of the spec"]


@pytest.mark.parametrize(("value", "switched"), [("True", True), ("False", False), (" yes", True), (True, True), (False, False)])
def test_a_rendered_switch_is_a_switch(value, switched):
    assert TensorFlowYarnOperator(task_id="train", **JOB, tensorboard=value).options()["tensorboard"] is switched


def test_identity_is_the_task_generation_the_clears_attempt_the_tries():
    first = identity_of("here", airflow_setup.TaskInstance())
    retry = identity_of("here", airflow_setup.TaskInstance(try_number=2))
    cleared = identity_of("here", airflow_setup.TaskInstance(try_number=2, max_tries=1))
    assert first.hash == retry.hash == cleared.hash
    assert [(i.generation, i.attempt) for i in (first, retry, cleared)] == [(0, 1), (0, 2), (1, 2)]
    others = [identity_of("there", airflow_setup.TaskInstance())]
    for name, value in (("dag_id", "x"), ("run_id", "x"), ("task_id", "x"), ("map_index", 0)):
        others.append(identity_of("here", airflow_setup.TaskInstance(**{name: value})))
    assert len({first.hash, *(other.hash for other in others)}) == 6


def test_the_deployment_is_its_id_else_its_address_and_without_either_there_is_a_warning(monkeypatch, caplog):
    assert deployment_id() == "http://localhost:8080" and "deployment_id" in caplog.text
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/")
    assert deployment_id() == "https://airflow.example.com"
    monkeypatch.setenv("AIRFLOW__TF_YARN__DEPLOYMENT_ID", "prod")
    assert deployment_id() == "prod"


# -- success ---------------------------------------------------------------------------------------------------

def test_a_synchronous_task_gives_the_report_and_its_links_are_there_before_anything_is_staged(site, tmp_path):
    staged = {}
    operator = site.operator(name="digits", tensorboard=True, output_path="hdfs:///models/1")
    ti = airflow_setup.TaskInstance(on_push=lambda key: staged.setdefault(key, list((tmp_path / "files").rglob("application_*"))))
    with site.ending(metrics={"accuracy": 0.9}, output_path="hdfs:///models/1"):
        value = operator.execute(airflow_setup.context_of(ti))
    assert (value["reason"], value["metrics"], value["application_id"]) == ("SUCCEEDED", {"accuracy": 0.9}, ID)
    assert value == ti.xcoms["tf_yarn_status"] == json.loads(json.dumps(value))
    assert ti.xcoms["tf_yarn"] == {
        "application_id": ID, "tracking_url": f"{site.url}/proxy/{ID}/", "name": "digits", "queue": "default", "user": USER,
        "resourcemanager": site.url, "generation": 0, "attempt": 1}
    links = {link.name: link.get_link(operator, ti_key=ti) for link in operator.operator_extra_links}
    assert links == {"YARN application": f"{site.url}/cluster/app/{ID}",
                     "YARN logs": f"{site.url}/cluster/appattempt/appattempt_{STAMP}_0001_000001",
                     "TensorBoard": f"{site.url}/proxy/{ID}/pages/tensorboard/"}
    assert links == {link.name: ti.xcoms[link.xcom_key] for link in operator.operator_extra_links}
    first = [key for key in staged if key != "tf_yarn_status"]
    assert len(first) == 4 and not any(staged[key] for key in first)


def test_the_log_names_the_application_and_says_each_state_once(site, capsys):
    task = Running(site.operator())
    def looks():
        return sum(str(parameters.get("applicationTags")).startswith("tfyd-") for _, _, parameters, *_ in site.yarn.requests)

    until(lambda: ID in site.yarn.apps)
    for state in ("ACCEPTED", "RUNNING"):
        site.yarn.apps[ID].update(state=state, trackingUrl=f"{site.url}/proxy/{ID}/")
        seen = looks()
        until(lambda seen=seen: looks() > seen + 2)
    site.end(ID)
    task.join(20)
    assert task_log(capsys) == [
        f"YARN application {ID}", f"tracking URL {site.url}/proxy/{ID}/", f"{ID} ACCEPTED in queue default",
        f"{ID} RUNNING, {site.url}/proxy/{ID}/", f"{ID} FINISHED", f"{ID} took 5.0 s, 1.0 s of it in the queue",
        f"{ID} SUCCEEDED: it ended"]


def test_a_deferred_task_defers_once_and_its_trigger_knows_everything(site):
    ti = airflow_setup.TaskInstance()
    operator = site.operator(deferrable=True, execution_timeout=timedelta(hours=1), env={"MY_TOKEN": "geheim"},
                             queue_timeout=60)
    deferred, context = deferral(operator, ti)
    classpath, kwargs = deferred.trigger.serialize()
    assert deferred.method_name == "execute_complete" and not deferred.kwargs
    assert classpath == "tf_yarn_ops.airflow.trigger.TensorFlowYarnTrigger"
    assert (kwargs["application_id"], kwargs["queue_timeout"], kwargs["on_kill"]) == (ID, 60, "kill")
    assert kwargs["deadline"] == ti.start_date.timestamp() + 3600
    assert 3600 < deferred.timeout.total_seconds() < 3630
    assert kwargs["cluster"]["resourcemanagers"] == [site.url]
    text = json.dumps(kwargs) + json.dumps(ti.xcoms)
    assert "geheim" not in text and "MY_TOKEN" not in text and len(json.dumps(kwargs)) < 4096
    asked = len(site.yarn.requests)
    event = {"application_id": ID, "report": to_xcom(report_of(Reason.SUCCEEDED, metrics={"loss": 1.0}))}
    assert site.operator(deferrable=True).execute_complete(context, event)["metrics"] == {"loss": 1.0}
    assert len(site.yarn.requests) == asked


def test_without_an_execution_timeout_nothing_ends_the_deferral(site):
    deferred, _ = deferral(site.operator(deferrable=True))
    assert deferred.timeout is None and deferred.trigger.deadline is None


def test_a_task_that_does_not_wait_ends_after_the_submission(site):
    operator = site.operator(wait_for_completion=False)
    value, ti, _ = run(operator)
    operator.on_kill()  # the worker is shut down while it tells Airflow of the success
    assert (value["application_id"], value["reason"], value["state"]) == (ID, None, "ACCEPTED")
    assert ti.xcoms["tf_yarn_status"] == value and not site.yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state")
    assert ti.xcoms["tf_yarn"]["application_id"] == ID and site.yarn.apps[ID]["state"] == "ACCEPTED"


def test_a_later_attempt_attaches_to_what_runs_and_takes_the_result_of_what_ended_well(site):
    deferral(site.operator(deferrable=True))
    again, _ = deferral(site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2))
    assert again.trigger.application_id == ID and site.submissions() == 1
    site.end(ID, metrics={"a": 1})
    value, ti, _ = run(site.operator(deferrable=True), try_number=3)
    assert value["metrics"] == {"a": 1} and ti.xcoms["tf_yarn"]["application_id"] == ID and site.submissions() == 1


def test_a_clear_trains_again_and_ends_the_older_generation(site):
    deferral(site.operator(deferrable=True))
    cleared, _ = deferral(site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2, max_tries=1))
    assert cleared.trigger.application_id == SECOND
    assert site.yarn.apps[ID]["state"] == "KILLED"
    with pytest.raises(AirflowFailException, match="SUPERSEDED"):
        run(site.operator(deferrable=True))  # a straggler of the older generation
    assert site.yarn.apps[SECOND]["state"] == "ACCEPTED"


def test_a_success_updates_the_asset_with_path_metrics_and_id(site):
    asset = Asset("s3://models/digits")
    operator = site.operator(model_asset="s3://models/digits", outlets=[Asset("s3://other")], output_path="s3://models/digits/7")
    assert operator.outlets == [Asset("s3://other"), asset]
    with site.ending(metrics={"accuracy": 0.9}):
        _, _, context = run(operator)
    assert context["outlet_events"][asset].extra == {
        "model_path": "s3://models/digits/7", "metrics": {"accuracy": 0.9}, "application_id": ID}


# -- failure ---------------------------------------------------------------------------------------------------

ENDINGS = {
    Reason.SUCCEEDED: type(None), Reason.TASK_FAILED: TfYarnJobFailed, Reason.SPEC_INVALID: AirflowFailException,
    Reason.SUBMISSION_REJECTED: AirflowFailException, Reason.RESOURCES_IMPOSSIBLE: AirflowFailException,
    Reason.CLUSTER_UNREACHABLE: TfYarnInfrastructureError, Reason.QUEUE_TIMEOUT: TfYarnInfrastructureError,
    Reason.ALLOCATION_TIMEOUT: TfYarnInfrastructureError, Reason.REGISTRATION_TIMEOUT: TfYarnInfrastructureError,
    Reason.HEARTBEAT_LOST: TfYarnInfrastructureError, Reason.CONTAINER_LOST: TfYarnInfrastructureError,
    Reason.PREEMPTED: TfYarnInfrastructureError, Reason.NODE_LOST: TfYarnInfrastructureError,
    Reason.AM_FAILED: TfYarnInfrastructureError, Reason.OUT_OF_MEMORY: TfYarnJobFailed,
    Reason.EXECUTION_TIMEOUT: TfYarnJobFailed, Reason.TOTAL_TIMEOUT: TfYarnJobFailed, Reason.KILLED: AirflowFailException,
    Reason.SUPERSEDED: AirflowFailException, Reason.LOST: TfYarnJobFailed,
}  # fmt: skip
RETRIED = {TfYarnInfrastructureError: RetryAction.RETRY, TfYarnJobFailed: RetryAction.FAIL}


@pytest.mark.parametrize("reason", list(Reason), ids=str)
def test_each_reason_ends_the_task_in_its_own_way(reason):
    failure = exception_of(report_of(reason))
    assert type(failure) is ENDINGS[reason]
    if failure is not None:
        assert f"{ID} {reason.value}: it ended" in str(failure) and reason.hint in str(failure)
    if isinstance(failure, TfYarnJobFailed | TfYarnInfrastructureError):
        assert (failure.reason, failure.application_id) == (reason.value, ID)
        assert TfYarnRetryPolicy().evaluate(failure, 1, 3).action is RETRIED[type(failure)]


def test_the_retry_policy_leaves_other_faults_to_airflow_and_survives_its_own_words():
    policy = TfYarnRetryPolicy.deserialize(json.loads(json.dumps(TfYarnRetryPolicy(timedelta(minutes=2)).serialize())))
    assert policy.evaluate(KeyError("x"), 1, 3).action is RetryAction.DEFAULT
    assert policy.evaluate(AirflowTaskTimeout("x"), 1, 3).action is RetryAction.FAIL  # as EXECUTION_TIMEOUT
    assert policy.evaluate(exception_of(report_of(Reason.NODE_LOST)), 1, 3).retry_delay == timedelta(minutes=2)


def test_the_kill_of_a_worker_that_was_shut_down_is_retryable_for_its_own_attempt_only():
    report = JobReport(ID, reason=Reason.KILLED, message="killed", killed_by_attempt=2)
    assert isinstance(exception_of(report, attempt=2), TfYarnInfrastructureError)
    assert isinstance(exception_of(report, attempt=3), AirflowFailException)


def test_the_log_ends_with_the_failed_tasks_last_lines_and_the_reason(site, capsys):
    failed = report_of()
    with (site.ending(reason=Reason.TASK_FAILED, tasks=failed.tasks, first_failure="worker:1"),
          pytest.raises(TfYarnJobFailed)):
        run(site.operator(log_tail_lines=2))
    lines = task_log(capsys)
    assert lines[-6:-1] == ["--- last lines of worker:1 on node1", "two", "three", "---", "worker:1 failed first: exit 3"]
    assert lines[-1].startswith(f"{ID} TASK_FAILED: it ended. Read the failed task's log")
    assert "two" not in list(lines_of(failed, time.time(), 0))


def test_the_report_of_a_failure_is_in_xcom(site):
    ti = airflow_setup.TaskInstance()
    with site.ending(reason=Reason.NODE_LOST), pytest.raises(TfYarnInfrastructureError):
        site.operator().execute(airflow_setup.context_of(ti))
    assert (ti.xcoms["tf_yarn_status"]["reason"], ti.xcoms["tf_yarn_status"]["retryable"]) == ("NODE_LOST", True)


@pytest.mark.parametrize(("codes", "kind"), [((), TfYarnJobFailed), (None, TfYarnJobFailed), (3, AirflowSkipException), ([4, 3], AirflowSkipException),
                                             ((4,), TfYarnJobFailed)])
def test_an_exit_code_may_mean_skipped(site, codes, kind):
    with pytest.raises(kind):
        site.operator(skip_on_exit_code=codes).execute_complete(
            airflow_setup.context_of(airflow_setup.TaskInstance()), {"application_id": ID, "report": to_xcom(report_of())})


def test_only_the_programs_own_end_is_skipped():
    assert isinstance(exception_of(report_of(Reason.OUT_OF_MEMORY), [3]), TfYarnJobFailed)


def test_without_a_cluster_the_task_is_retryable(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_TF_YARN_DEFAULT", json.dumps({"conn_type": "tf_yarn", "host": "127.0.0.1", "port": 1}))
    ti = airflow_setup.TaskInstance()
    with pytest.raises(TfYarnInfrastructureError, match="CLUSTER_UNREACHABLE"):
        TensorFlowYarnOperator(task_id="train", **JOB).execute(airflow_setup.context_of(ti))
    assert ti.xcoms["tf_yarn_status"]["reason"] == "CLUSTER_UNREACHABLE"


def test_a_queue_that_does_not_exist_ends_the_task_for_good(site):
    with pytest.raises(AirflowFailException, match="SUBMISSION_REJECTED"):
        run(site.operator(yarn_queue="nowhere"))


@pytest.mark.parametrize(("policy", "tries", "state"), [("kill", 0, "KILLED"), ("kill", 1, "ACCEPTED"), ("leave", 0, "ACCEPTED")])
def test_a_submission_that_failed_for_good_leaves_nothing(site, policy, tries, state):
    """YARN has taken the application, and does not answer any more while the task waits for that."""
    def away(method, path):
        return (503, {}, "away") if site.submissions() and method in ("GET", "POST") else None

    def take(method, path):
        if method == "POST" and path.endswith("/apps"):
            site.yarn.apps.setdefault(ID, application(1, "ACCEPTED", user=USER))

    site.yarn.faults.extend((take, away))
    ti = airflow_setup.TaskInstance(max_tries=tries)
    with pytest.raises(TfYarnInfrastructureError, match="CLUSTER_UNREACHABLE"):
        site.operator(on_kill=policy).execute(airflow_setup.context_of(ti))
    assert site.yarn.apps[ID]["state"] == state
    assert ("The submission failed" in site.yarn.apps[ID]["diagnostics"]) is (state == "KILLED")


def test_a_report_of_any_size_fits_into_16_kilobytes_of_the_database():
    tasks = tuple(TaskReport(f"worker:{n}", "failed", exit_code=1, log_tail="\u2028é" * 4000) for n in range(300))
    huge = report_of(tasks=tasks, message="m" * 20_000, first_failure="worker:7", metrics={f"m{n}": "x" * 50 for n in range(100)})
    document = to_xcom(huge)
    assert len(json.dumps(document)) <= 16 * 1024
    assert document["first_failure"] == "worker:7" and [t for t in document["tasks"] if t["task"] == "worker:7"]
    assert JobReport.from_dict(document).reason is Reason.TASK_FAILED


def test_metrics_that_are_no_numbers_of_json_become_texts():
    values = {"loss": float("nan"), "best": float("-inf"), "deep": [{"x": float("inf")}], "fine": 1.5}
    metrics = to_xcom(report_of(Reason.SUCCEEDED, metrics=values))["metrics"]
    assert json.loads(json.dumps(metrics, allow_nan=False)) == {
        "loss": "nan", "best": "-inf", "deep": [{"x": "inf"}], "fine": 1.5}


# -- killed ----------------------------------------------------------------------------------------------------

class Running(threading.Thread):
    """A task in a thread, where a test can call its ``on_kill`` as the signal handler does."""

    def __init__(self, operator, **values):
        super().__init__(daemon=True)
        self.operator, self.ti, self.error = operator, airflow_setup.TaskInstance(**values), None
        self.start()

    def run(self):
        try:
            self.operator.execute(airflow_setup.context_of(self.ti))
        except BaseException as error:
            self.error = error


def test_a_killed_worker_kills_its_application_at_once_and_the_task_is_retryable(site):
    task = Running(site.operator())
    until(lambda: site.yarn.apps.get(ID) and "tf_yarn" in task.ti.xcoms and task.operator._execution._submitting is False)
    began = time.monotonic()
    task.operator.on_kill()
    assert time.monotonic() - began < 5
    assert site.yarn.apps[ID]["state"] == "KILLED"
    assert site.killer() == 1
    task.join(10)
    assert isinstance(task.error, TfYarnInfrastructureError) and "was killed" in str(task.error)
    assert "tf_yarn_status" not in task.ti.xcoms  # nobody listens any more


def test_airflows_alarm_ends_the_wait_and_the_kill_follows(site):
    """For ``execution_timeout`` Airflow raises in the main thread, wherever it is, and calls ``on_kill`` then."""
    operator, context = site.operator(), airflow_setup.context_of(airflow_setup.TaskInstance())

    def ring():
        until(lambda: site.yarn.apps.get(ID) and operator._execution._submitting is False)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    bell = threading.Thread(target=ring)
    bell.start()
    with pytest.raises(AirflowTaskTimeout), timeout(60):
        operator.execute(context)
    bell.join()
    operator.on_kill()
    assert site.yarn.apps[ID]["state"] == "KILLED"
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "tf-yarn-wait"])


def test_an_application_that_is_to_be_left_is_left(site):
    task = Running(site.operator(on_kill="leave"))
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    task.operator.on_kill()
    task.join(10)
    assert isinstance(task.error, TfYarnInfrastructureError) and "was left alone" in str(task.error)
    assert site.yarn.apps[ID]["state"] == "ACCEPTED"


def test_killing_does_not_wait_for_a_resourcemanager_that_hangs(site):
    task = Running(site.operator())
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    site.yarn.faults.append(lambda method, path: time.sleep(8) if method == "PUT" else None)
    began = time.monotonic()
    task.operator.on_kill()
    assert time.monotonic() - began < 5
    task.join(10)
    assert isinstance(task.error, TfYarnInfrastructureError)


def test_a_kill_during_the_submission_leaves_nothing(site, tmp_path):
    operator = site.operator()
    arrived, go = threading.Event(), threading.Event()

    def hold(method, path):
        if method == "POST" and path.endswith("/apps"):
            arrived.set()
            go.wait(20)

    site.yarn.faults.append(hold)
    task = Running(operator)
    assert arrived.wait(20)
    began = time.monotonic()
    operator.on_kill()
    assert time.monotonic() - began < 5
    go.set()
    task.join(20)
    assert isinstance(task.error, TfYarnInfrastructureError)
    assert {app["state"] for app in site.yarn.apps.values()} <= {"KILLED"}
    assert not list((tmp_path / "files").rglob("application_*"))


def test_a_kill_before_there_is_anything_to_kill_submits_nothing(site):
    operator = site.operator()
    arrived, go = threading.Event(), threading.Event()

    def hold(method, path):
        if path == "/conf":
            arrived.set()
            go.wait(20)

    site.yarn.faults.append(hold)
    task = Running(operator)
    assert arrived.wait(20)
    operator.on_kill()
    go.set()
    task.join(20)
    assert isinstance(task.error, TfYarnInfrastructureError) and site.submissions() == 0


@pytest.mark.parametrize("end", ["execute", "resume_execution"])
def test_a_kill_before_the_execution_exists_is_not_forgotten(site, end):
    """Airflow's signal may come while the operator still imports what it needs."""
    operator = site.operator(deferrable=True)
    operator.on_kill()
    with pytest.raises(TfYarnInfrastructureError, match="Airflow ended the task or its worker"):
        run(operator) if end == "execute" else resume(operator, "Trigger failure")
    assert site.submissions() == 0


@pytest.mark.parametrize("handing_over", [{"deferrable": True}, {"wait_for_completion": False}], ids=["deferred", "not waiting"])
@pytest.mark.parametrize(("state", "index"), [("failed", -1), ("success", 3), ("restarting", -1)])
def test_a_task_that_was_marked_before_it_hands_over_kills(site, handing_over, state, index):
    """Between two heartbeats nobody tells the worker, and the server refuses its deferral in silence."""
    with pytest.raises(TfYarnInfrastructureError, match=f"{ID} was killed"):
        run(site.operator(**handing_over), state=state, map_index=index)
    assert site.yarn.apps[ID]["state"] == "KILLED" and site.killer() == 1


def test_a_marked_task_leaves_what_is_to_be_left(site):
    with pytest.raises(TfYarnInfrastructureError, match=f"{ID} was left alone"):
        run(site.operator(deferrable=True, on_kill="leave"), state="failed")
    assert site.yarn.apps[ID]["state"] == "ACCEPTED"


@pytest.mark.parametrize("state", ["queued", AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR)), EOFError()],
                         ids=["another try", "server", "supervisor"])
def test_a_task_whose_state_says_nothing_hands_over(site, state):
    deferred, _ = deferral(site.operator(deferrable=True), airflow_setup.TaskInstance(state=state))
    assert deferred.trigger.application_id == ID and site.yarn.apps[ID]["state"] == "ACCEPTED"


def test_a_kill_by_an_older_attempt_is_not_the_end_of_this_one(site):
    """A worker that was cut off from Airflow kills when it notices; the next attempt has attached by then."""
    first = site.operator(deferrable=True)
    deferral(first)
    second = Running(site.operator(), try_number=2)
    until(lambda: "tf_yarn" in second.ti.xcoms and second.operator._execution._submitting is False)
    first.on_kill()
    until(lambda: SECOND in site.yarn.apps)
    site.end(SECOND)
    second.join(20)
    assert second.error is None and second.ti.xcoms["tf_yarn"]["application_id"] == SECOND
    assert second.ti.xcoms["tf_yarn_status"]["reason"] == "SUCCEEDED"


def test_a_deferred_attempt_defers_once(site):
    """After a kill by an older attempt the new application is waited for in the worker."""
    first = site.operator(deferrable=True)
    deferral(first)
    second, ti = site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2)
    deferred, context = deferral(second, ti)
    first.on_kill()
    event = asyncio.run(first_event(deferred.trigger))
    with site.ending(SECOND):
        value = site.operator(deferrable=True).execute_complete(context, event)
    assert (value["application_id"], value["reason"], site.submissions()) == (SECOND, "SUCCEEDED", 2)


def test_a_kill_by_this_attempts_own_worker_is_retryable(site):
    """A worker that is shut down kills; the deferral that it had sent is taken nevertheless."""
    operator, ti = site.operator(deferrable=True), airflow_setup.TaskInstance()
    deferred, context = deferral(operator, ti)
    operator.on_kill()
    event = asyncio.run(first_event(deferred.trigger))
    with pytest.raises(TfYarnInfrastructureError, match="Killed by Airflow: the task was cleared"):
        site.operator(deferrable=True).execute_complete(context, event)
    assert (ti.xcoms["tf_yarn_status"]["reason"], site.yarn.apps[ID]["state"]) == ("KILLED", "KILLED")


async def first_event(trigger):
    async for event in trigger.run():
        return event.payload


def test_a_kill_by_somebody_else_is_the_end(site):
    task = Running(site.operator(), try_number=2)
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    site.yarn.apps[ID].update(state="KILLED", finalStatus="KILLED", diagnostics="Application killed by user ann.")
    task.join(20)
    assert isinstance(task.error, AirflowFailException) and "KILLED" in str(task.error)


# -- deferrals that went wrong -----------------------------------------------------------------------------------

def resume(operator, error, **values):
    context = airflow_setup.context_of(airflow_setup.TaskInstance(**values))
    return operator.resume_execution("__fail__", {"error": error}, context), context


def test_a_deferral_that_timed_out_kills_the_application(site):
    deferral(site.operator(deferrable=True))
    with pytest.raises(TfYarnJobFailed, match="EXECUTION_TIMEOUT"):
        resume(site.operator(deferrable=True), "Trigger timeout")
    assert site.yarn.apps[ID]["state"] == "KILLED"


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
            go.wait(20)

    site.yarn.faults.append(hold)
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(operator.resume_execution, "__fail__", {"error": "Trigger timeout"}, context)
        assert arrived.wait(20)
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


def test_what_did_not_get_its_containers_is_submitted_again_where_the_job_says_so(site, monkeypatch):
    spec = {"tasks": {"worker": {"memory": 256}}, "command": "true", "restart": {"allocation_retries": 1}}
    operator = site.operator(spec=spec, task_command=None, cluster_requirement=None, task_memory=None)
    with site.ending(reason=Reason.ALLOCATION_TIMEOUT), site.ending(SECOND):
        value, ti, _ = run(operator)
    assert value["application_id"] == ti.xcoms["tf_yarn"]["application_id"] == SECOND


def test_what_yarn_could_not_launch_is_submitted_again(site, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.retry.LAUNCH_PAUSE", 0.01)
    with site.not_launching(), site.ending(SECOND):
        value, _, _ = run(site.operator())
    assert (value["application_id"], value["reason"], site.submissions()) == (SECOND, "SUCCEEDED", 2)


def test_what_yarn_could_not_launch_of_a_deferred_task_is_submitted_again_by_its_worker(site):
    deferred, context = deferral(site.operator(deferrable=True))
    with site.not_launching():
        event = asyncio.run(first_event(deferred.trigger))
    with site.ending(SECOND):
        value = site.operator(deferrable=True).execute_complete(context, event)
    assert (value["application_id"], value["reason"], site.submissions()) == (SECOND, "SUCCEEDED", 2)


def test_nothing_is_submitted_again_after_the_deadline(site):
    spec = {"tasks": {"worker": {"memory": 256}}, "command": "true", "restart": {"allocation_retries": 1}}
    operator = site.operator(spec=spec, task_command=None, cluster_requirement=None, task_memory=None, deferrable=True,
                             execution_timeout=timedelta(seconds=1))
    ti = airflow_setup.TaskInstance(start_date=datetime.now(timezone.utc) - timedelta(seconds=2))
    event = {"application_id": ID, "report": to_xcom(report_of(Reason.ALLOCATION_TIMEOUT))}
    with pytest.raises(TfYarnInfrastructureError, match="ALLOCATION_TIMEOUT"):
        operator.execute_complete(airflow_setup.context_of(ti), event)
    assert not site.yarn.apps and site.submissions() == 0


def test_a_task_that_waits_in_the_worker_because_triggers_fail_does_not_defer_again(site):
    first = site.operator(deferrable=True)
    deferral(first)
    second, ti = site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2)
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(second.resume_execution, "__fail__", {"error": "Trigger failure"}, airflow_setup.context_of(ti))
        until(lambda: "tf_yarn" in ti.xcoms and second._execution._submitting is False)
        first.on_kill()  # of a worker that was cut off
        until(lambda: SECOND in site.yarn.apps)
        site.end(SECOND)
        assert task.result(20)["application_id"] == SECOND


def test_when_another_application_of_the_attempt_has_trained_airflow_learns_its_id(site):
    ti = airflow_setup.TaskInstance()
    _, context = deferral(site.operator(deferrable=True), ti)
    event = {"application_id": ID, "report": to_xcom(replace(report_of(Reason.SUCCEEDED), application_id=SECOND))}
    site.operator(deferrable=True).execute_complete(context, event)
    assert ti.xcoms["tf_yarn"]["application_id"] == SECOND
    assert ti.xcoms["tf_yarn_link_yarn_logs"].endswith(f"appattempt_{STAMP}_0002_000001")


def test_a_hanging_port_is_nothing_that_can_be_killed_and_takes_less_than_five_seconds():
    from tf_yarn_ops.airflow.kill import kill_now
    from tf_yarn_ops.airflow.serialization import cluster_from_dict

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        cluster = cluster_from_dict({"resourcemanagers": [url], "user": "ann", "login": "ann"})
        began = time.monotonic()
        assert kill_now(cluster, ID, "why") is False
        assert time.monotonic() - began < 5


def test_a_kill_waits_for_a_resourcemanager_that_has_to_recover_the_application():
    """It answers 404 until then, and there would be nobody to ask again."""
    from tf_yarn_ops.airflow.kill import kill_now
    from tf_yarn_ops.airflow.serialization import cluster_from_dict

    yarn, name = FakeYarn(), "application_1600000000000_0001"
    yarn.started_on = round(time.time() * 1000)
    with serving(yarn) as url, ThreadPoolExecutor(1) as pool:
        cluster = cluster_from_dict({"resourcemanagers": [url], "user": "ann", "login": "ann"})
        killing = pool.submit(kill_now, cluster, name, "why", 20.0)
        until(lambda: yarn.count("PUT", f"/ws/v1/cluster/apps/{name}/state") >= 2)
        yarn.add(application(1, user="ann") | {"id": name})
        assert killing.result(20) is True
        assert yarn.apps[name]["state"] == "KILLED"


def test_the_fake_is_not_what_makes_these_tests_pass(site):
    site.yarn.add(application(9, "RUNNING", user=USER))
    value, _, _ = run(site.operator(wait_for_completion=False))
    assert value["application_id"] == ID
