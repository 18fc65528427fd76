"""`Launcher`: the only door for submitting, watching and killing applications."""

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from .cluster import Cluster
from .errors import ApplicationNotFound, Cancelled, ClusterUnreachable, SubmissionRejected, WaitTimeout
from .preflight import check_files
from .resourcemanager import ENDED, LIVE
from .runtime.reasons import Reason
from .runtime.report import JobReport, compose_diagnostics
from .spec import JobSpec
from .staging import Staging
from .status import kill_report, lost_report, read_report, unsubmitted_report
from .sweep import sweep
from .tracking import LiveStatus
from .transport import RestUnavailable

if TYPE_CHECKING:
    from .restsubmitter import RestSubmitter

logger = logging.getLogger(__name__)

#: Seconds until a kill has to be done; YARN needs 0.1 s, after a fail-over some more.
KILL_TIMEOUT = 30.0
#: Diagnostics of our kills; YARN keeps 64 KB but sends them with every list.
_KILL_DIAGNOSTICS = 8 * 1024


class Launcher:
    """Submits, watches and kills applications of one cluster.

    Parameters
    ----------
    cluster : Cluster
    submit_with : {"auto", "rest", "skein"}, optional
        Default: as the site says.
    strict_placement : bool, optional
        Refuse a job with a container that no node could hold now; default is a warning.
    environ : mapping of str to str, optional
        For Skein's Java client, the fallback. Default: the process's environment.
    """

    def __init__(self, cluster: Cluster, *, submit_with: str | None = None, strict_placement: bool = False,
                 environ: Mapping[str, str] | None = None):
        self.cluster = cluster
        self.submit_with = submit_with or cluster.site.submit_with
        self.strict_placement = strict_placement
        self.resourcemanager = cluster.resourcemanager()
        self._environ = environ
        self._live = LiveStatus(cluster)
        self._stagings: dict[str, Staging] = {}
        self._cancelled = False

    def cancel(self) -> None:
        """End what this launcher is doing; safe in a signal handler.

        A submission ends before its next step; what was submitted is killed. The call
        that was going on raises `Cancelled`.
        """
        self._cancelled = True

    def _checkpoint(self) -> None:
        if self._cancelled:
            raise Cancelled("cancelled before the application was submitted")

    def submit(self, spec: JobSpec, on_reserved: Callable[[str], None] | None = None) -> str:
        """Submit a job.

        Parameters
        ----------
        spec : JobSpec
        on_reserved : callable, optional
            Called with the application id before anything is staged, so that it can be
            kept. What it raises ends the submission. (With Skein's client: after the submission.)

        Returns
        -------
        str
            The id of the application, which YARN has accepted.

        Raises
        ------
        SpecInvalid
            Local files are missing; all are listed.
        SubmissionRejected, ResourcesImpossible
            The queue, the size or a right is not to be had.
        ClusterUnreachable
            YARN or the file system does not answer.
        Cancelled
            By `cancel`; nothing is left.
        """
        check_files(spec)
        self._checkpoint()
        if self._way() == "skein":
            return self._submit_with_skein(spec, on_reserved)
        try:
            return self._submit_with_rest(spec, on_reserved)
        except RestUnavailable as error:
            if self.submit_with == "rest":
                raise
            logger.info("submitting with Skein's Java client, because HTTP is closed: %s", error)
            return self._submit_with_skein(spec, on_reserved)

    def _way(self) -> str:
        if self.submit_with == "auto" and self.cluster.secure:
            logger.info("submitting with Skein's Java client, because the cluster uses Kerberos")
            return "skein"
        return self.submit_with

    def _submit_with_rest(self, spec: JobSpec, on_reserved: Callable[[str], None] | None,
                          tags: Iterable[str] = ()) -> str:
        submitter = self._rest_submitter(spec)
        submitter.check(spec)
        self._checkpoint()
        application_id = submitter.reserve(spec)
        if on_reserved is not None:
            on_reserved(application_id)
        self._checkpoint()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._sweep, spec, application_id)
            self._submit_reserved(submitter, spec, application_id, tags)
        return application_id

    def _rest_submitter(self, spec: JobSpec) -> "RestSubmitter":
        from .restsubmitter import RestSubmitter

        cluster = self.cluster.acting_for(spec.user or self.cluster.user)
        resourcemanager = self.resourcemanager if cluster is self.cluster else cluster.resourcemanager()
        return RestSubmitter(cluster, resourcemanager, self._staging(cluster.user),
                             strict_placement=self.strict_placement, checkpoint=self._checkpoint)

    def _submit_reserved(self, submitter: "RestSubmitter", spec: JobSpec, application_id: str,
                         tags: Iterable[str]) -> None:
        """Submit under a reserved id; whatever goes wrong, nothing is left of it."""
        try:
            submitter.submit(spec, application_id, tags)
            logger.info("submitted %s as %r to queue %s", application_id, spec.name, spec.queue)
            self._checkpoint()
        except BaseException as error:
            logger.info("taking back %s after %s", application_id, type(error).__name__)
            self._take_back(application_id, f"The submission ended with {type(error).__name__}")
            raise

    def _take_back(self, application_id: str, why: str) -> None:
        try:
            self.kill(application_id, why)
        except (SubmissionRejected, ClusterUnreachable) as error:
            logger.warning("%s could not be taken back: %s", application_id, error)

    def _submit_with_skein(self, spec: JobSpec, on_reserved: Callable[[str], None] | None,
                           tags: Iterable[str] = ()) -> str:
        from .skeinsubmitter import SkeinSubmitter

        submitter = SkeinSubmitter(self.cluster, environ=self._environ, checkpoint=self._checkpoint)
        application_id = submitter.submit(spec, tags)
        logger.info("submitted %s as %r to queue %s", application_id, spec.name, spec.queue)
        try:
            if on_reserved is not None:
                on_reserved(application_id)
            if self._cancelled:
                raise Cancelled(f"{application_id} was submitted, and is killed")
        except BaseException as error:
            self._take_back(application_id, f"The submission ended with {type(error).__name__}")
            raise
        return application_id

    def report(self, application_id: str) -> JobReport:
        """Give what is known of an application now, without raising for one that YARN does not know.

        Raises
        ------
        ClusterUnreachable
            No ResourceManager answers.
        """
        try:
            found = self.resourcemanager.get(application_id)
        except ApplicationNotFound:
            return lost_report(application_id)
        return self._read(found)

    def log(self, application_id: str, task: str | None = None) -> Iterator[str]:
        """Give a task's log in chunks of text; see `logs.Logs.read`."""
        from .logs import Logs

        return Logs(self.cluster, self.resourcemanager, environ=self._environ).read(application_id, task)

    def cluster_spec(self, application_id: str) -> dict[str, list[str]] | None:
        """Give the cluster spec of a running job, host:port per task index; None before it is published."""
        try:
            document = self._live.fetch_document(self.resourcemanager.get(application_id))
        except ApplicationNotFound:
            return None
        return (document or {}).get("cluster_spec") or None

    def _read(self, application: Mapping[str, Any]) -> JobReport:
        report = read_report(application, self._live.fetch(application))
        if report.reason is not None:
            self._forget(report)
        return report

    def _forget(self, report: JobReport) -> None:
        """Whoever sees the end deletes the directory: the key is in it."""
        if report.user and report.user != self.cluster.user:
            return
        try:
            if self._staging(self.cluster.user).delete(report.application_id):
                logger.debug("deleted the directory of %s", report.application_id)
        except (SubmissionRejected, ClusterUnreachable) as error:
            logger.warning("the directory of %s could not be deleted: %s", report.application_id, error)

    def _staging(self, user: str) -> Staging:
        if user not in self._stagings:
            self._stagings[user] = Staging(self.cluster.acting_for(user))
        return self._stagings[user]

    def _sweep(self, spec: JobSpec, application_id: str) -> None:
        user = spec.user or self.cluster.user
        try:
            sweep(self._staging(user), self.resourcemanager, keep=application_id)
        except (SubmissionRejected, ClusterUnreachable) as error:
            logger.debug("not swept: %s", error)

    def wait(self, application_id: str, *, timeout: float | None = None,
             on_change: Callable[[JobReport], None] | None = None, poll_interval: float = 0.5) -> JobReport:
        """Wait for the end of an application.

        Parameters
        ----------
        application_id : str
        timeout : float, optional
            Seconds. Default: for ever.
        on_change : callable, optional
            Called with every report that differs from the one before, the last included.
        poll_interval : float, optional
            Seconds between two looks. Default 0.5.

        Returns
        -------
        JobReport
            With a reason; LOST when YARN no longer knows the application.

        Raises
        ------
        WaitTimeout
            The application goes on.
        ClusterUnreachable
            For longer than the site's ``unreachable_timeout``.
        Cancelled
            By `cancel`; the application is killed.
        """
        started = answered = time.monotonic()
        last: JobReport | None = None
        while True:
            try:
                report = self.report(application_id)
                answered = time.monotonic()
            except ClusterUnreachable as error:
                silent = time.monotonic() - answered
                if silent >= self.cluster.site.unreachable_timeout:
                    raise ClusterUnreachable(f"waited {silent:.0f} s: {error}") from error
                logger.warning("still waiting for %s: %s", application_id, error)
            else:
                if report != last:
                    last = report
                    if on_change is not None:
                        on_change(report)
                if report.reason is not None:
                    return report
            if self._cancelled:
                self.kill(application_id, "Cancelled by the client that waited for it")
                raise Cancelled(f"{application_id} was cancelled, and killed")
            if timeout is not None and time.monotonic() - started >= timeout:
                state = f"{last.state}, {last.message or 'no message'}" if last else "never seen"
                raise WaitTimeout(f"{application_id} has not ended after {timeout:g} s ({state}); it goes on")
            time.sleep(poll_interval * random.uniform(0.9, 1.1))

    def kill(self, application_id: str, why: str = "Killed by its client", *, reason: Reason = Reason.KILLED,
             timeout: float = KILL_TIMEOUT) -> JobReport:
        """Kill an application, wait until it is gone, delete its directory.

        Parameters
        ----------
        application_id : str
        why : str
            A sentence for the report, kept by YARN.
        reason : Reason, optional
            Default KILLED.
        timeout : float, optional
            Seconds. Default 30.

        Returns
        -------
        JobReport
            Its own ending when it had ended before. An id that was never submitted is killed as well.

        Raises
        ------
        SubmissionRejected
            We may not kill it.
        ClusterUnreachable
            No answer, or it would not end in time.
        """
        deadline = time.monotonic() + timeout
        try:
            found = self.resourcemanager.get(application_id)
            if found["state"] not in ENDED:
                text = compose_diagnostics(kill_report(found, reason, why, self._live.fetch(found)), _KILL_DIAGNOSTICS)
                logger.info("killing %s : %s", application_id, why)
                self.resourcemanager.kill(application_id, text)
            while found["state"] not in ENDED:
                if time.monotonic() >= deadline:
                    raise ClusterUnreachable(f"{application_id} is {found['state']} {timeout:g} s after the kill")
                time.sleep(0.05)
                found = self.resourcemanager.get(application_id)
        except ApplicationNotFound:
            report = unsubmitted_report(application_id, why)
            self._forget(report)
            return report
        return self._read(found)

    def list(self, states: Iterable[str] = LIVE, user: str | None = None) -> list[JobReport]:
        """Give the user's applications of Skein in these states, the latest first; live reports are not fetched.

        Parameters
        ----------
        states : iterable of str, optional
            YARN's. Default: the live ones.
        user : str, optional
            Default: ours.
        """
        found = self.resourcemanager.find(states=states, user=user or self.cluster.user)
        reports = [read_report(item) for item in found if str(item.get("applicationType", "")).lower() == "skein"]
        return sorted(reports, key=lambda report: report.submitted_at or 0.0, reverse=True)

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        self.resourcemanager.close()
        self._live.close()


