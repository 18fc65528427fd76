"""`LocalSubmitter`: start a job on this machine: lay out its folder, and start the coordinator there.

It has the calls of `RestSubmitter`, and needs neither YARN nor Skein.
"""

import fcntl
import itertools
import logging
import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..errors import Fault, FaultCode, SpecInvalid
from ..hadoop.cluster import Cluster
from ..hadoop.local_jobs import LocalJobs
from ..hadoop.resourcemanager import ENDED
from ..job.options import OPTIONS, is_given
from ..job.spec import JobSpec
from ..runtime.common.clock import DAY
from ..runtime.common.contract import CERTIFICATE_FILE, JOB_FILE, KEY_FILE, RUNTIME_FILE, VERDICT_SECRET, dump_job
from ..runtime.common.local_job import FILES, LOCK_FILE, read_application, write_application
from ..runtime.common.report import verdict_tag
from ..validation import check_faults, this_machine
from .application import place_environments, plan_runtime_job, user_files
from .certificate import mint
from .container_environment import ContainerEnvironment
from .preflight import every_container, local_path
from .runtime_zip import runtime_zip
from .working_folder import lay_out

logger = logging.getLogger(__name__)

#: Days for which the folder of a job that has ended is kept; the history keeps its record for longer.
KEPT_DAYS = 7
#: Options that ask YARN for something; this machine has nothing of the kind.
NEED_YARN = (
    "queue",
    "priority",
    "user",
    "node_label",
    "tasks.<type>.node_label",
    "task_memory",
    "task_vcores",
    "resource",
    "tasks.<type>.indices",
    "am_memory",
    "am_vcores",
    "file_system",
    "acls.view_users",
    "acls.view_groups",
    "acls.modify_users",
    "acls.modify_groups",
    "acls.ui_users",
    "tensorboard_memory",
    "tensorboard_vcores",
    "queue_timeout",
    "allocation_timeout",
)


class LocalFault(FaultCode):
    """Error codes for a request that this machine can't run."""

    NEEDS_CLUSTER = "{given} is read by the nodes of a cluster; on this machine give a local {kind}"
    NO_INTERPRETER = "there is no {file} on this machine ({machine})"
    TOO_FEW_GPUS = "the tasks want {given} GPUs together, and this machine has {found}; give them at most as many"


def without_effect(spec: JobSpec) -> list[str]:
    """Return the names of the given options that have no effect without YARN."""
    document = spec.to_dict()
    return [name for name in NEED_YARN if is_given(document, OPTIONS[name].path)]


def list_gpus() -> list[str]:
    """Return the GPUs of this machine that programs may use, as ``CUDA_VISIBLE_DEVICES`` names them.

    References
    ----------
    CUDA C++ Programming Guide, "CUDA Environment Variables": the first name that is none ends the list.
    """
    if (given := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return list(
            itertools.takewhile(lambda name: name and not name.startswith("-"), map(str.strip, given.split(",")))
        )
    try:
        shown = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, errors="replace", timeout=60
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r"^GPU \d+: .*\(UUID: (GPU-[\w-]+)\)", shown, re.M)


def _wanted_gpus(spec: JobSpec) -> int:
    return sum(total.gpus for _, total in every_container(spec))


class LocalSubmitter:
    """Starts one job on this machine.

    Parameters
    ----------
    cluster : Cluster
    jobs : LocalJobs
        It keeps the process.
    """

    reserves = True

    def __init__(self, cluster: Cluster, jobs: LocalJobs):
        self._cluster, self._jobs = cluster, jobs

    def check(self, spec: JobSpec) -> None:
        """Raise SpecInvalid with what this machine can't do; warn of options without effect."""
        environments = place_environments(spec)
        faults = [
            Fault(name, LocalFault.NEEDS_CLUSTER, {"given": source, "kind": kind})
            for name, (source, kind) in user_files(spec, *environments.values()).items()
            if local_path(source) is None
        ]
        for name, placed in environments.items():
            where, python = f"tasks.{name}.environment" if name else "environment", interpreter(placed)
            if placed.docker_image:
                values = {"given": f"docker://{placed.docker_image}", "kind": "environment: venv:///folder"}
                faults.append(Fault(where, LocalFault.NEEDS_CLUSTER, values))
            if not os.access(python, os.X_OK):
                values = {"file": python, "machine": this_machine(python)}
                faults.append(Fault(where, LocalFault.NO_INTERPRETER, values))
        ignored, wanted = without_effect(spec), _wanted_gpus(spec)
        found = len(list_gpus()) if wanted else 0
        if wanted and not found:
            ignored.append("task_gpus")
        elif wanted > found:
            faults.append(Fault("task_gpus", LocalFault.TOO_FEW_GPUS, {"given": wanted, "found": found}))
        check_faults(faults)
        if ignored:
            logger.warning("without YARN these options have no effect: %s", ", ".join(ignored))

    def reserve(self, spec: JobSpec) -> str:
        """Make the folder of a new job, and return its id; delete the folders of jobs that ended long ago."""
        jobs = self._jobs.folder(f"local_{round(1000 * time.time())}_1")
        try:
            jobs.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise SpecInvalid(
                f"the folder of local jobs, {jobs.parent}, can't be written: {error.strerror}; "
                "name another: --resourcemanager local:///folder, or $XDG_STATE_HOME"
            ) from error
        for folder in (jobs.parent, jobs.parent.parent):
            _check_folder(folder)
        for ended in self._jobs.find(states=ENDED):
            if ended["finishedTime"] < 1000 * (time.time() - KEPT_DAYS * DAY):
                shutil.rmtree(self._jobs.folder(ended["id"]), ignore_errors=True)
        for number in itertools.count(1):
            application_id = f"{jobs.name.rpartition('_')[0]}_{number}"
            with suppress(FileExistsError):
                self._jobs.folder(application_id).mkdir(mode=0o700)
                return application_id
        raise AssertionError("there is always a free number")

    def submit(self, spec: JobSpec, application_id: str, tags: Iterable[str] = ()) -> str:
        """Start a job under a reserved id, unless another client has started it; return the id."""
        folder = self._jobs.folder(application_id)
        directory = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            if read_application(str(folder)) is None:
                self._start(spec, application_id, folder, tags)
        finally:
            os.close(directory)
        return application_id

    def _start(self, spec: JobSpec, application_id: str, folder: Path, tags: Iterable[str]) -> None:
        shutil.rmtree(folder / FILES, ignore_errors=True)
        (folder / FILES).mkdir()
        placed = lay_out(spec, folder / FILES, self._cluster)
        job = plan_runtime_job(self._cluster, spec, int(application_id.split("_")[1]), tags)
        credentials = mint()
        for name, content in (
            (JOB_FILE, dump_job(job._replace(viewers=None))),
            (RUNTIME_FILE, runtime_zip(level=0)),
            (CERTIFICATE_FILE, credentials.certificate),
            (KEY_FILE, credentials.key),
        ):
            (folder / name).write_bytes(content)
        log = self._jobs.log_path(application_id, "container_coordinator", "application.driver.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        listed = list_gpus() if _wanted_gpus(spec) else []
        gpus = {"CUDA_VISIBLE_DEVICES": ",".join(listed)} if listed else {}
        now, verdict_secret = round(1000 * time.time()), secrets.token_hex(16)
        with log.open("wb") as output, (folder / LOCK_FILE).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the coordinator inherits it
            write_application(
                str(folder),
                {
                    "id": application_id,
                    "name": spec.name,
                    "user": self._cluster.user,
                    "queue": "",
                    "applicationType": "skein",
                    "applicationTags": ",".join({*spec.tags, *tags, verdict_tag(verdict_secret)}).lower(),
                    "state": "ACCEPTED",
                    "finalStatus": "UNDEFINED",
                    "startedTime": now,
                    "launchTime": now,
                    "finishedTime": 0,
                    "amContainerLogs": f"file:///node/{log.parent.name}/{self._cluster.user}",
                    "diagnostics": "",
                },
            )
            process = self._jobs.children[application_id] = subprocess.Popen(
                [interpreter(placed), "-u", RUNTIME_FILE, "local", application_id],
                cwd=folder,
                env={**os.environ, **gpus, VERDICT_SECRET: verdict_secret},
                start_new_session=True,
                stdin=subprocess.PIPE if spec.lease else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[lock.fileno()],
            )
            lock.write(str(process.pid))


def interpreter(placed: ContainerEnvironment) -> str:
    """Return the Python of the coordinator: that of the environment, else ours."""
    return placed.interpreter if os.path.isabs(placed.interpreter) else sys.executable


def _check_folder(folder: Path) -> None:
    """Raise SpecInvalid if another user could exchange what lies in a folder."""
    status = folder.stat()
    if status.st_uid not in (os.geteuid(), 0) or (status.st_mode & 0o002 and not status.st_mode & stat.S_ISVTX):
        raise SpecInvalid(
            f"another user can exchange the files of local jobs: {folder} belongs to uid {status.st_uid} and has mode "
            f"{stat.S_IMODE(status.st_mode):o}. Take it over (chown {os.geteuid()} {folder}; chmod 700 {folder}), or "
            "name another folder: --resourcemanager local:///folder, or $XDG_STATE_HOME"
        )
