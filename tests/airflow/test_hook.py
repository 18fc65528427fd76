"""The connection of type tf_yarn, and the hook that reads it."""

import json
from urllib.parse import urlencode

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


@pytest.mark.parametrize(
    ("uri", "address", "user"),
    [
        ("tf-yarn://ml@rm:5", "http://rm:5", "ml"),
        ("tf-yarn://local%3A%2F%2F", "local://", None),
        ("https://ml@rm:8090", "https://rm:8090", "ml"),
        ("tf_yarn://ml@rm:5", None, None),
        ("local://", None, None),
        ("yarn://", None, None),
    ],
)
def test_uri_of_a_connection_is_read_or_refused(uri, address, user, monkeypatch):
    """Airflow gives no host and no login for a scheme with an underscore; another cluster would train."""
    monkeypatch.setenv("YTF_RESOURCEMANAGER", "http://elsewhere:8088")
    monkeypatch.setenv("AIRFLOW_CONN_TF_YARN_DEFAULT", uri)
    hook = YarnHook()
    if address is None:
        with pytest.raises(SpecInvalid, match=r"'tf_yarn_default' has the type .*tf-yarn://USER@HOST:8088"):
            hook._settings()
        assert not hook.test_connection()[0]
    else:
        assert (hook._settings()[0], hook.environ.get("HADOOP_USER_NAME")) == (address, user)


#: Texts of a URI's query, and what the site file would make of them.
TEXTS = {
    "webhdfs": ("http://a:1,http://b:1", ("http://a:1", "http://b:1")),
    "docker_folders": ('["/opt/a b", "/opt/c"]', ("/opt/a b", "/opt/c")),
    "resourcemanager": ("http://rm:8088", ("http://rm:8088",)),
    "namenodes": ('{"hdfs://a": ["http://a:1"]}', {"hdfs://a": ("http://a:1",)}),
    "tensorboard_direct": ("False", False),
    "unreachable_timeout": ("5", 5.0),
    "history_days": ("7", 7),
    "staging": ("/1_000/{user}", "/1_000/{user}"),
    "principal": ("True", "True"),
    "submit_with": ("rest", "rest"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_extra_given_as_a_text_is_read_as_the_site_file_reads_it(name, monkeypatch, tmp_path):
    text, value = TEXTS[name]
    monkeypatch.setenv("AIRFLOW_CONN_TF_YARN_DEFAULT", f"tf-yarn://rm?{urlencode({name: text})}")
    assert getattr(YarnHook()._settings()[1], name) == value


def test_extra_that_is_no_value_of_its_setting_is_a_fault(monkeypatch):
    for extra in ({"tensorboard_direct": "maybe"}, {"history_days": "x: [y"}):
        with pytest.raises(SpecInvalid, match=next(iter(extra))):
            connect(monkeypatch, host="rm", extra=extra)._settings()


def test_connection_test_names_a_machine_that_names_its_airflow_otherwise(place, monkeypatch):
    monkeypatch.setenv("AIRFLOW_VAR_TF_YARN_DEPLOYMENT_ID", "prod")
    monkeypatch.setenv("AIRFLOW__TF_YARN__DEPLOYMENT_ID", "test")
    well, text = connect(monkeypatch, host=place.url, login="ann").test_connection()
    assert well and "deployment_id of this machine is 'test' and has no effect" in text and "'prod'" in text


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
    assert (cluster.resourcemanagers, cluster.storage.default) == ((yarn.url,), "hdfs://of-the-folder:1")


def test_an_unknown_extra_is_named_with_the_nearest_one(yarn, monkeypatch):
    hook = connect(monkeypatch, host=yarn.url, extra={"stagin": "/x"})
    with pytest.raises(SpecInvalid, match=r"unknown extra 'stagin' \(did you mean 'staging'\?\)"):
        hook.get_conn()
    assert hook.test_connection()[0] is False


@pytest.mark.parametrize("path", ["a\0b", "a" * 5000])
def test_site_file_that_can_be_no_file_is_a_fault(path, yarn, monkeypatch):
    hook = connect(monkeypatch, host=yarn.url, extra={"site_file": path})
    with pytest.raises(SpecInvalid, match=r"site file .*can't be read|site file .*not text"):
        hook.get_conn()


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
