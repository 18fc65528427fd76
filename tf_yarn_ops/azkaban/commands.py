"""``ytf azkaban``: the commands for the administrator of an Azkaban executor."""

from pathlib import Path

import click

from ..terminal.output import say
from .install import NAME, RELOAD_URL, install


@click.group()
def azkaban() -> None:
    """The Azkaban job type."""


@azkaban.command("install-jobtype")
@click.option("--dir", "directory", required=True, metavar="<folder>", type=click.Path(path_type=Path),
              help="azkaban.jobtype.plugin.dir of the executor, usually plugins/jobtypes.")
@click.option("--name", metavar="<name>", help="The type that jobs give.  [default: tensorflow-yarn]")
@click.option("--secure", is_flag=True,
              help="Run as Azkaban's HadoopShell, which fetches delegation tokens, and lets no other command pass.")
@click.option("--limits", metavar="<file>", help="The site's limits.  [default: /etc/tf_yarn_ops/azkaban.yaml]")
@click.option("--python", metavar="<path>", help="What runs the jobs.  [default: what runs this]")
def install_jobtype(directory: Path, name: str | None, secure: bool, limits: str | None, python: str | None) -> None:
    """Install the job type on this executor, or bring it up to date."""
    done = install(directory, name=name or NAME, secure=secure, limits=limits, python=python)
    for file in done.written:
        say(f"wrote {done.folder / file}")
    if not done.written:
        say(f"{done.folder} is as it should be")
    for note in done.notes:
        say(note)
    say(f"jobs with type={done.folder.name} run {done.command}")
    say("next, for each executor: POST to its reload URL, or restart it")
    click.echo(RELOAD_URL)
