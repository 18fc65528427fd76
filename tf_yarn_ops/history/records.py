"""`Records`: the history of one user, ``<staging>/history/<year>/<month>/<day>/<application id>.json.gz``.

Records never change, so an index file per day, which the owner's clients write, spares readers most of them.
"""

import gzip
import json
import logging
import re
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import SubmissionRejected
from ..hadoop.filesystem import FileSystem
from ..runtime.common.clock import DAY
from ..runtime.common.contract import APPLICATION_ID
from ..runtime.common.file_storage import FileStatus, put_whole
from ..runtime.common.record import (
    DAY_MODE,
    MAX_UNPACKED,
    SNAPSHOTS,
    SUFFIX,
    day_folder,
    record_path,
    snapshot_paths,
    unpack_record,
)
from ..staging.staging_directory import StagingDirectory
from .record_summary import read_summary, summarise

logger = logging.getLogger(__name__)

#: Version of the index files.
INDEX_SCHEMA = 1
#: Requests at the same time.
THREADS = 8
#: Records without an index entry that a reader reads one by one before it writes a new index of the day.
LOOSE = 5
#: Days that are searched for an application at the same time.
_CHUNK = 32
#: Milliseconds after which an unfinished file counts as abandoned.
_ABANDONED = 1000 * DAY
_INDEX = re.compile(r"\.index-[0-9a-f]{12}\.json\.gz\Z")
_RECORD = re.compile(rf"({APPLICATION_ID})\.json\.gz\Z")
_SNAPSHOT = re.compile(rf"({APPLICATION_ID})-[01]\.json\.gz\Z")
_PARTS = (re.compile(r"\d{4}\Z"), re.compile(r"\d{2}\Z"), re.compile(r"\d{2}\Z"))


class Records:
    """The records of one user: a record that names another one does not count, because the owner has written it.

    Parameters
    ----------
    filesystem : FileSystem
    folder : str
        `Cluster.history` of that user.
    owner : str
        That user.
    owned : bool, optional
        Whether we may write there: indexes of days are written, and abandoned files deleted. Default False.
    """

    def __init__(self, filesystem: FileSystem, folder: str, owner: str, owned: bool = False):
        self.filesystem, self.folder, self.owner, self.owned = filesystem, folder, owner, owned
        self._read: dict[str, tuple[int, dict[str, Any]]] = {}
        self._broken: dict[str, str] = {}  # the first broken file of each folder

    def days(self) -> list[str]:
        """Return the days that have records, ``2026/11/22``, the latest first."""
        found = [""]
        with ThreadPoolExecutor(THREADS) as pool:
            for part in _PARTS:
                listed = pool.map(lambda above: (above, self._list(above)), found)
                found = [
                    f"{above}/{status.name}".lstrip("/")
                    for above, entries in listed
                    for status in entries
                    if status.is_directory and part.match(status.name)
                ]
        return sorted(found, reverse=True)

    def days_of(self, month: str) -> list[str]:
        """Return the days of a month, ``2026/11``, that have records, the latest first."""
        return sorted(
            (
                f"{month}/{status.name}"
                for status in self._list(month)
                if status.is_directory and _PARTS[2].match(status.name)
            ),
            reverse=True,
        )

    def _list(self, day: str) -> list[FileStatus]:
        try:
            return self.filesystem.list(f"{self.folder}/{day}".rstrip("/"))
        except SubmissionRejected as error:  # another user's history that we may not see
            logger.debug("%s", error)
            return []

    def summaries(self, day: str) -> list[dict[str, Any]]:
        """Return the summaries of a day's records that we may read, the latest first; see `summarise`.

        Raises
        ------
        ClusterUnreachable
            The file system does not answer.
        """
        entries = self._list(day)
        indexes = sorted((status for status in entries if _INDEX.match(status.name)), key=lambda one: one.modified)
        known = self._read_index(day, indexes[-1]) if indexes else {}
        files = [status for status in entries if _RECORD.match(status.name)]
        for status in files:
            cached = self._read.get(f"{day}/{status.name}")
            if cached:
                known[status.name] = cached
        loose = [status for status in files if known.get(status.name, (0, {}))[0] != status.modified]
        with ThreadPoolExecutor(THREADS) as pool:
            for status, summary in zip(loose, pool.map(lambda one: self._summary(day, one.name), loose), strict=True):
                known[status.name] = self._read[f"{day}/{status.name}"] = (status.modified, summary)
        known = {status.name: known[status.name] for status in files}
        if self.owned and len(loose) > LOOSE:
            self._write_index(day, known, indexes)
        if self.owned:
            self._clean(day, entries)
        found = [summary for _, summary in known.values() if summary.get("user") == self.owner]
        return sorted(found, key=lambda summary: summary.get("finished_at") or 0.0, reverse=True)

    def _summary(self, day: str, name: str) -> dict[str, Any]:
        """Return the summary of a record; empty if it can't be read."""
        record = self._load(f"{self.folder}/{day}/{name}", name.removesuffix(SUFFIX))
        return summarise(record) if record else {}

    def _load(self, path: str, application_id: str) -> dict[str, Any] | None:
        """Return the record in a file; None if it can't be read, or names another user than the owner."""
        try:
            content = self.filesystem.read(path)
            record = None if content is None else unpack_record(content)
        except SubmissionRejected as error:  # another user's record that we may not see
            logger.debug("%s is left out: %s", path, error)
            return None
        except ValueError as error:
            first = self._broken.setdefault(path.rpartition("/")[0], path)
            logger.log(logging.WARNING if path == first else logging.DEBUG, "%s is left out: %s", path, error)
            return None
        if record is not None and record.get("user") != self.owner:
            logger.debug("%s is left out: it names the user %r", path, record.get("user"))
            return None
        return record and {**record, "application_id": application_id}

    def _read_index(self, day: str, status: FileStatus) -> dict[str, tuple[int, dict[str, Any]]]:
        try:
            content = self.filesystem.read(f"{self.folder}/{day}/{status.name}")
            document = json.loads(zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(content or b"", MAX_UNPACKED))
            if document["schema"] != INDEX_SCHEMA:
                return {}
            found = {name: (int(modified), dict(summary)) for name, (modified, summary) in document["records"].items()}
        except (
            SubmissionRejected,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
            zlib.error,
        ) as error:
            logger.debug("the index of %s is left out: %s", day, error)
            return {}
        if self.owned:
            return found
        what = f"the index {self.folder}/{day}/{status.name}"
        return {
            name: (
                modified,
                {**read_summary(summary, what), "application_id": name.removesuffix(SUFFIX)} if summary else {},
            )
            for name, (modified, summary) in found.items()
        }

    def _write_index(
        self, day: str, known: Mapping[str, tuple[int, Mapping[str, Any]]], old: Iterable[FileStatus]
    ) -> None:
        """Write the index of a day under a new name, then delete the old ones; readers take the latest."""
        document = {"schema": INDEX_SCHEMA, "records": known}
        content = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 6)
        folder = f"{self.folder}/{day}"
        try:
            if put_whole(self.filesystem, f"{folder}/.index-{uuid.uuid4().hex[:12]}{SUFFIX}", content):
                for status in old:
                    self.filesystem.delete(f"{folder}/{status.name}")
        except SubmissionRejected as error:  # a reader can do without
            logger.debug("the index of %s was not written: %s", day, error)

    def _clean(self, day: str, entries: Iterable[FileStatus]) -> None:
        """Delete unfinished files that killed writers left behind."""
        for status in entries:
            unfinished = status.name.startswith(".") and not _INDEX.match(status.name)
            if unfinished and time.time() * 1000 - status.modified > _ABANDONED:
                self.filesystem.delete(f"{self.folder}/{day}/{status.name}")

    def read(self, application_id: str) -> dict[str, Any] | None:
        """Return the record of an application; None if there is none that we may read.

        Raises
        ------
        ClusterUnreachable
            The file system does not answer.
        """
        name = f"{application_id}{SUFFIX}"
        match = _RECORD.match(name)
        if not match:
            return None
        # The id holds the start of its ResourceManager; no application ends before. A clock may be a day off.
        earliest = day_folder(int(match[2]) / 1000 - DAY)
        days = [day for day in self.days() if day >= earliest]
        with ThreadPoolExecutor(THREADS) as pool:
            for start in range(0, len(days), _CHUNK):
                paths = [f"{self.folder}/{day}/{name}" for day in days[start : start + _CHUNK]]
                for path, status in zip(paths, pool.map(self._status, paths), strict=True):
                    if status is not None:
                        return self._load(path, application_id)
        return None

    def _status(self, path: str) -> FileStatus | None:
        try:
            return self.filesystem.status(path)
        except SubmissionRejected:
            return None

    def snapshot(self, application_id: str) -> dict[str, Any] | None:
        """Return what the coordinator of a job has left last while the job ran; None if there is nothing."""
        paths = snapshot_paths(self.folder, application_id)
        found = [record for path in paths if (record := self._load(path, application_id))]
        return max(found, key=lambda record: record.get("written_at") or 0.0, default=None)

    def snapshots(self) -> dict[str, int]:
        """Return the applications with snapshots, and when each was written last, milliseconds since the epoch."""
        found: dict[str, int] = {}
        for status in self._list(SNAPSHOTS):
            if match := _SNAPSHOT.match(status.name):
                found[match[1]] = max(status.modified, found.get(match[1], 0))
        return found

    def delete_snapshot(self, application_id: str) -> None:
        """Delete the snapshots of a job."""
        for path in snapshot_paths(self.folder, application_id):
            self.filesystem.delete(path)

    def recorded(self, since: float) -> set[str]:
        """Return the applications with a record of a day since this moment, seconds since the epoch."""
        first = day_folder(since)
        names = (status.name for day in self.days() if day >= first for status in self._list(day))
        return {match[1] for name in names if (match := _RECORD.match(name))}

    def has(self, application_id: str, at: float) -> bool:
        """Return whether there is a record of an application that ended for YARN at this moment.

        Its coordinator may have written it up to an hour before, perhaps on the day before.
        """
        paths = {record_path(self.folder, application_id, moment) for moment in (at, at - 3600)}
        return any(self._status(path) is not None for path in paths)

    def write(
        self, application_id: str, at: float, content: bytes, users: Iterable[str] = (), groups: Iterable[str] = ()
    ) -> bool:
        """Write a record unless there is one.

        Parameters
        ----------
        application_id : str
        at : float
            When the job ended, seconds since the epoch.
        content : bytes
            Of `pack_record`.
        users, groups : iterable of str, optional
            Who may read it besides the owner.

        Returns
        -------
        bool
            False if there was one.
        """
        path = record_path(self.folder, application_id, at)
        self.filesystem.makedirs(path.rpartition("/")[0], DAY_MODE)
        return put_whole(self.filesystem, path, content, tuple(users), tuple(groups))

    def sweep(self, keep_days: int, now: float | None = None) -> list[str]:
        """Delete the days that are older than so many days; return them.

        Parameters
        ----------
        keep_days : int
        now : float, optional
            Seconds since the epoch. Default: now.
        """
        oldest = day_folder((time.time() if now is None else now) - keep_days * DAY)
        old = [day for day in self.days() if day < oldest]
        for day in old:
            self.filesystem.delete(f"{self.folder}/{day}")
        for above in sorted({part for day in old for part in _above(day)}, reverse=True):
            if not self.filesystem.list(f"{self.folder}/{above}"):
                self.filesystem.delete(f"{self.folder}/{above}")
        return old


def _above(day: str) -> Iterator[str]:
    year, month, _ = day.split("/")
    yield f"{year}/{month}"
    yield year


def records_of(staging: StagingDirectory) -> Records:
    """Return the history of the user of a staging directory."""
    return Records(staging.filesystem, staging.cluster.history, staging.cluster.user, owned=True)
