"""Deadlines inside YARN: each has its reason, and 0 means none."""

import asyncio
import logging
import re
import time

import pytest

from support.wire import Wire, coordinator_of, job, registration
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.containers import Container
from tf_yarn_ops.runtime.master.overseer import Overseer
from tf_yarn_ops.runtime.master.summary import build_report
from tf_yarn_ops.submit.application import job_of

SINCE = r"since [-\d]+ [:\d]+ UTC"
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


def crowd(workers, **fields):
    """Give a coordinator of so many workers that Skein runs, and its overseer."""
    spec = JobSpec(command="x", tasks={"worker": TaskSpec(instances=workers)}, **fields)
    coordinator = coordinator_of(job_of(spec, base_port=20000, resourcemanagers=(), user="u"))
    coordinator.known = {f"worker_{n}": Container(f"worker_{n}", "worker", "RUNNING", "", f"node{n}:1")
                         for n in range(workers)}
    return coordinator, Overseer(coordinator)


async def call_all(coordinator):
    for name in coordinator.known:
        await coordinator.greet(Wire(), registration(name))


def play_allocation(coordinator, overseer, now):
    overseer.unallocated([container._replace(state="REQUESTED") for container in coordinator.known.values()], now + 31)


def play_registration(coordinator, overseer, now):
    for at in (now, now + 31):
        overseer.unregistered(list(coordinator.known.values()), at)


def play_nobody_is_coming(coordinator, overseer, now):
    for overseer.waiting_since in (now, now + 31):
        overseer.unregistered([], overseer.waiting_since)


def play_total(coordinator, overseer, now):
    overseer.whole_job(now + 31)


def play_execution(coordinator, overseer, now):
    overseer.whole_job(now + 31)


@pytest.mark.parametrize("workers, more", [(8, ""), (9, " and 1 more"), (50, " and 42 more")])
@pytest.mark.parametrize("play, deadline, words", [
    (play_allocation, "allocation", r"{n} of {n} containers were not .*: worker_0, .*worker_7{more} \(asked for in queue .*"),
    (play_registration, "registration", rf"no agent registered .* from worker_0 \(on node0 {SINCE}\), .*"
                                        rf"worker_7 \(on node7 {SINCE}\){{more}}"),
    (play_nobody_is_coming, "registration", r"no container is left for worker:0, .*worker:7{more}"),
    (play_total, "total", rf".*; waiting {SINCE} for: worker:0 \(container .*worker:7 \([^)]*\){{more}}"),
    (play_execution, "execution", rf".*; running: worker:0 \(on h {SINCE}\), .*worker:7 \(on h {SINCE}\){{more}}")])
def test_a_message_names_the_first_eight_where_since_when_and_how_many_more(play, deadline, words, workers, more):
    async def run():
        coordinator, overseer = crowd(workers, deadlines=Deadlines(**{deadline: 30}))
        if play is play_execution:
            await call_all(coordinator)
        play(coordinator, overseer, time.monotonic())
        return coordinator.state.verdict.message

    message = asyncio.run(run())
    assert re.fullmatch(words.format(n=workers, more=more), message), message
    assert "worker:8" not in message and "worker_8" not in message


@pytest.mark.parametrize("workers, more", [(8, ""), (9, " and 1 more")])
def test_page_and_log_say_as_well_how_many_more_are_missing(caplog, workers, more):
    coordinator, overseer = crowd(workers)
    assert re.fullmatch(rf"Waiting for worker:0, .*worker:7{more}\.", build_report(coordinator).message)
    with caplog.at_level(logging.INFO):
        overseer.whole_job(overseer.log_at)
    assert re.search(rf"Waiting for all ports \(0/{workers}\), missing: worker:0 .*worker:7 \([^)]*\){more}$", caplog.text)


def test_a_silent_agent_is_lost_with_the_time_of_its_last_word():
    async def run():
        coordinator, overseer = crowd(1, restart=RestartPolicy(max_container_losses=0))
        await call_all(coordinator)
        look(overseer, "heartbeat", time.monotonic() + 61)
        return coordinator.state.verdict.message

    assert re.search(rf"no word from it for 61 s, {SINCE} \(on h\)", asyncio.run(run()))
