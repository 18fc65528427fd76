"""What the machines of one Airflow know of its clusters, and a training that another machine has submitted."""

import json
import socket

import pytest
from airflow.sdk.exceptions import ErrorType

from support.airflow_task import ID, USER, VariableServer, run, task_log
from support.fake_yarn import FakeYarn, application, closed_address, serving
from tf_yarn_ops.airflow import machines as module
from tf_yarn_ops.airflow.exceptions import TfYarnInfrastructureError
from tf_yarn_ops.airflow.hook import YarnHook
from tf_yarn_ops.airflow.machines import MACHINES_VARIABLE, differences, read_machines, record_machine
from tf_yarn_ops.doctor import machine as facts_module
from tf_yarn_ops.doctor.machine import machine_facts
from tf_yarn_ops.launch.identity import Identity

pytestmark = pytest.mark.slow
SEVENTH = ID.replace("0001", "0007")
CONNECTION = "tf_yarn_default"
TASK = Identity('["airflow", "daily", "manual__1", "train", -1]', generation=1, attempt=1, deployment="prod")


@pytest.fixture
def server(monkeypatch):
    return VariableServer(monkeypatch, tf_yarn_deployment_id="prod")


def on(monkeypatch, host):
    monkeypatch.setattr(socket, "gethostname", lambda: host)


def noted(server):
    return json.loads(server.variables.get(MACHINES_VARIABLE, "{}")).get(CONNECTION, {})


def other_machine(site, server, **facts):
    """Let another machine have run a task of the same connection."""
    known = {**machine_facts(YarnHook().get_conn()), "seen": int(module.time.time()), **facts}
    server.variables[MACHINES_VARIABLE] = json.dumps({CONNECTION: {"wk1": known}})


def test_tasks_note_their_machines_and_warn_where_they_differ(site, server, tmp_path, monkeypatch, capsys):
    (tmp_path / "site.yaml").write_text("history_days: 5")
    for host, environ in {
        "wk1": {},
        "wk2": {"YTF_SITE": str(tmp_path / "site.yaml")},
        "wk3": {"__version__": "0.0.9"},
    }.items():
        with monkeypatch.context() as machine:
            on(machine, host)
            for name, value in environ.items():
                machine.setattr(facts_module, name, value) if name == "__version__" else machine.setenv(name, value)
            run(site.operator(task_id=host, wait_for_completion=False), task_id=host)
    assert {host: facts["user"] for host, facts in noted(server).items()} == dict.fromkeys(("wk1", "wk2", "wk3"), USER)
    sentences = differences(CONNECTION, read_machines()[CONNECTION])
    assert [sentence.split(" in ")[1].split()[0] for sentence in sentences] == ["site.history_days", "tf-yarn-ops"]  # fmt: skip
    assert "'5' on wk2 (" in sentences[0] and "'not set' on wk1 (" in sentences[0] and "Z), wk3 (" in sentences[0]
    warned = [line.split()[6] for line in task_log(capsys) if line.startswith("machines of")]
    assert warned == ["site.history_days", "site.history_days", "tf-yarn-ops"]
    well, text = YarnHook().test_connection()
    assert well and all(sentence in text for sentence in sentences)


def test_machine_is_noted_once_an_hour_and_forgotten_after_a_week(site, server, monkeypatch):
    cluster, now = YarnHook().get_conn(), [1e9]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    on(monkeypatch, "wk1")
    written = []
    for step in (0, 3000, 700, 7 * 86400):
        now[0] += step
        record_machine(CONNECTION, cluster)
        written.append(noted(server)["wk1"]["seen"] - 10**9)
    assert written == [0, 0, 3700, 3700 + 7 * 86400]
    for number in range(60):
        on(monkeypatch, f"pod{number}")
        now[0] += 1
        record_machine(CONNECTION, cluster)
    assert [*noted(server)] == [f"pod{number}" for number in range(10, 60)]


@pytest.mark.parametrize(
    "written", ["", "{", "[]", "1", '{"tf_yarn_default": 1}', '{"tf_yarn_default": {"wk1": {"seen": "now"}}}',
                '{"tf_yarn_default": {"wk1": {"seen": 9999999999, "user": 1, "resourcemanagers": ["x"]}}}',
                '{"tf_yarn_default": {"wk1": {"seen": 9999999999, "user": "a", "resourcemanagers": "x"}}}'])  # fmt: skip
def test_variable_that_somebody_has_written_is_begun_anew(site, server, monkeypatch, written):
    server.variables[MACHINES_VARIABLE] = written
    on(monkeypatch, "wk2")
    assert [*record_machine(CONNECTION, YarnHook().get_conn())] == ["wk2"] == [*noted(server)]


def test_silent_server_does_not_hold_up_a_submission(site, server, caplog):
    server.fault = ErrorType.API_SERVER_ERROR
    assert record_machine(CONNECTION, YarnHook().get_conn()) == {}
    assert "not compared with the others" in caplog.text


@pytest.mark.parametrize("way", ["another cluster", "another user"])
def test_training_of_another_machine_is_found_before_a_second_one(site, server, monkeypatch, way):
    """Each of the machines works alone; the retry on the other one would train again."""
    there, elsewhere = FakeYarn(), way == "another cluster"
    with serving(there) as url:
        addresses, user = ([url], USER) if elsewhere else ([site.url], "ann")
        yarn = there if elsewhere else site.yarn
        yarn.apps[SEVENTH] = application(7, user=user, applicationTags=",".join(TASK.tags))
        other_machine(site, server, resourcemanagers=addresses, user=user)
        on(monkeypatch, "wk2")
        with pytest.raises(TfYarnInfrastructureError) as error:
            run(site.operator(wait_for_completion=False), max_tries=1, try_number=2)
        assert f"{SEVENTH} of this task is RUNNING already, as {user} in {addresses[0]}, where wk1 looks" in str(
            error.value
        )
        assert site.submissions() == 0
        yarn.apps[SEVENTH]["state"] = "FINISHED"
        run(site.operator(wait_for_completion=False), max_tries=1, try_number=2)
        assert site.submissions() == 1


@pytest.mark.parametrize("other", ["one address of two", "no answer", "same user by the job"])
def test_machines_that_differ_without_harm_submit(site, server, monkeypatch, caplog, other):
    site.yarn.apps[ID] = application(1, user=USER, applicationTags=",".join(TASK.tags))
    address = closed_address() if other == "no answer" else site.url
    facts = {"user": "ann"} if other == "same user by the job" else {"resourcemanagers": sorted([address, site.url])}
    if other == "no answer":
        facts["resourcemanagers"] = [address]
        monkeypatch.setattr(module, "_PATIENCE", 0.1)
    other_machine(site, server, **facts)
    on(monkeypatch, "wk2")
    value, *_ = run(site.operator(wait_for_completion=False, user=USER), max_tries=1, try_number=2)
    assert value["application_id"] == ID and site.submissions() == 0
    assert ("no answer of" in caplog.text) == (other == "no answer")
