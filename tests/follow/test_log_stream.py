"""New lines of growing logs, look by look; the nodes are on the wire and answer as Hadoop's NodeManagers do."""

import itertools
import socket
import time
from contextlib import closing
from dataclasses import replace

import pytest

import tf_yarn_ops.follow.log_reader
import tf_yarn_ops.follow.log_stream
from support.fake_yarn import STAMP, application
from support.node_logs import serve_logs
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.follow.log_reader import Logs, _begin_of_page
from tf_yarn_ops.follow.log_stream import LogStream, choose_tasks
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

ID = f"application_{STAMP}_0001"
FIRST, SECOND, OTHER = (f"container_{STAMP}_0001_01_00000{number}" for number in (2, 3, 4))


@pytest.fixture
def nodes(yarn):
    return serve_logs(yarn)


@pytest.fixture
def stream(yarn):
    """Return a function that makes a stream of these tasks' logs."""
    made = []

    def make(*patterns):
        cluster = Cluster((yarn.url,), "ann", "ann", StorageFacts("hdfs://n", "hdfs://n", "/user/{user}/.skein"))
        cluster = replace(cluster, site=replace(cluster.site, request_timeout=2.0))
        logs = Logs(Session(cluster), environ={"PATH": "/none"}, sleep=lambda seconds: None)
        one = LogStream(logs, patterns) if patterns else LogStream(logs)
        made.extend((one, logs))
        return one

    yield make
    for one in made:
        one.close()


def task(url, name, container, **fields):
    return TaskReport(
        name,
        container_id=container,
        starts=fields.pop("starts", 1),
        log_url=f"{url}/node/containerlogs/{container}/ann/{name.partition(':')[0]}.log",
        **fields,
    )


def look(stream, yarn, tasks, reason=None):
    report = JobReport(ID, reason=reason, tasks=tuple(tasks), finished_at=STAMP / 1000 if reason else None)
    return [(line.task, line.start, line.text) for line in stream.poll(application(1, "RUNNING"), report)]


def test_each_look_yields_the_new_whole_lines_of_all_tasks(yarn, nodes, stream):
    nodes |= {FIRST: b"one\ntw", OTHER: b""}
    tasks = [task(yarn.url, "worker:0", FIRST), task(yarn.url, "ps:0", OTHER), TaskReport("worker:1")]
    lines = stream()
    assert look(lines, yarn, tasks) == [("worker:0", 1, "one")]
    assert look(lines, yarn, tasks) == []
    nodes |= {FIRST: b"one\ntwo \xc3\xbc\r\n\n", OTHER: b"ready\n"}
    assert look(lines, yarn, tasks) == [("worker:0", 1, "two \u00fc"), ("worker:0", 1, ""), ("ps:0", 1, "ready")]


def test_more_than_one_answer_holds_is_read_in_several(yarn, nodes, stream, monkeypatch):
    monkeypatch.setattr(tf_yarn_ops.follow.log_reader, "_AT_ONCE", 100_000)
    nodes[FIRST] = b"".join(b"%06d\n" % number for number in range(50_000))
    lines, tasks = stream(), [task(yarn.url, "worker:0", FIRST)]
    found = []
    while new := look(lines, yarn, tasks):
        assert len(new) <= 100_000 / 7 + 1
        found += [text for _, _, text in new]
    assert found == [f"{number:06d}" for number in range(50_000)]


def test_look_at_a_gateways_page_reads_no_more_than_it_takes(monkeypatch):
    monkeypatch.setattr(tf_yarn_ops.follow.log_reader, "_AT_ONCE", 100_000)
    endless = itertools.chain([b"<html><pre>"], itertools.repeat(b"x" * 8192))
    assert b"".join(_begin_of_page(endless)) == b"x" * 100_000


def test_a_line_without_an_end_is_cut(yarn, nodes, stream):
    nodes[FIRST] = b"x" * 70_000
    assert [len(text) for _, _, text in look(stream(), yarn, [task(yarn.url, "worker:0", FIRST)])] == [64 * 1024]


def test_after_a_restart_the_old_container_is_read_to_its_end(yarn, nodes, stream):
    nodes[FIRST] = b"first\n"
    lines = stream()
    assert look(lines, yarn, [task(yarn.url, "worker:0", FIRST)]) == [("worker:0", 1, "first")]
    nodes |= {FIRST: b"first\nfailed\n", SECOND: b"again\n"}
    assert look(lines, yarn, [task(yarn.url, "worker:0", SECOND, starts=2)]) == [
        ("worker:0", 1, "failed"),
        ("worker:0", 2, "again"),
    ]
    assert look(lines, yarn, [task(yarn.url, "worker:0", SECOND, starts=2)]) == []


def test_at_the_end_the_rest_comes_with_the_last_line(yarn, nodes, stream):
    nodes[FIRST] = b"one\ntw"
    lines = stream()
    assert look(lines, yarn, [task(yarn.url, "worker:0", FIRST)]) == [("worker:0", 1, "one")]
    nodes[FIRST] = b"one\ntwo\nthree"
    ended = [TaskReport("worker:0", "succeeded", container_id=FIRST, starts=1)]  # a report from YARN names no node
    assert look(lines, yarn, ended, Reason.SUCCEEDED) == [("worker:0", 1, "two"), ("worker:0", 1, "three")]


def test_container_in_which_nothing_ran_has_no_log_to_wait_for(yarn, nodes, stream):
    """Its image could not start, and the report says so; a minute went by for a log that never was."""
    lines = stream()
    assert look(lines, yarn, [task(yarn.url, "worker:0", FIRST)]) == []
    before = len(yarn.requests)
    assert look(lines, yarn, [TaskReport("worker:0", "lost")], Reason.ENVIRONMENT_INVALID) == []
    assert len(yarn.requests) == before


def test_of_a_long_log_the_end_is_shown_and_the_rest_named(yarn, nodes, stream, monkeypatch):
    monkeypatch.setattr(tf_yarn_ops.follow.log_stream, "LAST_BYTES", 1000)
    nodes[FIRST] = b"one\n"
    lines, tasks = stream(), [task(yarn.url, "worker:0", FIRST)]
    assert len(look(lines, yarn, tasks)) == 1
    nodes[FIRST] = b"one\n" + b"".join(b"%07d\n" % number for number in range(250_000))
    found = [text for _, _, text in look(lines, yarn, tasks, Reason.SUCCEEDED)]
    assert found[0] == f"[2.0 MB of this log are left out; all of it: ytf logs {ID} --task worker:0]"
    assert found[1:] == [f"{number:07d}" for number in range(249_876, 250_000)]
    asked = [request for request in yarn.requests if "/containerlogs/" in request[1]][-1]
    assert asked[2]["size"] == "-1000"  # the node sends no more


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_of_many_bytes_ends_too(yarn, nodes, stream, monkeypatch, end):
    monkeypatch.setattr(tf_yarn_ops.follow.log_stream, "LAST_BYTES", 200_000)
    nodes[FIRST] = b"\xff\x00" * 500_000 + end
    found = [text for _, _, text in look(stream(), yarn, [task(yarn.url, "worker:0", FIRST)], Reason.SUCCEEDED)]
    assert found[0].startswith("[0.8 MB of this log are left out;")
    assert sum(map(len, found[1:])) == 200_000 - len(end) and max(map(len, found)) == 64 * 1024


@pytest.mark.parametrize("draw", [b"\r%3d %%", b"%3d %%\r"], ids=["before", "behind"])
def test_a_progress_bar_is_one_live_line(yarn, nodes, stream, monkeypatch, draw):
    nodes[FIRST] = b"begin\r\n" + b"".join(draw % part for part in range(30))
    lines, tasks = stream(), [task(yarn.url, "worker:0", FIRST)]
    assert [text for _, _, text in look(lines, yarn, tasks)] == ["begin", " 29 %"]
    nodes[FIRST] += b"".join(draw % part for part in range(30, 60))
    assert look(lines, yarn, tasks) == [], "ten seconds have not passed"
    monkeypatch.setattr(tf_yarn_ops.follow.log_stream, "BAR_SECONDS", 0)
    assert [text for _, _, text in look(lines, yarn, tasks)] == [" 59 %"]
    assert look(lines, yarn, tasks) == []
    nodes[FIRST] += b"".join(draw % part for part in range(60, 101)) + b"\nhalf"
    assert [text for _, _, text in look(lines, yarn, tasks)] == ["100 %"]
    nodes[FIRST] += b" a line" + b"".join(draw % part for part in range(50_000))
    assert [text for _, _, text in look(lines, yarn, tasks, Reason.SUCCEEDED)] == ["49999 %"]


def test_a_node_that_is_away_costs_no_line(yarn, nodes, stream):
    nodes[FIRST] = b"one\n"
    lines, tasks = stream(), [task(yarn.url, "worker:0", FIRST)]
    yarn.faults.insert(0, lambda method, path: (503, {}, "away") if "/containerlogs/" in path else None)
    assert look(lines, yarn, tasks) == []
    del yarn.faults[0]
    assert look(lines, yarn, tasks) == [("worker:0", 1, "one")]


@pytest.mark.slow
def test_log_of_a_node_that_hangs_ends_with_a_sentence(yarn, stream):
    """It accepts connections, and answers none; twenty tasks cost one wait."""
    yarn.add(application(1, "FINISHED", logAggregationStatus="RUNNING"))
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        node = f"127.0.0.1:{server.getsockname()[1]}"
        tasks = [task(f"http://{node}", f"worker:{number}", f"{FIRST}{number}") for number in range(20)]
        began = time.monotonic()
        lines = stream()
        assert look(lines, yarn, tasks) == []
        found = look(lines, yarn, tasks, Reason.SUCCEEDED)
    assert [(name, text) for name, _, text in found] == [
        (
            item.task,
            f"[the log of {item.task} is on {node}, whose NodeManager hangs. Try again when YARN has restarted it, or "
            "has lost the node]",
        )
        for item in tasks
    ]
    assert time.monotonic() - began < 60


def test_an_ended_application_is_read_from_the_start(yarn, nodes, stream):
    nodes[FIRST] = b"all\nof it\n"
    tasks = [task(yarn.url, "worker:0", FIRST)]
    assert [text for _, _, text in look(stream(), yarn, tasks, Reason.SUCCEEDED)] == ["all", "of it"]


def test_names_with_signs_choose_tasks():
    report = JobReport(ID, tasks=tuple(map(TaskReport, ("ps:0", "worker:0", "worker:1"))))
    assert choose_tasks(report, ("*:*",)) == ["ps:0", "worker:0", "worker:1"]
    assert choose_tasks(report, ("worker:*", "coordinator")) == ["worker:0", "worker:1", "coordinator"]
    assert choose_tasks(report, ("*",)) == ["ps:0", "worker:0", "worker:1"]
    assert choose_tasks(JobReport(ID), ("worker:0",)) == []
    with pytest.raises(
        SpecInvalid, match=r"no task 'wroker:\*' \(did you mean 'worker:1'\?\); .* no task 'x'; it has ps:0"
    ):
        choose_tasks(report, ("wroker:*", "x"))


def test_the_application_masters_log_is_followed_too(yarn, nodes, stream):
    master = f"container_{STAMP}_0001_01_000001"
    nodes[master] = b"published\n"
    with closing(stream("coordinator")) as lines:
        known = application(1, "RUNNING", amContainerLogs=f"{yarn.url}/node/containerlogs/{master}/ann")
        found = list(lines.poll(known, JobReport(ID)))
        assert [(line.task, line.text) for line in found] == [("coordinator", "published")]
        assert list(lines.poll(application(1, "ACCEPTED", amContainerLogs=""), JobReport(ID))) == []


def test_look_behind_the_end_repeats_nothing(yarn, nodes, stream):
    nodes[FIRST] = b"one\n"
    lines, tasks = stream(), [task(yarn.url, "worker:0", FIRST)]
    assert len(look(lines, yarn, tasks, Reason.SUCCEEDED)) == 1
    assert look(lines, yarn, tasks, Reason.SUCCEEDED) == []
