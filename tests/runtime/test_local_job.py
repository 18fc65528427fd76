"""The folder of a job on this machine: what its coordinator and its clients agree on."""

import fcntl

from tf_yarn_ops.runtime.common.local_job import (
    LOCK_FILE,
    is_local,
    read_application,
    running_coordinator,
    write_application,
)


def test_id_says_where_a_job_runs():
    assert is_local("local_1700000000000_0001") and not is_local("application_1700000000000_0001")


def test_changes_are_added_to_the_application(tmp_path):
    assert read_application(str(tmp_path)) is None
    write_application(str(tmp_path), {"id": "local_1_0001", "state": "ACCEPTED"})
    write_application(str(tmp_path), {"state": "RUNNING"})
    assert read_application(str(tmp_path)) == {"id": "local_1_0001", "state": "RUNNING"}
    assert [path.name for path in tmp_path.iterdir()] == ["application.json"], "no part is left"


def test_coordinator_runs_while_it_holds_the_lock(tmp_path):
    assert running_coordinator(str(tmp_path)) is None
    (tmp_path / LOCK_FILE).write_text("4711")
    assert running_coordinator(str(tmp_path)) is None
    with open(tmp_path / LOCK_FILE) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert running_coordinator(str(tmp_path)) == 4711
    assert running_coordinator(str(tmp_path)) is None
