"""Trainings whose tasks in Airflow are over, on a fake ResourceManager: which are ended, by which user, and which stay."""

import json
import time

import pytest

from support import airflow_setup
from support.airflow_task import ID, SECOND, deferral
from support.fake_yarn import slowly
from tf_yarn_ops.airflow import TensorFlowYarnCleanupOperator, cleanup, task_instance
from tf_yarn_ops.airflow.hook import YarnHook
from tf_yarn_ops.launch.identity import Identity

pytestmark = pytest.mark.slow
THIRD = ID.replace("0001", "0003")


@pytest.fixture
def states(monkeypatch):
    """Return the states of task instances by their names, as Airflow's server knows them; others run."""
    known = {}

    def state_of(dag_id, run_id, task_id, map_index, ask=None):
        return known.get((task_id, map_index), "running")

    monkeypatch.setattr(task_instance, "state_of", state_of)
    return known


def submitted(site, task, **options):
    """Leave an application of a task, as a deferral does."""
    values = {"task_id": task, "deferrable": True, **options}
    index = values.pop("map_index", -1)
    ti = airflow_setup.TaskInstance(task_id=task, map_index=index)
    if values.get("wait_for_completion") is False:
        site.operator(**values).execute(airflow_setup.context_of(ti))
        return None
    return deferral(site.operator(**values), ti)[0].trigger


def ended(site):
    return TensorFlowYarnCleanupOperator(task_id="end").execute({})


@pytest.mark.parametrize("state", ["failed", "success", "skipped", "removed", "upstream_failed"])
def test_the_training_of_a_task_that_is_over_is_ended(site, states, state):
    submitted(site, "train", map_index=3)
    states["train", 3] = state
    assert ended(site) == [ID] and site.yarn.apps[ID]["state"] == "KILLED"
    why = site.yarn.apps[ID]["diagnostics"]
    assert f"its task daily.train[3] of run manual__1 is over ({state})" in why


@pytest.mark.parametrize("state", ["running", "deferred", "queued", "up_for_retry", "restarting", "None", ""])
def test_the_training_of_a_task_that_is_not_over_or_unknown_stays(site, states, state):
    submitted(site, "train")
    states["train", -1] = state
    assert ended(site) == [] and site.yarn.apps[ID]["state"] == "ACCEPTED"


@pytest.mark.parametrize("options", [{"on_kill": "leave"}, {"wait_for_completion": False}], ids=["left", "not awaited"])
def test_a_training_that_goes_on_without_its_task_stays(site, states, options):
    submitted(site, "train", **options)
    states["train", -1] = "success"
    assert ended(site) == [] and site.yarn.apps[ID]["state"] == "ACCEPTED"


def test_a_submission_ends_the_abandoned_trainings_of_other_tasks(site, states):
    submitted(site, "other")
    submitted(site, "alive")
    states["other", -1] = "failed"
    submitted(site, "train")
    assert [site.yarn.apps[name]["state"] for name in (ID, SECOND, THIRD)] == ["KILLED", "ACCEPTED", "ACCEPTED"]


def test_a_look_that_fails_does_not_disturb_a_submission(site, states):
    submitted(site, "other")
    states["other", -1] = "failed"
    site.yarn.faults.append(lambda method, path: (403, {}, "no") if method == "PUT" else None)
    submitted(site, "train")
    assert site.yarn.apps[SECOND]["state"] == "ACCEPTED"


def abandoned(site, states, number):
    """Leave the applications of so many tasks that are over."""
    for index in range(number):
        submitted(site, "mapped", map_index=index)
    states.update({("mapped", index): "failed" for index in range(number)})


def left(site):
    return [name for name, app in site.yarn.apps.items() if app["state"] != "KILLED"]


def test_submission_kills_so_many_abandoned_trainings_at_most(site, states, monkeypatch):
    monkeypatch.setattr(cleanup, "_MOST", 2)
    abandoned(site, states, 4)
    submitted(site, "train")
    assert len(left(site)) == 3


@pytest.mark.parametrize(("seconds", "most"), [(0.6, 2), (6, 0)], ids=["slow", "hangs"])
def test_submission_spends_seconds_on_abandoned_trainings(site, states, monkeypatch, seconds, most):
    """Also where YARN does not answer to a kill; the cleanup, which has no limit, ends the others."""
    abandoned(site, states, 4)
    monkeypatch.setattr(cleanup, "_SECONDS", 1.0)
    kills = slowly(seconds, "PUT")
    site.yarn.faults.append(lambda method, path: kills(method, path) if path.endswith("/state") else None)
    began = time.monotonic()
    cleanup.kill_abandoned(YarnHook().get_conn(), "test", "")
    assert time.monotonic() - began < 5
    assert len(left(site)) >= 4 - most
    site.yarn.faults.clear()
    ended(site)
    assert left(site) == []


@pytest.mark.parametrize("key", ["ytf-submit digits", json.dumps(["azkaban", "a", "b", "c", 1])])
def test_the_trainings_of_another_engine_are_no_business_of_airflow(key):
    assert cleanup.over(Identity(key).key) == ""
