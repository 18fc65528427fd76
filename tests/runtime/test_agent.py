"""An agent and the processes of its command."""

import os
import signal
import subprocess
import sys
import time

import pytest

from support import wire
from support.appmaster import AppMaster
from support.programs import ROOT
from support.runtime_jobs import FOREVER, SHORT_HEARTBEAT, job, processes_of, task
from support.waiting import until
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.agent import agent as agent_module
from tf_yarn_ops.runtime.agent import exec_process
from tf_yarn_ops.runtime.agent.command import CommandEnd
from tf_yarn_ops.runtime.agent.metrics import MetricsFile
from tf_yarn_ops.runtime.agent.usage import Meter
from tf_yarn_ops.runtime.common.contract import JOB_FILE, LINK_KEY, dump_job
from tf_yarn_ops.runtime.common.protocol import decode
from tf_yarn_ops.runtime.common.reasons import Reason


@pytest.mark.slow
def test_what_a_command_leaves_behind_is_ended(run):
    am, report = run(job("setsid tail -f /dev/null & (trap '' TERM; tail -f /dev/null) & true", ps=False))
    assert report.reason is Reason.SUCCEEDED
    assert processes_of(am) == []


@pytest.mark.slow
def test_a_command_that_ignores_the_graces_after_a_success_is_killed(run):
    """The other worker ends by itself after the chief, and does not count."""
    stubborn = "trap '' TERM; while true; do sleep 0.1; done"
    tasks = {
        "chief": TaskSpec(command="sleep 0.5"),
        "worker": TaskSpec(command=stubborn),
        "late": TaskSpec(command="sleep 1.5; exit 3"),
    }
    am, report = run(job("x", tasks=tasks, success="chief", deadlines=Deadlines(stop_grace=1, success_grace=6)))
    assert report.reason is Reason.SUCCEEDED
    assert task(report, "worker:0").signal == signal.SIGKILL
    assert (task(report, "late:0").state, task(report, "late:0").exit_code) == ("failed", 3)
    assert processes_of(am) == []


def test_command_shares_the_process_group_and_writes_its_log(run):
    """NodeManagers kill by group; and no pipe stands between a program and its log."""
    am, report = run(
        job("cut -d' ' -f5 /proc/$$/stat > group; readlink /proc/$$/fd/1 /proc/$$/fd/2 > outputs", ps=False, workers=1)
    )
    container = am.container("worker_0")
    assert report.reason is Reason.SUCCEEDED
    assert int((container.folder / "group").read_text()) == container.process.pid
    assert (container.folder / "outputs").read_text().split() == [str(container.folder / "log")] * 2


@pytest.mark.slow
def test_of_a_long_log_the_report_has_whole_lines_of_the_end(run):
    _, report = run(job("seq 100000; exit 3", ps=False, workers=1, report_log_tail=1000))
    lines = task(report, "worker:0").log_tail.splitlines()
    assert [int(line) for line in lines] == list(range(100001 - len(lines), 100001))
    assert len(lines) > 100 and len(task(report, "worker:0").log_tail) <= 1000


@pytest.mark.slow
def test_the_end_of_a_log_may_be_any_bytes(run):
    _, report = run(job(r"printf 'a\000\377\376z\n'; exit 1", ps=False, workers=1))
    assert report.reason is Reason.TASK_FAILED
    assert task(report, "worker:0").log_tail == "a\N{REPLACEMENT CHARACTER}" + "\N{REPLACEMENT CHARACTER}" * 2 + "z\n"


@pytest.mark.slow
@pytest.mark.parametrize("command, code", [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_can_not_be_run_has_the_shells_code(run, command, code):
    _, report = run(job(command, ps=False, workers=1))
    assert task(report, "worker:0").exit_code == code


@pytest.mark.slow
def test_an_agent_killed_alone_takes_its_command_along(tmp_path):
    with AppMaster(tmp_path / "job", job(FOREVER, ps=False, restart=RestartPolicy(max_container_losses=0))) as am:
        am.log_says("Published the cluster spec, round 1")
        until(lambda: len(processes_of(am)) == 2)
        os.kill(am.container("worker_1").process.pid, signal.SIGKILL)
        report = am.wait()
        assert report.reason is Reason.CONTAINER_LOST
        assert processes_of(am) == []


@pytest.mark.slow
def test_an_agent_that_freezes_is_lost_after_the_heartbeat_deadline(tmp_path):
    spec = job("if [ $YTF_ROUND = 1 ]; then tail -f /dev/null; fi", deadlines=SHORT_HEARTBEAT)
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("Published the cluster spec, round 1")
        os.kill(am.container("worker_0").process.pid, signal.SIGSTOP)
        report = am.wait()
    assert report.reason is Reason.SUCCEEDED
    assert "its agent was silent" in report.rounds[1].cause
    assert am.container("worker_0").state == "KILLED"


@pytest.mark.slow
def test_an_agent_without_coordinator_ends_its_command(tmp_path):
    with AppMaster(tmp_path / "job", job(FOREVER, ps=False, workers=1, deadlines=SHORT_HEARTBEAT)) as am:
        am.log_says("Published the cluster spec")
        until(lambda: processes_of(am))
        os.killpg(am.coordinator.pid, signal.SIGKILL)
        until(lambda: am.container("worker_0").process.poll() is not None)
        assert processes_of(am) == []


def test_agent_loads_no_module_that_few_jobs_need():
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tf_yarn_ops.runtime.agent.agent; "
        "print({'subprocess', 'shutil', 'glob', 'asyncio', 'logging', 'dataclasses', 'urllib.parse',"
        "'tf_yarn_ops.runtime.common.committed_output'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("set()\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leave", "metrics"),
    [
        ("mkfifo {result}; mkfifo {metrics}", None),
        ("ln -s /dev/zero {result}; ln -s /dev/zero {metrics}", None),
        ("mkdir {result} {metrics}", None),
        ("""printf '{{"a":%.0s' $(seq 500) > {result}; printf 1 >> {result}; printf '}}%.0s' $(seq 500) >> {result}""", None),
        ("""printf '{{"seed": 1267650600228229401496703205376, "__id__": "a\\\\u0000b"}}' > {result}""",
         {"seed": "1267650600228229401496703205376", "_id__": "a\\u0000b"}),
    ],
    ids=["pipe", "device", "folder", "nested", "hostile"],
)  # fmt: skip
def test_no_result_file_hides_a_success_or_keeps_the_agent(run, leave, metrics):
    command = "rm -f {metrics}; " + leave + "; exit $(cat code 2>/dev/null || (echo 0 > code; echo 3))"
    files = {"result": "$YTF_RESULT_FILE", "metrics": "$YTF_METRICS_FILE"}
    again = RestartPolicy(mode="cluster", max_restarts=1)
    _, report = run(job(command.format(**files), ps=False, workers=1, restart=again))
    assert (report.reason, report.metrics, len(report.rounds)) == (Reason.SUCCEEDED, metrics, 2)


# -- one agent in this process, whose connection keeps what is sent ---------------------------


class Line:
    """The agent's end of the connection to its coordinator: keeps what the agent sends."""

    def __init__(self, _host, _ports, _patience, registration, _log, _heartbeat):
        self.sent, self._registration = [], registration

    def send(self, line):
        self.sent += [decode(part) for part in line.splitlines(keepends=True)]

    def deliver(self, message):
        self.send(message())

    def renew(self):
        self.send(self._registration())


class Ended:
    """A command that has ended by a signal."""

    stopping = waiting = False
    started_at, finished_at = 1.0, 2.0

    def __init__(self, number=signal.SIGTERM):
        self.ending = CommandEnd(None, number, 1.0, 1.0, 1.0)
        self.meter = Meter({})
        self.ends = []

    def log_tail(self, _limit):
        return ""

    def end(self, grace):
        self.ends.append(grace)

    def reap(self):
        return self.ending


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """The agent of worker_0, which has started its command for the third time in round 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / JOB_FILE).write_bytes(dump_job(wire.job()))
    monkeypatch.setattr(agent_module, "Contact", Line)
    agent = agent_module.Agent("worker_0", "127.0.0.1:1", "application_1_1")
    agent.round, agent.start = 1, 3
    agent.metrics = MetricsFile(str(tmp_path / "metrics"))
    yield agent
    if agent.reserved:
        agent.reserved.close()


def start(**fields):
    return {"type": "start", "round": 1, "start": 1, "task": "worker:0", "cluster": {}, "delay": 60.0, **fields}


def test_first_start_of_a_new_round_begins_although_its_number_is_lower(agent):
    old_port = agent.port
    agent.on_renew({"type": "renew", "round": 2, "grace": 1.0})
    agent.step()
    assert agent.contact.sent[-1]["type"] == "register"
    assert (agent.contact.sent[-1]["round"], agent.contact.sent[-1]["start"]) == (2, 0)
    assert agent.port != old_port
    agent.on_start(start(round=2, start=1))
    assert agent.next_start is not None and agent.start == 1


@pytest.mark.parametrize(
    "message, planned",
    [
        (start(start=4), True),
        (start(start=3), False),
        (start(start=2), False),
        (start(start=4, round=2), False),
        (start(start=4, round=0), False),
    ],
)
def test_start_of_another_round_or_of_a_known_number_is_ignored(agent, message, planned):
    agent.on_start(message)
    assert (agent.next_start is not None) == planned


def test_start_waits_for_its_delay(agent):
    agent.on_start(start(start=4))
    agent.step()
    assert agent.command is None and agent.next_start is not None
    assert 59 < agent.next_start_at - time.monotonic() <= 60


@pytest.mark.parametrize("round_number, ends", [(2, [5.0]), (1, []), (0, [])])
def test_late_renewal_does_not_end_the_command(agent, round_number, ends):
    agent.command = Ended()
    agent.on_renew({"type": "renew", "round": round_number, "grace": 5.0})
    assert (agent.command.ends, agent.renewal is not None) == (ends, bool(ends))


def test_renewal_of_this_round_after_the_command_takes_another_port(agent):
    old_port = agent.port
    agent.on_renew({"type": "renew", "round": agent.round, "grace": 5.0})
    agent.step()
    assert agent.port != old_port and agent.start == 0
    assert [message["type"] for message in agent.contact.sent] == ["register"]
    agent.on_renew({"type": "renew", "round": agent.round, "grace": 5.0})
    assert agent.renewal is None, "it has renewed its port already"


@pytest.mark.parametrize("terminated, sent", [(False, ["sample", "exited"]), (True, [])])
def test_signal_that_yarn_sends_is_not_the_programs_failure(agent, terminated, sent):
    agent.terminated = terminated
    ended = Ended()
    agent.report(ended, ended.reap())
    assert [message["type"] for message in agent.contact.sent] == sent


def test_end_that_the_agent_caused_is_reported_in_any_case(agent):
    agent.terminated = True
    ended = Ended()
    ended.stopping = True
    agent.report(ended, ended.reap())
    assert agent.contact.sent[-1]["stopped"] is True and agent.contact.sent[-1]["signal"] == signal.SIGTERM


def test_ping_reports_an_ended_command_before_its_answer(agent):
    agent.command = Ended()
    agent.on_ping({"type": "ping"})
    assert [message["type"] for message in agent.contact.sent] == ["sample", "exited", "pong"]


def test_planned_start_is_reported_as_stopped(agent):
    agent.on_start(start(start=4))
    agent.on_stop({"type": "stop", "grace": 1.0})
    assert agent.next_start is None
    assert [(m["type"], m["start"], m["stopped"], m["started_at"]) for m in agent.contact.sent] == [
        ("exited", 4, True, None)
    ]


@pytest.mark.parametrize("kind, code", [("bye", 0), ("refused", 1)])
def test_agent_ends_when_the_coordinator_dismisses_it(agent, kind, code):
    agent._handlers[kind]({"type": kind, "why": "no task"})
    assert agent.exit_code == code


def test_new_agent_joins_the_round_of_the_coordinator(agent):
    agent.start = 0
    agent.on_welcome({"type": "welcome", "task": "worker:0", "round": 4})
    assert agent.round == 4
    agent.start = 1
    agent.on_welcome({"type": "welcome", "task": "worker:0", "round": 5})
    assert agent.round == 4, "one that is back keeps its own until it gets a renew"


def test_file_that_has_its_name_already_is_not_linked_again(agent, tmp_path):
    """On one machine the files have their names; a link there would fail, or take the place of the file."""
    types = {"worker": agent.job.types["worker"]._replace(links={"a b": LINK_KEY + "0", "c d": LINK_KEY + "1"})}
    agent.job = agent.job._replace(types=types)
    for number, text in enumerate(("of YARN", "of YARN too")):
        (tmp_path / f"cached{number}").write_text(text)
        (tmp_path / f"{LINK_KEY}{number}").symlink_to(f"cached{number}")
    (tmp_path / "a b").write_text("own")
    assert agent.name_files() is None
    assert [(tmp_path / name).read_text() for name in ("a b", "c d")] == ["own", "of YARN too"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_symlink()) == ["c d"]


@pytest.mark.parametrize("allowed, runs, waiting, begins", [
    (True, True, False, True), (False, True, False, False), (True, False, False, False), (True, True, True, False),
])  # fmt: skip
def test_session_begins_only_beside_a_command_that_runs(agent, monkeypatch, allowed, runs, waiting, begins):
    started = []
    monkeypatch.setattr(exec_process, "start_exec", lambda *given: started.append(given))
    agent.job = agent.job._replace(allow_exec=allowed)
    agent.command = Ended() if runs else None
    if waiting:
        agent.command.waiting = True
    agent.on_exec({"type": "exec", "id": "1"})
    assert bool(started) == begins
