"""``./dev``: Python's packages by their hashes; a Java that does not fit is named, and the machine stays as it is."""

import os
import re
import subprocess
import zipfile
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

from support.machines import write_java, write_script
from support.programs import ROOT
from tf_yarn_ops.environments.pack import find_uv
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
    assert find_java({"JAVA_HOME": f"{tmp_path}/other", "PATH": "/bin"}) == tmp_path / "other"
    assert not (tmp_path / "apt-get.calls").exists()


@pytest.mark.slow
def test_installation_never_upgrades_what_is_there(machine, tmp_path):
    assert machine().returncode == 2, "the default java is still 8"
    calls = (tmp_path / "apt-get.calls").read_text().splitlines()
    assert [call for call in calls if " install " in f" {call} "] and all(
        "--no-upgrade" in call for call in calls if " install " in f" {call} "
    )


PINS = [ROOT / "constraints.txt", ROOT / "constraints-demo.txt", *ROOT.glob("tests/support/framework_pins/*.txt")]


@pytest.mark.parametrize("pins", PINS, ids=lambda path: path.stem)
def test_every_pin_has_a_hash_and_no_list_names_a_server(pins):
    text = re.sub(r"^#.*\n", "", pins.read_text(), flags=re.M).replace("\\\n", "")
    rows = text.splitlines()
    wrong = [
        row for row in rows if not re.fullmatch(r"[\w.-]+==\S+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", row)
    ]
    assert rows and not wrong
    assert "://" not in pins.read_text()


def test_every_declared_dependency_is_pinned():
    extras = re.search(r"^EXTRAS=\((.+)\)$", (ROOT / "dev").read_text(), re.M)[1].split()
    pinned = set(re.findall(r"^([\w.-]+)==", PINS[0].read_text(), re.M))
    needed = [Requirement(row) for row in requires("tf-yarn-ops")]
    names = {
        re.sub("[-_.]+", "-", need.name).lower()
        for need in needed
        if any(need.marker is None or need.marker.evaluate({"extra": extra}) for extra in extras)
    }
    assert names > {"skein", "apache-airflow", "mypy"} and names <= pinned


@pytest.mark.slow
def test_package_with_another_hash_is_not_installed(tmp_path):
    with zipfile.ZipFile(tmp_path / "small-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small.py", "")
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1\n")
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("small-1.dist-info/RECORD", "small.py,,\n")
    (tmp_path / "wrong.txt").write_text(f"small==1 --hash=sha256:{'0' * 64}\n")
    script = f"""
        cd {tmp_path}; sed '/^command=/,$d; /^cd /d' {ROOT}/dev > functions; . ./functions
        make_venv "$(find_python)"; PINS=wrong.txt
        install_packages || die "the installation failed; the lines above say why"
    """
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PATH": f"{os.path.dirname(find_uv())}:{os.environ['PATH']}", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(tmp_path), "PIP_NO_INDEX": "1",
             "PIP_FIND_LINKS": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Hash mismatch for `small==1`" in done.stderr, "uv"
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr, "pip"
    assert not [*tmp_path.glob(".venv/lib/*/site-packages/small*")]
