"""``--client``: run the command on this machine too, as a task outside of the cluster spec."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from ..job.spec import JobSpec
from ..runtime.common.contract import TaskId, task_environment
from ..submit.application import JobContext, build_runtime_job
from ..terminal.output import say

TASK = TaskId("client", 0)


class LocalTask:
    """Runs the command on this machine once the cluster spec is complete.

    The command uses the terminal. If the job ends first, the command gets SIGTERM, and SIGKILL after the job's
    ``stop_grace``.

    Parameters
    ----------
    job : JobSpec
    command : str, optional
        Default: the job's command, else the first command of a task type.
    """

    def __init__(self, job: JobSpec, command: str | None = None):
        self._job = job
        self._command = command or job.command or next(task.command for task in job.tasks.values() if task.command)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Return whether the command runs now."""
        return self._process is not None and self._process.poll() is None

    def start(self, application_id: str, cluster: Mapping[str, Sequence[str]] | None) -> None:
        """Start the command if there is a cluster spec and the command was not started before."""
        if cluster and self._process is None:
            say(f"client: the cluster is complete, running the command here ({self._command.splitlines()[0][:60]})")
            env = self.environment(application_id, cluster)
            self._process = subprocess.Popen(["/bin/bash", "-c", self._command], env=env)

    def environment(self, application_id: str, cluster: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return the command's variables: those of this process, replaced by the job's, replaced by the task's."""
        job = build_runtime_job(self._job, JobContext())
        env = task_environment(
            job, TASK, cluster, {**os.environ, **self._job.env},
            application_id=application_id, round_number=1, address="", folder=os.getcwd(),
        )  # fmt: skip
        # The report's metrics come from the chief, and the script lies where --script says.
        env.pop("YTF_RESULT_FILE", None)
        if self._job.script:
            env["DTF_TASK_SCRIPT"] = self._job.script
        env["DTF_TASK_PROGRAM"] = self._command
        return env

    def end(self) -> None:
        """End the command if it still runs, and say how it ended."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            say("client: the job has ended, ending the local command")
            process.terminate()
            try:
                process.wait(self._job.deadlines.stop_grace)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        say(f"client: exit code {process.returncode}" if process.returncode >= 0
            else f"client: ended by signal {-process.returncode}")
