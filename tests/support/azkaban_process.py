"""A job of the type as a process, against a fake YARN."""

import os
import subprocess
import sys
import threading

from support.fake_yarn import STAMP, verdict_text
from support.waiting import until
from tf_yarn_ops.azkaban.properties import format_properties
from tf_yarn_ops.hadoop.cluster import current_user
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

#: What Azkaban 3.58 adds to every job.
AZKABAN = {
    "type": "tensorflow-yarn", "azkaban.job.id": "train", "azkaban.job.attempt": "0", "azkaban.flow.execid": "42",
    "azkaban.flow.flowid": "digits", "azkaban.flow.projectname": "My Project", "azkaban.flow.projectid": "7",
    "azkaban.job.metadata.file": "_job.42.train.meta", "azkaban.url": "https://azkaban.example.org:8443",
    "azkaban.flow.submituser": "ann",
}  # fmt: skip


JOB = {"tf.command": "train", "tf.worker.instances": "1"}


def _open_readers(job):
    """Tell whether the reading thread is still at work."""
    return any(thread.is_alive() and getattr(thread, "_target", None) == job._read for thread in threading.enumerate())


COMMAND = [sys.executable, "-I", "-X", "utf8", "-m", "tf_yarn_ops.azkaban"]
#: What that does when the package is imported.
FORKED = "from tf_yarn_ops.azkaban.__main__ import main; main()"


USER = current_user({})


ID, SECOND = (f"application_{STAMP}_000{number}" for number in (1, 2))


class Job:
    """One job in a project folder, and the process that runs it.

    Parameters
    ----------
    folder : Path
    url : str
        The ResourceManager.
    properties : dict
        Of the job, beside `AZKABAN` and `JOB`.
    fork : callable, optional
        That of `support.forks.starting`, for jobs that start as usual. Default: each imports the package anew.
    """

    def __init__(self, folder, url, properties, fork=None):
        self.folder, self.fork = folder, fork
        self.folder.mkdir(exist_ok=True)
        self.properties, self.outputs = folder / "train_props_1_tmp", folder / "train_output_1_tmp"
        self.properties.write_bytes(format_properties({**AZKABAN, **JOB, **properties}, "Sat Nov 21 2026"))
        self.outputs.touch()
        home = folder.parent / "home"
        home.mkdir(exist_ok=True)
        self.environ = {
            "PATH": os.environ["PATH"], "HOME": str(home), "JOB_PROP_FILE": str(self.properties), "JOB_NAME": "train",
            "JOB_OUTPUT_PROP_FILE": str(self.outputs), "YTF_RESOURCEMANAGER": url, "HADOOP_USER_NAME": "hdfs",
            "LOGNAME": "hdfs", "USER": "hdfs",
        }  # fmt: skip
        self.process = None
        self.lines = []

    def start(self, *words, before=(), **more):
        """Start the launcher; ``more`` are arguments of `subprocess.Popen`, and a command may stand before it."""
        if self.fork and not before and not more:
            self.process = self.fork(FORKED, words, self.environ, self.folder)
        else:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen([*before, *COMMAND, *words], cwd=self.folder, env=self.environ, text=True,
                                            **pipes | more)  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def saw(self, text, seconds=60.0):
        until(lambda: any(text in line for line in self.lines) or self.process.poll() is not None, seconds)
        assert any(text in line for line in self.lines), self.lines
        return self

    def end(self, seconds=60.0):
        """Wait for the exit code; the log is complete then."""
        code = self.process.wait(seconds)
        until(lambda: self.process.stdout.closed or not _open_readers(self))
        return code


def finish(yarn, reason=Reason.SUCCEEDED, application_id=ID, **fields):
    """Let an application end as YARN and the coordinator would say it."""
    status = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
    report = JobReport(application_id, final_status=status, reason=reason, **{"message": "It is over.", **fields})
    yarn.apps[application_id].update(state="FINISHED", finalStatus=status, diagnostics=verdict_text(report),
                                     finishedTime=STAMP + 61500, launchTime=STAMP + 1000)  # fmt: skip


def submitted(yarn, application_id=ID):
    return until(lambda: yarn.apps.get(application_id), 60)
