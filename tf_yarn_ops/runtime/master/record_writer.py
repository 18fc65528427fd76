"""Write the record of the ended job into the history: WebHDFS with the container's token, retries and a deadline.

The verdict waits for it at most `RECORD_HOLD_SECONDS`; later the write goes on while YARN takes the verdict. A client
that sees the end writes what is missing. While the job runs, `Snapshots` leaves what a client can't know if the
coordinator is killed.

References
----------
Hadoop, "WebHDFS REST API": CREATE takes two requests, MODIFYACLENTRIES lets further users read.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
from typing import Any, Callable, Mapping, Optional, Set

from ..common.contract import HistoryPlan, Job
from ..common.file_storage import LocalFolder, Storage, StorageRefused, put_whole
from ..common.hdfs import Hdfs
from ..common.masking import mask_texts
from ..common.record import COORDINATOR, DAY_MODE, build_record, pack_record, record_path, snapshot_paths
from ..common.report import yarn_cost, yarn_times
from .verdict import fetch_application

logger = logging.getLogger(__name__)

#: Seconds for which the verdict waits for the record, at most.
RECORD_HOLD_SECONDS = 1.0
#: Seconds after which the coordinator gives up.
WRITE_SECONDS = 20.0
#: Seconds for one request.
RECORD_SECONDS = 5.0
#: Seconds before the second attempt; each later pause is twice as long.
PAUSE = 0.2
#: The least seconds between two snapshots while the state stays the same, and when it has changed since the last one.
SNAPSHOT_SECONDS, CHANGE_SECONDS = 60.0, 10.0
#: Between two snapshots there is at least this multiple of the time that one took.
SNAPSHOT_REST = 50
#: Seconds between two looks whether a snapshot is due.
SNAPSHOT_POLL_SECONDS = 1.0
#: Mode of the folder of snapshots, which have no ACLs, and of one.
SNAPSHOTS_MODE, SNAPSHOT_MODE = 0o700, 0o600


class Snapshots:
    """Leaves in the file system what the coordinator knows of the running job.

    A snapshot is due `SNAPSHOT_SECONDS` after the last one or, if the state has changed since, `CHANGE_SECONDS` after
    it; for the first one the start counts. Between two there is `SNAPSHOT_REST` times as long as the last one took.

    Parameters
    ----------
    job : Job
    application_id : str
    state : callable
        Returns an object that is another one after each change of the job's state.
    status : callable
        Returns the document of ``status.json``.
    """

    def __init__(
        self, job: Job, application_id: str, state: Callable[[], object], status: Callable[[], Mapping[str, Any]]
    ):
        self._job, self._state, self._status = job, state, status
        self._paths = snapshot_paths(job.history.folder, application_id) if job.history else ()
        self._lock = threading.Lock()
        self._written, self._removed, self._fault = 0, False, ""
        self._begun: Set[str] = set()  # a write that fails may leave a file, too

    async def leave(self) -> None:
        """Write snapshots, none after `remove`; return at once if the site keeps no history."""
        seen: object = None
        at, cost = time.monotonic(), 0.0
        while self._paths:
            await asyncio.sleep(SNAPSHOT_POLL_SECONDS)
            waited, state = time.monotonic() - at, self._state()
            if waited < max(CHANGE_SECONDS if state is not seen else SNAPSHOT_SECONDS, SNAPSHOT_REST * cost):
                continue
            seen, began = state, time.monotonic()
            try:
                status = self._status()
            except Exception:  # a snapshot must not cost the job
                logger.exception("No snapshot of the job is made any more")
                return
            await _in_thread(self._write, status)
            at = time.monotonic()
            cost = at - began

    def _write(self, status: Mapping[str, Any]) -> None:
        plan = self._job.history
        assert plan is not None
        content = pack_record(build_record(mask_texts(status, self._job.secrets), COORDINATOR, time.time()))
        with self._lock:
            if self._removed:
                return
            path = self._paths[self._written % 2]
            self._begun.add(path)
            try:
                files = _storage_of(self._job)
                if not self._written:
                    files.makedirs(plan.folder, DAY_MODE)
                    files.makedirs(os.path.dirname(path), SNAPSHOTS_MODE)
                files.replace(path, content, SNAPSHOT_MODE)
                self._written += 1
                self._fault = ""
            except OSError as error:
                if str(error) != self._fault:
                    logger.info("No snapshot of the job is written: %s", error)
                self._fault = str(error)

    def remove(self) -> None:
        """Delete the snapshots, because there is a record, and write none any more."""
        with self._lock:
            self._removed = True
            for path in self._begun:
                try:
                    _storage_of(self._job).delete(path)
                except OSError as error:
                    logger.info("The snapshot %s was not deleted: %s", path, error)


def begin_record(
    job: Job, application_id: str, status: Mapping[str, Any], snapshots: Snapshots
) -> "asyncio.Future[None]":
    """Begin to write the record of an ended job, which replaces the snapshots; return the future of its end."""

    def write() -> None:
        if keep(job, application_id, status) is not None:
            snapshots.remove()

    return _in_thread(write)


def _in_thread(function: Callable[..., None], *arguments: Any) -> "asyncio.Future[None]":
    """Call a function in a thread that ends with the process; its fault is logged, and costs the job nothing."""
    loop = asyncio.get_running_loop()
    done: "asyncio.Future[None]" = loop.create_future()

    def run() -> None:
        try:
            function(*arguments)
        except Exception:
            logger.exception("The history was not written")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(None))

    threading.Thread(target=run, name="history", daemon=True).start()
    return done


def keep(job: Job, application_id: str, status: Mapping[str, Any]) -> Optional[str]:
    """Write the record of an ended job; return its path, or None if it could not be written. It blocks.

    After an OSError it tries again, unless the next try would begin more than `WRITE_SECONDS` after the call.

    Parameters
    ----------
    job : Job
        Its ``history`` says where.
    application_id : str
    status : mapping
        As `common.status.build_status` returns it.
    """
    plan = job.history
    if plan is None:
        return None
    began = time.monotonic()
    path = record_path(plan.folder, application_id, float(status.get("finished_at") or time.time()))
    content = pack_record(build_record(_complete(job, application_id, status), COORDINATOR, time.time()))
    pause = PAUSE
    while True:
        try:
            _write(job, plan, path, content)
            logger.info(
                "Wrote the record %s, %d bytes, in %.0f ms", path, len(content), 1000 * (time.monotonic() - began)
            )
            return path
        except OSError as error:
            if time.monotonic() + pause > began + WRITE_SECONDS:
                logger.warning("The record %s was not written: %s", path, error)
                return None
            logger.info("The record %s is not written yet: %s", path, error)
            time.sleep(pause)
            pause *= 2


def _complete(job: Job, application_id: str, status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the status with the times and the cost that YARN knows, and with the job's secrets masked."""
    known = fetch_application(job, application_id)
    document = {**status, **yarn_cost(known), **yarn_times(known, status.get("started_at"))}
    if not document.get("tracking_url") and "://" in str(known.get("trackingUrl")):
        document["tracking_url"] = known["trackingUrl"]
    return dict(mask_texts(document, job.secrets))


def _storage_of(job: Job) -> Storage:
    plan = job.history
    assert plan is not None
    if plan.root:
        return LocalFolder(plan.root)
    return Hdfs(plan.urls, plan.user, os.environ, job.authorities, RECORD_SECONDS)


def _write(job: Job, plan: HistoryPlan, path: str, content: bytes) -> None:
    files = _storage_of(job)
    files.makedirs(os.path.dirname(path), DAY_MODE)
    if not put_whole(files, path, content, plan.view_users, plan.view_groups):
        files.delete(path)  # a client was faster, and knows less
        if not put_whole(files, path, content, plan.view_users, plan.view_groups):
            raise StorageRefused("%s could not be renamed" % path)
