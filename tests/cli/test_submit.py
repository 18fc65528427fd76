"""ytf-submit: its words, its faults, the dry run, leases and signals."""

import json
import signal
import socket
import subprocess
import time

import pytest
import yaml

from support.fake_yarn import STAMP, FakeYarn, closed_address, serving
from support.programs import ROOT, SUBMIT, run, run_here
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.request import build_job
from tf_yarn_ops.runtime.common.reasons import Reason


def test_no_words_at_all_name_both_that_are_missing():
    done = run(SUBMIT)
    assert (done.returncode, done.stdout) == (2, "")
    assert "- cluster_requirement: missing; " in done.stderr and "- task_command: missing; " in done.stderr


def test_json_describes_a_refused_request():
    done = run_here(SUBMIT, "--wait", "--json", "-r", "ps:0", "x")
    report = json.loads(done.stdout)
    assert (done.returncode, report["schema"], report["reason"], report["application_id"]) == (2, 1, "SPEC_INVALID", "")
    assert "'0' is not a whole number" in report["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["python", "train.py"], "2 words were given; quote the whole command as one word: 'python train.py'"),
        (["python", "train.py", "--steps", "3"], "Options of your own program belong to the task_command: quote it as one word."),
        (["--memory", "8G", "x"], "No such option '--memory' (did you mean '--task_memory'?). Options of your own program"),
        (["--lr", "0.1", "x"], "No such option '--lr'. Options of your own program belong to the task_command"),
        (["--wait", "--logs", "-c", "2", "x"], "'--logs' needs a value, and '-c' is an option."),
        (["--env", "--wait", "x"], "'--env' needs a value, and '--wait' is an option."),
        (["--spec", "nowhere.yaml", "x"], "spec: 'nowhere.yaml' can't be read: "),
        (["-s", "nowhere.py", "x"], "script: there is no nowhere.py on this machine"),
        (["--submit_with", "magic", "x"], "submit_with: 'magic' is not one of auto, rest, skein"),
        ([], "task_command: missing; worker would have nothing to run"),
        ([""], "task_command: the command is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_ends_with_2(words, message):
    done = run_here(SUBMIT, "-r", "worker:1", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_output_properties_need_an_ending_and_a_stdout_of_their_own(tmp_path):
    done = run_here(SUBMIT, "-r", "worker:1", "--output_properties", "-", "--json", "x")
    assert json.loads(done.stdout)["message"].splitlines()[1:] == [
        "  - output_properties: needs wait: only a job that has ended has results",
        "  - output_properties: - and json would both write to stdout; give one of them a file",
    ]
    unread = run_here(SUBMIT, "-r", "worker:1", "--logs", "all", "x")
    assert unread.returncode == 2 and "logs: needs wait: without it nobody reads the lines" in unread.stderr
    refused = run_here(SUBMIT, "-r", "worker:1", "--wait", "--output_properties", "-", "")
    assert (done.returncode, refused.returncode) == (2, 2)
    assert refused.stdout.splitlines() == [
        "status=FAILED",
        "reason=SPEC_INVALID",
        "exit_code=2",
        "message=task_command: the command is empty",
    ]


def test_a_script_that_cannot_start_is_warned_of(tmp_path):
    script = tmp_path / "run.sh"
    script.write_bytes(b"#!/bin/bash\r\necho\r\n")
    script.chmod(0o644)
    for command in ("cd . && ./run.sh --steps 3", '"$DTF_TASK_SCRIPT"'):
        done = run_here(SUBMIT, "--dry_run", "--local", "-r", "worker:1", "-s", str(script), command)
        assert done.returncode == 0 and f"script: {script} has line ends of Windows" in done.stderr
        assert f"script: {script} is not executable, as its copy on YARN is; run: chmod +x" in done.stderr
    read = run_here(SUBMIT, "--dry_run", "--local", "-r", "worker:1", "-s", str(script), "bash run.sh")
    assert read.returncode == 0 and read.stderr == ""


@pytest.mark.slow
def test_dry_run_finds_what_a_submission_would(tmp_path):
    broken = tmp_path / "environment.tar.gz"
    broken.write_bytes(b"no archive")
    words = ["-r", "worker:1", "--file", "nope.csv", "-s", "nope.py", "python $DTF_TASK_SCRIPT"]
    for call in (["--dry_run"], ["--resourcemanager", closed_address()]):
        done = run_here(SUBMIT, *call, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "files.nope.csv: there is no nope.csv" in done.stderr and "script: there is no nope.py" in done.stderr
    archive = run_here(SUBMIT, "--dry_run", "-r", "worker:1", "--environment", str(broken), "true")
    assert (archive.returncode, archive.stdout) == (2, "") and "environment: " in archive.stderr
    offline = run_here(SUBMIT, "--dry_run", "--offline", *words)
    assert offline.returncode == 0 and yaml.safe_load(offline.stdout.partition("---\n")[0])["script"] == "nope.py"
    refused = run_here(SUBMIT, "--offline", *words)
    assert refused.returncode == 2 and "offline: needs dry_run: a submission reads the files" in refused.stderr


def test_paths_begin_in_the_specs_folder_and_at_home(tmp_path):
    for name in ("train.py", "x.csv", "r.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "job.yaml").write_text("{tasks: {worker: 1}, script: train.py, command: python $DTF_TASK_SCRIPT}")
    words = ["--dry_run", "--spec=~/job.yaml", "--file=~/x.csv", "--environment=requirements://~/r.txt"]
    done = run_here(SUBMIT, *words, env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert f"source: file://{tmp_path}/train.py" in done.stdout and f"source: file://{tmp_path}/x.csv" in done.stdout


@pytest.mark.slow
def test_dry_run_prints_a_job_that_spec_reads(tmp_path):
    words = ["-r", "ps:1,worker:2", "--task-memory", "worker[1]:16 GiB", "--env", "A=b c", "--heartbeat-timeout", "30"]
    command = "echo \"$X\" 'ü' \\\n  --a ${DTF_TASK_INDEX}"
    first = run(SUBMIT, "--dry-run", *words, command)
    job, application = yaml.safe_load_all(first.stdout)
    assert (first.returncode, first.stderr) == (0, "")
    assert job["command"] == command
    assert application["services"]["worker.1"]["resources"]["memory"] == 16384
    (tmp_path / "job.yaml").write_text(first.stdout)
    again = run(SUBMIT, "--dry_run", "--spec", str(tmp_path / "job.yaml"))
    assert again.stdout == first.stdout


def test_a_folder_in_place_of_a_host_is_doubted():
    done = run_here(
        SUBMIT, "--dry-run", "-r", "worker:1", "-i", "hdfs://users/user1/mnist/data", "-o", "hdfs://nn1/users/out", "x"
    )
    assert done.returncode == 0
    assert done.stderr == ("warning: input: 'hdfs://users/user1/mnist/data' names a NameNode 'users'; if the folder is meant, "
                           "write hdfs:///users/user1/mnist/data\n")  # fmt: skip


@pytest.mark.slow
def test_dry_run_shows_no_secrets_and_what_it_masked_is_not_run():
    words = [f"{name}=hush" for name in ("API_TOKEN", "apikey", "DB_PASSWD", "CLIENT_SECRETS")]
    open_ = ["STEPS=3", "MAX_TOKENS=512", "TOKENIZERS_PARALLELISM=false", "KEYBOARD=x"]
    command = "x --password=hush --epochs=3 https://ann:hush@host/"
    done = run(
        SUBMIT, "--dry-run", "-r", "worker:1", *(word for text in words + open_ for word in ("--env", text)), command
    )
    document = next(yaml.safe_load_all(done.stdout))
    assert "hush" not in done.stdout and document["env"] == {
        **{text.partition("=")[0]: "***" for text in words},
        **dict(text.split("=") for text in open_),
    }
    with pytest.raises(SpecInvalid, match="the value was masked by --dry_run") as refused:
        build_job({}, document)
    assert {fault.path for fault in refused.value.faults} == {f"env.{text.partition('=')[0]}" for text in words} | {
        "command"
    }


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True], ids=["no NameNode", "a NameNode that hangs"])
def test_unanswering_namenode_is_reported_before_the_submission(tmp_path, hangs):
    (tmp_path / "site.yaml").write_text("request_timeout: 2\n")
    yarn = FakeYarn()
    with socket.create_server(("127.0.0.1", 0)) as silent, serving(yarn) as url:
        namenode = f"127.0.0.1:{silent.getsockname()[1]}" if hangs else closed_address().removeprefix("http://")
        yarn.conf |= {"fs.defaultFS": f"hdfs://{namenode}", "dfs.namenode.http-address": namenode}
        started = time.monotonic()
        done = run(
            SUBMIT,
            "--wait",
            "--json",
            "--resourcemanager",
            url,
            "-r",
            "worker:1",
            "true",
            env={"YTF_SITE": str(tmp_path / "site.yaml")},
        )
        assert time.monotonic() - started < 60
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"], report["retryable"]) == (4, "CLUSTER_UNREACHABLE", True), done.stderr
    assert "no NameNode answers" in report["message"] and "no NameNode answers" in done.stderr
    assert yarn.apps == {}


def in_a_folder(folder):
    """Return a ResourceManager whose file system is a folder here."""
    yarn = FakeYarn()
    yarn.conf = {
        "fs.defaultFS": "viewfs://mini",
        "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{folder}",
        "yarn.application.classpath": "/opt/hadoop/*",
    }
    return yarn


@pytest.mark.slow
def test_a_job_whose_resourcemanager_goes_away_may_run_still(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("unreachable_timeout: 1\n")
    yarn = in_a_folder(tmp_path)
    yarn.faults.append(lambda method, path: (503, {}, "") if "/timeout" in str(yarn.requests[:-1]) else None)
    with serving(yarn) as url:
        done = run(
            SUBMIT,
            "--wait",
            "--json",
            "--resourcemanager",
            url,
            "-r",
            "worker:1",
            "--execution_timeout",
            "5",
            "true",
            env={"YTF_SITE": str(site)},
        )
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"], report["state"]) == (4, "CLUSTER_UNREACHABLE", ""), done.stderr
    assert report["application_id"] == f"application_{STAMP}_0001"
    assert done.stderr.splitlines()[-1] == f"next: ytf status {report['application_id']} --resourcemanager {url}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, mark",
    [
        ([], ".777"),
        (["--lease", "0"], ".000"),
        (["--run_id", "x"], ".000"),
        (["--run_id", "x", "--lease", "60"], ".777"),
    ],
)
def test_a_client_that_waits_without_a_name_for_its_training_holds_a_lease(tmp_path, words, mark):
    yarn = in_a_folder(tmp_path)
    ends = []

    def end(method, path):
        if method == "PUT" and path.endswith("/timeout"):
            ends.append(path)
        elif ends:
            for name in yarn.apps:
                yarn.end(name, "", "FINISHED", "SUCCEEDED")

    yarn.faults.append(end)
    with serving(yarn) as url:
        done = run_here(SUBMIT, "--wait", "--resourcemanager", url, *words, "-r", "worker:1", "true")
    assert done.returncode == 0, done.stderr
    times = [body["timeout"]["expiryTime"] for method, path, *_, body in yarn.requests if path.endswith("/timeout")]
    assert times and all(mark in text for text in times)


def test_a_lease_needs_a_client_that_waits():
    done = run_here(SUBMIT, "--lease", "60", "-r", "worker:1", "true")
    assert (
        done.returncode == 2
        and "lease: needs wait: YARN would end the job, because no client waits for it" in done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["plain", "json"])
def test_forgotten_training_does_not_count_as_success(tmp_path, form):
    """Cron would be green every night, and nothing would run."""
    yarn = in_a_folder(tmp_path)
    with serving(yarn) as url:
        words = ["--resourcemanager", url, "--run_id", "nightly", *form, "-r", "worker:1", "true"]
        assert run_here(SUBMIT, *words).returncode == 0
        yarn.apps.clear()
        done = run_here(SUBMIT, *words)
    assert done.returncode == Reason.LOST.exit_code and " LOST: " in done.stderr, done.stderr
    assert (json.loads(done.stdout)["reason"] == "LOST") if form else (done.stdout == "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_the_submission_ends_at_once(number, code):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = subprocess.Popen([*SUBMIT, "--resourcemanager", address, "-r", "worker:1", "x"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)  # fmt: skip
        silent.settimeout(30)
        connection, _ = silent.accept()
        with connection:
            client.send_signal(number)
            out, err = client.communicate(timeout=60)
        assert (client.returncode, out) == (code, b"")
        assert b"Traceback" not in err
