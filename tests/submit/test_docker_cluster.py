"""Jobs in Docker containers on a real engine, by a NodeManager with DockerLinuxContainerRuntime."""

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import tarfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.hadoop import HadoopCluster
from support.hadoop.docker import (
    LOGIN,
    NVIDIA,
    PACKAGES,
    SMALL,
    SMALL_MIB,
    USER,
    start_registry,
    write_client_config,
)
from support.programs import YTF
from support.reaper import list_mounts
from support.waiting import PATIENCE, until
from tf_yarn_ops.doctor.examination import examine
from tf_yarn_ops.doctor.known import Question
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.security.authentication import SimpleAuthentication
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.hadoop.webhdfs import WebHdfs
from tf_yarn_ops.job.parts import Environment
from tf_yarn_ops.job.request import build_job
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

# The first test waits for the cluster and for all jobs.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    """Return a cluster whose NodeManager runs containers in an engine of its own."""
    with HadoopCluster(tmp_path_factory.mktemp("docker"), docker=True) as cluster:
        yield cluster
    assert not list_mounts(cluster.directory)


@pytest.fixture(scope="module")
def launcher(hadoop):
    """Return a launcher of the user that YARN runs in Docker; its live jobs are killed at the end."""
    site = Site(allow_exec=True)
    environ = {"HADOOP_USER_NAME": USER}
    with contextlib.closing(Launcher(discover(hadoop.resourcemanager_url, environ=environ, site=site))) as made:
        yield made
        for report in made.list():
            made.kill(report.application_id, "the test is over")


def job(command, image="local/python:1", **options):
    return build_job(
        {"task_command": command, "docker_image": image, "cluster_requirement": "worker:1", "task_memory": "256"}
        | options
    )


SAVES = """\
import os, pathlib, signal, time
folder = pathlib.Path(os.environ["DTF_OUTPUT_PATH"])
def save(*_):
    (folder / "saved").touch()
signal.signal(signal.SIGTERM, save)
(folder / "runs").touch()
while True:
    time.sleep(0.1)
"""


def test_a_kill_lets_the_program_save_and_leaves_no_container(hadoop, launcher, tmp_path):
    engine = hadoop.settings.engine
    (tmp_path / "saves.py").write_text(SAVES)
    output = engine.output / "kill"
    output.mkdir()
    output.chmod(0o777)
    application = launcher.submit(job("python3 saves.py", script=str(tmp_path / "saves.py"), output=str(output)))
    until((output / "runs").exists, 120, what=lambda: f"the start of the program: {launcher.report(application)}")
    beside = [*YTF, "exec", application, "worker:0", "--", "bash", "-c", "echo $DTF_TASK_INDEX; ls /.dockerenv; exit 7"]
    environ = {**os.environ, **hadoop.environ, "HADOOP_USER_NAME": USER}
    done = subprocess.run(beside, env=environ, capture_output=True, text=True, timeout=60 * PATIENCE)
    assert (done.returncode, done.stdout) == (7, "0\n/.dockerenv\n"), done
    launcher.kill(application, "a test")
    assert launcher.wait(application, timeout=120).reason is Reason.KILLED
    until(lambda: not engine.run("ps", "--quiet"), 60, what="the end of all containers")
    assert (output / "saved").exists(), "the program got SIGTERM before SIGKILL"


#: Nearly fills its container, and grows when a file exists. The kernel then kills the first process, so the container ends.
FILLS = """\
import os, pathlib, time
pathlib.Path("/proc/1/oom_score_adj").write_text("1000")
held = b"x" * (465 << 20)
while not pathlib.Path(os.environ["DTF_OUTPUT_PATH"], "grow").exists():
    time.sleep(0.1)
held *= 2
"""


def test_sigkill_of_a_whole_container_ends_with_its_cause(hadoop, launcher, tmp_path):
    """From outside, and by the kernel for memory; no agent is left that could report it."""
    engine = hadoop.settings.engine
    (tmp_path / "fills.py").write_text(FILLS)
    output = engine.output / "sigkill"
    output.mkdir()
    output.chmod(0o777)
    options = {
        "script": str(tmp_path / "fills.py"),
        "output": str(output),
        "task_memory": "512",
        "max_container_losses": 0,
    }
    idle, full = (launcher.submit(job(words, **options)) for words in ("exec sleep 1000", "exec python3 fills.py"))

    def once_used(application, part, *words):
        """Run a command of Docker on the job's container when it is known to use this part of its memory."""
        until(
            lambda: (usage := launcher.report(application).usage) and (usage.fullest_part or 0) >= part, 120, 0.5,
            what=lambda: f"the use of {part}: {launcher.report(application)}",
        )  # fmt: skip
        engine.run(*words, *engine.run("ps", "--quiet", f"--filter=name={application.partition('_')[2]}").split())

    once_used(idle, 0, "kill", "--signal=KILL")
    once_used(full, 0.9, "update", "--memory=512m", "--memory-swap=512m")
    (output / "grow").touch()
    killed, grown = (launcher.wait(application, timeout=120 * PATIENCE) for application in (idle, full))
    words = "SIGKILL ended its container (exit code 137)"
    assert (killed.reason, killed.retryable) == (Reason.CONTAINER_LOST, True) and f"{words}: " in killed.message, killed
    assert (grown.reason, grown.retryable) == (Reason.OUT_OF_MEMORY, False), grown
    assert re.search(re.escape(words) + r" when it used 4\d\d of 512 MiB", grown.message), grown
    until(lambda: not engine.run("ps", "--quiet"), 60, what="the end of all containers")


GROWS = "python3 -c 'b = bytearray(300 << 20)'"


#: Jobs that run at the same time: the reason, words of the message, and the job.
ROWS = {
    "memory": (
        Reason.OUT_OF_MEMORY,
        f"failed with exit code 3|the kernel killed 1 of its processes for memory: its cgroup has {SMALL_MIB}.0 MiB",
        lambda _: job(f"{GROWS} & wait $! || exit 3", SMALL),
    ),
    "no python": (
        Reason.ENVIRONMENT_INVALID,
        "the image local/nopython:1: its Python can't start|python3: not found",
        lambda _: job("true", "local/nopython:1"),
    ),
    "no bash": (
        Reason.ENVIRONMENT_INVALID,
        "the image local/nobash:1: it has no bash",
        lambda _: job("true", "local/nobash:1"),
    ),
    "no image": (
        Reason.ENVIRONMENT_INVALID,
        "the image local/nosuch:1: no node has it or can pull it|local/nosuch:1",
        lambda _: job("true", "local/nosuch:1"),
    ),
    "untrusted": (
        Reason.ENVIRONMENT_INVALID,
        "the image foreign/python:1: nothing was mounted|docker.trusted.registries",
        lambda _: job("true", "foreign/python:1"),
    ),
    "no login": (
        Reason.ENVIRONMENT_INVALID,
        "its registry wants another login: give docker_client_config|no basic auth credentials",
        lambda registry: job("true", f"{registry}/python:2"),
    ),
    "mount": (
        Reason.ENVIRONMENT_INVALID,
        "a folder can't be mounted|docker.allowed.ro-mounts|/etc/hostname",
        lambda _: job("true", input="file:///etc/hostname"),
    ),
}


#: What the input in HDFS holds.
NUMBER = "7"
#: Fails in the first round, so that it runs again in the same container.
CHECKS = """\
import os, pathlib, pwd, sys
uid = os.getuid()
try:
    sys.exit(f"the image knows {pwd.getpwuid(uid)}")
except KeyError:
    assert uid > 0
assert pathlib.Path("extra.txt").read_text() == "extra" and pathlib.Path("pack/inner.txt").read_text() == "inner"
given = pathlib.Path(os.environ["DTF_INPUT_PATH"].removeprefix("file://"))
output = pathlib.Path(os.environ["DTF_OUTPUT_PATH"])
assert (given / "data").read_text() == "data"
try:
    (given / "new").touch()
    sys.exit("the input can be written")
except OSError:
    pass
for name in ("JAVA_HOME", "HADOOP_CONF_DIR"):
    assert name not in os.environ, os.environ[name]
shared = os.statvfs("/dev/shm")
assert shared.f_blocks * shared.f_frsize > 64 << 20, shared
temporary = pathlib.Path(os.environ["TMPDIR"])
(temporary / "left").touch()
if os.environ["YTF_ROUND"] == "1":
    sys.exit(3)
(output / ("temporary" + os.environ["TASK_INDEX"])).write_text(str(temporary.resolve()))
(output / os.environ["TASK_INDEX"]).write_text(os.environ["DTF_DOCKER_IMAGE"])
"""


@pytest.fixture(scope="module")
def registry(hadoop):
    """Return the address of a registry that wants a login, with images that the engine does not have."""
    engine = hadoop.settings.engine
    with start_registry(engine) as address:
        images = [f"{address}/python:{tag}" for tag in "12"]
        write_client_config(engine.folder / "config.json", address)
        for image in images:
            engine.run("tag", "local/python:1", image)
            engine.run("--config", engine.folder, "push", "--quiet", image)
        engine.run("rmi", *images)
        yield address


@pytest.fixture(scope="module")
def files(hadoop):
    """Return the files of the user in HDFS, with an input."""
    found = WebHdfs((hadoop.namenode_url,), SimpleAuthentication(USER), 60.0)
    assert found.create(f"/user/{USER}/in/number", NUMBER.encode(), 0o644)
    return found


@pytest.fixture(scope="module")
def reports(hadoop, launcher, registry, tmp_path_factory):
    """Return the reports of all jobs, and the diagnoses of images."""
    folder, engine = tmp_path_factory.mktemp("files"), hadoop.settings.engine
    (folder / "checks.py").write_text(CHECKS)
    (folder / "extra.txt").write_text("extra")
    (folder / "inner.txt").write_text("inner")
    with tarfile.open(folder / "pack.tgz", "w:gz") as archive:
        archive.add(folder / "inner.txt", "inner.txt")
    (engine.input / "data").write_text("data")
    all_of_it = job(
        "python3 checks.py",
        cluster_requirement="worker:2,ps:1",
        script=str(folder / "checks.py"),
        file=[str(folder / "extra.txt")],
        archive=[f"pack={folder}/pack.tgz"],
        input=f"file://{engine.input}",
        output=str(engine.output),
        restart="cluster",
        max_restarts=1,
        docker_runtime=NVIDIA,
        docker_tmpfs=["/dev/shm"],
        docker_delayed_removal=True,
    )
    small = Environment.parse(f"docker://{SMALL}")
    ps = dataclasses.replace(all_of_it.tasks["ps"], command="exec sleep 1000", environment=small)
    all_of_it = dataclasses.replace(all_of_it, tasks={**all_of_it.tasks, "ps": ps})
    jobs = {name: make(registry) for name, (_, _, make) in ROWS.items()} | {"all": all_of_it}

    def diagnose(image):
        question = Question(
            {"HADOOP_USER_NAME": USER},
            hadoop.resourcemanager_url,
            environment=Environment.parse(f"docker://{image}"),
            gpus=1 if image == "local/python:1" else 0,
            timeout=200 * PATIENCE,
        )
        return {result.check: result.finding for result in examine(question).results}

    with ThreadPoolExecutor(3) as pool:
        ended = pool.map(lambda one: launcher.wait(launcher.submit(one), timeout=200 * PATIENCE), jobs.values())
        images = ["local/python:1", "local/nolibrary:1", SMALL]
        diagnoses = pool.map(diagnose, images)
        return {**dict(zip(jobs, ended, strict=True)), **dict(zip(images, diagnoses, strict=True))}


def test_two_workers_have_files_folders_and_a_restart(hadoop, reports):
    report = reports["all"]
    assert report.reason is Reason.SUCCEEDED and len(report.rounds) == 2, report
    output = hadoop.settings.engine.output
    assert [(output / index).read_text() for index in "01"] == ["local/python:1"] * 2
    temporary = [Path((output / f"temporary{index}").read_text()) for index in "01"]
    until(lambda: not any(path.exists() for path in temporary), 60, what="the end of the temporary folders")


def test_settings_and_image_of_each_type_reach_the_engine(hadoop, reports):
    number = reports["all"].application_id.partition("_")[2]
    started = [line.split() for line in hadoop.settings.engine.runs.read_text().splitlines() if number in line]
    wanted = {"--net=host", f"--runtime={NVIDIA}", "--tmpfs=/dev/shm"}
    assert [wanted - {*words} for words in started] == [set()] * 3
    images = [({"local/python:1", SMALL} & {*words}).pop() for words in started]
    assert sorted(images) == ["local/python:1", "local/python:1", SMALL]
    log, kept = hadoop.settings.logs / "nm.log", f"skipping removal - container_{number}"
    until(lambda: kept in log.read_text(errors="replace"), 60, what=f"{kept} in {log}")


def test_doctor_proves_an_image_by_a_container(reports):
    found = {name: reports[name]["application"] for name in ("local/python:1", "local/nolibrary:1", SMALL)}
    assert (found[SMALL].symptom.name, found["local/python:1"].symptom.name) == ("NO_TENSORFLOW", "NO_GPU"), found
    assert f"{SMALL}, Python 3." in found[SMALL].message
    assert "local/python:1, Python 3." in found["local/python:1"].message
    broken = found["local/nolibrary:1"]
    assert (broken.reason, "No module named 'json'" in broken.message) == (Reason.ENVIRONMENT_INVALID, True), broken


#: Reads the mirrored input, reads and writes HDFS, and ends when TensorBoard has shown what it writes.
TRAINS = """\
import os, pathlib, time
import tensorflow as tf
files, given, mirrored = tf.io.gfile, os.environ["GIVEN"], pathlib.Path(os.environ["DTF_INPUT_PATH"])
assert (mirrored / "number").read_text() == files.GFile(given + "/number").read()
writer = tf.summary.create_file_writer(os.environ["DTF_OUTPUT_PATH"] + "/logs")
with writer.as_default():
    tf.summary.scalar("read", float(files.GFile(given + "/number").read()), step=1)
writer.close()
while not files.exists(given + "/seen"):
    time.sleep(0.5)
"""


@pytest.fixture(scope="module")
def trained(hadoop, registry, files, tmp_path_factory):
    """Train in an image that the engine does not have, and show it in TensorBoard; return the report.

    The image has Python alone; its packages are a folder of the nodes.
    """
    folder, site = tmp_path_factory.mktemp("trains"), Site(docker_folders=(str(PACKAGES),))
    cluster = discover(hadoop.resourcemanager_url, environ={"HADOOP_USER_NAME": USER}, site=site)
    home = f"{cluster.storage.filesystem}/user/{USER}"
    (folder / "trains.py").write_text(TRAINS)
    trains = job(
        "python3 trains.py",
        f"{registry}/python:1",
        docker_client_config=str(write_client_config(folder / "config.json", registry)),
        script=str(folder / "trains.py"),
        task_memory="1024",
        env={"PYTHONPATH": str(PACKAGES), "GIVEN": f"{home}/in"},
        input=f"{home}/in",
        mirror_input="1 MiB",
        output=f"{home}/out",
        mirror="chief",
        tensorboard=True,
        tensorboard_memory="1024",
    )

    def shown():
        url = launcher.report(application).tensorboard_url
        with contextlib.suppress(OSError):
            return url and json.loads(urllib.request.urlopen(f"{url}/data/runs", timeout=60).read()) == ["logs"]

    with contextlib.closing(Launcher(cluster)) as launcher:
        application = launcher.submit(trains)
        until(shown, 200, 0.5, what=lambda: f"TensorBoard's run: {launcher.report(application)}")
        assert files.create(f"/user/{USER}/in/seen", b"", 0o644)
        return launcher.wait(application, timeout=200 * PATIENCE)


def test_tensorflow_and_tensorboard_work_in_an_image(trained, files):
    assert trained.reason is Reason.SUCCEEDED, trained
    assert [status.name for status in files.list(f"/user/{USER}/out")] == ["logs"]


def test_image_is_pulled_by_a_secret_login_and_mirrors_its_input(hadoop, launcher, trained):
    assert trained.reason is Reason.SUCCEEDED, trained
    secrets = [LOGIN.partition(":")[2]]
    secrets += [
        entry["auth"]
        for entry in json.loads((hadoop.settings.engine.folder / "config.json").read_text())["auths"].values()
    ]
    # The recovery of a NodeManager keeps the tokens of containers, like its users' delegation tokens.
    logs = [path for path in hadoop.directory.rglob("*.log") if "recovery" not in path.parts]
    texts = {}
    for path in logs:
        with contextlib.suppress(FileNotFoundError):  # YARN has taken it to HDFS
            texts[path] = path.read_text(errors="replace")
    assert len(texts) > 4
    for name in ("worker:0", "master", "coordinator"):
        texts[Path(name)] = "".join(launcher.log(trained.application_id, name))
    texts[Path("report")] = json.dumps(dataclasses.asdict(trained), default=str)
    assert [path for path, text in texts.items() if any(secret in text for secret in secrets)] == []


def test_a_node_without_docker_is_not_taken_for_an_image(minicluster):
    with contextlib.closing(Launcher(discover(minicluster.resourcemanager_url, environ={}))) as launcher:
        report = launcher.run(job("true"), timeout=200 * PATIENCE)
    assert report.reason is Reason.ENVIRONMENT_INVALID, report
    assert "YARN has ignored the image local/python:1 and started the container outside Docker" in report.message


@pytest.mark.parametrize("name", ROWS)
def test_a_fault_in_docker_ends_with_its_reason(reports, name):
    reason, words, _ = ROWS[name]
    report = reports[name]
    assert (report.reason, [word for word in words.split("|") if word not in report.message]) == (reason, []), report
