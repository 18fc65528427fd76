"""The identity of a training, by what Airflow tells a task."""

from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import ErrorType
from airflow.sdk.execution_time.comms import PutVariable

from support import airflow_setup
from support.airflow_task import VariableServer as Server
from tf_yarn_ops.airflow.exceptions import TfYarnInfrastructureError
from tf_yarn_ops.airflow.task_instance import deployment_conflict, deployment_id, identity_of

pytestmark = pytest.mark.slow


def identity(deployment="here", **values):
    return identity_of(deployment, airflow_setup.context_of(airflow_setup.TaskInstance(**values)))


def test_identity_is_the_task_generation_the_clears_attempt_the_tries():
    first, retry = identity(), identity(try_number=2)
    cleared, while_running = identity(try_number=2, max_tries=1, clear_number=1), identity(try_number=2, clear_number=1)
    assert first.hash == retry.hash == cleared.hash == while_running.hash
    assert [(i.generation, i.attempt) for i in (first, retry)] == [(0, 1), (0, 2)]
    assert cleared.generation > while_running.generation > first.generation
    assert (
        identity(max_tries=9).generation < identity(try_number=2, max_tries=2, clear_number=1).generation
    )  # retries lowered
    others = [identity("there")]
    for name, value in (("dag_id", "x"), ("run_id", "x"), ("task_id", "x"), ("map_index", 0)):
        others.append(identity(**{name: value}))
    assert len({first.hash, *(other.hash for other in others)}) == 6


def context(started="2026-11-28T10:00:00.123456+00:00"):
    return {"dag_run": SimpleNamespace(start_date=started)}


def test_machines_of_one_airflow_have_one_deployment(monkeypatch, caplog):
    """The first names it; the settings and the environment of the others have no effect."""
    server = Server(monkeypatch)
    name = deployment_id(context())
    assert server.variables == {"tf_yarn_deployment_id": name}
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/")
    monkeypatch.setenv("AIRFLOW_VAR_TF_YARN_DEPLOYMENT_ID", "of this machine")
    assert deployment_id(context("later")) == name and not caplog.messages
    monkeypatch.setenv("AIRFLOW__TF_YARN__DEPLOYMENT_ID", "other")
    assert deployment_id(context("later")) == name
    assert [text for text in caplog.messages if "'other'" in text and repr(name) in text] == [deployment_conflict()]


def test_two_airflows_with_equal_settings_have_two_deployments(monkeypatch):
    names = set()
    for started in ("2026-11-28T10:00:00.123456+00:00", "2026-11-28T10:00:00.123457+00:00", None, None):
        Server(monkeypatch)
        names.add(deployment_id(context(started)))
    assert len(names) == 4


def test_the_setting_names_an_airflow_without_a_name(monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__TF_YARN__DEPLOYMENT_ID", "prod")
    server = Server(monkeypatch, tf_yarn_deployment_id="")
    assert deployment_id(context()) == server.variables["tf_yarn_deployment_id"] == "prod" and not caplog.messages


def test_two_first_tasks_at_the_same_time_agree_on_the_later_name(monkeypatch):
    server, send = Server(monkeypatch), Server.send

    def race(self, message):
        answer = send(self, message)
        if isinstance(message, PutVariable):  # of another task, which has read before this one has written
            self.variables[message.key] = "theirs"
        return answer

    monkeypatch.setattr(Server, "send", race)
    assert deployment_id(context()) == server.variables["tf_yarn_deployment_id"] == "theirs"


def test_a_server_that_does_not_answer_is_no_other_deployment(monkeypatch):
    Server(monkeypatch, tf_yarn_deployment_id="prod").fault = ErrorType.API_SERVER_ERROR
    with pytest.raises(TfYarnInfrastructureError, match="variable tf_yarn_deployment_id"):
        deployment_id(context())
