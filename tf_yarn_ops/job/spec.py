"""`JobSpec`: the whole job as one frozen value that can't exist in an invalid state.

Every door (command line, Airflow, Azkaban, a YAML file) makes one; everything behind the doors trusts it. All faults
of a job are reported together, each with the path of its value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import Fault, FaultCode
from ..runtime.common.contract import MAX_STRING
from ..runtime.common.roles import CHIEF, TENSORBOARD, Role, role_of
from ..validation import (
    ARCHIVE_SUFFIXES,
    check_faults,
    normalise,
    not_a_mapping,
    noting,
    optional,
    read_choice,
    read_command,
    read_count,
    read_env,
    read_flag,
    read_memory,
    read_part,
    read_seconds,
    read_source,
    read_sources,
    read_text,
    read_texts,
)
from .document import format_yaml, parse_yaml
from .options import OPTIONS
from .parts import (
    Acls,
    Deadlines,
    Environment,
    Resources,
    RestartPolicy,
    TensorBoard,
    read_environment,
    values_that_differ,
)
from .requirement import TASK_TYPE, NotationFault, canonical_type, misspelt_type

SUCCESS_POLICIES = OPTIONS["success"].choices
#: YARN takes ten tags; four are the job's identity.
MAX_TAGS_USER = 6
#: Largest log tail of one task in the report, characters.
MAX_LOG_TAIL = 8192
#: The shortest lease, seconds: a client moves it after a quarter, and YARN looks every three seconds.
LEAST_LEASE = 20.0
_RESOURCES = ("memory", "vcores", "gpus")


class JobFault(FaultCode):
    """Fault codes for a job whose single values are valid."""

    INDEX_OUT_OF_RANGE = "{given} is out of range; there are tasks 0 to {last}"
    CHIEF_TWICE = "the chief is given twice; chiefworker and master are other names of chief"
    NO_TASKS = "there are none; give at least one task type, for example worker:1"
    NO_COMMAND = "missing; {types} would have nothing to run: give the job a command, or each of these types its own"
    MISSPELT_TYPE = ("task type {given!r} looks like a misspelt {meant!r}; correct it, or name it in {other} if it is "
                     "meant")
    NEVER_ENDS = "the job would never end, because {types} run until the job ends; add a chief or a worker"
    NEEDS_CHIEF = "chief needs a task of type chief"
    NEEDS_OUTPUT = "needs {other}, the folder that TensorBoard reads"
    TENSORBOARD_TYPE = "tensorboard can't be a task type; the option {other} adds it"
    TOO_MANY_TAGS = "{given} given, at most {most} allowed"
    BAD_TAG = "{given!r} is not ASCII of 1 to 100 characters"
    SHORT_LEASE = "{given:g} is too short; give at least {least:g} seconds, or 0 for no lease"
    LONG_LOG_TAIL = "{given} is more than {most} characters"
    NOT_AN_ARCHIVE = "{given!r} does not end with {suffixes}"
    NAME_TWICE = "{given!r} is also the name of {other}; give one of them another name"
    LONG_TF_CONFIG = "{given} tasks make a TF_CONFIG of more than {most} KiB; give fewer"


def _read_indices(general: Mapping[str, Any]) -> Callable[[Any], dict[int, Resources]]:
    """Return a reader of the resources of single tasks; missing values come from ``general``."""

    def read(value: Any) -> dict[int, Resources]:
        if not isinstance(value, Mapping):
            raise not_a_mapping(value, "task indices to resources")
        faults: list[Fault] = []
        indices: dict[int, Resources] = {}
        for index, own in value.items():
            with noting(faults, str(index)):
                own = {**general, **own} if isinstance(own, Mapping) else general if own is None else own
                indices[read_count(0)(index)] = read_part(Resources)(own)
        check_faults(faults)
        return indices

    return read


@dataclass(frozen=True)
class TaskSpec:
    """The tasks of one type.

    Parameters
    ----------
    instances : int, optional
        How many, at least 1. Default 1.
    memory, vcores, gpus : optional
        The resources of each task, as in `Resources`.
    node_label : str, optional
        YARN node label expression for these containers.
    command : str, optional
        Replaces the command of the job; ``bash -c`` runs it on the node.
    env : mapping of str to str, optional
        Environment variables of these tasks; they win over those of the job.
    indices : mapping of int to Resources, optional
        Other resources for single tasks, by task index. A mapping may replace `Resources`; its missing values come
        from the task type.
    in_cluster, awaited, fatal : bool, optional
        Whether the tasks are part of the cluster spec, whether the job waits for their end, and whether their
        failure is the failure of the job. Default: the row of the task type in `runtime.common.roles`.
    hold_port : bool, optional
        True (default) keeps the reserved port bound with SO_REUSEPORT while the command runs; TensorFlow's
        servers can bind it then. False is for programs that can't.

    Raises
    ------
    SpecInvalid
        With every fault.
    """

    instances: int = 1
    memory: int = 8192
    vcores: int = 1
    gpus: int = 0
    node_label: str | None = None
    command: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    indices: Mapping[int, Resources] = field(default_factory=dict)
    in_cluster: bool | None = None
    awaited: bool | None = None
    fatal: bool | None = None
    hold_port: bool = True

    if TYPE_CHECKING:  # what a caller may give; the fields have what was read from it

        def __init__(self, instances: int = ..., memory: int | str = ..., vcores: int = ..., gpus: int = ...,
                     node_label: str | None = ..., command: str | None = ..., env: Mapping[str, str] = ...,
                     indices: Mapping[int, Resources | Mapping[str, Any]] = ..., in_cluster: bool | None = ...,
                     awaited: bool | None = ..., fatal: bool | None = ..., hold_port: bool = ...) -> None: ...

    def __post_init__(self) -> None:
        faults = normalise(self, {
            "instances": read_count(1), "memory": read_memory, "vcores": read_count(1), "gpus": read_count(0),
            "node_label": optional(read_text), "command": optional(read_command), "env": read_env,
            "in_cluster": optional(read_flag), "awaited": optional(read_flag),
            "fatal": optional(read_flag), "hold_port": read_flag,
        })
        wrong = {fault.path for fault in faults}
        general = {name: getattr(self, name) for name in _RESOURCES if name not in wrong}
        faults += normalise(self, {"indices": _read_indices(general)})
        if not faults:
            faults += [Fault(f"indices.{index}", JobFault.INDEX_OUT_OF_RANGE,
                             {"given": index, "last": self.instances - 1})
                       for index in self.indices if index >= self.instances]
        check_faults(faults)

    def resources(self, index: int) -> Resources:
        """Return the resources of the task with this index."""
        return self.indices.get(index) or Resources(self.memory, self.vcores, self.gpus)

    def role(self, task_type: str) -> Role:
        """Return how the job treats these tasks: their own values over the row of their task type."""
        row = role_of(task_type)
        return Role(*(default if own is None else own
                      for own, default in zip((self.in_cluster, self.awaited, self.fatal), row, strict=True)))


@dataclass(frozen=True)
class JobSpec:
    """A distributed TensorFlow job.

    Parts may be given as mappings of their fields, an environment as text, a task type as its number of instances.

    Parameters
    ----------
    command : str, optional
        ``bash -c`` runs it for each task; needed unless every type has its own.
    tasks : mapping of str to TaskSpec
        Per task type (``chief``, ``worker``, ``ps``, ``evaluator`` or any other name).
        ``chiefworker`` and ``master`` are other names of ``chief``. A name that looks like a misspelt ``chief``,
        ``worker``, ``ps`` or ``evaluator`` must also stand in ``custom_types``.
    custom_types : sequence of str, optional
        Task types whose names are meant although they look misspelt.
    name : str, optional
        The application's name in YARN. Default ``TensorFlow``.
    queue : str, optional
        The queue in YARN. Default ``default``.
    user : str, optional
        The owner of the application, if the cluster allows the submitting user to act for others.
        Default: the submitting user.
    priority : int, optional
        YARN's priority in the queue, larger first. Default 0.
    tags : sequence of str, optional
        At most 7, ASCII, at most 100 characters; YARN keeps them in lower case.
    node_label : str, optional
        Node label expression of the application master and of task types without their own.
    env : mapping of str to str, optional
        Environment variables of every task.
    files, archives : mapping of str to str, optional
        Name in the working directory to local path or URI. Archives (and local folders) are unpacked.
    script : str, optional
        Local file that lies in the working directory under its own name, which is in DTF_TASK_SCRIPT.
    input, output : str, optional
        Not interpreted; the tasks find them in DTF_INPUT_PATH and DTF_OUTPUT_PATH.
    environment : Environment or str, optional
        Where the interpreter and the packages come from. Default: the nodes' own.
    tensorboard : TensorBoard or bool, optional
        True for the defaults of `TensorBoard`. Needs ``output``. Default: no TensorBoard.
    success : {"all_workers", "chief"}, optional
        Whether every awaited task (default) or only the chief must end with exit code 0.
    restart : RestartPolicy, optional
        Default: never.
    deadlines : Deadlines, optional
    lease : float, optional
        Seconds after which YARN ends the job when no client waits for it any more, at least 20; 0 for no lease.
        Default: what the door says that submits the job.
    file_systems : sequence of str, optional
        Other file systems for which the job needs delegation tokens, ``hdfs://other``.
    acls : Acls, optional
        Default: no other users.
    am_memory : int or str, optional
        MiB of the application master. Default 1024, for Skein's JVM and the coordinator.
    am_vcores : int, optional
        Virtual cores of the application master, at least 1. Default 1.
    report_log_tail : int, optional
        How many characters of the log of a failed task the report carries, 0 to 8192. Default 4096.

    Raises
    ------
    SpecInvalid
        With every fault of the request.
    """

    tasks: Mapping[str, TaskSpec] = field(default_factory=dict)
    custom_types: tuple[str, ...] = ()
    command: str | None = None
    name: str = "TensorFlow"
    queue: str = "default"
    user: str | None = None
    priority: int = 0
    tags: tuple[str, ...] = ()
    node_label: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    archives: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    input: str | None = None
    output: str | None = None
    environment: Environment | None = None
    tensorboard: TensorBoard | None = None
    success: str = "all_workers"
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    deadlines: Deadlines = field(default_factory=Deadlines)
    lease: float | None = None
    file_systems: tuple[str, ...] = ()
    acls: Acls = field(default_factory=Acls)
    am_memory: int = 1024
    am_vcores: int = 1
    report_log_tail: int = 4096

    if TYPE_CHECKING:  # as in `TaskSpec`

        def __init__(self, tasks: Mapping[str, TaskSpec | int | Mapping[str, Any]] = ...,
                     custom_types: Sequence[str] = ..., command: str | None = ..., name: str = ..., queue: str = ...,
                     user: str | None = ..., priority: int = ..., tags: Sequence[str] = ...,
                     node_label: str | None = ..., env: Mapping[str, str] = ..., files: Mapping[str, str] = ...,
                     archives: Mapping[str, str] = ..., script: str | None = ..., input: str | None = ...,
                     output: str | None = ..., environment: Environment | str | None = ...,
                     tensorboard: TensorBoard | Mapping[str, Any] | bool | None = ..., success: str = ...,
                     restart: RestartPolicy | Mapping[str, Any] = ..., deadlines: Deadlines | Mapping[str, Any] = ...,
                     lease: float | None = ..., file_systems: Sequence[str] = ..., acls: Acls | Mapping[str, Any] = ...,
                     am_memory: int | str = ..., am_vcores: int = ..., report_log_tail: int = ...) -> None: ...

    def __post_init__(self) -> None:
        faults = normalise(self, {
            "tasks": _read_tasks, "custom_types": read_texts,
            "command": optional(read_command), "name": read_text, "queue": read_text,
            "user": optional(read_text), "priority": read_count(0), "tags": read_texts,
            "node_label": optional(read_text), "env": read_env, "files": read_sources, "archives": read_sources,
            "script": optional(read_source), "input": optional(read_text), "output": optional(read_text),
            "environment": optional(read_environment), "tensorboard": _read_tensorboard,
            "success": read_choice(*SUCCESS_POLICIES), "restart": read_part(RestartPolicy),
            "deadlines": read_part(Deadlines), "lease": optional(read_seconds), "file_systems": read_texts,
            "acls": read_part(Acls),
            "am_memory": read_memory, "am_vcores": read_count(1), "report_log_tail": read_count(0),
        })
        wrong = {fault.path.partition(".")[0] for fault in faults}
        check_faults([*faults, *(fault for names, find in _RULES if wrong.isdisjoint(names) for fault in find(self))])

    def to_dict(self) -> dict[str, Any]:
        """Return the values that differ from the defaults, as plain values; `from_dict` reads them back."""
        document = values_that_differ(self)
        document["tasks"] = {name: _plain_task(task) for name, task in self.tasks.items()}
        for part in ("deadlines", "acls", "tensorboard"):
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
        return cls.from_dict(parse_yaml(text))


def _plain_task(task: TaskSpec) -> dict[str, Any]:
    plain = values_that_differ(task)
    if task.indices:
        general = Resources(task.memory, task.vcores, task.gpus)
        plain["indices"] = {index: values_that_differ(own, general) for index, own in task.indices.items()}
    return plain


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
        with noting(faults, name):
            is_number = isinstance(settings, int) and not isinstance(settings, bool)
            tasks[name] = read_part(TaskSpec)({"instances": settings} if is_number else settings)
    check_faults(faults)
    return tasks


def _read_tensorboard(value: Any) -> TensorBoard | None:
    if isinstance(value, bool):
        value = {} if value else None
    return None if value is None else read_part(TensorBoard)(value)


def _command_faults(job: JobSpec) -> Iterator[Fault]:
    without = tuple(name for name, task in job.tasks.items() if not (task.command or job.command))
    if without:
        yield Fault("command", JobFault.NO_COMMAND, {"types": without})


def _task_faults(job: JobSpec) -> Iterator[Fault]:
    if not job.tasks:
        yield Fault("tasks", JobFault.NO_TASKS)
    elif not any(task.role(name).awaited for name, task in job.tasks.items()):
        yield Fault("tasks", JobFault.NEVER_ENDS, {"types": tuple(job.tasks)})
    if TENSORBOARD in job.tasks:
        yield Fault(f"tasks.{TENSORBOARD}", JobFault.TENSORBOARD_TYPE, {"other": "tensorboard"})
    count = sum(task.instances for task in job.tasks.values())
    if count * len('"127.0.0.1:1024", ') > MAX_STRING:
        yield Fault("tasks", JobFault.LONG_TF_CONFIG, {"given": count, "most": MAX_STRING // 1024})


def _type_faults(job: JobSpec) -> Iterator[Fault]:
    """Yield the task types that look misspelt and are not said to be meant."""
    for name in job.tasks:
        meant = misspelt_type(name)
        if meant and name not in job.custom_types:
            yield Fault(
                f"tasks.{name}", JobFault.MISSPELT_TYPE, {"given": name, "meant": meant, "other": "custom_types"}
            )


def _success_faults(job: JobSpec) -> Iterator[Fault]:
    if job.success == "chief" and CHIEF not in job.tasks:
        yield Fault("success", JobFault.NEEDS_CHIEF)


def _tensorboard_faults(job: JobSpec) -> Iterator[Fault]:
    if job.tensorboard and not (job.output or job.tensorboard.logdir):
        yield Fault("tensorboard", JobFault.NEEDS_OUTPUT, {"other": "output"})


def _tag_faults(job: JobSpec) -> Iterator[Fault]:
    if len(job.tags) > MAX_TAGS_USER:
        yield Fault("tags", JobFault.TOO_MANY_TAGS, {"given": len(job.tags), "most": MAX_TAGS_USER})
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
    for name, source in job.archives.items():
        if not source.endswith(ARCHIVE_SUFFIXES):
            suffixes = " or ".join(ARCHIVE_SUFFIXES)
            yield Fault(f"archives.{name}", JobFault.NOT_AN_ARCHIVE, {"given": source, "suffixes": suffixes})


def _name_faults(job: JobSpec) -> Iterator[Fault]:
    """Yield the names in the working directory that stand for two files."""
    named = [*((name, f"files.{name}") for name in job.files), *((name, f"archives.{name}") for name in job.archives)]
    if job.script:
        named.append((job.script.rsplit("/", 1)[-1], "script"))
    first: dict[str, str] = {}
    for name, path in named:
        if first.setdefault(name, path) != path:
            yield Fault(path, JobFault.NAME_TWICE, {"given": name, "other": first[name]})


#: The rules about several values, each with the fields that it reads. A rule is checked only if these are valid.
_RULES: tuple[tuple[tuple[str, ...], Callable[[JobSpec], Iterator[Fault]]], ...] = (
    (("tasks",), _task_faults),
    (("tasks", "custom_types"), _type_faults),
    (("tasks", "command"), _command_faults),
    (("tasks", "success"), _success_faults),
    (("tensorboard", "output"), _tensorboard_faults),
    (("tags",), _tag_faults),
    (("report_log_tail",), _log_tail_faults),
    (("lease",), _lease_faults),
    (("archives",), _archive_faults),
    (("files", "archives", "script"), _name_faults),
)
