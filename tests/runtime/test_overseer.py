"""Deadlines inside YARN: each has its reason, and 0 means none."""

import asyncio
import logging
import re
import time

import pytest

from support.wire import Wire, answer, coordinator_of, exited, job, registration
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import lifecycle
from tf_yarn_ops.runtime.master.containers import Container
from tf_yarn_ops.runtime.master.deferred import ANSWER_SECONDS
from tf_yarn_ops.runtime.master.overseer import LOG_SECONDS, MAX_UNWANTED, LostContainer, Overseer, View
from tf_yarn_ops.submit.application import JobContext, build_runtime_job

SINCE = r"since [-\d]+ [:\d]+Z"
YEAR = 365 * 86_400.0
WAITING, RUNNING = (
    Container("worker_1", "worker", "REQUESTED", ""),
    Container("worker_1", "worker", "RUNNING", "", "h:1"),
)


def view_of(coordinator, began, containers=None):
    """Return what the coordinator knows, with these containers."""
    registry = coordinator.registry
    return View(
        coordinator.state,
        registry.peers,
        registry.serving,
        list(coordinator.known.values()) if containers is None else containers,
        began,
        began if coordinator.state.published else None,
    )


def look(coordinator, overseer, name, began, now):
    """Do what a look does about one deadline."""
    if name == "heartbeat":
        coordinator.remove_containers(overseer.silent(view_of(coordinator, began), now))
        return
    if name in ("allocation", "registration"):
        missing = WAITING if name == "allocation" else RUNNING
        expired = overseer.missing(view_of(coordinator, began, [missing]), now)
    else:
        expired = overseer.overdue(view_of(coordinator, began), now)
    if expired:
        coordinator.apply(expired)


@pytest.mark.parametrize("seconds", [0, 30])
@pytest.mark.parametrize(
    "name, reason",
    [
        ("allocation", Reason.ALLOCATION_TIMEOUT),
        ("registration", Reason.REGISTRATION_TIMEOUT),
        ("heartbeat", Reason.HEARTBEAT_LOST),
        ("execution", Reason.EXECUTION_TIMEOUT),
        ("total", Reason.TOTAL_TIMEOUT),
    ],
)
def test_a_deadline_ends_the_job_with_its_reason_and_0_means_none(name, reason, seconds):
    none = dict.fromkeys(("queue", "allocation", "registration", "heartbeat", "execution", "total"), 0)

    async def play():
        coordinator = coordinator_of(job(deadlines=Deadlines(**none | {name: seconds})))
        await coordinator.on_connect(Wire(), registration())
        if name == "execution":
            await coordinator.on_connect(Wire(), registration("worker_1"))
            await coordinator.on_connect(Wire(), registration("ps_0"))
        began = time.monotonic()
        overseer = overseer_of(coordinator, began)
        for now in (began, began + YEAR):
            assert coordinator.state.verdict is None, "not before its time"
            for _ in range(5):  # more often than the budget of losses lasts
                look(coordinator, overseer, name, began, now)
                if name == "heartbeat" and coordinator.state.verdict is None:
                    await coordinator.on_connect(Wire(), registration())
        return coordinator.state.verdict

    verdict = asyncio.run(play())
    assert (verdict.reason if verdict else None) is (reason if seconds else None)


@pytest.mark.parametrize(
    "happens, judged",
    [
        ("nothing", False),
        ("it is back", True),
        ("it is lost", False),
        ("it says that YARN ends its container", False),
        ("6 s pass without a heartbeat deadline", True),
    ],
)
def test_failure_waits_for_a_task_out_of_contact(happens, judged):
    deadlines = Deadlines(heartbeat=0 if "deadline" in happens else 60)

    async def play():
        coordinator = coordinator_of(job(deadlines=deadlines))
        for name in ("ps_0", "worker_0", "worker_1"):
            await coordinator.on_connect(Wire(), registration(name))
        silent, failed = (coordinator.registry.peers[name] for name in ("worker_0", "worker_1"))
        if "YARN" in happens:
            coordinator.on_message(silent, silent.connection, {"type": "terminated"})
        else:
            coordinator.on_disconnect(silent, silent.connection)
        coordinator.on_message(failed, failed.connection, exited(code=1))
        answer(coordinator)
        assert coordinator.state.verdict is None
        if "back" in happens:
            await coordinator.on_connect(Wire(), registration(start=1))
        elif "lost" in happens:
            coordinator.remove_containers([LostContainer("worker_0", Reason.CONTAINER_LOST, "its node is gone")])
            assert coordinator.state.round == 2
        elif "pass" in happens:
            coordinator._deferred._pinged_at -= ANSWER_SECONDS + 1
        answer(coordinator)
        return coordinator.state.verdict

    verdict = asyncio.run(play())
    assert (verdict is not None) == judged
    assert not judged or (verdict.reason, verdict.task) == (Reason.TASK_FAILED, TaskId("worker", 1))


def overseer_of(coordinator, now):
    return Overseer(coordinator.job, lifecycle.rules_of(coordinator.job), now)


def crowd(workers, **fields):
    """Return a coordinator of so many workers that Skein runs."""
    spec = JobSpec(command="x", tasks={"worker": TaskSpec(instances=workers)}, **fields)
    coordinator = coordinator_of(build_runtime_job(spec, JobContext(20000, user="u")))
    coordinator.known = {
        f"worker_{n}": Container(f"worker_{n}", "worker", "RUNNING", "", f"node{n}:1") for n in range(workers)
    }
    return coordinator


async def call_all(coordinator):
    for name in coordinator.known:
        await coordinator.on_connect(Wire(), registration(name))


def play_allocation(coordinator, overseer, began):
    requested = [container._replace(state="REQUESTED") for container in coordinator.known.values()]
    return overseer.missing(view_of(coordinator, began, requested), began + 31)


def play_registration(coordinator, overseer, began):
    assert overseer.missing(view_of(coordinator, began), began) is None
    return overseer.missing(view_of(coordinator, began), began + 31)


def play_nobody_is_coming(coordinator, overseer, began):
    assert overseer.missing(view_of(coordinator, began, []), began) is None
    return overseer.missing(view_of(coordinator, began, []), began + 31)


def play_deadline(coordinator, overseer, began):
    return overseer.overdue(view_of(coordinator, began), began + 31)


@pytest.mark.parametrize("workers, more", [(8, ""), (9, " and 1 more"), (50, " and 42 more")])
@pytest.mark.parametrize(
    "play, deadline, words",
    [
        (
            play_allocation,
            "allocation",
            r"{n} of {n} containers were not .*: worker_0, .*worker_7{more} \(asked for in queue .*",
        ),
        (
            play_registration,
            "registration",
            rf"no agent registered .* from worker_0 \(on node0 {SINCE}\), .*"
            rf"worker_7 \(on node7 {SINCE}\){{more}}",
        ),
        (play_nobody_is_coming, "registration", r"no container is left for worker:0, .*worker:7{more}"),
        (play_deadline, "total", rf".*; waiting {SINCE} for: worker:0 \(container .*worker:7 \([^)]*\){{more}}"),
        (play_deadline, "execution", rf".*; running: worker:0 \(on h {SINCE}\), .*worker:7 \(on h {SINCE}\){{more}}"),
    ],
)
def test_message_names_the_first_eight_tasks_and_the_number_of_others(play, deadline, words, workers, more):
    async def run():
        coordinator = crowd(workers, deadlines=Deadlines(**{deadline: 30}))
        if deadline == "execution":
            await call_all(coordinator)
        began = time.monotonic()
        return play(coordinator, overseer_of(coordinator, began), began).cause

    message = asyncio.run(run())
    assert re.fullmatch(words.format(n=workers, more=more), message), message
    assert "worker:8" not in message and "worker_8" not in message


@pytest.mark.parametrize("workers, more", [(8, ""), (9, " and 1 more")])
def test_page_and_log_say_as_well_how_many_more_are_missing(caplog, workers, more):
    coordinator = crowd(workers)
    assert re.fullmatch(rf"Waiting for worker:0, .*worker:7{more}\.", coordinator.report().message)
    with caplog.at_level(logging.INFO):
        overseer_of(coordinator, 0.0).overdue(view_of(coordinator, 0.0), LOG_SECONDS)
    assert re.search(
        rf"Waiting for all ports \(0/{workers}\), missing: worker:0 .*worker:7 \([^)]*\){more}$", caplog.text
    )


def test_a_silent_agent_is_lost_with_the_time_of_its_last_word():
    async def run():
        coordinator = crowd(1, restart=RestartPolicy(max_container_losses=0))
        await call_all(coordinator)
        began = time.monotonic()
        look(coordinator, overseer_of(coordinator, began), "heartbeat", began, began + 61)
        return coordinator.state.verdict.message

    assert re.search(rf"its agent was silent for 61 s, {SINCE} \(on h\)", asyncio.run(run()))


def test_an_ended_container_is_reported_once():
    overseer = overseer_of(crowd(1), 0.0)
    failed = Container("worker_0", "worker", "FAILED", "boom")
    assert [(gone.container, gone.cause) for gone in overseer.ended([RUNNING, WAITING, failed])] == [
        ("worker_0", "boom")
    ]
    assert overseer.ended([failed]) == []


def test_a_silent_agents_container_is_not_reported_again():
    async def run():
        coordinator = crowd(1)
        await call_all(coordinator)
        began = time.monotonic()
        overseer = overseer_of(coordinator, began)
        [gone] = overseer.silent(view_of(coordinator, began), began + 61)
        return gone.container, overseer.ended([Container("worker_0", "worker", "FAILED", "boom")])

    assert asyncio.run(run()) == ("worker_0", [])


def test_a_container_for_which_no_task_waits_does_not_expire():
    async def run():
        coordinator = crowd(1, deadlines=Deadlines(allocation=30))
        await call_all(coordinator)
        began = time.monotonic()
        view = view_of(coordinator, began, [Container("tensorboard_0", "tensorboard", "REQUESTED", "")])
        return overseer_of(coordinator, began).missing(view, began + YEAR)

    assert asyncio.run(run()) is None


def in_second_round(heartbeat, received_at):
    """Return what is missing 39 s and 41 s after a restart; registration may take 30 s, and ending the command 10 s."""

    async def run():
        deadlines = Deadlines(registration=30, stop_grace=10, heartbeat=heartbeat)
        coordinator = crowd(1, deadlines=deadlines, restart=RestartPolicy("cluster", max_restarts=1))
        await call_all(coordinator)
        overseer = overseer_of(coordinator, 100.0)
        view = view_of(coordinator, 100.0)
        state, decision = lifecycle.decide(overseer._rules, view.state, lifecycle.Exited(TaskId("worker", 0), 1, 60.0))
        assert decision.action == "restart"
        view = view._replace(state=state, restarts_at=100.0)
        view.serving[TaskId("worker", 0)].received_at = received_at
        return overseer.missing(view, 139.0), overseer.missing(view, 141.0)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("heartbeat", "received_at"), [(60, 138.0), (0, 101.0)], ids=["heard", "no deadline for silence"]
)
def test_registration_of_a_later_round_has_the_stop_grace_more(heartbeat, received_at):
    early, late = in_second_round(heartbeat, received_at)
    assert early is None and late.reason is Reason.REGISTRATION_TIMEOUT
    assert late.cause == "no agent registered within 30 s from worker:0 (ending its command on h)"


def test_agent_silent_since_a_restart_is_left_to_the_heartbeats_deadline():
    assert in_second_round(60, 101.0) == (None, None)


def test_an_overdue_job_names_the_start_of_each_running_task():
    async def run():
        coordinator = crowd(1, deadlines=Deadlines(total=30))
        await call_all(coordinator)
        coordinator.registry.serving[TaskId("worker", 0)].started_at = 1_700_000_000.0
        began = time.monotonic()
        return play_deadline(coordinator, overseer_of(coordinator, began), began).cause

    assert asyncio.run(run()).endswith("running: worker:0 (on h since 2023-11-14 22:13:20Z)")


def excluding(*nodes):
    """Return an overseer and what it sees: worker:0 waits for a container, and its failures have excluded nodes."""
    coordinator = coordinator_of(job(restart=RestartPolicy("cluster", exclude_node_after=1)))
    cause = "worker:0 failed with exit code 3"
    failures = {node: lifecycle.NodeFailures(1, Reason.TASK_FAILED, cause, TaskId("worker", 0)) for node in nodes}
    coordinator.state = coordinator.state._replace(failures=failures)
    view = view_of(coordinator, 0.0, [Container(f"worker_{n}", "worker", "RUNNING", "", f"{n}:1") for n in range(2)])
    return Overseer(coordinator.job, lifecycle.rules_of(coordinator.job), 0.0), view


def test_new_containers_on_excluded_nodes_are_unwanted_once():
    overseer, view = excluding("0:1")
    assert [[container.id for container in overseer.unwanted(view)] for _ in range(2)] == [["worker_0"], []]


@pytest.mark.parametrize("nodes, why", [({"0:1", "2:1"}, None), (None, None), ({"0:1"}, "every node")])
def test_job_ends_when_every_running_node_is_excluded(nodes, why):
    overseer, view = excluding("0:1")
    overseer.unwanted(view)
    expired = overseer.without_nodes(view, nodes)
    assert (expired and (expired.reason, expired.cause)) == (
        why and (Reason.TASK_FAILED, f"worker:0 failed with exit code 3; no node is left: excluded are 0:1 ({why})")
    )


def test_job_ends_when_yarn_gives_excluded_nodes_again_and_again():
    overseer, view = excluding("0:1")
    for number in range(MAX_UNWANTED):
        assert overseer.without_nodes(view, None) is None
        overseer.unwanted(view._replace(containers=[Container(f"worker_{number}", "worker", "RUNNING", "", "0:1")]))
    assert "(60 containers in a row were there)" in overseer.without_nodes(view, {"0:1", "2:1"}).cause


def seeing(container_state, heard_ago=0.0, terminated=False, **deadlines):
    """Return an overseer, and what it sees: the agent of worker:0, last heard so many seconds before 1000."""

    async def run():
        coordinator = crowd(1, deadlines=Deadlines(**deadlines))
        await call_all(coordinator)
        for peer in coordinator.registry.peers.values():
            peer.received_at, peer.terminated = 1000.0 - heard_ago, terminated
        listed = [Container("worker_0", "worker", container_state, "", "h:1")] if container_state else []
        return overseer_of(coordinator, 0.0), view_of(coordinator, 0.0, listed)

    return asyncio.run(run())


@pytest.mark.parametrize("ago, lost", [(ANSWER_SECONDS, False), (ANSWER_SECONDS + 1, True)])
def test_skein_gets_some_seconds_to_say_why_a_container_ended(ago, lost):
    overseer, view = seeing("RUNNING", ago, terminated=True, heartbeat=60)
    assert [gone.reason for gone in overseer.silent(view, 1000.0)] == [Reason.CONTAINER_LOST] * lost


@pytest.mark.parametrize("listed", [True, False])
def test_silent_container_is_replaced_only_while_it_is_listed(listed):
    overseer, view = seeing("RUNNING" if listed else None, 61.0, heartbeat=60)
    assert [gone.replace for gone in overseer.silent(view, 1000.0)] == [listed]


def test_allocation_is_timed_since_the_last_request():
    coordinator = crowd(1, deadlines=Deadlines(allocation=30, registration=0))
    overseer = overseer_of(coordinator, 0.0)
    assert overseer.missing(view_of(coordinator, 0.0, [RUNNING]), 100.0) is None
    assert overseer.missing(view_of(coordinator, 0.0, [WAITING]), 129.0) is None
    assert overseer.missing(view_of(coordinator, 0.0, [WAITING]), 131.0).reason is Reason.ALLOCATION_TIMEOUT


def test_container_that_was_given_up_is_not_late():
    coordinator = crowd(2, deadlines=Deadlines(registration=30))
    overseer = overseer_of(coordinator, 0.0)
    overseer.ended([Container("worker_0", "worker", "FAILED", "boom")])
    view = view_of(coordinator, 0.0)
    assert overseer.missing(view, 0.0) is None
    assert "worker_0" not in overseer.missing(view, 31.0).cause


def test_container_that_has_registered_is_not_unwanted():
    overseer, view = excluding("0:1")
    peers = {"worker_0": object()}
    assert overseer.unwanted(view._replace(peers=peers)) == []


def test_unwanted_containers_are_counted_while_a_task_waits():
    overseer, view = excluding("0:1")
    overseer.unwanted(view)
    assert overseer._unwanted == 1
    running = dict.fromkeys(view.state.phases, lifecycle.RUNNING)
    overseer.unwanted(view._replace(state=view.state._replace(phases=running)))
    assert overseer._unwanted == 0
