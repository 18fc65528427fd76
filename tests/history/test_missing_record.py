"""A client that sees the end writes the record that the coordinator could not write."""

import contextlib
import json
from dataclasses import replace

from support.fake_yarn import FakeYarn, application, serving, verdict_text
from support.records import record as made_up
from support.staging_place import USER, cluster_at
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.follow.sweep import sweep_snapshots
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.history.missing_record import keep_record
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.job.parts import Acls
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.runtime.common.contract import dump_job
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import pack_record, snapshot_paths
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Usage
from tf_yarn_ops.staging.staging_directory import JOB_NAME, StagingDirectory
from tf_yarn_ops.submit.application import build_runtime_job, plan_history

ENDED = 1700000300


def ended(**fields):
    return read_yarn_report(
        application(
            7, "KILLED", user=USER, finalStatus="KILLED", launchTime=1700000010000, finishedTime=ENDED * 1000, **fields
        )
    )


def lay_out(staging, application_id, **fields):
    """Leave the directory of an application as a killed client does."""
    directory = staging.directory(application_id)
    directory.make()
    spec = JobSpec(command="python train.py", tasks={"worker": {"instances": 1}}, **fields)
    directory.put(
        JOB_NAME,
        dump_job(build_runtime_job(spec)._replace(user=USER, history=plan_history(staging.cluster, spec.acls))),
    )


def test_the_record_of_a_killed_job_has_its_options_and_no_secret(staging):
    report = ended(diagnostics="no hunter2-long left")
    lay_out(staging, report.application_id, env={"API_KEY": "hunter2-long"}, acls=Acls(view_users=["*"]))
    assert keep_record(staging, report) is True
    record = records_of(staging).read(report.application_id)
    assert (record["reason"], record["written_by"], record["queue_seconds"]) == ("KILLED", "client", 10.0)
    assert "hunter2" not in json.dumps(record) and "***" in record["message"]
    status = staging.filesystem.list(f"{staging.cluster.history}/2023/11/14")[0]
    assert status.permission & 0o777 == 0o644  # all users may view the application
    assert keep_record(staging, report) is False


def test_job_file_of_another_version_leaves_no_record(staging, caplog):
    """Its secrets are not known, nor who may read the record."""
    report = ended(diagnostics="no hunter2-long left")
    directory = staging.directory(report.application_id)
    directory.make()
    directory.put(JOB_NAME, b'{"version": 1, "mirror": {"path": "/out"}}')
    assert keep_record(staging, report) is False
    assert records_of(staging).read(report.application_id) is None
    assert "could not be written" in caplog.text and "is of another version" in caplog.text


def test_a_report_of_ours_is_enough(staging):
    ours = JobReport(
        application(7)["id"],
        reason=Reason.TASK_FAILED,
        message="worker:0 failed",
        metrics={"loss": 1.0},
        versions={"tf_yarn_ops": "1.0"},
    )
    assert keep_record(staging, ended(diagnostics=verdict_text(ours))) is True
    assert records_of(staging).read(ours.application_id)["metrics"] == {"loss": 1.0}


def test_foreign_and_unstarted_applications_get_no_record(staging, tmp_path):
    with contextlib.closing(Session(staging.cluster)) as session:
        session.read(
            application(
                8,
                "FINISHED",
                user=USER,
                finalStatus="SUCCEEDED",
                launchTime=1700000010000,
                finishedTime=ENDED * 1000,
                applicationType="MAPREDUCE",
            )
        )
    assert keep_record(staging, JobReport("application_1_0001", reason=Reason.KILLED)) is False
    lay_out(staging, ended().application_id)
    without = StagingDirectory(cluster_at(tmp_path, history_days=0))
    assert keep_record(without, ended()) is False
    assert records_of(staging).days() == []


def test_failing_file_system_is_only_logged(staging, caplog, tmp_path):
    report = ended()
    lay_out(staging, report.application_id)
    (tmp_path / staging.cluster.history.lstrip("/")).write_text("in the way")
    assert keep_record(staging, report) is False
    assert "the record of" in caplog.text


def leave(staging, at, **values):
    """Leave a snapshot as a coordinator that is killed later."""
    document = made_up(7, name="killed", tail="", metrics={"loss": 0.25}) | values
    task = {
        **document["tasks"][0],
        "state": "running",
        "exit_code": None,
        "finished_at": None,
        "peak_memory_mib": None,
        "usage": Usage(at, 1.0, 600.0, 1.0, 700.0, 30.0)._asdict(),
    }
    events = [event for event in task["events"] if event["kind"] != "succeeded"]
    document |= {"tasks": [{**task, "events": events}], "reason": None, "state": "RUNNING", "written_at": at}
    name = snapshot_paths(staging.cluster.history, document["application_id"])[int(at) % 2]
    staging.filesystem.makedirs(name.rpartition("/")[0], 0o700)
    assert staging.filesystem.create(name, pack_record(document), 0o600)
    return name


def test_the_record_has_what_the_killed_coordinator_left_last(staging):
    report = ended(name="killed", diagnostics="the container was killed")
    leave(staging, 100.0, metrics={"loss": 0.5})
    leave(staging, 101.0)
    assert keep_record(staging, report) is True
    record = records_of(staging).read(report.application_id)
    assert (record["reason"], record["written_by"], record["finished_at"]) == ("KILLED", "client", ENDED)
    assert (record["metrics"], len(record["series"][0]["points"])) == ({"loss": 0.25}, 40)
    [task] = record["tasks"]
    assert (task["state"], task["events"][-1]["kind"], task["given"]["memory_mib"]) == ("lost", "running", 2048)
    assert task["peak_memory_mib"] == 700.0
    assert record["verdict"]["reason"] == "KILLED" and record["options"]["command"] == "python train.py"
    assert records_of(staging).snapshots() == {}


def test_report_names_the_work_that_a_killed_coordinator_has_left(staging):
    paths = {"output_path": "hdfs://nn/models/digits", "working_path": "hdfs://nn/models/_digits.work-1"}
    leave(staging, 100.0, working_bytes=7, **paths)
    with contextlib.closing(Session(staging.cluster)) as session:
        for _ in range(2):  # the first call writes the record
            report = session.read(
                application(
                    7, "KILLED", user=USER, finalStatus="KILLED", launchTime=1700000010000, finishedTime=ENDED * 1000,
                    applicationType="skein",
                )
            )  # fmt: skip
            assert (report.reason, report.working_bytes) == (Reason.KILLED, 7)
            assert {name: getattr(report, name) for name in paths} == paths


def test_report_of_a_kill_has_the_tasks_that_yarn_has_no_room_for(staging):
    leave(staging, 100.0)
    ours = JobReport(application(7)["id"], reason=Reason.KILLED, message="seen", omitted_tasks=1)
    with contextlib.closing(Session(staging.cluster)) as session:
        for _ in range(2):  # the first call writes the record
            report = session.read(
                application(
                    7, "KILLED", user=USER, finalStatus="KILLED", launchTime=1700000010000, finishedTime=ENDED * 1000,
                    applicationType="skein", diagnostics=verdict_text(ours),
                )
            )  # fmt: skip
            assert [task.task for task in report.tasks] == ["worker:0"]
            assert (report.reason, report.omitted_tasks) == (Reason.KILLED, 0)


def test_what_yarn_has_kept_of_the_tasks_is_newer_than_the_snapshot(staging):
    leave(staging, 100.0)
    ours = JobReport(
        application(7)["id"],
        reason=Reason.TASK_FAILED,
        message="worker:0 failed",
        metrics={"loss": 0.125},
        tasks=(TaskReport("worker:0", "failed", 3), TaskReport("ps:0", "stopped")),
    )
    assert keep_record(staging, ended(diagnostics=verdict_text(ours))) is True
    record = records_of(staging).read(ours.application_id)
    assert [(task["task"], task["state"], task["exit_code"]) for task in record["tasks"]] == [
        ("worker:0", "failed", 3),
        ("ps:0", "stopped", None),
    ]
    assert record["metrics"] == {"loss": 0.125} and record["tasks"][0]["events"] and record["series"]


def test_a_snapshot_that_is_cut_off_is_left_out(staging):
    leave(staging, 100.0)
    broken = snapshot_paths(staging.cluster.history, ended().application_id)[1]
    staging.filesystem.create(broken, b"\x1f\x8b\x08", 0o600)
    assert keep_record(staging, ended()) is True
    assert records_of(staging).read(ended().application_id)["series"]


def test_snapshots_of_ended_applications_become_records_and_are_deleted(staging):
    leave(staging, 100.0)
    yarn = FakeYarn()
    yarn.add(application(7, "KILLED", user=USER, finalStatus="KILLED", finishedTime=ENDED * 1000))
    with (
        serving(yarn) as url,
        contextlib.closing(replace(staging.cluster, resourcemanagers=(url,)).resourcemanager()) as known,
    ):
        sweep_snapshots(staging, known)
        assert records_of(staging).read(application(7)["id"])["reason"] == "KILLED"
        assert records_of(staging).snapshots() == {}
        yarn.add(application(7, "RUNNING", user=USER))
        name = leave(staging, 102.0)
        sweep_snapshots(staging, known)
        assert staging.filesystem.status(name)
        yarn.apps.clear()
        sweep_snapshots(staging, known)
        assert staging.filesystem.status(name), "it may run on another cluster with this file system"
        staging.filesystem.set_modified(name, 1)
        sweep_snapshots(staging, known)
        assert staging.filesystem.status(name) is None
