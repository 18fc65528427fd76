"""Write the record of the ended job into the history: WebHDFS with the container's token, retries and a deadline.

The verdict waits for it at most `HOLD_SECONDS`; later the write goes on while YARN takes the verdict. A client that
sees the end writes what is missing.

References
----------
Hadoop, "WebHDFS REST API": CREATE takes two requests, MODIFYACLENTRIES lets further users read.
"""

import asyncio
import logging
import os
import threading
import time
import uuid
from typing import Any, Mapping, Optional

from ..common.contract import HistoryPlan, Job
from ..common.hdfs import Hdfs, HdfsRefused
from ..common.masking import mask_texts, secrets_of
from ..common.record import COORDINATOR, build_record, pack_record, record_path
from .ending import ask_for_application

logger = logging.getLogger(__name__)

#: Seconds for which the verdict waits for the record, at most.
HOLD_SECONDS = 1.0
#: Seconds after which the coordinator gives up.
WRITE_SECONDS = 20.0
#: Seconds for one request.
REQUEST_SECONDS = 5.0
#: Seconds before the second attempt; each later pause is twice as long.
PAUSE = 0.2
#: Modes of the days' directories and of a record, which only its owner and the job's view ACLs may read.
DIRECTORY_MODE, FILE_MODE, OPEN_FILE_MODE = 0o755, 0o600, 0o644
#: All users, in YARN's ACLs.
EVERYBODY = "*"


def begin_record(job: Job, application_id: str, status: Mapping[str, Any]) -> "asyncio.Future[Optional[str]]":
    """Begin to write the record of an ended job in a thread that ends with the process; return the future of `keep`."""
    loop = asyncio.get_running_loop()
    written: "asyncio.Future[Optional[str]]" = loop.create_future()

    def run() -> None:
        path = None
        try:
            path = keep(job, application_id, status)
        except Exception:  # the record must not cost the verdict
            logger.exception("The record was not written")
        try:
            loop.call_soon_threadsafe(written.set_result, path)
        except RuntimeError:
            pass  # the loop has ended

    threading.Thread(target=run, name="history", daemon=True).start()
    return written


def keep(job: Job, application_id: str, status: Mapping[str, Any], until: Optional[float] = None) -> Optional[str]:
    """Write the record of an ended job; return its path, or None if it could not be written. It blocks.

    Parameters
    ----------
    job : Job
        Its ``history`` says where.
    application_id : str
    status : mapping
        As `common.status.build_status` returns it.
    until : float, optional
        When to give up, on the monotonic clock. Default: in `WRITE_SECONDS`.
    """
    plan = job.history
    if plan is None:
        return None
    began = time.monotonic()
    until = began + WRITE_SECONDS if until is None else until
    ended = float(status.get("finished_at") or time.time())
    path = record_path(plan.folder, application_id, ended)
    content = pack_record(build_record(_complete(job, application_id, status), COORDINATOR, time.time()))
    pause = PAUSE
    while True:
        try:
            _write(plan, job.authorities, path, content)
            logger.info("Wrote the record %s, %d bytes, in %.0f ms", path, len(content),
                        1000 * (time.monotonic() - began))
            return path
        except OSError as error:
            if time.monotonic() + pause > until:
                logger.warning("The record %s was not written: %s", path, error)
                return None
            logger.info("The record %s is not written yet: %s", path, error)
            time.sleep(pause)
            pause *= 2


def _complete(job: Job, application_id: str, status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the status with the times that YARN knows, and with the job's secrets masked."""
    known = ask_for_application(job.resourcemanagers, application_id, job.authorities)
    document = dict(status)
    submitted, launched = (_seconds(known.get(name)) for name in ("startedTime", "launchTime"))
    if submitted:
        document["submitted_at"] = submitted
        began = launched or status.get("started_at")
        document["started_at"] = began
        document["queue_seconds"] = round(max(0.0, began - submitted), 3) if began else None
    if "://" in str(known.get("trackingUrl")):
        document["tracking_url"] = known["trackingUrl"]
    masked: Mapping[str, Any] = mask_texts(document, secrets_of(plan.env for plan in job.types.values()))
    return masked


def _seconds(milliseconds: Any) -> Optional[float]:
    positive = isinstance(milliseconds, int) and milliseconds > 0
    return milliseconds / 1000 if positive else None


def _write(plan: HistoryPlan, authorities: str, path: str, content: bytes) -> None:
    folder, _, name = path.rpartition("/")
    passing = "%s/.%s.%s" % (folder, name, uuid.uuid4().hex[:12])
    if plan.root:
        _write_locally(plan.root.rstrip("/"), folder, passing, path, content)
        return
    hdfs = Hdfs(plan.urls, plan.user, os.environ, authorities, REQUEST_SECONDS)
    hdfs.makedirs(folder, DIRECTORY_MODE)
    everybody = EVERYBODY in plan.view_users
    hdfs.create(passing, content, OPEN_FILE_MODE if everybody else FILE_MODE)
    if not everybody and (plan.view_users or plan.view_groups):
        try:
            hdfs.let_read(passing, plan.view_users, plan.view_groups)
        except HdfsRefused as error:  # HDFS without ACLs
            logger.warning("Only %s may read the record: %s", plan.user, error)
    if not hdfs.rename(passing, path):
        hdfs.delete(path)  # a client was faster, and knows less
        if not hdfs.rename(passing, path):
            raise HdfsRefused("%s could not be renamed" % passing)


def _write_locally(root: str, folder: str, passing: str, path: str, content: bytes) -> None:
    """Write into a folder of this node, which is the cluster's file system (viewfs)."""
    os.makedirs(root + folder, DIRECTORY_MODE, exist_ok=True)
    with open(os.open(root + passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
        file.write(content)
    os.rename(root + passing, root + path)
