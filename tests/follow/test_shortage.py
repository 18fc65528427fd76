"""The containers for which a running job still waits."""

from dataclasses import replace

import pytest

from tf_yarn_ops.follow.shortage import PendingContainers, describe_shortage
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

NODES = [{"availMemoryMB": 512}, {"availMemoryMB": 2048}, {}]


def request(count, memory, place="*"):
    return {"resourceName": place, "numContainers": count, "capability": {"memory": memory}}


@pytest.mark.parametrize(("requests", "nodes", "sentence"), [
    ([], NODES, ""),
    ([request(0, 1024)], NODES, ""),
    ([request(2, 4096, "node1")], NODES, ""),  # the same request again, for one node
    ([request(2, 4096), request(1, 512), request(1, 4096)], NODES,
     "Missing 4 of 6 containers: 1 of 512 MiB and 3 of 4096 MiB; free in the cluster: 2560 MiB, on one node at most 2048 MiB."),
    ([request(1, 512)], [], "Missing 1 of 6 containers: 1 of 512 MiB; free in the cluster: 0 MiB, on one node at most 0 MiB."),
])  # fmt: skip
def test_missing_containers_are_described_by_size(requests, nodes, sentence):
    assert describe_shortage(requests, nodes, 6) == sentence


class Counting:
    asked = 0

    def resource_requests(self, application_id):
        self.asked += 1
        return [request(1, 512)]

    def nodes(self):
        return NODES

    def now(self):
        return 2000.0  # by YARN's clock, as the start


WAITS = JobReport(
    "application_1_0001", state="RUNNING", started_at=1.0, message="m", tasks=(TaskReport("worker:0", state="pending"),)
)


@pytest.mark.parametrize("state, age", [("FINISHED", 1000.0), ("RUNNING", 0.0)])
def test_only_a_job_that_waits_long_is_asked_for(state, age):
    yarn = Counting()
    report = replace(WAITS, state=state, started_at=2000.0 - age)
    assert PendingContainers(yarn).complete(report) == report and yarn.asked == 0


def test_missing_containers_are_asked_for_once_in_an_interval():
    yarn = Counting()
    shortages = PendingContainers(yarn)
    messages = {shortages.complete(WAITS).message for _ in range(3)}
    assert yarn.asked == 1 and [m[:22] for m in messages] == ["m Missing 1 of 1 conta"]
