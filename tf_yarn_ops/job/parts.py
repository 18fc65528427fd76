"""The parts of a job that are not its tasks: environment, restarts, deadlines, rights.

Each is a frozen value that is valid once it exists; `spec` puts them together.
"""

from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from ..errors import SpecInvalid
from ..validation import (
    ARCHIVE_SUFFIXES,
    check,
    normalise,
    read_count,
    read_exit_codes,
    read_memory,
    read_seconds,
    read_texts,
)
from .options import OPTIONS

RESTART_MODES = OPTIONS["restart"].choices
ENVIRONMENT_SCHEMES = ("python", "venv", "conda", "docker")


@dataclass(frozen=True)
class Resources:
    """What one container is given.

    Parameters
    ----------
    memory : int or str, optional
        MiB, or an amount such as ``8 GiB``. Default 8192 (the seed's).
    vcores : int, optional
        Virtual cores, at least 1. Default 1.
    gpus : int, optional
        Devices of ``yarn.io/gpu``, at least 0. Default 0.
    """

    memory: int = 8192
    vcores: int = 1
    gpus: int = 0

    def __post_init__(self) -> None:
        check(normalise(self, {"memory": read_memory, "vcores": read_count(1), "gpus": read_count(0)}))


@dataclass(frozen=True)
class TensorBoard:
    """The extra task that serves TensorBoard on ``output`` while the job runs.

    Parameters
    ----------
    memory : int or str, optional
        MiB. Default 2048: TensorBoard keeps what it has read in memory.
    vcores : int, optional
        Default 1.
    linger : float, optional
        Seconds it goes on after the last awaited task has ended. Default 0.
    """

    memory: int = 2048
    vcores: int = 1
    linger: float = 0.0

    def __post_init__(self) -> None:
        check(normalise(self, {"memory": read_memory, "vcores": read_count(1), "linger": read_seconds}))


@dataclass(frozen=True)
class Deadlines:
    """How long each wait may take, in seconds; 0 means without limit.

    Parameters
    ----------
    queue : float, optional
        From submission until the application master runs. Default 86400: a queue
        may be full over night, not for longer than a day.
    allocation : float, optional
        Until every task has a container. Default 1800: a job that holds half of what
        it needs keeps it from others, so it gives it back after half an hour.
    registration : float, optional
        From a container's start until its agent calls. Default 600: a large archive
        has to be copied and unpacked before that.
    heartbeat : float, optional
        Silence of an agent, or of the coordinator, at least 5. Default 60.
    execution : float, optional
        From the first publication of the cluster spec. Default 0: only the user
        knows how long the training takes.
    total : float, optional
        From the start of the application master. Default 604800: seven days, after
        which HDFS delegation tokens end and the job could not write its result.
    stop_grace : float, optional
        Between SIGTERM and SIGKILL, when a command is ended. Default 10.
    """

    queue: float = 86400.0
    allocation: float = 1800.0
    registration: float = 600.0
    heartbeat: float = 60.0
    execution: float = 0.0
    total: float = 604800.0
    stop_grace: float = 10.0

    def __post_init__(self) -> None:
        faults = normalise(self, {field.name: read_seconds for field in fields(self)})
        if not faults and 0 < self.heartbeat < 5:
            faults.append(f"heartbeat: {self.heartbeat:g} is too short; at least 5 seconds, or 0 for none")
        check(faults)


@dataclass(frozen=True)
class RestartPolicy:
    """What happens when a task fails or its container is lost.

    Parameters
    ----------
    mode : {"never", "task", "cluster"}, optional
        ``never`` (default) ends the job at the first failure. ``task`` starts the failed
        command again on its port while the others go on. ``cluster`` ends all commands
        and starts them with a new cluster spec.
    max_restarts : int, optional
        Failures of the program that are forgiven. Default 0 for ``never``, else 3.
    max_container_losses : int, optional
        Containers that may be preempted, lost with their node or killed from outside.
        Each is replaced, and the cluster restarts with the replacement. Default 3.
    retry_exit_codes : sequence of int, optional
        Only these exit codes (1 to 255; 128 + n for signal n) are worth a restart. Default: all.
    fatal_exit_codes : sequence of int, optional
        These end the job whatever the budget says. Default: none.
    backoff : float, optional
        Seconds before the first restart; doubles with each, up to 300. Default 1.
    allocation_retries : int, optional
        How often a job that missed its allocation deadline is submitted again by a
        waiting client. Default 0.
    """

    mode: str = "never"
    max_restarts: int | None = None
    max_container_losses: int = 3
    retry_exit_codes: tuple[int, ...] = ()
    fatal_exit_codes: tuple[int, ...] = ()
    backoff: float = 1.0
    allocation_retries: int = 0

    def __post_init__(self) -> None:
        faults = []
        if self.mode not in RESTART_MODES:
            faults.append(f"mode: {self.mode!r} is not one of {', '.join(RESTART_MODES)}")
        if self.max_restarts is None:
            object.__setattr__(self, "max_restarts", 0 if self.mode == "never" else 3)
        faults += normalise(self, {
            "max_restarts": read_count(0), "max_container_losses": read_count(0), "backoff": read_seconds,
            "allocation_retries": read_count(0), "retry_exit_codes": read_exit_codes,
            "fatal_exit_codes": read_exit_codes,
        })
        if not faults and self.mode == "never" and self.max_restarts:
            faults.append(f"max_restarts: {self.max_restarts} needs a mode of task or cluster, not never")
        if not faults and (both := sorted(set(self.retry_exit_codes) & set(self.fatal_exit_codes))):
            faults.append(f"retry_exit_codes and fatal_exit_codes both name {', '.join(map(str, both))}")
        check(faults)


@dataclass(frozen=True)
class Acls:
    """Who besides the submitting user may look at the application or change it.

    Parameters
    ----------
    view_users, view_groups, modify_users, modify_groups, ui_users : sequence of str, optional
        Names as the cluster knows them; ``*`` for everybody. Default: nobody else.
    """

    view_users: tuple[str, ...] = ()
    view_groups: tuple[str, ...] = ()
    modify_users: tuple[str, ...] = ()
    modify_groups: tuple[str, ...] = ()
    ui_users: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(normalise(self, {field.name: read_texts for field in fields(self)}))


@dataclass(frozen=True)
class Environment:
    """Where the tasks' interpreter and packages come from.

    Parameters
    ----------
    scheme : str
        ``python``, ``venv``, ``conda``, ``docker`` or ``archive``.
    location : str
        An interpreter's path, an environment's folder, an image, or an archive's
        local path or URI.
    """

    scheme: str
    location: str

    def __post_init__(self) -> None:
        if not self.location:
            raise SpecInvalid(f"{self.scheme}:// names nothing")
        if self.scheme in ("python", "venv", "conda") and not self.location.startswith("/"):
            raise SpecInvalid(f"{self.scheme}://{self.location} needs an absolute path on the nodes: "
                              f"{self.scheme}:///path, with three slashes")

    @classmethod
    def parse(cls, text: str) -> "Environment":
        """Read ``python:///usr/bin/python3``, ``venv:///path``, ``docker://image`` or an archive's path."""
        scheme, separator, location = text.partition("://")
        if separator and scheme in ENVIRONMENT_SCHEMES:
            return cls(scheme, location)
        try:
            archive = urlsplit(text).path.endswith(ARCHIVE_SUFFIXES)
        except ValueError:
            archive = False
        if archive:
            return cls("archive", text)
        raise SpecInvalid(f"{text!r} is no environment; give python:///path/to/python3, venv:///folder, "
                          f"conda:///folder, docker://image, or an archive ({', '.join(ARCHIVE_SUFFIXES)})")

    def __str__(self) -> str:
        return self.location if self.scheme == "archive" else f"{self.scheme}://{self.location}"
