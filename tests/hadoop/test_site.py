"""The site's file: where it lies, its keys and its faults."""

import pytest

from support.hadoop_clients import environ
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.site import Site, find_site, read_site


def test_unknown_and_wrong_keys_of_a_site_file_are_all_named(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("resource_manager: x\nstaging: relative\nsubmit_with: http\nrequest_timeout: soon\n")
    with pytest.raises(SpecInvalid) as raised:
        read_site(path)
    text = str(raised.value)
    assert f"{path}: line 1: unknown key (did you mean 'resourcemanager'?)" in text
    assert "request_timeout: the value is not a number of seconds" in text
    assert "submit_with: the value is not one of auto, rest, skein" in text


def test_a_wrong_value_hides_no_rule_of_another_setting(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(
        "history_days: -1\nstaging: relative\nkeytab: FILE:relative\nenvironment_cache: a\nrequest_timeout: 0\n"
        "default_filesystem: 'hdfs://['\nstaging_url: 1\ngateway_password_file: /a\ngateway_token_file: /b\n"
    )
    with pytest.raises(SpecInvalid) as raised:
        read_site(path)
    assert {fault.path.rpartition(": ")[2] for fault in raised.value.faults} == {
        "history_days", "staging", "keytab", "environment_cache", "request_timeout", "default_filesystem", "staging_url",
        "gateway_token_file",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "- s3cret\n- b\n",
        "s3cret: b: c",
        "\tx: s3cret",
        "s3cret",
        "root:s3cret:20228:0:::\nann:s3cret:20228:0:::\n",
        "x: *s3cret",
        "x: !s3cret y",
        "x: s3cret %",
        "%s3cret",
        "namenodes: {s3cret: [1, s3cret]}",
        "webhdfs: [s3cret, {}]",
        "submit_with: s3cret",
        "coordinator_ports: s3cret",
        "history_days: s3cret",
        "staging: s3cret",
        "s3cret\0",
        "? [s3cret]",
    ],
)
def test_a_fault_of_a_site_file_shows_no_content(tmp_path, text):
    path = tmp_path / "site.yaml"
    path.write_text(text)
    with pytest.raises(SpecInvalid, match="site file") as raised:
        read_site(path)
    assert "s3cret" not in str(raised.value)


def test_the_users_site_file_is_found(tmp_path):
    folder = tmp_path / ".config" / "tf_yarn_ops"
    folder.mkdir(parents=True)
    (folder / "site.yaml").write_text("coordinator_ports: 31000-31031\nam_java_options: ''\n")
    site = find_site(environ(tmp_path))
    assert site.am_java_options == ""
    assert {site.base_port(number) for number in range(10)} == {31000, 31016}


@pytest.mark.parametrize(
    "setting", [{"staging": ""}, {"staging": "a"}, {"staging_url": "a://["}, {"default_filesystem": "hdfs://[a]:1"}]
)
def test_places_that_are_no_paths_and_urls(setting):
    with pytest.raises(SpecInvalid, match=r"is not an absolute path|is not a URL such as hdfs://namenode:8020"):
        Site(**setting)


@pytest.mark.parametrize("ports", ["20000", "1-20000", "20000-20010", "60000-70000", "b-a", "\u00b2-30000"])
def test_port_ranges_that_can_not_be(ports):
    with pytest.raises(SpecInvalid, match="coordinator_ports"):
        Site(coordinator_ports=ports)
