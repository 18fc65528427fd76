"""Translate TonY's keys to keys of this job type, so that a ``.job`` for TonY runs here.

Input: all properties of a job. Output: ``tf.*`` names with their values, each with TonY's key, the keys of TonY that
have no meaning here, and those that are not served. This module does not check values: `job` does that later, for all
doors.

References
----------
TonY: ``TonyJob``, ``TonyJobArg``, ``TonyClient``, ``TonyConfigurationKeys``.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import Fault, FaultCode, did_you_mean
from ..job.requirement import canonical_type, parse_cluster_requirement
from ..validation import ARCHIVE_SUFFIXES
from .request import Property

#: The memory of a task for which TonY's keys give none.
DEFAULT_MEMORY = "2g"
#: The folder into which TonY unpacks python_venv.
VENV_FOLDER = "venv"
#: Keys with an equivalent key of ours.
OURS = {
    "src_dir": "tf.source",
    "task_params": "tf.args",
    "tony.containers.command": "tf.command",
    "tony.yarn.queue": "tf.queue",
    "tony.application.name": "tf.name",
    "tony.application.tags": "tf.tags",
    "tony.application.node-label": "tf.node_label",
    "tony.am.memory": "tf.am_memory",
    "tony.am.vcores": "tf.am_vcores",
    "tony.other.namenodes": "tf.file_systems",
    "tony.tensorboard.memory": "tf.tensorboard_memory",
    "tony.tensorboard.vcores": "tf.tensorboard_vcores",
}
#: The same for keys in milliseconds, where -1 means no limit.
MILLISECONDS = {
    "tony.application.timeout": "tf.total_timeout",
    "tony.am.startup-timeout": "tf.queue_timeout",
    "tony.container.allocation.timeout": "tf.allocation_timeout",
    "tony.container.registration.timeout": "tf.registration_timeout",
    "tony.task.executor.execution-timeout-ms": "tf.execution_timeout",
}
ENVIRONMENTS = ("tony.containers.envs", "tony.execution.envs")
DATASETS = {"azkaban.input.dataset": "AZKABAN_INPUT_DATASET", "azkaban.output.dataset": "AZKABAN_OUTPUT_DATASET"}
WORKER_ENV = "worker_env."
#: Keys whose product is a timeout in milliseconds, and TonY's defaults.
BEATS = {"tony.task.heartbeat-interval-ms": 1000.0, "tony.task.max-missed-heartbeats": 25.0}
ROLE_FIELDS = {
    "instances": "instances",
    "memory": "memory",
    "vcores": "vcores",
    "gpus": "gpus",
    "command": "command",
    "node-label": "node_label",
    "depends-on": "after",
}
_ROLE_KEY = re.compile(
    r"tony\.(?P<role>[A-Za-z][A-Za-z0-9_]*)\.(?P<field>instances|memory|vcores|gpus|command|"
    r"node-label|depends-on|resources)\Z"
)
_IMAGE_KEY = re.compile(r"tony\.docker\.(?P<role>[A-Za-z][A-Za-z0-9_]*)\.image\Z")
_OWN_ROLE = re.compile(r"tf\.[A-Za-z][A-Za-z0-9_-]*\.instances\Z")
_COMMAND = re.compile(r"tf\.([A-Za-z][A-Za-z0-9_]*\.)?command\Z")
#: Keys whose command takes the arguments of task_params.
_JOB_COMMANDS = ("tf.command", "tf.entry_point", "tf.spec", "tony.containers.command")
#: Words in the place of a role that are not roles.
_NO_ROLES = ("am", "application", "task", "containers", "container", "tensorboard")
ROLE_LISTS = {
    "tony.application.untracked.jobtypes": (("awaited", "false"),),
    "tony.application.sidecar.jobtypes": (("awaited", "false"), ("fatal", "false")),
    "tony.application.stop-on-failure-jobtypes": (("fatal", "true"),),
}
#: Values without an effect here, because they ask for our normal behaviour.
_HARMLESS = {
    "tony.application.distributed-mode": ("gang",),
    "tony.docker.enabled": ("true", "false"),
    "tony.am.gpus": ("0",),
    "tony.am.retry-count": ("0",),
    "tony.application.enable-preprocess": ("false",),
    "tony.tensorboard.instances": ("0", "1"),
    "tony.tensorboard.gpus": ("0",),
    "tony.application.fail-on-worker-failure-enabled": ("true",),
}
#: Keys about TonY's own services, clients and JVMs, which change nothing in what trains.
_TONYS_OWN = re.compile(
    r"tony\.((history|portal|keytab|https|version-info|application\.hadoop)\..+|http\.port|secret\.key|gpu-exec-path|"
    r"task\.((am|executor|default)\.jvm\.opts|metrics-interval-ms|gpu-metrics\.enabled|executor\.registry-timeout-sec|"
    r"executor\.execution\.error-message-max-depth)|am\.wait-client-signal-stop-timeout-sec|application\.(type|"
    r"security\.enabled|(hdfs|yarn|mapred)-conf-path|num-client-rm-connect-retries))\Z"
)


#: The likeness of a misspelt key; tony.worker.max-instances, which TonY has, is 0.91 like tony.worker.instances.
_MISSPELT = 0.93


class TonyFault(FaultCode):
    """Fault codes for the keys of TonY, and for its jobs that `convert` reads."""

    NO_COUNTERPART = "this key of TonY has no counterpart here{why}{hint}"
    NOT_SERVED = NO_COUNTERPART + "; the job would not run as it does there: remove the key"
    NO_TASKS = "missing; say which tasks the job has, for example tony.worker.instances=4"
    NO_SCRIPT = "{given!r} is not in the folder of the program; give the folder that has it: --src_dir"


@dataclass
class Translated:
    """The values of TonY's keys, under our names.

    Attributes
    ----------
    values : list of (str, Property)
        Our names with TonY's values.
    weak : list of (str, Property)
        TonY's defaults. They count where neither the job nor the site gives a value.
    ignored : list of str
        TonY's keys that have no meaning here.
    faults : list of Fault
        Of the keys that are not served.
    """

    values: list[tuple[str, Property]] = field(default_factory=list)
    weak: list[tuple[str, Property]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def add(self, name: str, text: str, key: str) -> None:
        """Add a value."""
        self.values.append((name, Property(text, key)))

    def refuse(self, name: str, why: str = "", hint: str = "") -> None:
        """Add a fault of a key that is not served."""
        self.faults.append(Fault(name, TonyFault.NOT_SERVED, {"why": why and f": {why}", "hint": hint}))

    def drop(self, name: str, why: str) -> None:
        """Remove a value, and add the reason to the ignored keys."""
        self.values = [(other, value) for other, value in self.values if other != name]
        self.ignored.append(why)


def translate(properties: Mapping[str, str]) -> Translated:
    """Return the values of TonY's keys in a job under our names."""
    found = Translated()
    given = {name: text for name, text in properties.items() if text.strip()}
    for name, text in given.items():
        if name == "tony.containers.command" and "tf.command" not in given:
            found.add("tf.command", f"{_bits(given)}{text}", name)
        elif name in OURS:
            found.add(OURS[name], text, name)
        elif name in MILLISECONDS:
            found.add(MILLISECONDS[name], _seconds(text), name)
        elif name == "tony.application.tensorboard-log-dir":
            found.add("tf.tensorboard", "true", name)
            found.add("tf.output", text, name)
        elif name in DATASETS:
            found.add(f"tf.env.{DATASETS[name]}", text.replace(",", ";"), name)
        elif name.startswith("tony.") and name not in (*ENVIRONMENTS, *BEATS, *ROLE_LISTS):
            _role_or_ignored(name, text, given, found)
    _variables(properties, found)
    _program(given, found)
    _heartbeat(given, found)
    _roles(given, found)
    _resources(given, found)
    if _docker(given) and "tony.docker.containers.image" not in given and "tf.docker_image" not in given:
        found.ignored.append("tony.docker.enabled (there is no tony.docker.containers.image)")
    return found


def _docker(given: Mapping[str, str]) -> bool:
    return given.get("tony.docker.enabled", "").strip().lower() == "true"


def _role_or_ignored(name: str, text: str, given: Mapping[str, str], found: Translated) -> None:
    match = _ROLE_KEY.match(name)
    if match and match["role"] not in _NO_ROLES:
        if match["field"] in ROLE_FIELDS:
            own = f"tf.{match['role']}.{ROLE_FIELDS[match['field']]}"
            # A command that our key gives too is compared with this one, so it stays unchanged.
            bits = _bits(given) if match["field"] == "command" and own not in given else ""
            found.add(own, f"{bits}{text}", name)
    elif (image := _IMAGE_KEY.match(name)) and image["role"] not in {*_NO_ROLES} - {"containers"}:
        if _docker(given) and image["role"] == "containers":
            found.add("tf.docker_image", text, name)
        elif _docker(given):
            found.add(f"tf.{image['role']}.environment", f"docker://{text.strip()}", name)
    elif name == "tony.application.framework":
        found.add("tf.framework", re.sub(r"\Astandalone\Z", "none", text.strip().lower()), name)
    elif _TONYS_OWN.match(name):
        found.ignored.append(name)
    elif name != "tony.containers.resources" and text.strip().lower() not in _HARMLESS.get(name, ()):
        roles = {match["role"] for match in map(_ROLE_KEY.match, given) if match} | {"worker", "ps"}
        known = {
            *OURS,
            *MILLISECONDS,
            *ENVIRONMENTS,
            *BEATS,
            *ROLE_LISTS,
            *_HARMLESS,
            *(f"tony.{role}.{field_name}" for role in roles for field_name in ROLE_FIELDS),
        }
        found.refuse(name, hint="" if name in known else did_you_mean(name, known, _MISSPELT))


def _variables(properties: Mapping[str, str], found: Translated) -> None:
    """Add the variables of all tasks; an empty value counts."""
    for name, text in properties.items():
        if name.startswith(WORKER_ENV):
            found.add(f"tf.env.{name[len(WORKER_ENV) :]}", text, name)
        elif name in ENVIRONMENTS:
            for part in filter(None, (part.strip() for part in text.split(","))):
                variable, _, value = part.partition("=")
                found.add(f"tf.env.{variable}", value, name)


def _program(given: Mapping[str, str], found: Translated) -> None:
    """Add the command, with the interpreter that TonY puts before it."""
    binary, venv = given.get("python_binary_path", "").strip(), given.get("python_venv", "").strip()
    interpreter = f"{VENV_FOLDER}/{binary}" if venv and binary and not binary.startswith("/") else binary
    executes = given.get("executes", "").strip()
    if len(executes) > 1 and executes[0] == executes[-1] and executes[0] in "'\"":
        executes = executes[1:-1]  # The quotes keep TonY's job type from splitting the command at blanks.
    if venv:
        found.add(f"tf.archives.{_free(found, 'archives')}", f"{VENV_FOLDER}={venv}", "python_venv")
    commands = [name for name, value in found.values if _COMMAND.match(name) and value.key.startswith("tony.")]
    if executes:
        if "tony.containers.command" in given:
            found.drop("tf.command", "tony.containers.command (executes runs instead)")
        bits = "" if binary.startswith("/") else _bits(given)
        found.add("tf.command", f"{bits}{interpreter} {executes}" if interpreter else f"{bits}{executes}", "executes")
    elif "task_params" in given and commands and not any(name in given for name in _JOB_COMMANDS):
        found.drop("tf.args", "task_params (they need executes)")
    if executes or commands:
        found.weak.append(("tf.source", Property("src", "src_dir")))
    if binary.startswith("/"):
        if not any(name == "tf.docker_image" for name in (*given, *(name for name, _ in found.values))):
            # The application master uses the same interpreter as the tasks.
            found.add("tf.environment", f"python://{binary}", "python_binary_path")
    elif binary and not executes:
        found.ignored.append("python_binary_path (it needs executes)")


def _bits(given: Mapping[str, str]) -> str:
    """Return the command that sets executable bits in python_venv if it is a zip: YARN unpacks zips without them."""
    return f"chmod -R u+x {VENV_FOLDER} && " if given.get("python_venv", "").strip().endswith(".zip") else ""


def _heartbeat(given: Mapping[str, str], found: Translated) -> None:
    brought = [name for name in BEATS if name in given]
    for name in brought:
        try:
            float(given[name])
        except ValueError:
            found.add("tf.heartbeat_timeout", given[name], name)  # whose reader refuses it
            return
    if brought:
        milliseconds = math.prod(float(given.get(name, usual)) for name, usual in BEATS.items())
        found.add("tf.heartbeat_timeout", f"{max(5.0, milliseconds / 1000):g}", brought[0])


def _roles(given: Mapping[str, str], found: Translated) -> None:
    """Add the settings of roles in TonY's lists, and TonY's defaults for the roles that it starts."""
    roles = {
        match["role"]: name
        for name in given
        if (match := _ROLE_KEY.match(name)) and match["field"] == "instances" and match["role"] not in _NO_ROLES
    }
    ours = [name.split(".")[1] for name in given if _OWN_ROLE.match(name)]
    known = {*roles, *ours, *parse_cluster_requirement(given.get("tf.cluster_requirement", ""), [])}
    for role, name in roles.items():
        found.weak.append((f"tf.{role}.memory", Property(DEFAULT_MEMORY, name)))
        if canonical_type(role) == "chief" and given[name].strip() != "0":
            found.weak.append(("tf.success", Property("chief", name)))
    for name, fields in ROLE_LISTS.items():
        for role in (part.strip() for part in given.get(name, "").split(",")):
            if role in known:
                for field_name, text in fields:
                    found.add(f"tf.{role}.{field_name}", text, name)
            elif role not in ("", "tensorboard") and "tf.spec" in given:
                found.refuse(name, f"set this of {role} in tf.spec")


def _resources(given: Mapping[str, str], found: Translated) -> None:
    """Add files and archives. All tasks get those of every role."""
    sources: dict[str, tuple[str, str]] = {}
    for name, text in given.items():
        if name == "hdfs_classpath" or (name.startswith("tony.") and name.endswith(".resources")):
            for part in filter(None, (part.strip() for part in text.split(","))):
                path, unpacked = re.subn(r"#archive\Z", "", part, flags=re.IGNORECASE)
                path, _, target = path.partition("::")
                if name == "hdfs_classpath" and "://" not in path:
                    path = f"hdfs://{path}"
                if unpacked and not path.endswith(ARCHIVE_SUFFIXES):
                    found.refuse(name, f"{part} is not one of {', '.join(ARCHIVE_SUFFIXES)}")
                else:
                    source = f"{target or path.rstrip('/').rpartition('/')[2]}={path}"
                    sources.setdefault(source, ("archives" if unpacked else "files", name))
    for source, (kind, name) in sources.items():
        found.add(f"tf.{kind}.{_free(found, kind)}", source, name)


def _free(found: Translated, kind: str) -> int:
    """Return a number for another entry of tf.files or tf.archives, above the numbers that people give."""
    return 1_000_000 + sum(name.startswith(f"tf.{kind}.") for name, _ in found.values)


def _seconds(text: str) -> str:
    try:
        return f"{max(0.0, float(text)) / 1000:g}"
    except ValueError:
        return text
