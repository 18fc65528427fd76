"""``ytf doctor``: check what a job needs, and say what to do: a line for each check, and below a complaint advice."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from ..errors import Fault
from ..runtime.common.escaping import escape_controls
from ..terminal.output import print_json
from ..terminal.signals import Interruption
from .command_line import ClusterCall, cluster_options

#: Columns of the outcome and of the check's name.
_OUTCOME, _CHECK = 9, 16
_COLOURS = {"ok": "green", "warning": "yellow", "fault": "red", "skipped": "bright_black"}


@click.command()
@click.option("-q", "--queue", metavar="<name>", help="The queue to check.  [default: default]")
@click.option("--submit", is_flag=True, help="Also run a tiny application, and show its Python and TensorFlow.")
@click.option(
    "--environment",
    metavar="<environment>",
    help="The environment of that application, as for ytf-submit; docker://IMAGE means --submit.  [default: the "
    "Python of the nodes]",
)
@click.option("--task_gpus", type=click.IntRange(0), metavar="<gpus>", help="GPUs of that application's task.")
@click.option(
    "--timeout", type=click.FloatRange(min=1), metavar="<seconds>", help="Seconds for that application.  [default: 120]"
)
@click.option(
    "--compare",
    "examined",
    multiple=True,
    metavar="<file>",
    help="What `ytf doctor --json` has printed on another machine of this team; a difference is a fault. Several times "
    "for several machines.",
)
@cluster_options
@click.pass_obj
def doctor(
    obj: Interruption,
    queue: str | None,
    submit: bool,
    environment: str | None,
    task_gpus: int | None,
    timeout: float | None,
    examined: tuple[str, ...],
    call: ClusterCall,
) -> int:
    """Check what a job needs, from this machine to the nodes.

    Prints one line for each check, and what to do about a fault. Without --submit and without an image it runs nothing
    on the cluster, and leaves at most two empty directories there: staging and cache. The exit code is 0 if there is no
    fault, else that of the first fault: 2 (a wrong setting), 3 (refused), 4 (unreachable), 5 (no running node), or that
    of the failed application's reason.
    """
    from ..doctor.examination import examine
    from ..doctor.known import Question
    from ..doctor.machine import read_machine
    from ..job.parts import read_environment
    from ..validation import check_faults, noting

    faults: list[Fault] = []
    python = None
    with noting(faults, "environment"):
        python = read_environment(environment) if environment else None
    machines = {}
    for path in examined:
        with noting(faults, "compare"):
            host, facts = read_machine(path)
            machines[f"{host} in {path}" if host in machines else host] = facts
    check_faults(faults)
    question = Question(
        dict(os.environ),
        call.resourcemanager,
        call.user,
        queue=queue or "default",
        submit=submit,
        environment=python,
        gpus=task_gpus or 0,
        timeout=timeout or 120.0,
        machines=machines,
    )
    with obj.on_signal(question.cancellation.cancel):
        diagnosis = examine(question, lambda result: None if call.as_json else show_result(result.to_dict()))
    if call.as_json:
        print_json(diagnosis.to_dict())
    else:
        click.echo(f"\n{summary_line(diagnosis.to_dict())}")
    return leave(obj.exit_code if obj.number else diagnosis.exit_code, diagnosis.hanging)


def result_lines(result: Mapping[str, Any], width: int = 100) -> Iterator[str]:
    """Yield the lines of one check.

    Parameters
    ----------
    result : mapping
        An item of ``checks`` in the diagnosis as JSON.
    width : int, optional
        Characters of a line; longer words, such as URLs, stay whole. Default 100.
    """
    outcome = str(result["outcome"])
    word = click.style(f"{outcome:<{_OUTCOME}}", fg=_COLOURS.get(outcome))
    message = "; ".join(str(result["message"]).splitlines())
    first, *rest = _wrap(escape_controls(message), width - _OUTCOME - _CHECK) or [""]
    yield f"{word}{result['check']:<{_CHECK}}{first}"
    yield from (" " * (_OUTCOME + _CHECK) + line for line in rest)
    if result["advice"]:
        first, *rest = _wrap(escape_controls(str(result["advice"])), width - _OUTCOME - len("do: "))
        yield " " * _OUTCOME + f"do: {first}"
        yield from (" " * (_OUTCOME + len("do: ")) + line for line in rest)


def show_result(result: Mapping[str, Any]) -> None:
    """Write the lines of one check to stdout, as wide as the terminal."""
    for line in result_lines(result, max(80, shutil.get_terminal_size().columns)):
        click.echo(line)


def summary_line(diagnosis: Mapping[str, Any]) -> str:
    """Return the line that counts the outcomes of a diagnosis."""
    counts = diagnosis["counts"].items()
    plural = {"warning": "warnings", "fault": "faults"}
    return ", ".join(f"{number} {plural.get(name, name) if number > 1 else name}" for name, number in counts if number)


def leave(code: int, hanging: bool) -> int:
    """Return the exit code of a command that has made a diagnosis, or end the process with it.

    Parameters
    ----------
    code : int
    hanging : bool
        Whether a check still waits for a server. The usual end of a process would wait for its threads.
    """
    if hanging:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(30, width), break_long_words=False, break_on_hyphens=False)
