"""`Histories`: the records of the user, and of other users as far as their rights let us read them."""

import functools
import heapq
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase
from itertools import chain, groupby, islice
from typing import Any

from ..errors import SubmissionRejected, TfYarnError
from ..hadoop.cluster import Cluster
from ..hadoop.filesystem import FileSystem
from ..runtime.common.report import JobReport
from .query import Query
from .records import ReadLimit, Records, ended_at

logger = logging.getLogger(__name__)

#: Records of each other user that are read one by one for one list, if a pattern names the users.
MOST_READ = 500
#: Days that are read at the same time.
_DAYS_AT_ONCE = 6
#: Users whose days are listed at the same time.
_LISTS_AT_ONCE = 16
_PATTERN = re.compile(r"[*?\[]")
#: What a report says about the folders of a job.
_PATHS = ("output_path", "working_path", "working_bytes", "tensorboard_logdir")


class Histories:
    """The histories of one cluster.

    Parameters
    ----------
    cluster : Cluster
    users : str, optional
        Whose histories: a name, or a pattern such as ``*`` for every user whose records we may read. Default: the
        cluster's user.
    filesystem : FileSystem, optional
        Default: `Cluster.open_filesystem`.

    Attributes
    ----------
    cluster : Cluster
    """

    def __init__(self, cluster: Cluster, users: str | None = None, filesystem: FileSystem | None = None):
        self.cluster = cluster
        self._users = users or cluster.user
        self._filesystem = filesystem or cluster.open_filesystem()
        self._known: dict[str, Records] = {}

    def owners(self) -> list[str]:
        """Return the users whose histories are searched, our own first."""
        if not _PATTERN.search(self._users):
            return [self._users]
        # The staging directories of all users have one parent: /user of /user/{user}/.skein.
        parent, place, _ = self.cluster.storage.staging_template.partition("/{user}")
        try:
            listed = [status.name for status in self._filesystem.list(parent or "/") if status.is_directory]
        except SubmissionRejected:
            listed = []
        names = {*(listed if place else []), self.cluster.user}
        return sorted(
            (name for name in names if fnmatchcase(name, self._users)),
            key=lambda name: (name != self.cluster.user, name),
        )

    def of(self, user: str) -> Records:
        """Return the records of a user."""
        if user not in self._known:
            folder, trusted = self.cluster.acting_for(user).history, self.cluster.site.trusted_owner
            self._known[user] = Records(self._filesystem, folder, user, user == self.cluster.user, trusted)
        return self._known[user]

    def find(self, query: Query, cut: set[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the summaries of the jobs that a query wants, the latest day first, within a day the latest first.

        Older records are read only when the caller goes on. Of each other user that a pattern names, at most
        `MOST_READ` records are read that were not read before.

        Parameters
        ----------
        query : Query
        cut : set of str, optional
            Gets the users whose older records were left out.

        Raises
        ------
        ClusterUnreachable
            The file system does not answer.
        """
        owners = self.owners()
        limits = {
            owner: ReadLimit(MOST_READ, functools.partial(_report_cut, owner, cut))
            for owner in owners
            if owner not in (self.cluster.user, self._users)
        }
        with ThreadPoolExecutor(_DAYS_AT_ONCE) as pool, ThreadPoolExecutor(_LISTS_AT_ONCE) as lists:
            for days in self._days(owners, query, lists):
                yield from self._summaries(days, query, pool, limits)

    def _days(self, owners: list[str], query: Query, pool: ThreadPoolExecutor) -> Iterator[list[tuple[str, str]]]:
        """Yield days and owners that a query may want: those of this month, of the one before, of all before it.

        Most readers want the latest jobs, and a list of all days takes some requests for each user.
        """
        now = datetime.now(timezone.utc)
        recent = [f"{month:%Y/%m}" for month in (now, now.replace(day=1) - timedelta(days=1))]
        for month in recent:
            if query.reaches(f"{month}/31"):
                listed = pool.map(lambda owner, month=month: self.of(owner).days(month), owners)
                yield _wanted(owners, listed, query)
        if query.reaches(f"{recent[-1]}/00"):
            listed = pool.map(lambda owner: [day for day in self.of(owner).days() if day[:7] not in recent], owners)
            yield _wanted(owners, listed, query)

    def _summaries(
        self, days: list[tuple[str, str]], query: Query, pool: ThreadPoolExecutor, limits: Mapping[str, ReadLimit]
    ) -> Iterator[dict[str, Any]]:
        """Yield the summaries of some days, the latest first; begin with `_DAYS_AT_ONCE` at the same time."""

        def begin(item: tuple[str, str]) -> tuple[str, Iterator[dict[str, Any]]]:
            day, owner = item
            summaries = self.of(owner).latest(day, limits.get(owner))
            return day, chain(list(islice(summaries, 1)), summaries)

        parts = (days[start : start + _DAYS_AT_ONCE] for start in range(0, len(days), _DAYS_AT_ONCE))
        begun = chain.from_iterable(pool.map(begin, part) for part in parts)
        for _, of_day in groupby(begun, key=lambda item: item[0]):
            summaries = heapq.merge(*(found for _, found in of_day), key=ended_at, reverse=True)
            yield from filter(query.matches, summaries)

    def read(self, application_id: str, owner: str = "", first: str = "") -> dict[str, Any] | None:
        """Return the record of an application; None if there is none that we may read.

        Parameters
        ----------
        application_id : str
        owner : str, optional
            The application's user, if YARN has named it: only the history of that user counts.
        first : str, optional
            Otherwise the user whose history is searched first. Default: our own.

        Raises
        ------
        ClusterUnreachable
            The file system does not answer.
        """
        if owner:
            return self.of(owner).read(application_id) if fnmatchcase(owner, self._users) else None
        users = sorted(self.owners(), key=lambda name: name != (first or self.cluster.user))
        return next(filter(None, (self.of(user).read(application_id) for user in users)), None)

    def close(self) -> None:
        """Close the connections; it is the last call."""
        self._filesystem.close()


def read_record(cluster: Cluster, application_id: str, owner: str = "") -> dict[str, Any] | None:
    """Return the record of an ended application, our own or one that we may read; None if there is none.

    Its keys are those of ``status.json``; `JobReport.from_dict` reads it too. The owner is the user that YARN has
    named, or empty, see `Histories.read`.
    """
    with closing(Histories(cluster, "*")) as histories:
        return histories.read(application_id, owner)


def with_recorded_tasks(cluster: Cluster, report: JobReport) -> JobReport:
    """Return a report with the tasks of the job's record, if it omits some and there is a record."""
    recorded = _recorded(cluster, report) if report.omitted_tasks else None
    if recorded is None or len(recorded.tasks) <= len(report.tasks):
        return report
    return replace(report, tasks=recorded.tasks, omitted_tasks=recorded.omitted_tasks)


def with_recorded_paths(cluster: Cluster, report: JobReport) -> JobReport:
    """Return the report of an ended job with the paths of its record, if its coordinator has left no report."""
    recorded = None if report.tasks or report.omitted_tasks else _recorded(cluster, report)
    if recorded is None:
        return report
    missing: dict[str, Any] = {name: getattr(recorded, name) for name in _PATHS if getattr(report, name) is None}
    return replace(report, **missing)


def _recorded(cluster: Cluster, report: JobReport) -> JobReport | None:
    try:
        record = read_record(cluster, report.application_id, report.user)
        return JobReport.from_dict(record) if record else None
    except (TfYarnError, OSError, ValueError, TypeError) as error:
        logger.debug("no record completes the report of %s: %s", report.application_id, error)
        return None


def _wanted(owners: Iterable[str], listed: Iterable[list[str]], query: Query) -> list[tuple[str, str]]:
    """Return each day that a query may want with its owner, the latest day first."""
    found = [(day, owner) for owner, days in zip(owners, listed, strict=True) for day in days if query.reaches(day)]
    return sorted(found, key=lambda item: item[0], reverse=True)


def _report_cut(owner: str, cut: set[str] | None) -> None:
    logger.warning(
        "older jobs of %s are left out: %d records of another user are read at a time; ytf history --user %s lists all",
        owner,
        MOST_READ,
        owner,
    )
    if cut is not None:
        cut.add(owner)
