"""``ytf minicluster up|down|status|env``: results go to stdout, progress to stderr."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..errors import MiniClusterError
from .daemon_settings import MAX_NODES
from .hadoop import MiniCluster

_directory = click.option(
    "--dir",
    "directory",
    metavar="<folder>",
    type=click.Path(path_type=Path),
    help="The cluster's folder; each folder has a cluster of its own.  "
    "[default: $YTF_MINICLUSTER_DIR, else minicluster in the cache folder]",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group()
@click.pass_context
def minicluster(context: click.Context) -> None:
    """Run a real Hadoop on this machine, to try and test jobs: HDFS and YARN on 127.0.0.1."""
    context.obj = MiniCluster


@minicluster.command()
@_directory
@click.option("--light", is_flag=True, default=None, help="Leave HDFS out, which is faster and takes half the memory.")
@click.option("--nodes", type=click.IntRange(1, MAX_NODES), metavar="<n>", help="Number of NodeManagers.  [default: 1]")
@click.option(
    "--set",
    "properties",
    multiple=True,
    metavar="<property>=<value>",
    help="A Hadoop property, which wins over the minicluster's own; repeatable.",
)
@_as_json
@click.pass_obj
def up(
    kind: type[MiniCluster], /, directory: Path | None, properties: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Start the cluster and wait until it is ready.

    Daemons that already run keep running.
    """
    cluster = kind(
        directory, progress=_echo, properties=_read_properties(properties) if properties else None, **options
    )
    if os.geteuid() == 0:
        _echo("warning: through this cluster every user of this machine can run programs as root; end it after use")
    cluster.up()
    if as_json:
        click.echo(json.dumps(cluster.describe(), indent=2))
        return
    lines = [
        "",
        _bold("Pages"),
        *(f"  {title:<16} {url}" for title, url in _pages(cluster).items()),
        _bold("Use it in this shell"),
        f'  eval "$({kind.command} env{_option(directory)})"',
        _bold("Run something on it"),
        f"  ytf-submit --wait --environment {_own_python()} -m 256 -r worker:2 'echo \"I am worker $DTF_TASK_INDEX\"'",
        _bold("End it"),
        f"  {kind.command} down{_option(directory)}",
    ]
    _echo("\n".join(lines))


@minicluster.command()
@_directory
@click.pass_obj
def down(kind: type[MiniCluster], directory: Path | None) -> None:
    """End the cluster and its containers.

    Data and logs stay.
    """
    cluster = kind(directory, progress=_echo)
    cluster.down()
    _echo(f"nothing runs in {cluster.directory}")


@minicluster.command("status")
@_directory
@_as_json
@click.pass_context
def show_status(context: click.Context, directory: Path | None, as_json: bool) -> None:
    """Show the daemons and their addresses.

    The exit code is 0 if the cluster is ready, else 3.
    """
    cluster: MiniCluster = context.obj(directory)
    now = cluster.status()
    if as_json:
        click.echo(json.dumps(cluster.describe(), indent=2))
    elif not now.daemons:
        click.echo(f"there is no cluster in {cluster.directory}")
    else:
        for daemon in cluster.settings.list_daemons():
            pid = now.daemons.get(daemon.name)
            state = click.style(f"pid {pid}", fg="green") if pid else click.style("down", fg="red")
            click.echo(f"{daemon.name:<4} {daemon.title:<16} {state}")
        places = {"Default file system": cluster.default_filesystem, "Folder": str(cluster.directory)}
        for title, place in (_pages(cluster) | places).items():
            click.echo(f"{title:<21} {place}")
        click.echo("ready" if now.ready else "not ready")
    if not now.ready:
        context.exit(3)


@minicluster.command()
@_directory
@click.pass_obj
def env(kind: type[MiniCluster], directory: Path | None) -> None:
    """Print the variables for a shell.

    Set them with: eval "$(ytf minicluster env)".
    """
    for name, value in kind(directory).environ.items():
        click.echo(f"export {name}={shlex.quote(value)}")


def _pages(cluster: MiniCluster) -> dict[str, str]:
    settings = cluster.settings
    return {
        **{f"ResourceManager{name[2:]}": f"{settings.web_address(name)}/cluster" for name in settings.resourcemanagers},
        **{f"NameNode{name[2:]}": settings.web_address(name) for name in settings.namenodes},
    }


def _read_properties(words: tuple[str, ...]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    if wrong := [f"{name!r}" for name, mark, _ in pairs if not (name.strip() and mark)]:
        raise MiniClusterError(f"a property is written as NAME=VALUE, not as {', '.join(wrong)}")
    return {name.strip(): value for name, _, value in pairs}


def _option(directory: Path | None) -> str:
    return f" --dir {shlex.quote(str(directory))}" if directory else ""


def _own_python() -> str:
    """Return the environment of this interpreter, which has the packages that the application master needs."""
    kind, path = ("venv", sys.prefix) if sys.prefix != sys.base_prefix else ("python", sys.executable)
    return shlex.quote(f"{kind}://{path}")


def _echo(line: str) -> None:
    click.echo(line, err=True)


_bold: Callable[[str], str] = lambda text: click.style(text, bold=True)  # noqa: E731
