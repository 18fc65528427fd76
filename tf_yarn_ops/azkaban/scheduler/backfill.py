"""``ytf azkaban backfill``: run a flow for past dates, and never train again for a date that is done.

The only state is Azkaban's own list of executions: each one that a backfill starts has its date in the parameter
`BACKFILL_DATE`. So a backfill that was interrupted continues when the same command is given again, from any machine.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from ...errors import Fault, FaultCode
from ...validation import check_faults
from ..job_execution import BACKFILL_DATE
from .web_api import FLOW_ENDED, FlowExecution, WebServer, referred_names

SUCCEEDED = "SUCCEEDED"
#: Beginnings of the properties that a job type or Azkaban reads itself, so that nothing has to refer to them.
_READ_BY_JOBS = ("tf.", "tony.", "env.")
#: Executions of the flow that are looked at, the latest first. Each of them costs a request.
MAX_EXECUTIONS = 2000
#: Seconds between two questions for the executions that run.
BACKFILL_INTERVAL = 10.0


class ParameterFault(FaultCode):
    """Fault codes for the parameters of a backfill."""

    SET_BY_JOB = (
        "the job {job} sets {name} itself, and Azkaban lets the job win over a parameter of the flow; move "
        "{name} into a .properties file of the project"
    )
    UNUSED = "no job of the flow and none of the properties that they inherit has ${{{given}}}{hint}"


@dataclass(frozen=True)
class Plan:
    """What a backfill runs.

    Parameters
    ----------
    project, flow : str
    dates : sequence of date
    parameters : mapping of str to str
        Parameters of the flow by their names, with formats of `date.strftime` as values: ``{"date": "%Y-%m-%d"}``.
    at_once : int, optional
        How many executions may run at the same time. Default 1.
    keep_going : bool, optional
        Whether further dates are started after a failure. Default false.
    again : bool, optional
        Whether dates that have succeeded are run again. Default false.
    """

    project: str
    flow: str
    dates: Sequence[date]
    parameters: Mapping[str, str]
    at_once: int = 1
    keep_going: bool = False
    again: bool = False

    def parameters_of(self, day: date) -> dict[str, str]:
        """Return the parameters of the execution for a date, the mark among them."""
        return {**{name: day.strftime(form) for name, form in self.parameters.items()}, BACKFILL_DATE: day.isoformat()}


def dates_between(first: date, last: date, days: int = 1) -> list[date]:
    """Return the dates from the first to the last one, both included, every so many days."""
    return [first + timedelta(number) for number in range(0, (last - first).days + 1, days)]


class Backfill:
    """Runs a plan.

    Parameters
    ----------
    server : WebServer
    plan : Plan
    say : callable
        Gets a line for each date that starts, is found, or ends.
    sleep : callable, optional
        For tests.
    """

    def __init__(
        self,
        server: WebServer,
        plan: Plan,
        echo: Callable[[str], object],
        sleep: Callable[[float], object] = time.sleep,
    ):
        self._server = server
        self._plan = plan
        self._echo = echo
        self._sleep = sleep

    def run(self) -> list[date]:
        """Run the flow for each date that is not done; return the dates without a success, in their order.

        Raises
        ------
        SpecInvalid
            A job sets a parameter itself, or nothing refers to it, so that the date would not reach a job.
        ClusterUnreachable, SubmissionRejected
            From the server. What runs continues there; the same plan again continues the backfill.
        """
        self._check_parameters()
        found = self._find()
        running: dict[date, int] = {}
        waiting: list[date] = []
        failed: list[date] = []
        for day in self._plan.dates:
            known = found.get(day)
            if known is None or (known.status in FLOW_ENDED and (self._plan.again or known.status != SUCCEEDED)):
                waiting.append(day)
            elif known.status == SUCCEEDED:
                self._echo(f"{day} is done: execution {known.execution_id}")
            else:
                self._echo(f"{day} runs already: execution {known.execution_id} is {known.status}")
                running[day] = known.execution_id
        while waiting or running:
            while waiting and len(running) < self._plan.at_once and (self._plan.keep_going or not failed):
                day = waiting.pop(0)
                running[day] = self._server.execute(self._plan.project, self._plan.flow, self._plan.parameters_of(day))
                self._echo(f"{day} starts: execution {running[day]}")
            if not running:
                break
            self._sleep(BACKFILL_INTERVAL)
            for day, status in self._ended(running):
                self._echo(f"{day} {status}: execution {running.pop(day)}")
                failed += [] if status == SUCCEEDED else [day]
        for day in waiting:
            self._echo(f"{day} was not started, because another date failed")
        return sorted([*failed, *waiting])

    def _check_parameters(self) -> None:
        jobs = self._server.jobs(self._plan.project, self._plan.flow)
        check_faults(
            Fault("parameter", ParameterFault.SET_BY_JOB, {"name": name, "job": job.name})
            for name in self._plan.parameters
            for job in jobs
            if name in job.properties
        )
        used = {name for job in jobs for text in job.properties.values() for name in referred_names(text)}
        if not used.issuperset(self._plan.parameters):
            used |= self._server.inherited_names(self._plan.project, jobs)
        check_faults(
            Fault("parameter", ParameterFault.UNUSED, {"given": name, "allowed": sorted(used)})
            for name in self._plan.parameters
            if name not in used and not name.startswith(_READ_BY_JOBS)
        )

    def _ended(self, running: Mapping[date, int]) -> list[tuple[date, str]]:
        states = [(day, self._server.status(execution_id)) for day, execution_id in running.items()]
        return [(day, status) for day, status in states if status in FLOW_ENDED]

    def _find(self) -> dict[date, FlowExecution]:
        """Return the execution that counts for each date: a success, else one that runs, else the latest."""
        missing, found = set(self._plan.dates), dict[date, FlowExecution]()
        for execution, day in self._marked():
            if day not in missing:
                continue
            if execution.status == SUCCEEDED and not self._plan.again:
                missing.discard(day)
                found[day] = execution
            elif day not in found or (execution.status not in FLOW_ENDED and found[day].status in FLOW_ENDED):
                found[day] = execution
            if not missing:
                break
        return found

    def _marked(self) -> Iterator[tuple[FlowExecution, date]]:
        """Yield the executions that a backfill has started, with their dates; those with disabled jobs are left out."""
        for number, execution in enumerate(self._server.executions(self._plan.project, self._plan.flow)):
            if number >= MAX_EXECUTIONS:
                self._echo(f"only the latest {MAX_EXECUTIONS} executions of the flow were looked at")
                return
            asked = self._server.flow_request(execution.execution_id)
            try:
                day = date.fromisoformat(asked.parameters.get(BACKFILL_DATE, ""))
            except ValueError:
                continue
            if not asked.disabled:
                yield execution, day
