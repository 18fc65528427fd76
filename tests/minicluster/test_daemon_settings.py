"""Hadoop's configuration files, from the settings of a cluster."""

import re

import pytest

from support.machines import make_settings, read_sites, read_xml
from tf_yarn_ops.minicluster.daemon_settings import node_names, render_xml


def test_light_cluster_has_no_hdfs_and_mounts_a_folder():
    settings = make_settings(light=True)
    sites = read_sites(settings)
    assert "hdfs-site.xml" not in sites
    assert sites["core-site.xml"]["fs.defaultFS"] == settings.default_filesystem == "viewfs://minicluster"
    assert sites["core-site.xml"]["fs.viewfs.mounttable.minicluster.linkMergeSlash"] == "file:///clusters/one/files"
    assert sites["yarn-site.xml"]["yarn.nodemanager.remote-app-log-dir"].startswith("file:///clusters/one/")
    assert not any(name.startswith(("nn", "dn")) for name in settings.ports)


def test_jvm_options_reach_containers_by_the_white_list_only():
    site = read_sites(make_settings())["yarn-site.xml"]
    assert {"JAVA_HOME", "HADOOP_CONF_DIR", "PATH", "LANG", "TZ", "JDK_JAVA_OPTIONS"} <= set(
        site["yarn.nodemanager.env-whitelist"].split(",")
    )
    assert "yarn.nodemanager.admin-env" not in site


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("nodes", [1, 2, 8])
def test_every_address_is_a_port_of_its_own_on_this_machine(nodes, light):
    settings = make_settings(nodes=nodes, light=light)
    sites = [*read_sites(settings).values(), *map(settings.build_node_properties, node_names(nodes))]
    addresses = [value for site in sites for name, value in site.items() if re.search(r"address$", name)]
    assert sorted(addresses) == sorted(f"127.0.0.1:{port}" for port in settings.ports.values())


def test_two_nodes_share_no_folder():
    settings = make_settings(nodes=2)
    first, second = map(settings.build_node_properties, ("nm", "nm2"))
    assert not set(first.values()) & set(second.values())
    assert read_sites(settings)["yarn-site.xml"]["yarn.scheduler.include-port-in-node-name"] == "true"


def test_given_properties_win_and_find_their_files():
    given = {
        "yarn.cluster.max-application-priority": "3", "dfs.replication": "2", "hadoop.http.authentication.token.validity": "20",
        "yarn.scheduler.capacity.root.low.state": "STOPPED", "fs.defaultFS": "hdfs://elsewhere",
    }  # fmt: skip
    sites = read_sites(make_settings(properties=given))
    files = ["yarn-site.xml", "hdfs-site.xml", "core-site.xml", "capacity-scheduler.xml", "core-site.xml"]
    for file, (name, value) in zip(files, given.items(), strict=True):
        assert sites[file][name] == value
        assert sum(name in site for site in sites.values()) == 1, name


def test_values_survive_xml():
    values = {"a": "<b> & \"c\" 'd'", "ü": "ß\n"}
    assert read_xml(render_xml(values)) == values
