"""Deadlines inside YARN: each has its reason, and 0 means none; and what polls of containers find."""

import asyncio
import logging
import re

import pytest

from support.wire import exited, job, join, receive, registration, sample, state_of
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import lifecycle
from tf_yarn_ops.runtime.master.containers import Container, ContainerEnd, Containers, LostContainer
from tf_yarn_ops.runtime.master.deferred import ANSWER_SECONDS
from tf_yarn_ops.runtime.master.monitor import (
    LOG_SECONDS,
    MAX_UNWANTED,
    STEADY_POLL_SECONDS,
    ContainerChecks,
    ContainerMonitor,
)
from tf_yarn_ops.runtime.master.reporting import build_report
from tf_yarn_ops.submit.application import build_runtime_job

SINCE = r"since [-\d]+ [:\d]+Z"
YEAR = 365 * 86_400.0
#: When the jobs of these tests begin, monotonic.
BEGAN = 1000.0
WAITING, RUNNING = (
    Container("worker_1", "worker", "REQUESTED", ""),
    Container("worker_1", "worker", "RUNNING", "", "h:1"),
)


def listing(state, *containers):
    """Let Skein list these containers."""
    state.known = {container.id: container for container in containers}


def check(state, checks, name, now):
    """Do the check of one deadline, as a poll does."""
    if name == "heartbeat":
        for lost in checks.find_unresponsive(now):
            state.on_lost(lost, now)
        return
    if name in ("allocation", "registration"):
        listing(state, WAITING if name == "allocation" else RUNNING)
        expired = checks.check_missing(now)
    else:
        if name == "stall":
            measure(state, now, now - BEGAN)
        expired = checks.check_deadlines(now)
    if expired:
        state.apply(expired, now)


def measure(state, now, idle, **of):
    """Let each agent send a sample of a command that has been idle for so long; `of` has those of single tasks."""
    for peer in state.registry.peers.values():
        if peer.connection is None:
            continue
        receive(state, peer, {"type": "running", "round": peer.round, "start": peer.start}, now)
        seconds = of.get(str(peer.task).replace(":", "_"), idle)
        receive(state, peer, sample(round=peer.round, start=peer.start, idle_seconds=seconds), now)


@pytest.mark.parametrize("seconds", [0, 30])
@pytest.mark.parametrize(
    "name, reason",
    [
        ("allocation", Reason.ALLOCATION_TIMEOUT),
        ("registration", Reason.REGISTRATION_TIMEOUT),
        ("heartbeat", Reason.HEARTBEAT_LOST),
        ("execution", Reason.EXECUTION_TIMEOUT),
        ("total", Reason.TOTAL_TIMEOUT),
        ("stall", Reason.STALLED),
    ],
)
def test_a_deadline_ends_the_job_with_its_reason_and_0_means_none(name, reason, seconds):
    none = dict.fromkeys(("queue", "allocation", "registration", "heartbeat", "execution", "total", "stall"), 0)

    state = state_of(job(deadlines=Deadlines(**none | {name: seconds})), BEGAN)
    join(state, *(["worker_0", "worker_1", "ps_0"] if name in ("execution", "stall") else ["worker_0"]), now=BEGAN)
    checks = ContainerChecks(state)
    for now in (BEGAN, BEGAN + YEAR):
        assert state.lifecycle.verdict is None, "not before its time"
        for _ in range(5):  # more often than the budget of losses lasts
            check(state, checks, name, now)
            if name == "heartbeat" and state.lifecycle.verdict is None:
                join(state, "worker_0", now=BEGAN)
    verdict = state.lifecycle.verdict
    assert (verdict.reason if verdict else None) is (reason if seconds else None)


def standing_still():
    """Return the state of a job with a deadline of 600 s whose three commands have been idle for an hour, and peers."""
    state = state_of(job(deadlines=Deadlines(stall=600), restart=RestartPolicy("task")), BEGAN)
    peers = join(state, "worker_0", "worker_1", "ps_0", now=BEGAN)
    measure(state, BEGAN + 3600, 3600.0)
    return state, peers


def test_job_that_stands_still_names_for_how_long_and_which_tasks():
    state, _ = standing_still()
    expired = ContainerChecks(state).check_deadlines(BEGAN + 3600)
    running = ", ".join(rf"{task} \(on h {SINCE}\)" for task in ("ps:0", "worker:0", "worker:1"))
    words = rf"no task has used CPU or GPUs, or written to its log or metrics for 3600 s; running: {running}"
    assert expired.reason is Reason.STALLED and re.fullmatch(words, expired.message), expired.message


def busy(state, _peers):
    measure(state, BEGAN + 3600, 3600.0, worker_1=599.0)


def disconnected(state, peers):
    state.on_disconnect(peers[0], peers[0].connection)
    for seconds in (4, 8, 12):
        measure(state, BEGAN + 3600 + seconds, 3600.0)


def back_without_a_sample(state, peers):
    disconnected(state, peers)
    state.on_connect("another", registration(start=1), BEGAN + 3612)


def lost(state, _peers):
    state.on_lost(LostContainer("worker_0", Reason.CONTAINER_LOST, "its node is gone"), BEGAN + 3601)


def replaced(state, peers):
    lost(state, peers)
    join(state, "worker_2", now=BEGAN + 3602)


def started_again(state, peers):
    receive(state, peers[0], exited(code=1), BEGAN + 3601)
    for peer in peers:
        receive(state, peer, {"type": "pong"}, BEGAN + 3602)
    state.apply_deferred(BEGAN + 3602)
    assert peers[0].start == 2


def exited_and_deferred(state, peers):
    receive(state, peers[0], exited(code=1), BEGAN + 3601)


@pytest.mark.parametrize(
    "happen",
    [busy, disconnected, back_without_a_sample, lost, replaced, started_again, exited_and_deferred],
    ids=lambda happen: happen.__name__,
)
def test_job_with_a_task_that_may_be_busy_does_not_stand_still(happen):
    state, peers = standing_still()
    assert state.idle_seconds(BEGAN + 3600) == 3600.0
    happen(state, peers)
    assert ContainerChecks(state).check_deadlines(BEGAN + 3612) is None and state.lifecycle.verdict is None


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

    state = state_of(job(deadlines=deadlines))
    ps, silent, failed = join(state, "ps_0", "worker_0", "worker_1")
    if "YARN" in happens:
        receive(state, silent, {"type": "terminated"})
    else:
        state.on_disconnect(silent, silent.connection)
    receive(state, failed, exited(code=1), 1.0)
    receive(state, ps, {"type": "pong"}, 1.1)
    assert state.lifecycle.verdict is None
    if "back" in happens:
        state.on_connect("another", registration(start=1), 2.0)
    elif "lost" in happens:
        state.on_lost(LostContainer("worker_0", Reason.CONTAINER_LOST, "its node is gone"), 2.0)
        assert state.lifecycle.round == 2
    state.apply_deferred(2.0 + ANSWER_SECONDS if "pass" in happens else 2.0)
    verdict = state.lifecycle.verdict
    assert (verdict is not None) == judged
    assert not judged or (verdict.reason, verdict.task) == (Reason.TASK_FAILED, TaskId("worker", 1))


def crowd(workers, **fields):
    """Return the state of a job of so many workers, whose containers run."""
    spec = JobSpec(command="x", tasks={"worker": TaskSpec(instances=workers)}, **fields)
    state = state_of(build_runtime_job(spec)._replace(user="u"), BEGAN)
    listing(state, *(Container(f"worker_{n}", "worker", "RUNNING", "", f"node{n}:1") for n in range(workers)))
    return state


def join_all(state):
    join(state, *state.known, now=BEGAN)


def play_allocation(state, checks):
    listing(state, *(container._replace(state="REQUESTED") for container in state.known.values()))
    return checks.check_missing(BEGAN + 31)


def play_registration(_state, checks):
    assert checks.check_missing(BEGAN) is None
    return checks.check_missing(BEGAN + 31)


def play_nobody_is_coming(state, checks):
    listing(state)
    assert checks.check_missing(BEGAN) is None
    return checks.check_missing(BEGAN + 31)


def play_deadline(_state, checks):
    return checks.check_deadlines(BEGAN + 31)


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
    state = crowd(workers, deadlines=Deadlines(**{deadline: 30}))
    if deadline == "execution":
        join_all(state)
    message = play(state, ContainerChecks(state)).message
    assert re.fullmatch(words.format(n=workers, more=more), message), message
    assert "worker:8" not in message and "worker_8" not in message


@pytest.mark.parametrize("workers, more", [(8, ""), (9, " and 1 more")])
def test_page_and_log_say_as_well_how_many_more_are_missing(caplog, workers, more):
    state = crowd(workers)
    assert re.fullmatch(rf"Waiting for worker:0, .*worker:7{more}\.", build_report(state, None, None).message)
    with caplog.at_level(logging.INFO):
        ContainerChecks(state).check_deadlines(BEGAN + LOG_SECONDS)
    assert re.search(
        rf"Waiting for all ports \(0/{workers}\), missing: worker:0 .*worker:7 \([^)]*\){more}$", caplog.text
    )


def test_a_silent_agent_is_lost_with_the_time_of_its_last_message():
    state = crowd(1, restart=RestartPolicy(max_container_losses=0))
    join_all(state)
    check(state, ContainerChecks(state), "heartbeat", BEGAN + 61)
    assert re.search(rf"its agent was silent for 61 s, {SINCE} \(on h\)", state.lifecycle.verdict.message)


def test_an_ended_container_is_reported_once():
    state = crowd(1)
    checks = ContainerChecks(state)
    listing(state, RUNNING, WAITING._replace(id="worker_2"), Container("worker_0", "worker", "FAILED", "boom"))
    assert [(lost.container, lost.cause) for lost in checks.find_exited()] == [("worker_0", "boom")]
    assert checks.find_exited() == []


def test_a_silent_agents_container_is_not_reported_again():
    state = crowd(1)
    join_all(state)
    checks = ContainerChecks(state)
    assert [lost.container for lost in checks.find_unresponsive(BEGAN + 61)] == ["worker_0"]
    listing(state, Container("worker_0", "worker", "FAILED", "boom"))
    assert checks.find_exited() == []


def in_second_round(heartbeat, received_at):
    """Return what is missing 39 s and 41 s after a restart; registration may take 30 s, and ending the command 10 s."""
    deadlines = Deadlines(registration=30, stop_grace=10, heartbeat=heartbeat)
    state = crowd(1, deadlines=deadlines, restart=RestartPolicy("cluster", max_restarts=1, backoff=0))
    join_all(state)
    checks = ContainerChecks(state)
    state.apply(lifecycle.Exited(TaskId("worker", 0), 1, 60.0), 2000.0)
    assert (state.lifecycle.round, state.restarts_at) == (2, 2000.0)
    state.registry.serving[TaskId("worker", 0)].received_at = received_at
    return checks.check_missing(2039.0), checks.check_missing(2041.0)


@pytest.mark.parametrize(
    ("heartbeat", "received_at"), [(60, 2038.0), (0, 2001.0)], ids=["sends messages", "no deadline for silence"]
)
def test_registration_of_a_later_round_has_the_stop_grace_more(heartbeat, received_at):
    early, late = in_second_round(heartbeat, received_at)
    assert early is None and late.reason is Reason.REGISTRATION_TIMEOUT
    assert late.message == "no agent registered within 30 s from worker:0 (ending its command on h)"


def test_agent_silent_since_a_restart_is_left_to_the_heartbeats_deadline():
    assert in_second_round(60, 2001.0) == (None, None)


def test_an_overdue_job_names_the_start_of_each_running_task():
    state = crowd(1, deadlines=Deadlines(total=30))
    join_all(state)
    state.registry.serving[TaskId("worker", 0)].started_at = 1_700_000_000.0
    cause = play_deadline(state, ContainerChecks(state)).message
    assert cause.endswith("running: worker:0 (on h since 2023-11-14 22:13:20Z)")


def excluding(*nodes):
    """Return a job and its checks: worker:0 waits for a container, and its failures have excluded nodes."""
    state = state_of(job(restart=RestartPolicy("cluster", exclude_node_after=1)), BEGAN)
    cause = "worker:0 failed with exit code 3"
    failures = {node: lifecycle.NodeFailures(1, Reason.TASK_FAILED, cause, TaskId("worker", 0)) for node in nodes}
    state.lifecycle = state.lifecycle._replace(failures=failures)
    listing(state, *(Container(f"worker_{n}", "worker", "RUNNING", "", f"{n}:1") for n in range(2)))
    return state, ContainerChecks(state)


def test_new_containers_on_excluded_nodes_are_found_once():
    _, checks = excluding("0:1")
    assert [[container.id for container in checks.find_on_excluded_nodes()] for _ in range(2)] == [["worker_0"], []]


@pytest.mark.parametrize("nodes, why", [({"0:1", "2:1"}, None), (None, None), ({"0:1"}, "every node")])
def test_job_ends_when_every_running_node_is_excluded(nodes, why):
    _, checks = excluding("0:1")
    checks.find_on_excluded_nodes()
    expired = checks.check_remaining_nodes(nodes)
    assert (expired and (expired.reason, expired.message)) == (
        why and (Reason.TASK_FAILED, f"worker:0 failed with exit code 3; no node is left: excluded are 0:1 ({why})")
    )


def test_job_ends_when_yarn_gives_excluded_nodes_again_and_again():
    state, checks = excluding("0:1")
    for number in range(MAX_UNWANTED):
        assert checks.check_remaining_nodes(None) is None
        listing(state, Container(f"worker_{number}", "worker", "RUNNING", "", "0:1"))
        checks.find_on_excluded_nodes()
    assert "(60 containers that YARN gave were there)" in checks.check_remaining_nodes({"0:1", "2:1"}).message


def unresponsive(container_state, silent=0.0, terminated=False, **deadlines):
    """Return what the checks find of worker:0, whose agent has been silent for so many seconds."""
    state = crowd(1, deadlines=Deadlines(**deadlines))
    [peer] = join(state, "worker_0", now=BEGAN)
    peer.terminated = terminated
    listing(state, *([Container("worker_0", "worker", container_state, "", "h:1")] if container_state else []))
    return ContainerChecks(state).find_unresponsive(BEGAN + silent)


@pytest.mark.parametrize("silent, lost", [(ANSWER_SECONDS, False), (ANSWER_SECONDS + 1, True)])
def test_skein_gets_some_seconds_to_say_why_a_container_ended(silent, lost):
    found = unresponsive("RUNNING", silent, terminated=True, heartbeat=60)
    assert [one.reason for one in found] == [Reason.CONTAINER_LOST] * lost


@pytest.mark.parametrize("listed", [True, False])
def test_silent_container_is_replaced_only_while_it_is_listed(listed):
    found = unresponsive("RUNNING" if listed else None, 61.0, heartbeat=60)
    assert [one.replace for one in found] == [listed]


def test_allocation_is_timed_since_the_last_request():
    state = crowd(1, deadlines=Deadlines(allocation=30, registration=0))
    checks = ContainerChecks(state)
    found = []
    earlier = Container("worker_0", "worker", "REQUESTED", "")
    for containers, seconds in (([earlier], 1.0), ([earlier, WAITING], 29.0), ([WAITING], 30.5), ([WAITING], 31.5)):
        listing(state, *containers)
        found.append(checks.check_missing(BEGAN + seconds))
    assert [expired and expired.reason for expired in found] == [None, None, None, Reason.ALLOCATION_TIMEOUT]


@pytest.mark.parametrize("ended, reason", [(False, None), (True, Reason.ALLOCATION_TIMEOUT)])
def test_evaluator_without_room_for_another_ends_no_training(ended, reason):
    """Those that train need it no more than it needs them: only once they have ended, its deadline counts."""
    tasks = {"worker": TaskSpec(), "ps": TaskSpec(), "evaluator": TaskSpec(awaited=True)}
    spec = JobSpec(command="x", tasks=tasks, deadlines=Deadlines(allocation=30))
    state = state_of(build_runtime_job(spec)._replace(user="u"), BEGAN)
    state.known["evaluator_0"] = Container("evaluator_0", "evaluator", "RUNNING", "")
    checks, (worker, *_) = ContainerChecks(state), join(state, "worker_0", "ps_0", "evaluator_0")
    state.on_lost(LostContainer("evaluator_0", Reason.NODE_LOST, "gone"), BEGAN)
    listing(state, Container("evaluator_1", "evaluator", "REQUESTED", ""))
    if ended:
        receive(state, worker, exited(code=0))
    checks.check_missing(BEGAN)
    expired = checks.check_missing(BEGAN + 31)
    assert (expired and expired.reason) == reason


@pytest.mark.parametrize("container_state", ["REQUESTED", "RUNNING"])
def test_tensorboard_that_does_not_register_ends_no_job_hides_no_task(container_state):
    limits = Deadlines(allocation=30, registration=30)
    spec = JobSpec(command="x", tasks={"worker": TaskSpec(2)}, deadlines=limits, tensorboard=TensorBoard(), output="/o")
    state = state_of(build_runtime_job(spec)._replace(user="u"), BEGAN)
    board = Container("tensorboard_0", "tensorboard", container_state, "", "h:1")
    listing(state, board, RUNNING)
    checks = ContainerChecks(state)
    join(state, "worker_0", "worker_1")
    assert checks.check_missing(BEGAN) is checks.check_missing(BEGAN + 40) is None, "no task waits for it"
    state.on_lost(LostContainer("worker_1", Reason.CONTAINER_LOST, "gone"), BEGAN + 40)
    listing(state, board, WAITING._replace(id="worker_2"))
    assert checks.check_missing(BEGAN + 41) is None, "another container is coming"
    listing(state, board)
    assert checks.check_missing(BEGAN + 42) is None
    assert checks.check_missing(BEGAN + 43 + ANSWER_SECONDS).reason is Reason.CONTAINER_LOST


def test_container_that_was_given_up_is_not_late():
    state = crowd(2, deadlines=Deadlines(registration=30))
    checks, known = ContainerChecks(state), dict(state.known)
    state.known = {**known, "worker_0": Container("worker_0", "worker", "FAILED", "boom")}
    checks.find_exited()
    state.known = known
    assert checks.check_missing(BEGAN) is None
    assert "worker_0" not in checks.check_missing(BEGAN + 31.0).message


def test_container_that_has_registered_is_not_late():
    state = crowd(2, deadlines=Deadlines(registration=30))
    checks = ContainerChecks(state)
    join(state, "worker_0")
    assert checks.check_missing(BEGAN) is None
    assert "worker_0" not in checks.check_missing(BEGAN + 31.0).message


def test_container_that_has_registered_stays_on_an_excluded_node():
    state, checks = excluding()
    join(state, "worker_0")
    failure = lifecycle.NodeFailures(1, Reason.TASK_FAILED, "", TaskId("worker", 0))
    state.lifecycle = state.lifecycle._replace(failures={"0:1": failure})
    assert checks.find_on_excluded_nodes() == []


def test_excluded_containers_are_counted_while_a_task_waits():
    state, checks = excluding("0:1")
    checks.find_on_excluded_nodes()
    assert checks._unwanted == 1
    running = dict.fromkeys(state.lifecycle.phases, lifecycle.RUNNING)
    state.lifecycle = state.lifecycle._replace(phases=running)
    checks.find_on_excluded_nodes()
    assert checks._unwanted == 0


class Listed(Containers):
    """Skein's application master, with a list that the test writes."""

    def __init__(self, *containers):
        self.listed, self.polls, self.replaced, self.done = list(containers), 0, [], []

    async def list(self):
        self.polls += 1
        await asyncio.sleep(0)
        return list(self.listed)

    async def explain(self, container):
        return ContainerEnd(f"the node knows {container.id}", "Killed", exit_code=137)

    async def replace(self, container):
        self.replaced.append(container.id)

    async def nodes(self):
        return None

    async def progress(self, fraction):
        self.done.append(fraction)

    async def connect(self):
        raise AssertionError("the driver connects")

    async def add_page(self, route, target, link):
        raise AssertionError("the driver adds pages")

    async def shutdown(self, succeeded, diagnostics):
        raise AssertionError("the driver ends the application")


def test_callers_of_a_poll_at_the_same_time_share_one_answer():
    async def play():
        listed = Listed(RUNNING)
        monitor = ContainerMonitor(state_of(job()), listed, lambda _: None)
        await asyncio.gather(*(monitor.poll() for _ in range(10)))
        return listed.polls

    assert asyncio.run(play()) <= 2, "the one that had begun, and one more"


def test_calm_job_is_polled_less_often_than_one_with_a_lost_contact():
    async def play():
        state, listed = state_of(job()), Listed()
        listed.listed = list(state.known.values())
        peers = join(state, "ps_0", "worker_0", "worker_1")
        monitor = ContainerMonitor(state, listed, lambda _: None)
        polls = []
        for now in (BEGAN, BEGAN + STEADY_POLL_SECONDS - 0.1, BEGAN + STEADY_POLL_SECONDS):
            await monitor._check(now)
            polls.append(listed.polls)
        state.on_disconnect(peers[0], peers[0].connection)
        await monitor._check(BEGAN + STEADY_POLL_SECONDS + 0.1)
        return [*polls, listed.polls], listed.done

    assert asyncio.run(play()) == ([1, 1, 2, 3], [0.0])


def test_ended_container_is_lost_for_the_reason_that_its_node_knows():
    async def play():
        state, listed = crowd(1), Listed(Container("worker_0", "worker", "FAILED", "it failed", "node0:1"))
        join_all(state)
        await ContainerMonitor(state, listed, lambda _: None)._check(BEGAN)
        return next(report for report in build_report(state, None, None).tasks), state.timeline.events["worker:0"][-1]

    report, event = asyncio.run(play())
    assert report.state == "lost" and event.cause == "SIGKILL ended its container (exit code 137): it failed"


def test_container_on_an_excluded_node_is_replaced():
    async def play():
        state, _ = excluding("0:1")
        listed = Listed(*state.known.values())
        await ContainerMonitor(state, listed, lambda _: None)._check(BEGAN)
        return listed.replaced, state.to_replace

    assert asyncio.run(play()) == (["worker_0"], [])
