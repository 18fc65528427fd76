"""Checks before anything is reserved or staged: missing files, and containers above the maximum allocation.

`placement` checks where containers could run.

YARN computes the maximum allocation (ClusterNodeTracker). For ``scheduling-wait-ms`` after the ResourceManager's start
it is the configured one; later it is at most the largest memory, vcores and GPUs of any node, each on its own. YARN
refuses a larger container only when the application master asks for it.
"""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import Fault, FaultCode, ResourcesImpossible
from ..hadoop.resourcemanager import Allocation
from ..job.document import expand_home
from ..job.parts import Environment
from ..job.spec import JobSpec
from ..runtime.common.contract import SCRIPT_VARIABLE
from ..validation import ARCHIVE_SUFFIXES, check_faults, this_machine

logger = logging.getLogger(__name__)

#: The place of Docker's client configuration, a file that only the client reads.
CLIENT_CONFIG = "docker.client_config"
#: The name of the application master's container in messages.
MASTER = "the application master"


#: What a program has that trains by Keras's fit under a strategy of several tasks, and what makes that tf_keras's fit.
_KERAS_FIT = (rb"keras", rb"MultiWorkerMirroredStrategy|ParameterServerStrategy", rb"\.fit\(")
_TF_KERAS = rb"TF_USE_LEGACY_KERAS|tf_keras"
#: Bytes of a program that are searched for it.
_READ = 2**18


class LocalFileFault(FaultCode):
    """Fault codes for a local file of a job."""

    NO_FILE = "there is no {file} on this machine ({machine})"
    FOLDER = "{file} is a folder, not {needed}"
    NO_REGULAR_FILE = "{file} is neither a file nor a folder; write its content to a file first"
    UNREADABLE = "{file} can't be read"


def local_path(source: str) -> Path | None:
    """Return the path of a local source (``/path``, ``path``, ``~/path``, ``file:///path``); None for another URI."""
    if source[:7].lower() == "file://":
        return Path("/" + source[len("file://") :].lstrip("/"))
    return None if urlsplit(source).scheme and "://" in source else Path(expand_home(source))


def with_absolute_sources(spec: JobSpec) -> JobSpec:
    """Return the job with every local source as ``file://`` and an absolute path.

    Skein would read ``data#1.csv`` as a URL and lose the part after the ``#``.
    """

    def absolute(source: str) -> str:
        path = local_path(source)
        return source if path is None else f"file://{path.absolute()}"

    def placed(environment: Environment) -> Environment:
        if environment.scheme == "archive":
            return replace(environment, location=absolute(environment.location))
        if environment.scheme == "requirements":
            return replace(environment, location=str(Path(expand_home(environment.location)).absolute()))
        return environment

    return replace(
        spec.with_environments({path: placed(one) for path, one in spec.environments.items()}),
        script=absolute(spec.script) if spec.script else None,
        files={name: absolute(source) for name, source in spec.files.items()},
        archives={name: absolute(source) for name, source in spec.archives.items()},
        docker=replace(spec.docker, client_config=absolute(spec.docker.client_config))
        if spec.docker.client_config
        else spec.docker,
    )


def local_sources(spec: JobSpec) -> dict[str, Path]:
    """Return the files and folders of this machine that a job names, by their paths in its document.

    All but `CLIENT_CONFIG` travel with the job.
    """
    named = {
        **{f"files.{name}": source for name, source in spec.files.items()},
        **{f"archives.{name}": source for name, source in spec.archives.items()},
    }
    if spec.script:
        named["script"] = spec.script
    if spec.docker.client_config:
        named[CLIENT_CONFIG] = spec.docker.client_config
    for where, environment in spec.environments.items():
        if environment.scheme in ("archive", "requirements"):
            named[where] = environment.location
    return {where: path for where, source in named.items() if (path := local_path(source)) is not None}


def file_faults(spec: JobSpec) -> Iterator[Fault]:
    """Yield a fault for each local file of a job that is missing or can't be read."""
    return (fault for where, path in local_sources(spec).items() if (fault := fault_of_file(where, path)))


def fault_of_file(where: str, path: Path) -> Fault | None:
    """Return why a local file can't travel with a job, as a fault of its place in the request; None if it can."""
    code = None
    archive = str(path).endswith(ARCHIVE_SUFFIXES)
    if not os.path.exists(path):
        code = LocalFileFault.NO_FILE
    elif os.path.isdir(path) and (archive or not where.startswith(("file", "archive"))):
        code = LocalFileFault.FOLDER
    elif not os.path.isdir(path) and not os.path.isfile(path):
        code = LocalFileFault.NO_REGULAR_FILE
    elif os.path.isfile(path) and not os.access(path, os.R_OK):
        code = LocalFileFault.UNREADABLE
    values = {"file": path, "machine": this_machine(path), "needed": "an archive" if archive else "a file"}
    return Fault(where, code, values) if code else None


def find_file_warnings(spec: JobSpec, local: bool) -> list[str]:
    """Return warnings about files of this machine that a command starts, and that can't start or train.

    ``local`` is whether the tasks run on this machine, with the files themselves: YARN makes its copies executable.
    """
    doubts = []
    commands = [command for command in (spec.command, *(task.command for task in spec.tasks.values())) if command]
    for where, path in local_sources(spec).items():
        name = re.escape(where.partition(".")[2] or path.name)
        variable = rf'|"?\$\{{?{SCRIPT_VARIABLE}\b' if where == "script" else ""
        starts = re.compile(rf"(?:^|[;&|(]|\bexec\s)\s*(?:\./{name}(?![^\s;&|)]){variable})", re.MULTILINE)
        if not any(map(starts.search, commands)) or not path.is_file():
            continue
        with path.open("rb") as file:
            first = file.readline(256)
        if first.startswith(b"#!") and first.rstrip(b"\n").endswith(b"\r"):
            doubts.append(f"{where}: {path} has line ends of Windows, so its #! names no program; run: dos2unix {path}")
        if local and not os.access(path, os.X_OK):
            doubts.append(f"{where}: {path} is not executable, as its copy on YARN is; run: chmod +x {path}")
    script = local_sources(spec).get("script")
    if script and sum(task.instances for task in spec.tasks.values()) > 1 and script.is_file():
        with script.open("rb") as file:
            program = file.read(_READ)
        legacy = re.search(_TF_KERAS, program + " ".join([*spec.env, *commands]).encode())
        if not legacy and all(re.search(word, program) for word in _KERAS_FIT):
            doubts.append(
                f"script: {script} seems to call Keras's fit, which Keras 3 can't do with TensorFlow in several tasks; "
                "with tf_keras installed, add --env TF_USE_LEGACY_KERAS=1"
            )
    return doubts


def check_environment(spec: JobSpec) -> None:
    """Poll into the first part of local archives that are environments of the job; log what may not work.

    Raises
    ------
    SpecInvalid
        An archive can't be an environment on any node.
    """
    archives = {where: local_path(one.location) for where, one in spec.environments.items() if one.scheme == "archive"}
    faults: list[Fault] = []
    for where, path in archives.items():
        if path is None or path.is_dir():
            continue
        from ..environments.check import PEEK, UNRUNNABLE, check_archive

        found = check_archive(path, limit=PEEK)
        faults += (fault.below(where) for fault in found.faults if fault.code in UNRUNNABLE)
        for doubt in (*found.faults, *found.doubts):
            logger.warning("%s: %s %s", where, path, doubt)
    check_faults(faults)


def every_container(spec: JobSpec) -> Iterator[tuple[str, Allocation]]:
    """Yield the name in messages and the resources of each container of a job; the application master first."""
    yield MASTER, Allocation(spec.am_memory, spec.am_vcores)
    for name, task in spec.tasks.items():
        for index in range(task.instances):
            resources = task.resources_of(index)
            where = f"{name}:{index}" if index in task.indices else name
            yield where, Allocation(resources.memory, resources.vcores, resources.gpus, task.resources)
    if spec.tensorboard:
        yield "tensorboard", Allocation(spec.tensorboard.memory, spec.tensorboard.vcores)


def check_maximum(spec: JobSpec, maximum: Allocation) -> None:
    """Check that no container is above the cluster's maximum allocation.

    Raises
    ------
    ResourcesImpossible
        With each container that is larger.
    """
    above = [f"{name} asks for {wanted}" for name, wanted in every_container(spec) if not maximum.contains(wanted)]
    if above:
        raise ResourcesImpossible(f"{'; '.join(dict.fromkeys(above))}; the cluster's maximum allocation is {maximum}")


def maximum_of(scheduler: Mapping[str, Any]) -> Allocation | None:
    """Return the maximum allocation in the scheduler's description; None if there is none."""
    document = scheduler.get("maximumAllocation")
    return Allocation.read(document) if document else None
