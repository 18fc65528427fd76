"""``ytf minicluster up|down|status|env``: results go to stdout, progress to stderr."""

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
from .kerberos import USERS
from .labels import read_labels
from .versions import DEFAULT, VERSIONS

_directory = click.option(
    "--dir",
    "directory",
    metavar="<folder>",
    type=click.Path(path_type=Path),
    help="The cluster's folder; each folder has a cluster of its own.  "
         "[default: $YTF_MINICLUSTER_DIR, else minicluster in the cache folder]",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class _Failing(click.Group):
    """A group that reports a `MiniClusterError` as a message and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MiniClusterError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Failing)
def minicluster() -> None:
    """Run a real Hadoop on this machine, to try and test jobs: HDFS and YARN on 127.0.0.1."""


@minicluster.command()
@_directory
@click.option("--light", is_flag=True, default=None, help="Leave HDFS out, which is faster and takes half the memory.")
@click.option("--nodes", type=click.IntRange(1, MAX_NODES), metavar="<n>", help="Number of NodeManagers.  [default: 1]")
@click.option("--stock", is_flag=True, default=None, help="Keep Hadoop's own heartbeat and off-switch settings.")
@click.option("--label", "labels", multiple=True, metavar="<node>=<label>",
              help="YARN node label of a NodeManager, such as nm2=gpu; repeatable. The queue low may not use it.")
@click.option("--hadoop", "version", type=click.Choice(tuple(VERSIONS)), metavar="<version>",
              help=f"Version of Hadoop: {', '.join(VERSIONS)}.  [default: {DEFAULT}]")
@click.option("--ha", is_flag=True, default=None, help="Run two ResourceManagers with ZooKeeper, and two NameNodes.")
@click.option("--kerberos", is_flag=True, default=None,
              help="Demand Kerberos of every client: with a KDC of its own and the users alice, bob and gateway.")
@click.option("--https", is_flag=True, default=None,
              help="Serve the daemons' pages by HTTPS only, with a certificate of a private authority.")
@click.option("--ticket_lifetime", type=click.IntRange(1), metavar="<seconds>",
              help="Longest life of a user's ticket.  [default: a day]")
@click.option("--set", "properties", multiple=True, metavar="<property>=<value>",
              help="A Hadoop property, which wins over the minicluster's own; repeatable.")
@_as_json
def up(directory: Path | None, light: bool | None, nodes: int | None, stock: bool | None, labels: tuple[str, ...],
       version: str | None, ha: bool | None, kerberos: bool | None, https: bool | None, ticket_lifetime: int | None,
       properties: tuple[str, ...], as_json: bool) -> None:
    """Start the cluster and wait until it is ready.

    Daemons that already run keep running.
    """
    cluster = MiniCluster(directory, nodes, light, stock, read_labels(labels) if labels else None, version,
                          progress=_say, ha=ha, kerberos=kerberos, https=https, ticket_lifetime=ticket_lifetime,
                          properties=_read_properties(properties) if properties else None)
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
    if cluster.settings.kerberos:
        _say(_bold("Get a ticket, as alice, bob or gateway"))
        _say(f"  {_kinit(cluster, 'alice')}")
    _say(_bold("Run something on it"))
    _say(f"  ytf-submit --wait --environment {_own_python()} -m 256 -r worker:2 'echo \"I am worker $DTF_TASK_INDEX\"'")
    _say(_bold("End it"))
    _say(f"  ytf minicluster down{_option(directory)}")


@minicluster.command()
@_directory
def down(directory: Path | None) -> None:
    """End the cluster and its containers.

    Data and logs stay.
    """
    cluster = MiniCluster(directory, progress=_say)
    cluster.down()
    _say(f"nothing runs in {cluster.directory}")


@minicluster.command()
@_directory
@_as_json
@click.pass_context
def status(context: click.Context, directory: Path | None, as_json: bool) -> None:
    """Show the daemons and their addresses.

    The exit code is 0 if the cluster is ready, else 3.
    """
    cluster = MiniCluster(directory)
    now = cluster.status()
    if as_json:
        click.echo(json.dumps(_describe(cluster), indent=2))
    elif not now.daemons:
        click.echo(f"there is no cluster in {now.directory}")
    else:
        for daemon in now.daemons:
            state = click.style(f"pid {daemon.pid}", fg="green") if daemon.pid else click.style("down", fg="red")
            role = "" if daemon.active is None or not daemon.pid else " active" if daemon.active else " standby"
            click.echo(f"{daemon.name:<4} {daemon.title:<16} {state}{role}")
        for title, url in _pages(cluster).items():
            click.echo(f"{title:<21} {url}")
        click.echo(f"{'Folder':<21} {now.directory}")
        click.echo("ready" if now.ready else "not ready")
    if not now.ready:
        context.exit(3)


@minicluster.command()
@click.argument("kind", type=click.Choice(["rm", "nn"]))
@_directory
def failover(kind: str, directory: Path | None) -> None:
    """Kill the active ResourceManager (rm) or NameNode (nn) of a cluster that was started with --ha.

    Return when the other one is active and the killed one runs again, as the standby.
    """
    click.echo(MiniCluster(directory, progress=_say).failover(kind))


@minicluster.command()
@_directory
def env(directory: Path | None) -> None:
    """Print the variables for a shell.

    Set them with: eval "$(ytf minicluster env)".
    """
    cluster = MiniCluster(directory)
    for name, value in cluster.environ.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    if cluster.settings.kerberos:
        for user in USERS:
            click.echo(f"# {_kinit(cluster, user)}")


def _describe(cluster: MiniCluster) -> dict[str, Any]:
    now = cluster.status()
    described: dict[str, Any] = {"directory": str(now.directory), "ready": now.ready}
    if now.daemons:
        described |= {
            "resourcemanager_url": cluster.resourcemanager_url,
            "namenode_url": cluster.namenode_url,
            **_describe_pairs(cluster),
            "default_filesystem": cluster.default_filesystem,
            "active_nodes": now.active_nodes,
            "daemons": {daemon.name: daemon.pid for daemon in now.daemons},
        }
    return described


def _describe_pairs(cluster: MiniCluster) -> dict[str, Any]:
    if not cluster.settings.ha:
        return {}
    return {
        "resourcemanager_urls": cluster.resourcemanager_urls,
        "namenode_urls": cluster.namenode_urls,
        "active": {kind: cluster.active(kind) for kind in ("rm", "nn")},
    }


def _pages(cluster: MiniCluster) -> dict[str, str]:
    names = cluster.settings.resourcemanagers
    pages = {f"ResourceManager{name[2:]}": f"{cluster.settings.web_address(name)}/cluster" for name in names}
    return pages | {f"NameNode{name[2:]}": cluster.settings.web_address(name) for name in cluster.settings.namenodes}


def _kinit(cluster: MiniCluster, user: str) -> str:
    return f"kinit -k -t {shlex.quote(str(cluster.keytab(user)))} {user}"


def _read_properties(words: tuple[str, ...]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    wrong = [f"{name!r}" for name, mark, _ in pairs if not (name.strip() and mark)]
    if wrong:
        raise MiniClusterError(f"a property is written as NAME=VALUE, not as {', '.join(wrong)}")
    return {name.strip(): value for name, _, value in pairs}


def _option(directory: Path | None) -> str:
    return f" --dir {shlex.quote(str(directory))}" if directory else ""


def _own_python() -> str:
    """Return the environment of this interpreter, which has the packages that the application master needs."""
    kind, path = ("venv", sys.prefix) if sys.prefix != sys.base_prefix else ("python", sys.executable)
    return shlex.quote(f"{kind}://{path}")


def _say(line: str) -> None:
    click.echo(line, err=True)


_bold: Callable[[str], str] = lambda text: click.style(text, bold=True)  # noqa: E731
