"""`TaskExecution`: one run of the operator in an Airflow worker, from its options to the end of the Airflow task.

All calls of Airflow's supervisor (connection, XCom, state) happen here, before or after the wait. `TaskExecution.kill`
runs in a signal handler and calls YARN only.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import ClusterUnreachable, TfYarnError, WaitTimeout
from ..follow.lease import lease_of
from ..hadoop.cluster import Cluster
from ..hadoop.gateway import tracking_page
from ..hadoop.resourcemanager import ENDED
from ..job.document import read_document
from ..job.request import find_job_warnings
from ..job.spec import JobSpec
from ..launch.identity import is_repeatable, latest_of
from ..launch.launcher import Launcher
from ..launch.run import EngineRun
from ..runtime.common.escaping import escape_controls
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.progress import Lines
from .cleanup import kill_abandoned
from .exceptions import TfYarnInfrastructureError
from .fast_kill import KILL_LIMIT, kill_now
from .following import HOLDER, FollowedJob, cluster_to_dict, follow, lease_to_dict, run_in_thread
from .hook import YarnHook
from .job import operator_job
from .kill_state import DECIDED, KillOutcome
from .links import urls_of_ended
from .machines import check_other_clusters, differences, record_machine
from .masks import hand_over, job_secrets, masking
from .outcome import (
    FATAL,
    KILLED_BY_AIRFLOW,
    conclude,
    mask_with,
    read_report_of_event,
    sentence_of,
    to_xcom,
)
from .task_instance import (
    answer_within,
    deployment_id,
    identity_of,
    present_state,
    pull,
    push_application,
    push_other_application,
    resumed_identity,
)
from .trigger import TensorFlowYarnTrigger
from .versions import has_worker, is_replaced, redact

if TYPE_CHECKING:
    from .streamed_log import ProgramLines

#: Seconds between the deadline, at which the trigger kills, and the moment at which Airflow ends the deferral.
BACKSTOP = 20.0
#: Seconds for Airflow's answer before a kill; a worker has five from the signal to the end of its kill.
_ANSWER = 2.0
#: Seconds between two tries to reach YARN after Airflow has ended the deferral.
_AGAIN = 5.0


class TaskExecution:
    """One run of the operator in an Airflow worker.

    Parameters
    ----------
    operator : TensorFlowYarnOperator
        With rendered templates. Its module imports this one, so the annotation can't name it.
    context : Context
    deferred : bool, optional
        Whether this try was deferred before. Default False.
    """

    def __init__(self, operator: Any, context: Any, *, deferred: bool = False):
        self.operator = operator
        self.context = context
        self.log = operator.log
        self.ti = context["ti"]
        watched = operator.wait_for_completion and operator.kill_policy == "kill"
        self.identity = (
            resumed_identity(context, watched=watched)
            if deferred
            else identity_of(deployment_id(context), context, watched=watched)
        )
        #: Made here: a signal may come before the options are read.
        self._run = EngineRun(self._echo, self._notify, float(operator.poll_interval))
        self._spec: JobSpec | None = None
        self._cluster: Cluster | None = None
        self._launcher: Launcher | None = None
        self._submitting = False
        #: What waits for the kill that was sent last.
        self._await_kill: Callable[[], object] = lambda: None

    def run(self, *, deferrable: bool | None = None) -> Any:
        """Submit or attach, wait in this worker or in the triggerer, and return the value of the task."""
        self._check_killed()  # a signal may have come before this object existed
        outcome = self._run.settle(self._ensure)
        report = outcome.report
        if outcome.error is not None:
            self._leave_nothing(report)
        if report.reason is not None:
            program = self._program() if outcome.error is None else None
            if program is not None:  # nobody has shown them in this try
                run_in_thread(partial(program.show, report.application_id), self._check_killed)
            waits = outcome.error is None and self.operator.wait_for_completion
            return self._conclude(self._try_again(report) if waits else report)
        self._check_killed()
        if self._cluster is not None:
            kill_abandoned(self._cluster, self.identity.deployment, report.application_id)
        self._check_killed()
        if not self.operator.wait_for_completion:
            self._check_state()
            self.log.info("%s was submitted and continues; this task ends here", report.application_id)
            return mask_with(to_xcom(report), redact)
        if self.operator.deferrable if deferrable is None else deferrable:
            trigger = self._trigger(report.application_id)
            self._check_state()
            self._close()
            self.operator.defer(trigger=trigger, method_name="execute_complete", timeout=self._backstop())
        return self._finish(self._wait(report.application_id), report.application_id)

    def resume(self, event: Mapping[str, Any]) -> Any:
        """End the task with the report of the application that the trigger has followed to its end.

        An event may come from the trigger of an older try: on SQLite Airflow gives a new trigger the number of a
        deleted one. Then this try attaches to its own application again.
        """
        known = pull(self.ti) or {}
        self.operator.job_paths = known.get("input"), known.get("output_path")
        own = known.get("application_id") if known.get("attempt") == self.identity.attempt else None
        if own not in (None, event["application_id"]):
            self.log.warning(
                "Airflow has brought the end of %s , an application of an older try; this one follows %s",
                event["application_id"],
                own,
            )
            return self.run()
        self._run.application_ids.append(event["ended"])
        return self._finish(read_report_of_event(event, self._read, self.log.warning), event["application_id"])

    def _wait(self, application_id: str) -> JobReport:
        """Wait in this worker for the end of an application."""
        spec, launcher = self._prepared()
        followed = FollowedJob(
            self._cluster or launcher.cluster,
            application_id,
            self.identity,
            self._deadline(),
            spec.deadlines.queue,
            float(self.operator.poll_interval),
            kill=self.operator.kill_policy == "kill",
            lease=lease_of(spec, HOLDER),
        )
        program = self._program()
        return run_in_thread(
            lambda: follow(followed, self.log, lambda application_id: None, program), self._check_killed
        )

    def _program(self) -> "ProgramLines | None":
        """Return the lines of the program that this worker shows; None without any."""
        if not self.operator.stream_logs:
            return None
        from .streamed_log import ProgramLines

        spec, launcher = self._prepared()
        return ProgramLines(
            self._cluster or launcher.cluster,
            self.operator.stream_logs,
            lambda: masking(job_secrets(spec)),
            self.log,
        )

    def _finish(self, report: JobReport, submitted: str) -> Any:
        """End the task with a report; submit again first if that may help, as `Launcher.run` does.

        This worker waits for the next application: a second deferral would overwrite the log of the first trigger.
        """
        self._run.application_ids.append(report.application_id)
        if report.application_id != submitted:
            self.operator.tf_yarn_links = None
            push_other_application(self.ti, submitted, report.application_id)
        killer = report.killed_by_attempt
        if killer is not None and killer < self.identity.attempt:
            # The worker of the older attempt was cut off from Airflow, and ended after this attempt had attached.
            self.log.warning("%s was killed by attempt %s; submitting again", report.application_id, killer)
            return self.run(deferrable=False)
        return self._conclude(self._try_again(report))

    def time_out(self) -> Any:
        """End the task after Airflow has ended the deferral at its deadline; kill the application if it still runs."""
        why = "The task's execution_timeout is over, and the triggerer did not end the application"
        # For a kill by Airflow during this call.
        self._run.application_ids.append((pull(self.ti) or {}).get("application_id", ""))
        try:
            report = self._with_retries(why, lambda: self._end_latest(why))
        except ClusterUnreachable as error:
            message = f"{why}; the application may still run: {error}"
            report = JobReport("", reason=Reason.EXECUTION_TIMEOUT, message=message)
        return self._conclude(report)

    def _read(self, application_id: str) -> JobReport:
        return self._with_retries("Reading the report", lambda: self._connect().report(application_id))

    def _with_retries(self, what: str, ask: Callable[[], JobReport]) -> JobReport:
        """Ask YARN until it answers, at most for the site's ``unreachable_timeout``; log each failure of ``what``."""
        until = None
        while True:
            try:
                return ask()
            except ClusterUnreachable as error:
                limit = 600.0 if self._cluster is None else self._cluster.site.unreachable_timeout
                until = until or time.monotonic() + limit
                if time.monotonic() >= until:
                    raise
                self.log.warning("%s: %s", what, error)
            self._check_killed()
            time.sleep(_AGAIN)

    def kill(self, *, confirmed: bool = False) -> None:
        """Kill the application, or cancel its submission, or leave it. Called in a signal handler: within five seconds.

        Parameters
        ----------
        confirmed : bool, optional
            Whether a person or a time limit has decided: Ctrl-C, the task's ``execution_timeout``, its state. Default
            False: request the state from Airflow.
        """
        until, before = time.monotonic() + KILL_LIMIT, self.operator.kill_state
        leaves = self.operator.kill_policy == "leave"
        asks = has_worker(self.ti) and not (leaves or confirmed or before.outcome is KillOutcome.LEFT)
        cluster = self._cluster if self._run.application_id else None
        after = before.on_signal(
            leaves=leaves,
            has_application=cluster is not None,
            state=self._query_state() if asks else None,
            last_try=self._is_last_try(),
            leased=self._spec is not None and bool(self._spec.lease),
        )
        thread = None
        if after.outcome is KillOutcome.SENT and cluster is not None:
            done = threading.Event()
            # In a thread: the interrupted code may hold a lock.
            thread = threading.Thread(target=self._kill_now, args=(cluster, until, done), daemon=True)
            self._await_kill = lambda: done.wait(max(0.0, until - time.monotonic()))
        self.operator.kill_state = after  # a wait that sees it also sees what to wait for
        if self._launcher is not None and after.outcome is not KillOutcome.LEFT:
            self._launcher.cancel()
        if thread is not None:
            thread.start()
            if not self._submitting:
                self._await_kill()

    def _kill_now(self, cluster: Cluster, until: float, done: threading.Event) -> None:
        operator, seconds = self.operator, until - time.monotonic()
        try:
            accepted = kill_now(
                cluster, self._run.application_id, KILLED_BY_AIRFLOW, seconds, attempt=self.identity.attempt
            )
            operator.kill_state = operator.kill_state.on_answer(accepted)
        finally:
            done.set()

    def _query_state(self) -> str:
        """Return the state of the task, ``replaced`` if another try has its place; empty without an answer in time."""

        def query() -> str:
            state = present_state(self.ti)
            replaced = state == "running" and self._is_last_try() and is_replaced(self.ti)
            return "replaced" if replaced else state

        return answer_within(_ANSWER, query)

    def _is_last_try(self) -> bool:
        return int(self.ti.try_number) > int(self.ti.max_tries)

    def _connect(self) -> Launcher:
        """Connect to the cluster, once."""
        if self._launcher is None:
            hook = YarnHook(self.operator.tf_yarn_conn_id)
            self._cluster = hook.get_conn()
            self._launcher = Launcher(
                self._cluster,
                submit_with=self.operator.submit_with,
                strict_placement=self.operator.strict_placement,
                environ=hook.environ,
                holder=HOLDER,
            )
        return self._launcher

    def _prepared(self) -> tuple[JobSpec, Launcher]:
        """Make the job, then connect to the cluster, once."""
        if self._spec is not None:
            return self._spec, self._connect()
        operator = self.operator
        operator.complete_job(self.context)
        limited = operator.kill_policy == "kill" and operator.wait_for_completion
        index = f"[{self.ti.map_index}]" if self.ti.map_index >= 0 else ""
        document = operator.spec
        if isinstance(document, str):
            document = read_document(document, render=lambda texts: operator.render_texts(texts, self.context))
        self._spec = spec = operator_job(
            operator.options(), document, operator.yarn_lifetime, operator.execution_timeout if limited else None,
            name=f"{self.ti.dag_id}.{self.ti.task_id}{index}", names=operator.renamed_options)  # fmt: skip
        operator.job_paths = spec.input, spec.output
        for doubt in find_job_warnings(spec):
            self.log.warning("%s", doubt)
        launcher = self._connect()
        self._cluster = launcher.cluster.acting_for(spec.user or launcher.cluster.user)
        return spec, launcher

    def _ensure(self) -> JobReport:
        spec, launcher = self._prepared()
        self._submitting = True
        try:
            self._check_killed()  # a kill before this line found no launcher to cancel
            self._compare_machines(spec, launcher.cluster)
            return launcher.ensure(spec, self.identity, self._run.reserved)
        finally:
            self._submitting = False

    def _compare_machines(self, spec: JobSpec, cluster: Cluster) -> None:
        connection = str(self.operator.tf_yarn_conn_id)
        machines = record_machine(connection, cluster)
        for sentence in differences(connection, machines):
            self.log.warning("%s", sentence)
        check_other_clusters(cluster.acting_for(spec.user or cluster.user), spec.user or "", self.identity, machines)

    def _echo(self, line: str) -> None:
        # Airflow masks the task's log, but its scheduler prints the same lines as they are.
        self.log.info("%s", escape_controls(str(redact(line))))

    def _notify(self, application_id: str) -> None:
        """Push the application id to Airflow before any file is staged."""
        spec, launcher = self._prepared()
        resourcemanager = launcher.session.resourcemanager.address
        self.log.info("YARN application %s", application_id)
        if page := tracking_page(resourcemanager, application_id):
            self.log.info("tracking URL %s", page)
        self.operator.tf_yarn_links = push_application(
            self.ti, application_id, spec, resourcemanager, spec.user or launcher.cluster.user, self.identity
        )

    def _trigger(self, application_id: str) -> TensorFlowYarnTrigger:
        spec, launcher = self._prepared()
        return TensorFlowYarnTrigger(
            application_id,
            cluster_to_dict(self._cluster or launcher.cluster),
            asdict(self.identity),
            deadline=self._deadline(),
            queue_timeout=spec.deadlines.queue,
            poll_interval=float(self.operator.poll_interval),
            on_kill=self.operator.kill_policy,
            lease=lease_to_dict(spec),
            lines=self._lines(application_id),
        )

    def _lines(self, application_id: str) -> dict[str, Any] | None:
        """Return what the trigger needs for the program's lines, and leave the secrets where it finds them."""
        if not self.operator.stream_logs:
            return None
        spec, launcher = self._prepared()
        try:
            secrets = job_secrets(spec)
            path = hand_over(self._cluster or launcher.cluster, application_id, secrets) if secrets else ""
        except TfYarnError as error:
            self.log.warning(
                "stream_logs: no lines of the program while the task is deferred, because its secrets "
                "could not be handed over (%s); to see them: ytf logs -f %s",
                error,
                application_id,
            )
            return None
        return {"tasks": list(self.operator.stream_logs), "masks": path}

    def _deadline(self) -> float | None:
        """Return the end of the task's execution_timeout, seconds since the epoch; None if it has none."""
        limit = self.operator.execution_timeout
        return None if limit is None else float(self.ti.start_date.timestamp() + limit.total_seconds())

    def _backstop(self) -> timedelta | None:
        """Return the time after which Airflow itself ends the deferral."""
        deadline = self._deadline()
        return None if deadline is None else timedelta(seconds=max(0.0, deadline - time.time()) + BACKSTOP)

    def _end_latest(self, why: str) -> JobReport:
        """Kill the last application of this identity, unless it has ended; return its report."""
        report = JobReport("", reason=Reason.EXECUTION_TIMEOUT, message=why)
        try:
            launcher = self._connect()
            # From any user: a job may run as another user, and YARN decides whether this user may kill it.
            latest = latest_of(launcher.session.resourcemanager.find([self.identity.tag]), self.identity)
            if latest is None:
                return report
            self._run.application_ids.append(latest["id"])
            if self.operator.kill_policy == "leave" and latest["state"] not in ENDED:
                return replace(report, application_id=latest["id"], message=f"{why}; the application continues")
            return launcher.kill(latest["id"], why, reason=Reason.EXECUTION_TIMEOUT)
        except ClusterUnreachable:
            raise
        except TfYarnError as error:
            return replace(report, message=f"{why}; the application may still run: {error}")

    def _try_again(self, report: JobReport) -> JobReport:
        """Submit again where `Launcher.run` does; YARN's list of applications shows how often that was done."""
        deadline = self._deadline()
        if not is_repeatable(report) or (deadline is not None and time.time() >= deadline):
            return report

        def train() -> JobReport:
            spec, launcher = self._prepared()
            self._echo(sentence_of(report))
            limit = None if deadline is None else max(0.0, deadline - time.time())
            lines = Lines()

            def show(changed: JobReport) -> None:
                for line in lines.changes(changed, time.monotonic()):
                    self._echo(line)  # as it is: a secret with escapes is not found

            try:
                return self._run.train(launcher, spec, self.identity, show, after=report, timeout=limit)
            except WaitTimeout:
                return self._end_latest("The task's execution_timeout is over")

        return self._run.settle(train).report

    def _leave_nothing(self, report: JobReport) -> None:
        """Kill the application of a submission that failed for good, because no later try would find it."""
        final = self._is_last_try() or (report.reason is not None and report.reason.exit_code in FATAL)
        if final and self._cluster is not None and self._run.application_id and self.operator.kill_policy == "kill":
            kill_now(self._cluster, self._run.application_id, f"The submission failed: {report.message}")

    def _conclude(self, report: JobReport) -> Any:
        """Write the last lines of the log, push the report, and raise the exception of a failure."""
        if report.reason is not Reason.SUCCEEDED:
            self._check_killed()
        self._close()
        self._link_what_is_left(report)
        codes = self.operator.skip_on_exit_code
        value, failure = conclude(
            report,
            redact,
            self.log,
            self.operator.log_tail_lines,
            (codes,) if isinstance(codes, int) else codes,
            self.identity.attempt,
        )
        if failure is not None:
            if self.operator.do_xcom_push:  # the value of a task that succeeds is an XCom already
                self.ti.xcom_push("tf_yarn_status", value)
            raise failure
        path = value["output_path"] or self.operator.options().get("output")
        if report.output_path:  # with its version
            self.operator.job_paths = (self.operator.job_paths or (None,))[0], report.output_path
        if self.operator.model_asset is not None:
            self.context["outlet_events"][self.operator.model_asset].extra = {
                "model_path": path,
                "metrics": value["metrics"],
                "application_id": value["application_id"],
            }
        return self.operator.task_value(value, self.context)

    def _link_what_is_left(self, report: JobReport) -> None:
        """Let the links lead to pages that are there after the end."""
        if report.application_id and (known := pull(self.ti)):
            linked = self._cluster is not None and self._cluster.logs.linked
            self.operator.tf_yarn_links = urls_of_ended(known["resourcemanager"], report, linked)
            for key, url in self.operator.tf_yarn_links.items():
                self.ti.xcom_push(key, url)

    def _check_killed(self) -> None:
        """Raise a retryable error after `kill`; Airflow also calls it when it shuts down the worker."""
        if self.operator.kill_state.outcome is not KillOutcome.NONE:
            self._await_kill()
            raise TfYarnInfrastructureError(
                self.operator.kill_state.describe(self._run.application_id),
                Reason.KILLED.value,
                self._run.application_id,
            )

    def _check_state(self) -> None:
        """Kill the application if Airflow has ended this try: after the handover no signal reaches this process."""
        state = present_state(self.ti)
        if state in DECIDED:
            self.log.warning("Airflow has set the state of this task to %s in the meantime", state)
            self.kill(confirmed=True)
            self._check_killed()

    def _close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
