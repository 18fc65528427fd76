"""The contract of coordinator, agents and user programs: task ids, the job file, the environment.

`submit.application` writes the job file, which travels with the job. The environment of a user's program is a pure
function of the job file and the cluster spec.
"""

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .frameworks import FRAMEWORKS, TENSORFLOW, find_position
from .masking import secrets_of
from .roles import EVALUATOR

if TYPE_CHECKING:
    from .committed_output import CommitPlan

#: YARN's name of GPUs.
GPU = "yarn.io/gpu"
#: Version of the job file and of the protocol between coordinator and agents.
VERSION = 1
JOB_FILE = ".ytf.job.json"
RUNTIME_FILE = ".ytf.zip"
#: Begins the name of a link that the agent replaces by the names of the file.
LINK_KEY = ".ytf.link"
#: The command of tasks that only serve: TensorFlow's server.
SERVER_COMMAND = "ytf-server"
#: Where Python finds our `sitecustomize`, by which a program opens ``hdfs://`` and writes its stacks.
PROGRAM_PATH = RUNTIME_FILE + "/program"
#: The variable with the name of a job's script.
SCRIPT_VARIABLE = "DTF_TASK_SCRIPT"
RESULT_FILE = ".ytf.result.json"
METRICS_FILE = ".ytf.metrics.jsonl"
#: Exists once the training of a job whose evaluators then have some time is over.
TRAINED_FILE = ".ytf.trained"
CERTIFICATE_FILE = ".skein.crt"
KEY_FILE = ".skein.pem"
#: What a Python program has printed reaches its log at once, and a crash in a C library leaves its stack there.
PYTHON_OUTPUT = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
#: How the agent's own lines in a task's log begin, and those of them that a reader of the program needs, too.
AGENT_LINE, AGENT_WARNING = "tf_yarn_ops agent: ", "tf_yarn_ops agent: warning: "
#: The folder of temporary files in the working directory, which YARN makes and deletes with it.
TEMPORARY_FOLDER = "tmp"
#: The folder in the working directory into which YARN unpacks an archive environment.
ENVIRONMENT_FOLDER = "environment"
#: The name of a function's value among the metrics of the report.
RETURNED = "returned"
#: The folder with a job's function, and the file in it.
FUNCTION_FOLDER, FUNCTION_PICKLE = "ytf_function", "function.pkl"
#: The type of JSON below the tracking URL. Knox rewrites what looks like one of YARN's paths in each string of
#: application/json.
DOCUMENT_TYPE = "application/vnd.tf-yarn-ops+json"
#: TensorBoard's page below the tracking URL.
TENSORBOARD_PAGE = "pages/tensorboard/"
#: The form of the id of an application in YARN, and of a job on this machine: a time in milliseconds, a number.
APPLICATION_ID = r"(?:application|local)_(\d+)_(\d+)"
#: How each tag begins that we give an application; the tag of a job without an identity.
TAG_PREFIX, JOB_TAG = "tfy", "tfy-job"
#: The variable of the application master with the secret of `report.verdict_tag`; no task gets it.
VERDICT_SECRET = "YTF_VERDICT_SECRET"
#: Longest environment string or argument, bytes: Linux allows 128 KiB, of which the rest is left for the name.
MAX_STRING = 120 * 1024
#: Longest result, bytes: the whole result must fit into the application's diagnostics.
MAX_RESULT = 8 * 1024

#: ``{"worker": ["host:port", ...]}``, one entry per task index.
ClusterSpec = Mapping[str, Sequence[str]]


def write_line(begin: str, text: str, *args: object) -> None:
    """Write a line, such as one that begins with `AGENT_LINE`, to the container's log."""
    os.write(2, ("%s%s\n" % (begin, text % args)).encode("utf-8", "replace"))


def runtime_command(part: str, flags: str = "-I -S") -> str:
    """Return the command of a task that runs a part of the runtime zip, a word of `entry`."""
    return 'exec "$YTF_PYTHON" %s %s %s' % (flags, RUNTIME_FILE, part)


class TaskId(NamedTuple):
    """A task: type and index; prints as ``worker:1``."""

    type: str
    index: int  # type: ignore[assignment]  # hides tuple.index

    def __str__(self) -> str:
        return "%s:%d" % self

    @classmethod
    def parse(cls, text: str) -> "TaskId":
        """Return the task of ``worker:1``; raise ValueError for another form."""
        task_type, _, index = text.rpartition(":")
        if not task_type or not index.isdigit():
            raise ValueError("%r is not a task such as worker:1" % text)
        return cls(task_type, int(index))


class TypePlan(NamedTuple):
    """One task type in the job file; `in_cluster`, `awaited` and `fatal` are its row in the table of `roles`.

    A task for which YARN has no GPU sees those of its node only if `sees_gpus` is true. `budgets` has the type's own
    ``max_restarts`` and ``max_container_losses``. `placed` has ``path`` and ``docker_image`` of its own environment,
    as in `Job`. `after` names the types that must succeed before its tasks start. `links` has the name under which YARN
    links a file of the working directory, by each further name that the file gets.
    """

    instances: int
    command: str
    env: Mapping[str, str]
    in_cluster: bool
    awaited: bool
    fatal: bool
    hold_port: bool
    sees_gpus: bool = False
    budgets: Mapping[str, int] = {}
    placed: Mapping[str, Any] = {}
    after: Sequence[str] = ()
    links: Mapping[str, str] = {}


class ServicePlan(NamedTuple):
    """One Skein service: the task type of its containers, the task indices that they may take, and their size.

    The memory is in MiB; `resources` has amounts of other resources by their names in YARN.
    """

    type: str
    indices: Sequence[int]
    memory: int = 0
    vcores: int = 0
    gpus: int = 0
    resources: Mapping[str, int] = {}


#: All users, in YARN's ACLs.
EVERYBODY = "*"


class HistoryPlan(NamedTuple):
    """Where the coordinator writes the record of the ended job, and who may read it.

    Attributes
    ----------
    folder : str
        The folder of the history in the file system.
    user : str
        The user of requests on an unsecured cluster.
    urls : sequence of str
        HTTP addresses of the NameNodes, or of an HttpFS.
    root : str
        The local folder that is ``/`` of the file system, if it is a mount of a local one; else empty.
    view_users, view_groups : sequence of str
        Of the application's view ACLs.
    """

    folder: str
    user: str
    urls: Sequence[str] = ()
    root: str = ""
    view_users: Sequence[str] = ()
    view_groups: Sequence[str] = ()


class ViewersPlan(NamedTuple):
    """Who may open the pages of a job besides its owner.

    Attributes
    ----------
    users, groups : sequence of str
        ``*`` for all.
    memberships : mapping of str to sequence of str
        Groups of the users that Hadoop's configuration itself names; the node knows those of the others.
    """

    users: Sequence[str] = ()
    groups: Sequence[str] = ()
    memberships: Mapping[str, Sequence[str]] = {}


class TensorBoardPlan(NamedTuple):
    """The TensorBoard task in the job file.

    Attributes
    ----------
    logdir : str
        The folder that TensorBoard shows: a path of the node, or a URL.
    arguments : sequence of str
        Further arguments of the program.
    direct : bool
        Whether everybody may reach TensorBoard at its task's port.
    """

    logdir: str
    arguments: Sequence[str] = ()
    direct: bool = False


class Job(NamedTuple):
    """The job file.

    Attributes
    ----------
    version : int
    name, queue, user : str
    program : str
        The job's command, DTF_TASK_PROGRAM.
    types : mapping of str to TypePlan
    services : mapping of str to ServicePlan
    ports : sequence of int
        Ports on which the coordinator may listen on the application master's host, in this order.
    path : sequence of str
        Folders that come first on PATH; relative ones are below the working directory.
    script, input, output, docker_image : str or None
    success : str
        ``all_workers`` or ``chief``.
    restart, deadlines : mapping
        The fields of `RestartPolicy` and `Deadlines` of `job.parts`, seconds.
    linger : float
        Seconds for which TensorBoard continues after a success, from the end of the commit and of the evaluators' time.
    report_log_tail : int
        Characters of a failed task's log in the report.
    resourcemanagers : sequence of str
        URLs, for what Skein does not say: the times and nodes of the job, and whether YARN can be reached.
    authorities : str
        Certificates (PEM) of the CAs that signed those of the daemons; empty: the node's own.
    version_of_package : str
    history : HistoryPlan or None
        None keeps no history.
    tensorboard : TensorBoardPlan or None
    mirror : str
        Which tasks write their output through from a local copy: ``chief``, ``all``, or ``off``.
    mirror_input : int
        Largest size of a local copy of the input, MiB; 0 for none.
    options : mapping
        The job as ``--spec`` reads it, with secrets masked, for its page.
    viewers : ViewersPlan or None
        None lets everybody open the pages who reaches them.
    ui_url : str
        Address of the site's ``ytf ui``, which keeps the job's page after the end; may be empty.
    framework : str
        A word of `FRAMEWORKS`.
    namenodes : mapping of str to sequence of str
        HTTP addresses of the NameNodes, or of an HttpFS, by the authority of URLs; that of the default file system is
        empty.
    commit : CommitPlan or None
        None gives the programs the output itself.
    allow_exec : bool
        Whether ``ytf exec`` runs commands beside its tasks.
    procs_per_task : int
        How often each task of the cluster spec starts its command.
    """

    version: int
    name: str
    queue: str
    user: str
    program: str
    types: Mapping[str, TypePlan]
    services: Mapping[str, ServicePlan]
    ports: Sequence[int]
    path: Sequence[str]
    script: Optional[str]
    input: Optional[str]
    output: Optional[str]
    docker_image: Optional[str]
    success: str
    restart: Mapping[str, Any]
    deadlines: Mapping[str, float]
    linger: float
    report_log_tail: int
    resourcemanagers: Sequence[str]
    version_of_package: str
    authorities: str = ""
    history: Optional[HistoryPlan] = None
    tensorboard: Optional[TensorBoardPlan] = None
    mirror: str = "off"
    mirror_input: int = 0
    options: Mapping[str, Any] = {}
    viewers: Optional[ViewersPlan] = None
    ui_url: str = ""
    framework: str = TENSORFLOW
    namenodes: Mapping[str, Sequence[str]] = {}
    commit: "Optional[CommitPlan]" = None
    allow_exec: bool = False
    procs_per_task: int = 1

    def working_output(self, application_id: str) -> Optional[str]:
        """Return where the tasks of an application write: the output, or the folder that is committed."""
        return self.commit.working_url(application_id) if self.commit else self.output

    def lasting_page(self, application_id: str) -> Optional[str]:
        """Return the address of the job's page after the end; None if the site has no such pages."""
        return f"{self.ui_url.rstrip('/')}/jobs/{application_id}" if self.ui_url else None

    def tasks(self) -> List[TaskId]:
        """Return all tasks of the job, in the order of the request."""
        return [TaskId(name, index) for name, plan in self.types.items() for index in range(plan.instances)]

    @property
    def secrets(self) -> Set[str]:
        """The secret values of all tasks, as `masking.secrets_of` finds them."""
        return secrets_of([plan._asdict() for plan in self.types.values()])

    def image_of(self, task_type: str) -> Optional[str]:
        """Return the Docker image of a type's tasks."""
        plan = self.types.get(task_type)
        return plan.placed["docker_image"] if plan and plan.placed else self.docker_image

    def losses_of(self, task_type: str) -> int:
        """Return how many containers of a type may be lost."""
        return self.types[task_type].budgets.get("max_container_losses", self.restart["max_container_losses"])

    def hides_gpus(self, task: TaskId) -> bool:
        """Return whether a task must see no GPU: without isolation its program would take those of other tasks."""
        plan = self.types.get(task.type)
        return (
            plan is not None
            and not plan.sees_gpus
            and not any(
                service.gpus or service.resources
                for service in self.services.values()
                if service.type == task.type and task.index in service.indices
            )
        )

    def gpus_of(self, task: TaskId) -> List[str]:
        """Return the numbers of a task's GPUs where its container sees no others."""
        services = [one for one in self.services.values() if one.type == task.type and task.index in one.indices]
        return [str(number) for number in range(services[0].gpus if services else 0)]

    @property
    def workers_rejoin(self) -> bool:
        """Whether a lost worker is replaced alone: ParameterServerStrategy's chief connects to it again."""
        return (
            self.restart["mode"] == "task"
            and self.framework == TENSORFLOW
            and {"chief", "worker", "ps"} <= {*self.types}
        )

    def leads(self, task: TaskId) -> bool:
        """Return whether a task is the chief or, without a chief, worker 0."""
        return task == TaskId("chief" if "chief" in self.types else "worker", 0)


def _read_commit(**fields: Any) -> "CommitPlan":
    from .committed_output import CommitPlan  # few jobs have one

    return CommitPlan(**fields)


#: The plans that a job may lack.
_PLANS: Mapping[str, Any] = {
    "history": HistoryPlan,
    "tensorboard": TensorBoardPlan,
    "viewers": ViewersPlan,
    "commit": _read_commit,
}


def dump_job(job: Job) -> bytes:
    """Return the content of the job file."""
    document = job._asdict()
    for name in ("types", "services"):
        document[name] = {key: plan._asdict() for key, plan in document[name].items()}
    for name in _PLANS:
        document[name] = document[name]._asdict() if document[name] else None
    return json.dumps(document, indent=1, ensure_ascii=True).encode()


def load_job(content: bytes) -> Job:
    """Return the job of a job file; raise ValueError if another version wrote it."""
    document = json.loads(content)
    if document.get("version") != VERSION:
        raise ValueError("job file of version %r, this runtime reads %d" % (document.get("version"), VERSION))
    document["types"] = {name: TypePlan(**plan) for name, plan in document["types"].items()}
    document["services"] = {name: ServicePlan(**plan) for name, plan in document["services"].items()}
    for name, plan in _PLANS.items():
        document[name] = plan(**document[name]) if document.get(name) else None
    return Job(**document)


def read_job(folder: str = "") -> Job:
    """Return the job of the job file in a folder; the default is the working directory of a container."""
    with open(os.path.join(folder, JOB_FILE), "rb") as file:
        return load_job(file.read())


def cluster_spec(job: Job, addresses: Mapping[TaskId, str]) -> Dict[str, List[str]]:
    """Return the cluster spec: for each of its types ``host:port`` in the order of the task index."""
    return {
        name: [addresses[TaskId(name, index)] for index in range(plan.instances)]
        for name, plan in job.types.items()
        if plan.in_cluster
    }


def hosts_variable(task_type: str) -> str:
    """Return ``DTF_<TYPE>_HOSTS``: upper case, ``_`` for other characters (``my-job``: DTF_MY_JOB_HOSTS)."""
    return "DTF_%s_HOSTS" % re.sub("[^A-Z0-9]", "_", task_type.upper())


#: Variables by which YARN names folders of its nodes, which an image may lack.
_NODE_FOLDERS = (
    "JAVA_HOME", "HADOOP_HOME", "HADOOP_CONF_DIR", "HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_YARN_HOME",
    "HADOOP_MAPRED_HOME",
)  # fmt: skip


def task_environment(
    job: Job,
    task: TaskId,
    cluster: ClusterSpec,
    container: Mapping[str, str],
    *,
    application_id: str,
    round_number: int,
    address: str,
    folder: str,
) -> Dict[str, str]:
    """Return the whole environment of a user's program.

    Parameters
    ----------
    job : Job
    task : TaskId
        The task of the program; a type outside the job (``client``) gets the job's own variables.
    cluster : mapping of str to list of str
        The published cluster spec.
    container : mapping of str to str
        The environment that YARN gave the container; the result contains it.
    application_id : str
    round_number : int
        The number of this publication of the cluster spec, from 1.
    address : str
        ``host:port`` of this task; empty for the client's program, which has none.
    folder : str
        The working directory, absolute.

    Returns
    -------
    dict of str to str
        User variables replace the container's; ours replace the user's.

    References
    ----------
    Seed 001, "Task Execution Environment"; `frameworks`; TonY's CLUSTER_SPEC, JOB_NAME, TASK_INDEX, TASK_NUM.
    """
    plan = job.types.get(task.type)
    env = dict(container)
    if job.image_of(task.type):  # YARN names folders of the node
        for name in _NODE_FOLDERS:
            if not os.path.isdir(env.get(name, "")):
                env.pop(name, None)
    if job.hides_gpus(task):
        env.update(CUDA_VISIBLE_DEVICES="", NVIDIA_VISIBLE_DEVICES="")
    if plan:
        env.update(PYTHON_OUTPUT)
        env.update(plan.env)
    first = plan.placed["path"] if plan and plan.placed else job.path
    path = [os.path.join(folder, entry) for entry in first]
    env["PATH"] = ":".join([*path, env.get("PATH") or "/usr/local/bin:/usr/bin:/bin"])
    # YARN links files from its cache, and Python looks for modules next to the target of a link: name the folder.
    env["PYTHONPATH"] = ":".join(filter(None, [os.path.join(folder, PROGRAM_PATH), folder, env.get("PYTHONPATH")]))
    host, _, port = address.rpartition(":")
    framework = FRAMEWORKS[job.framework]
    position = find_position(cluster, task.type, task.index, application_id, round_number, job.procs_per_task)
    if position.number >= 0 or not framework.equal:
        env.update(framework.variables(position))
    env.update(
        {
            "CLUSTER_SPEC": json.dumps(cluster, separators=(",", ":")),
            "JOB_NAME": task.type,
            "TASK_INDEX": str(task.index),
            "TASK_NUM": str(plan.instances if plan else 1),
            "DTF_TASK_JOB_NAME": task.type,
            "DTF_TASK_INDEX": str(task.index),
            "DTF_TASK_PROGRAM": plan.command if plan else job.program,
            "YTF_APPLICATION_ID": application_id,
            "YTF_ROUND": str(round_number),
            "YTF_PYTHON": sys.executable,
            "YTF_RESULT_FILE": os.path.join(folder, RESULT_FILE),
            "YTF_METRICS_FILE": os.path.join(folder, METRICS_FILE),
        }
    )
    optional: Tuple[Tuple[str, Optional[str]], ...] = (
        (SCRIPT_VARIABLE, job.script),
        ("DTF_INPUT_PATH", job.input),
        ("DTF_OUTPUT_PATH", job.working_output(application_id)),
        ("DTF_OUT_PATH", job.working_output(application_id)),
        ("DTF_DOCKER_IMAGE", job.image_of(task.type)),
        ("YTF_HOST", host),
        ("YTF_PORT", port),
        ("TF_GRPC_REUSE_PORT", "true" if plan and plan.hold_port and job.framework == TENSORFLOW else None),
    )
    if task.type == EVALUATOR and job.deadlines["evaluator_grace"]:
        env["YTF_TRAINED_FILE"] = os.path.join(folder, TRAINED_FILE)
    env.update({name: value for name, value in optional if value})
    env.update({hosts_variable(name): ",".join(hosts) for name, hosts in cluster.items()})
    return env


def process_environments(job: Job, env: Mapping[str, str]) -> List[Dict[str, str]]:
    """Return the environments of the processes of a task, by local rank; none for a task with one process.

    Parameters
    ----------
    job : Job
    env : mapping of str to str
        The environment of the task.

    References
    ----------
    torchrun's environment variables, and its OMP_NUM_THREADS=1.
    """
    cluster, number = json.loads(env["CLUSTER_SPEC"]), job.procs_per_task
    task = TaskId(env["JOB_NAME"], int(env["TASK_INDEX"]))
    if number == 1 or task.type not in cluster:
        return []
    framework = FRAMEWORKS[job.framework]
    position = find_position(cluster, *task, env["YTF_APPLICATION_ID"], int(env["YTF_ROUND"]), number)
    visible = env.get("CUDA_VISIBLE_DEVICES")  # empty: the task hides its GPUs
    gpus = job.gpus_of(task) if visible is None else [name for name in visible.split(",") if name]
    share = len(gpus) // number if framework.divides_gpus else 0
    environments = []
    for rank in range(number):
        own = {"OMP_NUM_THREADS": "1", **env, **framework.variables(position._replace(local_rank=rank))}
        own.update(LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(number))
        if share:
            own["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[rank * share : (rank + 1) * share])
        if rank:  # only the files of process 0 are read
            own.update({name: "%s.%d" % (env[name], rank) for name in ("YTF_RESULT_FILE", "YTF_METRICS_FILE")})
        environments.append(own)
    return environments
