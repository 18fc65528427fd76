"""The histories of several users: what is read for the latest jobs, and the order of all. On a real local file system."""

import contextlib
import time
from itertools import islice

import pytest

from support.records import DAY, application_id, keep, record
from support.staging_place import USER, cluster_at
from tf_yarn_ops.history.histories import Histories
from tf_yarn_ops.history.query import Query
from tf_yarn_ops.history.records import LOOSE
from tf_yarn_ops.runtime.common.reasons import Reason

NOW = time.time()
#: The ends of jobs 1, 2, ...: in this month, or in the last day of the one before; in older months; in another year.
ENDS = [NOW, NOW - 31 * DAY, NOW - 70 * DAY, NOW - 500 * DAY]


class Listing:
    """The file system, with the folders that were listed."""

    def __init__(self, filesystem):
        self._filesystem, self.listed = filesystem, []

    def __getattr__(self, name):
        return getattr(self._filesystem, name)

    def list(self, path):
        self.listed.append(path)
        return self._filesystem.list(path)


@pytest.fixture
def histories(tmp_path):
    """Yield the histories of ann and bob, whose jobs ended at the same times, and the file system."""
    cluster = cluster_at(tmp_path)
    filesystem = Listing(cluster.open_filesystem())
    for number, ended in enumerate(ENDS):
        for turn, user in enumerate((USER, "bob")):
            folder = cluster.acting_for(user).history
            keep(filesystem, folder, record(10 * number + turn, user=user, ended=ended - turn))
    with contextlib.closing(Histories(cluster, "*", filesystem)) as made:
        yield made, filesystem


def test_the_latest_jobs_cost_one_list_for_each_user(histories):
    made, filesystem = histories
    [latest] = islice(made.find(Query()), 1)
    assert latest["application_id"] == application_id(0)
    assert not [path for path in filesystem.listed if path.endswith("/history")], "nobody asks for the years"


@pytest.mark.parametrize(("days", "jobs"), [(9999, 4), (10, 1), (40, 2), (100, 3)])
def test_all_jobs_come_in_their_order_and_once(histories, days, jobs):
    made, _ = histories
    found = [summary["application_id"] for summary in made.find(Query(since=NOW - days * DAY))]
    assert found == [application_id(10 * number + turn) for number in range(jobs) for turn in (0, 1)]


def test_record_counts_only_in_the_history_of_its_user(tmp_path):
    cluster = cluster_at(tmp_path)
    with contextlib.closing(Histories(cluster, "*", cluster.open_filesystem())) as made:
        theirs = {user: made.of(user).folder for user in ("aaron", USER, "bob")}
        keep(cluster.open_filesystem(), theirs["bob"], record(1, user="bob", ended=NOW, reason=Reason.TASK_FAILED))
        for number in range(1, LOOSE + 3):  # so many that a day gets an index
            for user in ("aaron", USER):
                keep(cluster.open_filesystem(), theirs[user], record(number, user="bob", ended=NOW))
        keep(cluster.open_filesystem(), theirs["aaron"], record(9, user=7, ended=NOW))
        for _ in range(2):  # the second time by the index
            assert [(one["user"], one["reason"]) for one in made.find(Query())] == [("bob", "TASK_FAILED")]
        for owner in ("", "bob"):
            assert made.read(application_id(1), owner)["reason"] == "TASK_FAILED"
            assert made.read(application_id(2), owner) is None
        assert made.read(application_id(1), "carol") is None, "YARN has named another user"


def test_history_of_the_application_s_user_is_searched_first(tmp_path):
    cluster = cluster_at(tmp_path)
    with contextlib.closing(Histories(cluster, "*", cluster.open_filesystem())) as made:
        for user in ("aaron", USER, "carol"):
            changed = record(1, user=user, ended=NOW) | {"application_id": application_id(7)}
            keep(cluster.open_filesystem(), made.of(user).folder, changed)
        found = [made.read(application_id(7), *words)["user"] for words in ((), ("carol",), ("", "carol"))]
        assert found == [USER, "carol", "carol"]
