"""Projects of the jobtype on the minicluster: how they are written, and what they leave on YARN."""

import os
import subprocess
import sys
from pathlib import Path

from support.azkaban_site import PATIENCE, AzkabanServer
from support.programs import ROOT, YTF
from support.waiting import until
from tf_yarn_ops.azkaban.properties import format_properties
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.launch.launcher import Launcher

#: One small worker; a job adds its command.
JOB = {"type": "tensorflow-yarn", "tf.environment": f"venv://{sys.prefix}", "tf.worker.instances": "1",
       "tf.worker.memory": "256", "tf.am_memory": "512"}  # fmt: skip


def install(plugins, *words, check=0):
    """Run ``ytf azkaban install-jobtype``; give what it printed."""
    done = subprocess.run([*YTF, "azkaban", "install-jobtype", "--dir", plugins, *words], capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=ROOT)  # fmt: skip
    assert done.returncode == check, done.stderr
    return done.stdout + done.stderr


def write_project(folder, jobs, files=None):
    """Write a project; return its folder.

    Parameters
    ----------
    jobs : dict of str to dict
        Properties of each job by its name; `JOB` is below them unless they have a type.
    files : dict of str to str, optional
        Further files by name.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in jobs.items():
        values = values if "type" in values else {**JOB, **values}
        (folder / f"{name}.job").write_bytes(format_properties(values))
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


class Site(AzkabanServer):
    """An executor with the jobtype installed, beside a minicluster.

    Parameters
    ----------
    folder, classpath
        As of `AzkabanServer`.
    hadoop : MiniCluster
    words : str
        Further words of ``ytf azkaban install-jobtype``.
    """

    def __init__(self, folder, classpath, hadoop, *words):
        self.hadoop = hadoop
        self.launcher = Launcher(discover(hadoop.resourcemanager_url))
        super().__init__(folder, classpath, {**os.environ, **hadoop.environ})
        install(self.plugins, *words)

    def close(self):
        super().close()
        for application in self.launcher.session.resourcemanager.find(states=LIVE):
            self.launcher.kill(application["id"], "the test is over")
        self.launcher.close()

    def applications(self, execution):
        """Return what YARN knows of an execution, oldest first."""
        return sorted(
            self.launcher.session.resourcemanager.find(tags=[f"azkaban.flow.execid:{execution.execid}"]),
            key=lambda application: application["id"],
        )

    def live(self, execution):
        """Return the ids of an execution's live applications."""
        return [application["id"] for application in self.applications(execution) if application["state"] in LIVE]

    def wait_for_training(self, execution):
        """Wait until a user's program of the execution runs; return the application's id."""

        def training():
            assert execution.status is None, execution.all_logs()
            return next((application for application in self.live(execution) if processes_of(application)), None)

        try:
            return until(training, PATIENCE, 0.5)
        except AssertionError:
            raise AssertionError(f"no training\n{execution.all_logs()}") from None

    def assert_nothing_left(self, execution):
        """See that no application lives, no process of one, and no directory of one in HDFS."""
        assert self.live(execution) == []
        for application in (item["id"] for item in self.applications(execution)):
            until(lambda application=application: not processes_of(application), 60, 0.3)
            until(lambda application=application: application not in self.directories(), 60, 0.3)
        assert not execution.launchers()

    def directories(self):
        """Return the names of the application directories in HDFS."""
        files = self.launcher.session.staging(self.launcher.cluster.user).filesystem
        return [status.name for status in files.list(self.launcher.cluster.staging)]


def processes_of(application_id):
    """Return the pids of what the user's programs of an application are, by their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"YTF_APPLICATION_ID={application_id}\0".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
