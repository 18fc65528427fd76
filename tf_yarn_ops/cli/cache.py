"""``ytf cache list|prune``: what lies in one's cache of staged files."""

import time
from dataclasses import asdict

import click

from ..staging.staging_directory import StagingDirectory
from ..terminal.output import configure_logging, print_json, say

_resourcemanager = click.option("--resourcemanager", metavar="<URL>",
                                help="Default: YTF_RESOURCEMANAGER, site.yaml, HADOOP_CONF_DIR.")  # fmt: skip
_as_json = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")


@click.group()
def cache() -> None:
    """The files that jobs share: uploaded once under the hash of their content."""


def _staging(resourcemanager: str | None) -> StagingDirectory:
    configure_logging(False)
    from ..hadoop.cluster import discover

    return StagingDirectory(discover(resourcemanager))


@cache.command("list")
@_resourcemanager
@_as_json
def list_files(resourcemanager: str | None, as_json: bool) -> None:
    """List the files, the longest unused first."""
    from ..staging.prune import list_cache

    files = list_cache(_staging(resourcemanager))
    if as_json:
        print_json([asdict(file) for file in files])
        return
    now = time.time()
    for file in files:
        note = "  (left by an upload that never ended)" if file.abandoned else ""
        days = max(0.0, now - file.used_at) / 86400
        click.echo(f"{file.size / 2**20:10.1f} MiB  {days:6.1f} days  {file.path}{note}")
    say(f"{len(files)} files, {sum(file.size for file in files) / 2**20:.1f} MiB")


@cache.command()
@click.option("--unused_days", "--unused-days", type=click.FloatRange(min=0), metavar="<days>",
              help="Delete what nobody has used for as long; longer than any job runs.  [default: 30]")
@_resourcemanager
@_as_json
def prune(unused_days: float | None, resourcemanager: str | None, as_json: bool) -> None:
    """Delete what nobody has used for long, and what broken uploads have left."""
    from ..staging.prune import UNUSED_DAYS, prune_cache

    deleted = prune_cache(_staging(resourcemanager), UNUSED_DAYS if unused_days is None else unused_days)
    if as_json:
        print_json([asdict(file) for file in deleted])
    for file in deleted:
        say(f"deleted {file.path}")
    say(f"{len(deleted)} files deleted, {sum(file.size for file in deleted) / 2**20:.1f} MiB")
