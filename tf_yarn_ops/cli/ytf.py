"""``ytf``: look at applications and end them, from any machine that reaches the ResourceManager."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..errors import TfYarnError, WaitTimeout
from ..runtime.common.reasons import Reason
from ..terminal.output import configure_logging, print_json, say, unknown_report
from ..terminal.progress import make_progress
from ..terminal.signals import Interrupted
from ..terminal.summary import clock, describe, duration

if TYPE_CHECKING:
    from ..launch.launcher import Launcher

#: Commands of other rooms, imported only when they are called.
LAZY = {
    "azkaban": ("..azkaban.commands", "azkaban", "The Azkaban job type: install it."),
    "cache": (".cache", "cache", "The staged files that jobs share: list, prune."),
    "minicluster": ("..minicluster.commands", "minicluster", "A real Hadoop on this machine: up, down, env."),
}


class _Group(click.Group):
    """A group that knows the names of commands that it has not imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *LAZY]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LAZY:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = LAZY[cmd_name]
        if ctx.obj is not None:
            # What they have started they end themselves when they are interrupted.
            ctx.with_resource(ctx.obj.raised())
        command: click.Command = getattr(import_module(module, __package__), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [(name, self.commands[name].get_short_help_str(70)) for name in super().list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(own + [(name, text) for name, (_, _, text) in LAZY.items()])


_SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    "token_normalize_func": lambda name: name.replace("-", "_"),
}


@click.group(cls=_Group, context_settings=_SETTINGS)
@click.version_option(__version__)
def ytf() -> None:
    """TensorFlow jobs on YARN: look at them, wait for them, end them. Jobs are started by ytf-submit."""


def _command(function: Callable[..., Any]) -> click.Command:
    """Make a command, named by the function's first word, with the options that all have."""
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="Log each request to stderr."),
        click.option("--json", "as_json", is_flag=True, help="JSON on stdout."),
        click.option("--resourcemanager", metavar="<URL>",
                     help="Default: YTF_RESOURCEMANAGER, site.yaml, HADOOP_CONF_DIR."),
    ):  # fmt: skip
        function = option(function)
    command: click.Command = ytf.command(name=function.__name__.partition("_")[0])(function)
    return command


_application = click.argument("application_id", metavar="APP")


def _launcher(resourcemanager: str | None, verbose: bool) -> "Launcher":
    configure_logging(verbose)
    from ..hadoop.cluster import discover
    from ..launch.launcher import Launcher

    return Launcher(discover(resourcemanager))


def _options(resourcemanager: str | None) -> str:
    return f" --resourcemanager {resourcemanager}" if resourcemanager else ""


def _look(application_id: str, resourcemanager: str | None, as_json: bool, verbose: bool) -> int:
    """Print a report; the exit code is 9 for an application that YARN does not know, else 0."""
    try:
        report = _launcher(resourcemanager, verbose).report(application_id)
    except TfYarnError as error:
        if as_json:
            print_json(unknown_report(error, application_id).to_dict())
        raise
    if as_json:
        print_json(report.to_dict())
    else:
        for line in describe(report, time.time(), _options(resourcemanager)):
            click.echo(line)
    return report.exit_code if report.reason is Reason.LOST else 0


@_command
@_application
def status(application_id: str, resourcemanager: str | None, as_json: bool, verbose: bool) -> int:
    """Say how an application stands now: its state and its tasks."""
    return _look(application_id, resourcemanager, as_json, verbose)


@_command
@_application
def report(application_id: str, resourcemanager: str | None, as_json: bool, verbose: bool) -> int:
    """Print how an application ended, why, and what became of each task."""
    return _look(application_id, resourcemanager, as_json, verbose)


@_command
@_application
@click.option("--timeout", type=click.FloatRange(min=0), metavar="<seconds>", help="Give up waiting after this long.")
@click.pass_obj
def wait(obj: Any, application_id: str, timeout: float | None, resourcemanager: str | None, as_json: bool,
         verbose: bool) -> int:  # fmt: skip
    """Follow an application to its end.

    The exit code is that of its reason. Ctrl-C ends the waiting and leaves the application alone.
    """
    try:
        launcher = _launcher(resourcemanager, verbose)
        with obj.raised(), make_progress() as progress:
            final = launcher.wait(application_id, timeout=timeout, on_change=progress.show)
    except Interrupted as interrupted:
        say(f"{application_id} goes on; next: ytf wait {application_id}{_options(resourcemanager)}")
        return interrupted.exit_code
    except WaitTimeout:
        if as_json:
            print_json(launcher.report(application_id).to_dict())
        raise
    except TfYarnError as error:
        if as_json:
            print_json(unknown_report(error, application_id).to_dict())
        raise
    for line in describe(final, time.time(), _options(resourcemanager)):
        say(line)
    if as_json:
        print_json(final.to_dict())
    return final.exit_code


@_command
@_application
@click.option("--task", metavar="<type:index>",
              help="worker:1, or coordinator and master for the application master's own. "
                   "Default: what failed first, else the chief or the first task.")
@click.option("--tail", type=click.IntRange(min=1), metavar="<lines>", help="Only the last lines.")
def logs(application_id: str, task: str | None, tail: int | None, resourcemanager: str | None, as_json: bool,
         verbose: bool) -> None:  # fmt: skip
    """Print the log of a task, while it runs and afterwards."""
    launcher = _launcher(resourcemanager, verbose)
    from ..follow.logs import Logs

    chunks = Logs(launcher.cluster, launcher.resourcemanager).read(application_id, task)
    if tail or as_json:
        text = "".join(chunks)
        chunks = iter(["".join(text.splitlines(keepends=True)[-tail:]) if tail else text])
    if as_json:
        print_json({"application_id": application_id, "task": task, "log": next(chunks)})
        return
    last = "\n"
    for chunk in chunks:
        click.echo(chunk, nl=False)
        last = chunk[-1:] or last
    if last != "\n":
        click.echo()


@_command
@click.argument("application_ids", metavar="APP...", nargs=-1, required=True)
def kill(application_ids: tuple[str, ...], resourcemanager: str | None, as_json: bool, verbose: bool) -> None:
    """Kill applications.

    Waits until they are gone; one that has ended before is left as it is.
    """
    try:
        launcher = _launcher(resourcemanager, verbose)
    except TfYarnError as error:
        if as_json:
            print_json([unknown_report(error, application_id).to_dict() for application_id in application_ids])
        raise
    reports, failed = [], []
    for application_id in application_ids:
        try:
            reports.append(launcher.kill(application_id, "Killed by ytf kill"))
        except TfYarnError as error:
            failed.append(error)
            reports.append(unknown_report(error, application_id))
            say(f"{application_id} could not be killed: {error}")
        else:
            say(f"{application_id} {reports[-1].final_status}: {reports[-1].message}")
    if as_json:
        print_json([one.to_dict() for one in reports])
    if failed:
        raise failed[0]


@_command
def list_command(resourcemanager: str | None, as_json: bool, verbose: bool) -> None:
    """List your live jobs."""
    jobs = _launcher(resourcemanager, verbose).list()
    if as_json:
        print_json([job.to_dict() for job in jobs])
        return
    now = time.time()
    rows = [("APPLICATION", "STATE", "QUEUE", "SUBMITTED", "FOR", "NAME")]
    rows += [(job.application_id, job.state, job.queue, clock(job.submitted_at),
              duration(now - job.submitted_at) if job.submitted_at else "-", job.name) for job in jobs]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    if not jobs:
        say("no live jobs")
