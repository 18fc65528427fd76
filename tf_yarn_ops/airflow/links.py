"""The links of a task: the page of the application, its logs, TensorBoard.

Airflow shows a link as soon as there is an XCom of its ``xcom_key``. The task pushes these XComs when it knows the
application id, so the links are visible while the task runs.
"""

from typing import TYPE_CHECKING, Any

from ..runtime.common.web_address import safe_url
from .versions import BaseOperatorLink

if TYPE_CHECKING:
    from ..runtime.common.report import JobReport


class _Link(BaseOperatorLink):
    """A link whose URL is the value of an XCom."""

    @property
    def xcom_key(self) -> str:
        """The key of the XCom."""
        return f"tf_yarn_link_{self.name.replace(' ', '_').lower()}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the URL; empty if there is none.

        The task runner calls this at the end of each run and stores the answer. The answer must therefore be the URL
        that the task has pushed, in this process or before it was deferred. Airflow logs an error for an XCom that is
        not there.
        """
        if (known := getattr(operator, "tf_yarn_links", None)) is not None:
            return str(known.get(self.xcom_key, ""))
        from .versions import XCom

        return str(XCom.get_value(ti_key=ti_key, key=self.xcom_key) or "")


class TrainingLink(_Link):
    """The page of the training while it runs; after its end YARN's page of the application, with the report."""

    name = "Training"


class YarnApplicationLink(_Link):
    """The application in the ResourceManager's web interface."""

    name = "YARN application"


class YarnLogsLink(_Link):
    """The application's containers with their logs while it runs; then the log of the task that matters most."""

    name = "YARN logs"


class TensorBoardLink(_Link):
    """TensorBoard, if the job has one, while the job runs."""

    name = "TensorBoard"


#: Of a job of this machine, which YARN does not know.
_NO_LINKS = {link().xcom_key: "" for link in (TrainingLink, YarnApplicationLink, YarnLogsLink, TensorBoardLink)}


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

    own = gateway.tracking_page(resourcemanager, application_id)
    if not own:
        return _NO_LINKS
    pages = gateway.pages(resourcemanager)
    return {
        TrainingLink().xcom_key: f"{own}pages/ytf/",
        YarnApplicationLink().xcom_key: f"{pages}/cluster/app/{application_id}",
        YarnLogsLink().xcom_key: f"{pages}/cluster/appattempt/{attempt}",
        TensorBoardLink().xcom_key: f"{own}pages/tensorboard/" if tensorboard else "",
    }


def urls_of_ended(resourcemanager: str, report: "JobReport", linked: bool) -> dict[str, str]:
    """Return the URL of each link, by the key of its XCom, once the application has ended.

    The application's own pages are gone then, and the ResourceManager has no list of its containers any more.

    Parameters
    ----------
    resourcemanager : str
        ``http://host:8088``.
    report : JobReport
    linked : bool
        Whether the pages of logs lead to their texts now, see `LogFacts`.
    """
    from ..hadoop import gateway

    if not gateway.tracking_page(resourcemanager, report.application_id):
        return _NO_LINKS
    page = f"{gateway.pages(resourcemanager)}/cluster/app/{report.application_id}"
    first = [task for task in report.tasks if task.task == report.first_failure]
    log = next(filter(None, (safe_url(task.log_url) for task in (*first, *report.tasks) if linked)), None)
    return {TrainingLink().xcom_key: page, YarnApplicationLink().xcom_key: page, YarnLogsLink().xcom_key: log or page,
            TensorBoardLink().xcom_key: ""}  # fmt: skip
