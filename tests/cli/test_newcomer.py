"""The mistakes of a first hour: what a person types, the exit code, the line that helps, and what is left behind.

The cases are numbered as in the trial with 44 of them. Those that need a minicluster, a secured or a broken machine are
tests beside that code: 24 ``secure/test_bare_nodes.py``, 29 ``launch/test_launcher_cluster.py``, 31, 32, 35
``minicluster/test_cluster_folder.py``, 33, 37 ``minicluster/test_commands.py``, 36 ``minicluster/test_java.py``, 38
``minicluster/test_hadoop.py``, 44 ``launch/test_launcher.py``. The minicluster of 39 no longer makes an archive of classes.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from support.programs import SUBMIT, YTF, call
from support.waiting import until
from tf_yarn_ops import JobSpec, Launcher, TaskSpec, TfYarnError
from tf_yarn_ops.cli import main, submit_main
from tf_yarn_ops.hadoop.cluster import local

pytestmark = pytest.mark.slow

UNKNOWN = "application_1700000000000_0099"
LOCAL = [*SUBMIT, "--local", "-r", "worker:1"]
#: Binds the port that the agent holds for the task.
BINDS = f"""exec {sys.executable} -c 'import os, socket; socket.create_server(("", int(os.environ["YTF_PORT"])))'"""


#: The most natural program of Keras.
FIT = """
import keras, numpy, tensorflow

with tensorflow.distribute.MultiWorkerMirroredStrategy().scope():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
model.fit(numpy.ones((64, 2)), numpy.ones((64, 1)), batch_size=16)
"""
#: What a Hadoop daemon answers at its port of RPC (Server.java, RECEIVED_HTTP_REQ_RESPONSE).
IPC = (
    "It looks like you are making an HTTP request to a Hadoop IPC port. This is not the correct port for the web "
    "interface on this daemon.\r\n"
)


#: What other servers answer to a request for a ResourceManager.
STRANGERS = {
    "rpc": (404, {"Content-type": "text/plain"}, IPC),
    "namenode": (404, {"Content-type": "text/html"}, "<html><title>Error 404 Not Found</title></html>"),
    "web": (200, {"Content-type": "text/html"}, "<html>It works!</html>"),
}


class Case(NamedTuple):
    """What is typed, the exit code, texts that stdout or stderr have to hold, and the number of jobs that are left."""

    words: list[str]
    code: int
    shown: tuple[str, ...]
    jobs: int = 0


CASES = {
    "1 no configuration, ytf-submit": Case(
        [*SUBMIT, "-r", "worker:1", "true"],
        2,
        (
            "no ResourceManager is known. Give --resourcemanager http://host:8088",
            "ytf minicluster up",
            "ytf-submit --local",
        ),
    ),
    "1 no configuration, list": Case([*YTF, "list"], 2, ("no ResourceManager is known",)),
    "1 no configuration, doctor": Case([*YTF, "doctor"], 2, ("no ResourceManager is known", "1 fault")),
    "2 wrong port": Case(
        [*SUBMIT, "--resourcemanager", "http://localhost:1", "-r", "worker:1", "true"],
        4,
        ("no ResourceManager answers at http://localhost:1: [Errno 111] Connection refused. Check the address",),
    ),
    "3 wrong host name": Case(
        [*SUBMIT, "--resourcemanager", "http://nosuch.invalid:8088", "-r", "worker:1", "true"],
        4,
        ("no ResourceManager answers at http://nosuch.invalid:8088",),
    ),
    "4 host without scheme and port": Case(
        [*YTF, "list", "--resourcemanager", "nosuch.invalid"], 4, ("http://nosuch.invalid:8088",)
    ),
    "5 URL of the browser": Case([*YTF, "list", "--resourcemanager", "{yarn}/cluster/apps/RUNNING"], 0, ("no ",)),
    "6 https for http": Case(
        [*YTF, "list", "--resourcemanager", "{https}"], 4, ("does not speak https", "write http://")
    ),
    "7 port of RPC": Case(
        [*YTF, "list", "--resourcemanager", "{rpc}"],
        4,
        ("is no YARN ResourceManager", "HTTP request to a Hadoop IPC port", "http://host:8088"),
    ),
    "8 URL of the NameNode": Case(
        [*YTF, "list", "--resourcemanager", "{namenode}"], 4, ("is no YARN ResourceManager", "http://host:8088")
    ),
    "9 another web server": Case([*YTF, "list", "--resourcemanager", "{web}"], 4, ("is no YARN ResourceManager",)),
    "10 a server that never answers": Case(
        [*YTF, "list", "--resourcemanager", "{silent}"], 4, ("no ResourceManager answers at", "timed out")
    ),
    "11 -r with =": Case(
        [*SUBMIT, "--local", "-r", "worker=2", "true"],
        2,
        ("cluster_requirement, item 1 'worker=2': expected task_type:instances, for example ps:2,worker:4",),
    ),
    "12 -r misspelt twice": Case(
        [*SUBMIT, "--local", "-r", "wroker:two", "true"],
        2,
        (
            "2 faults in the request",
            "'two' is not a whole number of at least 1",
            "'wroker' looks like a misspelt 'worker'",
        ),
    ),
    "13 -r with 0": Case(
        [*SUBMIT, "--local", "-r", "worker:0", "true"], 2, ("'0' is not a whole number of at least 1",)
    ),
    "14 no -r": Case([*SUBMIT, "--local", "true"], 2, ("cluster_requirement: missing; say which tasks the job has",)),
    "14 no command": Case([*LOCAL], 2, ("task_command: missing; worker would have nothing to run",)),
    "14 nothing": Case(
        [*SUBMIT], 2, ("cluster_requirement: missing", "task_command: missing; say what every task runs")
    ),
    "15 command without quotes": Case(
        [*LOCAL, "python", "train.py", "--steps", "3"],
        2,
        ("Options of your own program belong to the task_command: quote it as one word",),
    ),
    "16 two words": Case(
        [*SUBMIT, "--local", "-r", "wor", "ker:1", "true"], 2, ("2 words were given; quote the whole command",)
    ),
    "17 misspelt option": Case(
        [*LOCAL, "--memroy", "3", "true"], 2, ("No such option '--memroy' (did you mean '--task_memory'?)",)
    ),
    "18 file missing": Case(
        [*LOCAL, "-s", "nosuch.py", "python $DTF_TASK_SCRIPT"], 2, ("script: there is no nosuch.py on this machine",)
    ),
    "19 several faults": Case(
        [
            *LOCAL,
            "-m",
            "abc",
            "-c",
            "x",
            "--environment",
            "/no/such",
            "-s",
            "nosuch.py",
            "--file",
            "a=no.csv",
            "--file",
            "./a=b",
            "true",
        ],
        2,
        (
            "6 faults in the request",
            "script: there is no nosuch.py on this machine",
            "file: there is no no.csv on this machine",
            "file: there is no a=b on this machine",
            "write MiB (8192) or a unit",
            "task_vcores 'x'",
            "'/no/such' is not an environment; give python://",
        ),
    ),
    "20 broken YAML": Case(
        [*SUBMIT, "--local", "--spec", "broken.yaml"], 2, ("'broken.yaml' can't be read", "line 2, column 2")
    ),
    "21 unknown key and no text": Case(
        [*SUBMIT, "--local", "--spec", "unknown.yaml"],
        2,
        ("tasks.worker.instanses: unknown key (did you mean 'instances'?)", "command: True is not a text"),
    ),
    "22 more than a container may have": Case(
        [*SUBMIT, "--resourcemanager", "{yarn}", "-m", "500 GiB", "-r", "worker:1", "true"],
        3,
        ("512000 MiB", "maximum allocation"),
    ),
    "23 three tasks of the default size, strict": Case(
        [*SUBMIT, "--resourcemanager", "{yarn}", "--strict_placement", "-r", "worker:3", "true"],
        3,
        ("the job asks for 25600 MiB", "have 16384 MiB", "ask for less memory per task (at most 8192 MiB now)"),
    ),
    "25 environment that is not there": Case(
        [*LOCAL, "--environment", "python:///no/such", "true"],
        2,
        ("environment: there is no /no/such on this machine",),
    ),
    "26 double quotes: python without arguments": Case(
        [*LOCAL, "-s", "train.py", f"{sys.executable} "], 0, ("warning: ", "single quotes", "SUCCEEDED"), jobs=1
    ),
    "26 a program that asks": Case([*LOCAL, f"{sys.executable} -c 'input()'"], 1, ("EOFError",), jobs=1),
    "27 own port": Case(
        [*LOCAL, BINDS], 1, ("Address already in use", "Its reserved port", "set hold_port to false"), jobs=1
    ),
    "30 blanks and umlauts": Case(
        [*LOCAL, "-n", "Zähler 1", "-s", "mein prögramm.py", f'{sys.executable} "$DTF_TASK_SCRIPT"'],
        0,
        ("Zähler 1", "worker:0 | grüße"),
        jobs=1,
    ),
    "34 home that can't be written": Case(
        [*SUBMIT, "--resourcemanager", "local:///proc/nohome", "-r", "worker:1", "true"],
        2,
        ("/proc/nohome", "can't be written", "local:///folder"),
    ),
    "40 unknown application": Case([*YTF, "report", "--resourcemanager", "{yarn}", UNKNOWN], 9, (f"{UNKNOWN} LOST",)),
    "40 misspelt id": Case(
        [*YTF, "report", "aplication_1_1"], 2, ("'aplication_1_1' is not the id of an application",)
    ),
    "40 misspelt command": Case(
        [*YTF, "minicluter"], 2, ("There is no command 'minicluter' (did you mean 'minicluster'?)",)
    ),
}


@pytest.fixture
def environ(tmp_path):
    """Return the variables of a person who has configured nothing, in a folder with some files."""
    files = {
        "train.py": "",
        "mein prögramm.py": "print('grüße')",
        "broken.yaml": "a: [1\nb: 2\n",
        "unknown.yaml": "command: true\ntasks: {worker: {instanses: 2}}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    hidden = ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR", "JAVA_HOME", "YTF_MINICLUSTER_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    (tmp_path / "site.yaml").write_text("request_timeout: 2")
    return {
        **kept,
        "YTF_SITE": str(tmp_path / "site.yaml"),
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "LANG": "C.UTF-8",
    }


def jobs_below(folder):
    """Return the final states of the jobs of this machine."""
    return [job["finalStatus"] for job in local(folder / "state" / "tf_yarn_ops").backend().find()]


@pytest.fixture
def silent():
    """Return the address of a server that accepts a connection, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_mistake_is_answered_with_what_to_do_next(case, environ, tmp_path, monkeypatch, yarn, silent):
    before = set(tmp_path.iterdir())
    urls = dict.fromkeys(["yarn", *STRANGERS], yarn.url) | {"https": yarn.url.replace("http:", "https:")}
    urls["silent"] = silent
    if answers := [answer for name, answer in STRANGERS.items() if f"{{{name}}}" in case.words]:
        yarn.faults.append(lambda method, path: answers[0])
    words = [word.format(**urls) if word.startswith("{") else word for word in case.words]
    monkeypatch.chdir(tmp_path)
    if case.jobs:
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    else:
        with mock.patch.dict(os.environ, environ, clear=True):
            done = call(submit_main if words[:3] == SUBMIT else main, *words[3:])
    shown = done.stdout + done.stderr
    assert done.returncode == case.code, shown
    assert [text for text in case.shown if text not in shown] == [], shown
    assert "Traceback (most" not in shown or "worker:0" in shown
    assert yarn.apps == {} and len(jobs_below(tmp_path)) == case.jobs
    assert {path.name for path in set(tmp_path.iterdir()) - before} <= ({"state"} if case.jobs else set())


@pytest.fixture
def with_files(yarn, tmp_path):
    """Return the folder that is the file system of the fake ResourceManager's cluster."""
    folder = tmp_path / "hdfs"
    folder.mkdir()
    yarn.conf = {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{folder}",
        "yarn.application.classpath": "/opt/hadoop/*",
    }
    return folder


def test_23_job_larger_than_the_cluster_is_warned_of(environ, tmp_path, yarn, with_files):
    done = subprocess.run(
        [*SUBMIT, "--resourcemanager", yarn.url, "-r", "worker:3", "true"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stdout.split()) == (0, list(yarn.apps)), done.stderr
    assert "the job asks for 25600 MiB" in done.stderr and "have 16384 MiB" in done.stderr
    assert "ask for less memory per task (at most 8192 MiB now)" in done.stderr


@pytest.mark.matrix
@pytest.mark.timeout(600)
def test_28_keras_fit_of_several_workers_says_what_to_do(environ, tmp_path):
    (tmp_path / "fit.py").write_text(FIT)
    done = subprocess.run(
        [*SUBMIT, "--local", "-r", "worker:2", "-s", "fit.py", f"{sys.executable} $DTF_TASK_SCRIPT"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1 and "PerReplica" in done.stderr, done.stderr
    assert "s: Keras 3's model.fit can't train with TensorFlow in several workers" in done.stderr
    assert "add --env TF_USE_LEGACY_KERAS=1" in done.stderr and "failed first: exit 1" in done.stderr
    assert jobs_below(tmp_path) == ["FAILED"]


def test_42_ctrl_c_ends_the_upload_of_a_large_script(environ, tmp_path, yarn, with_files):
    with open(tmp_path / "large.py", "wb") as file:
        file.truncate(5 * 2**30)
    shown = tmp_path / "shown"
    with shown.open("w") as stderr:
        client = subprocess.Popen(
            [
                *SUBMIT,
                "--resourcemanager",
                yarn.url,
                "--wait",
                "-r",
                "worker:1",
                "-s",
                "large.py",
                "python $DTF_TASK_SCRIPT",
            ],
            env=environ,
            cwd=tmp_path,
            stdout=stderr,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
        )
    until(
        lambda: re.search(r"reading large\.py: \d+ of 5120 MiB", shown.read_text()), what="the first line of progress"
    )
    client.send_signal(signal.SIGINT)
    assert client.wait(timeout=60) == 130
    assert "cancelled before the application was submitted" in shown.read_text(), shown.read_text()
    assert "next: ytf list" in shown.read_text().splitlines()[-1]
    assert yarn.apps == {} and list(with_files.rglob("*large*")) == []


def test_41_stopped_client_goes_on_and_ctrl_c_kills(environ, tmp_path):
    started = tmp_path / "started"
    client = subprocess.Popen(
        [*LOCAL, f"echo $$ > {started}; exec tail -f /dev/null"],
        env=environ,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    worker = int(until(lambda: started.exists() and started.read_text(), what="the start of the task"))
    client.send_signal(signal.SIGSTOP)
    until(lambda: re.search(r"^State:\s+T", Path(f"/proc/{client.pid}/status").read_text(), re.M))
    assert os.path.exists(f"/proc/{worker}")
    client.send_signal(signal.SIGCONT)
    client.send_signal(signal.SIGINT)
    _, shown = client.communicate(timeout=60)
    assert client.returncode == 130 and "KILLED" in shown
    assert jobs_below(tmp_path) == ["KILLED"] and not os.path.exists(f"/proc/{worker}")


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: JobSpec(tasks={"worker": 1}, command="x", comand="y"), TypeError, "comand"),  # type: ignore[call-arg]
        (
            lambda: JobSpec(tasks={"worker": TaskSpec(memory="lots")}, command="x"),
            TfYarnError,
            "'lots' is not an amount of memory",
        ),
        (lambda: JobSpec(tasks={"worker": 1}), TfYarnError, "command: missing; worker would have nothing to run"),
        (
            lambda: Launcher(local("/proc/nohome")).submit(JobSpec(tasks={"worker": 1}, command="x")),
            TfYarnError,
            "can't be written",
        ),
    ],
    ids=["argument", "memory", "command", "folder"],
)
def test_43_python_raises_the_texts_of_the_command_line(call, error, text):
    with pytest.raises(error, match=text):
        call()
