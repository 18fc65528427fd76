"""TensorBoard behind the coordinator's tunnel and its own front, with a small program in place of TensorBoard."""

import base64
import http.client
import json
import os
import sys
import threading
import urllib.error
import urllib.request

import pytest

from support.appmaster import AppMaster
from support.http_server import Handler, running
from support.runtime_jobs import SHORT_HEARTBEAT, job, task
from support.waiting import until
from tf_yarn_ops.job.parts import TensorBoard
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common.committed_output import WORK, CommitPlan, Success, dump_success
from tf_yarn_ops.runtime.common.contract import DOCUMENT_TYPE
from tf_yarn_ops.runtime.common.file_storage import LocalFolder
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.tensorboard import page_script
from tf_yarn_ops.runtime.tensorboard.event_copies import EventCopies
from tf_yarn_ops.runtime.tensorboard.front import Front
from tf_yarn_ops.runtime.tensorboard.tensorboard_task import LINK, follow_link, refresh_copies
from tf_yarn_ops.terminal.summary import describe_tensorboard

#: Answers a request with what it has received, and the page like TensorBoard.
PAGE = (
    b"<!doctype html><html><head><title>x</title><style>@font-face{src:url(/font-roboto/a.woff2)}</style></head></html>"
)
PROGRAM = f"""\
#!{sys.executable}
import http.server, json, socket, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = {PAGE!r} if self.path == "/" else json.dumps(
            {{"method": self.command, "path": self.path, "type": self.headers.get("Content-Type"), "body": body.decode(),
              "words": sys.argv[1:]}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    do_POST = do_PUT = do_GET

class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()

port = int(sys.argv[sys.argv.index("--port") + 1])
Server(("127.0.0.1", port), Handler).serve_forever()
"""
GATE = "until [ -e go ]; do sleep 0.05; done"


@pytest.fixture
def board(tmp_path):
    """Return the variables with which a job finds the program ``tensorboard`` of these tests."""

    def write(text):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "tensorboard").write_text(text)
        (folder / "tensorboard").chmod(0o755)
        return {"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin"}

    return write


def get(url, **options):
    with urllib.request.urlopen(urllib.request.Request(url, **options), timeout=60) as answer:
        return answer.read()


def status_of(am):
    return json.loads(get(am.pages["ytf"] + "/status.json"))


@pytest.mark.slow
def test_page_leads_to_tensorboard_on_the_loopback_only(tmp_path, board):
    spec = job(
        GATE,
        ps=False,
        workers=1,
        output="/out",
        env=board(PROGRAM),
        tensorboard=TensorBoard(args="--samples_per_plugin 'images=100'", logdir="/logs"),
    )
    with AppMaster(tmp_path / "job", spec) as am:
        url = until(lambda: "ytf" in am.pages and status_of(am)["tensorboard_url"])
        assert url.endswith("/pages/tensorboard/")
        page = am.pages["tensorboard"]
        assert page.startswith("http://127.0.0.1:")
        seen = json.loads(get(page + "/data?run=a%2Fb"))
        assert (seen["method"], seen["path"], seen["body"]) == ("GET", "/data?run=a%2Fb", "")
        assert seen["words"][:4] == ["--logdir", "/logs", "--host", "127.0.0.1"]
        assert seen["words"][-2:] == ["--samples_per_plugin", "images=100"]
        line = json.dumps({"type": "a/b; boundary=x", "body": base64.b64encode(b"one\r\ntwo\n").decode()}).encode()
        seen = json.loads(get(page + "/series", method="PUT", data=line))
        assert (seen["method"], seen["type"], seen["body"]) == ("POST", "a/b; boundary=x", "one\r\ntwo\n")
        front = next(
            line.split()[-1] for line in am.container("tensorboard_0").log.splitlines() if "starts, round" in line
        )
        with pytest.raises((OSError, http.client.HTTPException)):  # without the job's certificate
            get(f"http://127.0.0.1:{front.rpartition(':')[2]}/")
        (am.container("worker_0").folder / "go").touch()
        report = am.wait()
        assert (report.reason, report.tensorboard_url) == (Reason.SUCCEEDED, url)
        assert task(report, "tensorboard:0").state == "stopped"


@pytest.mark.slow
def test_failing_tensorboard_is_reported_with_its_last_line(tmp_path, board):
    spec = job(
        GATE,
        ps=False,
        workers=1,
        output="/out",
        tensorboard=TensorBoard(linger=600),
        env=board("#!/bin/bash\necho 'No scheme for hdfs://x' >&2; exit 3\n"),
    )
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("the training goes on")
        assert "TensorBoard failed with exit code 3 on 127.0.0.1" in am.coordinator_log.read_text()
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(am.pages["tensorboard"] + "/")
        assert refused.value.code == 502
        assert refused.value.read().decode().startswith("TensorBoard does not answer; its task is failed: ")
        (am.container("worker_0").folder / "go").touch()
        report = am.wait()  # nobody waits for a TensorBoard that has ended
        assert (report.reason, report.tensorboard_url) == (Reason.SUCCEEDED, None)
        assert "No scheme for hdfs://x" in task(report, "tensorboard:0").log_tail


@pytest.mark.slow
def test_tensorboard_without_memory_is_reported_and_not_restarted(tmp_path, board):
    spec = job(GATE, ps=False, workers=1, output="/out", env=board(PROGRAM), tensorboard=TensorBoard(memory=512))
    with AppMaster(tmp_path / "job", spec) as am:
        until(lambda: "ytf" in am.pages and status_of(am)["tensorboard_url"])
        am.container("tensorboard_0").message = "663.7 MB of 512 MB physical memory used"
        am.container("tensorboard_0").kill()
        am.log_says("tensorboard_1 registered")
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(am.pages["tensorboard"] + "/")
        assert refused.value.read().decode() == (
            "TensorBoard does not answer; its task is failed: 512 MiB are too little, raise --tensorboard_memory: "
            "663.7 MB of 512 MB physical memory used\n"
        )
        until(lambda: status_of(am)["tensorboard_url"] is None)
        (am.container("worker_0").folder / "go").touch()
        report = am.wait()
        assert (report.reason, task(report, "tensorboard:0").state) == (Reason.SUCCEEDED, "failed")
        assert describe_tensorboard(report).startswith("failed: 512 MiB are too little")
        assert "starts, round" not in am.container("tensorboard_1").log


@pytest.mark.slow
def test_nobody_waits_for_a_tensorboard_that_ends_while_it_lingers(tmp_path, board):
    fields = {"output": "/out", "env": board(PROGRAM), "tensorboard": TensorBoard(linger=600)}
    with AppMaster(tmp_path / "job", job(GATE, ps=False, workers=1, deadlines=SHORT_HEARTBEAT, **fields)) as am:
        until(lambda: "ytf" in am.pages and status_of(am)["tensorboard_url"])
        (am.container("worker_0").folder / "go").touch()
        am.log_says("tensorboard:0 stays for 600 s")
        assert json.loads(get(am.pages["tensorboard"] + "/x"))["path"] == "/x"
        am.container("tensorboard_0").kill()
        assert am.wait().reason is Reason.SUCCEEDED


def test_tonys_port_is_set_for_the_chief_only(tmp_path):
    """Its programs start a TensorBoard of their own there."""
    tasks = {"chief": TaskSpec(), "worker": TaskSpec()}
    with AppMaster(tmp_path / "job", job("echo ${TB_PORT:-none} > port", tasks=tasks)) as am:
        assert am.wait().reason is Reason.SUCCEEDED
        ports = [(am.container(name).folder / "port").read_text().strip() for name in ("chief_0", "worker_0")]
    assert 1024 < int(ports[0]) < 65536 and ports[1] == "none"


# -- the front -------------------------------------------------------------------------------------


class Upstream(Handler):
    """Answers like TensorBoard."""

    def do_GET(self):
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        body = PAGE if self.path == "/" else b"x" * 300_000 if self.path == "/large" else b""
        headers = (
            {"Location": f"http://127.0.0.1:{self.server.server_port}/there/?a=1"} if self.path == "/moved" else {}
        )
        if self.path == "/data/runs":
            headers["Content-Type"] = "application/json; charset=utf-8"
        status = {"/moved": 302, "/none": 204}.get(self.path, 200)
        self.reply(status, {**headers, "Content-Security-Policy": "script-src 'self'"}, body)


@pytest.fixture
def front():
    """Yield a front before an `Upstream`, with the requests that this one has seen."""
    with running(Upstream) as upstream:
        upstream.seen = []
        front = Front(("127.0.0.1", 0), upstream.server_port)
        threading.Thread(target=front.serve_forever, daemon=True).start()
        front.seen = upstream.seen
        yield front
        front.shutdown()
        front.server_close()


def ask(front, path, method="GET", body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", front.server_port, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def test_the_page_gets_the_script_first_and_fonts_that_a_proxy_finds(front):
    status, headers, page = ask(front, "/", headers={"Accept-Encoding": "gzip"})
    assert status == 200 and page.startswith(b'<!doctype html><html><head><script src="ytf-post.js"></script><title>')
    assert b"url(font-roboto/a.woff2)" in page and headers["Content-Security-Policy"] == "script-src 'self'"
    assert "Accept-Encoding" not in front.seen[0][2] or front.seen[0][2]["Accept-Encoding"] == "identity"
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "SAMEORIGIN"
    status, headers, script = ask(front, "/ytf-post.js")
    assert headers["Content-Type"].startswith("text/javascript") and script == page_script.SCRIPT.encode()


def test_large_answers_redirects_and_refusals_pass(front):
    assert ask(front, "/large")[2] == b"x" * 300_000
    assert ask(front, "/moved")[1]["Location"] == "there/?a=1"
    assert ask(front, "/none")[0] == 204
    assert ask(front, "/data/runs")[1]["Content-Type"] == DOCUMENT_TYPE
    assert ask(front, "/x", "POST", b"", {"Content-Length": "99999999999"})[0] == 413
    assert ask(front, "/x", "PUT", b"no json", {"Content-Type": "text/plain"})[0] == 501  # as TensorBoard answers it


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"type": "a", "body": "%"}', b'{"type": "a", "body": 1}', b"\xff"]
)
def test_another_body_is_not_a_post(body):
    assert page_script.decode_post(body) is None


def test_a_front_without_tensorboard_says_so(front):
    front.target = 1
    status, _, text = ask(front, "/")
    assert status == 502 and b"TensorBoard does not answer" in text


class Files(LocalFolder):
    def exists(self, path):
        return os.path.exists(path)


@pytest.mark.parametrize("mode", ["replace", "version"])
def test_board_follows_the_result_of_its_own_application(tmp_path, monkeypatch, mode):
    """Between the seal and the last rename there is neither its working folder nor its result, but that of another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YTF_APPLICATION_ID", "local_1_2")
    plan, files = CommitPlan(mode, str(tmp_path / "models" / "digits")), Files("/")
    work, older = plan.beside(WORK, "local_1_2"), plan.result(1)
    for folder, application_id in ((work, "local_1_2"), (older, "local_1_1")):
        os.makedirs(folder)
        files.create(f"{folder}/_SUCCESS", dump_success(Success(application_id, "", 0, {})), 0o644)
    os.symlink(work, LINK)
    copies = EventCopies(files, work, "copies")

    def follow():
        follow_link(work, plan)
        refresh_copies(copies, files, plan)
        return {os.readlink(LINK), copies.path}

    assert follow() == {work}
    os.rename(work, tmp_path / "sealed")
    assert follow() == {work}
    if mode == "replace":
        os.rename(older, tmp_path / "sealed" / "_ytf_previous")
    os.rename(tmp_path / "sealed", plan.result(2))
    assert follow() == {plan.result(2)}
