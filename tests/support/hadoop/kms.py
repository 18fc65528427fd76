"""Hadoop's key server: its files, a second one with its keys, and the encryption zone of a cluster with one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from support.waiting import until
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import daemons
from tf_yarn_ops.minicluster.daemon_settings import OPENS, Daemon, render_xml

from .kerberos import HTTP, PROXY_USER, USERS
from .server_jars import fetch_jars

if TYPE_CHECKING:
    from .settings import HadoopSettings

KMS = "kms"
#: The key of the zones.
KEY = "zone"
MAIN_CLASS = "org.apache.hadoop.crypto.key.kms.server.KMSWebServer"
#: The fewest rounds of Java's to encrypt a key of a JCEKS store. Its default, 200,000, costs 0.15 s for each use of a key.
QUICK_STORE = "-Djdk.jceks.iterationCount=10000"
#: All hosts of the address of a KMS have one port.
_SECOND_HOST = "127.0.0.2"


def kms_jars(version: str) -> Path:
    """Return the folder with the jar of the KMS, which runs on Hadoop's jars."""
    return fetch_jars(f"kms-{version}", [f"org.apache.hadoop:hadoop-kms:{version}", "org.slf4j:jul-to-slf4j:1.7.36"])


def build_kms_uri(settings: HadoopSettings) -> str:
    """Return the address of the KMS, and of a second one, which Kerberos would need a principal for."""
    hosts = [settings.host, *[_SECOND_HOST] * (not settings.kerberos)]
    return f"kms://http@{';'.join(hosts)}:{settings.ports[KMS]}/kms"


def build_kms(settings: HadoopSettings) -> Daemon:
    """Return the KMS."""
    flags = (
        f"-Dkms.config.dir={settings.directory}/kms",
        f"-Dkms.host={settings.host}",
        f"-Dlog4j.configuration=file:{settings.configuration}/log4j.properties",
        OPENS,
        QUICK_STORE,
    )
    return Daemon(KMS, "KMS", MAIN_CLASS, 128, flags)


@contextmanager
def second_kms(settings: HadoopSettings) -> Iterator[subprocess.Popen[bytes]]:
    """Run a second KMS with the keys that the first one has made."""
    first = next(daemon for daemon in settings.list_daemons() if daemon.name == KMS)
    second = replace(first, name="kms2", flags=(*first.flags, f"-Dkms.host={_SECOND_HOST}"))
    process = daemons.start(settings, second, daemons.build_environment(settings, os.environ))

    def listens() -> bool:
        assert process.poll() is None, daemons.log_tail(settings.directory, second.name)
        with socket.socket() as client:
            return client.connect_ex((_SECOND_HOST, settings.ports[KMS])) == 0

    try:
        assert until(listens, 120, 0.1)
        yield process
    finally:
        process.kill()
        process.wait()


def build_kms_properties(settings: HadoopSettings) -> dict[str, str]:
    """Return the properties of ``core-site.xml`` that lead Hadoop to the KMS."""
    return {
        "hadoop.security.key.provider.path": build_kms_uri(settings),
        "hadoop.security.kms.client.encrypted.key.cache.size": "4",
    }


def build_kms_files(settings: HadoopSettings, folder: Path) -> dict[str, str]:
    """Return the files of the KMS by name: its configuration, in which everybody may use and make keys."""
    site = {
        "hadoop.kms.key.provider.uri": f"jceks://file@{folder}/keys.jceks",
        "hadoop.security.keystore.java-keystore-provider.password-file": "kms-password",
        "hadoop.kms.authentication.type": "kerberos" if settings.kerberos else "simple",
        "hadoop.kms.http.host": "${kms.host}",
        "hadoop.kms.http.port": str(settings.ports[KMS]),
        # A key that was given a moment ago must not hide that the KMS is away.
        "hadoop.kms.cache.enable": "false",
        # A KMS makes 150 encrypted keys at the first request for one, and the NameNode 150 more.
        "hadoop.security.kms.encrypted.key.cache.size": "4",
    }
    core = {"hadoop.tmp.dir": f"{folder}/tmp"}
    if settings.kerberos:
        realm = settings.realm
        core["hadoop.security.authentication"] = "kerberos"
        site |= {
            "hadoop.kms.authentication.kerberos.principal": realm.principal(HTTP),
            "hadoop.kms.authentication.kerberos.keytab": str(realm.keytab(HTTP)),
            # Oozie starts no launcher for a user for whom it gets no token here. The other users have no such rule.
            f"hadoop.kms.proxyuser.{PROXY_USER}.users": USERS[0],
            f"hadoop.kms.proxyuser.{PROXY_USER}.hosts": "*",
        }
    acls = {"default.key.acl.MANAGEMENT": "*", "default.key.acl.GENERATE_EEK": "*", "default.key.acl.DECRYPT_EEK": "*",
            "default.key.acl.READ": "*"}  # fmt: skip
    return {
        "core-site.xml": render_xml(core),
        "kms-site.xml": render_xml(site),
        "kms-acls.xml": render_xml(acls),
        "kms-password": "minicluster",
    }


def make_zone(settings: HadoopSettings, path: str, environ: Mapping[str, str]) -> None:
    """Make an empty folder of HDFS an encryption zone, the first with its key; ``environ`` is that of HDFS's superuser.

    Raises
    ------
    MiniClusterError
        Hadoop refused; the message has its answer.
    """
    mark = settings.directory / "kms" / "zone"
    # Hadoop's program for keys is a JVM of its own, for one request. With SPNEGO curl sends a body only when it must.
    ticket = ["--negotiate", "--user", ":"] if settings.kerberos else []
    key = ["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", *ticket]
    key += ["--header", "Content-Type: application/json", "--data", json.dumps({"name": KEY, "length": 128})]
    key += [f"http://{settings.host}:{settings.ports[KMS]}/kms/v1/keys?user.name={settings.superuser}"]
    jars = ":".join([*settings.tool_jars, str(settings.configuration)])
    java = [f"{settings.java_home}/bin/java", *settings.client_flags, "-cp", jars]
    zone = [*java, "org.apache.hadoop.hdfs.tools.CryptoAdmin", "-createZone", "-keyName", KEY, "-path", path]
    for command in [*([] if mark.exists() else [key]), zone]:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environ,
                             timeout=120)  # fmt: skip
        if ran.returncode != 0:
            raise MiniClusterError(
                f"{path} is no encryption zone (exit {ran.returncode}): {ran.stderr.strip()[-2000:]}"
            )
    mark.touch()
