"""A job without YARN: its containers are processes of this machine, and the verdict goes into a file.

`LocalContainers` stands in for Skein's application master. The program runs in the job's folder (`common.local_job`),
which `submit.local_submitter` lays out; the files that YARN would localize lie there under their names.
"""

import asyncio
import contextlib
import functools
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from typing import Dict, List, Set

from ..common.contract import (
    CERTIFICATE_FILE,
    JOB_FILE,
    KEY_FILE,
    RUNTIME_FILE,
    TEMPORARY_FOLDER,
    VERDICT_SECRET,
    Job,
    read_job,
)
from ..common.local_job import CONTAINERS, FILES, KILL_FILE, LOGS, write_application
from ..common.processes import end_with_parent
from ..common.reasons import Reason
from ..common.report import parse_diagnostics
from .containers import Container, Containers
from .coordinator import Coordinator
from .driver import allow_many_connections, coordinate, run_loop
from .lifecycle import Verdict

HOST = "127.0.0.1"
NODE = f"{HOST}:0"
#: What every container has, and a job that has ended no longer needs.
_OURS = (JOB_FILE, RUNTIME_FILE, CERTIFICATE_FILE, KEY_FILE)


class LocalContainers(Containers):
    """Starts, watches and ends the containers of one job; the present directory is the job's folder.

    Parameters
    ----------
    job : Job
    application_id : str

    Attributes
    ----------
    killed : bool
        Whether a client's kill is the verdict; the job ends as KILLED then, as in YARN.
    """

    def __init__(self, job: Job, application_id: str):
        self.killed = False
        self._job, self._application_id = job, application_id
        self._containers: Dict[str, Container] = {}
        self._processes: Dict[str, "subprocess.Popen[bytes]"] = {}
        self._gpus: Dict[str, List[str]] = {}
        self._replacements = {name: job.losses_of(plan.type) for name, plan in job.services.items()}

    async def connect(self) -> None:
        """Start the containers of all tasks."""
        for service, plan in self._job.services.items():
            for _ in plan.indices:
                self._start(service)

    def _start(self, service: str) -> None:
        number = sum(container.service == service for container in self._containers.values())
        name = f"{service}_{number}"
        yarn_id = f"container_{name}"
        folder, log = (os.path.abspath(os.path.join(place, yarn_id)) for place in (CONTAINERS, LOGS))
        os.makedirs(folder)
        os.makedirs(log)
        for source in (*_OURS, *(os.path.join(FILES, item) for item in os.listdir(FILES))):
            os.symlink(os.path.abspath(source), os.path.join(folder, os.path.basename(source)))
        env = {
            **os.environ,
            "SKEIN_APPLICATION_ID": self._application_id,
            "SKEIN_CONTAINER_ID": name,
            "SKEIN_APPMASTER_ADDRESS": f"{HOST}:0",
            "CONTAINER_ID": yarn_id,
            "NM_HOST": HOST,
        }
        if given := self._free_gpus()[: self._job.services[service].gpus]:
            self._gpus[name] = given
            env["CUDA_VISIBLE_DEVICES"] = ",".join(given)
        with open(os.path.join(log, f"{self._job.services[service].type}.log"), "wb") as output:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-I", "-S", RUNTIME_FILE, "agent", service, self._application_id],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=functools.partial(end_with_parent, os.getpid(), signal.SIGTERM),  # ends its command then
            )
        self._containers[name] = Container(name, service, "RUNNING", "", NODE, yarn_id, time.time())

    def _free_gpus(self) -> List[str]:
        """Return the GPUs of the job, as the client has listed them, that no living container has."""
        taken = {gpu for name in self._processes for gpu in self._gpus.get(name, ())}
        return [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu and gpu not in taken]

    def _end(self, name: str, state: str, message: str) -> None:
        """End all processes of a container, as a NodeManager does."""
        process = self._processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(os.path.join(CONTAINERS, self._containers[name].yarn_id, TEMPORARY_FOLDER), ignore_errors=True)
        self._containers[name] = self._containers[name]._replace(state=state, message=message)

    async def list(self) -> List[Container]:
        """Return all containers, finished ones included; replace those that have failed, as Skein does."""
        for name, process in list(self._processes.items()):
            code = process.poll()
            if code is None:
                continue
            self._end(name, "FAILED" if code else "SUCCEEDED", f"Its agent ended with code {code}" if code else "")
            service = self._containers[name].service
            if code and self._replacements[service]:
                self._replacements[service] -= 1
                self._start(service)
        return list(self._containers.values())

    async def replace(self, container: Container) -> None:
        """End a container that no longer answers, and start another one for its service."""
        if container.id in self._processes:
            self._end(container.id, "KILLED", "It is replaced")
        self._start(container.service)

    async def nodes(self) -> Set[str]:
        """Return this machine."""
        return {NODE}

    async def progress(self, fraction: float) -> None:
        """Note the job's progress, 0 to 1."""
        write_application(".", {"progress": 100 * fraction})

    async def add_page(self, route: str, target: str, link: str) -> str:
        """Return the URL of a page, which needs no proxy here; the job's own page shows that the job runs."""
        if route == "ytf":
            write_application(".", {"state": "RUNNING", "launchTime": round(time.time() * 1000), "trackingUrl": target})
        return f"{target}/"

    async def shutdown(self, succeeded: bool, diagnostics: str) -> None:
        """End all containers, and publish the end of the application."""
        for name in list(self._processes):
            self._end(name, "KILLED", "The job has ended")
        for name in _OURS:
            os.unlink(name)
        status = "SUCCEEDED" if succeeded else "KILLED" if self.killed else "FAILED"
        write_application(
            ".",
            {
                "state": "KILLED" if self.killed else "FINISHED",
                "finalStatus": status,
                "diagnostics": diagnostics,
                "finishedTime": round(time.time() * 1000),
                "progress": 100.0,
            },
        )


def _killed(application_id: str) -> Verdict:
    """Return the end of the job that the client which kills it asks for."""
    with contextlib.suppress(FileNotFoundError), open(KILL_FILE, encoding="utf-8") as file:
        report, _ = parse_diagnostics(file.read(), application_id)
        if report and report.reason and report.reason is not Reason.SUCCEEDED:
            return Verdict(report.reason, report.message)
    return Verdict(Reason.KILLED, "Ended by SIGTERM")


async def _coordinate(job: Job, application_id: str, secret: str) -> None:
    containers, loop = LocalContainers(job, application_id), asyncio.get_running_loop()
    coordinator = Coordinator(job, application_id, containers)

    def kill() -> None:
        verdict = _killed(application_id)
        coordinator.abort(verdict)
        containers.killed = containers.killed or coordinator.state.lifecycle.verdict == verdict

    def abandoned() -> None:
        loop.remove_reader(0)
        coordinator.abort(Verdict(Reason.LEASE_EXPIRED, "The client that held the lease of the job has ended"))

    loop.add_signal_handler(signal.SIGTERM, kill)
    if stat.S_ISFIFO(os.fstat(0).st_mode):  # the client holds the other end, and never writes
        loop.add_reader(0, abandoned)
    await coordinate(coordinator, secret)


def main(arguments: List[str]) -> int:
    """Run the coordinator of a job on this machine.

    Parameters
    ----------
    arguments : list of str
        The application id.

    Returns
    -------
    int
        Never: the process ends here, with exit code 0.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    job, secret = read_job(), os.environ.pop(VERDICT_SECRET, "")
    allow_many_connections()
    run_loop(_coordinate(job, arguments[0], secret))
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)  # threads may hang in a call
