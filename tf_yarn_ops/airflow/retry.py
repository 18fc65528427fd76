"""`TfYarnRetryPolicy`: retries what the cluster broke, and not what the program did."""

from datetime import timedelta
from typing import Any

from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowTaskTimeout

from .exceptions import TfYarnInfrastructureError, TfYarnJobFailed


class TfYarnRetryPolicy(RetryPolicy):
    """Retries failures of the infrastructure, as often as the task's ``retries`` say, and no other.

    Whatever is not of this package (a lost worker, a template that can't be rendered) is left to
    Airflow's own rules.

    Parameters
    ----------
    retry_delay : timedelta, optional
        Instead of the task's.
    """

    def __init__(self, retry_delay: timedelta | None = None):
        self.retry_delay = retry_delay

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Give the decision for the exception that ended the task."""
        if isinstance(exception, TfYarnInfrastructureError):
            return RetryDecision.retry(self.retry_delay, f"infrastructure: {exception.reason}")
        if isinstance(exception, AirflowTaskTimeout):
            return RetryDecision.fail("not of the infrastructure: EXECUTION_TIMEOUT")
        if isinstance(exception, TfYarnJobFailed):
            return RetryDecision.fail(f"not of the infrastructure: {exception.reason}")
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """Give the policy as values for the serialised DAG."""
        return {"retry_delay": None if self.retry_delay is None else self.retry_delay.total_seconds()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> "TfYarnRetryPolicy":
        """Read `serialize`'s values."""
        seconds = data.get("retry_delay")
        return cls(None if seconds is None else timedelta(seconds=seconds))
