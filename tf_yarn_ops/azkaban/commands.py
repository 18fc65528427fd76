"""``ytf azkaban``: install the job type on an executor."""

from pathlib import Path

import click

from ..terminal.output import echo
from .install import JOBTYPE_NAME, RELOAD_URL, write_jobtype


@click.group()
def azkaban() -> None:
    """Administer the Azkaban job type."""


@azkaban.command("install-jobtype")
@click.option(
    "--dir",
    "directory",
    required=True,
    metavar="<folder>",
    type=click.Path(path_type=Path),
    help="The executor's azkaban.jobtype.plugin.dir, usually plugins/jobtypes.",
)
@click.option("--name", metavar="<name>", help="The value of type= in jobs.  [default: tensorflow-yarn]")
@click.option(
    "--secure/--no-secure",
    default=None,
    help="Run as Azkaban's HadoopShell, which fetches delegation tokens and refuses other commands; jobs may "
    "name files of their project only.  "
    "[default: as installed before, else no-secure]",
)
@click.option(
    "--limits",
    metavar="<file>",
    help="The site's limits.  [default: as installed before, else /etc/tf_yarn_ops/azkaban.yaml]",
)
@click.option("--python", metavar="<path>", help="The interpreter of the jobs.  [default: the one that runs ytf]")
def install_jobtype(
    directory: Path, name: str | None, secure: bool | None, limits: str | None, python: str | None
) -> None:
    """Install or update the job type on this executor."""
    done = write_jobtype(directory, name=name or JOBTYPE_NAME, secure=secure, limits=limits, python=python)
    for file in done.written:
        echo(f"wrote {done.folder / file}")
    if not done.written:
        echo(f"{done.folder} is up to date")
    for note in done.notes:
        echo(note)
    echo(f"jobs with type={done.folder.name} run {done.command}")
    echo(
        "note: a job can still make the dynamic loader run its code in the launcher (env.LD_PRELOAD), with the rights "
        "of the launcher's user; with execute.as.user these are the rights of the job's own user"
    )
    echo("next, for each executor: send a POST request to its reload URL, or restart it")
    click.echo(RELOAD_URL)
