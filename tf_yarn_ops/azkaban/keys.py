"""The keys of a ``.job``: one table, from which the reader, its messages and the tables of the documents are made.

A name has places that a job fills in: ``<type>`` a task type, ``<index>`` and ``<n>`` a number, ``<NAME>`` a variable.
A key is an option of `job.options`, which has its help and its default, or belongs to the job type alone.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import Fault, FaultCode
from ..job.defaults import default_of
from ..job.options import OPTIONS

_PLACES = {"<type>": "(?P<type>[A-Za-z][A-Za-z0-9_-]*)", "<index>": "(?P<index>[0-9]+)", "<n>": "(?P<n>[0-9]+)",
           "<NAME>": "(?P<NAME>.+)"}
KEY_PREFIX = "tf."
#: The beginning of output properties for the jobs downstream. The job type never reads them.
RESULT = "tf.result."


class KeyFault(FaultCode):
    """Fault codes for the name of a key."""

    UNKNOWN = "unknown key{hint}"
    NOT_THE_JOBS_USER = "a job can't choose its user; where the site allows it, user.to.proxy does"
    NOT_THE_JOBS_CLUSTER = "a job can't choose the cluster; site.yaml or YTF_RESOURCEMANAGER of the executor does"


class Key(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        ``tf.<type>.memory``.
    option : str
        The option of `job.options`; empty for a key of the job type alone.
    alias : str
        TonY's names of the same key, separated by blanks.
    default : str
        The default as the documents show it.
    help : str
        A sentence or two.
    text : bool
        Whether the value belongs to the program, so that every blank of it counts.
    """

    name: str
    option: str
    alias: str
    default: str
    help: str
    text: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of names of this key."""
        parts = re.split(r"(<\w+>)", self.name)
        return re.compile("".join(_PLACES.get(part) or re.escape(part) for part in parts) + r"\Z", re.DOTALL)


class FoundKey(NamedTuple):
    """The row of a name in a ``.job``, and the words in the places of the name."""

    key: Key
    places: dict[str, str]


def _key(option: str, name: str = "", alias: str = "", *, note: str = "", instead: str = "",
         default: str | None = None, text: bool = False) -> Key:
    """Return the row of an option; ``note`` is added to its help, ``instead`` replaces it."""
    row = OPTIONS[option]
    return Key(name or f"{KEY_PREFIX}{option}", option, alias, default_of(row) if default is None else default,
               instead or " ".join(filter(None, (row.help, note))), text)


_MILLISECONDS = "TonY's key is in milliseconds."
_COMMAS = "Comma-separated."
COMMAND = (
    _key("task_command", "tf.command", "executes python_binary_path tony.containers.command", text=True,
         note="`${...}` is Azkaban's, so write `$NAME` for a variable of the node."),
    Key("tf.entry_point", "", "", "",
        "A Python file to run instead of tf.command: a file of the project, which travels with the job, or an absolute "
        "path on the nodes.", True),
    Key("tf.python", "", "", "python3", "The interpreter that runs tf.entry_point."),
    Key("tf.args.file", "", "", "",
        "A UTF-8 file of the project with more arguments, as bash reads words: over several lines, with `#` comments, "
        "and with `$(...)`, which in a .job is an expression of Azkaban's."),
    Key("tf.args.<n>", "", "", "",
        "One argument, passed on byte for byte; no shell interprets it. The arguments come in the order of the "
        "numbers.", True),
    Key("tf.args", "", "task_params", "", "Arguments after the command, as bash reads them.", True),
)
TASKS = (
    _key("cluster_requirement", instead="All task types and their instances, `ps:2,worker:4`; tf.<type>.instances says "
                                        "the same of one type."),
    _key("tasks.<type>.instances", "tf.<type>.instances", "tony.<type>.instances", default="",
         note="0 for none. A job has at least one type."),
    _key("task_memory", "tf.<type>.memory", "tony.<type>.memory", default="8192; 2g for TonY's types"),
    _key("task_vcores", "tf.<type>.vcores", "tony.<type>.vcores"),
    _key("task_gpus", "tf.<type>.gpus", "tony.<type>.gpus"),
    *(_key(f"task_{what}", f"tf.<type>.<index>.{what}", default="", instead=f"The {what} of a single task.")
      for what in ("memory", "vcores", "gpus")),
    *(_key(f"task_{what}", instead=f"The {what} of every task, unless its type has another value.")
      for what in ("memory", "vcores", "gpus")),
    _key("tasks.<type>.node_label", "tf.<type>.node_label", "tony.<type>.node-label"),
    _key("command", "tf.<type>.command", "tony.<type>.command", text=True),
    _key("tasks.<type>.env", "tf.<type>.env.<NAME>", text=True,
         instead="An environment variable of the tasks of this type; it wins over tf.env."),
    _key("tasks.<type>.awaited", "tf.<type>.awaited",
         "tony.application.untracked.jobtypes tony.application.sidecar.jobtypes"),
    _key("tasks.<type>.fatal", "tf.<type>.fatal",
         "tony.application.stop-on-failure-jobtypes tony.application.sidecar.jobtypes"),
    _key("tasks.<type>.in_cluster", "tf.<type>.in_cluster"),
    _key("tasks.<type>.hold_port", "tf.<type>.hold_port"),
)
JOB_KEYS = (
    _key("spec", instead="A job in YAML in the project, as `ytf-submit --dry_run` prints it. Other keys override it."),
    _key("env", "tf.env.<NAME>",
         "worker_env.<NAME> tony.containers.envs tony.execution.envs azkaban.input.dataset azkaban.output.dataset",
         text=True),
    _key("file", "tf.files.<n>", "tony.<type>.resources tony.containers.resources hdfs_classpath",
         note="Written as `[NAME=]path or URI`."),
    _key("archive", "tf.archives.<n>", "python_venv tony.<type>.resources tony.containers.resources",
         note="Written as `[NAME=]path or URI`."),
    Key("tf.source", "", "src_dir", "src for TonY's commands, where the folder exists",
        "A folder of the project, or an archive, whose content every task finds in its working directory."),
    _key("script"),
    _key("environment", alias="python_binary_path"),
    _key("docker_image", alias="tony.docker.containers.image"),
    _key("input", text=True),
    _key("output", alias="tony.application.tensorboard-log-dir", text=True,
         note="It is also in tf.result.output_path."),
    _key("name", alias="tony.application.name", default="project.flow.job"),
    _key("queue", alias="tony.yarn.queue"),
    _key("priority"),
    _key("tag", "tf.tags", "tony.application.tags",
         instead="YARN application tags besides those of Azkaban, comma-separated, at most two."),
    _key("node_label", alias="tony.application.node-label", instead="YARN node label expression of the application."),
    _key("custom_type", "tf.custom_types",
         instead="Task types whose names are meant although they look like a misspelt chief, worker, ps or evaluator, "
                 "comma-separated."),
    _key("file_system", "tf.file_systems", "tony.other.namenodes",
         instead="Other file systems for which the job needs delegation tokens, comma-separated."),
    _key("am_memory", alias="tony.am.memory"),
    _key("am_vcores", alias="tony.am.vcores"),
    _key("tensorboard", alias="tony.application.tensorboard-log-dir"),
    _key("tensorboard_memory", alias="tony.tensorboard.memory"),
    _key("tensorboard_vcores", alias="tony.tensorboard.vcores"),
    _key("tensorboard_linger"),
    _key("tensorboard_logdir", text=True),
    _key("tensorboard_args", text=True),
)
ENDING = (
    _key("success", default="all_workers; chief for a TonY job with a chief"),
    _key("restart"),
    _key("max_restarts"),
    _key("max_container_losses"),
    _key("restart_backoff"),
    _key("retry_exit_codes", note=_COMMAS),
    _key("fatal_exit_codes", note=_COMMAS),
    _key("allocation_retries"),
    _key("queue_timeout", alias="tony.am.startup-timeout", note=_MILLISECONDS),
    _key("allocation_timeout", alias="tony.container.allocation.timeout", note=_MILLISECONDS),
    _key("registration_timeout", alias="tony.container.registration.timeout", note=_MILLISECONDS),
    _key("heartbeat_timeout", alias="tony.task.heartbeat-interval-ms tony.task.max-missed-heartbeats"),
    _key("execution_timeout", alias="tony.task.executor.execution-timeout-ms", note=_MILLISECONDS),
    _key("total_timeout", alias="tony.application.timeout", note=_MILLISECONDS),
    _key("lease", default="900"),
    _key("stop_grace"),
    _key("report_log_tail"),
)
JOBTYPE = (
    _key("dry_run"),
    _key("strict_placement"),
    Key("tf.previous", "", "", "ignore",
        "What happens to earlier executions of this job (same project, flow, job and backfill date) that still run. "
        "ignore: they continue, with a warning. wait: this one starts when they are over, retries included. kill: they "
        "are killed and superseded, retries included."),
)
#: The tables of the documents, by their headings.
KEY_SECTIONS = {"What runs": COMMAND, "Task types": TASKS, "The job": JOB_KEYS, "How it ends": ENDING,
                "The job type's own": JOBTYPE}  # fmt: skip
#: Names are looked up in this order: `tf.env.K` is a variable before it is a task type.
ALL_KEYS = (*COMMAND, *JOB_KEYS, *ENDING, *JOBTYPE, *TASKS)
_PATTERNS = [(key, key.pattern) for key in ALL_KEYS]
#: Keys that a job can't set.
REFUSED = {"tf.user": KeyFault.NOT_THE_JOBS_USER, "tf.resourcemanager": KeyFault.NOT_THE_JOBS_CLUSTER}
#: Words that can't be task types, because other keys begin with them.
RESERVED = frozenset(key.name.split(".")[1] for key in ALL_KEYS if len(key.name.split(".")) > 2) - {"<type>"}
#: The key that a message names for an option which the job has not given; the more general key comes first.
KEY_OF_OPTION = {key.option: key.name for key in reversed((*TASKS, *COMMAND, *JOB_KEYS, *ENDING)) if key.option}


def find_key(name: str) -> FoundKey | None:
    """Return the row of a name, or None for an unknown one."""
    for key, pattern in _PATTERNS:
        if match := pattern.match(name):
            return FoundKey(key, match.groupdict())
    return None


def unknown_key(name: str, types: Iterable[str]) -> Fault:
    """Return the fault of a name that is not in the table, with the nearest known names."""
    if name in REFUSED:
        return Fault(name, REFUSED[name])
    known = [key.name for key in ALL_KEYS]
    words = [part for part in name.split(".") if part]
    numbers = [word for word in words if word.isascii() and word.isdigit()]
    places = {"<type>": [*types, *words[1:2]], "<index>": numbers or ["0"], "<n>": numbers or ["1"],
              "<NAME>": words[-1:]}
    for place, values in places.items():
        known = [filled for one in known for filled in
                 ([one.replace(place, value) for value in values] if place in one else [one])]
    return Fault(name, KeyFault.UNKNOWN, {"given": name, "allowed": tuple(known)})
