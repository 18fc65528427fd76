"""The registry of agents: who comes back, who is replaced, who is given up."""

import pytest

from support.wire import exited, job, registration
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.master.containers import Container
from tf_yarn_ops.runtime.master.curves import Curves
from tf_yarn_ops.runtime.master.registry import Refused, Registry


def test_replacement_takes_the_vacated_index_or_its_own_number():
    registry = Registry(job())
    second, _ = registry.admit(registration("worker_1"))
    first, _ = registry.admit(registration("worker_0"))
    assert (first.task, second.task) == (TaskId("worker", 0), TaskId("worker", 1))
    with pytest.raises(Refused, match="no task is waiting for worker_2"):
        registry.admit(registration("worker_2"))
    registry.release(first)
    replacement, _ = registry.admit(registration("worker_2"))
    assert replacement.task == TaskId("worker", 0)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_log_of_a_task_lies_at_its_node_by_the_scheme_of_yarns_pages(scheme):
    registry = Registry(job()._replace(resourcemanagers=(f"{scheme}://rm:8090",)))
    peer, _ = registry.admit(registration(yarn_container="container_1", node_http="n1:8044"))
    reports = {report.task: report for report in registry.reports(dict.fromkeys(job().tasks(), "running"))}
    assert reports[str(peer.task)].log_url == f"{scheme}://n1:8044/node/containerlogs/container_1/u/worker.log"


def test_an_agent_that_comes_back_is_known_by_its_nonce():
    registry = Registry(job())
    peer, _ = registry.admit(registration())
    assert registry.admit(registration(port=2001)) == (peer, True)
    assert peer.address == "h:2001"
    with pytest.raises(Refused, match="registered already, by another agent"):
        registry.admit(registration(nonce="stolen"))


def test_container_whose_agent_has_not_called_has_a_log():
    """Its log says why; two replacements are not noted for the same task."""
    registry = Registry(job())
    running = [
        Container(f"worker_{number}", "worker", "RUNNING", "", f"n{number}:8042", f"container_{number}")
        for number in (2, 3)
    ]
    assert [*registry.expect(running)] == [TaskId("worker", 0), TaskId("worker", 1)]
    tasks = registry.reports(dict.fromkeys([TaskId("ps", 0), *registry.expect(running)], "pending"))
    assert [(task.task, task.host, task.container_id, task.log_url) for task in tasks] == [
        ("ps:0", None, None, None),
        ("worker:0", "n2", "container_2", "http://n2:8042/node/containerlogs/container_2/u/worker.log"),
        ("worker:1", "n3", "container_3", "http://n3:8042/node/containerlogs/container_3/u/worker.log"),
    ]


@pytest.mark.parametrize(
    ("writers", "expected"),
    [
        ((), None),
        (("worker_0", "worker_1"), {"by": "worker_0"}),
        (("worker_1",), {"by": "worker_1"}),  # torchrun gives rank 0 to any task
        (("ps_0",), None),
    ],
)
def test_metrics_are_of_worker_0_else_of_an_awaited_task(writers, expected):
    registry = Registry(job())
    for container in ("ps_0", "worker_0", "worker_1"):
        peer, _ = registry.admit(registration(container))
        registry.ended(peer, exited(result={"by": container} if container in writers else None))
    assert registry.metrics(Curves()) == expected


def test_container_of_a_registered_agent_is_not_expected():
    registry = Registry(job())
    registry.admit(registration("worker_0", host="n1", yarn_container="container_0", node_http="n1:8042"))
    assert registry.expect([Container("worker_0", "worker", "RUNNING", "", "n9:8042", "container_9")]) == {}
