"""``./dev hadoop up|down|status|env|failover``: the commands of ``ytf minicluster``, with the options of the tests."""

import os
import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import commands as plain
from tf_yarn_ops.minicluster.artefacts import VERSION
from tf_yarn_ops.minicluster.daemon_settings import MAX_NODES
from tf_yarn_ops.minicluster.hadoop import default_directory

from .cluster import HadoopCluster
from .hosts import HostsCluster, HostsSettings
from .kerberos import USERS
from .labels import read_labels
from .versions import VERSIONS

_OPTIONS = [
    click.Option(
        ["--label", "labels"],
        multiple=True,
        metavar="<node>=<label>",
        callback=lambda *given: read_labels(given[2]),
        help="YARN node label of a NodeManager, such as nm2=gpu; repeatable. The queue low may not use it.",
    ),
    click.Option(
        ["--version"],
        type=click.Choice(tuple(VERSIONS)),
        metavar="<version>",
        help=f"Version of Hadoop: {', '.join(VERSIONS)}.  [default: {VERSION}]",
    ),
    click.Option(
        ["--ha"], is_flag=True, default=None, help="Run two ResourceManagers with ZooKeeper, and two NameNodes."
    ),
    click.Option(
        ["--kerberos"],
        is_flag=True,
        default=None,
        help="Demand Kerberos of every client: with a KDC of its own and the users alice, bob and gateway.",
    ),
    click.Option(
        ["--https"],
        is_flag=True,
        default=None,
        help="Serve the daemons' pages by HTTPS only, with a certificate of a private authority.",
    ),
    click.Option(
        ["--ticket_lifetime"],
        type=click.IntRange(1),
        metavar="<seconds>",
        help="Longest life of a user's ticket.  [default: a day]",
    ),
    click.Option(
        ["--docker"],
        is_flag=True,
        default=None,
        help="Run a Docker engine for jobs of the user nobody (HADOOP_USER_NAME); needs root. Images: local/python:1, "
        "local/nopython:1, local/nolibrary:1, local/nobash:1, local/small:1 and foreign/python:1, which YARN does not trust.",
    ),
    click.Option(
        ["--knox"],
        is_flag=True,
        default=None,
        help="Run an Apache Knox before the daemons, with the topologies default and rest.",
    ),
    click.Option(
        ["--kms"],
        is_flag=True,
        default=None,
        help="Run Hadoop's key server; your home directory (with --kerberos: that of gateway) is an encryption zone.",
    ),
    click.Option(
        ["--hosts"],
        type=click.IntRange(1, MAX_NODES),
        metavar="<n>",
        help="Run each NodeManager, with a DataNode, on a host of its own, and two hosts more: master and edge. As root. "
        "With --ha, without Kerberos and HTTPS, the pairs run on master and master2, and ZooKeeper and a JournalNode on "
        "master3.",
    ),
]


#: The parameters of `up` that a cluster of several hosts takes.
_WITH_HOSTS = ("hosts", "directory", "properties", "as_json", "kerberos", "https", "ticket_lifetime", "ha")


class _Commands(click.Group):
    """A group that reports a `MiniClusterError` as a message."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MiniClusterError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Commands)
@click.pass_context
def hadoop(context: click.Context) -> None:
    """Run the Hadoop of the tests: also with Kerberos, HTTPS, pairs of daemons, several hosts, and in other versions."""


def _use_kind(context: click.Context, directory: Path | None, hosts: bool = False) -> type[HadoopCluster]:
    """Choose the class of the cluster that is to start, or was started, in this folder."""
    state_file = Path(directory or default_directory(os.environ)) / "state.json"
    hosts = hosts or (state_file.exists() and HostsSettings.schema in state_file.read_text())
    context.obj = HostsCluster if hosts else HadoopCluster
    return context.obj


@click.pass_context
def up(context: click.Context, directory: Path | None, hosts: int | None, **options: Any) -> None:
    """Start the cluster and wait until it is ready."""
    kind = _use_kind(context, directory, hosts is not None)
    if hosts is not None:
        others = [option for option in context.command.params if option.name not in _WITH_HOSTS
                  and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE]  # fmt: skip
        if others:
            raise click.ClickException(
                "--hosts goes with --dir, --set, --json, --ha, --kerberos, --https and --ticket_lifetime alone; leave out "
                f"{', '.join(one.opts[0] for one in others)}"
            )
        options = {name: options[name] for name in _WITH_HOSTS if name in options} | {"nodes": hosts}
    else:
        options["labels"] = options["labels"] or None
    context.invoke(plain.up, directory=directory, **options)
    cluster = kind(directory)
    on_edge = f"{kind.command} on{_named(directory)} edge " if isinstance(cluster, HostsCluster) else ""
    if on_edge and not options["as_json"]:
        click.echo(click.style("Run something on a host: edge, master, n1 ...", bold=True), err=True)
        click.echo(f"  {on_edge}ytf doctor", err=True)
    if cluster.settings.knox and not options["as_json"]:
        click.echo(click.style("Reach it through Knox", bold=True), err=True)
        click.echo(
            f"  env YTF_SITE={shlex.quote(str(cluster.settings.gateway.site_file))} YTF_RESOURCEMANAGER= ytf doctor",
            err=True,
        )
    if cluster.settings.kerberos and not options["as_json"]:
        click.echo(click.style("Get a ticket, as alice, bob or gateway", bold=True), err=True)
        click.echo(f"  {on_edge}{_kinit(cluster, 'alice')}", err=True)


@click.pass_context
def env(context: click.Context, directory: Path | None) -> None:
    """Print the variables for a shell."""
    cluster = _use_kind(context, directory)(directory)
    context.invoke(plain.env, directory=directory)
    for user in USERS if cluster.settings.kerberos else ():
        click.echo(f"# {_kinit(cluster, user)}")


@click.pass_context
def show_status(context: click.Context, directory: Path | None, as_json: bool) -> None:
    """Show the daemons and their addresses."""
    cluster = _use_kind(context, directory)(directory)
    if not as_json and cluster.status().daemons and cluster.settings.ha:
        click.echo(f"active: {', '.join(filter(None, map(cluster.active, ('rm', 'nn'))))}")
    context.invoke(plain.show_status, directory=directory, as_json=as_json)


@click.pass_context
def down(context: click.Context, directory: Path | None) -> None:
    _use_kind(context, directory)
    context.invoke(plain.down, directory=directory)


@hadoop.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--dir", "directory", metavar="<folder>", type=click.Path(path_type=Path))
@click.argument("host")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def on(directory: Path | None, host: str, words: tuple[str, ...]) -> None:
    """Run a program on a host of a cluster that was started with --hosts."""
    cluster = HostsCluster(directory)
    os.environ.update(cluster.environ)
    command = cluster.on(host, words)
    os.execvp(command[0], command)


@hadoop.command()
@click.argument("kind", type=click.Choice(["rm", "nn"]))
@click.option("--dir", "directory", metavar="<folder>", type=click.Path(path_type=Path))
def failover(kind: str, directory: Path | None) -> None:
    """Kill the active ResourceManager (rm) or NameNode (nn) of a cluster that was started with --ha.

    Return when the other one is active and the killed one runs again, as the standby.
    """
    cluster = _use_kind(click.get_current_context(), directory)
    click.echo(cluster(directory, progress=lambda line: click.echo(line, err=True)).failover(kind))


for function in (up, down, env, show_status):
    base = getattr(plain, function.__name__)
    options = [*base.params, *(_OPTIONS if function is up else ())]
    hadoop.add_command(click.Command(base.name, callback=function, params=options, help=base.help))


def _kinit(cluster: HadoopCluster, user: str) -> str:
    return f"kinit -k -t {shlex.quote(str(cluster.keytab(user)))} {user}"


def _named(directory: Path | None) -> str:
    return f" --dir {shlex.quote(str(directory))}" if directory else ""
