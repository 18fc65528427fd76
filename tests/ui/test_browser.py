"""``ytf ui`` on a history of 10,000 jobs in a real browser: no error in its console, and no script of a job runs."""

import re
import time

import pytest

from support.browser import browsing
from support.many_records import read_all, write_many
from support.records import application_id, keep, record
from support.staging_place import USER
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.staging.staging_directory import StagingDirectory

pytestmark = pytest.mark.slow

JOBS = 10_000
EVIL = '<script>document.title = "taken"</script>'


def test_ten_thousand_jobs_in_the_browser(place, pages, tmp_path, yarn):
    staging, now = StagingDirectory(place), time.time()
    write_many(tmp_path, place.history, JOBS, now - 3600, user=USER)
    keep(staging.filesystem, place.history,
         record(JOBS + 1, user=USER, name=EVIL, reason=Reason.TASK_FAILED, ended=now, tail=EVIL, options={EVIL: EVIL}))
    assert len(read_all(staging.records())) == JOBS + 1  # as the sweep of a submission does, which writes the indexes
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
        assert set(page.locator("#jobs tbody tr td:nth-child(4)").all_text_contents()) == {"digits"}
        assert "SUCCEEDED" not in page.locator("#jobs").inner_text()
        for number in (0, 1):
            page.locator("#jobs input[name=app]").nth(number).check()
        page.click("text=Compare the chosen")
        page.wait_for_url("**/compare?app=*&app=*")
        assert page.locator("#rows tr.differs").first.is_visible()

        page.click("text=Reasons over time")
        page.wait_for_selector("#reasons rect")
        jobs = [int(text) for text in page.locator("tbody td:nth-child(3)").all_text_contents()]
        assert JOBS / 90 * 28 < sum(jobs) < JOBS / 90 * 33  # of the last 30 days
        page.click("text=Waits in queues")
        page.wait_for_selector("#waits")
        assert page.locator("#waits tbody tr").count() == 3

        address = pages.partition("?")[0]
        page.goto(f"{address}jobs/{application_id(JOBS + 1)}")
        assert page.title() == f"{EVIL}: TASK_FAILED" and EVIL in page.locator("#verdict").inner_text()
        assert page.locator("#metrics polyline").count() == 1
        page.goto(f"{address}jobs/{application_id(99_999)}")
        assert re.search("Neither the history nor YARN knows", page.inner_text("body"))
        page.complaints[:] = [text for text in page.complaints if "404" not in text]  # of the last page, which is unknown
