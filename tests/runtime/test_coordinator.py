"""Coordinator and agents as real processes over real TLS; Skein's side is made on the wire (appmaster.py)."""

import json
import os
import re
import signal
import sys
import urllib.request
from pathlib import Path

import pytest

from support.appmaster import APPLICATION, AppMaster
from support.fake_yarn import SECRET
from support.http_server import Handler, running
from support.runtime_jobs import FOREVER, SHORT_HEARTBEAT, job, processes_of, task
from support.waiting import until
from tf_yarn_ops.job.parts import Deadlines, Resources, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common.contract import TaskId
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import parse_diagnostics, verdict_tag


def test_all_workers_end_well_and_the_ps_is_ended(run):
    am, report = run(job('echo "{\\"accuracy\\": 0.9$DTF_TASK_INDEX}" > $YTF_RESULT_FILE'))
    assert report.reason is Reason.SUCCEEDED
    assert {t.task: t.state for t in report.tasks} == {
        "ps:0": "stopped",
        "worker:0": "succeeded",
        "worker:1": "succeeded",
    }
    assert task(report, "ps:0").signal == signal.SIGTERM
    assert report.metrics == {"accuracy": 0.90}
    assert [g.cause for g in report.rounds] == ["start"]
    assert am.coordinator.returncode == 0
    assert processes_of(am) == []


def test_a_failed_worker_fails_the_job_and_says_why(run):
    am, report = run(job(f'if [ $TASK_INDEX = 1 ]; then echo "ValueError: no data" >&2; exit 3; fi; {FOREVER}'))
    assert (report.reason, report.first_failure) == (Reason.TASK_FAILED, "worker:1")
    message = r"worker:1 failed with exit code 3 on 127.0.0.1 after [\d.]+ s: ValueError: no data"
    assert re.fullmatch(message, report.message)
    failed = task(report, "worker:1")
    assert (failed.state, failed.exit_code, failed.starts) == ("failed", 3, 1)
    assert "ValueError: no data" in failed.log_tail and "agent" not in failed.log_tail
    assert task(report, "worker:0").state == task(report, "ps:0").state == "stopped"
    assert processes_of(am) == []


def test_a_signal_is_reported_as_a_signal(run):
    _, report = run(job("kill -SEGV $$", ps=False, workers=1))
    assert report.reason is Reason.TASK_FAILED
    assert (task(report, "worker:0").signal, task(report, "worker:0").exit_code) == (signal.SIGSEGV, None)
    assert "signal 11" in report.message


def test_a_failed_evaluator_fails_the_job_though_it_is_in_nobodys_cluster(run):
    tasks = {"worker": TaskSpec(command=FOREVER), "evaluator": TaskSpec(command='echo "$TF_CONFIG"; exit 4')}
    _, report = run(job("x", tasks=tasks))
    assert (report.reason, report.first_failure) == (Reason.TASK_FAILED, "evaluator:0")
    config = json.loads(task(report, "evaluator:0").log_tail)
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert list(config["cluster"]) == ["worker"]


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """Return the application master, the report and the environment of a job of one task with a result."""
    command = (
        """env -0 > env; printf '{"accuracy": 0.9, "seen": {"of": ["the key is %s"]}}' $API_KEY > $YTF_RESULT_FILE"""
    )
    env = {"API_KEY": "hunter2-long", "METRIC_KEY": "accuracy", "NASTY": NASTY, "EMPTY": ""}
    with AppMaster(tmp_path_factory.mktemp("single") / "job", job(command, ps=False, workers=1, env=env)) as am:
        report = am.wait()
    lines = (am.container("worker_0").folder / "env").read_text().split("\0")
    return am, report, dict(line.split("=", 1) for line in lines if line)


NASTY = "blank  'quote' \"double\" $HOME `id` \\ ünï\t*\nsecond line "


def test_a_single_task_is_a_cluster_of_one(single):
    _, report, env = single
    assert report.reason is Reason.SUCCEEDED
    assert json.loads(env["TF_CONFIG"]) == {
        "cluster": {"worker": [env["DTF_WORKER_HOSTS"]]},
        "task": {"type": "worker", "index": 0},
    }
    assert env["TF_GRPC_REUSE_PORT"] == "true"


def test_values_reach_the_program_byte_for_byte(single):
    assert (single[2]["NASTY"], single[2]["EMPTY"]) == (NASTY, "")


def test_secret_in_the_result_is_masked_like_the_log(single):
    am, report, _ = single
    assert report.metrics == {"accuracy": 0.9, "seen": {"of": ["the key is ***"]}}, "names stay"
    assert "the report shows them as ***" in am.container("worker_0").log


def test_every_task_sees_its_type_and_index(run):
    """The seed's DTF_TASK_JOB_NAME and DTF_TASK_INDEX, for tasks in the cluster spec and outside.

    An index with a size of its own is in a container of this size.
    """
    workers = TaskSpec(instances=3, indices={1: Resources(memory=4096)})
    tasks = {"chief": TaskSpec(), "worker": workers, "ps": TaskSpec(), "evaluator": TaskSpec()}
    command = f"""echo "$DTF_TASK_JOB_NAME $DTF_TASK_INDEX" > named; [ $JOB_NAME != ps ] || {FOREVER}
        until [ -s ../ps_0/named ]; do sleep 0.05; done"""
    am, report = run(job(command, tasks=tasks))
    assert report.reason is Reason.SUCCEEDED
    seen = {
        name: (am.container(name).folder / "named").read_text()
        for name in ("chief_0", "worker_0", "worker_1", "worker.1_0", "ps_0", "evaluator_0")
    }
    assert {seen.pop("worker_0"), seen.pop("worker_1")} == {"worker 0\n", "worker 2\n"}
    assert seen == {
        "chief_0": "chief 0\n",
        "worker.1_0": "worker 1\n",
        "ps_0": "ps 0\n",
        "evaluator_0": "evaluator 0\n",
    }


@pytest.mark.slow
@pytest.mark.parametrize("content", ["[1, 2]", "{broken", '{"big": "' + "x" * 9000 + '"}'])
def test_unusable_result_is_logged_and_does_not_fail_the_job(run, content):
    am, report = run(job('printf %s "$CONTENT" > $YTF_RESULT_FILE', ps=False, workers=1, env={"CONTENT": content}))
    assert report.reason is Reason.SUCCEEDED
    assert report.metrics is None
    assert "the result file is not used" in am.container("worker_0").log


# -- restarts ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cluster_restart_gives_new_ports_to_the_same_containers(run):
    command = """echo "$DTF_WORKER_HOSTS" >> hosts
        if [ $YTF_ROUND = 1 ]; then
            [ $TASK_INDEX = 1 ] && until [ -s ../worker_0/hosts ]; do sleep 0.05; done && exit 7
            sleep 600
        fi"""
    am, report = run(job(command, restart=RestartPolicy("cluster", backoff=0.1)))
    assert report.reason is Reason.SUCCEEDED
    assert [g.number for g in report.rounds] == [1, 2]
    assert "worker:1 failed with exit code 7" in report.rounds[1].cause
    before, after = (am.container("worker_0").folder / "hosts").read_text().split()
    assert not set(before.split(",")) & set(after.split(","))
    assert {t.starts for t in report.tasks} == {2}
    assert len(am.containers) == 3


@pytest.mark.slow
def test_a_task_restart_keeps_port_and_leaves_the_others_alone(run):
    command = """echo "$DTF_WORKER_HOSTS" >> hosts
        if [ $TASK_INDEX = 1 ] && [ ! -e again ]; then touch again; exit 7; fi; sleep 1"""
    am, report = run(job(command, restart=RestartPolicy("task", backoff=0.1)))
    assert report.reason is Reason.SUCCEEDED
    first, second = (am.container("worker_1").folder / "hosts").read_text().split()
    assert first == second == (am.container("worker_0").folder / "hosts").read_text().strip()
    assert (task(report, "worker:0").starts, task(report, "worker:1").starts) == (1, 2)
    assert len(report.rounds) == 1


@pytest.mark.slow
def test_an_evaluator_is_restarted_alone(run):
    tasks = {
        "worker": TaskSpec(command="until [ -e ../evaluator_0/measured ]; do sleep 0.05; done"),
        "evaluator": TaskSpec(command="if [ ! -e again ]; then touch again; exit 7; fi; touch measured"),
    }
    _, report = run(job("x", tasks=tasks, restart=RestartPolicy("task", backoff=0.1)))
    assert report.reason is Reason.SUCCEEDED, report.message
    assert (task(report, "worker:0").starts, task(report, "evaluator:0").starts) == (1, 2)
    assert len(report.rounds) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["task", "cluster"])
def test_task_moves_off_a_node_where_tasks_fail(run, mode):
    nodes = {"worker_0": "good:8042", "worker_3": "good:8042"}
    fails = "[ $SKEIN_CONTAINER_ID = worker_1 ] && exit 7; until [ -e ../worker_3 ]; do sleep 0.05; done"
    am, report = run(
        job(fails, ps=False, restart=RestartPolicy(mode, backoff=0, exclude_node_after=2)), nodes=nodes, heartbeat=1.5
    )
    assert report.reason is Reason.SUCCEEDED, report.message
    assert len(am.containers) == 4, "one replaces worker_1, and one worker_2"
    assert am.container("worker_2").state == "KILLED", "given on the excluded node, and given back"
    assert task(report, "worker:1").container_id == "container_worker_3"
    ((node, why),) = report.excluded_nodes.items()
    assert node == "127.0.0.1:8042" and why.startswith("2 failures, the last: worker:1 failed with exit code 7")


def test_a_fatal_exit_code_is_not_retried(run):
    _, report = run(job("exit 9", ps=False, workers=1, restart=RestartPolicy("task", fatal_exit_codes=(9,))))
    assert task(report, "worker:0").starts == 1


@pytest.mark.slow
@pytest.mark.parametrize("strike", [signal.SIGKILL, signal.SIGTERM])
def test_a_lost_container_is_replaced_and_the_cluster_restarts_with_it(tmp_path, strike):
    spec = job("if [ $YTF_ROUND = 1 ]; then tail -f /dev/null; fi")
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("Published the cluster spec, round 1")
        am.container("worker_1").kill(strike)
        report = am.wait()
    assert report.reason is Reason.SUCCEEDED
    assert "worker:1 was lost" in report.rounds[1].cause
    assert task(report, "worker:1").container_id == "container_worker_2"


#: In the first round worker:1 fails as soon as worker:0 is gone.
FAILS_WITH_THE_OTHER = f"""[ $YTF_ROUND = 1 ] || exit 0
if [ $TASK_INDEX = 0 ]; then echo $PPID > agent; echo $$ > me; mkfifo pipe; exec 3> pipe; touch open; {FOREVER}; fi
until [ -p ../worker_0/pipe ]; do sleep 0.05; done
cat ../worker_0/pipe; exit 5"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "losses"), [("container", 3), ("container", 0), ("node", 3), ("node, and Skein does not answer", 0)]
)
def test_failure_after_a_loss_is_judged_by_the_loss(tmp_path, how, losses):
    """The task that fails is the first to know: Skein's list is 2 s late, and a dead node closes no connection."""
    restart = RestartPolicy(max_container_losses=losses)
    spec = job(FAILS_WITH_THE_OTHER, ps=False, restart=restart, deadlines=SHORT_HEARTBEAT)
    with AppMaster(tmp_path / "job", spec, heartbeat=2) as am:
        folder = am.folder / "worker_0"
        until((folder / "open").exists, 30)
        if how == "container":
            am.container("worker_0").kill()
        else:
            am.hiccups["getContainers"] = 10_000 if "Skein" in how else 0
            os.kill(int((folder / "agent").read_text()), signal.SIGSTOP)
            os.kill(int((folder / "me").read_text()), signal.SIGKILL)
        am.log_says("worker:1 ended with exit code 5")
        report = am.wait()
    if losses:
        assert report.reason is Reason.SUCCEEDED, report.message
        assert "worker:0 was lost" in report.rounds[1].cause
        assert {task.task: task.starts for task in report.tasks} == {"worker:0": 2, "worker:1": 2}
    else:
        lost = Reason.CONTAINER_LOST if how == "container" else Reason.HEARTBEAT_LOST
        assert (report.reason, report.first_failure) == (lost, "worker:0"), report.message
        assert (task(report, "worker:1").state, task(report, "worker:1").exit_code) == ("failed", 5)


@pytest.mark.slow
def test_task_that_failed_first_is_named_though_its_processes_end_late(run):
    """A process that it leaves behind ignores SIGTERM, so the report of the other task, which fails of it, is earlier."""
    command = """until [ -d ../worker_1 ]; do sleep 0.05; done
        if [ $TASK_INDEX = 0 ]; then
            mkfifo pipe; exec 3<> pipe
            (trap "" TERM; exec 3>&-; while true; do sleep 0.1; done) &
            until [ -e ../worker_1/reads ]; do sleep 0.05; done
            exit 3
        fi
        until [ -p ../worker_0/pipe ]; do sleep 0.05; done
        exec 3< ../worker_0/pipe; touch reads; read line <&3; sleep 0.3; exit 5"""
    am, report = run(job(command, ps=False))
    assert (report.reason, report.first_failure) == (Reason.TASK_FAILED, "worker:0"), report.message
    assert {task.task: (task.state, task.exit_code) for task in report.tasks} == {
        "worker:0": ("failed", 3),
        "worker:1": ("failed", 5),
    }
    said = am.coordinator_log.read_text()
    assert said.index("worker:1 ended") < said.index("worker:0 ended")


#: The chief asks its worker, at the address that TF_CONFIG had at the start, in which container it is.
ASK = """import http.client, os, time
proxy = os.environ["grpc_proxy"].rpartition("/")[2]
while True:
    time.sleep(0.05)
    asked = http.client.HTTPConnection(proxy)
    asked.set_tunnel(os.environ["DTF_WORKER_HOSTS"])
    try:
        asked.request("GET", "/where")
        where = asked.getresponse().read().decode()
    except OSError:
        continue
    if where == "worker_1":
        break
    open("met", "w").close()
"""
SERVE = "mkdir www; printf %s $SKEIN_CONTAINER_ID > www/where; exec python3 -m http.server -d www $YTF_PORT"


@pytest.mark.slow
def test_lost_worker_of_a_parameter_server_program_is_replaced_alone(tmp_path):
    tasks = {
        "chief": TaskSpec(command=f"{sys.executable} -c '{ASK}'"),
        "ps": TaskSpec(command=FOREVER),
        "worker": TaskSpec(command=SERVE, hold_port=False),
    }
    with AppMaster(tmp_path / "job", job("x", tasks=tasks, success="chief", restart=RestartPolicy("task"))) as am:
        until(lambda: (am.container("chief_0").folder / "met").exists(), 30)
        am.container("worker_0").kill()
        report = am.wait()
    assert report.reason is Reason.SUCCEEDED, report.message
    assert {task.task: task.starts for task in report.tasks} == {"chief:0": 1, "ps:0": 1, "worker:0": 2}
    assert task(report, "worker:0").container_id == "container_worker_1" and len(report.rounds) == 1


@pytest.mark.slow
def test_memory_kills_fail_the_job_with_yarns_figures(tmp_path):
    with AppMaster(tmp_path / "job", job(FOREVER, ps=False)) as am:
        am.log_says("Published the cluster spec, round 1")
        am.container("worker_1").message = "536.5 MB of 256 MB physical memory used"
        am.container("worker_1").kill(signal.SIGTERM)
        report = am.wait()
    assert (report.reason, report.first_failure) == (Reason.OUT_OF_MEMORY, "worker:1")
    assert "536.5 MB of 256 MB" in report.message


@pytest.mark.slow
def test_a_hiccup_of_skein_changes_no_verdict(run):
    am, report = run(job("sleep 1", ps=False), hiccups=dict.fromkeys(["shutdown", "SetProgress", "getContainers"], 2))
    assert report.reason is Reason.SUCCEEDED
    assert all(left < 2 for left in am.hiccups.values()), am.hiccups


class ResourceManager(Handler):
    """Takes kills of applications and keeps them."""

    def do_PUT(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(202, {}, "")
        self.server.kills.append((self.path, body))

    def do_GET(self):
        self.reply(200, {}, '{"state": "RUNNING"}')


@pytest.mark.slow
def test_a_verdict_that_skein_does_not_take_travels_with_a_kill(tmp_path):
    with running(ResourceManager) as server:
        server.kills = []
        urls = ("http://127.0.0.1:1", f"http://127.0.0.1:{server.server_port}")
        with AppMaster(tmp_path / "job", job("true", ps=False), hiccups={"shutdown": 99}, resourcemanagers=urls) as am:
            until(lambda: server.kills)
            assert am.ended == [] and am.coordinator.poll() is None, "its exit would be the first word in YARN"
    ((path, body),) = server.kills
    assert path == "/ws/v1/cluster/apps/application_1700000000000_0042/state?user.name=tester"
    assert body["state"] == "KILLED"
    assert parse_diagnostics(body["diagnostics"], APPLICATION, [verdict_tag(SECRET)])[0].reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_too_long_ending_is_sent_with_less_of_the_log(run):
    shout = f"{sys.executable} -c \"print('\\U0001F600' * 30000); raise SystemExit(3)\""
    _, report = run(job(shout, ps=False, workers=1, report_log_tail=8192))
    assert (report.reason, task(report, "worker:0").exit_code) == (Reason.TASK_FAILED, 3)
    assert task(report, "worker:0").starts == 1


@pytest.mark.slow
def test_a_lost_evaluator_without_room_ends_the_job_behind_its_training(tmp_path):
    train = f"until [ -e {tmp_path}/lost ]; do sleep 0.05; done; sleep 2"  # longer than the deadline
    tasks = {"worker": TaskSpec(command=train), "evaluator": TaskSpec(command=FOREVER)}
    spec = job("x", tasks=tasks, deadlines=Deadlines(allocation=1, stop_grace=1))
    with AppMaster(tmp_path / "job", spec, hold=frozenset({"evaluator_1"})) as am:
        am.log_says("Published the cluster spec")
        am.container("evaluator_0").kill()
        (tmp_path / "lost").touch()
        report = am.wait()
    assert report.reason is Reason.ALLOCATION_TIMEOUT
    assert "evaluator_1" in report.message and task(report, "worker:0").state == "succeeded"


# -- deadlines --------------------------------------------------------------------------------


#: A time of day in a message.
SINCE = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"


@pytest.mark.slow
@pytest.mark.parametrize(
    "deadlines, hold, reason, words",
    [
        (
            Deadlines(allocation=1),
            {"worker_1"},
            Reason.ALLOCATION_TIMEOUT,
            rf"1 of 2 containers were not allocated within 1 s: worker_1 \(asked for in queue default {SINCE}\)",
        ),
        (
            Deadlines(execution=1, stop_grace=1),
            set(),
            Reason.EXECUTION_TIMEOUT,
            rf"longer than 1 s; running: worker:0 \(on 127\.0\.0\.1 {SINCE}\), worker:1 \(on 127\.0\.0\.1 {SINCE}\)",
        ),
        (
            Deadlines(total=1, stop_grace=1),
            {"worker_1"},
            Reason.TOTAL_TIMEOUT,
            rf"longer than 1 s; waiting {SINCE} for: .*worker:1 \(container requested",
        ),
    ],
)
def test_every_wait_has_a_deadline_and_names_who_is_missing(run, deadlines, hold, reason, words):
    am, report = run(job(FOREVER, ps=False, deadlines=deadlines), hold=frozenset(hold))
    assert report.reason is reason
    assert re.search(words, report.message), report.message
    assert processes_of(am) == []


@pytest.mark.slow
def test_an_agent_that_never_calls_misses_the_registration_deadline(run, tmp_path):
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/bash\nexec tail -f /dev/null\n")
    mute.chmod(0o755)
    _, report = run(job("true", ps=False, workers=1, deadlines=Deadlines(registration=1)), python=str(mute))
    assert (report.reason, report.retryable) == (Reason.REGISTRATION_TIMEOUT, True)
    words = rf"no agent registered within 1 s from worker_0 \(on 127\.0\.0\.1 {SINCE}\)"
    assert re.search(words, report.message), report.message


# -- what others see --------------------------------------------------------------------------


@pytest.mark.slow
def test_page_and_progress_follow_the_tasks(tmp_path):
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False)
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("Published the cluster spec")
        until(lambda: "ytf" in am.pages)
        document = json.load(urllib.request.urlopen(am.pages["ytf"] + "/status.json", timeout=60))
        assert document["state"] == "RUNNING"
        assert len(document["cluster_spec"]["worker"]) == 2
        page = urllib.request.urlopen(am.pages["ytf"] + "/", timeout=60).read().decode()
        assert "worker:1" in page and "TensorFlow" in page
        until(lambda: am.progress == [0.0])
        (am.container("worker_1").folder / "go").touch()
        until(lambda: am.progress == [0.0, 0.5])
        (am.container("worker_0").folder / "go").touch()
        assert am.wait().reason is Reason.SUCCEEDED


@pytest.mark.slow
def test_tensorboard_ends_with_the_job_and_may_fail(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tensorboard").write_text("#!/bin/bash\nexit 1\n")
    (folder / "tensorboard").chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    spec = job("until [ -e go ]; do sleep 0.05; done", ps=False, output="/out", tensorboard=TensorBoard(), env=env)
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("TensorBoard failed with exit code 1")
        for name in ("worker_0", "worker_1"):
            (am.container(name).folder / "go").touch()
        report = am.wait()
    assert report.reason is Reason.SUCCEEDED
    assert (task(report, "tensorboard:0").state, task(report, "tensorboard:0").exit_code) == ("failed", 1)


def test_agents_and_coordinator_differ_in_ps(tmp_path):
    with AppMaster(tmp_path / "job", job(FOREVER, ps=False, workers=1)) as am:
        am.log_says("Published the cluster spec")
        words = Path(f"/proc/{am.container('worker_0').process.pid}/cmdline").read_bytes().split(b"\0")
        assert {b"agent", b"worker", b"application_1700000000000_0042"} <= set(words)
        words = Path(f"/proc/{am.coordinator.pid}/cmdline").read_bytes().split(b"\0")
        assert {b"coordinator", b"application_1700000000000_0042"} <= set(words)


def test_tasks_print_as_type_and_index():
    assert str(TaskId("worker", 1)) == "worker:1"
    assert TaskId.parse("my-type:12") == ("my-type", 12)
    with pytest.raises(ValueError, match="not a task"):
        TaskId.parse("worker")
