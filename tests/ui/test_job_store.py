"""The jobs that the pages show: ended and live, and only those that their reader may see."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest

from support.fake_yarn import application
from support.hostile_page import KINDS, hostile_page
from support.records import application_id, keep, record
from support.records_served import serving_pages
from support.ui_site import NOW
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import build_status
from tf_yarn_ops.staging.staging_directory import StagingDirectory


def test_list_searches_names_users_and_reasons_of_live_jobs_too(site, yarn):
    yarn.add(application(9, "RUNNING", name="recommender-nightly", user="carol"))
    shown = {
        query: [number for number in (1, 2, 3, 9) if application_id(number) in site(f"/?name={query}").text]
        for query in ("IGIT", "carol", "task_fail", "nightly", "bob")
    }
    assert shown == {"IGIT": [1, 3], "carol": [9], "task_fail": [3], "nightly": [9], "bob": [3]}


@pytest.mark.parametrize("linked", [False, True])
def test_ended_job_has_links_to_logs_where_they_lead_to_text(place, yarn, linked):
    """Without a log server a NodeManager's page says that it does not know the container."""
    page = "http://node:8042/node/containerlogs/c/ann"
    made = record(1)
    keep(StagingDirectory(place).filesystem, place.history, made | {"tasks": [made["tasks"][0] | {"log_url": page}]})
    with (
        serving_pages(replace(place, logs=replace(place.logs, linked=linked))) as url,
        httpx.Client(trust_env=False, follow_redirects=True) as client,
    ):
        client.get(url)  # it gives the key's cookie
        text = client.get(f"{url.partition('?')[0]}jobs/{application_id(1)}").text
    assert "worker:0" in text and (page in text) == linked


@pytest.fixture
def team(place, yarn):
    """Return a function that gets a page as the user in a reverse proxy's header."""
    files = StagingDirectory(place).filesystem
    acls = {"acls": {"view_users": ["ann"]}}
    for made in (record(1, user="ann"), record(2, user="bob"), record(3, user="bob", options=acls, name="shared")):
        keep(files, place.acting_for(made["user"]).history, made)
    site = Site(ui_realms=("example.com",))
    with (
        serving_pages(replace(place, site=site), user_header="X-Forwarded-User") as url,
        httpx.Client(base_url=url.partition("?")[0], trust_env=False) as client,
    ):
        yield lambda path, *readers: client.get(path, headers=[("X-Forwarded-User", one) for one in readers if one])


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
    refused = team("/", "")
    assert refused.status_code == 403 and "X-Forwarded-User" in refused.text


@pytest.mark.parametrize(
    "named", [("ann", "ann"), ("ann", "bob"), ("ann, bob",), ("ann bob",), ("@EXAMPLE.COM",), ("a@b@c",)]
)
def test_request_that_names_several_readers_is_refused(team, named):
    assert team("/", *named).status_code == 403


def test_user_of_another_realm_is_another_user(team):
    assert application_id(1) in team("/", "ann@EXAMPLE.COM").text
    for reader in ("ann@OTHER.REALM", "ann@EXAMPLE.COM.evil.example"):
        assert application_id(1) not in team("/", reader).text
        assert team(f"/jobs/{application_id(1)}", reader).status_code == 404


def test_team_believes_neither_records_nor_pages_of_others(team, place, yarn):
    files = StagingDirectory(place).filesystem
    for made in (record(1, user="ann", name="forged"), record(4, user="ann", name="forged")):
        keep(files, place.acting_for("aaron").history, made)
    yarn.add(application(9, "RUNNING", name="his", user="bob", trackingUrl=f"{yarn.url}/proxy/x/"))
    forged = build_status(JobReport(application_id(1), name="forged", user="ann"), NOW)
    yarn.pages["/proxy/x/pages/ytf/status.json"] = "application/json", json.dumps(forged)
    for path in ("/", f"/jobs/{application_id(1)}", f"/jobs/{application_id(4)}", f"/jobs/{application_id(9)}"):
        assert "forged" not in team(path, "ann").text
    assert team(f"/jobs/{application_id(9)}", "ann").status_code == 404
    assert ">his" in (text := team(f"/jobs/{application_id(9)}", "bob").text) and "forged" not in text


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_page_of_another_job_holds_up_no_reader(site, yarn, kind):
    yarn.add(application(9, "RUNNING", user="ann", name="good", trackingUrl=f"{yarn.url}/proxy/x/"))
    report = build_status(
        JobReport(application_id(9), tasks=(TaskReport("worker:0", "running", host="goodhost"),)), NOW
    )
    yarn.pages["/proxy/x/pages/ytf/status.json"] = "application/json", json.dumps(report)
    with hostile_page(kind) as url, ThreadPoolExecutor(12) as pool:
        for number in range(10, 22):
            yarn.add(application(number, "RUNNING", user="mallory", trackingUrl=url))
        hostile = [pool.submit(site, f"/jobs/{application_id(10)}", timeout=120) for _ in range(12)]
        began = time.monotonic()
        assert "goodhost" in site(f"/jobs/{application_id(9)}", timeout=120).text
        good = time.monotonic() - began
        assert all(application_id(number) in site("/", timeout=120).text for number in (9, 10, 1))
        listed = time.monotonic() - began - good
        assert all(one.result().status_code == 200 for one in hostile), "with what YARN knows"
        ended = time.monotonic() - began
    assert (good < 20, listed < 40, ended < 90) == (True, True, True), (good, listed, ended)
