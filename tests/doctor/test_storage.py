"""Checks of the file system."""

import re

import pytest

from support.doctor_site import HTML, USER, diagnose, of, outcomes, with_java
from support.fake_yarn import FakeYarn, closed_address, serving
from tf_yarn_ops.doctor.symptoms import Symptom
from tf_yarn_ops.hadoop.site import Site


def test_nothing_stays_on_the_cluster(healthy):
    diagnose(healthy)
    assert not healthy.apps
    assert sorted(path.name for path in (healthy.files / "user" / USER / ".skein").iterdir()) == ["cache"]


def namenode(state):
    """Return a server that answers as a NameNode in a state: active, standby, html or refusing."""
    fake = FakeYarn()
    standby = '{"RemoteException": {"exception": "StandbyException", "message": "Operation category READ is not supported in state standby"}}'
    status = '{"FileStatus": {"type": "DIRECTORY"}}'
    answer = {
        "active": (200, {"Content-Type": "application/json"}, status),
        "standby": (403, {"Content-Type": "application/json"}, standby),
        "html": (200, {"Content-Type": "text/html"}, HTML),
        "refusing": (401, {"Content-Type": "text/html"}, HTML),
    }[state]
    fake.faults.append(lambda method, path: answer if path.startswith("/webhdfs/v1") else None)
    return serving(fake)


@pytest.mark.parametrize(
    ("states", "symptom", "told"),
    [
        (("active", "standby"), None, "hdfs://ns over HTTP: {0} ACTIVE, {1} STANDBY"),
        (("standby", "standby"), Symptom.NN_NOT_ACTIVE, "no NameNode is active: {0} STANDBY, {1} STANDBY"),
        (
            ("active", "html"),
            Symptom.NN_PARTLY_AWAY,
            "not every NameNode answers: {0} ACTIVE, {1} (HTTP 200: Welcome Please log in)",
        ),
        (("refusing", "html"), Symptom.NN_SILENT, "no NameNode answers as one: {0} (HTTP 401: Welcome Please log in)"),
    ],
)
def test_each_namenode_is_asked(healthy, states, symptom, told):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    with namenode(states[0]) as first, namenode(states[1]) as second:
        found = of(diagnose(healthy, Site(webhdfs=(first, second), request_timeout=2)), "filesystem")
    assert found.symptom is symptom
    assert found.message.startswith(told.format(first, second)), found.message


@pytest.mark.parametrize(
    ("way", "java", "filesystem", "symptom"),
    [
        ("skein", True, "s3a://bucket", Symptom.NN_CLOSED),
        ("skein", True, "hdfs://ns", Symptom.NN_CLOSED),
        ("auto", True, "s3a://bucket", Symptom.NN_CLOSED),
        ("auto", False, "s3a://bucket", Symptom.NN_UNKNOWN),
        ("rest", True, "s3a://bucket", Symptom.NN_UNKNOWN),
        ("auto", True, "hdfs://ns", Symptom.NN_SILENT),  # it changes to Skein's client for a refusal only
        ("rest", True, "hdfs://ns", Symptom.NN_SILENT),
    ],
)
def test_file_system_without_http_is_fine_for_skeins_client(healthy, way, java, filesystem, symptom):
    healthy.conf |= {"fs.defaultFS": filesystem, "hadoop.security.authentication": "kerberos"}
    if java:
        with_java(healthy)
    webhdfs = (closed_address(),) if filesystem.startswith("hdfs") else ()
    diagnosis = diagnose(healthy, Site(webhdfs=webhdfs, submit_with=way, request_timeout=2))
    assert of(diagnosis, "filesystem").symptom is symptom
    if symptom is Symptom.NN_CLOSED:
        found = outcomes(diagnosis)
        assert [found[name] for name in ("filesystem", "tokens", "staging", "rights", "submission")] == [
            "warning",
            "skipped",
            "skipped",
            "skipped",
            "ok",
        ], diagnosis
        assert of(diagnosis, "submission").facts["way"] == "skein"
        assert diagnosis.exit_code == 0
    else:
        assert diagnosis.first_fault.check == "filesystem"


def test_refusing_namenode_is_fine_for_skeins_client(healthy):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    with_java(healthy)
    with namenode("refusing") as url:
        diagnosis = diagnose(healthy, Site(webhdfs=(url,), request_timeout=2))
    assert of(diagnosis, "filesystem").symptom is Symptom.NN_CLOSED
    assert of(diagnosis, "submission").facts["way"] == "skein"


def test_namenode_with_another_time_is_reported(healthy):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    fake = FakeYarn()
    fake.ahead = 100.0
    with serving(fake) as url:
        found = of(diagnose(healthy, Site(webhdfs=(url,), request_timeout=2)), "clock")
    assert found.symptom is Symptom.CLOCK_DIFFERS and re.search(f"{url} is (99|100|101) s ahead", found.message)


@pytest.mark.slow
def test_a_hanging_namenode_does_not_hang_the_others(healthy, silence):
    healthy.conf |= {"fs.defaultFS": "hdfs://ns"}
    fake = FakeYarn()
    fake.faults.append(lambda method, path: silence.wait(60) and None)
    with serving(fake) as slow, namenode("active") as quick:
        found = of(diagnose(healthy, Site(webhdfs=(slow, quick), request_timeout=0.6)), "filesystem")
    assert found.symptom is Symptom.NN_PARTLY_AWAY and f"{quick} ACTIVE" in found.message
