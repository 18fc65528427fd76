"""Many tasks in few lines: failed and troubled ones first, equal ones as one group."""

import pytest

from tf_yarn_ops.runtime.common.task_groups import group_tasks, order_tasks


def tasks_of(**states):
    """Return tasks by their states; each value gives indices of a worker."""
    found = [(index, state) for state, indices in states.items() for index in indices]
    return [{"task": f"worker:{index}", "state": state, "starts": 1} for index, state in sorted(found)]


def names(groups):
    return [group.name for group in groups]


def test_failed_then_troubled_then_waiting_tasks_come_first():
    tasks = tasks_of(running=[0, 1], pending=[2], killed=[3], succeeded=[4], failed=[5], lost=[6])
    ordered = [task["task"].removeprefix("worker:") for task in order_tasks(tasks, ["worker:1"])]
    assert ordered == ["5", "6", "1", "3", "2", "0", "4"]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"running": range(12)}, [f"worker:{index}" for index in range(12)]),
        ({"running": range(13)}, ["worker:0-12"]),
        ({"running": [0, 2, *range(4, 16)]}, ["worker:0,2,4-15"]),
        ({"running": range(11), "failed": [11, 12]}, ["worker:11", "worker:12", "worker:0-10"]),
        ({"running": range(0, 26, 2)}, ["worker:0,2,4,6 and 9 more"]),
    ],
    ids=["a small job shows each", "one group", "runs of indices", "two equal ones stay alone", "the rest is counted"],
)
def test_equal_tasks_are_one_group_of_a_large_job(states, expected):
    assert names(group_tasks(tasks_of(**states))) == expected


def test_a_troubled_task_is_never_part_of_a_group():
    assert names(group_tasks(tasks_of(running=range(13)), ["worker:5"])) == ["worker:5", "worker:0-4,6-12"]


def test_tasks_with_other_exits_or_starts_are_other_groups():
    tasks = tasks_of(failed=range(13))
    for index, task in enumerate(tasks):
        task["exit_code"], task["starts"] = (1, 1) if index < 4 else (2, 1) if index < 8 else (2, 3)
    assert names(group_tasks(tasks)) == ["worker:0-3", "worker:4-7", "worker:8-12"]
