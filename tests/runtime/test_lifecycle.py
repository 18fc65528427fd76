"""`decide` is pure: tables of what it says, and laws over random histories of events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import wire
from tf_yarn_ops.runtime.common.contract import TaskId, TypePlan
from tf_yarn_ops.runtime.common.frameworks import FRAMEWORKS, TENSORFLOW
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.lifecycle import (
    EARLY_FAILURES,
    EARLY_SECONDS,
    FAILED,
    LOST,
    PENDING,
    REGISTERED,
    RUNNING,
    SUCCEEDED,
    Decision,
    Exited,
    Lost,
    Registered,
    State,
    Verdict,
    decide,
    excluded_nodes,
    may_be_a_consequence,
    needed,
)

JOB, role_of = wire.job(), FRAMEWORKS[TENSORFLOW].role_of
LOSSES = (Reason.CONTAINER_LOST, Reason.PREEMPTED, Reason.NODE_LOST, Reason.HEARTBEAT_LOST, Reason.OUT_OF_MEMORY)


def tasks(*names):
    return [TaskId.parse(name) for name in names]


def budget(given):
    return given if isinstance(given, dict) else {"": given}


def start(*names, success="all_workers", restarts=0, losses=0, harmless=(), after=(), **restart):
    """Return a job with these tasks, which restarts nothing unless `restart` says so, and its first state."""
    ids, types = tasks(*names), {}
    for task in ids:
        in_cluster, awaited, fatal = role_of(task.type)
        fatal = fatal and task.type not in harmless
        types[task.type] = TypePlan(1, "x", {}, in_cluster, awaited, fatal, True, after=dict(after).get(task.type, ()))
    return (
        JOB._replace(types=types, success=success, restart={**JOB.restart, "backoff": 1.0, "mode": "never", **restart}),
        State(dict.fromkeys(ids, PENDING), restarts_left=budget(restarts), losses_left=budget(losses)),
    )


def play(job, state, *events):
    """Return the last state and all actions that were more than nothing."""
    actions = []
    for event in events:
        state, decision = decide(job, state, event)
        if decision.action != "none":
            actions.append(decision.action)
    return state, actions


def registered(*names):
    return [Registered(task) for task in tasks(*names)]


W0, W1, PS, CHIEF, EVALUATOR, BOARD = tasks("worker:0", "worker:1", "ps:0", "chief:0", "evaluator:0", "tensorboard:0")
P0, P1 = tasks("prepare:0", "prepare:1")


def test_the_spec_is_published_when_the_last_needed_task_has_registered():
    job, state = start("ps:0", "worker:0", "tensorboard:0")
    state, actions = play(job, state, *registered("worker:0"))
    assert (actions, state.phases[W0]) == ([], REGISTERED)
    state, actions = play(job, state, *registered("ps:0"))
    assert (actions, state.phases[W0], state.phases[BOARD]) == (["publish"], RUNNING, PENDING)
    _, actions = play(job, state, *registered("tensorboard:0"))
    assert actions == ["start"]


@pytest.mark.parametrize(
    "task, code, expected",
    [
        (W0, 1, True),
        (PS, 134, True),
        pytest.param(W0, 0, False, id="a success"),
        pytest.param(W0, 9, False, id="the program calls it fatal"),
        pytest.param(BOARD, 1, False, id="it fails no job"),
        pytest.param(W1, 1, False, id="it has failed before"),
    ],
)
def test_exits_that_may_follow_from_the_end_of_another_task(task, code, expected):
    job, state = start("worker:0", "worker:1", "ps:0", "tensorboard:0", fatal_exit_codes=(9,))
    state = state._replace(phases={**dict.fromkeys(state.phases, RUNNING), W1: FAILED})
    assert may_be_a_consequence(job, state, Exited(task, code, 1.0)) is expected


@pytest.mark.parametrize(
    "names, success, exits, reason",
    [
        (("worker:0", "worker:1"), "all_workers", [(W0, 0)], None),
        (("worker:0", "worker:1"), "all_workers", [(W0, 0), (W1, 0)], Reason.SUCCEEDED),
        (("worker:0", "worker:1"), "all_workers", [(W0, 0), (W1, 1)], Reason.TASK_FAILED),
        (("ps:0", "worker:0"), "all_workers", [(W0, 0)], Reason.SUCCEEDED),
        (("ps:0", "worker:0"), "all_workers", [(PS, 0)], None),
        (("ps:0", "worker:0"), "all_workers", [(PS, 137)], Reason.TASK_FAILED),
        (("worker:0", "evaluator:0"), "all_workers", [(W0, 0)], None),
        (("worker:0", "evaluator:0"), "all_workers", [(EVALUATOR, 2)], Reason.TASK_FAILED),
        (("worker:0", "tensorboard:0"), "all_workers", [(BOARD, 1)], None),
        (("chief:0", "worker:0"), "chief", [(CHIEF, 0)], Reason.SUCCEEDED),
        (("chief:0", "worker:0"), "chief", [(W0, 0)], None),
        (("chief:0", "worker:0"), "chief", [(W0, 1)], Reason.TASK_FAILED),
    ],
)
def test_the_table_decides(names, success, exits, reason):
    job, state = start(*names, success=success)
    state, _ = play(job, state, *registered(*names), *(Exited(task, code, 60.0) for task, code in exits))
    assert (state.verdict.reason if state.verdict else None) is reason


def test_the_first_failure_is_the_verdict_and_later_ones_are_not():
    job, state = start("worker:0", "worker:1")
    state, actions = play(job, state, *registered("worker:0", "worker:1"), Exited(W1, 3, 9.0), Exited(W0, 4, 9.0))
    assert state.verdict.task == W1
    assert actions == ["publish", "finish"]


@pytest.mark.parametrize(
    "mode, code, codes, action",
    [
        ("task", 1, {}, "start"),
        ("cluster", 1, {}, "restart"),
        ("never", 1, {}, "finish"),
        ("task", 1, {"retry_exit_codes": (2,)}, "finish"),
        ("task", 2, {"retry_exit_codes": (2,)}, "start"),
        ("cluster", 2, {"fatal_exit_codes": (2,)}, "finish"),
    ],
)
def test_a_failure_is_forgiven_as_mode_and_codes_say(mode, code, codes, action):
    job, state = start("worker:0", "worker:1", mode=mode, restarts=1, **codes)
    _, actions = play(job, state, *registered("worker:0", "worker:1"), Exited(W0, code, 60.0))
    assert actions[-1] == action


@pytest.mark.parametrize("mode", ["task", "cluster"])
def test_task_leaves_the_node_on_which_tasks_failed_too_often(mode):
    job, state = start("worker:0", "worker:1", mode=mode, restarts=9, exclude_node_after=2)
    state, _ = play(job, state, *registered("worker:0", "worker:1"))
    state, decision = decide(job, state, Exited(W0, 1, 1.0, node="a:8042"))
    assert (decision.replaced_task, excluded_nodes(job, state)) == (None, {})
    state, _ = play(job, state, *registered("worker:0", "worker:1"))
    state, decision = decide(job, state, Exited(W1, 1, 1.0, node="a:8042"))
    assert (decision.action, decision.replaced_task, state.phases[W1]) == ("restart", W1, LOST)
    assert {node: str(why) for node, why in excluded_nodes(job, state).items()} == {
        "a:8042": "2 failures, the last: worker:1 failed with exit code 1"
    }
    assert state.quick_failures[W1 if mode == "task" else None] == 0, "a failure at once is no sign for the next node"


@pytest.mark.parametrize(
    "lost, actions", [("worker:0", ["publish", "start"]), ("ps:0", ["publish", "restart", "publish"])]
)
def test_lost_worker_that_rejoins_is_replaced_alone(lost, actions):
    names = ("chief:0", "ps:0", "worker:0")
    job, state = start(*names, mode="task", losses=1)
    loss = Lost(TaskId.parse(lost), Reason.CONTAINER_LOST, "gone")
    assert play(job, state, *registered(*names), loss, *registered(*names))[1] == actions


def test_evaluator_leaves_an_excluded_node_alone():
    job, state = start("worker:0", "evaluator:0", mode="task", restarts=9, exclude_node_after=1)
    state, actions = play(job, state, *registered("worker:0", "evaluator:0"), Exited(EVALUATOR, 1, 60.0, node="a:1"))
    assert (actions, state.phases[EVALUATOR]) == (["publish"], LOST)
    assert play(job, state, *registered("evaluator:0"))[1] == ["start"]


@pytest.mark.parametrize(
    "reason, counted",
    [
        (Reason.CONTAINER_LOST, True),
        (Reason.HEARTBEAT_LOST, True),
        (Reason.PREEMPTED, False),
        (Reason.NODE_LOST, False),
    ],
)
def test_losses_count_for_a_node_unless_yarn_took_the_container(reason, counted):
    job, state = start("worker:0", losses=9, exclude_node_after=1)
    state, _ = play(job, state, *registered("worker:0"), Lost(W0, reason, "gone", "a:1"))
    assert ("a:1" in excluded_nodes(job, state)) is counted


@pytest.mark.parametrize("reason", [Reason.TASK_FAILED, Reason.OUT_OF_MEMORY])
def test_excluded_node_keeps_the_reason_of_its_failure(reason):
    """It ends the job if no other node is left, and ``memory_growth`` needs to know it."""
    job, state = start("worker:0", mode="cluster", restarts=9, exclude_node_after=1)
    state, _ = play(job, state, *registered("worker:0"), Exited(W0, 137, 60.0, "killed", "a:1", reason))
    assert excluded_nodes(job, state)["a:1"].reason is reason


def test_node_of_the_latest_failure_is_the_last_excluded_one():
    job, state = start("worker:0", losses=9, exclude_node_after=1)
    state, _ = play(job, state, *(Lost(W0, Reason.CONTAINER_LOST, "gone", node) for node in ("a:1", "b:1", "a:1")))
    assert [*excluded_nodes(job, state)] == ["b:1", "a:1"]


def test_back_off_doubles_and_has_a_limit():
    job, state = start("worker:0", mode="task", restarts=20, backoff=2.0)
    state, _ = play(job, state, *registered("worker:0"))
    delays = []
    for _ in range(10):
        state, decision = decide(job, state, Exited(W0, 1, 60.0))
        delays.append(decision.delay)
    assert delays == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0]


def test_a_job_fails_when_its_restarts_are_used_up():
    job, state = start("worker:0", mode="task", restarts=2)
    state, _ = play(job, state, *registered("worker:0"), Exited(W0, 1, 60.0), Exited(W0, 1, 60.0))
    assert state.verdict is None
    state, _ = play(job, state, Exited(W0, 1, 60.0))
    assert state.verdict.message == "worker:0 failed with exit code 1; no restarts are left"


def test_quick_failures_of_several_tasks_count_separately():
    names = [f"worker:{n}" for n in range(4)]
    job, state = start(*names, mode="task", restarts=50)
    state, _ = play(job, state, *registered(*names), *(Exited(task, 1, 1.0) for task in tasks(*names)))
    assert state.verdict is None
    state, _ = play(job, state, Exited(W0, 1, 1.0), Exited(W0, 1, 1.0))
    assert "3 times in a row" in state.verdict.message


def test_a_cluster_restart_waits_for_every_task_again():
    job, state = start("worker:0", "worker:1", mode="cluster", restarts=1)
    state, actions = play(
        job,
        state,
        *registered("worker:0", "worker:1"),
        Exited(W0, 0, 60.0),
        Exited(W1, 1, 60.0),
        *registered("worker:1"),
    )
    assert (actions, state.round) == (["publish", "restart"], 2)
    state, actions = play(job, state, *registered("worker:0"))
    assert actions == ["publish"]


@pytest.mark.parametrize("reason", LOSSES[:4])
def test_a_lost_container_restarts_the_cluster_until_the_budget_is_spent(reason):
    job, state = start("worker:0", "worker:1", losses=1)
    state, actions = play(job, state, *registered("worker:0", "worker:1"), Lost(W0, reason, "gone"))
    assert (actions, state.phases[W0], state.phases[W1]) == (["publish", "restart"], LOST, PENDING)
    state, actions = play(job, state, *registered("worker:0", "worker:1"), Lost(W1, reason, "gone again"))
    assert actions == ["publish", "finish"]
    assert (state.verdict.reason, state.verdict.task) == (reason, W1)


def test_a_lost_evaluator_is_started_alone():
    job, state = start("worker:0", "evaluator:0", losses=1)
    state, actions = play(
        job,
        state,
        *registered("worker:0", "evaluator:0"),
        Lost(EVALUATOR, Reason.NODE_LOST, "gone"),
        *registered("evaluator:0"),
    )
    assert (actions, state.round) == (["publish", "start"], 1)


def test_containers_lost_before_they_call_use_up_the_budget_too():
    job, state = start("worker:0", losses=2)
    gone = Lost(W0, Reason.CONTAINER_LOST, "no python")
    state, actions = play(job, state, gone, gone)
    assert (actions, state.losses_left) == ([], {"": 0})
    state, actions = play(job, state, gone)
    assert actions == ["finish"]


def test_a_lost_ps_may_end_a_job_that_loses_workers():
    job, state = start("worker:0", "ps:0", losses={"": 2, "ps": 0})
    both = registered("worker:0", "ps:0")
    state, actions = play(job, state, *both, Lost(W0, Reason.NODE_LOST, "gone"), *both)
    assert (actions, state.losses_left) == (["publish", "restart", "publish"], {"": 1, "ps": 0})
    state, _ = play(job, state, Lost(PS, Reason.NODE_LOST, "gone"))
    assert state.verdict == (Reason.NODE_LOST, "ps:0 was lost: gone; ps may lose no more containers", PS)


def test_a_type_with_a_budget_spends_only_its_own():
    job, state = start("worker:0", "ps:0", mode="task", restarts={"": 0, "worker": 1})
    state, actions = play(job, state, *registered("worker:0", "ps:0"), Exited(W0, 1, 60))
    assert (actions, state.restarts_left) == (["publish", "start"], {"": 0, "worker": 0})
    over, _ = play(job, state, Exited(W0, 1, 60))
    assert over.verdict.message == "worker:0 failed with exit code 1; worker has no restarts left"
    over, _ = play(job, state, Exited(PS, 1, 60))
    assert over.verdict.task == PS


def test_a_type_starts_when_the_types_before_it_have_succeeded():
    names = ("prepare:0", "prepare:1", "worker:0")
    job, state = start(*names, after={"worker": ("prepare",)})
    state, actions = play(job, state, *registered(*names))
    assert (actions, state.phases[W0]) == (["publish"], REGISTERED)
    state, actions = play(job, state, Exited(P0, 0, 60))
    assert (actions, state.phases[W0]) == ([], REGISTERED)
    state, decision = decide(job, state, Exited(P1, 0, 60))
    assert (decision, state.phases[W0]) == (Decision("start", (W0,)), RUNNING)
    state, actions = play(job, state, Exited(W0, 0, 60))
    assert (actions, state.verdict.reason) == (["finish"], Reason.SUCCEEDED)


def test_what_comes_first_fails_the_job_and_runs_once():
    names = ("prepare:0", "worker:0")
    job, state = start(*names, mode="cluster", restarts=2, losses=1, after={"worker": ("prepare",)})
    prepared, _ = play(job, state, *registered(*names), Exited(P0, 0, 60))
    again, actions = play(job, prepared, Exited(W0, 1, 60), *registered(*names))
    assert (actions, again.phases) == (["restart", "publish"], {P0: SUCCEEDED, W0: RUNNING})
    failed, actions = play(job, state, *registered(*names), Exited(P0, 1, 60), *registered(*names))
    assert (actions, failed.phases) == (["publish", "restart", "publish"], {P0: RUNNING, W0: REGISTERED})
    lost, actions = play(job, state, *registered(*names), Lost(W0, Reason.NODE_LOST, "gone"), *registered(*names))
    assert (actions, lost.phases) == (["publish", "restart", "publish"], {P0: RUNNING, W0: REGISTERED})
    job = job._replace(restart={**job.restart, "mode": "never"})
    ended, _ = play(job, state, *registered(*names), Exited(P0, 1, 60))
    assert (ended.verdict.reason, ended.verdict.task) == (Reason.TASK_FAILED, P0)


def test_memory_kills_are_not_retried():
    job, state = start("worker:0", mode="cluster", restarts=3, losses=3)
    state, _ = play(job, state, *registered("worker:0"), Lost(W0, Reason.OUT_OF_MEMORY, "2 GB of 1 GB"))
    assert state.verdict.reason is Reason.OUT_OF_MEMORY


def test_tensorboard_without_memory_fails_and_a_lost_one_is_replaced():
    job, state = start("worker:0", "tensorboard:0")
    state, _ = play(job, state, *registered("worker:0", "tensorboard:0"), Lost(BOARD, Reason.NODE_LOST, "gone"))
    state, actions = play(
        job,
        state,
        *registered("tensorboard:0"),
        Lost(BOARD, Reason.OUT_OF_MEMORY, "2 GB of 1 GB"),
        *registered("tensorboard:0"),
    )
    assert (actions, state.phases[BOARD], state.verdict) == (["start"], FAILED, None)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize(
    "names, success, ends, message",
    [
        (("worker:0", "evaluator:0"), "all_workers", [(EVALUATOR, 1), (W0, 0)], "All awaited tasks have ended; 1 of them failed"),
        (("worker:0", "evaluator:0"), "all_workers", [(W0, 0), (EVALUATOR, 1)], "All awaited tasks have ended; 1 of them failed"),
        (("worker:0", "worker:1"), "all_workers", [(W1, 1), (W0, 0)], "All awaited tasks have ended; 1 of them failed"),
        (("worker:0", "worker:1"), "all_workers", [(W1, 1), (W0, 2)], None),
        (("chief:0", "worker:0"), "chief", [(W0, 1), (CHIEF, 0)], "The chief ended with exit code 0."),
        (("chief:0", "worker:0"), "chief", [(CHIEF, 1)], None),
    ],
)  # fmt: skip
def test_failures_that_are_not_fatal_end_no_job_and_hold_up_none(names, success, ends, message, memory):
    """Whether a program fails or YARN ends it for its memory; without any success the job fails."""
    job, state = start(*names, success=success, harmless=("worker", "evaluator", "chief"))
    events = [
        Lost(task, Reason.OUT_OF_MEMORY, "2 GB of 1 GB") if code and memory else Exited(task, code, 60.0)
        for task, code in ends
    ]
    state, _ = play(job, state, *registered(*names), *events[:-1])
    assert state.verdict is None
    state, actions = play(job, state, events[-1])
    assert actions == ["finish"]
    if message:
        assert (state.verdict.reason, message in state.verdict.message) == (Reason.SUCCEEDED, True), state.verdict
    else:
        assert state.verdict.reason is (Reason.OUT_OF_MEMORY if memory else Reason.TASK_FAILED)
        assert "no awaited task has succeeded" in state.verdict.message


# -- laws ---------------------------------------------------------------------------------------

NAMES = ("chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0", "tensorboard:0", "custom:0")
jobs = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).filter(
    lambda names: any(FRAMEWORKS[TENSORFLOW].role_of(name.partition(":")[0]).awaited for name in names)
)
modes = st.sampled_from(["never", "task", "cluster"])
codes = st.sampled_from([0, 0, 0, 1, 2, 137])
failures = st.sampled_from([Reason.TASK_FAILED, Reason.TASK_FAILED, Reason.OUT_OF_MEMORY])


budgets = st.fixed_dictionaries({"": st.integers(0, 3)}, optional={"worker": st.integers(0, 3)})


@st.composite
def histories(draw):
    names = draw(jobs)
    mode = draw(modes)
    job, state = start(
        *names,
        mode=mode,
        restarts=draw(budgets) if mode != "never" else 0,
        losses=draw(budgets),
        success=draw(st.sampled_from(["all_workers", "chief"])) if "chief:0" in names else "all_workers",
        retry_exit_codes=draw(st.sampled_from([(), (1,)])),
        fatal_exit_codes=draw(st.sampled_from([(), (2,)])),
        after=draw(st.sampled_from([{}, {"worker": ("custom",)}])),
        harmless=draw(st.sets(st.sampled_from(["chief", "worker", "ps", "evaluator"]))),
    )
    any_task = st.one_of(st.sampled_from(tasks(*names)), st.sampled_from(tasks(*NAMES)))
    opening = draw(st.sampled_from([[], registered(*names)]))
    events = opening + draw(
        st.lists(
            st.one_of(
                st.builds(Registered, any_task),
                st.builds(Registered, any_task),
                st.builds(Exited, any_task, codes, st.sampled_from([1.0, 60.0]), reason=failures),
                st.builds(Lost, any_task, st.sampled_from(LOSSES), st.just("gone")),
                st.builds(Verdict, st.just(Reason.TOTAL_TIMEOUT), st.just("late")).filter(
                    lambda _: draw(st.booleans())
                ),
            ),
            max_size=60,
        )
    )
    return job, state, events


def forgiveness_is_spent(job, before, event):
    """Whether nothing allowed another try: not the mode, not the codes, not the budget, or three quick ones in a row."""
    whose = event.task if job.restart["mode"] == "task" else None
    return (
        job.restart["mode"] == "never"
        or event.reason is Reason.OUT_OF_MEMORY
        or event.code in job.restart["fatal_exit_codes"]
        or not before.restarts_left.get(event.task.type, before.restarts_left[""])
        or (bool(job.restart["retry_exit_codes"]) and event.code not in job.restart["retry_exit_codes"])
        or (event.seconds < 10 and before.quick_failures.get(whose, 0) >= 2)
    )


@pytest.mark.slow
@settings(max_examples=500)
@given(histories())
def test_laws_of_every_history(history):
    job, state, events = history
    waits = any(plan.after for plan in job.types.values())
    codes = {}  # what the commands that ran last ended with, by our own record
    finishes = 0
    for event in events:
        before = state
        state, decision = decide(job, state, event)
        if isinstance(event, Exited) and before.phases.get(event.task) == RUNNING and not before.verdict:
            codes[event.task] = event.code
        if decision.action == "restart":
            codes = {task: code for task, code in codes.items() if waits and task.type == "custom" and code == 0}
        codes = {task: code for task, code in codes.items() if task not in decision.tasks}
        assert min(*state.restarts_left.values(), *state.losses_left.values()) >= 0, "no budget below zero"
        assert state.round >= before.round and set(state.phases) == set(before.phases)
        if before.verdict:
            assert state == before and decision.action == "none", "one verdict"
            continue
        finishes += decision.action == "finish"
        assert (decision.action == "finish") == (state.verdict is not None)
        if decision.action == "publish":
            started = {RUNNING, SUCCEEDED, REGISTERED} if waits else {RUNNING}
            assert {phase for task, phase in state.phases.items() if needed(job, task.type)} <= started
        if decision.action == "start":
            assert {state.phases[task] for task in decision.tasks} == {RUNNING} and state.published
        if state.verdict is None:
            assert decision.action != "none" or not (
                isinstance(event, Exited) and codes.get(event.task) and job.types[event.task.type].fatal
            ), "no failure is passed over"
            continue
        awaited = [task for task in state.phases if job.types[task.type].awaited]
        if state.verdict.reason is Reason.SUCCEEDED:
            assert not any(code and job.types[task.type].fatal for task, code in codes.items()), (
                "no success with a failed fatal task"
            )
            awaited = {CHIEF} if job.success == "chief" else set(awaited)
            assert {state.phases[task] for task in awaited} <= {SUCCEEDED, FAILED}, "none while an awaited task runs"
            assert any(codes.get(task) == 0 for task in awaited), "no success without one of an awaited task"
        elif isinstance(event, Exited):
            assert event.code and before.phases[event.task] == RUNNING, "only a command that runs fails a job"
            assert (state.verdict.reason, state.verdict.task) == (event.reason, event.task)
            if job.types[event.task.type].fatal:
                assert forgiveness_is_spent(job, before, event)
            else:
                assert SUCCEEDED not in {state.phases[task] for task in awaited}, "only where none has succeeded"
        elif isinstance(event, Lost):
            assert before.phases[event.task] not in (SUCCEEDED, FAILED) and needed(job, event.task.type), (
                "only the loss of what is needed fails a job"
            )
            assert (state.verdict.reason, state.verdict.task) == (event.reason, event.task)
            left = before.losses_left.get(event.task.type, before.losses_left[""])
            assert left == 0 or event.reason is Reason.OUT_OF_MEMORY, "only beyond the budget"
        else:
            assert isinstance(event, Verdict) and state.verdict.reason is event.reason
    assert finishes <= 1


@settings(max_examples=200)
@given(jobs, st.randoms(use_true_random=False))
def test_whatever_the_order_a_job_without_faults_succeeds(names, random):
    job, state = start(*names)
    order = registered(*names)
    random.shuffle(order)
    state, _ = play(job, state, *order)
    assert state.published
    exits = [Exited(task, 0, 60.0) for task in state.phases if job.types[task.type].awaited]
    random.shuffle(exits)
    state, actions = play(job, state, *exits)
    assert state.verdict.reason is Reason.SUCCEEDED and actions == ["finish"]


def test_failure_after_quick_seconds_is_not_quick():
    job, state = start("worker:0", mode="task", restarts=9)
    state, _ = play(job, state, *registered("worker:0"))
    for _ in range(EARLY_FAILURES):
        state, decision = decide(job, state, Exited(W0, 1, EARLY_SECONDS))
    assert decision.action == "start"


@pytest.mark.parametrize("duty", ["in_cluster", "awaited", "fatal", None])
def test_spec_waits_for_a_task_of_one_duty(duty):
    none = JOB.types["worker"]._replace(in_cluster=False, awaited=False, fatal=False)
    job = JOB._replace(types={"worker": none._replace(**{duty: True}) if duty else none})
    assert needed(job, "worker") is (duty is not None)


def test_container_of_a_failed_task_may_go():
    job, state = start("worker:0", "tensorboard:0", losses=0)
    state, _ = play(job, state, *registered("worker:0", "tensorboard:0"), Exited(BOARD, 1, 60.0))
    assert state.phases[BOARD] == FAILED
    state, _ = play(job, state, Lost(BOARD, Reason.CONTAINER_LOST, "gone"))
    assert state.phases[BOARD] == FAILED
