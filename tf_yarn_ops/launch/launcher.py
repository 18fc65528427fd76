"""`Launcher`: submit, attach to, wait for, kill and list applications; the engines use nothing else."""

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import SubmissionRejected
from ..follow.kill import KILL_TIMEOUT, kill_application
from ..follow.lease import lease_of, with_lease
from ..follow.session import Session
from ..follow.wait import wait_for
from ..follow.yarn_report import read_yarn_report
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import LIVE
from ..job.spec import JobSpec
from ..runtime.common.contract import AGENT_LINE, AGENT_WARNING
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..submit.submitter import AUTO, SubmitMethod
from .committed import with_commit
from .ensure import ensure
from .growth import check_growth, grow_memory, log_no_growth, outgrew_memory
from .identity import Identity, may_try_again
from .submission import submit_once

if TYPE_CHECKING:
    from ..follow.log_stream import LogLine

logger = logging.getLogger(__name__)

#: Seconds for the last lines of a job that this client has killed.
LAST_LINES = 5.0

#: Seconds before the next submission, with jitter, longer each time: two jobs that each hold half of the containers
#: that they need should not meet again.
RETRY_PAUSE = 10.0
#: Seconds before the next submission when YARN could not launch the application master.
LAUNCH_PAUSE = 1.0


def pause_before(retry: int) -> float:
    """Return the seconds to wait before a retry, counted from 1."""
    return RETRY_PAUSE * retry * random.uniform(0.5, 1.5)


def notify_nobody(_: str) -> None:
    """Do nothing with the id of an application."""


class Launcher:
    """Submits, follows and kills applications of one cluster.

    Parameters
    ----------
    cluster : Cluster
    submit_with : {"auto", "rest", "skein"}, optional
        Default: the site's ``submit_with``.
    strict_placement : bool, optional
        Refuse a job with a container that no running node could hold. Default: log a warning.
    environ : mapping of str to str, optional
        For Skein's Java client and ``yarn logs``. Default: the process's environment.
    holder : str, optional
        The name of this client, for the report of a job whose lease has run out. Default ``a Python program``.

    Attributes
    ----------
    cluster : Cluster
    session : Session
        Its connections, for other parts of this package; it may change without notice.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        submit_with: str | None = None,
        strict_placement: bool = False,
        environ: Mapping[str, str] | None = None,
        holder: str = "a Python program",
    ):
        self.session, self.cluster = Session(cluster), cluster
        way = submit_with or cluster.site.submit_with
        self._method = SubmitMethod(
            way if way in self.session.resourcemanager.ways else AUTO, strict_placement, environ
        )
        self._holder = holder
        self._jobs: dict[str, JobSpec] = {}  # by the ids of their applications

    def __repr__(self) -> str:
        return f"<Launcher of {self.cluster.user} on {', '.join(self.cluster.resourcemanagers)}>"

    def submit(self, spec: JobSpec, on_reserved: Callable[[str], None] | None = None) -> str:
        """Submit a job.

        Parameters
        ----------
        spec : JobSpec
        on_reserved : callable, optional
            Called with the application id before anything is staged, so that the caller can store it. An error that
            it raises ends the submission. Skein's Java client returns the id only after the submission.

        Returns
        -------
        str
            The id of the application that YARN has accepted.

        Raises
        ------
        SpecInvalid
            Local files are missing; the error lists all of them.
        SubmissionRejected, ResourcesImpossible
            The cluster has no such queue or label, no container of that size, or denies the right.
        ClusterUnreachable
            YARN or the file system does not answer.
        Cancelled
            `cancel` was called; nothing is left.
        """
        application_id = submit_once(self.session, self._method, spec, on_reserved or notify_nobody)
        self._jobs[application_id] = spec
        return application_id

    def log(self, application_id: str, task: str | None = None) -> Iterator[str]:
        """Yield a task's log in chunks of text.

        Parameters
        ----------
        application_id : str
        task : str, optional
            As in `follow.log_reader.Logs.read`, whose errors it raises: ``worker:1``, ``coordinator`` or ``master``.
            Default: the task that failed first, else the chief or the first task, else the coordinator.
        """
        from ..follow.log_reader import Logs

        with closing(Logs(self.session, environ=self._method.environ)) as logs:
            yield from logs.read(application_id, task)

    @contextmanager
    def _reading(
        self,
        on_line: Callable[["LogLine"], None] | None,
        tasks: Sequence[str],
        agent_lines: bool,
    ) -> Iterator[Callable[[Mapping[str, Any], JobReport], None] | None]:
        """Return what a wait calls at each look, so that ``on_line`` gets the new lines of the tasks."""
        if on_line is None:
            yield None
            return
        from ..follow.log_reader import Logs
        from ..follow.log_stream import LogStream

        noticed: float | None = None
        grace = 0.0

        def cancelled() -> bool:
            nonlocal noticed
            if self.session.cancelled and noticed is None:
                noticed = time.monotonic()
            return noticed is not None and time.monotonic() >= noticed + grace

        with (
            closing(Logs(self.session, environ=self._method.environ, cancelled=cancelled)) as logs,
            closing(LogStream(logs, tasks)) as stream,
        ):

            def on_report(application: Mapping[str, Any], report: JobReport) -> None:
                nonlocal noticed, grace
                if self.session.cancelled and report.reason is None:
                    return  # it is killed now, and its last lines follow
                noticed, grace = None, 0.0 if report.reason and not self.session.cancelled else LAST_LINES
                for line in stream.poll(application, report):
                    if cancelled():
                        return
                    if agent_lines or line.text.startswith(AGENT_WARNING) or not line.text.startswith(AGENT_LINE):
                        on_line(line)

            yield on_report

    def cluster_spec(self, application_id: str, round_number: int | None = None) -> dict[str, list[str]] | None:
        """Return the cluster spec of a running job, per task type one ``host:port`` per task index.

        Return None before the coordinator has published it, and after the end.

        Parameters
        ----------
        application_id : str
        round_number : int, optional
            The round of the cluster spec, from 1; None is returned while another round runs. Default: the latest.
        """
        application = self.session.find_application(application_id)
        document = None if application is None else self.session.live.fetch_document(application)
        rounds = (document or {}).get("rounds") or [{}]
        if document is None or round_number not in (None, rounds[-1].get("number")):
            return None
        return document.get("cluster_spec") or None

    def wait(
        self,
        application_id: str,
        *,
        timeout: float | None = None,
        on_change: Callable[[JobReport], None] | None = None,
        poll_interval: float = 0.5,
        queue_timeout: float | None = None,
        identity: Identity | None = None,
        ours: bool | None = None,
        on_line: Callable[["LogLine"], None] | None = None,
        tasks: Sequence[str] = ("*:*",),
        agent_lines: bool = False,
    ) -> JobReport:
        """Wait for the end of an application; move its lease, if this launcher has submitted it with one.

        Parameters
        ----------
        application_id : str
        timeout : float, optional
            Seconds. Default: no limit.
        on_change : callable, optional
            Called with every report that differs from the one before, the last included, and every 20 s
            (`follow.wait.REPEAT`) with the same one.
        poll_interval : float, optional
            Seconds between two looks. Default 0.5.
        queue_timeout : float, optional
            Seconds in the queue after which the application is killed as QUEUE_TIMEOUT; 0 for no limit.
            Default: the job's queue deadline if this launcher has submitted it, else no limit.
        identity : Identity, optional
            When the application is killed in favour of another one of the same generation, wait for that one.
        ours : bool, optional
            Whether `cancel` and Ctrl-C kill the application, or only end the wait. Default: whether this launcher has
            submitted it.
        on_line : callable, optional
            Called with each new whole line of the tasks' logs, through restarts. Default: nobody reads the logs.
        tasks : sequence of str, optional
            Names of tasks, with ``*`` and ``?``: ``worker:*``, ``chief:0``; ``coordinator`` and ``master`` are the
            logs of the application master. Default: all tasks.
        agent_lines : bool, optional
            Whether ``on_line`` gets the lines of our agents beside the programs', and not only their warnings.
            Default false.

        Returns
        -------
        JobReport
            With a reason; LOST when YARN no longer knows the application.

        Raises
        ------
        SpecInvalid
            The job has none of these tasks.
        WaitTimeout
            After ``timeout`` seconds; the application goes on.
        ClusterUnreachable
            YARN has not answered for the site's ``unreachable_timeout``.
        Cancelled
            `cancel` was called; the application is killed if it is ``ours``.
        KeyboardInterrupt, SystemExit
            As `Cancelled`. A second Ctrl-C gives the kill up; the log names the application.
        """
        job = self._jobs.get(application_id)
        if queue_timeout is None:
            queue_timeout = job.deadlines.queue if job else 0.0
        with self._reading(on_line, tasks, agent_lines) as on_report:
            return wait_for(
                self.session,
                application_id,
                timeout=timeout,
                on_change=on_change,
                on_poll=on_report,
                poll_interval=poll_interval,
                queue_timeout=queue_timeout,
                identity=identity,
                lease=lease_of(job, self._holder) if job else None,
                ours=job is not None if ours is None else ours,
            )

    def ensure(self, spec: JobSpec, identity: Identity, on_reserved: Callable[[str], None] | None = None) -> JobReport:
        """Attach to the one application of an identity, or submit it.

        Parameters
        ----------
        spec : JobSpec
        identity : Identity
        on_reserved : callable, optional
            Called with the application id as soon as it is known, before anything is staged.

        Returns
        -------
        JobReport
            The report of the live application, without a reason; or of one that has ended, with a reason: it has
            succeeded, or this attempt may not submit again.

        Raises
        ------
        Superseded
            A newer generation was submitted; it goes on.
        SpecInvalid, SubmissionRejected, ResourcesImpossible, ClusterUnreachable, Cancelled
            As in `submit`. After ClusterUnreachable the next call continues the same submission. With Skein's Java
            client an application that it may have submitted is killed, and the next attempt submits a new one.
        """
        report = ensure(self.session, self._method, spec, identity, on_reserved or notify_nobody)
        self._jobs[report.application_id] = spec
        return report

    def run(
        self,
        spec: JobSpec,
        identity: Identity | None = None,
        *,
        on_reserved: Callable[[str], None] | None = None,
        on_change: Callable[[JobReport], None] | None = None,
        on_line: Callable[["LogLine"], None] | None = None,
        tasks: Sequence[str] = ("*:*",),
        agent_lines: bool = False,
        timeout: float | None = None,
        poll_interval: float = 0.5,
        after: JobReport | None = None,
    ) -> JobReport:
        """Submit a job, or attach to it, and wait for its end.

        When no task has run, the job is submitted again: after ALLOCATION_TIMEOUT ``restart.allocation_retries``
        times, and twice when YARN could not launch the application master. After OUT_OF_MEMORY it is submitted with
        more memory, with ``restart.memory_growth``.

        A job without an identity has a lease unless it says ``lease=0``: YARN ends it when this process is gone. No
        other call would find it.

        Parameters
        ----------
        spec : JobSpec
        identity : Identity, optional
            Default: none; each call is a new training.
        on_reserved, on_change, on_line, tasks, agent_lines, timeout, poll_interval : optional
            As in `submit` and `wait_for`.
        after : JobReport, optional
            The report of an ended application of this job. It is returned unchanged, unless the job may be submitted
            again. Default: none.

        Returns
        -------
        JobReport
            The report of the last application, with a reason.

        Raises
        ------
        SpecInvalid, SubmissionRejected, ResourcesImpossible, ClusterUnreachable, Superseded, WaitTimeout, Cancelled
            As in `submit`, `ensure` and `wait_for`.
        KeyboardInterrupt, SystemExit
            The application is killed, as in `wait_for`.
        """
        if identity is None:
            spec = with_lease(spec, self.cluster.site.unreachable_timeout)
        ended = [] if after is None else [after]
        while not ended or may_try_again(ended, spec.restart.allocation_retries):
            if ended:
                self._pause_after(ended)
            if identity:
                report = self.ensure(spec, identity, on_reserved)
            else:
                spec = grow_memory(self.session, spec, ended)
                try:
                    if ended:
                        check_growth(spec, ended[-1])
                    report = JobReport(self.submit(spec, on_reserved))
                except SubmissionRejected as error:
                    if not ended or not outgrew_memory(ended[-1]):
                        raise
                    log_no_growth(ended[-1], error)
                    break
            if ended and report.application_id == ended[-1].application_id:
                break  # more memory is not possible
            if report.reason is None:
                report = self.wait(
                    report.application_id,
                    timeout=timeout,
                    on_change=on_change,
                    identity=identity,
                    poll_interval=poll_interval,
                    on_line=on_line,
                    tasks=tasks,
                    agent_lines=agent_lines,
                )
            ended.append(report)
        return with_commit(self.session, spec, identity.tags if identity else (), ended[-1])

    def _pause_after(self, ended: Sequence[JobReport]) -> None:
        """Let time pass before the job is submitted again, because no task of it has run; not before more memory."""
        latest = ended[-1]
        if outgrew_memory(latest):
            return
        pause = pause_before(len(ended)) if latest.reason is Reason.ALLOCATION_TIMEOUT else LAUNCH_PAUSE
        logger.info("%s: no task has run; submitting again in %.0f s: %s", latest.application_id, pause, latest.message)
        self.session.pause(pause)

    def kill(
        self,
        application_id: str,
        why: str = "Killed by its client",
        *,
        reason: Reason = Reason.KILLED,
        timeout: float = KILL_TIMEOUT,
    ) -> JobReport:
        """Kill an application, wait until it is gone, delete its directory.

        Parameters
        ----------
        application_id : str
        why : str
            A sentence for the report, which YARN keeps.
        reason : Reason, optional
            Default KILLED.
        timeout : float, optional
            Seconds. Default 30.

        Returns
        -------
        JobReport
            The application's own end if it had ended before; otherwise the kill with ``reason``. KILLED for an id
            that was never submitted.

        Raises
        ------
        SubmissionRejected
            The user may not kill it.
        ClusterUnreachable
            YARN has not answered, or the application has not ended in time.
        """
        return kill_application(self.session, application_id, why, reason=reason, timeout=timeout)

    def list(self, states: Iterable[str] = LIVE, user: str | None = None, alerts: bool = False) -> list[JobReport]:
        """Return the user's applications of type Skein in these states, the latest first.

        Parameters
        ----------
        states : iterable of str, optional
            YARN's states. Default: `LIVE`, all states before the end.
        user : str, optional
            Default: the cluster's user.
        alerts : bool, optional
            True asks the coordinators of running jobs what deserves a look. Default false.

        Returns
        -------
        list of JobReport
            With the states of YARN, without single tasks.

        Raises
        ------
        ClusterUnreachable
            YARN does not answer.
        """
        found = [
            item
            for item in self.session.resourcemanager.find(states=states, user=user or self.cluster.user)
            if str(item.get("applicationType", "")).lower() == "skein"
        ]
        known = self.session.alerts(found) if alerts else {}
        reports = [replace(read_yarn_report(item), alerts=known.get(str(item["id"]), ())) for item in found]
        return sorted(reports, key=lambda report: report.submitted_at or 0.0, reverse=True)

    def report(self, application_id: str) -> JobReport:
        """Return the present report of an application; its reason is LOST if YARN does not know it.

        Raises
        ------
        ClusterUnreachable
            No ResourceManager answers, or it was restarted and may still have to recover the application.
        """
        return self.session.report(application_id)

    def cancel(self, why: str = "") -> None:
        """End the call that this client is in; safe in a signal handler.

        A submission ends before its next step, and its application is killed. The call raises `Cancelled`. YARN keeps
        the sentence ``why`` with the kill.
        """
        self.session.cancel(why)

    def close(self) -> None:
        """Close the connections; they open again when they are needed."""
        self.session.close()
