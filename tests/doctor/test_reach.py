"""Checks of the ResourceManager and of the login."""

import sys
from dataclasses import replace

import pytest

from support.doctor_site import HTML, INFO, NEW, REMOTE, answers, diagnose, of, question, with_java
from support.fake_yarn import FakeYarn, closed_address, serving
from tf_yarn_ops.doctor.examination import CHECKS
from tf_yarn_ops.doctor.known import KnownFacts, Question
from tf_yarn_ops.doctor.reach import check_security, check_ticket
from tf_yarn_ops.doctor.symptoms import CheckOutcome, Symptom
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.hadoop.cluster import Cluster, SecurityFacts, StorageFacts
from tf_yarn_ops.hadoop.security.tickets import Tickets
from tf_yarn_ops.hadoop.site import Site


def test_one_of_two_resourcemanagers_that_is_away_is_a_warning(healthy):
    finding = of(diagnose(healthy, url=f"{closed_address()},{healthy.url}"), "resourcemanager")
    assert finding.symptom is Symptom.RM_PARTLY_AWAY
    assert f"{healthy.url} ACTIVE" in finding.message and "refused" in finding.message


def test_active_and_standby_are_distinguished(healthy):
    standby = FakeYarn()
    answers(INFO, 200, '{"clusterInfo": {"haState": "STANDBY", "hadoopVersion": "3.4.2"}}')(standby)
    with serving(standby) as url:
        finding = of(diagnose(healthy, url=f"{url},{healthy.url}", checks=CHECKS[:3]), "resourcemanager")
    assert finding.message == f"{url} STANDBY, {healthy.url} ACTIVE, Hadoop 3.4.2 and 3.4.3"


@pytest.mark.slow
def test_where_http_is_closed_skeins_client_is_looked_for(healthy):
    with_java(healthy)
    answers(NEW, 403, REMOTE)(healthy)
    assert of(diagnose(healthy), "submission").symptom is Symptom.REST_CLOSED
    assert of(diagnose(healthy, Site(submit_with="rest")), "submission").symptom is Symptom.REST_NEEDED
    assert of(diagnose(healthy, Site(submit_with="skein")), "submission").message.startswith("with Skein's Java client")


@pytest.mark.parametrize(
    ("site", "environ", "message"),
    [
        ({"keytab": "/k"}, {}, "ann@X, from the keytab /k, which renews it"),
        ({}, {"KRB5_CLIENT_KTNAME": "/other"}, "ann@X, for 2.0 h"),  # a valid cache wins over this keytab
    ],
)
def test_only_the_sites_keytab_is_known_to_renew_a_ticket(healthy, monkeypatch, site, environ, message):
    monkeypatch.setattr(Tickets, "inquire", lambda self: ("ann@X", 7200))
    asked = question(healthy)
    known = KnownFacts(replace(asked, environ={**asked.environ, **environ}), Site(**site), wants_ticket=True)
    assert check_ticket(known).message == message


def test_skein_without_import_is_reported(healthy, monkeypatch):
    monkeypatch.setitem(sys.modules, "skein", None)
    found = of(diagnose(healthy), "versions")
    assert found.symptom is Symptom.SKEIN_MISSING and sys.executable in found.advice


def test_cluster_that_believes_names_over_http_is_reported(healthy):
    healthy.conf["hadoop.security.authentication"] = "kerberos"
    assert of(diagnose(healthy), "security").symptom is Symptom.OPEN_PAGES


@pytest.mark.slow
def test_cluster_without_tokens_is_reported(healthy):
    healthy.conf |= {"hadoop.security.authentication": "kerberos", "yarn.resourcemanager.address": "localhost:8032"}
    assert of(diagnose(healthy), "tokens").message == "got for 127.0.0.1:8032,localhost:8032, and cancelled"
    answers("/ws/v1/cluster/delegation-token", 403, REMOTE)(healthy)
    diagnosis = diagnose(healthy)
    assert of(diagnosis, "tokens").symptom is Symptom.TOKENS_UNAVAILABLE
    found = of(diagnosis, "submission")
    assert (found.symptom, "gives no tokens over HTTP" in found.message) == (Symptom.SKEIN_UNUSABLE, True), found
    with_java(healthy)
    found = of(diagnose(healthy), "submission")
    assert found.message == "with Skein's Java client, because the cluster gives no tokens over HTTP"
    found = of(diagnose(healthy, Site(submit_with="rest", request_timeout=2)), "tokens")
    assert (found.symptom, "gives no token over HTTP" in found.message) == (Symptom.TOKENS_REFUSED, True)
    assert of(diagnose(healthy, Site(submit_with="skein", request_timeout=2)), "tokens").outcome is CheckOutcome.SKIPPED


def test_demand_for_a_ticket_is_distinguished_from_a_refusal(healthy, monkeypatch):
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere/ticket")
    monkeypatch.setenv("KRB5_CONFIG", "/dev/null")
    answers(INFO, 401, HTML, "text/html", **{"WWW-Authenticate": "Negotiate"})(healthy)
    diagnosis = diagnose(healthy)
    assert of(diagnosis, "resourcemanager").message == f"{healthy.url} asks for a Kerberos ticket"
    assert of(diagnosis, "ticket").symptom is Symptom.TICKET_MISSING
    assert of(diagnosis, "identity").because_of == "ticket"


@pytest.mark.parametrize("site, symptom", [
    (Site(), Symptom.OPEN_PAGES), (Site(gateway_password_file="/etc/ytf/password"), None),
])  # fmt: skip
def test_pages_behind_the_login_of_a_gateway_are_not_open(site, symptom):
    cluster = Cluster(
        ("https://knox:8443/gateway/x/yarn",),
        "ann",
        "ann",
        StorageFacts("hdfs://n", "hdfs://n", "/user/{user}/.skein"),
        site=site,
        security=SecurityFacts(kerberos=True, negotiates=False),
    )
    found = check_security(KnownFacts(Question({}), opened=Session(cluster)))
    assert found.symptom is symptom
