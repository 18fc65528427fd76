"""A real triggerer that follows a job of a secured cluster by tickets of seconds, and what Airflow keeps of it."""

import sqlite3
import time

import pytest

from support.found_secrets import assert_no_secret, read_key, read_passwords
from support.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

#: Seconds for which a ticket is good.
TICKET = 5


def test_triggerer_renews_from_the_keytab_and_airflow_sees_no_secret(airflow_site, secure_cluster, tmp_path):
    seen, copy, flag = tmp_path / "tokens.new", tmp_path / "tokens", tmp_path / "go on"
    config = secure_cluster.krb5_conf.read_text()
    (airflow_site.home.parent / "krb5.conf").write_text(
        config.replace("[libdefaults]", f"[libdefaults]\n  ticket_lifetime = {TICKET}s")
    )
    keytab = secure_cluster.keytab("alice")
    airflow_site.connect(
        "secured", secure_cluster.resourcemanager_url, keytab=str(keytab), ca_file=str(secure_cluster.ca_file)
    )
    run = airflow_site.trigger(
        "secured",
        command=f'cp "$HADOOP_TOKEN_FILE_LOCATION" "{seen}" && mv "{seen}" "{copy}"; '
        f'until [ -e "{flag}" ]; do sleep 0.1; done',
    )
    run.until_state("deferred", seconds=180)
    until(copy.exists, 120)
    followed = time.monotonic()
    until(lambda: time.monotonic() > followed + 4 * TICKET, 60, 0.5)  # cookies are good for 15 s
    flag.touch()
    run.until_state("success", seconds=180)
    assert run.xcom()["user"] == "alice"
    assert "ticket" not in run.log().casefold()

    secrets = {**read_passwords(copy.read_bytes()), "the key of alice": read_key(keytab)}
    with sqlite3.connect(airflow_site.home / "airflow.db") as database:
        texts = {"Airflow's database": "\n".join(database.iterdump()).encode()}
    texts |= {str(file): file.read_bytes() for file in airflow_site.home.rglob("*.log")}
    assert any(run.id in name for name in texts), "the task's log is among them"
    assert_no_secret(texts, secrets)
