"""The links of a task: the application's page, its logs, TensorBoard.

Airflow shows a link once its ``xcom_key`` is there; the operator pushes the keys as soon as
the application's id is known, so that they are visible while the task runs.
"""

from typing import Any

from airflow.sdk import BaseOperatorLink


class _Link(BaseOperatorLink):
    """A link whose URL is the value of an XCom."""

    @property
    def xcom_key(self) -> str:
        """The key of the XCom."""
        return f"tf_yarn_link_{self.name.replace(' ', '_').lower()}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Give the URL; empty when there is none.

        The task runner asks at the end of each run and stores the answer, so it has to be what
        the operator has pushed, in this process or before the task was deferred.
        """
        known = getattr(operator, "tf_yarn_links", None)
        if known is not None:
            return str(known.get(self.xcom_key, ""))
        from airflow.sdk.execution_time.xcom import XCom

        return str(XCom.get_value(ti_key=ti_key, key=self.xcom_key) or "")


class YarnApplicationLink(_Link):
    """The application in the ResourceManager's web interface."""

    name = "YARN application"


class YarnLogsLink(_Link):
    """The application's containers with their logs, in the ResourceManager's web interface."""

    name = "YARN logs"


class TensorBoardLink(_Link):
    """TensorBoard, when the job has one; lives as long as the job."""

    name = "TensorBoard"


def urls_of(resourcemanager: str, application_id: str, tensorboard: bool) -> dict[str, str]:
    """Give the URL of each link by its XCom's key.

    Parameters
    ----------
    resourcemanager : str
        ``http://host:8088``.
    application_id : str
    tensorboard : bool
        Whether the job runs TensorBoard.
    """
    attempt = f"{application_id.replace('application_', 'appattempt_')}_000001"  # there is never a second one
    board = f"{resourcemanager}/proxy/{application_id}/pages/tensorboard/" if tensorboard else ""
    return {
        YarnApplicationLink().xcom_key: f"{resourcemanager}/cluster/app/{application_id}",
        YarnLogsLink().xcom_key: f"{resourcemanager}/cluster/appattempt/{attempt}",
        TensorBoardLink().xcom_key: board,
    }
