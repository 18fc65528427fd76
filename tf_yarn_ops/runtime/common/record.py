"""The record of an ended job: its status with a few keys more, as one compressed file of the history.

The coordinator writes it when the job ends; a client writes it from YARN's report where the coordinator could not. All
functions are pure.
"""

import gzip
import json
import time
import zlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

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
#: Bytes that a reader unpacks at most, because another user may have written the file.
MAX_UNPACKED = 32 << 20
#: The most metrics in the summary of a record, the points of its curve, and the characters of its message.
_METRICS, _POINTS, _MESSAGE = 8, 24, 300
#: The keys of a record that its summary repeats.
_REPEATED = ("application_id", "name", "queue", "user", "state", "final_status", "reason", "submitted_at", "started_at",
             "finished_at", "queue_seconds", "output_path", "first_failure", "written_by")


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
    return "%s/%s/%s%s" % (folder, time.strftime("%Y/%m/%d", time.gmtime(at)), application_id, SUFFIX)


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
    content = _dump(record)
    if len(content) > limit:
        first = record.get("first_failure")
        tasks = [task if task.get("task") == first else {**task, "log_tail": ""} for task in record.get("tasks") or ()]
        content = _dump({**record, "tasks": tasks})
        if len(content) > limit:
            content = _dump({**record, "tasks": tasks, "series": []})
    return gzip.compress(content, 6, mtime=0)


def _dump(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def unpack_record(content: bytes) -> Dict[str, Any]:
    """Return the record of a file's content.

    Raises
    ------
    ValueError
        The content is no record of this schema.
    """
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        text = unpacking.decompress(content, MAX_UNPACKED)
        record = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise ValueError("not a record: %s" % error) from error
    if not isinstance(record, dict) or record.get("record_schema") != RECORD_SCHEMA:
        raise ValueError("not a record of schema %d" % RECORD_SCHEMA)
    return record


def summarise(record: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what a table of records shows of one: the report's keys, ``tasks``, ``rounds``, ``metrics``, ``curve``.

    Returns
    -------
    dict
        ``metrics``: numbers by name, the last values. ``curve``: the name and at most 24 values of the first metric
        that has a curve; None if none has.
    """
    summary = {name: record.get(name) for name in _REPEATED}
    summary["message"] = str(record.get("message") or "")[:_MESSAGE]
    summary["tasks"], summary["rounds"] = len(record.get("tasks") or ()), len(record.get("rounds") or ())
    summary["metrics"] = last_metrics(record)
    summary["curve"] = _curve(record)
    return summary


def last_metrics(record: Mapping[str, Any], most: int = _METRICS) -> Dict[str, float]:
    """Return the last value of each metric: of the program's result, else of the first task's curve."""
    found: Dict[str, float] = {}
    for item in record.get("series") or ():
        found.setdefault(str(item.get("name")), item.get("value"))
    found.update(record.get("metrics") or {})
    numbers = {name: value for name, value in found.items()
               if isinstance(value, (int, float)) and not isinstance(value, bool)}
    return dict(list(numbers.items())[:most])


def _curve(record: Mapping[str, Any]) -> Optional[List[Any]]:
    for item in record.get("series") or ():
        points = [point for point in item.get("points") or () if len(point) > 1]
        values = [point[1] for point in points if isinstance(point[1], (int, float))]
        if len(values) > 1:
            step = max(1.0, (len(values) - 1) / (_POINTS - 1))
            chosen = [values[min(len(values) - 1, round(step * number))]
                      for number in range(min(_POINTS, len(values)))]
            return [str(item.get("name")), [float("%.5g" % value) for value in chosen]]
    return None
