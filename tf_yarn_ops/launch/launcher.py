"""`Launcher`: the only door for submitting, watching and killing applications."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from ..errors import ApplicationNotFound
from ..follow.identity import Identity
from ..follow.kill import KILL_TIMEOUT, kill
from ..follow.session import Session
from ..follow.wait import wait
from ..follow.yarn_report import read_report
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import LIVE, ResourceManager
from ..job.spec import JobSpec
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..staging.staging_directory import StagingDirectory
from .ensure import Ensure
from .retry import run_until_trained
from .route import Route


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
        self.session = Session(cluster)
        self._route = Route(self.session, submit_with or cluster.site.submit_with, strict_placement, environ)
        self._environ = environ
        self._queue_timeouts: dict[str, float] = {}

    @property
    def resourcemanager(self) -> ResourceManager:
        """The client of the cluster's ResourceManagers."""
        return self.session.resourcemanager

    def staging(self, user: str | None = None) -> StagingDirectory:
        """Return the staging directory of a user; default: of the cluster's user."""
        return self.session.staging(user)

    def cancel(self, why: str = "") -> None:
        """End what this launcher is doing; safe in a signal handler.

        A submission ends before its next step; what was submitted is killed. The call
        that was going on raises `Cancelled`. YARN keeps the sentence ``why`` with the kill.
        """
        self.session.cancel(why)

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
        application_id = self._route.submit(spec, on_reserved)
        self._queue_timeouts[application_id] = spec.deadlines.queue
        return application_id

    def report(self, application_id: str) -> JobReport:
        """Return what is known of an application now; its reason is LOST when YARN does not know it.

        Raises
        ------
        ClusterUnreachable
            No ResourceManager answers, or one that may still have to recover the application.
        """
        return self.session.report(application_id)

    def log(self, application_id: str, task: str | None = None) -> Iterator[str]:
        """Give a task's log in chunks of text; see `logs.Logs.read`."""
        from ..follow.logs import Logs

        return Logs(self.cluster, self.resourcemanager, environ=self._environ).read(application_id, task)

    def cluster_spec(self, application_id: str) -> dict[str, list[str]] | None:
        """Give the cluster spec of a running job, host:port per task index; None before it is published."""
        try:
            document = self.session.live.fetch_document(self.resourcemanager.get(application_id))
        except ApplicationNotFound:
            return None
        return (document or {}).get("cluster_spec") or None

    def wait(self, application_id: str, *, timeout: float | None = None,
             on_change: Callable[[JobReport], None] | None = None, poll_interval: float = 0.5,
             queue_timeout: float | None = None, identity: Identity | None = None) -> JobReport:
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
        queue_timeout : float, optional
            Seconds in the queue after which it is killed as QUEUE_TIMEOUT; 0 for none.
            Default: the deadline of the job, when this launcher submitted it.
        identity : Identity, optional
            When the application is killed in favour of another one of the same generation,
            the wait goes on with that one.

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
        if queue_timeout is None:
            queue_timeout = self._queue_timeouts.get(application_id, 0.0)
        return wait(self.session, application_id, timeout=timeout, on_change=on_change, poll_interval=poll_interval,
                    queue_timeout=queue_timeout, identity=identity)

    def ensure(self, spec: JobSpec, identity: Identity, on_reserved: Callable[[str], None] | None = None) -> JobReport:
        """Let exactly one application of an identity train: attach to it, or submit it.

        Parameters
        ----------
        spec : JobSpec
        identity : Identity
        on_reserved : callable, optional
            Called with the application id as soon as it is known, before anything is staged.

        Returns
        -------
        JobReport
            Of the live application (no reason yet), or of the one that has ended for this attempt.

        Raises
        ------
        Superseded
            A newer generation was submitted; it is left alone.
        SpecInvalid, SubmissionRejected, ResourcesImpossible, ClusterUnreachable, Cancelled
            As in `submit`. After ClusterUnreachable a further call continues the same submission; where Skein's Java
            client submits, which tells no id, what it may have submitted has been killed, and a further attempt of the
            identity submits anew.
        """
        report = Ensure(self.session, self._route, spec, identity, on_reserved).run()
        self._queue_timeouts[report.application_id] = spec.deadlines.queue
        return report

    def run(self, spec: JobSpec, identity: Identity | None = None, *,
            on_reserved: Callable[[str], None] | None = None, on_change: Callable[[JobReport], None] | None = None,
            timeout: float | None = None, poll_interval: float = 0.5, after: JobReport | None = None) -> JobReport:
        """Submit a job, or attach to it, and wait.

        Again after ALLOCATION_TIMEOUT, as often as the job allows, and twice where YARN could not launch
        the application master: nothing has trained then.

        Parameters
        ----------
        spec : JobSpec
        identity : Identity, optional
            Without one, every call is a new training.
        on_reserved, on_change, timeout, poll_interval : optional
            As in `submit` and `wait`.
        after : JobReport, optional
            The end of an application of this job that another process has waited for: it is returned as it is, unless
            nothing has trained and the job may be submitted again.
        """

        def start() -> JobReport:
            if identity is None:
                return JobReport(self.submit(spec, on_reserved))
            return self.ensure(spec, identity, on_reserved)

        def follow(application_id: str) -> JobReport:
            return self.wait(application_id, timeout=timeout, on_change=on_change, poll_interval=poll_interval,
                             identity=identity)

        return run_until_trained(self.session, start, follow, spec.restart.allocation_retries, after)

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
        return kill(self.session, application_id, why, reason=reason, timeout=timeout)

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
        self.session.close()


