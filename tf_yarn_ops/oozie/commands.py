"""``ytf oozie``: pack a job as an application of Oozie, and start it on a server."""

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import Fault, FaultCode, SpecInvalid, SubmissionRejected
from ..hadoop.configuration import system_user
from ..terminal import shared_options
from ..terminal.output import configure_logging, echo, show
from ..validation import check_faults, noting
from .packed_job import APP_PATH, WORKFLOW_PATH

if TYPE_CHECKING:
    from ..hadoop.cluster import Cluster
    from .package import Packed, Place
    from .request import OozieRequest
    from .rest_api import Oozie

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class OozieCommandFault(FaultCode):
    """Fault codes for the words of a call."""

    NEEDS_OUT = "missing; give a folder of this machine, or hdfs:///apps/NAME; --dry-run prints the documents"
    NEEDS_SERVER = "missing; give the address of the Oozie server, http://host:11000/oozie, or set OOZIE_URL"
    NOT_A_FILE_SYSTEM = "{given!r} is not the URL of a file system; give hdfs://host:8020, or hdfs://NAME of a pair"
    NOT_A_PAIR = "{given!r} is not NAME=VALUE"
    WORKFLOW_RUNS = (
        "{given} runs this application, which would be trained twice at the same time; end it with "
        "`oozie job -oozie {server} -kill {given}`, or start it once more with --again"
    )
    RUNS = (
        "{given} is a coordinator {name!r} for the same time, so each day would be trained twice; end it with "
        "`oozie job -oozie {server} -kill {given}`, or start another one with --again"
    )
    IS_A_URI = "{given} is in HDFS already; app_path is for applications that are packed into a folder of this machine"


@click.group()
def oozie() -> None:
    """Pack a job as an application of Oozie, and start it."""


def _option(name: str, metavar: str, text: str, **settings: Any) -> _Decorator:
    return click.option(f"--{name}", metavar=metavar, help=text, **settings)


_PACKAGE_OPTIONS = (
    _option("out", "<folder>", "Where to write the application: a folder of this machine, or hdfs:///apps/NAME."),
    click.option("--dry-run", is_flag=True, help="Print the documents, and write nothing."),
    _option("schedule", "<cron>", "When to train, as cron in UTC: '0 2 * * *'. Days of the week by name, MON-FRI."),
    _option("frequency", "<n>m|h|d|w|mo", "Train every so often, counted from the start: 30m, 12h, 1d, 1mo."),
    _option("timezone", "<zone>", "With frequency: the zone whose days and months count.  [default: UTC]"),
    _option("start", "<time>", "2026-11-21T02:00Z, or with an offset.  [default: now]"),
    _option("end", "<time>", "The end of the schedule.  [default: 2099-12-31T00:00Z]"),
    _option(
        "data",
        "[NAME=]<URI>",
        "Wait for this data, whose URI may use ${YEAR}, ${MONTH}, ${DAY}, ${HOUR} and "
        "${MINUTE} in UTC. The job's fields use it as ${dataIn}, or as ${NAME}. Repeatable.",
        multiple=True,
    ),
    _option(
        "data-instances",
        "<n>[:<n>]",
        "Which instances of the data: 0 the newest, -1 the one before, -6:0 the last seven.  [default: 0]",
    ),
    _option("data-frequency", "<n>m|h|d|w|mo", "How often the data comes.  [default: by the URI's finest variable]"),
    _option(
        "done-flag",
        "<file>",
        "The file that says that a folder of data is complete; '' for the folder itself.  [default: _SUCCESS]",
    ),
    _option(
        "output-data",
        "[NAME=]<URI>",
        "A URI with the same variables that the training writes. The job's fields "
        "use it as ${dataOut}, or as ${NAME}. Repeatable.",
        multiple=True,
    ),
    _option("timeout", "<n>m|h|d", "How long a run waits for its data; -1 for ever.  [default: the server's]"),
    _option("concurrency", "<n>", "How many runs train at the same time.  [default: 1]"),
    _option("throttle", "<n>", "How many runs wait at the same time.  [default: the server's]"),
    _option(
        "execution",
        "FIFO|LIFO|LAST_ONLY|NONE",
        "Which of several late runs comes first; LAST_ONLY skips all but the newest.  [default: FIFO]",
    ),
    _option("sla-end", "<n>m|h|d", "The latest end after the nominal time; Oozie alerts if it is missed."),
    _option("sla-start", "<n>m|h|d", "The latest start after the nominal time."),
    _option("sla-duration", "<n>m|h|d", "The longest run."),
    _option("sla-contact", "<addresses>", "Who gets the alerts, comma-separated."),
    _option(
        "property",
        "NAME=VALUE",
        "A value in job.properties; the job's fields use it as ${NAME}. Repeatable.",
        multiple=True,
    ),
    _option("name", "<name>", "The name of the application.  [default: that of the job]"),
    _option("python", "<path>", "The nodes' interpreter, with tf_yarn_ops unless pex is set.  [default: python3]"),
    click.option(
        "--pex",
        is_flag=True,
        help="Pack tf_yarn_ops with its dependencies, for nodes without it. The "
        "nodes' Python must have the version of this one.",
    ),
    _option("retry-max", "<n>", "How often Oozie repeats the action. It attaches to the training if that runs."),
    _option("retry-interval", "<n>m", "The pause between repetitions.  [default: the server's]"),
    _option("launcher-memory", "<memory>", "Memory of Oozie's launcher.  [default: the server's]"),
    _option("launcher-queue", "<queue>", "The queue of Oozie's launcher.  [default: the job's]"),
    _option("workflow", "<file>", "Your own workflow, with an empty action train, or one for each listed job."),
    _option(
        "include",
        "<file>",
        "Another file for the application, such as a script of your workflow. Repeatable.",
        multiple=True,
    ),
    _option(
        "app-path",
        "<folder>",
        "Where the application will lie, if out is a folder of this machine.  [default: /user/YOU/oozie/NAME]",
    ),
    _option("name-node", "<URL>", "nameNode for Oozie, hdfs://host:8020.  [default: the cluster's]"),
    _option("resource-manager", "<address>", "resourceManager for Oozie, host:8032.  [default: the cluster's]"),
)
_CLUSTER_OPTIONS = (shared_options.RESOURCEMANAGER_OPTION, shared_options.USER_OPTION, shared_options.VERBOSE_OPTION)


def _with(options: tuple[_Decorator, ...]) -> _Decorator:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@oozie.command()
@click.argument("job", metavar="JOB.yaml")
@_with((*_PACKAGE_OPTIONS, *_CLUSTER_OPTIONS))
def package(
    job: str,
    out: str | None,
    dry_run: bool,
    app_path: str | None,
    name_node: str | None,
    resource_manager: str | None,
    resourcemanager: str | None,
    user: str | None,
    verbose: bool,
    **options: Any,
) -> None:
    """Write workflow.xml, coordinator.xml, job.properties and the files of a job.

    JOB.yaml is what ytf-submit --spec reads; ytf-submit --dry_run prints one. Or it lists several jobs, each with the
    names of those that it needs:

    \b
      jobs:
      - {name: features, job: features.yaml}
      - {name: model, job: model.yaml, needs: [features], delete: "/models/${nominalStamp}"}
    """
    configure_logging(verbose, requests=verbose)
    from ..submit.preflight import local_path
    from .package import Folder, Packed, content_version, documents_of, write_folder
    from .request import read_oozie_request

    faults: list[Fault] = []
    request = None
    try:
        request = read_oozie_request(job, options, datetime.now(timezone.utc))
    except SpecInvalid as error:
        faults += error.faults
    if out is None and not dry_run:
        faults.append(Fault("out", OozieCommandFault.NEEDS_OUT))
    if name_node is not None and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+/?", name_node):
        faults.append(Fault("name_node", OozieCommandFault.NOT_A_FILE_SYSTEM, {"given": name_node}))
    target = None if out is None else local_path(out)
    in_cluster = out is not None and target is None
    if in_cluster and app_path is not None:
        faults.append(Fault("app_path", OozieCommandFault.IS_A_URI, {"given": out}))
    check_faults(faults)
    assert request is not None  # without a request there are faults
    cluster = None
    if not (name_node and resource_manager) or (in_cluster and not dry_run):
        from ..hadoop.cluster import discover

        cluster = discover(resourcemanager, user=user)
    place = _place(request, cluster, out if in_cluster else app_path, name_node, resource_manager, user)
    documents = documents_of(request, place)
    for warning in request.warnings:
        echo(f"warning: {warning}")
    if dry_run:
        for name, text in documents.items():
            show(f"# {name}\n{text}", data=True)
        return
    if target is not None:
        written = write_folder(request, documents, target)
        echo(f"wrote {', '.join(written)} into {out}; the application belongs in {place.path}")
        echo(f"next: ytf oozie run {out}")
        return
    assert cluster is not None and out is not None
    with tempfile.TemporaryDirectory() as local:
        write_folder(request, documents, Path(local))
        packed = Packed.read(out, _reader(Path(local)), {})
        path = f"{place.path}/{content_version(Path(local))}"
        with closing(Folder(cluster, path)) as folder:
            echo(
                f"wrote the application into {path}"
                if folder.upload(Path(local), packed.at(path))
                else f"{path} has this application already"
            )
    echo(f"next: ytf oozie run {path}")


def _place(
    request: "OozieRequest",
    cluster: "Cluster | None",
    path: str | None,
    name_node: str | None,
    resource_manager: str | None,
    user: str | None,
) -> "Place":
    """Return where the application will lie; what the options do not say comes from the cluster."""
    from .package import Place, absolute, default_path

    if cluster is not None:
        name_node = name_node or cluster.storage.default
        # Oozie hands it to Hadoop's client, which takes the addresses of a pair from its own configuration.
        resource_manager = resource_manager or next(iter(cluster.nodes.resourcemanager_services), "")
        user = cluster.user
    name_node = (name_node or "").rstrip("/")
    where = path or default_path(request.application.name, user or os.environ.get("HADOOP_USER_NAME") or system_user())
    return Place(absolute(where, name_node).rstrip("/"), name_node, resource_manager or "")


@oozie.command("run")
@click.argument("folder", metavar="FOLDER")
@_option("oozie", "<URL>", "The Oozie server, http://host:11000/oozie.  [default: OOZIE_URL]", envvar="OOZIE_URL")
@_option("property", "NAME=VALUE", "Replace a value of job.properties. Repeatable.", multiple=True)
@click.option("--again", is_flag=True, help="Start it although it runs already.")
@_with(_CLUSTER_OPTIONS)
def run_application(
    folder: str,
    oozie: str | None,
    property: tuple[str, ...],
    again: bool,
    resourcemanager: str | None,
    user: str | None,
    verbose: bool,
) -> None:
    """Upload a packed application, and start it on an Oozie server.

    FOLDER is a folder of this machine, or one in HDFS, which is not uploaded again. Oozie checks the application before
    it starts. Prints the id of Oozie's job.
    """
    configure_logging(verbose, requests=verbose)
    from ..hadoop.cluster import discover
    from ..submit.preflight import local_path
    from .package import Folder, Packed, content_version
    from .rest_api import Oozie

    faults = [] if oozie else [Fault("oozie", OozieCommandFault.NEEDS_SERVER)]
    faults += [Fault("property", OozieCommandFault.NOT_A_PAIR, {"given": text}) for text in property if "=" not in text]
    changes = dict(text.split("=", 1) for text in property if "=" in text)
    local = local_path(folder)
    packed = None
    if local is not None:
        with noting(faults):
            packed = Packed.read(folder, _reader(local), changes)
    check_faults(faults)
    assert oozie is not None
    cluster = discover(resourcemanager, user=user)
    path = folder if packed is None or local is None else f"{packed.properties[APP_PATH]}/{content_version(local)}"
    with (
        closing(Folder(cluster, path)) as files,
        closing(
            Oozie(oozie, cluster.user, cluster.authentication, cluster.site.request_timeout, cluster.site.ca_file)
        ) as server,
    ):
        packed = packed or Packed.read(folder, files.read, changes)
        properties, uploaded = packed.at(path) if local else dict(packed.properties), False
        # This is also the question whether the server is there, before anything is written.
        _check_alone(packed, properties, server, oozie, again)
        with files.starting(again) if packed.coordinator else nullcontext():
            before = _check_alone(packed, properties, server, oozie, again)
            if local is not None:
                uploaded = files.upload(local, properties)
                echo(f"uploaded the application to {path}" if uploaded else f"{path} has this application already")
            try:
                server.check(properties, packed.handed_over)
                job_id = _start(packed, properties, server, before)
            except SubmissionRejected:
                if uploaded:
                    files.delete()
                    echo(f"deleted {path} again; nothing was started")
                raise
    echo(f"next: oozie job -oozie {oozie} -info {job_id}")
    click.echo(job_id)


def _running(packed: "Packed", properties: Mapping[str, str], server: "Oozie") -> list[str]:
    """Return the ids of what has not ended: coordinators for the same time, or workflows of the same application."""
    if packed.coordinator:
        return packed.overlapping(server.live_coordinators(packed.coordinator))
    return server.live_workflows(packed.workflow, properties[WORKFLOW_PATH])


def _check_alone(packed: "Packed", properties: Mapping[str, str], server: "Oozie", url: str, again: bool) -> list[str]:
    """Raise SpecInvalid if the application runs already, unless once more is wanted; return the ids of what runs."""
    same = _running(packed, properties, server)
    code = OozieCommandFault.RUNS if packed.coordinator else OozieCommandFault.WORKFLOW_RUNS
    check_faults(
        Fault("", code, {"given": job, "name": packed.coordinator, "server": url}) for job in same if not again
    )
    return same


def _start(packed: "Packed", properties: Mapping[str, str], server: "Oozie", before: list[str]) -> str:
    """Start an application; return the id of its job, also where Oozie has started it without an answer."""
    from .rest_api import OozieUnreachable, StartUnconfirmed

    try:
        return server.start(properties)
    except OozieUnreachable as error:
        kind, name = ("coord", packed.coordinator) if packed.coordinator else ("wf", packed.workflow)
        message = f"Oozie has not answered the start of {name}, and may have started it: {error}"
        try:
            begun = [job for job in _running(packed, properties, server) if job not in before]
        except OozieUnreachable:
            begun = []
        if not begun:
            raise StartUnconfirmed(message, name, kind) from error
        echo(f"{message}. It has: {begun[0]}")
        return begun[0]


def _reader(folder: Path) -> Callable[[str], str | None]:
    """Return a function that reads a file of a folder of this machine."""
    return lambda name: (folder / name).read_text(encoding="utf-8") if (folder / name).is_file() else None
