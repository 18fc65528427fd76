"""What the rows on the real Oozie share: small applications of Oozie in HDFS, their runs, and YARN's side of them.

Every training has the tag of its row, so that `support.airflow_rows.Yarn` finds its applications.
"""

import json
import os
import subprocess
import sys
import time
from xml.sax.saxutils import escape

import httpx
import javaproperties
import psutil
import yaml

from support.airflow_rows import Yarn
from support.airflow_site import environments
from support.programs import ROOT, YTF
from support.waiting import until
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.hadoop.security.origin import closed_jar
from tf_yarn_ops.oozie.packed_job import WORKFLOW_NAMES

#: Seconds for a workflow of one training on a busy machine.
WORKFLOW = 240
#: A queue whose limit no application master fits into.
CLOSED = "low"
#: What the cluster of these tests needs; a launcher reports to YARN once a minute.
PROPERTIES = {
    "yarn.resourcemanager.am.max-attempts": "4",
    "hadoop.proxyuser.root.hosts": "*", "hadoop.proxyuser.root.groups": "*",
    "yarn.scheduler.capacity.root.low.capacity": "1", "yarn.scheduler.capacity.root.default.capacity": "99",
    "yarn.scheduler.capacity.root.low.maximum-capacity": "1",
}  # fmt: skip
SHELL = """
<shell xmlns="uri:oozie:shell-action:1.0">
  <resource-manager>{resourcemanager}</resource-manager><name-node>{filesystem}</name-node>
  {launcher}
  <exec>env</exec>
  {arguments}
  {variables}
  <file>{folder}/job.yaml#job.yaml</file>
  <capture-output/>
</shell>"""
WORKFLOW_XML = """<workflow-app xmlns="uri:oozie:workflow:1.0" name="{name}">
<start to="train"/>
<action name="train"{retry}>{shell}<ok to="end"/><error to="failed"/></action>
<kill name="failed"><message>the training has failed</message></kill>
<end name="end"/>
</workflow-app>"""


class Site:
    """The server, its cluster, and the folder of the tests.

    Parameters
    ----------
    server : OozieServer
    folder : Path
    """

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.hadoop = server.cluster
        self.files = server.files
        #: The first nominal time of each coordinator, seconds.
        self.began = int(time.time()) // 60 * 60 - 3600
        self.yarn = Yarn(self.hadoop)
        # Rows in several threads share these clients, and an idle connection of one may be closed by another.
        alone = httpx.Limits(max_keepalive_connections=0)
        self.yarn.client = httpx.Client(
            base_url=self.yarn.client.base_url,
            timeout=60,
            trust_env=False,
            limits=alone,
            headers={"Accept": "application/json"},
        )
        server.client = httpx.Client(trust_env=False, timeout=60, limits=alone, cookies=closed_jar())
        self.filesystem = self.hadoop.default_filesystem

    def check_running(self):
        """Fail if the server has ended by itself."""
        self.server.check_running()

    def write(self, path, content):
        """Write a file into HDFS."""
        self.files.makedirs(os.path.dirname(path), 0o777)
        assert self.files.create(path, content.encode() if isinstance(content, str) else content, 0o644), path

    def ytf(self, *words, folder, code=0):
        """Call ``ytf oozie`` in a folder; return what it printed to stdout and stderr. None stands for any exit code."""
        env = {
            **os.environ,
            "YTF_RESOURCEMANAGER": self.hadoop.resourcemanager_url,
            "YTF_SITE": "",
            "OOZIE_URL": self.server.url,
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run([*YTF, "oozie", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        assert code in (None, done.returncode), done.stderr
        return done.stdout.strip(), done.stderr

    def packed(self, name, document, *options, flow=None):
        """Pack an application of a folder of its own; return the folder. Instead of a job's document there may be a list."""
        folder = self.folder / f"packed-{name}"
        folder.mkdir(exist_ok=True)
        listed = document if isinstance(document, list) else [{"name": "job", "job": document}]
        for one in listed:
            (folder / f"{one['name']}.yaml").write_text(yaml.safe_dump({
                "name": name, "environment": f"venv://{sys.prefix}", "tags": [name],
                "tasks": {"worker": {"instances": 1, "memory": 256}}, **one["job"]}))  # fmt: skip
        if listed is document:
            (folder / "job.yaml").write_text(
                yaml.safe_dump({"name": name, "jobs": [one | {"job": f"{one['name']}.yaml"} for one in listed]})
            )
        if flow:
            (folder / "flow.xml").write_text(flow)
            options += ("--workflow", str(folder / "flow.xml"))
        # In this process: each Python that imports the package takes half a second of CPU.
        words = ["--python", sys.executable, *options, "--resourcemanager", self.hadoop.resourcemanager_url]
        ytf.main(["oozie", "package", f"{folder}/job.yaml", *words, "--out", f"{folder}/app"], standalone_mode=False)
        return folder

    def listing(self, path):
        """Return the paths of all files below a folder in HDFS, with the times of their last changes."""
        found = {}
        for file in self.files.list(path):
            below = f"{path}/{file.name}"
            found |= self.listing(below) if file.is_directory else {below: file.modified}
        return found

    def give_home(self, user):
        """Make the home directory of a user."""
        self.files.makedirs(f"/user/{user}", 0o755)
        answer = httpx.put(
            f"{self.hadoop.namenode_url}/webhdfs/v1/user/{user}",
            trust_env=False,
            params={"op": "SETOWNER", "owner": user, "group": user, "user.name": self.hadoop.settings.user},
        )
        assert answer.is_success, answer.text

    def package(self, name, command="true", *, retry="", **job):
        """Write an application whose action ``train`` runs the command once; return its folder in HDFS."""
        folder = f"/apps/{name}"
        document = {"name": name, "command": command, "environment": f"venv://{sys.prefix}", "tags": [name],
                    "tasks": {"worker": {"instances": 1, "memory": 256}}, **job}  # fmt: skip
        self.write(f"{folder}/job.yaml", yaml.safe_dump(document))
        words = [sys.executable, "-m", "tf_yarn_ops.oozie.action"]
        shell = SHELL.format(
            resourcemanager=f"{self.hadoop.settings.host}:{self.hadoop.settings.ports['rm']}", filesystem=self.filesystem,
            launcher="<configuration><property><name>oozie.launcher.max.attempts</name>"
                     "<value>${attempts}</value></property></configuration>",
            arguments="".join(f"<argument>{escape(word)}</argument>" for word in words), folder=folder,
            variables="".join(f"<env-var>{item.variable}={item.expression}</env-var>" for item in WORKFLOW_NAMES))  # fmt: skip
        self.write(f"{folder}/workflow.xml", WORKFLOW_XML.format(name=name, shell=shell, retry=retry))
        return folder

    def run(self, name, command="true", user=None, attempts=2, **options):
        """Package and start a workflow; return its `Run`."""
        self.package(name, command, **options)
        run = Run(self, name, None, user)
        run.workflow = self.server.submit(run.properties(attempts), user)
        return run


class Run:
    """One run of a workflow."""

    def __init__(self, site, name, workflow, user=None):
        self.site, self.id, self.workflow, self.user = site, name, workflow, user

    def __str__(self):
        return f"{self.id} ({self.workflow})"

    def properties(self, attempts):
        """Return the properties of a start; so often YARN starts the launcher."""
        path = f"{self.site.filesystem}/apps/{self.id}"
        return {"oozie.wf.application.path": path, "oozie.use.system.libpath": "true", "attempts": attempts}

    def action(self, name="train"):
        return self.site.server.action(self.workflow, name)

    def wait(self, *states, seconds=WORKFLOW):
        return self.site.server.wait(self.workflow, *states, seconds=seconds)

    def outputs(self, name="train"):
        """Return the outputs of the training as the next action reads them."""
        return javaproperties.loads("hadoopJobs:" + self.action(name)["externalChildIDs"])

    def kill(self):
        self.site.server.change(self.workflow, "kill", self.user)

    def rerun(self, attempts=2):
        properties = self.properties(attempts) | {"oozie.wf.rerun.failnodes": "true"}
        self.site.server.change(self.workflow, "rerun", self.user, properties)

    def training(self):
        """Wait until the program trains; return its application."""
        return self.site.yarn.training(self, WORKFLOW)

    def action_process(self, attempt=1):
        """Wait for the program of the action in this attempt of the launcher; return its process."""
        wanted, container = f"YTF_OOZIE_workflowId={self.workflow}".encode(), f"_{attempt:02}_000001".encode()

        def find():
            for pid, variables in environments():
                if wanted in variables and any(
                    entry.startswith(b"CONTAINER_ID=") and entry.endswith(container) for entry in variables
                ):
                    try:
                        process = psutil.Process(pid)
                        if "tf_yarn_ops.oozie.action" in process.cmdline():
                            return process
                    except psutil.Error:
                        continue

        return until(find, WORKFLOW, 0.2)

    def launcher_processes(self, attempt=1):
        """Return the JVM of this attempt of the launcher, and the program of the action in it."""
        action = self.action_process(attempt)
        return next(process for process in action.parents() if "java" in process.name()), action

    def follows(self, attempt, training):
        """Wait until the program of the action follows a training in this attempt of the launcher."""
        launcher = self.action()["externalId"]
        logs = self.site.hadoop.directory / "nm" / "logs" / launcher
        container = f"{launcher.replace('application', 'container')}_{attempt:02}_000001"
        line = f"training in {training}"
        until(
            lambda: any(line.encode() in path.read_bytes() for path in (logs / container).glob("std*")),
            WORKFLOW,
            0.5,
            what=lambda: f"{line} of {container}\n{self.log()}\nThat",
        )

    def log(self):
        """Return what Oozie and the launchers say, for a person who reads a failure."""
        found = json.dumps(self.site.server.info(self.workflow), indent=1)
        logs = [
            path
            for path in (self.site.hadoop.directory / "nm" / "logs").rglob("std*")
            if self.workflow.encode() in path.read_bytes() or f"{self.id}".encode() in path.read_bytes()
        ]
        return "\n".join([found, *(f"--- {path}\n{path.read_text(errors='replace')[-3000:]}" for path in sorted(logs))])


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(seconds))
