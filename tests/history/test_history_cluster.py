"""The history on real daemons: the coordinator writes its record, and a client where the coordinator was killed."""

import os
import signal
from pathlib import Path

import pytest

from support.cluster_jobs import job
from support.faults import processes_of
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.history.histories import read_record
from tf_yarn_ops.history.records import records_of
from tf_yarn_ops.job.parts import Acls
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

pytestmark = pytest.mark.cluster


METRICS = """printf '{"step": 1, "loss": 0.5}\\n{"step": 2, "loss": 0.25}\\n' > $YTF_METRICS_FILE"""


@pytest.fixture
def launcher(minicluster):
    made = Launcher(discover(minicluster.resourcemanager_url, os.environ, None, Site()))
    yield made
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
    records = records_of(launcher.staging())
    record = until(lambda: records.read(ended), 60)
    assert record["written_by"] == "coordinator", "the client was faster"
    told = JobReport.from_dict(record)
    assert (told.reason, told.metrics, told.name) == (Reason.SUCCEEDED, {"accuracy": 0.9}, "digits")
    assert (told.submitted_at, told.queue_seconds) == (report.submitted_at, report.queue_seconds)
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
