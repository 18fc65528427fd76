"""The histories of several users: what is read for the latest jobs, and the order of all. On a real local file system."""

import contextlib
import os
import time
from dataclasses import replace
from itertools import islice

import pytest

from support.records import DAY, application_id, keep, record
from support.staging_place import USER, cluster_at
from tf_yarn_ops.errors import SubmissionRejected
from tf_yarn_ops.history.histories import MOST_READ, Histories
from tf_yarn_ops.history.query import Query
from tf_yarn_ops.history.records import LOOSE, SLICE
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import pack_record, record_path, snapshot_paths

NOW = time.time()
#: The ends of jobs 1, 2, ...: in this month, or in the last day of the one before; in older months; in another year.
ENDS = [NOW, NOW - 31 * DAY, NOW - 70 * DAY, NOW - 500 * DAY]


class Listing:
    """The file system, with the folders that were listed and the files that were read."""

    def __init__(self, filesystem):
        self._filesystem, self.listed, self.reads = filesystem, [], []

    def __getattr__(self, name):
        return getattr(self._filesystem, name)

    def list(self, path):
        self.listed.append(path)
        return self._filesystem.list(path)

    def read(self, path, *words):
        self.reads.append(path)
        return self._filesystem.read(path, *words)


class OfOthers(Listing):
    """The file system as a user sees it who owns none of its files."""

    def read(self, path, *words):
        content = super().read(path, *words)
        if not self.status(path).permission & 0o077:
            raise SubmissionRejected(f"reading {path}: Permission denied")
        return content


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


MANY = 2 * MOST_READ


def write_day(root, folder, content, mode=0o644, number=MANY):
    """Write records of one day, of which the last is the latest; content: of a record, as a function of its number."""
    for one in range(number):
        ended = DAY_START + one
        path = root / record_path(folder, application_id(one), ended).lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(one, ended))
        path.chmod(mode)
        os.utime(path, (ended + 1, ended + 1))


DAY_START = NOW - NOW % DAY - DAY


def good(number, ended, user="bob"):
    return pack_record(record(number, user=user, ended=ended) | {"series": []})


@pytest.fixture
def crowded(tmp_path):
    """Yield a function that fills bob's day, and gives the histories of all and the file system."""
    cluster = cluster_at(tmp_path)
    with contextlib.ExitStack() as stack:

        def make(content, mode=0o644, number=MANY, users="*"):
            write_day(tmp_path, cluster.acting_for("bob").history, content, mode, number)
            filesystem = OfOthers(cluster.open_filesystem())
            return stack.enter_context(contextlib.closing(Histories(cluster, users, filesystem))), filesystem

        yield make


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "mode", "shown", "most"),
    [
        (good, 0o644, 50, 3 * 50),
        (lambda *_: b"broken", 0o644, 0, MOST_READ),
        (lambda number, ended: good(number, ended, "carol"), 0o644, 0, MOST_READ),
        (good, 0o600, 0, SLICE),
    ],
    ids=["good", "broken", "of others", "closed"],
)
def test_list_reads_a_bounded_number_of_another_user_s_records(crowded, content, mode, shown, most):
    made, filesystem = crowded(content, mode)
    found = list(islice(made.find(Query()), 50))
    assert [one["application_id"] for one in found] == [application_id(MANY - 1 - one) for one in range(shown)]
    assert 0 < len(filesystem.reads) <= most


@pytest.mark.slow
def test_next_list_reads_on_and_a_named_user_has_no_limit(crowded, caplog):
    made, filesystem = crowded(good)
    for look in (1, 2, 3):
        cut = set()
        assert len(list(made.find(Query(), cut))) == min(look * MOST_READ, MANY) == len(filesystem.reads)
        assert cut == ({"bob"} if look == 1 else set())
    assert ["older jobs of bob are left out" in one.message for one in caplog.records] == [True]
    named, filesystem = crowded(good, users="bob")
    assert len(list(named.find(Query()))) == MANY == len(filesystem.reads)


def test_record_written_late_is_listed_by_the_end_of_its_job(crowded, tmp_path):
    number = 4 * SLICE
    made, _ = crowded(good, number=number)
    folder = tmp_path / record_path(made.of("bob").folder, "x", DAY_START).lstrip("/")
    os.utime(folder.parent / f"{application_id(3)}.json.gz")  # by a client, long after the end
    found = [one["application_id"] for one in made.find(Query())]
    assert found == [application_id(number - 1 - one) for one in range(number)]


def test_days_that_can_not_be_cost_no_lists(crowded, tmp_path):
    made, filesystem = crowded(good, number=1)
    history = tmp_path / made.of("bob").folder.lstrip("/")
    for name in ("1999/01/01", "9999/01/01", "2024/00/01", "2024/13/01", "2024/12/00", "2024/12/32"):
        (history / name).mkdir(parents=True)
    assert len(made.of("bob").days()) == 1
    listed = {path.partition("/history")[2].lstrip("/") for path in filesystem.listed}
    assert listed == {
        "",
        time.strftime("%Y", time.gmtime(DAY_START)),
        time.strftime("%Y/%m", time.gmtime(DAY_START)),
        "2024",
        "2024/12",
    }


class OfMallory(Listing):
    """The file system as HDFS shows it: files and folders of its users, and those that mallory has written."""

    def __init__(self, filesystem, forged):
        super().__init__(filesystem)
        self._forged = forged

    def status(self, path):
        found = self._filesystem.status(path)
        owner = "hdfs" if path == "/" else "mallory" if path in self._forged else path.split("/")[2]
        return found and found._replace(owner=owner)

    def list(self, path):
        return [self.status(f"{path}/{one.name}") for one in super().list(path)]


def test_file_of_another_owner_is_no_record(tmp_path, caplog):
    cluster, forged = cluster_at(tmp_path), set()
    local = cluster.open_filesystem()
    filesystem = OfMallory(local, forged)
    for reader in (USER, "carol"):
        with contextlib.closing(Histories(replace(cluster, user=reader), "*", filesystem)) as made:
            mine = made.of(USER)
            keep(local, mine.folder, record(1, ended=NOW)) if reader == USER else None
            for number in range(10, 12 + LOOSE):
                path = record_path(mine.folder, application_id(number), NOW)
                if local.create(path, pack_record(record(number, ended=NOW, reason=Reason.TASK_FAILED)), 0o644):
                    forged.add(path)
            assert [one["application_id"] for one in made.find(Query())] == [application_id(1)]
            assert made.read(application_id(10)) is None and made.read(application_id(10), USER) is None
            assert mine.recorded(NOW - DAY) == {application_id(1)} and not mine.has(application_id(10), NOW)
            for path in snapshot_paths(mine.folder, application_id(1)):
                local.makedirs(path.rpartition("/")[0], 0o755)
                local.create(path, pack_record(record(1)), 0o644)
                forged.add(path)
            assert mine.snapshot(application_id(1)) is None
    warned = [one.message for one in caplog.records if "belongs to mallory, not to" in one.message]
    assert len(warned) == 2 * 2, "once for each folder and reader"


def test_index_of_another_owner_is_not_read(tmp_path):
    cluster = cluster_at(tmp_path)
    local = cluster.open_filesystem()
    with contextlib.closing(Histories(cluster, "*", local)) as made:
        folder = made.of(USER).folder
        for number in range(LOOSE + 1):
            keep(local, folder, record(number, ended=NOW))
        assert len(list(made.find(Query()))) == LOOSE + 1
    [index] = tmp_path.rglob(".index-*")
    filesystem = OfMallory(local, {f"/{index.relative_to(tmp_path)}"})
    with contextlib.closing(Histories(cluster, "*", filesystem)) as made:
        assert len(list(made.find(Query()))) == LOOSE + 1
    assert not any(".index" in path for path in filesystem.reads) and len(filesystem.reads) == LOOSE + 1


@pytest.mark.parametrize("owner", ["hdfs", "etl"])
def test_record_that_the_superuser_or_trusted_owner_has_restored_counts(tmp_path, owner):
    cluster = cluster_at(tmp_path, trusted_owner="etl")
    local = cluster.open_filesystem()
    filesystem = OfMallory(local, set())
    path = keep(local, cluster.history, record(1, ended=NOW))
    filesystem.status = lambda asked: (
        (found := local.status(asked))
        and found._replace(owner=owner if asked == path else "hdfs" if asked == "/" else USER)
    )
    with contextlib.closing(Histories(cluster, None, filesystem)) as made:
        assert [one["application_id"] for one in made.find(Query())] == [application_id(1)]
        assert made.read(application_id(1))["user"] == USER
