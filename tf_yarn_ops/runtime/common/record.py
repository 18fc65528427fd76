"""The record of an ended job: its status with a few keys more, as one compressed file of the history.

The coordinator writes it when the job ends; a client writes it from YARN's report where the coordinator could not. All
functions are pure.
"""

import gzip
import json
import time
import zlib
from typing import Any, Dict, Mapping, Tuple

from .status import read_status
from .values import parse_json, plain_text

#: Version of the keys that a record adds to the status. A new key does not change it.
RECORD_SCHEMA = 1
COORDINATOR, CLIENT = "coordinator", "client"
SUFFIX = ".json.gz"
#: Mode of a day's directory, which others may list; each record has rights of its own.
DAY_MODE = 0o755
#: The folder of the history with snapshots of running jobs.
SNAPSHOTS = ".running"
#: Bytes of JSON above which a record loses log tails, then curves.
MAX_JSON = 8 << 20
#: Bytes that a user's own client unpacks at most; of the files of another user `MAX_JSON`.
MAX_UNPACKED = 32 << 20


def day_folder(at: float) -> str:
    """Return the folder of the records of a day in UTC, ``2026/11/22``; `at` in seconds since the epoch."""
    return time.strftime("%Y/%m/%d", time.gmtime(at))


def record_path(folder: str, application_id: str, at: float) -> str:
    """Return the path of a record: ``<folder>/<year>/<month>/<day>/<application id>.json.gz``, of the day in UTC.

    Parameters
    ----------
    folder : str
        The folder of the history.
    application_id : str
    at : float
        When the job ended, seconds since the epoch.
    """
    return "%s/%s/%s%s" % (folder, day_folder(at), application_id, SUFFIX)


def snapshot_paths(folder: str, application_id: str) -> Tuple[str, str]:
    """Return the two files that a coordinator overwrites by turns, so that one is whole when it is killed as it writes.

    Each has a record of the running job. If the coordinator is killed, a client takes from it what YARN does not know.
    """
    begin = "%s/%s/%s" % (folder, SNAPSHOTS, application_id)
    return begin + "-0" + SUFFIX, begin + "-1" + SUFFIX


def build_record(status: Mapping[str, Any], written_by: str, at: float) -> Dict[str, Any]:
    """Return the record of a status; ``written_by`` is `COORDINATOR` or `CLIENT`."""
    return {**status, "record_schema": RECORD_SCHEMA, "written_by": written_by, "written_at": round(at, 3)}


def pack_record(record: Mapping[str, Any], limit: int = MAX_JSON) -> bytes:
    """Return the content of the file; a record above ``limit`` bytes loses log tails, then curves."""
    first = record.get("first_failure")
    tasks = [task if task.get("task") == first else {**task, "log_tail": ""} for task in record.get("tasks") or ()]
    content = b""
    for shorter in (record, {**record, "tasks": tasks}, {**record, "tasks": tasks, "series": []}):
        content = json.dumps(shorter, separators=(",", ":")).encode()
        if len(content) <= limit:
            break
    return gzip.compress(content, 6, mtime=0)


def unpack_record(content: bytes, most: int = MAX_UNPACKED) -> Dict[str, Any]:
    """Return the record of a file's content; what does not fit its field is left out, see `status.JobStatus`.

    Parameters
    ----------
    content : bytes
    most : int, optional
        Bytes of JSON. Default: 32 MiB.

    Raises
    ------
    ValueError
        The content is no record of this schema.
    """
    try:
        record = parse_json(zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(content, most))
    except (zlib.error, ValueError) as error:
        raise ValueError("not a record: %s" % error) from error
    if not isinstance(record, dict) or record.get("record_schema") != RECORD_SCHEMA:
        raise ValueError("not a record of schema %d" % RECORD_SCHEMA)
    return read_status(record, "the record of %s" % plain_text(str(record.get("application_id")))[:100])
