"""Processes that carry the marks of a cluster."""

import os
import signal

import pytest

from support.waiting import until
from tf_yarn_ops.minicluster import daemons
from tf_yarn_ops.minicluster import marked_processes as processes

SLEEP = "import sys, time; print(flush=True); time.sleep(600)"

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"


def test_only_processes_with_both_marks_are_ours(tmp_path, spawn):
    ours = spawn(SLEEP, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}")
    spawn(SLEEP, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}2")
    spawn(SLEEP, "-Dproc_nm")
    assert daemons.find(tmp_path, "nm") == ours.pid
    assert daemons.find(tmp_path, "rm") is None
    assert daemons.find_all(tmp_path) == (ours.pid,)


@pytest.mark.parametrize(
    "order", [sorted, lambda pids: sorted(pids, reverse=True)], ids=["older first", "wrapped pids"]
)
def test_what_a_daemon_forks_is_not_the_daemon(tmp_path, spawn, monkeypatch, order):
    """Seen: after pids had begun anew, SIGKILL for the NodeManager hit the child that it had just forked."""
    forking = f"import os; os.fork(); {SLEEP}"
    ours = spawn(forking, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}", start_new_session=True)
    real = processes.find_by_arguments
    until(lambda: len(real(daemons.marks(tmp_path, "nm"))) == 2)
    monkeypatch.setattr(processes, "find_by_arguments", lambda marks: tuple(order(real(marks))))
    try:
        assert daemons.find(tmp_path, "nm") == ours.pid
        ours.kill()
        ours.wait()
        assert daemons.find(tmp_path, "nm") not in (None, ours.pid), "what is left of it holds its ports and files"
    finally:
        os.killpg(ours.pid, signal.SIGKILL)
    until(lambda: daemons.find(tmp_path, "nm") is None)


def test_a_zombie_does_not_count(tmp_path, spawn):
    ours = spawn(SLEEP, "-Dproc_nm", f"-Dytf.minicluster={tmp_path}")
    ours.kill()
    assert processes.wait_until(lambda: daemons.find(tmp_path, "nm") is None, 10)
    assert ours.returncode is None


@pytest.mark.slow
def test_stop_ends_the_stubborn_and_the_stopped_and_nobody_else(tmp_path, spawn):
    marks = ("-Dproc_nm", f"-Dytf.minicluster={tmp_path}")
    stubborn, stopped, stranger = spawn(STUBBORN, *marks), spawn(SLEEP, *marks), spawn(SLEEP)
    stopped.send_signal(signal.SIGSTOP)
    daemons.stop(tmp_path, [stubborn.pid, stopped.pid, stranger.pid], 0.5)
    assert stubborn.wait(60) == -signal.SIGKILL
    assert stopped.wait(60) == -signal.SIGTERM
    assert stranger.poll() is None


def test_what_runs_in_containers_is_ended_with_its_group(tmp_path, spawn):
    local = {"LOCAL_DIRS": f"{tmp_path}/nm/local/usercache/ada/appcache/application_1_1"}
    task = spawn(STUBBORN, env={**os.environ, **local}, start_new_session=True)
    stranger = spawn(SLEEP, env={**os.environ, "LOCAL_DIRS": f"{tmp_path}2/nm"}, start_new_session=True)
    daemons.end_containers(tmp_path)
    assert task.wait(60) == -signal.SIGKILL
    assert stranger.poll() is None
