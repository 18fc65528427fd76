"""Each recipe of the documents runs: a real scheduler calls the real ytf-submit; YARN answers on the wire."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import urllib.request

import pytest

from support.fake_yarn import FakeYarn, serving, verdict_text
from support.programs import ROOT, SUBMIT, YTF
from support.waiting import until
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "guides" / "recipes.md").read_text(encoding="utf-8")


def block(heading, language):
    return re.search(rf"## {heading}\n.*?```{language}\n(.*?)```", PAGE, re.S)[1]


def add_programs(folder):
    """Make the programs of this checkout."""
    for name, words in {"ytf-submit": SUBMIT, "ytf": YTF}.items():
        program = folder / name
        program.write_text(
            f'#!/bin/bash\nexec env PYTHONPATH={shlex.quote(str(ROOT))} {shlex.join(map(str, words))} "$@"\n'
        )
        program.chmod(0o755)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a job, ytf-submit on PATH, and a YARN whose applications end well as soon as they are there."""
    yarn = FakeYarn()
    yarn.conf = {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}/hdfs",
        "yarn.application.classpath": "/opt/hadoop/*",
    }
    (tmp_path / "hdfs").mkdir()
    (tmp_path / "bin").mkdir()
    add_programs(tmp_path / "bin")
    (tmp_path / "train.py").touch()
    (tmp_path / "job.yaml").write_text("command: 'true'\ntasks: {worker: 1}\noutput: hdfs:///models/digits\n")
    yarn.final, yarn.finals = ("SUCCEEDED", Reason.SUCCEEDED), {}
    done = threading.Event()

    def end():
        while not done.wait(0.1):
            for name, document in list(yarn.apps.items()):
                if document["state"] in ("ACCEPTED", "RUNNING"):
                    status, reason = yarn.finals.get(document["queue"], yarn.final)
                    report = JobReport(
                        name,
                        final_status=status,
                        reason=reason,
                        message="told",
                        metrics={"accuracy": 0.97},
                        output_path="hdfs:///models/digits",
                    )
                    yarn.end(name, verdict_text(report), "FINISHED", status)

    thread = threading.Thread(target=end, daemon=True)
    with serving(yarn) as url:
        thread.start()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        monkeypatch.setenv("YTF_RESOURCEMANAGER", url)
        monkeypatch.setenv("YTF_SITE", "")
        monkeypatch.setenv("HOME", str(tmp_path))
        yield yarn
        done.set()
        thread.join()


def module(name, text, folder):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def fetch(url):
    """Return the page at an address; empty while nothing answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()
    except OSError:
        return b""


def shell(line):
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=120)


def test_notebook_answers_at_the_address_in_the_status(tmp_path, monkeypatch):
    """The line of the page runs on this machine; a small server has the name of Jupyter."""
    (tmp_path / "jupyter").write_text("#!/bin/bash\nexec python3 -m http.server ${3#--port=}\n")
    (tmp_path / "jupyter").chmod(0o755)
    add_programs(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("YTF_RESOURCEMANAGER", "local://")
    application_id = shell(block("Jupyter on the cluster", "sh")).stdout.strip()
    try:
        shown = until(
            lambda: re.search(r"addresses +notebook:0 at (\S+)", shell(f"ytf status {application_id}").stdout),
            what="the address",
        )
        until(lambda: b"Directory listing" in fetch(f"http://{shown[1]}/"), what="the server")
        (task,) = json.loads(shell(f"ytf status --json {application_id}").stdout)["tasks"]
        assert task["address"] == shown[1]
    finally:
        assert shell(f"ytf kill {application_id}").returncode == 0
    (task,) = json.loads(shell(f"ytf status --json {application_id}").stdout)["tasks"]
    assert task["address"] is None, "nothing listens there after the end"


def test_second_queue_takes_what_the_first_has_not_started(place, tmp_path):
    place.queues += [{**place.queues[0], "queueName": name, "queuePath": f"root.{name}"} for name in ("prod", "adhoc")]
    place.finals["prod"] = "FAILED", Reason.QUEUE_TIMEOUT
    ran = shell(block("Two queues", "sh"))
    assert ran.returncode == 0, ran.stderr
    assert [document["queue"] for document in place.apps.values()] == ["prod", "adhoc"]
    place.finals["prod"] = "FAILED", Reason.TASK_FAILED
    assert shell(block("Two queues", "sh")).returncode == 1 and len(place.apps) == 3


def test_failed_training_sends_a_message(place, tmp_path):
    place.final = "FAILED", Reason.TASK_FAILED
    mail = tmp_path / "bin" / "mail"
    mail.write_text(
        f'#!/bin/bash\necho "$@" > {tmp_path}/part; cat >> {tmp_path}/part; mv {tmp_path}/part {tmp_path}/sent\n'
    )
    mail.chmod(0o755)
    assert shell(block("A message when it has failed", "sh")).returncode == 0
    until(lambda: (tmp_path / "sent").exists(), what="the message")
    assert re.match("-s training failed team@example.com\napplication_.* TASK_FAILED", (tmp_path / "sent").read_text())


def test_all_workers_have_the_run_of_mlflow(tmp_path, monkeypatch):
    """A small module has the name of MLflow's; the job runs on this machine."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mlflow.py").write_text(
        "import types\nclass MlflowClient:\n    def create_run(self, experiment):\n"
        "        return types.SimpleNamespace(info=types.SimpleNamespace(run_id='run-of-' + experiment))\n"
    )
    (tmp_path / "train.py").write_text(
        "import os\nname = os.environ['DTF_TASK_INDEX']\n"
        f"open('{tmp_path}/seen' + name, 'w').write(os.environ['MLFLOW_RUN_ID'])\n"
    )
    add_programs(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/lib")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("YTF_RESOURCEMANAGER", "local://")
    ran = shell(block("One MLflow run for all workers", "sh"))
    assert ran.returncode == 0, ran.stderr
    assert [(tmp_path / f"seen{index}").read_text() for index in range(2)] == ["run-of-0"] * 2


def test_cron_runs_once_a_day_and_keeps_the_results(place, tmp_path):
    line = block("cron", "sh").split(None, 5)[5].strip().replace("\\%", "%")
    for _ in range(2):  # the second call finds the training of the day
        ran = shell(line)
        assert ran.returncode == 0, ran.stderr
    lines = (tmp_path / "digits.out").read_text().splitlines()
    assert lines[:2] == ["status=SUCCEEDED", "reason=SUCCEEDED"] and "metric.accuracy=0.97" in lines
    assert len(place.apps) == 1


def test_make_makes_its_target_when_the_training_has_succeeded(place, tmp_path):
    (tmp_path / "Makefile").write_text(block("make", "make"))
    place.final = "FAILED", Reason.TASK_FAILED
    assert shell("make models/2026-11-21.out").returncode == 2 and not (tmp_path / "models" / "2026-11-21.out").exists()
    place.final = "SUCCEEDED", Reason.SUCCEEDED
    made = shell("make models/2026-11-21.out")
    assert made.returncode == 0, made.stderr
    assert "status=SUCCEEDED\n" in (tmp_path / "models" / "2026-11-21.out").read_text()
    assert "up to date" in shell("make models/2026-11-21.out").stdout and len(place.apps) == 2


def test_luigi_runs_the_task_and_finds_it_complete(place, tmp_path):
    import datetime

    import luigi

    task = module("recipe_luigi", block("Luigi", "python"), tmp_path).Training(day=datetime.date(2026, 11, 21))
    place.final = "FAILED", Reason.TASK_FAILED
    assert not luigi.build([task], local_scheduler=True, log_level="CRITICAL") and not task.complete()
    place.final = "SUCCEEDED", Reason.SUCCEEDED
    assert luigi.build([task], local_scheduler=True, log_level="CRITICAL") and task.complete()
    assert "metric.accuracy=0.97\n" in (tmp_path / "models" / "2026-11-21.out").read_text()


def test_dagster_returns_the_results_or_says_why_there_are_none(place, tmp_path):
    digits = module("recipe_dagster", block("Dagster", "python"), tmp_path).digits
    config = {
        "ops": {"train": {"config": {"day": "2026-11-21"}}},
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }
    place.final = "FAILED", Reason.TASK_FAILED
    failed = digits.execute_in_process(run_config=config, raise_on_error=False)
    data = failed.failure_data_for_node("train")
    assert not failed.success and data.user_failure_data.metadata["reason"].value == "TASK_FAILED"
    place.final = "SUCCEEDED", Reason.SUCCEEDED
    ended = digits.execute_in_process(run_config=config)
    assert ended.output_for_node("train")["metric.accuracy"] == "0.97"
