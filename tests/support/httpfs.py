"""A real HttpFS in front of a MiniCluster's HDFS, from Maven's artefacts."""

import os
import subprocess
import urllib.error
from contextlib import contextmanager
from pathlib import Path

from support.hadoop.hosts import full_name
from support.hadoop.kerberos import HTTP, PROXY_USER
from support.hadoop.server_jars import fetch_jars
from support.waiting import until
from tf_yarn_ops.minicluster import health
from tf_yarn_ops.minicluster.ports import choose_ports

#: Maven has no HttpFS of 3.4.3; this one runs on the other jars of 3.4.3.
VERSION = "3.4.2"
_JARS = (f"org.apache.hadoop:hadoop-hdfs-httpfs:{VERSION}", "com.googlecode.json-simple:json-simple:1.1.1")


def proxy_properties(user):
    """Return the properties by which a user may act for all others, from everywhere."""
    return {f"hadoop.proxyuser.{user}.{what}": "*" for what in ("hosts", "groups")}


def let_act_for_others(hadoop):
    """Let the daemons' user act for other users, in the NameNode that runs."""
    file, user = hadoop.settings.configuration / "core-site.xml", hadoop.settings.user
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in proxy_properties(user).items()
    )
    text = file.read_text()
    if rows not in text:
        file.write_text(text.replace("</configuration>", f"{rows}</configuration>"))
    subprocess.run(
        ["hdfs", "dfsadmin", "-refreshSuperUserGroupsConfiguration"],
        check=True,
        timeout=60,
        env={**os.environ, **hadoop.environ},
        stdout=subprocess.DEVNULL,
    )


def kerberos_properties(realm):
    """Return the properties of an HttpFS that runs as the user who may act for the others."""
    return {
        "httpfs.hadoop.authentication.type": "kerberos",
        "httpfs.hadoop.authentication.kerberos.principal": realm.principal(PROXY_USER),
        "httpfs.hadoop.authentication.kerberos.keytab": realm.keytab(PROXY_USER),
        "httpfs.authentication.type": "kerberos",
        "httpfs.authentication.kerberos.principal": realm.principal(HTTP),
        "httpfs.authentication.kerberos.keytab": realm.keytab(HTTP),
    }


@contextmanager
def running_httpfs(hadoop, folder, host=None):
    """Run an HttpFS, with Kerberos where the cluster has it, or on a host of a cluster of several; gives its URL."""
    settings, home = hadoop.settings, Path(folder)
    if not (settings.kerberos or proxy_properties(settings.user).items() <= settings.properties.items()):
        let_act_for_others(hadoop)
    name, port = (full_name(host), 14000) if host else (settings.host, choose_ports(["httpfs"])["httpfs"])
    for part in ("conf", "log", "temp"):
        (home / part).mkdir(parents=True)
    values = {
        "httpfs.http.hostname": name,
        "httpfs.http.port": port,
        "httpfs.hadoop.config.dir": settings.configuration,
        # bob may use HttpFS for ann, as a gateway's user may
        "httpfs.proxyuser.bob.hosts": "*",
        "httpfs.proxyuser.bob.groups": "*",
        **(kerberos_properties(settings.realm) if settings.kerberos else {}),
    }
    rows = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
    (home / "conf" / "httpfs-site.xml").write_text(f"<configuration>{rows}</configuration>")
    (home / "conf" / "httpfs-signature.secret").write_text("a secret of the test")
    folders = [
        f"-Dhttpfs.{part}.dir={home / where}"
        for part, where in (("home", ""), ("config", "conf"), ("log", "log"), ("temp", "temp"))
    ]
    jars = [*settings.tool_jars, f"{fetch_jars(f'httpfs-{VERSION}', _JARS)}/*", home / "conf", settings.configuration]
    command = [
        f"{settings.java_home}/bin/java",
        "-Xmx128m",
        *settings.client_flags,
        *folders,
        "-cp",
        ":".join(map(str, jars)),
        "org.apache.hadoop.fs.http.server.HttpFSServerWebServer",
    ]
    command = hadoop.on(host, command) if host else command
    with (home / "out.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=home)

    url = f"http://{name}:{port}"

    def answers():
        """Return whether a request is answered; an open port is not enough: the first answer takes seconds."""
        assert process.poll() is None, (home / "out.log").read_text()[-3000:]
        try:
            health.open_page(settings, f"{url}/webhdfs/v1/?op=GETFILESTATUS&user.name={settings.user}", 60).close()
            return True
        except urllib.error.HTTPError:  # with Kerberos it asks for a ticket
            return True
        except OSError:
            return False

    try:
        until(answers, 90, 0.2)
        yield url
    finally:
        process.kill()
        process.wait()
