"""Environments are packed by the real tools, unpacked elsewhere, and run there."""

import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from support.packages import make_project, make_wheel, offline
from support.programs import YTF
from support.pythons import find_python
from tf_yarn_ops.environments.check import check_archive

pytestmark = pytest.mark.slow

OTHER = next(machine for machine in ("aarch64", "x86_64") if machine != platform.machine())
RELEASE = "{}.{}".format(*sys.version_info)
SHORT = RELEASE.replace(".", "")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Return a folder with the wheel shapes, and the wheel nativ for the other processor only."""
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "shapes", {"shapes/__init__.py": "ROUND = True", "shapes/tests/round.py": ""})
    make_wheel(folder, "nativ", {"nativ.py": ""}, f"cp{SHORT}-cp{SHORT}-manylinux_2_17_{OTHER}")
    return folder


@pytest.fixture
def environ(wheels, tmp_path):
    return offline(wheels, tmp_path / "home")


@pytest.fixture
def ytf(environ, tmp_path):
    """Run ytf in the folder of the test."""
    return lambda *words: run_ytf(environ, tmp_path, *words)


def run_ytf(environ, folder, *words):
    return subprocess.run(
        [*YTF, *map(str, words)], env=environ, cwd=folder, capture_output=True, text=True, timeout=280
    )


@pytest.fixture(scope="module")
def locked(wheels, tmp_path_factory):
    """Pack a project with a lock; return the archive."""
    folder = tmp_path_factory.mktemp("locked")
    environ, project = offline(wheels, folder / "home"), make_project(folder / "project")
    no_lock = run_ytf(environ, folder, "env", "pack", project)
    assert no_lock.returncode == 2 and "has no uv.lock and no pylock.toml; make one: uv lock" in no_lock.stderr
    uv(environ, "lock", "--no-index", "--find-links", wheels, cwd=project)
    packed = run_ytf(environ, folder, "env", "pack", project / "pyproject.toml")
    assert packed.returncode == 0, packed.stderr
    return folder / "environment.tar.gz"


def uv(environ, *words, cwd=None):
    subprocess.run(
        [sys.executable, "-m", "uv", *map(str, words)],
        env=environ,
        cwd=cwd,
        check=True,
        timeout=120,
        capture_output=True,
    )


def unpack(archive, folder):
    """Unpack an archive as YARN does, and return the folder."""
    folder.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True, timeout=60)
    return folder


def shown(folder):
    """Return prefix, module and package that the program of the project digits prints."""
    ran = subprocess.run(
        [folder / "bin" / "show-digits"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_venv_travels_with_its_editable_project(ytf, environ, wheels, tmp_path):
    project = make_project(tmp_path / "project")
    uv(environ, "venv", "--no-project", "--python", sys.executable, tmp_path / "venv")
    uv(environ, "pip", "install", "--python", tmp_path / "venv", "--no-index", "--find-links", wheels, "-e", project)
    packed = ytf("env", "pack", "venv")
    assert packed.returncode == 0 and "warning" not in packed.stderr, packed.stderr
    assert packed.stderr.count(" MiB") == 1, "two sizes or times of one archive"
    shutil.rmtree(tmp_path / "venv")
    shutil.rmtree(project)
    checked = ytf("env", "check", "environment.tar.gz")
    assert checked.returncode == 0 and checked.stdout.startswith("ok "), checked.stdout
    place = unpack(tmp_path / "environment.tar.gz", tmp_path / "place")
    prefix, module, package = shown(place)
    assert (prefix, Path(module).parent, Path(package).parent.name) == (str(place), Path(package).parents[1], "shapes")
    assert module.startswith(str(place))


@pytest.mark.matrix
def test_no_library_of_the_interpreter_is_left_behind(locked, tmp_path):
    place = unpack(locked, tmp_path / "place")
    libraries = subprocess.run(
        ["ldd", place / "bin" / "python", *place.glob("lib/python*/lib-dynload/_ssl*.so")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    paths = [line.split(" => ")[1].split()[0] for line in libraries.splitlines() if " => " in line]
    system = [path for path in paths if not os.path.realpath(path).startswith(str(place))]
    assert all(
        Path(path).name.startswith(("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libutil.")) for path in system
    ), system
    cached = subprocess.run(
        [place / "bin" / "python", "-I", "-c", "import shapes; print(shapes.__cached__)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.strip()
    assert Path(cached).is_file() and cached.startswith(str(place))
    assert [*Path(cached).parents[1].glob("tests/*")] == [Path(cached).parents[1] / "tests" / "round.py"]


@pytest.mark.matrix
def test_interpreter_of_the_distribution_finds_its_packages(ytf, tmp_path):
    """Debian's looks for packages in another folder."""
    (tmp_path / "requirements.txt").write_text("shapes\n")
    python = shutil.which("python3", path="/usr/bin") or find_python("3.10")
    packed = ytf("env", "pack", "requirements.txt", "--python", python, "-o", "of/system.tar.gz")
    assert packed.returncode == 0, packed.stderr
    assert check_archive(tmp_path / "of" / "system.tar.gz").faults == ()
    place = unpack(tmp_path / "of" / "system.tar.gz", tmp_path / "place")
    subprocess.run([place / "bin" / "python", "-I", "-c", "import shapes, ssl"], check=True, timeout=60)


@pytest.mark.matrix
def test_project_with_a_lock_is_packed_as_locked(locked, tmp_path):
    place = unpack(locked, tmp_path / "place")
    assert shown(place)[0] == str(place)


def test_other_platform_is_packed_from_wheels_only(ytf, tmp_path):
    (tmp_path / "requirements.txt").write_text("nativ\n")
    words = (
        "env",
        "pack",
        "requirements.txt",
        "--platform",
        f"linux-{OTHER}",
        "--node_python",
        f"/usr/bin/python{RELEASE}",
    )
    packed = ytf(*words)
    assert packed.returncode == 0, packed.stderr
    there = ytf("env", "check", "environment.tar.gz", "--platform", f"linux-{OTHER}", "--json")
    assert there.returncode == 0
    assert json.loads(there.stdout)["doubts"] == [
        f"bin/python leads to /usr/bin/python{RELEASE}, which every node needs"
    ]
    here = ytf("env", "check", "environment.tar.gz")
    assert here.returncode == 2 and f"nativ was built for cp{SHORT}-cp{SHORT}-manylinux_2_17_{OTHER}" in here.stdout
    native = ytf("env", "pack", "requirements.txt")
    assert (
        native.returncode == 2
        and "nativ" in native.stderr
        and "has no wheels with a matching platform tag" in native.stderr
    )


def test_interpreter_of_another_platform_comes_through_uv(ytf, environ, tmp_path):
    """uv takes it from a mirror, which has this machine's interpreter under the name of the other processor."""
    number, build = {"x86_64": 62, "aarch64": 183}[OTHER], f"cpython-{RELEASE}.99-linux-{OTHER}-gnu"
    program = bytearray(Path(sys.executable).resolve().read_bytes())
    program[18:20] = number.to_bytes(2, "little")
    with tarfile.open(tmp_path / "mirrored.tar.gz", "w:gz", compresslevel=1) as tar:
        for name, content in (
            (f"bin/python{RELEASE}", bytes(program)),
            (f"lib/python{RELEASE}/os.py", b""),
            (
                f"lib/python{RELEASE}/_sysconfigdata__linux_{OTHER}-linux-gnu.py",
                b"# system configuration generated and used by the sysconfig module\nbuild_time_vars = {}\n",
            ),
        ):
            member = tarfile.TarInfo(f"python/{name}")
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    (tmp_path / "downloads.json").write_text(
        json.dumps(
            {
                build: {
                    "name": "cpython",
                    "arch": {"family": OTHER, "variant": None},
                    "os": "linux",
                    "libc": "gnu",
                    "major": 3,
                    "minor": sys.version_info[1],
                    "patch": 99,
                    "prerelease": "",
                    "url": f"file://{tmp_path}/mirrored.tar.gz",
                    "sha256": None,
                    "variant": None,
                    "build": "20260101",
                }
            }
        )
    )
    environ["UV_PYTHON_DOWNLOADS_JSON_URL"] = str(tmp_path / "downloads.json")
    (tmp_path / "requirements.txt").write_text("nativ\nshapes\n")
    packed = ytf("env", "pack", "requirements.txt", "--platform", f"linux-{OTHER}")
    assert packed.returncode == 0, packed.stderr
    report = check_archive(tmp_path / "environment.tar.gz", f"linux-{OTHER}")
    assert (report.faults, report.doubts, report.packages) == ((), (), 2)
    (here,) = check_archive(tmp_path / "environment.tar.gz").faults[:1]
    assert str(here).startswith(f"bin/python is for linux-{OTHER}, and the nodes run linux-")


def test_failure_of_uv_is_shown_in_its_own_words(ytf, tmp_path):
    (tmp_path / "requirements.txt").write_text("shapes\nmissing-package\n")
    packed = ytf("env", "pack", "requirements.txt")
    assert packed.returncode == 2
    assert "uv ended with exit code 1:" in packed.stderr
    assert "missing-package was not found in the provided package locations" in packed.stderr
    assert packed.stderr.endswith("\nCorrect what the message names.\n")
    assert [*tmp_path.glob("*.tar.gz")] == [] and [*tmp_path.glob(".ytf-env*")] == []


@pytest.mark.matrix
def test_folder_of_conda_is_packed_by_conda_pack(ytf, locked, tmp_path):
    """Its layout and records are made by hand: no registry of this project has conda's packages."""
    conda = unpack(locked, tmp_path / "conda")
    (conda / "conda-meta").mkdir()
    (conda / "conda-meta" / "history").write_text("")
    record = {
        "name": "python",
        "version": RELEASE,
        "build": "0",
        "build_number": 0,
        "files": [f"bin/python{RELEASE}"],
        "link": {"source": "", "type": 1},
        "noarch": None,
        "url": "",
        "fn": "",
    }
    (conda / "conda-meta" / f"python-{RELEASE}-0.json").write_text(json.dumps(record))
    script = conda / "bin" / "tool"
    script.write_text(f"#!{conda}/bin/python\nimport shapes; print(shapes.ROUND)\n")
    script.chmod(0o755)
    packed = ytf("env", "pack", "conda", "-o", "of-conda.tar.gz")
    assert packed.returncode == 0, packed.stderr
    shutil.rmtree(conda)
    place = unpack(tmp_path / "of-conda.tar.gz", tmp_path / "place")
    told = subprocess.run(
        [place / "bin" / "tool"], env={"PATH": f"{place}/bin:/usr/bin:/bin"}, capture_output=True, text=True, timeout=60
    )
    assert told.stdout == "True\n", told.stderr
    assert check_archive(tmp_path / "of-conda.tar.gz").faults == ()


def test_unknown_source_is_refused(ytf, tmp_path):
    (tmp_path / "notes.md").write_text("")
    (tmp_path / "requirements.txt").write_text("")
    assert "neither a file of requirements (.txt)" in ytf("env", "pack", "notes.md").stderr
    assert (
        "'bin/python3' is not an absolute path"
        in ytf("env", "pack", "requirements.txt", "--node_python", "bin/python3").stderr
    )
    assert "'linux-z80' is not one of" in ytf("env", "pack", "requirements.txt", "--platform", "linux-z80").stderr
