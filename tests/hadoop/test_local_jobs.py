"""The jobs of this machine behind the calls of a ResourceManager, without a coordinator that runs."""

import fcntl
import os

import pytest

from tf_yarn_ops.errors import ApplicationNotFound
from tf_yarn_ops.hadoop.local_jobs import LocalJobs, parse_folder
from tf_yarn_ops.runtime.common.local_job import KILL_FILE, LOCK_FILE, write_application

ID = "local_1700000000000_0001"
RUNNING = {
    "id": ID,
    "state": "RUNNING",
    "user": "ann",
    "finalStatus": "UNDEFINED",
    "applicationTags": "mine,tfy-job",
    "startedTime": 1,
    "trackingUrl": "http://127.0.0.1:1/",
}


@pytest.fixture
def jobs(tmp_path):
    return LocalJobs(f"local://{tmp_path}")


@pytest.fixture
def folder(jobs, tmp_path):
    """The folder of a job whose coordinator has ended."""
    folder = tmp_path / "jobs" / ID
    folder.mkdir(parents=True)
    write_application(str(folder), RUNNING)
    (folder / LOCK_FILE).write_text("1")
    return folder


@pytest.mark.parametrize(
    ("address", "environ", "folder"),
    [
        ("local://", {"XDG_STATE_HOME": "/state"}, "/state/tf_yarn_ops"),
        ("local:///jobs/mine", {"XDG_STATE_HOME": "/state"}, "/jobs/mine"),
        ("local://", {}, os.path.expanduser("~/.local/state/tf_yarn_ops")),
    ],
)
def test_address_means_a_folder(address, environ, folder):
    assert parse_folder(address, environ) == folder


@pytest.mark.parametrize(
    ("name", "words"),
    [("application_1_0001", "ids begin with local_"), ("local_1_0002", "there is no job local_1_0002")],
)
def test_unknown_id_is_not_found(jobs, name, words):
    with pytest.raises(ApplicationNotFound, match=words):
        jobs.get(name)


def test_job_runs_while_its_coordinator_holds_the_lock(jobs, folder):
    with open(folder / LOCK_FILE) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = jobs.get(ID)
    assert (found["state"], found["trackingUrl"]) == ("RUNNING", RUNNING["trackingUrl"])
    assert found["elapsedTime"] > 0


def test_coordinator_that_died_without_a_report_is_a_failure(jobs, folder):
    found = jobs.get(ID)
    assert (found["state"], found["finalStatus"], found["trackingUrl"]) == ("FAILED", "FAILED", "")
    assert found["diagnostics"].startswith("The coordinator ended without a report; see ")


def test_kill_before_the_coordinator_reports_is_the_end(jobs, folder):
    assert jobs.kill(ID, "Killed by ytf kill") == "FAILED"
    assert (folder / KILL_FILE).read_text() == "Killed by ytf kill"
    found = jobs.get(ID)
    assert (found["state"], found["diagnostics"]) == (
        "KILLED",
        f"Application {ID} was killed by user ann with diagnostic message: Killed by ytf kill",
    )


def test_first_kill_counts(jobs, folder):
    for why in ("by a client", "by another one"):
        jobs.kill(ID, why)
    assert jobs.get(ID)["diagnostics"].endswith("diagnostic message: by a client")


@pytest.mark.parametrize(
    ("tags", "states", "found"),
    [
        ((), (), 1),
        (("MINE", "other"), (), 1),
        (("other",), (), 0),
        ((), ("FAILED",), 1),
        ((), ("RUNNING",), 0),
    ],
)
def test_jobs_are_found_by_tag_and_state(jobs, folder, tags, states, found):
    assert len(jobs.find(tags, states)) == found
