"""Every option of a job and of its submission, declared once.

The parser and the manual page of ``ytf-submit``, the keys of Azkaban, the arguments of the Airflow operator, the
tables of the documents and `request.build_job` derive from `OPTIONS`. The defaults are those of the dataclasses in
`parts` and `spec`; `defaults.default_of` reads them. This module imports no other module of the package, so that a
door can read the table at no cost.
"""

from dataclasses import dataclass

#: The doors: who may set an option.
COMMAND_LINE, AZKABAN, OPERATOR, DOCUMENT = "command line", "azkaban", "operator", "document"
EVERYWHERE = (COMMAND_LINE, AZKABAN, OPERATOR, DOCUMENT)

#: The headings of the sections.
OPTION_SECTIONS = {
    "program": "What runs",
    "tasks": "Tasks and their resources",
    "application": "The application in YARN",
    "tensorboard": "TensorBoard",
    "restarts": "Success and restarts",
    "deadlines": "Deadlines",
    "submission": "The submission",
}
#: Stands for the name of a task type in a path.
TYPE = "<type>"


@dataclass(frozen=True)
class Option:
    """A row of the table.

    Attributes
    ----------
    name : str
        ``task_memory``: the name for `request.build_job`, and the long name on the command line. An option that only
        documents have is named by its path, ``acls.view_users``.
    type : str
        ``text``, ``choice``, ``count`` (a whole number), ``seconds``, ``memory`` or ``flag``; of several values:
        ``texts``, ``codes`` (exit codes), ``variables`` (names to texts) or ``sources`` (names to paths or URIs).
    section : str
        A key of `OPTION_SECTIONS`.
    help : str
        Its meaning, in sentences that are true at every door.
    path : tuple of str
        Its place in the job's document: ``("deadlines", "queue")``. Empty if the document does not have it.
    unit : str
        ``seconds``, ``MiB`` or ``characters``; empty when it has none.
    least : int
        The smallest number that a ``count`` takes.
    choices : tuple of str
        The words that a ``choice`` takes.
    default : str
        The default in words, if it is not one value. If this is empty, `defaults.default_of` returns the default.
    value : str
        The placeholder for its value on the command line. If this is empty, the type determines the placeholder.
    short : str
        Its short name on the command line, ``-m``.
    many : bool
        Whether the command line takes it several times.
    per_task : bool
        Whether it takes a value for all tasks, for a task type (``worker:4``) and for one task (``worker[0]:4``).
    doors : tuple of str
        Who may set it.
    """

    name: str
    type: str
    section: str
    help: str
    path: tuple[str, ...] = ()
    unit: str = ""
    least: int = 0
    choices: tuple[str, ...] = ()
    default: str = ""
    value: str = ""
    short: str = ""
    many: bool = False
    per_task: bool = False
    doors: tuple[str, ...] = EVERYWHERE


_ROWS = (
    # What runs
    Option("task_command", "text", "program",
           "The command of every task. The node runs it with bash, after it has set the variables of the task.",
           ("command",)),
    Option("command", "texts", "program", "Another command for the tasks of one type.",
           ("tasks", TYPE, "command"), value="TYPE=COMMAND", many=True),
    Option("script", "text", "program",
           "A local file that is copied into the working directory of every task. Its name is in DTF_TASK_SCRIPT, so a "
           "command may read: python ${DTF_TASK_SCRIPT} ...", ("script",), value="<script_file>", short="-s"),
    Option("input", "text", "program", "The input path. It is not interpreted; the tasks find it in DTF_INPUT_PATH.",
           ("input",), value="<input_path>", short="-i"),
    Option("output", "text", "program",
           "The output path. It is not interpreted; the tasks find it in DTF_OUTPUT_PATH. TensorBoard needs it.",
           ("output",), value="<output_path>", short="-o"),
    Option("environment", "text", "program",
           "The interpreter and its packages: python:///usr/bin/python3, venv:///folder, conda:///folder, "
           "docker://image, or an archive (.tar.gz, .tgz, .zip; a local path or a URI). Its bin folder comes first on "
           "PATH.", ("environment",), default="the nodes' own"),
    Option("docker_image", "text", "program",
           "Run the tasks in this Docker image, with YARN's Docker runtime; the nodes must be able to pull it. Input "
           "and output are mounted if they are local paths, and so are the docker_folders of the site file "
           "(HADOOP_HOME, HADOOP_CONF_DIR, JAVA_HOME of the nodes). The same as environment docker://image.",
           value="<image_name>", doors=(COMMAND_LINE, AZKABAN, OPERATOR)),
    Option("file", "sources", "program",
           "A file, or a local folder, that every task finds in its working directory under this name.",
           ("files",), value="[NAME=]<path or URI>", many=True),
    Option("archive", "sources", "program",
           "An archive that is unpacked into a folder of this name in the working directory of every task.",
           ("archives",), value="[NAME=]<path or URI>", many=True),
    Option("env", "variables", "program", "An environment variable of every task.",
           ("env",), value="NAME=VALUE", many=True),
    Option("tasks.<type>.env", "variables", "program",
           "Environment variables of the tasks of one type. They win over the variables of the job.",
           ("tasks", TYPE, "env"), doors=(AZKABAN, DOCUMENT)),
    # Tasks and their resources
    Option("cluster_requirement", "text", "tasks",
           "The task types and their instances: <type1>:<instances1>,<type2>:<instances2>,... Example: "
           "ps:2,worker:4. Type names are free. Tasks of type chief, worker and of other names must end with exit "
           "code 0. A ps runs until the job ends. An evaluator is not part of the cluster spec. Required, unless "
           "the file of spec has tasks.",
           ("tasks",), value="<requirement>", short="-r"),
    Option("custom_type", "texts", "tasks",
           "A task type whose name is meant although it looks like a misspelt chief, worker, ps or evaluator. "
           "Otherwise such a name is a fault.", ("custom_types",), value="TYPE", many=True),
    Option("tasks.<type>.instances", "count", "tasks", "How many tasks of this type there are.",
           ("tasks", TYPE, "instances"), least=1, doors=(AZKABAN, DOCUMENT)),
    Option("task_memory", "memory", "tasks", "Memory of a task, in MiB or with a unit: 8192, 512m, 8 GiB.",
           ("tasks", TYPE, "memory"), unit="MiB", short="-m", many=True, per_task=True),
    Option("task_vcores", "count", "tasks", "Virtual cores of a task.",
           ("tasks", TYPE, "vcores"), least=1, value="<vcores>", short="-c", many=True, per_task=True),
    Option("task_gpus", "count", "tasks", "GPUs (yarn.io/gpu) of a task.",
           ("tasks", TYPE, "gpus"), value="<gpus>", many=True, per_task=True),
    Option("node_label", "texts", "tasks",
           "YARN node label expression of the application, or of the containers of one task type.",
           ("node_label",), value="<label> | <type>:<label>", many=True),
    Option("tasks.<type>.node_label", "text", "tasks", "YARN node label expression of the containers of one task type.",
           ("tasks", TYPE, "node_label"), doors=(AZKABAN, DOCUMENT)),
    Option("tasks.<type>.indices", "variables", "tasks",
           "Memory, vcores and gpus of single tasks, by task index; the rest comes from their task type.",
           ("tasks", TYPE, "indices"), doors=(DOCUMENT,)),
    Option("tasks.<type>.awaited", "flag", "tasks", "Whether the job waits until these tasks end.",
           ("tasks", TYPE, "awaited"), default="true; false for ps", doors=(AZKABAN, DOCUMENT)),
    Option("tasks.<type>.fatal", "flag", "tasks", "Whether the job fails when one of these tasks fails.",
           ("tasks", TYPE, "fatal"), default="true", doors=(AZKABAN, DOCUMENT)),
    Option("tasks.<type>.in_cluster", "flag", "tasks", "Whether these tasks are part of the cluster spec.",
           ("tasks", TYPE, "in_cluster"), default="true; false for evaluator", doors=(AZKABAN, DOCUMENT)),
    Option("tasks.<type>.hold_port", "flag", "tasks",
           "Whether the reserved port stays bound, with SO_REUSEPORT, while the command runs. TensorFlow's servers can "
           "bind such a port; set false for a program that cannot.", ("tasks", TYPE, "hold_port"),
           doors=(AZKABAN, DOCUMENT)),
    Option("hold_port", "texts", "tasks",
           "Whether the reserved port of each task stays bound, with SO_REUSEPORT, while the command runs; TYPE=false "
           "for the tasks of one type. With false a plain bind succeeds, and another program may take the port first; "
           "that counts as a loss of the container.", ("tasks", TYPE, "hold_port"),
           value="false | TYPE=false", many=True, doors=(COMMAND_LINE, OPERATOR)),
    # The application in YARN
    Option("name", "text", "application", "The name of the application in YARN.", ("name",), short="-n"),
    Option("queue", "text", "application", "The queue in YARN.", ("queue",), short="-q"),
    Option("user", "text", "application",
           "The owner of the application, if the cluster allows the submitting user to act for others.",
           ("user",), default="the submitting user", doors=(COMMAND_LINE, OPERATOR, DOCUMENT)),
    Option("priority", "count", "application", "The priority in the queue; a larger number comes first.",
           ("priority",)),
    Option("tag", "texts", "application", "A YARN application tag. A job has at most 6.", ("tags",), many=True),
    Option("am_memory", "memory", "application", "Memory of the application master, in MiB or with a unit.",
           ("am_memory",), unit="MiB"),
    Option("am_vcores", "count", "application", "Virtual cores of the application master.",
           ("am_vcores",), least=1, value="<vcores>"),
    Option("file_system", "texts", "application",
           "Another file system for which the job needs a delegation token: hdfs://other.",
           ("file_systems",), value="<URI>", many=True),
    Option("report_log_tail", "count", "application",
           "How much of the log of a failed task the report carries, at most 8192; 0 for none.",
           ("report_log_tail",), unit="characters", value="<characters>"),
    Option("acls.view_users", "texts", "application", "Users who may view the application; * for all.",
           ("acls", "view_users"), default="none", doors=(DOCUMENT,)),
    Option("acls.view_groups", "texts", "application", "Groups that may view the application.",
           ("acls", "view_groups"), default="none", doors=(DOCUMENT,)),
    Option("acls.modify_users", "texts", "application", "Users who may change or kill the application; * for all.",
           ("acls", "modify_users"), default="none", doors=(DOCUMENT,)),
    Option("acls.modify_groups", "texts", "application", "Groups that may change or kill the application.",
           ("acls", "modify_groups"), default="none", doors=(DOCUMENT,)),
    Option("acls.ui_users", "texts", "application", "Further users who may open the pages of the job.",
           ("acls", "ui_users"), default="none", doors=(DOCUMENT,)),
    # TensorBoard
    Option("tensorboard", "flag", "tensorboard",
           "Run TensorBoard on the output path, as a separate task, until the job ends. It is shown through YARN's "
           "proxy; its address is in the report, on the terminal and on the page of the application.",
           ("tensorboard",), short="-t"),
    Option("tensorboard_memory", "memory", "tensorboard", "Memory of the TensorBoard task, in MiB or with a unit.",
           ("tensorboard", "memory"), unit="MiB"),
    Option("tensorboard_vcores", "count", "tensorboard", "Virtual cores of the TensorBoard task.",
           ("tensorboard", "vcores"), least=1, value="<vcores>"),
    Option("tensorboard_linger", "seconds", "tensorboard",
           "How long TensorBoard continues after the last awaited task has ended.",
           ("tensorboard", "linger"), unit="seconds"),
    Option("tensorboard_logdir", "text", "tensorboard",
           "The folder that TensorBoard shows, if it is not the output path: a path of the nodes, or a URL such as "
           "hdfs:///models/digits/logs.", ("tensorboard", "logdir"), value="<path or URL>"),
    Option("tensorboard_args", "text", "tensorboard",
           "Further arguments of the program tensorboard: --samples_per_plugin=images=100.",
           ("tensorboard", "args"), value="<arguments>"),
    # Success and restarts
    Option("success", "choice", "restarts",
           "all_workers: the job succeeds when every awaited task has ended with exit code 0. chief: the job succeeds, "
           "and ends, when the chief has ended with exit code 0.", ("success",), choices=("all_workers", "chief")),
    Option("restart", "choice", "restarts",
           "What happens after a failure. never: the job ends. task: the failed command starts again on its port while "
           "the other tasks continue. cluster: all commands start again with a new cluster spec.",
           ("restart", "mode"), choices=("never", "task", "cluster")),
    Option("max_restarts", "count", "restarts", "How many failures of the program lead to a restart.",
           ("restart", "max_restarts"), default="0 with restart never, else 3"),
    Option("max_container_losses", "count", "restarts",
           "How many containers may be preempted, lost with their node, killed from outside or silent. "
           "Each is replaced.",
           ("restart", "max_container_losses")),
    Option("restart_backoff", "seconds", "restarts",
           "The pause before the first restart. It doubles with each further restart, up to 300 seconds.",
           ("restart", "backoff"), unit="seconds"),
    Option("retry_exit_codes", "codes", "restarts", "Only these exit codes lead to a restart.",
           ("restart", "retry_exit_codes"), default="all", value="<code,...>", many=True),
    Option("fatal_exit_codes", "codes", "restarts",
           "These exit codes end the job, even when restarts are left.",
           ("restart", "fatal_exit_codes"), default="none", value="<code,...>", many=True),
    Option("allocation_retries", "count", "restarts",
           "How often a waiting client submits the job again after it has missed its allocation deadline. Before each "
           "submission it pauses for 10, 20, 30, ... seconds, times a random number from 0.5 to 1.5.",
           ("restart", "allocation_retries")),
    # Deadlines
    Option("queue_timeout", "seconds", "deadlines",
           "From submission until the application master runs, while a client waits; 0 for no limit.",
           ("deadlines", "queue"), unit="seconds"),
    Option("allocation_timeout", "seconds", "deadlines", "Until every task has a container; 0 for no limit.",
           ("deadlines", "allocation"), unit="seconds"),
    Option("registration_timeout", "seconds", "deadlines",
           "From the start of a container until its agent calls the coordinator; 0 for no limit.",
           ("deadlines", "registration"), unit="seconds"),
    Option("heartbeat_timeout", "seconds", "deadlines", "How long a task may be silent, at least 5; 0 for no limit.",
           ("deadlines", "heartbeat"), unit="seconds"),
    Option("execution_timeout", "seconds", "deadlines",
           "From the first cluster spec until the end of the job; 0 for no limit.",
           ("deadlines", "execution"), unit="seconds"),
    Option("total_timeout", "seconds", "deadlines",
           "From the start of the application master until the end of the job; 0 for no limit.",
           ("deadlines", "total"), unit="seconds"),
    Option("lease", "seconds", "deadlines",
           "How long the job continues without a client that waits for it; then YARN ends it. The waiting client moves "
           "the end, so the training ends when the client's machine is gone. At least 20; 0 for no lease.",
           ("lease",), unit="seconds",
           default="900 on Azkaban and Oozie, for ytf-submit with wait and without run_id, and for Launcher.run "
                   "without identity; else no lease"),
    Option("stop_grace", "seconds", "deadlines", "Between SIGTERM and SIGKILL when a command is ended.",
           ("deadlines", "stop_grace"), unit="seconds"),
    # The submission
    Option("spec", "text", "submission",
           "The job as a YAML file. Other options override it. ytf-submit --dry_run prints such a file.",
           value="<job.yaml>", doors=(COMMAND_LINE, AZKABAN, OPERATOR)),
    Option("client", "flag", "submission",
           "Run the command on this machine too, once the cluster is complete, as a local task that is not part of the "
           "cluster spec. It has the variables of the other tasks, with DTF_TASK_JOB_NAME=client and DTF_TASK_INDEX=0, "
           "and keeps the terminal. Implies wait; its failure does not change the result of the job.",
           doors=(COMMAND_LINE,)),
    Option("wait", "flag", "submission",
           "Follow the job until it ends, and exit with the code of its reason. Ctrl-C and SIGTERM kill the "
           "application.",
           doors=(COMMAND_LINE,)),
    Option("local", "flag", "submission",
           "Run the job on this machine without YARN and Java: its tasks are processes here, and the terminal shows "
           "their output. The same as resourcemanager local://, and implies wait.", doors=(COMMAND_LINE,)),
    Option("logs", "text", "submission",
           "With wait: print the lines of these tasks to stderr as they come: chief (the chief, else worker 0, else "
           "the first task), all, none, or names such as worker:0 and worker:*, comma-separated.",
           default="chief for a job with one task, else none", value="chief | all | none | <type:index>",
           doors=(COMMAND_LINE,)),
    Option("no_logs", "flag", "submission", "The same as logs none.", doors=(COMMAND_LINE,)),
    Option("json", "flag", "submission", "Print the report as JSON on stdout instead of the application id.",
           doors=(COMMAND_LINE,)),
    Option("output_properties", "text", "submission",
           "With wait: write status, reason, application_id, exit_code, output_path, tracking_url, the metrics and the "
           "message as name=value lines to this file, at most 2048 bytes, for Oozie, make or Luigi; - is stdout, "
           "which then has nothing else.", value="<file> | -", doors=(COMMAND_LINE,)),
    Option("dry_run", "flag", "submission",
           "Print the job and the application as YAML. Submit nothing and ask no host.", doors=(COMMAND_LINE, AZKABAN)),
    Option("strict_placement", "flag", "submission",
           "Refuse a task that no running node can hold, and a job that all of them, or the queue's share, can't hold "
           "together; without this option the client only warns. A task above the maximum allocation of YARN is "
           "always refused.", doors=(COMMAND_LINE, AZKABAN, OPERATOR)),
    Option("submit_with", "choice", "submission",
           "rest submits over plain HTTP, skein with Skein's own client (a JVM); auto uses rest where it can.",
           choices=("auto", "rest", "skein"), default="auto", doors=(COMMAND_LINE, OPERATOR)),
    Option("run_id", "text", "submission",
           "The name of the training. Of all calls with the same name and generation, exactly one submits an "
           "application; the others attach to it, or return its report once it has succeeded. Where Skein's Java "
           "client submits (see submit_with), two calls at the same moment may both submit. When one sees the other by "
           "its YARN tags, the younger application is killed.", value="<name>", doors=(COMMAND_LINE,)),
    Option("generation", "count", "submission",
           "Together with run_id: a larger number trains again, and ends the applications of older generations.",
           default="0", doors=(COMMAND_LINE,)),
    Option("resourcemanager", "text", "submission",
           "Address of the ResourceManager, http://host:8088; several are comma-separated. local:// or local:///folder "
           "runs the job on this machine, and keeps it in the folder. If it is not given: "
           "YTF_RESOURCEMANAGER, then site.yaml, then HADOOP_CONF_DIR.",
           value="<URL>", doors=(COMMAND_LINE,)),
    Option("verbose", "flag", "submission", "Log each step of the submission to stderr.",
           short="-v", doors=(COMMAND_LINE,)),
)
#: Every option by its name, in the order of the documents.
OPTIONS = {option.name: option for option in _ROWS}


def options_of(door: str, *, submission: bool = True) -> dict[str, Option]:
    """Return the options that a door may set, by name.

    Parameters
    ----------
    door : str
        `COMMAND_LINE`, `AZKABAN`, `OPERATOR` or `DOCUMENT`.
    submission : bool, optional
        Whether to include the options of the section ``submission``. Default True.
    """
    return {name: option for name, option in OPTIONS.items()
            if door in option.doors and (submission or option.section != "submission")}
