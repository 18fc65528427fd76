"""Delete what killed clients left behind: directories; and what is old: claims, notes about leases, records."""

import logging
import random
import re
import time

from ..errors import ApplicationNotFound, TfYarnError
from ..hadoop.backend import Backend
from ..hadoop.resourcemanager import ENDED
from ..history.missing_record import keep_record
from ..history.records import records_of
from ..runtime.common.clock import DAY
from ..runtime.common.contract import TAG_PREFIX
from ..staging.staging_directory import CLAIMS_FOLDER, LEASES_FOLDER, StagingDirectory
from .lease import with_holder
from .yarn_report import read_yarn_report

logger = logging.getLogger(__name__)

#: The most directories that one submission checks.
MAX_DIRECTORIES = 20
#: Hours after the end of a job in which a submission writes its missing record.
RECENT_HOURS = 24
#: Milliseconds after which an application that YARN does not know counts as ended: twice the default total_timeout. A
#: younger one may run on another cluster with the same file system.
FORGOTTEN_AFTER = 14 * 24 * 3600 * 1000
#: Days after which a claim, or a note about a lease, counts as old: no scheduler retries a training for so long.
OLD_DAYS = 90.0
#: The share of submissions that list these folders, which may hold thousands, and the most files that each deletes.
OLD_CHANCE, OLD_AT_MOST = 0.02, 200
#: The share of submissions that delete old records of the history and index the last days, and how many days.
RECORDS_CHANCE, RECORDS_DAYS = 0.05, 3

_APPLICATION = re.compile(r"application_\d+_\d+\Z")


def sweep_ended(staging: StagingDirectory, resourcemanager: Backend, keep: str) -> None:
    """Delete what ended applications have left, and write their missing records; an error is only logged.

    Parameters
    ----------
    staging : StagingDirectory
    resourcemanager : Backend
    keep : str
        The id of the application that is being submitted.
    """
    try:
        deleted = sweep_directories(staging, resourcemanager, keep)
        if deleted:
            logger.info("deleted the directories of %s ended applications", len(deleted))
        keep_missing_records(staging, resourcemanager, RECENT_HOURS)
        if random.random() < OLD_CHANCE:
            sweep_old(staging, CLAIMS_FOLDER)
            sweep_old(staging, LEASES_FOLDER)
        if random.random() < RECORDS_CHANCE:
            sweep_records(staging)
            sweep_snapshots(staging, resourcemanager)
    except TfYarnError as error:
        logger.debug("could not sweep the staging directory: %s", error)


def keep_missing_records(staging: StagingDirectory, resourcemanager: Backend, hours: float) -> None:
    """Write the missing records of our jobs that ended in the last hours, as far as YARN knows them.

    A job that nobody waits for, and that dies before its coordinator starts, leaves nothing else: Skein's application
    master deletes its directory, and there is no snapshot yet.

    Raises
    ------
    TfYarnError
        YARN or the file system does not answer.
    """
    if not staging.cluster.site.history_days:
        return
    since = time.time() - 3600 * hours
    ended = resourcemanager.find(states=ENDED, user=staging.cluster.user, finished_since=since)
    ours = [
        application
        for application in ended
        if any(tag.strip().startswith(TAG_PREFIX) for tag in str(application.get("applicationTags")).split(","))
    ]
    recorded = records_of(staging).recorded(since - DAY) if ours else set()
    for application in ours:
        if application["id"] not in recorded:
            keep_record(staging, with_holder(lambda user: staging, read_yarn_report(application)))


def sweep_directories(staging: StagingDirectory, resourcemanager: Backend, keep: str = "") -> list[str]:
    """Delete directories of the user's applications that have ended, up to `MAX_DIRECTORIES`; return their ids."""
    owner = staging.cluster.user
    found = {
        status.name: status.modified
        for status in staging.filesystem.list(staging.cluster.staging)
        if status.is_directory and status.owner == owner and status.name != keep and _APPLICATION.match(status.name)
    }
    return [
        name
        for name in _chosen(found)
        if _is_over(staging, resourcemanager, name, found[name]) and staging.delete(name)
    ]


def sweep_snapshots(staging: StagingDirectory, resourcemanager: Backend) -> None:
    """Delete snapshots of applications that have ended, up to `MAX_DIRECTORIES`; first write missing records."""
    records = records_of(staging)
    found = records.snapshots()
    for name in _chosen(found):
        if _is_over(staging, resourcemanager, name, found[name]):
            records.delete_snapshot(name)


def _chosen(found: dict[str, int]) -> list[str]:
    return random.sample(sorted(found), min(MAX_DIRECTORIES, len(found)))


def _is_over(staging: StagingDirectory, resourcemanager: Backend, name: str, modified: int) -> bool:
    """Return whether an application has ended; write its record if it is missing."""
    try:
        application = resourcemanager.get(name)
    except ApplicationNotFound:
        return time.time() * 1000 - modified > FORGOTTEN_AFTER
    if application["state"] not in ENDED:
        return False
    keep_record(staging, with_holder(lambda user: staging, read_yarn_report(application)))
    return True


def sweep_records(staging: StagingDirectory) -> list[str]:
    """Delete the days of the history that are older than the site keeps them; return them. Index the last days."""
    records = records_of(staging)
    deleted = records.sweep(staging.cluster.site.history_days)
    for day in records.days()[:RECORDS_DAYS]:
        records.summaries(day)
    return deleted


def sweep_old(staging: StagingDirectory, name: str, days: float = OLD_DAYS) -> int:
    """Delete up to `OLD_AT_MOST` of the user's files that are older than so many days; return their number.

    Parameters
    ----------
    staging : StagingDirectory
    name : str
        A folder of it.
    days : float, optional
        Default 90.
    """
    folder = f"{staging.cluster.staging}/{name}"
    oldest = (time.time() - days * DAY) * 1000
    old = [
        status.name
        for status in staging.filesystem.list(folder)
        if status.modified < oldest and status.owner == staging.cluster.user
    ]
    chosen = random.sample(old, min(OLD_AT_MOST, len(old)))
    return sum(staging.filesystem.delete(f"{folder}/{name}") for name in chosen)
