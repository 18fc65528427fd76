"""The plan, the names and the first decision of a committed output; all pure."""

import pytest

from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.committed_output import (
    Beside,
    CommitPlan,
    Start,
    Success,
    decide_start,
    find_beside,
    read_success,
    split_location,
    training_of,
)

TRAINING = "0123456789abcdef"


@pytest.mark.parametrize(
    ("found", "complete", "results", "occupied", "start"),
    [
        ([], [], [], False, Start("train")),
        ([], [], [None], True, Start("exists")),
        ([], [], [Success("application_1_2", "a", 0, {})], True, Start("succeed", "application_1_2")),
        ([], [], [Success("application_1_9", "a", 3, {})], False, Start("superseded", "application_1_9")),
        ([], [], [Success("application_1_9", "b", 3, {})], False, Start("train")),
        ([("claim", 1, 9)], [], [], False, Start("superseded", "application_1_9")),
        ([("claim", 0, 9)], [], [], False, Start("yield", "application_1_9")),
        ([("sealed", 0, 2)], ["s"], [], True, Start("finish", "application_1_2", "sealed")),
        ([("sealed", 0, 2)], [], [], False, Start("train", "", "work")),
        ([("work", 0, 2)], [], [], False, Start("train", "", "work")),
    ],
)
def test_start_is_decided_by_what_lies_beside_the_output(found, complete, results, occupied, start):
    plan = CommitPlan("new", "/m/d", "", "a", 0)
    entries = [Beside("s", kind, "a", generation, f"application_1_{number}") for kind, generation, number in found]
    expected = start
    if start.takes:
        expected = start._replace(takes=((entries[0], start.takes),))
    assert decide_start(plan, "application_1_5", entries, complete, results, occupied) == expected


def test_folders_of_older_generations_are_kept_and_never_resumed():
    plan = CommitPlan("new", "/m/d", "", "a", 2)
    entries = [Beside(f"{n}", "work", "a", n, f"application_1_{n}") for n in range(3)]
    start = decide_start(plan, "application_1_5", entries, [], [], False)
    assert [(entry.name, kind) for entry, kind in start.takes] == [("0", "kept"), ("1", "kept"), ("2", "work")]


@pytest.mark.parametrize(
    "name", ["_d.work-zz-0-application_1_1", "d.work-a-0-application_1_1", "_d.work", "_SUCCESS", ""]
)
def test_other_names_beside_an_output_are_not_ours(name):
    assert find_beside(CommitPlan("new", "/m/d"), [name]) == []


@pytest.mark.parametrize("training", ["", TRAINING])
def test_names_beside_an_output_are_read_as_they_are_written(training):
    plan = CommitPlan("new", "/m/d.work-1", "", training, 7)
    name = plan.beside("sealed", "application_1_3", "0a1b").rpartition("/")[2]
    assert find_beside(plan, [name]) == [Beside(name, "sealed", training, 7, "application_1_3")]


#: Each is a number of JSON to Python, and no integer.
ENDLESS = (
    b'{"application_id": "a", "training": "b", "generation": 1e999, "report": {}, "files": [], "version": Infinity}'
)


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{}", b"[]", b"null", b'{"application_id": 1}', b"[" * 5000, b"[" * 200000, b"\xff", ENDLESS],
)
def test_marker_of_another_program_says_nothing(content):
    assert read_success(content) is None


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("hdfs:///models/d/", ("hdfs://", "/models/d")),
        ("hdfs://ns/models/d", ("hdfs://ns", "/models/d")),
        ("/shared/a?b#c", ("", "/shared/a?b#c")),
        ("s3://bucket/d", None),
        ("hdfs://ns", None),
        ("models/d", None),
        ("", None),
    ],
)
def test_location_of_an_output_is_split_from_its_path(output, found):
    assert split_location(output) == found


@pytest.mark.parametrize("deployment", ["", "azkaban"])
def test_identity_of_a_commit_is_read_from_its_own_tags(deployment):
    identity = Identity("training", generation=3, attempt=12, deployment=deployment)
    assert training_of(["mine", *identity.tags]) == (identity.hash, 3)


def test_tags_without_an_identity_name_no_training():
    assert training_of(["mine", "tfy-abc", "tfyv-abc"]) == training_of([]) == ("", 0)
