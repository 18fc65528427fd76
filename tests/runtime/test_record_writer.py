"""The coordinator writes the record of the ended job over WebHDFS; a file system that fails never costs the verdict."""

import asyncio
import json
import re

import pytest

from support.appmaster import APPLICATION, AppMaster
from support.fake_webhdfs import serving_files
from support.fake_yarn import FakeYarn, application, serving
from support.runtime_jobs import FOREVER, job
from support.tokens import credentials_file, token
from support.waiting import until
from tf_yarn_ops.job.parts import Acls
from tf_yarn_ops.runtime.common.contract import HistoryPlan, dump_job, load_job
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import record_path, snapshot_paths, unpack_record
from tf_yarn_ops.runtime.common.report import JobReport
from tf_yarn_ops.runtime.common.status import build_status
from tf_yarn_ops.runtime.common.tokens import encode_token
from tf_yarn_ops.runtime.master import record_writer as history
from tf_yarn_ops.submit.application import build_runtime_job

FOLDER = "/user/ann/.skein/history"
ENDED = 1_700_000_100.0
PATH = record_path(FOLDER, APPLICATION, ENDED)
SNAPSHOTS = snapshot_paths(FOLDER, APPLICATION)


@pytest.fixture
def files():
    with serving_files() as files:
        yield files


def job_with(plan, resourcemanagers=(), **fields):
    spec = job("true", **fields)
    plan = plan._replace(view_users=spec.acls.view_users, view_groups=spec.acls.view_groups)
    runtime_job = build_runtime_job(spec)
    return load_job(dump_job(runtime_job._replace(resourcemanagers=resourcemanagers, user="ann", history=plan)))


def status(**fields):
    report = JobReport(
        APPLICATION, name="digits", reason=Reason.SUCCEEDED, started_at=ENDED - 60, finished_at=ENDED, **fields
    )
    return build_status(report, ENDED)


def plan(*urls, **fields):
    return HistoryPlan(FOLDER, "ann", urls, **fields)


def test_the_path_has_the_day_in_utc():
    assert f"{FOLDER}/2023/11/14/{APPLICATION}.json.gz" == PATH


def test_record_appears_whole_and_only_its_owner_reads_it(files):
    assert history.keep(job_with(plan(files.url)), APPLICATION, status()) == PATH
    record = unpack_record(files.files[PATH])
    assert (record["name"], record["reason"], record["written_by"]) == ("digits", "SUCCEEDED", "coordinator")
    assert list(files.files) == [PATH] and files.modes[PATH] == "600" and files.acls == {}
    assert files.folders == {PATH.rpartition("/")[0]: "755"}
    operations = [operation for _, operation, _, _ in files.requests]
    assert operations == ["MKDIRS", "CREATE", "CREATE", "RENAME"]
    assert all(parameters["user.name"] == "ann" for *_, parameters in files.requests if "step" not in parameters)


def test_the_view_acls_may_read_the_record(files):
    acls = Acls(view_users=["bob"], view_groups=["ml"])
    assert history.keep(job_with(plan(files.url), acls=acls), APPLICATION, status()) == PATH
    assert (files.modes[PATH], files.acls[PATH]) == ("600", "user:bob:r--,group:ml:r--")


def test_all_users_may_read_the_record_where_all_may_view_the_application(files):
    assert history.keep(job_with(plan(files.url), acls=Acls(view_users=["*"])), APPLICATION, status()) == PATH
    assert (files.modes[PATH], files.acls) == ("644", {})


def test_without_acls_in_hdfs_the_record_stays_its_owners(files):
    files.faults.append(lambda operation, path: (403, "AclException") if operation == "MODIFYACLENTRIES" else None)
    assert history.keep(job_with(plan(files.url), acls=Acls(view_users=["bob"])), APPLICATION, status()) == PATH
    assert files.modes[PATH] == "600"


def test_record_of_the_coordinator_replaces_that_of_a_client(files):
    files.files[PATH] = b"poorer"
    assert history.keep(job_with(plan(files.url)), APPLICATION, status()) == PATH
    assert unpack_record(files.files[PATH])["written_by"] == "coordinator" and len(files.files) == 1


@pytest.mark.slow
def test_a_standby_is_passed_over_and_a_fault_is_tried_again(files):
    failures = [(500, "IOException"), (503, "RetriableException")]
    files.faults.append(lambda operation, path: failures.pop(0) if operation == "RENAME" and failures else None)
    with serving_files() as standby:
        standby.faults.append(lambda operation, path: (403, "StandbyException"))
        assert history.keep(job_with(plan(standby.url, files.url)), APPLICATION, status()) == PATH
    assert failures == [] and PATH in files.files


def test_it_gives_up_at_the_deadline_and_says_why(files, caplog, monkeypatch):
    monkeypatch.setattr(history, "WRITE_SECONDS", 0.3)
    files.faults.append(lambda operation, path: (403, "SafeModeException", "Name node is in safe mode."))
    assert history.keep(job_with(plan(files.url)), APPLICATION, status()) is None
    assert re.search(
        r"was not written: making the directory \S+: http://\S+: SafeModeException: Name node is in safe mode",
        caplog.text,
    )


def test_tokens_of_the_container_are_tried_in_turn_and_never_logged(files, tmp_path, monkeypatch, caplog):
    made = [token("HDFS_DELEGATION_TOKEN", "127.0.0.1:8020", number) for number in (1, 2)]
    (tmp_path / "tokens").write_bytes(credentials_file(made))
    other, good = map(encode_token, made)
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    files.tokens = [good]
    assert history.keep(job_with(plan(files.url)), APPLICATION, status()) == PATH
    files.tokens = []
    monkeypatch.setattr(history, "WRITE_SECONDS", 0.0)
    assert history.keep(job_with(plan(files.url)), APPLICATION, status()) is None
    assert "InvalidToken" in caplog.text and other not in caplog.text and good not in caplog.text


def test_times_of_submission_and_launch_come_from_yarn(files):
    yarn = FakeYarn()
    yarn.add(application(42, startedTime=1_700_000_000_000, launchTime=1_700_000_030_000, id=APPLICATION))
    with serving(yarn) as url:
        history.keep(job_with(plan(files.url), (url,)), APPLICATION, status())
    record = unpack_record(files.files[PATH])
    assert (record["submitted_at"], record["started_at"], record["queue_seconds"]) == (
        1_700_000_000.0,
        1_700_000_030.0,
        30.0,
    )


def test_a_folder_that_is_the_clusters_file_system_is_written_directly(tmp_path):
    assert history.keep(job_with(plan(root=str(tmp_path))), APPLICATION, status()) == PATH
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [str(path).removeprefix(str(tmp_path)) for path in written] == [PATH]
    assert written[0].stat().st_mode & 0o777 == 0o600


def test_secrets_are_masked_wherever_the_program_prints_them(files):
    secret = "hunter2-long"
    document = {**status(message=f"no {secret}"), "tasks": [{"task": "worker:0", "log_tail": f"key {secret}\n"}]}
    history.keep(job_with(plan(files.url), env={"API_KEY": secret}), APPLICATION, document)
    record = unpack_record(files.files[PATH])
    assert secret not in json.dumps(record)
    assert (record["message"], record["tasks"][0]["log_tail"]) == ("no ***", "key ***\n")


def record_of(files):
    path = until(lambda: next((path for path in files.files if path.endswith(f"/{APPLICATION}.json.gz")), None))
    return unpack_record(files.files[path])


@pytest.mark.slow
def test_a_real_coordinator_writes_what_its_report_says(tmp_path, files):
    command = (
        f'set -- --token=letmein99; echo "$JOB_NAME $TASK_INDEX"; '
        f'if [ $TASK_INDEX = 1 ]; then echo "key $API_KEY ${{1#*=}}"; exit 3; fi; {FOREVER}'
    )
    with AppMaster(tmp_path / "job", job(command, env={"API_KEY": "hunter2-long"}), history=plan(files.url)) as am:
        report = am.wait()
    record = record_of(files)
    assert JobReport.from_dict(record).reason is report.reason is Reason.TASK_FAILED
    assert {task["task"]: task["state"] for task in record["tasks"]} == {task.task: task.state for task in report.tasks}
    failed = next(task for task in record["tasks"] if task["task"] == record["first_failure"])
    assert "key *** ***" in failed["log_tail"] and "hunter2" not in json.dumps(record)
    assert "key *** ***" in str(report)
    tails = {task["task"]: task["log_tail"] for task in record["tasks"] if task["state"] == "stopped"}
    assert tails["worker:0"] == "worker 0\n" and {
        task.log_tail for task in report.tasks if task.state == "stopped"
    } == {""}


@pytest.mark.slow
def test_a_file_system_that_hangs_does_not_keep_the_verdict(tmp_path, files):
    files.released.clear()
    with AppMaster(tmp_path / "job", job("true"), history=plan(files.url)) as am:
        until(lambda: am.ended)
        assert am.coordinator.poll() is None and files.requests and not files.files  # the write still hangs
        files.released.set()
        assert am.wait().reason is Reason.SUCCEEDED
    assert record_of(files)["reason"] == "SUCCEEDED"


@pytest.fixture
def quick(monkeypatch):
    """Let snapshots follow each change, and nothing else."""
    monkeypatch.setattr(history, "CHANGE_SECONDS", 0.0)
    monkeypatch.setattr(history, "SNAPSHOT_POLL_SECONDS", 0.01)


def leaving(files, check, **fields):
    """Let `Snapshots` run beside a coroutine function, which gets it, a function for changes, and the looks at the state."""
    steps, looks = [0], []

    def look():
        looks.append(steps[0])
        return steps[0]

    async def run():
        snapshots = history.Snapshots(
            job_with(plan(files.url), **fields),
            APPLICATION,
            look,
            lambda: {**status(), "message": f"step {steps[0]} with hunter2-long"},
        )
        task = asyncio.ensure_future(snapshots.leave())
        try:
            await check(snapshots, lambda: steps.__setitem__(0, steps[0] + 1), looks)
        finally:
            task.cancel()

    asyncio.run(run())


async def eventually(condition):
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not in time")


def test_snapshots_follow_the_changes_of_a_job_and_one_is_always_whole(files, quick):
    async def check(snapshots, change, looks):
        def told():
            return [unpack_record(files.files[path])["message"] for path in SNAPSHOTS if path in files.files]

        await eventually(lambda: told() == ["step 0 with ***"])
        change()
        await eventually(lambda: told() == ["step 0 with ***", "step 1 with ***"])
        change()
        await eventually(lambda: told() == ["step 2 with ***", "step 1 with ***"])
        assert {files.modes[path] for path in SNAPSHOTS} == {"600"} and files.folders[f"{FOLDER}/.running"] == "700"
        await history.begin_record(job_with(plan(files.url)), APPLICATION, status(), snapshots)
        assert list(files.files) == [PATH]
        change()
        await eventually(lambda: looks.count(3) > 2)  # the next look comes after the write of the one before
        assert list(files.files) == [PATH]

    leaving(files, check, env={"API_KEY": "hunter2-long"})


def test_record_replaces_a_snapshot_whose_write_has_failed(files, quick):
    """A DataNode that fails leaves an empty file."""

    def fail(operation, path):
        if operation == "CREATE" and path == SNAPSHOTS[1]:
            files.files[path] = b""
            return 500, "IOException"
        return None

    files.faults.append(fail)

    async def check(snapshots, change, looks):
        await eventually(lambda: SNAPSHOTS[0] in files.files)
        change()
        await eventually(lambda: SNAPSHOTS[1] in files.files)
        await history.begin_record(job_with(plan(files.url)), APPLICATION, status(), snapshots)
        assert list(files.files) == [PATH]

    leaving(files, check)


def test_without_a_change_there_is_no_further_snapshot_for_a_minute(files, quick):
    async def check(snapshots, change, looks):
        await eventually(lambda: files.files)
        seen = len(looks)
        await eventually(lambda: len(looks) > seen + 10)
        assert list(files.files) == [SNAPSHOTS[0]] and history.SNAPSHOT_SECONDS == 60.0

    leaving(files, check)


def test_failing_file_system_costs_a_snapshot_and_is_logged_once(files, quick, caplog):
    caplog.set_level("INFO")
    files.faults.append(lambda operation, path: (403, "SafeModeException", "in safe mode"))

    async def check(snapshots, change, looks):
        for _ in range(3):
            before = len(files.requests)
            change()
            await eventually(lambda before=before: len(files.requests) > before)
        files.faults.clear()
        change()
        await eventually(lambda: files.files)

    leaving(files, check)
    assert caplog.text.count("No snapshot of the job is written") == 1


def test_a_fault_of_a_snapshot_costs_the_job_nothing(files, quick, caplog):
    def fail():
        raise KeyError("worker:0")

    asyncio.run(history.Snapshots(job_with(plan(files.url)), APPLICATION, lambda: 0, fail).leave())
    assert "No snapshot of the job is made any more" in caplog.text and not files.requests
