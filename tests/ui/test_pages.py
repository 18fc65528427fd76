"""The pages of ``ytf ui``: what they show, what they escape, what they refuse."""

import json

import httpx
import pytest
from click.testing import CliRunner

from support.axe import complaints
from support.fake_yarn import application
from support.records import application_id
from support.records_served import FOLDER, KEY
from support.staging_place import USER
from support.ui_site import EVIL, NOW
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.history import histories
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Usage, build_status
from tf_yarn_ops.staging.staging_directory import StagingDirectory


def test_the_list_shows_ended_and_live_jobs(site, yarn):
    yarn.add(application(9, "RUNNING", name=EVIL))
    text = site("/").text
    rows = [text.index(application_id(number)) for number in (9, 1, 2, 3)]
    assert rows == sorted(rows) and "polyline" in text and "Live" in text
    assert EVIL not in text and "&lt;script&gt;alert" in text


def test_empty_list_says_whether_a_filter_is_set(place, pages):
    with httpx.Client(base_url=pages.partition("?")[0], trust_env=False) as client:
        assert client.get(pages).status_code == 303
        assert "No job has ended yet." in client.get("/").text
        for query in ("?user=bob", "?skip=100"):
            assert "The history has no such jobs." in client.get(f"/{query}").text


def test_pages_name_users_whose_older_jobs_are_left_out(site, monkeypatch):
    monkeypatch.setattr(histories, "MOST_READ", 0)
    assert "Older jobs of bob are not shown yet" in site("/?since=90d").text
    monkeypatch.setattr(histories, "MOST_READ", 1)
    text = site("/?since=90d").text
    assert "Older jobs" not in text and application_id(3) in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("?name=dig", [1, 3]),
        ("?state=FAILED", [3]),
        ("?state=task_failed", [3]),
        ("?since=7d", [1, 2]),
        ("?user=bob", [3]),
    ],
)
def test_the_list_is_filtered(site, query, numbers):
    text = site(f"/{query}").text
    assert [number for number in (1, 2, 3) if application_id(number) in text] == numbers


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        f"/jobs/{application_id(3)}",
        f"/?name={EVIL}",
        f"/?since={EVIL}",
        "/jobs/<script>",
    ],
)
def test_every_text_is_escaped(site, path):
    answer = site(path)
    assert EVIL not in answer.text and "alert(" not in answer.text.replace("&lt;script&gt;alert(", "")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/jobs/{application_id(3)}",
        f"/jobs/{application_id(3)}/parts.json",
        f"/jobs/{application_id(3)}/log.txt",
        "/?since=soon",
        "/style.css",
        "/page.js",
        "/nowhere",
    ],
)
def test_each_answer_has_policy_headers(site, path):
    headers = site(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none';") and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"


@pytest.mark.slow
def test_controls_are_shown_escaped(site):
    text = site("/?name=%E2%80%AE%1B[2J").text
    assert "\\u202e\\u001b[2J" in text and not set(text) & {"\u202e", "\x1b"}


def test_a_jobs_page_is_the_one_of_the_tracking_url(site, yarn):
    text = site(f"/jobs/{application_id(1)}").text
    assert 'data-live="false"' in text and "Timeline" in text and f'href="{FOLDER}/"' in text
    yarn.add(application(9, "RUNNING", name="digits"))
    assert "RUNNING" in site(f"/jobs/{application_id(9)}").text
    unknown = site(f"/jobs/{application_id(77)}")
    assert unknown.status_code == 404 and "Neither the history nor YARN knows" in unknown.text


@pytest.mark.slow
def test_without_yarn_the_history_is_shown(site, yarn):
    yarn.faults.append(lambda method, path: (503, {}, "away"))
    text = site("/").text
    assert "Live jobs are not shown" in text and application_id(1) in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?since=soon", 400),
        ("/?since=9999-12-31", 400),
        ("/?since=9999999d", 400),
        ("/?since=6000d", 400),
        ("/?state=fine", 400),
        ("/?skip=-1", 400),
        ("/?skip=1e9", 400),
        ("/nowhere", 404),
    ],
)
def test_a_wrong_address_is_refused(site, path, status):
    assert site(path).status_code == status


def test_pages_are_read_only_and_for_this_machine_only(site, pages):
    with httpx.Client(base_url=pages.partition("?")[0], trust_env=False) as client:
        for path in ("/", "/?key=another", "/style.css", f"/jobs/{application_id(1)}"):
            assert client.get(path).status_code == 403
        answer = client.get(pages)
        cookie, folder = answer.headers["set-cookie"], answer.headers["location"]
        assert f"Path={folder}" in cookie and KEY not in cookie and len(folder) > 2, "no other port gets it"
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and client.get("/").status_code == 200
        assert client.post("/").status_code == 405
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert pages.startswith("http://127.0.0.1:")


def test_a_look_writes_no_record(site, place, yarn):
    yarn.add(application(9, "FINISHED", user=USER, finalStatus="SUCCEEDED", finishedTime=1700000300000))
    assert "SUCCEEDED" in site(f"/jobs/{application_id(9)}").text
    assert not records_of(StagingDirectory(place)).has(application_id(9), 1700000300)


def test_lists_show_what_deserves_a_look_at_running_jobs(site, yarn):
    yarn.add(application(9, "RUNNING", user=USER, trackingUrl=f"{yarn.url}/proxy/x/"))
    yarn.add(application(8, "RUNNING", user=USER, trackingUrl=f"{yarn.url}/proxy/away/"))
    report = JobReport(application_id(9), tasks=(TaskReport("worker:0", "running"), TaskReport("worker:1", "running")))
    silent = {"worker:1": Usage(NOW, 0.0, 1.0, 0.0, 1.0, 1.0, 1440.0)}
    yarn.pages["/proxy/x/pages/ytf/status.json"] = (
        "application/json",
        json.dumps(build_status(report, NOW, usage=silent)),
    )
    assert "worker:1: no CPU, no output and no metrics for 24 min 0 s" in site("/").text
    listed = CliRunner().invoke(ytf, ["list", "--resourcemanager", yarn.url, "--user", USER])
    assert f"! {application_id(9)} worker:1: no CPU" in listed.stdout and application_id(8) in listed.stdout


@pytest.mark.slow
def test_axe_finds_nothing_and_names_come_first_on_a_phone(pages, site, yarn, browsing):
    yarn.add(application(9, "RUNNING", name="digits"))
    address = pages.partition("?")[0].rstrip("/")
    with browsing(width=390, height=844) as page:
        page.goto(pages)
        cell = page.locator("#jobs tbody tr >> nth=0").locator("td.text").first
        assert cell.inner_text() == "digits" and cell.bounding_box()["x"] < 100
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.goto(f"{address}/")
        assert complaints(page) == []
