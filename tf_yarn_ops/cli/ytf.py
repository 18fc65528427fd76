"""``ytf``: follow, inspect and kill applications from any machine that reaches the ResourceManager."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click

from .. import __version__
from ..errors import ClusterUnreachable, SpecInvalid, TfYarnError, WaitTimeout, did_you_mean
from ..runtime.common.clock import duration, local_time
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.output import align, echo, print_json, report_without_state, show, terminal_columns
from ..terminal.progress import make_progress
from ..terminal.signals import Interrupted, Interruption
from ..terminal.summary import describe, indent_message
from .command_line import ClusterCall, application_ids_only, cluster_options

if TYPE_CHECKING:
    from ..launch.launcher import Launcher

#: Groups of commands that are imported only when they are called: module, name in it, help.
LAZY = {
    "azkaban": ("..azkaban.commands", "azkaban", "Install the Azkaban job type."),
    "cache": (".cache", "cache", "List and delete the uploaded files that your jobs share."),
    "compare": (".history", "compare_command", "Show ended jobs side by side, what differs first."),
    "convert": ("..azkaban.convert", "convert", "Print a job of TonY as YAML."),
    "doctor": (".doctor", "doctor", "Check what a job needs, and say what to do about faults."),
    "env": (".env", "env_group", "Pack an environment for the nodes, and check one."),
    "exec": (".exec", "exec_command", "Run a shell or a command beside a running task."),
    "history": (".history", "history", "List ended jobs, long after YARN has forgotten them."),
    "logs": (".logs", "logs", "Print the logs of tasks, and follow them as they grow."),
    "minicluster": ("..minicluster.commands", "minicluster", "Run a real Hadoop on this machine."),
    "oozie": ("..oozie.commands", "oozie", "Pack a job as an application of Oozie, and start it."),
    "schema": (".schema", "schema", "Print the JSON Schema of job.yaml or site.yaml, for editors."),
    "tensorboard": (".tensorboard", "tensorboard", "Show the curves of applications in TensorBoard on this machine."),
    "ui": ("..ui.commands", "ui", "Show ended and live jobs in the browser."),
}


#: What others call the program ytf-submit.
_SUBMITTING = ("submit", "run", "start", "train", "launch")


class _Group(click.Group):
    """A group that lists the commands of `LAZY` without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *LAZY]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LAZY:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = LAZY[cmd_name]
        if ctx.obj is not None:
            # These commands end what they have started when an exception interrupts them.
            ctx.with_resource(ctx.obj.raised())
        return cast(click.Command, getattr(import_module(module, __package__), attribute))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            program = " (did you mean the program 'ytf-submit'?)" if args[0] in _SUBMITTING else ""
            ctx.fail(f"There is no command {args[0]!r}{program or did_you_mean(args[0], known)}.")
        return super().resolve_command(ctx, args)

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
    """Follow, inspect and kill TensorFlow jobs on YARN.

    The program ytf-submit submits them.
    """


def _command(function: Callable[..., Any]) -> click.Command:
    """Add a command to `ytf`, named by the first word of the function's name."""
    return ytf.command(name=function.__name__.partition("_")[0])(cluster_options(function))


_application = click.argument("application_id", metavar="APP", callback=application_ids_only)


def _print_report(application_id: str, call: ClusterCall,
                  read: "Callable[[Launcher, str], JobReport] | None" = None) -> int:  # fmt: skip
    """Print a report; return exit code 9 if no source knows the application, else 0."""
    with call.reporting(application_id):
        launcher = call.launcher()
        report = read(launcher, application_id) if read else launcher.report(application_id)
    call.print_result(report.to_dict(), describe(report, time.time(), call.next_options, terminal_columns()))
    return report.exit_code if report.reason is Reason.LOST else 0


@_command
@_application
def status(application_id: str, call: ClusterCall) -> int:
    """Show the present state of an application and its tasks."""
    return _print_report(application_id, call)


@_command
@_application
def report(application_id: str, call: ClusterCall) -> int:
    """Print how an application and its tasks ended, and why.

    The history answers when YARN has forgotten the application.
    """
    return _print_report(application_id, call, _read_report)


def _read_report(launcher: "Launcher", application_id: str) -> JobReport:
    """Return a report from YARN, else from the history; LOST if both do not know the application."""
    from ..history.histories import read_record

    found = launcher.report(application_id)
    if found.reason is not Reason.LOST:
        return found
    try:
        record = read_record(launcher.cluster, application_id, found.user)
        recorded = JobReport.from_dict(record) if record else None
    except TfYarnError as error:
        echo(f"the history can't be read: {error}")
        return found
    except ValueError:
        return found
    if recorded is None:
        return found
    echo(f"YARN no longer knows {application_id}; this is from the history")
    return recorded


@_command
@_application
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="<seconds>",
    help="Stop waiting after so many seconds.  [default: no limit]",
)
@click.pass_obj
def wait(obj: Interruption, application_id: str, timeout: float | None, call: ClusterCall) -> int:
    """Follow an application to its end.

    The exit code is that of its reason. Ctrl-C stops waiting; the application goes on.
    """
    try:
        with call.reporting(application_id):
            launcher = call.launcher()
            with obj.raised(), make_progress() as progress:
                final = launcher.wait(application_id, timeout=timeout, on_change=progress.show, ours=False)
    except Interrupted:
        echo(f"{application_id} goes on; next: ytf wait {application_id}{call.next_options}")
        return obj.exit_code
    except WaitTimeout:
        if call.as_json:
            print_json(launcher.report(application_id).to_dict())
        raise
    for line in describe(final, time.time(), call.next_options, terminal_columns()):
        echo(line)
    if call.as_json:
        print_json(final.to_dict())
    return final.exit_code


@_command
@_application
@click.argument("task")
def stack(application_id: str, task: str, call: ClusterCall) -> int:
    """Print what the processes of a running task do: the stacks of its Python programs.

    TASK is such as worker:0. The stacks are in the task's log, too.
    """
    from ..follow.live_report import STACK

    launcher = call.launcher()
    session = launcher.session
    found = session.live.fetch_log(session.resourcemanager.get(application_id), task, STACK)
    if found is None:
        report = launcher.report(application_id)
        if report.reason:
            echo(
                f"no process runs, because {application_id} has ended, {report.reason.value}: {indent_message(report)}"
            )
            return Reason.SPEC_INVALID.exit_code
        running = [one.task for one in report.tasks if one.state == "running"]
        if task not in running:
            known = f"; running: {', '.join(running)}" if running else ": none of its tasks runs"
            raise SpecInvalid(f"{task} of {application_id} does not run{did_you_mean(task, running)}{known}")
        raise ClusterUnreachable(f"{task} of {application_id} does not answer. {session.live.obstacle}".rstrip())
    if call.as_json:
        print_json({"application_id": application_id, "task": task, "stack": found})
    else:
        show(found, data=True, nl=False)
    return 0


@_command
@click.argument("application_ids", metavar="APP...", nargs=-1, required=True, callback=application_ids_only)
def kill(application_ids: tuple[str, ...], call: ClusterCall) -> None:
    """Kill applications.

    Returns when they have ended. An application that had ended before stays as it is.
    """
    try:
        launcher = call.launcher()
    except TfYarnError as error:
        if call.as_json:
            print_json([report_without_state(error, application_id).to_dict() for application_id in application_ids])
        raise
    reports, failed = [], []
    for application_id in application_ids:
        try:
            reports.append(launcher.kill(application_id, "Killed by ytf kill"))
        except TfYarnError as error:
            failed.append(error)
            reports.append(report_without_state(error, application_id))
            echo(f"{application_id} could not be killed: {error}")
        else:
            had_ended = "" if reports[-1].reason is Reason.KILLED else "had ended, so nothing is killed: "
            echo(f"{application_id} {had_ended}{reports[-1].final_status}: {indent_message(reports[-1])}")
    if call.as_json:
        print_json([one.to_dict() for one in reports])
    if failed:
        raise failed[0]


@_command
def list_command(call: ClusterCall) -> None:
    """List your applications that have not ended."""
    jobs = call.launcher().list(alerts=True)
    now = time.time()
    rows = [("APPLICATION", "STATE", "QUEUE", "SUBMITTED", "FOR", "NAME")]
    rows += [(job.application_id, job.state, job.queue, local_time(job.submitted_at),
              duration(now - job.submitted_at) if job.submitted_at else "-", job.name) for job in jobs]  # fmt: skip
    alerts = [f"! {job.application_id} {alert.text}" for job in jobs for alert in job.alerts]
    call.print_result([job.to_dict() for job in jobs], [*align(rows), *alerts])
    if not (jobs or call.as_json):
        echo("no live jobs")
