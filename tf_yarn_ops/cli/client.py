"""``--client``: run the command on this machine too, as a task outside of the cluster spec."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..environments.requirements import with_built_environment
from ..errors import SpecInvalid
from ..hadoop.cluster import Cluster
from ..job.spec import JobSpec
from ..runtime.common.contract import RUNTIME_FILE, SERVER_COMMAND, TaskId, task_environment
from ..submit.application import build_runtime_job
from ..submit.runtime_zip import runtime_zip
from ..submit.working_folder import lay_out
from ..terminal.output import echo

TASK = TaskId("client", 0)
#: Seconds beyond the job's ``stop_grace`` for the end of all processes of the command.
_END_SECONDS = 30.0


class LocalTask:
    """Runs the command on this machine in each round, once its cluster spec is complete.

    The command uses the terminal. Its working directory is a temporary one with the files, archives and environment
    of the job, and OLDPWD is the present one. If the job or the round ends first, all its processes get SIGTERM, and
    SIGKILL after the job's ``stop_grace``; so they do when this process is killed.

    Parameters
    ----------
    job : JobSpec
    command : str, optional
        Default: the job's command, else the first command of a task type; ytf-server only if there is no other.
    """

    def __init__(self, job: JobSpec, command: str | None = None):
        if sys.platform != "linux":
            raise SpecInvalid("--client runs the command here, on Linux only")
        self._job = job
        programs = [
            text
            for text in (job.command, *(task.command for task in job.tasks.values()))
            if text and text.strip() != SERVER_COMMAND
        ]
        self._command = command or (programs or [SERVER_COMMAND])[0]
        self._folder: Path | None = None
        self._interpreter = sys.executable
        self._round: tuple[str, int] | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lease = contextlib.ExitStack()  # the pipe whose end ends the command

    @property
    def running(self) -> bool:
        """Return whether the command runs now."""
        return bool(self._processes) and self._processes[-1].poll() is None

    def prepare(self, cluster: Cluster, checkpoint: Callable[[], object] = lambda: None) -> JobSpec:
        """Make the working directory; return the job with its environment built, so that it is built once.

        Raises
        ------
        SpecInvalid, SubmissionRejected, ClusterUnreachable
            A file of the job can't be had here.
        """
        self._job = with_built_environment(self._job, cluster.site.environment_cache, checkpoint)
        self._folder = Path(tempfile.mkdtemp(prefix="ytf-client-"))
        placed = lay_out(self._job, self._folder, cluster, checkpoint)
        (self._folder / RUNTIME_FILE).write_bytes(runtime_zip())
        if self._job.environment is not None:
            self._interpreter = str(self._folder / placed.interpreter)
            if not os.access(self._interpreter, os.X_OK):
                echo(f"warning: the client's command runs without {self._job.environment}, which this machine lacks")
                self._interpreter = sys.executable
        return self._job

    def start(
        self, application_id: str, round_number: int, find_cluster: Callable[[], Mapping[str, Sequence[str]] | None]
    ) -> None:
        """Run the command with the cluster spec of a new round, after its end in the round before.

        Do nothing in a round that is already known, and while ``find_cluster`` has no cluster spec.
        """
        if (application_id, round_number) == self._round or not (cluster := find_cluster()):
            return
        self._round = application_id, round_number
        echo(f"client: the cluster is complete, running the command here ({self._command.splitlines()[0][:60]})")
        env = self.environment(application_id, round_number, cluster)
        self._lease.close()
        reader, writer = os.pipe()
        self._lease.callback(os.close, writer)
        words = [sys.executable, "-I", "-S", RUNTIME_FILE, "client", str(reader), str(self._job.deadlines.stop_grace)]
        self._processes.append(subprocess.Popen(words, cwd=self._folder, env=env, pass_fds=[reader]))
        os.close(reader)

    def environment(
        self, application_id: str, round_number: int, cluster: Mapping[str, Sequence[str]]
    ) -> dict[str, str]:
        """Return the command's variables: those of this process, replaced by the job's, replaced by the task's."""
        env = task_environment(
            build_runtime_job(self._job), TASK, cluster, {**os.environ, **self._job.env},
            application_id=application_id, round_number=round_number, address="", folder=str(self._folder),
        )  # fmt: skip
        del env["YTF_RESULT_FILE"]  # the report's metrics come from the chief
        return {**env, "DTF_TASK_PROGRAM": self._command, "YTF_PYTHON": self._interpreter, "OLDPWD": os.getcwd()}

    def close(self) -> None:
        """End the command if it still runs, say how it ended, and delete the working directory."""
        if self.running:
            echo("client: the job has ended, ending the local command")
        self._lease.close()
        for process in self._processes:
            try:
                code = process.wait(self._job.deadlines.stop_grace + _END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        if self._processes:
            echo(f"client: exit code {code}" if code >= 0 else f"client: ended by signal {-code}")
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
