"""``ytf ui`` on a history of 2,000 jobs in a real browser: no error in its console, and no script of a job runs."""

import json
import re
import time

import pytest

from support.events import event_file, see_charts
from support.fake_yarn import application
from support.many_records import read_all, write_many
from support.records import application_id, keep, record
from support.records_served import serving_pages
from support.staging_place import USER
from support.waiting import until
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.runtime.common.contract import TENSORBOARD_PAGE
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import APPLICATION_HEADER, Series, build_status
from tf_yarn_ops.staging.staging_directory import StagingDirectory
from tf_yarn_ops.ui.boards import Boards

LIVE = application_id(7)

JOBS = 2_000
EVIL = '<script>document.title = "taken"</script>'


@pytest.fixture
def job_of_curves(place, tmp_path):
    """Keep the record of a job with event files; yield the TensorBoards."""
    (tmp_path / "models/train").mkdir(parents=True)
    (tmp_path / "models/train/events.out.tfevents.1").write_bytes(event_file(3))
    made = {**record(1, user=USER, ended=time.time()), "tensorboard_logdir": "viewfs://mini/models"}
    keep(StagingDirectory(place).filesystem, place.history, made)
    boards = Boards(place)
    yield boards
    boards.close()


def test_two_thousand_jobs_in_the_browser(place, pages, tmp_path, yarn, browsing):
    staging, now = StagingDirectory(place), time.time()
    write_many(tmp_path, place.history, JOBS, now - 3600, user=USER)
    keep(
        staging.filesystem,
        place.history,
        record(JOBS + 1, user=USER, name=EVIL, reason=Reason.TASK_FAILED, ended=now, tail=EVIL, options={EVIL: EVIL}),
    )
    assert len(read_all(records_of(staging))) == JOBS + 1  # as the sweep of a submission does, which writes the indexes
    with browsing() as page:
        page.goto(pages)
        assert page.title() == "Jobs" and page.locator("#jobs tbody tr").count() == 50
        assert page.locator("#jobs td", has_text="<script>").count() == 1
        assert page.locator("#jobs .spark").count() == 50
        page.click("#older")
        page.wait_for_url("**skip=50*")
        assert page.locator("#jobs tbody tr").count() == 50

        page.fill("input[name=name]", "digits")
        page.select_option("select[name=state]", "FAILED")
        page.click("text=Show")
        page.wait_for_url("**state=FAILED*")
        assert set(page.locator("#jobs tbody tr td:nth-child(1)").all_text_contents()) == {"digits"}
        assert "SUCCEEDED" not in page.locator("#jobs").inner_text()

        address = pages.partition("?")[0]
        page.goto(f"{address}jobs/{application_id(JOBS + 1)}")
        assert page.title() == f"{EVIL}: TASK_FAILED" and EVIL in page.locator("#verdict").inner_text()
        assert page.locator("#metrics polyline").count() == 1
        page.goto(f"{address}jobs/{application_id(99_999)}")
        assert re.search("Neither the history nor YARN knows", page.inner_text("body"))
        page.complaints[:] = [
            text for text in page.complaints if "404" not in text
        ]  # of the last page, which is unknown


def test_the_page_of_a_live_job_renews_itself_until_the_job_has_ended(place, pages, yarn, browsing):
    yarn.add(application(7, "RUNNING", trackingUrl=f"{yarn.url}/proxy/x/", name=EVIL))

    def publish(points):
        tasks = (TaskReport("worker:0", "running", host="n1", starts=1),)
        curve = [[float(step), 1 / (step + 1)] for step in range(points)]
        document = build_status(
            JobReport(
                LIVE, name=EVIL, state="RUNNING", tasks=tasks, tensorboard_url=f"http://nowhere/{TENSORBOARD_PAGE}"
            ),
            time.time(),
            series=[Series("worker:0", "loss", curve, points - 1.0, 0.5, time.time())],
        )
        yarn.pages["/proxy/x/pages/ytf/status.json"] = "application/json", json.dumps(document)

    def points():
        return len((page.locator("figure polyline").get_attribute("points") or "").split())

    publish(3)
    yarn.pages["/proxy/x/pages/ytf/log.txt"] = "text/plain", f"step 1 {EVIL}", (APPLICATION_HEADER, LIVE)
    address = pages.partition("?")[0]
    with browsing() as page:
        page.goto(pages)
        page.click("#live a")
        page.wait_for_selector("figure polyline")
        assert points() == 3 and page.title() == f"{EVIL}: RUNNING"
        assert page.get_attribute("#head a", "href") == f"{yarn.url}/proxy/x/{TENSORBOARD_PAGE}"
        page.click("summary >> nth=0")
        page.click("button[data-log='worker:0']")
        until(lambda: page.inner_text("#log") == f"step 1 {EVIL}", 60)
        page.evaluate("window.mine = 1")
        publish(9)
        until(lambda: points() == 9, 60)

        keep(
            StagingDirectory(place).filesystem,
            place.history,
            record(7, user=USER, name=EVIL, reason=Reason.TASK_FAILED, tail="oh"),
        )
        yarn.apps[LIVE].update(
            application(7, "FINISHED", user=USER, finalStatus="FAILED", finishedTime=1_700_000_300_000)
        )
        until(lambda: page.title() == f"{EVIL}: TASK_FAILED", 60)
        assert "oh" in page.inner_text("#verdict") and page.locator("details[open]").count() == 1
        assert (
            page.inner_text("#log") == f"step 1 {EVIL}"
            and page.is_hidden("#stale")
            and page.evaluate("window.mine") == 1
        )
        page.goto(f"{address}jobs/{LIVE}")
        assert page.get_attribute("body", "data-live") == "false"


def test_ended_job_shows_its_curves_in_the_browser(place, job_of_curves, browsing):
    with serving_pages(place, boards=job_of_curves) as pages, browsing() as page:
        page.goto(pages)
        page.click("#jobs a")
        page.click("text=Start TensorBoard")
        page.wait_for_url("**/tensorboard/")
        page.locator("tb-webapp").wait_for(state="attached")
        see_charts(page, page.url.partition("#")[0], "train", 3, method="POST")
