"""The containers of Skein and of this machine: a job behaves in the same way on both, seen by the same client.

Failures, restarts, losses, kills and races on YARN: ``tests/launch``.
"""

import asyncio
import json
import os
import signal
from types import SimpleNamespace

import pytest

from support.cluster_jobs import job
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover, local
from tf_yarn_ops.history.histories import read_record
from tf_yarn_ops.job.parts import Deadlines, RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.contract import AGENT_LINE, AGENT_WARNING
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.containers import Container, ContainerEnd, SkeinContainers

FOREVER = "exec tail -f /dev/null"


#: For what other files show of YARN's containers.
here = pytest.mark.parametrize("launcher", [pytest.param("local", marks=pytest.mark.slow)], indirect=True)


@pytest.fixture(params=[pytest.param("local", marks=pytest.mark.slow), pytest.param("yarn", marks=pytest.mark.cluster)])
def launcher(request, tmp_path):
    """Return a launcher of this machine, and one of a real cluster; no job outlives the test."""
    if request.param == "local":
        made = Launcher(local(tmp_path / "state"))
    else:
        made = Launcher(discover(request.getfixturevalue("minicluster").resourcemanager_url, environ={}))
    yield made
    for report in made.list():
        made.kill(report.application_id)
    made.close()


def write_agent(folder):
    """Return a command that writes the process id of its agent into a file named by the task index."""
    return f"echo $PPID > {folder}/$TASK_INDEX.new; mv {folder}/$TASK_INDEX.new {folder}/$TASK_INDEX"


def agent_of(folder, index):
    """Return the process id of a task's agent once its command has written it."""
    file = folder / str(index)
    return int(until(lambda: file.exists() and file.read_text(), 120, what=f"the start of task {index}"))


@pytest.mark.door
def test_success_has_tasks_lines_and_a_record(launcher):
    tasks = {"worker": TaskSpec(instances=2, memory=256), "ps": TaskSpec(command=FOREVER, memory=256)}
    command = """echo "$TF_CONFIG"; echo '{"accuracy": 0.9}' > $YTF_RESULT_FILE"""
    lines = []
    report = launcher.run(job(command, tasks=tasks, name="digits"), on_line=lines.append, poll_interval=0.1)
    assert (report.state, report.final_status, report.reason) == ("FINISHED", "SUCCEEDED", Reason.SUCCEEDED)
    assert {task.task: task.state for task in report.tasks} == {
        "worker:0": "succeeded",
        "worker:1": "succeeded",
        "ps:0": "stopped",
    }
    assert any('"task":{"type":"worker","index":1}' in line.text for line in lines if line.task == "worker:1")
    assert not any(line.text.startswith(AGENT_LINE) for line in lines)
    assert '"ps":[' in "".join(launcher.log(report.application_id, "worker:0"))
    assert "Verdict: SUCCEEDED" in "".join(launcher.log(report.application_id, "coordinator"))
    record = read_record(launcher.cluster, report.application_id)
    assert (record["name"], record["metrics"]) == ("digits", {"accuracy": 0.9})


@here
def test_failure_names_the_task_and_its_last_line(launcher):
    report = launcher.run(job("echo no data; exit 3"), poll_interval=0.1)
    assert (report.final_status, report.reason, report.exit_code) == ("FAILED", Reason.TASK_FAILED, 1)
    assert report.first_failure == "worker:0" and report.message.endswith("no data")


def test_task_that_fails_on_every_node_ends_the_job(launcher):
    patient = RestartPolicy("task", max_restarts=9, backoff=0, exclude_node_after=1)
    report = launcher.run(job("exit 3", restart=patient), poll_interval=0.1)
    assert report.reason is Reason.TASK_FAILED
    assert report.message.endswith(f"no node is left: excluded are {', '.join(report.excluded_nodes)} (every node)")


@here
def test_restart_begins_another_round_in_the_same_containers(launcher):
    report = launcher.run(
        job("exit $((2 - YTF_ROUND))", restart=RestartPolicy("cluster", backoff=0)), poll_interval=0.1
    )
    assert (report.reason, len(report.rounds), report.tasks[0].starts) == (Reason.SUCCEEDED, 2, 2)


def test_job_that_stands_still_is_ended_and_its_log_shows_where(launcher):
    hanging = "import time\ndef wait_for_the_others():\n    time.sleep(600)\nwait_for_the_others()"
    report = launcher.run(
        job(f"exec python3 -c '{hanging}'", deadlines=Deadlines(stall=4, stop_grace=1)), poll_interval=0.1
    )
    assert report.reason is Reason.STALLED and "running: worker:0 (on " in report.message, report.message
    assert "line 3 in wait_for_the_others" in "".join(launcher.log(report.application_id, "worker:0"))


@here
def test_lost_container_is_replaced(launcher, tmp_path):
    command = f"{write_agent(tmp_path)}; if [ $YTF_ROUND = 1 ]; then {FOREVER}; fi"
    application_id = launcher.submit(job(command, instances=2, restart=RestartPolicy(max_container_losses=1)))
    agents = [agent_of(tmp_path, index) for index in (0, 1)]
    before = launcher.report(application_id).tasks
    os.kill(agents[1], signal.SIGKILL)
    report = launcher.wait(application_id, poll_interval=0.1)
    assert report.reason is Reason.SUCCEEDED and "worker:1 was lost" in report.rounds[1].cause
    assert report.tasks[0].container_id == before[0].container_id
    assert report.tasks[1].container_id not in (None, before[1].container_id)


@here
def test_kill_ends_the_processes_and_keeps_its_reason(launcher, tmp_path):
    application_id = launcher.submit(job(f"{write_agent(tmp_path)}; {FOREVER}"))
    agent = agent_of(tmp_path, 0)
    assert launcher.cluster_spec(application_id).keys() == {"worker"}
    killed = launcher.kill(application_id, "enough")
    assert (killed.state, killed.final_status, killed.reason) == ("KILLED", "KILLED", Reason.KILLED)
    assert launcher.report(application_id).message == killed.message == "enough"
    until(lambda: not os.path.exists(f"/proc/{agent}"), what="the end of the agent")


@here
def test_one_identity_trains_once(launcher, tmp_path):
    key = f"digits {tmp_path}"
    first = launcher.run(job(), Identity(key, 0, attempt=1), poll_interval=0.1)
    again = launcher.run(job(), Identity(key, 0, attempt=2), poll_interval=0.1)
    assert (first.reason, again.application_id) == (Reason.SUCCEEDED, first.application_id)


LAUNCH = (
    "[2026-11-28 11:00:50.652]Exception from container-launch. Container id: container_e01_1_0014_01_000002 Exit code: {} "
    "Exception message: Launch container failed Shell error output: {} Shell output: <unknown>"
)


@pytest.mark.parametrize(
    "end, words",
    [
        (ContainerEnd("", ".skein.sh: line 1: exec: python3: not found"), "its Python can't start"),
        (ContainerEnd("", "tf_yarn_ops needs Python 3.9, found 3.6.8 on n1"), "3.6.8"),
        (ContainerEnd(LAUNCH.format(7, "Unable to find image 'a/b:1' locally")), "no node has it"),
        (ContainerEnd(LAUNCH.format(7, "docker: Error response from daemon: pull access denied for a")), "can pull it"),
        (ContainerEnd(LAUNCH.format(7, "manifest for a:1 not found: manifest unknown")), "no node has it"),
        (
            ContainerEnd(
                LAUNCH.format(7, "Unable to find image 'r:5/a:1' locally docker: Error: no basic auth credentials")
            ),
            "docker_client_config",
        ),
        (
            ContainerEnd(LAUNCH.format(7, "docker: Error response from daemon: unknown or invalid runtime name: x")),
            "engine",
        ),
        (ContainerEnd(LAUNCH.format(41, "Could not find requested runtime in allowed runtimes")), "its runtime is not"),
        (ContainerEnd(LAUNCH.format(39, "Could not find requested network in allowed networks")), "the network host"),
        (ContainerEnd("Disallowed network:  'host' specified. Allowed networks: are [none]"), "the network host"),
        (ContainerEnd(LAUNCH.format(127, "<unknown>")), "docker.trusted.registries"),
        (ContainerEnd(LAUNCH.format(7, 'exec: "bash": executable file not found in $PATH')), "it has no bash"),
        (ContainerEnd(LAUNCH.format(29, "Invalid docker rw mount '/a:/a:rw', realpath=/a/")), "rw-mounts"),
        (ContainerEnd(LAUNCH.format(29, "Invalid docker mount '/a:/a:ro', realpath=(null)")), "on every node"),
        (ContainerEnd(LAUNCH.format(-1, "Image name 'A' doesn't match docker image name pattern")), "does not allow"),
    ],
)
def test_a_fault_of_an_image_is_told_from_others(end, words):
    fault = end.start_fault("", "local/python:1")
    assert fault.reason is Reason.ENVIRONMENT_INVALID and fault.everywhere
    assert f"the image local/python:1: {fault.advice.partition(': ')[2]}" == str(fault) and words in str(fault)
    assert end.start_fault("", None) is None


@pytest.mark.parametrize(
    "end",
    [
        ContainerEnd(),
        ContainerEnd("", ""),
        ContainerEnd("", f"{AGENT_LINE}no coordinator on n1, ports 1 to 16"),
        ContainerEnd("", f"{AGENT_WARNING}no message from the coordinator for 60 seconds, ending"),
        ContainerEnd(LAUNCH.format(7, "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")),
        ContainerEnd(LAUNCH.format(137, "<unknown>")),
    ],
)
def test_a_fault_of_a_node_or_the_network_is_none_of_the_image(end):
    assert end.start_fault("", "local/python:1") is None


def test_the_end_of_a_container_says_what_nodemanagers_know():
    end = ContainerEnd(LAUNCH.format(137, "<unknown>"), exit_code=137)
    assert end.start_fault("", None).advice.startswith("SIGKILL has ended it: raise its memory")
    assert end.killed and end.has_no_log and not ContainerEnd().has_no_log
    assert not ContainerEnd(LAUNCH.format(1, "Last 4096 bytes of stderr: Exit code: 137"), exit_code=1).killed
    assert ContainerEnd(LAUNCH.format(7, "docker: no space left")).detail == "docker: no space left"


@pytest.mark.parametrize(
    "nodes, expected",
    [
        ([("DECOMMISSIONED", "n1", "", "")], "DECOMMISSIONED"),
        (
            [("UNHEALTHY", "n1", "n1:8042", "1/1 local-dirs \n [ /d : full ]")],
            "UNHEALTHY: 1/1 local-dirs [ /d : full ]",
        ),
        ([("LOST", "n2", "", ""), ("UNHEALTHY", "n1", "n1:9", "another one")], ""),
        ([("LOST", "n1", "", ""), ("SHUTDOWN", "n1", "", "")], ""),
        ([], ""),
    ],
)
def test_lost_node_is_described_as_yarn_knows_it(yarn, nodes, expected):
    names = ("state", "nodeHostName", "nodeHTTPAddress", "healthReport")
    found = json.dumps({"nodes": {"node": [dict(zip(names, node, strict=True)) for node in nodes]}})
    yarn.pages["/ws/v1/cluster/nodes"] = ("application/json", found)
    job = SimpleNamespace(resourcemanagers=[yarn.url], authorities="")
    lost = Container("worker_0", "worker", "FAILED", "Container released on a *lost* node", "n1:8042", "container_1")
    end = asyncio.run(SkeinContainers(job).explain(lost))
    assert end.node == expected
