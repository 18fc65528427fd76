"""A task's log, from whichever place has it; the places are on the wire or programs on PATH."""

import contextlib
import re
import shlex
import socket
import time
import tracemalloc
from contextlib import closing
from dataclasses import replace
from itertools import chain, count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tf_yarn_ops.follow.log_reader
from support.fake_yarn import STAMP, application, verdict_text
from support.http_server import Handler, running
from support.records import add
from support.tfile import file_of
from tf_yarn_ops.errors import ApplicationNotFound, LogMissing, SpecInvalid, SubmissionRejected
from tf_yarn_ops.follow.log_reader import LogFile, Logs, default_task, find_log, grown, unframed
from tf_yarn_ops.follow.log_stream import choose_tasks
from tf_yarn_ops.follow.session import Session
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.hadoop.cluster import Cluster, LogFacts, SecurityFacts, StorageFacts
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.record import CLIENT, build_record
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import build_status
from tf_yarn_ops.terminal.summary import describe, next_lines

ID = f"application_{STAMP}_0001"
CONTAINER = f"container_{STAMP}_0001_01_000002"
MASTER = f"container_{STAMP}_0001_01_000001"
CONTENT = "line 1\nline 2\n\u00fc\n"


def framed(content, trailing="\n*****\n\n", length=None):
    length = len(content.encode()) if length is None else length
    return (
        f"Container: {CONTAINER} on node:1\nLogAggregationType: LOCAL\n=====\nLogType:worker.log\n"
        f"LogLength:{length}\nLogContents:\n{content}\nEnd of LogType:worker.log.This log file may not be "
        f"complete.{trailing}"
    )


def report(url, **fields):
    task = TaskReport(
        "worker:0", "failed", container_id=CONTAINER, log_url=f"{url}/node/containerlogs/c/ann/worker.log"
    )
    return JobReport(ID, reason=Reason.TASK_FAILED, message="x", tasks=(TaskReport("ps:0"), task), **fields)


def logs(
    yarn,
    environ=None,
    services=(),
    tail="",
    aggregation="SUCCEEDED",
    cancelled=lambda: False,
    directory="",
    secure=False,
    **storage,
):
    own = report(yarn.url, first_failure="worker:0")
    own = JobReport(**{**vars(own), "tasks": (own.tasks[0], TaskReport(**{**vars(own.tasks[1]), "log_tail": tail}))})
    yarn.add(
        application(
            1,
            "FINISHED",
            finalStatus="FAILED",
            finishedTime=STAMP,
            diagnostics=verdict_text(own),
            logAggregationStatus=aggregation,
            amContainerLogs=f"{yarn.url}/node/containerlogs/{MASTER}/ann",
        )
    )
    cluster = Cluster(
        (yarn.url,),
        "ann",
        "ann",
        StorageFacts("hdfs://n", "hdfs://n", "/user/{user}/.skein", **storage),
        SecurityFacts(secure),
        logs=LogFacts(services, directory),
    )
    return Logs(
        Session(cluster),
        environ=environ or {"PATH": "/none"},
        sleep=lambda seconds: None,
        cancelled=cancelled,
    )


def serve(yarn, container, name, text, base="/ws/v1/node"):
    yarn.pages[f"{base}/containerlogs/{container}/{name}"] = ("text/plain;charset=utf-8", text)


def test_from_the_node_without_yarns_frame(yarn):
    serve(yarn, CONTAINER, "worker.log", framed(CONTENT))
    assert "".join(logs(yarn).read(ID, "worker:0")) == CONTENT
    assert yarn.requests[-1][3]["Accept"] == "text/plain"


def test_the_default_is_what_failed_first(yarn):
    serve(yarn, CONTAINER, "worker.log", framed(CONTENT))
    assert "".join(logs(yarn).read(ID)) == CONTENT


@pytest.mark.parametrize(
    "task, name", [("coordinator", "application.driver.log"), ("master", "application.master.log")]
)
def test_the_application_masters_own_logs(yarn, task, name):
    serve(yarn, MASTER, name, framed("master's words\n"))
    assert "".join(logs(yarn).read(ID, task)) == "master's words\n"


def test_an_empty_log_is_a_log(yarn):
    serve(yarn, CONTAINER, "worker.log", framed(""))
    assert "".join(logs(yarn).read(ID)) == ""


def test_then_from_the_log_server(yarn):
    serve(yarn, CONTAINER, "worker.log", framed(CONTENT), "/ws/v1/history")
    services = ("http://127.0.0.1:1/ws/v1/history", f"{yarn.url}/ws/v1/history")
    assert "".join(logs(yarn, services=services).read(ID)) == CONTENT


@pytest.fixture
def yarn_program(tmp_path):
    """A program ``yarn`` that prints what lies beside it and keeps its arguments."""
    program = tmp_path / "yarn"
    users = "$HADOOP_USER_NAME$HADOOP_PROXY_USER$HADOOP_TOKEN_FILE_LOCATION"
    program.write_text(f'#!/bin/sh\necho "$@" "{users}" >>{tmp_path}/arguments\ncat {tmp_path}/output 2>/dev/null\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("directory", [f"bucket-logs-tfile/0001/{ID}", f"logs/{ID}"], ids=["3.3", "2.10"])
def test_then_from_the_file_of_its_node_in_hdfs(yarn, tmp_path, directory):
    folder = tmp_path / "tmp" / "logs" / "ann" / directory
    folder.mkdir(parents=True)
    (folder / "another_1").write_bytes(file_of({MASTER: {"worker.log": b"not this"}}))
    (folder / "127.0.0.1_1.tmp").write_bytes(b"half")
    (folder / "127.0.0.1_1").write_bytes(file_of({CONTAINER: {"x": b"", "worker.log": CONTENT.encode()}}, chunk=3))
    reader = logs(yarn, directory="/tmp/logs", local_root=str(tmp_path))
    assert "".join(reader.read(ID)) == CONTENT
    (folder / "127.0.0.1_1").write_bytes(b"no such format")
    with pytest.raises(LogMissing):
        list(reader.read(ID))


@pytest.mark.parametrize("secure", [True, False])
def test_the_nodes_and_the_file_system_are_asked_for_once_in_all_looks(yarn, secure, monkeypatch):
    """A look follows each half second until the aggregation is over."""
    looks, opened, closed = [], [], []
    make, close = WebHdfs.__init__, WebHdfs.close
    monkeypatch.setattr(WebHdfs, "__init__", lambda self, *words: opened.append(self) or make(self, *words))
    monkeypatch.setattr(WebHdfs, "close", lambda self: closed.append(self) or close(self))
    reader = logs(yarn, aggregation="RUNNING", secure=secure, directory="/tmp/logs", webhdfs=(yarn.url,))
    yarn.nodes = [{"nodeHTTPAddress": yarn.url.removeprefix("http://")}]

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 2:
            yarn.apps[ID]["logAggregationStatus"] = "FAILED"

    reader._sleep = sleep
    with pytest.raises(LogMissing):
        list(reader.read(ID))
    assert len(looks) == 2 and yarn.count("GET", "/webhdfs/v1/tmp/logs/ann/") == 4
    assert yarn.count("GET", "/ws/v1/cluster/nodes") == (1 if secure else 0)
    reader.close()
    assert len(opened) == 1 and closed == opened


@pytest.mark.parametrize("pause, wanted", [(0.0, [1, 2, 3, 3]), (60.0, [1, 2, 2, 2])])
def test_nodes_are_requested_again_while_one_is_not_listed(yarn, monkeypatch, pause, wanted):
    """It may join while a log is followed, or the first answer was an error: only YARN says who sees a ticket."""
    monkeypatch.setattr(tf_yarn_ops.follow.log_reader, "LIST_SECONDS", pause)
    reader, known = logs(yarn, secure=True), {"nodeHTTPAddress": yarn.url.removeprefix("http://")}
    file, asked = LogFile(CONTAINER, "worker.log", yarn.url, "ann", ID), []
    yarn.faults.append(lambda method, path: (500, {}, "no nodes today") if path.endswith("/nodes") else None)
    for nodes in ([known], [], [known], []):
        yarn.nodes = nodes
        reader.new_bytes(file, 0)
        asked.append(yarn.count("GET", "/ws/v1/cluster/nodes"))
        yarn.faults.clear()
    assert asked == wanted


def test_a_log_server_needs_no_list_of_the_nodes(yarn):
    yarn.faults.append(lambda method, path: (500, {}, "no nodes today") if path.endswith("/nodes") else None)
    serve(yarn, CONTAINER, "worker.log", framed(CONTENT), "/ws/v1/history")
    assert "".join(logs(yarn, services=(f"{yarn.url}/ws/v1/history",), secure=True).read(ID)) == CONTENT


def test_then_by_the_program_yarn(yarn, yarn_program):
    (yarn_program / "output").write_text(framed(CONTENT))
    environ = {"PATH": f"{yarn_program}:/bin:/usr/bin", "HADOOP_PROXY_USER": "hdfs", "HADOOP_TOKEN_FILE_LOCATION": "/t"}
    assert "".join(logs(yarn, environ).read(ID)) == CONTENT
    assert (yarn_program / "arguments").read_text() == (
        f"logs -applicationId {ID} -containerId {CONTAINER} -log_files worker.log -appOwner ann ann\n"
    )


def test_aggregation_is_waited_for_while_yarn_says_that_it_goes_on(yarn, yarn_program):
    """However long ago the application has ended; a log that comes with the last answer counts."""
    reader = logs(yarn, {"PATH": f"{yarn_program}:/bin:/usr/bin"}, aggregation="NOT_START")
    states = iter(["RUNNING", "RUNNING", "SUCCEEDED"])

    def go_on(method, path):
        if path.endswith(ID) and yarn.count("GET", path) > 2:
            yarn.apps[ID]["logAggregationStatus"] = state = next(states)
            if state == "SUCCEEDED":
                (yarn_program / "output").write_text(framed(CONTENT))
        return None

    yarn.faults.append(go_on)
    assert "".join(reader.read(ID)) == CONTENT and not list(states)


def test_program_yarn_does_not_run_while_yarn_aggregates(yarn, yarn_program):
    """Behind a firewall that drops RPC it would hang for two minutes, while HDFS has the log after one second."""
    path, place = f"{yarn_program}:/bin:/usr/bin", {"directory": "/tmp/logs", "local_root": str(yarn_program)}
    reader = logs(yarn, {"PATH": path}, aggregation="RUNNING", **place)

    def sleep(seconds):
        folder = yarn_program / "tmp" / "logs" / "ann" / "logs" / ID
        folder.mkdir(parents=True)
        (folder / "127.0.0.1_1").write_bytes(file_of({CONTAINER: {"worker.log": CONTENT.encode()}}))

    reader._sleep = sleep
    assert "".join(reader.read(ID)) == CONTENT
    assert not (yarn_program / "arguments").exists()


@pytest.mark.slow
def test_log_server_that_hangs_costs_one_wait_and_hides_no_log(yarn, tmp_path):
    """It accepts connections, and answers none; HDFS has the logs."""
    folder = tmp_path / "tmp" / "logs" / "ann" / "logs" / ID
    folder.mkdir(parents=True)
    (folder / "127.0.0.1_1").write_bytes(file_of({CONTAINER: {"worker.log": CONTENT.encode()}}))
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        services = (f"http://127.0.0.1:{server.getsockname()[1]}/ws/v1/history",)
        reader = logs(yarn, services=services, directory="/tmp/logs", local_root=str(tmp_path))
        assert ["".join(reader.read(ID)) for _ in range(5)] == [CONTENT] * 5
        server.setblocking(False)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):  # nobody else has come
            server.accept()


def test_wait_for_an_aggregation_that_hangs_ends_with_the_tail(yarn, monkeypatch):
    monkeypatch.setattr(tf_yarn_ops.follow.log_reader, "AGGREGATION_TIME", 0.2)
    assert "".join(logs(yarn, aggregation="RUNNING", tail="the tail").read(ID)).startswith("the tail")


def test_at_last_the_tail_with_the_command_to_type(yarn):
    text = "".join(logs(yarn, tail="ValueError: bad shape").read(ID))
    assert text == (
        "ValueError: bad shape\n(only the end, from the report; the whole log: "
        f"yarn logs -applicationId {ID} -containerId {CONTAINER} -log_files worker.log)\n"
    )


def test_nothing_anywhere_gives_the_command(yarn):
    with pytest.raises(LogMissing, match=f"type: yarn logs -applicationId {ID} -containerId {CONTAINER}") as raised:
        list(logs(yarn).read(ID))
    assert "forgotten" not in raised.value.hint and "log_server" in raised.value.hint


def test_a_task_that_is_not_there_or_never_ran(yarn):
    with pytest.raises(SpecInvalid, match=r"no task 'worker:1' \(did you mean 'worker:0'\?\); it has ps:0, worker:0"):
        list(logs(yarn).read(ID, "worker:1"))
    with pytest.raises(SpecInvalid, match=r"ps:0 of .* no log: nothing has run in a container of it. [A-Z_]+: \w"):
        list(logs(yarn).read(ID, "ps:0"))


def large_job(yarn, tmp_path, recorded=300):
    """An ended job of 300 tasks, and its record in the history."""
    tasks = tuple(
        TaskReport(f"worker:{index}", "succeeded", 0, container_id=f"container_{STAMP}_0001_01_{index:06}", starts=1)
        for index in range(300)
    )
    whole = JobReport(ID, user="ann", reason=Reason.SUCCEEDED, message="x", finished_at=STAMP / 1000, tasks=tasks)
    yarn.add(application(1, "FINISHED", finalStatus="SUCCEEDED", finishedTime=STAMP, user="ann",
                         diagnostics=verdict_text(whole)))  # fmt: skip
    cluster = Cluster(
        (yarn.url,), "ann", "ann", StorageFacts("hdfs://n", "hdfs://n", "/user/{user}/.skein", local_root=str(tmp_path))
    )
    if recorded:
        kept = replace(whole, tasks=tasks[:recorded], omitted_tasks=300 - recorded)
        add(cluster, build_record(build_status(kept, STAMP / 1000), CLIENT, STAMP / 1000))
    return cluster


def test_a_task_that_the_report_omits_is_found_in_the_record(yarn, tmp_path):
    cluster = large_job(yarn, tmp_path)
    session = Session(cluster)
    report = session.read_report(session.resourcemanager.get(ID))
    assert (len(report.tasks), report.omitted_tasks) == (300, 0)
    ended = read_yarn_report(session.resourcemanager.get(ID))
    assert len(ended.tasks) < 300 and session.finish(ended).tasks == report.tasks  # as a watcher does
    file = find_log(session.resourcemanager.get(ID), report, "worker:280")
    assert file.container_id.endswith("_000280") and file.name == "worker.log"
    with pytest.raises(LogMissing, match="_000280 -log_files worker"):  # found, but its node is gone
        list(Logs(session, environ={"PATH": "/none"}).read(ID, "worker:280"))


@pytest.mark.parametrize("recorded", [0, 2])
def test_a_task_that_report_and_history_lack_may_be_omitted(yarn, tmp_path, recorded):
    cluster = large_job(yarn, tmp_path, recorded)
    session = Session(cluster)
    application = session.resourcemanager.get(ID)
    report = session.read_report(application)
    assert len(report.tasks) > 50 and len(report.tasks) + report.omitted_tasks == 300
    with pytest.raises(
        LogMissing, match=f"omits {report.omitted_tasks} tasks.*-applicationId {ID} -log_files worker.l"
    ):
        find_log(application, report, "worker:299")
    assert choose_tasks(report, ["worker:299", "worker:1"]) == ["worker:1"]
    assert f"  and {report.omitted_tasks} more tasks, which neither " in "\n".join(describe(report, 0.0))


def test_an_application_that_never_ran_has_no_masters_log():
    waiting = application(1, "ACCEPTED")
    with pytest.raises(SpecInvalid, match="it does not run yet"):
        find_log(waiting, read_yarn_report(waiting), "coordinator")
    ended = application(1, "KILLED", finalStatus="KILLED")
    with pytest.raises(SpecInvalid, match="it never ran"):
        find_log(ended, read_yarn_report(ended), "coordinator")
    launched = ended | {"launchTime": STAMP}
    with pytest.raises(SpecInvalid, match="YARN, or a gateway before it, does not name its container"):
        find_log(launched, read_yarn_report(launched), "coordinator")


@pytest.mark.parametrize("state", ["RUNNING", "KILLED"])
def test_logs_that_yarn_does_not_show_are_refused(state):
    hidden = application(1, state, startedTime=0, user="ann")
    with pytest.raises(
        SubmissionRejected, match=r"belongs to ann, and YARN shows you none of its logs.*acls.view_users"
    ):
        find_log(hidden, read_yarn_report(hidden), "coordinator")


@pytest.mark.parametrize("report, task", [
    (JobReport(ID), "coordinator"), (JobReport(ID, reason=Reason.AM_FAILED), "master"),
    (JobReport(ID, reason=Reason.AM_FAILED, versions={"tf_yarn_ops": "1"}), "coordinator"),
])  # fmt: skip
def test_a_master_that_died_before_its_coordinator_has_skeins_log(report, task):
    assert default_task(report) == task
    assert report.reason is None or [*next_lines(report)] == [f"next: ytf logs {ID} --task {task}"]


def test_an_unknown_application(yarn):
    reader = logs(yarn)
    with pytest.raises(ApplicationNotFound):
        list(reader.read("application_1_0009"))


def test_default_task_without_a_failure():
    tasks = (TaskReport("ps:0"), TaskReport("chief:0"))
    assert default_task(JobReport(ID, tasks=tasks)) == "chief:0"
    assert default_task(JobReport(ID, tasks=tasks[:1])) == "ps:0"
    assert default_task(JobReport(ID)) == "coordinator"


def content_of(parts, window=None):
    """Return the content of an answer and its place in the log; the parts of the answer must follow one another."""
    found = list(unframed(parts, window))
    for (place, part), (following, _) in pairwise(found):
        assert following == place + len(part)
    return b"".join(part for _, part in found), found[0][0]


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_the_frame_is_found_however_the_text_is_cut(size):
    content = "".join(f"line {n}\n" for n in range(2000))
    text = framed(content).encode()
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert content_of(parts) == (content.encode(), 0)


@given(st.binary(max_size=3000) | st.just(b"LogContents:\nEnd of LogType:worker.log\n"), st.integers(1, 4000))
def test_log_that_yarn_aggregates_meanwhile_comes_once(content, size):
    """A node answers with the log on its disk, and then with the aggregated one in a frame of its own."""
    before, behind = framed("", length=len(content)).encode().split(b"\nEnd of LogType", 1)
    one = before + content + b"\nEnd of LogType" + behind
    text = one + one.replace(b"LOCAL", b"AGGREGATED")
    assert content_of([text[at : at + size] for at in range(0, len(text), size)]) == (content, 0)


@pytest.mark.parametrize("window", [0, 10, 100, 5000])
def test_the_end_of_a_log_comes_with_its_place(window):
    content = bytes(range(48, 98)) * 2
    last = content[-window:] if window else b""
    text = framed(last.decode(), length=len(content)).encode()
    assert content_of([text, b"more"], window) == (last, len(content) - len(last))


def test_a_server_that_adds_nothing():
    assert content_of([b"x" * 5000, b"y"]) == (b"x" * 5000 + b"y", 0)


def test_a_cancelled_reader_ends_between_two_chunks(yarn):
    """A log of 300 MB was shown for minutes after a signal."""
    yarn.pages[f"/ws/v1/node/containerlogs/{CONTAINER}/worker.log"] = ("text/plain", framed("x" * 10_000_000))
    looks = iter([False] * 3)
    reader = logs(yarn, cancelled=lambda: next(looks, True))
    assert 0 < len("".join(reader.read(ID))) < 9_000_000
    waiting = logs(yarn, aggregation="RUNNING", cancelled=lambda: True)
    yarn.pages.clear()
    assert list(waiting.content(LogFile(CONTAINER, "worker.log", None, "ann", ID), True)) == []


@pytest.mark.parametrize("size", [1, 7, 5000])
@pytest.mark.parametrize("window", [10, 100, 5000])
@pytest.mark.parametrize("offset", [0, 5, 95, 100, 120])
def test_read_from_an_offset_returns_the_rest_or_reports_the_gap(offset, window, size):
    content = bytes(range(48, 98)) * 2
    text = framed(content[-window:].decode(), length=len(content)).encode()
    cut = [text[at : at + size] for at in range(0, len(text), size)]
    reachable = len(content) - offset <= window
    begin = max(0, len(content) - window)
    assert list(grown(cut, offset, window)) == [(begin, content[offset:] if reachable else b"")]


def test_page_that_is_not_a_log_has_no_new_bytes():
    assert list(grown([b"<html>" * 1000], 0, 100)) == list(grown([], 0, 100)) == []


@pytest.mark.parametrize(
    ("field", "hostile"),
    [
        ("container_id", "c -out /tmp/x"),
        ("container_id", f"{CONTAINER} -out /tmp/x"),
        ("container_id", f"{CONTAINER}\n-out"),
        ("container_id", "-out"),
        ("container_id", "../../x"),
        ("log_url", "http://n:8042/node/containerlogs/c/ann/worker.log -out x"),
        ("log_url", "http://n:8042/node/containerlogs/c/ann/-out"),
        ("log_url", "http://n:8042/node/containerlogs/c/ann/.."),
        ("log_url", "http://n:8042/node/containerlogs/c/ann/$(id)"),
        ("task", "-out:0"),
        ("task", "x -out y:0"),
    ],
)
def test_a_report_adds_no_argument_to_yarn_logs(yarn, yarn_program, field, hostile):
    task = {"task": "worker:0", "container_id": CONTAINER, "log_url": None} | {field: hostile}
    own = JobReport.from_dict({"schema": 1, "application_id": ID, "tasks": [task]})
    yarn.add(application(1, "FINISHED", finalStatus="FAILED", finishedTime=STAMP, diagnostics=verdict_text(own)))
    (yarn_program / "output").write_text(framed(CONTENT))
    reader = logs(yarn, {"PATH": f"{yarn_program}:/bin:/usr/bin"})
    for item in own.tasks:
        try:
            file = find_log(yarn.apps[ID], own, item.task)
        except SpecInvalid:
            continue
        assert list(reader._from_yarn(file, None))
        given = (yarn_program / "arguments").read_text()
        assert re.fullmatch(
            rf"logs -applicationId {ID} -containerId container_[\w-]+ -log_files \w[\w.-]* -appOwner ann ann\n", given
        ), given
        assert shlex.split(file.command())[1:] == given.split()[:7]


@pytest.mark.parametrize("size", [1, 7, 60_000])
def test_bytes_before_an_offset_are_not_held(size):
    """A node that names a short log sends what it likes before the new bytes."""
    head, length = framed("", length=10_000_000).split("\nEnd")[0].encode(), 10_000_000
    parts = chain([head[:40], head[40:]], (b"x" * 60_000 for _ in count()))
    tracemalloc.start()
    found = next(grown(parts, length - size, length))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == (0, b"x" * size) and peak < 4_000_000


def stranger(gateway, answer):
    """Return a server whose `answer` writes to the socket, and the paths of its requests."""
    asked = []

    class Node(Handler):
        def do_GET(self):
            asked.append(self.path)
            self.close_connection = True
            kind = "text/html" if gateway else "text/plain"
            self.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n".encode())
            with contextlib.suppress(OSError):
                answer(self.wfile, len(asked))

    return running(Node), asked


def _longer_and_longer(wfile, number):
    wfile.write(b"\r\n" + framed("x" * 100, length=10 ** (8 + number)).encode())


def _drip(wfile, number):
    wfile.write(b"\r\n" + framed("", length=1000).partition("\nEnd")[0].encode() + b"<pre>")
    while True:
        wfile.write(b"x")
        wfile.flush()
        time.sleep(0.05)


def _drip_head(wfile, number):
    while True:
        wfile.write(b"A: b\r\n")
        wfile.flush()
        time.sleep(0.05)


def _flood(wfile, number):
    wfile.write(b"\r\n" + framed("", length=10**12).partition("\nEnd")[0].encode() + b"<pre>")
    while True:
        wfile.write(b"x\n" * 32768)


@pytest.mark.slow
@pytest.mark.parametrize("behind", ["node", "gateway"])
@pytest.mark.parametrize("answer", [_longer_and_longer, _drip, _drip_head, _flood])
def test_look_for_new_lines_ends_whatever_a_node_sends(yarn, answer, behind):
    server, asked = stranger(behind == "gateway", answer)
    with server as node:
        url = f"http://127.0.0.1:{node.server_address[1]}"
        address = f"{url}/gateway/default/yarn" if behind == "gateway" else yarn.url
        cluster = Cluster((address,), "ann", "ann", StorageFacts("hdfs://n", "hdfs://n", "/user/{user}/.skein"))
        cluster = replace(cluster, site=replace(cluster.site, request_timeout=0.1))
        file, began = LogFile(CONTAINER, "worker.log", url, "ann", ID), time.monotonic()
        with closing(Logs(Session(cluster), environ={"PATH": "/none"})) as reader:
            found = reader.new_bytes(file, 0)
            assert len(found or b"") <= 4 << 20 and len(asked) <= 3
            for _ in reader._from_node(file, 1000):
                pass
        assert time.monotonic() - began < 60


def test_output_of_yarn_logs_comes_piece_by_piece(yarn, yarn_program):
    """It was held in memory as a whole, and one without end filled it."""
    (yarn_program / "output").write_text(framed("", length=10**12).partition("\nEnd")[0] + "x" * 100_000)
    with (yarn_program / "yarn").open("a") as program:
        program.write("exec cat /dev/zero\n")
    reader, taken = logs(yarn, {"PATH": f"{yarn_program}:/bin:/usr/bin"}), 0
    file = LogFile(CONTAINER, "worker.log", None, "ann", ID)
    for _, part in reader._from_yarn(file, None):
        taken += len(part)
        if taken > 20_000_000:
            return
    raise AssertionError(f"{taken} bytes only")


OTHERS = f"container_{STAMP}_0002_01_000002"


@pytest.mark.parametrize("kind", ["", "e12_"])
@pytest.mark.parametrize("application", ["0002", "00010", "1_0001", "001"])
def test_container_of_another_application_has_no_log_here(yarn, application, kind):
    """A reader with more rights than the job's user would show a third's log as that of the job."""
    foreign = f"container_{kind}{STAMP}_{application}_01_000002"
    serve(yarn, foreign, "worker.log", framed("a third's"))
    reader = logs(yarn)
    own = report(yarn.url)
    hostile = replace(own, tasks=(replace(own.tasks[1], container_id=foreign),))
    with pytest.raises(SpecInvalid, match="is not one of its containers"):
        find_log(yarn.apps[ID], hostile, "worker:0")
    real = replace(own, tasks=(replace(own.tasks[1], container_id=CONTAINER.replace("r_", f"r_{kind}")),))
    assert find_log(yarn.apps[ID], real, "worker:0").container_id and reader


@pytest.mark.parametrize("behind, seen", [(CONTAINER, True), (OTHERS, False)])
def test_node_leads_to_the_log_of_the_same_container_only(yarn, behind, seen):
    """A NodeManager redirects to the log server; a stranger's server in place of a node could lead anywhere."""
    reader = logs(yarn)
    serve(yarn, behind, "worker.log", framed(CONTENT), base="/ws/v1/history")
    target = {"Location": f"{yarn.url}/ws/v1/history/containerlogs/{behind}/worker.log?x={CONTAINER}"}
    yarn.faults.append(lambda method, path: (302, target, "") if "/ws/v1/node/containerlogs" in path else None)
    file = LogFile(CONTAINER, "worker.log", yarn.url, "ann", ID)
    found = b"".join(part for _, part in reader._from_node(file, None))
    assert (found.decode() == CONTENT) is seen
    assert bool(reader.new_bytes(file, 0)) is seen
