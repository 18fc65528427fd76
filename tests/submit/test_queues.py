"""Queues by their names and paths."""

import pytest

from support.place import job
from tf_yarn_ops.errors import (
    SubmissionRejected,
)
from tf_yarn_ops.submit.queues import Queue, fault_of, find_queue, read_queues


@pytest.mark.slow
def test_queues_by_their_full_path_and_queues_that_are_made_when_named(place):
    place.launcher().submit(job(queue="root.low"))
    place.yarn.queues.append(
        {
            "type": "capacitySchedulerQueueInfo",
            "queueName": "users",
            "queuePath": "root.users",
            "state": "RUNNING",
            "autoCreationEligibility": "flexible",
        }
    )
    for queue in ("root.users.ann", "users.ann", "root.users.team.ann"):
        place.launcher().submit(job(queue=queue))
    for queue in ("root.others.ann", "ann", "low.ann"):
        with pytest.raises(SubmissionRejected, match=f"there is no queue '{queue}'"):
            place.launcher().submit(job(queue=queue))


def leaf(parent=False, state="RUNNING"):
    return Queue(parent, state, False, None, "")


def test_leaf_is_preferred_to_a_parent_of_its_name():
    found = {"root.a": leaf(parent=True), "root.b.a": leaf()}
    assert find_queue("a", found) is found["root.b.a"]


def test_queue_without_a_state_takes_applications():
    assert fault_of("a", {"root.a": leaf(state="")}) is None


def test_queue_that_makes_its_leaves_is_a_parent():
    made = {"queueName": "a", "autoCreateChildQueueEnabled": True}
    assert read_queues({"type": "capacityScheduler", "queues": {"queue": [made]}})["root.a"].parent
