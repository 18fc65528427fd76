"""Committed output in a real HDFS: the coordinator is killed, frozen, and loses answers at each rename of the commit."""

import contextlib
import getpass
import json
import os
import re
import signal
import threading
from dataclasses import replace

import httpx
import pytest

from support.cluster_jobs import job
from support.faults import kill
from support.wire_proxy import Proxy
from tf_yarn_ops.azkaban.outputs import output_properties
from tf_yarn_ops.errors import CommitRefused
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.history.histories import read_record
from tf_yarn_ops.history.record_summary import summarise
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.committed_output import Success, dump_success, read_success, training_of
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.local_job import running_coordinator
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.page.page import render_page
from tf_yarn_ops.terminal.output_properties import outputs_of
from tf_yarn_ops.terminal.summary import describe

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

#: The program opens local paths only; the mirror writes them to HDFS. It says whether it resumes.
PROGRAM = """
ls $DTF_OUTPUT_PATH/checkpoint && echo resumed > $DTF_OUTPUT_PATH/resumed
mkdir -p $DTF_OUTPUT_PATH/variables
touch $DTF_OUTPUT_PATH/checkpoint
echo $YTF_APPLICATION_ID > $DTF_OUTPUT_PATH/variables/model.bin
"""


@pytest.fixture
def proxy(minicluster):
    with Proxy(minicluster.namenode_url) as proxy:
        yield proxy


class Place:
    """One output in HDFS, the reader of it, and machines whose jobs write it."""

    def __init__(self, minicluster, proxy, folder, name):
        self.filesystem = minicluster.default_filesystem
        self.proxy, self.folder = proxy, folder
        self.files = Hdfs((minicluster.namenode_url,), getpass.getuser(), {})
        self.parent, self.name = f"/tmp/commit-{os.getpid()}", name
        self.path = f"{self.parent}/{name}"
        self._stack = contextlib.ExitStack()
        self.launcher = self.machine("one")

    def machine(self, name):
        """Return the launcher of a machine that knows nothing of the others."""
        cluster = replace(local(self.folder / name), site=Site(namenodes={self.filesystem: (self.proxy.url,)}))
        return self._stack.enter_context(contextlib.closing(Launcher(cluster)))

    def close(self):
        self._stack.close()

    def job(self, command=PROGRAM, commit="replace", **fields):
        return job(command, output=f"{self.filesystem}{self.path}", commit=commit, mirror="chief", **fields)

    def read(self, name):
        status = self.files.status(f"{self.path}/{name}")
        return self.files.read_appended(f"{self.path}/{name}", 0, status.length, 1 << 20) if status.length else b""

    def success(self):
        """Return what the marker says; the files that it lists are there."""
        success = read_success(self.read("_SUCCESS"))
        assert {name: len(self.read(name)) for name, _ in success.files} == dict(success.files)
        return success

    def beside(self):
        return [status.name for status in self.files.list(self.parent) if status.name.startswith(f"_{self.name}.")]


@pytest.fixture
def place(minicluster, proxy, tmp_path, request):
    made = Place(minicluster, proxy, tmp_path, re.sub(r"\W+", "-", request.node.name)[:80] + "-output")
    yield made
    made.close()


class Held:
    """A job whose coordinator is held by the proxy before or after a rename to a path that matches."""

    def __init__(self, place, launcher, spec, identity, moment, wanted):
        self._jobs, self.application = launcher.session.resourcemanager, ""
        self.report = self.error = None

        def reached(when, method, path, parameters):
            target = parameters.get("destination", "")
            return when == moment and re.search(wanted, target) is not None

        place.proxy.stop_at = reached
        self._thread = threading.Thread(target=self._run, args=(launcher, spec, identity))
        self._thread.start()
        assert place.proxy.held.wait(120)

    def _run(self, launcher, spec, identity):
        def reserved(application_id):
            self.application = application_id

        self.report = launcher.run(spec, identity, on_reserved=reserved)

    def coordinator(self):
        found = running_coordinator(str(self._jobs.folder(self.application)))
        assert found
        return found

    def join(self):
        self._thread.join(180)
        assert not self._thread.is_alive()
        return self.report


def test_output_appears_with_its_marker_and_nothing_beside_it(place):
    report = place.launcher.run(place.job(commit="new"))
    assert report.reason is Reason.SUCCEEDED and report.output_path == f"{place.filesystem}{place.path}"
    assert report.working_path is None and place.beside() == []
    success = place.success()
    assert success.application_id == report.application_id == place.read("variables/model.bin").decode().strip()
    assert [name for name, _ in success.files] == ["checkpoint", "variables/model.bin"]
    with pytest.raises(CommitRefused, match=r"commit-.* exists; delete it, give another output, or let commit be"):
        place.launcher.run(place.job(commit="new"))


#: The steps of a commit: before or after the rename to a path that matches.
GAPS = {
    "before the marker": ("before", "/_SUCCESS$"),
    "between marker and output": ("before", "-output$"),
    "between output and verdict": ("after", "-output$"),
}


@pytest.mark.parametrize("gap", GAPS)
def test_retry_after_a_kill(place, gap):
    moment, wanted = GAPS[gap]
    held = Held(place, place.launcher, place.job(), Identity("training"), moment, wanted)
    kill(held.coordinator())
    report = held.join()
    assert report.reason is (Reason.SUCCEEDED if moment == "after" else Reason.AM_FAILED)
    if moment == "before":
        assert f"/_{place.name}.sealed-" in report.working_path and report.working_bytes > 0
    again = place.launcher.run(place.job(), Identity("training", attempt=1))
    assert again.reason is Reason.SUCCEEDED, again
    success = place.success()
    if gap == "before the marker":
        assert success.application_id == again.application_id != held.application
        assert place.read("resumed") == b"resumed\n"
    else:
        assert success.application_id == held.application
        assert (again.application_id == held.application) is (moment == "after")
    place.proxy.freed.set()  # the request of the killed coordinator arrives late
    assert place.success() == success and place.beside() == []


def test_lost_answer_of_the_last_rename_is_a_success(place):
    def lost(when, method, path, parameters):
        if when == "after" and parameters.get("op") == "RENAME" and parameters["destination"] == place.path:
            place.proxy.stop_at = None
            raise ConnectionResetError

    place.proxy.stop_at = lost
    report = place.launcher.run(place.job())
    assert report.reason is Reason.SUCCEEDED and place.success().application_id == report.application_id
    assert place.proxy.stop_at is None


@pytest.mark.parametrize("wanted", ["[.]sealed-[^/]*$", "/_SUCCESS$", "-output$"])
def test_frozen_coordinator_commits_nothing_after_a_newer_generation(place, wanted):
    held = Held(place, place.launcher, place.job(), Identity("training"), "before", wanted)
    kill(held.coordinator(), signal.SIGSTOP)
    # Another machine: nothing reaches the frozen coordinator, as if YARN had forgotten it.
    newer = place.machine("two").run(place.job(), Identity("training", generation=1))
    assert newer.reason is Reason.SUCCEEDED and place.success().application_id == newer.application_id
    assert not any(name == "resumed" for name, _ in place.success().files)
    place.proxy.freed.set()
    kill(held.coordinator(), signal.SIGCONT)
    report = held.join()
    assert report.reason is Reason.COMMIT_REFUSED and "another application of the training" in report.message
    assert place.success().application_id == newer.application_id


def test_program_that_fails_leaves_its_work_for_the_retry(place):
    report = place.launcher.run(place.job(PROGRAM + "exit 3"), Identity("training"))
    assert report.reason is Reason.TASK_FAILED and report.output_path == f"{place.filesystem}{place.path}"
    work = report.working_path.removeprefix(place.filesystem)
    assert {"checkpoint", "variables"} <= {status.name for status in place.files.list(work)}
    assert report.working_bytes == len(f"{report.application_id}\n") and not place.files.exists(place.path)
    for text in ("\n".join(describe(report, 0.0)), render_page(report.to_dict(), live=False)):
        assert f"{report.working_path} (0.0 MB)" in text
    again = place.launcher.run(place.job(), Identity("training", attempt=1))
    assert again.reason is Reason.SUCCEEDED and place.read("resumed") == b"resumed\n"


def test_two_versions_and_the_pointer(place):
    for number in (1, 2):
        report = place.launcher.run(place.job(commit="version", commit_keep=2))
        record = read_record(place.launcher.cluster, report.application_id)
        named = [each["output_path"] for each in (report.to_dict(), record, summarise(record), outputs_of(report))]
        named.append(output_properties(report)["tf.result.output_path"])
        assert {*named} == {f"{place.filesystem}{place.path}/{number}"}
    assert place.read("LATEST") == b"2\n"
    report = place.launcher.run(place.job(commit="version", commit_keep=2, commit_version=20240131))
    assert report.output_path.endswith("/20240131") and place.read("LATEST") == b"20240131\n"
    assert sorted(status.name for status in place.files.list(place.path)) == ["2", "20240131", "LATEST"]


def test_result_that_another_user_plants_is_not_believed(place, minicluster):
    """Whoever may write the folder above the output can write a marker with the identity of a training."""
    place.parent += "-planted"
    place.path = f"{place.parent}/{place.name}"
    place.files.makedirs(place.parent, 0o777)
    identity = Identity("training", attempt=1)
    success = Success("application_1600000000000_0001", training_of(identity.tags)[0][:16], 0, {})
    mallory = Hdfs((minicluster.namenode_url,), "mallory", {})
    mallory.makedirs(place.path, 0o755)
    mallory.create(f"{place.path}/_SUCCESS", dump_success(success), 0o644)
    report = place.launcher.run(place.job(), identity)
    assert report.reason is Reason.SUCCEEDED and place.success().application_id == report.application_id
    assert report.application_id != success.application_id and place.beside() == []


def test_output_below_a_closed_folder_is_refused_before_submission(place):
    place.files.makedirs(place.parent, 0o755)
    cluster = replace(place.launcher.cluster, user="mallory", login="mallory")
    with contextlib.closing(Launcher(cluster)) as launcher:
        with pytest.raises(
            CommitRefused, match=r"/commit-\d+ can't be written, and commit renames folders there: .*mallory"
        ):
            launcher.run(place.job())
        assert launcher.list(states=["FINISHED", "FAILED", "RUNNING"]) == [] and place.beside() == []


def test_quota_that_is_full_at_the_commit_is_no_reason_to_try_again(place, minicluster):
    place.parent += "-quota"
    place.path = f"{place.parent}/{place.name}"
    held = Held(place, place.launcher, place.job(), None, "before", "[.]sealed-[^/]*$")
    httpx.put(
        f"{minicluster.namenode_url}/webhdfs/v1{place.parent}",
        params={"op": "SETQUOTA", "storagespacequota": 1, "user.name": minicluster.settings.user},
    ).raise_for_status()
    place.proxy.freed.set()
    report = held.join()
    assert report.reason is Reason.COMMIT_REFUSED and "DSQuotaExceeded" in report.message, report.message
    assert {"checkpoint", "variables"} <= {
        status.name for status in place.files.list(report.working_path.removeprefix(place.filesystem))
    }


def test_job_on_yarn_commits_and_its_retry_needs_no_application(minicluster, place):
    cluster = discover(minicluster.resourcemanager_url, environ={})
    with contextlib.closing(Launcher(cluster, submit_with="rest")) as launcher:
        identity = Identity(f"yarn {os.getpid()}")
        report = launcher.run(place.job(commit="new"), identity)
        assert report.reason is Reason.SUCCEEDED, report
        assert json.loads(place.read("_SUCCESS"))["report"]["reason"] == "SUCCEEDED"
        assert launcher.run(place.job(commit="new"), replace(identity, attempt=1)) == report
        with pytest.raises(CommitRefused, match="exists"):
            launcher.run(place.job(commit="new"))
