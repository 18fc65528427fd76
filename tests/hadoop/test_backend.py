"""The contract of every backend, on the ResourceManager of the wire and on the jobs of this machine."""

import fcntl

import pytest

from support.fake_yarn import application
from tf_yarn_ops.errors import ApplicationNotFound
from tf_yarn_ops.hadoop.local_jobs import LocalJobs
from tf_yarn_ops.hadoop.resourcemanager import ResourceManager
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.runtime.common.local_job import LOCK_FILE, write_application


@pytest.fixture(params=["yarn", "local"])
def running(request, yarn, tmp_path):
    """Yield a backend and the id of a job that runs there with the tag ``mine``."""
    job = application(1, state="RUNNING", applicationTags="mine")
    if request.param == "yarn":
        yield ResourceManager([yarn.url], SimpleAuthentication("ann", "ann")), yarn.add(job)
        return
    folder = tmp_path / "jobs" / "local_1700000000000_1"
    folder.mkdir(parents=True)
    write_application(str(folder), job | {"id": folder.name})
    with (folder / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield LocalJobs(f"local://{tmp_path}"), folder.name


def test_backend_finds_a_live_job_in_yarns_form(running):
    backend, name = running
    for found in (
        [backend.get(name)],
        backend.find(["mine"]),
        backend.find_live("mine", "ann"),
        backend.find_live(None, "ann"),
    ):
        assert [(one["id"], one["state"], one["applicationTags"]) for one in found] == [(name, "RUNNING", "mine")]
    assert backend.find(["other"]) == backend.find_live("other", "ann") == backend.find(states=["KILLED"]) == []


def test_backend_takes_every_call_of_a_client(running):
    backend, name = running
    backend.set_lifetime(name, 4e9, leased=True)
    assert isinstance(backend.nodes(), list) and isinstance(backend.resource_requests(name), list)
    assert (backend.log_path(name, "container_1", "chief.log") is None) == (backend.node_files() is None)
    assert "auto" in backend.ways
    backend.close()
    assert backend.get(name)["id"] == name


def test_backend_does_not_find_an_id_of_the_other(running):
    backend, name = running
    with pytest.raises(ApplicationNotFound):
        backend.get("application_1_0001" if name.startswith("local_") else "local_1_0001")
