"""The launcher as Azkaban starts it: a process with two files, two pipes and a parent. YARN is on the wire."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest

from support.azkaban_process import COMMAND, ID, SECOND, USER, finish, submitted
from support.fake_yarn import STAMP
from support.forged import ENDS, end_forged
from support.waiting import until
from tf_yarn_ops.azkaban.limited_ending import EXECUTOR_ENDED, LimitedEnding
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import Alert, JobReport, TaskReport

pytestmark = pytest.mark.slow


# --- success ------------------------------------------------------------------------------------
def test_success_is_written_for_downstream_jobs(azkaban, yarn):
    job, seen = azkaban({"tf.output": "/models/7", "tf.name": "digits"}), []
    yarn.faults.append(
        lambda method, path: seen.append(list(job.lines)) if method == "POST" and path.endswith("/apps") else None
    )
    job.start()
    assert job.outputs.stat().st_size == 0
    place = job.outputs.stat().st_ino
    submitted(yarn)
    finish(
        yarn,
        metrics={"accuracy": 0.97, "note": None, "tf.command": "rm", "eval": {"loss/val": 1e-05, "ok": True}},
        output_path="/models/7",
        tensorboard_url="http://n1:6006",
    )
    assert job.end() == 0
    assert json.loads(job.outputs.read_text()) == {
        "tf.result.application_id": ID, "tf.result.final_status": "SUCCEEDED", "tf.result.reason": "SUCCEEDED",
        "tf.result.output_path": "/models/7", "tf.result.tensorboard_url": "http://n1:6006",
        "tf.result.duration_seconds": "61.5", "tf.result.metrics.accuracy": "0.97",
        "tf.result.metrics.tf.command": "rm", "tf.result.metrics.eval.loss_val": "1e-05",
        "tf.result.metrics.eval.ok": "true",
    }  # fmt: skip
    assert job.outputs.stat().st_ino == place, "Azkaban reads the file that it has made"
    assert ID in seen[0], "before the submission"
    assert job.lines.count(ID) == 1, "the bare id, alone on a line"
    assert job.lines[-1] == "SUCCEEDED: It is over."


@pytest.mark.parametrize("how", ENDS)
def test_forged_report_is_no_result(azkaban, yarn, how):
    job = azkaban({"tf.output": "/models/7", "retries": "0"}).start()
    submitted(yarn)
    end_forged(yarn, ID, how)
    assert job.end() == (8 if how.startswith("killed") else 5)
    assert "evil" not in job.outputs.read_text() and "evil" not in "".join(job.lines)
    assert not any("javascript:" in line for line in job.lines if "bye" not in line)


def test_who_asks_and_under_which_tags(azkaban, yarn):
    job = azkaban({"tf.tags": "One,two", "azkaban.flow.projectname": "Mein Projekt, ü" + "x" * 200}).start()
    body = submitted(yarn)["body"]
    finish(yarn)
    assert job.end() == 0
    tags = body["application-tags"]["tag"]
    own = {
        "azkaban.flow.execid:42",
        "azkaban.flow.flowid:digits",
        "azkaban.job.id:train",
        "one",
        "two",
        ("azkaban.flow.projectname:mein_projekt___" + "x" * 200)[:100],
    }
    assert own < set(tags) and len(tags) == 10
    assert {tag.partition("-")[0] for tag in set(tags) - own} == {"tfy", "tfyg", "tfyd", "tfyv"}
    assert all(tag.isascii() and tag == tag.lower() and len(tag) <= 100 and "," not in tag for tag in tags)
    users = {parameters.get("user.name") for _, _, parameters, _, _ in yarn.requests}
    assert users == {USER}, "neither env.HADOOP_USER_NAME nor env.LOGNAME counts"
    assert body["application-name"] == "Mein Projekt, ü" + "x" * 200 + ".digits.train"


@pytest.mark.parametrize("own, mark", [({}, ".777"), ({"tf.lease": "0"}, ".000"), ({"tf.lease": "60"}, ".777")])
def test_a_job_holds_a_lease_of_15_minutes_or_as_it_says(azkaban, yarn, own, mark):
    job = azkaban(own).start()
    submitted(yarn)
    found = until(
        lambda: [
            body["timeout"]["expiryTime"]
            for method, path, *_, body in yarn.requests
            if method == "PUT" and path.endswith("/timeout")
        ],
        60,
    )
    finish(yarn)
    assert job.end() == 0
    assert mark in found[0]
    ends_at = datetime.strptime(found[0], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    if mark == ".777":  # YARN's clock of the wire stands a second after the submission
        assert int(ends_at) == STAMP // 1000 + 1 + int(own.get("tf.lease", 900))


def test_a_deleted_project_does_not_matter(azkaban, yarn):
    job = azkaban().start()
    submitted(yarn)
    job.saw("submitted")
    shutil.rmtree(job.folder)
    finish(yarn, metrics={"accuracy": 1})
    assert job.end() == 0
    assert any(line.startswith("error: cannot write the output properties") for line in job.lines)
    assert job.lines[-1] == "SUCCEEDED: It is over."


def test_state_changes_are_lines(azkaban, yarn):
    job = azkaban().start()
    submitted(yarn)
    job.saw(f"{ID} ACCEPTED in queue default")
    alert = Alert("chief", "chief:0 has succeeded; the job waits.", ("worker:0",))
    live = JobReport(ID, message="1 of 1 tasks run.", tasks=(TaskReport("worker:0", "running"),), alerts=(alert,))
    yarn.pages["/proxy/x/pages/ytf/status.json"] = ("application/json", json.dumps(live.to_dict()))
    yarn.apps[ID].update(state="RUNNING", trackingUrl=f"{yarn.url}/proxy/x/")
    job.saw(f"{ID} RUNNING, {yarn.url}/proxy/x/").saw("running: worker:0").saw(f"alert: {alert.text}")
    finish(yarn, tasks=(TaskReport("worker:0", "succeeded", exit_code=0),))
    assert job.end() == 0
    assert not any("\r" in line or "\x1b" in line for line in job.lines), "no progress bars"


# --- failure ------------------------------------------------------------------------------------
@pytest.mark.parametrize("reason", [Reason.TASK_FAILED, Reason.TOTAL_TIMEOUT])
def test_a_failure_ends_with_its_reason(azkaban, yarn, reason):
    job = azkaban().start()
    submitted(yarn)
    tail = f"Traceback\napplication_1_0007 is not ours, {ID} is\x1b[31m\rValueError: no data"
    finish(
        yarn,
        reason,
        first_failure="worker:0",
        message="worker:0 failed",
        tasks=(TaskReport("worker:0", "failed", exit_code=3, log_tail=tail),),
    )
    assert job.end() == reason.exit_code
    assert job.lines[-1] == f"{reason.value}: worker:0 failed"
    log = "\n".join(job.lines)
    assert "ValueError: no data" in log and f"ytf logs {ID}" in log and reason.hint in log
    killed = {word for line in job.lines for word in line.split() if re.match(r"application_\d+_\d+", word)}
    assert killed == {ID}, "HadoopShell kills every application whose id begins a word of the log"
    assert job.outputs.read_bytes() == b""


def test_every_fault_is_reported_without_asking_yarn(azkaban, yarn):
    job = azkaban({"tf.que": "x", "tf.worker.memory": "lots", "tf.files.1": "missing.py"}).start()
    assert job.end() == Reason.SPEC_INVALID.exit_code
    assert job.lines[0] == "3 faults in the request:"
    assert [line.partition(":")[0].strip(" -") for line in job.lines[1:4]] == [
        "tf.que",
        "tf.worker.memory",
        "tf.files.1",
    ]
    assert (
        job.lines[-1]
        == "SPEC_INVALID: tf.que: unknown key (did you mean 'tf.queue'?) (and 2 more faults, listed above)"
    )
    assert yarn.requests == []


def test_a_missing_file_is_a_fault(azkaban, yarn):
    job = azkaban({"tf.files.1": "missing.py", "tf.archives.2": "e=no/e.zip", "tf.script": "no.py"}).start()
    assert job.end() == 2
    machine = f"({socket.gethostname()}, in {job.folder})"
    assert job.lines[1:4] == [
        f"  - tf.files.1: there is no missing.py on this machine {machine}",
        f"  - tf.archives.2: there is no no/e.zip on this machine {machine}",
        f"  - tf.script: there is no no.py on this machine {machine}",
    ]
    assert yarn.requests == []


def test_a_queue_that_is_not_there_is_refused(azkaban, yarn):
    job = azkaban({"tf.queue": "lwo"}).start()
    assert job.end() == Reason.SUBMISSION_REJECTED.exit_code
    assert job.lines[-1].startswith("SUBMISSION_REJECTED: there is no queue 'lwo' (did you mean 'low'?)")
    assert yarn.apps == {}


def test_without_azkaban_it_says_who_starts_it(azkaban):
    job = azkaban()
    del job.environ["JOB_PROP_FILE"]
    assert job.start().end() == 2
    assert "JOB_PROP_FILE is not set: only Azkaban starts this program" in job.lines[-1]
    job.environ["JOB_PROP_FILE"] = "/nowhere/props"
    job.lines.clear()
    assert job.start().end() == 2
    assert job.lines[-1].startswith("SPEC_INVALID: JOB_PROP_FILE cannot be read")
    job.lines.clear()
    assert job.start("--limit", "x").end() == 2
    assert job.lines == [
        "SPEC_INVALID: the only options are --secure, --limits FILE and --plugin FOLDER; given: --limit x"
    ]


def test_a_dry_run_submits_nothing_and_shows_no_secret(azkaban, yarn):
    job = azkaban({"tf.dry_run": "true", "tf.env.MY_TOKEN": "s3cret", "tf.args": "--password=s3cret"}).start()
    assert job.end() == 0
    log = "\n".join(job.lines)
    assert "command: train --password=***" in log and "MY_TOKEN: '***'" in log and "s3cret" not in log
    assert job.lines[-1] == "SUCCEEDED: nothing was submitted, tf.dry_run is set"
    assert yarn.requests == [] and job.outputs.read_bytes() == b""


def test_away_for_too_long_says_what_may_still_run(azkaban, yarn, tmp_path):
    job = azkaban()
    (tmp_path / "site.yaml").write_text("unreachable_timeout: 0.5\n")
    job.environ["YTF_SITE"] = str(tmp_path / "site.yaml")
    job.start()
    submitted(yarn)
    job.saw(f"{ID} ACCEPTED")
    yarn.faults.append(lambda method, path: (503, {}, "gone"))
    assert job.end() == Reason.CLUSTER_UNREACHABLE.exit_code
    assert f"{ID} may still run: a retry goes on with it" in job.lines and f"next: ytf kill {ID}" in job.lines
    assert job.lines[-1].startswith("CLUSTER_UNREACHABLE: waited ") and f" s for {ID}: " in job.lines[-1]


def test_a_launcher_that_fails_itself_leaves_nothing(azkaban, yarn):
    job = azkaban({"tf.queue_timeout": "600"}).start()
    submitted(yarn)
    job.saw("submitted")
    yarn.apps[ID]["elapsedTime"] = [1]  # no number of YARN's
    assert job.end() == 1
    assert any("Traceback" in line for line in job.lines)
    assert job.lines[-1] == "KILLED: its launcher has failed: TypeError"
    assert yarn.apps[ID]["state"] == "KILLED" and "its launcher has failed" in yarn.apps[ID]["diagnostics"]


# --- signals --------------------------------------------------------------------------
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_cancelled_job_leaves_nothing(azkaban, yarn, number):
    job = azkaban().start(process_group=0)
    neighbour = subprocess.Popen(["sleep", "600"], process_group=job.process.pid)
    try:
        submitted(yarn)
        job.saw("submitted")
        started = time.monotonic()
        job.process.send_signal(number)
        assert job.end() == 128 + number
        assert time.monotonic() - started < 60
        assert neighbour.poll() is None, "the group is the executor's"
    finally:
        neighbour.kill()
        neighbour.wait()
    assert yarn.apps[ID]["state"] == "KILLED"
    assert f"Azkaban has cancelled the job (signal {number:d})" in yarn.apps[ID]["diagnostics"]
    assert job.lines[-1] == f"KILLED: Azkaban has cancelled the job (signal {number:d})"


def test_a_second_signal_does_not_break_off_the_kill(azkaban, yarn):
    job = azkaban().start()
    submitted(yarn)
    job.saw("submitted")
    for _ in range(3):
        job.process.terminate()
    assert job.end() == 143
    assert yarn.apps[ID]["state"] == "KILLED"


def test_closed_pipes_do_not_save_the_application(azkaban, yarn):
    job = azkaban()
    read, write = os.pipe()
    job.process = subprocess.Popen(COMMAND, cwd=job.folder, env=job.environ, stdin=subprocess.PIPE, stdout=write,
                                   stderr=write)  # fmt: skip
    os.close(write)
    submitted(yarn)
    os.close(read)
    job.process.terminate()
    assert job.process.wait(60) == 143
    assert yarn.apps[ID]["state"] == "KILLED"


def test_a_closed_pipe_alone_ends_nothing(azkaban, yarn):
    job = azkaban()
    read, write = os.pipe()
    job.process = subprocess.Popen(COMMAND, cwd=job.folder, env=job.environ, stdin=subprocess.PIPE, stdout=write,
                                   stderr=write)  # fmt: skip
    os.close(write)
    os.close(read)
    submitted(yarn)
    finish(yarn, metrics={"accuracy": 1})
    assert job.process.wait(60) == 0
    assert json.loads(job.outputs.read_text())["tf.result.metrics.accuracy"] == "1"


def test_an_executor_that_is_gone_takes_its_job_along(azkaban, yarn):
    """kill -9 of the executor: nobody signals the launcher, its parent is another process now."""
    job = azkaban().start(stdin=subprocess.DEVNULL, before=["bash", "-c", '"$@" <&0 & echo pid $!; wait', "bash"])
    launcher = int(job.saw("pid ").lines[0].split()[1])
    submitted(yarn)
    job.saw("submitted")
    job.process.kill()
    until(lambda: yarn.apps[ID]["state"] == "KILLED", 60)
    assert EXECUTOR_ENDED in yarn.apps[ID]["diagnostics"]
    until(lambda: not Path(f"/proc/{launcher}").exists())


def test_the_end_of_standard_input_is_the_executors(azkaban, yarn):
    job = azkaban().start()
    submitted(yarn)
    job.saw("submitted")
    job.process.stdin.close()
    assert job.end() == 1
    assert yarn.apps[ID]["state"] == "KILLED" and EXECUTOR_ENDED in yarn.apps[ID]["diagnostics"]
    assert job.lines[-1] == f"KILLED: {EXECUTOR_ENDED}"


def test_a_cancel_before_anything_is_reserved_is_quick(azkaban, yarn):
    held = threading.Event()
    yarn.faults.append(lambda method, path: held.wait(120) and None)
    job = azkaban().start()
    until(lambda: yarn.requests, 60)
    started = time.monotonic()
    job.process.terminate()
    assert job.end() == 143
    assert time.monotonic() - started < 60
    held.set()
    assert yarn.apps == {}


@pytest.mark.parametrize(("hangs", "calls"), [(False, ["last call", 143]), (True, ["last call", "no answer", 143])])
def test_the_end_comes_whatever_hangs(impatient, hangs, calls):
    seen, over, never = [], threading.Event(), threading.Event()

    def leave(code):
        seen.append(code)
        over.set()

    def last_call():
        seen.append("last call")
        if hangs:
            never.wait(30)

    ending = LimitedEnding(lambda: seen.append("parent gone"), last_call, lambda: seen.append("no answer"), leave)
    ending.start(os.pipe()[0])
    ending.request("told to", 143)
    ending.request("told again", 1)
    assert over.wait(60)
    never.set()
    assert (seen, ending.why, ending.code) == (calls, "told to", 143)


# --- retries ------------------------------------------------------------------------------------
def retry(azkaban, attempt=1):
    return azkaban({"azkaban.job.attempt": str(attempt), "azkaban.job.metadata.file": f"_job.42.{attempt}.train.meta"})


def test_a_retry_goes_on_with_the_training_of_a_killed_launcher(azkaban, yarn):
    first = azkaban().start()
    submitted(yarn)
    first.saw("submitted")
    first.process.kill()
    first.end()
    second = retry(azkaban).start()
    second.saw(f"attached to {ID}")
    finish(yarn)
    assert second.end() == 0
    assert list(yarn.apps) == [ID] and ID in second.lines


def test_a_retry_after_a_failure_trains_anew(azkaban, yarn):
    first = azkaban().start()
    submitted(yarn)
    finish(yarn, Reason.TASK_FAILED)
    assert first.end() == 1
    second = retry(azkaban).start()
    submitted(yarn, SECOND)
    finish(yarn, application_id=SECOND)
    assert second.end() == 0


def test_only_another_execution_trains_again_after_a_success(azkaban, yarn):
    """A retry does not: its launcher was killed between the end of the training and its own."""
    first = azkaban().start()
    submitted(yarn)
    first.saw("submitted")
    first.process.send_signal(signal.SIGSTOP)
    finish(yarn, metrics={"accuracy": 0.5})
    first.process.kill()
    first.end()
    second = retry(azkaban).start()
    assert second.end() == 0
    assert json.loads(second.outputs.read_text())["tf.result.metrics.accuracy"] == "0.5"
    assert list(yarn.apps) == [ID]
    another = azkaban({"azkaban.flow.execid": "43", "azkaban.job.metadata.file": "_job.43.train.meta"}).start()
    submitted(yarn, SECOND)
    finish(yarn, application_id=SECOND)
    assert another.end() == 0


# --- outputs and lines --------------------------------------------------------------------------
def test_nothing_slow_is_imported_before_signals_are_handled():
    script = (
        "import sys, tf_yarn_ops.azkaban.__main__; "
        "print(*[name for name in ('click', 'yaml', 'httpx', 'skein', 'hdfs', 'rich', 'asyncio') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == []


# --- the site's limits --------------------------------------------------------------------------
