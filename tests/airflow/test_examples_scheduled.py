"""The DAGs of dags_examples by a real scheduler: catch-up, a pool, and a DAG that a model's asset schedules.

The retraining trains on ``local://``; days on YARN: test_celery.py::test_missed_and_backfilled_days_train_once_each.
They train and predict with stand-ins; the programs themselves run in tests/examples/test_digits.py and
test_examples_in_one_process.py, and the options of the search in tests/launch/test_jobs_cluster.py::test_a_single_task_trains.
"""

import json
from collections import Counter
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

from support.airflow_examples import DAYS, TRAINING, Lake, digits
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900, func_only=True)]

EXAMPLES = (
    "digits_first_training",
    "digits_model_training",
    "digits_predictions",
    "digits_retraining",
    "digits_s3_training",
    "digits_search",
)
#: What the search tries, in the order of its mapped tasks.
SEARCHED = [{"learning_rate": rate, "batch_size": size} for rate in (0.1, 0.00001) for size in (128,)]

#: Slots of the pool: fewer than candidates. A pool of two: test_celery.py.
SLOTS = 1


@pytest.fixture(scope="module")
def airflow(minicluster, airflow_site):
    """Return an Airflow in which the examples run at once: the retraining, unpaused, has begun to catch up."""
    lake, data = Lake(minicluster, "digits"), digits()
    lake.write("digits.npz", data)
    # The first day has few images, the second has labels that are wrong, the third is as it should be.
    few = {name: array[:150] if name.startswith("train") else array for name, array in data.items()}
    wrong = {**data, "train_labels": (data["train_labels"] + 1) % 10}
    local = airflow_site.home / "local"
    (local / "days").mkdir(parents=True)
    for day, arrays in zip(DAYS, (few, wrong, data), strict=True):
        np.savez(local / "days" / f"{day}.npz", **arrays)
    airflow_site.connect("local", f"local://{local}/jobs")
    airflow_site.call("POST", "variables", key="local_folder", value=str(local))
    airflow_site.call("POST", "pools", name="tf_yarn", slots=SLOTS, include_deferred=True)
    for dag in EXAMPLES:
        airflow_site.call("PATCH", f"dags/{dag}", is_paused=False)
    airflow_site.trigger("digits_search", steps=120)
    airflow_site.trigger("digits_model_training")
    return SimpleNamespace(site=airflow_site, lake=lake, local=local, minicluster=minicluster)


def finished(site, dag, count=1, seconds=TRAINING):
    """Wait until so many runs of the DAG have ended, and give them in the order of their logical dates."""

    def ended():
        runs = site.get(f"dags/{dag}/dagRuns", order_by="run_after")["dag_runs"]
        return (
            len(runs) >= count and all(run["state"] in ("success", "failed") for run in runs[:count]) and runs[:count]
        )

    return until(ended, seconds, 2)


def tasks(site, run):
    """Return the task instances of a run, with what each returned as ``value``."""
    path = f"dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}"
    found = site.get(f"{path}/taskInstances", limit=100, order_by="map_index")["task_instances"]
    for task in found:
        answer = site.client.get(f"/api/v2/{path}/taskInstances/{task['task_id']}/xcomEntries/return_value", params={
            "map_index": task["map_index"], "deserialize": "false", "stringify": "false"})  # fmt: skip
        task["value"] = answer.json()["value"] if answer.is_success else None
    return found


def only(found, task_id):
    (task,) = [task for task in found if task["task_id"] == task_id]
    return task


def events(site, asset):
    """Return what the asset's events carry, the oldest first."""
    found = site.get("assets/events", order_by="timestamp", limit=100)["asset_events"]
    return [event["extra"] for event in found if event["name"] == asset]


def test_search_fills_the_slots_of_the_pool_and_takes_the_best(airflow):
    site, lake = airflow.site, airflow.lake
    (run,) = finished(site, "digits_search", seconds=2 * TRAINING)
    found = tasks(site, run)
    assert Counter((task["task_id"], task["state"]) for task in found) == {
        ("train", "success"): len(SEARCHED), ("best", "success"): 1}  # fmt: skip
    trained = [task for task in found if task["task_id"] == "train"]
    reports = [task["value"] for task in trained]
    assert {task["pool"] for task in trained} == {"tf_yarn"}
    for number, task in enumerate(trained):
        assert task["rendered_fields"]["output_path"].endswith(f"/{number}")
        assert task["rendered_fields"]["op_kwargs"] == SEARCHED[number]
    assert len({report["application_id"] for report in reports}) == len(SEARCHED)
    assert {report["metrics"]["steps"] for report in reports} == {120}

    best = only(found, "best")["value"]
    accuracies = [report["metrics"]["accuracy"] for report in reports]
    assert best["accuracy"] == max(accuracies) >= 0.93
    assert best["model"] == reports[accuracies.index(max(accuracies))]["metrics"]["model"]
    assert lake.files(best["model"]) == ["weights.npz"]
    assert accuracies[-1] < min(accuracies[:-1])  # a learning rate of 0.00001 gets nowhere in so few steps
    assert at_once(airflow.minicluster, reports) == SLOTS


def at_once(minicluster, reports):
    """Return how many of the applications were alive at the same time, at most, by the ResourceManager's clock."""
    changes = []
    for report in reports:
        answer = httpx.get(
            f"{minicluster.resourcemanager_url}/ws/v1/cluster/apps/{report['application_id']}",
            headers={"Accept": "application/json"},
            trust_env=False,
        )
        application = answer.json()["app"]
        changes += [(application["startedTime"], 1), (application["finishedTime"], -1)]
    alive, most = 0, 0
    for _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def test_missed_days_train_in_order_and_only_better_models_are_promoted(airflow):
    site, local = airflow.site, airflow.local
    runs = finished(site, "digits_retraining", 3, seconds=2 * TRAINING)
    assert [(run["logical_date"][:10], run["run_type"], run["state"]) for run in runs] == [
        (day, "scheduled", "success") for day in DAYS]  # fmt: skip
    assert [run["end_date"] for run in runs[:2]] < [run["start_date"] for run in runs[1:]]
    promoted = []
    for day, run in zip(DAYS, runs, strict=True):
        found = tasks(site, run)
        train, promote = only(found, "train"), only(found, "promote")
        assert train["rendered_fields"]["input"] == f"{local}/days/{day}.npz"
        assert train["value"]["output_path"] == f"{local}/models/{day}"
        assert train["value"]["name"] == f"digits {day}"
        metrics = train["value"]["metrics"]
        if promote["state"] == "success":
            promoted.append({"model": metrics["model"], "accuracy": metrics["accuracy"]})
        else:
            assert promote["state"] == "skipped" and metrics["accuracy"] <= promoted[-1]["accuracy"]
    assert [entry["model"] for entry in promoted] == [f"{local}/models/{day}/model" for day in (DAYS[0], DAYS[2])]
    assert promoted[0]["accuracy"] < promoted[1]["accuracy"] >= 0.95
    assert events(site, "digits_model_in_use") == promoted


def test_a_new_model_starts_the_dag_that_predicts_with_it(airflow):
    site, lake = airflow.site, airflow.lake
    (run,) = finished(site, "digits_model_training")
    report = only(tasks(site, run), "train")["value"]
    assert run["state"] == "success", report
    (run,) = finished(
        site, "digits_predictions"
    )  # Airflow can't list the event before the run that it caused has begun
    (event,) = events(site, "digits_model")
    assert {name: event[name] for name in ("model_path", "metrics", "application_id")} == {
        "model_path": report["output_path"], "metrics": report["metrics"],
        "application_id": report["application_id"]}  # fmt: skip
    assert (run["run_type"], run["state"]) == ("asset_triggered", "success")
    published = report["output_path"]
    assert published == f"{lake.url}/served/1" and lake.files(f"{published}/model") == ["weights.npz"]
    marker = json.loads(lake.read(f"{published}/_SUCCESS"))
    assert (marker["application_id"], marker["version"]) == (report["application_id"], 1)
    assert sorted(lake.files(f"{lake.url}/served")) == ["1", "LATEST"]  # the event came after the commit
    found = tasks(site, run)
    assert only(found, "newest_model")["value"] == f"{published}/model"
    predicted = only(found, "predict")["value"]
    assert predicted["metrics"] == {
        "predictions": 360, "accuracy": report["metrics"]["accuracy"], "model": f"{published}/model"}  # fmt: skip
    assert len(lake.read(f"{predicted['output_path']}/predictions.csv").splitlines()) == 360
