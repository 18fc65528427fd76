"""Jobs on this machine: the real coordinator and agents, started and followed by the real client."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from support import gpu_node
from support.machines import write_script
from support.runtime_jobs import FOREVER, QUICK, job
from support.waiting import until
from tf_yarn_ops.errors import ApplicationNotFound, SpecInvalid
from tf_yarn_ops.hadoop.cluster import local
from tf_yarn_ops.job.parts import Resources, RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.local_job import running_coordinator
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.submit.local_submitter import KEPT_DAYS, list_gpus, without_effect

#: A client that holds a lease, in a process of its own; it prints the id.
CLIENT = """\
import sys
from tf_yarn_ops import JobSpec, Launcher, TaskSpec, local
spec = JobSpec(command="exec tail -f /dev/null", tasks={"worker": TaskSpec(instances=2)}, lease=60)
launcher = Launcher(local(sys.argv[1]))
launcher.run(spec, on_reserved=lambda application_id: print(application_id, flush=True))
"""


@pytest.fixture
def launcher(tmp_path):
    """Return a launcher of this machine; no job outlives the test."""
    made = Launcher(local(tmp_path / "state"))
    yield made
    for report in made.list():
        made.kill(report.application_id)
    made.close()


def run(launcher, spec, **options):
    return launcher.run(spec, poll_interval=0.1, **options)


def folder_of(launcher, application_id):
    return launcher.session.resourcemanager.folder(application_id)


def left(folder):
    """Return the commands of living processes that work below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(folder)):
                found.append((entry / "cmdline").read_text())
    return found


def started(launcher, spec):
    """Submit a job, and return its id once all tasks run."""
    application_id = launcher.submit(spec)

    def all_run():
        tasks = launcher.report(application_id).tasks
        return tasks and all(item.state == "running" for item in tasks)

    until(all_run, what="the start of all tasks")
    return application_id


@pytest.mark.parametrize("place", ["state", "state/jobs"])
@pytest.mark.parametrize("kind", ["owner", "mode"])
def test_folder_that_another_user_made_first_is_refused(launcher, tmp_path, monkeypatch, place, kind):
    (tmp_path / "state/jobs").mkdir(parents=True)
    if kind == "mode":
        (tmp_path / place).chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(tmp_path / place, 12345, -1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(SpecInvalid, match=rf"{tmp_path}/{place} belongs to uid .*; chmod 700 .*XDG_STATE_HOME"):
        run(launcher, JobSpec(command="true", tasks={"worker": TaskSpec(instances=1)}))
    assert list((tmp_path / "state/jobs").iterdir()) == []


def test_options_without_effect_are_named_and_a_kill_at_once_counts(launcher, caplog, monkeypatch):
    tasks = {"worker": TaskSpec(memory=512, gpus=1)}
    assert without_effect(JobSpec(command="true", tasks=tasks, deadlines=QUICK)) == ["task_memory"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    application_id = launcher.submit(job(FOREVER, tasks=tasks, queue="prod"))
    assert "without YARN these options have no effect: queue, task_memory, task_gpus" in caplog.text
    assert launcher.kill(application_id, "enough").message == "enough"
    assert left(folder_of(launcher, application_id)) == []


SEES_THE_END = "until [ -e $YTF_TRAINED_FILE ]; do sleep 0.05; done"


def trained(evaluate, folder, seconds):
    """Return a job whose worker writes two checkpoints, and whose evaluator then has some time."""
    tasks = {
        "worker": TaskSpec(command="for step in 100 200; do echo $step > $DTF_OUTPUT_PATH/checkpoint; done"),
        "evaluator": TaskSpec(command=evaluate),
    }
    return job("x", tasks=tasks, output=str(folder), deadlines=replace(QUICK, evaluator_grace=seconds))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("evaluate", "seconds", "state", "evaluated"),
    [
        (f"{SEES_THE_END}; cp $DTF_OUTPUT_PATH/checkpoint $DTF_OUTPUT_PATH/evaluated", 60, "succeeded", "200\n"),
        (f"{SEES_THE_END}; echo 'no such checkpoint'; exit 3", 60, "failed", None),
        (FOREVER, 0.1, "stopped", None),
    ],
)
def test_evaluator_has_its_time_after_the_training(launcher, tmp_path, evaluate, seconds, state, evaluated):
    report = run(launcher, trained(evaluate, tmp_path, seconds))
    worker, evaluator = report.tasks
    assert (report.reason, worker.state, evaluator.state) == (Reason.SUCCEEDED, "succeeded", state)
    assert ("no such checkpoint" in evaluator.log_tail) == (state == "failed")
    file = tmp_path / "evaluated"
    assert (file.read_text() if file.exists() else None) == evaluated


@pytest.mark.slow
def test_kill_while_an_evaluator_has_its_time_counts(launcher, tmp_path):
    application_id = launcher.submit(trained(f"{SEES_THE_END}; touch $DTF_OUTPUT_PATH/seen; {FOREVER}", tmp_path, 600))
    until((tmp_path / "seen").exists, what="the file that shows the end of the training")
    assert launcher.report(application_id).reason is None
    assert launcher.kill(application_id, "enough").message == "enough"
    assert launcher.report(application_id).reason is Reason.KILLED
    assert left(folder_of(launcher, application_id)) == []


@pytest.mark.slow
def test_kill_of_a_job_that_has_failed_changes_neither_state_nor_verdict(launcher, tmp_path):
    """It comes while another command has the grace in which it may end by itself."""
    stays = f"trap 'touch {tmp_path}/stopped; until [ -e {tmp_path}/go ]; do sleep 0.05; done; exit' TERM; touch {tmp_path}/on"
    tasks = {
        "worker": TaskSpec(command=f"until [ -e {tmp_path}/on ]; do sleep 0.05; done; exit 3"),
        "other": TaskSpec(command=f"{stays}; while :; do sleep 0.05; done"),
    }
    application_id = launcher.submit(job("x", tasks=tasks, deadlines=replace(QUICK, stop_grace=60)))
    until((tmp_path / "stopped").exists, what="the end of the other command")
    os.kill(running_coordinator(folder_of(launcher, application_id)), signal.SIGTERM)  # as a client kills a job
    (tmp_path / "go").touch()
    ended = launcher.wait(application_id, poll_interval=0.1)
    assert (ended.state, ended.final_status, ended.reason) == ("FINISHED", "FAILED", Reason.TASK_FAILED)


@pytest.mark.slow
def test_lease_ends_the_job_with_its_client(tmp_path):
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    application_id = client.stdout.readline().strip()
    launcher = Launcher(local(tmp_path))
    until(lambda: [item.state for item in launcher.report(application_id).tasks] == ["running"] * 2)
    client.kill()
    client.communicate()
    until(lambda: launcher.report(application_id).reason, what="the end of the job")
    assert launcher.report(application_id).reason is Reason.LEASE_EXPIRED
    until(lambda: not left(tmp_path), what="the end of all processes")
    launcher.close()


@pytest.mark.slow
def test_dead_coordinator_leaves_no_process(launcher):
    application_id = started(launcher, job(FOREVER))
    folder = folder_of(launcher, application_id)
    os.kill(running_coordinator(folder), signal.SIGKILL)
    report = launcher.wait(application_id, poll_interval=0.1)
    assert (report.reason, report.state) == (Reason.AM_FAILED, "FAILED")
    assert "application.driver.log" in report.message
    until(lambda: not left(folder), what="the end of all processes")


@pytest.mark.slow
def test_script_and_files_are_those_of_the_user(launcher, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import os; print('variable', os.environ['NAME'])")
    report = run(
        launcher,
        job(
            f"{sys.executable} $DTF_TASK_SCRIPT && cat data/1",
            script=str(script),
            ps=False,
            env={"NAME": "a b"},
            files={"data": str(tmp_path)},
        ),
    )
    assert report.reason is Reason.TASK_FAILED and "data/1" in report.message
    assert "variable a b\n" in "".join(launcher.log(report.application_id))


@pytest.mark.slow
def test_archives_are_unpacked_and_each_type_has_its_environment(launcher, tmp_path):
    (tmp_path / "numbers").write_text("1 2 3\n")
    with tarfile.open(tmp_path / "data.tgz", "w:gz") as archive:
        archive.add(tmp_path / "numbers", "numbers")
    tasks = {}
    for name in ("worker", "other"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/train").write_text(f"#!/bin/sh\necho in the environment of {name}; cat data/numbers\n")
        (tmp_path / name / "bin/train").chmod(0o755)
        with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(tmp_path / name / "bin", "bin")
        tasks[name] = TaskSpec(environment=str(tmp_path / "other.tar.gz") if name == "other" else None)
    environment, archives = str(tmp_path / "worker.tar.gz"), {"data": str(tmp_path / "data.tgz")}
    report = run(launcher, job("train", tasks=tasks, environment=environment, archives=archives))
    assert report.reason is Reason.SUCCEEDED
    for name in tasks:
        log = "".join(launcher.log(report.application_id, f"{name}:0"))
        assert f"in the environment of {name}\n1 2 3\n" in log


@pytest.mark.slow
def test_workers_start_when_the_preparation_has_succeeded(launcher, tmp_path):
    wrote = f'echo "$JOB_NAME $CLUSTER_SPEC" >> {tmp_path}/order'
    tasks = {"worker": TaskSpec(instances=2, after="prepare"), "prepare": TaskSpec(command=f"sleep 1; {wrote}")}
    report = run(launcher, job(wrote, tasks=tasks))
    first, *others = (line.split(" ", 1) for line in (tmp_path / "order").read_text().splitlines())
    assert report.reason is Reason.SUCCEEDED and first[0] == "prepare"
    assert [name for name, _ in others] == ["worker", "worker"]
    assert {len(json.loads(cluster)["worker"]) for _, cluster in (first, *others)} == {2} and "prepare" not in first[1]


#: The processes add their ranks at MASTER_PORT; rank 0 writes the sum, and every other one a result that nobody reads.
ADD_RANKS = """\
import json, os, socket, time
rank, size, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
address, total = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), rank
if rank == 0:
    with socket.create_server(("", address[1])) as server:
        for _ in range(size - 1):
            with server.accept()[0] as one:
                total += int(one.makefile().readline())
else:
    while True:
        try:
            with socket.create_connection(address) as one:
                one.sendall(b"%d\\n" % rank)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump({"ranks": total, "local": local}, file)
open(os.path.join(os.environ["DTF_OUTPUT_PATH"], f"{rank}-of-{size}"), "w").close()
print("rank", rank)
"""


@pytest.mark.slow
def test_two_processes_in_each_of_two_tasks_find_each_other(launcher, tmp_path):
    (tmp_path / "add.py").write_text(ADD_RANKS)
    (tmp_path / "output").mkdir()
    report = run(launcher, job(
        f"{sys.executable} add.py", ps=False, framework="pytorch", procs_per_task=2, mirror="all",
        files={"add.py": str(tmp_path / "add.py")}, output=str(tmp_path / "output"),
    ))  # fmt: skip
    assert (report.reason, report.metrics) == (Reason.SUCCEEDED, {"ranks": 6, "local": 0}), report
    assert {path.name for path in (tmp_path / "output").iterdir()} == {f"{rank}-of-4" for rank in range(4)}
    lines = "".join(launcher.log(report.application_id, "worker:1")).splitlines()
    assert {"[0] rank 2", "[1] rank 3"} <= {*lines}


@pytest.mark.slow
def test_failure_of_one_process_is_that_of_its_task(launcher):
    """The other processes of the job fail in their turn; the one that traps SIGTERM ends the slowest."""
    fails = "touch ready; echo bad input; exit 9"
    lasts = "trap 'sleep 1; exit 3' TERM; tail -f /dev/null & wait"
    command = f"if [ $RANK = 1 ]; then {fails}; elif [ $RANK = 0 ]; then {lasts}; else exec tail -f /dev/null; fi"
    report = run(launcher, job(command, ps=False, framework="pytorch", procs_per_task=2))
    failure = next(task for task in report.tasks if task.task == report.first_failure)
    assert report.reason is Reason.TASK_FAILED and (failure.task, failure.exit_code) == ("worker:0", 9), report
    assert "[1] bad input\n" in failure.log_tail
    assert "LOCAL_RANK 1 has ended with exit code 9" in "".join(launcher.log(report.application_id, "worker:0"))


def test_request_that_needs_a_cluster_is_rejected(launcher):
    spec = job("true", ps=False, files={"model": "hdfs:///model"}, environment="docker://image")
    with pytest.raises(SpecInvalid) as caught:
        launcher.submit(spec)
    assert {fault.path for fault in caught.value.faults} == {"model", "environment"}
    assert launcher.list() == []


def test_missing_interpreter_is_rejected(launcher):
    tasks = {"worker": 1, "other": TaskSpec(environment="venv:///no/other")}
    with pytest.raises(SpecInvalid, match="there is no /no/venv/bin/python on this machine") as caught:
        launcher.submit(job("true", tasks=tasks, environment="venv:///no/venv"))
    assert [fault.path for fault in caught.value.faults] == ["environment", "tasks.other.environment"]


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Put the program of a machine with two GPUs first on PATH."""
    program = f'exec {sys.executable} -IS {gpu_node.__file__} {tmp_path} nvidia-smi "$@"\n'
    folder = write_script(tmp_path / "bin" / "nvidia-smi", program).parent
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.slow
def test_local_tasks_divide_the_gpus_also_after_a_loss(launcher, tmp_path, nvidia_smi):
    shown = tmp_path / "shown"
    shown.mkdir()
    write = f'echo "$CUDA_VISIBLE_DEVICES" > {shown}/new.$JOB_NAME$TASK_INDEX.$YTF_ROUND; cd {shown}; '
    write += "mv new.$JOB_NAME$TASK_INDEX.$YTF_ROUND $JOB_NAME$TASK_INDEX.$YTF_ROUND; exec tail -f /dev/null"
    tasks = {"worker": TaskSpec(instances=2, gpus=1), "other": TaskSpec()}
    restart = RestartPolicy(mode="cluster", max_container_losses=1)
    application = started(launcher, job(write, ps=False, tasks=tasks, restart=restart))

    def seen(round_number):
        files = [shown / f"{name}.{round_number}" for name in ("worker0", "worker1", "other0")]
        return all(file.exists() for file in files) and [file.read_text().strip() for file in files]

    first = until(lambda: seen(1), 60, what="the tasks")
    assert (sorted(first[:2]), first[2]) == (sorted(gpu_node.GPUS.values()), "")

    def usages():
        page = launcher.report(application).tracking_url.rstrip("/")
        with urllib.request.urlopen(f"{page}/status.json", timeout=60) as answer:
            document = json.load(answer)
        found = [(task["usage"] or {}).get("gpu_uuids") for task in document["tasks"]]
        return all(found[:2]) and (found, document["alerts"])

    assert until(usages, 60, what="the answers of nvidia-smi") == ([*first[:2], None], [])
    folder = folder_of(launcher, application)
    lost = next(
        path for path in Path("/proc").glob("[0-9]*") if is_agent(path, folder / "containers/container_worker_0")
    )
    os.kill(int(lost.name), signal.SIGKILL)
    assert until(lambda: seen(2), 60, what="the second round") == first


def is_agent(process, folder):
    """Return whether a process is the agent of a container."""
    with contextlib.suppress(OSError):
        return os.readlink(process / "cwd") == str(folder) and b"\0agent\0" in (process / "cmdline").read_bytes()
    return False


@pytest.mark.parametrize(
    "given, found",
    [(None, [*gpu_node.GPUS.values()]), ("", []), ("1, 0", ["1", "0"]), ("1,-1,0", ["1"]), ("MIG-a", ["MIG-a"])],
)
def test_gpus_are_those_that_cuda_shows_a_program(nvidia_smi, monkeypatch, given, found):
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert list_gpus() == found


def test_more_gpus_than_this_machine_has_are_rejected(launcher, nvidia_smi):
    tasks = {"worker": TaskSpec(instances=2, gpus=1, indices={1: Resources(gpus=2)})}
    with pytest.raises(SpecInvalid, match="task_gpus: the tasks want 3 GPUs together, and this machine has 2"):
        launcher.submit(job("true", ps=False, tasks=tasks))


@pytest.mark.slow
def test_key_and_variables_do_not_outlive_a_job_nor_its_folder_a_week(launcher):
    old = run(launcher, job("true", ps=False, workers=1, env={"API_KEY": "hunter2-long"})).application_id
    folder = folder_of(launcher, old)
    assert folder.stat().st_mode & 0o077 == 0
    files = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert files and not any(b"hunter2-long" in file or b"PRIVATE KEY" in file for file in files)
    file = folder / "application.json"
    ended = round(1000 * (time.time() - (KEPT_DAYS + 1) * 86400))
    document = file.read_text()
    start = document.index('"finishedTime": ') + len('"finishedTime": ')
    file.write_text(document[:start] + str(ended) + document[start + 13 :])
    run(launcher, job("true", ps=False, workers=1))
    with pytest.raises(ApplicationNotFound):
        launcher.session.resourcemanager.get(old)
