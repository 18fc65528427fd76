"""``./dev`` on a machine whose Java does not fit: it names the cause, and changes nothing of the machine."""

import os
import subprocess

import pytest

from support.machines import write_java, write_script
from support.programs import ROOT
from tf_yarn_ops.minicluster.java import find_java


def write_jdk(folder, version):
    """Write a ``java`` that answers ``-version`` as real ones do, too."""
    write_java(folder, version)
    with (folder / "bin/java").open("a") as script:
        script.write(f"echo 'openjdk version \"{version}\"' >&2\n")


@pytest.fixture
def machine(tmp_path):
    """Return a function that runs the function ensure_java as root of a machine, whose apt-get notes its words."""
    for name in ("apt-get", "mvn"):
        write_script(tmp_path / "bin" / name, f'echo "$@" >> {tmp_path}/{name}.calls\n')
    write_script(tmp_path / "bin" / "id", "echo 0\n")
    write_jdk(tmp_path / "system", "1.8.0_392")

    def ensure_java(**environ):
        script = f"cd {tmp_path}; sed '/^command=/,$d; /^cd /d' {ROOT}/dev > functions; . ./functions; find_java_home() {{ :; }}; ensure_java"
        return subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, timeout=60,
            env={"PATH": f"{tmp_path}/bin:{tmp_path}/system/bin:{os.environ['PATH']}", **environ},
        )  # fmt: skip

    return ensure_java


@pytest.mark.parametrize("version", ["1.8.0_392", "26"])
def test_java_home_that_does_not_fit_is_named_and_nothing_is_installed(machine, tmp_path, version):
    write_jdk(tmp_path / "other", version)
    done = machine(JAVA_HOME=str(tmp_path / "other"))
    assert done.returncode == 2
    assert f"JAVA_HOME={tmp_path}/other has Java '" in done.stderr and "unset JAVA_HOME" in done.stderr
    assert not (tmp_path / "apt-get.calls").exists()


@pytest.mark.parametrize("version", ["11.0.2", "25.0.1"])
def test_java_that_hadoop_runs_on_is_used(machine, tmp_path, version):
    write_jdk(tmp_path / "other", version)
    assert machine(JAVA_HOME=str(tmp_path / "other")).returncode == 0
    assert find_java({"JAVA_HOME": f"{tmp_path}/other", "PATH": "/bin"}).version == int(version.split(".")[0])
    assert not (tmp_path / "apt-get.calls").exists()


def test_installation_never_upgrades_what_is_there(machine, tmp_path):
    assert machine().returncode == 2, "the default java is still 8"
    calls = (tmp_path / "apt-get.calls").read_text().splitlines()
    assert [call for call in calls if " install " in f" {call} "] and all(
        "--no-upgrade" in call for call in calls if " install " in f" {call} "
    )
