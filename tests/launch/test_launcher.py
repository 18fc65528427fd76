"""The launcher against a ResourceManager on the wire and a real local file system behind a viewfs mount."""

import os
import signal
import threading

import pytest

from support.fake_yarn import STAMP, application, verdict_text
from support.node_logs import serve_logs
from support.place import ID, REQUESTS, USER, cancel_at, job
from support.waiting import until
from tf_yarn_ops.errors import (
    Cancelled,
    ClusterUnreachable,
    SubmissionRejected,
    WaitTimeout,
)
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import VERDICT_TAG, JobReport, TaskReport

ME = Identity("a training")


def test_job_without_identity_has_the_tag_of_our_jobs(place):
    place.launcher().submit(job())
    (tag, verdict) = place.body()["application-tags"]["tag"]
    assert tag == "tfy-job" and verdict.startswith(VERDICT_TAG)


def test_the_id_is_known_before_anything_is_staged(place):
    seen = []

    def on_reserved(application_id):
        seen.append((application_id, place.staging.exists(), place.yarn.count("POST", "/ws/v1/cluster/apps")))

    place.launcher().submit(job(), on_reserved)
    assert seen == [(ID, False, 1)]


def test_an_application_that_runs_as_somebody_else_is_killed(place):
    def pretend(method, path):
        if path.endswith(ID) and ID in place.yarn.apps:
            place.yarn.apps[ID]["user"] = "dr.who"

    place.yarn.faults.append(pretend)
    with pytest.raises(SubmissionRejected, match=rf"ran as 'dr.who', not as '{USER}', and was killed"):
        place.launcher().submit(job())
    assert place.yarn.apps[ID]["state"] == "KILLED"
    assert place.directories() == []


def test_a_failing_callback_ends_the_submission_before_anything_is_staged(place):
    def on_reserved(application_id):
        raise RuntimeError("database gone")

    with pytest.raises(RuntimeError, match="database gone"):
        place.launcher().submit(job(), on_reserved)
    assert place.directories() == [] and place.yarn.apps == {}


@pytest.mark.parametrize("method, start", REQUESTS)
def test_cancelled_in_each_gap_leaves_nothing(place, method, start):
    launcher = place.launcher()
    cancel_at(place, launcher, method, start)
    with pytest.raises(Cancelled):
        launcher.submit(job())
    assert [app["state"] for app in place.yarn.apps.values() if app["state"] in LIVE] == []
    assert place.directories() == []


def test_cancelled_when_the_id_becomes_known_leaves_nothing(place):
    launcher = place.launcher()
    with pytest.raises(Cancelled):
        launcher.submit(job(), lambda application_id: launcher.cancel())
    assert place.yarn.apps == {} and place.directories() == []


def finish(place, reason=Reason.SUCCEEDED, final="SUCCEEDED", state="FINISHED", **fields):
    own = JobReport(ID, reason=reason, message="so it ended", **fields)
    place.yarn.apps[ID].update(state=state, finalStatus=final, finishedTime=STAMP + 9000, diagnostics=verdict_text(own))


def test_wait_reports_each_change_once_and_deletes_the_directory(place):
    launcher = place.launcher()
    launcher.submit(job())
    assert place.directories() == [ID]
    changes = []
    steps = [lambda: None, lambda: place.yarn.apps[ID].update(state="RUNNING"), lambda: None, lambda: finish(place)]
    place.yarn.faults.append(lambda method, path: steps.pop(0)() if path.endswith(ID) and steps else None)
    report = launcher.wait(ID, on_change=changes.append, poll_interval=0.01)
    assert report.reason is Reason.SUCCEEDED
    assert [change.state for change in changes] == ["ACCEPTED", "RUNNING", "FINISHED"]
    assert place.directories() == []


def test_the_verdict_comes_before_the_log_which_a_cancel_ends(place):
    """A log of 300 MB held the verdict back; a signal meanwhile killed what had ended."""
    container = f"container_{STAMP}_0001_01_000002"
    serve_logs(place.yarn)[container] = b"a line\n" * 1_000_000
    launcher, seen = place.launcher(), []
    launcher.submit(job())
    finish(place, Reason.TASK_FAILED, "FAILED", first_failure="worker:0", tasks=(
        TaskReport("worker:0", "failed", 1, container_id=container, starts=1,
                   log_url=f"{place.yarn.url}/node/containerlogs/{container}/ann/worker.log"),))  # fmt: skip

    def on_line(line):
        seen.append(line.text)
        launcher.cancel()

    report = launcher.wait(ID, on_change=lambda report: seen.append(report.state), on_line=on_line)
    assert report.reason is Reason.TASK_FAILED
    assert seen == ["FINISHED", f"[2.8 MB of this log are left out; all of it: ytf logs {ID} --task worker:0]"]
    assert place.yarn.count("PUT", f"/ws/v1/cluster/apps/{ID}/state") == 0


def test_an_unknown_application_is_lost(place):
    launcher = place.launcher()
    assert launcher.report(ID).reason is Reason.LOST
    assert launcher.wait(ID, poll_interval=0.01).exit_code == 9


def test_one_answer_unknown_is_not_yet_lost(place):
    place.yarn.add(application(1, user=USER))
    answers = [(404, {"Content-Type": "application/json"}, "{}")]
    place.yarn.faults.append(lambda method, path: answers.pop() if path.endswith(ID) and answers else None)
    threading.Timer(0.2, lambda: finish(place)).start()
    assert place.launcher().wait(ID, poll_interval=0.02).reason is Reason.SUCCEEDED


def test_a_wait_of_the_callers_own_runs_out_and_the_job_goes_on(place):
    place.yarn.add(application(1, user=USER))
    with pytest.raises(WaitTimeout, match=r"has not ended after 0.1 s \(RUNNING, .*it goes on"):
        place.launcher().wait(ID, timeout=0.1, poll_interval=0.02)
    assert place.yarn.apps[ID]["state"] == "RUNNING"


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_while_waiting_is_not_the_end_of_the_wait(place, status):
    """A ticket that was refused once, or a proxy's 403: the application runs on."""
    place.yarn.add(application(1, user=USER))
    refused = [True] * 3
    place.yarn.faults.append(
        lambda method, path: (status, {}, "no") if path.endswith(ID) and refused and refused.pop() else None
    )
    threading.Timer(0.3, lambda: finish(place)).start()
    assert place.launcher().wait(ID, poll_interval=0.02).reason is Reason.SUCCEEDED
    assert not refused


@pytest.mark.slow
def test_a_resourcemanager_that_is_away_is_waited_for(place):
    place.yarn.add(application(1, user=USER))
    away = [True] * 3
    place.yarn.faults.append(
        lambda method, path: (503, {}, "starting") if path.endswith(ID) and away and away.pop() else None
    )
    threading.Timer(0.3, lambda: finish(place)).start()
    assert place.launcher().wait(ID, poll_interval=0.02).reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_away_for_longer_than_the_site_allows_is_an_error(place):
    launcher = place.launcher(Site(unreachable_timeout=0.1))
    place.yarn.faults.append(lambda method, path: (503, {}, "gone"))
    with pytest.raises(ClusterUnreachable, match=r"waited .* s for application_"):
        launcher.wait(ID, poll_interval=0.02)


@pytest.mark.slow
def test_cancel_ends_a_wait_by_a_kill(place):
    launcher = place.launcher()
    launcher.submit(job())
    threading.Timer(0.2, launcher.cancel).start()
    with pytest.raises(Cancelled, match="was cancelled, and killed"):
        launcher.wait(ID, poll_interval=0.02)
    assert launcher.report(ID).message == "Cancelled by the client that waited for it"
    assert place.directories() == []


def raising(error):
    def on_change(report):
        raise error

    return on_change


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_ctrl_c_and_exit_kill_what_run_waits_for(place, error, caplog):
    with pytest.raises(type(error)):
        place.launcher().run(job(), on_change=raising(error))
    assert (place.yarn.apps[ID]["state"], place.directories()) == ("KILLED", [])
    assert f"killing {ID} after {type(error).__name__}" in caplog.text


def test_second_ctrl_c_leaves_the_kill_and_names_the_application(place, caplog):
    def press(method, path):
        if method == "PUT" and path.endswith("/state"):
            os.kill(os.getpid(), signal.SIGINT)
            return 503, {}, "busy"
        return None

    place.yarn.faults.append(press)
    with pytest.raises(KeyboardInterrupt):
        place.launcher().run(job(), on_change=raising(KeyboardInterrupt()))
    assert f"{ID} may still run (KeyboardInterrupt); next: ytf kill {ID}" in caplog.text


def test_ctrl_c_leaves_the_application_of_another_client(place):
    place.launcher().submit(job())
    with pytest.raises(KeyboardInterrupt):
        place.launcher().wait(ID, on_change=raising(KeyboardInterrupt()))
    assert place.yarn.apps[ID]["state"] == "ACCEPTED"


@pytest.mark.parametrize("lease, identity, leased", [(None, None, True), (0, None, False), (None, ME, False)])
def test_run_without_identity_has_a_lease_by_default(place, lease, identity, leased):
    with pytest.raises(KeyboardInterrupt):
        place.launcher().run(job(lease=lease), identity, on_change=raising(KeyboardInterrupt()))
    ends = [
        body["timeout"]["expiryTime"] for method, path, _, _, body in place.yarn.requests if path.endswith("/timeout")
    ]
    assert [".777" in end for end in ends] == [leased]


def test_yarn_keeps_why_a_job_was_cancelled(place):
    launcher = place.launcher()
    launcher.submit(job())
    launcher.cancel("the scheduler has gone")
    with pytest.raises(Cancelled):
        launcher.wait(ID, poll_interval=0.05)
    assert launcher.report(ID).message == "the scheduler has gone"
    assert "the scheduler has gone" in place.yarn.apps[ID]["diagnostics"]


def test_yarn_keeps_why_a_submission_was_taken_back(place):
    launcher = place.launcher()
    place.yarn.faults.append(
        lambda method, path: (
            launcher.cancel("not wanted any more") if method == "POST" and path == "/ws/v1/cluster/apps" else None
        )
    )
    with pytest.raises(Cancelled):
        launcher.submit(job())
    assert "not wanted any more" in place.yarn.apps[ID]["diagnostics"]


def test_the_queue_deadline_kills_with_its_own_reason(place):
    launcher = place.launcher()
    launcher.submit(job(deadlines=Deadlines(queue=30)))
    place.yarn.apps[ID].update(launchTime=0, elapsedTime=31_000, diagnostics="AM container is pending")
    report = launcher.wait(ID, poll_interval=0.02)
    assert (report.reason, report.retryable) == (Reason.QUEUE_TIMEOUT, True)
    assert "waited in queue default for 31 s, longer than the 30 s" in report.message


@pytest.mark.slow
def test_refused_kill_at_the_queue_deadline_keeps_the_wait_going(place, caplog):
    launcher = place.launcher()
    launcher.submit(job(deadlines=Deadlines(queue=30)))
    place.yarn.apps[ID].update(state="ACCEPTED", elapsedTime=31_000)
    kills = []

    def refuse(method, path):
        if method == "PUT" and path.endswith("/state"):
            kills.append(path)
            if len(kills) == 3:
                place.yarn.apps[ID].update(state="FINISHED", finalStatus="SUCCEEDED")
            return 403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "not yours"}}'
        return None

    place.yarn.faults.append(refuse)
    assert launcher.wait(ID, timeout=60, poll_interval=0.01).reason is Reason.SUCCEEDED
    assert len(kills) == 3
    told = [record.getMessage() for record in caplog.records if "could not be killed" in record.getMessage()]
    assert len(told) == 1 and told[0].startswith(f"{ID} is over its queue deadline") and "not yours" in told[0]


def test_list_gives_the_users_applications_of_skein(place):
    place.yarn.add(application(1, user=USER, startedTime=1000))
    place.yarn.add(application(2, user=USER, startedTime=2000))
    place.yarn.add(application(3, user="bob"))
    place.yarn.add(application(4, "FINISHED", user=USER))
    place.yarn.add(application(5, user=USER, applicationType="SPARK"))
    assert [report.application_id[-1] for report in place.launcher().list()] == ["2", "1"]
    assert [report.application_id[-1] for report in place.launcher().list(states=["FINISHED"])] == ["4"]


def test_no_secret_is_logged(place, caplog):
    caplog.set_level("DEBUG")
    place.launcher().submit(job(env={"PASSWORD": "hunter2"}, command="train --token hunter2"))
    assert "hunter2" not in caplog.text and "PRIVATE KEY" not in caplog.text


@pytest.mark.slow
def test_the_sweep_deletes_what_ended_unseen(place):
    launcher = place.launcher()
    launcher.submit(job())
    finish(place)
    place.launcher().submit(job())
    until(lambda: ID not in place.directories())
    assert len(place.directories()) == 1
