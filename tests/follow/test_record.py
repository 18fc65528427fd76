"""A client that sees the end writes the record that the coordinator could not write."""

import contextlib
import json

import pytest

from support.fake_yarn import application
from support.staging_place import USER, cluster_at
from tf_yarn_ops.follow.record import keep_record
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.follow.yarn_report import read_report
from tf_yarn_ops.job.parts import Acls
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, compose_diagnostics
from tf_yarn_ops.staging.application_directory import JOB_NAME
from tf_yarn_ops.staging.staging_directory import StagingDirectory
from tf_yarn_ops.submit.application import job_file, plan_history

ENDED = 1700000300


def ended(**fields):
    return read_report(application(7, "KILLED", user=USER, finalStatus="KILLED", launchTime=1700000010000,
                                   finishedTime=ENDED * 1000, **fields))


@pytest.fixture
def staging(tmp_path):
    return StagingDirectory(cluster_at(tmp_path))


def lay_out(staging, application_id, **fields):
    """Leave the directory of an application as a killed client does."""
    directory = staging.directory(application_id)
    directory.make()
    spec = JobSpec(command="python train.py", tasks={"worker": {"instances": 1}}, **fields)
    directory.put(JOB_NAME, job_file(spec, base_port=20000, user=USER, history=plan_history(staging.cluster)))


def test_the_record_of_a_killed_job_has_its_options_and_no_secret(staging):
    report = ended(diagnostics="no hunter2-long left")
    lay_out(staging, report.application_id, env={"API_KEY": "hunter2-long"}, acls=Acls(view_users=["*"]))
    assert keep_record(staging, report) is True
    record = staging.records().read(report.application_id)
    assert (record["reason"], record["written_by"], record["queue_seconds"]) == ("KILLED", "client", 10.0)
    assert "hunter2" not in json.dumps(record) and "***" in record["message"]
    status = staging.filesystem.list(f"{staging.cluster.history}/2023/11/14")[0]
    assert status.permission & 0o777 == 0o644  # all users may view the application
    assert keep_record(staging, report) is False


def test_a_report_of_ours_is_enough(staging):
    ours = JobReport(application(7)["id"], reason=Reason.TASK_FAILED, message="worker:0 failed", metrics={"loss": 1.0},
                     versions={"tf_yarn_ops": "1.0"})
    assert keep_record(staging, ended(diagnostics=compose_diagnostics(ours))) is True
    assert staging.records().read(ours.application_id)["metrics"] == {"loss": 1.0}


def test_applications_of_other_programs_and_those_that_never_began_get_no_record(staging, tmp_path):
    with contextlib.closing(Session(staging.cluster)) as session:
        session.read(application(8, "FINISHED", user=USER, finalStatus="SUCCEEDED", launchTime=1700000010000,
                                 finishedTime=ENDED * 1000, applicationType="MAPREDUCE"))
    assert keep_record(staging, JobReport("application_1_0001", reason=Reason.KILLED)) is False
    lay_out(staging, ended().application_id)
    without = StagingDirectory(cluster_at(tmp_path, history_days=0))
    assert keep_record(without, ended()) is False
    assert staging.records().days() == []


def test_a_file_system_that_fails_is_only_told(staging, caplog, tmp_path):
    report = ended()
    lay_out(staging, report.application_id)
    (tmp_path / staging.cluster.history.lstrip("/")).write_text("in the way")
    assert keep_record(staging, report) is False
    assert "the record of" in caplog.text
