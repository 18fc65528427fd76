"""From options to a `JobSpec`: the same function serves the command line, Airflow and Azkaban.

Input: a mapping of option names to values as people write them (texts, lists of texts, numbers, mappings), and
perhaps a document that they override. Output: a valid job. Pure: it reads no file and asks no host. It reports all
faults of the request together, each with the name of its option.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ..declaration import OPERATOR, Option
from ..errors import Fault, FaultCode, SpecInvalid
from ..runtime.common.contract import SCRIPT_VARIABLE
from ..runtime.common.values import map_values
from ..validation import ValueFault, check_faults, kind_of, noting, parse_count, parse_flag, read_text
from .options import is_given, options_of
from .requirement import NotationFault, canonical_type, parse_cluster_requirement, parse_overrides
from .shell_commands import hiding_end
from .spec import JobFault, JobSpec

_OPTIONS = options_of(OPERATOR, submission=False)
#: The names of the options that `build_job` takes.
OPTION_NAMES = tuple(_OPTIONS)
#: Options with the three forms of an override.
_PER_TASK = {name: option for name, option in _OPTIONS.items() if option.per_task}
#: Options that are one key of the document; `_apply_tasks` and `_apply_tensorboard` write the others.
_SIMPLE = {
    name: option
    for name, option in _OPTIONS.items()
    if option.path and option.path[0] not in ("tasks", "tensorboard", "node_label")
}
#: Names that often stand first in a path and seldom name a host.
FOLDERS = ("data", "home", "mnt", "project", "projects", "tmp", "user", "users", "warehouse")
#: MiB of a task below which the unit of its memory was probably forgotten.
LITTLE_MEMORY = 64


class RequestFault(FaultCode):
    """Fault codes for the options of a request."""

    UNKNOWN_OPTION = "unknown option{hint}"
    TWO_ENVIRONMENTS = "{other} also says where the program runs; give one of them"
    NO_TASKS = "missing; say which tasks the job has, for example ps:2,worker:4"
    NO_COMMAND = "missing; say what every task runs, for example 'python train.py'"
    NO_TENSORBOARD = "the request has no TensorBoard; set {other} too"
    EXPECTED = "expected {form}"
    TWICE = "given twice; give it once"


def build_job(options: Mapping[str, Any], document: Mapping[str, Any] | None = None) -> JobSpec:
    """Build the job that the options ask for.

    Parameters
    ----------
    options : mapping of str to value
        By the long names of ``ytf-submit``, with ``_``. None, and an absent name, mean not given.
        Repeatable options take a text, a list of texts, or a mapping.
    document : mapping, optional
        A job as `JobSpec.from_dict` reads it, which the options override: an option replaces what
        the document says about the same value; ``env``, ``file`` and ``archive`` add to it.
        A resource for all tasks replaces the document's values of every task, a resource for a
        type those of its tasks; ``cluster_requirement`` says which types there are.

    Returns
    -------
    JobSpec

    Raises
    ------
    SpecInvalid
        With every fault of the request.
    """
    faults = [
        Fault(str(name), RequestFault.UNKNOWN_OPTION, {"given": name, "allowed": OPTION_NAMES})
        for name in options
        if name not in OPTION_NAMES
    ]
    given = {name: value for name, value in options.items() if value is not None and name in OPTION_NAMES}
    for name, value in list(given.items()):
        option = _OPTIONS[name]
        odd = [
            item
            for item in _items(value)
            if not isinstance(item, str | int | float) or (isinstance(item, bool) and option.kind.word != "flag")
        ]
        if odd and option.many and option.kind.word != "variables":
            faults.append(Fault(name, ValueFault.NOT_WRITTEN, {"given": kind_of(odd[0])}))
            del given[name]
    job = map_values(document or {}, lambda _, value: value)  # the caller's own values do not change
    for name, option in _SIMPLE.items():
        if name in given:
            _apply(job, option, given[name], faults)
    _apply_tensorboard(job, given, faults)
    if "docker_image" in given:
        if "environment" in given:
            faults.append(Fault("docker_image", RequestFault.TWO_ENVIRONMENTS, {"other": "environment"}))
        with noting(faults, "docker_image"):
            job["environment"] = f"docker://{read_text(given['docker_image'])}"
    _apply_tasks(job, given, faults)
    rename = _names_of_paths(given, document or {})
    try:
        spec = JobSpec.from_dict(job)
    except SpecInvalid as error:
        faults += [fault.renamed(rename) for fault in error.faults]
    check_faults(dict.fromkeys(faults))
    return spec


def find_job_warnings(job: JobSpec) -> list[str]:
    """Return warnings about valid values that are probably mistakes.

    These are a URL with a folder in place of its host, a script that no command runs, a command that names a script
    that was not given, a command whose end hides a failure, memory in MiB that looks like GiB, and workers that may
    only serve a chief.
    """
    doubts = []
    for name, task in job.tasks.items():
        least = min([task.memory, *(resources.memory for resources in task.indices.values())])
        if least < LITTLE_MEMORY:
            doubts.append(f"task_memory: {name} has {least} MiB, in which no Python starts; for GiB write {least}g")
    for option, path in (("input", job.input), ("output", job.output)):
        try:
            url = urlsplit(path or "")
        except ValueError:  # for example a pattern with brackets, which the program interprets
            continue
        if url.scheme == "hdfs" and url.netloc in FOLDERS:
            meant = f"hdfs:///{url.netloc}{url.path}"
            doubts.append(f"{option}: {path!r} names a NameNode {url.netloc!r}; if the folder is meant, write {meant}")
    commands = [job.command, *(task.command for task in job.tasks.values())]
    script = (job.script or "").rpartition("/")[2]
    if script and not any(name in command for command in commands if command for name in (script, SCRIPT_VARIABLE)):
        doubts.append(
            f"script: no command names {script!r} or {SCRIPT_VARIABLE}. A shell replaces $DTF_TASK_SCRIPT in "
            "double quotes by nothing; write the command in single quotes: 'python $DTF_TASK_SCRIPT'"
        )
    if not script and any(SCRIPT_VARIABLE in command for command in commands if command):
        doubts.append(f"script: missing, although a command names {SCRIPT_VARIABLE}, which is empty without it")
    for where, command in (
        ("command", job.command),
        *((f"tasks.{name}.command", task.command) for name, task in job.tasks.items()),
    ):
        if hidden := hiding_end(command or ""):
            advice = {
                ";": "Leave it out, or put 'set -e;' first",
                "wait": "Give it the id of the program: 'pid=$!' after '&', then 'wait $pid'",
            }.get(hidden.split()[0], "Leave it out")
            doubts.append(
                f"{where}: {hidden!r} at its end hides a failure of what stands before it: the task would succeed. "
                + advice
            )
    worker = job.tasks.get("worker")
    undecided = worker and worker.awaited is None and job.role_of("worker").awaited and job.success == "all_workers"
    if undecided and {"chief", "ps"} <= set(job.tasks):
        doubts.append(
            "success: the job waits for the workers after the chief has succeeded. Workers that only serve, as with "
            "ParameterServerStrategy and server.join(), never end: give them the command ytf-server, or give success "
            "chief. If they end by themselves, write tasks.worker.awaited: true"
        )
    return doubts


def _apply(job: dict[str, Any], option: Option, value: Any, faults: list[Fault]) -> None:
    """Write the value of an option that is one key of the document."""
    match option.kind.word:
        case "texts" | "codes":
            if texts := _texts(value):
                _put(job, option.path, _numbers(texts) if option.kind.word == "codes" else texts, faults)
        case "variables" | "sources":
            key = option.path[0]
            job[key] = {**_present(job, key, faults), **_pairs(option.name, value, faults)}
        case _:
            _put(job, option.path, value, faults)


def _apply_tasks(job: dict[str, Any], given: Mapping[str, Any], faults: list[Fault]) -> None:
    """Write the options about task types into the document."""
    named = _present(job, "tasks", faults) if "cluster_requirement" in given else _mapping(job.get("tasks"))
    tasks = {canonical_type(str(name)): _task(task) for name, task in named.items()}
    if len(tasks) < len(named):
        faults.append(Fault("tasks.chief", JobFault.CHIEF_TWICE))
    if "cluster_requirement" in given:
        wanted = given["cluster_requirement"]
        if isinstance(wanted, Mapping):
            wanted = ",".join(f"{name}:{count}" for name, count in wanted.items())
        requirement = parse_cluster_requirement(str(wanted), faults)
        tasks = {
            name: {**_present(tasks, name, faults, "tasks."), "instances": count} for name, count in requirement.items()
        }
        job["tasks"] = tasks
        if not requirement:
            _stand_in(job, given, faults)
    elif "tasks" not in job:
        faults.append(Fault("cluster_requirement", RequestFault.NO_TASKS))
        _stand_in(job, given, faults)
        return
    elif isinstance(job["tasks"], Mapping):
        job["tasks"] = tasks
    instances = {name: _instances(task) for name, task in tasks.items() if isinstance(task, dict)}
    for option in _PER_TASK.values():
        field = option.path[-1]
        overrides = parse_overrides(option.name, _texts(given.get(option.name)), instances, option.kind.read, faults)
        for name in instances:
            if (value := overrides.get((name, None), overrides.get(("", None)))) is not None:
                tasks[name][field] = value
                for own in _mapping(tasks[name].get("indices")).values():
                    _mapping(own).pop(field, None)
        for (name, index), value in overrides.items():
            if index is not None:
                where = f"tasks.{name}."
                indices = tasks[name]["indices"] = _present(tasks[name], "indices", faults, where)
                indices[index] = {**_present(indices, index, faults, f"{where}indices."), field: value}
    for name, command in _pairs("command", given.get("command"), faults).items():
        _put_type("command", canonical_type(name), command, tasks, faults)
    for place, amount in _pairs("resource", given.get("resource"), faults).items():
        name, colon, resource = place.rpartition(":")
        for type_name in [canonical_type(name.strip())] if colon else tasks:
            present = _mapping(_mapping(tasks.get(type_name)).get("resources"))
            _put_type("resource", type_name, {**present, resource.strip(): amount}, tasks, faults, "resources")
    for text in _texts(given.get("hold_port")):
        name, _, word = text.replace(":", "=").rpartition("=")
        flag = {"true": True, "false": False}.get(word.strip().lower())
        if flag is None:
            faults.append(
                Fault("hold_port", RequestFault.EXPECTED, {"item": text, "form": "true, false or TYPE=false"})
            )
            continue
        for type_name in [canonical_type(name.strip())] if name else tasks:
            _put_type("hold_port", type_name, flag, tasks, faults)
    for label in _texts(given.get("node_label")):
        name, colon, own = label.partition(":")
        if colon:
            _put_type("node_label", canonical_type(name.strip()), own.strip(), tasks, faults)
        else:
            job["node_label"] = label


def _stand_in(job: dict[str, Any], given: Mapping[str, Any], faults: list[Fault]) -> None:
    """Replace faulty tasks, whose fault is already listed, by a valid one, so that the rest can be checked."""
    job["tasks"] = {"worker": {"command": "true"}}
    if "command" not in job and "command" not in given:
        faults.append(Fault("task_command", RequestFault.NO_COMMAND))


def _put_type(
    option: str, name: str, value: object, tasks: Mapping[str, Any], faults: list[Fault], field: str = ""
) -> None:
    if isinstance(tasks.get(name), dict):
        tasks[name][field or option] = value
    else:
        faults.append(Fault(option, NotationFault.NO_SUCH_TYPE, {"given": name, "allowed": tuple(tasks)}))


def _apply_tensorboard(job: dict[str, Any], given: Mapping[str, Any], faults: list[Fault]) -> None:
    """Write the options about TensorBoard into the document."""
    if "tensorboard" in given:
        with noting(faults, "tensorboard"):
            job["tensorboard"] = parse_flag(given["tensorboard"]) and (job.get("tensorboard") or True)
    for name, option in _OPTIONS.items():
        if len(option.path) < 2 or option.path[0] != "tensorboard":
            continue
        if name in given and not job.get("tensorboard"):
            faults.append(Fault(name, RequestFault.NO_TENSORBOARD, {"other": "tensorboard"}))
        elif name in given:
            settings = job["tensorboard"] if isinstance(job["tensorboard"], dict) else {}
            job["tensorboard"] = {**settings, option.path[1]: given[name]}


def _names_of_paths(given: Mapping[str, Any], document: Mapping[str, Any]) -> Callable[[str], str]:
    """Return a function that names a path of the document by its option, unless the value is the document's own."""
    names = {
        ".".join(option.path): name
        for name, option in _OPTIONS.items()
        if option.path and option.path[0] != "tasks" and (name in given or not is_given(document, option.path))
    }
    if "docker_image" in given and "environment" not in given:
        names["environment"] = "docker_image"

    def rename(path: str) -> str:
        head, tail = path, ""
        while head and head not in names:
            head, _, last = head.rpartition(".")
            tail = f".{last}{tail}"
        return names[head] + tail if head else path

    return rename


def _items(value: Any) -> list[Any]:
    """Return the items of a repeatable option; it may be given as one value, a list or a mapping."""
    if isinstance(value, Mapping):
        return list(value.values())
    return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)


def _texts(value: Any) -> list[str]:
    """Return the texts of a repeatable option."""
    if isinstance(value, Mapping):
        return [f"{key}:{item}" for key, item in value.items()]
    return [] if value is None else [str(item) for item in _items(value)]


def _numbers(texts: Iterable[str]) -> list[int | str]:
    """Return the numbers of comma-separated texts; keep an item that is not a number, for the fault."""
    items = [item.strip() for text in texts for item in text.split(",")]
    return [int(item) if item.isdecimal() and len(item) < 10 else item for item in items]


def _pairs(option: str, value: Any, faults: list[Fault]) -> dict[str, str]:
    """Return names and values of ``NAME=VALUE`` texts, or of a mapping; a file may come without a name."""
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    forms = {"command": "TYPE=COMMAND", "env": "NAME=VALUE", "resource": "[TYPE:]NAME=AMOUNT"}
    form = forms.get(option, "NAME=PATH or PATH")
    pairs: dict[str, str] = {}
    for position, text in enumerate(_texts(value), start=1):
        name, equals, value = text.partition("=")
        # The value of a variable may be a secret, and so may a text without a name.
        shown = name if option == "env" else text
        item = {"item": shown} if equals or option != "env" else {"position": position}
        if option in ("file", "archive") and ("/" in name or not equals):
            name, equals, value = text.rstrip("/").rpartition("/")[2], "=", text
        if not equals or not name:
            faults.append(Fault(option, RequestFault.EXPECTED, {**item, "form": form}))
        elif name in pairs:
            faults.append(Fault(option, RequestFault.TWICE, item))
        else:
            pairs[name] = value
    return pairs


def _put(document: dict[str, Any], path: tuple[str, ...], value: Any, faults: list[Fault]) -> None:
    *parents, key = path
    for parent in parents:
        document[parent] = document = _present(document, parent, faults)
    document[key] = value


def _present(document: Mapping[Any, Any], key: Any, faults: list[Fault], where: str = "") -> dict[Any, Any]:
    """Return the mapping under a key. Another value is a fault, whose text shows only its type: it may hold secrets."""
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        faults.append(
            Fault(f"{where}{key}", ValueFault.NOT_A_MAPPING, {"given": kind_of(value), "what": "keys to values"})
        )
    return _mapping(value)


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _task(task: Any) -> Any:
    """Return the settings of a type as a mapping with numbers as index keys; leave invalid values to `JobSpec`."""
    if task is None or (isinstance(task, int) and not isinstance(task, bool)):
        return {} if task is None else {"instances": task}
    if isinstance(task, dict) and isinstance(task.get("indices"), dict):
        task["indices"] = {
            int(key) if str(key).isdecimal() else key: {} if own is None else own
            for key, own in task["indices"].items()
        }
    return task


def _instances(task: Mapping[str, Any]) -> int:
    try:
        return parse_count(task.get("instances", 1), least=1)
    except SpecInvalid:
        return 1
