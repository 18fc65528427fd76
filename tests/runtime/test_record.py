"""A record as a file: its path, its form, its limits."""

import gzip
import json

import pytest

from tf_yarn_ops.runtime.common.record import (
    CLIENT,
    COORDINATOR,
    build_record,
    day_folder,
    pack_record,
    record_path,
    snapshot_paths,
    unpack_record,
)

#: 2023-11-14 22:13:20 UTC.
AT = 1700000000.0
TASKS = [
    {"task": f"worker:{index}", "state": "failed", "starts": 1, "log_tail": "x" * 500, "events": []}
    for index in range(8)
]


def test_records_of_a_day_are_in_one_folder():
    assert day_folder(AT) == "2023/11/14"
    assert record_path("/history", "application_1_0001", AT) == "/history/2023/11/14/application_1_0001.json.gz"


def test_snapshots_are_two_files_outside_the_days():
    first, second = snapshot_paths("/history", "application_1_0001")
    assert first != second and {path.rpartition("/")[0] for path in (first, second)} == {"/history/.running"}


@pytest.mark.parametrize(
    "status", [{}, {"name": "模型", "tasks": TASKS, "metrics": {"loss": 0.5}}], ids=["empty", "job"]
)
@pytest.mark.parametrize("writer", [COORDINATOR, CLIENT])
def test_a_packed_record_is_read_back(status, writer):
    record = build_record(status, writer, AT)
    assert unpack_record(pack_record(record)) == record
    assert record.items() >= {**status, "written_by": writer, "written_at": AT}.items()


@pytest.mark.parametrize(("limit", "series"), [(2000, 1), (1100, 0)], ids=["without logs", "without curves too"])
def test_a_large_record_keeps_the_tasks_and_the_first_failure(limit, series):
    points = [[float(step), 0.5] for step in range(60)]
    curves = [{"task": "worker:3", "name": "loss", "points": points, "step": 59.0, "value": 0.5, "at": AT}]
    record = build_record({"first_failure": "worker:3", "tasks": TASKS, "series": curves}, COORDINATOR, AT)
    found = unpack_record(pack_record(record, limit))
    assert [bool(task["log_tail"]) for task in found["tasks"]] == [index == 3 for index in range(8)]
    assert [task["task"] for task in found["tasks"]] == [task["task"] for task in TASKS]
    assert len(found["series"]) == series


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no record",
        pack_record(build_record({}, CLIENT, AT))[:-12],
        gzip.compress(b"[1]"),
        gzip.compress(json.dumps({"record_schema": 10**6}).encode()),
        gzip.compress(b"[" * 10**5),
    ],
    ids=["empty", "no gzip", "half", "no mapping", "another schema", "too deep"],
)
def test_a_file_without_a_record_is_a_value_error(content):
    with pytest.raises(ValueError, match="not a record"):
        unpack_record(content)
