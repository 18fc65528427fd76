"""The parts of a job that are not its tasks: environment, restarts, deadlines, access rights.

Each is a frozen value that can't exist in an invalid state; `spec` puts them together.
"""

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import Fault, FaultCode
from ..validation import (
    ARCHIVE_SUFFIXES,
    brief,
    check_faults,
    invalid,
    normalise,
    optional,
    read_choice,
    read_count,
    read_exit_codes,
    read_memory,
    read_seconds,
    read_text,
    read_texts,
)
from .options import OPTIONS

RESTART_MODES = OPTIONS["restart"].choices
#: Arguments of TensorBoard that the program in front of it gives itself.
TENSORBOARD_OWN = ("--logdir", "--logdir_spec", "--host", "--bind_all", "--port", "--reuse_port", "--path_prefix")
ENVIRONMENT_SCHEMES = ("python", "venv", "conda", "docker")


class PartFault(FaultCode):
    """Fault codes for a part."""

    SHORT_HEARTBEAT = "{given:g} is too short; give at least 5 seconds, or 0 for no limit"
    NEEDS_RESTARTS = "{given} needs {other} to be task or cluster, not never"
    IN_BOTH_LISTS = "{other} names {codes} too; give each code in one of the two lists"
    NO_LOCATION = "{scheme}:// names nothing; {advice}"
    NOT_ABSOLUTE = "{given} needs an absolute path on the nodes: {scheme}:///path, with three slashes"
    NOT_WORDS = "{given!r} can't be split into words: {error}"
    TAKEN_ARGUMENT = "{given} is set by the program in front of TensorBoard; leave it out; the folder is {other}"
    NOT_AN_ENVIRONMENT = "{given} is not an environment; {advice}"


_ADVICE = ("give python:///path/to/python3, venv:///folder, conda:///folder, docker://image, or an archive "
           f"({', '.join(ARCHIVE_SUFFIXES)})")


@dataclass(frozen=True)
class Resources:
    """The resources of one container.

    Parameters
    ----------
    memory : int or str, optional
        MiB, or an amount such as ``8 GiB``. Default 8192.
    vcores : int, optional
        Virtual cores, at least 1. Default 1.
    gpus : int, optional
        Devices of ``yarn.io/gpu``, at least 0. Default 0.

    Raises
    ------
    SpecInvalid
        With every fault.
    """

    memory: int = 8192
    vcores: int = 1
    gpus: int = 0

    if TYPE_CHECKING:  # what a caller may give

        def __init__(self, memory: int | str = ..., vcores: int = ..., gpus: int = ...) -> None: ...

    def __post_init__(self) -> None:
        check_faults(normalise(self, {"memory": read_memory, "vcores": read_count(1), "gpus": read_count(0)}))


@dataclass(frozen=True)
class TensorBoard:
    """The extra task that serves TensorBoard on ``output`` while the job runs.

    Parameters
    ----------
    memory : int or str, optional
        MiB, or an amount such as ``2 GiB``. Default 2048: TensorBoard keeps the data that it reads in memory.
    vcores : int, optional
        Virtual cores, at least 1. Default 1.
    linger : float, optional
        Seconds for which it continues after the last awaited task has ended. Default 0.
    logdir : str, optional
        The folder that it shows: a path of the nodes, or a URL such as ``hdfs:///models/digits/logs``. Default: the
        job's ``output``.
    args : str, optional
        Further arguments of the program, as one types them in a shell: ``--samples_per_plugin=images=100``.

    Raises
    ------
    SpecInvalid
        With every fault.
    """

    memory: int = 2048
    vcores: int = 1
    linger: float = 0.0
    logdir: str | None = None
    args: str = ""

    if TYPE_CHECKING:  # what a caller may give

        def __init__(self, memory: int | str = ..., vcores: int = ..., linger: float = ..., logdir: str | None = ...,
                     args: str = ...) -> None: ...

    def __post_init__(self) -> None:
        check_faults(normalise(self, {"memory": read_memory, "vcores": read_count(1), "linger": read_seconds,
                                      "logdir": optional(read_text), "args": _read_arguments}))


def _read_arguments(value: object) -> str:
    """Return the arguments of TensorBoard; refuse those that the front of TensorBoard needs for itself."""
    text = read_text(value)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise invalid(PartFault.NOT_WORDS, given=text, error=error) from None
    taken = [word.partition("=")[0] for word in words if word.partition("=")[0] in TENSORBOARD_OWN]
    if taken:
        raise invalid(PartFault.TAKEN_ARGUMENT, given=taken[0], other="logdir")
    return text


@dataclass(frozen=True)
class Deadlines:
    """How long each wait may take, in seconds; 0 means without limit.

    Parameters
    ----------
    queue : float, optional
        From submission until the application master runs. Default 86400: a queue
        may be full for a night, but not for longer than a day.
    allocation : float, optional
        Until every task has a container. Default 1800: a job that has only a part of its
        containers blocks them for others, so it releases them after half an hour.
    registration : float, optional
        From the start of a container until its agent calls the coordinator. Default 600:
        a large archive is copied and unpacked before that.
    heartbeat : float, optional
        How long an agent, or the coordinator, may be silent, at least 5. Default 60.
    execution : float, optional
        From the first cluster spec until the end of the job. Default 0: only the user
        knows how long the training takes.
    total : float, optional
        From the start of the application master until the end of the job. Default 604800,
        seven days: then HDFS delegation tokens expire, and the job can't write its result.
    stop_grace : float, optional
        Between SIGTERM and SIGKILL, when a command is ended. Default 10.

    Raises
    ------
    SpecInvalid
        With every fault.
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
            faults.append(Fault("heartbeat", PartFault.SHORT_HEARTBEAT, {"given": self.heartbeat}))
        check_faults(faults)


@dataclass(frozen=True)
class RestartPolicy:
    """What happens when a task fails or its container is lost.

    Parameters
    ----------
    mode : {"never", "task", "cluster"}, optional
        ``never`` (default) ends the job at the first failure. ``task`` starts the failed
        command again on its port while the others continue. ``cluster`` ends all commands
        and starts them again with a new cluster spec.
    max_restarts : int, optional
        How many failures of the program lead to a restart. Default 0 for ``never``, else 3.
    max_container_losses : int, optional
        How many containers may be preempted, lost with their node, killed from outside or silent.
        Each is replaced, and the cluster restarts with the replacement. Default 3.
    retry_exit_codes : sequence of int, optional
        Only these exit codes (1 to 255; 128 + n for signal n) lead to a restart. Default: all.
    fatal_exit_codes : sequence of int, optional
        These exit codes end the job, even when restarts are left. Default: none.
    backoff : float, optional
        Seconds before the first restart; doubles with each further one, up to 300. Default 1.
    allocation_retries : int, optional
        How often a waiting client submits a job again that has missed its allocation
        deadline. Default 0.

    Raises
    ------
    SpecInvalid
        With every fault.
    """

    mode: str = "never"
    max_restarts: int | None = None
    max_container_losses: int = 3
    retry_exit_codes: tuple[int, ...] = ()
    fatal_exit_codes: tuple[int, ...] = ()
    backoff: float = 1.0
    allocation_retries: int = 0

    def __post_init__(self) -> None:
        if self.max_restarts is None:
            object.__setattr__(self, "max_restarts", 0 if self.mode == "never" else 3)
        faults = normalise(self, {
            "mode": read_choice(*RESTART_MODES), "max_restarts": read_count(0), "max_container_losses": read_count(0),
            "backoff": read_seconds, "allocation_retries": read_count(0), "retry_exit_codes": read_exit_codes,
            "fatal_exit_codes": read_exit_codes,
        })
        if not faults and self.mode == "never" and self.max_restarts:
            faults.append(
                Fault("max_restarts", PartFault.NEEDS_RESTARTS, {"given": self.max_restarts, "other": "mode"})
            )
        if not faults and (both := sorted(set(self.retry_exit_codes) & set(self.fatal_exit_codes))):
            faults.append(Fault("retry_exit_codes", PartFault.IN_BOTH_LISTS,
                                {"codes": tuple(both), "other": "fatal_exit_codes"}))
        check_faults(faults)


@dataclass(frozen=True)
class Acls:
    """Who may view or change the application, besides the submitting user.

    Parameters
    ----------
    view_users, view_groups, modify_users, modify_groups, ui_users : sequence of str, optional
        Names as the cluster knows them; ``*`` for all. ``ui_users`` may open the pages of the job, besides
        ``view_users`` and ``view_groups``. Default: no others.

    Raises
    ------
    SpecInvalid
        With every fault.
    """

    view_users: tuple[str, ...] = ()
    view_groups: tuple[str, ...] = ()
    modify_users: tuple[str, ...] = ()
    modify_groups: tuple[str, ...] = ()
    ui_users: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_faults(normalise(self, {field.name: read_texts for field in fields(self)}))


@dataclass(frozen=True)
class Environment:
    """Where the interpreter and the packages of the tasks come from.

    Parameters
    ----------
    scheme : str
        ``python``, ``venv``, ``conda``, ``docker`` or ``archive``.
    location : str
        An interpreter's path, an environment's folder, an image, or an archive's
        local path or URI.

    Raises
    ------
    SpecInvalid
        The scheme is unknown, the location is empty or not absolute, or the archive has another suffix.
    """

    scheme: str
    location: str

    def __post_init__(self) -> None:
        faults = normalise(self, {"scheme": read_choice(*ENVIRONMENT_SCHEMES, "archive"), "location": read_text})
        check_faults(faults)
        if not self.location:
            raise invalid(PartFault.NO_LOCATION, scheme=self.scheme, advice=_ADVICE)
        if self.scheme in ("python", "venv", "conda") and not self.location.startswith("/"):
            raise invalid(PartFault.NOT_ABSOLUTE, given=str(self), scheme=self.scheme)
        if self.scheme == "archive" and not _is_archive(self.location):
            raise invalid(PartFault.NOT_AN_ENVIRONMENT, given=repr(self.location), advice=_ADVICE)

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
        The part to compare with, of the same type. Default: the defaults of the fields.

    Returns
    -------
    dict of str to value
        Plain values by the names of the fields, in their order.
    """
    if plain is None:
        defaults = {one.name: one.default_factory() if one.default_factory is not MISSING else one.default
                    for one in fields(part)}
    else:
        defaults = {one.name: getattr(plain, one.name) for one in fields(part)}
    return {name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            for name, default in defaults.items() if (value := getattr(part, name)) != default}
