"""``ytf logs``: print the logs of tasks, of a running or an ended application, or follow them until the end."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import click

from ..errors import LogMissing, SpecInvalid, TfYarnError
from ..follow.log_stream import LogLine, choose_tasks
from ..launch.launcher import Launcher
from ..runtime.common.report import JobReport
from ..terminal.output import echo, show
from ..terminal.progress import Lines
from ..terminal.signals import Interrupted, Interruption
from ..terminal.summary import indent_message
from .command_line import ClusterCall, application_ids_only, cluster_options

_ALL = ("*:*",)
#: Characters of the longest line.
_LONGEST = 1 << 20


@click.command()
@cluster_options
@click.argument("application_id", metavar="APP", callback=application_ids_only)
@click.option(
    "--task",
    "tasks",
    metavar="<type:index>",
    multiple=True,
    help="Such as worker:1, or several by 'worker:*'; coordinator and master are the logs of the application "
    "master. Can be repeated.  "
    "[default: all with -f, else the first failed task, the chief or the first task]",
)
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Print the lines of all tasks as they come, until the application has ended. "
    "The exit code is that of its reason.",
)
@click.option(
    "--tail", type=click.IntRange(min=1), metavar="<lines>", help="Print only so many lines from the end; not with -f."
)
@click.pass_obj
def logs(
    obj: Interruption,
    application_id: str,
    tasks: tuple[str, ...],
    follow: bool,
    tail: int | None,
    call: ClusterCall,
) -> int:
    """Print the logs of tasks, of a running or an ended application.

    With -f, all tasks are followed at once, each line with its task, until the application has ended.
    """
    if follow and tail:
        raise click.UsageError("--tail and -f exclude each other")
    launcher = call.launcher()
    if not follow:
        _print(launcher, application_id, tasks, tail, call.as_json)
        return 0
    progress, ended = Lines(), False

    def on_change(report: JobReport) -> None:
        nonlocal ended
        ended = report.reason is not None
        progress.show(report)

    try:
        with obj.raised():
            final = launcher.wait(
                application_id,
                on_change=on_change,
                poll_interval=1.0,
                ours=False,
                on_line=lambda line: _show(line, call.as_json),
                tasks=tasks or _ALL,
                agent_lines=True,
            )
    except Interrupted:
        echo(
            f"{application_id} {'has ended' if ended else 'goes on'}; "
            f"next: ytf logs -f {application_id}{call.next_options}"
        )
        return obj.exit_code
    reason = final.reason.value if final.reason else final.state
    echo(f"{application_id} {reason}{f': {indent_message(final)}' if final.message else ''}")
    return final.exit_code


def _show(line: LogLine, as_json: bool) -> None:
    """Print a line of a followed log, with its task."""
    if as_json:
        _show_json(line.text, task=line.task, start=line.start)
    else:
        show(f"{line.task} | {line.text}", data=True)


def _show_json(line: str, **document: Any) -> None:
    """Print a line of a log as a JSON object of its own: a whole log may not fit in memory."""
    # As in all documents, a NUL is text: databases do not hold it.
    show(json.dumps(document | {"line": line.replace("\0", "\\u0000")}, ensure_ascii=False))


def _print(launcher: Launcher, application_id: str, tasks: tuple[str, ...], tail: int | None, as_json: bool) -> None:
    """Print the logs as they are now, one task after the other."""
    has_patterns = any(sign in name for name in tasks for sign in "*?")
    names = choose_tasks(launcher.report(application_id), tasks) if has_patterns else tasks
    missing: list[TfYarnError] = []
    for name in names or (None,):
        several = name is not None and len(names) > 1
        try:
            lines: Iterable[str] = _lines(launcher.log(application_id, name))
            for line in deque(lines, tail) if tail else lines:
                if as_json:
                    _show_json(line.removesuffix("\n"), task=name)
                else:
                    show(f"{name} | {line}" if several else line, data=True, nl=not line.endswith("\n"))
        except (LogMissing, SpecInvalid) as error:  # there is none, or nothing has run in a container of the task
            if not several:
                raise
            echo(f"{name}: {error}")
            missing.append(error)
    if missing:
        raise missing[0]


def _lines(chunks: Iterator[str]) -> Iterator[str]:
    """Yield the lines with their line feeds; the last may lack it. One of more than 1 MiB becomes several."""
    rest = ""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split("\n")
        if len(rest) > _LONGEST:
            whole, rest = [*whole, rest], ""
        yield from (f"{line}\n" for line in whole)
    if rest:
        yield rest
