"""``ytf doctor``: check what a job needs, and say what to do."""

import os
import shutil
from typing import Any

import click

from ..errors import Fault
from ..terminal.diagnosis import leave, result_lines, summary_line
from ..terminal.output import configure_logging, print_json
from .command_line import cluster_options


@click.command()
@click.option("-q", "--queue", metavar="<name>", help="The queue to check.  [default: default]")
@click.option("--submit", is_flag=True, help="Also run a tiny application, and show its Python and TensorFlow.")
@click.option("--environment", metavar="<environment>",
              help="The environment of that application, as for ytf-submit.  [default: the Python of the nodes]")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="<seconds>",
              help="Seconds for that application.  [default: 120]")
@cluster_options
@click.pass_obj
def doctor(obj: Any, queue: str | None, submit: bool, environment: str | None, timeout: float | None,
           resourcemanager: str | None, user: str | None, as_json: bool, verbose: bool) -> int:  # fmt: skip
    """Check what a job needs, from this machine to the nodes.

    Prints one line for each check, and what to do about a fault. Without --submit it runs nothing on the cluster, and
    leaves at most two empty directories there: staging and cache. The exit code is 0 if there is no fault, else that
    of the first fault: 2 (a wrong setting), 3 (refused), 4 (unreachable), 5 (no running node), or that of the failed
    application's reason.
    """
    configure_logging(verbose, requests=verbose)
    from ..doctor.examination import Result, examine
    from ..doctor.known import Question
    from ..job.parts import read_environment
    from ..validation import check_faults, noting

    faults: list[Fault] = []
    python = None
    with noting(faults, "environment"):
        python = read_environment(environment) if environment else None
    check_faults(faults)
    question = Question(dict(os.environ), resourcemanager, user, queue=queue or "default", submit=submit,
                        environment=python, timeout=timeout or 120.0)
    width = max(80, shutil.get_terminal_size().columns)

    def show(result: Result) -> None:
        for line in () if as_json else result_lines(result.to_dict(), width):
            click.echo(line)

    with obj.noted(question.cancellation.cancel):
        diagnosis = examine(question, show)
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        click.echo(f"\n{summary_line(diagnosis.to_dict())}")
    return leave(128 + obj.number if obj.number else diagnosis.exit_code, diagnosis.hanging)
