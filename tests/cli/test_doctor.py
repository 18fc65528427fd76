"""``ytf doctor``: words in, lines and exit codes out."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import click
import pytest

from support.fake_yarn import closed_address
from support.programs import ROOT, YTF, run_here
from support.waiting import until
from tf_yarn_ops.cli.doctor import result_lines, summary_line
from tf_yarn_ops.hadoop.cluster import current_user

GOLDEN = Path(__file__).parent / "golden" / "doctor.txt"
USER = current_user({})
LEAF = {
    "type": "capacitySchedulerLeafQueueInfo",
    "queueName": "default",
    "queuePath": "root.default",
    "state": "RUNNING",
}


@pytest.fixture
def place(yarn, tmp_path):
    """Return a fake cluster whose file system is a folder of the test."""
    tmp_path.chmod(0o755)
    yarn.conf |= {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}",
        "yarn.log-aggregation-enable": "false",
    }
    yarn.rights = {"SUBMIT_APPLICATIONS": True, "ADMINISTER_QUEUE": True}
    yarn.queues = [LEAF]
    return yarn


def environment(**values):
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "YTF_SITE": "/dev/null", "COLUMNS": "400", "PYTHONPATH": str(ROOT), **values}


def run(*words, **env):
    return subprocess.run([*YTF, "doctor", *words], capture_output=True, text=True, timeout=60, env=environment(**env))


@pytest.mark.slow
def test_the_lines_are_those_of_the_golden_file(place, tmp_path):
    done = run("--resourcemanager", place.url)
    text = done.stdout.replace(place.url, "http://RM").replace(str(tmp_path), "/FOLDER")
    text = re.sub(rf"\b{USER}\b(?! too)", "USER", text)
    text = re.sub(r"(tf-yarn-ops|Python|skein|httpx) [\d.]+", r"\1 N", text)
    text = text.replace(socket.gethostname(), "HOST")
    if os.environ.get("YTF_WRITE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_json_is_the_only_output(place):
    done = run("--resourcemanager", place.url, "--queue", "nowhere", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"], done.stderr) == (3, 3, "")
    assert next(iter(document)) == "schema"
    assert {item["check"]: item["symptom"] for item in document["checks"]}["queue"] == "QUEUE_CLOSED"


def test_a_fault_is_the_exit_code():
    done = run_here(YTF, "doctor", "--resourcemanager", closed_address(), env=environment())
    assert done.returncode == 4
    assert re.search(r"^fault    resourcemanager no ResourceManager answers", done.stdout, re.M)
    assert done.stdout.rstrip().endswith("2 ok, 1 fault, 16 skipped")


@pytest.mark.slow
def test_machines_of_one_team_are_compared(place, tmp_path):
    there, site = tmp_path / "there.json", tmp_path / "site.yaml"
    site.write_text("history_days: 5")
    document = json.loads(run("--resourcemanager", place.url, "--json").stdout)
    machine = next(check["facts"] for check in document["checks"] if check["check"] == "machine")
    machine["host"] = "wk1"
    there.write_text(json.dumps(document))
    same = run("--resourcemanager", place.url, "--compare", str(there), "--compare", str(there))
    line = rf"^ok       machine         .*, as wk1, wk1 in {re.escape(str(there))}$"
    assert same.returncode == 0 and re.search(line, same.stdout, re.M), same.stdout
    other = run("--resourcemanager", place.url, "--compare", str(there), YTF_SITE=str(site))
    assert other.returncode == 2
    assert "machines differ in site.history_days: '5' on " in other.stdout and "'not set' on wk1 (" in other.stdout
    wrong = run("--compare", "/missing", "--compare", str(site), "--environment", "venv:/x")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    for text in ("'/missing' can't be read", "is not what ytf doctor --json prints", "environment: "):
        assert text in wrong.stderr


@pytest.mark.slow
def test_verbose_logs_each_request_to_stderr(place):
    away = closed_address()
    done = run("-v", "--resourcemanager", f"{away},{place.url}")
    assert f"GET {away}/ws/v1/cluster/info gets no answer: " in done.stderr
    assert f"GET {place.url}/ws/v1/cluster/info 200 " in done.stderr
    assert f"GET {place.url}/ws/v1/cluster/scheduler 200 " in done.stderr
    assert "GET" not in done.stdout


def test_nothing_is_known_of_a_cluster():
    done = run_here(YTF, "doctor", env=environment())
    assert done.returncode == 2 and "no ResourceManager is known" in " ".join(done.stdout.split())


def test_a_wrong_environment_is_a_fault_of_the_request(place):
    words = ("--resourcemanager", place.url, "--submit", "--environment", "venv:/x")
    done = run_here(YTF, "doctor", *words, env=environment())
    assert (done.returncode, done.stdout) == (2, "")
    assert "environment: " in done.stderr and "venv:///folder" in done.stderr


@pytest.mark.slow
def test_unanswered_request_is_one_fault_and_the_others_go_on(place):
    over = threading.Event()
    place.faults.append(lambda method, path: over.wait(60) and None if path.endswith("/nodes") else None)
    began = time.monotonic()
    done = run("--resourcemanager", place.url)
    over.set()
    assert done.returncode == 4 and time.monotonic() - began < 45
    assert re.search(r"^fault    nodes", done.stdout, re.M), done.stdout
    assert re.search(r"^skipped  logs            needs the check nodes", done.stdout, re.M)


@pytest.mark.slow
def test_ctrl_c_ends_it_after_the_running_check(place):
    asked = threading.Event()
    place.faults.append(lambda method, path: asked.set() if path.endswith("/scheduler") else None)
    over = threading.Event()
    place.faults.append(lambda method, path: over.wait(30) and None if path.endswith("/scheduler") else None)
    process = subprocess.Popen(
        [*YTF, "doctor", "--resourcemanager", place.url], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert until(asked.is_set)
    process.send_signal(signal.SIGINT)
    over.set()
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert re.search(r"^skipped  nodes           the examination was ended", output, re.M), output


def test_its_help_names_what_it_does():
    page = " ".join(run_here(YTF, "doctor", "-h", env=environment()).stdout.split())
    assert "Without --submit and without an image it runs nothing on the cluster" in page
    assert "leaves at most two empty directories there" in page and "--environment" in page


@pytest.mark.parametrize("words, variable", [(["--resourcemanager", "local://"], ""), ([], "local://")])
def test_doctor_has_nothing_to_examine_on_this_machine(words, variable):
    done = run_here(YTF, "doctor", *words, env=environment(YTF_RESOURCEMANAGER=variable))
    assert done.returncode == 2 and "ytf doctor examines a cluster" in done.stdout + done.stderr


def result(**values):
    return {"check": "staging", "outcome": "ok", "message": "wrote a file", "advice": None, **values}


def lines(width=60, **values):
    return [click.unstyle(line) for line in result_lines(result(**values), width)]


def test_a_check_is_one_line():
    assert lines() == ["ok       staging         wrote a file"]


def test_what_to_do_stands_below_a_complaint():
    assert lines(
        outcome="fault",
        message="it refused: no space left on the device, and no quota\nsecond line",
        advice="Ask the administrator for a directory, or set staging in site.yaml",
    ) == [
        "fault    staging         it refused: no space left on the",
        "                         device, and no quota; second line",
        "         do: Ask the administrator for a directory, or set",
        "             staging in site.yaml",
    ]


def test_an_address_is_not_broken():
    url = "http://a-very-long-name-of-a-resourcemanager.example.org:8088/ws/v1/cluster/info"
    assert lines(message=f"ask {url}")[-1].endswith(f" {url}")


@pytest.mark.parametrize("outcome", ["ok", "warning", "fault", "skipped"])
def test_each_outcome_has_a_colour(outcome):
    assert "\x1b[" in next(result_lines(result(outcome=outcome)))


def test_the_last_line_counts():
    assert summary_line({"counts": {"ok": 11, "warning": 1, "fault": 2, "skipped": 0}}) == "11 ok, 1 warning, 2 faults"


HANGING = """
import threading
from concurrent.futures import ThreadPoolExecutor
from tf_yarn_ops.cli.doctor import leave

ThreadPoolExecutor(1).submit(threading.Event().wait, 100)
print("2 ok, 1 fault")
leave(4, hanging=True)
"""


def test_a_thread_that_hangs_does_not_keep_the_process_from_ending():
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout) == (4, "2 ok, 1 fault\n")
