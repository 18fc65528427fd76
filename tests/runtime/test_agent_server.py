"""Connections of agents to events, and effects to messages: without sockets, on connections that keep what is sent."""

import asyncio
import random

import pytest

from support.wire import Wire, coordinator_of, exited, job, registration
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.common.log_part import LOG_PART, read_log_part
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import agent_server
from tf_yarn_ops.runtime.master.agent_server import LOG_PARTS, AgentServer
from tf_yarn_ops.runtime.master.containers import LostContainer
from tf_yarn_ops.runtime.master.lifecycle import NodeFailures
from tf_yarn_ops.runtime.master.monitor import ContainerChecks


async def unanswered():
    """Stand for a poll that changes nothing."""


def server_of(coordinator, poll=unanswered):
    return AgentServer(coordinator.state, poll, asyncio.Event(), lambda error: None)


@pytest.mark.parametrize(
    "message, why",
    [
        ({"type": "ping"}, "the first message is not a registration"),
        (registration("worker_9"), "Skein knows no live container 'worker_9'"),
        (registration("worker_2"), "Skein knows no live container 'worker_2'"),
        (registration(version=0), "it speaks version 0 of the protocol, the coordinator 1"),
        (registration(port=0), "the registration has no address: host 'h', port 0"),
    ],
)
def test_registration_that_is_not_of_a_live_container_is_refused(message, why):
    async def play():
        coordinator, wire = coordinator_of(job()), Wire()
        coordinator.state.known["worker_2"] = coordinator.state.known["worker_2"]._replace(state="FAILED")
        assert await server_of(coordinator).on_connect(wire, message) is None
        return wire.said

    assert asyncio.run(play()) == [{"type": "refused", "why": why}]


def test_agent_that_is_back_after_its_loss_is_refused():
    """It would get its task again while its container is being replaced, and lose it with the container."""

    async def play():
        coordinator, wire = coordinator_of(job()), Wire()
        state = coordinator.state
        peer = await server_of(coordinator).on_connect(Wire(), registration())
        state.job.deadlines["heartbeat"] = 30
        for lost in ContainerChecks(state).find_unresponsive(peer.received_at + 31.0):
            state.on_lost(lost, peer.received_at + 31.0)
        assert [one.id for one in state.to_replace] == ["worker_0"]
        assert await server_of(coordinator).on_connect(wire, registration()) is None
        return wire.said

    assert asyncio.run(play()) == [{"type": "refused", "why": "worker_0 has been given up"}]


def test_container_that_is_not_known_yet_is_polled_for():
    async def play():
        coordinator, wire = coordinator_of(job()), Wire()
        known, coordinator.state.known = coordinator.state.known, {}

        async def poll():
            coordinator.state.known = known

        peer = await server_of(coordinator, poll).on_connect(wire, registration())
        return peer.container, wire.last()

    assert asyncio.run(play()) == ("worker_0", ("welcome", 1, None))


def test_replacement_waits_until_the_loss_before_it_is_known():
    async def play():
        coordinator, wire = coordinator_of(job()), Wire()
        for name in ("worker_0", "worker_1", "ps_0"):
            await coordinator.agents.on_connect(Wire(), registration(name))
        waits = asyncio.ensure_future(coordinator.agents.on_connect(wire, registration("worker_2")))
        await asyncio.sleep(0.01)
        assert wire.said == [] and not waits.done()
        coordinator.state.on_lost(LostContainer("worker_1", Reason.CONTAINER_LOST, "gone"), 0.0)
        return str((await waits).task), wire.last()

    assert asyncio.run(play()) == ("worker:1", ("welcome", 2, None))


def exclude(state):
    failure = NodeFailures(1, Reason.CONTAINER_LOST, "gone", TaskId("worker", 1))
    state.lifecycle = state.lifecycle._replace(failures={"n:1": failure})


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda state: state.given_up.add("worker_2"), "worker_2 has been given up"),
        (lambda state: state.known.pop("worker_2"), "Skein knows no live container 'worker_2'"),
        (exclude, None),
    ],
    ids=["given up", "gone", "excluded"],
)
def test_waiting_replacement_is_checked_again_before_its_admission(change, why):
    """The loss for which it waits may also exclude its node."""

    async def play():
        coordinator, wire = coordinator_of(job(restart=RestartPolicy("cluster", exclude_node_after=1))), Wire()
        state = coordinator.state
        state.known = {
            name: one._replace(node="n:1" if name == "worker_2" else "m:1") for name, one in state.known.items()
        }
        for name in ("worker_0", "worker_1"):
            await coordinator.agents.on_connect(Wire(), registration(name))
        waits = asyncio.ensure_future(coordinator.agents.on_connect(wire, registration("worker_2")))
        await asyncio.sleep(0.01)
        change(state)
        state.on_lost(LostContainer("worker_1", Reason.PREEMPTED, "gone"), 0.0)
        return await waits, wire.said

    assert asyncio.run(play()) == (None, [{"type": "refused", "why": why}] if why else [])


def test_replacement_without_a_loss_is_refused_in_the_end(monkeypatch):
    monkeypatch.setattr(agent_server, "REPLACEMENT_SECONDS", 0.1)

    async def play():
        coordinator, wire = coordinator_of(job()), Wire()
        for name in ("worker_0", "worker_1"):
            await coordinator.agents.on_connect(Wire(), registration(name))
        await coordinator.agents.on_connect(wire, registration("worker_2"))
        return wire.said

    assert asyncio.run(play()) == [{"type": "refused", "why": "no task is waiting for worker_2"}]


def test_connection_that_another_one_replaces_is_closed_and_ignored():
    async def play():
        coordinator, first, second = coordinator_of(job()), Wire(), Wire()
        peer = await coordinator.agents.on_connect(first, registration())
        assert await coordinator.agents.on_connect(second, registration()) is peer
        coordinator.agents.on_message(peer, first, {"type": "ping"})
        assert first.said[-1]["type"] == "welcome"
        coordinator.agents.on_disconnect(peer, first)
        coordinator.agents.on_message(peer, second, {"type": "ping"})
        return first.closed, second.closed, second.last()[0]

    assert asyncio.run(play()) == (True, False, "pong")


def test_tail_of_a_silent_agent_is_none(monkeypatch):
    monkeypatch.setattr(agent_server, "TAIL_SECONDS", 0.05)

    async def play():
        coordinator = coordinator_of(job())
        peer = await coordinator.agents.on_connect(Wire(), registration())
        silent = await coordinator.agents.tail("worker:0")
        coordinator.agents.on_message(peer, peer.connection, {"type": "log", "id": 1, "text": "too late"})
        coordinator.agents.on_disconnect(peer, peer.connection)
        return silent, await coordinator.agents.tail("worker:0")

    assert asyncio.run(play()) == (None, None)


def test_verdict_wakes_the_coordinator_and_no_message_before_does():
    async def play():
        coordinator = coordinator_of(job())
        peers = [await coordinator.agents.on_connect(Wire(), registration(n)) for n in ("worker_0", "worker_1", "ps_0")]
        coordinator.agents.on_message(peers[0], peers[0].connection, exited(code=0))
        before = coordinator._changed.is_set()
        coordinator.agents.on_message(peers[1], peers[1].connection, exited(code=0))
        return before, coordinator._changed.is_set()

    assert asyncio.run(play()) == (False, True)


class ReadingAgent(Wire):
    """An agent that answers requests for its log, which it has in a file."""

    def __init__(self, path, answered):
        super().__init__()
        self.path, self.answered = path, answered

    def send(self, line):
        super().send(line)
        if (message := self.said[-1])["type"] == "read":
            text = read_log_part(self.path, message["offset"])
            self.answered({"type": "log", "id": message["id"], "text": text})


@pytest.mark.parametrize("offset, begin", [(0, 0), (70_000, 70_000), (-5, 449_995), (900_000, 450_000), (-900_000, 0)])
def test_log_is_read_in_parts_as_the_agent_has_it(tmp_path, offset, begin):
    content = random.Random(1).randbytes(450_000)
    (tmp_path / "worker.log").write_bytes(content)

    async def play():
        coordinator = coordinator_of(job())
        wire = ReadingAgent(tmp_path / "worker.log", lambda message: coordinator.agents.on_message(peer, wire, message))
        peer = await coordinator.agents.on_connect(wire, registration(yarn_container="container_7"))
        missing = await coordinator.agents.read_log("container_8", offset)
        return missing, await coordinator.agents.read_log("container_7", offset)

    missing, page = asyncio.run(play())
    assert missing is None
    head, _, found = page.partition(b"\n")
    assert (head, found) == (b"%d 450000" % begin, content[begin : begin + LOG_PARTS * LOG_PART])
