"""The live report of a running job, through its tracking URL."""

import json

import pytest

from support.fake_yarn import application
from support.place import ID, USER
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport


def test_the_live_report_comes_through_the_tracking_url(place):
    live = JobReport(ID, message="1 of 2 tasks run.", tasks=(TaskReport("worker:0", "running"),))
    document = live.to_dict() | {"cluster_spec": {"worker": ["a:1", "b:2"]}}
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = ("application/json", json.dumps(document))
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    launcher = place.launcher()
    assert launcher.report(ID).message == "1 of 2 tasks run."
    asked = [parameters for _, path, parameters, _, _ in place.yarn.requests if path.endswith("/status.json")]
    assert [parameters.get("only") for parameters in asked] == ["report"]  # the rest is large for many tasks
    assert launcher.cluster_spec(ID) == {"worker": ["a:1", "b:2"]}


@pytest.mark.parametrize(
    "kind, text",
    [
        ("text/html", "<html>"),
        ("application/json", "{"),
        ("application/json", "[]"),
        ("application/json", '{"schema": 99, "application_id": "x"}'),
    ],
)
def test_without_a_live_report_yarns_words_are_given(place, kind, text):
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = (kind, text)
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    report = place.launcher().report(ID)
    assert (report.state, report.tasks) == ("RUNNING", ())
    assert place.launcher().cluster_spec(ID) is None
