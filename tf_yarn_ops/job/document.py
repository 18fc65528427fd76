"""Between a document (YAML, JSON, a mapping) and a `JobSpec`; reading names every fault by its key."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from ..errors import SpecInvalid
from ..validation import brief, did_you_mean
from .parts import Acls, Deadlines, Environment, Resources, RestartPolicy, TensorBoard
from .requirement import canonical_type
from .spec import JobSpec, TaskSpec

Part = TypeVar("Part")
_PARTS: dict[str, type[Any]] = {"restart": RestartPolicy, "deadlines": Deadlines, "acls": Acls}


def read_document(path: str, folder: Path = Path(), *, key: str = "spec") -> dict[str, Any]:
    """Read a job's YAML or JSON file; of the two documents of a dry run the job, which is the first.

    Parameters
    ----------
    path : str
    folder : Path, optional
        Where a relative path begins.
    key : str, optional
        What the user calls the path.

    Raises
    ------
    SpecInvalid
        It can't be read, or is no mapping.
    """
    import yaml

    try:
        with open(folder / path, encoding="utf-8") as file:
            document = next(yaml.safe_load_all(file), None)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SpecInvalid(f"{key}: {path!r} can't be read: {error}") from error
    if not isinstance(document, Mapping):
        raise SpecInvalid(f"{key}: {path!r} is not a mapping of keys to values; ytf-submit --dry_run prints one")
    return dict(document)


def read_job(document: Any) -> JobSpec:
    """Read a whole job; `SpecInvalid` lists all faults."""
    faults: list[str] = []
    if not isinstance(document, Mapping):
        raise SpecInvalid(f"a job is a mapping of keys to values, not {type(document).__name__}")
    values = _known(JobSpec, document, "", faults)
    for name, part in _PARTS.items():
        if name in values:
            values[name] = _read(part, values[name], name, faults)
    if "tensorboard" in values:
        values["tensorboard"] = _tensorboard(values["tensorboard"], faults)
    if "environment" in values:
        values["environment"] = _environment(values["environment"], faults)
    if "tasks" not in values:
        faults.append("tasks: missing; a mapping of task types to their settings")
    else:
        values["tasks"] = _tasks(values["tasks"], faults)
    # What could not be read has its fault in the list; its default keeps the rest checkable.
    readable = {name: value for name, value in values.items() if value is not None}
    readable.setdefault("tasks", {"worker": TaskSpec(command="true")})
    try:
        job = JobSpec(**readable)
    except SpecInvalid as error:
        faults.extend(error.faults)
    if faults:
        raise SpecInvalid(faults)
    return job


def _known(part: type[Any], document: Mapping[str, Any], where: str, faults: list[str]) -> dict[str, Any]:
    valid = [field.name for field in fields(part)]
    faults.extend(f"{where}{name}: unknown key{did_you_mean(str(name), valid)}; known: {', '.join(valid)}"
                  for name in document if name not in valid)
    return {name: value for name, value in document.items() if name in valid}


def _read(part: type[Part], value: Any, where: str, faults: list[str]) -> Part | None:
    if isinstance(value, part):
        return value
    if value is None:
        return None
    if not isinstance(value, Mapping):
        faults.append(f"{where}: {brief(value)} is not a mapping of keys to values")
        return None
    try:
        return part(**_known(part, value, f"{where}.", faults))
    except SpecInvalid as error:
        faults.extend(f"{where}.{fault}" for fault in error.faults)
        return None


def _tensorboard(value: Any, faults: list[str]) -> TensorBoard | None:
    if isinstance(value, bool):
        return TensorBoard() if value else None
    return _read(TensorBoard, value, "tensorboard", faults)


def _environment(value: Any, faults: list[str]) -> Environment | None:
    if value is None or isinstance(value, Environment):
        return value
    try:
        return Environment.parse(str(value))
    except SpecInvalid as error:
        faults.extend(f"environment: {fault}" for fault in error.faults)
        return None


def _tasks(value: Any, faults: list[str]) -> dict[str, TaskSpec] | None:
    if not isinstance(value, Mapping):
        faults.append(f"tasks: {brief(value)} is not a mapping of task types to their settings")
        return None
    tasks: dict[str, TaskSpec] = {}
    complete = True
    for name, settings in value.items():
        where = f"tasks.{name}"
        if canonical_type(str(name)) in tasks:
            faults.append(f"{where}: task type {canonical_type(str(name))!r} is named twice")
        if isinstance(settings, int):
            settings = {"instances": settings}
        if isinstance(settings, Mapping) and isinstance(settings.get("indices"), Mapping):
            settings = {**settings, "indices": _indices(settings, where, faults)}
        task = _read(TaskSpec, {} if settings is None else settings, where, faults)
        complete &= task is not None
        if task:
            tasks[canonical_type(str(name))] = task
    return tasks if complete else None


def _indices(settings: Mapping[str, Any], where: str, faults: list[str]) -> dict[Any, Resources]:
    general = {name: settings[name] for name in ("memory", "vcores", "gpus") if name in settings}
    indices: dict[Any, Resources] = {}
    for index, own in settings["indices"].items():
        merged = {**general, **own} if isinstance(own, Mapping) else own
        resources = _read(Resources, merged, f"{where}.indices.{index}", faults)
        if resources:
            indices[index] = resources
    return indices


def write_job(job: JobSpec) -> dict[str, Any]:
    """Give what differs from the defaults, as plain values; `read_job` reads it back."""
    document = _given(job)
    document["tasks"] = {
        name: _given(task) | ({"indices": {index: _given(own, Resources(task.memory, task.vcores, task.gpus))
                                           for index, own in task.indices.items()}} if task.indices else {})
        for name, task in job.tasks.items()
    }
    for part in ("deadlines", "acls", "tensorboard"):
        if part in document:
            document[part] = _given(document[part])
    if "restart" in document:
        # The default of max_restarts hangs on the mode.
        document["restart"] = {"mode": job.restart.mode, **_given(job.restart, RestartPolicy(job.restart.mode))}
    if job.tensorboard:
        document["tensorboard"] = document["tensorboard"] or True
    if job.environment:
        document["environment"] = str(job.environment)
    return document


def _given(part: Any, plain: Any = None) -> dict[str, Any]:
    """The fields of a part that differ from their defaults (from ``plain``'s), in the order of their definition."""
    if plain is None:
        plain = type(part)(tasks={"worker": TaskSpec(command="true")}) if isinstance(part, JobSpec) else type(part)()
    return {f.name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            for f in fields(part) if (value := getattr(part, f.name)) != getattr(plain, f.name)}
