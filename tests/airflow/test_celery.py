"""Airflow with CeleryExecutor, Redis, PostgreSQL and workers on two machines, which differ: what ends and stops there."""

import json
import shutil
import signal
from datetime import date, timedelta
from types import SimpleNamespace

import httpx
import pytest

import tf_yarn_ops
from support.airflow_rows import (
    FAILED,
    HOSTILE,
    JOB,
    KILLED,
    SUCCEEDED,
    Yarn,
    all_at_once,
    kill_both,
    row,
    until_there,
)
from support.airflow_run import Run
from support.airflow_site import ROWS
from support.celery_site import WORKERS, CeleryAirflowSite
from support.packages import product_wheel
from support.waiting import until
from tf_yarn_ops.runtime.common.values import plain_values

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]


#: PostgreSQL, which refuses more than SQLite and writes large floats as integers, holds it.
RESULT = {**HOSTILE, "huge": 1e30}


@pytest.fixture(scope="module")
def site(minicluster, tmp_path_factory):
    """Return a running `CeleryAirflowSite` with the DAGs of the rows; the minicluster is its connection tf_yarn_default."""
    folder = tmp_path_factory.mktemp("celery")
    (folder / "dags").mkdir()
    shutil.copy(ROWS.with_name("celery_rows.py"), folder / "dags")
    (folder / "result.json").write_text(json.dumps(RESULT))
    with CeleryAirflowSite(folder, folder / "dags", product_wheel(folder / "source")) as site:
        site.connect("tf_yarn_default", minicluster.resourcemanager_url)
        site.call("POST", "pools", name="trainings", slots=2, include_deferred=True)
        site.await_worker()
        yield site


@pytest.fixture(scope="module")
def yarn(minicluster):
    return Yarn(minicluster)


@pytest.fixture(scope="module")
def under_way(request, site, yarn):
    with all_at_once(request, site, yarn) as rows:
        yield rows


# It waits for a minute, so it begins first.
@row("sync")
def test_execution_timeout_kills(site, yarn, kind):
    run = site.trigger(f"limited_{kind}")
    run.until_state("failed", seconds=JOB)
    yarn.settled(run, *[KILLED] * len(yarn.ids(run)))  # none where a minute was too short for the submission


@row("deferred")
def test_mapped_tasks_train_as_many_at_once_as_the_pool_has_slots(site, yarn, kind):
    """The last one trains once another has ended."""
    run, most = site.trigger("pooled"), set()

    def last_trains():
        live = yarn.live(run)
        most.add(len(live))
        if 2 in most:
            (site.folder / "pooled-over").touch()
        return (
            len(yarn.ids(run)) == 3 and len(live) == 1 and yarn.programs(*live) and ended(run) == ["failed", "success"]
        )

    until(last_trains, 2 * JOB, 1)
    assert max(most) == 2
    return run


def ended(run):
    """Return the states of the mapped tasks that have ended."""
    tasks = run.site.get(f"{run.path}/taskInstances")["task_instances"]
    return sorted(task["state"] for task in tasks if task["state"] in ("failed", "skipped", "success"))


@row("deferred", continues=test_mapped_tasks_train_as_many_at_once_as_the_pool_has_slots)
def test_dagrun_timeout_kills(site, yarn, kind, run):
    run.make_older(hours=2)
    until(lambda: ended(run) == ["failed", "skipped", "success"], JOB, 1)
    *others, last = [(item["state"], item["finalStatus"]) for item in yarn.gone(run, seconds=120)]
    assert (sorted(others), last) == ([FAILED, SUCCEEDED], KILLED)
    assert run.state == "failed"


@row("sync")
def test_missed_and_backfilled_days_train_once_each(site, yarn, kind):
    """A pause of the DAG leaves what trains alone, and begins nothing."""
    dag = f"pipeline_{kind}"

    def days(number):
        runs = site.get(f"dags/{dag}/dagRuns", order_by="logical_date")["dag_runs"]
        return len(runs) == number and {item["logical_date"][:10]: Run(site, dag, item["dag_run_id"]) for item in runs}

    site.call("PATCH", f"dags/{dag}", is_paused=False)
    ((last, run),) = until(lambda: days(1), JOB, 1).items()
    application = yarn.training(run)
    site.call("PATCH", f"dags/{dag}", is_paused=True)
    before = str(date.fromisoformat(last) - timedelta(days=1))
    body = {"max_active_runs": 5, "run_backwards": False, "dag_run_conf": {}, "reprocess_behavior": "none"}
    site.call("POST", "backfills", dag_id=dag, from_date=f"{before}T00:00:00Z", to_date=f"{before}T00:00:00Z", **body)
    (site.folder / f"{dag}-over").touch()
    run.until_state("success", seconds=JOB)
    assert yarn.settled(run, SUCCEEDED) == [application]
    site.call("PATCH", f"dags/{dag}", is_paused=False)
    every = until(lambda: days(2), JOB, 1)
    assert sorted(every) == [before, last]
    every[before].until_state("success", seconds=JOB)
    yarn.settled(every[before], SUCCEEDED)
    return run


@row("sync", continues=test_missed_and_backfilled_days_train_once_each)
def test_task_behind_a_training_has_its_report(site, yarn, kind, run):
    """One that is deferred: test_deferred_task_of_a_paused_dag_ends_once_it_is_unpaused."""
    check_report(run, yarn)


def check_report(run, yarn):
    """Assert that all who read what a task has left, once it has ended, get it: a task behind it, its asset, its page."""
    [application] = yarn.settled(run, SUCCEEDED)
    until(lambda: run.instance("read")["state"] == "success", JOB, 0.5)
    seen = run.xcom(task="read")
    assert (seen["host"] in WORKERS, seen["reason"]) == (True, "SUCCEEDED")
    assert seen["metrics"].items() >= {**plain_values(HOSTILE), "huge": "1e+30"}.items()
    events = run.site.get("assets/events", limit=100)["asset_events"]
    [event] = [item for item in events if (item["source_dag_id"], item["source_run_id"]) == (run.dag, run.id)]
    assert event["extra"]["metrics"] == seen["metrics"]
    assert run.instance()["hostname"] in WORKERS
    lines = run.log()
    assert application in lines, "the worker's machine, or the triggerer, serves its log"
    texts = ("1.10", "0x10", "1_000", "True", "1.10")  # of a DAG with native objects
    assert all(f"TEXT_{number}={text}" in lines for number, text in enumerate(texts)), lines[-4000:]
    check_links(run, yarn, application)


def check_links(run, yarn, application):
    """Assert that the links of a task lead to pages of its application."""
    links = run.links()
    for name in ("Training", "YARN application", "YARN logs"):
        assert application.removeprefix("application_") in links[name]
        assert yarn.client.get(links[name], follow_redirects=True).is_success, links[name]


# What these two leave trains on.
@row("sync")
def test_retry_attaches_after_the_loss_of_worker_and_supervisor(site, yarn, kind):
    run = site.trigger("lost_sync", command=until_there(site.folder / "other-over"))
    application = yarn.training(run)
    kill_both(*run.worker())
    attached(run, application, 1)
    return run


@row("sync")
def test_cleared_training_is_killed_and_trains_again(site, yarn, kind):
    run = site.trigger("lost_sync", command="sleep 3600")
    first = yarn.training(run)
    run.until_state("running")
    run.clear()
    until(lambda: first not in yarn.live(run), JOB, 0.5)
    assert yarn.training(run) != first
    return run


@row("deferred")
def test_training_of_a_deleted_dag_is_killed(site, yarn, kind):
    run = site.trigger("deleted")
    application = yarn.training(run)
    run.until_state("deferred")
    site.call("DELETE", "dags/deleted")
    until(lambda: not yarn.live(run), 120, 0.5)
    assert yarn.settled(run, KILLED) == [application]


def attached(run, application, since):
    """Wait until a try behind the one with this number has attached to the application."""

    def has_attached():
        number = run.peek("try_number")
        return number > since and run.peek("state") == "running" and f"attached to {application}" in run.log(number)

    until(has_attached, JOB, 1, run.log)


# Each of the tests below takes away what all tasks need, or the worker that has them.
@pytest.fixture(scope="module")
def lasting(site, yarn, under_way):
    """Return two trainings that wait in workers and one that is deferred, which go on through all that follows."""

    def played(test):
        row = under_way.get((test.__name__, "sync"))  # there is none where -k has not selected the test
        return row.result() if row else test.body(site, yarn, "sync")

    deferred = site.trigger("pipeline_deferred")
    one = played(test_cleared_training_is_killed_and_trains_again)
    other = played(test_retry_attaches_after_the_loss_of_worker_and_supervisor)
    lasting = SimpleNamespace(one=one, other=other, deferred=deferred, sync=[one, other], ids={})
    for run in (one, other, deferred):
        lasting.ids[run] = yarn.training(run)
        run.until_state("deferred" if run is deferred else "running")
    before = {run: yarn.ids(run)[:-1] for run in lasting.ids}  # what the clear has ended

    def check():
        """Assert that each of them has one application more than before, which trains."""
        for run, application in lasting.ids.items():
            assert yarn.ids(run) == [*before[run], application], run.log()[-4000:]
            assert yarn.live(run) == [application], run.log()[-4000:]

    lasting.check = check
    check_links(one, yarn, lasting.ids[one])
    yield lasting
    for name in ("other", "pipeline_deferred"):
        (site.folder / f"{name}-over").touch()


def tries(lasting):
    return {run: run.instance()["try_number"] for run in lasting.ids}


def worker_of(run):
    """Return the worker of a run, and the other one."""
    run.worker()  # it lives
    worker = run.instance()["hostname"]
    return worker, *({*WORKERS} - {worker})


def await_followed(lasting, worker):
    """Wait until a worker follows all trainings that wait in workers."""
    run = lasting.one

    def is_followed(run):
        return (run.peek("state"), run.peek("hostname")) == ("running", worker)

    attached = f"attached to {lasting.ids[run]}"
    until(lambda: all(map(is_followed, lasting.sync)) and attached in run.log(), JOB, 1, run.log)
    lasting.check()


def test_message_that_is_delivered_again_trains_once(site, yarn, lasting):
    """Airflow drops it, or, when its token has expired, fails the try, and the next one attaches."""
    since = tries(lasting)
    site.deliver_again(lasting.one)
    until(lambda: any("ignoring redelivered message" in site.tail(name, 10**6) for name in WORKERS), JOB, 0.5)
    assert (lasting.one.task_state(), tries(lasting)) == ("running", since)
    site.deliver_again(lasting.other, token="expired")
    attached(lasting.other, lasting.ids[lasting.other], since[lasting.other])
    lasting.check()


def test_database_is_killed_and_trainings_go_on(site, lasting):
    """Scheduler and triggerer end themselves without it, and are started again."""
    site.stop("postgres", signal.SIGKILL)
    until(lambda: site.running["scheduler"].poll() is not None, JOB, 0.5)
    site.start("postgres")
    (since,) = site.query("SELECT now()")

    def healthy():
        site.revive()
        try:
            health = site.client.get("/api/v2/monitor/health").json()
        except (httpx.HTTPError, ValueError):
            return False
        return all(health[name]["status"] == "healthy" for name in ("metadatabase", "scheduler", "triggerer"))

    until(healthy, JOB, 1)
    # Supervisors that have failed meanwhile end their tasks, and the next try attaches.
    for run in lasting.sync:
        until(
            lambda run=run: run.peek("state") == "running" and run.peek("last_heartbeat_at") > since, JOB, 0.5, run.log
        )
    lasting.check()


def test_second_triggerer_takes_over_from_a_killed_one(site, lasting):
    first = until(lambda: (lasting.deferred.instance()["triggerer_job"] or {}).get("id"), JOB, 0.5)
    site.start("triggerer-2")
    site.stop("triggerer", signal.SIGKILL)
    until(lambda: (lasting.deferred.instance()["triggerer_job"] or {}).get("id") not in (None, first), JOB, 0.5)
    assert (lasting.deferred.task_state(), lasting.deferred.instance()["try_number"]) == ("deferred", 1)
    lasting.check()


def test_cold_shutdown_leaves_trainings_to_the_other_worker(site, lasting):
    """And a running DAG can't be deleted."""
    worker, other = worker_of(lasting.one)
    site.stop(worker, signal.SIGQUIT, JOB)
    await_followed(lasting, other)
    assert site.client.delete("/api/v2/dags/lost_sync").status_code == 409
    lasting.check()


def test_machine_of_another_user_and_version_trains_nothing_again(site, yarn, lasting):
    """It is the only one that is left; the connection's test lists it."""
    follows, other = worker_of(lasting.one)
    version = site.home_of(other) / "site-packages" / "tf_yarn_ops" / "__init__.py"
    text, settings = version.read_text(), site.folder / "site.yaml"
    version.write_text(text.replace(f'"{tf_yarn_ops.__version__}"', '"0.0.9"'))
    settings.write_text("history_days: 5\n")
    site.start(other, HADOOP_USER_NAME="somebody", YTF_SITE=str(settings))
    site.await_worker(other)
    site.stop(follows, signal.SIGKILL)
    refused = f"of this task is RUNNING already, as root in {yarn.hadoop.resourcemanager_url}, where {follows} looks"
    run = lasting.one
    until(lambda: run.peek("hostname") == other, JOB, 1, run.log)
    lines = until(lambda: f"{lasting.ids[run]} {refused}" in (log := run.log()) and log, JOB, 1, run.log)
    lasting.check()
    tested = site.call("POST", "connections/test", connection_id="any", conn_type="tf_yarn",
                       host=yarn.hadoop.resourcemanager_url)  # fmt: skip
    for fact in ("user", "login", "tf-yarn-ops", "site.history_days"):
        sentence = f"machines of this Airflow differ in {fact} of tf_yarn_default: "
        assert sentence in lines and sentence in tested["message"], (tested, lines)
    site.stop(other, signal.SIGTERM, JOB)
    version.write_text(text)


def test_retry_attaches_on_the_other_machine(site, lasting):
    """The machines differ in ``[api] base_url`` and ``[tf_yarn] deployment_id``."""
    corrected = lasting.one.instance()["hostname"]
    site.start(corrected)
    await_followed(lasting, corrected)


def test_deferred_task_of_a_paused_dag_ends_once_it_is_unpaused(site, yarn, lasting):
    """What it leaves is as if it had not waited."""
    run = lasting.deferred
    application = lasting.ids.pop(run)
    site.call("PATCH", f"dags/{run.dag}", is_paused=True)
    (site.folder / f"{run.dag}-over").touch()
    run.until_state("scheduled", seconds=JOB)
    site.call("PATCH", f"dags/{run.dag}", is_paused=False)
    assert run.until_state("success", seconds=JOB)["try_number"] == 1
    assert yarn.ids(run) == [application]
    check_report(run, yarn)


def test_broker_is_killed_and_trainings_go_on(site, lasting):
    since = tries(lasting)
    worker, _ = worker_of(lasting.one)
    site.stop("redis", signal.SIGKILL)
    until(lambda: "Cannot connect to redis" in site.since_start(worker), JOB, 0.5)
    site.start("redis")
    assert tries(lasting) == since and {run.task_state() for run in lasting.sync} == {"running"}
    lasting.check()


def test_training_that_is_marked_failed_is_killed(yarn, lasting):
    run = lasting.one
    run.mark("failed")
    assert yarn.settled(run, KILLED, KILLED, seconds=120)[-1] == lasting.ids.pop(run)
    lasting.check()


def test_warm_shutdown_waits_for_trainings(site, yarn, lasting):
    """By Airflow's command, which sends SIGTERM."""
    since, run = tries(lasting), lasting.other
    worker, _ = worker_of(run)
    process = site.stop_by_airflow(worker)
    until(lambda: "Warm shutdown" in site.since_start(worker), JOB, 0.5)
    lasting.check()
    (site.folder / "other-over").touch()
    run.until_state("success", seconds=JOB)
    assert (process.wait(JOB), tries(lasting)) == (0, since)
    assert yarn.settled(run, SUCCEEDED) == [lasting.ids[run]]
