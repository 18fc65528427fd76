"""From the values of a ``.job`` to a `JobSpec`, by the same function and the same rules as ``ytf-submit``.

In come properties and the project's folder; out goes a request: options and a document
for `request.build_job`. Its faults come back with the keys of the ``.job``, all at once.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import SpecInvalid
from ..job.document import read_document
from ..job.request import build_job
from ..job.requirement import canonical_type, parse_cluster_requirement
from ..job.spec import JobSpec
from ..validation import brief, did_you_mean, parse_count
from .keys import RESERVED, Found, find_key, unknown_key
from .program import add_program, file_name
from .tony import translate
from .values import Value, check_letters, merge, own_values, readable, shown

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: A fault in a value hides what is wrong with the parts taken together: as many looks are taken.
_LOOKS = 3
#: Two ways to say where the interpreter is.
_PLACES = ("tf.environment", "tf.docker_image")
#: Options whose value is a list, comma-separated in a ``.job``.
_LISTS = ("tag", "file_system")
#: Options with a form for all tasks and a form for a type.
_FORMS = ("task_memory", "task_vcores", "task_gpus", "node_label")
#: A fault of the core without a key, and the key that it means.
_MEANT = (
    (re.compile(r"tasks: (\S+) has no command"), "tf.command"),
    (re.compile(r"tasks: (nothing ends|there are none|tensorboard|\d+ tasks|chief)"), "tf.<type>.instances"),
    (re.compile(r"files: .* is the name of two files"), "tf.files.<n>"),
)


@dataclass
class Request:
    """What a ``.job`` asks for; grows while it is read.

    Attributes
    ----------
    options : dict
        For `request.build_job`.
    document : dict
        Under the options: the task types, and what has no option.
    brought : dict of str to str
        How a fault of the core begins, to the key that brought the value.
    values : mapping of str to Value
        Names of the table to what the job says.
    folder : Path
        The project's, where the ``.job`` lies.
    faults, warnings : list of str
    dry_run, strict_placement : bool
    """

    values: Mapping[str, Value]
    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    brought: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    dry_run: bool = False
    strict_placement: bool = False

    def give(self, option: str, value: Any, key: str) -> None:
        """Set an option."""
        self.options[option] = value
        self.brought[option] = key

    def text(self, name: str) -> str | None:
        """Give a value that is not empty; None for one that was not given."""
        value = self.values.get(name)
        return value.text.strip() or None if value else None

    def flag(self, name: str) -> bool:
        """Give a value that is true or false."""
        text = (self.text(name) or "false").lower()
        if text not in _FLAGS:
            self.faults.append(f"{self.values[name].key}: {shown(text)} is neither true nor false")
        return _FLAGS.get(text, False)


def read_job(properties: Mapping[str, str], folder: Path,
             defaults: Mapping[str, str] = MappingProxyType({}),
             complete: Callable[[JobSpec, Request], JobSpec] = lambda job, request: job) -> tuple[JobSpec, Request]:
    """Give the job that a ``.job`` asks for, and how it was read.

    Parameters
    ----------
    properties : mapping of str to str
        All that Azkaban hands over; its own keys are passed over, but for ``azkaban.job.id``.
    folder : Path
        The project's, where relative paths begin.
    defaults : mapping of str to str, optional
        The site's values for ``tf.*`` keys that neither the job nor TonY's keys give.
    complete : callable, optional
        Gives the job as it will be submitted; raises SpecInvalid with what it has against it. A job with faults comes
        without what they are about, if it can be read so, and `Request.faults` has them.

    Raises
    ------
    SpecInvalid
        With every fault, those of `complete` too, by the ``.job``'s keys.
    """
    request = _gather(properties, folder, defaults)
    values = request.values
    _read_document(request)
    found = {name: key for name in values if (key := find_key(name))}
    types = _read_types(request, found)
    request.faults += [unknown_key(value.key, types) for name, value in values.items() if name not in found]
    for name, key in found.items():
        _read_value(request, name, key)
    add_program(request, types)
    request.dry_run, request.strict_placement = request.flag("tf.dry_run"), request.flag("tf.strict_placement")
    if "name" not in request.options and properties.get("azkaban.job.id"):
        request.give("name", properties["azkaban.job.id"], "tf.name")
    job = _build(request)
    if job is not None:
        try:
            job = complete(job, request)
        except SpecInvalid as error:
            request.faults += [translate_fault(fault, request.brought) for fault in error.faults]
    if job is None or request.faults:
        raise SpecInvalid(dict.fromkeys(request.faults))
    return job, request


def _gather(properties: Mapping[str, str], folder: Path, defaults: Mapping[str, str]) -> Request:
    """Give a request with the values of all who have a say: the job, TonY's keys, the site, TonY's defaults."""
    faults: list[str] = []
    tony = translate(properties)
    values = merge(own_values(properties), tony.values, faults)
    for name, value in (*((name, Value(text, name)) for name, text in defaults.items()), *tony.weak):
        absent = name == "tf.source" and not (folder / value.text).is_dir()
        said_otherwise = ((name in _PLACES and any(other in values for other in _PLACES))
                          or (name.endswith(".memory") and "tf.task_memory" in values))
        if name not in values and not absent and not said_otherwise:
            values[name] = value
    faults += check_letters(values)
    values = {name: value._replace(text=readable(value.text)) for name, value in values.items()}
    return Request(values, folder, faults=faults, warnings=[tony.warning] if tony.warning else [])


def _build(request: Request) -> JobSpec | None:
    """Build the job. What has a fault is left out for a second look, so that no fault hides another."""
    options = dict(request.options)
    for _ in range(_LOOKS):
        try:
            return build_job(options, request.document)
        except SpecInvalid as error:
            request.faults += [translate_fault(fault, request.brought) for fault in error.faults]
            wrong = {name for name in options for fault in error.faults if fault.startswith((f"{name}:", f"{name} "))}
            wrong |= {"max_restarts", "retry_exit_codes", "fatal_exit_codes"} if "restart" in wrong else set()
            if not wrong - {"task_command"}:
                break
            options = {name: value for name, value in options.items() if name not in wrong or name == "task_command"}
    return None


def translate_fault(fault: str, brought: Mapping[str, str]) -> str:
    """Give a fault of the core with the key of the ``.job`` in place of the option, or of the path in the document."""
    for pattern, key in _MEANT:
        if pattern.match(fault):
            return f"{key}: {fault.partition(': ')[2]}"
    for start in sorted(brought, key=len, reverse=True):
        rest = fault[len(start):]
        if fault.startswith(start) and rest[:1] in (":", " ", ""):
            return brought[start] + (rest if rest.startswith(":") else f":{rest}")
    single = re.sub(r"\.indices\.\d+\.", ".", fault)
    return fault if single == fault else translate_fault(single, brought)


def _read_document(request: Request) -> None:
    path = request.text("tf.spec")
    if path is None:
        return
    try:
        document = read_document(path, request.folder, key="tf.spec")
    except SpecInvalid as error:
        request.faults += error.faults
        return
    if not isinstance(document.get("tasks", {}), Mapping):
        request.faults.append(f"tf.spec: tasks: {brief(document['tasks'])} is not a mapping of task types to their "
                              "settings")
        return
    request.document = document


def _read_types(request: Request, found: Mapping[str, Found]) -> dict[str, dict[str, Any]]:
    """Put the task types and their numbers into the document; give its tasks."""
    tasks = {canonical_type(str(name)): {} if task is None else
             dict(task) if isinstance(task, Mapping) else {"instances": task}
             for name, task in request.document.get("tasks", {}).items()}
    counts: dict[str, int] = {}
    if requirement := request.text("tf.cluster_requirement"):
        wrong: list[str] = []
        counts = parse_cluster_requirement(requirement, wrong)
        request.faults += [f"{request.values['tf.cluster_requirement'].key}: {fault.partition(', ')[2]}"
                           for fault in wrong]
        tasks = {name: tasks.get(name, {}) for name in counts}
    for name, key in found.items():
        if key.key.name != "tf.<type>.instances" or request.text(name) is None:
            continue
        value, kind = request.values[name], canonical_type(key.places["type"])
        try:
            count = parse_count(value.text, least=0)
        except ValueError as error:
            request.faults.append(f"{value.key}: {error}")
            count = 1
        if counts.setdefault(kind, count) != count:
            request.faults.append(f"{value.key}: {count} is not what was said before, {counts[kind]}; say it once")
        if kind in RESERVED:
            request.faults.append(f"{value.key}: {kind!r} can't be a task type here, as tf.{kind}. begins other keys")
    tasks |= {name: {**tasks.get(name, {}), "instances": count} for name, count in counts.items()}
    tasks = {name: task for name, task in tasks.items() if task.get("instances") != 0}
    if not tasks and not requirement:
        request.faults.append("tf.<type>.instances: missing; say which tasks the job has, for example "
                              "tf.worker.instances=4")
    request.document["tasks"] = tasks or {"worker": {"command": "true"}}
    return tasks


def _read_value(request: Request, name: str, found: Found) -> None:
    """Put a value where `build_job` finds it; what `program` and others read is passed over."""
    key, places = found
    value = request.values[name]
    text = value.text if key.text else value.text.strip()
    if not text and not (key.text and places):
        return
    if "type" in places:
        _read_task_value(request, found, value._replace(text=text))
    elif "NAME" in places:
        request.options.setdefault("env", {})[places["NAME"]] = text
        request.brought[f"env: {places['NAME']!r}"] = value.key
        request.brought.setdefault("env", "tf.env.<NAME>")
    elif "n" in places and key.option:
        request.options.setdefault(key.option, []).append(text)
        request.brought[f"{key.option} {text!r}"] = request.brought[f"{key.option}s: {file_name(text)}"] = value.key
        request.brought[key.option] = request.brought[f"{key.option}s"] = f"tf.{key.option}s.<n>"
    elif key.option == "tensorboard":
        request.give(key.option, request.flag(name), value.key)
    elif key.option in _LISTS:
        request.give(key.option, [part.strip() for part in text.split(",") if part.strip()], value.key)
        request.brought[f"{key.option}s"] = value.key
    elif key.option in _FORMS:
        request.options.setdefault(key.option, []).append(text)
        request.brought.setdefault(key.option, value.key)
    elif key.option and key.option not in ("cluster_requirement", "task_command"):
        request.give(key.option, text, value.key)


def _read_task_value(request: Request, found: Found, value: Value) -> None:
    """A value of one task type, or of one task."""
    key, places = found
    kind, index = canonical_type(places["type"]), places.get("index")
    tasks: dict[str, Any] = request.document["tasks"]
    field_name = "env" if "NAME" in places else key.name.rpartition(".")[2]
    request.brought[f"tasks.{kind}.{field_name}"] = value.key
    if field_name == "instances":
        return
    if kind not in tasks:
        if not (request.values.get(f"tf.{places['type']}.instances")):
            near = did_you_mean(kind, tasks).replace("'?)", value.key[len(f"tf.{places['type']}"):] + "'?)")
            request.faults.append(f"{value.key}: no task type {kind!r} in the job, which has {', '.join(tasks)}"
                                  f"{near.replace(chr(39), chr(39) + 'tf.', 1)}")
    elif field_name in ("memory", "vcores", "gpus"):
        where = f"{kind}:{value.text}" if index is None else f"{kind}[{int(index)}]:{value.text}"
        if "," in value.text or ":" in value.text:
            request.faults.append(f"{value.key}: {shown(value.text)} is not one amount")
            return
        request.options.setdefault(key.option, []).append(where)
        request.brought[f"{key.option} {where!r}"] = value.key
    elif field_name == "env":
        before = tasks[kind].get("env") or {}
        if not isinstance(before, Mapping):
            request.faults.append(f"tf.spec: tasks.{kind}.env: a {type(before).__name__} is not a mapping")
            return
        tasks[kind]["env"] = {**before, places["NAME"]: value.text}
        request.brought[f"tasks.{kind}.env: {places['NAME']!r}"] = value.key
    elif field_name in ("awaited", "fatal", "in_cluster"):
        tasks[kind][field_name] = request.flag(f"tf.{places['type']}.{field_name}")
    else:
        tasks[kind][field_name] = value.text
