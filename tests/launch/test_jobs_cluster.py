"""Whole jobs on the real daemons: real AM, real agents, with truthful reports."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import httpx
import pytest
import six

from support.browser import browsing
from support.events import SCALAR, event_file, hide_tensorflow, see_charts
from support.programs import ROOT, YTF
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.job.parts import Deadlines, Environment, Resources, RestartPolicy, TensorBoard
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

OURS = Environment("venv", sys.prefix)
SMALL = {"memory": 256}
FOREVER = "exec tail -f /dev/null"
DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def way(request):
    return getattr(request, "param", "rest")


@pytest.fixture(scope="module")
def launcher(minicluster, way):
    """Return a launcher that submits by REST, if nothing else is given; by Skein's Java client: test_launcher_cluster.py."""
    launcher = Launcher(
        discover(minicluster.resourcemanager_url, environ={}),
        environ={**os.environ, **minicluster.environ},
        submit_with=way,
    )
    yield launcher
    launcher.close()


@contextlib.contextmanager
def submitting(launcher):
    """Return a function that submits; an application that is left at the end is killed."""
    applications = []

    def submit(spec):
        applications.append(launcher.submit(spec))
        return applications[-1]

    try:
        yield submit
    finally:
        for application in applications:
            if launcher.report(application).reason is None:
                launcher.kill(application, "its test ended")


@pytest.fixture
def submitted(launcher):
    with submitting(launcher) as submit:
        yield submit


def job(command, **fields):
    tasks = fields.pop("tasks", {"ps": TaskSpec(command=FOREVER, **SMALL), "worker": TaskSpec(instances=2, **SMALL)})
    fields.setdefault("deadlines", Deadlines(stop_grace=2, heartbeat=10))
    fields.setdefault("environment", OURS)
    return JobSpec(command=command, tasks=tasks, **fields)


def alone(command, **fields):
    return job(command, tasks={"worker": TaskSpec(**SMALL)}, **fields)


def task(report, name):
    return next(t for t in report.tasks if t.task == name)


def live(launcher, application):
    """The live report, once all commands have started."""

    def started():
        report = launcher.report(application)
        return report if report.tasks and all(t.starts for t in report.tasks) else None

    return until(started, 120, what="the start of all commands")


def left_of(application):
    """Every living process of the application, by the environment that YARN or we gave it."""
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and application.encode() in (entry / "environ").read_bytes()
                and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            ):
                left.append((entry / "cmdline").read_bytes())
        except OSError:  # it has just ended
            continue
    return left


def assert_gone(launcher, minicluster, application):
    """Nothing is live, no process is left, the directory with the key is deleted."""
    assert launcher.report(application).reason is not None
    until(lambda: not left_of(application), 60, what=f"the end of all processes, {left_of(application)}")
    url = f"{minicluster.namenode_url}/webhdfs/v1/user/{launcher.cluster.user}/.skein/{application}?op=GETFILESTATUS"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url, timeout=60)


# -- endings ------------------------------------------------------------------------------------


def in_yarn(minicluster, application):
    url = f"{minicluster.resourcemanager_url}/ws/v1/cluster/apps/{application}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)["app"]


@pytest.fixture(scope="module")
def good(launcher, minicluster, tmp_path_factory):
    """Run a job that succeeds although its TensorBoard fails; return what was seen of it."""
    # TensorBoard's Python finds no library.
    folder, seen = tmp_path_factory.mktemp("good"), SimpleNamespace()
    command = (
        'echo "{\\"accuracy\\": 0.97}" > $YTF_RESULT_FILE; '
        f"[ $TASK_INDEX = 0 ] || until [ -e {folder}/go ]; do sleep 0.1; done"
    )
    with submitting(launcher) as submit:
        seen.output = str(folder)
        seen.id = submit(
            job(
                command,
                name="good",
                output=seen.output,
                tensorboard=TensorBoard(memory=256),
                env={"PYTHONHOME": "/nowhere"},
            )
        )
        until(lambda: in_yarn(minicluster, seen.id)["progress"] == 50, 120, what="half of the two workers")
        until(
            lambda: task(launcher.report(seen.id), "tensorboard:0").state == "failed", 60, what="TensorBoard's failure"
        )
        seen.live = launcher.report(seen.id)
        (folder / "go").touch()
        seen.report = launcher.wait(seen.id, timeout=60)
        seen.progress = in_yarn(minicluster, seen.id)["progress"]
        return seen


def test_success_is_reported_with_tasks_times_and_metrics(launcher, minicluster, good):
    report = good.report
    assert (report.reason, report.state, report.final_status) == (Reason.SUCCEEDED, "FINISHED", "SUCCEEDED")
    assert (report.name, report.queue, report.output_path) == ("good", "default", good.output)
    assert report.metrics == {"accuracy": 0.97}
    assert report.user == launcher.cluster.user
    assert {t.task: t.state for t in report.tasks} == {
        "ps:0": "stopped",
        "worker:0": "succeeded",
        "worker:1": "succeeded",
        "tensorboard:0": "failed",
    }
    assert sorted(t.container_id[-6:] for t in report.tasks) == ["000002", "000003", "000004", "000005"]
    assert report.submitted_at <= report.started_at <= task(report, "worker:0").started_at <= report.finished_at
    assert set(report.versions) >= {"tf_yarn_ops", "python"}
    assert_gone(launcher, minicluster, good.id)


def test_progress_in_yarn_counts_finished_tasks_without_tensorboard(good):
    assert task(good.live, "worker:1").state == "running"
    assert (good.report.reason, good.report.first_failure) == (Reason.SUCCEEDED, None)
    board = task(good.report, "tensorboard:0")
    assert (board.state, board.exit_code) == ("failed", 1)
    assert good.progress == 100


def test_failing_worker_restarts_the_cluster_on_new_ports(launcher, minicluster, submitted, tmp_path):
    """The containers stay; each round has a cluster spec of its own."""
    program = "import os; os.environ['TASK_INDEX'] == '1' and 1 / 0; import time; time.sleep(600)"
    seen = f'echo "$CONTAINER_ID $DTF_PS_HOSTS,$DTF_WORKER_HOSTS $YTF_PORT" >> {tmp_path}/$TASK_INDEX'
    application = submitted(
        job(
            f'{seen}; [ $TASK_INDEX = 0 ] || until [ -e {tmp_path}/0 ]; do sleep 0.1; done; python -c "{program}"',
            restart=RestartPolicy("cluster", max_restarts=1, backoff=0.1),
        )
    )
    report = launcher.wait(application, timeout=90)
    (container, before, port), (same, after, _) = [line.split() for line in (tmp_path / "1").read_text().splitlines()]
    assert container == same == task(report, "worker:1").container_id
    assert len({*before.split(","), *after.split(",")}) == 6, "each task has a new port"
    assert before.split(",")[2].endswith(f":{port}"), "the list's order is the task index"
    assert (tmp_path / "0").read_text().split()[1] == before, "all tasks of a round have one cluster spec"
    assert [t.starts for t in report.tasks] == [2, 2, 2]
    assert (report.reason, report.final_status, report.first_failure) == (Reason.TASK_FAILED, "FAILED", "worker:1")
    assert "exit code 1" in report.message and "ZeroDivisionError: division by zero" in report.message
    assert "Traceback" in task(report, "worker:1").log_tail
    assert task(report, "worker:0").state == "stopped"
    assert_gone(launcher, minicluster, application)


@pytest.fixture(scope="module")
def held(launcher, minicluster):
    """Run a job with resources of its own, and let one wait in the queue; kill both; return what was seen of them."""
    tasks = {
        "ps": TaskSpec(memory=128, vcores=1),
        "worker": TaskSpec(instances=2, memory=256, vcores=2, indices={1: Resources(512, 3, 1)}),
    }
    seen = SimpleNamespace()
    with submitting(launcher) as submit:
        seen.id = submit(job(FOREVER, tasks=tasks, am_memory=1152, am_vcores=2))
        seen.report = live(launcher, seen.id)
        seen.agents = [len(agent_of(seen.id, name)) for name in ("ps", "worker")]
        seen.in_yarn = in_yarn(minicluster, seen.id)
        seen.waiting = submit(alone(FOREVER, am_memory=15 * 1024))
        seen.waiting_state = launcher.report(seen.waiting).state
        seen.waiting_killed = launcher.kill(seen.waiting, "no longer needed")
        seen.killed = launcher.kill(seen.id, "the operator asked for it")
        return seen


def test_killed_is_not_success_and_says_who(launcher, minicluster, held):
    report = held.killed
    assert (report.reason, report.final_status) == (Reason.KILLED, "KILLED")
    assert "the operator asked for it" in report.message
    assert {(task.state, task.finished_at) for task in report.tasks} == {("killed", report.finished_at)}
    assert_gone(launcher, minicluster, held.id)


def test_killed_while_it_waits_in_the_queue_leaves_no_directory(launcher, minicluster, held):
    assert held.waiting_state == "ACCEPTED"
    assert held.waiting_killed.reason is Reason.KILLED
    assert_gone(launcher, minicluster, held.waiting)


def test_resources_per_type_and_index_are_what_yarn_allocates(held):
    assert held.agents == [1, 2], "an agent for each task"
    assert len({t.container_id for t in held.report.tasks}) == 3
    assert held.in_yarn["allocatedMB"] == 1152 + 128 + 256 + 512
    assert held.in_yarn["allocatedVCores"] == 2 + 1 + 2 + 3
    used = {
        item["name"]: item["value"]
        for item in held.in_yarn["resourceInfo"]["resourceUsagesByPartition"][0]["used"]["resourceInformations"][
            "resourceInformation"
        ]
    }
    assert used["yarn.io/gpu"] == 1


# -- what reaches the program --------------------------------------------------------------------


NASTY = "blank  'quote' \"double\" $HOME `id` \\ ünï\n\tline 2 "
#: With one argument it runs in the PEX.
MAIN = """\
import json, os, sys
if len(sys.argv) == 2:
    import packed
    told, where = {'value': packed.VALUE, 'argv': sys.argv[1:], 'path': packed.__file__}, os.environ['TOLD_BY_PEX']
else:
    import extra
    sys.path.insert(0, 'lib')
    import inner
    told = {'env': os.environ['NASTY'], 'argv': sys.argv[1:], 'file': open('read me.txt').read(),
            'module': extra.VALUE, 'folder': inner.VALUE, 'script': os.environ['DTF_TASK_SCRIPT'],
            'in': os.environ['DTF_INPUT_PATH']}
    where = os.environ['YTF_RESULT_FILE']
json.dump(told, open(where, 'w'))
"""


@pytest.fixture(scope="module")
def pex(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pex")
    (folder / "packages" / "packed").mkdir(parents=True)
    (folder / "packages" / "packed" / "__init__.py").write_text("VALUE = 'of a package in the PEX'")
    made = folder / "env.pex"
    subprocess.run(
        [sys.executable, "-m", "pex", "-D", str(folder / "packages"), "-o", str(made)], check=True, timeout=60
    )
    return made


TOOL = """\
#!/bin/bash
exec python -c '
import json, os, sys, six
json.dump({"prefix": sys.prefix, "library": json.__file__, "package": six.__file__}, open(os.environ["TOLD_BY_TOOL"], "w"))'
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Return a tar.gz with a whole environment: an interpreter, its library, packages and a program."""
    home = tmp_path_factory.mktemp("packed") / "env"
    unused = shutil.ignore_patterns("__pycache__", "test", "idlelib", "site-packages", "dist-packages", "config-*")
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, home / "lib" / library.name, ignore=unused)
    (home / "bin").mkdir()
    python = home / "bin" / "python"
    shutil.copy(Path(sys.executable).resolve(), python)
    (home / "bin" / "tool").write_text(TOOL)
    (home / "bin" / "tool").chmod(0o755)
    told = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    packages = Path(told.stdout.strip())
    packages.mkdir(parents=True, exist_ok=True)
    shutil.copy(six.__file__, packages)
    archive = home.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(home, ".")
    return archive


@pytest.fixture(scope="module")
def arrived(launcher, pex, packed, tmp_path_factory):
    """Run a job with a script, files, a PEX and a zip as its environments; return its report and what its programs wrote.

    The zip lies in HDFS. The evaluator has a whole environment of its own.
    """
    top = tmp_path_factory.mktemp("arrived")
    home = top / "env"
    (home / "bin").mkdir(parents=True)
    for name in ("python", f"python{sys.version_info.major}.{sys.version_info.minor}"):
        (home / "bin" / name).write_text(f'#!/bin/bash\nexec {sys.executable} "$@"\n')
    (home / "bin" / "tool").write_text(f"#!/bin/bash\necho '{{\"tool\": 1}}' > {top}/tool.json\n")
    for program in (home / "bin").iterdir():
        program.chmod(0o755)
    archive = shutil.make_archive(str(top / "env"), "zip", home)
    files = launcher.session.staging(launcher.cluster.user).filesystem
    files.create("/tmp/env.zip", Path(archive).read_bytes(), 0o644)
    archive = f"{launcher.cluster.storage.default}/tmp/env.zip"
    folder = top / "ünï 'folder'"
    folder.mkdir()
    (folder / "read me.txt").write_text("of a file")
    (top / "modules").mkdir()
    (top / "modules" / "inner.py").write_text("VALUE = 'of a folder'")
    (top / "extra.py").write_text("VALUE = 'of a module'")
    (top / "main.py").write_text(MAIN)
    command = (
        f"tool && test -x copy/bin/tool; echo $? > {top}/tool.code; "
        f"PEX_ROOT=$PWD/.pex ./env.pex ${{DTF_TASK_SCRIPT}} 'a b'; echo $? > {top}/pex.code; "
        "python ${DTF_TASK_SCRIPT} 'a b' \"$NASTY\" ünï"
    )
    with submitting(launcher) as submit:
        report = launcher.wait(
            timeout=90,
            application_id=submit(
                job(
                    command,
                    tasks={
                        "worker": TaskSpec(environment=archive, **SMALL),
                        "evaluator": TaskSpec(command="tool", environment=str(packed), **SMALL),
                    },
                    environment=Environment.parse(archive),
                    archives={"copy": archive},  # YARN makes one link to a file: this one is the agent's
                    script=str(top / "main.py"),
                    input=f"{folder}/in",
                    env={
                        "NASTY": NASTY,
                        "TOLD_BY_PEX": str(top / "pex.json"),
                        "TOLD_BY_TOOL": str(top / "packed.json"),
                    },
                    files={
                        "read me.txt": str(folder / "read me.txt"),
                        "extra.py": str(top / "extra.py"),
                        "lib": str(top / "modules"),
                        "env.pex": str(pex),
                    },
                )
            ),
        )
    written = {
        file.name: json.loads(file.read_text()) for pattern in ("*.json", "*.code") for file in top.glob(pattern)
    }
    return SimpleNamespace(report=report, folder=folder, written=written)


def test_everything_arrives_byte_for_byte(arrived):
    assert arrived.report.reason is Reason.SUCCEEDED, arrived.report.message
    assert arrived.report.metrics == {
        "env": NASTY,
        "argv": ["a b", NASTY, "ünï"],
        "file": "of a file",
        "module": "of a module",
        "folder": "of a folder",
        "script": "main.py",
        "in": f"{arrived.folder}/in",
    }


def test_a_zip_is_an_environment_too(arrived):
    """In HDFS; an archive of this machine: `test_a_packed_interpreter_travels_with_its_library_and_its_packages`."""
    assert arrived.report.reason is Reason.SUCCEEDED, arrived.report.message
    assert (arrived.written["tool.code"], arrived.written.get("tool.json")) == (0, {"tool": 1})


def test_a_pex_is_the_interpreter_and_brings_its_packages(arrived):
    assert arrived.report.reason is Reason.SUCCEEDED, arrived.report.message
    assert arrived.written["pex.code"] == 0
    told = arrived.written["pex.json"]
    assert told["value"] == "of a package in the PEX" and told["argv"] == ["a b"]
    assert f"/{arrived.report.application_id}/container_" in told["path"] and "/.pex/" in told["path"]


def test_a_packed_interpreter_travels_with_its_library_and_its_packages(arrived):
    assert arrived.report.reason is Reason.SUCCEEDED, arrived.report.message
    told = arrived.written["packed.json"]
    assert re.search(r"/container_\w+/environment\.evaluator$", told["prefix"])
    assert all(told[name].startswith(f"{told['prefix']}/") for name in ("library", "package"))  # Debian's: local/lib


# -- TensorBoard -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["skein"], indirect=True)  # by REST: test_cli_cluster.py
def test_tensorboard_answers_while_the_job_runs_and_ends_with_it(launcher, submitted, minicluster, tmp_path):
    """Its event files lie in HDFS, and the node has no libhdfs; a browser sees them through YARN's proxy."""
    go = tmp_path / "go"
    where = f"{minicluster.namenode_url}/webhdfs/v1/models/charts/logs/train/events.out.tfevents.1.host"
    as_us = {"user.name": launcher.cluster.user}
    httpx.put(where, params={"op": "CREATE", **as_us}, content=event_file(2), follow_redirects=True).raise_for_status()
    application = submitted(
        job(
            f"until [ -e {go} ]; do sleep 0.1; done",
            tasks={"worker": TaskSpec(**SMALL)},
            output="hdfs:///models/charts",
            tensorboard=TensorBoard(memory=1024, args="--reload_interval=2"),
        )
    )
    report = until(
        lambda: (found := launcher.report(application)).tensorboard_url and found, 120, what="an answer of TensorBoard"
    )
    board = f"{report.tracking_url.rstrip('/')}/pages/tensorboard/"
    assert report.tensorboard_url == board
    with urllib.request.urlopen(report.tracking_url, timeout=60) as tracked:
        assert re.search(r'href="[^"]*/pages/tensorboard[^"]*"[^>]*>\s*TensorBoard\s*<', tracked.read().decode())
    with urllib.request.urlopen(f"{report.tracking_url.rstrip('/')}/pages/ytf/", timeout=60) as ours:
        page = ours.read().decode()
    assert "worker:0" in page and '<a href="../tensorboard/">TensorBoard</a>' in page
    # The file grows; TensorBoard shows what is new.
    httpx.post(
        where, params={"op": "APPEND", **as_us}, content=event_file(1, first=2), follow_redirects=True
    ).raise_for_status()

    def steps():
        data = f"{board}data/plugin/scalars/scalars?run=logs%2Ftrain&tag={quote(SCALAR)}"
        try:
            return [step for _, step, _ in json.load(urllib.request.urlopen(data, timeout=60))]
        except (OSError, ValueError):  # after the end YARN answers with a page of its own
            return None

    until(lambda: steps() == [0, 1, 2], 60, what="three points")
    with browsing(height=1600) as window:
        see_charts(window, board, "logs/train", 3)
    front = next(address for address in listening(application) if not address.startswith("127."))
    with pytest.raises((OSError, http.client.HTTPException)):  # around YARN, without the job's certificate
        urllib.request.urlopen(f"http://127.0.0.1:{front.rpartition(':')[2]}/", timeout=60)
    go.touch()
    report = launcher.wait(application, timeout=60)
    assert report.reason is Reason.SUCCEEDED
    assert task(report, "tensorboard:0").state == "stopped"
    assert report.tensorboard_url is not None
    assert steps() is None
    # After the run: ytf tensorboard, on this machine, beside another run; it goes on copying.
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "events.out.tfevents.1.host").write_bytes(event_file(1))
    words = [
        *YTF,
        "tensorboard",
        application,
        "--compare",
        str(tmp_path / "before"),
        "--no_browser",
        "--args",
        "--reload_interval=2",
        "--resourcemanager",
        minicluster.resourcemanager_url,
    ]
    path = os.pathsep.join(map(str, (hide_tensorflow(tmp_path / "hidden"), ROOT)))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as shown:
        try:
            url = shown.stdout.readline().strip()
            name = f"TensorFlow-{application.rpartition('_')[2]}"

            def runs():
                found = json.load(urllib.request.urlopen(f"{url}data/plugin/scalars/tags", timeout=60))
                return {run: list(tags) for run, tags in found.items() if tags}

            until(lambda: runs() == {f"{name}/logs/train": [SCALAR], "before": [SCALAR]}, 60, what="both runs")
            httpx.post(where, params={"op": "APPEND", **as_us}, content=event_file(1, first=3), follow_redirects=True)
            data = f"{url}data/plugin/scalars/scalars?run={quote(f'{name}/logs/train')}&tag={quote(SCALAR)}"
            until(lambda: len(json.load(urllib.request.urlopen(data, timeout=60))) == 4, 60, what="the new point")
        finally:
            shown.send_signal(signal.SIGINT)
    assert shown.returncode == 0


def listening(application):
    """Return the addresses on which the processes of an application's TensorBoard listen."""
    sockets = set()
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and application.encode() in (entry / "environ").read_bytes()
                and b"tensorboard" in (entry / "cmdline").read_bytes()
            ):
                sockets |= {os.readlink(link) for link in (entry / "fd").iterdir()}
        except OSError:
            continue
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            host, port = fields[1].split(":")
            found.append(f"{'.'.join(str(part) for part in reversed(bytes.fromhex(host)))}:{int(port, 16)}")
    return found


# -- restarts with real containers -----------------------------------------------------------------


def agent_of(application, name):
    words = ["ps", "axww", "--sort=start_time", "-o", "pid,args"]  # what an agent forks comes later
    listing = subprocess.run(words, capture_output=True, text=True).stdout
    return [
        int(line.split()[0])
        for line in listing.splitlines()
        if f"agent {name} {application}" in line and "bash" not in line
    ]


# -- real training -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits(tmp_path_factory, launcher, minicluster):
    """The handwritten digits in HDFS."""
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    subprocess.run([sys.executable, DIGITS / "prepare.py", path], check=True)
    launcher.session.staging(launcher.cluster.user).filesystem.replace("/tmp/digits.npz", path.read_bytes(), 0o644)
    return f"{minicluster.default_filesystem}/tmp/digits.npz"


def training(script, tasks, digits, output, options="", before="", **fields):
    fields.setdefault("environment", OURS)
    return JobSpec(
        command=f"{before}python ${{DTF_TASK_SCRIPT}} {options}",
        script=str(DIGITS / script),
        files={"digits.py": str(DIGITS / "digits.py")},
        input=str(digits),
        output=str(output),
        tasks={name: TaskSpec(task, memory=1024) if isinstance(task, int) else task for name, task in tasks.items()},
        **fields,
    )


def assert_trained(report, steps):
    assert report.reason is Reason.SUCCEEDED, report.message + str([t.log_tail for t in report.tasks])
    assert report.metrics["accuracy"] >= 0.95
    assert report.metrics["steps"] == steps


SERVER = TaskSpec(memory=1024, command="ytf-server")
PARAMETER_SERVER = {"chief": 1, "worker": replace(SERVER, instances=2), "ps": SERVER, "evaluator": 1}


@pytest.fixture(scope="module")
def struck(launcher, minicluster, digits, tmp_path_factory):
    """Train in one task on an interpreter of the nodes, with mirrored paths, and kill its container amid the training.

    Return the report, the ``python`` that the command found, the last checkpoint and the names in the output's folders.
    """
    found = tmp_path_factory.mktemp("struck") / "python"
    files = launcher.session.staging(launcher.cluster.user).filesystem
    spec = training(
        "single.py",
        {"worker": 1},
        digits,
        f"{minicluster.default_filesystem}/tmp/mirrored",
        # The first round lasts until its container is killed.
        "--learning_rate 0.01 --batch_size 128 --steps 300 --checkpoint_steps 50 --step_delay 0.$((2 * (YTF_ROUND == 1)))",
        before=f"command -v python > {found}; ",
        environment=Environment.parse(f"python://{sys.executable}"),
        mirror="chief",
        mirror_input="1 GiB",
    )

    def names(folder):
        return {status.name for status in files.list(f"/tmp/mirrored/{folder}") if not status.name.startswith(".")}

    def checkpoint():
        """Return the last step in HDFS; all that the index names is there."""
        text = (files.read("/tmp/mirrored/checkpoints/checkpoint") or b"").decode()
        found = re.search(r'^model_checkpoint_path: "ckpt-(\d+)"', text)
        if not found:
            return 0
        there = names("checkpoints")
        assert {f"ckpt-{found[1]}.index", f"ckpt-{found[1]}.data-00000-of-00001"} <= there, (text, there)
        return int(found[1])

    with submitting(launcher) as submit:
        application = submit(spec)
        until(checkpoint, 180, what="a checkpoint in HDFS")
        os.kill(agent_of(application, "worker")[0], signal.SIGKILL)
        report = launcher.wait(application, timeout=240)
    return SimpleNamespace(
        report=report,
        python=found.read_text().strip(),
        checkpoint=checkpoint(),
        names={folder: names(folder) for folder in ("logs/train", "model")},
    )


def test_mirrored_training_resumes_from_hdfs_after_a_lost_container(struck):
    """Checkpoints, event files and the model of a program that opens only local paths; a reader of HDFS meets no halves."""
    report = struck.report
    assert report.reason is Reason.SUCCEEDED, report.message + str([t.log_tail for t in report.tasks])
    assert len(report.rounds) == 2 and report.metrics["resumed_from_step"] >= 50
    assert struck.checkpoint == report.metrics["steps"] == 300 and "saved_model.pb" in struck.names["model"]
    events = [name for name in struck.names["logs/train"] if name.startswith("events.out.tfevents")]
    assert len(events) == 2, "one of each run of the writer"


def test_a_single_task_trains(struck):
    assert_trained(struck.report, 300)


def test_an_interpreter_of_the_nodes_is_first_on_the_path(struck):
    """By ``python://``; by ``conda://``: test_conda_cluster.py."""
    assert (struck.report.reason, struck.python) == (Reason.SUCCEEDED, f"{sys.prefix}/bin/python"), (
        struck.report.message
    )


def command_of(agent):
    """The user's process below an agent."""
    children = subprocess.run(["pgrep", "-P", str(agent)], capture_output=True, text=True).stdout.split()
    return int(children[0])


def test_parameter_server_training_survives_lost_workers(launcher, submitted, digits, minicluster):
    """Of two workers one is started again, the other in a new container.

    On mirrored paths: the evaluator measures the chief's checkpoints, and both write.
    """
    files = launcher.session.staging(launcher.cluster.user).filesystem
    spec = training(
        "parameter_server.py",
        PARAMETER_SERVER,
        digits,
        f"{minicluster.default_filesystem}/tmp/struck",
        "--steps 400 --checkpoint_steps 50 --step_delay 0.06",
        restart=RestartPolicy("task", max_restarts=2),
        mirror="chief",
        mirror_input="1 GiB",
    )
    application = submitted(spec)
    # The chief keeps three checkpoints; the mirror may come too late for the first ones.
    checkpoints = "/tmp/struck/checkpoints"
    until(lambda: [file for file in files.list(checkpoints) if file.name.endswith(".index")], 180, what="a checkpoint")
    killed, lost = agent_of(application, "worker")
    os.kill(command_of(killed), signal.SIGKILL)
    os.kill(lost, signal.SIGKILL)
    report = launcher.wait(application, timeout=240)
    assert_trained(report, 400)
    assert sorted(t.starts for t in report.tasks) == [1, 1, 1, 2, 2]
    assert len(report.rounds) == 1
    assert {t.task: t.state for t in report.tasks} == {
        "chief:0": "succeeded",
        "evaluator:0": "succeeded",
        "worker:0": "stopped",
        "worker:1": "stopped",
        "ps:0": "stopped",
    }
    assert files.status("/tmp/struck/model/saved_model.pb") and files.list("/tmp/struck/logs/eval")
    measured = json.loads(files.read("/tmp/struck/eval/accuracy.json"))
    assert (measured["step"], measured["accuracy"]) == (400, report.metrics["accuracy"])
