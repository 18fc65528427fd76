"""Every way in which a task of Airflow ends, on real processes: the state in Airflow, the state in YARN, what is left.

Airflow's four processes and a real Hadoop; people and faults act by REST and by signals.
"""

import json
import signal

import pytest

import tf_yarn_ops
from support.airflow_rows import (
    FAILED,
    HOSTILE,
    JOB,
    KILLED,
    SECRET,
    SUCCEEDED,
    Yarn,
    all_at_once,
    in_turn,
    kill_both,
    row,
    until_there,
)
from support.waiting import until
from tf_yarn_ops.runtime.common.values import plain_values

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def under_way(request, airflow_site, minicluster):
    with all_at_once(request, airflow_site, Yarn(minicluster)) as rows:
        yield rows


# Three rows with one DAG run, which loses its worker again and again. The longest rows begin first.
@row("sync")
def test_terminated_worker_leaves_training_and_retry_attaches(site, yarn, kind):
    run = site.trigger(
        f"often_{kind}",
        command=in_turn(site.home / f"lost-{kind}", "sleep 600", until_there(site.home / f"lost-{kind}-over")),
    )
    application = yarn.training(run)
    run.worker()[1].send_signal(signal.SIGTERM)
    attached(run, 2, application)
    assert yarn.live(run) == yarn.ids(run) == [application]
    return run


@row("sync")
def test_terminated_worker_kills_in_its_last_try(site, yarn, kind):
    run = site.trigger(f"once_{kind}", command="sleep 600")
    yarn.training(run)
    run.until_state("running")
    run.worker()[1].send_signal(signal.SIGTERM)
    yarn.settled(run, KILLED)
    run.until_state("failed")


@row("sync", continues=test_terminated_worker_leaves_training_and_retry_attaches)
def test_task_cleared_after_the_loss_of_its_machine_trains_again(site, yarn, kind, run):
    lost = yarn.training(run)
    kill_both(*run.worker())
    assert run.task_state() == "running"
    run.clear()
    until(lambda: lost not in yarn.live(run), JOB, 0.2)
    second = yarn.training(run)
    assert (run.until_state("running")["try_number"], yarn.ids(run)) == (3, [lost, second])
    assert yarn.ending(lost) == KILLED
    return run


@row("sync", continues=test_task_cleared_after_the_loss_of_its_machine_trains_again)
def test_a_worker_crashes_and_the_retry_attaches_to_the_live_application(site, yarn, kind, run):
    known = yarn.ids(run)
    run.worker()[0].kill()
    attached(run, 4, known[-1])
    assert (yarn.ids(run), yarn.live(run)) == (known, known[-1:])
    (site.home / f"lost-{kind}-over").touch()
    assert run.until_state("success", seconds=JOB)["try_number"] == 4
    assert yarn.settled(run, KILLED, SUCCEEDED) == known
    assert run.xcom()["application_id"] == known[-1]


def attached(run, attempt, application):
    """Wait until the attempt has attached to the application."""
    until(lambda: run.peek("try_number") == attempt and run.is_logged(f"attached to {application}", attempt), JOB, 0.2)
    assert run.task_state() == "running"


# It waits for 90 s, so it begins early too.
@row("deferred")
def test_execution_timeout(site, yarn, kind):
    run = site.trigger(f"short_task_{kind}", command="sleep 600", queue="full")
    run.until_state("failed", seconds=JOB)
    yarn.settled(run, KILLED)
    assert "execution_timeout" in run.log()
    assert run.xcom("tf_yarn_status")["reason"] == "EXECUTION_TIMEOUT"


DEEP = '{"deep": ' + "[" * 300 + "]" * 300 + "}"


def printing(go_on):
    """Return a command that prints a secret, trains until a file is there, prints the secret again and fails."""
    return f"echo it learns with $VAULT; {until_there(go_on)}; echo it went wrong with $VAULT >&2; exit 3"


def assert_lines_come_while_it_trains(run, state):
    until(lambda: run.is_logged("worker:0 | it learns with ***"), JOB, 0.5)
    assert (run.task_state(), "worker:0 | it learns with ***" in run.log()) == (state, True)


def assert_no_secret(site):
    leaks = [file for file in site.home.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert leaks == [], "neither the database nor a log has the secret that the program prints"


@pytest.mark.door
@row("deferred")
def test_retry_trains_again_and_success_has_metrics(site, yarn, kind):
    """Neither try is disturbed by metrics that Airflow could not hold as they are. The first one's lines come while it trains.

    Each try goes on until the scheduler has seen its deferral (apache/airflow#72716).
    """
    deep, hostile = site.home / f"deep-{kind}.json", site.home / f"hostile-{kind}.json"
    deep.write_text(DEEP)
    hostile.write_text(json.dumps(HOSTILE))
    fails, succeeds = (site.home / f"{kind}-{word}" for word in ("fails", "succeeds"))
    run = site.trigger(f"printing_{kind}", command=in_turn(
        site.home / f"trained-{kind}", f'cp {deep} "$YTF_RESULT_FILE"; {printing(fails)}',
        f'cp {hostile} "$YTF_RESULT_FILE"; cp {hostile} "$YTF_METRICS_FILE"; {until_there(succeeds)}', "sleep 600",
        "sleep 5"))  # fmt: skip
    assert_lines_come_while_it_trains(run, "deferred")
    for attempt, go_on in ((1, fails), (2, succeeds)):
        until(lambda attempt=attempt: run.is_deferral_seen(attempt), JOB, 0.2)
        go_on.touch()
    assert run.until_state("success", seconds=2 * JOB)["try_number"] == 2
    _, first = yarn.settled(run, FAILED, SUCCEEDED)
    value = run.xcom()
    assert (value["application_id"], value["reason"]) == (first, "SUCCEEDED")
    assert value["metrics"].items() >= plain_values(HOSTILE).items()
    failed = run.log(attempt=1)
    assert "TfYarnJobFailed" in failed and "it went wrong with ***" in failed
    assert run.xcom("tf_yarn_status") is None, "the report stands once"
    assert len(json.dumps(value)) <= 16 * 1024
    assert run.xcom("tf_yarn")["application_id"] == first
    assert run.log().count(first) >= 1
    assert_no_secret(site)
    return run


@row("deferred", continues=test_retry_trains_again_and_success_has_metrics)
def test_cleared_task_trains_again_also_while_it_trains(site, yarn, kind, run):
    first = run.xcom()["application_id"]
    until(lambda: run.state == "success", JOB, 0.5)  # a scheduler that is just ending the run writes over a clear
    run.clear()
    second = yarn.training(run)
    assert second != first
    run.clear()
    until(lambda: second not in yarn.live(run), 60, 0.2)
    run.until_state("success", seconds=2 * JOB)
    *_, third = yarn.settled(run, FAILED, SUCCEEDED, KILLED, SUCCEEDED)
    assert run.xcom()["application_id"] == third


@row("deferred")
def test_marked_failed_while_its_links_are_shown(site, yarn, kind):
    """A task that waits in a worker: test_celery.py::test_training_that_is_marked_failed_is_killed."""
    run = site.trigger(f"retry_{kind}", command="sleep 600")
    application = yarn.training(run)
    run.until_state("deferred")
    links = run.links()
    for name in ("Training", "YARN application", "YARN logs"):
        assert application.removeprefix("application_") in links[name]
        assert yarn.client.get(links[name], follow_redirects=True).is_success, links[name]
    page = until(lambda: "The job trains" in (text := yarn.client.get(links["Training"]).text) and text, 60, 0.5)
    assert application in page and links["Training"].endswith("/pages/ytf/")
    run.mark("failed")
    yarn.settled(run, KILLED, seconds=120)
    assert run.task_state() == "failed"


@row("sync")
def test_a_failed_program_fails_the_task(site, yarn, kind):
    """Its lines are in the log while it trains; its secret is nowhere. Deferred: the first try of the row with a retry."""
    go_on = site.home / f"go-on-{kind}"
    run = site.trigger(f"once_{kind}", command=printing(go_on))
    assert_lines_come_while_it_trains(run, "running")
    go_on.touch()
    run.until_state("failed", seconds=JOB)
    [application] = yarn.settled(run, FAILED)
    status = run.xcom("tf_yarn_status")
    assert (status["application_id"], status["reason"], status["first_failure"]) == (
        application,
        "TASK_FAILED",
        "worker:0",
    )
    links = run.links()
    assert links["YARN logs"] == links["YARN application"], "this cluster has no log server"
    for name in ("Training", "YARN application", "YARN logs"):
        assert yarn.client.get(links[name], follow_redirects=True).is_success, links[name]
    assert "it went wrong with ***" in status["tasks"][0]["log_tail"] and "it went wrong with ***" in run.log()
    assert_no_secret(site)


@row("sync")
def test_a_worker_crashes_and_the_retry_takes_the_result_of_meanwhile(site, yarn, kind):
    over = site.home / "meanwhile"
    run = site.trigger(f"lost_{kind}", command=f"""{until_there(over)}; echo '{{"loss": 1}}' > $YTF_RESULT_FILE""")
    application = yarn.training(run)
    run.worker()[0].kill()
    run.until_state("up_for_retry", seconds=JOB)
    over.touch()
    until(lambda: not yarn.live(run), 60, 0.2)
    assert run.until_state("success", seconds=JOB)["try_number"] == 2
    assert yarn.settled(run, SUCCEEDED) == [application]
    assert run.xcom()["metrics"] == {"loss": 1}


# A worker loses its heartbeat, a trigger is cancelled, whatever of the task or its run was marked as what: one kind each.
@row("deferred")
def test_marked_success(site, yarn, kind):
    run = site.trigger(f"retry_{kind}", command="sleep 600", queue="full")
    yarn.waiting(run)
    run.mark("success")
    yarn.settled(run, KILLED, seconds=120)
    assert run.task_state() == "success"
    lines = (site.home / "triggerer.log").read_text(errors="replace")  # to make one takes it minutes on a busy machine
    assert "the triggerer makes an API server" not in lines or "this triggerer stood still" in lines + run.log()


@row("sync")
def test_the_dag_run_is_marked_failed(site, yarn, kind):
    run = site.trigger(f"retry_{kind}", command="sleep 600", queue="full")
    yarn.waiting(run)
    run.mark_run("failed")
    yarn.settled(run, KILLED, seconds=20)
    assert (run.task_state(), run.state) == ("failed", "failed")


@row("deferred")
def test_an_application_that_is_killed_from_outside_is_not_retried(site, yarn, kind):
    run = site.trigger(f"retry_{kind}", command="sleep 600", queue="full")
    application = yarn.waiting(run)
    until(run.is_deferral_seen, JOB, 0.2)
    yarn.kill(application)
    assert run.until_state("failed", seconds=60)["try_number"] == 1
    yarn.settled(run, KILLED)
    assert run.xcom("tf_yarn_status")["reason"] == "KILLED"


@row("sync")
def test_task_that_fails_before_it_submits_has_a_clear_log(site, yarn, kind):
    """The file and its folder, no XCom that is not there, and warnings about this task only."""
    fileless, unrendered = (site.trigger(name, command="true") for name in ("fileless", "unrendered"))
    for run in (fileless, unrendered):
        run.until_state("failed", seconds=JOB)
        assert yarn.ids(run) == []
    lines, warning = fileless.log(), "queue='ml' names a queue of Airflow's executor"
    machine = f"{fileless.instance()['hostname']}, in "
    assert f"SPEC_INVALID: files.train.py: there is no not/there.py on this machine ({machine}/" in lines, lines
    assert "'nothing' is undefined" in unrendered.log() and warning not in unrendered.log(), unrendered.log()
    assert lines.count(f"train: {warning}") == 1, lines
    supervisors = (site.home / "scheduler.log").read_text(errors="replace").splitlines()
    for run in (fileless, unrendered):
        lines = [line for line in supervisors if run.id in line and "XCom not found" in line]
        assert lines == [] and "XCom not found" not in run.log(), lines


def test_airflow_lists_the_provider_and_shows_the_form_of_its_connection(airflow_site):
    [listed] = [
        provider
        for provider in airflow_site.get("providers", limit=100)["providers"]
        if provider["package_name"] == "tf-yarn-ops"
    ]
    assert listed["version"] == tf_yarn_ops.__version__
    answer = airflow_site.client.get("/ui/connections/hook_meta")
    [form] = [meta for meta in answer.raise_for_status().json() if meta["connection_type"] == "tf_yarn"]
    assert form["hook_name"] == "TensorFlow on YARN"
    assert {name: field["schema"]["title"] for name, field in form["extra_fields"].items()} == {
        "site_file": "Site file",
        "hadoop_conf_dir": "HADOOP_CONF_DIR",
        "staging": "Staging directory",
        "submit_with": "Submit with",
    }
    fields = form["standard_fields"]
    assert (fields["host"]["title"], fields["password"]["hidden"]) == ("ResourceManager", True)
