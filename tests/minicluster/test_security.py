"""Kerberos and HTTPS of the embedded Hadoop without Java: its settings, its certificates, and a real KDC."""

import dataclasses
import os
import re
import socket
import ssl
import subprocess
import threading
import xml.etree.ElementTree
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from support.waiting import until
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster, additions, certificates, configuration, daemons, kdc, ports, processes
from tf_yarn_ops.minicluster.commands import minicluster
from tf_yarn_ops.minicluster.java import Java
from tf_yarn_ops.minicluster.kerberos import REALM, SERVICES, USERS
from tf_yarn_ops.minicluster.shims import lead_here

ONE = Path("/clusters/one")
#: The first two times on a line of klist.
_PERIOD = re.compile(r"^(\d\d/\d\d/\d\d) (\d\d:\d\d:\d\d)  (\d\d/\d\d/\d\d) (\d\d:\d\d:\d\d)", re.M)


def make_settings(directory=ONE, **options):
    names = configuration.port_names(1, False, options.get("kerberos", False))
    additions = Path("/cache/secured") if options.get("kerberos") else None
    return configuration.Settings(
        directory=directory, hadoop=Path("/cache/hadoop"), java_home=Path("/opt/jdk"), user="ada",
        ports=ports.choose_ports(names), memory=1024, additions=additions, **options,
    )  # fmt: skip


def read_sites(settings):
    files = configuration.build_configuration(settings)
    roots = {name: xml.etree.ElementTree.fromstring(text) for name, text in files.items() if name.endswith(".xml")}
    return {name: {entry.findtext("name"): entry.findtext("value") for entry in root} for name, root in roots.items()}


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(("version", "java", "opened"), [("3.1.4", 17, True), ("3.1.4", 8, False), ("3.2.4", 17, False)])
def test_old_versions_reach_javas_classes_of_kerberos(version, java, opened):
    flags = daemons.kerberos_flags(make_settings(kerberos=True, version=version, java=java))
    assert ("--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED" in flags) is opened


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("core-site.xml", "hadoop.security.authentication", "kerberos"),
        ("core-site.xml", "hadoop.http.authentication.type", "kerberos"),
        ("core-site.xml", "hadoop.http.authentication.kerberos.principal", f"HTTP/localhost@{REALM}"),
        ("core-site.xml", "hadoop.proxyuser.gateway.users", "alice,bob"),
        ("hdfs-site.xml", "dfs.block.access.token.enable", "true"),
        ("hdfs-site.xml", "dfs.namenode.keytab.file", "/clusters/one/kerberos/hdfs.keytab"),
        ("yarn-site.xml", "yarn.resourcemanager.principal", f"yarn/_HOST@{REALM}"),
        ("yarn-site.xml", "yarn.acl.enable", "true"),
        ("capacity-scheduler.xml", "yarn.scheduler.capacity.root.default.acl_administer_queue", " "),
        ("capacity-scheduler.xml", "yarn.scheduler.capacity.root.default.acl_submit_applications", "*"),
    ],
)
def test_settings_of_kerberos(file, name, value):
    assert read_sites(make_settings(kerberos=True))[file][name] == value
    assert read_sites(make_settings())[file].get(name) != value


@pytest.mark.parametrize("options", [{"kerberos": True}, {"https": True}, {"kerberos": True, "https": True}])
def test_services_are_known_by_the_name_in_their_principal_and_certificate(options):
    settings = make_settings(**options)
    values = {name: value for site in read_sites(settings).values() for name, value in site.items()}
    values |= configuration.build_node_properties(settings, "nm")
    addresses = {name: value for name, value in values.items() if name.endswith("address")}
    assert {address.partition(":")[0] for address in addresses.values()} == {"localhost"}
    pages = [name for name in addresses if "web" in name or "http" in name]
    assert len(pages) == 4
    assert all(("https" in name) == ("https" in options) for name in pages)
    assert settings.default_filesystem.startswith("hdfs://localhost:")
    assert settings.web_address("rm").startswith("https://localhost:" if "https" in options else "http://localhost:")


def test_properties_win_and_find_their_files():
    given = {
        "yarn.acl.enable": "false", "dfs.replication": "2", "hadoop.http.authentication.token.validity": "20",
        "yarn.scheduler.capacity.root.low.state": "STOPPED", "fs.defaultFS": "hdfs://elsewhere",
    }  # fmt: skip
    sites = read_sites(make_settings(kerberos=True, properties=given))
    files = ["yarn-site.xml", "hdfs-site.xml", "core-site.xml", "capacity-scheduler.xml", "core-site.xml"]
    for file, (name, value) in zip(files, given.items(), strict=True):
        assert sites[file][name] == value
        assert sum(name in site for site in sites.values()) == 1, name


def test_only_what_needs_it_differs_in_command_lines():
    plain, secured = make_settings(), make_settings(kerberos=True)
    for daemon in daemons.list_daemons(secured)[1:]:
        command = daemons.build_command(secured, daemon)
        assert "-Djava.security.krb5.conf=/clusters/one/kerberos/krb5.conf" in command
        classes = command[command.index("-cp") + 1]
        assert classes.startswith("/cache/secured/classes:") == (daemon.title == "NodeManager"), daemon.name
    assert daemons.list_daemons(secured)[0].name == "kdc"
    assert "kdc" not in [daemon.name for daemon in daemons.list_daemons(plain)]
    assert not any("krb5" in word for daemon in daemons.list_daemons(plain) for word in daemons.build_command(plain, daemon))


def test_containers_find_the_realm_and_no_ticket():
    settings = make_settings(kerberos=True)
    callers = {"KRB5CCNAME": "FILE:/tmp/mine", "KRB5_CLIENT_KTNAME": "/tmp/keys", "PATH": "/bin"}
    clients = lead_here(settings, "/bin")
    seen = daemons.build_environment(settings, callers, clients)
    assert "-Djava.security.krb5.conf=/clusters/one/kerberos/krb5.conf" in seen["JAVA_TOOL_OPTIONS"].split()
    assert "krb5" not in seen["JDK_JAVA_OPTIONS"]
    assert not any(name.startswith("KRB5") for name in seen)
    assert clients["KRB5_CONFIG"] == "/clusters/one/kerberos/krb5.conf"


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kerberos", "--light"], "leave out --light or --kerberos"),
        (["--ticket_lifetime", "60"], "needs a cluster with Kerberos (--kerberos)"),
        (["--set", "a.b", "--set", "=c"], "a property is written as NAME=VALUE, not as 'a.b', ''"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_starts(tmp_path, words, message):
    ran = CliRunner().invoke(minicluster, ["up", "--dir", str(tmp_path / "one"), *words])
    assert ran.exit_code == 1
    assert message in ran.output
    assert not (tmp_path / "one" / "state.json").exists()


def test_a_missing_kdc_is_told_with_the_packages_that_have_it(monkeypatch):
    monkeypatch.setattr(kdc.shutil, "which", lambda program, path: None if program.startswith("k") else program)
    with pytest.raises(MiniClusterError, match=r"needs krb5kdc, kdb5_util, kadmin.local, kinit: .*krb5-kdc.*krb5-server"):
        kdc.check_programs({})


def test_a_java_without_compiler_is_told(tmp_path):
    with pytest.raises(MiniClusterError, match=r"bin/javac is missing.*install a JDK .*, not only a JRE"):
        additions.prepare_security(tmp_path / "hadoop-3.4.3", "3.4.3", os.environ, Java(tmp_path / "jre", 17), print)


def test_a_cluster_without_kerberos_has_no_keytabs(tmp_path):
    with pytest.raises(MiniClusterError, match="there is no cluster in"):
        MiniCluster(tmp_path).keytab("alice")


# ---------------------------------------------------------------- certificates


@pytest.fixture
def stores(tmp_path):
    made = certificates.Stores(tmp_path / "https")
    certificates.make_stores(made)
    return made


def test_clients_trust_the_daemons_by_both_names_and_by_the_strict_rules(stores, tmp_path):
    key, certificate, _ = pkcs12.load_key_and_certificates(stores.key_store.read_bytes(), b"minicluster")
    (tmp_path / "pair.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    serving, trusting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    serving.load_cert_chain(tmp_path / "pair.pem")
    trusting.load_verify_locations(stores.ca_file)
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    for name in ("localhost", "127.0.0.1"):
        server, client = socket.socketpair()
        with server, client:
            thread = threading.Thread(target=lambda end=server: serving.wrap_socket(end, server_side=True).close())
            thread.start()
            trusting.wrap_socket(client, server_hostname=name).close()
            thread.join(60)


def test_keys_are_their_owners_alone_and_stay_when_the_cluster_starts_again(stores):
    before = {path.name: path.read_bytes() for path in stores.folder.iterdir()}
    assert set(before) == {"ca.pem", "daemons.p12", "trust.jks"}
    certificates.make_stores(stores)
    assert {path.name: path.read_bytes() for path in stores.folder.iterdir()} == before
    assert stores.folder.stat().st_mode & 0o777 == 0o700
    assert stores.key_store.stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- the KDC


@pytest.fixture
def realm(tmp_path):
    """Settings of a cluster of which only the KDC runs, with tickets that live for a minute."""
    settings = make_settings(tmp_path, kerberos=True, ticket_lifetime=60)
    settings.logs.mkdir()
    kdc.make_realm(settings, os.environ)
    child = daemons.start(settings, daemons.list_daemons(settings)[0], os.environ)
    try:
        until(lambda: kdc.listens(settings))
        yield settings
    finally:
        child.terminate()
        child.wait(60)


def kinit(settings, name, cache):
    environ = {**os.environ, **lead_here(settings, os.environ["PATH"]), "KRB5CCNAME": f"FILE:{cache}", "TZ": "UTC"}
    command = ["kinit", "-k", "-t", settings.realm.keytab(name), settings.realm.principal(name)]
    subprocess.run(command, env=environ, check=True, timeout=30, capture_output=True)
    listed = subprocess.run(["klist"], env=environ, check=True, timeout=30, capture_output=True, text=True).stdout
    period = _PERIOD.search(listed).groups()
    start, end = (datetime.strptime(" ".join(words), "%m/%d/%y %H:%M:%S") for words in (period[:2], period[2:]))
    return (end - start).total_seconds()


@pytest.mark.slow
def test_every_name_has_a_keytab_and_users_tickets_live_as_long_as_is_set(realm, tmp_path):
    assert processes.find_by_arguments(daemons._marks(tmp_path, "kdc")) == (daemons.find(tmp_path, "kdc"),)
    for name in (*USERS, *SERVICES):
        assert realm.realm.keytab(name).stat().st_mode & 0o077 == 0, name
        lifetime = kinit(realm, name, tmp_path / "cache")
        assert 58 <= lifetime <= 62 if name in USERS else lifetime > 3600, name


@pytest.mark.slow
def test_a_realm_keeps_its_keys_and_takes_a_new_lifetime(realm, tmp_path):
    before = {name: realm.realm.keytab(name).read_bytes() for name in USERS}
    kdc.make_realm(dataclasses.replace(realm, ticket_lifetime=None), os.environ)
    assert {name: realm.realm.keytab(name).read_bytes() for name in USERS} == before
    assert kinit(realm, "alice", tmp_path / "cache") > 3600
