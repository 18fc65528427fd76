"""``./dev demo``, as a new user runs it: a fresh Hadoop, a real training, the report, and nothing left."""

import os
import re
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from support.cluster_jobs import job
from support.javas import java_home
from support.two_nodes import launcher_on
from support.waiting import until
from tf_yarn_ops.minicluster import MiniCluster, daemons
from tf_yarn_ops.runtime.common.reasons import Reason

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]
DEMO = [sys.executable, str(ROOT / "examples" / "demo.py")]


@pytest.fixture
def folder(tmp_path):
    """The demo's folder, in which nothing is left running."""
    yield tmp_path / "demo"
    MiniCluster(tmp_path / "demo" / "hadoop").down()


def left_of(folder):
    """Return the command lines of all processes that were started below the folder, or for it."""
    left = []
    for entry in Path("/proc").iterdir():
        try:
            texts = [(entry / name).read_bytes() for name in ("cmdline", "environ")] if entry.name.isdigit() else []
        except OSError:
            continue
        if any(str(folder).encode() in text for text in texts):
            left.append(texts[0].replace(b"\0", b" ").decode(errors="replace"))
    return left


@pytest.mark.timeout(600)
def test_the_demo_trains_prints_its_report_and_its_cluster_works(folder):
    """On Java 21, where a job that fails is seen too: `tests/minicluster/test_hadoop.py` has 11."""
    environ = {**os.environ, "USER": "somebody", "LOGNAME": "somebody"}  # as under `su`: they do not count
    java = java_home(21)
    ran = subprocess.run(
        [*DEMO, "--keep", "--dir", folder],
        capture_output=True,
        text=True,
        timeout=560,
        cwd=folder.parent,
        env={**environ, "JAVA_HOME": str(java)},
    )
    assert ran.returncode == 0, ran.stderr
    assert "/user/somebody/" not in ran.stderr
    for task in ("chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0"):
        assert re.search(rf"^  {task} +(succeeded +exit 0|stopped) .* \|.*=.*\|$", ran.stderr, re.M), ran.stderr
    assert float(re.search(r"^test accuracy +([\d.]+)$", ran.stderr, re.M)[1]) >= 0.95
    assert re.search(r"^  metrics .*\bsteps 600, resumed_from_step 0\b", ran.stderr, re.M), ran.stderr
    model = Path(re.search(r"^model +(.+)$", ran.stderr, re.M)[1])
    assert (folder.parent / model / "saved_model.pb").is_file()

    cluster = MiniCluster.attach(folder / "hadoop")
    assert cluster.status().ready and f"the cluster is still up: {cluster.resourcemanager_url}/cluster" in ran.stderr
    with launcher_on(cluster) as launcher:
        failed = launcher.wait(launcher.submit(job(f"test $JAVA_HOME = {java} && exit 3")), timeout=180)
    assert (failed.reason, failed.tasks[0].exit_code) == (Reason.TASK_FAILED, 3)
    use, end = (re.search(rf"^{word} it: +(.+)$", ran.stderr, re.M)[1] for word in ("use", "end"))
    listed = subprocess.run(
        ["bash", "-c", f"{use} && yarn node -list"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder.parent,
        check=True,
        env={**os.environ, "PATH": os.defpath},
    )
    assert "Total Nodes:1" in listed.stdout
    subprocess.run(["bash", "-c", end], capture_output=True, timeout=60, cwd=folder.parent, check=True)
    assert daemons.find_all(folder / "hadoop") == () and left_of(folder) == []


def test_sigterm_ends_the_demo_while_it_installs_packages(folder, tmp_path):
    """The machine has no Maven, and the package manager takes its time."""
    (tmp_path / "bin").mkdir()
    installing = tmp_path / "installing"
    programs = {"apt-get": f"echo $$ > {installing}; exec tail -f /dev/null", "id": "echo 0"}
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    for program in chain.from_iterable(Path(part).glob("*") for part in os.environ["PATH"].split(os.pathsep)):
        if program.name != "mvn" and not (tmp_path / "bin" / program.name).exists():
            (tmp_path / "bin" / program.name).symlink_to(program)
    demo = subprocess.Popen(
        [ROOT / "dev", "demo", "--dir", folder],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder.parent,
        env={**os.environ, "PATH": str(tmp_path / "bin")},
    )
    process = until(lambda: installing.exists() and installing.read_text().strip(), 60, what="the package manager")
    demo.send_signal(signal.SIGTERM)
    said = demo.communicate(timeout=60)[1]
    assert demo.returncode == 128 + signal.SIGTERM, said
    assert "missing: Maven (fetches Hadoop's jars); installing maven by apt-get, as root" in said
    until(lambda: not Path("/proc", process).exists(), 60, what="the end of the package manager")
    assert left_of(folder) == []


@pytest.mark.parametrize("moment", ["formatting HDFS", "starting ResourceManager", "== the training"])
def test_sigterm_ends_the_demo_at_every_moment(folder, moment):
    """As below ``nohup``, in a script: SIGINT is ignored."""
    demo = subprocess.Popen(
        [ROOT / "dev", "demo", "--dir", folder],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder.parent,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    said = ""
    while moment not in said:
        line = demo.stderr.readline()
        assert line, said
        said += line
    demo.send_signal(signal.SIGTERM)
    said += demo.communicate(timeout=90)[1]
    assert demo.returncode == 128 + signal.SIGTERM and "nothing is left running" in said, said
    assert left_of(folder) == []
