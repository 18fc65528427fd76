"""A failure waits until it is known that no loss has caused it: tables, without processes or sockets."""

import pytest

from support.wire import job, registration
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.master.deferred import ANSWER_SECONDS, Deferred, DeferredFailures
from tf_yarn_ops.runtime.master.lifecycle import Exited
from tf_yarn_ops.runtime.master.registry import Registry


def deferring(heartbeat=60.0, **fields):
    """Return no failures yet, and the agents of ps:0, worker:0 and worker:1, which run and have answered at 90 s."""
    spec = job(deadlines=Deadlines(heartbeat=heartbeat), **fields)
    registry = Registry(spec)
    peers = []
    for container in ("ps_0", "worker_0", "worker_1"):
        peer, _ = registry.admit(registration(container))
        peer.connection, peer.running, peer.last_pong_at = object(), True, 90.0
        peers.append(peer)
    return DeferredFailures(spec), peers


def failure(peer, at=100.0):
    peer.running = False
    return Deferred(at, peer, {}, Exited(peer.task, 1, 60.0))


def answer(peers, at):
    for peer in peers:
        peer.last_pong_at = at


def test_only_the_first_failure_asks_for_a_ping():
    failures, (ps, worker, other) = deferring()
    assert [failures.defer(failure(worker), 100.0), failures.defer(failure(other), 101.0)] == [True, False]
    answer([ps], 100.5)
    assert list(failures.due([ps, worker, other], 102.0)) != [], "the second failure needs no second ping"
    assert failures.defer(failure(worker), 103.0)


def test_failures_are_due_in_the_order_in_which_they_happened():
    failures, (ps, worker, other) = deferring()
    failures.defer(failure(other, 99.0), 100.0)
    failures.defer(failure(worker, 98.0), 100.2)
    answer([ps], 100.1)
    assert [found.peer.task for found in failures.due([ps, worker, other], 100.3)] == [worker.task, other.task]
    assert failures.waiting == []


def test_failures_that_are_dropped_meanwhile_are_not_due():
    failures, (ps, worker, other) = deferring()
    for peer in (worker, other):
        failures.defer(failure(peer), 100.0)
    answer([ps], 100.1)
    seen = []
    for found in failures.due([ps, worker, other], 100.3):
        seen.append(found.peer.task)
        failures.waiting.clear()
    assert seen == [TaskId("worker", 0)]


@pytest.mark.parametrize(
    "change, due",
    [
        ({"last_pong_at": 99.9}, False),
        ({"last_pong_at": 100.0}, True),
        ({"connection": None, "last_pong_at": 101.0}, False),
        ({"terminated": True, "last_pong_at": 101.0}, False),
        ({"running": False, "last_pong_at": 0.0}, True),
    ],
    ids=["has not answered", "has answered", "is out of contact", "is ended by YARN", "does not run"],
)
@pytest.mark.parametrize("heartbeat", [0.0, 60.0])
def test_failure_is_due_once_every_running_agent_has_answered(change, due, heartbeat):
    failures, (ps, worker, other) = deferring(heartbeat)
    failures.defer(failure(other), 100.0)
    answer([ps], 100.0)
    for name, value in change.items():
        setattr(worker, name, value)
    assert bool(list(failures.due([ps, worker, other], 100.0 + ANSWER_SECONDS))) == due


@pytest.mark.parametrize("heartbeat, due", [(0.0, True), (60.0, False)])
@pytest.mark.parametrize("terminated", [False, True])
def test_wait_ends_by_itself_only_without_a_heartbeat_deadline(heartbeat, due, terminated):
    failures, (ps, worker, other) = deferring(heartbeat)
    failures.defer(failure(other), 100.0)
    worker.connection, worker.terminated = None, terminated
    assert bool(list(failures.due([ps, worker, other], 100.01 + ANSWER_SECONDS))) == (due and not terminated)


def test_failure_does_not_wait_for_a_task_that_is_replaced_alone():
    failures, (ps, worker, other) = deferring(restart=RestartPolicy("task"))
    spec = failures._job
    failures._job = spec._replace(types={**spec.types, "chief": spec.types["worker"]})
    failures.defer(failure(other), 100.0)
    answer([ps], 100.0)
    assert list(failures.due([ps, worker, other], 100.1)), "worker:0 has not answered, and can't be the cause"
