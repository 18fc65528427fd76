"""The lines of the job's program in the log of a task, while a worker or the triggerer waits; no secret is in them."""

import asyncio
import contextlib
import json
import logging
import threading

import pytest
from airflow.sdk.log import mask_secret
from hypothesis import given
from hypothesis import strategies as st

from support.airflow_task import ID, Running, task_log
from support.fake_yarn import application
from support.node_logs import serve_logs
from support.streamed_tasks import CONTAINERS, tasks_of, trains
from support.waiting import until
from tf_yarn_ops.airflow import execution
from tf_yarn_ops.airflow import streamed_log as log_lines
from tf_yarn_ops.errors import ClusterUnreachable
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts
from tf_yarn_ops.runtime.common.report import JobReport


@pytest.mark.slow
def test_the_lines_come_masked_while_it_trains_and_the_rest_at_the_end(site, monkeypatch, capsys):
    monkeypatch.setattr(log_lines, "SCAN_SECONDS", 0.05)
    monkeypatch.setattr(log_lines, "MOST_LINES", 3)
    mask_secret("geheim-7")
    logs = serve_logs(site.yarn)
    logs |= {CONTAINERS["chief:0"]: b"step 1, password geheim-7\n", CONTAINERS["worker:0"]: b"of a worker\n"}
    task, seen = Running(site.operator(stream_logs="chief")), []
    trains(site)
    until(lambda: seen.extend(task_log(capsys)) or "chief:0 | step 1, password ***" in seen)
    logs[CONTAINERS["chief:0"]] += b"2\n3\n4\n5\nlast"
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    task.join(60)
    assert not task.is_alive() and task.error is None
    seen += task_log(capsys)
    told = [line for line in seen if line.startswith("chief:0 |")]
    assert told[0] == "chief:0 | step 1, password ***" and len(set(told)) == len(told)
    left_out = f"{6 - len(told)} lines of chief:0 are left out; all of them: ytf logs {ID} --task chief:0"
    assert len(told) == 6 or left_out in seen
    assert not any(line.startswith("worker:0 | ") for line in seen) and "geheim" not in "".join(seen)


@pytest.mark.slow
def test_lines_come_where_the_end_is_before_the_first_look(site, monkeypatch, capsys):
    """A busy triggerer had not read the secrets yet when a short job ended, and showed no line of it."""
    follows, over = threading.Event(), threading.Event()
    masking, end = execution.masking, log_lines.ProgramLines.end

    def read_secrets(*given):
        follows.set()
        return over.wait(60) and masking(*given)

    monkeypatch.setattr(execution, "masking", read_secrets)
    monkeypatch.setattr(log_lines, "_SECRETS_SECONDS", 0.05)
    monkeypatch.setattr(log_lines.ProgramLines, "end", lambda lines: (end(lines), over.set()))
    logs = serve_logs(site.yarn)
    logs[CONTAINERS["chief:0"]] = b"all of it\n"
    task = Running(site.operator(stream_logs="chief"))
    trains(site)
    until(follows.is_set)
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    task.join(60)
    assert "chief:0 | all of it" in task_log(capsys)


@pytest.mark.slow
@pytest.mark.parametrize("deferrable", [False, True])
def test_lines_of_a_job_that_ended_before_the_try_that_finds_it(site, capsys, deferrable):
    """A retry that found its training ended, or a job that ended within its submission, showed no line."""
    logs = serve_logs(site.yarn)
    logs[CONTAINERS["chief:0"]] = b"all of it\n"
    first = Running(site.operator())
    trains(site)
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    first.join(60)
    assert "chief:0 | all of it" not in task_log(capsys)
    again = Running(site.operator(stream_logs="chief", deferrable=deferrable), try_number=2)
    again.join(60)
    assert again.error is None and site.submissions() == 1
    assert "chief:0 | all of it" in task_log(capsys)


@pytest.mark.slow
@pytest.mark.parametrize("tries", [2, 3])
def test_last_lines_that_yarn_does_not_give_are_read_again_or_named(site, monkeypatch, capsys, tries):
    monkeypatch.setattr(log_lines, "SCAN_SECONDS", 0.05)
    read, looks, failed = log_lines.ProgramLines._read, [], []

    def fail(lines, application_id):
        looks.append(application_id)
        if lines._ended.is_set() and len(failed) < tries:
            failed.append(application_id)
            raise ClusterUnreachable("away")
        return read(lines, application_id)

    monkeypatch.setattr(log_lines.ProgramLines, "_read", fail)
    logs = serve_logs(site.yarn)
    task = Running(site.operator(stream_logs="chief"))
    trains(site)
    until(lambda: looks)
    logs[CONTAINERS["chief:0"]] = b"the last\n"
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    task.join(60)
    shown = task_log(capsys)
    assert any("last lines are not known here (away); to see them: ytf logs" in line for line in shown) == (tries == 3)
    assert tries == 3 or "chief:0 | the last" in shown


@pytest.mark.slow
def test_nodes_that_do_not_answer_do_not_end_the_wait(site, monkeypatch, capsys):
    monkeypatch.setattr(log_lines, "SCAN_SECONDS", 0.05)
    asked = []
    site.yarn.faults.append(
        lambda method, path: "/containerlogs/" in path and (asked.append(path) or (503, {}, "away"))
    )
    task = Running(site.operator(stream_logs="worker:*"))
    trains(site)
    until(lambda: len(asked) > 2)
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    task.join(60)
    assert not task.is_alive() and task.error is None
    [line] = [line for line in task_log(capsys) if line.startswith("worker:0 |")]
    assert line.startswith("worker:0 | [the log of worker:0 is neither on its node, nor at a log server, nor in HDFS")


@pytest.mark.slow
def test_unknown_task_of_a_job_is_reported(site, monkeypatch, capsys):
    monkeypatch.setattr(log_lines, "SCAN_SECONDS", 0.05)
    task, seen = Running(site.operator(stream_logs=["worker:*", "wroker:0"])), []
    trains(site)
    until(lambda: seen.extend(task_log(capsys)) or any("has no task 'wroker:0'" in line for line in seen))
    site.end(ID, tasks=tasks_of(site.url, state="succeeded"))
    task.join(60)
    assert not task.is_alive() and task.error is None


# -- without Airflow's run: the reader, a ResourceManager and a node on the wire -------------------


@pytest.fixture
def follow(yarn, caplog, monkeypatch):
    """Return a function that shows the lines of a job whose chief has this log, with what fails before each look."""
    monkeypatch.setattr(log_lines, "SCAN_SECONDS", 0.01)
    caplog.set_level(logging.INFO, "task")

    def follow(content, *failures, tasks=("chief",)):
        yarn.apps[ID] = application(1, "RUNNING", trackingUrl=f"{yarn.url}/proxy/{ID}/")
        report = JobReport(ID, state="RUNNING", tasks=tasks_of(yarn.url, state="running"))
        yarn.pages[f"/proxy/{ID}/pages/ytf/status.json"] = "application/json", json.dumps(report.to_dict())
        logs = serve_logs(yarn)
        logs |= dict.fromkeys(CONTAINERS.values(), content)
        left, read = list(failures), log_lines.ProgramLines._read

        def fail_first(lines, application_id):
            if left:
                raise left.pop(0)
            return read(lines, application_id)

        monkeypatch.setattr(log_lines.ProgramLines, "_read", fail_first)
        cluster = Cluster((yarn.url,), "ann", "ann", StorageFacts("hdfs://n", "hdfs://n", "/user/{user}/.skein"))
        lines = log_lines.ProgramLines(
            cluster, tasks, lambda: lambda text: text.replace("geheim-7", "***"), logging.getLogger("task")
        )
        with contextlib.closing(lines):
            asyncio.run(lines.show(ID))
        return [record.getMessage() for record in caplog.records if record.name == "task"]

    return follow


def test_of_many_lines_the_last_are_shown_masked_and_the_others_counted(follow, monkeypatch):
    monkeypatch.setattr(log_lines, "MOST_LINES", 2)
    assert follow(b"1\n2\n3\ngeheim-7 \x1b[2J\n5\n") == [
        f"3 lines of chief:0 are left out; all of them: ytf logs {ID} --task chief:0",
        "chief:0 | *** \\u001b[2J",
        "chief:0 | 5",
    ]


@pytest.mark.parametrize("failures", range(4))
def test_look_at_the_end_is_repeated_twice(follow, failures):
    shown = follow(b"the last\n", *[ClusterUnreachable("away")] * failures)
    missing = f"stream_logs: the last lines are not known here (away); to see them: ytf logs {ID}"
    assert shown == ([missing] if failures == 3 else ["chief:0 | the last"])


def test_unknown_task_is_reported_once(follow):
    (line,) = follow(b"1\n", tasks=["wroker:0"])
    assert line.startswith("stream_logs: ") and "has no task 'wroker:0'" in line


@given(st.lists(st.sampled_from(["x" * 40, "geheim-7" * 200, "y" * 3000]), max_size=30), st.integers(0, 1700))
def test_long_line_is_masked_to_its_end_in_a_bounded_time(parts, begin):
    """The masks ran over 64 KiB of each line, of which 2,000 characters are shown."""
    text, taken = ("".join(parts))[begin:], []

    def mask(line):
        taken.append(len(line))
        return line.replace("geheim-7" * 200, "***")

    shown = log_lines.mask_line(text, mask)
    assert mask(text).startswith(shown) and len(shown) <= log_lines.LONGEST
    assert taken[0] <= 10_192 and (shown or len(text) > 10_000 or not text)
