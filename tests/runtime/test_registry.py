"""The registry of agents: who comes back, who is replaced, who is given up."""

import asyncio

import pytest

from support.wire import Wire, answer, coordinator_of, exited, job, registration
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.containers import Container
from tf_yarn_ops.runtime.master.lifecycle import Lost
from tf_yarn_ops.runtime.master.registry import Refused, Registry


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ({"code": None, "signal": 6}, "failed"),
        ({"code": 3}, "failed"),
        ({"code": 0}, "succeeded"),
        ({"code": None, "signal": 15, "stopped": True}, "stopped"),
    ],
)
def test_what_ends_by_itself_behind_the_verdict_is_called_what_it_is(how, state):
    """One worker fails, and the other aborts in its collective at the same moment."""

    async def play():
        coordinator = coordinator_of(job())
        wires = {name: Wire() for name in ("worker_0", "worker_1", "ps_0")}
        peers = {name: await coordinator.on_connect(wire, registration(name)) for name, wire in wires.items()}
        coordinator.on_message(peers["worker_0"], wires["worker_0"], exited(code=1))
        answer(coordinator)
        assert coordinator.state.verdict.reason is Reason.TASK_FAILED
        coordinator.on_message(peers["worker_1"], wires["worker_1"], exited(**how))
        return {task.task: task.state for task in coordinator.report().tasks}

    assert asyncio.run(play())["worker:1"] == state


def test_an_agent_that_comes_back_hears_what_it_has_missed():
    """Whatever got lost with the connection: the start, the restart of the cluster, its own new registration."""

    async def play():
        coordinator = coordinator_of(job(restart=RestartPolicy("cluster", backoff=0)))
        peers = {
            name: await coordinator.on_connect(Wire(), registration(name)) for name in ("ps_0", "worker_1", "worker_0")
        }

        async def back(**fields):
            peer = peers["worker_0"]
            coordinator.on_disconnect(peer, peer.connection)
            wire = Wire()
            assert await coordinator.on_connect(wire, registration(**fields)) is peer
            return wire

        wire = await back(round=1, start=0)
        assert wire.last() == ("start", 1, 1), "the start had been lost"
        wire = await back(round=1, start=1)
        assert wire.last() == ("start", 1, 1), "the agent skips events that it has seen"
        worker = next(task for task in coordinator.report().tasks if task.task == "worker:0")
        assert worker.starts == 1, "its word of the start had been lost"
        coordinator.on_message(peers["worker_1"], peers["worker_1"].connection, exited(code=1))
        assert coordinator.state.round == 1 and wire.last() == ("ping", None, None), "asked before it is judged"
        answer(coordinator)
        assert coordinator.state.round == 2
        wire = await back(round=1, start=1)
        assert wire.last() == ("renew", 2, None), "the restart had been lost"
        wire = await back(round=2, start=0, port=2001)
        for name in ("ps_0", "worker_1"):
            coordinator.on_message(peers[name], peers[name].connection, registration(name, round=2))
        assert wire.last() == ("start", 2, 1), "it had renewed its port while the connection was down"
        assert "h:2001" in wire.said[-1]["cluster"]["worker"]

    asyncio.run(play())


def test_an_agent_that_was_given_up_is_not_heard_any_more():
    async def play():
        coordinator = coordinator_of(job(restart=RestartPolicy("cluster", backoff=0)))
        peers = {
            name: await coordinator.on_connect(Wire(), registration(name)) for name in ("ps_0", "worker_1", "worker_0")
        }
        late = peers["worker_0"]
        coordinator.registry.vacate(late)
        coordinator.apply(Lost(late.task, Reason.HEARTBEAT_LOST, "silent"))
        for peer in peers.values():
            coordinator.on_message(peer, peer.connection, registration(peer.container, round=2))
        assert not coordinator.state.published and coordinator.state.verdict is None
        await coordinator.on_connect(Wire(), registration("worker_2"))
        assert coordinator.state.published

    asyncio.run(play())


def test_replacement_takes_the_vacated_index_or_its_own_number():
    registry = Registry(job())
    second, _ = registry.admit(registration("worker_1"))
    first, _ = registry.admit(registration("worker_0"))
    assert (first.task, second.task) == (TaskId("worker", 0), TaskId("worker", 1))
    with pytest.raises(Refused, match="no task is waiting for worker_2"):
        registry.admit(registration("worker_2"))
    registry.vacate(first)
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
    assert registry.expect(running) == [TaskId("worker", 0), TaskId("worker", 1)]
    tasks = registry.reports(dict.fromkeys([TaskId("ps", 0), *registry.expect(running)], "pending"))
    assert [(task.task, task.host, task.container_id, task.log_url) for task in tasks] == [
        ("ps:0", None, None, None),
        ("worker:0", "n2", "container_2", "http://n2:8042/node/containerlogs/container_2/u/worker.log"),
        ("worker:1", "n3", "container_3", "http://n3:8042/node/containerlogs/container_3/u/worker.log"),
    ]


def test_container_of_a_registered_agent_is_not_expected():
    registry = Registry(job())
    registry.admit(registration("worker_0", host="n1", yarn_container="container_0", node_http="n1:8042"))
    assert registry.expect([Container("worker_0", "worker", "RUNNING", "", "n9:8042", "container_9")]) == []


def test_silent_agent_is_reported_from_ten_seconds_on():
    async def play():
        coordinator = coordinator_of(job())
        for name in ("worker_0", "worker_1", "ps_0"):
            peer = await coordinator.on_connect(Wire(), registration(name))
            peer.received_at -= {"worker_0": 9.0, "worker_1": 40.0}.get(name, 0.0)
            peer.started_at, coordinator.state.phases[peer.task] = 1.0, "running"
        return coordinator.status()

    status = asyncio.run(play())
    seconds = {task["task"]: task["silent_seconds"] for task in status["tasks"]}
    assert seconds == {"worker:0": None, "worker:1": pytest.approx(40, abs=5), "ps:0": None}
    assert [concern["tasks"] for concern in status["concerns"]] == [["worker:1"]]
    assert "worker:1: silent for 4" in status["concerns"][0]["text"]
