"""Jobs in Docker containers on a real engine, by a NodeManager with DockerLinuxContainerRuntime."""

import contextlib

import pytest

from support.hadoop import HadoopCluster
from support.hadoop.docker import SMALL, SMALL_MIB, USER
from support.waiting import until
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.request import build_job
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    """Return a cluster whose NodeManager runs containers in an engine of its own."""
    with HadoopCluster(tmp_path_factory.mktemp("docker"), docker=True) as cluster:
        yield cluster


@pytest.fixture
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
    until((output / "runs").exists, 120)
    launcher.kill(application, "a test")
    assert launcher.wait(application, timeout=120).reason is Reason.KILLED
    until(lambda: not engine.run("ps", "--quiet"), 60, what="the end of all containers")
    assert (output / "saved").exists(), "the program got SIGTERM before SIGKILL"


GROWS = "python3 -c 'b = bytearray(300 << 20)'"


@pytest.mark.parametrize(
    "command, how",
    [
        (GROWS, "was ended by signal 9"),
        (f"{GROWS} & wait $! || exit 3", "failed with exit code 3"),
    ],
)
def test_a_kill_by_the_kernel_for_memory_is_out_of_memory(launcher, command, how):
    application = launcher.submit(job(command, SMALL))
    report = launcher.wait(application, timeout=120)
    assert report.reason is Reason.OUT_OF_MEMORY and how in report.message
    assert f"the kernel killed 1 of its processes for memory: its cgroup has {SMALL_MIB}.0 MiB" in report.message
