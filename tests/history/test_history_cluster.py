"""The history on real daemons: the coordinator writes its record, and a client where the coordinator was killed."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from support.cluster_jobs import job
from support.faults import processes_of
from support.records import application_id, record
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import current_user, discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.history.histories import Histories, read_record
from tf_yarn_ops.history.query import Query
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.job.parts import Acls
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import pack_record, record_path
from tf_yarn_ops.runtime.common.report import JobReport

pytestmark = pytest.mark.cluster


METRICS = """printf '{"step": 1, "loss": 0.5}\\n{"step": 2, "loss": 0.25}\\n' > $YTF_METRICS_FILE"""


@pytest.fixture
def launcher(minicluster):
    made = Launcher(discover(minicluster.resourcemanager_url, os.environ, None, Site()))
    yield made
    for report in made.list():
        made.kill(report.application_id, "its test ended")
    made.close()


def coordinator_of(application_id):
    """Return the pid of the coordinator; its parent is the watchdog."""

    def look():
        pids = [
            pid
            for pid, words in processes_of(application_id)
            if f".ytf.zip coordinator {application_id}" in words and "bash" not in words
        ]
        parents = {pid: int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids}
        return next((pid for pid, parent in parents.items() if parent in pids), None)

    return until(look, 120)


def test_an_ended_job_leaves_its_record_whoever_writes_it(minicluster, launcher):
    ended = launcher.submit(
        job(
            "echo '{\"accuracy\": 0.9}' > $YTF_RESULT_FILE",
            name="digits",
            acls=Acls(view_users=["bob"]),
            env={"API_KEY": "hunter2-long"},
        )
    )
    killed = launcher.submit(job(f"{METRICS}; sleep 600", name="killed"))
    report = launcher.wait(ended, timeout=120)
    records = records_of(launcher.session.staging())
    record = until(lambda: records.read(ended), 60)
    assert record["written_by"] == "coordinator", "the client was faster"
    told = JobReport.from_dict(record)
    assert (told.reason, told.metrics, told.name) == (Reason.SUCCEEDED, {"accuracy": 0.9}, "digits")
    assert (told.submitted_at, told.queue_seconds) == (report.submitted_at, report.queue_seconds)
    # The record is written while the last containers end; YARN cuts the vcore-seconds of a short job to a whole number.
    assert 0 < told.memory_seconds <= report.memory_seconds and 0 <= told.vcore_seconds <= report.vcore_seconds
    day = f"{launcher.cluster.history}/{records.days()[0]}"
    [status] = [one for one in records.filesystem.list(day) if ended in one.name]
    assert status.permission & 0o777 == 0o640  # the mask of the ACL, with which bob may read

    def read_by(user):
        cluster = discover(minicluster.resourcemanager_url, {"HADOOP_USER_NAME": user}, None, Site())
        return read_record(cluster, ended)

    assert read_by("bob") == record and read_by("carol") is None

    # A coordinator leaves now and then what it knows; the one that has ended has deleted that.
    until(lambda: (records.snapshot(killed) or {}).get("series"), 150)
    os.kill(coordinator_of(killed), signal.SIGKILL)
    report = launcher.wait(killed, timeout=120)
    assert report.reason is Reason.AM_FAILED
    record = records.read(killed)
    assert (record["written_by"], record["reason"], record["name"]) == ("client", "AM_FAILED", "killed")
    assert [(one["name"], one["points"]) for one in record["series"]] == [("loss", [[1, 0.5], [2, 0.25]])]
    [task] = record["tasks"]
    assert (task["state"], task["starts"]) == ("lost", 1) and "running" in [event["kind"] for event in task["events"]]
    assert (record["metrics"]["loss"], record["finished_at"]) == (0.25, report.finished_at)
    assert record["options"]["name"] == "killed" and not records.snapshots().keys() & {ended, killed}


def test_file_of_another_user_in_a_history_is_no_record(minicluster, caplog):
    def client(user):
        return discover(minicluster.resourcemanager_url, {"HADOOP_USER_NAME": user}, None, Site())

    def write(user, number, folder, **fields):
        made = record(number, user="violet", ended=now, **fields)
        filesystem = client(user).open_filesystem()
        try:
            assert filesystem.create(record_path(folder, application_id(number), now), pack_record(made), 0o644)
        finally:
            filesystem.close()

    now, superuser, folder = time.time(), current_user({}), client("violet").history
    filesystem = client(superuser).open_filesystem()
    day = record_path(folder, application_id(1), now).rpartition("/")[0]
    filesystem.makedirs(day, 0o777)
    write("violet", 1, folder)
    write("mallory", 2, folder, name="forged")
    write(superuser, 3, folder, name="restored")
    assert [one.owner for one in filesystem.list(day)] == ["violet", "mallory", superuser]
    for reader in ("carol", "violet"):
        with contextlib.closing(Histories(client(reader), "*")) as histories:
            found = [one["application_id"] for one in histories.find(Query(since=now - 60)) if one["user"] == "violet"]
            assert sorted(found) == [application_id(1), application_id(3)]
            assert [bool(histories.read(application_id(number), "violet")) for number in (1, 2, 3)] == [
                True,
                False,
                True,
            ]
    said = [one.message for one in caplog.records if one.levelname == "WARNING" and "belongs to mallory" in one.message]
    assert len(said) == 2, "once for each reader"
    filesystem.delete("/user/violet")
    filesystem.close()
