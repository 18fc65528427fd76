"""``ytf tensorboard`` on a cluster whose file system is a folder, with a small program in place of TensorBoard."""

import json
import sys

import pytest
from click.testing import CliRunner

from support.fake_yarn import application, verdict_text
from support.records import application_id, keep, record
from support.staging_place import USER
from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.minicluster.ports import choose_ports
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

#: Listens until somebody connects, then writes its arguments and the files that it sees, and ends.
PROGRAM = f"""\
#!{sys.executable}
import json, os, pathlib, socket, sys
words = sys.argv[1:]
with socket.create_server(("127.0.0.1", int(words[words.index("--port") + 1]))) as server:
    server.accept()
logdir = words[words.index("--logdir") + 1]
files = sorted(os.path.relpath(os.path.join(folder, name), logdir)
               for folder, _, names in os.walk(logdir, followlinks=True) for name in names)
pathlib.Path(__file__).with_name("seen.json").write_text(json.dumps([words, files]))
"""


@pytest.fixture
def place(yarn, tmp_path, monkeypatch):
    """Return a function that calls ``ytf tensorboard``, with ``seen``, which returns what the program has seen."""
    yarn.conf = {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{tmp_path}"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tensorboard").write_text(PROGRAM)
    (tmp_path / "bin" / "tensorboard").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HADOOP_USER_NAME", USER)
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    def call(*words):
        return CliRunner().invoke(ytf, ["tensorboard", *words, "--resourcemanager", yarn.url])

    call.seen = lambda: json.loads((tmp_path / "bin" / "seen.json").read_text())
    return call


def events(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def ended(yarn, **fields):
    """Add an ended application with a report to YARN; return its id."""
    report = JobReport(application_id(1), name="digits", reason=Reason.SUCCEEDED, **fields)
    yarn.add(
        {
            **application(1, "FINISHED"),
            "id": report.application_id,
            "name": "digits",
            "finalStatus": "SUCCEEDED",
            "diagnostics": verdict_text(report),
        }
    )
    return report.application_id


def test_the_event_files_of_an_ended_application_are_copied(place, yarn, tmp_path):
    events(
        tmp_path / "models",
        "logs/train/events.out.tfevents.1",
        "logs/train/plugins/profile/1/host.xplane.pb",
        "weights.bin",
        "_temporary/events.out.tfevents.2",
    )
    port = str(choose_ports(["board"])["board"])
    done = place(
        ended(yarn, output_path="viewfs://mini/models"), "--args", "--samples_per_plugin images=9", "--port", port
    )
    assert (done.exit_code, done.stdout) == (0, f"http://127.0.0.1:{port}/\n"), done.output
    words, files = place.seen()
    assert words[2:] == ["--host", "127.0.0.1", "--port", port, "--samples_per_plugin", "images=9"]
    assert files == ["logs/train/events.out.tfevents.1", "logs/train/plugins/profile/1/host.xplane.pb"]


def test_runs_are_compared_each_under_its_name(place, yarn, tmp_path):
    events(tmp_path / "other", "events.out.tfevents.1")
    events(tmp_path / "logs", "events.out.tfevents.1")
    ended_job = ended(yarn, output_path="/nowhere", tensorboard_logdir="viewfs://mini/logs")
    done = place(
        f"{yarn.url}/cluster/app/{ended_job}",
        "--compare",
        str(tmp_path / "other"),
        "--json",
    )
    assert json.loads(done.stdout)["runs"] == [
        {"name": "digits-0001", "place": "viewfs://mini/logs"},
        {"name": "other", "place": str(tmp_path / "other")},
    ]
    assert place.seen()[1] == ["digits-0001/events.out.tfevents.1", "other/events.out.tfevents.1"]


def test_the_history_knows_an_application_that_yarn_has_forgotten(place, yarn, tmp_path):
    events(tmp_path / "models", "events.out.tfevents.1")
    cluster = discover(yarn.url)
    made = {**record(7, user=USER), "output_path": "viewfs://mini/models"}
    keep(cluster.open_filesystem(), cluster.history, made)
    assert place(application_id(7)).exit_code == 0
    assert place.seen()[1] == ["events.out.tfevents.1"]


@pytest.mark.parametrize(
    ("word", "says"),
    [
        (
            application_id(9),
            f"neither YARN nor the history knows {application_id(9)}; give the path of its output instead",
        ),
        ("/nowhere", "/nowhere of nowhere is no folder of this machine"),
        ("viewfs://mini/nowhere", "viewfs://mini/nowhere does not exist"),
        ("s3://lake/models", "s3://lake/models is not in HDFS; give a URL such as hdfs:///models/digits"),
    ],
)
def test_unshowable_word_is_reported(place, word, says):
    done = place(word)
    assert done.exit_code != 0 and says in f"{done.stderr}{done.exception}"


def test_application_without_an_output_is_reported(place, yarn):
    done = place(ended(yarn))
    assert "has no output path; give the path of its event files instead" in str(done.exception)


def test_failing_tensorboard_is_reported(place, tmp_path):
    (tmp_path / "bin" / "tensorboard").write_text("#!/bin/sh\nexit 3\n")
    done = place(str(tmp_path))
    assert "TensorBoard ended with exit code 3" in str(done.exception)
