"""The containers for which a running job still waits."""

import pytest

from tf_yarn_ops.follow.shortage import describe_shortage

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
