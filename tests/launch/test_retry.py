"""A job that is submitted again because no task has run."""

import pytest

from support.fake_yarn import verdict_text
from support.place import job
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.launch.launcher import pause_before
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

#: What YARN says of an application whose master it could not launch.
NOT_LAUNCHED = "Application application_1_0001 failed 1 times (local limit is =1) due to Error launching appattempt_1_0001_000001. Got exception: x"


def end_each(place, *reasons):
    """End each submitted application in turn with a reason or YARN's words, once it is asked for a second time."""
    left = list(reasons)
    seen = set()

    def fault(method, path):
        name = path.rsplit("/", 1)[-1]
        app = place.yarn.apps.get(name)
        if method == "GET" and app and app["state"] in LIVE:
            if name in seen:
                reason = left.pop(0)
                final = "SUCCEEDED" if reason is Reason.SUCCEEDED else "FAILED"
                said = isinstance(reason, Reason)
                app.update(
                    state="FINISHED" if said else "FAILED",
                    finalStatus=final,
                    diagnostics=verdict_text(JobReport(name, reason=reason, message="x")) if said else reason,
                )
            seen.add(name)

    place.yarn.faults.append(fault)


@pytest.mark.slow
def test_a_job_that_missed_its_allocation_is_submitted_again(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.RETRY_PAUSE", 0.01)
    end_each(place, Reason.ALLOCATION_TIMEOUT, Reason.ALLOCATION_TIMEOUT, Reason.SUCCEEDED)
    ids = []
    spec = job(restart=RestartPolicy(allocation_retries=2))
    report = place.launcher().run(spec, on_reserved=ids.append, poll_interval=0.01)
    assert report.reason is Reason.SUCCEEDED
    assert len(ids) == 3


@pytest.mark.parametrize(
    "reason, submitted",
    [(Reason.SUCCEEDED, 0), (Reason.TASK_FAILED, 0), (Reason.KILLED, 0), (Reason.ALLOCATION_TIMEOUT, 1)],
)
def test_only_a_job_without_training_is_submitted_after_a_known_end(place, monkeypatch, reason, submitted):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.RETRY_PAUSE", 0.01)
    end_each(place, Reason.SUCCEEDED)
    known = JobReport("application_1_0001", state="FINISHED", reason=reason)
    report = place.launcher().run(job(restart=RestartPolicy(allocation_retries=1)), after=known, poll_interval=0.01)
    assert (report.reason if submitted else report) == (Reason.SUCCEEDED if submitted else known)
    assert len(place.yarn.apps) == submitted


@pytest.mark.parametrize("retry", [1, 2, 3])
def test_pause_before_a_retry_grows_with_jitter(retry):
    seconds = [pause_before(retry) for _ in range(200)]
    assert 5 * retry <= min(seconds) < 9 * retry < 11 * retry < max(seconds) <= 15 * retry


@pytest.mark.slow
def test_each_retry_waits_for_its_own_pause(place, monkeypatch, caplog):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.pause_before", lambda retry: retry / 100)
    end_each(place, *[Reason.ALLOCATION_TIMEOUT] * 3, Reason.SUCCEEDED)
    caplog.set_level("INFO", "tf_yarn_ops.launch.launcher")
    place.launcher().run(job(restart=RestartPolicy(allocation_retries=3)), poll_interval=0.01)
    assert [record.args[1] for record in caplog.records if "submitting again" in record.msg] == [0.01, 0.02, 0.03]


@pytest.mark.parametrize(
    ("reason", "pauses"), [(Reason.ALLOCATION_TIMEOUT, [0.02]), (Reason.AM_FAILED, [0.01]), (Reason.OUT_OF_MEMORY, [])]
)
def test_pause_depends_on_why_no_task_has_run(place, monkeypatch, caplog, reason, pauses):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.LAUNCH_PAUSE", 0.01)
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.pause_before", lambda retry: retry / 50)
    caplog.set_level("INFO", "tf_yarn_ops.launch.launcher")
    ended = JobReport("application_1_0001", reason=reason, first_failure="worker:0", memory_mib={"worker": 1024})
    place.launcher()._pause_after([ended])
    assert [record.args[1] for record in caplog.records] == pauses


@pytest.mark.slow
def test_and_not_more_often_than_allowed(place, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.RETRY_PAUSE", 0.01)
    end_each(place, Reason.ALLOCATION_TIMEOUT, Reason.ALLOCATION_TIMEOUT, Reason.SUCCEEDED)
    report = place.launcher().run(job(restart=RestartPolicy(allocation_retries=1)), poll_interval=0.01)
    assert report.reason is Reason.ALLOCATION_TIMEOUT
    assert len(place.yarn.apps) == 2


@pytest.mark.slow
@pytest.mark.parametrize("failures, reason", [(1, Reason.SUCCEEDED), (2, Reason.SUCCEEDED), (3, Reason.AM_FAILED)])
def test_a_job_whose_master_could_not_be_launched_is_submitted_again_twice(place, monkeypatch, failures, reason):
    monkeypatch.setattr("tf_yarn_ops.launch.launcher.LAUNCH_PAUSE", 0.01)
    end_each(place, *[NOT_LAUNCHED] * failures, Reason.SUCCEEDED)
    report = place.launcher().run(job(), poll_interval=0.01)
    assert report.reason is reason
    assert len(place.yarn.apps) == min(3, failures + 1)
