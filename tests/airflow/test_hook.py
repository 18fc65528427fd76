"""The connection of type tf_yarn, and the hook that reads it."""

import json

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from support.fake_yarn import closed_address
from tf_yarn_ops.airflow import YarnHook
from tf_yarn_ops.airflow.hook import addresses
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.security.tickets import Tickets

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_cluster_in_the_environment")]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"host": "rm"}, "http://rm:8088"),
        ({"host": "rm", "port": 1}, "http://rm:1"),
        ({"host": "rm", "schema": "https", "port": 8090}, "https://rm:8090"),
        ({"host": "rm1,rm2", "port": 1}, "http://rm1:1,http://rm2:1"),
        ({"host": "rm:5"}, "http://rm:5"),
        ({"host": "http://rm1:1, https://rm2"}, "http://rm1:1,https://rm2"),
        ({}, None),
        # The form sends port 0 for an empty field.
        ({"host": "http://rm:5", "port": 0}, "http://rm:5"),
        ({"host": "rm", "port": 0}, "http://rm:8088"),
        ({"host": "rm:5", "port": 0}, "http://rm:5"),
    ],
)
def test_the_address_may_be_written_in_many_ways(values, expected):
    assert addresses(Connection(conn_id="x", conn_type="tf_yarn", **values)) == expected


def connect(monkeypatch, **values):
    monkeypatch.setenv("AIRFLOW_CONN_TF_YARN_DEFAULT", json.dumps({"conn_type": "tf_yarn", **values}))
    return YarnHook()


def test_the_connection_leads_to_the_cluster(yarn, monkeypatch, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("staging: /from/file\nlog_server: http://logs:1")
    extra = {
        "site_file": str(site),
        "staging": "/from/extra/{user}",
        "submit_with": "",
        "keytab": "/etc/ann.keytab",
        "principal": "ann@EXAMPLE.COM",
    }
    hook = connect(monkeypatch, host=yarn.url, login="ann", extra=extra)
    cluster = hook.get_conn()
    assert (cluster.resourcemanagers, cluster.user, cluster.login) == ((yarn.url,), "ann", "ann")
    assert (cluster.staging, cluster.site.log_server, cluster.site.submit_with) == (
        "/from/extra/ann",
        "http://logs:1",
        "auto",
    )
    assert hook.environ["HADOOP_USER_NAME"] == "ann"
    assert cluster.site.tickets == Tickets("/etc/ann.keytab", "ann@EXAMPLE.COM")


@pytest.fixture
def place(yarn, tmp_path):
    """Return a fake cluster whose file system is a folder of the test."""
    yarn.conf |= {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}"}
    yarn.rights = {"SUBMIT_APPLICATIONS": True, "ADMINISTER_QUEUE": False}
    return yarn


def test_the_test_of_a_connection_names_the_cluster_and_the_warnings(place, monkeypatch):
    hook = connect(
        monkeypatch, host=place.url, login="ann", extra={"staging": "/from/extra/{user}", "trusted_owner": "root"}
    )
    well, text = hook.test_connection()
    assert well, text
    assert text.startswith(
        f"Hadoop 3.4.3 at {place.url}, as ann, staging directory viewfs://mini/from/extra/ann; "
        "warning: security: the cluster has no Kerberos: it believes every user name"
    )
    assert not place.apps


def test_the_test_of_a_connection_says_what_to_do_about_the_first_fault(place, monkeypatch):
    place.nodes = []
    assert connect(monkeypatch, host=place.url).test_connection() == (
        False,
        "nodes: the cluster has no running node. What to do: Every job waits in the queue: start NodeManagers, or look "
        "why those that run are unhealthy",
    )
    well, text = connect(monkeypatch, host=closed_address()).test_connection()
    assert not well and text.startswith("resourcemanager: no ResourceManager answers: http://127.0.0.1:")
    assert "What to do: Check " in text and text.endswith("/ws/v1/cluster/info")


def test_the_connections_address_goes_before_the_workers_environment(yarn, monkeypatch):
    monkeypatch.setenv("YTF_RESOURCEMANAGER", "http://127.0.0.1:1")
    assert connect(monkeypatch, host=yarn.url).get_conn().resourcemanagers == (yarn.url,)


def test_a_hadoop_conf_dir_may_stand_for_the_address(yarn, monkeypatch, tmp_path):
    address = yarn.url.removeprefix("http://")
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.webapp.address</name>"
        f"<value>{address}</value></property></configuration>"
    )
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name>"
        "<value>hdfs://of-the-folder:1</value></property></configuration>"
    )
    cluster = connect(monkeypatch, extra={"hadoop_conf_dir": str(tmp_path)}).get_conn()
    assert (cluster.resourcemanagers, cluster.default_filesystem) == ((yarn.url,), "hdfs://of-the-folder:1")


def test_an_unknown_extra_is_named_with_the_nearest_one(yarn, monkeypatch):
    hook = connect(monkeypatch, host=yarn.url, extra={"stagin": "/x"})
    with pytest.raises(SpecInvalid, match=r"unknown extra 'stagin' \(did you mean 'staging'\?\)"):
        hook.get_conn()
    assert hook.test_connection()[0] is False


def test_without_a_connection_the_environment_is_asked(yarn, monkeypatch):
    assert YarnHook().test_connection() == (
        False,
        (
            "no ResourceManager is known: there is no connection 'tf_yarn_default' (type tf_yarn, its host is the "
            "ResourceManager's), and the worker has neither YTF_RESOURCEMANAGER, nor a site.yaml with a resourcemanager, "
            "nor a HADOOP_CONF_DIR"
        ),
    )
    monkeypatch.setenv("YTF_RESOURCEMANAGER", yarn.url)
    assert YarnHook().get_conn().resourcemanagers == YarnHook(None).get_conn().resourcemanagers == (yarn.url,)
    with pytest.raises(AirflowNotFoundException):
        YarnHook("another_one").get_conn()


def test_without_a_connection_a_hadoop_conf_dir_will_do(yarn, monkeypatch, tmp_path):
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.webapp.address</name>"
        f"<value>{yarn.url.removeprefix('http://')}</value></property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert YarnHook().get_conn().resourcemanagers == (yarn.url,)
