"""What a job says of its earlier attempts and of other executions, and what it does with their applications."""

import signal

import pytest

from support.azkaban_process import ID, SECOND, USER, finish, submitted
from support.fake_yarn import application
from support.waiting import until
from tf_yarn_ops.azkaban.execution import Execution
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow
FIRST = ID


def add(yarn, execution="41", job="train", server="azkaban.example.org", user=USER, **fields):
    """Add a live application of an execution, as the launcher of that execution has submitted it."""
    other = Execution(server, "My Project", "digits", execution, job, 0)
    yarn.next_number = 2
    return yarn.add(application(1, user=user, applicationTags=",".join((*other.tags, *other.identity.tags))) | fields)


def end(yarn, job, own=SECOND):
    submitted(yarn, own)
    finish(yarn, application_id=own)
    assert job.end() == 0


def test_an_application_of_an_earlier_execution_is_told_and_continues(azkaban, yarn):
    add(yarn)
    job = azkaban().start()
    end(yarn, job)
    assert (f"warning: execution 41 of this job has an application that is RUNNING: '{FIRST}. Both train now. "
            "Next time: tf.previous=kill or wait") in job.lines
    assert yarn.apps[FIRST]["state"] == "RUNNING"


@pytest.mark.parametrize("fields", [
    {"job": "evaluate"}, {"server": "another.example.org"}, {"user": "bob"}, {"state": "FINISHED"}, {"execution": "42"}],
    ids=lambda fields: next(iter(fields)))
def test_others_are_no_business_of_this_job(azkaban, yarn, fields):
    if "execution" in fields:  # this execution: the identity finds it
        add(yarn, **fields)
        job = azkaban({"tf.previous": "kill"}).start()
        job.saw(f"{FIRST} RUNNING")
        finish(yarn)
        assert job.end() == 0
    else:
        add(yarn, **fields)
        job = azkaban({"tf.previous": "kill"}).start()
        end(yarn, job)
    assert not any("execution 4" in line for line in job.lines)
    assert yarn.apps[FIRST]["state"] != "KILLED"


def test_an_earlier_execution_is_killed_before_anything_is_submitted(azkaban, yarn):
    add(yarn)
    seen = []
    yarn.faults.append(lambda method, path: seen.append(yarn.apps[FIRST]["state"])
                       if (method, path) == ("POST", "/ws/v1/cluster/apps") else None)
    job = azkaban({"tf.previous": "kill"}).start()
    end(yarn, job)
    assert seen == ["KILLED"]
    assert "Execution 42 of the same job has taken over (tf.previous=kill)" in yarn.apps[FIRST]["diagnostics"]
    assert '"reason":"SUPERSEDED"' in yarn.apps[FIRST]["diagnostics"]
    assert any(line.startswith("execution 41 of this job") and "It is killed" in line for line in job.lines)


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
    job.saw("This execution waits for its end")
    assert set(yarn.apps) == {FIRST}
    finish(yarn, Reason.TASK_FAILED, message="worker:0 failed")
    end(yarn, job)
    assert f"execution 41 has ended: TASK_FAILED: worker:0 failed ({FIRST})" in job.lines


def test_a_cancel_while_it_waits_leaves_the_earlier_execution_alone(azkaban, yarn):
    add(yarn)
    job = azkaban({"tf.previous": "wait"}).start()
    job.saw("This execution waits for its end")
    job.process.send_signal(signal.SIGTERM)
    assert job.end() == 143
    assert yarn.apps[FIRST]["state"] == "RUNNING" and set(yarn.apps) == {FIRST}
    assert yarn.count("PUT", f"/ws/v1/cluster/apps/{FIRST}/state") == 0


@pytest.mark.parametrize("policy", ["wait", "kill"])
def test_an_execution_that_began_later_is_only_told(azkaban, yarn, policy):
    add(yarn, "43")
    job = azkaban({"tf.previous": policy}).start()
    end(yarn, job)
    assert any(line.startswith("warning: execution 43 of this job") and "continues beside this one" in line
               for line in job.lines)
    assert yarn.apps[FIRST]["state"] == "RUNNING"


def test_another_word_is_a_fault_with_the_allowed_ones(azkaban, yarn):
    job = azkaban({"tf.previous": "kil"}).start()
    assert job.end() == 2
    assert job.lines[-1] == "SPEC_INVALID: tf.previous: 'kil' is not one of ignore, wait, kill (did you mean 'kill'?)"


# --- the previous attempt -----------------------------------------------------------------------


RETRY = {"azkaban.job.attempt": "1", "azkaban.job.metadata.file": "_job.42.1.train.meta"}


def test_a_retry_says_how_the_attempt_before_it_ended(azkaban, yarn):
    add(yarn, "42")
    finish(yarn, Reason.TASK_FAILED, message="worker:0 failed with exit code 3")
    job = azkaban(RETRY).start()
    end(yarn, job)
    assert job.lines[0] == (f"attempt 0 ended as TASK_FAILED: worker:0 failed with exit code 3 ({FIRST}). This attempt "
                            "trains again")


def test_a_retry_says_that_it_goes_on_with_a_live_application(azkaban, yarn):
    add(yarn, "42")
    job = azkaban(RETRY).start()
    job.saw(f"attempt 0 has left an application that is RUNNING: '{FIRST}. This attempt goes on with it")
    finish(yarn)
    assert job.end() == 0


def test_a_retry_says_that_nothing_was_left(azkaban, yarn):
    job = azkaban(RETRY).start()
    end(yarn, job, FIRST)
    assert job.lines[0] == "attempt 0 has left no application in YARN"


def test_a_first_attempt_says_nothing_of_attempts(azkaban, yarn):
    job = azkaban().start()
    end(yarn, job, FIRST)
    until(lambda: job.lines)
    assert not any(line.startswith("attempt") for line in job.lines)
