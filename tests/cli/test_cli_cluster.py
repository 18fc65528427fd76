"""The command line on the real cluster: words in, output, and that nothing is left."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import javaproperties
import pytest

from support.events import event_file, hide_tensorflow
from support.programs import ROOT, SUBMIT, YTF, run_here
from support.surroundings import PROGRAM, check_temporary_folder
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover

pytestmark = pytest.mark.cluster

SMALL = ["--environment", f"venv://{sys.prefix}", "-m", "256"]
#: Writes as many bytes of lines.
LINE = "a line of the program"
LONG_LOG = f"yes {LINE} | head -c {{}}"
RUN_ID = "nightly 2026-11-21"
APPLICATION = re.compile(r"application_\d+_\d+")
#: Writes what it finds in its environment and in its arguments where the report picks it up.
DUMP = """\
import json, os, sys
names = [name for name in os.environ if name.startswith(("DTF_", "MY_")) or name == "TF_CONFIG"]
json.dump({"argv": sys.argv[1:], **{name: os.environ[name] for name in names}}, open(os.environ["YTF_RESULT_FILE"], "w"))
"""


@pytest.fixture
def run(minicluster, tmp_path):
    """Return a function that runs a program where the cluster is known; kill its applications afterwards.

    What only reads, or kills, runs in this process.
    """

    def run(program, *words, timeout=120, check=None, env=None, typed=""):
        if program == YTF and words[0] in ("cache", "kill", "list", "logs", "report", "stack", "status", "wait"):
            done = run_here(YTF, *words, env=minicluster.environ)
        else:
            done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=timeout, cwd=tmp_path,
                                  env=env or environment(minicluster), input=typed)  # fmt: skip
        assert check is None or done.returncode == check, done.stderr
        return done

    yield run
    for application in applications(minicluster):
        if application["state"] not in ("FINISHED", "FAILED", "KILLED"):
            run(YTF, "kill", application["id"])


def environment(cluster):
    return {**os.environ, **cluster.environ, "PYTHONPATH": str(ROOT)}


def applications(cluster):
    """Return all applications that the ResourceManager knows."""
    with urllib.request.urlopen(f"{cluster.resourcemanager_url}/ws/v1/cluster/apps", timeout=60) as answer:
        return (json.load(answer)["apps"] or {}).get("app", [])


def state_of(cluster, application_id):
    url = f"{cluster.resourcemanager_url}/ws/v1/cluster/apps/{application_id}/state"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)["state"]


def handles_signals(pid):
    """Return whether a process has handlers for SIGINT and SIGTERM."""
    caught = int(re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())[1], 16)
    wanted = 1 << (signal.SIGINT - 1) | 1 << (signal.SIGTERM - 1)
    return caught & wanted == wanted


def task_of(report, name):
    return next(task for task in report["tasks"] if task["task"] == name)


def processes_with(words):
    """Return the processes whose command line has these words."""
    lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if words in line and "ytf" not in line]


def check_exec(run, cluster, application_id):
    """Run commands beside ps:0; return a session that is still open."""
    bash = ("exec", application_id, "ps:0", "--", "bash", "-c")
    done = run(YTF, *bash, 'cat; echo "$DTF_TASK_JOB_NAME" >&2; exit 7', typed="x\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "x\n", "ps\n")
    stranger = run(YTF, "exec", application_id, "ps:0", env={**environment(cluster), "HADOOP_USER_NAME": "mallory"})
    assert stranger.returncode == 2 and "who alone may use ytf exec; you are mallory" in stranger.stderr
    ours, theirs = pty.openpty()
    words = [*YTF, "exec", application_id, "ps:0"]
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(cluster), start_new_session=True
    ) as client:
        try:
            os.write(ours, b"tty; sleep 71234\n")
            until(lambda: processes_with("sleep 71234"), 60)
            os.write(ours, b"\x03echo $((40 + 2)); exec sleep 71235\n")
            until(lambda: processes_with("sleep 71235"), 60)
        finally:
            client.kill()
    shown = os.read(ours, 65536)
    assert b"/dev/pts/" in shown and b"42\r\n" in shown, shown
    until(lambda: not processes_with("sleep 71235"), 60, what="the end of a session without a client")
    words = [*YTF, *bash, "trap '' HUP TERM; echo up; sleep 71236; sleep 71236"]
    still = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(cluster), text=True)
    assert still.stdout.readline() == "up\n"
    return still


@pytest.mark.door
def test_submit_and_walk_away(run, minicluster, tmp_path):
    """The seed's simple submission: variables are expanded on the node, the job needs no client."""
    (tmp_path / "site.yaml").write_text("allow_exec: true\n")
    command = """'python3' -c 'import sys; print("args:", *sys.argv[1:])' \\
        --job_name ${DTF_TASK_JOB_NAME} --task_index ${DTF_TASK_INDEX} \\
        --ps_hosts ${DTF_PS_HOSTS} --worker_hosts ${DTF_WORKER_HOSTS}
        [ $DTF_TASK_INDEX$DTF_TASK_JOB_NAME = 1worker ] && (python3 around.py || true)
        [ $DTF_TASK_INDEX$DTF_TASK_JOB_NAME = 3worker ] && python3 -c 'x = 1; breakpoint()'
        [ $DTF_TASK_JOB_NAME = worker ] || exec python3 -c "import time; time.sleep(600)"
        until [ -e %s ]; do sleep 0.1; done""" % (tmp_path / "listed")
    (tmp_path / "around.py").write_text(PROGRAM)
    site = {**environment(minicluster), "YTF_SITE": str(tmp_path / "site.yaml")}
    debugger = ROOT / "examples/debugging/breakpoint_socket.py"
    files = ("--file", "around.py", "--file", f"{debugger.name}={debugger}")
    stops = ("--env", "PYTHONBREAKPOINT=breakpoint_socket.wait")
    done = run(SUBMIT, "-r", "ps:1,worker:4", *files, *stops, *SMALL, command, check=0, env=site)
    application_id = done.stdout.rstrip("\n")
    assert APPLICATION.fullmatch(application_id), done.stdout

    assert application_id in run(YTF, "list", check=0).stdout
    assert application_id in [job["application_id"] for job in json.loads(run(YTF, "list", "--json").stdout)]
    until(lambda: "<module>" in run(YTF, "stack", application_id, "ps:0").stdout, 60, what="the stack of the ps")

    def found_addresses():
        """Return where the tasks listen; the page's document may be older than a look at the stacks."""
        tasks = json.loads(run(YTF, "status", "--json", application_id).stdout)["tasks"]
        return all(task["address"] for task in tasks) and {task["task"]: task["address"] for task in tasks}

    addresses = until(found_addresses, 60, what="the addresses of all tasks")
    beside = check_exec(run, minicluster, application_id)
    prompt = (YTF, "exec", application_id, "worker:3", "--", "python3", debugger.name)
    until(lambda: "(Pdb) 20\n" in run(*prompt, typed="x = 20\nx\nc\n").stdout, 60, what="the breakpoint of worker:3")
    (tmp_path / "listed").touch()
    assert "ytf exec: the task ends" in beside.communicate(timeout=60)[1] and beside.returncode == 255
    assert not processes_with("sleep 71236")
    waited = run(YTF, "wait", application_id, check=0)
    assert f"{application_id} SUCCEEDED" in waited.stderr and waited.stdout == ""
    assert " lost: " not in waited.stderr, "tasks that are being ended are not lost"
    assert f"{application_id} SUCCEEDED" in run(YTF, "report", application_id, check=0).stdout
    assert application_id not in run(YTF, "list", check=0).stdout

    report = json.loads(run(YTF, "report", "--json", application_id, check=0).stdout)
    assert (report["reason"], report["final_status"], len(report["tasks"])) == ("SUCCEEDED", "SUCCEEDED", 5)
    assert (report["first_failure"], report["retryable"]) == (None, False)
    assert [task["state"] for task in report["tasks"]].count("succeeded") == 4
    assert task_of(report, "ps:0")["state"] == "stopped"

    log = run(YTF, "logs", application_id, "--task", "worker:2", check=0).stdout
    said = re.search(r"args: --job_name worker --task_index 2 --ps_hosts (\S+) --worker_hosts (\S+)", log)
    assert said and len(said[1].split(",")) == 1 and len(said[2].split(",")) == 4
    assert len({*said[1].split(","), *said[2].split(",")}) == 5, "each task has a port of its own"
    assert [addresses["ps:0"], *(addresses[f"worker:{index}"] for index in range(4))] == [
        said[1],
        *said[2].split(","),
    ]
    assert not any(task["address"] for task in report["tasks"]), "nothing listens there after the end"
    assert len(run(YTF, "logs", application_id, "--task", "worker:2", "--tail", "1", check=0).stdout.splitlines()) == 1
    found = json.loads(
        re.search("found: (.*)", run(YTF, "logs", application_id, "--task", "worker:1", check=0).stdout)[1]
    )
    check_temporary_folder(found)
    assert (found["USER"], found["LOGNAME"], found["HOME"]) == ("root", "root", "/home/"), found
    until(lambda: not os.path.exists(found["place"]), 60, what="the end of the temporary folder")
    none = run(YTF, "logs", application_id, "--task", "wroker:2")
    assert none.returncode == 2 and "did you mean 'worker:2'?" in none.stderr


NASTY = "blank  \"double\" 'single' $HOME ${DTF_TASK_INDEX} `id` \\ \\n\nnew line\ttab ü 漢字 🙂 \u2028 * ? ! # ; & |"


@pytest.fixture(scope="module")
def twice(minicluster, tmp_path_factory):
    """Run one job that reports its variables and arguments, on a machine that knows only the ResourceManager's URL.

    Two calls with one run id begin at once. Return how a call is made, what both have answered, and the applications
    that are new.
    """
    folder = tmp_path_factory.mktemp("dumped")
    for name, text in {"dump it.py": DUMP, "mine.txt": "of this test only", "other.txt": "under another name"}.items():
        (folder / name).write_text(text)
    literal = "'" + NASTY.replace("'", "'\\''") + "'"
    command = (
        'test -s mine.txt && test -s named.txt && python "${DTF_TASK_SCRIPT}" '
        f"{literal} \"$MY_TEXT\" '' ${{DTF_TASK_INDEX}}"
    )
    bare = {"PATH": str(folder), "HOME": str(folder), "PYTHONPATH": str(ROOT), "USER": "root"}
    words = ["--resourcemanager", minicluster.resourcemanager_url, "--run_id", RUN_ID, *SMALL, "-i", NASTY,
             "-o", "/out put", "-s", "dump it.py", "-n", "a name", "--env", f"MY_TEXT={NASTY}", "--file", "mine.txt",
             "--file", "named.txt=other.txt", "-r", "chiefworker:1,evaluator:1", command]  # fmt: skip

    def call(*more):
        return subprocess.run(
            [*SUBMIT, *more, *words], env=bare, cwd=folder, capture_output=True, text=True, timeout=120
        )

    before = {app["id"] for app in applications(minicluster)}
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(call, ["--wait"] * 2, ["--json"] * 2))
    return SimpleNamespace(call=call, answers=answers, new={app["id"] for app in applications(minicluster)} - before)


@pytest.fixture(scope="module")
def dumped(twice):
    return twice.answers[0]


def test_a_machine_with_nothing_but_the_url(dumped):
    """No Java, no Hadoop, no configuration."""
    assert dumped.returncode == 0, dumped.stderr
    assert json.loads(dumped.stdout)["reason"] == "SUCCEEDED"


def test_script_input_and_output(dumped):
    report = json.loads(dumped.stdout)
    seen = report["metrics"]
    assert (seen["DTF_TASK_SCRIPT"], seen["DTF_INPUT_PATH"], seen["DTF_OUTPUT_PATH"], seen["DTF_OUT_PATH"]) == (
        "dump it.py", NASTY, "/out put", "/out put")  # fmt: skip
    assert seen["DTF_TASK_PROGRAM"].startswith("test -s mine.txt && ")
    assert (report["name"], report["output_path"]) == ("a name", "/out put")


def test_a_chiefworker_and_its_evaluator_are_a_job(dumped):
    report = json.loads(dumped.stdout)
    seen = report["metrics"]
    assert (seen["DTF_TASK_JOB_NAME"], seen["DTF_TASK_INDEX"]) == ("chief", "0")
    config = json.loads(seen["TF_CONFIG"])
    assert config["task"] == {"type": "chief", "index": 0}
    assert config["cluster"] == {"chief": [seen["DTF_CHIEF_HOSTS"]]}, "the evaluator is not part of the cluster spec"
    assert {task["task"]: task["state"] for task in report["tasks"]} == {
        "chief:0": "succeeded",
        "evaluator:0": "succeeded",
    }


def test_texts_arrive_byte_for_byte(dumped):
    seen = json.loads(dumped.stdout)["metrics"]
    assert seen["argv"] == [NASTY, NASTY, "", "0"]
    assert (seen["MY_TEXT"], seen["DTF_INPUT_PATH"]) == (NASTY, NASTY)


def test_the_cache_is_listed_and_pruned(run, dumped):
    listed = run(YTF, "cache", "list", check=0).stdout
    assert "/mine.txt" in listed and "skein.jar" in listed
    assert "0 files deleted" in run(YTF, "cache", "prune", check=0).stderr
    deleted = json.loads(run(YTF, "cache", "prune", "--unused_days", "0", "--json", check=0).stdout)
    assert "mine.txt" in [file["name"] for file in deleted]


@pytest.mark.parametrize(
    ("words", "code", "reason", "first"),
    [
        ([*SMALL, "-r", "ps:1,worker:2", '[ $TASK_INDEX$JOB_NAME = 1worker ] || sleep 600; echo "ValueError: no data" >&2; exit 3'],
         1, "TASK_FAILED", ("worker:1", 3)),
        (["--local", "--no-logs", "-r", "chief:1,evaluator:1", "[ $JOB_NAME = chief ] && sleep 600; kill -9 $$"],
         1, "TASK_FAILED", ("evaluator:0", None)),
    ],
    ids=["a worker fails", "a signal ends the evaluator, on this machine"],
)  # fmt: skip
def test_json_describes_each_ending(run, words, code, reason, first, tmp_path):
    outputs = tmp_path / "outputs"
    done = run(SUBMIT, "--wait", "--json", "--output-properties", str(outputs), *words)
    report = json.loads(done.stdout)
    written = javaproperties.loads(outputs.read_text())
    assert (written["status"], written["reason"], written["application_id"], written["exit_code"]) == (
        "FAILED",
        reason,
        report["application_id"],
        str(code),
    )
    assert (done.returncode, report["reason"], report["retryable"]) == (code, reason, False)
    assert all(task["state"] in ("succeeded", "failed", "stopped") for task in report["tasks"])
    assert {task["starts"] for task in report["tasks"]} == {1}, "nothing is started again unless it is asked for"
    name, exit_code = first
    assert (report["first_failure"], task_of(report, name)["exit_code"]) == first
    assert done.stderr.splitlines()[-1] == f"next: ytf logs {report['application_id']} --task {name}"
    how = f"exit {exit_code}" if exit_code else "signal 9"
    assert f"{name} failed first: {how} on " in done.stderr
    if exit_code == 3:
        assert "ValueError: no data" in task_of(report, name)["log_tail"]
        assert "    ValueError: no data\n" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "reason", "message"),
    [
        (["-q", "nowhere", "-r", "worker:1"], 3, "SUBMISSION_REJECTED", "nowhere"),
        (["-m", "worker:900g", "-r", "worker:1"], 3, "RESOURCES_IMPOSSIBLE", "921600 MiB"),
        (["--task_gpus", "30000", "-r", "worker:1", "--strict_placement"], 3, "RESOURCES_IMPOSSIBLE", "30000 GPUs"),
    ],
    ids=["unknown queue", "too much memory", "too many GPUs"],
)  # fmt: skip
def test_what_the_cluster_cannot_do_is_refused_before_the_submission(minicluster, words, code, reason, message):
    before = len(applications(minicluster))
    done = run_here(SUBMIT, "--wait", "--json", *words, "true", env=minicluster.environ)
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"]) == (code, reason)
    assert message in report["message"] and message in done.stderr
    assert len(applications(minicluster)) == before


def test_a_signal_in_a_long_log_kills_the_application_once(minicluster):
    words = ["--wait", "--json", *SMALL, "-r", "worker:1", f"{LONG_LOG.format(24_000_000)}; sleep 600"]
    client = subprocess.Popen([*SUBMIT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment(minicluster))  # fmt: skip
    lines = []
    while not any(LINE in line for line in lines):
        lines.append(client.stderr.readline())
        assert lines[-1], lines
    client.send_signal(signal.SIGINT)
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=60)
    assert client.returncode == 130, err
    report = json.loads(out)
    assert (report["reason"], state_of(minicluster, report["application_id"])) == ("KILLED", "KILLED")
    assert err.count("ytf-submit: killing") == 1 and "Traceback" not in err
    assert err.count(LINE) < 500_000, "half of the log"


def test_a_signal_ends_each_reader_of_a_long_log_at_once(run, minicluster, tmp_path):
    """The client waits until somebody reads what it writes; meanwhile the job ends.

    It shows the lines of the only task by default; with --no-logs: test_local.py. A look at a running job reads no more
    than 4 MiB, so a part of the log is left for the time behind the verdict.
    """
    size, is_read = 7_000_000, tmp_path / "is_read"
    long_log = f"until test -e {is_read}; do sleep 0.1; done; {LONG_LOG.format(size)}"
    words = ["--wait", *SMALL, "-r", "worker:1", f"echo first; echo second >&2; {long_log}; exit 3"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment(minicluster)}
    client = subprocess.Popen([*SUBMIT, *words], **pipes)
    name = client.stdout.readline().strip()
    assert APPLICATION.fullmatch(name)
    lines = iter(client.stderr.readline, "")
    shown = []
    assert any(shown.append(line) or "worker:0 | second" in line for line in lines), shown
    is_read.touch()
    until(lambda: state_of(minicluster, name) == "FINISHED", 120, what="the end of the job")
    for text in (f"{name} FINISHED: TASK_FAILED", LINE):  # the verdict comes before the log's end
        assert any(shown.append(line) or text in line for line in lines), shown[:20]
    assert "worker:0 | first\nworker:0 | second\n" in "".join(shown)
    client.send_signal(signal.SIGTERM)
    _, err = client.communicate(timeout=60)
    few = size // len(f"{LINE}\n") // 10
    assert client.returncode == 1 and err.count(LINE) < few, err[-1000:]
    assert f"ytf-submit: {name} has ended; the rest of its log is not shown" in err
    assert state_of(minicluster, name) == "FINISHED"

    lines = run(YTF, "logs", name, "--json", check=0).stdout.splitlines()
    assert lines.count(json.dumps({"task": None, "line": LINE})) == size // len(f"{LINE}\n")
    for number, code, more in (
        (signal.SIGTERM, 143, ()),
        (signal.SIGINT, 130, ("--json",)),
        (signal.SIGINT, 130, ("-f",)),
    ):
        reader = subprocess.Popen([*YTF, "logs", name, *more], **pipes)
        text = reader.stdout.read(2000)
        assert LINE in text
        reader.send_signal(number)
        out, err = reader.communicate(timeout=60)
        assert (reader.returncode, out.count(LINE) < few) == (code, True), (more, err)
        assert "Traceback" not in err


@pytest.mark.parametrize("seconds", [0, 0.4, 0.75])
def test_a_signal_at_any_moment_of_the_submission_leaves_nothing_running(run, minicluster, seconds):
    """A submission takes about 0.7 s: before the first request, between any two, after the last."""
    before = {app["id"] for app in applications(minicluster)}
    client = subprocess.Popen([*SUBMIT, "-v", "--wait", "-q", "full", *SMALL, "-r", "worker:1", "sleep 600"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment(minicluster))  # fmt: skip
    # Before Python has come to our first line, TERM ends it as it ends any program.
    until(lambda: handles_signals(client.pid))
    with pytest.raises(subprocess.TimeoutExpired):
        client.wait(seconds)
    client.send_signal(signal.SIGTERM)
    _, err = client.communicate(timeout=60)
    assert client.returncode == 143, err
    new = [app for app in applications(minicluster) if app["id"] not in before]
    assert all(app["state"] in ("KILLED", "FAILED", "FINISHED") for app in new)
    assert len(new) <= 1 and "Traceback" not in err


def test_a_run_id_trains_once(twice):
    """Two calls of cron at once, and a third one afterwards: one application."""
    third = twice.call("--wait", "--json")
    assert third.returncode == 0, third.stderr
    told = [json.loads(answer.stdout) for answer in (*twice.answers, third)]
    assert {report["reason"] for report in told} == {"SUCCEEDED"}
    assert {report["application_id"] for report in told} == twice.new
    assert len({report["application_id"] for report in told}) == 1


def test_expired_waits_leave_the_application_and_all_see_a_kill(run, minicluster, twice):
    """Somebody else kills while ytf-submit waits: the report names them, also later.

    The application is a further generation of a run id, and waits in a queue without room.
    """
    again = ("--generation", "1", "--run_id", RUN_ID, "-q", "full")
    client = subprocess.Popen([*SUBMIT, "--wait", "--json", *again, *SMALL, "-r", "worker:1", "sleep 600"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment(minicluster))  # fmt: skip
    application_id = until(lambda: APPLICATION.search(client.stderr.readline()))[0]
    assert application_id not in twice.new
    waited = run(YTF, "wait", "--timeout", "0.5", application_id)
    assert waited.returncode == 7 and "it goes on" in waited.stderr
    other = subprocess.Popen([*YTF, "wait", application_id], stderr=subprocess.PIPE, text=True,
                             env=environment(minicluster))  # fmt: skip
    assert application_id in other.stderr.readline()
    other.send_signal(signal.SIGINT)
    _, err = other.communicate(timeout=60)
    assert (other.returncode, err.splitlines()[-1]) == (
        130,
        f"{application_id} goes on; next: ytf wait {application_id}",
    )
    assert state_of(minicluster, application_id) == "ACCEPTED" and client.poll() is None

    killed = run(YTF, "kill", application_id, check=0)
    assert f"{application_id} KILLED" in killed.stderr
    out, err = client.communicate(timeout=60)
    report = json.loads(out)
    assert (client.returncode, report["application_id"], report["reason"]) == (8, application_id, "KILLED"), err
    assert f"{application_id} KILLED" in err and "Traceback" not in err
    waited = run(YTF, "wait", "--json", application_id)
    assert (waited.returncode, json.loads(waited.stdout)["reason"]) == (8, "KILLED")
    assert run(YTF, "kill", application_id).returncode == 0


@pytest.fixture(scope="module")
def restarted(minicluster, tmp_path_factory):
    """Run a job of two rounds from a terminal, while another client follows its logs.

    Return the id, what the terminal has got, the exit code of ytf-submit, and the answer of `ytf logs -f`.
    """
    folder = tmp_path_factory.mktemp("restarted")
    command = (
        'echo "round $YTF_ROUND"; [ $YTF_ROUND$DTF_TASK_INDEX = 11 ] && exit 3; [ $YTF_ROUND = 2 ] || sleep 600; '
        'for i in 1 2 3; do echo "2020-01-0$i 00:00:00 step $i"; sleep 0.5; done; '
        f"until [ -e {folder}/seen ]; do sleep 0.1; done"
    )
    ours, theirs = pty.openpty()
    client = subprocess.Popen(
        [*SUBMIT, "--wait", *SMALL, "-r", "worker:2", "--restart", "cluster", "--max_restarts", "1", "--stop_grace", "1", command],
        stdout=subprocess.PIPE, stderr=theirs, text=True, cwd=folder,
        env={**environment(minicluster), "TERM": "xterm", "COLUMNS": "120"})  # fmt: skip
    os.close(theirs)
    shown, following = b"", None
    with ThreadPoolExecutor(1) as pool:
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
            if following is None and (found := re.search(rf"{APPLICATION.pattern}(?=\D)", without_colours(shown))):
                following = pool.submit(subprocess.run, [*YTF, "logs", "-f", found[0]], capture_output=True, text=True, timeout=120,
                                        cwd=folder, env=environment(minicluster))  # fmt: skip
            if re.search(r"worker:1\s+running", without_colours(shown)):
                (folder / "seen").touch()
        out, _ = client.communicate(timeout=60)
        os.close(ours)
        assert following, shown
        return SimpleNamespace(
            application_id=out.strip(),
            shown=without_colours(shown),
            code=client.returncode,
            followed=following.result(),
        )


def without_colours(shown):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode(errors="replace"))


def test_a_terminal_gets_a_live_table(restarted):
    assert restarted.code == 0, restarted.shown
    assert APPLICATION.fullmatch(restarted.application_id)
    assert re.search(r"worker:1\s+running", restarted.shown)
    assert re.search(r"worker:1\s+succeeded\s+exit 0", restarted.shown)


def test_logs_are_followed_through_a_restart_until_the_end(run, restarted):
    """And no line is lost or repeated: the followed lines are those of the whole logs."""
    followed, application_id = restarted.followed, restarted.application_id
    assert followed.returncode == 0, followed.stderr
    assert "round 2: " in followed.stderr and f"{application_id} SUCCEEDED" in followed.stderr
    lines = {task: re.findall(rf"^{task} \| (.*)$", followed.stdout, re.M) for task in ("worker:0", "worker:1")}
    assert all(
        [line for line in found if line.startswith(("round", "2020"))]
        == ["round 1", "round 2", *(f"2020-01-0{number} 00:00:00 step {number}" for number in (1, 2, 3))]
        for found in lines.values()
    ), followed.stdout

    printed = run(YTF, "logs", application_id, "--json", "--task", "worker:*", check=0).stdout.splitlines()
    whole = [json.loads(line) for line in printed]
    assert {task: [one["line"] for one in whole if one["task"] == task] for task in lines} == lines


@pytest.mark.parametrize("command", ["status", "report"])
def test_an_application_that_yarn_does_not_know(run, command):
    done = run(YTF, command, "--json", "application_1_0001")
    assert (done.returncode, json.loads(done.stdout)["reason"]) == (9, "LOST")


@pytest.fixture(scope="module")
def beside(minicluster, tmp_path_factory):
    """Run a job of two rounds whose client goes on in the first one, and ends with an answer in the second.

    Return the folder in which all have written, and what ytf-submit has shown.
    """
    folder = tmp_path_factory.mktemp("beside")
    (folder / "folder").mkdir()
    (folder / "folder/name").write_text("of a folder\n")
    packed = Path(shutil.make_archive(str(folder / "packed"), "gztar", folder / "folder"))
    with closing(discover(minicluster.resourcemanager_url, minicluster.environ).open_filesystem()) as files:
        files.makedirs("/tmp/client", 0o755)
        files.create("/tmp/client/rows", b"of hdfs\n", 0o600)
        files.create("/tmp/client/packed.tar.gz", packed.read_bytes(), 0o600)
    command = f"""if [ $DTF_TASK_JOB_NAME = client ]; then
          [ -e {folder}/client.env ] || env > {folder}/client.env
          (cat rows near far/name; command -v python; echo $DTF_WORKER_HOSTS) > part; mv part {folder}/seen.$YTF_ROUND
          [ $YTF_ROUND = 2 ] || exec tail -f /dev/null
          read answer; echo $answer > {folder}/done; echo $$ > part; mv part {folder}/pid; exit
        fi
        case $DTF_TASK_JOB_NAME$YTF_ROUND$DTF_TASK_INDEX in ps* | worker11) exec tail -f /dev/null ;; esac
        echo $DTF_WORKER_HOSTS > {folder}/own.$YTF_ROUND; until [ -e {folder}/seen.$YTF_ROUND ]; do sleep 0.1; done
        [ $YTF_ROUND = 2 ] || exit 1
        until [ -e {folder}/pid ] && ! kill -0 $(cat {folder}/pid); do sleep 0.1; done"""
    words = ["--client", *SMALL, "--stop_grace", "2", "--restart", "cluster", "--restart_backoff", "0", "-i", "/in",
             "--file", "rows=hdfs:///tmp/client/rows", "--file", f"near={folder}/folder/name",
             "--archive", "far=hdfs:///tmp/client/packed.tar.gz", "-r", "ps:2,worker:2", command]  # fmt: skip
    done = subprocess.run(
        [*SUBMIT, *words], capture_output=True, text=True, timeout=180, input="go on\n", env=environment(minicluster)
    )
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(folder=folder, done=done)


def test_client_runs_here_with_the_variables_of_the_tasks(beside):
    """The seed's --client: outside of the cluster, once the cluster is complete, with the terminal of ytf-submit."""
    done = beside.done
    assert APPLICATION.fullmatch(done.stdout.strip())
    lines = (beside.folder / "client.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    assert (env["DTF_TASK_JOB_NAME"], env["DTF_TASK_INDEX"], env["DTF_INPUT_PATH"]) == ("client", "0", "/in")
    assert (beside.folder / "done").read_text() == "go on\n"
    ps, workers = env["DTF_PS_HOSTS"].split(","), env["DTF_WORKER_HOSTS"].split(",")
    assert (len(ps), len(workers), len({*ps, *workers})) == (2, 2, 4), "each task has a port of its own"
    assert env["YTF_APPLICATION_ID"] == done.stdout.strip()
    assert "client" not in json.loads(env["TF_CONFIG"])["cluster"]
    assert "client: exit code 0" in done.stderr


def test_client_has_environment_files_and_each_cluster_spec(beside):
    """A command of its own, and its end with the job: test_local.py."""
    folder = beside.folder
    assert beside.done.stderr.count("running the command here") == 2
    for number in (1, 2):
        assert (folder / f"seen.{number}").read_text().splitlines() == [
            "of hdfs",
            "of a folder",
            "of a folder",
            f"{sys.prefix}/bin/python",
            (folder / f"own.{number}").read_text().strip(),
        ]


def test_tensorboard_shows_the_training_lingers_and_ends_with_the_job(run, minicluster, tmp_path):
    """The seed's example with -t, -i and -o; in a browser: test_jobs_cluster.py."""
    gate = tmp_path / "done"
    (tmp_path / "train").mkdir()
    (tmp_path / "events").write_bytes(event_file(2))
    (tmp_path / "site.yaml").write_text("tensorboard_direct: true\n")
    hidden = f"PYTHONPATH={hide_tensorflow(tmp_path / 'hidden')}"
    command = f"""[ $DTF_TASK_JOB_NAME = worker ] || exec sleep 600
        [ $DTF_TASK_INDEX = 1 ] || cp '{tmp_path}/events' ${{DTF_OUTPUT_PATH}}/events.out.tfevents.1.${{DTF_INPUT_PATH}} || exit
        until [ -e '{gate}' ]; do sleep 0.2; done"""
    client = subprocess.Popen(
        [*SUBMIT, "--wait", "--json", "--tensorboard", "-i", "mnist", "-o", str(tmp_path / "train"), *SMALL,
         "--commit", "replace", "--env", hidden, "--tensorboard_memory", "1g", "--tensorboard_linger", "12", "-r", "ps:1,worker:2", command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**environment(minicluster), "YTF_SITE": str(tmp_path / "site.yaml")})  # fmt: skip

    def told(pattern):
        while line := client.stderr.readline():
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"ytf-submit has ended without a line of {pattern!r}")

    def curves():
        try:
            with urllib.request.urlopen(f"{url}/data/plugin/scalars/tags", timeout=60) as answer:
                return list(json.load(answer).get(".", ()))
        except OSError:
            return None

    url = told(r"TensorBoard at (\S+)").rstrip("/")
    until(lambda: curves() == ["loss of mnist"], 60, 0.2)
    gate.touch()
    ended = ""
    while not ("worker:0" in ended and "worker:1" in ended):
        ended += told(r"succeeded: (.*worker.*)")
    until((tmp_path / "train" / "_SUCCESS").exists, 5, 0.1)
    # It goes on after the commit, and reads the moved files at its next reload.
    until(lambda: curves() == ["loss of mnist"], 10, 0.2)
    out, err = client.communicate(timeout=60)
    assert client.returncode == 0 and url in err, err
    report = json.loads(out)
    states = {task["task"]: task["state"] for task in report["tasks"]}
    assert states == {"ps:0": "stopped", "tensorboard:0": "stopped", "worker:0": "succeeded", "worker:1": "succeeded"}
    trained = max(task_of(report, f"worker:{index}")["finished_at"] for index in (0, 1))
    assert task_of(report, "ps:0")["finished_at"] < trained + 12 <= task_of(report, "tensorboard:0")["finished_at"]
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=60)
