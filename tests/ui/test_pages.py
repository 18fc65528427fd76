"""The pages of ``ytf ui``: what they show, what they escape, what they refuse."""

import json
import time

import httpx
import pytest
from click.testing import CliRunner

from support.axe import complaints
from support.browser import browsing
from support.fake_yarn import application
from support.records import DAY, application_id, keep, record
from support.records_served import serving_pages
from support.staging_place import USER
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Facts, Usage, build_status
from tf_yarn_ops.staging.staging_directory import StagingDirectory
from tf_yarn_ops.ui.commands import LOOPBACK, listen_at, ui
from tf_yarn_ops.ui.figures import SPARK_WIDTH, count_reasons, count_waits, draw_spark

NOW = time.time()
EVIL = '<script>alert("x")</script>'


@pytest.fixture
def site(place, pages):
    """Return a function that gets a page; there are three records."""
    files = StagingDirectory(place).filesystem
    for made in (record(1, user=USER, ended=NOW - DAY), record(2, user=USER, name=EVIL, ended=NOW - 2 * DAY, loss=0.5),
                 record(3, user="bob", reason=Reason.TASK_FAILED, ended=NOW - 40 * DAY, queue=EVIL, tail=EVIL,
                        options={"env": {EVIL: EVIL}}, metrics={EVIL: 1.0})):
        keep(files, place.acting_for(made["user"]).history, made)
    with httpx.Client(base_url=pages.partition("?")[0], trust_env=False) as client:
        assert client.get(pages).status_code == 303
        yield lambda path, **options: client.get(path, **options)


def test_the_list_shows_ended_and_live_jobs(site, yarn):
    yarn.add(application(9, "RUNNING", name=EVIL))
    text = site("/").text
    rows = [text.index(application_id(number)) for number in (9, 1, 2, 3)]
    assert rows == sorted(rows) and "polyline" in text and "Live" in text
    assert EVIL not in text and "&lt;script&gt;alert" in text


@pytest.mark.slow
@pytest.mark.parametrize(("query", "numbers"), [
    ("?name=dig", [1, 3]), ("?state=FAILED", [3]), ("?state=task_failed", [3]), ("?since=7d", [1, 2]), ("?user=bob", [3])])
def test_the_list_is_filtered(site, query, numbers):
    text = site(f"/{query}").text
    assert [number for number in (1, 2, 3) if application_id(number) in text] == numbers


@pytest.mark.slow
@pytest.mark.parametrize("path", [f"/jobs/{application_id(3)}", "/reasons?since=90d", "/queues?since=90d",
                                  f"/compare?app={application_id(2)}&app={application_id(3)}", f"/?name={EVIL}",
                                  f"/?since={EVIL}", "/jobs/<script>"])
def test_every_text_is_escaped(site, path):
    answer = site(path)
    assert EVIL not in answer.text and "alert(" not in answer.text.replace("&lt;script&gt;alert(", "")
    policy = answer.headers.get("content-security-policy") or answer.text
    assert "default-src 'none'" in policy and "unsafe-inline" not in policy


@pytest.mark.slow
def test_controls_are_shown_escaped(site):
    text = site("/?name=%E2%80%AE%1B[2J").text
    assert "\\u202e\\u001b[2J" in text and not set(text) & {"\u202e", "\x1b"}


def test_a_jobs_page_is_the_one_of_the_tracking_url(site, yarn):
    text = site(f"/jobs/{application_id(1)}").text
    assert 'data-live="false"' in text and "Timeline" in text and 'href="/reasons"' in text
    yarn.add(application(9, "RUNNING", name="digits"))
    assert "RUNNING" in site(f"/jobs/{application_id(9)}").text
    unknown = site(f"/jobs/{application_id(77)}")
    assert unknown.status_code == 404 and "Neither the history nor YARN knows" in unknown.text


def test_a_comparison_says_first_what_differs(site):
    text = site(f"/compare?app={application_id(1)}&app={application_id(2)}").text
    assert text.index("differs</th>") < text.index("</span> loss<") < text.index("equal</th>") < text.index("</span> command<")
    assert site("/compare?app=one").status_code == 400
    assert site(f"/compare?app={application_id(1)}&app={application_id(77)}").status_code == 404


@pytest.mark.slow
def test_without_yarn_the_history_is_shown(site, yarn):
    yarn.faults.append(lambda method, path: (503, {}, "away"))
    text = site("/").text
    assert "Live jobs are not shown" in text and application_id(1) in text


@pytest.mark.slow
@pytest.mark.parametrize(("path", "status"), [("/?since=soon", 400), ("/?state=fine", 400), ("/?skip=-1", 400),
                                              ("/?skip=1e9", 400), ("/nowhere", 404)])
def test_a_wrong_address_is_refused(site, path, status):
    assert site(path).status_code == status


def test_pages_are_read_only_and_for_this_machine_only(site, pages):
    with httpx.Client(base_url=pages.partition("?")[0], trust_env=False) as client:
        for path in ("/", "/?key=another", "/style.css", f"/jobs/{application_id(1)}"):
            assert client.get(path).status_code == 403
        cookie = client.get(pages).headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and client.get("/").status_code == 200
        assert client.post("/").status_code == 405
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert pages.startswith("http://127.0.0.1:")


def test_a_look_writes_no_record(site, place, yarn):
    yarn.add(application(9, "FINISHED", user=USER, finalStatus="SUCCEEDED", finishedTime=1700000300000))
    assert "SUCCEEDED" in site(f"/jobs/{application_id(9)}").text
    assert not records_of(StagingDirectory(place)).has(application_id(9), 1700000300)


def test_a_sparkline_spans_its_box():
    points = [tuple(map(float, point.split(","))) for point in draw_spark(["loss", [3.0, 2.0, 1.0]]).split()]
    assert points == [(0.0, 2.0), (SPARK_WIDTH / 2, 11.0), (SPARK_WIDTH, 20.0)]
    assert draw_spark(None) == draw_spark(["loss", [1.0]]) == draw_spark(["loss", ["<", "x"]]) == ""


def test_reasons_are_counted_per_day():
    jobs = [{"finished_at": 10.0, "reason": "TASK_FAILED"}, {"finished_at": DAY + 5.0, "reason": "SUCCEEDED"},
            {"finished_at": DAY + 9.0, "reason": "TASK_FAILED"}, {"finished_at": 99 * DAY, "reason": "KILLED"}]
    found = count_reasons(jobs, 0.0, 2.5 * DAY)
    assert (found.names, found.totals, found.most) == (["SUCCEEDED", "TASK_FAILED"], [1, 2], 2)
    assert [bar.day for bar in found.bars] == ["1970-01-01", "1970-01-02", "1970-01-03"]
    assert [piece.tip for piece in found.bars[1].pieces] == ["1970-01-02: 1 SUCCEEDED", "1970-01-02: 1 TASK_FAILED"]


def test_waits_are_shown_by_queue():
    jobs = [{"queue": "low", "queue_seconds": float(seconds)} for seconds in range(1, 101)]
    assert [tuple(wait) for wait in count_waits([*jobs, {"queue": "x", "queue_seconds": None}])] == [
        ("low", 100, 50.0, 95.0, 100.0)]


def test_taken_port_is_reported():
    with listen_at(LOOPBACK, 0) as listener, pytest.raises(SpecInvalid, match=r"can't be used .*; give another one with --port"):
        listen_at(LOOPBACK, listener.getsockname()[1])


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    done = CliRunner().invoke(ui, ["--no-browser"])
    assert "install the extra ui: pip install 'tf-yarn-ops[ui]'" in str(done.exception)


def test_list_searches_names_users_and_reasons_of_live_jobs_too(site, yarn):
    yarn.add(application(9, "RUNNING", name="recommender-nightly", user="carol"))
    shown = {query: [number for number in (1, 2, 3, 9) if application_id(number) in site(f"/?name={query}").text]
             for query in ("IGIT", "carol", "task_fail", "nightly", "bob")}
    assert shown == {"IGIT": [1, 3], "carol": [9], "task_fail": [3], "nightly": [9], "bob": [3]}


def test_lists_show_what_deserves_a_look_at_running_jobs(site, yarn):
    yarn.add(application(9, "RUNNING", user=USER, trackingUrl=f"{yarn.url}/proxy/x/"))
    yarn.add(application(8, "RUNNING", user=USER, trackingUrl=f"{yarn.url}/proxy/away/"))
    report = JobReport(application_id(9), tasks=(TaskReport("worker:0", "running"), TaskReport("worker:1", "running")))
    silent = Facts(NOW, usage={"worker:1": Usage(NOW, 0.0, 1.0, 0.0, 1.0, 1.0, 1440.0)})
    yarn.pages["/proxy/x/pages/ytf/status.json"] = "application/json", json.dumps(build_status(report, silent))
    assert "worker:1: no CPU, no output and no metrics for 24 min 0 s" in site("/").text
    listed = CliRunner().invoke(ytf, ["list", "--resourcemanager", yarn.url, "--user", USER])
    assert f"! {application_id(9)} worker:1: no CPU" in listed.stdout and application_id(8) in listed.stdout


def test_comparison_overlays_the_curves_of_the_jobs(site):
    text = site(f"/compare?app={application_id(1)}&app={application_id(2)}").text
    assert text.count('data-metric="loss"') == 1 and text.count("<polyline") == 2 and 'data-name="digits 0001"' in text


@pytest.fixture
def team(place, yarn):
    """Return a function that gets a page as a reader whom a reverse proxy names."""
    files = StagingDirectory(place).filesystem
    acls = {"acls": {"view_users": ["ann"]}}
    for made in (record(1, user="ann"), record(2, user="bob"), record(3, user="bob", options=acls, name="shared")):
        keep(files, place.acting_for(made["user"]).history, made)
    with serving_pages(place, user_header="X-Forwarded-User") as url, httpx.Client(base_url=url.partition("?")[0], trust_env=False) as client:
        yield lambda path, reader: client.get(path, headers={"X-Forwarded-User": reader} if reader else {})


def test_reader_of_a_team_sees_what_the_view_acls_allow(team, yarn):
    yarn.add(application(8, "RUNNING", name="hers", user="ann"))
    yarn.add(application(9, "RUNNING", name="his", user="bob"))

    def seen(reader):
        text = team("/", reader).text
        return [number for number in (1, 2, 3, 8, 9) if application_id(number) in text]

    assert seen("ann") == [1, 3, 8] and seen("bob@EXAMPLE.COM") == [2, 3, 9] and seen("eve") == []
    assert team(f"/jobs/{application_id(3)}", "ann").status_code == 200
    for path in (f"/jobs/{application_id(2)}", f"/jobs/{application_id(9)}"):
        assert team(path, "ann").status_code == 404
    assert team(f"/jobs/{application_id(9)}/log.txt?task=worker:0", "ann").status_code == 404
    assert team(f"/compare?app={application_id(1)}&app={application_id(2)}", "ann").status_code == 404
    refused = team("/", "")
    assert refused.status_code == 403 and "X-Forwarded-User" in refused.text


def test_listening_for_others_without_tls_is_warned_about(yarn, monkeypatch):
    import uvicorn

    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    warned = CliRunner().invoke(ui, ["--resourcemanager", yarn.url, "--host", "0.0.0.0", "--user-header", "X-User", "--no-browser"])
    assert warned.exit_code == 0 and "without TLS" in warned.stderr and "can name any user in X-User" in warned.stderr
    quiet = CliRunner().invoke(ui, ["--resourcemanager", yarn.url, "--no-browser"])
    assert "TLS" not in quiet.stderr


@pytest.mark.slow
def test_axe_finds_nothing_and_names_come_first_on_a_phone(pages, site, yarn):
    yarn.add(application(9, "RUNNING", name="digits"))
    address = pages.partition("?")[0].rstrip("/")
    with browsing(width=390, height=844) as page:
        page.goto(pages)
        cell = page.locator("#jobs tbody tr >> nth=0").locator("td.text").first
        assert cell.inner_text() == "digits" and cell.bounding_box()["x"] < 100
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for path in ("/", "/reasons?since=90d", "/queues?since=90d", f"/compare?app={application_id(1)}&app={application_id(2)}"):
            page.goto(address + path)
            assert (path, complaints(page)) == (path, [])
