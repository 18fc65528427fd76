"""Which failures Airflow repeats."""

import json
from datetime import timedelta

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowTaskTimeout

from support.airflow_task import report_of
from tf_yarn_ops.airflow import TfYarnRetryPolicy
from tf_yarn_ops.airflow.outcome import exception_of
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow


def test_retry_policy_leaves_other_faults_to_airflow_and_round_trips():
    policy = TfYarnRetryPolicy.deserialize(json.loads(json.dumps(TfYarnRetryPolicy(timedelta(minutes=2)).serialize())))
    assert policy.evaluate(KeyError("x"), 1, 3).action is RetryAction.DEFAULT
    assert policy.evaluate(AirflowTaskTimeout("x"), 1, 3).action is RetryAction.FAIL  # as EXECUTION_TIMEOUT
    assert policy.evaluate(exception_of(report_of(Reason.NODE_LOST)), 1, 3).retry_delay == timedelta(minutes=2)
