"""`JobStore`: what the pages show, read from the history and from YARN; safe for several threads."""

import copy
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from ..errors import TfYarnError
from ..follow.session import Session
from ..follow.yarn_report import read_yarn_report
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import LIVE
from ..history.histories import Histories
from ..history.query import Query
from ..history.record_summary import read_acls
from ..runtime.common.contract import EVERYBODY
from ..runtime.common.report import JobReport
from ..runtime.common.status import build_status
from ..runtime.common.user_groups import groups_on_node

logger = logging.getLogger(__name__)

#: Seconds for which the list of live jobs is shown again without asking YARN.
_FRESH = 2.0
#: What a status has from YARN, and not from the page of the application: whose job it is, and where it is seen.
_OF_YARN = ("application_id", "name", "queue", "user", "tracking_url", "tensorboard_url")
#: Seconds for which YARN may keep a page waiting.
_PATIENCE = 2.0


class JobStore:
    """The jobs that the pages show.

    Parameters
    ----------
    cluster : Cluster
    users : str
        Pattern of the users whose histories are shown.
    """

    def __init__(self, cluster: Cluster, users: str = "*"):
        quick = replace(cluster, site=replace(cluster.site, history_days=0))  # a look must not write records
        self._session = Session.with_short_timeout(quick, _PATIENCE, _PATIENCE)
        self._histories = Histories(cluster, users)
        self._live: list[tuple[float, list[JobReport], str]] = [(0.0, [], "")]  # shared by all readers
        self._reader = ""

    def seen_by(self, reader: str) -> "JobStore":
        """Return the store as a reader sees it: own jobs, and those that their view ACLs show; all if it is empty."""
        found = copy.copy(self)
        found._reader = reader
        return found

    def _may_see(self, job: Mapping[str, Any]) -> bool:
        if not self._reader or job.get("user") == self._reader:
            return True
        acls = job.get("acls") or read_acls(job) or {}
        users, groups = (acls.get(kind) or () for kind in ("view_users", "view_groups"))
        return (
            EVERYBODY in (*users, *groups)
            or self._reader in users
            or (bool(groups) and not groups_on_node(self._reader).isdisjoint(groups))
        )

    def page(self, query: Query, skip: int, size: int, cut: set[str]) -> tuple[list[dict[str, Any]], bool]:
        """Return one page of ended jobs, the latest first, and whether there are more.

        ``cut`` gets the users whose older jobs are left out, see `Histories.find`: the next call reads more of them.

        Raises
        ------
        TfYarnError
            The file system does not answer.
        """
        found = list(islice(filter(self._may_see, self._histories.find(query, cut)), skip, skip + size + 1))
        return found[:size], len(found) > size

    def record(self, application_id: str, owner: str = "") -> dict[str, Any] | None:
        """Return the record of an ended job; None if there is none that we may read. Raise as `page`.

        The owner is the user that YARN has named, if it knows the application.
        """
        found = self._histories.read(application_id, owner, self._reader)
        return found if found and self._may_see(found) else None

    def live(self) -> tuple[list[JobReport], str]:
        """Return the live jobs that YARN shows us, the latest first; and why it does not answer, else an empty text."""
        at, reports, why = self._live[0]
        if time.monotonic() - at > _FRESH:
            try:
                found = self._session.resourcemanager.find(states=LIVE)
                alerts = self._session.alerts(filter(_is_job, found))
                reports, why = (
                    [
                        replace(read_yarn_report(item), alerts=alerts.get(str(item["id"]), ()))
                        for item in found
                        if _is_job(item)
                    ],
                    "",
                )
            except TfYarnError as error:
                reports, why = [], str(error)
            reports = sorted(reports, key=lambda report: report.submitted_at or 0.0, reverse=True)
            self._live[0] = time.monotonic(), reports, why
        # YARN's list has no ACLs: a reader of a team sees the own jobs there, and others by their addresses.
        return [report for report in reports if self._may_see(vars(report))], why

    def document(self, application_id: str) -> Mapping[str, Any] | None:
        """Return what a job's page shows: the coordinator's status, its record, or YARN's report; None if unknown.

        Raises
        ------
        TfYarnError
            The file system does not answer.
        """
        if (application := self._application(application_id)) is None:
            return self._without_dead_links(self.record(application_id))
        found = self._status(application) or self.record(application_id, str(application.get("user")))
        return self._without_dead_links(self._seen(found or _short(application)))

    def updates(self, application_id: str) -> Mapping[str, Any] | None:
        """Return what is new of a job whose page is open; None while YARN or its coordinator does not answer.

        The history is searched once only, when the job has ended. Raise as `document`.
        """
        if (application := self._application(application_id)) is None:
            return None
        if application.get("state") == "RUNNING":
            return self._seen(self._status(application))
        ended = read_yarn_report(application).reason is not None
        record = self.record(application_id, str(application.get("user"))) if ended else None
        return self._without_dead_links(record or self._seen(_short(application)))

    def log_end(self, application_id: str, task: str, page: str) -> str | None:
        """Return the end of the log of a task that runs, or with ``page`` its stacks; None without an answer."""
        if self._reader and self.document(application_id) is None:
            return None
        application = self._application(application_id)
        return self._session.live.fetch_log(application, task, page) if application else None

    def _seen(self, document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        return document if document and self._may_see(document) else None

    def _without_dead_links(self, document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a document without the pages of logs that show no text after the end."""
        if document is None or document.get("reason") is None or self._session.cluster.logs.linked:
            return document
        return {**document, "tasks": [{**task, "log_url": None} for task in document.get("tasks") or ()]}

    def _application(self, application_id: str) -> Mapping[str, Any] | None:
        try:
            return self._session.resourcemanager.get(application_id)
        except TfYarnError as error:
            logger.debug("no report of %s: %s", application_id, error)
            return None

    def _status(self, application: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the coordinator's status, with what YARN itself knows: the page is the application's own."""
        if (found := self._session.live.fetch_document(application)) is None:
            return None
        try:
            seen = read_yarn_report(application, JobReport.from_dict(found))
        except ValueError:
            return None
        return found | {name: getattr(seen, name) for name in _OF_YARN}

    def close(self) -> None:
        """Close the connections; it is the last call."""
        self._session.close()
        self._histories.close()


def _short(application: Mapping[str, Any]) -> Mapping[str, Any]:
    return build_status(read_yarn_report(application), time.time())


def _is_job(application: Mapping[str, Any]) -> bool:
    return str(application.get("applicationType", "")).lower() == "skein"
