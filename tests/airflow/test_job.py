"""The job of a task: its name, its deadlines, its rendered options."""

from datetime import datetime, timedelta

import pytest

from support import airflow_setup
from support.airflow_task import ID, JOB, SECOND, deferral, run
from support.fake_yarn import STAMP
from support.hostile import HOSTILE, request_is_plain
from tf_yarn_ops.airflow import TensorFlowYarnOperator
from tf_yarn_ops.airflow.job import operator_job
from tf_yarn_ops.job.request import build_job

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("lifetime", "timeout", "total", "queue"),
    [
        ("auto", None, 604800, 86400),
        ("auto", timedelta(hours=1), 3900, 3900),
        (None, timedelta(hours=1), 604800, 86400),
        (7200, None, 7200, 7200),
        (timedelta(days=30), None, 604800, 86400),
    ],
)
def test_the_cluster_ends_what_everybody_has_forgotten(lifetime, timeout, total, queue):
    deadlines = operator_job(JOB, None, lifetime, timeout).deadlines
    assert (deadlines.total, deadlines.queue) == (total, queue)
    assert operator_job(JOB, None, None, None) == build_job(JOB)


def test_lifetime_follows_the_timeout_of_a_task_that_waits_and_kills(site):
    limits = {"execution_timeout": timedelta(hours=1), "deferrable": True, "queue_timeout": 1000}
    waiting, _ = deferral(site.operator(**limits))
    leaving, _ = deferral(site.operator(**limits, on_kill="leave"), airflow_setup.TaskInstance(task_id="b"))
    run(site.operator(**limits, wait_for_completion=False), task_id="c")
    ids = (ID, SECOND, f"application_{STAMP}_0003")
    assert (waiting.trigger.application_id, leaving.trigger.application_id) == ids[:2]
    ends = [
        datetime.strptime(site.yarn.apps[name]["lifetime"]["expiryTime"], "%Y-%m-%dT%H:%M:%S.000%z").timestamp()
        for name in ids
    ]
    assert [round(end - STAMP / 1000) for end in ends] == [1000 + 3900 + 300, 1000 + 604800 + 300, 1000 + 604800 + 300]


def test_the_application_is_named_like_its_task(site):
    run(site.operator(wait_for_completion=False))
    run(site.operator(wait_for_completion=False), task_id="group.search", map_index=3)
    run(site.operator(wait_for_completion=False, name="mine"), task_id="c")
    spec = {"tasks": {"worker": {"memory": 256}}, "command": "true", "name": "of the spec"}
    run(site.operator(wait_for_completion=False, spec=spec, task_command=None, cluster_requirement=None), task_id="d")
    assert [app["name"] for app in site.yarn.apps.values()] == [
        "daily.train",
        "daily.group.search[3]",
        "mine",
        "of the spec",
    ]


@pytest.mark.parametrize(
    ("value", "switched"), [("True", True), ("False", False), (" yes", True), (True, True), (False, False)]
)
def test_a_rendered_switch_is_a_switch(value, switched):
    options = TensorFlowYarnOperator(task_id="train", **JOB, tensorboard=value, output_path="x").options()
    assert (operator_job(options, None, None, None).tensorboard is not None) is switched


@pytest.mark.parametrize("form", [
    {"file": ["{}=/x/a"]}, {"file": {"{}": "/x/a"}}, {"file": ["x=hdfs:///x/{}"]}, {"archive": ["{}=/x/a.zip"]},
    {"script": "/x/{}"}, {"environment": "docker://{}"}, {"environment": "docker://tf", "output": "/{}"}, {"user": "{}"},
    {"env": {"A": "{}"}}, {"tag": ["{}"]}, {"queue": "{}"},
])  # fmt: skip
def test_no_argument_reaches_a_script_of_yarn(form):
    def filled(value, text):
        if isinstance(value, dict):
            return {filled(key, text): filled(item, text) for key, item in value.items()}
        return [filled(item, text) for item in value] if isinstance(value, list) else value.replace("{}", text)

    for text in HOSTILE:
        given = {key: filled(value, text) for key, value in form.items()}
        request_is_plain(lambda given=given: operator_job(JOB | given, None, None, None))
