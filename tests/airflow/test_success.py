"""A task that succeeds or defers, on a fake ResourceManager: report, links, log, deferral, asset."""

import json
import math
from datetime import timedelta

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from support import airflow_setup
from support.airflow_task import ID, SECOND, USER, Running, deferral, report_of, run, task_log
from support.fake_yarn import application
from support.waiting import until
from tf_yarn_ops.airflow.outcome import build_event
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow


def test_synchronous_task_shows_its_links_before_it_stages(site, tmp_path):
    staged = {}
    operator = site.operator(name="digits", tensorboard=True, output_path="hdfs:///models/1")
    ti = airflow_setup.TaskInstance(
        on_push=lambda key: staged.setdefault(key, list((tmp_path / "files").rglob("application_*")))
    )
    with site.ending(metrics={"accuracy": 0.9}, output_path="hdfs:///models/1"):
        value = operator.execute(airflow_setup.context_of(ti))
    assert (value["reason"], value["metrics"], value["application_id"]) == ("SUCCEEDED", {"accuracy": 0.9}, ID)
    assert value == json.loads(json.dumps(value)) and "tf_yarn_status" not in ti.xcoms
    assert ti.xcoms["tf_yarn"] == {
        "application_id": ID,
        "tracking_url": f"{site.url}/proxy/{ID}/",
        "name": "digits",
        "queue": "default",
        "user": USER,
        "resourcemanager": site.url,
        "generation": 0,
        "attempt": 1,
        "deployment": "test",
        "input": None,
        "output_path": "hdfs:///models/1",
    }
    first = [key for key in staged if key != "tf_yarn_status"]
    assert len(first) == 5 and not any(staged[key] for key in first)


def test_the_log_names_the_application_and_each_state_once(site, capsys):
    task = Running(site.operator())

    def looks():
        return sum(
            str(parameters.get("applicationTags")).startswith("tfyd-") for _, _, parameters, *_ in site.yarn.requests
        )

    until(lambda: ID in site.yarn.apps)
    for state in ("ACCEPTED", "RUNNING"):
        site.yarn.apps[ID].update(state=state, trackingUrl=f"{site.url}/proxy/{ID}/")
        seen = looks()
        until(lambda seen=seen: looks() > seen + 2)
    site.end(ID)
    task.join(60)
    lines = task_log(capsys)
    assert lines[:6] == [
        f"YARN application {ID}",
        f"tracking URL {site.url}/proxy/{ID}/",
        f"{ID} ACCEPTED in queue default",
        f"{ID} RUNNING, {site.url}/proxy/{ID}/",
        f"{ID} FINISHED",
        f"{ID} SUCCEEDED: it ended",
    ]
    assert {"  in the queue  1.0 s", "  took          4.0 s"} <= {*lines}


def test_a_deferred_task_defers_once_and_its_trigger_knows_everything(site):
    ti = airflow_setup.TaskInstance()
    operator = site.operator(
        deferrable=True, execution_timeout=timedelta(hours=1), env={"MY_TOKEN": "geheim"}, queue_timeout=60, lease=900
    )
    deferred, context = deferral(operator, ti)
    classpath, kwargs = deferred.trigger.serialize()
    assert deferred.method_name == "execute_complete" and not deferred.kwargs
    assert classpath == "tf_yarn_ops.airflow.trigger.TensorFlowYarnTrigger"
    assert (kwargs["application_id"], kwargs["queue_timeout"], kwargs["on_kill"]) == (ID, 60, "kill")
    assert kwargs["lease"] == {"seconds": 900.0, "lifetime": 60.0 + 3900.0 + 300.0}  # that of the execution_timeout
    assert kwargs["deadline"] == ti.start_date.timestamp() + 3600
    assert 3600 < deferred.timeout.total_seconds() < 3630
    assert kwargs["cluster"]["resourcemanagers"] == [site.url]
    text = json.dumps(kwargs) + json.dumps(ti.xcoms)
    assert "geheim" not in text and "MY_TOKEN" not in text and len(json.dumps(kwargs)) < 4096
    site.end(ID, metrics={"loss": 1.0, "nan": math.nan})
    event = build_event(ID, report_of(Reason.SUCCEEDED))
    assert site.operator(deferrable=True).execute_complete(context, event)["metrics"] == {"loss": 1.0, "nan": "nan"}


def test_without_an_execution_timeout_nothing_ends_the_deferral(site):
    deferred, _ = deferral(site.operator(deferrable=True))
    assert deferred.timeout is None and deferred.trigger.deadline is None


def test_a_task_that_does_not_wait_ends_after_the_submission(site):
    operator = site.operator(wait_for_completion=False)
    value, ti, _ = run(operator)
    operator.on_kill()  # the worker is shut down while it tells Airflow of the success
    assert (value["application_id"], value["reason"], value["state"]) == (ID, None, "ACCEPTED")
    assert not site.yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state")
    assert ti.xcoms["tf_yarn"]["application_id"] == ID and site.yarn.apps[ID]["state"] == "ACCEPTED"


def test_later_attempt_attaches_or_takes_the_result(site):
    deferral(site.operator(deferrable=True))
    again, _ = deferral(site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2))
    assert again.trigger.application_id == ID and site.submissions() == 1
    site.end(ID, metrics={"a": 1})
    value, ti, _ = run(site.operator(deferrable=True), try_number=3)
    assert value["metrics"] == {"a": 1} and ti.xcoms["tf_yarn"]["application_id"] == ID and site.submissions() == 1


@pytest.mark.parametrize(
    "signs",
    [{"max_tries": 1}, {"clear_number": 1}, {"max_tries": 1, "clear_number": 1}],
    ids=["by the API without its run", "while it showed running", "after its end"],
)
def test_a_clear_trains_again_and_ends_the_older_generation(site, signs):
    """Airflow leaves max_tries when it clears a task that shows running; only the run's number of clears tells it."""
    deferral(site.operator(deferrable=True))
    cleared, _ = deferral(site.operator(deferrable=True), airflow_setup.TaskInstance(try_number=2, **signs))
    assert cleared.trigger.application_id == SECOND
    assert site.yarn.apps[ID]["state"] == "KILLED"
    with pytest.raises(AirflowFailException, match="SUPERSEDED"):
        run(site.operator(deferrable=True))  # a straggler of the older generation
    assert site.yarn.apps[SECOND]["state"] == "ACCEPTED"


def test_a_success_updates_the_asset_with_path_metrics_and_id(site):
    asset = Asset("s3://models/digits")
    operator = site.operator(
        model_asset="s3://models/digits", outlets=[Asset("s3://other")], output_path="s3://models/digits/7"
    )
    assert operator.outlets == [Asset("s3://other"), asset]
    with site.ending(metrics={"accuracy": 0.9}):
        _, _, context = run(operator)
    assert context["outlet_events"][asset].extra == {
        "model_path": "s3://models/digits/7",
        "metrics": {"accuracy": 0.9},
        "application_id": ID,
    }


def test_the_fake_is_not_what_makes_these_tests_pass(site):
    site.yarn.add(application(9, "RUNNING", user=USER))
    value, _, _ = run(site.operator(wait_for_completion=False))
    assert value["application_id"] == ID
