"""Reports of jobs that failed and of large jobs."""

from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

APP = "application_1700000000000_0001"


def task(name, state, **values):
    return TaskReport(name, state, host="node1", starts=1, **values)


FAILED = JobReport(
    APP, name="digits", queue="default", user="ann", state="FINISHED", final_status="FAILED", reason=Reason.TASK_FAILED,
    message="worker:1 failed with exit code 3 on node1 after 2.0 s", first_failure="worker:1",
    submitted_at=1000.0, finished_at=1009.5, queue_seconds=0.25,
    tasks=(
        task("ps:0", "stopped", signal=15, started_at=1004.0, finished_at=1008.0),
        task("worker:1", "failed", exit_code=3, started_at=1004.0, finished_at=1006.0,
             log_tail="Traceback (most recent call last):\nValueError: no data"),
    ),
)  # fmt: skip
