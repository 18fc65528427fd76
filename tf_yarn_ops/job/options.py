"""The table of every option: those that the fields of a job declare, and those of its submission.

The parser and the manual page of ``ytf-submit``, the keys of Azkaban, the arguments of the Airflow operator, the
tables of the documents and `request.build_job` derive from `OPTIONS`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from .. import kinds
from ..declaration import AZKABAN, COMMAND_LINE, OPERATOR, OPTION_SECTIONS, TYPE, Option, declared
from .spec import JobSpec

_SUBMITTING = (COMMAND_LINE, AZKABAN, OPERATOR)
_shell = partial(Option, section="submission", doors=(COMMAND_LINE,))
_ROWS = (
    *declared(JobSpec, section="application"),
    Option(
        None,
        kinds.TEXT,
        "Run the tasks in this Docker image, with YARN's Docker runtime. Local input and output paths are mounted, "
        "and the docker_folders of the site file. The same as environment docker://image.",
        "docker_image",
        "program",
        value="<image_name>",
        doors=_SUBMITTING,
    ),
    _shell(
        None,
        kinds.TEXT,
        "The job as a YAML file. Other options override it. ytf-submit --dry_run prints such a file.",
        "spec",
        value="<job.yaml>",
        doors=_SUBMITTING,
    ),
    _shell(
        False,
        kinds.FLAG,
        "Run the command on this machine too, in each round, outside of the cluster spec, with the tasks' variables "
        "(DTF_TASK_JOB_NAME=client), files and environment. Implies wait; its failure does not change the result.",
        "client",
    ),
    _shell(
        False,
        kinds.FLAG,
        "Follow the job until it ends, and exit with the code of its reason. Ctrl-C and SIGTERM kill the application.",
        "wait",
    ),
    _shell(
        False,
        kinds.FLAG,
        "Run the job on this machine without YARN and Java: its tasks are processes here, and the terminal "
        "shows their output. The same as resourcemanager local://, and implies wait.",
        "local",
    ),
    _shell(
        None,
        kinds.TEXT,
        "With wait: print the lines of these tasks to stderr (with local to stdout) as they come: chief (the chief, "
        "else worker 0, else the first task), all, none, or names such as worker:0 and worker:*, comma-separated.",
        "logs",
        in_words="all with local, chief for a job with one task, else none",
        value="chief | all | none | <type:index>",
    ),
    _shell(False, kinds.FLAG, "The same as logs none.", "no_logs"),
    _shell(False, kinds.FLAG, "Print the report as JSON on stdout instead of the application id.", "json"),
    _shell(
        None,
        kinds.TEXT,
        "With wait: write status, reason, application_id, exit_code, output_path, tracking_url, metrics and "
        "message as name=value lines, at most 2048 bytes, to this file, or - for stdout alone.",
        "output_properties",
        value="<file> | -",
    ),
    _shell(
        False,
        kinds.FLAG,
        "Print the job and the application as YAML. Check the files that would travel, but submit nothing and "
        "contact no host.",
        "dry_run",
        doors=(COMMAND_LINE, AZKABAN),
    ),
    _shell(False, kinds.FLAG, "With dry_run: do not look at files; they may be on another machine.", "offline"),
    _shell(
        False,
        kinds.FLAG,
        "Refuse a task that no running node can hold, and a job that all of them, or the queue's share, can't "
        "hold together, instead of a warning.",
        "strict_placement",
        doors=_SUBMITTING,
    ),
    _shell(
        "auto",
        kinds.choice("auto", "rest", "skein"),
        "rest submits over plain HTTP, skein with Skein's own client (a JVM); auto uses rest where it can.",
        "submit_with",
        doors=(COMMAND_LINE, OPERATOR),
    ),
    _shell(
        None,
        kinds.TEXT,
        "The name of the training. Of all calls with the same name and generation, exactly one submits an "
        "application; the others attach to it, or return its report once it has succeeded. Where Skein's Java "
        "client submits, two may train until one sees the other.",
        "run_id",
        value="<name>",
    ),
    _shell(
        0,
        kinds.count(0),
        "Together with run_id: a larger number trains again, and ends the applications of older generations.",
        "generation",
    ),
    _shell(
        None,
        kinds.TEXT,
        "Address of the ResourceManager, http://host:8088; several are comma-separated. local:// or "
        "local:///folder runs the job on this machine, and keeps it in the folder. If it is not given: "
        "YTF_RESOURCEMANAGER, then site.yaml, then HADOOP_CONF_DIR.",
        "resourcemanager",
        value="<URL>",
    ),
    _shell(False, kinds.FLAG, "Log each step of the submission to stderr.", "verbose", short="-v"),
)
#: Every option by its name, in the order of the documents.
OPTIONS = {option.name: option for option in sorted(_ROWS, key=lambda row: [*OPTION_SECTIONS].index(row.section))}


def options_of(door: str, *, submission: bool = True) -> dict[str, Option]:
    """Return the options that a door may set, by name.

    Parameters
    ----------
    door : str
        `COMMAND_LINE`, `AZKABAN`, `OPERATOR` or `DOCUMENT`.
    submission : bool, optional
        Whether to include the options of the section ``submission``. Default True.
    """
    return {
        name: option
        for name, option in OPTIONS.items()
        if door in option.doors and (submission or option.section != "submission")
    }


def is_given(document: Any, path: tuple[str, ...]) -> bool:
    """Return whether a job's document has a value at the path of an option, of any task type."""
    if not path:
        return True
    if not isinstance(document, Mapping):
        return False
    return any(is_given(document[key], path[1:]) for key in document if path[0] in (TYPE, key))
