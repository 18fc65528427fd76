"""The runtime where the machine refuses: no more open files, processes that can't be ended, a port that is taken."""

import json
import re
import resource
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.appmaster import AppMaster
from support.port_taker import taking_port
from support.runtime_jobs import FOREVER, QUICK, job, task
from support.waiting import until
from tf_yarn_ops.job.parts import RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.agent.agent import is_port_taken
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
TAKEN = 'echo "bind: Address already in use" >&2; exit 1'


def run(folder, spec):
    with AppMaster(folder / "job", spec) as am:
        return am.wait()


def test_taken_port_outside_the_cluster_is_a_failure_of_the_program(tmp_path):
    """An evaluator listens on nothing that we have promised to anybody."""
    tasks = {"worker": TaskSpec(command=FOREVER), "evaluator": TaskSpec(command=TAKEN, hold_port=False)}
    report = run(tmp_path, JobSpec(command="x", tasks=tasks, deadlines=QUICK))
    assert (report.reason, report.first_failure) == (Reason.TASK_FAILED, "evaluator:0")
    assert len(report.rounds) == 1
    assert "Address already in use" in task(report, "evaluator:0").log_tail


def test_program_binds_its_reserved_port_plainly_where_it_is_not_held(tmp_path):
    bind = ["python3", "-c", "import os, socket; socket.create_server(('', int(os.environ['YTF_PORT'])))"]
    tasks = {
        "worker": TaskSpec(command="until [ -e ../other_0/bound ]; do sleep 0.05; done; " + shlex.join(bind)),
        "other": TaskSpec(command=shlex.join(bind) + f" && touch bound; {FOREVER}", hold_port=False),
    }
    report = run(tmp_path, job("x", tasks=tasks))
    assert (report.reason, report.first_failure) == (Reason.TASK_FAILED, "worker:0")
    assert "for a program that binds it plainly, set hold_port to false" in report.message


@pytest.mark.parametrize("listens", [True, False], ids=["listening", "bound"])
def test_port_that_another_process_has_is_exchanged(tmp_path, listens):
    """The agent finds out; the program prints nothing of it."""
    with taking_port(tmp_path, listens) as command:
        tasks = {"worker": TaskSpec(command=command, hold_port=False)}
        report = run(
            tmp_path, JobSpec(command="x", tasks=tasks, deadlines=QUICK, restart=RestartPolicy(max_container_losses=1))
        )
    assert report.reason is Reason.SUCCEEDED
    assert "its port was taken before it could use it" in report.rounds[1].cause


def test_program_that_only_prints_of_a_taken_port_has_failed(tmp_path):
    tasks = {"worker": TaskSpec(command=TAKEN, hold_port=False)}
    report = run(
        tmp_path, JobSpec(command="x", tasks=tasks, deadlines=QUICK, restart=RestartPolicy(max_container_losses=1))
    )
    assert (report.reason, len(report.rounds)) == (Reason.TASK_FAILED, 1)


def test_connections_that_a_server_has_left_do_not_take_its_port():
    """A server that ends its connections first leaves them in TIME_WAIT, where a plain bind fails for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            connection, _ = server.accept()
            assert is_port_taken(port)
            connection.close()
            assert client.recv(1) == b""
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind(("", port))
    assert not is_port_taken(port)


def test_reserved_port_is_held_between_registration_and_start(tmp_path):
    with AppMaster(tmp_path / "job", job(FOREVER, ps=False), hold=frozenset({"worker_1"})) as am:
        agent = am.container("worker_0")
        until(lambda: "registered as worker:0 with port" in agent.log, 30, what="the registration of worker:0")
        port = int(re.search(r"registered as worker:0 with port (\d+)", agent.log)[1])
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind(("", port))


def test_a_coordinator_with_too_many_open_files_accepts_again_when_it_can(tmp_path):
    spec = job(f"[ $YTF_ROUND = 2 ] || {FOREVER}", ps=False, workers=1,
               restart=RestartPolicy(max_container_losses=1))  # fmt: skip
    with AppMaster(tmp_path / "job", spec) as am:
        am.log_says("Published the cluster spec")
        port = int(re.search(r"Listening on port (\d+)", am.coordinator_log.read_text())[1])
        pid = int(Path(f"/proc/{am.coordinator.pid}/task/{am.coordinator.pid}/children").read_text().split()[0])
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        with socket.create_connection(("127.0.0.1", port)):
            am.log_says("A connection could not be accepted: [Errno 24] Too many open files")
        assert not am.ended and am.coordinator.poll() is None
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        am.container("worker_0").kill()
        report = am.wait()
    assert (report.reason, len(report.rounds)) == (Reason.SUCCEEDED, 2)


#: A command whose leftover refuses every signal, as one that belongs to another user does.
UNKILLABLE = """\
import json, os, select, signal, time
from tf_yarn_ops.runtime.agent import command
from tf_yarn_ops.runtime.common import processes

processes.set_child_subreaper()
kill, refused = os.kill, []

def refuse(pid, number):
    refused.append(number)
    raise PermissionError(1, "Operation not permitted")

os.kill = refuse
started = time.monotonic()
one = command.Command("tail -f /dev/null & echo $! ; exit 4", dict(os.environ))
while not one.reap():
    select.select([], [], [], 0.05)
left = processes.descendants()
for pid in left:
    kill(pid, signal.SIGKILL)
print(json.dumps({"code": one.ending.code, "left": len(left), "refused": sorted(set(refused)),
                  "seconds": time.monotonic() - started}))
"""


def test_what_can_not_be_ended_does_not_hold_the_commands_ending_for_ever():
    ran = subprocess.run([sys.executable, "-c", UNKILLABLE], capture_output=True, text=True, timeout=60, check=True,
                         env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})  # fmt: skip
    told = json.loads(ran.stdout.splitlines()[-1])
    assert (told["code"], told["left"], told["refused"]) == (4, 1, [9, 15])
    assert told["seconds"] >= 6
