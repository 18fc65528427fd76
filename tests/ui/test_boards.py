"""The TensorBoards that ``ytf ui`` starts for ended jobs, with a small program in place of TensorBoard."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest

from support.fake_webhdfs import serving_files
from support.fake_yarn import application
from support.programs import ROOT, SUBMIT, YTF
from support.records import application_id, keep, record
from support.records_served import FOLDER, serving_pages
from support.staging_place import USER
from support.waiting import lives, until
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts
from tf_yarn_ops.hadoop.transport import RestUnavailable
from tf_yarn_ops.staging.staging_directory import StagingDirectory
from tf_yarn_ops.ui.boards import Boards

#: Serves a page with the names of its event files; has a child, and writes the ids of both.
PROGRAM = f"""\
#!{sys.executable}
import http.server, os, subprocess, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
child = subprocess.Popen(["tail", "-f", "/dev/null"])

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.removeprefix(words["--path_prefix"])
        if path == "/to":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:" + words["--port"] + words["--path_prefix"] + "/?a=b")
            self.end_headers()
            return
        length = int(self.headers.get("Content-Length") or 0)
        names = sorted(name for _, _, names in os.walk(words["--logdir"]) for name in names)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "its=own")
        self.end_headers()
        self.wfile.write(" ".join([path, *names, "url(/font-roboto/x)"]).encode() + self.rfile.read(length))

    do_POST = do_GET

with open(__file__ + ".pids", "a") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}\\n")
http.server.ThreadingHTTPServer(("127.0.0.1", int(words["--port"])), Handler).serve_forever()
"""
OURS = {"Sec-Fetch-Site": "same-origin"}
PAGE = f"/jobs/{application_id(1)}"
BOARD = f"{PAGE}/tensorboard"


class Program:
    """The program on PATH, and the processes that it was."""

    def __init__(self, folder):
        folder.mkdir()
        self.path = folder / "tensorboard"
        self.path.write_text(PROGRAM)
        self.path.chmod(0o755)

    @property
    def pids(self):
        starts = self.path.with_name("tensorboard.pids")
        return [int(pid) for pid in starts.read_text().split()] if starts.exists() else []

    def ended(self):
        return not any(lives(pid) for pid in self.pids)


@pytest.fixture
def program(tmp_path, monkeypatch):
    made = Program(tmp_path / "bin")
    monkeypatch.setattr(sys, "executable", str(made.path.with_name("python")))
    return made


@pytest.fixture
def job(place, tmp_path):
    """Keep the record of a job with event files in the cluster's file system."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models/events.out.tfevents.1").write_bytes(b"x")
    (tmp_path / "models/weights.bin").write_bytes(b"x")
    made = {**record(1, user=USER), "output_path": "viewfs://mini/models"}
    keep(StagingDirectory(place).filesystem, place.history, made)


@pytest.fixture
def boards(place):
    made = Boards(place)
    yield made
    made.close()


@pytest.fixture
def browser(place, boards, job, program):
    with (
        serving_pages(place, boards=boards) as pages,
        httpx.Client(base_url=pages.partition("?")[0], trust_env=False) as client,
    ):
        client.get(pages)
        yield client


def start(browser):
    """Press the button; return the page of TensorBoard once it listens."""
    pressed = browser.post(BOARD, headers=OURS)
    assert (pressed.status_code, pressed.headers["location"]) == (303, f"{FOLDER}{BOARD}/"), pressed.text

    def page():
        found = browser.get(f"{BOARD}/")
        return None if found.headers.get("refresh") else found

    return until(page)


def test_ended_job_starts_tensorboard_behind_the_pages(browser, program):
    assert f'<form method="post" action="{FOLDER}{BOARD}"><button>Start TensorBoard</button>' in browser.get(PAGE).text
    shown = start(browser)
    assert shown.text == "/ events.out.tfevents.1 url(font-roboto/x)" and "set-cookie" not in shown.headers
    assert browser.get(f"{BOARD}/data/x?y=%2F&z").text.startswith("/data/x?y=%2F&z ")
    assert browser.get(f"{BOARD}/to").headers["location"] == f"{FOLDER}{BOARD}/?a=b"
    assert browser.post(f"{BOARD}/data", headers=OURS, content=b" asked").text.endswith(" asked")
    assert start(browser).status_code == 200 and len(program.pids) == 2, "one process and its child"


def test_tensorboard_ends_with_its_processes_and_its_copies(browser, boards, program, tmp_path, monkeypatch):
    start(browser)
    folder = boards.find(application_id(1)).local._folder
    boards.close()
    until(program.ended)
    assert program.pids and not folder.exists()


def test_only_the_page_itself_starts_tensorboard(browser, program):
    for given in ({}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "none"}):
        assert browser.post(BOARD, headers=given).status_code == 403
    assert browser.get(BOARD).status_code == 405
    assert (
        httpx.post(f"{str(browser.base_url).rstrip('/')}{BOARD}", headers=OURS, trust_env=False).status_code == 403
    ), "without the key"
    assert browser.get(f"{BOARD}/").headers["location"] == FOLDER + PAGE
    assert not program.pids


def test_job_without_event_files_or_end_has_no_button(browser, place, yarn, program):
    keep(StagingDirectory(place).filesystem, place.history, {**record(2, user=USER), "output_path": None})
    yarn.add(application(9, "RUNNING"))
    for number in (2, 9, 77):
        assert "<form" not in browser.get(f"/jobs/{application_id(number)}").text
        refused = browser.post(f"/jobs/{application_id(number)}/tensorboard", headers=OURS)
        assert refused.status_code == 400 and "is no ended job with an output path" in refused.text
    assert not program.pids


@pytest.fixture
def team(yarn):
    """Return a function that gives a client of a team's pages for a reader, and the file system, whose user is ann."""
    with serving_files() as files, contextlib.ExitStack() as stack:
        storage = StorageFacts("hdfs://mini", "hdfs://mini", "/user/{user}/.skein", webhdfs=(files.url,))
        cluster = Cluster((yarn.url,), "ytf", "ytf", storage)
        own = cluster.acting_for("ann")
        places = ("hdfs:///models", "hdfs://mini/models", "hdfs://other:8020/models", "file:///models", "/models")
        for number, place in enumerate(places, 1):
            made = record(number, user="ann", options={"acls": {"view_users": ["bob"]}})
            keep(StagingDirectory(own).filesystem, own.history, {**made, "output_path": place})
        files.files["/models/events.out.tfevents.1"] = b"x"
        files.requests.clear()
        boards = stack.enter_context(contextlib.closing(Boards(cluster, team=True)))
        pages = stack.enter_context(serving_pages(cluster, "X-User", boards)).partition("?")[0]

        def reader(name):
            return stack.enter_context(httpx.Client(base_url=pages, trust_env=False, headers={"X-User": name, **OURS}))

        yield reader, files


@pytest.mark.slow
def test_tensorboard_of_a_team_reads_as_the_owner_of_the_job(team, program):
    """The owner names the path, so the rights of the one who runs ytf ui must not count.

    TensorBoard's projector opens the paths that its file names, with those rights.
    """
    reader, files = team
    files.files["/models/plugins/org_tensorflow_tensorboard_projector/projector_config.pbtxt"] = b"sprite..."
    bob, eve = reader("bob"), reader("eve")
    assert "Start TensorBoard" in bob.get(PAGE).text
    assert eve.post(BOARD).status_code == 400 and not program.pids
    assert bob.post(BOARD).status_code == 303
    shown = until(lambda: None if (found := bob.get(f"{BOARD}/")).headers.get("refresh") else found)
    assert "events.out.tfevents.1" in shown.text and "projector" not in shown.text
    opened = [(at["user.name"], at.get("doas")) for _, _, path, at in files.requests if path.startswith("/models")]
    assert len(opened) >= 2 and set(opened) == {("ytf", "ann")}
    for path in (f"{BOARD}/", f"{BOARD}/events.out.tfevents.1"):
        assert eve.get(path).status_code == 303 and "tfevents" not in eve.get(path).text


@pytest.mark.slow
def test_tensorboard_of_a_team_opens_the_hdfs_of_the_cluster_only(team, program):
    """Of other places this machine's rights count, or a NameNode that the owner of the job has chosen."""
    bob = team[0]("bob")
    offered = [
        number for number in range(1, 6) if "Start TensorBoard" in bob.get(f"/jobs/{application_id(number)}").text
    ]
    assert offered == [1, 2]
    for number in (3, 4, 5):
        assert bob.post(f"/jobs/{application_id(number)}/tensorboard").status_code == 400
    assert not program.pids


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("missing", "TensorBoard is not installed on this machine; pip install tensorboard"),
        ("failing", "TensorBoard ended with exit code 3"),
        ("no files", "viewfs://mini/models does not exist"),
    ],
)
def test_tensorboard_that_does_not_start_is_reported(browser, program, tmp_path, monkeypatch, fault, says):
    with monkeypatch.context() as patched:
        if fault == "missing":
            program.path.unlink()
            patched.setenv("PATH", "/nowhere")
        elif fault == "failing":
            program.path.write_text("#!/bin/sh\nexit 3\n")
        else:
            (tmp_path / "models").rename(tmp_path / "moved")
        failed = start(browser)
    assert failed.status_code == 500 and says in failed.text
    if fault == "no files":
        (tmp_path / "moved").rename(tmp_path / "models")
    program.path.write_text(PROGRAM)
    program.path.chmod(0o755)
    assert start(browser).status_code == 200


@pytest.mark.parametrize("output", ["hdfs://[", "hdfs://[x]/a"])
def test_job_whose_output_is_no_url_has_a_page_without_tensorboard(place, browser, output):
    made = {**record(2, user=USER), "output_path": output}
    keep(StagingDirectory(place).filesystem, place.history, made)
    page = browser.get(PAGE.replace(application_id(1), application_id(2)))
    assert page.status_code == 200 and "/tensorboard" not in page.text
    with pytest.raises(RestUnavailable, match=r"'hdfs://\[.*' is not a URL"):
        place.open_path(output)


def test_tensorboard_that_nobody_looks_at_ends(place, job, program):
    boards = Boards(place, idle_seconds=0.2)
    boards.start(application_id(1), USER, "viewfs://mini/models", BOARD)
    until(lambda: program.pids and program.ended() and boards.find(application_id(1)) is None)
    boards.close()


@pytest.mark.slow
def test_few_tensorboards_run_at_the_same_time(place, job, boards, program):
    for number in range(5):
        boards.start(application_id(number), USER, "viewfs://mini/models", BOARD)
        until(lambda number=number: boards.find(application_id(number)).listens)
    assert boards.find(application_id(0)) is None
    until(lambda: [lives(pid) for pid in program.pids] == [False] * 2 + [True] * 8)


@pytest.mark.slow
def test_failed_tensorboard_that_starts_again_ends_no_other(place, job, boards, program):
    for number in range(4):
        boards.start(application_id(number), USER, "viewfs://mini/" + ("models" if number else "none"), BOARD)
        until(lambda number=number: (found := boards.find(application_id(number))).listens or found.fault)
    assert "viewfs://mini/none does not exist" in boards.find(application_id(0)).fault
    boards.start(application_id(0), USER, "viewfs://mini/models", BOARD)
    assert all(boards.find(application_id(number)) for number in range(4))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_tensorboard_ends_with_ytf_ui(tmp_path, number):
    made = Program(tmp_path / "bin")
    environ = {
        **os.environ,
        "YTF_SITE": "",
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "HADOOP_USER_NAME": USER,
    }
    submitted = subprocess.run(
        [*SUBMIT, "--local", "-r", "worker:1", "-o", str(tmp_path), "true"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    name = re.search(r"local_\d+_\d+", submitted.stdout)[0]
    # The program is looked for beside the interpreter first.
    words = [sys.executable, "-c", f"import sys; sys.executable = {str(made.path.with_name('python'))!r}; {YTF[2]}"]
    ui = subprocess.Popen(
        [*words, "ui", "--resourcemanager", "local://", "--no-browser"], env=environ, stderr=subprocess.PIPE, text=True
    )
    try:
        pages = re.search(r"http://\S+", ui.stderr.readline())[0]
        with httpx.Client(base_url=pages.partition("?")[0], trust_env=False) as client:
            client.base_url = client.base_url.join(client.get(pages).headers["location"])
            assert client.post(f"/jobs/{name}/tensorboard", headers=OURS).status_code == 303
            until(lambda: len(made.pids) == 2 and client.get(f"/jobs/{name}/tensorboard/").text.startswith("/ "))
        ui.send_signal(number)
        until(lambda: not lives(made.pids[0]))
        if number == signal.SIGTERM:
            assert ui.wait(60) == 143 and not list(tmp_path.glob("ytf-tensorboard-*"))
            until(made.ended)
    finally:
        for pid in filter(lives, made.pids):  # of the child, which unlike TensorBoard's does not end with its parent
            os.kill(pid, signal.SIGKILL)
        ui.kill()
        ui.communicate()
