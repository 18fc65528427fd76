"""What clients check and find of a committed output: jobs of this machine on its own file system."""

import contextlib
import json
import os
from dataclasses import replace

import pytest

from support.cluster_jobs import job
from support.waiting import until
from tf_yarn_ops.errors import CommitRefused, SpecInvalid
from tf_yarn_ops.hadoop.cluster import local
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.spec import JobFault
from tf_yarn_ops.launch.committed import PlannedOutput, prune_outputs, with_commit
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.committed_output import Success, dump_success
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport
from tf_yarn_ops.submit.application import plan_commit

TAGS = Identity("training").tags
ID = "local_1700000000000_1"


@pytest.fixture
def launcher(tmp_path):
    with contextlib.closing(Launcher(local(tmp_path / "jobs"))) as launcher:
        yield launcher


@pytest.fixture
def output(tmp_path):
    (tmp_path / "models" / "digits").mkdir(parents=True)
    return tmp_path / "models" / "digits"


def planned(launcher, output, tags=TAGS, **fields):
    return PlannedOutput(launcher.session, job(output=str(output), commit="replace", **fields), tags)


def marked(output, report, application_id=ID, training=None):
    training = Identity("training").hash[:16] if training is None else training
    (output / "_SUCCESS").write_bytes(dump_success(Success(application_id, training, 0, report)))


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"schema": 1},
        {"schema": 1, "application_id": "application_1_1", "reason": "SUCCEEDED"},
        {"schema": 1, "application_id": ID, "reason": "TASK_FAILED"},
        {"schema": 1, "application_id": ID, "reason": ["x"]},
        {"schema": 1, "application_id": ID, "tasks": 7, "reason": "SUCCEEDED"},
    ],
)
def test_hostile_report_beside_a_result_is_a_plain_success(launcher, output, report):
    marked(output, report)
    found = planned(launcher, output).find_report()
    assert (found.application_id, found.reason, found.tasks) == (ID, Reason.SUCCEEDED, ())


def test_marker_of_another_user_is_not_read(launcher, output, monkeypatch, caplog):
    marked(output, {})
    monkeypatch.setattr("tf_yarn_ops.hadoop.filesystem.MountedFileSystem.owner_of_new", lambda *_: "alice")
    monkeypatch.setattr("tf_yarn_ops.hadoop.filesystem.MountedFileSystem.read", lambda *_: pytest.fail("it is read"))
    assert planned(launcher, output).find_report() is None
    assert "not to alice, and proves nothing" in caplog.text


@pytest.mark.parametrize("application_id", ["", ID])
def test_marker_that_is_a_hard_link_proves_nothing(launcher, output, caplog, application_id):
    """Without fs.protected_hardlinks anybody can link a real marker of ours into the folder of another output."""
    real = output.parent / "older"
    real.mkdir()
    marked(real, {})
    (output / "_SUCCESS").hardlink_to(real / "_SUCCESS")
    assert planned(launcher, output).find_report(application_id) is None
    assert "is a hard link, and proves nothing" in caplog.text
    (real / "_SUCCESS").unlink()
    assert planned(launcher, output).find_report(application_id)


@pytest.mark.parametrize("training", ["", "f" * 16])
def test_result_of_another_training_is_not_found(launcher, output, training):
    marked(output, {}, training=training)
    assert planned(launcher, output).find_report() is None
    assert planned(launcher, output, ()).find_report() is None
    assert planned(launcher, output, ()).find_report(ID).application_id == ID


@pytest.mark.parametrize(
    ("reason", "found"),
    [(Reason.AM_FAILED, Reason.SUCCEEDED), (Reason.LOST, Reason.SUCCEEDED), (Reason.KILLED, Reason.KILLED)],
)
def test_end_between_commit_and_verdict_is_a_success(launcher, output, reason, found):
    marked(output, {})
    spec = job(output=str(output), commit="replace")
    assert with_commit(launcher.session, spec, (), JobReport(ID, reason=reason)).reason is found


@pytest.mark.parametrize("reason", [Reason.AM_FAILED, Reason.LOST, Reason.KILLED, Reason.OUT_OF_MEMORY])
@pytest.mark.parametrize("kind", ["work", "sealed", "kept"])
def test_work_is_found_where_no_coordinator_has_left_a_report(launcher, output, reason, kind, monkeypatch):
    spec, training = job(output=str(output), commit="replace"), Identity("training").hash[:16]
    left = output.parent / f"_digits.{kind}-{training}-0-{ID}"
    (left / "variables").mkdir(parents=True)
    (left / "variables" / "model").write_bytes(b"model")
    (output.parent / f"_digits.claim-{training}-0-{ID}").touch()
    found = with_commit(launcher.session, spec, TAGS, JobReport(ID, reason=reason))
    assert (found.reason, found.working_path, found.working_bytes) == (reason, str(left), 5)
    assert (
        with_commit(
            launcher.session, spec, TAGS, replace(found, application_id=f"{ID}0", working_path=None)
        ).working_path
        is None
    )
    monkeypatch.setattr("tf_yarn_ops.hadoop.filesystem.MountedFileSystem.owner_of_new", lambda *_: "alice")
    assert with_commit(launcher.session, spec, TAGS, JobReport(ID, reason=reason)).working_path is None


def test_folder_without_write_right_is_refused_before_anything_runs(launcher, output):
    spec = job(output="/proc/models/digits", commit="new")
    with pytest.raises(CommitRefused, match=r"/proc can't be written, and commit renames folders there"):
        launcher.run(spec)
    assert launcher.list(states=["FINISHED", "FAILED", "RUNNING"]) == []


@pytest.mark.slow
def test_output_of_a_live_training_is_refused_to_another(launcher, output):
    application = launcher.submit(job("exec tail -f /dev/null", output=str(output), commit="replace"))
    claim = f"_digits.claim-alone-0-{application}"
    until(lambda: claim in os.listdir(output.parent), 60, 0.1)
    with pytest.raises(CommitRefused, match=rf"{application} of another training writes .*/digits now"):
        launcher.run(job(output=str(output), commit="replace"))
    launcher.kill(application)
    assert launcher.run(job(output=str(output), commit="replace")).reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_retry_of_a_committed_training_starts_no_application(launcher, output, tmp_path):
    spec = job(
        f"[ $DTF_TASK_JOB_NAME = chief ] || sleep 1; touch $DTF_OUTPUT_PATH/$DTF_TASK_JOB_NAME; exit $(cat {tmp_path}/code)",
        output=str(output / "x"),
        commit="new",
        tasks={"chief": 1, "evaluator": 1},
    )
    (tmp_path / "code").write_text("3")
    failed = launcher.run(spec, Identity("training"))
    assert failed.reason is Reason.TASK_FAILED and "chief" in os.listdir(failed.working_path)
    (tmp_path / "code").write_text("0")
    done = launcher.run(spec, Identity("training", attempt=1))
    success = json.loads((output / "x" / "_SUCCESS").read_bytes())
    assert success["application_id"] == done.application_id
    assert [file["name"] for file in success["files"]] == ["chief", "evaluator"]  # which ends after the chief
    launcher.session.resourcemanager.folder(done.application_id).rename(tmp_path / "forgotten")
    assert launcher.run(spec, Identity("training", attempt=2)).application_id == done.application_id


def test_work_of_ended_trainings_is_pruned_and_an_old_result_stays(launcher, output, tmp_path):
    PlannedOutput(launcher.session, job(output=str(output), commit="replace")).check()
    left = output.parent / f"_digits.work-alone-0-{ID}"
    holds = output.parent / f"_digits.sealed-alone-0-{ID}-00"
    for folder in (left, holds / "_ytf_previous"):
        folder.mkdir(parents=True)
    (output.parent / f"_digits.claim-alone-0-{ID}").touch()
    output.rmdir()
    assert prune_outputs(launcher.session, 30.0) == []
    assert [file.name for file in prune_outputs(launcher.session, 0.0)] == [f"_digits.claim-alone-0-{ID}", left.name]
    assert os.listdir(output.parent) == [holds.name]
    notes = tmp_path / "jobs" / "staging" / "outputs"
    assert len(os.listdir(notes)) == 1
    output.mkdir()
    assert [file.name for file in prune_outputs(launcher.session, 0.0)] == [holds.name]
    assert os.listdir(notes) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"output": 1, "mode": "replace"}',
        '{"output": "s3://x/y"}',
        '{"output": "hdfs://127.0.0.1/models/of-a-lost-cluster", "mode": "replace"}',
    ],
)
def test_note_that_names_no_output_is_passed_over(launcher, output, content, tmp_path):
    notes = tmp_path / "jobs" / "staging" / "outputs"
    notes.mkdir(parents=True)
    (notes / "x").write_text(content)
    assert prune_outputs(launcher.session, 0.0) == []


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ({"output": None}, "commit", JobFault.NO_ATOMIC_RENAME),
        ({"output": "s3://bucket/models/digits"}, "commit", JobFault.NO_ATOMIC_RENAME),
        ({"output": "models/digits"}, "commit", JobFault.NO_ATOMIC_RENAME),
        ({"output": "/"}, "output", JobFault.SHARED_FOLDER),
        ({"output": "/tmp"}, "output", JobFault.SHARED_FOLDER),
        ({"output": "hdfs:///user/ann"}, "output", JobFault.SHARED_FOLDER),
        ({"output": "hdfs:///user/ann/"}, "output", JobFault.SHARED_FOLDER),
        ({"output": "/home/ann"}, "output", JobFault.SHARED_FOLDER),
        ({"output": "hdfs:///"}, "output", JobFault.SHARED_FOLDER),
        ({"output": "~/models"}, "commit", JobFault.NO_ATOMIC_RENAME),
        ({"output": "file:///models"}, "commit", JobFault.NO_ATOMIC_RENAME),
        ({"output": "/models/../digits"}, "output", JobFault.NOT_NORMAL),
        ({"output": "/models//digits"}, "output", JobFault.NOT_NORMAL),
        ({"output": "/data/digits", "input": "/data/digits"}, "output", JobFault.OVERLAPS),
        ({"output": "/data/digits/model", "input": "/data/digits/"}, "output", JobFault.OVERLAPS),
        ({"output": "/data", "input": "/data/digits"}, "output", JobFault.OVERLAPS),
        ({"output": "/models/" + "é" * 73}, "output", JobFault.LONG_NAME),
        ({"output": "/models/x", "commit_version": 3}, "commit_version", JobFault.NEEDS_VERSION),
    ],
)
def test_output_that_can_not_be_committed_is_one_fault(fields, path, code):
    with pytest.raises(SpecInvalid) as refused:
        job(**{"commit": "new", **fields})
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [(path, code)]


@pytest.mark.parametrize("given", ["/data/digits", "/data2", "hdfs:///data", "hdfs://other/data/x"])
def test_output_beside_the_input_is_no_fault(given):
    assert job(output=given, input="/data/digits-input", commit="replace").output == given


@pytest.mark.parametrize("paths", [("hdfs:///data", "hdfs://nn/data/x"), ("hdfs://nn/data/x", "hdfs:///data")])
def test_output_that_overlaps_with_the_input_by_another_name_is_refused(tmp_path, paths):
    output, given = paths
    known, site = local(tmp_path), Site(namenodes={"hdfs://nn": ("http://nn:9870",)})
    cluster = replace(known, storage=replace(known.storage, default="hdfs://nn"), site=site)
    spec = job(output=output, input=given, commit="new")
    with pytest.raises(SpecInvalid, match=f"'{output}' and input '{given}' overlap"):
        plan_commit(cluster, spec)
    assert plan_commit(cluster, job(output=output, input="hdfs://other/data/x", commit="new")).path


def test_staging_directory_is_no_output(launcher):
    with pytest.raises(SpecInvalid, match="is not a folder of this output alone"):
        PlannedOutput(launcher.session, job(output="/staging/models", commit="new"))
