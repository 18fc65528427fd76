"""The exceptions that end an Airflow task. Both obey the task's ``retries``."""

from .versions import AirflowException


class TfYarnFailure(AirflowException):
    """A training did not succeed.

    Parameters
    ----------
    message : str
    reason : str, optional
        A name of the table of reasons: ``TASK_FAILED``.
    application_id : str, optional
        Empty when there was none.
    """

    def __init__(self, message: str, reason: str = "", application_id: str = ""):
        super().__init__(message)
        self.reason = reason
        self.application_id = application_id


class TfYarnJobFailed(TfYarnFailure):
    """The training program failed, or took too long; the same job would probably fail again."""


class TfYarnInfrastructureError(TfYarnFailure):
    """The cluster failed, not the program; the same job may succeed when it is submitted again."""
