"""The links of a task: the page of the application, its logs, TensorBoard.

Airflow shows a link as soon as there is an XCom of its ``xcom_key``. The task pushes these XComs when it knows the
application id, so the links are visible while the task runs.
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
        """Return the URL; empty if there is none.

        The task runner calls this at the end of each run and stores the answer. The answer must therefore be the URL
        that the task has pushed, in this process or before it was deferred.
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
    """TensorBoard, if the job has one, while the job runs."""

    name = "TensorBoard"


def urls_of(resourcemanager: str, application_id: str, tensorboard: bool) -> dict[str, str]:
    """Return the URL of each link by the key of its XCom.

    Parameters
    ----------
    resourcemanager : str
        ``http://host:8088``.
    application_id : str
    tensorboard : bool
        Whether the job runs TensorBoard.
    """
    # An application of this package has one YARN attempt (max_attempts=1).
    attempt = f"{application_id.replace('application_', 'appattempt_')}_000001"
    from ..hadoop import gateway

    pages = gateway.pages(resourcemanager)
    board = f"{gateway.tracking_page(resourcemanager, application_id)}pages/tensorboard/" if tensorboard else ""
    return {
        YarnApplicationLink().xcom_key: f"{pages}/cluster/app/{application_id}",
        YarnLogsLink().xcom_key: f"{pages}/cluster/appattempt/{attempt}",
        TensorBoardLink().xcom_key: board,
    }
