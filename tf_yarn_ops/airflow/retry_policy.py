"""`TfYarnRetryPolicy`: retry failures of the cluster, but not failures of the program."""

from datetime import timedelta
from typing import Any

from .exceptions import TfYarnInfrastructureError, TfYarnJobFailed
from .versions import AirflowTaskTimeout, RetryDecision, RetryPolicy


class TfYarnRetryPolicy(RetryPolicy):
    """Retry failures of the infrastructure, as often as the task's ``retries`` allow, and no other failure.

    Airflow's own rules decide about exceptions of other packages (a lost Airflow worker, a template that can not be
    rendered).

    Parameters
    ----------
    retry_delay : timedelta, optional
        Default: the task's.
    """

    def __init__(self, retry_delay: timedelta | None = None):
        self.retry_delay = retry_delay

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Return the decision for the exception that ended the task."""
        if isinstance(exception, TfYarnInfrastructureError):
            return RetryDecision.retry(self.retry_delay, f"failure of the infrastructure: {exception.reason}")
        if isinstance(exception, AirflowTaskTimeout):
            return RetryDecision.fail("not a failure of the infrastructure: EXECUTION_TIMEOUT")
        if isinstance(exception, TfYarnJobFailed):
            return RetryDecision.fail(f"not a failure of the infrastructure: {exception.reason}")
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """Return the policy as values for the serialised DAG."""
        return {"retry_delay": None if self.retry_delay is None else self.retry_delay.total_seconds()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> "TfYarnRetryPolicy":
        """Read the values of `serialize`."""
        seconds = data.get("retry_delay")
        return cls(None if seconds is None else timedelta(seconds=seconds))
