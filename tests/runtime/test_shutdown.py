"""The shutdown after the verdict, without processes: who is stopped when, and how long each may linger."""

import asyncio

import pytest

from support.wire import exited, join, receive, state_of
from tf_yarn_ops.job.parts import Deadlines, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master import shutdown
from tf_yarn_ops.runtime.master.containers import Container
from tf_yarn_ops.runtime.master.lifecycle import Verdict
from tf_yarn_ops.runtime.master.shutdown import Shutdown
from tf_yarn_ops.submit.application import build_runtime_job


def shut_down(act, linger=0.0, **deadlines):
    """Let the worker of a job succeed, and shut down while `act(state, container, kind)` answers; return the messages."""
    tasks = {"worker": TaskSpec(), "evaluator": TaskSpec(), "ps": TaskSpec()}
    board = {"output": "/out", "tensorboard": TensorBoard(linger=linger)} if linger else {}
    spec = JobSpec(command="x", tasks=tasks, deadlines=Deadlines(**{"stop_grace": 1, **deadlines}), **board)
    log = []

    async def play():
        state = state_of(build_runtime_job(spec)._replace(user="u"))
        state.known["evaluator_0"] = Container("evaluator_0", "evaluator", "RUNNING", "")
        agents = ["worker_0", "evaluator_0", "ps_0"]
        if linger:
            state.known["tensorboard_0"] = Container("tensorboard_0", "tensorboard", "RUNNING", "")
            agents.append("tensorboard_0")
        worker, *_ = join(state, *agents, now=asyncio.get_running_loop().time())
        receive(state, worker, exited(code=0))
        changed = asyncio.Event()

        def perform(effects):
            for effect in effects:
                container = effect.connection.removeprefix("connection of ")
                log.append((container, effect.kind))
                act(state, container, effect.kind)
            changed.set()

        async def commit():
            log.append(("output", "commit"))

        await asyncio.wait_for(Shutdown(state, perform, changed).run(commit), 60)

    asyncio.run(play())
    return log


def end(state, container, _kind):
    """End a command at once, as an agent reports it."""
    peer = state.registry.peers[container]
    if peer.running:
        receive(state, peer, exited(code=0))


def after_the_chief(act, grace):
    """Let the chief of a job succeed, and shut down while `act(state, container)` follows; return the messages."""
    tasks = {"chief": TaskSpec(), "worker": TaskSpec(instances=2), "ps": TaskSpec()}
    deadlines = Deadlines(success_grace=grace, stop_grace=1)
    spec = JobSpec(command="x", tasks=tasks, success="chief", deadlines=deadlines)
    log = []

    async def play():
        state = state_of(build_runtime_job(spec)._replace(user="u"))
        state.known["chief_0"] = Container("chief_0", "chief", "RUNNING", "")
        chief, *_ = join(state, "chief_0", "worker_0", "worker_1", "ps_0", now=asyncio.get_running_loop().time())
        receive(state, chief, exited(code=0))

        def perform(effects):
            for effect in effects:
                log.append((effect.connection.removeprefix("connection of "), effect.kind))
                stop_only(state, *log[-1])

        async def commit():
            log.append(("output", "commit"))

        asyncio.get_running_loop().call_later(0.1, act, state)
        await asyncio.wait_for(Shutdown(state, perform, asyncio.Event()).run(commit), 60)
        return state

    return asyncio.run(play()), log


def end_workers(state):
    for container, code in (("worker_0", 0), ("worker_1", 1)):
        receive(state, state.registry.peers[container], exited(code=code))


@pytest.mark.parametrize(
    "act, grace, stopped",
    [
        (end_workers, 600, {"ps_0"}),
        (lambda state: receive(state, state.registry.peers["worker_0"], exited(code=0)), 0.2, {"worker_1", "ps_0"}),
        (
            lambda state: state.abort(Verdict(Reason.KILLED, "Ended by SIGTERM"), 1.0),
            600,
            {"worker_0", "worker_1", "ps_0"},
        ),
        (end_workers, 0, {"worker_0", "worker_1", "ps_0"}),
    ],
    ids=["all end, one fails", "one hangs", "a client kills", "no grace"],
)
def test_workers_may_end_by_themselves_after_the_chief(act, grace, stopped):
    state, log = after_the_chief(act, grace)
    assert {container for container, kind in log if kind == "stop"} == stopped
    assert log.index(("output", "commit")) == len(stopped)
    assert (
        state.has_succeeded == (state.lifecycle.verdict.reason is Reason.SUCCEEDED) == (len(stopped) < 3 or not grace)
    )


def test_output_is_committed_between_evaluator_and_goodbye():
    log = shut_down(end, evaluator_grace=600)
    assert sorted(log[:2]) == [("evaluator_0", "trained"), ("ps_0", "stop")]
    assert log[2:] == [("output", "commit"), *((name, "bye") for name in ("worker_0", "evaluator_0", "ps_0"))]


def stop_only(state, container, kind):
    if kind == "stop":
        end(state, container, kind)


@pytest.mark.parametrize("deadlines", [{"evaluator_grace": 0.2}, {"evaluator_grace": 600, "total": 0.2}])
def test_evaluator_is_stopped_when_its_time_or_the_jobs_is_over(deadlines):
    log = shut_down(stop_only, **deadlines)
    assert log[2:4] == [("evaluator_0", "stop"), ("output", "commit")]


def test_output_is_committed_between_evaluator_and_tensorboard():
    log = shut_down(stop_only, linger=0.3, evaluator_grace=0.1)
    assert sorted(log[:3]) == [("evaluator_0", "trained"), ("ps_0", "stop"), ("tensorboard_0", "trained")]
    assert log[3:6] == [("evaluator_0", "stop"), ("output", "commit"), ("tensorboard_0", "stop")]


def test_agent_that_is_lost_while_its_command_lingers_is_not_waited_for():
    def leave(state, container, kind):
        peer = state.registry.peers[container]
        if kind == "trained":
            peer.terminated, peer.connection = True, None
        elif kind == "stop":
            end(state, container, kind)

    assert shut_down(leave, evaluator_grace=600)[2] == ("output", "commit")


def test_command_that_does_not_end_is_given_up_after_its_grace(monkeypatch, caplog):
    monkeypatch.setattr(shutdown, "AFTER_KILL", 0.1)
    log = shut_down(lambda *_: None, evaluator_grace=0, stop_grace=0)
    assert "Gave up waiting for ps:0" in caplog.text or "Gave up waiting for evaluator:0, ps:0" in caplog.text
    assert ("output", "commit") in log
