"""The links of a task, while the application runs and after its end."""

from dataclasses import replace

import pytest

from support.airflow_task import ID, report_of
from tf_yarn_ops.airflow.links import (
    TensorBoardLink,
    TrainingLink,
    YarnApplicationLink,
    YarnLogsLink,
    urls_of,
    urls_of_ended,
)
from tf_yarn_ops.runtime.common.report import TaskReport

pytestmark = pytest.mark.slow

RESOURCEMANAGER = "http://rm:8088"
LINKS = (TrainingLink(), YarnApplicationLink(), YarnLogsLink(), TensorBoardLink())
ENDED = f"{RESOURCEMANAGER}/cluster/app/{ID}"


def urls(found):
    return [found[link.xcom_key] for link in LINKS]


@pytest.mark.parametrize("tensorboard", [True, False])
def test_links_of_a_running_application(tensorboard):
    page = f"{RESOURCEMANAGER}/proxy/{ID}/pages"
    attempt = f"appattempt_{ID.removeprefix('application_')}_000001"
    assert urls(urls_of(RESOURCEMANAGER, ID, tensorboard)) == [
        f"{page}/ytf/",
        ENDED,
        f"{RESOURCEMANAGER}/cluster/appattempt/{attempt}",
        f"{page}/tensorboard/" if tensorboard else "",
    ]


def test_links_of_an_ended_application_lead_to_the_log_that_matters():
    tasks = tuple(TaskReport(f"worker:{index}", log_url=f"http://nm/{index}") for index in range(2))
    report = report_of(tasks=tasks, first_failure="worker:1")
    assert urls(urls_of_ended(RESOURCEMANAGER, report, True)) == [ENDED, ENDED, "http://nm/1", ""]
    assert urls(urls_of_ended(RESOURCEMANAGER, report, False))[2] == ENDED
    assert urls(urls_of_ended(RESOURCEMANAGER, replace(report, first_failure=""), True))[2] == "http://nm/0"
    assert urls(urls_of_ended(RESOURCEMANAGER, replace(report, tasks=()), True))[2] == ENDED


def test_links_drop_log_urls_that_are_no_web_address():
    report = report_of(tasks=(TaskReport("worker:0", "failed", log_url="javascript://evil/%0aalert(1)"),))
    assert urls(urls_of_ended(RESOURCEMANAGER, report, True))[2] == ENDED


def test_job_of_this_machine_has_no_links():
    assert set(urls(urls_of("local:///jobs", "local_1_0001", True))) == {""}
