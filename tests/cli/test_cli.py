"""The command line without a cluster: words in, exit codes and texts out."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import click
import pytest
import yaml

from support.fake_yarn import STAMP, FakeYarn, application, closed_address, serving
from support.http_server import Handler, running
from support.programs import ROOT, SUBMIT, YTF
from support.waiting import until
from tf_yarn_ops import __version__
from tf_yarn_ops.cli.client import LocalTask
from tf_yarn_ops.cli.manual import VARIABLES, manual_page
from tf_yarn_ops.cli.parameters import ALL, DESIGN, JOB_OPTIONS, names_of, shown_default
from tf_yarn_ops.cli.submit import read_log_tasks, submit
from tf_yarn_ops.cli.ytf import LAZY, ytf
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.request import OPTION_NAMES, build_job
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason

APP = "application_1700000000000_0001"


def run(program, *words, env=None, timeout=60):
    clean = {name: value for name, value in os.environ.items() if name not in ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR")}
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=timeout, cwd=ROOT,
                          env={**clean, "YTF_SITE": "", **(env or {})}, stdin=subprocess.DEVNULL)  # fmt: skip


def test_every_option_of_the_program_is_one_of_the_request():
    assert {option.name for option in (*DESIGN, *JOB_OPTIONS)} - {"client"} == set(OPTION_NAMES) - {"task_command"}


# --- help and documentation -----------------------------------------------------------------------
def test_the_seeds_options_are_there_by_their_names():
    names = {name for option in DESIGN for name in names_of(option)}
    seed = """-r --cluster_requirement -c --task_vcores -m --task_memory -i --input -o --output -s --script -t --tensorboard
              --docker_image -q --queue -n --name --client"""
    assert names == set(seed.split())


def test_help_is_a_manual_page():
    page = run(SUBMIT, "-h").stdout
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "TASK EXECUTION ENVIRONMENT", "EXAMPLES", "EXIT STATUS"):
        assert f"\n{heading}\n" in f"\n{page}"
    for option in ALL:
        assert f"    {', '.join(names_of(option))}" in page
    for name, _ in VARIABLES:
        assert f"    {name}:" in page
    assert page.startswith("NAME\n    ytf-submit - Submit a TensorFlow session to Apache Hadoop YARN\n")
    assert "Usage: ytf-submit [OPTIONS] -r <cluster_requirement> <task_command>" in page


def test_help_fits_the_terminal():
    words, examples = manual_page(80).split("\nEXAMPLES\n")
    assert [line for line in words.splitlines() if len(line) > 80 and not line.startswith("    -")] == []
    assert [line for line in examples.splitlines() if len(line) > 100] == []


def rows_of(page, heading):
    """Return the cells of the first table below a heading."""
    section = page.split(f"{heading}\n", 1)[1]
    table = section[section.index("|"):].split("\n\n", 1)[0]
    return [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in table.splitlines()[2:]]


def test_docs_cli_has_each_command_and_option():
    page = (ROOT / "docs" / "guides" / "command-line.md").read_text(encoding="utf-8")
    commands = {row[0].strip("`").split()[1] for row in rows_of(page, "\n## ytf")}
    assert commands == {*ytf.commands, *LAZY}
    for words in (row[0].strip("`").split() for row in rows_of(page, "\n## ytf")):
        command = ytf.get_command(click.Context(ytf), words[1])
        assert not isinstance(command, click.Group) or set(words[2].split("\\|")) == set(command.commands), words
    lazy = [ytf.get_command(click.Context(ytf), name) for name in ("logs",)]
    options = {name for command in (*ytf.commands.values(), *lazy) for parameter in command.params
               for name in parameter.opts if name.startswith("--")}  # fmt: skip
    told = re.findall(r"^\| ((?:`-{1,2}[a-z]+`(?:, )?)+) \| (?:all|`wait`|`logs`|`report`)", page, re.M)
    assert options == {name for names in told for name in re.findall(r"`(--[a-z]+)`", names)}


def test_documented_defaults_are_those_of_the_job():
    job = JobSpec(tasks={"worker": TaskSpec()}, command="x")
    defaults = {option.name: shown_default(option) for option in ALL}
    expected = {
        "task_vcores": 1, "task_memory": 8192, "task_gpus": 0, "queue": job.queue, "name": job.name,
        "success": job.success, "restart": job.restart.mode, "max_container_losses": job.restart.max_container_losses,
        "restart_backoff": job.restart.backoff, "allocation_retries": job.restart.allocation_retries,
        "am_memory": job.am_memory, "am_vcores": job.am_vcores,
        "priority": job.priority, "report_log_tail": job.report_log_tail, "queue_timeout": job.deadlines.queue,
        "allocation_timeout": job.deadlines.allocation, "registration_timeout": job.deadlines.registration,
        "heartbeat_timeout": job.deadlines.heartbeat, "execution_timeout": job.deadlines.execution,
        "total_timeout": job.deadlines.total, "stop_grace": job.deadlines.stop_grace,
    }  # fmt: skip
    for key, value in expected.items():
        assert defaults[key] == (f"{value:g}" if isinstance(value, float) and value < 1e5 else str(value).removesuffix(".0"))


def test_ytf_lists_its_commands():
    page = run(YTF, "-h").stdout
    for command in ("status", "wait", "report", "logs", "kill", "list", "cache", "minicluster"):
        assert re.search(rf"^  {command} ", page, re.M)
    assert "up" in run(YTF, "minicluster", "-h").stdout


# --- the program ------------------------------------------------------------------------------------
def test_faults_end_with_2_and_nothing_on_stdout():
    done = run(SUBMIT, "-r", "ps:0,worker:2", "-c", "wroker:2", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "2 faults in the request:" in done.stderr and "did you mean 'worker'?" in done.stderr


def test_no_words_at_all_name_both_that_are_missing():
    done = run(SUBMIT)
    assert (done.returncode, done.stdout) == (2, "")
    assert "- cluster_requirement: missing; " in done.stderr and "- task_command: missing; " in done.stderr


@pytest.mark.parametrize(("program", "name"), [(SUBMIT, "ytf-submit"), (YTF, "ytf")])
def test_both_programs_know_their_version(program, name):
    done = run(program, "--version")
    assert (done.returncode, done.stdout) == (0, f"{name}, version {__version__}\n")


def test_json_describes_a_refused_request():
    done = run(SUBMIT, "--wait", "--json", "-r", "ps:0", "x")
    report = json.loads(done.stdout)
    assert (done.returncode, report["schema"], report["reason"], report["application_id"]) == (2, 1, "SPEC_INVALID", "")
    assert "'0' is not a whole number" in report["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["python", "train.py"], "2 words were given; quote the whole command as one word: 'python train.py'"),
        (["python", "train.py", "--steps", "3"], "Options of your own program belong to the task_command: quote it as one word."),
        (["--spec", "nowhere.yaml", "x"], "spec: 'nowhere.yaml' can't be read: "),
        (["-s", "nowhere.py", "x"], "script: there is no nowhere.py on this machine"),
        (["--submit_with", "magic", "x"], "submit_with: 'magic' is not one of auto, rest, skein"),
        ([], "task_command: missing; worker would have nothing to run"),
        ([""], "task_command: the command is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_ends_with_2(words, message):
    done = run(SUBMIT, "-r", "worker:1", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_output_properties_need_an_ending_and_a_stdout_of_their_own(tmp_path):
    done = run(SUBMIT, "-r", "worker:1", "--output_properties", "-", "--json", "x")
    assert json.loads(done.stdout)["message"].splitlines()[1:] == [
        "  - output_properties: needs wait: only a job that has ended has results",
        "  - output_properties: - and json would both write to stdout; give one of them a file"]
    refused = run(SUBMIT, "-r", "worker:1", "--wait", "--output_properties", "-", "")
    assert (done.returncode, refused.returncode) == (2, 2)
    assert refused.stdout.splitlines() == ["status=FAILED", "reason=SPEC_INVALID", "exit_code=2",
                                           "message=task_command: the command is empty"]


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
    done = run(SUBMIT, "--dry-run", "-r", "worker:1", "-i", "hdfs://users/user1/mnist/data", "-o", "hdfs://nn1/users/out", "x")
    assert done.returncode == 0
    assert done.stderr == ("warning: input: 'hdfs://users/user1/mnist/data' names a NameNode 'users'; if the folder is meant, "
                           "write hdfs:///users/user1/mnist/data\n")  # fmt: skip


@pytest.mark.slow
def test_dry_run_shows_no_secrets_and_what_it_masked_is_not_run():
    words = [f"{name}=hush" for name in ("API_TOKEN", "apikey", "DB_PASSWD", "CLIENT_SECRETS")]
    open_ = ["STEPS=3", "MAX_TOKENS=512", "TOKENIZERS_PARALLELISM=false", "KEYBOARD=x"]
    command = "x --password=hush --epochs=3 https://ann:hush@host/"
    done = run(SUBMIT, "--dry-run", "-r", "worker:1", *(word for text in words + open_ for word in ("--env", text)), command)
    document = next(yaml.safe_load_all(done.stdout))
    assert "hush" not in done.stdout and document["env"] == {
        **{text.partition("=")[0]: "***" for text in words}, **dict(text.split("=") for text in open_)}
    with pytest.raises(SpecInvalid, match="the value was masked by --dry_run") as refused:
        build_job({}, document)
    assert {fault.path for fault in refused.value.faults} == {f"env.{text.partition('=')[0]}" for text in words} | {"command"}


@pytest.mark.slow
@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://no-such-host.invalid:8088"])
def test_unreachable_resourcemanager_is_reported_in_seconds(address):
    started = time.monotonic()
    done = run(SUBMIT, "--wait", "--json", "--resourcemanager", address, "-r", "worker:1", "x")
    assert done.returncode == 4 and time.monotonic() - started < 60
    report = json.loads(done.stdout)
    assert (report["reason"], report["retryable"]) == ("CLUSTER_UNREACHABLE", True)
    assert f"no ResourceManager answers at {address}" in report["message"] and report["message"] in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True], ids=["no NameNode", "a NameNode that hangs"])
def test_unanswering_namenode_is_reported_before_the_submission(tmp_path, hangs):
    (tmp_path / "site.yaml").write_text("request_timeout: 2\n")
    yarn = FakeYarn()
    with socket.create_server(("127.0.0.1", 0)) as silent, serving(yarn) as url:
        namenode = f"127.0.0.1:{silent.getsockname()[1]}" if hangs else closed_address().removeprefix("http://")
        yarn.conf |= {"fs.defaultFS": f"hdfs://{namenode}", "dfs.namenode.http-address": namenode}
        started = time.monotonic()
        done = run(SUBMIT, "--wait", "--json", "--resourcemanager", url, "-r", "worker:1", "true",
                   env={"YTF_SITE": str(tmp_path / "site.yaml")})
        assert time.monotonic() - started < 60
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"], report["retryable"]) == (4, "CLUSTER_UNREACHABLE", True), done.stderr
    assert "no NameNode answers" in report["message"] and "no NameNode answers" in done.stderr
    assert yarn.apps == {}


@pytest.mark.slow
def test_a_kill_that_fails_does_not_spare_the_others():
    yarn = FakeYarn()
    names = [yarn.add(application(number)) for number in (1, 2, 3)]
    yarn.faults.append(lambda method, path: (403, {"Content-Type": "application/json"},
                                             '{"RemoteException": {"message": "it is bob\'s"}}')
                       if method == "PUT" and names[1] in path else None)
    with serving(yarn) as url:
        done = run(YTF, "kill", "--json", "--resourcemanager", url, *names)
    assert [report["reason"] for report in json.loads(done.stdout)] == ["KILLED", "SUBMISSION_REJECTED", "KILLED"], done.stderr
    assert done.returncode == 3 and "it is bob's" in done.stderr and "Traceback" not in done.stderr
    assert [yarn.apps[name]["state"] for name in names] == ["KILLED", "RUNNING", "KILLED"]
    assert [(report["state"], report["final_status"]) for report in json.loads(done.stdout)] == [
        ("KILLED", "KILLED"), ("", "UNDEFINED"), ("KILLED", "KILLED")]
    assert f"{names[1]} could not be killed: " in done.stderr and "ytf-submit" not in done.stderr


@pytest.fixture(scope="module")
def unanswered():
    """Run each command about an application while its ResourceManager is away, all at once; each waits for seconds."""
    words = ["status", "report", "wait", "kill"]
    with ThreadPoolExecutor(len(words)) as pool:
        ran = pool.map(lambda word: run(YTF, word, "--json", "--resourcemanager", "http://127.0.0.1:1", APP), words)
        return dict(zip(words, ran, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("word", ["status", "report", "wait", "kill"])
def test_of_an_application_that_can_not_be_asked_for_nothing_is_claimed(unanswered, word):
    """It may train on: a script that reads FAILED would begin another."""
    done = unanswered[word]
    [report] = json.loads(done.stdout) if word == "kill" else [json.loads(done.stdout)]
    assert (done.returncode, report["reason"]) == (4, "CLUSTER_UNREACHABLE"), done.stderr
    assert (report["state"], report["final_status"]) == ("", "UNDEFINED")
    assert done.stderr.splitlines()[-1] == "next: ytf list --resourcemanager http://HOST:8088"


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code", "following"), [
    (["-r", "worker:1", "-m", "lots", "true"], 2, "next: ytf-submit -h"),
    (["-r", "worker:1", "-q", "nowhere", "true"], 3, "next: ytf-submit --dry_run ..."),
    (["-r", "worker:1", "-m", "900g", "true"], 3, "next: ytf-submit --dry_run ..."),
])
def test_a_refusal_ends_with_the_next_command(words, code, following):
    with serving(FakeYarn()) as url:
        done = run(SUBMIT, "--resourcemanager", url, *words)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (code, following)


def in_a_folder(folder):
    """Return a ResourceManager whose file system is a folder here."""
    yarn = FakeYarn()
    yarn.conf = {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{folder}",
                 "yarn.application.classpath": "/opt/hadoop/*"}
    return yarn


@pytest.mark.slow
def test_a_job_whose_resourcemanager_goes_away_may_run_still(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("unreachable_timeout: 1\n")
    yarn = in_a_folder(tmp_path)
    yarn.faults.append(lambda method, path: (503, {}, "") if "/timeout" in str(yarn.requests[:-1]) else None)
    with serving(yarn) as url:
        done = run(SUBMIT, "--wait", "--json", "--resourcemanager", url, "-r", "worker:1", "--execution_timeout", "5", "true",
                   env={"YTF_SITE": str(site)})
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"], report["state"]) == (4, "CLUSTER_UNREACHABLE", ""), done.stderr
    assert report["application_id"] == f"application_{STAMP}_0001"
    assert done.stderr.splitlines()[-1] == f"next: ytf status {report['application_id']} --resourcemanager {url}"


@pytest.mark.slow
@pytest.mark.parametrize("words, mark", [
    ([], ".777"), (["--lease", "0"], ".000"), (["--run_id", "x"], ".000"), (["--run_id", "x", "--lease", "60"], ".777")])
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
        done = run(SUBMIT, "--wait", "--resourcemanager", url, *words, "-r", "worker:1", "true")
    assert done.returncode == 0, done.stderr
    times = [body["timeout"]["expiryTime"] for method, path, *_, body in yarn.requests if path.endswith("/timeout")]
    assert times and all(mark in text for text in times)


def test_a_lease_needs_a_client_that_waits():
    done = run(SUBMIT, "--lease", "60", "-r", "worker:1", "true")
    assert done.returncode == 2 and "lease: needs wait: YARN would end the job, because no client waits for it" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["plain", "json"])
def test_forgotten_training_does_not_count_as_success(tmp_path, form):
    """Cron would be green every night, and nothing would run."""
    yarn = in_a_folder(tmp_path)
    with serving(yarn) as url:
        words = ["--resourcemanager", url, "--run_id", "nightly", *form, "-r", "worker:1", "true"]
        assert run(SUBMIT, *words).returncode == 0
        yarn.apps.clear()
        done = run(SUBMIT, *words)
    assert done.returncode == Reason.LOST.exit_code and " LOST: " in done.stderr, done.stderr
    assert (json.loads(done.stdout)["reason"] == "LOST") if form else (done.stdout == "")


def test_a_local_command_without_grace_is_killed(tmp_path):
    """0 is no time, not any time."""
    job = JobSpec(tasks={"worker": TaskSpec()}, command="true", deadlines=Deadlines(stop_grace=0))
    task = LocalTask(job, f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done")
    task.start(APP, {"worker": ["n:1"]})
    until((tmp_path / "ready").exists)
    task.end()
    assert not task.running


@pytest.fixture
def stranger():
    """Return the URL of a web server that is no Hadoop."""

    class Wiki(Handler):
        def do_GET(self):
            self.reply(200, {}, "<html>a wiki</html>")

    with running(Wiki) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.slow
def test_server_that_is_not_hadoop_is_reported(stranger):
    done = run(SUBMIT, "--resourcemanager", stranger, "-r", "worker:1", "x")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"{stranger}/ws/v1/cluster/info" in done.stderr
    assert "answers, but is no YARN ResourceManager: a wiki" in done.stderr


@pytest.mark.parametrize("words", [("report",), ("status",), ("wait",), ("kill",), ("logs",), ("compare", APP)])
def test_mistyped_application_id_is_a_fault_of_the_request(words):
    done = run(YTF, *words, "aplication_1_1")
    assert done.returncode == 2
    assert "'aplication_1_1' is not the id of an application, such as application_1700000000000_0001" in done.stderr


@pytest.mark.parametrize("words, tasks", [
    (("-r", "worker:1"), ("worker:0",)), (("-r", "ps:1,worker:2"), ()), (("-r", "worker:1", "--no-logs"), ()),
    (("-r", "worker:2,chief:1", "--logs", "chief"), ("chief:0",)), (("-r", "worker:2", "--logs", "all"), ("*:*",)),
    (("-r", "ps:1,worker:2", "--logs", "ps:0, worker:*"), ("ps:0", "worker:*")), (("-r", "worker:1", "--logs", "none"), ())])
def test_logs_names_tasks(words, tasks):
    with submit.make_context("ytf-submit", [*words, "true"]) as ctx:
        settings = {name: ctx.params[name] for name in ("logs", "no_logs")}
        job = build_job({"cluster_requirement": ctx.params["cluster_requirement"], "task_command": "true"})
    assert read_log_tasks(settings, job) == tasks


def test_logs_of_an_unknown_task_are_rejected():
    done = run(SUBMIT, "--wait", "--logs", "wroker:0", "-r", "worker:1", "true")
    assert done.returncode == 2 and "logs: 'wroker:0' is not one of" in done.stderr
    assert "(did you mean 'worker:0'?)" in done.stderr


@pytest.mark.parametrize("words, expected", [(("ytf", "minic"), {"minicluster"}), (("ytf", "minicluster", "u"), {"up"}),
                                             (("ytf-submit", "--cluster_r"), {"--cluster_requirement"})])
def test_bash_completes_commands_and_options(words, expected, tmp_path):
    for name, program in (("ytf", YTF), ("ytf-submit", SUBMIT)):
        (tmp_path / name).write_text(f'#!/bin/bash\nexec {shlex.join(map(str, program))} "$@"\n')
        (tmp_path / name).chmod(0o755)
    function = f"_{words[0].replace('-', '_')}_completion"
    script = (f'eval "$(ytf completion bash)"; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; '
              f'{function} {words[0]}; echo "${{COMPREPLY[@]}}"')
    done = run(["bash", "-c", script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert set(done.stdout.split()) == expected, done.stderr


@pytest.mark.parametrize("shell, line", [("zsh", "#compdef ytf-submit"), ("fish", "complete --no-files --command ytf-submit")])
def test_completion_is_for_zsh_and_fish_too(shell, line):
    assert line in run(YTF, "completion", shell).stdout


@pytest.mark.parametrize("shell, name", [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/config.fish")])
def test_completion_is_added_once_to_the_shells_own_file(tmp_path, shell, name):
    words, env = ("completion", "--install-completion"), {"HOME": str(tmp_path), "SHELL": f"/usr/bin/{shell}"}
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("first")
    assert f"added to {file}" in run(YTF, *words, env=env).stderr
    assert "has the line already" in run(YTF, *words, env=env).stderr
    first, line = file.read_text().splitlines()
    assert first == "first" and f"ytf completion {shell}" in line


def test_mistyped_command_is_answered_with_the_nearest():
    done = run(YTF, "minicluter", "up")
    assert done.returncode == 2 and "no command 'minicluter' (did you mean 'minicluster'?)" in done.stderr


def test_without_an_address_the_ways_to_give_one_are_named(tmp_path):
    done = run(YTF, "list", env={"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path),
                                 "YTF_MINICLUSTER_DIR": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr.endswith("\nnext: ytf minicluster up\n")
    for way in ("--resourcemanager", "YTF_RESOURCEMANAGER", "site.yaml", "HADOOP_CONF_DIR"):
        assert way in done.stderr


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


def test_closed_pipe_is_not_an_error():
    command = f"{shlex.join(SUBMIT)} -h | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.split("\n")[0] == "NAME"
    assert done.stderr == ""


def test_the_local_client_has_the_variables_of_the_tasks(monkeypatch):
    monkeypatch.setenv("FROM_HERE", "1")
    job = build_job({"cluster_requirement": "ps:1,worker:1", "task_command": "python ${DTF_TASK_SCRIPT}", "input": "/i",
                     "output": "/o", "script": "sub/train.py", "env": "A=b"})  # fmt: skip
    env = LocalTask(job).environment(APP, {"ps": ["n1:1"], "worker": ["n2:2"]})
    expected = {
        "DTF_TASK_JOB_NAME": "client", "DTF_TASK_INDEX": "0", "DTF_PS_HOSTS": "n1:1", "DTF_WORKER_HOSTS": "n2:2",
        "DTF_INPUT_PATH": "/i", "DTF_OUTPUT_PATH": "/o", "DTF_TASK_SCRIPT": "sub/train.py", "A": "b", "FROM_HERE": "1",
        "YTF_APPLICATION_ID": APP, "DTF_TASK_PROGRAM": "python ${DTF_TASK_SCRIPT}",
    }  # fmt: skip
    assert {name: env.get(name) for name in expected} == expected
    assert json.loads(env["TF_CONFIG"])["cluster"] == {"ps": ["n1:1"], "worker": ["n2:2"]}
    assert "YTF_RESULT_FILE" not in env and "YTF_PORT" not in env


@pytest.mark.slow
def test_verbose_shows_each_request_without_its_query():
    yarn = FakeYarn()
    yarn.add(application(1))
    with serving(yarn) as url:
        done = run(YTF, "status", APP, "-v", "--resourcemanager", url, env={"HADOOP_USER_NAME": "ann-secret"})
        quiet = run(YTF, "status", APP, "--resourcemanager", url, env={"HADOOP_USER_NAME": "ann-secret"})
    lines = re.findall(rf"^\d\d:\d\d:\d\d (\w+) {url}(\S+) (\d+) \d+ ms$", done.stderr, re.M)
    assert ("GET", f"/ws/v1/cluster/apps/{APP}", "200") in lines
    assert len(lines) == len(yarn.requests) / 2
    assert "user.name" not in done.stderr and "ms" not in quiet.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words, code, message", [
    (("--grep", "["), 2, "--grep '[' is not a regular expression"),
    (("--since", "soon"), 2, "'--since': 'soon' is neither an age such as 90s"),
    (("-f", "--tail", "3"), 2, "--tail and -f exclude each other"),
])
def test_faulty_arguments_of_logs_are_reported_without_a_cluster(words, code, message):
    done = run(YTF, "logs", "application_1_0001", "--resourcemanager", "http://127.0.0.1:1", *words)
    assert (done.returncode, done.stdout) == (code, "") and message in done.stderr
