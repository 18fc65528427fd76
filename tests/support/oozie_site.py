"""A real Oozie 5.2.1 on 127.0.0.1, for a `MiniCluster`: its own embedded web server, Derby in a folder, a share library in HDFS.

`OozieServer` starts, stops and asks it over REST, as Oozie's own client does. A launcher reports to YARN every 60 s, so the
cluster's ``yarn.am.liveness-monitor.expiry-interval-ms`` must be longer; Hadoop's own is.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import httpx

from support import waiting
from support.azkaban_site import made_once
from support.hadoop.class_archive import DAEMONS, class_path, use_archive
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.security.origin import closed_jar
from tf_yarn_ops.minicluster.artefacts import find_maven
from tf_yarn_ops.minicluster.daemon_settings import render_xml
from tf_yarn_ops.minicluster.java import find_java
from tf_yarn_ops.minicluster.ports import choose_ports

HERE = Path(__file__).resolve().parent / "oozie_server"
VERSION = "5.2.1"
FETCH_SECONDS = 600
#: For what is awaited without another limit.
PATIENCE = 120
#: The states that a job does not leave without a person.
ENDED = ("SUCCEEDED", "KILLED", "FAILED", "DONEWITHERROR")
SHARE_LIBRARY = "/oozie/share/lib"
#: The jars that a launcher needs beside YARN's own.
_LAUNCHER_JARS = ("oozie-sharelib-oozie", "oozie-client", "hadoop-mapreduce-client-core", "hadoop-mapreduce-client-common",
                  "guava", "json-simple")  # fmt: skip
_LOG4J = """\
log4j.rootLogger=WARN,console
log4j.logger.org.apache.oozie=INFO
log4j.logger.openjpa=WARN
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
_XML = {"content-type": "application/xml;charset=UTF-8"}
#: Oozie looks after its jobs every minute or less often; a test does not wait that long.
LAB = {
    "oozie.service.CoordMaterializeTriggerService.lookup.interval": "3",
    "oozie.service.CoordMaterializeTriggerService.scheduling.interval": "3",
    "oozie.service.coord.input.check.requeue.interval": "3000",
    "oozie.service.coord.check.maximum.frequency": "false",
    "oozie.service.ActionCheckerService.action.check.interval": "5",
    "oozie.service.ActionCheckerService.action.check.delay": "10",
    "oozie.service.RecoveryService.interval": "10",
    "oozie.service.StatusTransitService.statusTransit.interval": "2",
    "oozie.service.CallableQueueService.callable.concurrency": "10",
    "oozie.service.CallableQueueService.queue.awaitTermination.timeout.seconds": "1",
    "oozie.command.default.requeue.delay": "500",
    "oozie.service.LiteWorkflowStoreService.user.retry.error.code.ext": "1",
    # Beside the launcher's JVM a Python runs, whose imports are ours: 268 MiB were seen.
    "oozie.launcher.default.memory.mb": "512",
    "oozie.services.ext": "org.apache.oozie.service.EventHandlerService,org.apache.oozie.sla.service.SLAService",
    "oozie.service.EventHandlerService.event.listeners": "org.apache.oozie.sla.listener.SLAJobEventListener",
}


def fetch():
    """Return the folder with Oozie's ``jars`` and the folder ``root`` around its web pages, which Maven fetches once."""

    def make(folder):
        java_home = find_java(os.environ)
        ran = subprocess.run(
            [find_maven("Oozie", os.environ), "--quiet", "--batch-mode", "--file", HERE / "pom.xml", "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={folder}/jars"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=FETCH_SECONDS,
            env={**os.environ, "JAVA_HOME": str(java_home)}, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout
        war = next((folder / "jars").glob("oozie-webapp-*.war"))
        with zipfile.ZipFile(war) as archive:
            # Its WEB-INF would map each servlet a second time, and every page would answer 503.
            archive.extractall(
                folder / "root" / "webapp",
                [name for name in archive.namelist() if not name.startswith(("WEB-INF/", "META-INF/"))],
            )
        war.unlink()

    return made_once(f"oozie-{VERSION}", [HERE / "pom.xml"], make)


class OozieServer:
    """A running server.

    Parameters
    ----------
    folder : Path
        For its configuration, database and logs.
    cluster : MiniCluster
        With ``hadoop.proxyuser.<user of this process>`` for all hosts and groups.
    settings : mapping of str to str, optional
        Properties of ``oozie-site.xml`` that win over those of `LAB`.
    """

    library = SHARE_LIBRARY

    def __init__(self, folder, cluster, settings=None):
        self.folder, self.cluster = Path(folder), cluster
        self.files = self.open_files()
        self.installation = fetch()
        self.port = choose_ports(["oozie"])["oozie"]
        self.url = f"http://127.0.0.1:{self.port}/oozie"
        # Oozie's cookie names the user of one request, and wins over ``user.name`` in the next.
        self.client = httpx.Client(trust_env=False, timeout=60, cookies=closed_jar())
        self.process = None
        for name in ("conf", "data", "logs", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copytree(cluster.settings.configuration, self.folder / "hadoop")
        (self.folder / "hadoop" / "mapred-site.xml").write_text(
            render_xml({"mapreduce.framework.name": "yarn", "mapreduce.jobhistory.address": "127.0.0.1:1"})
        )
        (self.folder / "hadoop" / "default.xml").write_text(
            render_xml({"oozie.launcher.javaopts": " ".join(self.launcher_options())})
        )
        (self.folder / "conf" / "oozie-log4j.properties").write_text(_LOG4J)
        (self.folder / "conf" / "oozie-site.xml").write_text(
            render_xml(
                LAB
                | {
                    "oozie.http.hostname": "127.0.0.1",
                    "oozie.http.port": str(self.port),
                    "oozie.base.url": self.url,
                    "oozie.jsp.tmp.dir": f"{self.folder}/tmp",
                    "oozie.service.HadoopAccessorService.hadoop.configurations": f"*={self.folder}/hadoop",
                    "oozie.service.HadoopAccessorService.action.configurations": f"*={self.folder}/hadoop",
                    "oozie.service.WorkflowAppService.system.libpath": self.library,
                    "oozie.service.JPAService.create.db.schema": "true",
                    "oozie.service.ProxyUserService.proxyuser.root.hosts": "*",
                    "oozie.service.ProxyUserService.proxyuser.root.groups": "*",
                }
                | (settings or {})
            )
        )

    def __enter__(self):
        self.share()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.client.close()
        self.files.close()

    def open_files(self):
        """Return the client of HDFS that writes the share library."""
        environ = {"HADOOP_USER_NAME": self.cluster.settings.user}
        return discover(self.cluster.resourcemanager_url, environ=environ).open_filesystem()

    def launcher_options(self):
        """Return options with which the JVMs of launchers read Hadoop's classes from the archive of the daemons.

        The archive fits a class path that begins with the daemons'.
        """
        settings = self.cluster.settings
        if settings.classes is None:
            return ()
        jars = ":".join(class_path(settings.hadoop, settings.classes))
        return (*use_archive(settings.classes, DAEMONS), "-cp", f"{jars}:$CLASSPATH")

    def share(self):
        """Put the share library into HDFS."""
        folder = f"{self.library}/lib_20261122000000/oozie"
        self.files.makedirs(folder, 0o755)
        for jar in sorted((self.installation / "jars").glob("*.jar")):
            if re.sub(r"-[\d.]+(-jre)?\.jar$", "", jar.name) in _LAUNCHER_JARS:
                self.files.create(f"{folder}/{jar.name}", jar.read_bytes(), 0o644)

    def start(self):
        """Start the server, and return when it is in normal mode."""
        java_home = find_java(os.environ)
        words = [f"{java_home}/bin/java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        words += [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "net")]
        words += self.cluster.settings.kerberos_flags
        words += [
            f"-Doozie.{name}.dir={self.folder}/{path}"
            for name, path in (("home", ""), ("config", "conf"), ("log", "logs"), ("data", "data"))
        ]
        # In this order apache-el comes before the older jsp-api, which has the same classes.
        jars = sorted(map(str, (self.installation / "jars").glob("*.jar")))
        words += [
            f"-Djava.io.tmpdir={self.folder}/tmp",
            "-cp",
            ":".join([f"{self.folder}/conf", f"{self.installation}/root", *jars]),
            "org.apache.oozie.server.EmbeddedOozieServer",
        ]
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "OOZIE_"))}
        with open(self.folder / "logs" / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**environ, "LANG": "C.UTF-8"},
                start_new_session=True,
            )
        try:
            until(lambda: self.is_normal() or self.process.poll() is not None, PATIENCE)
            assert self.process.poll() is None, self.log()
        except BaseException:
            self.stop()
            raise

    def is_normal(self):
        try:
            return self.client.get(f"{self.url}/v1/admin/status").json()["systemMode"] == "NORMAL"
        except (httpx.HTTPError, ValueError):
            return False

    def stop(self, number=signal.SIGKILL):
        """End the server; its database stays."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait(PATIENCE * waiting.PATIENCE)

    def check_running(self):
        """Fail if the server has ended by itself."""
        process = self.process
        assert process is None or process.poll() is None, f"Oozie has ended:\n{self.log()}"

    def log(self):
        """Return the end of the server's log, for a person who reads a failure."""
        return (self.folder / "logs" / "server.log").read_text(errors="replace")[-8000:]

    def ask(self, method, path, **options):
        """Return the answer's JSON, or its text."""
        answer = self.client.request(method, f"{self.url}/v2/{path}", **options)
        assert answer.status_code < 300, (
            f"{answer.status_code} {answer.headers.get('oozie-error-message')} {answer.text}"
        )
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text

    def submit(self, properties, user=None):
        """Submit a job as ``oozie job -run`` does; return its id."""
        user = user or self.cluster.settings.user
        action = {} if "oozie.coord.application.path" in properties else {"action": "start"}
        return self.ask(
            "POST",
            "jobs",
            params={"user.name": user, **action},
            headers=_XML,
            content=configuration({"user.name": user, **properties}).encode(),
        )["id"]

    def change(self, job_id, action, user=None, properties=None, **parameters):
        """Kill, suspend, resume or rerun a job."""
        user = user or self.cluster.settings.user
        content = "" if properties is None else configuration({"user.name": user, **properties})
        return self.ask(
            "PUT",
            f"job/{job_id}",
            params={"user.name": user, "action": action, **parameters},
            headers=_XML,
            content=content.encode(),
        )

    def info(self, job_id):
        """Return what Oozie tells of a workflow, coordinator or action."""
        return self.ask("GET", f"job/{job_id}", params={"show": "info", "offset": 1, "len": 100})

    def status(self, job_id):
        return self.info(job_id)["status"]

    def action(self, workflow_id, name):
        """Return what Oozie tells of a workflow's action; None before it has one."""
        return next((action for action in self.info(workflow_id)["actions"] if action["name"] == name), None)

    def data(self, workflow_id, name):
        """Return the outputs of an action as Oozie stores them, a text of Java properties."""
        return (self.action(workflow_id, name) or {}).get("data")

    def wait(self, job_id, *states, seconds=PATIENCE):
        """Wait until a workflow or coordinator has one of the states; return what Oozie tells of it then."""
        last = {}

        def reached():
            last.update(self.info(job_id))
            if last["status"] not in states and last["status"] in ENDED:
                raise AssertionError(said())
            return last["status"] in states

        def said():
            return f"{job_id} is {last['status']}, not {states}\n{json.dumps(last, indent=1)}\nThat"

        until(reached, seconds, 1, what=said)  # an answer costs Oozie's database some milliseconds of CPU
        return last


def configuration(properties):
    """Return Hadoop's XML of properties."""
    return (
        "<configuration>"
        + "".join(
            f"<property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>"
            for name, value in properties.items()
        )
        + "</configuration>"
    )
