"""Tests of the Airflow site's faults, without Airflow: a process that is stopped, and one that ends by itself."""

import sqlite3
import sys
from contextlib import closing

import pytest

from support.airflow_site import AirflowSite
from support.waiting import until

#: A component that is mostly in a transaction, as the API server of a busy Airflow.
WRITER = """\
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
while True:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE number SET value = value + 1")
    time.sleep(0.02)
    connection.execute("COMMIT")
    time.sleep(0.01)
"""


@pytest.fixture
def site(tmp_path):
    database = tmp_path / "empty.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE number AS SELECT 0 AS value")
    site = AirflowSite(tmp_path / "home", tmp_path, database)
    site.prepare()
    yield site
    site.close()


def test_suspended_process_holds_no_lock_of_the_database(site):
    site.run("scheduler", [sys.executable, "-c", WRITER, site.home / "airflow.db"], site.environ)
    writer = site.running["scheduler"]
    for number in range(1, 6):
        until(lambda number=number: site.query("SELECT value FROM number")[0] >= 3 * number)
        with site.suspended(writer), sqlite3.connect(site.home / "airflow.db", timeout=0) as connection:
            connection.execute("UPDATE number SET value = value + 1")
        connection.close()


@pytest.mark.parametrize("ask", [lambda site: site.query("SELECT 1"), lambda site: site.get("dags")])
def test_no_test_waits_for_a_component_that_has_ended(site, ask):
    site.run("scheduler", ["sh", "-c", "echo the database is locked; exit 3"], site.environ)
    site.running["scheduler"].wait()
    with pytest.raises(AssertionError, match="scheduler has ended:\nthe database is locked"):
        ask(site)
