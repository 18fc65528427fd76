"""``ytf cache list|prune``: the user's files in the cache on the cluster's file system."""

import time
from contextlib import closing
from dataclasses import asdict

import click

from ..runtime.common.clock import DAY
from ..runtime.common.escaping import escape_controls
from ..staging.staging_directory import StagingDirectory
from ..terminal.output import echo, print_json, show
from .command_line import ClusterCall, cluster_options


@click.group()
def cache() -> None:
    """Files that your jobs share: each is uploaded once and named by the hash of its content."""


@cache.command("list")
@cluster_options
def list_files(call: ClusterCall) -> None:
    """List the files, the longest unused first."""
    from ..staging.prune import list_cache

    files = list_cache(StagingDirectory(call.discover()))
    if call.as_json:
        print_json([asdict(file) for file in files])
        return
    now = time.time()
    for file in files:
        note = "  (from an upload that did not finish)" if file.abandoned else ""
        days = max(0.0, now - file.used_at) / DAY
        show(f"{file.size / 2**20:10.1f} MiB  {days:6.1f} days  {escape_controls(file.path, kept='')}{note}")
    echo(f"{len(files)} files, {sum(file.size for file in files) / 2**20:.1f} MiB")


@cache.command()
@click.option(
    "--unused_days",
    "--unused-days",
    type=click.FloatRange(min=0),
    metavar="<days>",
    help="Delete files that no job has used for so many days; longer than any job runs.  [default: 30]",
)
@cluster_options
def prune(unused_days: float | None, call: ClusterCall) -> None:
    """Delete files that no job has used for --unused_days days.

    Also deletes unfinished uploads, and the work of ended trainings that was never committed.
    """
    from ..launch.committed import prune_outputs
    from ..staging.prune import UNUSED_DAYS, prune_cache

    days = UNUSED_DAYS if unused_days is None else unused_days
    with closing(call.launcher()) as launcher:
        deleted = [*prune_cache(launcher.session.staging(), days), *prune_outputs(launcher.session, days)]
    if call.as_json:
        print_json([asdict(file) for file in deleted])
    for file in deleted:
        echo(f"deleted {escape_controls(file.path, kept='')}")
    echo(f"{len(deleted)} files deleted, {sum(file.size for file in deleted) / 2**20:.1f} MiB")
