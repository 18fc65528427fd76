"""The options of ``ytf-submit``: one table from which the parser, its help and the tests of docs/guides/command-line.md are made.

No option has a default in the parser: what was not given stays None, so that the
job's own defaults, or a file's values, hold. The default is told in the help only.
"""

from typing import Any, NamedTuple

import click


class Option(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    names : str
        ``-q --queue``; the long name is spelled with ``_``, ``-`` is accepted as well.
    metavar : str
        What follows, as the help shows it; empty for a switch.
    default : str
        As the help shows it; empty when there is none.
    help : str
        Paragraphs, separated by blank lines.
    many : bool
        Whether it may be repeated.
    """

    names: str
    metavar: str
    default: str
    help: str
    many: bool = False

    @property
    def key(self) -> str:
        """The option's name in a request: ``cluster_requirement``."""
        return self.names.split()[-1].lstrip("-").replace("-", "_")

    def click(self) -> click.Option:
        """Give the option as the parser takes it."""
        settings: dict[str, Any] = {"multiple": self.many, "metavar": self.metavar or None, "help": self.help}
        if not self.metavar:
            settings |= {"is_flag": True, "default": None}
        return click.Option([*self.names.split(), self.key], **settings)


_FORMS = "Task-level overrides type-level overrides general. Repeatable, and comma-separated."
SEED = (
    Option("-r --cluster_requirement", "<requirement>", "", """\
The tasks of the cluster: <type1>:<instances1>,<type2>:<instances2>,...

Example: "ps:2,worker:4". Type names are free. chief, worker and names of your own have to end with exit \
code 0, ps are ended with the job, the evaluator is in nobody's cluster. Mandatory, unless --spec has tasks."""),
    Option("-c --task_vcores", "<vcores> | <type>:<vcores> | <type>[<index>]:<vcores>", "1",
           "Virtual cores of a task. " + _FORMS, many=True),
    Option("-m --task_memory", "<memory> | <type>:<memory> | <type>[<index>]:<memory>", "8192",
           "Memory of a task, in MB (MiB), or with a unit: 512m, 8 GiB. " + _FORMS, many=True),
    Option("-i --input", "<input_path>", "",
           "Not interpreted; the tasks find it in DTF_INPUT_PATH."),
    Option("-o --output", "<output_path>", "",
           "Not interpreted; the tasks find it in DTF_OUTPUT_PATH. Mandatory with --tensorboard."),
    Option("-s --script", "<script_file>", "",
           "A local file that is copied into every task's working directory; its name is in DTF_TASK_SCRIPT, "
           "so that a command may read: python ${DTF_TASK_SCRIPT} ..."),
    Option("-t --tensorboard", "", "disabled",
           "Run TensorBoard on the output path as a task of its own, until the job ends. Its address is in the report, "
           "on the terminal and on the application's page."),
    Option("--docker_image", "<image_name>", "",
           "Run the tasks in this Docker image, which the nodes must be able to reach, by YARN's Docker runtime. "
           "Input and output path are mounted if they are local ones, and the site's docker_folders (HADOOP_HOME, "
           "HADOOP_CONF_DIR, JAVA_HOME of the nodes)."),
    Option("-q --queue", "<queue>", "default", "YARN's queue."),
    Option("-n --name", "<name>", "TensorFlow", "The application's name in YARN."),
    Option("--client", "", "disabled",
           "Run the command once more here, as a local task outside of the cluster, with the same variables, "
           "DTF_TASK_JOB_NAME=client and DTF_TASK_INDEX=0, once the cluster is complete. It keeps the terminal. "
           "Implies --wait; its failure does not change the job's."),
)
JOB = (
    Option("--spec", "<job.yaml>", "",
           "The job as a YAML file; options on the command line override it. --dry-run prints such a file."),
    Option("--environment", "<environment>", "what the nodes have",
           "Where the interpreter and its packages are: python:///usr/bin/python3, venv:///folder, conda:///folder, "
           "docker://image, or an archive (.tar.gz, .tgz, .zip; local or a URI). Its bin is first on PATH."),
    Option("--file", "[NAME=]<path or URI>", "",
           "A file, or a local folder, for every task's working directory, under this name.", many=True),
    Option("--archive", "[NAME=]<path or URI>", "",
           "An archive that is unpacked into a folder of this name.", many=True),
    Option("--env", "NAME=VALUE", "", "An environment variable of every task.", many=True),
    Option("--command", "TYPE=COMMAND", "", "Another command for the tasks of one type.", many=True),
    Option("--task_gpus", "<gpus> | <type>:<gpus> | <type>[<index>]:<gpus>", "0",
           "GPUs (yarn.io/gpu) of a task. " + _FORMS, many=True),
    Option("--node_label", "<label> | <type>:<label>", "",
           "YARN node label expression of the application, or of one task type's containers.", many=True),
    Option("--success", "all_workers | chief", "all_workers",
           "Whether every awaited task has to exit 0, or whether the chief's exit 0 ends the job."),
    Option("--restart", "never | task | cluster", "never",
           "After a failure: end the job; start the failed command again on its port while the others go on; "
           "or start all commands again with a new cluster spec."),
    Option("--max_restarts", "<n>", "0 with never, else 3", "Failures of the program that are forgiven."),
    Option("--max_container_losses", "<n>", "3",
           "Containers that may be preempted, lost with their node or killed from outside; each is replaced."),
    Option("--restart_backoff", "<seconds>", "1", "Before the first restart; doubles with each, up to 300."),
    Option("--retry_exit_codes", "<code,...>", "all", "Only these exit codes are worth a restart.", many=True),
    Option("--fatal_exit_codes", "<code,...>", "none", "These end the job whatever the budget says.", many=True),
    Option("--allocation_retries", "<n>", "0",
           "With --wait: how often a job that missed its allocation deadline is submitted again, after a pause that "
           "grows: 10 s, 20 s, 30 s, each times 0.5 to 1.5 at random."),
    Option("--tag", "<tag>", "", "A YARN application tag, at most 7.", many=True),
    Option("--user", "<user>", "the submitting user", "On whose behalf, where the cluster allows it."),
    Option("--priority", "<n>", "0", "In the queue, larger first."),
    Option("--am_memory", "<memory>", "1024", "Memory of the application master, MiB or with a unit."),
    Option("--am_vcores", "<vcores>", "1", "Virtual cores of the application master."),
    Option("--file_system", "<URI>", "", "A further file system whose delegation token the job needs.", many=True),
    Option("--report_log_tail", "<characters>", "4096",
           "How much of a failed task's log the report carries, at most 8192; 0 for none."),
    Option("--tensorboard_memory", "<memory>", "2048", "Memory of the TensorBoard task."),
    Option("--tensorboard_vcores", "<vcores>", "1", "Virtual cores of the TensorBoard task."),
    Option("--tensorboard_linger", "<seconds>", "0", "How long TensorBoard goes on after the last awaited task."),
    Option("--queue_timeout", "<seconds>", "86400",
           "With --wait: from submission until the application master runs; 0 for no limit."),
    Option("--allocation_timeout", "<seconds>", "1800", "Until every task has a container; 0 for no limit."),
    Option("--registration_timeout", "<seconds>", "600",
           "From a container's start until its agent calls; 0 for no limit."),
    Option("--heartbeat_timeout", "<seconds>", "60", "Silence of a task, at least 5; 0 for no limit."),
    Option("--execution_timeout", "<seconds>", "0", "From the first cluster spec to the end; 0 for no limit."),
    Option("--total_timeout", "<seconds>", "604800", "From the application master's start to the end; 0 for no limit."),
    Option("--stop_grace", "<seconds>", "10", "Between SIGTERM and SIGKILL when a command is ended."),
)
SUBMISSION = (
    Option("--wait", "", "disabled",
           "Follow the job to its end and exit with the code of its reason. Ctrl-C and TERM kill the application."),
    Option("--json", "", "disabled", "Print the report as JSON on stdout instead of the application's id."),
    Option("--dry_run", "", "disabled", "Print the job and the application as YAML, submit nothing, ask no host."),
    Option("--strict_placement", "", "disabled",
           "Refuse a task that no node of now could hold, instead of a warning. What is above YARN's maximum is "
           "refused anyway."),
    Option("--submit_with", "auto | rest | skein", "auto",
           "rest submits over plain HTTP, skein by Skein's own client (a JVM); auto takes rest where it can."),
    Option("--run_id", "<name>", "",
           "Names the training: of all calls with the same name and generation exactly one application trains; "
           "the others attach to it, or give its report once it has succeeded. Where Skein's client submits "
           "(Kerberos), two that submit at the same moment may both run until one sees the other by YARN's tags and "
           "the younger is killed."),
    Option("--generation", "<n>", "0",
           "With --run_id: a larger number trains again, and ends what an older one left running."),
    Option("--resourcemanager", "<URL>", "found",
           "http://host:8088, comma-separated for several. Default: YTF_RESOURCEMANAGER, site.yaml, HADOOP_CONF_DIR."),
    Option("-v --verbose", "", "disabled", "Log each step of the submission to stderr."),
)
ALL = (*SEED, *JOB, *SUBMISSION)
