"""`Session`: the cluster, the connections, the staging directories and the cancellation of one client.

A `Launcher` has one. The functions that wait and kill need a session only.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

from ..errors import ApplicationNotFound, Cancelled, TfYarnError
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import ResourceManager
from ..hadoop.transport import CALL_PATIENCE
from ..history.histories import with_recorded_paths, with_recorded_tasks
from ..history.missing_record import keep_record
from ..runtime.common.reasons import Reason
from ..runtime.common.report import Alert, JobReport
from ..staging.staging_directory import StagingDirectory
from .lease import holder_path, with_holder
from .live_report import LiveReports
from .shortage import PendingContainers
from .yarn_report import lost_report, read_yarn_report

logger = logging.getLogger(__name__)

#: Running applications of a list whose coordinators are asked, all at once, what deserves a look; the seconds for it.
LISTED, LISTED_SECONDS = 20, 3.0


class Session:
    """One client of one cluster.

    Parameters
    ----------
    cluster : Cluster
    patience : float, optional
        Seconds for which a request to the ResourceManager is repeated. Default 5.

    Attributes
    ----------
    cluster : Cluster
    resourcemanager : Backend
    live : LiveReports
    cancelled : bool
        Whether `cancel` was called.
    why_cancelled : str
        The sentence that the first call of `cancel` gave; may be empty.
    """

    def __init__(self, cluster: Cluster, patience: float = CALL_PATIENCE):
        self.cluster = cluster
        self.resourcemanager = cluster.backend(patience)
        self.live = LiveReports(cluster)
        self.cancelled = False
        self.why_cancelled = ""
        self._shortages = PendingContainers(self.resourcemanager)
        self._stagings: dict[str, StagingDirectory] = {}

    @property
    def yarn(self) -> ResourceManager:
        """The backend as YARN, for calls that no other backend has."""
        assert isinstance(self.resourcemanager, ResourceManager), self.resourcemanager
        return self.resourcemanager

    @classmethod
    def with_short_timeout(cls, cluster: Cluster, request_timeout: float, patience: float) -> "Session":
        """Return a session for a client that has only seconds left.

        Parameters
        ----------
        cluster : Cluster
        request_timeout : float
            Seconds for one request, at most; the site's own limit counts when it is shorter.
        patience : float
            Seconds for which a request is repeated.
        """
        seconds = min(request_timeout, cluster.site.request_timeout)
        return cls(replace(cluster, site=replace(cluster.site, request_timeout=seconds)), patience)

    def cancel(self, why: str = "") -> None:
        """End the call that this client is in; safe in a signal handler.

        A submission ends before its next step, and its application is killed. The call raises `Cancelled`. YARN keeps
        the sentence ``why`` with the kill.
        """
        self.why_cancelled = self.why_cancelled or why
        self.cancelled = True

    def checkpoint(self) -> None:
        """Raise `Cancelled` after `cancel`; called between the steps of a submission."""
        if self.cancelled:
            raise Cancelled("cancelled before the application was submitted")

    def pause(self, seconds: float) -> None:
        """Wait for so long; raise `Cancelled` after `cancel`."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.checkpoint()
            time.sleep(min(0.2, left))

    def staging(self, user: str | None = None) -> StagingDirectory:
        """Return the staging directory of a user; default: of the cluster's user."""
        user = user or self.cluster.user
        if user not in self._stagings:
            self._stagings[user] = StagingDirectory(self.cluster.acting_for(user))
        return self._stagings[user]

    def find_application(self, application_id: str) -> Mapping[str, Any] | None:
        """Return YARN's object of an application; None if YARN does not know it."""
        try:
            return self.resourcemanager.get(application_id)
        except ApplicationNotFound:
            return None

    def report(self, application_id: str) -> JobReport:
        """Return the present report of an application; its reason is LOST if YARN does not know it.

        Raises
        ------
        ClusterUnreachable
            No ResourceManager answers, or it was restarted and may still have to recover the application.
        """
        try:
            return self.read(self.resourcemanager.get(application_id))
        except ApplicationNotFound as error:
            return lost_report(application_id, error)

    def read_report(self, application: Mapping[str, Any]) -> JobReport:
        """Return the report of YARN's object, with the missing containers of a job that waits for them."""
        report = self._shortages.complete(read_yarn_report(application, self.live.fetch(application)))
        return with_recorded_tasks(self.cluster, report)

    def alerts(self, applications: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Alert, ...]]:
        """Return by id what deserves a look at running applications: of the first `LISTED` that answer."""
        running = [application for application in applications if application["state"] == "RUNNING"][:LISTED]
        pool = ThreadPoolExecutor(LISTED)
        asked = {pool.submit(self.live.fetch, application): str(application["id"]) for application in running}
        answered = wait(asked, LISTED_SECONDS).done
        pool.shutdown(wait=False)  # a page that drips ends by its own limits
        for one in answered:
            if error := one.exception():  # a page is its user's program, and must not end a list of all
                logger.warning("no live report of %s: %r", asked[one], error)
        return {asked[one]: report.alerts for one in answered if not one.exception() and (report := one.result())}

    def read(self, application: Mapping[str, Any]) -> JobReport:
        """Return the report of YARN's object; delete the directory of an application that has ended."""
        report = self.read_report(application)
        is_job = str(application.get("applicationType", "")).lower() == "skein"
        return report if report.reason is None else self.finish(report, is_job)

    def finish(self, ended: JobReport, is_job: bool = True) -> JobReport:
        """Return the report of an ended application, with the last holder of its lease; delete its directory."""
        ended = with_holder(self.staging, ended)
        self.forget(ended, is_job)  # it may write the record
        ended = with_recorded_tasks(self.cluster, ended)
        return with_recorded_paths(self.cluster, ended) if is_job else ended

    def forget(self, ended: JobReport, is_job: bool = True) -> None:
        """Delete the directory of an ended application of our user, because the job's key lies there.

        Before that, write its record into the history if it is a job whose coordinator could not. The note about
        the holder of its lease goes too, unless later reports have to name the holder.
        """
        if ended.user not in ("", self.cluster.user):
            return
        try:
            if is_job:
                keep_record(self.staging(), ended)
            if self.staging().delete(ended.application_id):
                logger.debug("deleted the directory of %s", ended.application_id)
            if ended.reason is not Reason.LEASE_EXPIRED:
                self.staging().filesystem.delete(holder_path(self.staging(), ended.application_id))
        except (TfYarnError, OSError) as error:  # the end of the application is reported all the same
            logger.warning("the directory of %s could not be deleted: %s", ended.application_id, error)

    def close(self) -> None:
        """Close the connections; they open again when they are needed."""
        self.resourcemanager.close()
        self.live.close()
