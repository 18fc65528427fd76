"""`ensure`: exactly one application trains for an identity, also when several clients ask at the same time.

It repeats "poll, decide, act" until the table of `identity` says attach or report. It acts on YARN's list and on the
claims only; the process keeps no state of its own.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import (
    ApplicationNotFound,
    Cancelled,
    ClusterUnreachable,
    SubmissionRejected,
    Superseded,
)
from ..follow.kill import kill_application, take_back
from ..follow.session import Session
from ..follow.wait import wait_for
from ..follow.yarn_report import lost_report, read_yarn_report
from ..hadoop.resourcemanager import ENDED
from ..hadoop.transport import RestUnavailable
from ..job.spec import JobSpec
from ..runtime.common.clock import local_time
from ..runtime.common.committed_output import OFF
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..submit.submitter import SubmitMethod, Submitter
from .claims import Claim, Claims
from .committed import PlannedOutput
from .growth import check_growth, grow_memory, log_no_growth, outgrew_memory
from .identity import (
    IGNORE,
    WAIT,
    Action,
    Identity,
    SubmissionDecision,
    attempt_of,
    decide_submission,
    generation_of,
    may_try_again,
    old_tasks_end,
    order,
)
from .submission import prepare, reserve, send, set_limits

logger = logging.getLogger(__name__)

#: How often poll, decide, act is repeated. A repetition is needed only if another client was faster.
_MAX_ATTEMPTS = 50
#: Seconds between two polls of an older generation.
_WAIT_INTERVAL = 5.0


def ensure(
    session: Session,
    method: SubmitMethod,
    spec: JobSpec,
    identity: Identity,
    notify: Callable[[str], None],
) -> JobReport:
    """Return the report of the one application of an identity, live or ended; see `Launcher.ensure`."""
    identity.check(spec)
    return method.use(session, spec, lambda submitter: _Ensuring(session, submitter, spec, identity, notify).run())


class _Ensuring:
    """One call of `ensure` over one way to YARN."""

    def __init__(
        self,
        session: Session,
        submitter: Submitter,
        spec: JobSpec,
        identity: Identity,
        notify: Callable[[str], None],
    ):
        self._session, self._submitter, self._spec, self._identity = session, submitter, spec, identity
        self._notify = notify
        self._user = spec.user or session.cluster.user
        self._submitted = ""
        self._outgrown: JobReport | None = None  # of this attempt's last application
        self._found: Sequence[Mapping[str, Any]] = ()
        self._logged: set[str] = set()
        self._has_run = identity.run is not None and submitter.reserves  # claims need a file system over HTTP
        # An identity with a run is Azkaban's, whose generations are its executions.
        self._generation_noun = "generation" if identity.run is None else "execution"

    def run(self) -> JobReport:
        if self._has_run:
            self._claims().start_run()  # the generations that wait for this one see it, before it polls for older ones
        for _ in range(_MAX_ATTEMPTS):
            while (decision := self._decide()).action is Action.WAIT:
                self._wait(decision.application_id)
            for application_id in decision.kill:
                self._kill(application_id, decision)
            if decision.action is Action.SUPERSEDED:
                self._raise_superseded(decision.application_id)
            if decision.action in (Action.ATTACH, Action.REPORT):
                return self._attach(decision)
            if decision.action is Action.SUBMIT:
                try:
                    report = self._submit()
                except SubmissionRejected as error:
                    if self._outgrown is None:
                        raise
                    log_no_growth(self._outgrown, error)
                    return self._session.report(self._outgrown.application_id)
                if report is not None:
                    return report
        raise ClusterUnreachable(
            f"{_MAX_ATTEMPTS} attempts have not settled which application trains: other clients keep "
            f"changing the applications with the tag {self._identity.tag}"
        )

    def _claims(self) -> Claims:
        return Claims(self._session, self._user, self._identity)

    def _decide(self) -> SubmissionDecision:
        self._session.checkpoint()
        found = self._found = self._session.resourcemanager.find(tags=[self._identity.tag], user=self._user)
        decision = decide_submission(found, self._identity, self._user, self._spec.restart.allocation_retries)
        if decision.action is Action.SUBMIT and self._old_tasks_run(found):
            return SubmissionDecision(Action.WAIT)
        if decision.action is not Action.SUBMIT or self._identity.previous != WAIT or not self._submitter.reserves:
            return decision
        runs = self._claims().older_runs(found)
        for generation, until in runs.items():
            self._log_once(
                f"waiting for execution {generation} of this training, which may submit until {local_time(until)}"
            )
        return SubmissionDecision(Action.WAIT) if runs else decision

    def _old_tasks_run(self, found: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether tasks of an earlier attempt may still train on nodes that YARN has lost."""
        own = [a for a in found if self._identity.previous != IGNORE or generation_of(a) == self._identity.generation]
        old = old_tasks_end(own, self._user, self._spec.deadlines, self._session.resourcemanager.now())
        if old is not None:
            self._log_once(
                f"waiting until {local_time(old[1])}: tasks of '{old[0]}' may still run on nodes that YARN has lost"
            )
        return old is not None

    def _wait(self, application_id: str) -> None:
        """Wait for the end of an older generation's application; without one, until the next poll."""
        if application_id:
            self._log_once(
                f"waiting for the end of '{application_id}', which an older execution of this training has left"
            )
            report = wait_for(
                self._session,
                application_id,
                poll_interval=_WAIT_INTERVAL,
                ours=False,
                on_change=self._renew_run,
            )
            reason = report.reason.value if report.reason else report.state
            self._log_once(f"'{application_id}' has ended: {reason}: {report.message}")
            return
        self._renew_run()
        self._session.pause(_WAIT_INTERVAL)

    def _renew_run(self, *_: JobReport) -> None:
        if self._has_run:
            self._claims().renew_run()

    def _log_once(self, line: str) -> None:
        if line not in self._logged:
            self._logged.add(line)
            logger.info("%s", line)

    def _raise_superseded(self, newer: str) -> None:
        """Kill our own application and raise `Superseded`; leave the newer generation alone."""
        if self._submitted:
            kill_application(self._session, self._submitted, f"Superseded by {newer}", reason=Reason.SUPERSEDED)
        noun, own = self._generation_noun, self._identity.generation
        if not newer:
            raise Superseded(f"a newer {noun} than {own} of this training has taken over")
        raise Superseded(
            f"{newer} is of a newer {noun} than {own} of this training; "
            "that one goes on, and this call leaves no application"
        )

    def _kill(self, application_id: str, decision: SubmissionDecision) -> None:
        own = decision.action is Action.ATTACH
        noun = self._generation_noun
        newer = f"{noun} {self._identity.generation}" if decision.action is Action.KILL else f"a newer {noun}"
        why = f"Superseded by {decision.application_id or f'{newer} of the same training'}"
        try:
            # SUPERSEDED ends a generation for ever. Of two applications of one generation, the other one goes on.
            kill_application(self._session, application_id, why, reason=Reason.KILLED if own else Reason.SUPERSEDED)
        except ApplicationNotFound:
            logger.debug("%s has gone by itself", application_id)

    def _attach(self, decision: SubmissionDecision) -> JobReport:
        found = decision.application_id != self._submitted
        if found:
            self._notify(decision.application_id)
        report = self._session.report(decision.application_id)
        if found:
            logger.info("attached to %s (%s)", decision.application_id, report.state)
        return report

    def _submit(self) -> JobReport | None:
        """Submit the job; return a report when an application has ended, None to poll again."""
        session, submitter = self._session, self._submitter
        self._grow_memory()
        self._spec = spec = prepare(session, self._spec)
        if submitter.reserves:
            return self._submit_by_claim()
        if self._submitted:
            self._check_owner()
        self._submitted = send(
            session, submitter, spec, reserve(session, submitter, spec), self._identity.tags, self._notify
        )
        return None

    def _grow_memory(self) -> None:
        """Give the job more memory where this generation ran out of it.

        A later client, and one that was not there when the application ended, find the same memory in the reports.

        Raises
        ------
        ResourcesImpossible
            This attempt ran out of it, and can't have more.
        """
        own = (a for a in self._found if a["state"] in ENDED and generation_of(a) == self._identity.generation)
        ended = sorted(own, key=lambda application: order(application["id"]))
        reports = [read_yarn_report(application) for application in ended]
        self._spec = grow_memory(self._session, self._spec, reports)
        latest = reports[-1] if ended and attempt_of(ended[-1]) == self._identity.attempt else None
        self._outgrown = latest if latest is not None and outgrew_memory(latest) else None
        if self._outgrown is not None:
            check_growth(self._spec, self._outgrown)

    def _check_owner(self) -> None:
        """Kill our application if it runs as another user: no later poll would find it, so each would submit again."""
        application = self._session.find_application(self._submitted)
        if application is not None and application["user"] != self._user:
            error = SubmissionRejected(
                f"{self._submitted} runs as {application['user']!r}, not as {self._user!r}: "
                "the Hadoop client here submits as somebody else"
            )
            take_back(self._session, self._submitted, error)
            raise error

    def _submit_by_claim(self) -> JobReport | None:
        claims = self._claims()
        newer, claim = claims.newer(), claims.latest()
        if newer is not None:
            self._raise_superseded(newer.application_id)
        if self._spec.commit != OFF:
            committed = PlannedOutput(self._session, self._spec, self._identity.tags).find_report()
            if committed is not None:  # also where YARN has forgotten the application
                self._notify(committed.application_id)
                return committed
        if claim is not None:
            own = claim.generation == self._identity.generation
            application = self._session.find_application(claim.application_id)
            if application is None and claim.submitted and own:
                return lost_report(claim.application_id)
            if application is not None and application["state"] not in ENDED:
                return None
            report = self._settled(application) if application is not None and own else None
            if report is not None:
                return report
            if application is not None or not own:
                claim = self._new_claim(claims, claim.number + 1)
        else:
            claim = self._new_claim(claims, 0)
        if claim is not None:
            self._notify(claim.application_id)
            self._submit_claim(claims, claim)
        return None

    def _settled(self, application: Mapping[str, Any]) -> JobReport | None:
        """Return the report of a claim's application that has ended; None if another submission may follow."""
        report = read_yarn_report(application)
        same_attempt = attempt_of(application) == self._identity.attempt
        retries = self._spec.restart.allocation_retries
        if report.reason is Reason.SUCCEEDED or (same_attempt and not may_try_again([report], retries)):
            return self._session.report(report.application_id)
        return None

    def _new_claim(self, claims: Claims, number: int) -> Claim | None:
        application_id = reserve(self._session, self._submitter, self._spec, self._identity.tags)
        if not claims.make(number, application_id):
            logger.info("another client of the same training was faster; polling again")
            return None
        return Claim(number, application_id, self._identity.generation)

    def _submit_claim(self, claims: Claims, claim: Claim) -> None:
        """Submit a claimed id; another client may submit the same id at the same moment without harm."""
        application_id = claim.application_id
        try:
            self._session.checkpoint()
            self._submitter.submit(self._spec, application_id, self._identity.tags)
            self._submitted = application_id
            self._mark_submitted(claims, claim)
            set_limits(self._session, self._spec, application_id)
            self._session.checkpoint()
        except RestUnavailable:
            raise
        except SubmissionRejected as error:
            application = self._session.find_application(application_id)
            if application is None:
                raise
            report = read_yarn_report(application)
            if application["state"] in ENDED:
                self._session.forget(report)
            if report.reason is error.reason:
                raise
            # Another client has submitted the id; the files of this one go with its application.
            logger.info("another client of the same training was faster (%s); polling again", error)
        except BaseException as error:
            # A request to end (Airflow's alarm is a BaseException of its own): leave no application behind.
            # After any other failure the next call continues the claim.
            ends = isinstance(error, Cancelled) or not isinstance(error, Exception)
            if ends and self._may_take_back(claim):
                take_back(self._session, application_id, error)
            raise

    def _mark_submitted(self, claims: Claims, claim: Claim) -> None:
        """Record that YARN has accepted the application; without the record a later client only polls once more."""
        try:
            claims.mark_submitted(claim.number)
        except (SubmissionRejected, ClusterUnreachable) as error:
            logger.warning("%s is submitted, but its claim could not be marked: %s", claim.application_id, error)

    def _may_take_back(self, claim: Claim) -> bool:
        """Return whether the claimed id is still ours: a later attempt may have submitted it meanwhile."""
        try:
            application = self._session.find_application(claim.application_id)
        except ClusterUnreachable:
            return True
        return application is None or attempt_of(application) == self._identity.attempt
