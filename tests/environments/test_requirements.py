"""``requirements://``: built once by real tools, shared by processes that come at the same time, opt-in."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.packages import make_wheel, offline
from support.programs import SUBMIT
from tf_yarn_ops.environments import requirements
from tf_yarn_ops.environments.requirements import with_built_environment
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.spec import JobSpec

TRAIN = "python -c 'import shapes, sys; print(shapes.ROUND, sys.prefix)'"


def asking(file):
    return JobSpec(tasks={"worker": 1}, command="true", environment=f"requirements://{file}")


@pytest.fixture
def environ(tmp_path):
    make_wheel(tmp_path / "wheels", "shapes", {"shapes/__init__.py": "ROUND = True"})
    return {**offline(tmp_path / "wheels", tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.mark.matrix
def test_two_jobs_at_once_build_their_environment_once(environ, caplog, tmp_path):
    (tmp_path / "requirements.txt").write_text("shapes\n")
    words = [*SUBMIT, "--local", "-r", "worker:1", "--environment", "requirements://requirements.txt", TRAIN]
    jobs = [
        subprocess.Popen(words, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    texts = [job.communicate(timeout=280)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], texts
    assert "".join(texts).count("building the environment of ") == 1
    assert all("True " in text for text in texts)
    (archive,) = (tmp_path / "home" / ".cache" / "tf_yarn_ops" / "environments").glob("*/environment.tar.gz")
    os.utime(archive, (0, 0))
    caplog.set_level("INFO")
    again = with_built_environment(asking(tmp_path / "requirements.txt"), str(archive.parents[1]))
    assert again.environment.location == str(archive) and "building" not in caplog.text
    assert archive.stat().st_mtime > time.time() - 600, "a used environment counts as unused"


@pytest.fixture
def built(monkeypatch):
    """Return the list of files of which environments are built; the tools themselves are left out."""
    files = []

    def pack(source, target, packing):
        target.parent.mkdir(parents=True)
        target.write_bytes(b"")
        files.append(source)

    monkeypatch.setattr(requirements, "pack_environment", pack)
    return files


def test_environment_is_built_again_when_a_named_file_changes(built, tmp_path):
    (tmp_path / "requirements.txt").write_text("six\n-r more.txt\n")
    more, cache = tmp_path / "more.txt", str(tmp_path / "cache")
    more.write_text("numpy==1\n")
    first = with_built_environment(asking(tmp_path / "requirements.txt"), cache)
    assert with_built_environment(asking(tmp_path / "requirements.txt"), cache) == first
    more.write_text("numpy==2\n")
    second = with_built_environment(asking(tmp_path / "requirements.txt"), cache)
    assert second.environment != first.environment and len(built) == 2
    assert first.environment.scheme == "archive" and first.environment.location.startswith(cache)


def test_unused_environments_are_deleted_when_another_is_built(built, tmp_path):
    file, cache = tmp_path / "requirements.txt", str(tmp_path / "cache")
    file.write_text("six\n")
    old = Path(with_built_environment(asking(file), cache).environment.location)
    os.utime(old, (0, time.time() - 31 * 86400))
    file.write_text("numpy\n")
    new = Path(with_built_environment(asking(file), cache).environment.location)
    assert new.exists() and not old.parent.exists()


@pytest.mark.parametrize("text", ["-e .", "--editable=../lib", "./wheel.whl", "/opt/lib", "file:///opt/lib"])
def test_package_of_this_machine_is_refused(built, tmp_path, text):
    (tmp_path / "requirements.txt").write_text(f"six\n{text}\n")
    with pytest.raises(SpecInvalid, match=r"^environment: '.+' names a folder of this machine"):
        with_built_environment(asking(tmp_path / "requirements.txt"), str(tmp_path))
    assert built == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9\n", "can't be read: byte "),
        (b"-r a\0b\n", "can't be read: embedded null byte"),
        (b"-r .\n", "can't be read: "),
        (b"-r requirements.txt\n", "is named by more than 20 files, each by the next"),
        (b"-c none.txt\n", "there is no "),
    ],
)
def test_file_that_is_no_list_of_packages_is_a_fault(built, tmp_path, content, message):
    (tmp_path / "requirements.txt").write_bytes(content)
    with pytest.raises(SpecInvalid, match=f"^environment: .*{message}"):
        with_built_environment(asking(tmp_path / "requirements.txt"), str(tmp_path))
    assert built == []


def test_cache_that_everybody_may_write_is_refused(built, tmp_path):
    (tmp_path / "requirements.txt").write_text("six\n")
    tmp_path.chmod(0o777)
    with pytest.raises(SpecInvalid, match=r"everybody may write to .*; close it: chmod o-w"):
        with_built_environment(asking(tmp_path / "requirements.txt"), str(tmp_path))


def test_missing_file_is_reported_before_anything_is_asked(tmp_path):
    ran = subprocess.run(
        [*SUBMIT, "-r", "worker:1", "--environment", "requirements://none.txt", "true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 2 and "environment: there is no none.txt on this machine" in ran.stderr


def test_wait_for_another_builder_ends_when_the_job_is_cancelled(built, tmp_path):
    (tmp_path / "requirements.txt").write_text("six\n")
    spec, cache = asking(tmp_path / "requirements.txt"), tmp_path / "cache"
    archive = Path(with_built_environment(spec, str(cache)).environment.location)
    lock = archive.parent.with_suffix(".lock")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); "
            "print('held', flush=True); sys.stdin.read()",
            lock,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"

    def cancelled():
        raise InterruptedError

    try:
        with pytest.raises(InterruptedError):
            with_built_environment(spec, str(cache), cancelled)
    finally:
        holder.communicate(timeout=60)
