"""Lines for the log about what earlier attempts and other executions of a job have left in YARN.

The identity of the training decides about them, see `launch.ensure`.
"""

from collections.abc import Callable

from ..errors import ClusterUnreachable, SubmissionRejected
from ..follow.lease import with_holder
from ..follow.session import Session
from ..follow.yarn_report import read_yarn_report
from ..hadoop.resourcemanager import ENDED
from ..launch.identity import IGNORE, Identity, attempt_of, generation_of, order
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport

#: Characters of a report's message in a line.
_LONGEST = 400


def log_previous(session: Session, identity: Identity, user: str, echo: Callable[[str], object]) -> None:
    """Say what became of the previous attempt, and which other executions an execution runs beside.

    Parameters
    ----------
    session : Session
    identity : Identity
        That of this attempt.
    user : str
        The user of the applications.
    say : callable
        Writes a line into the job's log.
    """
    try:
        found = sorted(session.resourcemanager.find([identity.tag], user=user), key=lambda one: order(one["id"]))
    except (ClusterUnreachable, SubmissionRejected) as error:
        echo(f"what earlier attempts and executions have left is not known: {error}")
        return
    if identity.attempt:
        earlier = [
            one for one in found if generation_of(one) == identity.generation and attempt_of(one) < identity.attempt
        ]
        echo(
            _attempt(attempt_of(earlier[-1]), with_holder(session.staging, read_yarn_report(earlier[-1])))
            if earlier
            else f"attempt {identity.attempt - 1} has left no application in YARN"
        )
    for one in found if identity.previous == IGNORE else ():
        if one["state"] not in ENDED and generation_of(one) != identity.generation:
            echo(
                f"warning: execution {generation_of(one)} of this job has an application that is {one['state']}, and "
                f"both go on. To end that one: ytf kill {one['id']} . Next time: tf.previous=kill or wait"
            )


def _attempt(attempt: int, report: JobReport) -> str:
    if report.state not in ENDED:
        return (
            f"attempt {attempt} has left an application that is {report.state}: {report.application_id}. "
            "This attempt goes on with it"
        )
    final = report.reason in (Reason.SUCCEEDED, Reason.SUPERSEDED)
    reason = report.reason.value if report.reason else report.state
    message = " ".join(report.message.split())[:_LONGEST].rstrip(".")
    ending = f"{reason}: {message}" if message else reason
    again = "" if final else ". This attempt trains again"
    return f"attempt {attempt} ended as {ending} ({report.application_id}){again}"
