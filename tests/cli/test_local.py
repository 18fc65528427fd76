"""``ytf-submit --local``, and the commands of ``ytf`` on jobs of this machine."""

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from unittest import mock

import httpx
import pytest

from support.programs import SUBMIT, YTF
from support.programs import call as call_here
from support.secret_spellings import job_of_secrets
from support.surroundings import PROGRAM, check_temporary_folder
from support.waiting import until
from tf_yarn_ops.cli import main
from tf_yarn_ops.hadoop.cluster import local
from tf_yarn_ops.hadoop.local_jobs import LocalJobs

pytestmark = pytest.mark.slow


@pytest.fixture
def environ(tmp_path):
    """Return variables with which the programs keep their jobs below the test's folder."""
    hidden = ("YTF_RESOURCEMANAGER", "HADOOP_CONF_DIR", "JAVA_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "YTF_SITE": "", "XDG_STATE_HOME": str(tmp_path)}


@pytest.fixture
def call(environ, fork, tmp_path):
    """Run a program to its end; ``ytf``, which starts nothing, in this process."""

    def call(program, *words):
        if program == YTF:
            with mock.patch.dict(os.environ, environ, clear=True):
                return call_here(main, *words)
        return fork(program[-1], words, environ, tmp_path)

    return call


def test_output_of_the_tasks_is_shown(call):
    done = call(
        SUBMIT,
        "--local",
        "-r",
        "worker:2,ps:1",
        "--command",
        "ps=exec tail -f /dev/null",
        "-q",
        "prod",
        "echo from $JOB_NAME $TASK_INDEX",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^local_\d+_\d+$", done.stdout, re.M)
    assert sorted(done.stdout.splitlines()[1:]) == ["worker:0 | from worker 0", "worker:1 | from worker 1"]
    assert "SUCCEEDED" in done.stderr and "without YARN these options have no effect: queue" in done.stderr


def test_lines_of_the_agent_are_shown_on_request_or_as_a_warning(call):
    words = [SUBMIT, "--local", "-r", "worker:1"]
    assert "worker:0 | tf_yarn_ops agent: worker:0 starts" in call(*words, "-v", "true").stdout
    warned = call(*words, 'echo no JSON > "$YTF_RESULT_FILE"').stdout.splitlines()[1:]
    assert len(warned) == 1 and warned[0].startswith(
        "worker:0 | tf_yarn_ops agent: warning: the result file is not used"
    )


def test_exit_code_is_that_of_the_reason(call):
    """``train | tee log`` was SUCCEEDED whatever the program did."""
    done = call(SUBMIT, "--local", "--json", "-r", "worker:1", "(echo no data >&2; exit 3) | tee out")
    assert done.returncode == 1
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert (report["reason"], report["first_failure"]) == ("TASK_FAILED", "worker:0")
    assert report["tasks"][0]["exit_code"] == 3
    assert report["message"].endswith("no data")
    assert report["tracking_url"] is None, "its page is gone"


def test_pipe_of_programs_that_end_well_succeeds(call):
    """Also one whose reader ends first, where the command says so."""
    done = call(SUBMIT, "--local", "-r", "worker:1", "echo ok | tee out && set +o pipefail && yes | head -1")
    assert done.returncode == 0, done.stderr


DIES = "import ctypes, os; print('step 12'); print('unflushed', end=''); {}"


@pytest.mark.parametrize(
    "end, options, expected, absent",
    [
        ("os.kill(os.getpid(), 9)", [], "step 12\nunflushed", None),
        ("ctypes.string_at(0)", [], 'Fatal Python error: Segmentation fault\n\nCurrent thread', None),
        ("os._exit(3)", ["--env", "PYTHONUNBUFFERED="], "", "step 12"),
    ],
)  # fmt: skip
def test_last_words_of_a_program_that_dies_are_in_the_report(call, environ, end, options, expected, absent):
    environ.pop("PYTHONUNBUFFERED", None)
    done = call(SUBMIT, "--local", "--json", "-r", "worker:1", *options, f'python3 -c "{DIES.format(end)}"')
    tail = json.loads(done.stdout)["tasks"][0]["log_tail"]
    assert expected in tail and (absent is None or absent not in tail), tail


def test_mirror_gives_the_task_local_copies_of_its_paths(call, tmp_path):
    (tmp_path / "in").write_text("given\n")
    (tmp_path / "out").mkdir()
    done = call(
        SUBMIT,
        "--local",
        "-r",
        "worker:1",
        "-i",
        str(tmp_path / "in"),
        "-o",
        str(tmp_path / "out"),
        "--mirror",
        "chief",
        "--mirror_input",
        "1g",
        "cat $DTF_INPUT_PATH > $DTF_OUTPUT_PATH/model; echo at $DTF_OUTPUT_PATH",
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/model").read_text() == "given\n"
    assert f"at {tmp_path / 'out'}" not in done.stdout


def test_mirror_needs_a_path_that_it_can_copy(call):
    done = call(SUBMIT, "--local", "-r", "trainer:1", "-o", "s3://bucket/x", "--mirror", "chief", "true")
    assert done.returncode == 2
    assert "needs output: hdfs://... or an absolute path of the nodes; given: 's3://bucket/x'" in done.stderr
    assert "chief needs a task of type chief or worker; give all, and every task writes" in done.stderr


def test_signal_kills_the_job(environ, tmp_path):
    command = f"echo $$ > {tmp_path}/$DTF_TASK_JOB_NAME; exec tail -f /dev/null"
    client = subprocess.Popen(
        [*SUBMIT, "--local", "--client", "-r", "worker:1", command],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    files = [tmp_path / name for name in ("worker", "client")]
    until(lambda: all(file.exists() and file.read_text() for file in files), what="the start of the client")
    client.send_signal(signal.SIGTERM)
    _, shown = client.communicate(timeout=60)
    assert client.returncode == 143 and "KILLED" in shown
    assert "Submit again if the kill was a mistake." in shown
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


def test_last_lines_of_a_program_killed_by_ctrl_c_are_shown(environ, tmp_path):
    command = f"trap 'echo checkpoint saved; exit 3' TERM; echo ready; echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/ready; tail -f /dev/null & wait"
    client = subprocess.Popen(
        [*SUBMIT, "--local", "-r", "worker:1", command],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until((tmp_path / "ready").exists, what="the start of the task")
    worker = int((tmp_path / "ready").read_text())
    client.send_signal(signal.SIGINT)
    lines, shown = client.communicate(timeout=60)
    assert client.returncode == 130 and "KILLED" in shown
    assert "Submit again if the kill was a mistake." not in shown
    assert "worker:0 | checkpoint saved\n" in lines and lines.count("worker:0 | ready") == 1, lines
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_workers_that_serve_after_the_chief_are_named(environ, tmp_path):
    """As TensorFlow's tutorial on parameter servers, whose workers never end."""
    client = subprocess.Popen(
        [
            *SUBMIT,
            "--local",
            "--wait",
            "-r",
            "chief:1,worker:1",
            "test $DTF_TASK_JOB_NAME = chief || exec tail -f /dev/null",
        ],
        env=environ,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = []
    try:
        while "alert:" not in (line := client.stderr.readline()):
            assert line, said
            said.append(line)
    finally:
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=60)
    assert "alert: chief:0 has succeeded; the job waits for worker:0, without any use of CPU." in line


def test_commands_know_a_local_job_by_its_id(call, environ):
    submitted = subprocess.run(  # into a pipe, which the job does not hold open
        [*SUBMIT, "--resourcemanager", "local://", "-r", "worker:1", "-n", "digits", "echo step 1; exec tail -f /dev/null"],
        env=environ, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    application_id = submitted.stdout.strip()
    until(lambda: "step 1" in call(YTF, "logs", application_id).stdout, what="the output of the task")
    assert json.loads(call(YTF, "status", "--json", application_id).stdout)["state"] == "RUNNING"
    assert application_id in call(YTF, "list", "--resourcemanager", "local://").stdout
    killed = call(YTF, "kill", application_id)
    assert killed.returncode == 0 and f"{application_id} KILLED: Killed by ytf kill" in killed.stderr
    assert "Killed by ytf kill" in call(YTF, "report", application_id).stdout
    assert call(YTF, "wait", application_id).returncode == 8
    assert application_id in call(YTF, "history", "--resourcemanager", "local://").stdout


def test_no_output_about_a_job_shows_a_secret(environ, call, tmp_path):
    """Its command, variables, result, log and last line have every spelling; the pages are read while it runs."""
    job = job_of_secrets(tmp_path)
    words = ["--local", "-n", "leaky", *job.words]
    seen = {"dry run": call(SUBMIT, "--dry_run", *words, job.command).stdout}
    client = subprocess.Popen(
        [*SUBMIT, *words, job.command],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    listed = until(
        lambda: (found := json.loads(call(YTF, "list", "--json", "--resourcemanager", "local://").stdout)) and found,
        what="the job in the list",
    )
    application_id = listed[0]["application_id"]
    url = until(lambda: json.loads(call(YTF, "status", "--json", application_id).stdout)["tracking_url"])
    log = until(lambda: "all are printed" in (text := read_once_there(f"{url}/log.txt?task=worker:0")) and text)
    seen |= {"log.txt": log, **{name or "page": read(f"{url}/{name}") for name in ("", "status.json", "parts.json")}}
    (tmp_path / "go").touch()
    client.communicate(timeout=120)
    assert client.returncode == 1
    seen |= {
        "status": call(YTF, "status", application_id).stdout,
        "report": call(YTF, "report", "--json", application_id).stdout,
        "history": call(YTF, "history", "--json", "--resourcemanager", "local://").stdout,
    }
    records = [path for path in tmp_path.rglob("*.json.gz") if application_id in path.name]
    seen["record"] = "".join(gzip.decompress(path.read_bytes()).decode() for path in records)
    assert all(map(len, seen.values())) and "leaky" in seen["record"] and "***" in seen["report"]
    assert job.found_in(seen) == {}


def read_once_there(url):
    """Return the text, empty before the task has started."""
    try:
        return read(url)
    except urllib.error.HTTPError as error:
        assert error.code == 404, error
        return ""


def read(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def test_unknown_local_job_is_not_looked_for_in_yarn(call, tmp_path):
    place = f"there is no job local_9_9 below {tmp_path}/tf_yarn_ops/jobs"
    for command, start in (
        ("status", f"local_9_9 LOST: {place}"),
        ("logs", f"ytf: {place}"),
        ("wait", f"local_9_9 LOST: {place}"),
    ):
        done = call(YTF, command, "local_9_9")
        shown = done.stdout + done.stderr
        assert done.returncode == 9 and shown.startswith(start) and "YARN" not in shown, shown
        assert "next: ytf list --resourcemanager local://" in shown


def test_local_and_a_resourcemanager_exclude_each_other(call):
    done = call(SUBMIT, "--local", "--resourcemanager", "http://rm:8088", "-r", "worker:1", "x")
    assert done.returncode == 2
    assert "local: it and resourcemanager name two places; give one of them" in done.stderr


def test_address_may_name_a_folder(call, tmp_path):
    done = call(
        SUBMIT,
        "--wait",
        "--resourcemanager",
        f"local://{tmp_path}/jobs here",
        "--no-logs",
        "-r",
        "worker:1",
        "echo first",
    )
    assert done.returncode == 0, done.stderr
    assert " | " not in done.stdout + done.stderr, "--no-logs"
    with_folder = local(f"{tmp_path}/jobs here").backend()
    assert isinstance(with_folder, LocalJobs)
    assert [job["finalStatus"] for job in with_folder.find()] == ["SUCCEEDED"]


def test_client_has_the_terminal_of_ytf_submit(environ, tmp_path):
    """An interactive program: it finds a terminal, and reads what the user types."""
    command = (
        "if [ $DTF_TASK_JOB_NAME = client ]; then "
        f"[ -t 0 ] && [ -t 1 ] && read -p 'go on? ' answer && echo $answer > {tmp_path}/answer; fi; "
        f"until [ -e {tmp_path}/answer ]; do sleep 0.1; done"
    )
    ours, theirs = pty.openpty()
    client = subprocess.Popen(
        [*SUBMIT, "--local", "--client", "-r", "worker:1", command],
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the last process has closed the terminal
            break
        if b"go on? " in shown + piece and b"go on? " not in shown:
            os.write(ours, b"yes\n")
        shown += piece
    assert client.wait(60) == 0, shown.decode()
    assert (tmp_path / "answer").read_text() == "yes\n"


def test_client_has_the_files_and_each_new_cluster_spec(call, tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n")
    client = f"(cat rows; echo $DTF_WORKER_HOSTS) > part; mv part {tmp_path}/seen.$YTF_ROUND; exec tail -f /dev/null"
    worker = (
        f"until [ -e {tmp_path}/seen.$YTF_ROUND ]; do sleep 0.05; done; echo $DTF_WORKER_HOSTS > {tmp_path}/own.$YTF_ROUND;"
        "[ $YTF_ROUND = 2 ]"
    )
    done = call(
        SUBMIT,
        "--local",
        "--client",
        "-r",
        "worker:1",
        "--file",
        f"rows={tmp_path}/rows.csv",
        "--restart",
        "cluster",
        "--restart_backoff",
        "0",
        "--command",
        f"client={client}",
        worker,
    )
    assert done.returncode == 0, done.stderr
    seen = [(tmp_path / f"seen.{number}").read_text().splitlines() for number in (1, 2)]
    assert seen == [["1,2", (tmp_path / f"own.{number}").read_text().strip()] for number in (1, 2)]
    assert done.stderr.count("running the command here") == 2 and "client: ended by signal 15" in done.stderr


def test_client_is_not_part_of_the_cluster_and_has_no_port(environ, tmp_path):
    command = f"env > {tmp_path}/$DTF_TASK_JOB_NAME.env; until [ -s {tmp_path}/client.env ]; do sleep 0.1; done"
    done = subprocess.run(
        [*SUBMIT, "--local", "--client", "-r", "worker:1", "-i", "/in", command],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    client, worker = (
        dict(line.split("=", 1) for line in (tmp_path / f"{name}.env").read_text().splitlines() if "=" in line)
        for name in ("client", "worker")
    )
    assert (client["DTF_TASK_JOB_NAME"], client["DTF_TASK_INDEX"]) == ("client", "0")
    for name in ("DTF_WORKER_HOSTS", "DTF_INPUT_PATH", "DTF_TASK_PROGRAM", "CLUSTER_SPEC", "YTF_APPLICATION_ID"):
        assert client[name] == worker[name], name
    assert "client" not in json.loads(client["CLUSTER_SPEC"]) and "DTF_CLIENT_HOSTS" not in worker
    assert "YTF_PORT" not in client and worker["YTF_PORT"]


def test_job_of_this_machine_is_open_to_this_machine_only(call):
    application_id = call(
        SUBMIT, "--resourcemanager", "local://", "-r", "worker:1", "-n", "digits", "exec tail -f /dev/null"
    ).stdout.strip()

    def running():
        shown = json.loads(call(YTF, "status", "--json", application_id).stdout)
        return shown if shown["tracking_url"] and shown["tasks"][0]["state"] == "running" else None

    page = until(running, what="the start of the task")["tracking_url"].rstrip("/") + "/pages/ytf/status.json"
    for host, status in (("", 200), ("localhost:1", 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403)):
        assert httpx.get(page, headers={"Host": host} if host else {}, trust_env=False).status_code == status
    pids = [
        path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if application_id.encode() in path.read_bytes()
    ]
    inodes = {os.readlink(link).partition("[")[2].rstrip("]") for pid in pids for link in (pid / "fd").iterdir()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    listening = [row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]
    assert len(listening) >= 2 and set(listening) == {"0100007F"}, "the page and the agents' port, on 127.0.0.1"
    assert call(YTF, "kill", application_id).returncode == 0


#: Holds a lock of Python's in the main thread, so that no code of the program runs any more; beside it no Python.
HANGING = """\
import os, sys, threading, time

def wait_for_the_others():
    lock = threading.Lock()
    lock.acquire()
    print("hangs", flush=True)
    lock.acquire()

wait_for_the_others()
"""


def test_stack_shows_where_a_running_task_hangs(call, environ, tmp_path):
    """Twice, because the first must not end the program; bash and sleep have no handler, and would end."""
    (tmp_path / "hang.py").write_text(HANGING)
    words = ["--local", "--env", "API_TOKEN=letmein", "-r", "worker:2", "-s", str(tmp_path / "hang.py")]
    command = "sleep 600 & exec -a letmein python3 $DTF_TASK_SCRIPT; true"
    with subprocess.Popen([*SUBMIT, *words, command], env=environ, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:  # fmt: skip
        application_id = re.search(r"local_\d+_\d+", next(line for line in client.stdout if "local_" in line))[0]
        for _ in range(2):
            shown = until(
                lambda: (
                    "wait_for_the_others" in (found := call(YTF, "stack", application_id, "worker:1").stdout) and found
                )
            )
        assert "hang.py" in shown and "sleep 600" in shown and "letmein" not in shown

        def both_run():
            tasks = json.loads(call(YTF, "status", "--json", application_id).stdout)["tasks"]
            return [task["state"] for task in tasks] == ["running"] * 2

        until(both_run, what="a report of both tasks")
        missing = call(YTF, "stack", application_id, "worker:7")
        assert (missing.returncode, "running: worker:0, worker:1" in missing.stderr) == (2, True), missing.stderr
        assert json.loads(call(YTF, "stack", "--json", application_id, "worker:0").stdout)["task"] == "worker:0"
        beside = call(YTF, "exec", application_id, "worker:0")
        assert (beside.returncode, "are processes of this machine" in beside.stderr) == (2, True), beside.stderr
        assert call(YTF, "kill", application_id).returncode == 0
        client.communicate(timeout=60)
    ended = call(YTF, "stack", application_id, "worker:0")
    assert ended.stderr == f"no process runs, because {application_id} has ended, KILLED: Killed by ytf kill\n"
    assert ended.returncode == 2


def test_temporary_files_of_a_killed_task_are_deleted(call, environ, tmp_path):
    (tmp_path / "around.py").write_text(PROGRAM)
    done = call(SUBMIT, "--local", "-r", "worker:1", "-s", str(tmp_path / "around.py"), "exec python3 $DTF_TASK_SCRIPT")
    assert done.returncode == 1 and "signal 9" in done.stderr, done.stderr
    found = json.loads(re.search("found: (.*)", done.stdout)[1])
    check_temporary_folder(found)
    mask = os.umask(0)
    os.umask(mask)
    assert not Path(found["place"]).exists() and found["umask"] == mask
    assert [found[name] for name in ("HOME", "LANG")] == [environ.get("HOME"), environ.get("LANG")]
    other = call(SUBMIT, "--local", "--env", f"TMPDIR={tmp_path}", "-r", "worker:1", "echo in $TMPDIR")
    assert f"in {tmp_path}" in other.stdout


def test_breakpoint_of_a_local_job_opens_its_prompt(environ, tmp_path):
    """The log names the folder of the task and the command that opens the prompt, as the example's page has it."""
    debugger = Path(__file__).parents[2] / "examples/debugging/breakpoint_socket.py"
    words = ("--file", f"{debugger.name}={debugger}", "--env", "PYTHONBREAKPOINT=breakpoint_socket.wait")
    program = "python3 -c $'x = 1; breakpoint()\\nprint(x)'"
    with subprocess.Popen(
        [*SUBMIT, "--local", "-r", "worker:1", *words, program], env=environ, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as job:  # fmt: skip
        lines = []
        for line in job.stdout:
            lines.append(line)
            if found := re.search(rf"cd (/.*) && (\S+) {re.escape(debugger.name)}$", line):
                folder, python = found.groups()
                typed = subprocess.run(
                    [python, debugger.name],
                    cwd=folder,
                    input="x = 20\nx\nc\n",
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                assert "(Pdb) 20\n" in typed.stdout, typed
        assert job.wait(60) == 0, lines
    assert "worker:0 | 20\n" in lines, "".join(lines)
