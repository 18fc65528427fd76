"""`Route`: the two ways of one launcher to YARN: over HTTP, and through Skein's Java client."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import Cancelled, ClusterUnreachable, HadoopClientUnfit, SubmissionRejected, TfYarnError
from ..follow.kill import take_back
from ..follow.lease import first_end, lifetime_of
from ..follow.session import Session
from ..follow.sweep import sweep_ended
from ..hadoop.resourcemanager import LIVE, has_launched
from ..hadoop.transport import RestUnavailable
from ..job.spec import JobSpec
from ..submit.placement import check_placement, read_surroundings

if TYPE_CHECKING:
    from ..submit.local_submitter import LocalSubmitter
    from ..submit.rest import RestSubmitter

logger = logging.getLogger(__name__)

SKEIN, AUTO = "skein", "auto"
#: Seconds to wait for the launch of the application master.
LAUNCH_WAIT = 2.0
#: Seconds after the end of Skein's client in which YARN may still list an application that it has submitted.
_LEFTOVER_SECONDS = 3.0


class Route:
    """The way to YARN of one launcher: over HTTP, or through Skein's Java client where HTTP is closed.

    Parameters
    ----------
    session : Session
    submit_with : {"auto", "rest", "skein"}
    strict_placement : bool
        Refuse a job with a container that no running node could hold.
    environ : mapping of str to str or None
        For Skein's Java client. Default: the process's environment.
    """

    def __init__(self, session: Session, submit_with: str, strict_placement: bool,
                 environ: Mapping[str, str] | None):
        self._session = session
        self._way = submit_with
        self._refusal: RestUnavailable | None = None
        self._strict_placement = strict_placement
        self._environ = environ

    def way(self) -> str:
        """Return how to submit: ``rest``, ``skein``, or ``auto``, which tries HTTP first."""
        return AUTO if self._session.cluster.is_local else self._way

    def falls_back(self, error: RestUnavailable) -> bool:
        """Return whether to submit with Skein's Java client from now on, because HTTP is closed."""
        if self._way != AUTO:
            return False
        logger.info("submitting with Skein's Java client, because HTTP is closed: %s", error)
        self._way = SKEIN
        self._refusal = error
        return True

    def rest_submitter(self, spec: JobSpec) -> "RestSubmitter | LocalSubmitter":
        """Return the submission of this job over HTTP, or on this machine."""
        session = self._session
        if session.cluster.is_local:
            from ..submit.local_submitter import LocalSubmitter

            return LocalSubmitter(session.cluster, session.resourcemanager)
        from ..submit.rest import RestSubmitter

        cluster = session.cluster.acting_for(spec.user or session.cluster.user)
        resourcemanager = session.resourcemanager if cluster is session.cluster else cluster.resourcemanager()
        return RestSubmitter(cluster, resourcemanager, session.staging(cluster.user),
                             strict_placement=self._strict_placement, checkpoint=session.checkpoint)

    def with_skein(self, spec: JobSpec, announce: Callable[[str], None], tags: Sequence[str],
                   is_ours: Callable[[Mapping[str, Any]], bool]) -> str:
        """Submit through Skein's Java client; ``announce`` is called after the submission.

        The client returns the id only after YARN has accepted the application. If the client or this process ends
        before that, find the application by the first tag and kill it if ``is_ours`` returns true.
        """
        from ..submit.skein_java import SkeinJavaSubmitter

        self._look_ahead(spec)
        submitter = SkeinJavaSubmitter(self._session.cluster, environ=self._environ,
                                       checkpoint=self._session.checkpoint)
        try:
            application_id = submitter.submit(spec, tags)
        except BaseException as error:
            if submitter.uncertain:
                self._take_back_unnamed(tags[0], is_ours, error)
            if isinstance(error, HadoopClientUnfit) and self._refusal is not None:
                raise HadoopClientUnfit(f"{error}. Submission over HTTP is closed: {self._refusal}",
                                        http_closed=True) from error
            raise
        try:
            self.accepted(application_id, spec)
            announce(application_id)
            if spec.priority:  # Skein's client has no option for it
                self._amend(application_id, "priority",
                            lambda _: self._session.resourcemanager.set_priority(application_id, spec.priority))
            sweep_ended(self._session.staging(), self._session.resourcemanager, application_id)
            if self._session.cancelled:
                raise Cancelled(f"{application_id} was submitted, and is killed")
        except BaseException as error:
            take_back(self._session, application_id, error)
            raise
        return application_id

    def _look_ahead(self, spec: JobSpec) -> None:
        """Check queues, labels and nodes before Skein's client starts.

        If the ResourceManager can't be read, log it; YARN then checks the submission alone.
        """
        try:
            around = read_surroundings(spec, self._session.resourcemanager)
        except TfYarnError as error:
            logger.log(logging.WARNING if self._strict_placement else logging.DEBUG,
                       "submitting without a check of queues, labels and nodes: %s", error)
        else:
            check_placement(spec, around, self._strict_placement)

    def accepted(self, application_id: str, spec: JobSpec) -> None:
        """Log that YARN has accepted an application, and set its end in YARN: of its lease, or of its deadlines."""
        logger.info("submitted %s as %r to queue %s", application_id, spec.name, spec.queue)

        def set_end(application: Mapping[str, Any]) -> None:
            end = first_end(spec, application)  # the client that waits moves that of a lease
            if end is not None:
                self._session.resourcemanager.set_lifetime(application_id, *end)

        # With a lifetime YARN ends the job even when no client and no coordinator is left.
        if not self._session.cluster.is_local and (spec.lease or lifetime_of(spec) is not None):
            self._amend(application_id, "lease" if spec.lease else "lifetime", set_end)

    def _amend(self, application_id: str, what: str, change: Callable[[Mapping[str, Any]], None]) -> None:
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
            application = self._session.resourcemanager.get(application_id)
            if has_launched(application) or time.monotonic() >= until:
                return application
            self._session.checkpoint()
            time.sleep(pause)
            pause = min(0.5, pause * 2)

    def _take_back_unnamed(self, tag: str, is_ours: Callable[[Mapping[str, Any]], bool], error: BaseException) -> None:
        """Find by tag and kill an application that Skein's client has submitted without returning its id."""
        until = time.monotonic() + _LEFTOVER_SECONDS
        try:
            while time.monotonic() < until:
                for application in self._session.resourcemanager.find(tags=[tag], states=LIVE):
                    if is_ours(application):
                        take_back(self._session, application["id"], error)
                        return
                time.sleep(0.25)
        except (SubmissionRejected, ClusterUnreachable) as second:
            logger.warning("YARN may have accepted the application; it could not be asked: %s", second)
