"""What the site allows its Azkaban jobs, from a file that no job can write.

The file lies where the plugin says, ``/etc/tf_yarn_ops/azkaban.yaml`` unless it says
otherwise, and counts only when it is root's, or of whoever installed this package.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import SpecInvalid
from ..job.spec import JobSpec
from ..validation import (
    brief,
    check,
    did_you_mean,
    normalise,
    optional,
    read_count,
    read_memory,
    read_seconds,
    read_texts,
)
from .keys import find_key, unknown_key

DEFAULT_PATH = "/etc/tf_yarn_ops/azkaban.yaml"


def _read_proxy(value: object) -> bool | tuple[str, ...]:
    return value if isinstance(value, bool) else read_texts(value)


def _read_defaults(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{brief(value)} is not a mapping of tf.* keys to values")
    wrong = [unknown_key(str(name), ()) for name in value if not find_key(str(name))]
    if wrong:
        raise ValueError("; ".join(wrong))
    return {str(name): str(item).lower() if isinstance(item, bool) else str(item) for name, item in value.items()}


def _read_environ(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"a {type(value).__name__} is not a mapping of variables to values")
    wrong = [str(name) for name, text in value.items() if not isinstance(name, str) or not isinstance(text, str)
             or not name.isidentifier() or not name.isascii() or "\0" in text]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: not a variable with a text; put numbers and true into quotes")
    return dict(value)


@dataclass(frozen=True)
class Limits:
    """What the site allows; None and empty mean no limit.

    Parameters
    ----------
    user_to_proxy : bool or sequence of str, optional
        Whether applications run as the job's ``user.to.proxy``, for all users or for these.
        Default: they run as the launcher's own user.
    defaults : mapping of str to str, optional
        Values for ``tf.*`` keys that a job leaves out.
    environ : mapping of str to str, optional
        Variables of the launcher, whatever the job says of them.
    queues : sequence of str, optional
        The queues that may be used.
    tasks : int, optional
        Of one job, TensorBoard's included.
    memory, vcores, gpus : int, optional
        Of one container, the application master's and TensorBoard's included; memory in MiB or with a unit.
    total_memory, total_vcores, total_gpus : int, optional
        Of all containers of a job.
    total_timeout : float, optional
        Seconds; jobs without a limit, or with a longer one, are refused.
    """

    user_to_proxy: bool | tuple[str, ...] = False
    defaults: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    queues: tuple[str, ...] = ()
    tasks: int | None = None
    memory: int | None = None
    vcores: int | None = None
    gpus: int | None = None
    total_memory: int | None = None
    total_vcores: int | None = None
    total_gpus: int | None = None
    total_timeout: float | None = None

    def __post_init__(self) -> None:
        counts = ("tasks", "vcores", "total_vcores")
        check(normalise(self, {
            "user_to_proxy": _read_proxy, "defaults": _read_defaults, "environ": _read_environ,
            "queues": read_texts,
            "memory": optional(read_memory), "total_memory": optional(read_memory),
            **{name: optional(read_count(1)) for name in counts},
            **{name: optional(read_count(0)) for name in ("gpus", "total_gpus")},
            "total_timeout": optional(read_seconds),
        }))

    def user(self, properties: Mapping[str, str]) -> str | None:
        """Give the user whose application it is; None for the launcher's own.

        Raises
        ------
        SpecInvalid
            The job wants a user that the site does not allow.
        """
        wanted = properties.get("user.to.proxy", "").strip()
        if not wanted or self.user_to_proxy is False:
            return None
        if self.user_to_proxy is not True and wanted not in self.user_to_proxy:
            raise SpecInvalid(f"user.to.proxy: the site does not let jobs run as {wanted!r}")
        return wanted

    def check_job(self, job: JobSpec) -> None:
        """Refuse a job that is larger than allowed; SpecInvalid names every limit."""
        faults = []
        if self.queues and job.queue not in self.queues:
            faults.append(f"tf.queue: {job.queue!r} is not one that this site allows: {', '.join(self.queues)}")
        own: list[tuple[str, object]] = [
            (f"tf.{name}.{{}}", task.resources(index))
            for name, task in job.tasks.items() for index in range(task.instances)
        ]
        if job.tensorboard:
            own.append(("tf.tensorboard_{}", job.tensorboard))
        if self.tasks is not None and len(own) > self.tasks:
            faults.append(f"tf.<type>.instances: {len(own)} tasks; this site allows {self.tasks}")
        for what, unit in (("memory", " MiB"), ("vcores", ""), ("gpus", "")):
            most, total = getattr(self, what), getattr(self, f"total_{what}")
            amounts = [(key.format(what), getattr(resources, what, 0)) for key, resources in own]
            amounts.append((f"tf.am_{what}", getattr(job, f"am_{what}", 0)))
            largest = {key: max(amount for other, amount in amounts if other == key) for key, _ in amounts}
            faults += [f"{key}: {amount}{unit}; this site allows {most}{unit} for a container"
                       for key, amount in largest.items() if most is not None and amount > most]
            together = sum(amount for _, amount in amounts)
            if total is not None and together > total:
                faults.append(f"tf.<type>.{what}: {together}{unit} together; this site allows {total}{unit} for a job")
        longest, limit = self.total_timeout, job.deadlines.total
        if longest is not None and (not limit or limit > longest):
            faults.append(f"tf.total_timeout: {limit:g} s{'' if limit else ', no limit'}; this site allows {longest:g}")
        check(faults)


def read_limits(path: str | None = None) -> Limits:
    """Read the site's file.

    Parameters
    ----------
    path : str, optional
        Default: `DEFAULT_PATH`, which need not exist; one that is named has to.

    Raises
    ------
    SpecInvalid
        It can't be read, has faults, or others than the site could have written it.
    """
    import yaml

    file = Path(path or DEFAULT_PATH)
    if path is None and not file.exists():
        return Limits()
    try:
        with file.open("rb") as stream:
            check_owner(file, os.fstat(stream.fileno()))
            document = yaml.safe_load(stream) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecInvalid(f"the site's limits, {file}, can't be read: {error}") from error
    if not isinstance(document, Mapping):
        raise SpecInvalid(f"the site's limits, {file}, are not a mapping of keys to values")
    valid = [one.name for one in fields(Limits)]
    unknown = [f"{file}: unknown key {name!r}{did_you_mean(str(name), valid)}; known: {', '.join(valid)}"
               for name in document if name not in valid]
    known: dict[str, Any] = {name: value for name, value in document.items() if name in valid and value is not None}
    try:
        limits = Limits(**known)
    except SpecInvalid as error:
        raise SpecInvalid([*unknown, *(f"{file}: {fault}" for fault in error.faults)]) from error
    check(unknown)
    return limits


def check_owner(file: Path, status: os.stat_result) -> None:
    """Refuse a file that is not root's, nor of whoever installed this package; SpecInvalid says so."""
    trusted = {0, os.stat(__file__).st_uid}
    if status.st_uid not in trusted or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SpecInvalid(f"the site's limits, {file}, could have been written by others than root: "
                          f"chown root and chmod 644 it")
