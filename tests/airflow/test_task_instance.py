"""The identity of a training, by what Airflow tells a task."""

import pytest

from support import airflow_setup
from tf_yarn_ops.airflow.task_instance import deployment_id, identity_of

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


def test_deployment_is_its_id_else_its_address_else_a_warning(monkeypatch, caplog):
    assert deployment_id() == "http://localhost:8080" and "deployment_id" not in caplog.text
    assert deployment_id(warn=True) == "http://localhost:8080" and "deployment_id" in caplog.text
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/")
    assert deployment_id() == "https://airflow.example.com"
    monkeypatch.setenv("AIRFLOW__TF_YARN__DEPLOYMENT_ID", "prod")
    assert deployment_id() == "prod"
