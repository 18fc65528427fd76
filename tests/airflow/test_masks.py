"""Secrets of a job in the lines of its program."""

import asyncio
import contextlib
import json
import stat
import threading

import pytest
from airflow.sdk.log import mask_secret

from support.airflow_task import ID, deferral, first_event, task_log
from support.node_logs import serve_logs
from support.streamed_tasks import CONTAINERS, tasks_of, trains
from support.waiting import until
from tf_yarn_ops.airflow import masks
from tf_yarn_ops.airflow import streamed_log as log_lines
from tf_yarn_ops.airflow.trigger import TensorFlowYarnTrigger
from tf_yarn_ops.job.spec import JobSpec

pytestmark = pytest.mark.slow


def handed_over(files):
    """Return the files with the secrets of jobs below a folder."""
    return sorted(files.rglob(masks.FILE))


def test_triggerer_masks_secrets_without_having_them_as_arguments(site, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(log_lines, "SCAN_SECONDS", 0.05)
    mask_secret("geheim-8")
    logs = serve_logs(site.yarn)
    logs[CONTAINERS["chief:0"]] = b"it knows geheim-8, letmein-99 and s3cr3t-arg, and tells 5\n"
    deferred, _ = deferral(
        site.operator(
            deferrable=True,
            stream_logs="chief",
            task_command="train --api-key s3cr3t-arg",
            env={"NAME": "says geheim-8 aloud", "DB_PASSWORD": "letmein-99", "SHORT_TOKEN": "5"},
        )
    )
    _, kwargs = deferred.trigger.serialize()
    assert not any(secret in json.dumps(kwargs) for secret in ("geheim", "letmein", "s3cr3t"))
    [file] = handed_over(tmp_path)
    assert json.loads(file.read_text()) == ["geheim-8", "letmein-99", "s3cr3t-arg"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    trains(site)
    monkeypatch.setattr(masks, "redact", str)  # a triggerer knows nothing of the worker's secrets
    capsys.readouterr()
    seen, ended = [], threading.Event()

    def end():
        until(lambda: seen.extend(task_log(capsys)) or any("it knows" in line for line in seen))
        site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
        ended.set()

    threading.Thread(target=end, daemon=True).start()
    event = asyncio.run(first_event(TensorFlowYarnTrigger(**kwargs)))
    assert ended.wait(60) and event["reason"] == "SUCCEEDED"
    assert "chief:0 | it knows ***, *** and ***, and tells 5" in seen
    assert "geheim" not in "".join([*seen, *task_log(capsys)]) and handed_over(tmp_path) == []


def test_lines_of_a_job_that_ended_before_its_trigger_are_masked(site, tmp_path, monkeypatch, capsys):
    """The watcher deleted the secrets with the application's directory before they were read: no line was shown."""
    logs, read = serve_logs(site.yarn), masks.read
    logs[CONTAINERS["chief:0"]] = b"all but geheim-13\n"

    def read_late(*given):
        with contextlib.suppress(AssertionError):
            until(lambda: not handed_over(tmp_path), 0.5)
        return read(*given)

    deferred, _ = deferral(site.operator(deferrable=True, stream_logs="chief", env={"A_TOKEN": "geheim-13"}))
    trains(site)
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    monkeypatch.setattr(masks, "read", read_late)
    assert asyncio.run(first_event(deferred.trigger))["reason"] == "SUCCEEDED"
    assert "chief:0 | all but ***" in task_log(capsys) and handed_over(tmp_path) == []


@pytest.mark.parametrize("secret", ["geheim-9", None])
def test_triggerer_that_cannot_read_the_secrets_logs_no_line(site, tmp_path, monkeypatch, capsys, secret):
    monkeypatch.setattr(log_lines, "SCAN_SECONDS", 0.05)
    logs = serve_logs(site.yarn)
    logs[CONTAINERS["chief:0"]] = b"geheim-9\n"
    deferred, _ = deferral(
        site.operator(deferrable=True, stream_logs="chief", env={"A_TOKEN": secret} if secret else None)
    )
    for file in handed_over(tmp_path):
        file.unlink()
    trains(site)
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    event = asyncio.run(first_event(deferred.trigger))
    told = task_log(capsys)
    assert event["reason"] == "SUCCEEDED"
    assert any("its secrets are not known here" in line for line in told) == (secret is not None)
    assert ("chief:0 | geheim-9" in told) == (secret is None), "without secrets there is nothing to hide"


def test_task_defers_without_lines_when_secrets_cannot_be_handed_over(site, monkeypatch, capsys):
    mask_secret("verborgen-10")
    monkeypatch.setattr(masks, "redact", lambda text: text.replace("verborgen-10", "***"))
    deferred, _ = deferral(site.operator(deferrable=True, stream_logs="chief", env={"NAME": "verborgen-10"}))
    assert deferred.trigger.lines is None
    assert any("its secrets could not be handed over" in line for line in task_log(capsys))


def test_the_secrets_of_a_job_are_found_wherever_they_stand():
    mask_secret("verborgen-11")
    mask_secret("verborgen-12")
    job = JobSpec.from_dict({
        "name": "a", "env": {"A": "verborgen-11verborgen-12", "PEM_KEY": "-----BEGIN-----\nabcdefgh\n--\n"},
        "tasks": {"worker": {"instances": 1, "memory": 1, "command": "run 'verborgen-12' --password='pass-word' TOKEN=tok-tok",
                             "env": {"MAX_TOKENS": "100000"}}}})  # fmt: skip
    found = masks.job_secrets(job)
    assert found == {"verborgen-11", "verborgen-12", "-----BEGIN-----\nabcdefgh\n--\n", "-----BEGIN-----", "abcdefgh", "pass-word",
                     "tok-tok"}  # fmt: skip
    assert masks.masking(found)("x abcdefgh verborgen-11 pass-word 100000") == "x *** *** *** 100000"
