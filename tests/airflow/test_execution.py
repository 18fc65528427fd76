"""A task that Airflow ends, on a fake ResourceManager: the application is killed, and the report tells by which attempt."""

import asyncio
import gc
import signal
import socket
import threading
import time

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRuntimeError, AirflowTaskTimeout, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.sdk.execution_time.timeout import timeout

from support import airflow_setup
from support.airflow_task import ID, SECOND, Running, deferral, first_event, resume, run
from support.waiting import until
from tf_yarn_ops.airflow import TfYarnInfrastructureError, execution
from tf_yarn_ops.airflow.kill_state import KillOutcome

pytestmark = pytest.mark.slow


def test_killed_worker_kills_its_application_and_is_retryable(site):
    task = Running(site.operator())
    until(
        lambda: site.yarn.apps.get(ID) and "tf_yarn" in task.ti.xcoms and task.operator._execution._submitting is False
    )
    began = time.monotonic()
    task.operator.on_kill()
    assert time.monotonic() - began < 60
    assert site.yarn.apps[ID]["state"] == "KILLED"
    assert site.killer() == 1
    task.join(60)
    assert isinstance(task.error, TfYarnInfrastructureError) and "was killed" in str(task.error)
    assert "tf_yarn_status" not in task.ti.xcoms  # Airflow takes no XCom of a task that it has ended


def test_wait_that_sees_the_kill_at_once_says_was_killed(site, monkeypatch):
    """The killing thread has ended the application, and the wait has seen it, before `on_kill` goes on."""
    task = Running(site.operator())
    until(
        lambda: site.yarn.apps.get(ID) and "tf_yarn" in task.ti.xcoms and task.operator._execution._submitting is False
    )
    start, kill = threading.Thread.start, execution.kill_now

    def start_and_lag(thread):
        start(thread)
        if (
            task.operator.kill_state.outcome is not KillOutcome.NONE
            and threading.current_thread() is threading.main_thread()
        ):
            task.join(60)

    def kill_and_lag(*arguments, **options):
        killed = kill(*arguments, **options)
        task.join(1)  # the end of a task that does not wait for this thread
        return killed

    monkeypatch.setattr(execution, "kill_now", kill_and_lag)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start_and_lag)
        task.operator.on_kill()
    task.join(60)
    assert isinstance(task.error, TfYarnInfrastructureError) and "was killed" in str(task.error)


def test_airflows_alarm_ends_the_wait_and_the_kill_follows(site):
    """For ``execution_timeout`` Airflow raises in the main thread, wherever it is, and calls ``on_kill`` then."""
    operator, context = site.operator(), airflow_setup.context_of(airflow_setup.TaskInstance(max_tries=1))

    def ring():
        until(lambda: site.yarn.apps.get(ID) and operator._execution._submitting is False)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    bell = threading.Thread(target=ring)
    bell.start()
    with pytest.raises(AirflowTaskTimeout), timeout(60):
        operator.execute(context)
    bell.join()
    operator.on_kill()
    assert site.yarn.apps[ID]["state"] == "KILLED"
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "tf-yarn-wait"])


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("owner", "name"),
    [(threading.Thread, "start"), (socket, "socketpair")],
    ids=["the thread has started", "half of its event loop is made"],
)
def test_early_alarm_leaves_neither_thread_nor_half_a_loop(site, monkeypatch, owner, name):
    operator, context = site.operator(on_kill="leave"), airflow_setup.context_of(airflow_setup.TaskInstance())
    original = getattr(owner, name)

    def ringing(*arguments, **options):
        done = original(*arguments, **options)
        if ID in site.yarn.apps and operator._execution._submitting is False:
            monkeypatch.setattr(owner, name, original)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
        return done

    monkeypatch.setattr(owner, name, ringing)
    with pytest.raises(AirflowTaskTimeout), timeout(60):
        operator.execute(context)
    assert site.yarn.apps[ID]["state"] == "ACCEPTED"
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "tf-yarn-wait"])
    gc.collect()


@pytest.mark.parametrize(("policy", "state"), [("kill", "KILLED"), ("leave", "ACCEPTED")])
def test_ctrl_c_of_a_task_without_a_worker_does_as_a_kill(site, policy, state):
    """``airflow dags test`` and ``tasks test`` run the task in their own process."""
    operator = site.operator(on_kill=policy)
    context = airflow_setup.context_of(airflow_setup.TaskInstance(max_tries=1))

    def press():
        until(lambda: [thread for thread in threading.enumerate() if thread.name == "tf-yarn-wait"])
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    person = threading.Thread(target=press)
    person.start()
    with pytest.raises(KeyboardInterrupt):
        operator.execute(context)
    person.join()
    assert site.yarn.apps[ID]["state"] == state


def test_an_application_that_is_to_be_left_is_left(site):
    task = Running(site.operator(on_kill="leave"))
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    task.operator.on_kill()
    task.join(60)
    assert isinstance(task.error, TfYarnInfrastructureError) and "was left alone" in str(task.error)
    assert site.yarn.apps[ID]["state"] == "ACCEPTED"


NO_ANSWER = AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR))
ON, LAST = {"max_tries": 1}, {"max_tries": 0}


@pytest.mark.parametrize(("state", "tries", "options", "killed"), [
    *[(state, ON, {}, True) for state in ("failed", "success", "skipped", "removed", "restarting")],
    *[(state, LAST, {}, False) for state in (None, "scheduled", "queued", "up_for_retry", "deferred")],
    ("running", ON, {}, False), ("running", LAST, {}, True),
    (NO_ANSWER, ON, {}, False), (NO_ANSWER, LAST, {}, True), (NO_ANSWER, LAST, {"lease": 60}, False),
])  # fmt: skip
def test_signal_kills_only_when_no_later_try_attaches(site, state, tries, options, killed):
    """Airflow also ends workers that it takes for lost, and those of a machine that is shut down."""
    task = Running(site.operator(**options), **tries)
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    task.ti.state = state
    task.operator.on_kill()
    task.join(60)
    assert isinstance(task.error, TfYarnInfrastructureError)
    assert ("the next try attaches" in str(task.error)) is not killed
    assert site.yarn.apps[ID]["state"] == ("KILLED" if killed else "ACCEPTED")
    if not killed:
        with site.ending():
            value, _, _ = run(site.operator(**options), try_number=2, **tries)
        assert (value["application_id"], value["reason"], site.submissions()) == (ID, "SUCCEEDED", 1)


def test_task_without_instance_in_airflow_is_killed(site):
    """A person has deleted the run or the DAG."""
    task = Running(site.operator(), max_tries=1)
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    task.ti.get_task_states = lambda **names: {}
    task.operator.on_kill()
    task.join(60)
    assert site.yarn.apps[ID]["state"] == "KILLED"


def test_silent_airflow_does_not_hold_up_a_signal(site):
    task = Running(site.operator(), max_tries=1)
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    silence = threading.Event()
    task.ti.get_task_states = lambda **names: silence.wait(120) and {}
    task.operator.on_kill()
    assert not silence.is_set() and site.yarn.apps[ID]["state"] == "ACCEPTED"
    silence.set()
    task.join(60)
    assert "Airflow did not answer); the next try attaches" in str(task.error)


def test_a_kill_during_the_submission_leaves_nothing(site, tmp_path):
    operator = site.operator()
    arrived, go = threading.Event(), threading.Event()

    def hold(method, path):
        if method == "POST" and path.endswith("/apps"):
            arrived.set()
            go.wait(120)

    site.yarn.faults.append(hold)
    task = Running(operator)
    assert arrived.wait(60)
    began = time.monotonic()
    operator.on_kill()
    assert time.monotonic() - began < 60
    go.set()
    task.join(60)
    assert isinstance(task.error, TfYarnInfrastructureError)
    assert {app["state"] for app in site.yarn.apps.values()} <= {"KILLED"}
    assert not [path for path in (tmp_path / "files").rglob("application_*") if "history" not in path.parts]


def test_a_kill_before_there_is_anything_to_kill_submits_nothing(site):
    operator = site.operator()
    arrived, go = threading.Event(), threading.Event()

    def hold(method, path):
        if path == "/conf":
            arrived.set()
            go.wait(60)

    site.yarn.faults.append(hold)
    task = Running(operator)
    assert arrived.wait(60)
    operator.on_kill()
    go.set()
    task.join(60)
    assert isinstance(task.error, TfYarnInfrastructureError) and site.submissions() == 0


@pytest.mark.parametrize("end", ["execute", "resume_execution"])
def test_a_kill_before_the_execution_exists_is_not_forgotten(site, end):
    """Airflow's signal may come while the operator still imports what it needs."""
    operator = site.operator(deferrable=True)
    operator.on_kill()
    with pytest.raises(TfYarnInfrastructureError, match="Airflow ended the task or its worker"):
        run(operator) if end == "execute" else resume(operator, "Trigger failure")
    assert site.submissions() == 0


@pytest.mark.parametrize(
    "handing_over", [{"deferrable": True}, {"wait_for_completion": False}], ids=["deferred", "not waiting"]
)
@pytest.mark.parametrize(("state", "index"), [("failed", -1), ("success", 3), ("restarting", -1)])
def test_a_task_that_was_marked_before_it_hands_over_kills(site, handing_over, state, index):
    """The worker learns of it at its next heartbeat only, and the server refuses its deferral in silence."""
    with pytest.raises(TfYarnInfrastructureError, match=f"{ID} was killed"):
        run(site.operator(**handing_over), state=state, map_index=index)
    assert site.yarn.apps[ID]["state"] == "KILLED" and site.killer() == 1


def test_a_marked_task_leaves_what_is_to_be_left(site):
    with pytest.raises(TfYarnInfrastructureError, match=f"{ID} was left alone"):
        run(site.operator(deferrable=True, on_kill="leave"), state="failed")
    assert site.yarn.apps[ID]["state"] == "ACCEPTED"


@pytest.mark.parametrize(
    "state",
    ["queued", AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR)), EOFError()],
    ids=["another try", "server", "supervisor"],
)
def test_a_task_whose_state_says_nothing_hands_over(site, state):
    deferred, _ = deferral(site.operator(deferrable=True), airflow_setup.TaskInstance(state=state))
    assert deferred.trigger.application_id == ID and site.yarn.apps[ID]["state"] == "ACCEPTED"


def test_a_kill_by_an_older_attempt_is_not_the_end_of_this_one(site):
    """A worker that was cut off from Airflow kills when it notices; the next attempt has attached by then."""
    first = site.operator(deferrable=True)
    deferral(first)
    second = Running(site.operator(), try_number=2)
    until(lambda: "tf_yarn" in second.ti.xcoms and second.operator._execution._submitting is False)
    first.on_kill()
    until(lambda: SECOND in site.yarn.apps)
    site.end(SECOND)
    second.join(60)
    assert second.error is None and second.ti.xcoms["tf_yarn"]["application_id"] == SECOND


def test_a_deferred_attempt_defers_once(site):
    """After a kill by an older attempt the new application is waited for in the worker."""
    first = site.operator(deferrable=True)
    deferral(first)
    second, ti = site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2)
    deferred, context = deferral(second, ti)
    first.on_kill()
    event = asyncio.run(first_event(deferred.trigger))
    with site.ending(SECOND):
        value = site.operator(deferrable=True).execute_complete(context, event)
    assert (value["application_id"], value["reason"], site.submissions()) == (SECOND, "SUCCEEDED", 2)


def test_a_kill_by_this_attempts_own_worker_is_retryable(site):
    """A worker that is shut down kills; the deferral that it had sent is taken nevertheless."""
    operator, ti = site.operator(deferrable=True), airflow_setup.TaskInstance()
    deferred, context = deferral(operator, ti)
    operator.on_kill()
    event = asyncio.run(first_event(deferred.trigger))
    with pytest.raises(TfYarnInfrastructureError, match="Killed by Airflow: the task was cleared"):
        site.operator(deferrable=True).execute_complete(context, event)
    assert (ti.xcoms["tf_yarn_status"]["reason"], site.yarn.apps[ID]["state"]) == ("KILLED", "KILLED")


def test_a_kill_by_somebody_else_is_the_end(site):
    task = Running(site.operator(), try_number=2)
    until(lambda: site.yarn.apps.get(ID) and task.operator._execution._submitting is False)
    site.yarn.apps[ID].update(state="KILLED", finalStatus="KILLED", diagnostics="Application killed by user ann.")
    task.join(60)
    assert isinstance(task.error, AirflowFailException) and "KILLED" in str(task.error)
