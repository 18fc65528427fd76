"""A real Oozie with Kerberos on the secured cluster, and the MapReduce JobHistoryServer that it asks for a token."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.hadoop.kerberos import HTTP, PROXY_USER, REALM, RULES, YARN
from support.oozie_site import OozieServer, fetch
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.minicluster.daemon_settings import render_xml
from tf_yarn_ops.minicluster.ports import choose_ports, taken_ports

#: A folder in HDFS that every user may read; home directories of this cluster may be encryption zones.
LIBRARY = "/tmp/oozie/share/lib"


def history_properties(settings, ports):
    """Return ``mapred-site.xml`` of the JobHistoryServer and of those who ask it; its folders are in HDFS."""
    realm = settings.realm
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.jobhistory.address": f"localhost:{ports['history']}",
        "mapreduce.jobhistory.webapp.address": f"localhost:{ports['page']}",
        "mapreduce.jobhistory.admin.address": f"localhost:{ports['admin']}",
        "mapreduce.jobhistory.principal": realm.principal(YARN),
        "mapreduce.jobhistory.keytab": str(realm.keytab(YARN)),
        "mapreduce.jobhistory.webapp.spnego-principal": realm.principal(HTTP),
        "mapreduce.jobhistory.webapp.spnego-keytab-file": str(realm.keytab(HTTP)),
        "yarn.app.mapreduce.am.staging-dir": "/tmp/history",
    }


@contextmanager
def running_history_server(hadoop, folder):
    """Run a JobHistoryServer; gives the properties by which a client finds it, and the process."""
    settings, home = hadoop.settings, Path(folder)
    ports = choose_ports(["history", "page", "admin"])
    properties = history_properties(settings, ports)
    home.mkdir(parents=True)
    (home / "mapred-site.xml").write_text(render_xml(properties))
    own = sorted(map(str, (fetch() / "jars").glob("hadoop-mapreduce-client-*.jar")))
    words = [
        f"{settings.java_home}/bin/java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *settings.kerberos_flags,
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-cp", ":".join([str(home), str(settings.configuration), *own, *(f"{jars}/*" for jars in settings.client_jars)]),
        "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
    ]  # fmt: skip
    with (home / "out.log").open("wb") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=home)

    def answers():
        assert process.poll() is None, (home / "out.log").read_text()[-4000:]
        return taken_ports({"history": ports["history"]})

    try:
        until(answers, 90, 0.2)
        yield properties, process
    finally:
        process.kill()
        process.wait()


class SecureOozie(OozieServer):
    """Oozie as the user who may act for others; its own pages ask for a ticket."""

    library = LIBRARY

    def __init__(self, folder, cluster, history):
        realm = cluster.settings.realm
        super().__init__(
            folder,
            cluster,
            {
                "oozie.http.hostname": "localhost",
                "oozie.service.HadoopAccessorService.kerberos.enabled": "true",
                "oozie.service.HadoopAccessorService.keytab.file": str(realm.keytab(PROXY_USER)),
                "oozie.service.HadoopAccessorService.kerberos.principal": realm.principal(PROXY_USER),
                "local.realm": REALM,
                "oozie.authentication.type": "kerberos",
                "oozie.authentication.kerberos.principal": realm.principal(HTTP),
                "oozie.authentication.kerberos.keytab": str(realm.keytab(HTTP)),
                "oozie.authentication.kerberos.name.rules": RULES,
                "oozie.authentication.signature.secret": "a secret of the test",
            },
        )
        self.url = f"http://localhost:{self.port}/oozie"
        (self.folder / "hadoop" / "mapred-site.xml").write_text(render_xml(history))
        # Nodes of a company have the site file in its usual place.
        (self.folder / "hadoop" / "default.xml").write_text(
            render_xml(
                {
                    "oozie.launcher.javaopts": " ".join(self.launcher_options()),
                    "oozie.launcher.env": f"YTF_SITE={cluster.settings.site_file}",
                }
            )
        )

    def open_files(self):
        settings = self.cluster.settings
        site = Site(
            keytab=str(settings.realm.keytab(PROXY_USER)), ca_file=self.cluster.ca_file and str(self.cluster.ca_file)
        )
        return discover(self.cluster.resourcemanager_url, {}, site=site).open_filesystem()

    def is_normal(self):
        """Return whether it answers; it answers nothing to a client without a ticket."""
        try:
            return self.client.get(f"{self.url}/v1/admin/status").status_code == 401
        except httpx.HTTPError:
            return False
