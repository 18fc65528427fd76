"""Deadlines inside YARN: each has its reason, and 0 means none."""

import asyncio
import time

import pytest
from test_protocol import Wire, coordinator_of, job, registration

from tf_yarn_ops.parts import Deadlines
from tf_yarn_ops.runtime.containers import Container
from tf_yarn_ops.runtime.overseer import Overseer
from tf_yarn_ops.runtime.reasons import Reason

YEAR = 365 * 86_400.0
WAITING, RUNNING = Container("worker_1", "worker", "REQUESTED", ""), Container("worker_1", "worker", "RUNNING", "", "h:1")


def look(overseer, name, now):
    """Do what a tick does about one deadline."""
    if name == "allocation":
        overseer.unallocated([WAITING], now)
    elif name == "registration":
        overseer.unregistered([RUNNING], now)
    elif name == "heartbeat":
        for peer in list(overseer.coordinator.registry.peers.values()):
            overseer.silence(peer, now)
    else:
        overseer.whole_job(now)


@pytest.mark.parametrize("seconds", [0, 30])
@pytest.mark.parametrize("name, reason", [
    ("allocation", Reason.ALLOCATION_TIMEOUT), ("registration", Reason.REGISTRATION_TIMEOUT),
    ("heartbeat", Reason.HEARTBEAT_LOST), ("execution", Reason.EXECUTION_TIMEOUT), ("total", Reason.TOTAL_TIMEOUT)])
def test_a_deadline_ends_the_job_with_its_reason_and_0_means_none(name, reason, seconds):
    none = dict.fromkeys(("queue", "allocation", "registration", "heartbeat", "execution", "total"), 0)

    async def play():
        coordinator = coordinator_of(job(deadlines=Deadlines(**none | {name: seconds})))
        await coordinator.greet(Wire(), registration())
        if name == "execution":
            await coordinator.greet(Wire(), registration("worker_1"))
            await coordinator.greet(Wire(), registration("ps_0"))
        overseer = Overseer(coordinator)
        began = time.monotonic()
        for now in (began, began + YEAR):
            assert coordinator.state.verdict is None, "not before its time"
            for _ in range(5):  # more often than the budget of losses lasts
                look(overseer, name, now)
                if name == "heartbeat" and coordinator.state.verdict is None:
                    await coordinator.greet(Wire(), registration())
        return coordinator.state.verdict

    verdict = asyncio.run(play())
    assert (verdict.reason if verdict else None) is (reason if seconds else None)
