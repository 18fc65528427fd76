"""A chief and a worker that train on the fake ResourceManager, with pages that name their logs."""

import json

from support.airflow_task import ID
from support.fake_yarn import STAMP
from support.waiting import until
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

CONTAINERS = {
    name: f"container_{STAMP}_0001_01_00000{number}" for number, name in enumerate(("chief:0", "worker:0"), 2)
}


def tasks_of(url, **fields):
    return tuple(
        TaskReport(
            name,
            container_id=container,
            starts=1,
            **fields,
            log_url=f"{url}/node/containerlogs/{container}/ann/{name.partition(':')[0]}.log",
        )
        for name, container in CONTAINERS.items()
    )


def trains(site):
    """Let the first application run, with a page that names its tasks."""
    until(lambda: ID in site.yarn.apps)
    site.yarn.apps[ID].update(state="RUNNING", trackingUrl=f"{site.url}/proxy/{ID}/")
    report = JobReport(ID, state="RUNNING", tasks=tasks_of(site.url, state="running"))
    site.yarn.pages[f"/proxy/{ID}/pages/ytf/status.json"] = "application/json", json.dumps(report.to_dict())
