"""Build the `JobSpec` of a ``.job``, by the same function and the same rules as ``ytf-submit``.

Input: properties and the folder of the project. Output: the job and the `AzkabanRequest` from which it was built. All
faults are raised together, with keys of the ``.job`` as their paths.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..declaration import Option
from ..errors import Fault, SpecInvalid, did_you_mean
from ..job.document import read_document
from ..job.request import build_job
from ..job.requirement import canonical_type, parse_cluster_requirement
from ..job.spec import JobSpec
from ..launch.identity import IGNORE, PREVIOUS
from ..validation import ValueFault, brief, kind_of, noting, parse_count, read_choice
from .entry_point import add_program
from .keys import KEY_PREFIX, OWN_OPTIONS, RESERVED, FoundKey, find_key, unknown_key
from .outputs import RESULT
from .request import AzkabanJobFault, AzkabanRequest, Property, check_letters, merge, readable, shown
from .tony import translate

#: Two ways to say where the interpreter is.
_PLACES = ("tf.environment", "tf.docker_image")
#: Azkaban's names of a job, from which the application has its name.
_NAMES = ("azkaban.flow.projectname", "azkaban.flow.flowid", "azkaban.job.id")
#: Options that are read elsewhere, besides those of the submission.
_READ_APART = {*(option.name for option in OWN_OPTIONS), "cluster_requirement", "task_command"}


def read_azkaban_job(
    properties: Mapping[str, str],
    folder: Path,
    defaults: Mapping[str, str] = MappingProxyType({}),
    complete: Callable[[JobSpec, AzkabanRequest, list[Fault]], JobSpec] = lambda job, request, faults: job,
    root: Path | None = None,
) -> tuple[JobSpec, AzkabanRequest]:
    """Return the job that a ``.job`` asks for, and the request from which it was built.

    Parameters
    ----------
    properties : mapping of str to str
        All properties that Azkaban hands over. Of Azkaban's own keys only the names of project, flow and
        job are used.
    folder : Path
        The folder of the project, where relative paths begin.
    defaults : mapping of str to str, optional
        The site's values for ``tf.*`` keys that neither the job nor TonY's keys give.
    complete : callable, optional
        Returns the job as it will be submitted, and adds its faults to the list. If the request has faults, `complete`
        gets the job without the faulty options, if there is one, and `AzkabanRequest.faults` is not empty.
    root : Path, optional
        The folder outside which the job may name no file of this machine. Default: no limit.

    Raises
    ------
    SpecInvalid
        With every fault, those of `complete` included; the paths are keys of the ``.job``.
    """
    request = _gather(properties, folder, defaults, root)
    _read_document(request)
    found = {name: key for name in request.values if (key := find_key(name))}
    types = _read_types(request, found)
    request.faults += [unknown_key(value.key, types) for name, value in request.values.items() if name not in found]
    for name, key in found.items():
        _read_value(request, name, key)
    add_program(request, types)
    request.dry_run, request.strict_placement = request.flag("tf.dry_run"), request.flag("tf.strict_placement")
    with noting(request.faults, "tf.previous"):
        request.previous = read_choice(*PREVIOUS)((request.text("tf.previous") or IGNORE).lower())
    if not request.says("name") and (name := ".".join(filter(None, map(properties.get, _NAMES)))):
        request.give("name", name, "tf.name")
    if (job := _build(request)) is not None:
        faults: list[Fault] = []
        job = complete(job, request, faults)
        request.faults += map(request.with_job_keys, faults)
    if job is None or request.faults:
        raise SpecInvalid(dict.fromkeys(request.faults))
    return job, request


def _gather(
    properties: Mapping[str, str], folder: Path, defaults: Mapping[str, str], root: Path | None
) -> AzkabanRequest:
    """Return a request with the values of the job, of TonY's keys, of the site and of TonY's defaults."""
    tony = translate(properties)
    faults = tony.faults
    given = {
        name: Property(text, name)
        for name, text in properties.items()
        if name.startswith(KEY_PREFIX) and not name.startswith(RESULT)  # of a training upstream
    }
    values = merge(given, tony.values, faults)
    own = frozenset(values)
    for name, value in (*((name, Property(text, name)) for name, text in defaults.items()), *tony.weak):
        absent = name == "tf.source" and not os.path.isdir(folder / value.text)
        said_otherwise = (name in _PLACES and any(other in values for other in _PLACES)) or (
            name.endswith(".memory") and "tf.task_memory" in values
        )
        if name not in values and not absent and not said_otherwise:
            values[name] = value
    faults += check_letters(values)
    values = {name: value._replace(text=readable(value.text)) for name, value in values.items()}
    return AzkabanRequest(
        values,
        folder,
        root,
        of_site=frozenset(name for name in defaults if name not in own and name in values),
        faults=faults,
        warnings=[f"these keys of TonY have no effect here: {', '.join(tony.ignored)}"] if tony.ignored else [],
    )


def _build(request: AzkabanRequest) -> JobSpec | None:
    """Build the job. If it has faults, note them and build it without the faulty options; None if that fails too."""
    try:
        return build_job(request.options, request.document)
    except SpecInvalid as error:
        request.faults += map(request.with_job_keys, error.faults)
        wrong = {fault.path.partition(".")[0] for fault in error.faults}
    if "restart" in wrong:  # Without it these options are faults.
        wrong |= {"max_restarts", "retry_exit_codes", "fatal_exit_codes"}
    options = {name: value for name, value in request.options.items() if name not in wrong}
    if "task_command" in wrong:
        options["task_command"] = "true"
    with suppress(SpecInvalid):
        return build_job(options, request.document)
    return None


def _read_document(request: AzkabanRequest) -> None:
    if (path := request.text("tf.spec")) is None:
        return
    if not request.may_read("tf.spec", path):
        request.refuse("tf.spec", AzkabanJobFault.OUTSIDE, given=shown(path))
        return
    with noting(request.faults):
        document = read_document(path, request.folder, key="tf.spec", faults=request.faults)
        if isinstance(document.get("tasks", {}), Mapping):
            request.document, request.of_spec = document, frozenset(map(str, document))
        else:
            what, given = "task types to their settings", brief(document["tasks"])
            request.refuse("tf.spec: tasks", ValueFault.NOT_A_MAPPING, given=given, what=what)


def _read_types(request: AzkabanRequest, found: Mapping[str, FoundKey]) -> dict[str, dict[str, Any]]:
    """Write the task types and their instances into the document; return its tasks."""
    tasks = {
        canonical_type(str(name)): {}
        if task is None
        else dict(task)
        if isinstance(task, Mapping)
        else {"instances": task}
        for name, task in request.document.get("tasks", {}).items()
    }
    counts: dict[str, int] = {}
    if requirement := request.text("tf.cluster_requirement"):
        wrong: list[Fault] = []
        counts = parse_cluster_requirement(requirement, wrong)
        request.faults += [fault.renamed(lambda _: request.key_of("tf.cluster_requirement")) for fault in wrong]
        tasks = {name: tasks.get(name, {}) for name in counts}
    types = {name: key.places["type"] for name, key in found.items() if key.key.name == "tf.<type>.instances"}
    for name in filter(request.text, types):
        value, kind = request.values[name], canonical_type(types[name])
        request.brought[f"tasks.{kind}"] = value.key
        count = 1
        with noting(request.faults, value.key):
            count = parse_count(value.text, least=0)
        if counts.setdefault(kind, count) != count:
            request.refuse(value.key, AzkabanJobFault.OTHER_COUNT, given=count, before=counts[kind])
        if kind in RESERVED:
            request.refuse(value.key, AzkabanJobFault.RESERVED_TYPE, given=kind)
    tasks |= {name: {**tasks.get(name, {}), "instances": count} for name, count in counts.items()}
    tasks = {name: task for name, task in tasks.items() if task.get("instances") != 0}
    if not tasks and not requirement:
        request.refuse("tf.<type>.instances", AzkabanJobFault.NO_TASKS)
    request.document["tasks"] = tasks or {"worker": {"command": "true"}}
    return tasks


def _read_value(request: AzkabanRequest, name: str, found: FoundKey) -> None:
    """Write a value into the options or the document; skip values that other functions read."""
    option, places = found.key.option, found.places
    value = request.values[name]
    text = value.text if option.kind.verbatim else value.text.strip()
    if (
        option.name in _READ_APART
        or option.section == "submission"
        or (not text and not (option.kind.verbatim and places))
    ):
        return
    if "type" in places:
        _read_task_value(request, found, value._replace(text=text))
    elif "NAME" in places:
        request.options.setdefault("env", {})[places["NAME"]] = text
        request.brought[f"env.{places['NAME']}"] = value.key
    elif "n" in places:
        request.ship(option.name, text, value.key)
    elif option.per_task:
        request.options.setdefault(option.name, []).append(text)
        request.brought.setdefault(option.name, value.key)
    else:
        request.give(option.name, _convert(request, name, option, text), value.key)


def _convert(request: AzkabanRequest, name: str, option: Option, text: str) -> bool | str | list[str]:
    """Return a value as `build_job` takes it: texts of a ``.job`` are separated by commas."""
    if option.kind.word == "flag":
        return request.flag(name)
    return [part.strip() for part in text.split(",") if part.strip()] if option.kind.word == "texts" else text


def _read_task_value(request: AzkabanRequest, found: FoundKey, value: Property) -> None:
    """Write a value of one task type, or of one task, into the options or the document."""
    key, places = found
    kind, index = canonical_type(places["type"]), places.get("index")
    tasks: dict[str, Any] = request.document["tasks"]
    field_name = key.option.path[-1]
    request.brought[f"tasks.{kind}.{field_name}"] = value.key
    if field_name == "instances":
        return
    if kind not in tasks:
        if not request.values.get(f"tf.{places['type']}.instances"):
            rest = value.key[len(f"tf.{places['type']}") :]
            hint = did_you_mean(value.key, [f"tf.{name}{rest}" for name in tasks])
            request.refuse(value.key, AzkabanJobFault.NO_SUCH_TYPE, type=kind, types=tuple(tasks), hint=hint)
    elif key.option.per_task and {",", ":"} & {*value.text}:
        request.refuse(value.key, AzkabanJobFault.NOT_ONE_AMOUNT, given=shown(value.text))
    elif key.option.per_task:
        where = kind if index is None else f"{kind}[{int(index)}]"
        request.add(key.option.name, f"{where}:{value.text}", value.key)
    elif "NAME" in places:
        before = tasks[kind].get(field_name) or {}
        if isinstance(before, Mapping):
            tasks[kind][field_name] = {**before, places["NAME"]: value.text}
            request.brought[f"tasks.{kind}.{field_name}.{places['NAME']}"] = value.key
        else:
            where, what = f"tf.spec: tasks.{kind}.{field_name}", "names to values"
            request.refuse(where, ValueFault.NOT_A_MAPPING, given=kind_of(before), what=what)
    else:
        name = f"tf.{places['type']}.{field_name}"
        tasks[kind][field_name] = _convert(request, name, key.option, value.text)
