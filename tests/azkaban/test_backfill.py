"""``ytf azkaban backfill`` against Azkaban's interface on the wire: which dates are run, and that none is run twice."""

import os
from datetime import date

import pytest
from click.testing import CliRunner

from support.fake_azkaban import FLOW, PASSWORD, PROJECT, USER, serving_azkaban
from support.fake_yarn import closed_address
from tf_yarn_ops.azkaban.commands import azkaban as command
from tf_yarn_ops.azkaban.job_execution import BACKFILL_DATE as MARK
from tf_yarn_ops.azkaban.scheduler.backfill import Backfill, Plan, dates_between
from tf_yarn_ops.azkaban.scheduler.web_api import FLOW_ENDED, WebServer
from tf_yarn_ops.errors import ClusterUnreachable, SpecInvalid, SubmissionRejected

FIRST, SECOND, THIRD = days = dates_between(date(2026, 10, 31), date(2026, 11, 2))


@pytest.fixture
def azkaban():
    with serving_azkaban() as fake:
        yield fake


@pytest.fixture
def server(azkaban):
    found = WebServer(azkaban.url, USER, PASSWORD, patience=0.0)
    yield found
    found.close()


def plan(dates=days, **values):
    return Plan(PROJECT, FLOW, dates, {"date": "%Y-%m-%d"}, **values)


def ending(azkaban, status="SUCCEEDED", **others):
    """Return a sleep in which everything that runs ends; `others` are statuses by the date."""
    most = []

    def sleep(seconds):
        live = [number for number, found in azkaban.executions.items() if found["status"] not in FLOW_ENDED]
        most.append(len(live))
        for number in live:
            day = azkaban.executions[number]["parameters"].get(MARK)
            azkaban.end(number, others.get(f"on_{day}".replace("-", "_"), status))

    sleep.most = most
    return sleep


def started(azkaban):
    return [values["flowOverride[date]"] for path, values in azkaban.requests if values.get("ajax") == "executeFlow"]


def run(azkaban, server, what, sleep=None):
    lines = []
    left = Backfill(server, what, lines.append, sleep or ending(azkaban)).run()
    return left, lines


def test_each_date_runs_once_and_one_after_the_other(azkaban, server):
    sleep = ending(azkaban)
    left, lines = run(azkaban, server, plan(), sleep)
    assert left == [] and sleep.most == [1, 1, 1]
    assert started(azkaban) == ["2026-10-31", "2026-11-01", "2026-11-02"]
    assert azkaban.executions[1]["parameters"] == {"date": "2026-10-31", MARK: "2026-10-31"}
    assert lines[:2] == ["2026-10-31 starts: execution 1", "2026-10-31 SUCCEEDED: execution 1"]
    assert all(
        values["concurrentOption"] == "ignore" for _, values in azkaban.requests if "flowOverride[date]" in values
    )


def test_the_same_command_again_trains_nothing(azkaban, server):
    run(azkaban, server, plan())
    left, lines = run(azkaban, server, plan())
    assert left == [] and len(azkaban.executions) == 3
    assert lines == [f"{day} is done: execution {number}" for number, day in enumerate(days, 1)]


def test_what_was_left_running_is_waited_for_and_what_failed_runs_again(azkaban, server):
    azkaban.add("FAILED", **{MARK: str(FIRST)})
    azkaban.add("RUNNING", **{MARK: str(SECOND)})
    azkaban.add("SUCCEEDED", **{MARK: str(THIRD)})
    azkaban.add("FAILED", **{MARK: str(THIRD)})  # a later try does not undo the success
    azkaban.add("SUCCEEDED", date=str(FIRST))  # not of a backfill
    azkaban.add("SUCCEEDED", ["train"], **{MARK: str(FIRST)})  # with the training disabled
    left, lines = run(azkaban, server, plan(at_once=2))
    assert left == [] and started(azkaban) == [str(FIRST)]
    assert lines[:2] == [f"{SECOND} runs already: execution 2 is RUNNING", f"{THIRD} is done: execution 3"]


def test_a_parameter_that_a_job_sets_itself_is_refused(azkaban, server):
    azkaban.jobs |= {"train": {"type": "command", "date": "2020-01-01"}, "other": {"type": "command", "x": "${date}"}}
    with pytest.raises(SpecInvalid, match="parameter: the job train sets date itself, and Azkaban lets the job win"):
        run(azkaban, server, plan())
    assert started(azkaban) == []


def test_parameter_that_nothing_refers_to_is_refused(azkaban, server):
    azkaban.properties.clear()
    azkaban.jobs["other"] = {"type": "command", "command": "echo ${dates} ${hour}"}
    with pytest.raises(SpecInvalid) as refused:
        run(azkaban, server, Plan(PROJECT, FLOW, days, {"dat": "%Y-%m-%d", "hour": "%H"}))
    assert str(refused.value) == (
        "parameter: no job of the flow and none of the properties that they inherit has ${dat} (did you mean 'date'?)"
    )
    assert started(azkaban) == []


@pytest.mark.parametrize("name", ["date", "day", "tf.args", "env.DAY"])
def test_parameter_that_reaches_a_job_otherwise_is_accepted(azkaban, server, name):
    """Azkaban sets it in inherited properties, these refer to it, or a job type reads it."""
    azkaban.jobs = {"train": {"type": "tensorflow-yarn"}, "other": {"type": "noop"}}
    assert run(azkaban, server, Plan(PROJECT, FLOW, [FIRST], {name: "%d"}))[0] == []
    pages = [values["prop"] for _, values in azkaban.requests if "prop" in values]
    assert len(pages) == len(set(pages))


def test_again_runs_dates_that_have_succeeded_beside_none_that_runs(azkaban, server):
    azkaban.add("SUCCEEDED", **{MARK: str(FIRST)})
    azkaban.add("RUNNING", **{MARK: str(SECOND)})
    azkaban.add("SUCCEEDED", **{MARK: str(SECOND)})
    left, lines = run(azkaban, server, plan([FIRST, SECOND], again=True))
    assert left == [] and started(azkaban) == [str(FIRST)]
    assert f"{SECOND} runs already: execution 2 is RUNNING" in lines


def test_an_older_execution_that_still_runs_counts_before_a_later_failure(azkaban, server):
    azkaban.add("RUNNING", **{MARK: str(FIRST)})
    azkaban.add("FAILED", **{MARK: str(FIRST)})
    left, _ = run(azkaban, server, plan([FIRST]))
    assert left == [] and started(azkaban) == []


def test_an_interrupted_backfill_finds_its_executions(azkaban, server):
    def interrupt(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(azkaban, server, plan(at_once=2), interrupt)
    assert run(azkaban, server, plan(at_once=2))[0] == []
    assert started(azkaban) == list(map(str, days))


@pytest.mark.slow
def test_at_most_so_many_run_at_once(azkaban, server):
    sleep = ending(azkaban)
    run(azkaban, server, plan(dates_between(date(2026, 1, 1), date(2026, 1, 7)), at_once=3), sleep)
    assert sleep.most == [3, 3, 1]


@pytest.mark.parametrize(
    "keep_going, wanted", [(False, ([FIRST, SECOND, THIRD], [FIRST])), (True, ([FIRST], [FIRST, SECOND, THIRD]))]
)
def test_a_failure_ends_the_backfill_unless_it_shall_go_on(azkaban, server, keep_going, wanted):
    left, lines = run(azkaban, server, plan(keep_going=keep_going), ending(azkaban, on_2026_10_31="FAILED"))
    assert (left, started(azkaban)) == (wanted[0], list(map(str, wanted[1])))
    assert f"{FIRST} FAILED: execution 1" in lines
    assert (f"{THIRD} was not started, because another date failed" in lines) is not keep_going


@pytest.mark.slow
def test_more_executions_than_one_answer_holds_are_looked_at(azkaban, server):
    azkaban.add("SUCCEEDED", **{MARK: str(FIRST)})
    for _ in range(130):
        azkaban.add("SUCCEEDED", date="x")
    assert run(azkaban, server, plan([FIRST]))[1] == [f"{FIRST} is done: execution 1"]


def test_a_session_that_has_ended_is_renewed(azkaban, server):
    azkaban.add("RUNNING")
    assert server.status(1) == "RUNNING"
    azkaban.session = "another"
    assert server.status(1) == "RUNNING" and azkaban.logins == 2
    azkaban.session = "a third"
    assert server.execute(PROJECT, FLOW, {}) == 2 and azkaban.logins == 3 and len(azkaban.executions) == 2


def test_no_secret_stands_in_an_address(azkaban, server):
    run(azkaban, server, plan([FIRST]))
    assert not any(
        PASSWORD.partition("&")[0] in path or "session" in path or MARK in path for path, _ in azkaban.requests
    )


def test_unanswered_start_is_not_repeated_and_found_by_the_next_call(azkaban, server):
    def broken(path, values):
        if values.get("ajax") == "executeFlow":
            azkaban.answer(path, values)
            azkaban.faults.clear()
            return 502, "<html>proxy</html>"

    azkaban.faults.append(broken)
    with pytest.raises(ClusterUnreachable, match="answers, but not as an Azkaban web server: HTTP 502"):
        run(azkaban, server, plan([FIRST]))
    assert run(azkaban, server, plan([FIRST]))[1][0] == f"{FIRST} runs already: execution 1 is PREPARING"
    assert len(azkaban.executions) == 1


@pytest.mark.parametrize(
    "password, project, flow, text",
    [
        ("wrong", PROJECT, FLOW, "Azkaban refuses the login of ann: Incorrect Login"),
        (PASSWORD, "nope", FLOW, "Azkaban refuses fetchflowgraph: Project nope doesn't exist"),
        (PASSWORD, PROJECT, "nope", "Azkaban refuses fetchflowgraph: Flow nope not found"),
        (PASSWORD, PROJECT, FLOW, "Azkaban has not started train: Flow train for project digits is locked"),
    ],
)
def test_refusal_of_azkaban_is_reported(azkaban, password, project, flow, text):
    azkaban.locked = True
    server, lines = WebServer(azkaban.url, USER, password, patience=0.0), []
    with pytest.raises(SubmissionRejected, match=text):
        Backfill(server, Plan(project, flow, [FIRST], {}), lines.append, ending(azkaban)).run()
    server.close()
    assert lines == [] and azkaban.executions == {}


@pytest.mark.parametrize("away", [True, False], ids=["away", "refused"])
def test_a_fault_of_the_server_gets_a_hint_of_azkaban(azkaban, monkeypatch, away):
    monkeypatch.setattr(
        "tf_yarn_ops.azkaban.scheduler.web_api.WebServer.__init__.__kwdefaults__", {"ca_file": None, "patience": 0.0}
    )
    done = call(
        "--url",
        closed_address() if away else azkaban.url,
        "--login",
        USER,
        "--project",
        PROJECT,
        "--flow",
        "nope",
        "--from",
        "2026-11-01",
        "--to",
        "2026-11-01",
        AZKABAN_PASSWORD=PASSWORD,
    )
    assert done.return_value == (4 if away else 3)
    hint = (
        "Check --url and that Azkaban" if away else "Correct the login, the project, the flow or your rights in Azkaban"
    )
    assert hint in done.stderr and "next: the same command again" in done.stderr and "ytf list" not in done.stderr


def test_absent_server_is_reported_with_its_address():
    server = WebServer(closed_address(), USER, PASSWORD, patience=0.0)
    with pytest.raises(ClusterUnreachable, match=r"Check the address \(--url or \$AZKABAN_URL\)"):
        server.status(1)
    server.close()


# --- the command --------------------------------------------------------------------------------


def call(*words, **environ):
    runner = CliRunner()
    return runner.invoke(
        command, ["backfill", *words], env={"AZKABAN_PASSWORD": None, **environ}, standalone_mode=False
    )


@pytest.mark.slow
def test_command_runs_the_rest_and_fails_if_an_execution_failed(azkaban, tmp_path, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.azkaban.scheduler.backfill.BACKFILL_INTERVAL", 0.0)
    azkaban.faults.append(
        lambda path, values: (
            [azkaban.end(number, "FAILED" if number == 2 else "SUCCEEDED") for number in azkaban.executions] and None
        )
    )
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    words = ["--url", azkaban.url, "--login", USER, "--password-file", str(file), "--project", PROJECT, "--flow", FLOW,
             "--from", "2026-11-01", "--to", "2026-11-15", "--every", "7", "--parameter", "day=%d", "--parameter",
             "date=%Y%m%d"]  # fmt: skip
    first = call(*words)
    assert first.return_value == 1, first.output
    assert "2 of 3 dates have no success: 2026-11-08, 2026-11-15. next: the same command again" in first.output
    assert azkaban.executions[1]["parameters"] == {"day": "01", "date": "20261101", MARK: "2026-11-01"}
    again = call(*words)
    assert again.return_value == 0 and "all 3 dates are done" in again.output
    azkaban.faults.append(
        lambda path, values: [azkaban.end(number, "FAILED") for number in azkaban.executions if number > 4] and None
    )
    assert call(*words, "--again").output.endswith("next: the same command again with --from 2026-11-01\n")


def test_every_fault_of_the_arguments_is_reported(azkaban):
    result = call(
        "--url",
        azkaban.url,
        "--project",
        PROJECT,
        "--flow",
        FLOW,
        "--from",
        "2026-11-02",
        "--to",
        "2026-11-01",
        "--parameter",
        "date",
    )
    assert isinstance(result.exception, SpecInvalid)
    assert [str(fault) for fault in result.exception.faults] == [
        "parameter: 'date' is not NAME=FORMAT, for example date=%Y-%m-%d",
        "to: 2026-11-01 is before the first date, 2026-11-02",
        "password_file: missing; give a file with the password, or set AZKABAN_PASSWORD",
    ]
    assert azkaban.requests == [] and "AZKABAN_PASSWORD" not in os.environ
