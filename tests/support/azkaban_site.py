"""A site that runs Azkaban 3.58: its own loaders, job type manager and process jobs in a real JVM, without its database.

`AzkabanServer` compiles and starts the Java program beside this file and speaks JSON lines with it; an `Execution` is
one run of a flow. A project is a directory or a zip as it would be uploaded; each execution gets a copy of its own,
which is deleted the moment the flow ends.
"""

import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
import zipfile
from itertools import count
from pathlib import Path

import psutil

from support import waiting
from support.waiting import until
from tf_yarn_ops.minicluster.artefacts import cache_folder, find_maven
from tf_yarn_ops.minicluster.java import find_java

HERE = Path(__file__).resolve().parent / "azkaban_server"
VERSION = "3.58.0"
#: Azkaban's own commonprivate.properties; memory is checked against 3 GB that this machine may not have.
COMMON_PRIVATE = "execute.as.user=false\nmemCheck.enabled=false\n"
FETCH_SECONDS = 600
#: For what is awaited without another limit: a job on a machine that is shared.
PATIENCE = 240
_execids = count(int(time.time()) % 1_000_000 * 100)


def made_once(name, sources, make):
    """Return a folder of the cache; ``make`` fills it once for these sources, and it appears by a rename."""
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:8]
    target = cache_folder(os.environ) / f"{name}-{digest}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".azkaban-", dir=target.parent))
    try:
        make(staging)
        staging.chmod(0o755)
        try:
            os.rename(staging, target)
        except OSError:
            assert target.is_dir()  # another process was first
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def fetch_jars():
    """Return the folder of Azkaban's jars, which Maven fetches."""

    def fetch(folder):
        ran = subprocess.run(
            [find_maven("Azkaban", os.environ), "--quiet", "--batch-mode", "--file", HERE / "pom.xml", "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={folder}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=FETCH_SECONDS,
            env={**os.environ, "JAVA_HOME": str(find_java(os.environ))}, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout

    return made_once(f"azkaban-{VERSION}", [HERE / "pom.xml"], fetch)


def plugin_jars():
    """Return the jars of Azkaban's own Hadoop plugins, which are not on the executor's class path."""
    return sorted(fetch_jars().glob("*-hadoop-*.jar"))


def compile_server():
    """Compile the Java program; return the class path to run it with."""
    jars = [str(jar) for jar in sorted(fetch_jars().glob("*.jar")) if jar not in plugin_jars()]
    java_home = find_java(os.environ)
    sources = sorted(HERE.rglob("*.java"))

    def compile_into(folder):
        subprocess.run(
            [
                java_home / "bin" / "javac",
                "-nowarn",
                "-Xlint:none",
                "-cp",
                os.pathsep.join(jars),
                "-d",
                folder,
                *map(str, sources),
            ],
            check=True,
            timeout=120,
            capture_output=True,
        )

    name = f"azkaban-server-{VERSION}-{java_home.name}"
    return os.pathsep.join([*jars, str(made_once(name, [HERE / "pom.xml", *sources], compile_into))])


class AzkabanServer:
    """A running executor.

    Parameters
    ----------
    folder : Path
        Where plugins, executions and logs lie.
    classpath : str
        What `compile_server` gave.
    environ : mapping
        The executor's environment, which its jobs inherit.
    """

    def __init__(self, folder, classpath, environ=os.environ):
        self.folder = Path(folder)
        self.plugins = self.folder / "jobtypes"
        self.plugins.mkdir(parents=True, exist_ok=True)
        (self.plugins / "commonprivate.properties").write_text(COMMON_PRIVATE)
        self.answers = queue.Queue()
        self.executions = {}
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [f"{find_java(os.environ)}/bin/java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-XX:+UseSerialGC",
                 "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", classpath, "AzkabanServer"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8",
                env=dict(environ), cwd=self.folder,
            )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            execution = self.executions.get(event.get("execid"))
            (execution.events if execution else self.answers).put(event)
        for execution in self.executions.values():
            execution.events.put({"event": "gone"})

    def _send(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def ask(self, **request):
        """Send a request that is answered at once; return the answer.

        Raises
        ------
        AzkabanError
            Azkaban threw.
        """
        self._send(**request)
        answer = self.answers.get(timeout=PATIENCE * waiting.PATIENCE)
        if answer["event"] == "error":
            raise AzkabanError(f"{answer['message']} <- {answer['cause']}")
        return answer

    def load(self, file):
        """Return what Azkaban's class reads from a properties file."""
        return self.ask(do="load", file=str(file))["values"]

    def store(self, values, file):
        """Write a properties file the way Azkaban hands it to a job."""
        self.ask(do="store", values=values, file=str(file))

    def load_plugins(self):
        """Return the names of the job types in the plugin directory, loaded as an executor does when it starts."""
        return self.ask(do="plugins", plugins=str(self.plugins))["names"]

    def read_cron(self, file):
        """Return the schedule of a Flow 2.0 file's trigger, None without one."""
        return self.ask(do="trigger", file=str(file))["cron"]

    def start(self, project, flow, parameters=None, url="http://azkaban.example.com:8081", newer=False, name="digits"):
        """Start a flow of a project; return its `Execution`.

        Parameters
        ----------
        project : Path
            A directory, or a zip as it would be uploaded.
        parameters : dict, optional
            What a user may override in the execution's form.
        newer : bool
            Set what later releases than 3.58 tell to a job, too.
        """
        execid = next(_execids)
        directory = self.folder / "executions" / str(execid)
        if Path(project).is_dir():
            shutil.copytree(project, directory)
        else:
            with zipfile.ZipFile(project) as archive:
                archive.extractall(directory)
        execution = self.executions[execid] = Execution(self, execid, directory)
        self._send(
            do="flow",
            execid=execid,
            directory=str(directory),
            plugins=str(self.plugins),
            flow=flow,
            url=url,
            logs=str(execution.logs),
            project=name,
            parameters=parameters or {},
            newer=newer,
        )
        return execution

    def run(self, project, flow, **options):
        """Run a flow to its end; return its `Execution`."""
        return self.start(project, flow, **options).wait()

    def close(self):
        """End the executor; what still runs is cancelled."""
        self.process.stdin.close()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()


class AzkabanError(Exception):
    """What Azkaban threw."""


class Execution:
    """One run of a flow: its events as they come, its statuses, outputs and logs."""

    def __init__(self, server, execid, directory):
        self.server, self.execid, self.directory = server, execid, directory
        self.logs = server.folder / "logs" / str(execid)
        self.logs.mkdir(parents=True)
        self.events = queue.Queue()
        self.attempts = []  # (job, attempt, status)
        self.outputs = {}
        self.status = None
        self.started = {}

    def wait(self, seconds=PATIENCE, until=None):
        """Take events until the flow is over, or a condition of this execution holds."""
        deadline = time.monotonic() + seconds
        while self.status is None and not (until and until(self)):
            try:
                self._take(self.events.get(timeout=max(0.01, deadline - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"not over after {seconds} s: {self.attempts}\n{self.all_logs()}") from None
        return self

    def _take(self, event):
        if event["event"] == "error":
            raise AzkabanError(f"{event['message']} <- {event['cause']}")
        if event["event"] == "started":
            self.started[event["job"]] = event
        elif event["event"] == "finished":
            self.attempts.append((event["job"], event["attempt"], event["status"]))
            self.outputs[event["job"]] = event["outputs"]
        else:
            self.status = event.get("status", "gone")

    def cancel(self):
        """Press the button; return the seconds until the flow was over."""
        began = time.monotonic()
        self.server._send(do="cancel", execid=self.execid)
        self.wait(60)
        return time.monotonic() - began

    def log(self, job, attempt=0):
        """Return the log of an attempt, of one that runs as well."""
        name = f"_job.{self.execid}.{f'{attempt}.' if attempt else ''}{job}.log"
        for folder in (self.logs, self.directory):
            found = sorted(folder.rglob(name + "*"), reverse=True)
            if found:
                return "".join(path.read_text(encoding="utf-8") for path in found)
        return ""

    def messages(self, job, attempt=0):
        """Return the log's messages, without time and level."""
        return [
            re.sub(r"^\S+ \S+ \S+ \S+ (INFO|ERROR|WARN) - ", "", line) for line in self.log(job, attempt).splitlines()
        ]

    def all_logs(self):
        """Return all logs, for a person who reads a failure."""
        found = {path.name: path for folder in (self.directory, self.logs) for path in folder.rglob("_job.*.log")}
        return "\n".join(f"--- {name}\n{path.read_text(errors='replace')}" for name, path in sorted(found.items()))

    def launchers(self):
        """Return the processes of this execution's jobs, also those whose executor is gone."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("JOB_PROP_FILE", "").startswith(f"{self.directory}/"):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def launcher(self):
        """Return the process of the job that runs, as soon as there is one."""

        def found():
            return [process for process in self.launchers() if process.ppid() == self.server.process.pid]

        return until(found, PATIENCE, what=lambda: f"a process of execution {self.execid}\n{self.all_logs()}\n")[0]
