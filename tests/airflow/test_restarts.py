"""Airflow's own processes and the ResourceManager die and come back while tasks train; many tasks share one poll.

One after the other: each row takes away what all the others need.
"""

import shutil
import signal
import time

import pytest

from support.airflow_rows import JOB, KILLED, KINDS, SUCCEEDED, Yarn, until_there
from support.airflow_site import await_end
from support.fake_yarn import until
from support.wire_proxy import fronting

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]
#: The tasks of the DAG ``many``; fifty triggers and a hundred kills at once are in test_trigger.py.
MANY = 20
APPS = "/ws/v1/cluster/apps"


@pytest.fixture
def site(airflow_site):
    return airflow_site


@pytest.fixture
def yarn(minicluster):
    return Yarn(minicluster)


def training(yarn, *runs):
    for run in runs:
        yarn.training(run)
        run.until_state("running" if run.dag.endswith("sync") else "deferred")


def succeeded(yarn, *runs):
    for run in runs:
        run.until_state("success", seconds=2 * JOB)
        assert yarn.settled(run, SUCCEEDED) == [run.xcom()["application_id"]]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_the_triggerer_ends_and_comes_back(site, yarn, number):
    """One training continues through it, and another one succeeds in the meantime."""
    early, late = site.home / f"early-{number}", site.home / f"late-{number}"
    short = site.trigger("once_deferred", command=until_there(early))
    long = site.trigger("once_deferred", command=until_there(late))
    training(yarn, short, long)
    site.stop("triggerer", number)
    early.touch()
    until(lambda: not yarn.live(short), 60, 0.2)
    assert len(yarn.live(long)) == 1
    assert (short.task_state(), long.task_state()) == ("deferred", "deferred")
    site.start("triggerer")
    short.until_state("success", seconds=JOB)
    late.touch()
    succeeded(yarn, short, long)
    assert (short.instance()["try_number"], long.instance()["try_number"]) == (1, 1)


def test_the_deferral_ends_when_no_triggerer_enforces_the_execution_timeout(site, yarn):
    site.connect("backstop", yarn.hadoop.resourcemanager_url, unreachable_timeout=1)
    run = site.trigger("backstop", command="sleep 600")
    training(yarn, run)
    site.stop("triggerer")
    try:
        run.until_state("failed", seconds=2 * JOB)
        yarn.settled(run, KILLED)
        assert "execution_timeout is over, and the triggerer did not end" in run.log()
        assert run.xcom("tf_yarn_status")["reason"] == "EXECUTION_TIMEOUT"
    finally:
        site.start("triggerer")


@pytest.mark.parametrize("fault", ["terminated", "killed with its workers"])
def test_the_scheduler_ends_and_comes_back(site, yarn, fault):
    """Terminated, it waits for its workers; killed with them, the synchronous task attaches in its next attempt."""
    over = site.home / f"scheduler-{fault.split()[0]}"
    deferred = site.trigger("retry_deferred", command=until_there(over))
    sync = site.trigger("retry_sync", command=until_there(over))
    training(yarn, deferred, sync)
    if fault == "terminated":
        scheduler = site.running.pop("scheduler")
        scheduler.send_signal(signal.SIGTERM)
        over.touch()
        await_end(scheduler, signal.SIGTERM, 60)
        site.start("scheduler")
    else:
        site.stop("scheduler", signal.SIGKILL)
        site.start("scheduler")
        until(lambda: sync.instance()["try_number"] > 1 and sync.task_state() == "running", JOB, 0.5)
        over.touch()
    succeeded(yarn, deferred, sync)
    assert deferred.instance()["try_number"] == 1


def test_the_scheduler_alone_is_killed_and_its_workers_go_on(site, yarn):
    """Airflow takes the task from the worker that is still alive, which kills what it trains; the next attempt trains."""
    over = site.home / "scheduler-alone"
    deferred = site.trigger("once_deferred", command=until_there(over))
    sync = site.trigger("once_sync", command=until_there(over))
    training(yarn, deferred, sync)
    [first] = yarn.ids(sync)
    site.kill_alone("scheduler")
    site.start("scheduler")
    until(lambda: first not in yarn.live(sync), JOB, 0.2)
    yarn.training(sync)
    over.touch()
    succeeded(yarn, deferred)
    sync.until_state("success", seconds=JOB)
    assert yarn.settled(sync, KILLED, SUCCEEDED) == [first, sync.xcom()["application_id"]]


def test_twenty_deferred_tasks_make_one_call_for_each_interval(site, yarn):
    with fronting(yarn.hadoop) as (resourcemanager, _):
        site.connect("many", resourcemanager.url)
        run = site.trigger("many")
        until(lambda: states(run).count("deferred") == MANY, 400, 1)
        lived = yarn.live(run)
        assert len(lived) == MANY
        since = time.monotonic()
        until(lambda: resourcemanager.count("GET", APPS, since) >= 6, 60, 0.1)
        seconds = time.monotonic() - since
        calls = [(method, path) for when, method, path, _ in list(resourcemanager.requests) if when >= since]
        assert set(calls) == {("GET", APPS)}
        assert len(calls) <= seconds / 2 + 1
        run.mark_run("failed")
        ended = yarn.gone(run, seconds=200)
        # What YARN is launching in that moment may count as failed.
        unlike = [item for item in ended if item["finalStatus"] not in ("KILLED", "FAILED")]
        # An Airflow that is short of time ends workers before they have deferred, which kill, and begins their tasks again.
        assert {item["id"] for item in ended} >= {*lived} and not unlike, unlike
        until(lambda: set(states(run)) == {"failed"}, 60, 0.5)


def states(run):
    return [instance["state"] for instance in run.site.get(f"{run.path}/taskInstances", limit=100)["task_instances"]]


def test_the_resourcemanager_is_down_for_half_a_minute_and_forgets(site, yarn):
    """The application that it remembers continues and succeeds; the one that it has forgotten is LOST, and leaves nothing."""
    over = site.home / "resourcemanager"
    known = [site.trigger(f"once_{kind}", command=until_there(over)) for kind in KINDS]
    unknown = [site.trigger(f"once_{kind}", command="sleep 600") for kind in KINDS]
    training(yarn, *known, *unknown)
    forgotten = [application for run in unknown for application in yarn.ids(run)]
    yarn.hadoop.stop_daemon("rm", signal.SIGKILL)
    try:
        down = time.monotonic()
        for application in forgotten:
            kept = [*(yarn.hadoop.directory / "rm").rglob(f"RMAppRoot/{application}")]
            assert kept, f"the ResourceManager did not store {application}"
            for folder in kept:
                shutil.rmtree(folder)
        until(lambda: time.monotonic() - down >= 30, 60, 0.5)
        assert {run.task_state() for run in known + unknown} == {"deferred", "running"}
    finally:
        yarn.hadoop.start_daemon("rm")
    over.touch()
    succeeded(yarn, *known)
    for run in unknown:
        run.until_state("failed", seconds=JOB)
        assert run.xcom("tf_yarn_status")["reason"] == "LOST"
        assert yarn.ids(run) == []
    until(lambda: not any(yarn.processes(application) for application in forgotten), 60, 0.2)
