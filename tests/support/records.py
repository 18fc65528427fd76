"""Records of made-up jobs for tests of the history."""

from support.staging_place import USER
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import COORDINATOR, build_record, pack_record, record_path
from tf_yarn_ops.runtime.common.report import JobReport, Round, TaskReport
from tf_yarn_ops.runtime.common.status import Given, Series, TaskEvent, build_status
from tf_yarn_ops.staging.staging_directory import StagingDirectory

#: 2023-11-14 22:13:20 UTC.
STAMP = 1_700_000_000
DAY = 24 * 3600


def application_id(number):
    return f"application_{STAMP}000_{number:04d}"


def record(
    number=1,
    *,
    ended=STAMP + 3600.0,
    reason=Reason.SUCCEEDED,
    name="digits",
    user=USER,
    queue="default",
    took=600.0,
    waited=30.0,
    loss=0.25,
    options=None,
    versions=None,
    metrics=None,
    tail="",
    **costs,
):
    """Return a record of a job with one worker and one curve."""
    submitted, started = ended - took - waited, ended - took
    failed = reason is Reason.TASK_FAILED
    task = TaskReport(
        "worker:0",
        "failed" if failed else "succeeded",
        1 if failed else 0,
        None,
        "node1",
        "container_1",
        1,
        started + 5,
        ended,
        30.0,
        512.0,
        None,
        tail,
    )
    final = {Reason.SUCCEEDED: "SUCCEEDED", Reason.KILLED: "KILLED"}.get(reason, "FAILED")
    report = JobReport(
        application_id(number),
        name=name,
        queue=queue,
        user=user,
        state="KILLED" if final == "KILLED" else "FINISHED",
        final_status=final,
        reason=reason,
        message=f"The job ended with {reason.value}",
        submitted_at=submitted,
        started_at=started,
        finished_at=ended,
        queue_seconds=waited,
        **costs,
        rounds=(Round(1, started + 5, "start"),),
        tasks=(task,),
        first_failure="worker:0" if failed else None,
        metrics=metrics if metrics is not None else {"loss": loss},
        versions=versions or {"tf_yarn_ops": "1.0"},
        output_path="hdfs://nn/models/digits",
    )
    points = [[step * 100, loss + 1 / (step + 1)] for step in range(40)]
    status = build_status(
        report,
        ended,
        events={
            "worker:0": [
                TaskEvent("requested", started),
                TaskEvent("allocated", started + 1, "node1"),
                TaskEvent("registered", started + 3, "node1"),
                TaskEvent("running", started + 5, "node1", 1),
                TaskEvent("failed" if failed else "succeeded", ended, "node1", 1, 1 if failed else 0),
            ]
        },
        given={"worker:0": Given(2048, 1)},
        series=[Series("worker:0", "loss", points, points[-1][0], points[-1][1], ended)],
        options=options if options is not None else {"command": "python train.py", "tasks": {"worker": {}}},
    )
    return build_record(status, COORDINATOR, ended)


def keep(filesystem, folder, made):
    """Write a record as a coordinator does."""
    path = record_path(folder, made["application_id"], made["finished_at"])
    filesystem.makedirs(path.rpartition("/")[0], 0o755)
    assert filesystem.create(path, pack_record(made), 0o600)
    return path


def add(cluster, made):
    """Write a record into the history of its user."""
    theirs = cluster.acting_for(made["user"])
    return keep(StagingDirectory(theirs).filesystem, theirs.history, made)
