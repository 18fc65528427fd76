"""`Records`: the history of one user, ``<staging>/history/<year>/<month>/<day>/<application id>.json.gz``.

Records never change, so an index file per day, which the owner's clients write, spares readers most of them.
"""

import functools
import gzip
import json
import logging
import re
import threading
import time
import uuid
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import SubmissionRejected
from ..hadoop.filesystem import FileSystem
from ..runtime.common.clock import DAY
from ..runtime.common.contract import APPLICATION_ID
from ..runtime.common.file_storage import FileStatus, put_whole
from ..runtime.common.record import (
    DAY_MODE,
    MAX_JSON,
    MAX_UNPACKED,
    SNAPSHOTS,
    SUFFIX,
    day_folder,
    record_path,
    snapshot_paths,
    unpack_record,
)
from ..runtime.common.values import parse_json
from ..staging.staging_directory import StagingDirectory
from .record_summary import read_summary, summarise

logger = logging.getLogger(__name__)

#: Version of the index files.
INDEX_SCHEMA = 1
#: Requests at the same time.
THREADS = 8
#: Records without an index entry that a reader reads one by one before it writes a new index of the day.
LOOSE = 5
#: Records of another user that are read at first; each further slice of a day has twice as many.
SLICE = 16
#: Days that are searched for an application at the same time.
_CHUNK = 32
#: Milliseconds after which an unfinished file counts as abandoned.
_ABANDONED = 1000 * DAY
_INDEX = re.compile(r"\.index-[0-9a-f]{12}\.json\.gz\Z")
_RECORD = re.compile(rf"({APPLICATION_ID})\.json\.gz\Z")
_SNAPSHOT = re.compile(rf"({APPLICATION_ID})-[01]\.json\.gz\Z")
# Of days that can be: who makes up folders costs a reader no more lists than a calendar has months.
_PARTS = (re.compile(r"20\d\d\Z"), re.compile(r"(0[1-9]|1[0-2])\Z"), re.compile(r"(0[1-9]|[12]\d|3[01])\Z"))
#: Bits of a mode that let others read, or that show an ACL.
_OTHERS = 0o077


class ReadLimit:
    """How many records of a user's history may still be read one by one; safe for several threads.

    Parameters
    ----------
    most : int
    on_reached : callable
        Called once, when a reader wants more.
    """

    def __init__(self, most: int, on_reached: Callable[[], None]):
        self._left, self._lock, self._on_reached = most, threading.Lock(), on_reached

    def take(self, wanted: int) -> int:
        """Return how many of the wanted records may be read."""
        with self._lock:
            given = min(wanted, self._left)
            self._left -= given
            if given < wanted:
                self._on_reached()
                self._on_reached = lambda: None
            return given


class Records:
    """The records of one user.

    A record counts only if it names that user and its file belongs to that user, or to who can write every file: the
    owner of ``/``, which is the superuser of HDFS, and `Site.trusted_owner`.

    Parameters
    ----------
    filesystem : FileSystem
    folder : str
        `Cluster.history` of that user.
    owner : str
        That user.
    owned : bool, optional
        Whether we may write there: indexes of days are written, and abandoned files deleted. Default False.
    trusted : str, optional
        `Site.trusted_owner`.
    """

    def __init__(
        self, filesystem: FileSystem, folder: str, owner: str, owned: bool = False, trusted: str | None = None
    ):
        self.filesystem, self.folder, self.owner, self.owned = filesystem, folder, owner, owned
        self._trusted = trusted
        self._most = MAX_UNPACKED if owned else MAX_JSON
        self._read: defaultdict[str, dict[str, tuple[int, dict[str, Any]]]] = defaultdict(dict)  # by day and name
        self._warned: dict[tuple[str, str], object] = {}  # folders and causes
        self._closed = False  # a file that only its owner may read was refused

    def days(self, month: str = "") -> list[str]:
        """Return the days, all or of a month, ``2026/11``, that have records, ``2026/11/22``, the latest first."""
        found = [month]
        with ThreadPoolExecutor(THREADS) as pool:
            for part in _PARTS[-1:] if month else _PARTS:
                listed = pool.map(lambda above: (above, self._list(above)), found)
                found = [
                    f"{above}/{status.name}".lstrip("/")
                    for above, entries in listed
                    for status in entries
                    if status.is_directory and part.match(status.name)
                ]
        tomorrow = day_folder(time.time() + DAY)
        return sorted((day for day in found if day <= tomorrow), reverse=True)

    def _list(self, day: str) -> list[FileStatus]:
        try:
            return self.filesystem.list(f"{self.folder}/{day}".rstrip("/"))
        except SubmissionRejected as error:  # another user's history that we may not see
            logger.debug("%s", error)
            return []

    def summaries(self, day: str) -> list[dict[str, Any]]:
        """Return the summaries of a day's records that we may read, the latest first; see `latest`."""
        return list(self.latest(day))

    def latest(self, day: str, limit: ReadLimit | None = None) -> Iterator[dict[str, Any]]:
        """Yield the summaries of a day's records that we may read, the latest first; see `summarise`.

        Records of another user are read as the caller goes on: nobody but their owner has an index of them.

        Parameters
        ----------
        day : str
        limit : ReadLimit, optional
            At the limit the older records are left out. Default: none.

        Raises
        ------
        ClusterUnreachable
            The file system does not answer.
        """
        entries = self._list(day)
        indexes = sorted((one for one in entries if _INDEX.match(one.name)), key=lambda one: one.modified)
        counted = [one for one in indexes if self._counts(f"{self.folder}/{day}/{one.name}", one)]
        known = self._read_index(day, counted[-1]) if counted else {}
        files = [
            one for one in entries if _RECORD.match(one.name) and self._counts(f"{self.folder}/{day}/{one.name}", one)
        ]
        files.sort(key=lambda one: one.modified, reverse=True)
        known |= self._read[day]
        if self.owned:
            if self._read_loose(day, files, known) > LOOSE:
                self._write_index(day, {status.name: known[status.name] for status in files}, indexes)
            self._clean(day, entries)
        waiting: list[dict[str, Any]] = []
        start, size = 0, SLICE
        while start < len(files):
            part, start, size = files[start : start + size], start + size, 2 * size
            self._read_loose(day, part, known, limit)
            found = (known.get(status.name, (0, {}))[1] for status in part)
            waiting += [summary for summary in found if summary.get("user") == self.owner]
            waiting.sort(key=ended_at, reverse=True)
            # A record is written after the end of its job: what was written before can't have ended later.
            until = files[start].modified / 1000 if start < len(files) else 0.0
            ready = sum(ended_at(summary) >= until for summary in waiting)
            yield from waiting[:ready]
            del waiting[:ready]

    def _read_loose(
        self,
        day: str,
        files: Iterable[FileStatus],
        known: dict[str, tuple[int, dict[str, Any]]],
        limit: ReadLimit | None = None,
    ) -> int:
        """Read the records of which no summary is known, the latest first; return how many there were."""
        loose = [
            status
            for status in files
            if known.get(status.name, (0, {}))[0] != status.modified
            and (not self._closed or status.permission & _OTHERS)
        ]
        del loose[limit.take(len(loose)) if limit else len(loose) :]
        with ThreadPoolExecutor(THREADS) as pool:
            for status, summary in zip(loose, pool.map(lambda one: self._summary(day, one), loose), strict=True):
                known[status.name] = self._read[day][status.name] = (status.modified, summary)
        return len(loose)

    def _summary(self, day: str, status: FileStatus) -> dict[str, Any]:
        """Return the summary of a record; empty if it can't be read."""
        record = self._load(f"{self.folder}/{day}/{status.name}", status.name.removesuffix(SUFFIX), status)
        return summarise(record) if record else {}

    def _load(self, path: str, application_id: str, status: FileStatus) -> dict[str, Any] | None:
        """Return the record in a file that counts; None if it can't be read, or names another user than the owner."""
        try:
            content = self._content(path, status)
            record = None if content is None else unpack_record(content, self._most)
        except SubmissionRejected as error:  # another user's record that we may not see
            logger.debug("%s is left out: %s", path, error)
            self._closed = self._closed or not status.permission & _OTHERS
            return None
        except ValueError as error:
            self._leave_out(path, "content", str(error))
            return None
        if record is not None and record.get("user") != self.owner:
            logger.debug("%s is left out: it names the user %r", path, record.get("user"))
            return None
        return record and {**record, "application_id": application_id}

    def _content(self, path: str, status: FileStatus) -> bytes | None:
        """Return the content of a file; raise ValueError for one that is larger than its JSON may be."""
        if status.length > self._most:
            raise ValueError(f"not a record: {status.length} bytes are more than {self._most}")
        return self.filesystem.read(path, 0, self._most)

    def _leave_out(self, path: str, cause: str, why: str) -> None:
        """Log that a file is left out; warn once for each folder and cause."""
        mark = object()
        first = self._warned.setdefault((path.rpartition("/")[0], cause), mark) is mark
        logger.log(logging.WARNING if first else logging.DEBUG, "%s is left out: %s", path, why)

    def _counts(self, path: str, status: FileStatus | None) -> bool:
        """Return whether only the user, or who can write every file, has written a file."""
        if status is None or status.owner in (self.owner, self._trusted) or status.owner == self._superuser:
            return status is not None
        self._leave_out(path, "owner", f"it belongs to {status.owner}, not to {self.owner}")
        return False

    @functools.cached_property
    def _superuser(self) -> str | None:
        """The owner of ``/``: in HDFS its superuser, on this machine who made the folder."""
        top = self._status("/")
        return top and top.owner

    def _read_index(self, day: str, status: FileStatus) -> dict[str, tuple[int, dict[str, Any]]]:
        try:
            content = self._content(f"{self.folder}/{day}/{status.name}", status)
            document = parse_json(zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(content or b"", self._most))
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
                    if status is not None and self._counts(path, status):
                        return self._load(path, application_id, status)
        return None

    def _status(self, path: str) -> FileStatus | None:
        try:
            return self.filesystem.status(path)
        except SubmissionRejected:
            return None

    def snapshot(self, application_id: str) -> dict[str, Any] | None:
        """Return what the coordinator of a job has left last while the job ran; None if there is nothing."""
        statuses = ((path, self._status(path)) for path in snapshot_paths(self.folder, application_id))
        read = (self._load(path, application_id, one) for path, one in statuses if one and self._counts(path, one))
        return max(filter(None, read), key=lambda record: record.get("written_at") or 0.0, default=None)

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
        files = ((f"{self.folder}/{day}", status) for day in self.days() if day >= first for status in self._list(day))
        return {
            match[1]
            for folder, status in files
            if (match := _RECORD.match(status.name)) and self._counts(f"{folder}/{status.name}", status)
        }

    def has(self, application_id: str, at: float) -> bool:
        """Return whether there is a record of an application that ended for YARN at this moment.

        Its coordinator may have written it up to an hour before, perhaps on the day before.
        """
        paths = {record_path(self.folder, application_id, moment) for moment in (at, at - 3600)}
        return any(self._counts(path, self._status(path)) for path in paths)

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
        for above in sorted({part for day in old for part in (day[:7], day[:4])}, reverse=True):  # months, years
            if not self.filesystem.list(f"{self.folder}/{above}"):
                self.filesystem.delete(f"{self.folder}/{above}")
        return old


def ended_at(summary: Mapping[str, Any]) -> float:
    """Return when the job of a summary ended, seconds since the epoch; 0 if that is not known."""
    return float(summary.get("finished_at") or 0.0)


def records_of(staging: StagingDirectory) -> Records:
    """Return the history of the user of a staging directory."""
    cluster = staging.cluster
    return Records(staging.filesystem, cluster.history, cluster.user, True, cluster.site.trusted_owner)
