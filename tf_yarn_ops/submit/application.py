"""`build`: a pure function from a `JobSpec` to the Skein application; ``--dry_run`` prints its result.

Input: a valid spec. Output: the Skein application, whose files still have to be staged, and the job file that
coordinator and agents read.
"""

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .. import __version__
from ..errors import Fault
from ..hadoop.cluster import Cluster
from ..hadoop.fast_import import import_skein
from ..hadoop.site import Site
from ..hadoop.tls import read_authorities
from ..job.parts import Acls, Resources
from ..job.spec import JobFault, JobSpec, overlap_faults
from ..runtime.common.committed_output import NEW, OFF, REPLACE, CommitPlan, split_location, training_of
from ..runtime.common.contract import (
    ENVIRONMENT_FOLDER,
    EVERYBODY,
    GPU,
    JOB_FILE,
    LINK_KEY,
    RUNTIME_FILE,
    VERSION,
    HistoryPlan,
    Job,
    ServicePlan,
    TensorBoardPlan,
    TypePlan,
    ViewersPlan,
    runtime_command,
)
from ..runtime.common.frameworks import FRAMEWORKS
from ..runtime.common.masking import mask_options
from ..runtime.common.protocol import PORTS
from ..runtime.common.roles import ROLES, TENSORBOARD
from ..validation import check_faults
from .container_environment import ANY_PYTHON, ContainerEnvironment, build_container_environment

if TYPE_CHECKING:
    import skein

#: A name that bash, Java's paths and URLs take literally, and every file system of a node.
PLAIN_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._+-]{0,199}")
#: Placeholders for files that are made during the submission.
RUNTIME_SOURCE = "ytf:///runtime.zip"
JOB_SOURCE = "ytf:///job.json"

FPGA = "yarn.io/fpga"

_SCRIPT = f'exec {{interpreter}} {{flags}} {RUNTIME_FILE} {{part}} "$SKEIN_APPLICATION_ID"\n'

#: Without the environment's interpreter, any Python of the node reports its name as the end of the application.
_STAND_IN = (
    f"command -v {{interpreter}} >/dev/null || exec {ANY_PYTHON} -u {RUNTIME_FILE} coordinator "
    '"$SKEIN_APPLICATION_ID" {interpreter}\n'
)


def build(spec: JobSpec, site: Site | None = None, job: Job | None = None) -> "skein.ApplicationSpec":
    """Return the Skein application of a job.

    Parameters
    ----------
    spec : JobSpec
    site : Site, optional
        For the JVM options of the application master and the folders to mount into Docker containers. Default:
        ``Site()``.
    job : Job, optional
        The job file, whose viewers say whether the cluster enforces view ACLs. Default: `build_runtime_job`.

    Returns
    -------
    skein.ApplicationSpec
        Every service allows failures, so that only the coordinator decides. The
        sources ``ytf:///runtime.zip`` and ``ytf:///job.json`` are placeholders.
    """
    skein = import_skein()
    site, job = site or Site(), job or build_runtime_job(spec)
    environments = place_environments(spec, site.docker_folders)
    placed = environments[""]
    ours = {
        RUNTIME_FILE: skein.File(RUNTIME_SOURCE, type="file"),
        JOB_FILE: skein.File(JOB_SOURCE, type="file", visibility="application"),
    }
    places = resource_places(spec)

    def files_in(inside: ContainerEnvironment) -> dict[str, Any]:
        given = user_files(spec, inside)
        links = link_keys(given)
        return ours | {links.get(name, name): skein.File(*file) for name, file in given.items()}

    services = {
        name: skein.Service(
            instances=len(plan.indices),
            resources=skein.Resources(
                memory=plan.memory,
                vcores=plan.vcores,
                **{"gpus": plan.gpus, **{places[name]: amount for name, amount in plan.resources.items()}},
            ),
            script=_agent_script(environments.get(plan.type, placed), plan.type),
            files=files_in(environments.get(plan.type, placed)),
            env=dict(environments.get(plan.type, placed).variables),
            node_label=(spec.tasks[plan.type].node_label or "") if plan.type in spec.tasks else "",
            max_restarts=job.losses_of(plan.type),
            allow_failures=True,
        )
        for name, plan in job.services.items()
    }
    acls = {name: list(value) for name, value in asdict(spec.acls).items()}
    enable = job.viewers is not None or any(acls.values())
    # Skein's pages know neither groups nor administrators; those of the coordinator do.
    acls["ui_users"] = [EVERYBODY] if enable else []
    master = skein.Master(
        resources=skein.Resources(memory=spec.am_memory, vcores=spec.am_vcores),
        script=_coordinator_script(placed),
        files=ours | {name: skein.File(source, type="archive") for name, source in placed.archives.items()},
        # Not the tasks' variables for Docker: their image may lack Java.
        env={"JDK_JAVA_OPTIONS": site.am_java_options} if site.am_java_options else {},
    )
    return skein.ApplicationSpec(
        name=spec.name,
        queue=spec.queue,
        user=spec.user or "",
        node_label=spec.node_label or "",
        tags={tag.lower() for tag in spec.tags},
        file_systems=list(spec.file_systems),
        acls=skein.ACLs(enable=enable, **acls),
        max_attempts=1,
        master=master,
        services=services,
    )


def plan_runtime_job(cluster: Cluster, spec: JobSpec, number: int, tags: Iterable[str] = ()) -> Job:
    """Return the job as `build_runtime_job`, with what its cluster adds.

    Parameters
    ----------
    cluster : Cluster
    spec : JobSpec
    number : int
        Chooses the coordinator's ports: the number in the application id, or a random one.
    tags : iterable of str, optional
        Those of the application's identity. Default: it has none.
    """
    check_mirror(cluster, spec)
    site, inside = cluster.site, cluster.nodes.resourcemanagers
    resourcemanagers = cluster.resourcemanagers if inside is None else inside
    places = (
        "hdfs://",
        cluster.storage.default,
        *(f"hdfs://{name}" for name in cluster.nodes.nameservices),
        *spec.file_systems,
        spec.input or "",
        spec.output or "",
        _logdir(spec),
    )
    namenodes = {urlsplit(url).netloc: urls for url in places if (urls := cluster.namenodes_of(url))}
    history = plan_history(cluster, spec.acls)
    asked = (
        *resourcemanagers,
        *chain(*namenodes.values()),
        *(history.urls if history else ()),
    )
    encrypted = any(url.startswith("https:") for url in asked)
    job = build_runtime_job(spec)
    return job._replace(
        user=spec.user or cluster.user,
        ports=coordinator_ports(site.base_port(number)),
        resourcemanagers=tuple(resourcemanagers),
        authorities=read_authorities(site.ca_file) if site.ca_file and encrypted else "",
        history=history,
        tensorboard=job.tensorboard and job.tensorboard._replace(direct=site.tensorboard_direct),
        viewers=plan_viewers(cluster, spec),
        ui_url=site.ui_url or "",
        namenodes=namenodes,
        commit=plan_commit(cluster, spec, tags),
        allow_exec=site.allow_exec,
    )


def plan_history(cluster: Cluster, acls: Acls) -> HistoryPlan | None:
    """Return where a coordinator writes its record; None if the site keeps no history, or nodes can't reach the place.

    Behind a gateway the known addresses are the gateway's, where a node has no login; a client writes the record then.
    """
    reached = cluster.storage.webhdfs if cluster.nodes.resourcemanagers is None else ()
    inside = reached and (cluster.namenodes_of(cluster.storage.filesystem) or reached)
    if not cluster.site.history_days or not (inside or cluster.storage.local_root):
        return None
    root = "" if inside else cluster.storage.local_root or ""
    return HistoryPlan(cluster.history, cluster.user, inside, root, acls.view_users, acls.view_groups)


def check_mirror(cluster: Cluster, spec: JobSpec) -> None:
    """Raise SpecInvalid for local copies of a path ``hdfs:///`` where the cluster's default file system is not HDFS."""
    if spec.mirror != "off" or spec.mirror_input:
        check_faults(
            Fault("mirror", JobFault.NEEDS_LOCATION, {"other": "an HDFS with a name", "given": path})
            for path in dict.fromkeys((spec.output or "", spec.input or ""))
            if path.startswith("hdfs:") and not cluster.namenodes_of(path)
        )


def plan_commit(cluster: Cluster, spec: JobSpec, tags: Iterable[str] = ()) -> CommitPlan | None:
    """Return how the output of a job is committed; None for a job without ``commit``.

    Raises
    ------
    SpecInvalid
        A path ``hdfs:///`` on a cluster whose default file system is not HDFS, the staging directory, or a path that
        overlaps with the input.
    """
    place = split_location(spec.output or "")
    if spec.commit == OFF or place is None:
        return None
    location, path = place
    faults = []
    if location and not cluster.namenodes_of(spec.output or ""):
        faults.append(Fault("commit", JobFault.NEEDS_LOCATION, {"other": "an HDFS with a name", "given": spec.output}))
    if f"{cluster.staging}/".startswith(f"{path}/") or f"{path}/".startswith(f"{cluster.staging}/"):
        faults.append(Fault("output", JobFault.SHARED_FOLDER, {"given": spec.output}))
    check_faults(faults or list(overlap_faults(spec, cluster.storage.default)))
    training, generation = training_of(tags)
    return CommitPlan(
        spec.commit, path, location, training[:16], generation, spec.commit_version or 0, spec.commit_keep
    )


def plan_viewers(cluster: Cluster, spec: JobSpec) -> ViewersPlan | None:
    """Return who may open the pages of a job; None if neither the cluster nor the job asks for view ACLs."""
    acls, administrators = spec.acls, cluster.security.administrators
    if not cluster.security.enforces_acls and acls == Acls():
        return None
    return administrators._replace(
        users=(*acls.view_users, *acls.ui_users, *administrators.users),
        groups=(*acls.view_groups, *administrators.groups),
    )


def build_runtime_job(spec: JobSpec) -> Job:
    """Return the job as the coordinator and the agents read it from the job file, without what its cluster adds.

    It holds the user's variables, so only the job's user may read the file.
    """
    environments = place_environments(spec)
    placed = environments[""]
    types = {
        name: TypePlan(
            task.instances,
            runtime_command("server", "-u") if spec.serves(name) else task.command or spec.command or "",
            {**spec.env, **task.env},
            *spec.role_of(name),
            FRAMEWORKS[spec.framework].hold_port if task.hold_port is None else task.hold_port,
            bool(task.node_label or spec.node_label),
            {
                budget: own
                for budget in ("max_restarts", "max_container_losses")
                if (own := getattr(task, budget)) is not None
            },
            {"path": environments[name].path, "docker_image": environments[name].docker_image}
            if name in environments
            else {},
            [*task.after],
            link_keys(user_files(spec, environments.get(name, placed))),
        )
        for name, task in spec.tasks.items()
    }
    board = None
    if spec.tensorboard:
        board = TensorBoardPlan(_logdir(spec), tuple(shlex.split(spec.tensorboard.args)))
        # TensorBoard has no authentication: our program stands in front of it.
        types[TENSORBOARD] = TypePlan(1, runtime_command("tensorboard"), dict(spec.env), *ROLES[TENSORBOARD], False)
    return Job(
        version=VERSION,
        name=spec.name,
        queue=spec.queue,
        user=spec.user or "",
        program=spec.command or "",
        types=types,
        services=_plan_services(spec),
        path=placed.path,
        ports=coordinator_ports(Site().base_port(0)),
        script=spec.script.rsplit("/", 1)[-1] if spec.script else None,
        input=spec.input,
        output=spec.output,
        docker_image=placed.docker_image,
        success=spec.success,
        restart=asdict(spec.restart),
        deadlines=asdict(spec.deadlines),
        linger=spec.tensorboard.linger if spec.tensorboard else 0.0,
        report_log_tail=spec.report_log_tail,
        resourcemanagers=(),
        version_of_package=__version__,
        tensorboard=board,
        options=mask_options(spec.to_dict()),
        framework=spec.framework,
        mirror=spec.mirror,
        mirror_input=spec.mirror_input or 0,
        procs_per_task=spec.procs_per_task,
    )


def coordinator_ports(first: int) -> tuple[int, ...]:
    """Return the ports on which a coordinator may listen."""
    return tuple(range(first, first + PORTS))


def place_environments(spec: JobSpec, folders: Sequence[str] = ()) -> dict[str, ContainerEnvironment]:
    """Return the job's environment inside a container, by the empty name, and those of types that have their own.

    ``folders`` are those of the nodes to mount into Docker containers.
    """
    given = {
        "": (spec.environment, ENVIRONMENT_FOLDER),
        **{
            name: (task.environment, f"{ENVIRONMENT_FOLDER}.{name}")
            for name, task in spec.tasks.items()
            if task.environment
        },
    }
    return {
        name: build_container_environment(environment, _mounted(spec), folders, folder, spec.docker)
        for name, (environment, folder) in given.items()
    }


def resource_places(spec: JobSpec) -> dict[str, str]:
    """Return the field of Skein's request that carries each resource of a job, by its name in YARN.

    Skein has a field for GPUs and one for FPGAs. A resource of another name takes one of the two that the job does not
    use, and `runtime_zip` names it to Skein's application master.
    """
    own = {GPU: "gpus", FPGA: "fpgas"}
    places = {name: own[name] for name in spec.resource_names if name in own}
    free = (field for field in ("fpgas", "gpus") if field not in places.values())
    return {name: places.get(name) or next(free) for name in spec.resource_names}


def renamed_resources(spec: JobSpec) -> tuple[tuple[str, str], ...]:
    """Return the names that Skein's application master gives its fields, each with the job's name in its place."""
    own = {"gpus": GPU, "fpgas": FPGA}
    return tuple((own[field], name) for name, field in resource_places(spec).items() if own[field] != name)


def _mounted(spec: JobSpec) -> tuple[str | None, str | None]:
    """Return the paths of the nodes that a Docker container needs: the input, and where the output is written."""
    if spec.output and spec.commit in (NEW, REPLACE):
        return spec.input, posixpath.dirname(spec.output.rstrip("/"))  # the working folder is made later
    return spec.input, spec.output


def _logdir(spec: JobSpec) -> str:
    """Return the folder that TensorBoard shows; empty for a job without TensorBoard."""
    return (spec.tensorboard.logdir or spec.output or "") if spec.tensorboard else ""


def user_files(spec: JobSpec, *placed: ContainerEnvironment) -> dict[str, tuple[str, str]]:
    """Return the user's files for the working directory, and packed environments: their sources and types."""
    files = {name: (source, "file") for name, source in spec.files.items()}
    if spec.script:
        files[spec.script.rsplit("/", 1)[-1]] = spec.script, "file"
    # A packed environment is needed before the agent runs, which gives a file its further names.
    archives = {**dict(chain(*(one.archives.items() for one in placed))), **spec.archives}
    return {**{name: (source, "archive") for name, source in archives.items()}, **files}


def link_keys(files: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return names in the working directory with the name under which YARN links the file, where the two differ.

    YARN writes the name of a link into a script of bash and makes a path of it in Java, so it gets plain ones only. Of
    two links to one file it makes only one, so each file has one. The agent gives such files their real names.
    """
    links: dict[tuple[str, str], str] = {}
    for number, (name, file) in enumerate(files.items()):
        links.setdefault(file, name if PLAIN_NAME.fullmatch(name) else f"{LINK_KEY}{number}")
    return {name: links[file] for name, file in files.items() if links[file] != name}


def _plan_services(spec: JobSpec) -> dict[str, ServicePlan]:
    """Return the containers of each Skein service, TensorBoard's among them; all of a service have the same size.

    So a type is grouped by the resources of its tasks. The first group has the name of the type. Further groups add a
    dot and their lowest index; no type's name has a dot.
    """
    services: dict[str, ServicePlan] = {}
    for kind, task in spec.tasks.items():
        groups: dict[Resources, list[int]] = {}
        for index in range(task.instances):
            groups.setdefault(task.resources_of(index), []).append(index)
        services |= {
            kind if number == 0 else f"{kind}.{indices[0]}": ServicePlan(
                kind, tuple(indices), resources.memory, resources.vcores, resources.gpus, task.resources
            )
            for number, (resources, indices) in enumerate(groups.items())
        }
    if spec.tensorboard:
        services[TENSORBOARD] = ServicePlan(TENSORBOARD, (0,), spec.tensorboard.memory, spec.tensorboard.vcores)
    return services


def _agent_script(placed: ContainerEnvironment, service: str) -> str:
    """Return the script of a task's container. Commands and values of the user never become part of it."""
    return _SCRIPT.format(interpreter=shlex.quote(placed.interpreter), flags="-I -S", part=f"agent {service}")


def _coordinator_script(placed: ContainerEnvironment) -> str:
    """Return the script of the application master's container."""
    interpreter = shlex.quote(placed.interpreter)
    stand_in = "" if placed.interpreter == ANY_PYTHON else _STAND_IN.format(interpreter=interpreter)
    start = _SCRIPT.format(interpreter=interpreter, flags="-u", part="coordinator")
    return f"unset JDK_JAVA_OPTIONS\n{stand_in}{start}"
