"""Jobs in Docker containers on a real engine, by a NodeManager with DockerLinuxContainerRuntime."""

import contextlib
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.hadoop import HadoopCluster
from support.hadoop.docker import SMALL, SMALL_MIB, USER
from support.reaper import list_mounts
from support.waiting import PATIENCE, until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site
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
    environ = {"HADOOP_USER_NAME": USER}
    with contextlib.closing(Launcher(discover(hadoop.resourcemanager_url, environ=environ, site=Site()))) as made:
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
    launcher.kill(application, "a test")
    assert launcher.wait(application, timeout=120).reason is Reason.KILLED
    until(lambda: not engine.run("ps", "--quiet"), 60, what="the end of all containers")
    assert (output / "saved").exists(), "the program got SIGTERM before SIGKILL"


GROWS = "python3 -c 'b = bytearray(300 << 20)'"


#: Jobs that run at the same time: the reason, words of the message, and the job.
ROWS = {
    "memory": (
        Reason.OUT_OF_MEMORY,
        f"failed with exit code 3|the kernel killed 1 of its processes for memory: its cgroup has {SMALL_MIB}.0 MiB",
        lambda: job(f"{GROWS} & wait $! || exit 3", SMALL),
    ),
    "no python": (
        Reason.ENVIRONMENT_INVALID,
        "the image local/nopython:1: its Python can't start|python3: not found",
        lambda: job("true", "local/nopython:1"),
    ),
    "no library": (
        Reason.ENVIRONMENT_INVALID,
        "the image local/nolibrary:1: its Python can't start|No module named 'json'",
        lambda: job("true", "local/nolibrary:1"),
    ),
    "no bash": (
        Reason.ENVIRONMENT_INVALID,
        "the image local/nobash:1: it has no bash",
        lambda: job("true", "local/nobash:1"),
    ),
    "no image": (
        Reason.ENVIRONMENT_INVALID,
        "the image local/nosuch:1: no node has it or can pull it|local/nosuch:1",
        lambda: job("true", "local/nosuch:1"),
    ),
    "untrusted": (
        Reason.ENVIRONMENT_INVALID,
        "the image foreign/python:1: nothing was mounted|docker.trusted.registries",
        lambda: job("true", "foreign/python:1"),
    ),
    "mount": (
        Reason.ENVIRONMENT_INVALID,
        "a folder can't be mounted|docker.allowed.ro-mounts|/etc/hostname",
        lambda: job("true", input="file:///etc/hostname"),
    ),
}


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
if os.environ["YTF_ROUND"] == "1":
    sys.exit(3)
(output / os.environ["TASK_INDEX"]).write_text(os.environ["DTF_DOCKER_IMAGE"])
"""


@pytest.fixture(scope="module")
def reports(hadoop, launcher, tmp_path_factory):
    """Return the reports of all jobs."""
    folder, engine = tmp_path_factory.mktemp("files"), hadoop.settings.engine
    (folder / "checks.py").write_text(CHECKS)
    (folder / "extra.txt").write_text("extra")
    (folder / "inner.txt").write_text("inner")
    with tarfile.open(folder / "pack.tgz", "w:gz") as archive:
        archive.add(folder / "inner.txt", "inner.txt")
    (engine.input / "data").write_text("data")
    all_of_it = job(
        "python3 checks.py",
        cluster_requirement="worker:2",
        script=str(folder / "checks.py"),
        file=[str(folder / "extra.txt")],
        archive=[f"pack={folder}/pack.tgz"],
        input=f"file://{engine.input}",
        output=str(engine.output),
        restart="cluster",
        max_restarts=1,
    )
    jobs = {name: make() for name, (_, _, make) in ROWS.items()} | {"all": all_of_it}
    with ThreadPoolExecutor(3) as pool:
        ended = pool.map(lambda one: launcher.wait(launcher.submit(one), timeout=200 * PATIENCE), jobs.values())
        return dict(zip(jobs, ended, strict=True))


def test_two_workers_have_files_folders_and_a_restart(hadoop, reports):
    report = reports["all"]
    assert report.reason is Reason.SUCCEEDED and len(report.rounds) == 2, report
    output = hadoop.settings.engine.output
    assert [(output / index).read_text() for index in "01"] == ["local/python:1"] * 2


@pytest.mark.parametrize("name", ROWS)
def test_a_fault_in_docker_ends_with_its_reason(reports, name):
    reason, words, _ = ROWS[name]
    report = reports[name]
    assert (report.reason, [word for word in words.split("|") if word not in report.message]) == (reason, []), report
