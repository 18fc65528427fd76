"""``ytf doctor``: check what a job needs, and say what to do."""

import os
from typing import Any

import click

from ..errors import Fault
from ..terminal.diagnosis import leave, show_result, summary_line
from ..terminal.output import print_json
from .command_line import ClusterCall, cluster_options


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
@cluster_options
@click.pass_obj
def doctor(
    obj: Any,
    queue: str | None,
    submit: bool,
    environment: str | None,
    task_gpus: int | None,
    timeout: float | None,
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
    from ..job.parts import read_environment
    from ..validation import check_faults, noting

    faults: list[Fault] = []
    python = None
    with noting(faults, "environment"):
        python = read_environment(environment) if environment else None
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
    )
    with obj.on_signal(question.cancellation.cancel):
        diagnosis = examine(question, lambda result: None if call.as_json else show_result(result.to_dict()))
    if call.as_json:
        print_json(diagnosis.to_dict())
    else:
        click.echo(f"\n{summary_line(diagnosis.to_dict())}")
    return leave(128 + obj.number if obj.number else diagnosis.exit_code, diagnosis.hanging)
