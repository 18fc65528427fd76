"""A task that fails, on a fake ResourceManager: exception, log, report, and what it leaves behind."""

import asyncio
import json
import threading

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.log import mask_secret

from support import airflow_setup
from support.airflow_task import ID, JOB, USER, deferral, first_event, report_of, run, task_log
from support.fake_yarn import application
from support.forged import ENDS, end_forged
from support.waiting import until
from tf_yarn_ops.airflow import TensorFlowYarnOperator, TfYarnInfrastructureError, TfYarnJobFailed
from tf_yarn_ops.airflow.outcome import build_event, exception_of, sentence_of, to_xcom
from tf_yarn_ops.hadoop.cluster import Cluster
from tf_yarn_ops.hadoop.transport import Failover
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, Round, TaskReport

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("deferrable", [False, True])
def test_printed_secret_is_masked_in_the_xcom_and_not_in_the_event(site, deferrable, capsys):
    mask_secret("geheim-2")
    failed = report_of(tasks=(TaskReport("worker:1", "failed", exit_code=3, log_tail="password is geheim-2"),),
                       metrics={"note": "geheim-2", "deep": {"a": [{"b": "geheim-2"}]}, "loss": 0.5})  # fmt: skip
    ti, end = airflow_setup.TaskInstance(), {"reason": Reason.TASK_FAILED, "tasks": failed.tasks,
                                             "first_failure": "worker:1", "metrics": failed.metrics,
                                             "message": "worker:1 failed with exit code 3: password is geheim-2",
                                             "rounds": (Round(2, 1.0, "worker:0 failed: password is geheim-2"),)}  # fmt: skip
    if deferrable:
        deferred, _ = deferral(site.operator(deferrable=True))
        site.end(ID, **end)
        event = asyncio.run(first_event(deferred.trigger))
        assert event == {"application_id": ID, "ended": ID, "reason": "TASK_FAILED"}
        with pytest.raises(TfYarnJobFailed):
            site.operator().execute_complete(airflow_setup.context_of(ti), event)
    else:
        with site.ending(**end), pytest.raises(TfYarnJobFailed):
            site.operator().execute(airflow_setup.context_of(ti))
    status = ti.xcoms["tf_yarn_status"]
    logged = "\n".join(task_log(capsys))
    assert "password is ***" in logged and "geheim" not in logged, "also where Airflow does not mask"
    assert status["tasks"][0]["log_tail"] == "password is ***", "the whole report, also of a deferred task"
    assert status["metrics"] == {"note": "***", "deep": {"a": [{"b": "***"}]}, "loss": 0.5}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("deferrable", [False, True])
def test_forged_report_fails_the_task(site, deferrable, how):
    ti, context, deferred = airflow_setup.TaskInstance(), None, None
    operator = site.operator(deferrable=deferrable, output_path="/models/7")
    if deferrable:
        deferred, context = deferral(operator, ti)
        end_forged(site.yarn, ID, how)
        event = asyncio.run(first_event(deferred.trigger))
        assert "evil" not in json.dumps(event) and "javascript:" not in json.dumps(event)
        with pytest.raises(AirflowException):
            operator.execute_complete(context, event)
    else:
        thread = threading.Thread(target=lambda: (until(lambda: ID in site.yarn.apps), end_forged(site.yarn, ID, how)))
        thread.start()
        with pytest.raises(AirflowException):
            operator.execute(airflow_setup.context_of(ti))
        thread.join()
    written = json.dumps(ti.xcoms["tf_yarn_status"])
    assert "evil" not in written and "javascript:" not in written
    assert not any("javascript:" in str(value) for value in ti.xcoms.values())


def resumed_with_texts(site, fault):
    """End a deferred task whose metrics have a text, with a fault of each request for its report; return its value."""
    deferred, context = deferral(site.operator(deferrable=True))
    site.end(ID, metrics={"loss": 0.5, "note": "a text"})
    event = asyncio.run(first_event(deferred.trigger))
    site.yarn.faults.append(lambda method, path: fault() if path.endswith(f"/apps/{ID}") else None)
    return site.operator(deferrable=True).execute_complete(context, event)


def hurry(monkeypatch):
    """Let a request try its addresses once, and the task ask again at once."""
    monkeypatch.setattr("tf_yarn_ops.airflow.execution._AGAIN", 0.1)
    monkeypatch.setattr("tf_yarn_ops.hadoop.resourcemanager.Failover", lambda addresses, *_: Failover(addresses, 0.0))


def test_a_deferred_task_waits_for_yarn_to_read_the_texts_of_its_program(site, monkeypatch):
    hurry(monkeypatch)
    away = iter([(503, {}, "away")] * 2)
    value = resumed_with_texts(site, lambda: next(away, None))
    assert value["metrics"] == {"loss": 0.5, "note": "a text"} and next(away, None) is None


@pytest.mark.parametrize(("answer", "why"), [
    ((503, {}, "away"), "no ResourceManager answers"),
    ((404, {"Content-Type": "application/json"}, '{"RemoteException": {"exception": "NotFoundException"}}'),
     "YARN no longer knows the application"),
], ids=["away for good", "forgotten"])  # fmt: skip
def test_a_deferred_task_ends_well_without_the_texts_of_its_program(site, capsys, monkeypatch, answer, why):
    hurry(monkeypatch)
    value = resumed_with_texts(site, lambda: answer)
    assert (value["reason"], value["metrics"]) == ("SUCCEEDED", None)
    warned = [line for line in task_log(capsys) if line.startswith("the report could not be read from YARN")]
    assert len(warned) == 1 and why in warned[0]


def test_waiting_task_does_not_ask_yarn_again_for_the_texts(site, monkeypatch):
    monkeypatch.delattr("tf_yarn_ops.airflow.execution.read_report_of_event")
    with site.ending(metrics={"note": "a text"}):
        value, _, _ = run(site.operator())
    assert value["metrics"] == {"note": "a text"}


def test_metrics_are_masked_by_text_and_not_by_name_at_any_depth(site):
    mask_secret("geheim-3")
    metrics = {"tokenizer": "bert-base", "token_accuracy": 0.9, "api_key": "says geheim-3",
               "deep": [{"password": {"a": [{"b": {"c": ["geheim-3", "kept", None]}}]}}]}  # fmt: skip
    with site.ending(metrics=metrics):
        value, _, _ = run(site.operator())
    assert value["metrics"] == {"tokenizer": "bert-base", "token_accuracy": 0.9, "api_key": "says ***",
                                "deep": [{"password": {"a": [{"b": {"c": ["***", "kept", None]}}]}}]}  # fmt: skip


def test_a_task_that_pushes_nothing_leaves_no_report(site):
    ti = airflow_setup.TaskInstance()
    with site.ending(reason=Reason.TASK_FAILED), pytest.raises(TfYarnJobFailed):
        site.operator(do_xcom_push=False).execute(airflow_setup.context_of(ti))
    assert "tf_yarn_status" not in ti.xcoms
    assert "tf_yarn" in ti.xcoms, "the next try and the links need it"


def test_the_report_of_a_failure_is_in_xcom(site):
    ti = airflow_setup.TaskInstance()
    with site.ending(reason=Reason.NODE_LOST), pytest.raises(TfYarnInfrastructureError):
        site.operator().execute(airflow_setup.context_of(ti))
    assert (ti.xcoms["tf_yarn_status"]["reason"], ti.xcoms["tf_yarn_status"]["retryable"]) == ("NODE_LOST", True)


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        ((), TfYarnJobFailed),
        (None, TfYarnJobFailed),
        (3, AirflowSkipException),
        ([4, 3], AirflowSkipException),
        ((4,), TfYarnJobFailed),
    ],
)
def test_an_exit_code_may_mean_skipped(site, codes, kind):
    _, context = deferral(site.operator(deferrable=True))
    failed = report_of()
    site.end(ID, reason=Reason.TASK_FAILED, tasks=failed.tasks, first_failure=failed.first_failure)
    with pytest.raises(kind):
        site.operator(skip_on_exit_code=codes).execute_complete(context, build_event(ID, failed))


def test_only_the_programs_own_end_is_skipped():
    assert isinstance(exception_of(report_of(Reason.OUT_OF_MEMORY), [3]), TfYarnJobFailed)


def test_without_a_cluster_the_task_is_retryable(monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.hadoop.cluster.DISCOVERY_PATIENCE", 0.3)
    monkeypatch.setenv(
        "AIRFLOW_CONN_TF_YARN_DEFAULT", json.dumps({"conn_type": "tf_yarn", "host": "127.0.0.1", "port": 1})
    )
    ti = airflow_setup.TaskInstance()
    with pytest.raises(TfYarnInfrastructureError, match="CLUSTER_UNREACHABLE"):
        TensorFlowYarnOperator(task_id="train", **JOB).execute(airflow_setup.context_of(ti))
    assert ti.xcoms["tf_yarn_status"]["reason"] == "CLUSTER_UNREACHABLE"


def test_a_queue_that_does_not_exist_ends_the_task_for_good(site):
    ti = airflow_setup.TaskInstance()
    with pytest.raises(AirflowFailException, match="SUBMISSION_REJECTED"):
        site.operator(yarn_queue="nowhere").execute(airflow_setup.context_of(ti))
    assert ti.xcoms["tf_yarn_status"]["state"] == "FAILED", "as in the report of every other door"


@pytest.mark.parametrize(
    ("policy", "tries", "state"), [("kill", 0, "KILLED"), ("kill", 1, "ACCEPTED"), ("leave", 0, "ACCEPTED")]
)
def test_a_submission_that_failed_for_good_leaves_nothing(site, monkeypatch, policy, tries, state):
    """YARN has taken the application, and does not answer any more while the task waits for that."""

    def away(method, path):
        return (503, {}, "away") if site.submissions() and method in ("GET", "POST") else None

    def take(method, path):
        if method == "POST" and path.endswith("/apps"):
            site.yarn.apps.setdefault(ID, application(1, "ACCEPTED", user=USER))

    monkeypatch.setattr(Cluster.resourcemanager, "__defaults__", (0.2,))  # patience, seconds
    site.yarn.faults.extend((take, away))
    ti = airflow_setup.TaskInstance(max_tries=tries)
    with pytest.raises(TfYarnInfrastructureError, match="CLUSTER_UNREACHABLE"):
        site.operator(on_kill=policy).execute(airflow_setup.context_of(ti))
    assert site.yarn.apps[ID]["state"] == state
    assert ("The submission failed" in site.yarn.apps[ID]["diagnostics"]) is (state == "KILLED")


def test_a_report_of_any_size_fits_into_16_kilobytes_of_the_database():
    tasks = tuple(TaskReport(f"worker:{n}", "failed", exit_code=1, log_tail="\u2028é" * 4000) for n in range(300))
    huge = report_of(
        tasks=tasks, message="m" * 20_000, first_failure="worker:7", metrics={f"m{n}": "x" * 50 for n in range(100)}
    )
    document = to_xcom(huge)
    assert len(json.dumps(document)) <= 16 * 1024
    assert document["first_failure"] == "worker:7" and [t for t in document["tasks"] if t["task"] == "worker:7"]
    assert JobReport.from_dict(document).reason is Reason.TASK_FAILED


def test_metrics_that_are_no_numbers_of_json_become_texts():
    values = {"loss": float("nan"), "best": float("-inf"), "deep": [{"x": float("inf")}], "fine": 1.5}
    metrics = to_xcom(report_of(Reason.SUCCEEDED, metrics=values))["metrics"]
    assert json.loads(json.dumps(metrics, allow_nan=False)) == {
        "loss": "nan",
        "best": "-inf",
        "deep": [{"x": "inf"}],
        "fine": 1.5,
    }


def test_the_next_step_of_an_error_is_that_of_its_message():
    """An expired ticket is no wrong address."""
    failed = JobReport("", reason=Reason.CLUSTER_UNREACHABLE, message="there is no valid Kerberos ticket. Run kinit")
    assert (
        sentence_of(failed)
        == "nothing was submitted: CLUSTER_UNREACHABLE: there is no valid Kerberos ticket. Run kinit"
    )
    ended = JobReport(ID, state="FAILED", reason=Reason.AM_FAILED, message="exit 1")
    assert sentence_of(ended).startswith(f"{ID} AM_FAILED: exit 1. Read application.driver.log")
