"""What a job says of its earlier attempts and of other executions, and what it does with their applications."""

import shutil
import signal

import pytest

from support.azkaban_process import ID, SECOND, USER, finish, submitted
from support.fake_yarn import STAMP, application
from support.waiting import until
from tf_yarn_ops.azkaban.job_execution import JobExecution
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow
FIRST = ID
RETRY = {"azkaban.job.attempt": "1", "azkaban.job.metadata.file": "_job.42.1.train.meta"}


def add(yarn, execution="41", job="train", server="azkaban.example.org", user=USER, date="", project="7", **fields):
    """Add a live application of an execution, as the launcher of that execution has submitted it."""
    other = JobExecution(server, "My Project", "digits", execution, job, 0, date=date, project_id=project)
    number = yarn.next_number
    yarn.next_number += 1
    tags = ",".join((*other.tags, *other.identity().tags))
    return yarn.add(application(number, user=user, applicationTags=tags) | fields)


def end(yarn, job, own=SECOND):
    submitted(yarn, own)
    finish(yarn, application_id=own)
    assert job.end() == 0


def test_another_execution_that_goes_on_is_named_with_its_kill(azkaban, yarn):
    add(yarn)
    job = azkaban().start()
    end(yarn, job)
    assert (
        f"warning: execution 41 of this job has an application that is RUNNING, and both go on. To end that one: "
        f"ytf kill '{FIRST}' . Next time: tf.previous=kill or wait"
    ) in job.lines
    assert not any(line.startswith("attempt") for line in job.lines), "it is a first one"
    assert yarn.apps[FIRST]["state"] == "RUNNING"


def test_others_are_no_business_of_this_job(azkaban, yarn):
    """Another job, project, user or date, and an execution that has ended."""
    others = [
        add(yarn, job="evaluate"),
        add(yarn, server="another.example.org", project="8"),
        add(yarn, user="bob"),
        add(yarn, state="FINISHED"),
        add(yarn, date="2026-11-01"),
    ]
    before = {name: yarn.apps[name]["state"] for name in others}
    job = azkaban({"tf.previous": "kill"}).start()
    end(yarn, job, f"application_{STAMP}_{len(others) + 1:04d}")
    assert not any("execution 4" in line for line in job.lines)
    assert {name: yarn.apps[name]["state"] for name in others} == before


def test_application_of_this_execution_is_no_earlier_one(azkaban, yarn):
    """The identity finds it."""
    add(yarn, execution="42")
    job = azkaban({"tf.previous": "kill"}).start()
    job.saw(f"{FIRST} RUNNING")
    finish(yarn)
    assert job.end() == 0
    assert not any("execution 4" in line for line in job.lines)
    assert yarn.apps[FIRST]["state"] != "KILLED"


def test_an_earlier_execution_is_killed_before_anything_is_submitted(azkaban, yarn):
    add(yarn)
    seen = []
    yarn.faults.append(
        lambda method, path: (
            seen.append(yarn.apps[FIRST]["state"]) if (method, path) == ("POST", "/ws/v1/cluster/apps") else None
        )
    )
    job = azkaban({"tf.previous": "kill"}).start()
    end(yarn, job)
    assert seen == ["KILLED"]
    assert "Superseded by execution 42 of the same training" in yarn.apps[FIRST]["diagnostics"]
    assert '"reason":"SUPERSEDED"' in yarn.apps[FIRST]["diagnostics"]


OTHERS = [("kill", "41"), ("wait", "41"), ("kill", "43"), ("ignore", "42")]


@pytest.mark.parametrize(("policy", "execution"), OTHERS)
def test_executors_that_differ_in_the_server_never_train_twice(azkaban, yarn, policy, execution):
    add(yarn, execution)
    job = azkaban({"tf.previous": policy, "azkaban.url": "http://10.0.0.7:8081"}).start()
    assert job.end() == Reason.SUBMISSION_REJECTED.exit_code
    assert job.lines[-1] == (
        f"SUBMISSION_REJECTED: '{FIRST}' of execution {execution} of this job is RUNNING. An executor has submitted it "
        "that names Azkaban's server otherwise than this one, '10.0.0.7'. Nothing was submitted: set the same "
        "azkaban.webserver.url on all executors"
    )
    assert set(yarn.apps) == {FIRST} and yarn.apps[FIRST]["state"] == "RUNNING"


@pytest.mark.parametrize(("policy", "fields"), [("ignore", {}), ("kill", {"state": "FINISHED"})], ids=["live", "ended"])
def test_another_name_of_the_server_leaves_parallel_executions(azkaban, yarn, policy, fields):
    add(yarn, **fields)
    job = azkaban({"tf.previous": policy, "azkaban.url": ""}).start()
    end(yarn, job)
    assert any("execution 41 of this job has an application" in line for line in job.lines) == (policy == "ignore")


def test_a_kill_that_yarn_refuses_fails_the_job_and_submits_nothing(azkaban, yarn):
    add(yarn)
    refusal = (403, {"Content-Type": "application/json"}, '{"RemoteException": {"message": "no right"}}')
    yarn.faults.append(lambda method, path: refusal if method == "PUT" and path.endswith("/state") else None)
    job = azkaban({"tf.previous": "kill"}).start()
    assert job.end() == Reason.SUBMISSION_REJECTED.exit_code
    assert set(yarn.apps) == {FIRST}


def test_a_job_waits_for_the_end_of_an_earlier_execution(azkaban, yarn):
    add(yarn)
    job = azkaban({"tf.previous": "wait"}).start()
    job.saw(f"waiting for the end of '{FIRST}', which an older execution of this training has left")
    assert set(yarn.apps) == {FIRST}
    finish(yarn, Reason.TASK_FAILED, message="worker:0 failed")
    end(yarn, job)
    assert f"'{FIRST}' has ended: TASK_FAILED: worker:0 failed" in job.lines


@pytest.mark.parametrize("elsewhere", [False, True])
def test_only_the_executor_of_an_earlier_execution_sees_its_end(azkaban, yarn, tmp_path, elsewhere):
    """The launcher of the earlier execution is killed before its retry, and Azkaban deletes the execution's folder."""
    (tmp_path / "executions").mkdir()
    own = {"azkaban.flow.execid": "41", "azkaban.job.metadata.file": "_job.41.train.meta", "retries": "1"}
    first = azkaban(own, "executions/41").start()
    submitted(yarn, FIRST)
    first.process.kill()
    first.process.wait()
    finish(yarn, Reason.TASK_FAILED, application_id=FIRST, message="worker:0 failed")
    (run,) = (tmp_path / "files").rglob("run-41-0-1-*")
    if elsewhere:
        run.write_text(run.read_text().replace('"host": "', '"host": "another-'))
    second = azkaban({"tf.previous": "wait"}, "executions/42").start()
    second.saw("waiting for execution 41 of this training, which may submit until ")
    shutil.rmtree(first.folder)
    if elsewhere:
        looks = yarn.count("GET", "/ws/v1/cluster/apps")
        until(lambda: yarn.count("GET", "/ws/v1/cluster/apps") >= looks + 2)
        assert set(yarn.apps) == {FIRST}
    else:
        end(yarn, second)


def test_a_cancel_while_it_waits_leaves_the_earlier_execution_alone(azkaban, yarn):
    add(yarn)
    job = azkaban({"tf.previous": "wait"}).start()
    job.saw(f"waiting for the end of '{FIRST}', which an older execution of this training has left")
    job.process.send_signal(signal.SIGTERM)
    assert job.end() == 143
    assert yarn.apps[FIRST]["state"] == "RUNNING" and set(yarn.apps) == {FIRST}
    assert yarn.count("PUT", f"/ws/v1/cluster/apps/{FIRST}/state") == 0


@pytest.mark.parametrize("policy", ["wait", "kill"])
def test_an_execution_that_began_later_supersedes(azkaban, yarn, policy):
    add(yarn, "43")
    job = azkaban({"tf.previous": policy}).start()
    assert job.end() == Reason.SUPERSEDED.exit_code
    assert job.lines[-1].startswith(f"SUPERSEDED: '{FIRST}' is of a newer execution than 42 of this training")
    assert set(yarn.apps) == {FIRST} and yarn.apps[FIRST]["state"] == "RUNNING"


@pytest.mark.parametrize("policy", ["wait", "kill", "ignore"])
def test_a_superseded_execution_never_trains_again(azkaban, yarn, policy):
    add(yarn, "42")
    finish(yarn, Reason.SUPERSEDED, message="Superseded by execution 43 of the same training")
    job = azkaban({**RETRY, "tf.previous": policy}).start()
    assert job.end() == Reason.SUPERSEDED.exit_code
    assert job.lines[0] == f"attempt 0 ended as SUPERSEDED: Superseded by execution 43 of the same training ({FIRST})"
    assert set(yarn.apps) == {FIRST}


def test_another_word_is_a_fault_with_the_allowed_ones(azkaban, yarn):
    job = azkaban({"tf.previous": "kil"}).start()
    assert job.end() == 2
    assert job.lines[-1] == "SPEC_INVALID: tf.previous: 'kil' is not one of ignore, wait, kill (did you mean 'kill'?)"


# --- the previous attempt -----------------------------------------------------------------------


def test_a_retry_says_how_the_attempt_before_it_ended(azkaban, yarn):
    add(yarn, "42")
    finish(yarn, Reason.TASK_FAILED, message="worker:0 failed with exit code 3")
    job = azkaban(RETRY).start()
    end(yarn, job)
    assert job.lines[0] == (
        f"attempt 0 ended as TASK_FAILED: worker:0 failed with exit code 3 ({FIRST}). This attempt trains again"
    )


def test_a_retry_says_that_it_goes_on_with_a_live_application(azkaban, yarn):
    add(yarn, "42")
    job = azkaban(RETRY).start()
    job.saw(f"attempt 0 has left an application that is RUNNING: '{FIRST}'. This attempt goes on with it")
    finish(yarn)
    assert job.end() == 0


def test_a_retry_says_that_nothing_was_left(azkaban, yarn):
    job = azkaban(RETRY).start()
    end(yarn, job, FIRST)
    assert job.lines[0] == "attempt 0 has left no application in YARN"
