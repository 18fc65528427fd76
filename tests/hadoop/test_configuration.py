"""What a cluster's configuration says."""

import pytest

from support.hadoop_clients import environ, write_conf
from tf_yarn_ops.errors import ClusterUnreachable
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.configuration import CROSS_PLATFORM_CLASSPATH, Configuration
from tf_yarn_ops.hadoop.site import Site


def test_classpath_unset_is_hadoops_default(yarn, tmp_path):
    yarn.conf["yarn.application.classpath"] = ""
    assert discover(yarn.url, environ(tmp_path)).nodes.classpath == CROSS_PLATFORM_CLASSPATH


def test_without_conf_the_missing_line_is_named(yarn, tmp_path):
    yarn.faults.append(lambda method, path: (403, {}, "not for you") if path == "/conf" else None)
    with pytest.raises(
        ClusterUnreachable, match=r"add a line to site.yaml: 'default_filesystem: hdfs://namenode:8020'"
    ):
        discover(yarn.url, environ(tmp_path))
    site = Site(default_filesystem="hdfs://ns", webhdfs=["http://nn1:9870", "http://nn2:9870"])
    cluster = discover(yarn.url, environ(tmp_path), site=site)
    assert cluster.storage.webhdfs == ("http://nn1:9870", "http://nn2:9870")
    assert cluster.nodes.classpath == CROSS_PLATFORM_CLASSPATH


HA = {"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "rm1,rm2"}


def pair(first, second):
    """Return the settings of two ResourceManagers with these URLs."""
    return HA | {
        f"yarn.resourcemanager.webapp.address.rm{number}": url.removeprefix("http://")
        for number, url in enumerate((first, second), 1)
    }


def test_conf_completes_one_address(yarn, tmp_path):
    """The other one is asked when the given one has died."""
    yarn.conf |= pair(yarn.url, "http://rm2:8088")
    assert discover(yarn.url, environ(tmp_path)).resourcemanagers == (yarn.url, "http://rm2:8088")
    yarn.conf["yarn.resourcemanager.ha.enabled"] = "false"
    assert discover(yarn.url, environ(tmp_path)).resourcemanagers == (yarn.url,)


def test_log_services_come_from_the_configuration(yarn, tmp_path):
    yarn.conf["yarn.log.server.url"] = "http://jhs:19888/jobhistory/logs"
    assert discover(yarn.url, environ(tmp_path)).logs.services == ("http://jhs:19888/ws/v1/history",)


def test_configuration_substitutes_variables():
    conf = Configuration(
        {"a": "${b}/${env.HOME}", "b": "x${c}", "c": "1", "loop": "${loop}", "open": "${nobody}"}, {"HOME": "/home/ann"}
    )
    assert conf.get("a") == "x1//home/ann"
    assert conf.get("loop") == "${loop}"
    assert conf.get("open") == "${nobody}"
    assert conf.get("missing", "default") == "default"


@pytest.mark.parametrize("value, users, groups", [
    (None, (), ()), ("*", (), ()), (" ", (), ()), (" * ", (), ()), ("yarn", ("yarn",), ()), ("yarn, ops admins", ("yarn",), ("ops admins",)),
    ("yarn,ops admins,sre", ("yarn", "ops"), ("admins", "sre")), (" admins", (), ("admins",)),
])  # fmt: skip
def test_administrators_are_those_of_the_admin_acl(value, users, groups):
    found = Configuration({"yarn.admin.acl": value} if value else {}).administrators()
    assert (tuple(found.users), tuple(found.groups), dict(found.memberships)) == (users, groups, {})


def test_static_groups_are_those_of_the_configuration():
    static = {"hadoop.user.group.static.mapping.overrides": "dr.who=;ann=ml,users; bob = ml ;"}
    assert Configuration(static).administrators().memberships == {"dr.who": (), "ann": ("ml", "users"), "bob": ("ml",)}


@pytest.mark.parametrize(
    "conf, asks",
    [
        ({}, False),
        ({"yarn.acl.enable": "true"}, True),
        ({"yarn.acl.enable": "false"}, False),
        ({"hadoop.security.authentication": "kerberos"}, True),
    ],
)
def test_view_acls_hold_where_the_cluster_asks_for_them(yarn, tmp_path, conf, asks):
    yarn.conf |= conf
    assert discover(yarn.url, environ(tmp_path)).security.enforces_acls == asks


def test_resourcemanagers_of_a_high_available_pair(tmp_path):
    write_conf(
        tmp_path / "conf",
        "yarn-site.xml",
        **{
            "yarn__resourcemanager__ha__rm-ids": "a,b",
            "yarn__resourcemanager__hostname__a": "one",
            "yarn__resourcemanager__webapp__address__b": "two:18088",
        },
    )
    conf = Configuration.from_directory(tmp_path / "conf")
    assert conf.resourcemanagers() == ("http://one:8088", "http://two:18088")


@pytest.mark.parametrize(
    "text",
    ["<configuration>", *(f'<?xml version="1.0" encoding="{name}"?><a/>' for name in ("foo", "hex", "utf-32", "idna"))],
)
def test_a_broken_hadoop_conf_dir_names_the_file(tmp_path, text):
    (tmp_path / "core-site.xml").write_text(text)
    with pytest.raises(ClusterUnreachable, match=r"HADOOP_CONF_DIR .*core-site.xml is not XML"):
        discover(None, environ(tmp_path, HADOOP_CONF_DIR=str(tmp_path)))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"properties": None},
        {"properties": {"a": 1}},
        *({"properties": [item]} for item in ("x", 1, None, ["key"], {})),
    ],
)
def test_another_document_than_that_of_conf_is_refused(document):
    with pytest.raises(ValueError, match="not the JSON of Hadoop's /conf"):
        Configuration.from_conf(document)


def test_values_of_conf_are_texts():
    conf = Configuration.from_conf({"properties": [{"key": "a", "value": 5}, {"key": 7, "value": "x"}, {"key": "b"}]})
    assert (conf.get("a"), conf.get("b"), conf.names("")) == ("5", "", ["7", "a"])
