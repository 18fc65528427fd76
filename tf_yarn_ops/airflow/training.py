"""`Training`: one run of the operator in a worker, from its options to the end of the Airflow task.

Everything that talks to Airflow's supervisor (connection, XCom) happens here, before or after the
waiting; `kill`, which is called in a signal handler, talks to YARN only.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..cluster import Cluster
from ..errors import TfYarnError
from ..identity import generation_of
from ..launcher import Launcher
from ..request import doubts_about
from ..resourcemanager import LIVE
from ..runtime.reasons import Reason
from ..runtime.report import JobReport
from ..spec import JobSpec
from .exceptions import TfYarnInfrastructureError
from .facts import cluster_to_dict, deployment_id, identity_of, identity_to_dict
from .hook import YarnHook
from .job import SLACK, job_of
from .killing import LIMIT, kill_now, quieten
from .links import urls_of
from .outcome import exception_of, lines_of, sentence_of, to_xcom
from .trigger import TensorFlowYarnTrigger

if TYPE_CHECKING:
    from .operator import TensorFlowYarnOperator

#: Seconds between two looks at whether the thread that waits has ended.
_TICK = 0.5


class Training:
    """One run.

    Parameters
    ----------
    operator : TensorFlowYarnOperator
        Rendered.
    context : Context
    """

    def __init__(self, operator: "TensorFlowYarnOperator", context: Any):
        self.operator = operator
        self.context = context
        self.log = operator.log
        self.ti = context["ti"]
        self.identity = identity_of(deployment_id(), self.ti)
        self.application_id = ""
        self.killed = False
        self._spec: JobSpec | None = None
        self._cluster: Cluster | None = None
        self._launcher: Launcher | None = None
        self._submitting = False

    def run(self, *, deferrable: bool | None = None) -> Any:
        """Submit or attach, and wait as the operator says; give what becomes the XCom."""
        self.operator.tf_yarn_links = {}
        try:
            self._prepare()
            report = self._ensure()
        except TfYarnError as error:
            self._check_killed(error)
            report = JobReport(self.application_id, reason=error.reason, message=str(error))
        if report.reason is not None:
            return self._conclude(report)
        self._check_killed(None)
        if not self.operator.wait_for_completion:
            self.log.info("%s was submitted and goes on; this task ends here", report.application_id)
            return to_xcom(report)
        trigger = self._trigger(report.application_id)
        if self.operator.deferrable if deferrable is None else deferrable:
            self._close()
            self.operator.defer(trigger=trigger, method_name="execute_complete", timeout=self._backstop())
        return self._finish(self._wait(trigger))

    def resume(self, event: Mapping[str, Any]) -> Any:
        """End as the event says."""
        report = JobReport.from_dict(event["report"])
        self.application_id = report.application_id
        return self._finish(report)

    def time_out(self) -> Any:
        """Kill what is left after a deferral that took too long: the trigger did not do it."""
        why = "The task's execution_timeout is over, and its trigger did not end it"
        report = JobReport("", reason=Reason.EXECUTION_TIMEOUT, message=why)
        if self.operator.kill_policy == "leave":
            return self._conclude(report)
        try:
            _, launcher = self._prepare()
            user = launcher.cluster.user
            found = launcher.resourcemanager.find(tags=[self.identity.tag], states=LIVE, user=user)
            for application in found:
                if generation_of(application) <= self.identity.generation:
                    report = launcher.kill(application["id"], why, reason=Reason.EXECUTION_TIMEOUT)
        except TfYarnError as error:
            report = replace(report, message=f"{why}; whether it still runs is not known: {error}")
        return self._conclude(report)

    def kill(self) -> None:
        """Kill the application, take back a submission; in a signal handler, so no supervisor and five seconds."""
        self.killed = True
        if self.operator.kill_policy == "leave":
            return
        if self._launcher is not None:
            self._launcher.cancel()
        if self._cluster is None or not self.application_id:
            return
        # In a thread: whoever was interrupted may hold a lock.
        why = "Killed by Airflow: the task was cleared, marked or timed out, or its worker ends"
        thread = threading.Thread(target=kill_now, args=(self._cluster, self.application_id, why), daemon=True)
        thread.start()
        if not self._submitting:
            thread.join(LIMIT)

    def _prepare(self) -> tuple[JobSpec, Launcher]:
        """Build the job, learn the cluster."""
        operator = self.operator
        quieten()
        limit = operator.execution_timeout if operator.kill_policy == "kill" else None
        self._spec = spec = job_of(operator.options(), operator.spec, operator.yarn_lifetime, limit)
        for doubt in doubts_about(spec):
            self.log.warning("%s", doubt)
        cluster = YarnHook(operator.tf_yarn_conn_id).get_cluster()
        self._cluster = cluster.acting_for(spec.user or cluster.user)
        self._launcher = Launcher(cluster, submit_with=operator.submit_with,
                                  strict_placement=operator.strict_placement)
        return spec, self._launcher

    def _ensure(self) -> JobReport:
        spec, launcher = self._needed()
        self._submitting = True
        try:
            return launcher.ensure(spec, self.identity, self._reserved)
        finally:
            self._submitting = False

    def _needed(self) -> tuple[JobSpec, Launcher]:
        assert self._spec is not None and self._launcher is not None
        return self._spec, self._launcher

    def _reserved(self, application_id: str) -> None:
        """Let Airflow know the application before anything of it is staged."""
        spec, launcher = self._needed()
        self.application_id = application_id
        resourcemanager = launcher.resourcemanager.addresses.current()
        links = urls_of(resourcemanager, application_id, spec.tensorboard is not None)
        tracking = f"{resourcemanager}/proxy/{application_id}/"
        self.log.info("YARN application %s", application_id)
        self.log.info("tracking URL %s", tracking)
        self.ti.xcom_push("tf_yarn", {
            "application_id": application_id, "tracking_url": tracking, "name": spec.name, "queue": spec.queue,
            "user": spec.user or launcher.cluster.user, "resourcemanager": resourcemanager,
            "generation": self.identity.generation, "attempt": self.identity.attempt,
        })  # fmt: skip
        for key, url in links.items():
            self.ti.xcom_push(key, url)
        self.operator.tf_yarn_links = links

    def _trigger(self, application_id: str) -> TensorFlowYarnTrigger:
        spec, _ = self._needed()
        assert self._cluster is not None
        return TensorFlowYarnTrigger(
            application_id, cluster_to_dict(self._cluster), identity_to_dict(self.identity), deadline=self._deadline(),
            queue_timeout=spec.deadlines.queue, poll_interval=float(self.operator.poll_interval),
            on_kill=self.operator.kill_policy)  # fmt: skip

    def _deadline(self) -> float | None:
        limit: timedelta | None = self.operator.execution_timeout
        return None if limit is None else self.ti.start_date.timestamp() + limit.total_seconds()

    def _backstop(self) -> timedelta | None:
        """When Airflow itself ends the deferral: after the trigger had all its time to do so."""
        deadline = self._deadline()
        if deadline is None or self._cluster is None:
            return None
        left = max(0.0, deadline - time.time())
        return timedelta(seconds=left + self._cluster.site.unreachable_timeout + SLACK)

    def _wait(self, trigger: TensorFlowYarnTrigger) -> JobReport:
        """Run the trigger here, in a thread: signals and Airflow's alarm interrupt the main one."""
        result: concurrent.futures.Future[JobReport] = concurrent.futures.Future()
        waiter = _Waiter(trigger, result)
        waiter.start()
        try:
            while True:
                try:
                    return result.result(_TICK)
                except concurrent.futures.TimeoutError:
                    self._check_killed(None)
        finally:
            waiter.cancel()

    def _finish(self, report: JobReport) -> Any:
        """End the task, after further submissions where the job allows them."""
        self._check_killed(None)
        if report.reason is Reason.ALLOCATION_TIMEOUT:
            report = self._allocate_again(report)
        return self._conclude(report)

    def _allocate_again(self, report: JobReport) -> JobReport:
        """Submit again what did not get all its containers; how often it was, YARN's list says."""
        try:
            spec, launcher = self._prepare() if self._launcher is None else self._needed()
            retries = spec.restart.allocation_retries
            if not retries:
                return report
            self.log.info("%s , submitting again, at most %s times", sentence_of(report), retries)
            deadline = self._deadline()
            timeout = None if deadline is None else max(0.0, deadline - time.time())
            return launcher.run(spec, self.identity, on_reserved=self._reserved, timeout=timeout,
                                poll_interval=float(self.operator.poll_interval))
        except TfYarnError as error:
            self._check_killed(error)
            return JobReport(self.application_id, reason=error.reason, message=str(error))

    def _conclude(self, report: JobReport) -> Any:
        """Write the end of the log, push the report, raise what the report means."""
        self._close()
        for line in lines_of(report, time.time(), self.operator.log_tail_lines):
            self.log.info("%s", line)
        value = to_xcom(report)
        self.ti.xcom_push("tf_yarn_status", value)
        level = logging.INFO if report.reason is Reason.SUCCEEDED else logging.ERROR
        self.log.log(level, "%s", sentence_of(report))
        codes = self.operator.skip_on_exit_code
        failure = exception_of(report, (codes,) if isinstance(codes, int) else codes)
        if failure is not None:
            raise failure
        self._publish(value)
        return value

    def _publish(self, value: Mapping[str, Any]) -> None:
        """Give the asset's event what a reader of the model needs."""
        if self.operator.model_asset is not None:
            path = value["output_path"] or self.operator.options().get("output")
            self.context["outlet_events"][self.operator.model_asset].extra = {
                "model_path": path, "metrics": value["metrics"], "application_id": value["application_id"]}

    def _check_killed(self, cause: Exception | None) -> None:
        """After our own kill the task has to be retryable: a worker that is shut down calls it too."""
        if self.killed:
            left = "was left alone" if self.operator.kill_policy == "leave" else "was killed"
            raise TfYarnInfrastructureError(
                f"{self.application_id or 'The submission'} {left}, because Airflow ended the task or its worker",
                Reason.KILLED.value, self.application_id) from cause

    def _close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()


class _Waiter(threading.Thread):
    """Runs a trigger in an event loop of its own."""

    def __init__(self, trigger: TensorFlowYarnTrigger, result: "concurrent.futures.Future[JobReport]"):
        super().__init__(name="tf-yarn-wait", daemon=True)
        self._trigger = trigger
        self._result = result
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[JobReport] | None = None

    def run(self) -> None:
        try:
            self._task = self._loop.create_task(self._event())
            self._result.set_result(self._loop.run_until_complete(self._task))
        except BaseException as error:  # whatever ended the thread is the main thread's to raise
            self._result.set_exception(error)
        finally:
            self._loop.close()

    async def _event(self) -> JobReport:
        async with contextlib.aclosing(self._trigger.run()) as events:
            return JobReport.from_dict((await anext(events)).payload["report"])

    def cancel(self) -> None:
        """End the thread, unless it has ended."""
        if self.is_alive() and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self.join(2.0)
