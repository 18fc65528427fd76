"""Cancelled jobs, killed launchers and lost executors of Azkaban, at every step: nothing may be left."""

import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.azkaban_jobs import JOB, Site, write_project
from support.azkaban_site import PATIENCE
from support.gaps import GAPS, STOP_IN_GAPS
from support.waiting import until
from tf_yarn_ops.azkaban.properties import format_properties, parse_properties

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

#: Azkaban sends SIGKILL after these seconds; our kill is to be faster in every case.
KILLED_WITHIN = 30
#: A launcher that stops at the gap that its job names for this attempt, until the attempt's file is there.
STOPPING = (
    """\
import os, re, runpy, time

attempt = int(re.search(r"azkaban\\.job\\.attempt=(\\d+)", open(os.environ["JOB_PROP_FILE"]).read())[1])
gap, go = dict(enumerate(os.environ["MY_GAPS"].split(","))).get(attempt), os.environ["MY_GO"] + f"-{attempt}"

def stop(name):
    if name == gap:
        print("stopped at", name, flush=True)
        while not os.path.exists(go):
            time.sleep(0.02)

"""
    + STOP_IN_GAPS
    + """
stop("start")
runpy.run_module("tf_yarn_ops.azkaban", run_name="__main__", alter_sys=True)
"""
)
#: The pipe to Azkaban breaks behind the first line.
DEAF = """\
exec "$@" > >(head -n 1) 2>&1
"""


def add_plugin(site, name, change):
    """Install a plugin that differs from ours in its command."""
    shutil.copytree(site.plugins / "tensorflow-yarn", site.plugins / name, dirs_exist_ok=True)
    file = site.plugins / name / "plugin.properties"
    properties = parse_properties(file.read_bytes())
    file.write_bytes(format_properties({**properties, "command": change(properties["command"])}))


def new_site(folder, classpath, minicluster):
    site = Site(folder, classpath, minicluster)
    (folder / "stopping.py").write_text(STOPPING)
    add_plugin(site, "stopping", lambda command: command.replace("-m tf_yarn_ops.azkaban", str(folder / "stopping.py")))
    add_plugin(site, "deaf", lambda command: f"/bin/bash {folder}/deaf.sh {command}")
    (folder / "deaf.sh").write_text(DEAF)
    return site


@pytest.fixture(scope="module")
def site(minicluster, classpath, tmp_path_factory):
    with new_site(tmp_path_factory.mktemp("azkaban"), classpath, minicluster) as server:
        yield server


def start(site, folder, command="sleep 600", gaps=(), name="digits", server="azkaban.example.com", **values):
    """Start a flow of one job; the launcher of attempt N stops at the gap N until the file ``go-N`` is in the folder."""
    own = {"tf.command": command, **{name.replace("__", "."): value for name, value in values.items()}}
    if gaps:
        own |= {"type": "stopping", "env.MY_GAPS": ",".join(gaps), "env.MY_GO": f"{folder}/go"}
    project = write_project(folder / "project", {"train": {**JOB, **own}})
    return site.start(project, "train", url=f"http://{server}:8081", name=name)


def wait_at(execution, gap, attempt=0):
    """Wait until the launcher of an attempt stops at a gap."""

    def stopped():
        return f"stopped at {gap}" in execution.log("train", attempt)

    until(lambda: stopped() or execution.status or len(execution.attempts) > attempt, PATIENCE, 0.1)
    assert stopped() and execution.status is None, execution.all_logs()


def kill_launcher(execution):
    """Kill the launcher of the attempt that runs; return when the attempt has failed."""
    attempt = len(execution.attempts)
    execution.launcher().kill()
    execution.wait(until=lambda seen: len(seen.attempts) > attempt)
    assert execution.attempts[-1] == ("train", attempt, "FAILED"), execution.all_logs()


def cancel(site, execution, go=None):
    """Press the button, and let a launcher go on that stopped at a gap; return the seconds until all was over."""
    began = time.monotonic()
    pressed = ThreadPoolExecutor(1).submit(execution.cancel)
    if go:
        go.touch()
    pressed.result(60)
    assert execution.status == "KILLED", execution.all_logs()
    return time.monotonic() - began


# --- the button ---------------------------------------------------------------------------------


def test_cancelled_in_the_submission_nothing_is_left(site, tmp_path):
    def one(gap):
        folder = tmp_path / gap
        execution = start(site, folder, gaps=[gap], tf__queue="full")
        wait_at(execution, gap)
        seconds = cancel(site, execution, folder / "go-0")
        assert seconds < KILLED_WITHIN, (gap, seconds)
        assert len(site.applications(execution)) <= 1
        site.assert_nothing_left(execution)

    # tests/launch/test_ensure_cluster.py plays all gaps; here Azkaban sends the signal.
    gaps = ["staging", "submitted"]
    with ThreadPoolExecutor(len(gaps)) as pool:
        list(pool.map(one, gaps))


def test_cancelled_the_moment_it_starts_nothing_is_left(site, tmp_path):
    def one(delay):
        execution = start(site, tmp_path / str(delay))
        process = execution.launcher()
        until(lambda: time.time() - process.create_time() >= delay)
        assert cancel(site, execution) < KILLED_WITHIN
        assert len(site.applications(execution)) <= 1
        site.assert_nothing_left(execution)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, (0.0, 0.2, 0.6, 1.5)))


def test_cancel_while_training_or_queued_leaves_nothing(site, tmp_path):
    """What waits leaves the queue. What trains is killed, though the program ignores it and the pipe to the log is broken."""
    large = {"tf__am_memory": "12000"}
    first = start(site, tmp_path / "first", "trap '' TERM INT; while :; do sleep 1; done", type="deaf", **large)
    application = site.wait_for_training(first)
    second = start(site, tmp_path / "second", **large)
    until(lambda: [item["state"] for item in site.applications(second)] == ["ACCEPTED"], PATIENCE, 0.3)
    assert cancel(site, second) < KILLED_WITHIN
    (queued,) = site.applications(second)
    assert queued["state"] == "KILLED" and queued["id"] in second.messages("train"), second.all_logs()
    site.assert_nothing_left(second)
    assert site.live(first) == [application]
    assert cancel(site, first) < KILLED_WITHIN
    assert first.attempts == [("train", 0, "KILLED")]
    (seen,) = site.applications(first)
    assert seen["state"] == "KILLED" and "ancel" in seen["diagnostics"], seen["diagnostics"]
    site.assert_nothing_left(first)


# --- the launcher dies --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def attached(site, tmp_path_factory):
    """Kill the launcher at every gap of one execution; return this, its folder, the gaps, and the application that it attached to.

    Its first training fails, the second one succeeds, each as soon as a file says so.
    """
    folder, gaps = tmp_path_factory.mktemp("gaps"), GAPS[: GAPS.index("submitted") + 1]
    command = (
        f"echo started >> {folder}/trainings; mine=`wc -l < {folder}/trainings`; "  # $() is Azkaban's
        f"until test -e {folder}/finish-$mine; do sleep 0.2; done; [ $mine = 2 ] || exit 3"
    )
    execution = start(site, folder, command, gaps=[*gaps, "", "start", "", "start"], retries=str(len(gaps) + 3))
    for attempt, gap in enumerate(gaps):
        wait_at(execution, gap, attempt)
        kill_launcher(execution)
    application = site.wait_for_training(execution)
    until(lambda: application in execution.messages("train", len(gaps)), PATIENCE, 0.1)
    return execution, folder, gaps, application


def test_the_launcher_killed_at_every_gap_and_retried_trains_once(site, attached):
    """A retry begins where the launcher before it was killed; behind "submitted" it attaches, as it does behind "marked"."""
    execution, folder, gaps, application = attached
    assert [item["id"] for item in site.applications(execution)] == site.live(execution) == [application]
    assert execution.attempts == [("train", attempt, "FAILED") for attempt in range(len(gaps))], execution.all_logs()
    assert (folder / "trainings").read_text() == "started\n"


def test_retry_of_a_killed_launcher_repeats_attaches_or_reports(site, attached):
    """Hours of training are not thrown away."""
    execution, folder, gaps, first = attached

    def finish_unseen(number):
        """Let the training of this number end while the next attempt is stopped."""
        kill_launcher(execution)
        (folder / f"finish-{number}").touch()
        until(lambda: not site.live(execution), PATIENCE, 0.3)
        attempt = len(execution.attempts)
        wait_at(execution, "start", attempt)
        (folder / f"go-{attempt}").touch()

    finish_unseen(1)
    # The training has failed, so the next attempt trains again.
    second = site.wait_for_training(execution)
    assert [item["id"] for item in site.applications(execution)] == [first, second]
    kill_launcher(execution)
    # The training continues, so the attempt behind it attaches.
    until(lambda: second in execution.messages("train", len(gaps) + 2), PATIENCE, 0.1)
    assert site.live(execution) == [second], execution.all_logs()
    finish_unseen(2)
    # The training has succeeded, so the last attempt reports that.
    execution.wait()
    assert [status for *_, status in execution.attempts] == ["FAILED"] * (len(gaps) + 3) + ["SUCCEEDED"], (
        execution.all_logs()
    )
    assert [item["finalStatus"] for item in site.applications(execution)] == ["FAILED", "SUCCEEDED"]
    assert (folder / "trainings").read_text() == "started\n" * 2
    assert execution.outputs["train"]["tf.result.application_id"] == second
    site.assert_nothing_left(execution)


# --- the executor dies --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lost(site, minicluster, classpath, tmp_path_factory):
    """Kill an executor with three flows; return them, the launchers, and the seconds until those had ended.

    One flow trains. The launcher of another one was killed before, and the third stops at a gap of its submission.
    """
    folder = tmp_path_factory.mktemp("lost")
    with new_site(folder / "lonely", classpath, minicluster) as lonely:
        training = start(lonely, folder / "training")
        stopped = start(lonely, folder / "gap", gaps=["submitted"], tf__queue="full")
        alone = start(lonely, folder / "alone", name="alone", tf__lease="20")
        for execution in (training, alone):
            lonely.wait_for_training(execution)
        wait_at(stopped, "submitted")
        launchers = [execution.launcher() for execution in (training, stopped, alone)]
        launchers[-1].kill()
        began = time.monotonic()
        lonely.process.kill()
        lonely.process.wait(30)
        shutil.rmtree(training.directory)
        (folder / "gap" / "go-0").touch()
        until(
            lambda: not any(launcher.is_running() for launcher in launchers), 60, 0.1, what="the end of the launchers"
        )
        yield (training, stopped, alone), launchers, time.monotonic() - began


def test_the_executor_is_gone_and_takes_its_trainings_with_it(site, lost):
    """The flow is marked as failed, its directory deleted, and nobody else would ever end the application."""
    (training, stopped, _), _, seconds = lost
    assert seconds < KILLED_WITHIN
    (seen,) = site.applications(training)
    assert seen["state"] == "KILLED" and "Azkaban" in seen["diagnostics"], seen["diagnostics"]
    for execution in (training, stopped):
        site.assert_nothing_left(execution)


@pytest.fixture(scope="module")
def again(site, lost, tmp_path_factory):
    """Return the execution that trains behind the lost one."""
    folder = tmp_path_factory.mktemp("again")
    return start(site, folder, name="alone", tf__previous="wait")


def test_lease_of_a_lost_machine_ends_the_training_for_the_next(site, lost, again):
    (*_, execution), (*_, launcher), _ = lost
    site.wait_for_training(again)
    (seen,) = site.applications(execution)
    assert seen["state"] == "KILLED"
    lines = again.messages("train")
    assert any(line.startswith(f"waiting for the end of '{seen['id']}'") for line in lines), lines
    ended = next(line for line in lines if line.startswith(f"'{seen['id']}' has ended: LEASE_EXPIRED"))
    assert f"Azkaban's execution {execution.execid}, job train, attempt 0 (process {launcher.pid} on " in ended
    site.assert_nothing_left(execution)


def test_a_resourcemanager_that_hangs_does_not_hold_up_a_cancel(site, again, minicluster):
    application = site.wait_for_training(again)
    minicluster.stop_daemon("rm", signal.SIGSTOP)
    try:
        assert cancel(site, again) < KILLED_WITHIN
        assert f"ytf kill {application}" in again.log("train"), again.log("train")  # what a person can do who reads it
    finally:
        minicluster.stop_daemon("rm", signal.SIGCONT)
    site.launcher.kill(application, "the test is over")
    site.assert_nothing_left(again)


# --- other executions of the job ----------------------------------------------------------------


def test_superseded_execution_or_one_of_another_server_does_not_train(site, tmp_path):
    own = {"name": "kill", "tf__previous": "kill"}
    first = start(site, tmp_path / "first", retries="1", **own)
    application = site.wait_for_training(first)
    other = start(site, tmp_path / "other", server="10.0.0.7", **own).wait()
    assert other.attempts == [("train", 0, "FAILED")], other.all_logs()
    said = f"SUBMISSION_REJECTED: '{application}' of execution {first.execid} of this job is RUNNING. An executor has "
    assert any(line.startswith(said) for line in other.messages("train")), other.all_logs()
    assert site.applications(other) == [] and site.live(first) == [application]
    second = start(site, tmp_path / "second", tf__queue="full", **own)
    first.wait()
    assert first.attempts == [("train", attempt, "FAILED") for attempt in range(2)], first.all_logs()
    for attempt in range(2):
        assert any(line.startswith("SUPERSEDED: ") for line in first.messages("train", attempt)), first.all_logs()
    assert [item["id"] for item in site.applications(first)] == [application]
    until(lambda: site.live(second), PATIENCE, 0.3)
    for execution in (first, other):
        site.assert_nothing_left(execution)


def test_next_execution_waits_for_retries_of_earlier_ones_until_cancelled(site, tmp_path):
    """The first execution is cancelled between two attempts: nothing starts, and the second one trains at once.

    The launcher of the second one is killed while it trains; its retry attaches. Nobody reads the log of the third one,
    which ends no training.
    """
    limited = {"tf__queue": "full", "tf__queue_timeout": "1"}
    first = start(site, tmp_path / "first", name="wait", retries="1", retry__backoff="600000", **limited)
    first.wait(until=lambda seen: seen.attempts)
    command = (
        f"test -e {tmp_path}/mark || {{ touch {tmp_path}/mark; exit 3; }}; "
        f"until test -e {tmp_path}/finish; do sleep 0.2; done"
    )
    own = {"name": "wait", "tf__previous": "wait", "tf__lease": "60"}
    second = start(site, tmp_path / "second", command, retries="2", retry__backoff="8000", **own)
    until(lambda: f"waiting for execution {first.execid} of this training" in second.log("train"), PATIENCE, 0.3)
    assert cancel(site, first) < KILLED_WITHIN
    assert first.attempts == [("train", 0, "FAILED"), ("train", 1, "KILLED")]
    assert len(site.applications(first)) == 1
    until(lambda: site.live(second), PATIENCE, 0.3)
    third = start(site, tmp_path / "third", "true", type="deaf", **own)
    second.wait(until=lambda seen: seen.attempts)
    trains = site.wait_for_training(second)
    kill_launcher(second)
    until(lambda: trains in second.messages("train", 2), PATIENCE, 0.1)
    assert (site.live(second), site.applications(third)) == ([trains], []), third.all_logs()
    (tmp_path / "finish").touch()
    assert (second.wait().attempts, third.wait().attempts) == (
        [("train", 0, "FAILED"), ("train", 1, "FAILED"), ("train", 2, "SUCCEEDED")],
        [("train", 0, "SUCCEEDED")],
    ), third.all_logs()
    assert second.outputs["train"]["tf.result.application_id"] == trains
    assert third.outputs["train"]["tf.result.reason"] == "SUCCEEDED"
    assert site.applications(third)[0]["startedTime"] >= site.applications(second)[-1]["finishedTime"]
    for execution in (first, second, third):
        site.assert_nothing_left(execution)


@pytest.mark.parametrize("policy", ["kill", "wait"])
def test_of_two_executions_at_the_same_instant_one_trains(site, tmp_path, policy):
    command = (
        f"test ! -e {tmp_path}/lock || echo both > {tmp_path}/both; touch {tmp_path}/lock; sleep 5; rm {tmp_path}/lock"
    )
    if policy == "kill":
        command = f"sleep 5; echo trained >> {tmp_path}/trainings"
    first, second = (
        start(site, tmp_path / name, command, name=f"twins {policy}", tf__previous=policy, retries="1")
        for name in ("first", "second")
    )
    assert second.wait().attempts == [("train", 0, "SUCCEEDED")], second.all_logs()
    if first.wait().status == "FAILED":
        assert any(line.startswith("SUPERSEDED: ") for line in first.messages("train", 1)), first.all_logs()
    assert not (tmp_path / "both").exists(), first.all_logs() + second.all_logs()
    if policy == "kill":
        assert (tmp_path / "trainings").read_text() == "trained\n"
    for execution in (first, second):
        site.assert_nothing_left(execution)
