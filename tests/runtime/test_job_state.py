"""The state of a job: from events to effects, in tables without threads, sockets or clusters."""

import math

import pytest

from support.wire import exited, job, join, receive, registration, sample, state_of
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import MAX_STRING, TaskId
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.containers import Container, ContainerEnd, LostContainer
from tf_yarn_ops.runtime.master.job_state import Close, LogTail, Send
from tf_yarn_ops.runtime.master.lifecycle import Prepared, Verdict
from tf_yarn_ops.runtime.master.monitor import ContainerChecks
from tf_yarn_ops.runtime.master.registry import Refused
from tf_yarn_ops.runtime.master.reporting import build_live_status, build_report
from tf_yarn_ops.submit.application import build_runtime_job

ALL = ("ps_0", "worker_0", "worker_1")
PONG, PING = {"type": "pong"}, {"type": "ping"}
CLUSTER = RestartPolicy("cluster", backoff=8)


def kinds(effects):
    """Return who gets which message."""
    return [(effect.connection.removeprefix("connection of "), effect.kind) for effect in effects]


def published(now=100.0, **fields):
    """Return a job whose commands have been started, and its agents."""
    state = state_of(job(**fields))
    return state, dict(zip(ALL, join(state, *ALL, now=now), strict=True))


def fail(state, peer, now, **fields):
    """Let a command fail and every other agent answer; return the effects of both."""
    effects = receive(state, peer, exited(code=1, **{"round": peer.round, "start": peer.start, **fields}), now)
    for other in list(state.registry.peers.values()):
        if other is not peer and other.connection:
            effects += receive(state, other, PONG, now)
    return effects


def renew(state, peers, now):
    """Let all agents register for the next round; return the effects of the last one."""
    effects = []
    for container, peer in peers.items():
        message = registration(container, round=state.lifecycle.round, port=3000)
        effects = receive(state, peer, message, now)
    return effects


def states(state, **options):
    return {report.task: report.state for report in build_report(state, None, None, **options).tasks}


# -- the rendezvous ---------------------------------------------------------------------------


def test_last_registration_publishes_the_cluster_spec():
    state = state_of(job())
    join(state, "ps_0", "worker_0")
    effects = state.on_connect("connection of worker_1", registration("worker_1"), 100.0)
    assert kinds(effects) == [("worker_1", "welcome"), ("ps_0", "start"), ("worker_0", "start"), ("worker_1", "start")]
    start = effects[-1].fields
    assert (start["round"], start["start"], start["delay"]) == (1, 1, 0.0)
    assert start["cluster"] == {"ps": ["h:2000"], "worker": ["h:2000", "h:2000"]}
    assert (state.published_at, [one.cause for one in state.rounds]) == (100.0, ["start"])


def preparing():
    """Return a job whose output is not prepared."""
    state = state_of(job())
    state.lifecycle = state.lifecycle._replace(preparing=True)
    state.known = {container: state.known[container] for container in ALL}
    return state


def test_tasks_wait_for_the_working_folder_of_the_output(caplog):
    """Their agents have contact meanwhile, so that none gives up while the file system is away."""
    state = preparing()
    effects = [state.on_connect(container, registration(container), 100.0) for container in ALL]
    assert [kinds(each) for each in effects] == [[(container, "welcome")] for container in ALL]
    checks = ContainerChecks(state)
    assert checks.check_missing(101.0) is checks.check_missing(2000.0) is None, "all have registered"
    with caplog.at_level("INFO"):
        assert checks.check_deadlines(2000.0) is None
    assert "Waiting for all ports (3/3), missing: the file system of the output" in caplog.text
    report = build_report(state, None, None)
    assert report.message == "Waiting for the file system of the output."
    assert {task.state for task in report.tasks} == {"registered"}
    status = build_live_status(state, report, checks.waiting(2000.0), 2000.0)
    assert status["waiting"]["tasks"] == ["the file system of the output"]
    assert "waits for the file system of the output since" in status["sentence"]
    [alert] = [alert for alert in status["alerts"] if alert["code"] == "waiting"]
    assert alert["text"].startswith("The job waits for ") and alert["tasks"] == []
    effects = state.apply(Prepared(), 2001.0)
    assert sorted(kinds(effects)) == [(container, "start") for container in ALL]


def test_an_output_that_is_prepared_first_waits_for_no_task():
    state = preparing()
    assert state.apply(Prepared(), 1.0) == []
    assert len(join(state, *ALL)) == 3 and state.lifecycle.published


def test_progress_names_the_tasks_whose_agents_take_new_ports():
    state, peers = published(restart=CLUSTER)
    fail(state, peers["worker_0"], 100.0)
    assert build_report(state, None, None).message == "Waiting for ps:0, worker:0, worker:1."


def test_agent_without_a_task_is_refused():
    state, _ = published()
    with pytest.raises(Refused, match="no task is waiting for worker_2"):
        state.on_connect("another", registration("worker_2"), 101.0)
    assert state.apply_deferred(101.0) == [], "no effect is left over"


def test_node_that_can_not_run_the_task_ends_the_job():
    state = state_of(job())
    state.on_connect("c", registration("worker_0", unfit="no such image"), 1.0)
    assert state.lifecycle.verdict.reason is Reason.ENVIRONMENT_INVALID
    assert state.lifecycle.verdict.message == "worker:0 on h: no such image"


def test_cluster_spec_that_no_variable_holds_ends_the_job():
    workers = 20
    spec = JobSpec(command="x", tasks={"worker": TaskSpec(instances=workers)})
    state = state_of(build_runtime_job(spec)._replace(user="u"))
    for number in range(workers):
        message = registration(f"worker_{number}", host="h" * (MAX_STRING // workers))
        state.on_connect(f"c{number}", message, 1.0)
    assert state.lifecycle.verdict.reason is Reason.SPEC_INVALID and state.published_at is None


# -- connections ------------------------------------------------------------------------------


def test_message_over_a_replaced_connection_is_ignored():
    state, peers = published()
    worker, first = peers["worker_0"], peers["worker_0"].connection
    effects = state.on_connect("second", registration("worker_0", start=1), 101.0)
    assert effects[0] == Close(first)
    assert state.on_message(worker, first, exited(code=3), 102.0) == []
    state.on_disconnect(worker, first)
    assert (worker.connection, worker.received_at, worker.running) == ("second", 101.0, True)
    assert kinds(state.on_message(worker, "second", PING, 103.0)) == [("second", "pong")]


def test_message_of_an_agent_whose_task_is_lost_is_ignored():
    state, peers = published()
    worker, connection = peers["worker_0"], peers["worker_0"].connection
    lost = LostContainer("worker_0", Reason.HEARTBEAT_LOST, "silent")
    effects = state.on_lost(lost, 101.0)
    assert kinds(effects)[:3] == [("worker_0", "bye"), ("ps_0", "renew"), ("worker_1", "renew")]
    for message in (exited(code=0), registration("worker_0", round=2), PING):
        assert state.on_message(worker, connection, message, 102.0) == []
    others = {container: peer for container, peer in peers.items() if peer is not worker}
    renew(state, others, 103.0)
    assert not state.lifecycle.published
    effects = state.on_connect("c", registration("worker_2"), 104.0)
    assert state.lifecycle.published and effects[-2].fields["start"] == 1


@pytest.mark.parametrize(
    "message, warns",
    [({"type": "exited", "round": 1}, True), ({"type": "unknown"}, False), ({"type": "pong", "more": 1}, False)],
)
def test_malformed_message_is_ignored_and_shows_that_the_agent_lives(message, warns, caplog):
    state, peers = published()
    assert receive(state, peers["worker_0"], message, 107.0) == []
    assert peers["worker_0"].received_at == 107.0
    assert ("Ignored a message" in caplog.text) == warns


@pytest.mark.parametrize(
    "happens, returns, sends",
    [
        ("its start was lost", {"start": 0}, ["welcome", "start"]),
        ("it has started", {"start": 1}, ["welcome", "start"]),
        ("the cluster restarts", {"start": 1}, ["welcome", "renew"]),
        ("it has renewed its port", {"round": 2, "start": 0, "port": 3001}, ["welcome"]),
        ("the job has failed", {"start": 1}, ["welcome", "stop"]),
        ("the job has succeeded", {"start": 1}, ["welcome", "trained"]),
    ],
)
def test_agent_that_is_back_gets_what_it_has_missed(happens, returns, sends):
    state, peers = published(restart=CLUSTER)
    worker, other = peers["worker_0"], peers["worker_1"]
    state.on_disconnect(worker, worker.connection)
    if "restarts" in happens or "renewed" in happens:
        state.on_lost(LostContainer("worker_1", Reason.CONTAINER_LOST, "gone"), 101.0)
    elif "failed" in happens:
        state.apply(Verdict(Reason.TOTAL_TIMEOUT, "too long"), 101.0)
        state.begin_shutdown()
    elif "succeeded" in happens:
        state.lingering.append(worker)
    effects = state.on_connect("second", registration("worker_0", **returns), 102.0)
    assert [effect.kind for effect in effects if effect.connection == "second"] == sends
    assert state.registry.peers["worker_0"] is worker and other is peers["worker_1"]


def test_lost_message_of_the_start_counts_once_the_agent_is_back():
    state, peers = published()
    worker = peers["worker_0"]
    state.on_disconnect(worker, worker.connection)
    state.on_connect("second", registration("worker_0", start=1), 102.0)
    state.on_message(worker, "second", {"type": "running", "round": 1, "start": 1}, 103.0)
    [starts] = [report.starts for report in build_report(state, None, None).tasks if report.task == "worker:0"]
    assert starts == 1


def test_end_of_a_log_is_an_effect_for_who_has_requested_it():
    state, peers = published()
    effects = receive(state, peers["worker_1"], {"type": "log", "id": 7, "text": "the end"})
    assert effects == [LogTail("worker_1", 7, "the end")]


# -- failures ---------------------------------------------------------------------------------


def test_failure_is_applied_once_all_other_agents_have_answered():
    state, peers = published()
    effects = receive(state, peers["worker_0"], exited(code=1), 110.0)
    assert kinds(effects) == [("worker_0", "ack"), *((container, "ping") for container in ALL)]
    assert state.lifecycle.verdict is None and states(state)["worker:0"] == "failed", "the report knows it already"
    receive(state, peers["ps_0"], PONG, 111.0)
    assert state.lifecycle.verdict is None
    receive(state, peers["worker_1"], PONG, 112.0)
    assert state.lifecycle.verdict.task == TaskId("worker", 0)


@pytest.mark.parametrize("late", [(0.0, 5.0), (5.0, 0.0)], ids=["the second", "the first"])
def test_failure_that_happened_first_is_named(late):
    state, peers = published()
    for peer, seconds in zip((peers["worker_0"], peers["worker_1"]), late, strict=True):
        receive(state, peer, exited(code=1, late=seconds), 110.0)
    receive(state, peers["ps_0"], PONG, 111.0)
    assert state.lifecycle.verdict.task == TaskId("worker", int(late[1] > late[0]))
    assert states(state)["worker:0"] == states(state)["worker:1"] == "failed"


def test_loss_that_caused_a_failure_replaces_it():
    state, peers = published(restart=CLUSTER)
    receive(state, peers["worker_1"], exited(code=1), 110.0)
    state.on_lost(LostContainer("worker_0", Reason.CONTAINER_LOST, "its node is gone"), 111.0)
    assert state.deferred.waiting == [], "the next failure asks for a ping of its own"
    receive(state, peers["ps_0"], PONG, 112.0)
    assert state.lifecycle.round == 2 and state.lifecycle.restarts == 0, "no failure of the program counts"


def test_message_about_an_earlier_start_changes_nothing():
    state, peers = published(restart=RestartPolicy("task", backoff=0))
    worker = peers["worker_0"]
    fail(state, worker, 110.0)
    assert (worker.round, worker.start) == (1, 2)
    assert kinds(receive(state, worker, exited(code=1, start=1), 111.0)) == [("worker_0", "ack")]
    assert worker.running and state.lifecycle.verdict is None


def test_exit_behind_the_verdict_keeps_its_own_state():
    state, peers = published()
    fail(state, peers["worker_0"], 110.0)
    receive(state, peers["worker_1"], exited(code=None, signal=15, stopped=True), 111.0)
    receive(state, peers["ps_0"], exited(code=0), 111.0)
    assert states(state) == {"ps:0": "succeeded", "worker:0": "failed", "worker:1": "stopped"}


# -- restarts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("contact", ["stays", "is lost"])
def test_worker_that_rejoins_takes_another_port_when_its_own_was_taken(contact):
    """Its container and its agent are as they were; the others go on."""
    tasks = {"chief": TaskSpec(), "worker": TaskSpec(), "ps": TaskSpec()}
    spec = JobSpec(command="x", tasks=tasks, restart=RestartPolicy("task", max_container_losses=1))
    state = state_of(build_runtime_job(spec)._replace(user="u"))
    state.known["chief_0"] = Container("chief_0", "chief", "RUNNING", "")
    worker, _, _ = join(state, "worker_0", "chief_0", "ps_0")
    if contact == "is lost":
        state.on_disconnect(worker, worker.connection)
        state.on_connect("second", registration("worker_0", start=1), 101.0)
    effects = receive(state, worker, exited(code=1, port_taken=True), 102.0)
    if contact == "is lost":
        state.on_disconnect(worker, worker.connection)
        effects = state.on_connect("third", registration("worker_0", start=1), 103.0)
    assert [effect.kind for effect in effects][-1] == "renew" and effects[-1].connection == worker.connection
    effects = receive(state, worker, registration("worker_0", port=3000), 104.0)
    starts = [(effect.fields["task"], effect.fields["start"]) for effect in effects if effect.kind == "start"]
    assert starts == [("chief:0", 1), ("ps:0", 1), ("worker:0", 2)]
    assert {effect.fields["cluster"]["worker"][0] for effect in effects} == {"h:3000"}
    assert state.lifecycle.round == 1 and state.lifecycle.verdict is None


def test_replaced_worker_that_waited_starts_with_its_new_address():
    """It is released by the success of others, who learn of its address before it starts."""
    tasks = {"chief": TaskSpec(), "early": TaskSpec(), "worker": TaskSpec(after=("early",)), "ps": TaskSpec()}
    spec = JobSpec(command="x", tasks=tasks, restart=RestartPolicy("task", max_container_losses=1))
    state = state_of(build_runtime_job(spec)._replace(user="u"))
    state.known.update({name: Container(name, name[:-2], "RUNNING", "") for name in ("chief_0", "early_0", "worker_1")})
    _, early, _, _ = join(state, "chief_0", "early_0", "ps_0", "worker_0")
    state.on_lost(LostContainer("worker_0", Reason.CONTAINER_LOST, "gone"), 101.0)
    state.on_connect("connection of worker_1", registration("worker_1", port=3000), 102.0)
    effects = receive(state, early, exited(code=0), 103.0)
    starts = {effect.connection: effect.fields["cluster"]["worker"] for effect in effects if effect.kind == "start"}
    assert starts == {f"connection of {name}": ["h:3000"] for name in ("chief_0", "ps_0", "worker_1")}


def test_two_ports_that_are_taken_at_once_cost_one_loss():
    """The second news comes when a new round, with new ports, has begun already."""
    state, peers = published(restart=RestartPolicy("never", max_container_losses=1))
    for name, now in (("worker_0", 110.0), ("worker_1", 110.1)):
        receive(state, peers[name], exited(code=1, port_taken=True), now)
    assert state.lifecycle.verdict is None and state.lifecycle.losses_left == {"": 0}
    effects = renew(state, peers, 111.0)
    assert [effect.kind for effect in effects] == ["start"] * 3 and state.lifecycle.round == 2


@pytest.mark.parametrize("renewed, delay", [(103.0, 5.0), (110.0, 0.0)])
def test_new_round_waits_for_the_rest_of_the_back_off(renewed, delay):
    state, peers = published(restart=CLUSTER)
    effects = fail(state, peers["worker_0"], 100.0)
    assert kinds(effects)[-3:] == [(container, "renew") for container in ALL]
    effects = renew(state, peers, renewed)
    assert [effect.kind for effect in effects] == ["start"] * 3
    assert {effect.fields["delay"] for effect in effects} == {delay}
    assert {effect.fields["round"] for effect in effects} == {2}
    assert state.rounds[1].cause.startswith("worker:0 failed with exit code 1")


def test_agent_that_is_back_waits_for_the_rest_of_the_back_off():
    state, peers = published(restart=CLUSTER)
    fail(state, peers["worker_0"], 100.0)
    renew(state, peers, 101.0)
    state.on_disconnect(peers["worker_1"], peers["worker_1"].connection)
    effects = state.on_connect("second", registration("worker_1", round=2, start=0, port=3000), 102.0)
    assert (effects[-1].kind, effects[-1].fields["delay"]) == ("start", 6.0)


def test_back_off_doubles_with_each_round():
    state, peers = published(restart=RestartPolicy("cluster", backoff=8, max_restarts=3))
    delays = []
    for now in (1000.0, 2000.0, 3000.0):
        fail(state, peers["worker_0"], now)
        delays.append(renew(state, peers, now)[0].fields["delay"])
    assert delays == [8.0, 16.0, 32.0]


def test_starts_are_numbered_from_1_in_each_round():
    state, peers = published(restart=RestartPolicy("task", backoff=0, max_restarts=5))
    worker = peers["worker_0"]
    fail(state, worker, 110.0)
    assert (worker.round, worker.start, peers["worker_1"].start) == (1, 2, 1)
    state.on_lost(LostContainer("ps_0", Reason.CONTAINER_LOST, "gone"), 111.0)
    renew(state, {container: peers[container] for container in ("worker_0", "worker_1")}, 112.0)
    effects = state.on_connect("c", registration("ps_1"), 113.0)
    numbers = {(effect.fields["round"], effect.fields["start"]) for effect in effects if effect.kind == "start"}
    assert numbers == {(2, 1)}


def test_task_that_starts_again_leaves_the_others_alone():
    state, peers = published(restart=RestartPolicy("task", backoff=2))
    effects = [effect for effect in fail(state, peers["worker_1"], 110.0) if effect.kind == "start"]
    assert [(effect.connection, effect.fields["delay"]) for effect in effects] == [("connection of worker_1", 2.0)]


def test_worker_that_is_replaced_alone_moves_in_the_cluster_spec():
    tasks = {"chief": TaskSpec(), "ps": TaskSpec(), "worker": TaskSpec(instances=2)}
    spec = JobSpec(command="x", tasks=tasks, success="chief", restart=RestartPolicy("task"))
    state = state_of(build_runtime_job(spec)._replace(user="u"))
    state.known["chief_0"] = Container("chief_0", "chief", "RUNNING", "")
    join(state, "chief_0", *ALL, now=100.0)
    before = state.cluster
    state.on_lost(LostContainer("worker_0", Reason.CONTAINER_LOST, "gone"), 101.0)
    effects = state.on_connect("c", registration("worker_2", host="other"), 102.0)
    assert {effect.connection for effect in effects if effect.kind == "start"} == {
        "connection of chief_0",
        "connection of ps_0",
        "connection of worker_1",
        "c",
    }
    assert state.cluster["worker"] == ["other:2000", "h:2000"] != before["worker"], "the spec that was sent stays"


def test_task_on_an_excluded_node_leaves_it():
    state, peers = published(restart=RestartPolicy("cluster", backoff=0, exclude_node_after=1))
    state.known["worker_0"] = state.known["worker_0"]._replace(node="n:1")
    fail(state, peers["worker_0"], 110.0)
    assert state.excluded["n:1"].number == 1 and state.is_unwanted("worker_0")
    assert "worker_0" not in state.registry.peers and state.registry.expects("worker_2")
    state.known["worker_2"] = state.known["worker_2"]._replace(node="n2:1", yarn_id="container_2")
    assert state.expect_agents() == {TaskId("worker", 0): "http://n2:1/node/containerlogs/container_2/u/worker.log"}, (
        "of another node"
    )
    assert build_report(state, None, None).excluded_nodes["n:1"].startswith("1 failure, the last: worker:0 failed")


# -- lost containers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "image, end, reason, words",
    [
        (None, ContainerEnd(), Reason.CONTAINER_LOST, "before its agent called: it failed"),
        (None, ContainerEnd(last_line="no python3"), Reason.CONTAINER_LOST, "it failed no python3"),
        (None, ContainerEnd(node="LOST"), Reason.CONTAINER_LOST, "it failed. YARN has the node as LOST"),
        ("i", ContainerEnd("Unable to find image"), Reason.ENVIRONMENT_INVALID, "the image i: no node has it"),
        (
            None,
            ContainerEnd("File does not exist: hdfs://nn/d.zip"),
            Reason.SUBMISSION_REJECTED,
            "a file of the job is",
        ),
        (None, ContainerEnd("[28 Nov]No space left on device"), Reason.CONTAINER_LOST, "a disk of the node is full"),
        (None, ContainerEnd("Killed", exit_code=137), Reason.CONTAINER_LOST, "SIGKILL has ended it: raise its memory"),
    ],
)
def test_container_that_ends_before_its_agent_calls_names_the_cause(image, end, reason, words):
    spec = job(restart=RestartPolicy(max_container_losses=0))._replace(docker_image=image)
    state = state_of(spec)
    state.known["worker_0"] = state.known["worker_0"]._replace(state="FAILED")
    state.on_lost(LostContainer("worker_0", Reason.CONTAINER_LOST, "it failed", end=end), 1.0)
    assert state.lifecycle.verdict.reason is reason
    assert words in state.lifecycle.verdict.message


@pytest.mark.parametrize("confirmed, reason", [(True, Reason.OUT_OF_MEMORY), (False, Reason.CONTAINER_LOST)])
def test_sigkill_counts_the_memory_of_the_present_start_only(confirmed, reason):
    spec = job(restart=RestartPolicy("task", max_container_losses=0, backoff=0))
    state = state_of(spec)
    peer = join(state, *ALL)[1]
    full = sample(peak_memory_mib=float(spec.services["worker"].memory))
    receive(state, peer, {"type": "running", "round": 1, "start": 1}, 100.0)
    receive(state, peer, full, 101.0)
    if not confirmed:
        peer.begin(1, 0.0, None)  # another start is sent, whose command has not begun
    state.on_lost(LostContainer("worker_0", Reason.CONTAINER_LOST, "it failed", end=ContainerEnd(exit_code=137)), 102.0)
    assert state.lifecycle.verdict.reason is reason


@pytest.mark.parametrize("replace", [True, False])
def test_container_is_replaced_if_skein_does_not_do_it(replace):
    state, _ = published()
    state.on_lost(LostContainer("worker_0", Reason.HEARTBEAT_LOST, "silent", replace), 101.0)
    assert [container.id for container in state.to_replace] == ["worker_0"] * replace


def test_tensorboard_that_yarn_ends_for_memory_fails_and_the_job_goes_on():
    spec = job(output="/out", tensorboard=TensorBoard())
    state = state_of(spec)
    state.known["tensorboard_0"] = Container("tensorboard_0", "tensorboard", "RUNNING", "")
    join(state, *ALL, "tensorboard_0")
    state.on_lost(LostContainer("tensorboard_0", Reason.OUT_OF_MEMORY, "too much memory"), 101.0)
    [board] = [report for report in build_report(state, None, None).tasks if report.task == "tensorboard:0"]
    assert board.state == "failed" and "raise --tensorboard_memory: too much memory" in board.log_tail
    assert state.lifecycle.verdict is None


def test_tensorboard_that_has_failed_keeps_its_log_when_its_node_is_lost():
    spec = job(output="/out", tensorboard=TensorBoard())
    state = state_of(spec)
    state.known["tensorboard_0"] = Container("tensorboard_0", "tensorboard", "RUNNING", "")
    *_, board = join(state, *ALL, "tensorboard_0")
    receive(state, board, exited(code=3, log_tail="no such flag"), 100.0)
    state.on_lost(LostContainer("tensorboard_0", Reason.NODE_LOST, "its node is gone"), 101.0)
    [report] = [report for report in build_report(state, None, None).tasks if report.task == "tensorboard:0"]
    assert (report.state, report.exit_code, report.log_tail) == ("failed", 3, "no such flag")


# -- the end ----------------------------------------------------------------------------------


def test_task_that_is_stopped_for_a_round_and_then_lost_is_lost():
    state, peers = published(restart=CLUSTER)
    fail(state, peers["worker_0"], 110.0)
    receive(state, peers["worker_1"], exited(code=143, stopped=True), 111.0)
    state.on_lost(LostContainer("worker_1", Reason.NODE_LOST, "its node is gone"), 112.0)
    assert states(state)["worker:1"] == "lost"


def lingering(evaluator_grace=600, code=0):
    """Return a job whose worker has ended with this code, and its evaluator, which runs."""
    tasks = {"worker": TaskSpec(), "evaluator": TaskSpec(), "ps": TaskSpec()}
    spec = JobSpec(command="x", tasks=tasks, deadlines=Deadlines(evaluator_grace=evaluator_grace, stop_grace=7))
    state = state_of(build_runtime_job(spec)._replace(user="u"))
    state.known["evaluator_0"] = Container("evaluator_0", "evaluator", "RUNNING", "")
    worker, evaluator, _ = join(state, "worker_0", "evaluator_0", "ps_0")
    fail(state, worker, 110.0) if code else receive(state, worker, exited(code=0), 110.0)
    return state, evaluator


def test_after_a_success_the_evaluator_lingers_and_the_rest_is_stopped():
    state, evaluator = lingering()
    assert state.has_succeeded and state.progress == 1.0
    effects = state.begin_shutdown()
    assert sorted(kinds(effects)) == [("evaluator_0", "trained"), ("ps_0", "stop")]
    assert [effect.fields for effect in effects if effect.kind == "stop"] == [{"grace": 7}]
    assert state.lingering == [evaluator] and states(state)["evaluator:0"] == "running"
    assert kinds(state.end_linger("evaluator")) == [("evaluator_0", "stop")]
    assert state.lingering == [] and state.end_linger("evaluator") == []
    assert sorted(kinds(state.dismiss())) == [(name, "bye") for name in ("evaluator_0", "ps_0", "worker_0")]


def test_nothing_lingers_without_time_for_it():
    state, _ = lingering(evaluator_grace=0)
    assert sorted(kinds(state.begin_shutdown())) == [("evaluator_0", "stop"), ("ps_0", "stop")]


def test_nothing_lingers_after_a_failure():
    state, _ = lingering(code=1)
    assert state.lifecycle.verdict.reason is Reason.TASK_FAILED
    assert sorted(kinds(state.begin_shutdown())) == [("evaluator_0", "stop"), ("ps_0", "stop")]


def test_kill_by_a_client_ends_also_what_lingers():
    state, _ = lingering()
    state.begin_shutdown()
    state.abort(Verdict(Reason.KILLED, "Ended by SIGTERM"), 120.0)
    assert state.lifecycle.verdict.reason is Reason.KILLED and not state.has_succeeded


def test_second_kill_by_a_client_changes_nothing():
    state, _ = lingering()
    state.begin_shutdown()
    for reason in (Reason.KILLED, Reason.LEASE_EXPIRED):
        state.abort(Verdict(reason, "Ended"), 120.0)
    assert state.lifecycle.verdict.reason is Reason.KILLED


def test_kill_by_a_client_changes_no_verdict_of_a_job_that_has_ended():
    state, peers = published()
    fail(state, peers["worker_0"], 110.0)
    state.abort(Verdict(Reason.KILLED, "Ended by SIGTERM"), 120.0)
    assert state.lifecycle.verdict.reason is Reason.TASK_FAILED


@pytest.mark.parametrize(
    "connected, terminated, heartbeat, silent, left",
    [
        (True, True, 60, 61.0, False),
        (False, False, 60, 60.0, False),
        (False, False, 60, 61.0, True),
        (False, False, 0, math.inf, False),
        (False, True, 60, 0.0, True),
    ],
)
def test_disconnected_agent_has_left_when_it_will_not_come_back(connected, terminated, heartbeat, silent, left):
    state = state_of(job(deadlines=Deadlines(heartbeat=heartbeat)))
    [peer] = join(state, "worker_0", now=100.0)
    peer.connection, peer.terminated = "c" if connected else None, terminated
    assert state.has_left(peer, 100.0 + silent) == left


def test_message_to_an_agent_without_a_connection_is_skipped():
    state, peers = published()
    for peer in peers.values():
        state.on_disconnect(peer, peer.connection)
    assert state.dismiss() == [] and not any(isinstance(effect, Send) for effect in state.begin_shutdown())
