"""`JobSpec`: the whole job as one frozen value that can't exist in an invalid state.

Every door (command line, Airflow, Azkaban, a YAML file) makes one; everything behind the doors trusts it. All faults
of a job are reported together, each with the path of its value.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .. import kinds
from ..declaration import (
    AZKABAN,
    COMMAND_LINE,
    DOCUMENT,
    OPERATOR,
    Converted,
    Memory,
    Part,
    Texts,
    json_schema,
    option,
    part_of_job,
)
from ..errors import Fault, FaultCode
from ..runtime.common.committed_output import LONGEST_NAME, MODES, OFF, VERSION, split_location
from ..runtime.common.contract import GPU, MAX_STRING, SERVER_COMMAND
from ..runtime.common.frameworks import FRAMEWORKS, TENSORFLOW
from ..runtime.common.roles import CHIEF, EVALUATOR, TENSORBOARD, Role
from ..validation import (
    ARCHIVE_SUFFIXES,
    ValueFault,
    check_faults,
    check_file_name,
    is_expanded,
    normalise,
    not_a_mapping,
    noting,
    parse_count,
    read_part,
    read_texts,
)
from .document import format_yaml
from .parts import (
    Acls,
    Deadlines,
    DockerSettings,
    Environment,
    PartFault,
    Resources,
    RestartPolicy,
    TensorBoard,
    gpus_option,
    memory_option,
    mounted_path,
    read_environment,
    values_that_differ,
    vcores_option,
)
from .requirement import TASK_TYPE, NotationFault, canonical_type, misspelt_type

#: The doors of the options of one task type, which the command line does not have.
_BY_TYPE = (AZKABAN, DOCUMENT)
#: YARN takes ten tags; four are the job's identity.
MAX_TAGS_USER = 6
#: Largest number of processes of a task.
MAX_PROCESSES = 64
#: Largest log tail of one task in the report, characters.
MAX_LOG_TAIL = 8192
#: Resources besides memory and vcores for which Skein's request has a place.
MAX_RESOURCES = 2
#: The shortest lease, seconds: a client moves it after a quarter, and YARN looks every three seconds.
LEAST_LEASE = 20.0
_RESOURCES = ("memory", "vcores", "gpus")
#: Folders that no job has for itself: the root, homes of users, folders of the system.
_SHARED = re.compile(r"/(?:(?:user|home)(?:/[^/]*)?|tmp|root|var|usr|etc)?\Z")


class JobFault(FaultCode):
    """Fault codes for a job whose single values are valid."""

    INDEX_OUT_OF_RANGE = "{given} is out of range; there are tasks 0 to {last}"
    CHIEF_TWICE = "the chief is given twice; chiefworker and master are other names of chief"
    NO_TASKS = "there are none; give at least one task type, for example worker:1"
    NO_COMMAND = "missing; {types} would have nothing to run: give the job a command, or each of these types its own"
    MISSPELT_TYPE = (
        "task type {given!r} looks like a misspelt {meant!r}; correct it, or name it in {other} if it is meant"
    )
    NEVER_ENDS = "the job would never end, because {types} run until the job ends; add a chief or a worker"
    NEEDS_CHIEF = "chief needs a task of type chief"
    NEEDS_CHIEF_SUCCESS = "needs success: chief; with {given} the job ends when the last awaited task has ended"
    NEEDS_OUTPUT = "needs {other}, the folder that TensorBoard reads"
    NEEDS_LOCATION = "needs {other}: hdfs://... or an absolute path of the nodes; given: {given!r}"
    NO_ATOMIC_RENAME = (
        "needs {other}: hdfs://... or an absolute path that all nodes share; given: {given!r}. Other file systems have "
        "no rename that happens at once or not at all"
    )
    SHARED_FOLDER = "{given!r} is not a folder of this output alone; commit would rename it. Give a folder below it"
    NOT_NORMAL = "{given!r} has an empty part, . or .. in its path; give the path without it"
    OVERLAPS = "{given!r} and {other} {there!r} overlap; commit would move the one with the other"
    LONG_NAME = "the last part of {given!r} has {length} bytes; with commit at most {most} are possible"
    NEEDS_VERSION = "needs commit: version; given: {given!r}"
    NEEDS_LEADER = "chief needs a task of type chief or worker; give all, and every task writes"
    TENSORBOARD_TYPE = "tensorboard can't be a task type; the option {other} adds it"
    TOO_MANY = "{given} given, at most {most} allowed"
    NO_RANKS = (
        "TensorFlow has one process in each task: TF_CONFIG names no others. Give {other} of {allowed}, or one process"
    )
    UNEQUAL_GPUS = "{given} processes can't share the {gpus} GPUs of {task} equally; give a number that divides {gpus}"
    BAD_TAG = "{given!r} is not ASCII of 1 to 100 characters"
    MANY_RESOURCES = (
        "ask for {given}; Skein's application master requests at most {most} resources besides memory and vcores"
    )
    NEVER_BEFORE = (
        "{given} can't come first: its tasks must end by themselves (awaited), matter (fatal) and stay outside the "
        "cluster spec (in_cluster: false)"
    )
    ENDS_BEFORE = "success: chief ends the job before these tasks start; leave it out"
    CIRCLE = "{given} would wait for itself"
    SHORT_LEASE = "{given:g} is too short; give at least {least:g} seconds, or 0 for no lease"
    LONG_LOG_TAIL = "{given} is more than {most} characters"
    NOT_AN_ARCHIVE = "{given!r} does not end with {suffixes}"
    NAME_TWICE = "{given!r} is also the name of {other}; give one of them another name"
    QUOTED_NUMBER = "{given!r} is a text; write {given} without quotes"
    NOT_MOUNTABLE = (
        "YARN can't mount {given!r} into a Docker container: no comma and no colon in the path, and not the whole disk"
    )
    NEEDS_IMAGE = "needs an image: {other} docker://IMAGE"
    LONG_TF_CONFIG = "{given} tasks make a TF_CONFIG of more than {most} KiB; give fewer"


def _read_indices(general: Mapping[str, Any], value: Any) -> dict[int, Resources]:
    """Return the resources of single tasks; missing values come from ``general``."""
    if not isinstance(value, Mapping):
        raise not_a_mapping(value, "task indices to resources")
    faults: list[Fault] = []
    indices: dict[int, Resources] = {}
    for index, own in value.items():
        with noting(faults, str(index)):
            own = {**general, **own} if isinstance(own, Mapping) else general if own is None else own
            indices[parse_count(index, least=0)] = read_part(Resources)(own)
    check_faults(faults)
    return indices


_INDICES = {
    "type": "object",
    "propertyNames": {"pattern": "^[0-9]+$"},
    "additionalProperties": {"anyOf": [{"type": "null"}, json_schema(Resources)]},
}


@dataclass(frozen=True)
class TaskSpec(Part):
    """The tasks of one type.

    A mapping may replace the `Resources` in ``indices``; its missing values come from the task type. ``in_cluster``,
    ``awaited``, ``fatal`` and ``hold_port`` have their defaults in `runtime.common.frameworks`.
    """

    instances: int = option(1, kinds.count(1), "How many tasks of this type there are.", doors=_BY_TYPE)
    memory: Memory = memory_option()
    vcores: int = vcores_option()
    gpus: int = gpus_option()
    resources: Mapping[str, int] = option(
        dict,
        kinds.AMOUNTS,
        "Another resource of YARN for each task, by its name: yarn.io/fpga=1, worker:yarn.io/gpu-a100=2. A job may "
        "ask for two of them, GPUs included.",
        name="resource",
    )
    node_label: str | None = option(
        None, kinds.TEXT, "YARN node label expression of the containers of one task type.", doors=_BY_TYPE
    )
    command: str | None = option(
        None,
        kinds.COMMAND,
        "Another command for the tasks of one type. ytf-server: TensorFlow's server.",
        name="command",
        section="program",
        value="TYPE=COMMAND",
        many=True,
    )
    env: Mapping[str, str] = option(
        dict,
        kinds.ENV,
        "Environment variables of the tasks of one type. They win over the variables of the job.",
        section="program",
        doors=_BY_TYPE,
    )
    after: Converted[tuple[str, ...], Sequence[str] | str] = option(
        (),
        kinds.Kind("texts", lambda value: tuple(map(canonical_type, read_texts(value))), schema=kinds.TEXTS.schema),
        "The types whose tasks must all succeed before these start. They run once, and are not part of the cluster "
        "spec. The containers of all types are allocated at the start.",
        in_words="none",
        doors=_BY_TYPE,
    )
    environment: Converted[Environment | None, Environment | str | None] = option(
        None,
        kinds.Kind("text", read_environment),
        "Another interpreter, or another image, for the tasks of one type, as for the job.",
        section="program",
        in_words="that of the job",
        doors=_BY_TYPE,
    )
    max_restarts: int | None = option(
        None,
        kinds.count(0),
        "How many failures of these tasks lead to a restart. They do not count for the other types.",
        section="restarts",
        in_words="they share the max_restarts of the job",
        doors=_BY_TYPE,
    )
    max_container_losses: int | None = option(
        None,
        kinds.count(0),
        "How many containers of these tasks may be lost. They do not count for the other types. With 0 the first loss "
        "ends the job.",
        section="restarts",
        in_words="they share the max_container_losses of the job",
        doors=_BY_TYPE,
    )
    indices: Converted[Mapping[int, Resources], Mapping[int, Resources | Mapping[str, Any]]] = option(
        dict,
        kinds.Kind("variables", lambda value: value, schema=_INDICES),
        "Memory, vcores and gpus of single tasks, by task index; the rest comes from their task type.",
        doors=(DOCUMENT,),
    )
    in_cluster: bool | None = option(
        None,
        kinds.FLAG,
        "Whether these tasks are part of the cluster spec.",
        in_words="true; false for evaluator",
        doors=_BY_TYPE,
    )
    awaited: bool | None = option(
        None,
        kinds.FLAG,
        "Whether the job waits until these tasks end.",
        in_words="true; false for ps and ytf-server",
        doors=_BY_TYPE,
    )
    fatal: bool | None = option(
        None, kinds.FLAG, "Whether the job fails when one of these tasks fails.", in_words="true", doors=_BY_TYPE
    )
    hold_port: bool | None = option(
        None,
        kinds.FLAG,
        "Whether the reserved port of each task stays bound, with SO_REUSEPORT, while the command runs. TensorFlow's "
        "servers can bind such a port. With false a plain bind succeeds, and another program may take the port first; "
        "that counts as a loss of the container.",
        value="false | TYPE=false",
        many=True,
        in_words="true for tensorflow and jax, else false",
    )

    def _faults(self, wrong: set[str]) -> Iterator[Fault]:
        general = {name: getattr(self, name) for name in _RESOURCES if name not in wrong}
        faults = normalise(self, {"indices": partial(_read_indices, general)})
        yield from faults
        if not faults and "instances" not in wrong:
            yield from (
                Fault(f"indices.{index}", JobFault.INDEX_OUT_OF_RANGE, {"given": index, "last": self.instances - 1})
                for index in self.indices
                if index >= self.instances
            )

    def resources_of(self, index: int) -> Resources:
        """Return the resources of the task with this index."""
        return self.indices.get(index) or Resources(self.memory, self.vcores, self.gpus)


def _read_tasks(value: Any) -> dict[str, TaskSpec]:
    if not isinstance(value, Mapping):
        raise not_a_mapping(value, "task types to their settings")
    faults: list[Fault] = []
    tasks: dict[str, TaskSpec] = {}
    for given, settings in value.items():
        name = canonical_type(str(given))
        if not TASK_TYPE.match(name):
            faults.append(Fault(name, NotationFault.NOT_A_TYPE, {"given": name}))
        elif name in tasks:
            faults.append(Fault(name, JobFault.CHIEF_TWICE))
        if isinstance(settings, str) and settings.strip().isdecimal():
            faults.append(Fault(name, JobFault.QUOTED_NUMBER, {"given": settings.strip()}))
            continue
        with noting(faults, name):
            is_number = isinstance(settings, int) and not isinstance(settings, bool)
            tasks[name] = read_part(TaskSpec)({"instances": settings} if is_number else settings)
    check_faults(faults)
    return tasks


_TASKS = {
    "type": "object",
    "propertyNames": {"pattern": f"^(?:{TASK_TYPE.pattern})".replace(r"\Z", "$")},
    "additionalProperties": {"anyOf": [{"type": ["integer", "null"], "minimum": 1}, json_schema(TaskSpec)]},
}


def _read_tensorboard(value: Any) -> TensorBoard | None:
    if isinstance(value, bool):
        value = {} if value else None
    return None if value is None else read_part(TensorBoard)(value)


@dataclass(frozen=True)
class JobSpec(Part):
    """A distributed TensorFlow job.

    Parts may be given as mappings of their fields, an environment as text, a task type as its number of instances,
    ``tensorboard`` as True. ``chiefworker`` and ``master`` are other names of the task type ``chief``.
    """

    tasks: Converted[Mapping[str, TaskSpec], Mapping[str, TaskSpec | int | Mapping[str, Any]]] = option(
        dict,
        kinds.Kind("text", _read_tasks, "<requirement>", part=TaskSpec, schema=_TASKS),
        "The task types and their instances: <type1>:<instances1>,<type2>:<instances2>,... Example: ps:2,worker:4. "
        "Type names are free. Tasks of type chief, worker and of other names must end with exit code 0. A ps runs "
        "until the job ends. An evaluator is not part of the cluster spec. Required, unless the file of spec has "
        "tasks.",
        name="cluster_requirement",
        section="tasks",
        short="-r",
    )
    custom_types: Texts = option(
        (),
        kinds.TEXTS,
        "Accept this task type, although it looks like a misspelt chief, worker, ps or evaluator.",
        name="custom_type",
        section="tasks",
        value="TYPE",
    )
    command: str | None = option(
        None,
        kinds.COMMAND,
        "The command of every task. The node runs it with bash, after it has set the variables of the task.",
        name="task_command",
        section="program",
    )
    framework: str = option(
        TENSORFLOW,
        kinds.choice(*FRAMEWORKS),
        "Whose variables the tasks get. pytorch, jax and horovod give each task of the cluster spec a rank, and wait "
        "for tasks of every type; rank 0 is the chief, else the first worker. none sets no such variables.",
        section="program",
    )
    procs_per_task: int = option(
        1,
        kinds.count(1),
        "How many processes of its command each task of the cluster spec starts, for example one for each GPU. Each "
        "has a rank and a LOCAL_RANK. The first failure ends the others. At most 64; not with framework tensorflow.",
        section="tasks",
        schema={"maximum": MAX_PROCESSES},
    )
    name: str = option("TensorFlow", kinds.TEXT, "The name of the application in YARN.", short="-n")
    queue: str = option("default", kinds.TEXT, "The queue in YARN.", short="-q")
    user: str | None = option(
        None,
        kinds.TEXT,
        "The owner of the application, if the cluster allows the submitting user to act for others.",
        in_words="the submitting user",
        doors=(COMMAND_LINE, OPERATOR, DOCUMENT),
    )
    priority: int = option(0, kinds.count(0), "The priority in the queue; a larger number comes first.")
    tags: Texts = option(
        (), kinds.TEXTS, "A YARN application tag. A job has at most 6.", name="tag", schema={"maxItems": MAX_TAGS_USER}
    )
    node_label: str | None = option(
        None,
        kinds.TEXT,
        "YARN node label expression of the application, or of the containers of one task type.",
        section="tasks",
        value="<label> | <type>:<label>",
        many=True,
    )
    env: Mapping[str, str] = option(dict, kinds.ENV, "An environment variable of every task.", section="program")
    files: Mapping[str, str] = option(
        dict,
        kinds.SOURCES,
        "A file, or a local folder, that every task finds in its working directory under this name.",
        name="file",
        section="program",
    )
    archives: Mapping[str, str] = option(
        dict,
        kinds.SOURCES,
        "An archive that is unpacked into a folder of this name in the working directory of every task.",
        name="archive",
        section="program",
    )
    script: str | None = option(
        None,
        kinds.SOURCE,
        "A local file that is copied into the working directory of every task. Its name is in "
        "DTF_TASK_SCRIPT, so a command may read: python ${DTF_TASK_SCRIPT} ...",
        section="program",
        value="<script_file>",
        short="-s",
    )
    input: str | None = option(
        None,
        kinds.VERBATIM,
        "The input path. It is not interpreted; the tasks find it in DTF_INPUT_PATH.",
        section="program",
        value="<input_path>",
        short="-i",
    )
    output: str | None = option(
        None,
        kinds.VERBATIM,
        "The output path. It is not interpreted; the tasks find it in DTF_OUTPUT_PATH. TensorBoard needs it.",
        section="program",
        value="<output_path>",
        short="-o",
    )
    commit: str = option(
        OFF,
        kinds.choice(*MODES),
        "Publish the output at once when the training has succeeded, with a file _SUCCESS. The tasks write into a "
        "folder beside it. new: the output must not exist. replace: it takes the place of an older one. version: it "
        "becomes a numbered folder in the output path, whose file LATEST then names it.",
        section="program",
    )
    commit_version: int | None = option(
        None,
        kinds.count(1),
        "With commit version: the number of this version.",
        section="program",
        in_words="the next one",
    )
    commit_keep: int = option(
        5,
        kinds.count(1),
        "With commit version: how many versions stay, the new one included.",
        section="program",
    )
    mirror: str = option(
        "off",
        kinds.choice("off", "chief", "all"),
        "Give each task a local folder in DTF_OUTPUT_PATH that starts as a copy of the output path, in HDFS or on the "
        "nodes, and is written through to it every 5 seconds and at the end. chief: the chief, or else worker 0, "
        "and evaluators write. all: every task does.",
        section="program",
    )
    mirror_input: Converted[int | None, int | str | None] = option(
        None,
        kinds.MEMORY,
        "Copy the input path to the disk of each node that runs tasks, once, and give them the copy in DTF_INPUT_PATH. "
        "The value is the largest size of the copy, in MiB or with a unit: 20 GiB.",
        section="program",
        value="<size>",
    )
    environment: Converted[Environment | None, Environment | str | None] = option(
        None,
        kinds.Kind("text", read_environment),
        "The interpreter and its packages: python:///usr/bin/python3, "
        "venv:///folder, conda:///folder, docker://image, an archive (.tar.gz, .tgz, .zip; a local path or a URI), or "
        "requirements://requirements.txt, from which an archive is built once and kept. "
        "Its bin folder comes first on PATH.",
        section="program",
        in_words="the nodes' own",
    )
    docker: Converted[DockerSettings, DockerSettings | Mapping[str, Any]] = option(
        DockerSettings, part_of_job(DockerSettings), section="program"
    )
    tensorboard: Converted[TensorBoard | None, TensorBoard | Mapping[str, Any] | bool | None] = option(
        None,
        kinds.Kind(
            "flag",
            _read_tensorboard,
            part=TensorBoard,
            schema={"anyOf": [{"type": "boolean"}, json_schema(TensorBoard)]},
        ),
        "Run TensorBoard on the output path, as a separate task, until the job ends. It is shown through YARN's "
        "proxy; its address is in the report, on the terminal and on the page of the application.",
        section="tensorboard",
        short="-t",
    )
    success: str = option(
        "all_workers",
        kinds.choice("all_workers", "chief"),
        "all_workers: the job succeeds when every awaited task has ended with exit code 0. chief: the job succeeds, "
        "and ends, when the chief has ended with exit code 0.",
        section="restarts",
    )
    restart: Converted[RestartPolicy, RestartPolicy | Mapping[str, Any]] = option(
        RestartPolicy, part_of_job(RestartPolicy), section="restarts"
    )
    deadlines: Converted[Deadlines, Deadlines | Mapping[str, Any]] = option(
        Deadlines, part_of_job(Deadlines), section="deadlines"
    )
    lease: float | None = option(
        None,
        kinds.SECONDS,
        "How long the job continues without a client that waits for it; then YARN ends it. The waiting client moves "
        "the end, so the training ends when the client's machine is gone. At least 20; 0 for no lease.",
        section="deadlines",
        in_words="900 on Azkaban and Oozie, for ytf-submit with wait and without run_id, and for Launcher.run without "
        "identity; else no lease",
        schema={"anyOf": [{"type": "string"}, {"const": 0}, {"minimum": LEAST_LEASE}]},
    )
    file_systems: Texts = option(
        (),
        kinds.TEXTS,
        "Another file system for which the job needs a delegation token: hdfs://other.",
        name="file_system",
        value="<URI>",
    )
    acls: Converted[Acls, Acls | Mapping[str, Any]] = option(Acls, part_of_job(Acls))
    am_memory: Memory = option(1024, kinds.MEMORY, "Memory of the application master, in MiB or with a unit.")
    am_vcores: int = option(1, kinds.count(1), "Virtual cores of the application master.", value="<vcores>")
    report_log_tail: int = option(
        4096,
        kinds.count(0, "characters"),
        "How much of the log of a failed task the report carries, at most 8192; 0 for none.",
        schema={"maximum": MAX_LOG_TAIL},
    )

    def _faults(self, wrong: set[str]) -> Iterator[Fault]:
        for names, find in _RULES:
            if wrong.isdisjoint(names):
                yield from find(self)

    def serves(self, task_type: str) -> bool:
        """Return whether the tasks of a type run TensorFlow's server."""
        return (self.tasks[task_type].command or self.command or "").strip() == SERVER_COMMAND

    def role_of(self, task_type: str) -> Role:
        """Return how the job treats the tasks of a type: their own values over those of the type."""
        task, row = self.tasks[task_type], FRAMEWORKS[self.framework].role_of(task_type)
        if self.serves(task_type) or (task_type == EVALUATOR and self.deadlines.evaluator_grace):
            row = row._replace(awaited=False)
        if any(task_type in other.after for other in self.tasks.values()):
            row = row._replace(in_cluster=False)
        return Role(
            *(
                default if own is None else own
                for own, default in zip((task.in_cluster, task.awaited, task.fatal), row, strict=True)
            )
        )

    @property
    def resource_names(self) -> tuple[str, ...]:
        """The resources of YARN that its tasks ask for, besides memory and vcores."""
        gpus = any(  # without a loop over instances, which may be any number here
            (task.gpus and len(task.indices) < task.instances) or any(own.gpus for own in task.indices.values())
            for task in self.tasks.values()
        )
        named = (name for task in self.tasks.values() for name in task.resources)
        return tuple(dict.fromkeys((*([GPU] * gpus), *named)))

    @property
    def environments(self) -> dict[str, Environment]:
        """The environments of the job and of its task types, by their paths in its document."""
        own = {f"tasks.{name}.environment": task.environment for name, task in self.tasks.items()}
        return {path: one for path, one in {"environment": self.environment, **own}.items() if one}

    def with_environments(self, environments: Mapping[str, Environment]) -> "JobSpec":
        """Return the job with other environments, by their paths as in `environments`."""
        tasks = {
            name: replace(task, environment=environments.get(f"tasks.{name}.environment"))
            for name, task in self.tasks.items()
        }
        return replace(self, environment=environments.get("environment"), tasks=tasks)

    def to_dict(self) -> dict[str, Any]:
        """Return the values that differ from the defaults, as plain values; `from_dict` reads them back."""
        document = values_that_differ(self, _PLAIN)
        document["tasks"] = {name: _plain_task(task) for name, task in self.tasks.items()}
        for part in ("deadlines", "acls", "tensorboard", "docker"):
            if part in document:
                document[part] = values_that_differ(document[part])
        if "restart" in document:
            # The default of max_restarts depends on the mode.
            plain = RestartPolicy(self.restart.mode)
            document["restart"] = {"mode": self.restart.mode, **values_that_differ(self.restart, plain)}
        if self.tensorboard:
            document["tensorboard"] = document["tensorboard"] or True
        if self.environment:
            document["environment"] = str(self.environment)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "JobSpec":
        """Return the job of a document; unknown keys are refused with the nearest name.

        Parameters
        ----------
        document : mapping
            As `to_dict` returns it. Memory may be a text such as ``8 GiB``. The missing values of an entry of
            ``indices`` come from its task type.

        Raises
        ------
        SpecInvalid
            With every fault of the document.
        """
        return read_part(cls)(document)

    def to_yaml(self) -> str:
        """Return `to_dict` as YAML."""
        return format_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls, text: str) -> "JobSpec":
        """Return the job of a text of `to_yaml`; raise SpecInvalid if the text is not YAML, or as `from_dict`."""
        from ..yaml_text import load_yaml

        return cls.from_dict(load_yaml(text).value)


def _plain_task(task: TaskSpec) -> dict[str, Any]:
    plain = values_that_differ(task)
    if task.environment:
        plain["environment"] = str(task.environment)
    if task.indices:
        general = Resources(task.memory, task.vcores, task.gpus)
        plain["indices"] = {index: values_that_differ(own, general) for index, own in task.indices.items()}
    return plain


def _command_faults(job: JobSpec) -> Iterator[Fault]:
    without = tuple(name for name, task in job.tasks.items() if not (task.command or job.command))
    if without:
        yield Fault("command", JobFault.NO_COMMAND, {"types": without})


def _resource_faults(job: JobSpec) -> Iterator[Fault]:
    names = job.resource_names
    if len(names) > MAX_RESOURCES:
        yield Fault("tasks", JobFault.MANY_RESOURCES, {"given": names, "most": MAX_RESOURCES})


def _task_faults(job: JobSpec) -> Iterator[Fault]:
    if not job.tasks:
        yield Fault("tasks", JobFault.NO_TASKS)
    elif not any(job.role_of(name).awaited for name in job.tasks):
        yield Fault("tasks", JobFault.NEVER_ENDS, {"types": tuple(job.tasks)})
    if TENSORBOARD in job.tasks:
        yield Fault(f"tasks.{TENSORBOARD}", JobFault.TENSORBOARD_TYPE, {"other": "tensorboard"})
    count = sum(task.instances for task in job.tasks.values())
    if count * len('"127.0.0.1:1024", ') > MAX_STRING:
        yield Fault("tasks", JobFault.LONG_TF_CONFIG, {"given": count, "most": MAX_STRING // 1024})


def _process_faults(job: JobSpec) -> Iterator[Fault]:
    given = job.procs_per_task
    if given > MAX_PROCESSES:
        yield Fault("procs_per_task", JobFault.TOO_MANY, {"given": given, "most": MAX_PROCESSES})
    if given > 1 and job.framework == TENSORFLOW:
        allowed = tuple(name for name in FRAMEWORKS if name != TENSORFLOW)
        yield Fault("procs_per_task", JobFault.NO_RANKS, {"other": "framework", "allowed": allowed})


def _gpu_faults(job: JobSpec) -> Iterator[Fault]:
    given = job.procs_per_task
    for name, task in job.tasks.items():
        # Of tasks without values of their own one is enough; there may be any number.
        for index in sorted({*range(min(task.instances, len(task.indices) + 1)), *task.indices}):
            gpus = task.resources_of(index).gpus
            if gpus % given and job.role_of(name).in_cluster:
                values = {"given": given, "gpus": gpus, "task": f"{name}:{index}"}
                yield Fault("procs_per_task", JobFault.UNEQUAL_GPUS, values)
                break


def _type_faults(job: JobSpec) -> Iterator[Fault]:
    """Return the task types that look misspelt and are not in custom_types."""
    return (
        Fault(f"tasks.{name}", JobFault.MISSPELT_TYPE, {"given": name, "meant": meant, "other": "custom_types"})
        for name in job.tasks
        if name not in job.custom_types and (meant := misspelt_type(name))
    )


def _order_faults(job: JobSpec) -> Iterator[Fault]:
    for name, task in job.tasks.items():
        path = f"tasks.{name}.after"
        for before in task.after:
            if before not in job.tasks:
                yield Fault(path, NotationFault.NO_SUCH_TYPE, {"given": before, "allowed": tuple(job.tasks)})
            elif job.role_of(before) != (False, True, True):
                yield Fault(path, JobFault.NEVER_BEFORE, {"given": before})
            elif before == CHIEF and job.success == "chief":
                yield Fault(path, JobFault.ENDS_BEFORE)
        earlier, found = set(task.after), set[str]()
        while earlier:
            found |= earlier
            earlier = {one for before in earlier if before in job.tasks for one in job.tasks[before].after} - found
        if name in found:
            yield Fault(path, JobFault.CIRCLE, {"given": name})


def _budget_faults(job: JobSpec) -> Iterator[Fault]:
    return (
        Fault(f"tasks.{name}.max_restarts", PartFault.NEEDS_RESTARTS, {"given": task.max_restarts, "other": "restart"})
        for name, task in job.tasks.items()
        if task.max_restarts and job.restart.mode == "never"
    )


def _success_faults(job: JobSpec) -> Iterator[Fault]:
    if job.success == "chief" and CHIEF not in job.tasks:
        yield Fault("success", JobFault.NEEDS_CHIEF)
    if job.success != "chief" and job.deadlines.success_grace:
        yield Fault("deadlines.success_grace", JobFault.NEEDS_CHIEF_SUCCESS, {"given": job.success})


def _tensorboard_faults(job: JobSpec) -> Iterator[Fault]:
    if job.tensorboard and not (job.output or job.tensorboard.logdir):
        yield Fault("tensorboard", JobFault.NEEDS_OUTPUT, {"other": "output"})


def _mirror_faults(job: JobSpec) -> Iterator[Fault]:
    for name, on, other in (("mirror", job.mirror != "off", "output"), ("mirror_input", job.mirror_input, "input")):
        given = getattr(job, other) or ""
        if on and not given.startswith(("hdfs://", "/")):
            yield Fault(name, JobFault.NEEDS_LOCATION, {"other": other, "given": given})
    if job.mirror == "chief" and not {CHIEF, "worker"} & set(job.tasks):
        yield Fault("mirror", JobFault.NEEDS_LEADER)


def _commit_faults(job: JobSpec) -> Iterator[Fault]:
    if job.commit_version is not None and job.commit != VERSION:
        yield Fault("commit_version", JobFault.NEEDS_VERSION, {"given": job.commit})
    if job.commit == OFF:
        return
    given = job.output or ""
    if (place := split_location(given)) is None:
        yield Fault("commit", JobFault.NO_ATOMIC_RENAME, {"other": "output", "given": given})
        return
    path = place[1]
    if path != posixpath.normpath(path) or path.startswith("//"):
        yield Fault("output", JobFault.NOT_NORMAL, {"given": given})
    elif _SHARED.match(path):
        yield Fault("output", JobFault.SHARED_FOLDER, {"given": given})
    if (length := len(path.rpartition("/")[2].encode())) > LONGEST_NAME:
        yield Fault("output", JobFault.LONG_NAME, {"given": given, "length": length, "most": LONGEST_NAME})
    yield from overlap_faults(job)


def overlap_faults(job: JobSpec, default: str = "hdfs://") -> Iterator[Fault]:
    """Yield a fault if the output and the input of a job lie in each other.

    Parameters
    ----------
    job : JobSpec
    default : str, optional
        The file system of ``hdfs:///``, if it is known.
    """
    places = [split_location(path or "") for path in (job.output, job.input)]
    systems = {place and (default if place[0] == "hdfs://" else place[0]) for place in places}
    if len(systems) == 1 and None not in systems:
        one, other = (posixpath.normpath(place[1]).rstrip("/") + "/" for place in places if place)
        if one.startswith(other) or other.startswith(one):
            yield Fault("output", JobFault.OVERLAPS, {"given": job.output, "other": "input", "there": job.input})


def _tag_faults(job: JobSpec) -> Iterator[Fault]:
    if len(job.tags) > MAX_TAGS_USER:
        yield Fault("tags", JobFault.TOO_MANY, {"given": len(job.tags), "most": MAX_TAGS_USER})
    for tag in job.tags:
        if not tag.isascii() or not 1 <= len(tag) <= 100:
            yield Fault("tags", JobFault.BAD_TAG, {"given": tag})


def _log_tail_faults(job: JobSpec) -> Iterator[Fault]:
    if job.report_log_tail > MAX_LOG_TAIL:
        yield Fault("report_log_tail", JobFault.LONG_LOG_TAIL, {"given": job.report_log_tail, "most": MAX_LOG_TAIL})


def _lease_faults(job: JobSpec) -> Iterator[Fault]:
    if job.lease and job.lease < LEAST_LEASE:
        yield Fault("lease", JobFault.SHORT_LEASE, {"given": job.lease, "least": LEAST_LEASE})


def _archive_faults(job: JobSpec) -> Iterator[Fault]:
    return (
        Fault(f"archives.{name}", JobFault.NOT_AN_ARCHIVE, {"given": source, "suffixes": " or ".join(ARCHIVE_SUFFIXES)})
        for name, source in job.archives.items()
        if not source.endswith(ARCHIVE_SUFFIXES)
    )


def _name_faults(job: JobSpec) -> Iterator[Fault]:
    """Yield the names in the working directory that stand for two files."""
    named = [*((name, f"files.{name}") for name in job.files), *((name, f"archives.{name}") for name in job.archives)]
    if job.script:
        named.append((name := job.script.rsplit("/", 1)[-1], "script"))
        faults: list[Fault] = []
        with noting(faults, "script"):
            check_file_name(name)
        yield from faults
    first: dict[str, str] = {}
    for name, path in named:
        if first.setdefault(name, path) != path:
            yield Fault(path, JobFault.NAME_TWICE, {"given": name, "other": first[name]})


def _docker_faults(job: JobSpec) -> Iterator[Fault]:
    if not any(one.scheme == "docker" for one in job.environments.values()):
        for name in values_that_differ(job.docker):
            yield Fault(f"docker.{name}", JobFault.NEEDS_IMAGE, {"other": "environment"})


def _launch_faults(job: JobSpec) -> Iterator[Fault]:
    """Yield the values that YARN can't mount, or would write into launch scripts, where bash would expand them."""
    used = {"user": (job.user or "").removesuffix("$")}  # the account of a machine ends with it
    if any(one.scheme == "docker" for one in job.environments.values()):
        mounted = {name: path for name in ("input", "output") if (path := mounted_path(getattr(job, name) or ""))}
        used |= mounted
        for name, path in mounted.items():
            if path == "/" or {",", ":"} & {*path}:
                yield Fault(name, JobFault.NOT_MOUNTABLE, {"given": path})
    for path, text in used.items():
        if is_expanded(text):
            yield Fault(path, ValueFault.EXPANDED, {"given": text})


#: The rules about several values, each with the fields that it reads. A rule is checked only if these are valid.
_RULES: tuple[tuple[tuple[str, ...], Callable[[JobSpec], Iterator[Fault]]], ...] = (
    (("tasks", "framework", "command", "deadlines"), _task_faults),
    (("procs_per_task", "framework"), _process_faults),
    (("tasks", "framework", "deadlines", "command", "procs_per_task"), _gpu_faults),
    (("tasks", "custom_types"), _type_faults),
    (("tasks",), _resource_faults),
    (("tasks", "command"), _command_faults),
    (("tasks", "success", "deadlines"), _success_faults),
    (("tasks", "restart"), _budget_faults),
    (("tasks", "framework", "command", "deadlines", "success"), _order_faults),
    (("tensorboard", "output"), _tensorboard_faults),
    (("tasks", "mirror", "mirror_input", "input", "output"), _mirror_faults),
    (("commit", "commit_version", "output", "input"), _commit_faults),
    (("tags",), _tag_faults),
    (("report_log_tail",), _log_tail_faults),
    (("lease",), _lease_faults),
    (("archives",), _archive_faults),
    (("files", "archives", "script"), _name_faults),
    (("user", "environment", "tasks", "input", "output"), _launch_faults),
    (("environment", "tasks", "docker"), _docker_faults),
)
#: A job whose values other than its tasks are the defaults; one without tasks can't exist.
_PLAIN = JobSpec({"worker": TaskSpec(command="true")})
