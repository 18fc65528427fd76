"""``ytf minicluster up|down|status|env``: the cluster from a shell. Results go to stdout, progress to stderr."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..errors import MiniClusterError
from .cluster import MiniCluster
from .configuration import MAX_NODES
from .labels import read_labels

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="The cluster's folder; each folder is a cluster of its own. Default: $YTF_MINICLUSTER_DIR, else in the cache.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class _Failing(click.Group):
    """A group whose commands end with the error's own words instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MiniClusterError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Failing)
def minicluster() -> None:
    """A real Hadoop on this machine, for trying and testing: HDFS and YARN on 127.0.0.1."""


@minicluster.command()
@_directory
@click.option("--light", is_flag=True, default=None, help="Leave HDFS out: quicker, and half the memory.")
@click.option("--nodes", type=click.IntRange(1, MAX_NODES), help="Number of NodeManagers.  [default: 1]")
@click.option("--stock", is_flag=True, default=None, help="Keep Hadoop's own heartbeat and off-switch settings.")
@click.option("--label", "labels", multiple=True, metavar="NODE=LABEL",
              help="YARN's node label of a NodeManager, such as nm2=gpu; repeatable. Queue low may not use it.")
@_as_json
def up(directory: Path | None, light: bool | None, nodes: int | None, stock: bool | None, labels: tuple[str, ...],
       as_json: bool) -> None:
    """Start the cluster, or what is missing of it, and wait until it is ready."""
    cluster = MiniCluster(directory, nodes, light, stock, read_labels(labels) if labels else None, progress=_say)
    cluster.up()
    if as_json:
        click.echo(json.dumps(_describe(cluster), indent=2))
        return
    _say("")
    _say(_bold("Pages"))
    for title, url in _pages(cluster).items():
        _say(f"  {title:<16} {url}")
    _say(_bold("Use it in this shell"))
    _say(f'  eval "$(ytf minicluster env{_option(directory)})"')
    _say(_bold("Run something on it"))
    _say(f"  ytf-submit --wait --environment {_own_python()} -m 256 -r worker:2 'echo \"I am worker $DTF_TASK_INDEX\"'")
    _say(_bold("End it"))
    _say(f"  ytf minicluster down{_option(directory)}")


@minicluster.command()
@_directory
def down(directory: Path | None) -> None:
    """End the cluster and everything that runs in its containers; data and logs stay."""
    cluster = MiniCluster(directory, progress=_say)
    cluster.down()
    _say(f"nothing runs in {cluster.directory}")


@minicluster.command()
@_directory
@_as_json
@click.pass_context
def status(context: click.Context, directory: Path | None, as_json: bool) -> None:
    """Say which daemons run and where; exit code 0 when the cluster is ready, else 3."""
    cluster = MiniCluster(directory)
    now = cluster.status()
    if as_json:
        click.echo(json.dumps(_describe(cluster), indent=2))
    elif not now.daemons:
        click.echo(f"there is no cluster in {now.directory}")
    else:
        for daemon in now.daemons:
            state = click.style(f"pid {daemon.pid}", fg="green") if daemon.pid else click.style("down", fg="red")
            click.echo(f"{daemon.name:<4} {daemon.title:<16} {state}")
        for title, url in _pages(cluster).items():
            click.echo(f"{title:<21} {url}")
        click.echo(f"{'Folder':<21} {now.directory}")
        click.echo("ready" if now.ready else "not ready")
    if not now.ready:
        context.exit(3)


@minicluster.command()
@_directory
def env(directory: Path | None) -> None:
    """Print the variables that lead a shell to the cluster: eval "$(ytf minicluster env)"."""
    for name, value in MiniCluster(directory).environ.items():
        click.echo(f"export {name}={shlex.quote(value)}")


def _describe(cluster: MiniCluster) -> dict[str, Any]:
    now = cluster.status()
    described: dict[str, Any] = {"directory": str(now.directory), "ready": now.ready}
    if now.daemons:
        described |= {
            "resourcemanager_url": cluster.resourcemanager_url,
            "namenode_url": cluster.namenode_url,
            "default_filesystem": cluster.default_filesystem,
            "active_nodes": now.active_nodes,
            "daemons": {daemon.name: daemon.pid for daemon in now.daemons},
        }
    return described


def _pages(cluster: MiniCluster) -> dict[str, str]:
    pages = {"ResourceManager": f"{cluster.resourcemanager_url}/cluster"}
    if cluster.namenode_url:
        pages["NameNode"] = cluster.namenode_url
    return pages


def _option(directory: Path | None) -> str:
    return f" --dir {shlex.quote(str(directory))}" if directory else ""


def _own_python() -> str:
    """Give the environment that runs this: it has what the application master needs, which the machine's may not."""
    kind, path = ("venv", sys.prefix) if sys.prefix != sys.base_prefix else ("python", sys.executable)
    return shlex.quote(f"{kind}://{path}")


def _say(line: str) -> None:
    click.echo(line, err=True)


_bold: Callable[[str], str] = lambda text: click.style(text, bold=True)  # noqa: E731
