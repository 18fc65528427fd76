"""Discovery of a cluster: its sources and its errors."""

import dataclasses
import json
import os
import pwd
import time
from pathlib import Path

import pytest

from support.fake_webhdfs import serving_files
from support.fake_yarn import FakeYarn, closed_address, serving, stand_by
from support.hadoop_clients import environ, write_conf
from support.waiting import until
from tf_yarn_ops.errors import ClusterUnreachable, ResourceManagerUnknown, SpecInvalid, SubmissionRejected, TfYarnError
from tf_yarn_ops.hadoop.cluster import (
    Cluster,
    ClusterAnswers,
    FoundCluster,
    StorageFacts,
    build_cluster,
    current_user,
    discover,
    find_addresses,
    local,
    parse_addresses,
)
from tf_yarn_ops.hadoop.configuration import Configuration
from tf_yarn_ops.hadoop.security.authentication import KerberosAuthentication, SimpleAuthentication
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.hadoop.transport import RestUnavailable


def test_everything_is_learned_from_the_resourcemanagers_url(yarn, tmp_path):
    cluster = discover(yarn.url, environ(tmp_path))
    assert cluster.resourcemanagers == (yarn.url,)
    assert (cluster.user, cluster.login) == ("ann", "ann")
    assert cluster.storage.default == cluster.storage.filesystem == "hdfs://namenode:8020"
    assert cluster.storage.webhdfs == ("http://namenode:9870",)
    assert cluster.staging == "/user/ann/.skein"
    assert cluster.directory("application_1_0001") == "/user/ann/.skein/application_1_0001"
    assert cluster.nodes.classpath == ("/etc/hadoop/conf", "/opt/hadoop/*")
    assert (cluster.security.kerberos, cluster.version, cluster.storage.local_root) == (False, "3.4.3", None)


def test_the_value_is_frozen(yarn, tmp_path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        discover(yarn.url, environ(tmp_path)).user = "bob"


def test_argument_then_environment_then_site_then_hadoop_conf_dir(yarn, tmp_path):
    others = [FakeYarn() for _ in range(3)]
    with serving(others[0]) as by_variable, serving(others[1]) as by_site, serving(others[2]) as by_conf:
        site = tmp_path / "site.yaml"
        site.write_text(f"resourcemanager: {by_site}\n")
        write_conf(
            tmp_path / "conf", "yarn-site.xml", yarn__resourcemanager__webapp__address=by_conf.removeprefix("http://")
        )
        write_conf(tmp_path / "conf", fs__defaultFS="hdfs://elsewhere:8020")
        variables = environ(
            tmp_path, HADOOP_CONF_DIR=str(tmp_path / "conf"), YTF_SITE=str(site), YTF_RESOURCEMANAGER=by_variable
        )
        assert discover(yarn.url, variables).resourcemanagers == (yarn.url,)
        assert discover(None, variables).resourcemanagers == (by_variable,)
        del variables["YTF_RESOURCEMANAGER"]
        assert discover(None, variables).resourcemanagers == (by_site,)
        del variables["YTF_SITE"]
        learned = discover(None, variables)
        assert learned.resourcemanagers == (by_conf,)
        assert learned.storage.default == "hdfs://elsewhere:8020"


def test_no_address_at_all_says_where_one_can_be_given(tmp_path):
    with pytest.raises(
        ResourceManagerUnknown, match=r"--resourcemanager.*YTF_RESOURCEMANAGER.*site.yaml.*HADOOP_CONF_DIR"
    ):
        discover(None, environ(tmp_path))


@pytest.mark.parametrize(
    "text, urls",
    [
        ("rm", ("http://rm:8088",)),
        ("rm:80", ("http://rm:80",)),
        (" https://rm/ , rm2:8088,", ("https://rm", "http://rm2:8088")),
        ("", ()),
    ],
)
def test_addresses(text, urls):
    assert parse_addresses(text) == urls


@pytest.mark.parametrize(
    "text",
    ["ftp://rm", "http://", "http://rm:port", '"http://rm"', "http://a;http://b", "http://a http://b", "gr\udcf6"],
)
def test_wrong_addresses(text):
    with pytest.raises(SpecInvalid, match="is not the address of a ResourceManager; give http://host:8088, two as "):
        parse_addresses(text)


@pytest.mark.slow
def test_absent_server_is_reported_in_seconds(tmp_path):
    started = time.monotonic()
    with pytest.raises(ClusterUnreachable, match="no ResourceManager answers"):
        discover(closed_address(), environ(tmp_path))
    assert time.monotonic() - started < 60


def test_not_a_hadoop_at_all(yarn, tmp_path):
    yarn.faults.append(lambda method, path: (200, {"Content-Type": "text/html"}, "<h1>Welcome to nginx!</h1>"))
    with pytest.raises(ClusterUnreachable, match="is no YARN ResourceManager: Welcome to nginx!"):
        discover(yarn.url, environ(tmp_path))


def test_another_json_service_is_refused(yarn, tmp_path):
    yarn.faults.append(lambda method, path: (200, {"Content-Type": "application/json"}, '{"status": "UP"}'))
    with pytest.raises(ClusterUnreachable, match="is no YARN ResourceManager"):
        discover(yarn.url, environ(tmp_path))


def test_a_cluster_that_takes_us_for_somebody_else_is_refused(yarn, tmp_path):
    yarn.user_seen = "dr.who"
    with pytest.raises(SubmissionRejected, match=r"takes us for 'dr.who', not for 'ann'"):
        discover(yarn.url, environ(tmp_path))


def test_kerberos_is_seen(yarn, tmp_path):
    yarn.conf["hadoop.security.authentication"] = "kerberos"
    assert discover(yarn.url, environ(tmp_path)).security.kerberos


def test_both_namenodes_of_a_name_service(yarn, tmp_path):
    yarn.conf = {
        "fs.defaultFS": "hdfs://ns",
        "dfs.nameservices": "ns,other",
        "dfs.ha.namenodes.ns": "nn1, nn2",
        "dfs.namenode.http-address.ns.nn1": "one:9870",
        "dfs.namenode.http-address.ns.nn2": "two:9870",
    }
    assert discover(yarn.url, environ(tmp_path)).storage.webhdfs == ("http://one:9870", "http://two:9870")


def test_a_viewfs_over_a_local_folder(yarn, tmp_path):
    yarn.conf = {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": "file:///data/files"}
    cluster = discover(yarn.url, environ(tmp_path))
    assert (cluster.storage.filesystem, cluster.storage.local_root, cluster.staging) == (
        "viewfs://mini",
        "/data/files",
        "/user/ann/.skein",
    )


def test_a_viewfs_over_name_services(yarn, tmp_path):
    yarn.conf = {
        "fs.defaultFS": "viewfs://all/",
        "fs.viewfs.mounttable.all.link./tmp": "hdfs://one:8020/tmp",
        "fs.viewfs.mounttable.all.link./user": "hdfs://two:8020/home",
        "dfs.namenode.http-address": "two:9870",
    }
    cluster = discover(yarn.url, environ(tmp_path))
    assert (cluster.storage.filesystem, cluster.staging) == ("hdfs://two:8020", "/home/ann/.skein")


HA = {"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "rm1,rm2"}


def pair(first, second):
    """Return the settings of two ResourceManagers with these URLs."""
    return HA | {
        f"yarn.resourcemanager.webapp.address.rm{number}": url.removeprefix("http://")
        for number, url in enumerate((first, second), 1)
    }


@pytest.fixture
def standby(yarn):
    """Return a standby that leads to ``yarn``, and has not read hdfs-site.xml yet."""
    fake = FakeYarn()
    del fake.conf["dfs.namenode.http-address"]
    with serving(fake) as url:
        stand_by(fake, yarn.url)
        fake.conf |= pair(url, yarn.url)
        yarn.conf |= pair(url, yarn.url)
        yield fake


def test_the_configuration_is_that_of_the_active_resourcemanager(yarn, standby, tmp_path):
    """A standby answers /conf by itself, and may not have read hdfs-site.xml."""
    for given in (standby.url, f"{standby.url},{yarn.url}", yarn.url):
        cluster = discover(given, environ(tmp_path))
        assert cluster.storage.webhdfs == ("http://namenode:9870",)
        assert set(cluster.resourcemanagers) == {standby.url, yarn.url}
        assert cluster.resourcemanagers[0] == yarn.url, "the active one is asked first"
        assert cluster.version == "3.4.3"


def test_fail_over_between_the_answers_reads_the_configuration_again(yarn, tmp_path):
    """The first one has shown its configuration when it stops answering; the second one's counts."""
    first = FakeYarn()
    first.conf |= {"fs.defaultFS": "hdfs://old:8020"}

    def stop(_method, path):
        if path.endswith("/userinfo"):
            until(lambda: {"/conf", "/ws/v1/cluster/info"} <= {path for _, path, *_ in first.requests})
            return 503, {}, "This is standby RM"
        return None

    first.faults.append(stop)
    with serving(first) as url:
        cluster = discover(f"{url},{yarn.url}", environ(tmp_path))
    assert cluster.storage.default == "hdfs://namenode:8020"


def test_another_name_of_a_configured_address_is_not_a_third_one(yarn, tmp_path):
    """A standby's redirect has the name that the address resolves to."""
    standby = FakeYarn()
    with serving(standby) as url:
        stand_by(standby, yarn.url.replace("127.0.0.1", "localhost"))
        standby.conf |= pair(url, yarn.url)
        yarn.conf |= pair(url, yarn.url)
        assert discover(url, environ(tmp_path)).resourcemanagers == (url, yarn.url)


@pytest.mark.slow
def test_missing_active_resourcemanager_is_reported_in_seconds(yarn, tmp_path):
    stand_by(yarn)
    started = time.monotonic()
    with pytest.raises(ClusterUnreachable, match=r"is not active .Can not find any active RM"):
        discover(yarn.url, environ(tmp_path))
    assert time.monotonic() - started < 60


def test_acting_for_another_user_moves_the_staging_directory(yarn, tmp_path):
    cluster = discover(yarn.url, environ(tmp_path)).acting_for("bob")
    assert (cluster.staging, cluster.login) == ("/user/bob/.skein", "ann")
    assert cluster.authentication.parameters() == {"user.name": "ann", "doAs": "bob"}


def test_who_we_are_is_not_the_environments_to_say(monkeypatch):
    name = pwd.getpwuid(os.getuid()).pw_name
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "hdfs")
    assert current_user({"LOGNAME": "hdfs", "USER": "hdfs"}) == name
    assert Configuration({"dir": "/tmp/${user.name}"}, {"USER": "hdfs"}).get("dir") == f"/tmp/{name}"
    assert current_user({"HADOOP_USER_NAME": "ann"}) == "ann"


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_a_user_id_without_a_name_needs_one_for_hadoop(monkeypatch, error):
    """As in a container with a user of its own; ``getpass`` raises OSError since Python 3.13."""
    monkeypatch.setattr(os, "getuid", lambda: 1234567)
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    if error is OSError:
        monkeypatch.setattr("getpass.getuser", unnamed)
    with pytest.raises(SpecInvalid, match="the user id 1234567 has no name on this machine; set HADOOP_USER_NAME"):
        current_user({})
    assert current_user({"HADOOP_USER_NAME": "ann"}) == "ann"
    assert local("/nowhere").user == "1234567"


def unnamed():
    raise OSError("No username set in the environment")


def test_a_user_that_is_not_utf8_is_rejected():
    with pytest.raises(SpecInvalid, match="HADOOP_USER_NAME is not UTF-8"):
        current_user({"HADOOP_USER_NAME": "gr\udcf6"})


GOLDEN = sorted(Path(__file__).with_name("golden").glob("*.json"), key=lambda path: path.stem)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_cluster_is_built_from_the_answers_of_real_ones(path):
    """``source`` says where the answers come from; ``python tests/hadoop/test_cluster.py`` writes the facts again."""
    row = json.loads(path.read_text())
    assert facts_of(row) == row["cluster"]


@pytest.mark.parametrize(
    "name",
    ["fs.defaultFS", "yarn.log.server.url", "yarn.nodemanager.remote-app-log-dir", "fs.viewfs.mounttable.a.link./"],
)
@pytest.mark.parametrize("url", ["hdfs://[", "hdfs://a:x", "hdfs://[x]/y"])
def test_configuration_with_an_address_that_is_none_is_a_fault(name, url):
    conf = Configuration({"fs.defaultFS": "viewfs://a", name: url})
    answers = ClusterAnswers({}, None, conf, ("http://a:1",))
    with pytest.raises(ClusterUnreachable, match=r"of the cluster's configuration is not a URL \('hdfs://"):
        build_cluster(answers, FoundCluster(("http://a:1",), ""), SimpleAuthentication("a", "a"), Site())


@pytest.mark.parametrize("host", ["[a]", "[", "a:b"])
@pytest.mark.parametrize("name", ["yarn.resourcemanager.hostname", "yarn.resourcemanager.webapp.address"])
def test_resourcemanager_that_is_no_url_is_a_fault(tmp_path, name, host):
    """In HADOOP_CONF_DIR, and in the answer of a server that names the others of a pair."""
    properties = f"<configuration><property><name>{name}</name><value>{host}</value></property></configuration>"
    (tmp_path / "yarn-site.xml").write_text(properties)
    with pytest.raises(ClusterUnreachable, match=r"yarn.resourcemanager.webapp.address of .* is not a URL"):
        find_addresses(None, {"HADOOP_CONF_DIR": str(tmp_path)}, Site())
    answers = ClusterAnswers({}, None, Configuration({"fs.defaultFS": "hdfs://a:1", name: host}), ("http://a:1",))
    with pytest.raises(ClusterUnreachable, match=r"yarn.resourcemanager.webapp.address of .* is not a URL"):
        build_cluster(answers, FoundCluster(("http://a:1",), ""), SimpleAuthentication("a", "a"), Site())


@pytest.mark.parametrize("host", ["[a]:9870", "[", "a:b"])
def test_namenode_that_is_no_url_is_an_error_of_ours(host):
    for setting in ("dfs.namenode.http-address", "dfs.namenode.http-address.a.nn1"):
        conf = Configuration(
            {"fs.defaultFS": "hdfs://a", "dfs.nameservices": "a", "dfs.ha.namenodes.a": "nn1", setting: host}
        )
        answers = ClusterAnswers({}, None, conf, ("http://a:1",))
        with pytest.raises(TfYarnError):
            cluster = build_cluster(answers, FoundCluster(("http://a:1",), ""), SimpleAuthentication("a", "a"), Site())
            cluster.open_filesystem().status("/")


def facts_of(row):
    """Return the facts that differ from those of an empty cluster, as values for JSON."""
    login, conf = row["login"], Configuration(row["conf"])
    authentication = (KerberosAuthentication if row["kerberos"] else SimpleAuthentication)(login, login)
    answers = ClusterAnswers(row["info"], row["user"], conf, tuple(row["addresses"]))
    cluster = build_cluster(answers, FoundCluster(tuple(row["given"]), ""), authentication, Site(**row["site"]))
    facts, plain = vars(cluster), vars(Cluster((), "", "", StorageFacts(), site=cluster.site))
    return json.loads(json.dumps(different(facts, plain)))


def different(facts, plain):
    return {
        name: different(vars(value), vars(plain[name])) if dataclasses.is_dataclass(value) else value
        for name, value in facts.items()
        if value != plain[name]
    }


if __name__ == "__main__":
    for golden in GOLDEN:
        recorded = json.loads(golden.read_text())
        recorded["cluster"] = facts_of(recorded)
        golden.write_text(json.dumps(recorded, indent=1) + "\n")


@pytest.mark.parametrize("url", ["/model", "hdfs:///model", "hdfs://namenode:8020/model"])
def test_default_file_system_is_read_where_it_is_with_another_for_staging(yarn, tmp_path, url):
    with serving_files() as default, serving_files() as other:
        default.files["/model"], other.files["/model"] = b"default", b"other"
        site = Site(
            staging_url="hdfs://other:8020", webhdfs=(other.url,), namenodes={"hdfs://namenode:8020": default.url}
        )
        cluster = discover(yarn.url, environ(tmp_path), site=site)
        for place, content in ((url, b"default"), ("hdfs://other:8020/model", b"other")):
            files, path = cluster.open_path(place)
            assert files.read(path) == content


def test_behind_a_gateway_a_job_can_not_name_who_gets_the_password(cluster, tmp_path):
    (tmp_path / "password").write_text("ann:geheim\n")
    (tmp_path / "password").chmod(0o600)
    guarded = dataclasses.replace(cluster, site=Site(gateway_password_file=str(tmp_path / "password")))
    with pytest.raises(RestUnavailable, match=r"has to be configured.*'namenodes: \{hdfs://evil: https"):
        guarded.open_namenodes("hdfs://evil")
