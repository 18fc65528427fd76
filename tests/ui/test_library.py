"""The jobs that the pages show: ended and live, and only those that their reader may see."""

import httpx
import pytest

from support.fake_yarn import application
from support.records import application_id, keep, record
from support.records_served import serving_pages
from tf_yarn_ops.staging.staging_directory import StagingDirectory


def test_list_searches_names_users_and_reasons_of_live_jobs_too(site, yarn):
    yarn.add(application(9, "RUNNING", name="recommender-nightly", user="carol"))
    shown = {
        query: [number for number in (1, 2, 3, 9) if application_id(number) in site(f"/?name={query}").text]
        for query in ("IGIT", "carol", "task_fail", "nightly", "bob")
    }
    assert shown == {"IGIT": [1, 3], "carol": [9], "task_fail": [3], "nightly": [9], "bob": [3]}


@pytest.fixture
def team(place, yarn):
    """Return a function that gets a page as the user in a reverse proxy's header."""
    files = StagingDirectory(place).filesystem
    acls = {"acls": {"view_users": ["ann"]}}
    for made in (record(1, user="ann"), record(2, user="bob"), record(3, user="bob", options=acls, name="shared")):
        keep(files, place.acting_for(made["user"]).history, made)
    with (
        serving_pages(place, user_header="X-Forwarded-User") as url,
        httpx.Client(base_url=url.partition("?")[0], trust_env=False) as client,
    ):
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
