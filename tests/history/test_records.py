"""The records of a user: paths by day, an index per day, rights, retention. On a real local file system."""

import gzip
import json
import os
import time

import pytest

from support.records import DAY, STAMP, application_id, keep, record
from support.staging_place import USER
from tf_yarn_ops.follow.sweep import sweep_records
from tf_yarn_ops.history.record_summary import summarise
from tf_yarn_ops.history.records import LOOSE, Records, records_of
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import pack_record, unpack_record


@pytest.fixture
def records(staging):
    return records_of(staging)


class Counting:
    """The file system, with the paths of the files that were read."""

    def __init__(self, filesystem):
        self._filesystem, self.read_paths = filesystem, []

    def __getattr__(self, name):
        return getattr(self._filesystem, name)

    def read(self, path, *words):
        self.read_paths.append(path)
        return self._filesystem.read(path, *words)


def test_a_record_is_found_by_its_application_and_listed_by_its_day(records):
    made = record(7, loss=0.5)
    assert records.write(application_id(7), made["finished_at"], pack_record(made)) is True
    assert records.write(application_id(7), made["finished_at"], b"another") is False
    assert records.days() == ["2023/11/14"]
    assert records.read(application_id(7)) == made
    assert records.read(application_id(8)) is None and records.read("../etc") is None
    assert records.summaries("2023/11/14") == [summarise(made)]


def test_client_finds_the_record_written_before_midnight(records):
    midnight = float(STAMP - STAMP % DAY + DAY)
    made = record(1, ended=midnight - 2)
    keep(records.filesystem, records.folder, made)
    assert records.has(application_id(1), midnight + 3) and not records.has(application_id(2), midnight + 3)


def test_an_index_spares_the_reader_the_records_and_follows_them(records, staging):
    for number in range(LOOSE + 3):
        keep(records.filesystem, records.folder, record(number, ended=STAMP + number))
    first = records.summaries("2023/11/14")
    assert [one["application_id"] for one in first] == [application_id(n) for n in reversed(range(LOOSE + 3))]
    counting = Counting(records.filesystem)
    again = Records(counting, records.folder, USER)
    assert again.summaries("2023/11/14") == first
    assert [path.rpartition("/")[2][:7] for path in counting.read_paths] == [".index-"]
    keep(records.filesystem, records.folder, record(99, ended=STAMP + 99))
    records.filesystem.delete(f"{records.folder}/2023/11/14/{application_id(0)}.json.gz")
    now = Records(counting, records.folder, USER).summaries("2023/11/14")
    assert [one["application_id"] for one in now] == [
        application_id(99),
        *(one["application_id"] for one in first[:-1]),
    ]
    assert sum(path.endswith(f"{application_id(99)}.json.gz") for path in counting.read_paths) == 1


def test_only_the_owner_writes_an_index_and_there_is_one(records, root):
    for number in range(LOOSE + 1):
        keep(records.filesystem, records.folder, record(number))
    Records(records.filesystem, records.folder, USER).summaries("2023/11/14")
    indexes = lambda: list(root.rglob(".index-*"))  # noqa: E731
    assert indexes() == []
    records.summaries("2023/11/14")
    for number in range(100, 100 + LOOSE + 1):
        keep(records.filesystem, records.folder, record(number))
    records.summaries("2023/11/14")
    assert len(indexes()) == 1 and indexes()[0].stat().st_mode & 0o777 == 0o600


def test_files_that_are_no_records_are_left_out(records, root):
    made = record(1)
    keep(records.filesystem, records.folder, made)
    day = root / records.folder.lstrip("/") / "2023/11/14"
    (day / f"{application_id(2)}.json.gz").write_bytes(b"broken")
    (day / f"{application_id(3)}.json.gz").write_bytes(gzip.compress(b"[1]"))
    (day / "notes.txt").write_text("x")
    (day / ".index-0123456789ab.json.gz").write_bytes(b"broken")
    assert records.summaries("2023/11/14") == [summarise(made)]
    assert records.read(application_id(2)) is None


@pytest.mark.parametrize("name", [f"{application_id(2)}.json.gz", ".index-0123456789ab.json.gz"])
@pytest.mark.parametrize("made", ["sparse", "unpacked", "pipe"])
def test_reader_of_others_is_spared_files_beyond_any_record(records, root, made, name, caplog):
    good = record(1)
    keep(records.filesystem, records.folder, good)
    file = root / records.folder.lstrip("/") / "2023/11/14" / name
    if made == "pipe":
        os.mkfifo(file)
    elif made == "sparse":
        file.touch()
        os.truncate(file, 150 << 20)
    else:  # valid JSON of 9 MiB
        parts = {"record_schema": 1, "user": USER, "schema": 1, "records": {}, "x": "x" * (9 << 20)}
        file.write_bytes(gzip.compress(json.dumps(parts).encode(), 1))
    theirs = Counting(records.filesystem)
    with caplog.at_level("DEBUG"):
        assert Records(theirs, records.folder, USER).summaries("2023/11/14") == [summarise(good)]
    assert any(name in path for path in theirs.read_paths) == (made != "sparse")
    assert "is left out" in caplog.text


HOSTILE_RECORD = {
    **record(1),
    "finished_at": "soon",
    "tasks": 5,
    "series": [1],
    "metrics": [1],
    "options": "x",
    "reason": [1],
}


@pytest.mark.parametrize(
    "content",
    [b"x", gzip.compress(b"[1]"), gzip.compress(b"[" * 9999), pack_record({**HOSTILE_RECORD, "tasks": []}), None],
    ids=["no gzip", "no record", "deep", "hostile", "good"],
)  # fmt: skip
def test_broken_records_cost_what_good_ones_cost(records, content, caplog):
    number = 40
    for one in range(number):
        made = record(one, ended=float(STAMP))
        path = keep(records.filesystem, records.folder, made)
        if content is not None:
            records.filesystem.delete(path)
            assert records.filesystem.create(path, content, 0o600)
    theirs = Counting(records.filesystem)
    reader = Records(theirs, records.folder, USER)  # of `ytf ui`, which lives on
    first, second = reader.summaries("2023/11/14"), reader.summaries("2023/11/14")
    assert first == second and len(theirs.read_paths) == number
    records.summaries("2023/11/14")
    owner = Counting(records.filesystem)
    Records(owner, records.folder, USER, owned=True).summaries("2023/11/14")  # of the next command
    assert len(owner.read_paths) == 1, "the index knows the broken ones too"
    warned = [
        one for one in caplog.records if one.levelname == "WARNING" and "is left out: not a record" in one.message
    ]
    assert len(warned) == 2 * (len(first) == 0)


def test_a_record_can_not_pass_for_another_application(records):
    made = record(1)
    path = keep(records.filesystem, records.folder, made)
    records.filesystem.rename(path, path.replace("_0001", "_0002"))
    assert [one["application_id"] for one in records.summaries("2023/11/14")] == [application_id(2)]


def test_old_days_are_swept_with_their_empty_months(records, staging, root):
    now = STAMP + 400 * DAY
    for number, ended in enumerate((STAMP, STAMP + 300 * DAY, now)):
        keep(records.filesystem, records.folder, record(number, ended=float(ended)))
    assert records.sweep(365, now) == ["2023/11/14"]
    assert records.days() == ["2024/12/18", "2024/09/09"]
    assert sorted(path.name for path in (root / records.folder.lstrip("/")).iterdir()) == ["2024"]
    assert sweep_records(staging) == ["2024/12/18", "2024/09/09"]  # both are older than a year now


def test_unfinished_files_are_deleted_after_a_day(records, root):
    keep(records.filesystem, records.folder, record(1))
    day = root / records.folder.lstrip("/") / "2023/11/14"
    old, new = day / ".a.json.gz.012345678901", day / ".b.json.gz.012345678901"
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 2 * DAY,) * 2)
    records.summaries("2023/11/14")
    assert new.exists() and not old.exists()


def test_a_large_record_loses_the_logs_of_tasks_that_failed_later():
    made = record(reason=Reason.TASK_FAILED, tail="first")
    made["tasks"] += [{"task": f"worker:{number}", "log_tail": "x" * 1000} for number in range(1, 50)]
    kept = unpack_record(pack_record(made, 20_000))
    assert kept["tasks"][0]["log_tail"] == "first" and not any(task["log_tail"] for task in kept["tasks"][1:])
    assert kept["series"] and not unpack_record(pack_record(made, 100))["series"]
