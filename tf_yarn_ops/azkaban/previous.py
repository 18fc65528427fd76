"""Applications of earlier attempts and other executions of a job: lines for the log, and the check of executors.

The identity of the training decides about these applications, see `launch.ensure`.
"""

from collections.abc import Callable

from ..errors import ClusterUnreachable, SubmissionRejected
from ..follow.lease import with_holder
from ..follow.session import Session
from ..follow.yarn_report import read_yarn_report
from ..hadoop.resourcemanager import ENDED
from ..launch.identity import IGNORE, Identity, attempt_of, deployment_tag, generation_of, order, tags_of
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport

#: Characters of a report's message in a line.
_LONGEST = 400


def check_previous(session: Session, identity: Identity, user: str, echo: Callable[[str], object]) -> None:
    """Log what became of the previous attempt, and which other executions an execution runs beside.

    Parameters
    ----------
    session : Session
    identity : Identity
        That of this attempt.
    user : str
        The user of the applications.
    echo : callable
        Writes a line into the job's log.

    Raises
    ------
    SubmissionRejected
        An executor with another name for the server has submitted an application that this job would have to follow,
        kill or wait for. It may be another Azkaban's, so this job leaves it alone, and does not train beside it.
    """
    try:
        listed = session.resourcemanager.find([deployment_tag(identity.deployment)], user=user)
    except (ClusterUnreachable, SubmissionRejected) as error:
        echo(f"what earlier attempts and executions have left is not known: {error}")
        return
    listed.sort(key=lambda one: order(one["id"]))
    found = [one for one in listed if identity.tag in tags_of(one)]
    if identity.attempt:
        earlier = [
            one for one in found if generation_of(one) == identity.generation and attempt_of(one) < identity.attempt
        ]
        echo(
            _attempt(attempt_of(earlier[-1]), with_holder(session.staging, read_yarn_report(earlier[-1])))
            if earlier
            else f"attempt {identity.attempt - 1} has left no application in YARN"
        )
    for one in listed:
        beside = identity.previous == IGNORE and generation_of(one) != identity.generation
        if one["state"] in ENDED or (one in found and not beside):
            continue
        if not beside:
            raise SubmissionRejected(
                f"{one['id']} of execution {generation_of(one)} of this job is {one['state']}. An executor has "
                f"submitted it that names Azkaban's server otherwise than this one, {identity.key!r}. Nothing was "
                "submitted: set the same azkaban.webserver.url on all executors"
            )
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
    return (
        f"attempt {attempt} ended as {ending} ({report.application_id}){'' if final else '. This attempt trains again'}"
    )
