"""A history of many jobs, written fast: the records differ in what the lists show."""

import itertools

from support.records import DAY, application_id, record
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import pack_record, record_path

REASONS = (Reason.SUCCEEDED,) * 7 + (Reason.TASK_FAILED, Reason.OUT_OF_MEMORY, Reason.KILLED)
NAMES = ("digits", "recommender", "churn", "translate")


def write_many(root, folder, number, until, days=90, user="ann"):
    """Write records into a folder that is a file system, evenly over the days before ``until``; return their number."""
    kinds = {reason: record(reason=reason) for reason in set(REASONS)}
    made = set()
    for one in range(number):
        reason = REASONS[one % len(REASONS)]
        ended = until - days * DAY * one / number
        document = {
            **kinds[reason],
            "application_id": application_id(number - one),
            "name": NAMES[one % len(NAMES)],
            "user": user,
            "queue": ("default", "low", "nightly")[one % 3],
            "finished_at": ended,
            "started_at": ended - 300 - one % 900,
            "queue_seconds": float(one % 240),
            "metrics": {"loss": one / number},
        }
        path = root / record_path(folder, application_id(number - one), ended).lstrip("/")
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        path.write_bytes(pack_record(document))
    return number


def read_all(records):
    """Read each day, so that its index is written."""
    return list(itertools.chain.from_iterable(map(records.summaries, records.days())))
