"""The last values of a program's metrics in the task's log, also while the task is deferred."""

import asyncio
import json
import logging

import pytest

from tf_yarn_ops.airflow import progress
from tf_yarn_ops.follow.live_report import LiveReports
from tf_yarn_ops.runtime.common.report import JobReport, JobUsage

APP = "application_1700000000000_0001"


@pytest.mark.parametrize("state", ["RUNNING", "ACCEPTED"])
def test_the_log_has_the_metrics_of_a_job_that_trains(yarn, cluster, monkeypatch, caplog, state):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(progress, "METRICS_SECONDS", 0.0)
    monkeypatch.setattr(progress, "STARTING_SECONDS", 0.0)
    document = JobReport(APP, state="RUNNING", metrics={"step": 200, "loss": 0.25},
                         usage=JobUsage(3.4, 5222.0, 8192, "worker:3", 0.92)).to_dict()
    yarn.pages["/proxy/x/pages/ytf/status.json"] = ("application/json", json.dumps(document))
    lines, live = progress._Lines(logging.getLogger("task"), APP), LiveReports(cluster)
    lines.tell(JobReport(APP, state=state, tracking_url=f"{yarn.url}/proxy/x/"))

    async def look():
        await lines.measure(live)
        lines.remind()
        lines.tell(JobReport(APP, state=state, tracking_url=f"{yarn.url}/proxy/x/", message="again"))

    asyncio.run(look())
    live.close()
    told = [record.getMessage() for record in caplog.records if record.name == "task"]
    using = "cpu 3.4 cores, memory 5.1 of 8.0 GiB, most used: worker:3 92 %"
    assert (f"metrics: step 200, loss 0.25 ({using})" in told) == (state == "RUNNING")
