"""Queues by their names and paths."""

import pytest

from support.place import job
from tf_yarn_ops.errors import (
    SubmissionRejected,
)


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
