"""Write the record of the ended job into the history: WebHDFS with the container's token, retries and a deadline.

The verdict waits for it at most `HOLD_SECONDS`; later the write goes on while YARN takes the verdict. A client that
sees the end writes what is missing.

References
----------
Hadoop, "WebHDFS REST API": CREATE takes two requests, MODIFYACLENTRIES lets further users read.
"""

import asyncio
import http.client
import json
import logging
import os
import threading
import time
import urllib.error
import urllib.request
import uuid
from typing import Any, Dict, List, Mapping, Optional
from urllib.parse import quote, urlencode

from ..common.contract import HistoryPlan, Job
from ..common.masking import mask_texts, secrets_of
from ..common.record import COORDINATOR, build_record, pack_record, record_path
from ..common.tokens import HDFS_KIND, encode_token, read_credentials
from .ending import ask_for_application, opener_of

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
_NO_ANSWER = (OSError, ValueError, http.client.HTTPException)


class NotWritten(Exception):
    """A file system did not take the record; the text says why."""


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
        except (NotWritten, *_NO_ANSWER) as error:
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
    files = _WebHdfs(plan, authorities)
    files.ask("PUT", folder, "MKDIRS", permission="%o" % DIRECTORY_MODE)
    everybody = EVERYBODY in plan.view_users
    mode = OPEN_FILE_MODE if everybody else FILE_MODE
    files.create(passing, content, mode)
    if not everybody and (plan.view_users or plan.view_groups):
        _let_view(files, plan, passing)
    if not files.ask("PUT", passing, "RENAME", destination=path).get("boolean"):
        files.ask("DELETE", path, "DELETE")  # a client was faster, and knows less
        if not files.ask("PUT", passing, "RENAME", destination=path).get("boolean"):
            raise NotWritten("%s could not be renamed" % passing)


def _let_view(files: "_WebHdfs", plan: HistoryPlan, path: str) -> None:
    """Let the users and groups of the job's view ACLs read a record; without ACLs in HDFS it stays the owner's."""
    entries = ["user:%s:r--" % name for name in plan.view_users] + ["group:%s:r--" % name for name in plan.view_groups]
    try:
        files.ask("PUT", path, "MODIFYACLENTRIES", aclspec=",".join(entries))
    except NotWritten as error:
        logger.warning("Only %s may read the record: %s", plan.user, error)


def _write_locally(root: str, folder: str, passing: str, path: str, content: bytes) -> None:
    """Write into a folder of this node, which is the cluster's file system (viewfs)."""
    os.makedirs(root + folder, DIRECTORY_MODE, exist_ok=True)
    with open(os.open(root + passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
        file.write(content)
    os.rename(root + passing, root + path)


class _WebHdfs:
    """As much of WebHDFS as a record needs; it asks one NameNode after the other, with one token after the other."""

    def __init__(self, plan: HistoryPlan, authorities: str):
        self._urls = list(plan.urls)
        self._logins: List[Dict[str, str]] = (
            [{"delegation": token} for token in _tokens(os.environ)] or [{"user.name": plan.user}])
        self._opener = opener_of(authorities)

    def ask(self, method: str, path: str, operation: str, **parameters: str) -> Mapping[str, Any]:
        """Return the JSON object of an answer, or ``{"Location": ...}`` of a redirect."""
        why = "no NameNode is known"
        for url in list(self._urls):
            for login in list(self._logins):
                query = urlencode({"op": operation, **login, **parameters})
                try:
                    found = self._send(method, "%s/webhdfs/v1%s?%s" % (url, quote(path), query))
                except urllib.error.HTTPError as error:
                    why = _explain(error)
                    if error.code == 401 or "InvalidToken" in why:
                        continue  # another token may be the right one
                    break
                except _NO_ANSWER as error:
                    why = "%s does not answer: %s" % (url, error)
                    break
                self._urls.remove(url)
                self._urls.insert(0, url)
                self._logins = [login]
                return found
        raise NotWritten("%s %s: %s" % (operation, path, why))

    def create(self, path: str, content: bytes, mode: int) -> None:
        """Write a new file: the NameNode names the DataNode that takes the content."""
        place = self.ask("PUT", path, "CREATE", permission="%o" % mode, overwrite="false").get("Location")
        if not place:
            raise NotWritten("CREATE %s: the answer names no DataNode" % path)
        try:
            self._send("PUT", place, content)
        except urllib.error.HTTPError as error:
            raise NotWritten("CREATE %s: %s" % (path, _explain(error))) from error

    def _send(self, method: str, url: str, content: Optional[bytes] = None) -> Mapping[str, Any]:
        headers = {"Content-Type": "application/octet-stream", "X-XSRF-HEADER": "ytf"}
        request = urllib.request.Request(url, content, headers, method=method)
        try:
            with self._opener.open(request, timeout=REQUEST_SECONDS) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 307 and error.headers.get("Location"):
                with error:
                    return {"Location": error.headers["Location"]}
            raise
        document = json.loads(text) if text[:1] == b"{" else {}
        return document if isinstance(document, dict) else {}


def _explain(error: urllib.error.HTTPError) -> str:
    """Return the exception that a NameNode names, else the status; never the address, which may hold a token."""
    try:
        with error:
            found = json.loads(error.read())["RemoteException"]
        return "%s: %s" % (found["exception"], str(found["message"]).splitlines()[0][:300])
    except (*_NO_ANSWER, KeyError, TypeError, IndexError):
        return "HTTP status %d" % error.code


def _tokens(environ: Mapping[str, str]) -> List[str]:
    """Return the container's tokens for HDFS; empty on unsecured clusters."""
    path = environ.get("HADOOP_TOKEN_FILE_LOCATION")
    if not path:
        return []
    try:
        with open(path, "rb") as file:
            return [encode_token(token) for token in read_credentials(file.read()) if token.kind == HDFS_KIND]
    except (OSError, ValueError):
        return []  # `ending` has logged that the file can't be read
