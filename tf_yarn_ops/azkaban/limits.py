"""The limits of a site for its Azkaban jobs, from a file that jobs can't write.

The installed job type names the file; the default is ``/etc/tf_yarn_ops/azkaban.yaml``. The file must belong to root,
or to the user who has installed this package.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .. import kinds
from ..declaration import Part, option
from ..errors import Fault, FaultCode, SpecInvalid, why_unreadable
from ..hadoop.site import Site
from ..job.spec import JobSpec
from ..validation import (
    ValueFault,
    check_faults,
    invalid,
    kind_of,
    not_a_mapping,
    noting,
    read_part,
    read_text,
    read_texts,
)
from ..yaml_text import load_yaml
from .keys import find_key, unknown_key

DEFAULT_PATH = "/etc/tf_yarn_ops/azkaban.yaml"


class LimitFault(FaultCode):
    """Fault codes for a job under the site's limits, or with the file of the limits."""

    USER = "the site does not let jobs run as {given!r}, only as {allowed}"
    USER_OF_FLOW = (
        "the site does not let jobs run as {given!r}, who started the flow; Azkaban takes this user "
        "because the job sets no other user; set one of {allowed}"
    )
    QUEUE = "{given!r} is not one of the queues that this site allows: {allowed}"
    TASKS = "{given} tasks; this site allows {most}"
    CONTAINER = "{given}{unit}; this site allows {most}{unit} for a container"
    TOGETHER = "{given}{unit} together; this site allows {most}{unit} for a job"
    GROWTH = "{given:g} could exceed the memory that this site allows; leave it out"
    TOTAL_TIMEOUT = "{given:g} s; this site allows {most:g}"
    NO_TOTAL_TIMEOUT = "no limit; this site allows {most:g} s"
    NOT_A_VARIABLE = "not a variable with a text; put numbers and true into quotes"
    NOT_ABSOLUTE = "{given!r} is not an absolute path"
    UNREADABLE = "can't be read: {error}"
    OTHERS_CAN_WRITE = "users other than root could have written it: chown root and chmod 644 it"


def _read_defaults(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise not_a_mapping(value, "tf.* keys to values")
    check_faults(unknown_key(str(name), ()) for name in value if not find_key(str(name)))
    return {str(name): str(item).lower() if isinstance(item, bool) else str(item) for name, item in value.items()}


def _read_environ(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        # The fault shows only the type: the values may be secrets.
        raise invalid(ValueFault.NOT_A_MAPPING, given=kind_of(value), what="variables to values")
    check_faults(
        Fault(str(name), LimitFault.NOT_A_VARIABLE)
        for name, text in value.items()
        if not isinstance(name, str)
        or not isinstance(text, str)
        or not name.isidentifier()
        or not name.isascii()
        or "\0" in text
    )
    return dict(value)


def _read_keytab(value: object) -> str:
    keytab = read_text(value)
    if not keytab.startswith("/"):
        raise invalid(LimitFault.NOT_ABSOLUTE, given=value)
    return keytab


@dataclass(frozen=True)
class Limits(Part):
    """The limits of a site; None and empty mean no limit."""

    user_to_proxy: bool | tuple[str, ...] = option(
        False,
        kinds.Kind("texts", lambda value: value if isinstance(value, bool) else read_texts(value)),
        "Whether applications run as the ``user.to.proxy`` of the job: true for all users, or the allowed users. "
        "Otherwise they run as the user of the launcher.",
    )
    defaults: Mapping[str, str] = option(
        dict, kinds.Kind("variables", _read_defaults), "Values of ``tf.*`` keys for jobs that do not give them."
    )
    environ: Mapping[str, str] = option(
        dict,
        kinds.Kind("variables", _read_environ),
        "Environment variables of the launcher. They win over those of the job.",
    )
    files: str | None = option(
        None,
        kinds.choice("project", "any"),
        "Which files of the launcher's machine a job may name: those of its project, after links, or all that the "
        "launcher can read. Values of ``defaults`` are not limited.",
        in_words="project where the job type is installed with --secure, else any",
    )
    keytab: str | None = option(
        None, kinds.Kind("text", _read_keytab), "The keytab of the launcher; wins over the site's."
    )
    principal: str | None = option(None, kinds.TEXT, "The principal of the launcher; wins over the site's.")
    queues: tuple[str, ...] = option((), kinds.TEXTS, "The allowed queues.")
    tasks: int | None = option(None, kinds.count(1), "The most tasks of one job, TensorBoard included.")
    memory: int | None = option(None, kinds.MEMORY, "The most for one container, also the application master.")
    vcores: int | None = option(None, kinds.count(1), "The most for one container, also the application master.")
    gpus: int | None = option(None, kinds.count(0), "The most for one container, with other resources by name.")
    total_memory: int | None = option(None, kinds.MEMORY, "The most for all containers of a job.")
    total_vcores: int | None = option(None, kinds.count(1), "The most for all containers of a job.")
    total_gpus: int | None = option(None, kinds.count(0), "The most for all containers of a job.")
    total_timeout: float | None = option(
        None,
        kinds.SECONDS,
        "Jobs that give a longer total_timeout, or 0, are refused; jobs that give none get this one if the default is "
        "longer.",
    )

    def user(self, properties: Mapping[str, str]) -> str | None:
        """Return the user of the application; None for the user of the launcher.

        Raises
        ------
        SpecInvalid
            The job wants a user that the site does not allow.
        """
        wanted = properties.get("user.to.proxy", "").strip()
        if not wanted or self.user_to_proxy is False:
            return None
        if self.user_to_proxy is not True and wanted not in self.user_to_proxy:
            code = LimitFault.USER_OF_FLOW if wanted == properties.get("azkaban.flow.submituser") else LimitFault.USER
            raise SpecInvalid(Fault("user.to.proxy", code, {"given": wanted, "allowed": self.user_to_proxy}))
        return wanted

    def with_deadline(self, job: JobSpec) -> JobSpec:
        """Return a job that gives no total_timeout, with the site's one if the default is longer."""
        if self.total_timeout is None or 0 < job.deadlines.total <= self.total_timeout:
            return job
        return replace(job, deadlines=replace(job.deadlines, total=self.total_timeout))

    def identify(self, site: Site) -> Site:
        """Return a site with the keytab and the principal of these limits.

        A principal alone keeps the site's keytab. A keytab alone drops the site's principal, which it may not have.
        """
        if not (self.keytab or self.principal):
            return site
        return replace(site, keytab=self.keytab or site.keytab, principal=self.principal)

    def check_job(self, job: JobSpec) -> None:
        """Raise SpecInvalid, with every limit, for a job that is larger than the site allows."""
        faults = []
        if self.queues and job.queue not in self.queues:
            faults.append(Fault("tf.queue", LimitFault.QUEUE, {"given": job.queue, "allowed": self.queues}))
        own: list[tuple[str, object]] = [
            (f"tf.{name}.{{}}", replace(size, gpus=size.gpus + sum(task.resources.values())))
            for name, task in job.tasks.items()
            for size in map(task.resources_of, range(task.instances))
        ]
        if job.tensorboard:
            own.append(("tf.tensorboard_{}", job.tensorboard))
        if self.tasks is not None and len(own) > self.tasks:
            faults.append(Fault("tf.<type>.instances", LimitFault.TASKS, {"given": len(own), "most": self.tasks}))
        for what, unit in (("memory", " MiB"), ("vcores", ""), ("gpus", "")):
            most, total = getattr(self, what), getattr(self, f"total_{what}")
            amounts = [(key.format(what), getattr(resources, what, 0)) for key, resources in own]
            amounts.append((f"tf.am_{what}", getattr(job, f"am_{what}", 0)))
            largest = {key: max(amount for other, amount in amounts if other == key) for key, _ in amounts}
            faults += [
                Fault(key, LimitFault.CONTAINER, {"given": amount, "most": most, "unit": unit})
                for key, amount in largest.items()
                if most is not None and amount > most
            ]
            together = sum(amount for _, amount in amounts)
            if total is not None and together > total:
                faults.append(
                    Fault(f"tf.<type>.{what}", LimitFault.TOGETHER, {"given": together, "most": total, "unit": unit})
                )
        if job.restart.memory_growth and (self.memory, self.total_memory) != (None, None):
            faults.append(Fault("tf.memory_growth", LimitFault.GROWTH, {"given": job.restart.memory_growth}))
        longest, limit = self.total_timeout, job.deadlines.total
        if longest is not None and (not limit or limit > longest):
            code = LimitFault.TOTAL_TIMEOUT if limit else LimitFault.NO_TOTAL_TIMEOUT
            faults.append(Fault("tf.total_timeout", code, {"given": limit, "most": longest}))
        check_faults(faults)


def read_limits(path: str | None = None) -> Limits:
    """Read the site's file.

    Parameters
    ----------
    path : str, optional
        A file, which must exist. Default: `DEFAULT_PATH`, which may be missing.

    Raises
    ------
    SpecInvalid
        The file can't be read, has faults, or users other than root and the installing user could have written it.
    """
    file = Path(path or DEFAULT_PATH)
    if path is None and not file.exists():
        return Limits()
    faults: list[Fault] = []
    with noting(faults):
        try:
            with file.open("rb") as stream:
                check_owner(os.fstat(stream.fileno()))
                text = stream.read().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise invalid(LimitFault.UNREADABLE, error=why_unreadable(error)) from error
        limits = read_part(Limits)(load_yaml(text, faults).value)
    check_faults(fault.in_file(f"the site's limits, {file}") for fault in faults)
    return limits


def check_owner(status: os.stat_result) -> None:
    """Raise SpecInvalid for a file that users other than root, or the user who installed this package, can write."""
    if status.st_uid not in (0, os.stat(__file__).st_uid) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise invalid(LimitFault.OTHERS_CAN_WRITE)
