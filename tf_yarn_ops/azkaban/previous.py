"""What earlier attempts and other executions of a job have left in YARN: say it, and do as ``tf.previous`` says.

In come the launcher and the execution of this attempt; out go lines for the job's log. Applications of this execution
are only told: the identity of the training decides about them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import ClusterUnreachable, SubmissionRejected
from ..follow.identity import attempt_of, order
from ..follow.yarn_report import read_report
from ..hadoop.resourcemanager import ENDED, LIVE
from ..launch.launcher import Launcher
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.progress import Lines
from .execution import Execution
from .request import IGNORE, KILL, WAIT

_EXECUTION = "azkaban.flow.execid:"
#: Characters of a report's message in a line.
_LONGEST = 400


class Other(NamedTuple):
    """A live application of another execution of the same job."""

    execution_id: str
    application: Mapping[str, Any]

    def __str__(self) -> str:
        return (f"execution {self.execution_id} of this job has an application that is {self.application['state']}: "
                f"{self.application['id']}")


class Previous:
    """Looks for the applications of one job.

    Parameters
    ----------
    launcher : Launcher
    execution : Execution
        This attempt.
    user : str
        The user of the applications.
    say : callable
        Writes a line into the job's log.
    """

    def __init__(self, launcher: Launcher, execution: Execution, user: str, say: Callable[[str], object]):
        self._launcher = launcher
        self._execution = execution
        self._user = user
        self._say = say

    def tell_attempts(self) -> None:
        """Say what became of the previous attempt; no line for the first attempt."""
        own = self._execution
        if not own.attempt:
            return
        try:
            found = self._launcher.resourcemanager.find([own.identity.tag], user=self._user)
        except (ClusterUnreachable, SubmissionRejected) as error:
            self._say(f"what became of the previous attempt is not known: {error}")
            return
        earlier = sorted((one for one in found if attempt_of(one) < own.attempt), key=lambda one: order(one["id"]))
        if not earlier:
            self._say(f"attempt {own.attempt - 1} has left no application in YARN")
        else:
            self._say(_sentence(attempt_of(earlier[-1]), self._launcher.session.with_holder(read_report(earlier[-1]))))

    def settle(self, policy: str) -> None:
        """Say which other executions have live applications, and wait for those of earlier ones, or kill them.

        Azkaban numbers executions in their order. An execution that has begun later is only told, so that two
        executions never wait for each other, and the retry of an old one does not end a new one.

        Raises
        ------
        ClusterUnreachable, SubmissionRejected
            YARN does not answer, or does not allow the kill; with the policy ``ignore`` that is only a line.
        Cancelled
            The launcher was cancelled while it waited.
        """
        try:
            others = list(self._others())
        except (ClusterUnreachable, SubmissionRejected) as error:
            if policy != IGNORE:
                raise
            self._say(f"warning: other executions of this job could not be looked for: {error}")
            return
        for other in others:
            later = int(other.execution_id) > int(self._execution.execution_id or 0)
            if later:
                self._say(f"warning: {other}. It has begun later, and continues beside this one")
            elif policy == KILL:
                self._kill(other)
            elif policy == WAIT:
                self._wait(other)
            else:
                self._say(f"warning: {other}. Both train now. Next time: tf.previous=kill or wait")

    def _others(self) -> Iterator[Other]:
        """Yield the live applications of other executions, those of the oldest execution first."""
        *_, tag = own = self._execution.tags  # the last one names the job, which the fewest applications share
        needed = {name for name in own if not name.startswith(_EXECUTION)} | {self._execution.identity.tags[-1]}
        found = []
        for application in self._launcher.resourcemanager.find([tag], LIVE, self._user):
            tags = {one.strip() for one in str(application.get("applicationTags") or "").split(",")}
            number = next((one.removeprefix(_EXECUTION) for one in tags if one.startswith(_EXECUTION)), "")
            if needed <= tags and number.isdecimal() and number != self._execution.execution_id:
                found.append(Other(number, application))
        yield from sorted(found, key=lambda other: (int(other.execution_id), order(other.application["id"])))

    def _kill(self, other: Other) -> None:
        self._say(f"{other}. It is killed (tf.previous=kill)")
        why = f"Execution {self._execution.execution_id} of the same job has taken over (tf.previous=kill)"
        self._launcher.kill(other.application["id"], why, reason=Reason.SUPERSEDED)

    def _wait(self, other: Other) -> None:
        self._say(f"{other}. This execution waits for its end (tf.previous=wait)")
        lines = Lines()

        def show(report: JobReport) -> None:
            for line in lines.changes(report, time.monotonic()):
                self._say(f"execution {other.execution_id}: {line}")

        report = self._launcher.wait(other.application["id"], on_change=show, poll_interval=5.0, ours=False)
        self._say(f"execution {other.execution_id} has ended: {_ending(report)}")


def _sentence(attempt: int, report: JobReport) -> str:
    if report.state not in ENDED:
        return (f"attempt {attempt} has left an application that is {report.state}: {report.application_id}. "
                "This attempt goes on with it")
    again = "" if report.reason is Reason.SUCCEEDED else ". This attempt trains again"
    return f"attempt {attempt} ended as {_ending(report)}{again}"


def _ending(report: JobReport) -> str:
    reason = report.reason.value if report.reason else report.state
    message = " ".join(report.message.split())[:_LONGEST].rstrip(".")
    return f"{reason}: {message} ({report.application_id})" if message else f"{reason} ({report.application_id})"
