"""Delete what killed clients left behind: directories; and what is old: claims, notes about leases, records."""

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ApplicationNotFound
from ..hadoop.resourcemanager import ENDED, ResourceManager
from .staging_directory import StagingDirectory

logger = logging.getLogger(__name__)

#: The folder of the notes about the holders of leases, see `follow.lease`.
LEASES_FOLDER = "leases"
#: The most directories that one submission checks.
AT_MOST = 20
#: Milliseconds after which an application that YARN does not know counts as ended: twice the default total_timeout. A
#: younger one may run on another cluster with the same file system.
FORGOTTEN_AFTER = 14 * 24 * 3600 * 1000
#: Milliseconds after which a claim, or a note about a lease, counts as old, because no scheduler retries a training for
#: so long.
CLAIMS_FORGOTTEN_AFTER = 90 * 24 * 3600 * 1000
#: The share of submissions that list these folders, which may hold thousands, and the most that each deletes.
CLAIMS_CHANCE, CLAIMS_AT_MOST = 0.02, 200
#: The share of submissions that delete old records of the history and index the last days, and how many days.
RECORDS_CHANCE, RECORDS_DAYS = 0.05, 3

_APPLICATION = re.compile(r"application_\d+_\d+\Z")


def sweep(staging: StagingDirectory, resourcemanager: ResourceManager, keep: str = "",
          on_ended: Callable[[Mapping[str, Any]], object] | None = None) -> list[str]:
    """Delete directories of the user's applications that have ended.

    Parameters
    ----------
    staging : StagingDirectory
    resourcemanager : ResourceManager
    keep : str, optional
        The id of the application that is being submitted. Default: none.
    on_ended : callable, optional
        Called with YARN's object of each ended application before its directory is deleted.

    Returns
    -------
    list of str
        The ids of the applications whose directories were deleted.
    """
    owner = staging.cluster.user
    found = [status for status in staging.filesystem.list(staging.cluster.staging)
             if status.is_directory and status.owner == owner and status.name != keep
             and _APPLICATION.match(status.name)]
    deleted = []
    for status in random.sample(found, min(AT_MOST, len(found))):
        try:
            application = resourcemanager.get(status.name)
            over = application["state"] in ENDED
            if over and on_ended is not None:
                on_ended(application)
        except ApplicationNotFound:
            over = time.time() * 1000 - status.modified > FORGOTTEN_AFTER
        if over and staging.delete(status.name):
            deleted.append(status.name)
    if deleted:
        logger.info("deleted the directories of %s ended applications", len(deleted))
    if random.random() < CLAIMS_CHANCE:
        sweep_old(staging, "claims")
        sweep_old(staging, LEASES_FOLDER)
    if random.random() < RECORDS_CHANCE:
        sweep_records(staging)
        sweep_snapshots(staging, resourcemanager, on_ended)
    return deleted


def sweep_records(staging: StagingDirectory) -> list[str]:
    """Delete the days of the history that are older than the site keeps them; return them. Index the last days."""
    records = staging.records()
    deleted = records.sweep(staging.cluster.site.history_days)
    for day in records.days()[:RECORDS_DAYS]:
        records.summaries(day)
    return deleted


def sweep_snapshots(staging: StagingDirectory, resourcemanager: ResourceManager,
                    on_ended: Callable[[Mapping[str, Any]], object] | None = None) -> None:
    """Call ``on_ended`` for some applications that have ended and left snapshots; then delete these."""
    records = staging.records()
    found = records.snapshots()
    for name in random.sample(sorted(found), min(AT_MOST, len(found))):
        try:
            application = resourcemanager.get(name)
            over = application["state"] in ENDED
            if over and on_ended is not None:
                on_ended(application)
        except ApplicationNotFound:
            over = time.time() * 1000 - found[name] > FORGOTTEN_AFTER
        if over:
            records.delete_snapshot(name)


def sweep_old(staging: StagingDirectory, name: str) -> int:
    """Delete some of the old files in a folder of the staging directory; return their number."""
    folder = f"{staging.cluster.staging}/{name}"
    oldest = time.time() * 1000 - CLAIMS_FORGOTTEN_AFTER
    old = [status.name for status in staging.filesystem.list(folder)
           if status.modified < oldest and status.owner == staging.cluster.user]
    chosen = random.sample(old, min(CLAIMS_AT_MOST, len(old)))
    return sum(staging.filesystem.delete(f"{folder}/{name}") for name in chosen)
