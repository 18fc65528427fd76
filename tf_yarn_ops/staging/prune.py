"""The cache as its owner sees it: what lies there, and what nobody has used for long."""

import re
import time
from dataclasses import dataclass

from .staging_directory import StagingDirectory

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
#: Days without use after which `prune` deletes a file. Applications of less than 14 days may still need theirs.
UNUSED_DAYS = 30.0
#: An upload that took longer than a day was left by a client that died.
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
        When it was last read or written, seconds since the epoch; HDFS keeps reads to the hour.
    abandoned : bool
        Whether it is what an upload left that never ended.
    """

    path: str
    name: str
    size: int
    used_at: float
    abandoned: bool


def list_cache(staging: StagingDirectory) -> list[CachedFile]:
    """Give the files of the user's cache, the longest unused first."""
    files = []
    for folder in staging.filesystem.list(staging.cache):
        if not folder.is_directory or not _DIGEST.match(folder.name):
            continue
        for status in staging.filesystem.list(f"{staging.cache}/{folder.name}"):
            files.append(CachedFile(f"{staging.cache}/{folder.name}/{status.name}", status.name, status.length,
                                    max(status.accessed, status.modified) / 1000, status.name.startswith(".")))
    return sorted(files, key=lambda file: file.used_at)


def prune_cache(staging: StagingDirectory, unused_days: float = UNUSED_DAYS,
                now: float | None = None) -> list[CachedFile]:
    """Delete what nobody has used for long, and what broken uploads left.

    Parameters
    ----------
    staging : StagingDirectory
    unused_days : float, optional
        Default 30. A running application needs its files until it ends: give more than it takes.
    now : float, optional
        Seconds since the epoch. Default: the clock.

    Returns
    -------
    list of CachedFile
        What was deleted.
    """
    now = time.time() if now is None else now
    day = 24 * 3600.0
    deleted = []
    for file in list_cache(staging):
        limit = _ABANDONED_DAYS if file.abandoned else unused_days
        if now - file.used_at > limit * day and staging.filesystem.delete(file.path):
            deleted.append(file)
            folder = file.path.rpartition("/")[0]
            if not staging.filesystem.list(folder):
                staging.filesystem.delete(folder)
    return deleted
