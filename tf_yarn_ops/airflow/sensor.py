"""`TensorFlowYarnSensor`: wait for an application that another task, another engine or a person has submitted."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .hook import YarnHook
from .links import TrainingLink, YarnApplicationLink, YarnLogsLink, urls_of
from .operator import argument_faults
from .versions import AirflowSkipException, BaseSensorOperator, PokeReturnValue, conf, redact

if TYPE_CHECKING:
    from ..launch.launcher import Launcher
    from ..runtime.common.report import JobReport


class TensorFlowYarnSensor(BaseSensorOperator):
    """Succeed or fail as an application does; never kill it.

    Parameters
    ----------
    application_id : str
        A template, such as ``{{ ti.xcom_pull('train', key='tf_yarn')['application_id'] }}``.
    tf_yarn_conn_id : str, optional
        As in `TensorFlowYarnOperator`.
    deferrable : bool, optional
        Wait in the triggerer. Default: ``[operators] default_deferrable``.
    poke_interval : float, optional
        Seconds between two looks, also in the triggerer. Default 5.
    log_tail_lines : int, optional
        Lines of the failed task's log at the end of the Airflow log. Default 50.
    **kwargs
        Arguments of every Airflow sensor: ``timeout``, ``mode``, ``soft_fail``, and so on.

    Returns
    -------
    dict
        The report of the application, as of `TensorFlowYarnOperator`.

    Raises
    ------
    ValueError
        With every argument of another type.
    """

    template_fields: Sequence[str] = ("application_id",)
    operator_extra_links = (TrainingLink(), YarnApplicationLink(), YarnLogsLink())
    ui_color = "#fdecd2"

    def __init__(
        self,
        *,
        application_id: str,
        tf_yarn_conn_id: str | None = "tf_yarn_default",
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poke_interval: timedelta | float = 5.0,
        log_tail_lines: int = 50,
        **kwargs: Any,
    ) -> None:
        if faults := argument_faults(locals()):
            raise ValueError(f"{kwargs.get('task_id', type(self).__name__)}: " + "; ".join(faults))
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.application_id = application_id
        self.tf_yarn_conn_id = tf_yarn_conn_id
        self.deferrable = deferrable
        self.log_tail_lines = log_tail_lines
        #: The URLs of the links by their XCom keys. None: an earlier process has pushed them, as XComs.
        self.tf_yarn_links: dict[str, str] | None = {}
        self._launcher: Launcher | None = None
        self._answered: float | None = None

    def execute(self, context: Any) -> Any:
        """Wait here, or in the triggerer."""
        from ..launch.identity import Identity
        from .following import cluster_to_dict
        from .task_instance import deployment_id
        from .trigger import TensorFlowYarnTrigger

        if not self.deferrable:
            return super().execute(context)
        cluster = self._connect(context).cluster
        identity = Identity(f"application {self.application_id}", deployment=deployment_id(context))
        return self.defer(
            trigger=TensorFlowYarnTrigger(
                self.application_id,
                cluster_to_dict(cluster),
                asdict(identity),
                poll_interval=self.poke_interval,
                on_kill="leave",
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def _connect(self, context: Any) -> "Launcher":
        """Connect to the cluster and push the links, once."""
        if self._launcher is None:
            self._launcher = YarnHook(self.tf_yarn_conn_id).get_launcher()
            self.tf_yarn_links = urls_of(self._launcher.cluster.resourcemanagers[0], self.application_id, False)
            for key, url in self.tf_yarn_links.items():
                context["ti"].xcom_push(key, url)
        return self._launcher

    def poke(self, context: Any) -> bool | PokeReturnValue:
        """Return the report once the application has ended."""
        from ..errors import ClusterUnreachable
        from ..hadoop.site import Site

        if self._answered is None:
            self._answered = time.monotonic()
        try:
            report = self._connect(context).report(self.application_id)
        except ClusterUnreachable as error:
            # In mode reschedule each look is a process of its own, so that only the sensor's `timeout` ends the wait.
            site = Site() if self._launcher is None else self._launcher.cluster.site
            if time.monotonic() - self._answered >= site.unreachable_timeout:
                raise
            self.log.warning("still waiting for %s: %s", self.application_id, error)
            return False
        self._answered = time.monotonic()
        if report.reason is None:
            self.log.info("%s %s", self.application_id, report.state)
            return False
        return PokeReturnValue(True, self._ended(report))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Continue after the trigger."""
        self.tf_yarn_links = None
        return super().resume_execution(next_method, next_kwargs, context)

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> Any:
        """End the task with the report of the application that has ended."""
        from .outcome import read_report_of_event

        return self._ended(read_report_of_event(event, YarnHook(self.tf_yarn_conn_id).report, self.log.warning))

    def _ended(self, report: "JobReport") -> Any:
        from .outcome import conclude

        value, failure = conclude(report, redact, self.log, self.log_tail_lines)
        if failure is None:
            return value
        if self.soft_fail or self.never_fail:
            raise AirflowSkipException(str(failure)) from failure
        raise failure
