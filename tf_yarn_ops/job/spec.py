"""`JobSpec`: the whole job as one frozen value, complete and valid once it exists.

Every door (command line, Airflow, Azkaban, a YAML file) ends here; everything
behind it trusts what it gets. All faults of a request are reported at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import SpecInvalid
from ..runtime.common.roles import CHIEF, TENSORBOARD, Role, role_of
from ..validation import (
    ARCHIVE_SUFFIXES,
    MAX_STRING,
    brief,
    check,
    did_you_mean,
    normalise,
    optional,
    read_command,
    read_count,
    read_env,
    read_flag,
    read_memory,
    read_source,
    read_sources,
    read_text,
    read_texts,
)
from .options import OPTIONS
from .parts import Acls, Deadlines, Environment, Resources, RestartPolicy, TensorBoard
from .requirement import TASK_TYPE, canonical_type

SUCCESS_POLICIES = OPTIONS["success"].choices
#: YARN takes ten tags; three are the job's identity.
MAX_TAGS = 7
#: Largest log tail of one task in the report, characters.
MAX_LOG_TAIL = 8192


def _read_indices(value: object) -> dict[int, Resources]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{brief(value)} is not a mapping of task indices to resources")
    return {read_count(0)(index): resources for index, resources in value.items()}


@dataclass(frozen=True)
class TaskSpec:
    """All tasks of one type.

    Parameters
    ----------
    instances : int, optional
        How many, at least 1. Default 1.
    memory, vcores, gpus : optional
        What each is given, as in `Resources`.
    node_label : str, optional
        YARN node label expression for these containers.
    command : str, optional
        Instead of the job's command; run by ``bash -c`` on the node.
    env : mapping of str to str, optional
        Further environment variables of these tasks; win over the job's.
    indices : mapping of int to Resources, optional
        Other resources for single tasks.
    in_cluster, awaited, fatal : bool, optional
        Another row than the table of task types has (`runtime.roles`).
    hold_port : bool, optional
        Keep the reserved port bound with SO_REUSEPORT while the command runs (default), which
        TensorFlow's servers take; False for programs that can't bind it then.
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

    def __post_init__(self) -> None:
        faults = normalise(self, {
            "instances": read_count(1), "memory": read_memory, "vcores": read_count(1), "gpus": read_count(0),
            "node_label": optional(read_text), "command": optional(read_command), "env": read_env,
            "indices": _read_indices, "in_cluster": optional(read_flag), "awaited": optional(read_flag),
            "fatal": optional(read_flag), "hold_port": read_flag,
        })
        if not faults:
            faults += [f"indices: {index} is out of range; there are tasks 0 to {self.instances - 1}"
                       for index in self.indices if index >= self.instances]
        check(faults)

    def resources(self, index: int) -> Resources:
        """Give what the task of this index gets."""
        return self.indices.get(index) or Resources(self.memory, self.vcores, self.gpus)

    def role(self, task_type: str) -> Role:
        """Give the row of the lifecycle table that holds for these tasks."""
        row = role_of(task_type)
        return Role(*(default if own is None else own
                      for own, default in zip((self.in_cluster, self.awaited, self.fatal), row, strict=True)))


@dataclass(frozen=True)
class JobSpec:
    """A distributed TensorFlow job.

    Parameters
    ----------
    command : str, optional
        Run by ``bash -c`` for each task; needed unless every type has its own.
    tasks : mapping of str to TaskSpec
        Per task type (``chief``, ``worker``, ``ps``, ``evaluator`` or any other name).
        ``chiefworker`` and ``master`` are read as ``chief``.
    name : str, optional
        The application's name in YARN. Default ``TensorFlow``.
    queue : str, optional
        Default ``default``.
    user : str, optional
        On whose behalf, where the cluster allows it. Default: the submitting user.
    priority : int, optional
        YARN's priority in the queue, larger first. Default 0.
    tags : sequence of str, optional
        At most 7, ASCII, at most 100 characters; YARN keeps them in lower case.
    node_label : str, optional
        Node label expression of the application master and of types without their own.
    env : mapping of str to str, optional
        Environment variables of every task.
    files, archives : mapping of str to str, optional
        Name in the working directory to local path or URI. Archives (and local folders) are unpacked.
    script : str, optional
        Local file, in the working directory under its own name, which is DTF_TASK_SCRIPT.
    input, output : str, optional
        Not interpreted: DTF_INPUT_PATH and DTF_OUTPUT_PATH.
    environment : Environment, optional
        Default: what the nodes have.
    tensorboard : TensorBoard, optional
        Needs ``output``.
    success : {"all_workers", "chief"}, optional
        Whether every awaited task (default) or the chief alone has to exit 0.
    restart : RestartPolicy, optional
    deadlines : Deadlines, optional
    file_systems : sequence of str, optional
        Further file systems whose delegation tokens the job needs, ``hdfs://other``.
    acls : Acls, optional
    am_memory : int or str, optional
        MiB of the application master. Default 1024: Skein's JVM and our coordinator.
    am_vcores : int, optional
        Default 1.
    report_log_tail : int, optional
        Characters of a failed task's log that the report carries, 0 to 8192. Default 4096.

    Raises
    ------
    SpecInvalid
        With every fault of the request.
    """

    tasks: Mapping[str, TaskSpec]
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
    file_systems: tuple[str, ...] = ()
    acls: Acls = field(default_factory=Acls)
    am_memory: int = 1024
    am_vcores: int = 1
    report_log_tail: int = 4096

    def __post_init__(self) -> None:
        faults = normalise(self, {
            "command": optional(read_command), "name": read_text, "queue": read_text, "user": optional(read_text),
            "priority": read_count(0), "tags": read_texts, "node_label": optional(read_text), "env": read_env,
            "files": read_sources, "archives": read_sources, "script": optional(read_source),
            "input": optional(read_text), "output": optional(read_text), "file_systems": read_texts,
            "am_memory": read_memory, "am_vcores": read_count(1), "report_log_tail": read_count(0),
            "success": read_text,
        })
        tasks = {canonical_type(name): task for name, task in self.tasks.items()}
        if len(tasks) < len(self.tasks):
            faults.append("tasks: chief is named twice; chiefworker and master are other spellings of it")
        object.__setattr__(self, "tasks", tasks)
        check(faults + ([] if faults else self._faults()))

    def _faults(self) -> list[str]:
        """What is wrong with the parts taken together."""
        faults = [f"tasks: {name!r} is not a task type; use letters, digits, '-' and '_', a letter first"
                  for name in self.tasks if not TASK_TYPE.match(name)]
        if not self.tasks:
            faults.append("tasks: there are none; give at least one task type, for example worker:1")
        faults += [f"tasks: {name} has no command, neither its own nor the job's"
                   for name, task in self.tasks.items() if not (task.command or self.command)]
        if self.tasks and not any(task.role(name).awaited for name, task in self.tasks.items()):
            faults.append(f"tasks: nothing ends the job: {', '.join(self.tasks)} run for ever; add a chief or a worker")
        if self.success not in SUCCESS_POLICIES:
            faults.append(f"success: {self.success!r} is not one of {', '.join(SUCCESS_POLICIES)}"
                          f"{did_you_mean(self.success, SUCCESS_POLICIES)}")
        if self.success == "chief" and CHIEF not in self.tasks:
            faults.append("success: chief needs a task of type chief")
        if self.tensorboard and not self.output:
            faults.append("tensorboard: needs output, the folder that TensorBoard reads")
        if TENSORBOARD in self.tasks:
            faults.append("tasks: tensorboard is added by the option tensorboard, it can't be requested as a type")
        if len(self.tags) > MAX_TAGS:
            faults.append(f"tags: {len(self.tags)} given, at most {MAX_TAGS} allowed")
        faults += [f"tags: {tag!r} is not ASCII of 1 to 100 characters"
                   for tag in self.tags if not tag.isascii() or not 1 <= len(tag) <= 100]
        if self.report_log_tail > MAX_LOG_TAIL:
            faults.append(f"report_log_tail: {self.report_log_tail} is more than {MAX_LOG_TAIL} characters")
        faults += [f"archives: {source!r} is not one of {', '.join(ARCHIVE_SUFFIXES)}"
                   for source in self.archives.values() if not source.endswith(ARCHIVE_SUFFIXES)]
        names = [*self.files, *self.archives, *([self.script.rsplit("/", 1)[-1]] if self.script else [])]
        twice = sorted({name for name in names if names.count(name) > 1})
        faults += [f"files: {name!r} is the name of two files" for name in twice]
        tasks = sum(task.instances for task in self.tasks.values())
        if tasks * len('"127.0.0.1:1024", ') > MAX_STRING:
            faults.append(f"tasks: {tasks} tasks make a TF_CONFIG of more than {MAX_STRING // 1024} KiB")
        return faults

    def to_dict(self) -> dict[str, Any]:
        """Give what differs from the defaults, as plain values; `from_dict` reads it back."""
        from .document import write_job

        return write_job(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "JobSpec":
        """Read a document; unknown keys are refused with the nearest name.

        Parameters
        ----------
        document : mapping
            As `to_dict` gives it. Memory may be a text such as ``8 GiB``; what stands in
            ``indices`` inherits the rest from its task type.

        Raises
        ------
        SpecInvalid
            With every fault of the document.
        """
        from .document import read_job

        return read_job(document)

    def to_yaml(self) -> str:
        """Give `to_dict` as YAML."""
        import yaml

        text: str = yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)
        # PyYAML writes these as they are, and reads them back as line breaks.
        if any(letter in text for letter in "\x85\u2028\u2029\ufeff"):
            text = yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=False)
        return text

    @classmethod
    def from_yaml(cls, text: str) -> "JobSpec":
        """Read `to_yaml`'s text; SpecInvalid as in `from_dict`, and for what is not YAML."""
        import yaml

        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            # The whole error shows the lines about it, which may hold a secret.
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise SpecInvalid(f"not YAML{where}: {getattr(error, 'problem', None) or type(error).__name__}") from None
        return cls.from_dict(document)
