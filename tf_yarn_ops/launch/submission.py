"""`Submission`: submit a job once, over HTTP or through Skein's Java client; one that fails leaves nothing behind.

`Route`: which of the two ways a launcher takes.

`Ensure`: exactly one application trains for an identity, also when several clients ask at the same time. It repeats
"look, decide, act" until the table says attach or report. It acts on YARN's list and on the claims only; the process
keeps no state of its own.
"""

import logging
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import (
    ApplicationNotFound,
    Cancelled,
    ClusterUnreachable,
    HadoopClientUnfit,
    SubmissionRejected,
    Superseded,
    TfYarnError,
)
from ..follow.kill import kill_application, take_back
from ..follow.lease import first_end, lifetime_of
from ..follow.session import Session
from ..follow.sweep import sweep_ended
from ..follow.wait import wait_for
from ..follow.yarn_report import lost_report, read_yarn_report
from ..hadoop.resourcemanager import ENDED, LIVE, has_launched
from ..hadoop.transport import RestUnavailable
from ..job.spec import JobSpec
from ..runtime.common.clock import local_time
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..submit.placement import check_placement, read_surroundings
from ..submit.preflight import check_environment, check_files
from .claims import Claim, Claims
from .committed import PlannedOutput
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
)

if TYPE_CHECKING:
    from ..submit.local_submitter import LocalSubmitter
    from ..submit.rest import RestSubmitter

logger = logging.getLogger(__name__)

#: How often look, decide, act is repeated. A repetition is needed only if another client was faster.
_MAX_ATTEMPTS = 50
#: Seconds between two looks at an older generation.
_WAIT_INTERVAL = 5.0


SKEIN, AUTO = "skein", "auto"
#: Seconds to wait for the launch of the application master.
LAUNCH_WAIT = 2.0
#: Seconds after the end of Skein's client in which YARN may still list an application that it has submitted.
_ORPHAN_SECONDS = 3.0


@dataclass
class Route:
    """The way to YARN of one launcher: over HTTP, or through Skein's Java client where HTTP is closed.

    Attributes
    ----------
    way : {"auto", "rest", "skein"}
        How to submit; ``auto`` tries HTTP first.
    strict_placement : bool
        Refuse a job with a container that no running node could hold.
    environ : mapping of str to str or None
        For Skein's Java client. Default: the process's environment.
    refusal : RestUnavailable or None
        Why ``auto`` has become ``skein``.
    """

    way: str
    strict_placement: bool
    environ: Mapping[str, str] | None
    refusal: RestUnavailable | None = None

    def falls_back(self, error: RestUnavailable) -> bool:
        """Return whether to submit with Skein's Java client from now on, because HTTP is closed."""
        if self.way != AUTO:
            return False
        logger.info("submitting with Skein's Java client, because HTTP is closed: %s", error)
        self.way = SKEIN
        self.refusal = error
        return True


def make_submitter(session: Session, spec: JobSpec, strict_placement: bool) -> "RestSubmitter | LocalSubmitter":
    """Return the submission of a job over HTTP, or on this machine."""
    if session.cluster.is_local:
        from ..submit.local_submitter import LocalSubmitter

        return LocalSubmitter(session.cluster, session.resourcemanager)
    from ..submit.rest import RestSubmitter

    cluster = session.cluster.acting_for(spec.user or session.cluster.user)
    return RestSubmitter(
        cluster,
        session.resourcemanager if cluster is session.cluster else cluster.resourcemanager(),
        session.staging(cluster.user),
        strict_placement=strict_placement,
        checkpoint=session.checkpoint,
    )


class Submission:
    """One call of `Launcher.submit`.

    Parameters
    ----------
    session : Session
    route : Route
    spec : JobSpec
    on_reserved : callable or None
    """

    def __init__(self, session: Session, route: Route, spec: JobSpec, on_reserved: Callable[[str], None] | None):
        self._route = route
        self._session = session
        self._resourcemanager = session.resourcemanager
        self._spec = spec
        self._on_reserved = on_reserved
        self._user = spec.user or session.cluster.user
        self._announced = ""

    def run(self) -> JobReport:
        """Return the first report of the application that YARN has accepted; see `Launcher.submit`."""
        return self._send() or JobReport(self._announced)

    def _send(self) -> JobReport | None:
        """Submit over HTTP, or through Skein's Java client where HTTP is closed."""
        check_files(self._spec)
        if not self._session.cluster.is_local:
            check_environment(self._spec)
        self._session.checkpoint()
        if self._spec.environment and self._spec.environment.scheme == "requirements":
            from ..environments.requirements import with_built_environment

            self._spec = with_built_environment(
                self._spec, self._session.cluster.site.environment_cache, self._session.checkpoint
            )
        if self._route.way != SKEIN:
            try:
                with make_submitter(self._session, self._spec, self._route.strict_placement) as submitter:
                    return self._send_rest(submitter)
            except RestUnavailable as error:
                if not self._route.falls_back(error):
                    raise
        self._send_skein()
        return None

    def _send_rest(self, submitter: "RestSubmitter | LocalSubmitter") -> JobReport | None:
        submitter.check(self._spec)
        PlannedOutput(self._session, self._spec).check()
        self._session.checkpoint()
        application_id = submitter.reserve(self._spec)
        self._notify(application_id)
        try:
            self._session.checkpoint()
            submitter.submit(self._spec, application_id)
            self._accepted(application_id)
            self._session.checkpoint()
        except BaseException as error:
            take_back(self._session, application_id, error)
            raise
        return None

    def _send_skein(self) -> None:
        self._with_skein((f"tfy-{secrets.token_hex(8)}",))

    def _is_ours(self, application: Mapping[str, Any]) -> bool:
        """Return whether an application that has the first tag is the one that this call has submitted."""
        return True

    def _unfit(self, why: object) -> HadoopClientUnfit:
        refusal = self._route.refusal
        closed = f". Submission over HTTP is closed: {refusal}" if refusal is not None else ""
        return HadoopClientUnfit(f"{why}{closed}", http_closed=refusal is not None)

    def _with_skein(self, tags: Sequence[str]) -> str:
        """Submit through Skein's Java client, which returns the id only after YARN has accepted the application.

        If the client or this process ends before that, find the application by the first tag, and kill it if it
        `_is_ours`.
        """
        if sys.platform != "linux":
            raise self._unfit("Skein's Java client runs on Linux only")
        from ..submit.skein_java import SkeinJavaSubmitter

        session, spec = self._session, self._spec
        self._check_cluster()
        submitter = SkeinJavaSubmitter(session.cluster, environ=self._route.environ, checkpoint=session.checkpoint)
        try:
            application_id = submitter.submit(spec, tags)
        except BaseException as error:
            if submitter.uncertain:
                self._take_back_unnamed(tags[0], error)
            if isinstance(error, HadoopClientUnfit):
                raise self._unfit(error) from error
            raise
        try:
            self._accepted(application_id)
            self._notify(application_id)
            if spec.priority:  # Skein's client has no option for it
                self._update(
                    application_id,
                    "priority",
                    lambda _: self._resourcemanager.set_priority(application_id, spec.priority),
                )
            sweep_ended(session.staging(), self._resourcemanager, application_id)
            if session.cancelled:
                raise Cancelled(f"{application_id} was submitted, and is killed")
        except BaseException as error:
            take_back(session, application_id, error)
            raise
        return application_id

    def _check_cluster(self) -> None:
        """Check queues, labels and nodes before Skein's client starts.

        If the ResourceManager can't be read, log it; YARN then checks the submission alone.
        """
        try:
            around = read_surroundings(self._spec, self._resourcemanager)
        except TfYarnError as error:
            logger.log(
                logging.WARNING if self._route.strict_placement else logging.DEBUG,
                "submitting without a check of queues, labels and nodes: %s",
                error,
            )
        else:
            check_placement(self._spec, around, self._route.strict_placement)

    def _accepted(self, application_id: str) -> None:
        """Log that YARN has accepted an application, and set its end in YARN: of its lease, or of its deadlines."""
        spec = self._spec
        logger.info("submitted %s as %r to queue %s", application_id, spec.name, spec.queue)

        def set_end(application: Mapping[str, Any]) -> None:
            end = first_end(spec, application)  # the client that waits moves that of a lease
            if end is not None:
                self._resourcemanager.set_lifetime(application_id, *end)

        # With a lifetime YARN ends the job even when no client and no coordinator is left.
        if not self._session.cluster.is_local and (spec.lease or lifetime_of(spec) is not None):
            self._update(application_id, "lease" if spec.lease else "lifetime", set_end)

    def _update(self, application_id: str, what: str, change: Callable[[Mapping[str, Any]], None]) -> None:
        """Change an application that YARN has accepted; when that fails, log it and let the application run."""
        try:
            change(self._launched(application_id))
        except Cancelled:
            raise
        except TfYarnError as error:
            logger.warning("%s has no %s in YARN: %s", application_id, what, error)

    def _launched(self, application_id: str) -> dict[str, Any]:
        """Return the application once its master is launched, at the latest after `LAUNCH_WAIT` seconds.

        A ResourceManager that stores a change while it launches the master may lose the master's token,
        and the application fails ("SIMPLE authentication is not enabled", EOFException; seen on Hadoop 3.4.3).
        """
        until, pause = time.monotonic() + LAUNCH_WAIT, 0.01
        while True:
            application = self._resourcemanager.get(application_id)
            if has_launched(application) or time.monotonic() >= until:
                return application
            self._session.checkpoint()
            time.sleep(pause)
            pause = min(0.5, pause * 2)

    def _take_back_unnamed(self, tag: str, error: BaseException) -> None:
        """Find by tag and kill an application that Skein's client has submitted without returning its id."""
        until = time.monotonic() + _ORPHAN_SECONDS
        try:
            while time.monotonic() < until:
                for application in self._resourcemanager.find(tags=[tag], states=LIVE):
                    if self._is_ours(application):
                        take_back(self._session, application["id"], error)
                        return
                time.sleep(0.25)
        except (SubmissionRejected, ClusterUnreachable) as second:
            logger.warning("YARN may have accepted the application; it could not be asked: %s", second)

    def _notify(self, application_id: str) -> None:
        if self._announced != application_id:
            self._announced = application_id
            if self._on_reserved is not None:
                self._on_reserved(application_id)


class Ensure(Submission):
    """One call of `Launcher.ensure`.

    Parameters
    ----------
    session : Session
    route : Route
    spec : JobSpec
    identity : Identity
    on_reserved : callable or None
    """

    def __init__(
        self,
        session: Session,
        route: Route,
        spec: JobSpec,
        identity: Identity,
        on_reserved: Callable[[str], None] | None,
    ):
        super().__init__(session, route, spec, on_reserved)
        self._identity = identity
        self._output = PlannedOutput(session, spec, identity.tags)
        self._submitted = ""
        self._logged: set[str] = set()

    def run(self) -> JobReport:
        """Return the report of the one application, live or ended; see `Launcher.ensure`."""
        self._identity.check(self._spec)
        self._start_run()
        looks = 0
        while looks < _MAX_ATTEMPTS:
            self._session.checkpoint()
            decision = self._decide()
            if decision.action is Action.WAIT:
                self._wait(decision.application_id)
                continue
            looks += 1
            superseded = decision.action is Action.SUPERSEDED
            for application_id in decision.kill:
                self._kill(application_id, decision)
            if superseded:
                self._give_way(decision.application_id)
            if decision.action in (Action.ATTACH, Action.REPORT):
                return self._attach(decision)
            if decision.action is Action.SUBMIT:
                report = self._send()
                if report is not None:
                    return report
        raise ClusterUnreachable(
            f"{_MAX_ATTEMPTS} looks have not settled which application trains: other clients keep "
            f"changing the applications with the tag {self._identity.tag}"
        )

    def _claims(self) -> Claims:
        return Claims(self._session.staging(self._user), self._identity)

    def _start_run(self) -> None:
        """Let the generations that wait for this one see it, before it looks for older ones."""
        if self._identity.run is not None and self._route.way != SKEIN:
            try:
                self._claims().start_run()
            except RestUnavailable as error:
                if not self._route.falls_back(error):
                    raise

    def _decide(self) -> SubmissionDecision:
        found = self._resourcemanager.find(tags=[self._identity.tag], user=self._user)
        decision = decide_submission(found, self._identity, self._user, self._spec.restart.allocation_retries)
        if decision.action is Action.SUBMIT and self._old_tasks_run(found):
            return SubmissionDecision(Action.WAIT)
        if decision.action is not Action.SUBMIT or self._identity.previous != WAIT or self._route.way == SKEIN:
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
        old = old_tasks_end(own, self._user, self._spec.deadlines, time.time())
        if old is not None:
            self._log_once(
                f"waiting until {local_time(old[1])}: tasks of '{old[0]}' may still run on nodes that YARN has lost"
            )
        return old is not None

    def _wait(self, application_id: str) -> None:
        """Wait for the end of an older generation's application; without one, until the next look."""
        claims = self._claims()
        if application_id:
            self._log_once(
                f"waiting for the end of '{application_id}', which an older execution of this training has left"
            )
            report = wait_for(
                self._session,
                application_id,
                poll_interval=_WAIT_INTERVAL,
                ours=False,
                on_change=lambda report: claims.renew_run(),
            )
            reason = report.reason.value if report.reason else report.state
            self._log_once(f"'{application_id}' has ended: {reason}: {report.message}")
            return
        claims.renew_run()
        until = time.monotonic() + _WAIT_INTERVAL
        while time.monotonic() < until:
            self._session.checkpoint()
            time.sleep(0.2)

    def _log_once(self, line: str) -> None:
        if line not in self._logged:
            self._logged.add(line)
            logger.info("%s", line)

    def _give_way(self, newer: str) -> None:
        """Kill our own application and raise `Superseded`; leave the newer generation alone."""
        if self._submitted:
            kill_application(self._session, self._submitted, f"Superseded by {newer}", reason=Reason.SUPERSEDED)
        if not newer:
            raise Superseded(f"a newer generation than {self._identity.generation} of this training has taken over")
        raise Superseded(
            f"{newer} is of a newer generation than {self._identity.generation} of this training; "
            "that one goes on, and this call leaves no application"
        )

    def _kill(self, application_id: str, decision: SubmissionDecision) -> None:
        own = decision.action is Action.ATTACH
        # An identity with a run is Azkaban's, whose generations are its executions.
        word = "generation" if self._identity.run is None else "execution"
        newer = f"{word} {self._identity.generation}" if decision.action is Action.KILL else f"a newer {word}"
        why = f"Superseded by {decision.application_id or f'{newer} of the same training'}"
        try:
            # SUPERSEDED ends a generation for ever. Of two applications of one generation, the other one goes on.
            kill_application(self._session, application_id, why, reason=Reason.KILLED if own else Reason.SUPERSEDED)
        except ApplicationNotFound:
            logger.debug("%s has gone by itself", application_id)

    def _attach(self, decision: SubmissionDecision) -> JobReport:
        self._notify(decision.application_id)
        report = self._session.report(decision.application_id)
        if decision.application_id != self._submitted:
            logger.info("attached to %s (%s)", decision.application_id, report.state)
        return report

    def _send_skein(self) -> None:
        if self._submitted:
            self._refuse_other_owners()
        self._submitted = self._with_skein(self._identity.tags)

    def _refuse_other_owners(self) -> None:
        """Kill our application if it runs as another user: no later look would find it, so each would submit again."""
        try:
            application = self._resourcemanager.get(self._submitted)
        except ApplicationNotFound:
            return
        if application["user"] != self._user:
            error = SubmissionRejected(
                f"{self._submitted} runs as {application['user']!r}, not as {self._user!r}: "
                "the Hadoop client here submits as somebody else"
            )
            take_back(self._session, self._submitted, error)
            raise error

    def _is_ours(self, application: Mapping[str, Any]) -> bool:
        ours = self._identity
        return application["user"] == self._user and (generation_of(application), attempt_of(application)) == (
            ours.generation,
            ours.attempt,
        )

    def _send_rest(self, submitter: "RestSubmitter | LocalSubmitter") -> JobReport | None:
        """Submit by a claim; return a report when an application has ended, None for another look."""
        claims = self._claims()
        newer, claim = claims.newer(), claims.latest()
        if newer is not None:
            self._give_way(newer.application_id)
        committed = self._output.find_report()
        if committed is not None:  # also where YARN has forgotten the application
            self._notify(committed.application_id)
            return committed
        if claim is not None:
            own = claim.generation == self._identity.generation
            application = self._seen(claim)
            if application is None and claim.submitted and own:
                return lost_report(claim.application_id)
            if application is not None and application["state"] not in ENDED:
                return None
            report = self._settled(application) if application is not None and own else None
            if report is not None:
                return report
            if application is not None or not own:
                claim = self._new_claim(submitter, claims, claim.number + 1)
        else:
            claim = self._new_claim(submitter, claims, 0)
        if claim is not None:
            self._notify(claim.application_id)
            self._submit_claim(submitter, claims, claim)
        return None

    def _settled(self, application: Mapping[str, Any]) -> JobReport | None:
        """Return the report of a claim's application that has ended; None if another submission may follow."""
        report = read_yarn_report(application)
        same_attempt = attempt_of(application) == self._identity.attempt
        retries = self._spec.restart.allocation_retries
        if report.reason is Reason.SUCCEEDED or (same_attempt and not may_try_again([report], retries)):
            return self._session.report(report.application_id)
        return None

    def _new_claim(self, submitter: "RestSubmitter | LocalSubmitter", claims: Claims, number: int) -> Claim | None:
        submitter.check(self._spec)
        self._output.check()
        self._session.checkpoint()
        application_id = submitter.reserve(self._spec)
        if not claims.make(number, application_id):
            logger.info("another client of the same training was faster; looking again")
            return None
        return Claim(number, application_id, self._identity.generation, self._identity.attempt)

    def _submit_claim(self, submitter: "RestSubmitter | LocalSubmitter", claims: Claims, claim: Claim) -> None:
        """Submit a claimed id; another client may submit the same id at the same moment without harm."""
        application_id = claim.application_id
        try:
            self._session.checkpoint()
            submitter.submit(self._spec, application_id, self._identity.tags)
            self._submitted = application_id
            self._mark_submitted(claims, claim)
            self._accepted(application_id)
            self._session.checkpoint()
        except RestUnavailable:
            raise
        except SubmissionRejected as error:
            application = self._seen(claim)
            if application is None:
                raise
            report = read_yarn_report(application)
            if application["state"] in ENDED:
                self._session.forget(report)
            if report.reason is error.reason:
                raise
            # Another client has submitted the id; the files of this one go with its application.
            logger.info("another client of the same training was faster (%s); looking again", error)
        except BaseException as error:
            # A request to end (Airflow's alarm is a BaseException of its own): leave no application behind.
            # After any other failure the next call continues the claim.
            ends = isinstance(error, Cancelled) or not isinstance(error, Exception)
            if ends and self._may_take_back(claim):
                take_back(self._session, application_id, error)
            raise

    def _mark_submitted(self, claims: Claims, claim: Claim) -> None:
        """Record that YARN has accepted the application; without the record a later client only looks once more."""
        try:
            claims.mark_submitted(claim.number)
        except (SubmissionRejected, ClusterUnreachable) as error:
            logger.warning("%s is submitted, but its claim could not be marked: %s", claim.application_id, error)

    def _may_take_back(self, claim: Claim) -> bool:
        """Return whether the claimed id is still ours: a later attempt may have submitted it meanwhile."""
        try:
            application = self._seen(claim)
        except ClusterUnreachable:
            return True
        return application is None or attempt_of(application) == self._identity.attempt

    def _seen(self, claim: Claim) -> Mapping[str, Any] | None:
        """Return YARN's object of a claimed id; None if YARN does not know it."""
        try:
            return self._resourcemanager.get(claim.application_id)
        except ApplicationNotFound:
            return None
