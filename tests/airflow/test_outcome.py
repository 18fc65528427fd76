"""How a report ends an Airflow task: exception, log, XCom."""

import logging

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowFailException
from hypothesis import given, settings
from hypothesis import strategies as st

from support.airflow_task import ID, report_of, run, task_log
from support.airflow_values import AIRFLOW
from tf_yarn_ops.airflow import TfYarnInfrastructureError, TfYarnJobFailed, TfYarnRetryPolicy
from tf_yarn_ops.airflow.outcome import conclude, exception_of
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

pytestmark = pytest.mark.slow

ENDINGS = {
    Reason.SUCCEEDED: type(None), Reason.TASK_FAILED: TfYarnJobFailed, Reason.SPEC_INVALID: AirflowFailException,
    Reason.ENVIRONMENT_INVALID: AirflowFailException,
    Reason.SUBMISSION_REJECTED: AirflowFailException, Reason.RESOURCES_IMPOSSIBLE: AirflowFailException,
    Reason.CLUSTER_UNREACHABLE: TfYarnInfrastructureError, Reason.QUEUE_TIMEOUT: TfYarnInfrastructureError,
    Reason.ALLOCATION_TIMEOUT: TfYarnInfrastructureError, Reason.REGISTRATION_TIMEOUT: TfYarnInfrastructureError,
    Reason.HEARTBEAT_LOST: TfYarnInfrastructureError, Reason.CONTAINER_LOST: TfYarnInfrastructureError,
    Reason.PREEMPTED: TfYarnInfrastructureError, Reason.NODE_LOST: TfYarnInfrastructureError,
    Reason.AM_FAILED: TfYarnInfrastructureError, Reason.OUT_OF_MEMORY: TfYarnJobFailed,
    Reason.EXECUTION_TIMEOUT: TfYarnJobFailed, Reason.STALLED: TfYarnJobFailed,
    Reason.TOTAL_TIMEOUT: TfYarnJobFailed, Reason.KILLED: AirflowFailException,
    Reason.COMMIT_FAILED: TfYarnInfrastructureError, Reason.COMMIT_REFUSED: AirflowFailException,
    Reason.SUPERSEDED: AirflowFailException, Reason.LOST: TfYarnJobFailed, Reason.LEASE_EXPIRED: TfYarnInfrastructureError,
    Reason.UNKNOWN_REASON: TfYarnJobFailed,
}  # fmt: skip

RETRIED = {TfYarnInfrastructureError: RetryAction.RETRY, TfYarnJobFailed: RetryAction.FAIL}


@pytest.mark.parametrize("reason", list(Reason), ids=str)
def test_each_reason_ends_the_task_in_its_own_way(reason):
    failure = exception_of(report_of(reason, state="FINISHED", submitted_at=1.0))
    assert type(failure) is ENDINGS[reason]
    if failure is not None:
        assert f"{ID} {reason.value}: it ended" in str(failure) and reason.hint in str(failure)
    if isinstance(failure, TfYarnJobFailed | TfYarnInfrastructureError):
        assert (failure.reason, failure.application_id) == (reason.value, ID)
        assert TfYarnRetryPolicy().evaluate(failure, 1, 3).action is RETRIED[type(failure)]


def test_kill_by_a_stopped_worker_is_retryable_for_its_attempt_only():
    report = JobReport(ID, reason=Reason.KILLED, message="killed", killed_by_attempt=2)
    assert isinstance(exception_of(report, attempt=2), TfYarnInfrastructureError)
    assert isinstance(exception_of(report, attempt=3), AirflowFailException)


def test_the_log_ends_with_the_failed_tasks_last_lines_and_the_reason(site, capsys):
    failed = report_of()
    with (
        site.ending(reason=Reason.TASK_FAILED, tasks=failed.tasks, first_failure="worker:1"),
        pytest.raises(TfYarnJobFailed),
    ):
        run(site.operator(log_tail_lines=2))
    lines = task_log(capsys)
    assert lines[-7:-1] == [
        "worker:1 failed first: exit 3 on node1",
        "--- last lines of worker:1",
        "    two",
        "    three",
        "---",
        Reason.TASK_FAILED.hint,
    ]
    assert lines[-1] == f"next: ytf logs {ID} --task worker:1" and f"{ID} TASK_FAILED: it ended" in lines


def test_no_line_of_a_failed_task_is_logged_when_log_tail_lines_is_0(caplog):
    caplog.set_level(logging.INFO)
    conclude(report_of(), str, logging.getLogger("task"), 0)
    assert "worker:1 failed first" in caplog.text and "two" not in caplog.text


@pytest.mark.parametrize("name", AIRFLOW)
def test_no_input_of_airflow_ends_in_a_traceback(name):
    law = AIRFLOW[name]

    @settings(max_examples=25)
    @given(st.data())
    def check(data):
        law.check(data.draw(law.strategy))

    check()
