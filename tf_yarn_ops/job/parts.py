"""The parts of a job that are not its tasks: environment, restarts, deadlines, access rights.

Each is a frozen value that can't exist in an invalid state; `spec` puts them together.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from itertools import takewhile
from typing import Any
from urllib.parse import urlsplit

from .. import kinds
from ..declaration import DOCUMENT, Memory, Part, Texts, option
from ..errors import Fault, FaultCode
from ..validation import (
    ARCHIVE_SUFFIXES,
    brief,
    check_faults,
    invalid,
    is_expanded,
    normalise,
    read_choice,
    read_source,
    read_text,
)

#: Arguments of TensorBoard that the program in front of it gives itself.
TENSORBOARD_OWN = ("--logdir", "--logdir_spec", "--host", "--bind_all", "--port", "--reuse_port", "--path_prefix")
ENVIRONMENT_SCHEMES = ("python", "venv", "conda", "docker", "requirements")


class PartFault(FaultCode):
    """Fault codes for a part."""

    SHORT_HEARTBEAT = "{given:g} is too short; give at least 5 seconds, or 0 for no limit"
    NEEDS_RESTARTS = "{given} needs {other} to be task or cluster, not never"
    IN_BOTH_LISTS = "{other} names {codes} too; give each code in one of the two lists"
    NO_LOCATION = "{scheme}:// names nothing; {advice}"
    NOT_ABSOLUTE = "{given} needs an absolute path on the nodes: {scheme}:///path, with three slashes"
    NOT_ARGUMENTS = "{given!r} can't be split into words: {error}"
    TAKEN_ARGUMENT = "{given} is set by the program in front of TensorBoard; leave it out; the folder is {other}"
    NOT_AN_ENVIRONMENT = "{given} is not an environment; {advice}"
    NOT_AN_IMAGE = (
        "{given!r} is not the name of a Docker image; give HOST:PORT/PATH:TAG or PATH@sha256:DIGEST, the path in lower "
        "case, for example tensorflow/tensorflow:2.16.1"
    )
    NOT_A_RUNTIME = "{given!r} is not the name of a runtime of Docker; give letters, digits and -, for example nvidia"
    NOT_LOCAL = "{given!r} is not a file of this machine; give its path"
    NOT_A_TMPFS = "{given!r} is not an absolute folder without comma and colon; YARN takes no sizes and no options"


_ADVICE = (
    "give python:///path/to/python3, venv:///folder, conda:///folder, docker://image, "
    "requirements://requirements.txt, or an archive "
    f"({', '.join(ARCHIVE_SUFFIXES)})"
)

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
#: Docker's grammar of references (``distribution/reference``), which is also that of YARN.
_IMAGE = (
    rf"(?:{_LABEL}(?:\.{_LABEL})*(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?"
)
_RUNTIME, _TMPFS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"), re.compile(r"/[^\x00-\x1f,:]{1,200}")
#: The longest name of an image without tag and digest, characters.
_MAX_IMAGE = 255


#: The resources of a task; each call makes a field.
memory_option = partial(
    option,
    8192,
    kinds.MEMORY,
    "Memory of a task, in MiB or with a unit: 8192, 512m, 8 GiB.",
    name="task_memory",
    short="-m",
    per_task=True,
)
vcores_option = partial(
    option,
    1,
    kinds.count(1),
    "Virtual cores of a task.",
    name="task_vcores",
    short="-c",
    value="<vcores>",
    per_task=True,
)
gpus_option = partial(
    option, 0, kinds.count(0), "GPUs (yarn.io/gpu) of a task.", name="task_gpus", value="<gpus>", per_task=True
)


@dataclass(frozen=True)
class Resources(Part):
    """The resources of one container."""

    memory: Memory = memory_option()
    vcores: int = vcores_option()
    gpus: int = gpus_option()


@dataclass(frozen=True)
class TensorBoard(Part):
    """The extra task that serves TensorBoard on ``output`` while the job runs; it keeps what it reads in memory."""

    memory: Memory = option(
        2048, kinds.MEMORY, "Memory of the TensorBoard task, in MiB or with a unit.", name="tensorboard_memory"
    )
    vcores: int = option(
        1, kinds.count(1), "Virtual cores of the TensorBoard task.", name="tensorboard_vcores", value="<vcores>"
    )
    linger: float = option(
        0.0,
        kinds.SECONDS,
        "How long TensorBoard continues after the training has succeeded and its output is committed.",
        name="tensorboard_linger",
    )
    logdir: str | None = option(
        None,
        kinds.VERBATIM,
        "The folder that TensorBoard shows, if it is not the output path: a path of the nodes, or a "
        "URL such as hdfs:///models/digits/logs.",
        name="tensorboard_logdir",
        value="<path or URL>",
    )
    args: str = option(
        "",
        kinds.VERBATIM,
        "Further arguments of the program tensorboard: --samples_per_plugin=images=100.",
        name="tensorboard_args",
        value="<arguments>",
    )

    def _faults(self, wrong: set[str]) -> Iterator[Fault]:
        try:
            words = [word.partition("=")[0] for word in shlex.split(self.args if "args" not in wrong else "")]
        except ValueError as error:
            yield Fault("args", PartFault.NOT_ARGUMENTS, {"given": self.args, "error": error})
            return
        if taken := [word for word in words if word in TENSORBOARD_OWN]:
            yield Fault("args", PartFault.TAKEN_ARGUMENT, {"given": taken[0], "other": "logdir"})


@dataclass(frozen=True)
class Deadlines(Part):
    """How long each wait may take, in seconds; 0 means without limit."""

    queue: float = option(
        86400.0,
        kinds.SECONDS,
        "From submission until the application master runs, while a client waits; 0 for no limit.",
        name="queue_timeout",
    )
    allocation: float = option(
        1800.0, kinds.SECONDS, "Until every task has a container; 0 for no limit.", name="allocation_timeout"
    )
    registration: float = option(
        600.0,
        kinds.SECONDS,
        "From the start of a container until its agent calls the coordinator; 0 for no limit.",
        name="registration_timeout",
    )
    heartbeat: float = option(
        60.0,
        kinds.SECONDS,
        "How long a task may be silent, at least 5; 0 for no limit.",
        name="heartbeat_timeout",
        schema={"anyOf": [{"type": "string"}, {"const": 0}, {"minimum": 5}]},
    )
    execution: float = option(
        0.0,
        kinds.SECONDS,
        "From the first cluster spec until the end of the job; 0 for no limit.",
        name="execution_timeout",
    )
    total: float = option(
        604800.0,
        kinds.SECONDS,
        "From the start of the application master until the end of the job; 0 for no limit.",
        name="total_timeout",
    )
    stall: float = option(
        0.0,
        kinds.SECONDS,
        "How long all running tasks may be idle: no CPU, no GPU, no lines in the log, no metrics; 0 for no limit.",
        name="stall_timeout",
    )
    stop_grace: float = option(10.0, kinds.SECONDS, "Between SIGTERM and SIGKILL when a command is ended.")
    evaluator_grace: float = option(
        0.0,
        kinds.SECONDS,
        "How long evaluators go on after the training has succeeded; YTF_TRAINED_FILE exists then, and their failures "
        "do not count. With 0 the job waits for evaluators as for workers.",
    )
    success_grace: float = option(
        0.0,
        kinds.SECONDS,
        "With success: chief, how long the other awaited tasks may go on to end by themselves; their failures do not "
        "count. With 0 they are stopped at once.",
    )

    def _faults(self, wrong: set[str]) -> Iterator[Fault]:
        if "heartbeat" not in wrong and 0 < self.heartbeat < 5:
            yield Fault("heartbeat", PartFault.SHORT_HEARTBEAT, {"given": self.heartbeat})


@dataclass(frozen=True)
class RestartPolicy(Part):
    """What happens when a task fails or its container is lost."""

    mode: str = option(
        "never",
        kinds.choice("never", "task", "cluster"),
        "What happens after a failure. never: the job ends. task: the failed command starts again on its port while "
        "the other tasks continue. cluster: all commands start again with a new cluster spec.",
        name="restart",
    )
    max_restarts: int | None = option(
        None,
        kinds.count(0),
        "How many failures of the program lead to a restart.",
        in_words="0 with restart never, else 3",
    )
    max_container_losses: int = option(
        3,
        kinds.count(0),
        "How many containers may be preempted, lost with their node, killed from outside or silent. Each is replaced.",
    )
    retry_exit_codes: tuple[int, ...] = option(
        (), kinds.CODES, "Only these exit codes lead to a restart.", in_words="all"
    )
    fatal_exit_codes: tuple[int, ...] = option(
        (), kinds.CODES, "These exit codes end the job, even when restarts are left.", in_words="none"
    )
    backoff: float = option(
        1.0,
        kinds.SECONDS,
        "The pause before the first restart. It doubles with each further restart, up to 300 seconds.",
        name="restart_backoff",
    )
    allocation_retries: int = option(
        0,
        kinds.count(0),
        "How often a waiting client submits the job again, after a pause, when it has missed its allocation deadline.",
    )
    memory_growth: float = option(
        0.0,
        kinds.FACTOR,
        "After OUT_OF_MEMORY a waiting client submits the job again and multiplies the memory of the failed task's "
        "type by this factor, up to the cluster's maximum allocation; 0 for never.",
    )
    exclude_node_after: int = option(
        0,
        kinds.count(0),
        "After how many failed commands and lost containers on one node the job excludes it: what fails there moves, "
        "and nothing else starts there. 0 for never.",
    )

    def __post_init__(self) -> None:
        if self.max_restarts is None:
            object.__setattr__(self, "max_restarts", 0 if self.mode == "never" else 3)
        super().__post_init__()

    def _faults(self, wrong: set[str]) -> Iterator[Fault]:
        if not wrong & {"mode", "max_restarts"} and self.mode == "never" and self.max_restarts:
            yield Fault("max_restarts", PartFault.NEEDS_RESTARTS, {"given": self.max_restarts, "other": "mode"})
        if wrong & {"retry_exit_codes", "fatal_exit_codes"}:
            return
        if both := sorted({*self.retry_exit_codes} & {*self.fatal_exit_codes}):
            yield Fault(
                "retry_exit_codes", PartFault.IN_BOTH_LISTS, {"codes": tuple(both), "other": "fatal_exit_codes"}
            )


@dataclass(frozen=True)
class DockerSettings(Part):
    """What YARN's Docker runtime does besides starting the image."""

    client_config: str | None = option(
        None,
        kinds.SOURCE,
        "A local file with the login for the registry of the image: config.json, as docker login writes it. The "
        "NodeManagers get the login with the tokens of the application. Hadoop 3.1 and later.",
        name="docker_client_config",
        value="<file>",
    )
    runtime: str | None = option(
        None, kinds.TEXT, "The runtime that the engine starts the image with: nvidia.", name="docker_runtime"
    )
    tmpfs: Texts = option(
        (),
        kinds.TEXTS,
        "A folder of the container that is kept in memory. /dev/shm takes the place of Docker's own of 64 MiB.",
        name="docker_tmpfs",
        value="<folder>",
    )
    delayed_removal: bool = option(
        False,
        kinds.FLAG,
        "Let YARN keep ended containers for yarn.nodemanager.delete.debug-delay-sec, for docker logs.",
        name="docker_delayed_removal",
    )

    def _faults(self, wrong: set[str]) -> Iterator[Fault]:
        if "client_config" not in wrong and "://" in (given := self.client_config or "") and given[:7] != "file://":
            yield Fault("client_config", PartFault.NOT_LOCAL, {"given": given})
        if "runtime" not in wrong and self.runtime and not _RUNTIME.fullmatch(self.runtime):
            yield Fault("runtime", PartFault.NOT_A_RUNTIME, {"given": self.runtime})
        for folder in self.tmpfs if "tmpfs" not in wrong else ():
            if not _TMPFS.fullmatch(folder) or is_expanded(folder):
                yield Fault("tmpfs", PartFault.NOT_A_TMPFS, {"given": folder})


_names = partial(option, (), kinds.TEXTS, in_words="none", doors=(DOCUMENT,))


@dataclass(frozen=True)
class Acls(Part):
    """Who may view or change the application besides the submitting user, by the names that the cluster knows."""

    view_users: Texts = _names("Users who may view the application; * for all.")
    view_groups: Texts = _names("Groups that may view the application.")
    modify_users: Texts = _names("Users who may change or kill the application; * for all.")
    modify_groups: Texts = _names("Groups that may change or kill the application.")
    ui_users: Texts = _names("Further users who may open the pages of the job.")


@dataclass(frozen=True)
class Environment:
    """Where the interpreter and the packages of the tasks come from.

    Parameters
    ----------
    scheme : str
        ``python``, ``venv``, ``conda``, ``docker``, ``requirements`` or ``archive``.
    location : str
        An interpreter's path, an environment's folder, an image, a file of requirements of this machine, or an
        archive's local path or URI.

    Raises
    ------
    SpecInvalid
        The scheme is unknown, the location is empty or not absolute, or the archive has another suffix.
    """

    scheme: str
    location: str

    def __post_init__(self) -> None:
        check_faults(normalise(self, {"scheme": read_choice(*ENVIRONMENT_SCHEMES, "archive"), "location": read_text}))
        if not self.location:
            raise invalid(PartFault.NO_LOCATION, scheme=self.scheme, advice=_ADVICE)
        if self.scheme in ("python", "venv", "conda") and not self.location.startswith("/"):
            raise invalid(PartFault.NOT_ABSOLUTE, given=str(self), scheme=self.scheme)
        if self.scheme == "docker" and not (
            re.fullmatch(_IMAGE, self.location, re.ASCII) and len(self.location) <= _MAX_IMAGE
        ):
            raise invalid(PartFault.NOT_AN_IMAGE, given=self.location)
        if self.scheme == "archive" and not _is_archive(self.location):
            raise invalid(PartFault.NOT_AN_ENVIRONMENT, given=repr(self.location), advice=_ADVICE)
        if self.scheme == "archive":
            read_source(self.location)

    @classmethod
    def parse(cls, text: str) -> "Environment":
        """Parse ``python:///usr/bin/python3``, ``venv:///path``, ``docker://image`` or the path of an archive.

        Raises
        ------
        SpecInvalid
            The text is none of these.
        """
        scheme, separator, location = read_text(text).partition("://")
        return cls(scheme, location) if separator and scheme in ENVIRONMENT_SCHEMES else cls("archive", text)

    def __str__(self) -> str:
        return self.location if self.scheme == "archive" else f"{self.scheme}://{self.location}"


def mounted_path(path: str) -> str | None:
    """Return what a Docker container must mount to see a path; None for a path in another file system.

    Wildcards are not mounted, but the folder above the first of them.
    """
    local = re.sub("^file:(//)?(?=/)", "", path)
    if not local.startswith("/"):
        return None
    return "/".join(takewhile(lambda part: not set("*?[{") & {*part}, local.split("/"))) or "/"


def read_environment(value: Any) -> Environment:
    """Return an environment; parse a text with `Environment.parse`."""
    if isinstance(value, Environment):
        return value
    if not isinstance(value, str):
        raise invalid(PartFault.NOT_AN_ENVIRONMENT, given=brief(value), advice=_ADVICE)
    return Environment.parse(value)


def _is_archive(source: str) -> bool:
    try:
        return urlsplit(source).path.endswith(ARCHIVE_SUFFIXES)
    except ValueError:
        return False


def values_that_differ(part: Any, plain: Any = None) -> dict[str, Any]:
    """Return the fields of a part that differ from those of another part.

    Parameters
    ----------
    part : dataclass instance
    plain : dataclass instance, optional
        The part to compare with, of the same type. Default: one with the defaults of all fields.

    Returns
    -------
    dict of str to value
        Plain values by the names of the fields, in their order.
    """
    plain = type(part)() if plain is None else plain
    return {
        one.name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
        for one in fields(part)
        if (value := getattr(part, one.name)) != getattr(plain, one.name)
    }
