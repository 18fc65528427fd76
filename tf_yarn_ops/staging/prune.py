"""List and delete the files of the user's cache."""

import re
import time
from dataclasses import dataclass

from ..runtime.common.clock import DAY
from .staging_directory import StagingDirectory

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
#: Days without use after which `prune_cache` deletes a file. Applications may need their files for up to 14 days.
UNUSED_DAYS = 30.0
#: Days after which an unfinished upload counts as abandoned.
_ABANDONED_DAYS = 1.0


@dataclass(frozen=True)
class CachedFile:
    """One file of the cache.

    Attributes
    ----------
    path : str
    name : str
    size : int
        Bytes.
    used_at : float
        Time of the last read or write, seconds since the epoch; HDFS notes reads to the hour.
    abandoned : bool
        Whether it is an unfinished upload.
    """

    path: str
    name: str
    size: int
    used_at: float
    abandoned: bool


def list_cache(staging: StagingDirectory) -> list[CachedFile]:
    """Return the files of the user's cache, the longest unused first."""
    return sorted(
        (
            CachedFile(
                f"{staging.cache}/{folder.name}/{status.name}",
                status.name,
                status.length,
                max(status.accessed, status.modified) / 1000,
                status.name.startswith("."),
            )
            for folder in staging.filesystem.list(staging.cache)
            if folder.is_directory and _DIGEST.match(folder.name)
            for status in staging.filesystem.list(f"{staging.cache}/{folder.name}")
        ),
        key=lambda file: file.used_at,
    )


def prune_cache(staging: StagingDirectory, unused_days: float = UNUSED_DAYS) -> list[CachedFile]:
    """Delete files that were not used for long, and unfinished uploads.

    Parameters
    ----------
    staging : StagingDirectory
    unused_days : float, optional
        Default 30. A running application needs its files until it ends, so give more days than any application runs.

    Returns
    -------
    list of CachedFile
        The deleted files.
    """
    deleted = []
    for file in list_cache(staging):
        limit = _ABANDONED_DAYS if file.abandoned else unused_days
        if time.time() - file.used_at > limit * DAY and staging.filesystem.delete(file.path):
            deleted.append(file)
            folder = file.path.rpartition("/")[0]
            if not staging.filesystem.list(folder):
                staging.filesystem.delete(folder)
    return deleted
