"""The keys of a ``.job``: one table, from which the reader, its messages and docs/guides/azkaban.md are made.

A name has places that a job fills in: ``<type>`` a task type, ``<index>`` and ``<n>`` a
number, ``<NAME>`` a variable. Each key is an option of ``ytf-submit`` or belongs to the
jobtype alone.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..validation import did_you_mean

_PLACES = {"<type>": "(?P<type>[A-Za-z][A-Za-z0-9_-]*)", "<index>": "(?P<index>[0-9]+)", "<n>": "(?P<n>[0-9]+)",
           "<NAME>": "(?P<NAME>.+)"}
PREFIX = "tf."
#: What the jobtype writes for the jobs downstream; never read, whoever wrote it.
RESULT = "tf.result."


class Key(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        ``tf.<type>.memory``.
    option : str
        The option of a request that it is; empty for what only the jobtype knows.
    alias : str
        TonY's names of the same, separated by blanks.
    default : str
        As the documentation shows it.
    help : str
        A sentence or two.
    text : bool
        Whether the value is the program's, every blank of it.
    """

    name: str
    option: str
    alias: str
    default: str
    help: str
    text: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """What names of this key look like."""
        parts = re.split(r"(<\w+>)", self.name)
        return re.compile("".join(_PLACES.get(part) or re.escape(part) for part in parts) + r"\Z", re.DOTALL)


class Found(NamedTuple):
    """A name of a ``.job`` with its row of the table and what stands in its places."""

    key: Key
    places: dict[str, str]


COMMAND = (
    Key("tf.command", "task_command", "executes python_binary_path tony.containers.command", "",
        "Run by bash for each task; `${...}` is Azkaban's, so a variable of the node is written `$NAME`.", True),
    Key("tf.entry_point", "", "", "",
        "Instead of tf.command: a Python file of the project, which travels with the job, or an absolute path on the "
        "nodes.", True),
    Key("tf.python", "", "", "python3", "What runs tf.entry_point."),
    Key("tf.args.file", "", "", "",
        "A UTF-8 file of the project with further arguments, as bash reads words: over several lines, with `$(...)`, "
        "which in a .job is an expression of Azkaban's, and with `#` comments."),
    Key("tf.args.<n>", "", "", "",
        "One argument, passed on byte for byte: nothing in it means anything to a shell. In the order of the numbers.",
        True),
    Key("tf.args", "", "task_params", "", "Arguments behind the command, as bash reads them.", True),
)
TASKS = (
    Key("tf.cluster_requirement", "cluster_requirement", "", "",
        "All task types at once, `ps:2,worker:4`; tf.<type>.instances says the same of one."),
    Key("tf.<type>.instances", "cluster_requirement", "tony.<type>.instances", "",
        "How many tasks of this type; 0 for none. At least one type is needed."),
    Key("tf.<type>.memory", "task_memory", "tony.<type>.memory", "8192; 2g for TonY's types",
        "Of each task: MiB, or with a unit, 8g."),
    Key("tf.<type>.vcores", "task_vcores", "tony.<type>.vcores", "1", "Virtual cores of each task."),
    Key("tf.<type>.gpus", "task_gpus", "tony.<type>.gpus", "0", "GPUs (yarn.io/gpu) of each task."),
    Key("tf.<type>.<index>.memory", "task_memory", "", "", "Of a single task."),
    Key("tf.<type>.<index>.vcores", "task_vcores", "", "", "Of a single task."),
    Key("tf.<type>.<index>.gpus", "task_gpus", "", "", "Of a single task."),
    Key("tf.task_memory", "task_memory", "", "8192", "Of every task whose type does not say otherwise."),
    Key("tf.task_vcores", "task_vcores", "", "1", "The same."),
    Key("tf.task_gpus", "task_gpus", "", "0", "The same."),
    Key("tf.<type>.node_label", "node_label", "tony.<type>.node-label", "", "YARN node label of these containers."),
    Key("tf.<type>.command", "command", "tony.<type>.command", "", "Another command for this type.", True),
    Key("tf.<type>.env.<NAME>", "", "", "", "An environment variable of this type's tasks; wins over tf.env.", True),
    Key("tf.<type>.awaited", "", "tony.application.untracked.jobtypes tony.application.sidecar.jobtypes",
        "true; false for ps", "Whether the job waits for these tasks."),
    Key("tf.<type>.fatal", "", "tony.application.stop-on-failure-jobtypes tony.application.sidecar.jobtypes",
        "true", "Whether their failure is the job's."),
    Key("tf.<type>.in_cluster", "", "", "true; false for evaluator", "Whether they stand in the cluster spec."),
)
JOB = (
    Key("tf.spec", "", "", "", "A job in YAML in the project, as `ytf-submit --dry_run` prints it; other keys win."),
    Key("tf.env.<NAME>", "env",
        "worker_env.<NAME> tony.containers.envs tony.execution.envs azkaban.input.dataset azkaban.output.dataset", "",
        "An environment variable of every task.", True),
    Key("tf.files.<n>", "file", "tony.<type>.resources tony.containers.resources hdfs_classpath", "",
        "`[NAME=]path or URI`: a file or folder for every task's working directory."),
    Key("tf.archives.<n>", "archive", "python_venv tony.<type>.resources tony.containers.resources", "",
        "`[NAME=]path or URI`: unpacked into a folder of this name."),
    Key("tf.source", "", "src_dir", "src for TonY's commands, where the folder exists",
        "A folder of the project, or an archive: what is in it lies in every task's working directory."),
    Key("tf.script", "script", "", "", "A file that every task finds under its own name, which is DTF_TASK_SCRIPT."),
    Key("tf.environment", "environment", "python_binary_path", "what the nodes have",
        "Where the interpreter is: python:///usr/bin/python3, venv:///folder, conda:///folder, docker://image, an "
        "archive."),
    Key("tf.docker_image", "docker_image", "tony.docker.containers.image", "", "The same as docker://image."),
    Key("tf.input", "input", "", "", "Not interpreted: DTF_INPUT_PATH.", True),
    Key("tf.output", "output", "tony.application.tensorboard-log-dir", "",
        "Not interpreted: DTF_OUTPUT_PATH, and tf.result.output_path.", True),
    Key("tf.name", "name", "tony.application.name", "the job's name in Azkaban", "The application's name in YARN."),
    Key("tf.queue", "queue", "tony.yarn.queue", "default", "YARN's queue."),
    Key("tf.priority", "priority", "", "0", "In the queue, larger first."),
    Key("tf.tags", "tag", "tony.application.tags", "",
        "YARN tags besides Azkaban's, comma-separated, at most two."),
    Key("tf.node_label", "node_label", "tony.application.node-label", "", "YARN node label of the application."),
    Key("tf.file_systems", "file_system", "tony.other.namenodes", "",
        "Further file systems whose delegation tokens the job needs, comma-separated."),
    Key("tf.am_memory", "am_memory", "tony.am.memory", "1024", "Memory of the application master."),
    Key("tf.am_vcores", "am_vcores", "tony.am.vcores", "1", "Virtual cores of the application master."),
    Key("tf.tensorboard", "tensorboard", "tony.application.tensorboard-log-dir", "false",
        "Run TensorBoard on tf.output while the job runs."),
    Key("tf.tensorboard_memory", "tensorboard_memory", "tony.tensorboard.memory", "2048", "Of TensorBoard's task."),
    Key("tf.tensorboard_vcores", "tensorboard_vcores", "tony.tensorboard.vcores", "1", "Of TensorBoard's task."),
    Key("tf.tensorboard_linger", "tensorboard_linger", "", "0", "Seconds that it goes on after the last task."),
)
ENDING = (
    Key("tf.success", "success", "", "all_workers; chief for a TonY job with a chief",
        "`all_workers`: every awaited task exits 0. `chief`: the chief's exit 0 ends the job."),
    Key("tf.restart", "restart", "", "never", "`never`, `task` or `cluster`: what happens when a task fails."),
    Key("tf.max_restarts", "max_restarts", "", "0 with never, else 3", "Failures of the program that are forgiven."),
    Key("tf.max_container_losses", "max_container_losses", "", "3", "Containers that may be lost; each is replaced."),
    Key("tf.restart_backoff", "restart_backoff", "", "1", "Seconds before the first restart; doubles with each."),
    Key("tf.retry_exit_codes", "retry_exit_codes", "", "all", "Only these are worth a restart, comma-separated."),
    Key("tf.fatal_exit_codes", "fatal_exit_codes", "", "none", "These end the job at once, comma-separated."),
    Key("tf.allocation_retries", "allocation_retries", "", "0",
        "How often a job that missed its allocation deadline is submitted again, within the same attempt."),
    Key("tf.queue_timeout", "queue_timeout", "tony.am.startup-timeout", "86400",
        "Seconds from submission until the application master runs; 0 for no limit, as for all of these. TonY's are "
        "milliseconds."),
    Key("tf.allocation_timeout", "allocation_timeout", "tony.container.allocation.timeout", "1800",
        "Seconds until every task has a container."),
    Key("tf.registration_timeout", "registration_timeout", "tony.container.registration.timeout", "600",
        "Seconds from a container's start until its agent calls."),
    Key("tf.heartbeat_timeout", "heartbeat_timeout",
        "tony.task.heartbeat-interval-ms tony.task.max-missed-heartbeats", "60", "Seconds of silence of a task."),
    Key("tf.execution_timeout", "execution_timeout", "tony.task.executor.execution-timeout-ms", "0",
        "Seconds from the first cluster spec to the end."),
    Key("tf.total_timeout", "total_timeout", "tony.application.timeout", "604800",
        "Seconds from the application master's start to the end."),
    Key("tf.stop_grace", "stop_grace", "", "10", "Seconds between SIGTERM and SIGKILL when a command is ended."),
    Key("tf.report_log_tail", "report_log_tail", "", "4096", "Characters of a failed task's log in the report."),
)
JOBTYPE = (
    Key("tf.dry_run", "", "", "false", "Print the job and the application, submit nothing."),
    Key("tf.strict_placement", "", "", "false", "Refuse a task that no node of now could hold."),
)
#: In this order a name is looked up: `tf.env.K` is a variable before it is a task type.
KEYS = (*COMMAND, *JOB, *ENDING, *JOBTYPE, *TASKS)
_PATTERNS = [(key, key.pattern) for key in KEYS]
#: What a job may not say, and why.
REFUSED = {
    "tf.user": "who runs the job is not the job's to say: it is user.to.proxy, where the site allows that",
    "tf.resourcemanager": "the cluster is the executor's: site.yaml, or YTF_RESOURCEMANAGER in its environment",
}
#: Words that can't be task types, because keys of their own begin with them.
RESERVED = frozenset(key.name.split(".")[1] for key in KEYS if len(key.name.split(".")) > 2) - {"<type>"}


def find_key(name: str) -> Found | None:
    """Give the row of a name; None for an unknown one."""
    for key, pattern in _PATTERNS:
        if match := pattern.match(name):
            return Found(key, match.groupdict())
    return None


def unknown_key(name: str, types: Iterable[str]) -> str:
    """Give the message for a name that the table does not know, with the nearest that it knows."""
    if name in REFUSED:
        return f"{name}: {REFUSED[name]}"
    known = [key.name for key in KEYS]
    words = [part for part in name.split(".") if part]
    places = {"<type>": [*types, *words[1:2]], "<index>": [word for word in words if word.isdigit()] or ["0"],
              "<n>": [word for word in words if word.isdigit()] or ["1"], "<NAME>": words[-1:]}
    for place, values in places.items():
        known = [filled for one in known for filled in
                 ([one.replace(place, value) for value in values] if place in one else [one])]
    return f"{name}: unknown key{did_you_mean(name, known)}"
