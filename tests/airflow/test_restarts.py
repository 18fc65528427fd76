"""Airflow's own processes and the ResourceManager die and come back while tasks train; many tasks share one poll.

One after the other: each row takes away what all the others need.
"""

import shutil
import signal
import time
from types import SimpleNamespace

import psutil
import pytest

from support.airflow_rows import JOB, KILLED, SUCCEEDED, Yarn, until_there
from support.airflow_site import await_end
from support.waiting import until
from support.wire_proxy import Proxy, fronting

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]
#: The tasks of the DAG ``many``; fifty triggers and a hundred kills at once are in test_trigger.py.
MANY = 2
APPS = "/ws/v1/cluster/apps"


@pytest.fixture(scope="module")
def site(airflow_site):
    return airflow_site


@pytest.fixture(scope="module")
def yarn(minicluster):
    return Yarn(minicluster)


@pytest.fixture(scope="module")
def outliving(site, yarn):
    """Return a deferred training that goes on, in its first try, through all that the rows take away; the last row ends it."""
    over = site.home / "outliving"
    run = site.trigger("once_deferred", command=until_there(over))
    training(yarn, run)

    def check():
        assert len(yarn.live(run)) == 1, run.log()[-4000:]
        assert (run.task_state(), run.instance()["try_number"]) == ("deferred", 1)

    yield SimpleNamespace(run=run, over=over, check=check)
    over.touch()


def training(yarn, *runs):
    for run in runs:
        yarn.training(run)
        run.until_state("running" if run.dag.endswith("sync") else "deferred")


def succeeded(yarn, *runs):
    for run in runs:
        run.until_state("success", seconds=2 * JOB)
        assert yarn.settled(run, SUCCEEDED) == [run.xcom()["application_id"]]


# Two rows with two triggerers.
@pytest.fixture(scope="module")
def woken(site, yarn, outliving):
    """Freeze the triggerer until another one has taken its triggers over; return it, awake again, and its job's id.

    Before the other one starts, a deferral ends at its execution_timeout though no triggerer enforces it, a task ends the
    training of another one that was marked as failed meanwhile, and a training ends, which then succeeds.
    """
    site.connect("backstop", yarn.hadoop.resourcemanager_url, unreachable_timeout=1)
    over = site.home / "triggerer-frozen"
    short = site.trigger("once_deferred", command=until_there(over))
    marked = site.trigger("once_deferred", command="sleep 600", queue="full")
    training(yarn, short)
    yarn.waiting(marked)
    first = triggerer_of(outliving.run)
    frozen = site.running.pop("triggerer")
    with site.suspended(frozen):
        overdue = site.trigger("backstop", command="sleep 600", queue="full")
        marked.mark_run("failed")
        cleanup = site.trigger("cleanup")
        cleanup.until_state("success", seconds=JOB)
        assert cleanup.xcom() == yarn.settled(marked, KILLED)
        ended_meanwhile(yarn, short, over)
        overdue.until_state("failed", seconds=2 * JOB)
        yarn.settled(overdue, KILLED)
        assert "execution_timeout is over, and the triggerer did not end" in overdue.log()
        assert overdue.xcom("tf_yarn_status")["reason"] == "EXECUTION_TIMEOUT"
        outliving.check()
        site.start("triggerer")
        until(lambda: triggerer_of(outliving.run) not in (None, first), 180, 0.5)
        succeeded(yarn, short)
    return frozen, first


def triggerer_of(run):
    return run.peek("(SELECT triggerer_id FROM trigger WHERE id = trigger_id)")


def test_frozen_triggerer_leaves_the_training_to_another(yarn, outliving, woken):
    """Airflow calls `on_kill` of a triggerer that wakes up after another one has taken its triggers over."""
    # On a busy machine Airflow's answer may come too late, and then the training is left as well.
    left = "is left to the triggerer that follows it now", "is left: this triggerer stood still"
    until(lambda: not yarn.live(outliving.run) or any(map(outliving.run.is_logged, left)), 240, 0.5)
    outliving.check()


def test_triggerer_is_terminated_and_another_takes_over(site, outliving, woken):
    site.stop("triggerer")
    site.running["triggerer"], first = woken
    until(lambda: triggerer_of(outliving.run) == first, 180, 0.5)
    outliving.check()


def ended_meanwhile(yarn, run, over):
    """End a training that no triggerer watches; its task stays deferred."""
    over.touch()
    until(lambda: not yarn.live(run), 60, 0.2)
    assert (run.task_state(), run.instance()["try_number"]) == ("deferred", 1)


# Four rows with one DAG run of a worker: the fixture of each begins where that of the row before has ended.
@pytest.fixture(scope="module")
def taken(site, yarn, outliving):
    """Kill the scheduler alone while two workers wait; return the run that goes on, its application, and a proxy.

    The other task has no retries: Airflow repeats it nevertheless. The tasks of the new scheduler reach the API server
    by the proxy.
    """
    over, last_over = site.home / "taken", site.home / "taken-in-its-last-try"
    run = site.trigger("lost_sync", command=until_there(over))
    last = site.trigger("once_sync", command=until_there(last_over))
    training(yarn, run, last)
    since = {each: each.instance()["try_number"] for each in (run, last)}
    ids = {each: yarn.ids(each) for each in (run, last)}
    site.kill_alone("scheduler")
    with Proxy(site.url) as server:
        site.start("scheduler", AIRFLOW__CORE__EXECUTION_API_SERVER_URL=f"{server.url}/execution/")
        for each in (run, last):
            attached(site, yarn, SimpleNamespace(run=each, application=ids[each][0]), since[each])
        last_over.touch()
        succeeded(yarn, last)
        yield SimpleNamespace(run=run, over=over, application=ids[run][0], server=server)
        over.touch()


@pytest.fixture(scope="module")
def after_the_api_server_hangs(site, yarn, taken):
    """Stop the API server's process for longer than Airflow waits for a heartbeat; return the run when the next try has attached."""
    since = taken.run.instance()["try_number"]
    worker, _ = taken.run.worker()
    with site.suspended(site.running["api-server"]):
        until(lambda: taken.run.peek("state") != "running", 120, 0.2)
    gone, _ = psutil.wait_procs([worker], 180)
    assert worker in gone, "Airflow's supervisor has not ended the worker"
    attached(site, yarn, taken, since)
    return taken


@pytest.fixture(scope="module")
def after_the_api_server(site, yarn, after_the_api_server_hangs):
    """Take the API server away until the worker is ended; return the run, and the log of the try that is ended so."""
    taken = after_the_api_server_hangs
    since = taken.run.instance()["try_number"]
    worker, _ = taken.run.worker()
    taken.server.away = True
    try:
        gone, _ = psutil.wait_procs([worker], 180)
        assert worker in gone, "Airflow's supervisor has not ended the worker"
        assert yarn.live(taken.run) == [taken.application]
    finally:
        taken.server.away = False
    attached(site, yarn, taken, since)
    return SimpleNamespace(**vars(taken), log=taken.run.log(attempt=since))


def attached(site, yarn, taken, since):
    """Wait until a later try has attached to the application, the only one that the run ever had."""
    run = taken.run

    def has_attached():
        later = run.peek("try_number") > since and run.peek("state") == "running"
        return later and run.is_logged(f"attached to {taken.application}", run.peek("try_number"))

    until(has_attached, JOB, 0.5)
    assert yarn.live(run) == yarn.ids(run) == [taken.application]


def test_scheduler_killed_alone_and_next_try_attaches(outliving, taken):
    """Airflow takes the tasks from workers that are still alive and ends them; what they train goes on."""
    outliving.check()


def test_api_server_hangs_and_next_try_attaches(outliving, after_the_api_server_hangs):
    """Airflow repeats the task meanwhile, and ends the worker when the API server answers again."""
    outliving.check()


def test_api_server_away_and_next_try_attaches(outliving, after_the_api_server):
    """The supervisor of a worker ends it after failed heartbeats; what it trains goes on, and the next try attaches."""
    assert "the next try attaches" in after_the_api_server.log
    outliving.check()


def test_deferred_tasks_make_one_call_for_each_interval(site, yarn):
    with fronting(yarn.hadoop) as (resourcemanager, _):
        site.connect("many", resourcemanager.url)
        run = site.trigger("many", queue="full")
        until(lambda: states(run).count("deferred") == MANY, 400, 1)
        lived = yarn.live(run)
        assert len(lived) == MANY
        # A change of an application's state may take a call of its own; then there is one list of all for each interval.
        until(lambda: is_one_list_for_each_interval(list(resourcemanager.requests)[-6:]), 120, 0.1)
        run.mark_run("failed")
        ended = yarn.gone(run, seconds=200)
        unlike = [item for item in ended if item["finalStatus"] != "KILLED"]
        # An Airflow that is short of time ends workers before they have deferred, which kill, and begins their tasks again.
        assert {item["id"] for item in ended} >= {*lived} and not unlike, unlike
        until(lambda: set(states(run)) == {"failed"}, 60, 0.5)


def is_one_list_for_each_interval(requests, interval=2.0):
    seconds = requests[-1][0] - requests[0][0]
    return {request[1:3] for request in requests} == {("GET", APPS)} and seconds >= (len(requests) - 1) * interval * 0.9


def states(run):
    return [instance["state"] for instance in run.site.get(f"{run.path}/taskInstances", limit=100)["task_instances"]]


def test_the_resourcemanager_is_down_for_half_a_minute_and_forgets(site, yarn, outliving, after_the_api_server):
    """The applications that it remembers continue; the one that it has forgotten is LOST, and leaves nothing."""
    lasting, unknown = after_the_api_server, site.trigger("once_deferred", command="sleep 600")
    training(yarn, unknown)
    [forgotten] = yarn.ids(unknown)
    yarn.hadoop.stop_daemon("rm", signal.SIGKILL)
    try:
        down = time.monotonic()
        kept = [*(yarn.hadoop.directory / "rm").rglob(f"RMAppRoot/{forgotten}")]
        assert kept, f"the ResourceManager did not store {forgotten}"
        for folder in kept:
            shutil.rmtree(folder)
        until(lambda: time.monotonic() - down >= 30, 60, 0.5)
        assert [run.task_state() for run in (outliving.run, unknown)] == ["deferred", "deferred"]
    finally:
        yarn.hadoop.start_daemon("rm")
    unknown.until_state("failed", seconds=JOB)
    assert unknown.xcom("tf_yarn_status")["reason"] == "LOST"
    assert yarn.ids(unknown) == []
    until(lambda: not yarn.processes(forgotten), JOB, 0.2)
    assert yarn.live(lasting.run) == [lasting.application]
    outliving.check()


def test_the_scheduler_is_terminated_and_comes_back(site, yarn, outliving, after_the_api_server):
    """It waits for its worker, and the application, to which three tries have attached, succeeds.

    So does the training that has outlived all.
    """
    lasting = after_the_api_server
    scheduler = site.running.pop("scheduler")
    scheduler.send_signal(signal.SIGTERM)
    lasting.over.touch()
    await_end(scheduler, signal.SIGTERM, 60)
    site.start("scheduler")
    lasting.run.until_state("success", seconds=2 * JOB)
    assert yarn.settled(lasting.run, SUCCEEDED) == [lasting.application]
    assert lasting.run.xcom()["application_id"] == lasting.application
    outliving.check()
    outliving.over.touch()
    succeeded(yarn, outliving.run)
    assert outliving.run.instance()["try_number"] == 1
