"""An agent and the processes of its command."""

import os
import signal
import subprocess
import sys

import pytest

from support.appmaster import AppMaster
from support.programs import ROOT
from support.runtime_jobs import FOREVER, SHORT_HEARTBEAT, job, processes_of, task
from support.waiting import until
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason


@pytest.mark.slow
def test_what_a_command_leaves_behind_is_ended(run):
    am, report = run(job("setsid tail -f /dev/null & (trap '' TERM; tail -f /dev/null) & true", ps=False))
    assert report.reason is Reason.SUCCEEDED
    assert processes_of(am) == []


@pytest.mark.slow
def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(run):
    stubborn = "trap '' TERM; while true; do sleep 0.1; done"
    tasks = {"chief": TaskSpec(command="sleep 0.5"), "worker": TaskSpec(command=stubborn)}
    am, report = run(job("x", tasks=tasks, success="chief", deadlines=Deadlines(stop_grace=1)))
    assert report.reason is Reason.SUCCEEDED
    assert task(report, "worker:0").signal == signal.SIGKILL
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
        "print({'subprocess', 'shutil', 'glob', 'asyncio'} & set(sys.modules))"
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
