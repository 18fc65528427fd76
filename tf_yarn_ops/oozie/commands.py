"""``ytf oozie``: pack a job as an application of Oozie, and start it on a server."""

import os
import tempfile
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from ..declaration import Option
from ..errors import Fault, SubmissionRejected
from ..hadoop.cluster import Cluster, discover
from ..hadoop.configuration import system_user
from ..submit.preflight import local_path
from ..terminal import shared_options
from ..terminal.output import configure_logging, echo, show
from ..validation import check_faults, noting
from .documents import OozieRequest
from .package import (
    Folder,
    PackageFault,
    Packed,
    Place,
    absolute,
    content_version,
    default_path,
    documents_of,
    write_folder,
)
from .package_options import PACKAGE_OPTIONS, OptionFault
from .packed_job import APP_PATH, EXTERNAL_ID, WORKFLOW_PATH
from .request import read_oozie_request
from .rest_api import Oozie, OozieUnreachable, StartUnconfirmed


@click.group()
def oozie() -> None:
    """Pack a job as an application of Oozie, and start it."""


def _parser_option(row: Option) -> click.Option:
    """Return an option of `PACKAGE_OPTIONS` as the parser takes it: without its default, which the help shows."""
    default = "" if row.is_switch else row.shown_default
    words = f"{row.help}{' Repeatable.' if row.many else ''}{f'  [default: {default}]' if default else ''}"
    return click.Option(
        [f"--{row.name.replace('_', '-')}"],
        metavar=row.placeholder or None,
        is_flag=row.is_switch,
        multiple=row.many,
        help=words,
    )


@oozie.command(params=[*map(_parser_option, PACKAGE_OPTIONS)])
@click.argument("job", metavar="JOB.yaml")
@shared_options.RESOURCEMANAGER_OPTION
@shared_options.USER_OPTION
@shared_options.VERBOSE_OPTION
def package(job: str, resourcemanager: str | None, user: str | None, verbose: bool, **words: Any) -> None:
    """Write workflow.xml, coordinator.xml, job.properties and the files of a job.

    JOB.yaml is what ytf-submit --spec reads; ytf-submit --dry_run prints one. Or it lists several jobs, each with the
    names of those that it needs:

    \b
      jobs:
      - {name: features, job: features.yaml}
      - {name: model, job: model.yaml, needs: [features]}
    """
    configure_logging(verbose, requests=verbose)
    out, dry_run, app_path = words["out"], words["dry_run"], words["app_path"]
    addresses = words["name_node"], words["resource_manager"]
    faults: list[Fault] = []
    with noting(faults):
        request = read_oozie_request(job, words, datetime.now(timezone.utc))
    if out is None and not dry_run:
        faults.append(Fault("out", PackageFault.NEEDS_OUT))
    target = None if out is None else local_path(out)
    in_cluster = out is not None and target is None
    if in_cluster and app_path is not None:
        faults.append(Fault("app_path", PackageFault.IS_A_URI, {"given": out}))
    check_faults(faults)
    cluster = None
    if not all(addresses) or (in_cluster and not dry_run):
        cluster = discover(resourcemanager, user=user)
    place = _place(request, cluster, out if in_cluster else app_path, user, *addresses)
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
    request: OozieRequest,
    cluster: Cluster | None,
    path: str | None,
    user: str | None,
    name_node: str | None,
    resource_manager: str | None,
) -> Place:
    """Return where the application will lie; what the options do not say comes from the cluster."""
    if cluster is not None:
        name_node = name_node or cluster.storage.default
        # Oozie hands it to Hadoop's client, which takes the addresses of a pair from its own configuration.
        resource_manager = resource_manager or next(iter(cluster.nodes.resourcemanager_services), "")
        user = cluster.user
    name_node = (name_node or "").rstrip("/")
    where = path or default_path(request.name, user or os.environ.get("HADOOP_USER_NAME") or system_user())
    return Place(absolute(where, name_node).rstrip("/"), name_node, resource_manager or "")


@oozie.command("run")
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--oozie",
    metavar="<URL>",
    envvar="OOZIE_URL",
    help="The Oozie server, http://host:11000/oozie.  [default: OOZIE_URL]",
)
@click.option("--property", metavar="NAME=VALUE", multiple=True, help="Replace a value of job.properties. Repeatable.")
@click.option("--again", is_flag=True, help="Start it although it runs already.")
@shared_options.RESOURCEMANAGER_OPTION
@shared_options.USER_OPTION
@shared_options.VERBOSE_OPTION
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
    faults = [] if oozie else [Fault("oozie", PackageFault.NEEDS_SERVER)]
    faults += [Fault("property", OptionFault.NOT_A_PAIR, {"given": text}) for text in property if "=" not in text]
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


def _running(packed: Packed, properties: Mapping[str, str], server: Oozie) -> list[str]:
    """Return the ids of what has not ended: coordinators for the same time, or workflows of the same application."""
    if packed.coordinator:
        return packed.overlapping(server.live_coordinators(packed.coordinator))
    return server.live_workflows(packed.workflow, properties[WORKFLOW_PATH])


def _check_alone(packed: Packed, properties: Mapping[str, str], server: Oozie, url: str, again: bool) -> list[str]:
    """Raise SpecInvalid if the application runs already, unless once more is wanted; return the ids of what runs."""
    same = _running(packed, properties, server)
    code = PackageFault.RUNS if packed.coordinator else PackageFault.WORKFLOW_RUNS
    check_faults(
        Fault("", code, {"given": job, "name": packed.coordinator, "server": url}) for job in same if not again
    )
    return same


def _start(packed: Packed, properties: Mapping[str, str], server: Oozie, before: list[str]) -> str:
    """Start an application; return the id of its job, also where Oozie has started it without an answer."""
    # A coordinator hands its properties to all its workflows, which need external ids of their own.
    properties = dict(properties) if packed.coordinator else {EXTERNAL_ID: uuid.uuid4().hex, **properties}
    try:
        return server.start(properties)
    except OozieUnreachable as error:
        kind, name = ("coord", packed.coordinator) if packed.coordinator else ("wf", packed.workflow)
        begun = ""
        with suppress(OozieUnreachable):
            if packed.coordinator:
                begun = next((job for job in _running(packed, properties, server) if job not in before), "")
            else:
                begun = server.find_workflow(properties[EXTERNAL_ID])
        if not begun:
            raise StartUnconfirmed(
                f"Oozie has not answered the start of {name}, and may have started it: {error}", name, kind
            ) from error
        echo(f"Oozie has not answered the start of {name}, and has started it: {begun}")
        return begun


def _reader(folder: Path) -> Callable[[str], str | None]:
    """Return a function that reads a file of a folder of this machine."""
    return lambda name: (folder / name).read_text(encoding="utf-8") if (folder / name).is_file() else None
