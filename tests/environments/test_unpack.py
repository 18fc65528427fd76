"""Archives of somebody else: nothing is written outside the folder, by any door that unpacks."""

import contextlib
import gzip
import io
import os
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.programs import SUBMIT, YTF, run
from support.strategies import examples
from tf_yarn_ops.cli.client import LocalTask
from tf_yarn_ops.environments import unpack
from tf_yarn_ops.environments.check import PEEK, check_archive
from tf_yarn_ops.environments.unpack import unpack_archive
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.hadoop.cluster import local
from tf_yarn_ops.job.request import build_job

FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
LETTERS = "abcdefghijklmnopq"
#: Members as type, name, and content or target; what is written where a "{outside}" names a folder beside the archive's.
HOSTILE: dict[str, tuple[list, str]] = {
    "parent": ([(FILE, "../escaped", b"x")], "leads out of"),
    "parent inside": ([(FILE, "a/../../escaped", b"x")], "leads out of"),
    "absolute": ([(FILE, "{outside}/escaped", b"x")], "leads out of"),
    "through a link": ([(LINK, "d", "{outside}"), (FILE, "d/escaped", b"x")], "lies behind the link 'd'"),
    "through a relative link": ([(LINK, "d", ".."), (FILE, "./d/escaped", b"x")], "lies behind the link 'd'"),
    "through two links": ([(LINK, "a", "."), (LINK, "a/b", ".."), (FILE, "a/b/escaped", b"x")], "behind the link 'a'"),
    "back through a link": ([(LINK, "d", "{outside}/in"), (FILE, "d/../escaped", b"x")], "leads out of"),
    "into a link": ([(LINK, "f", "{outside}/escaped"), (FILE, "f", b"x")], "lies behind the link 'f'"),
    "folder over a link": ([(LINK, "d", "{outside}"), (FOLDER, "d", b"")], "lies behind the link 'd'"),
    "hard link to outside": ([(HARD, "h", "{outside}/secret"), (FILE, "h", b"x")], "is a hard link to"),
    "hard link to a parent": ([(HARD, "h", "../outside/secret"), (FILE, "h", b"x")], "is a hard link to"),
    "hard link to a link": ([(LINK, "s", "{outside}/secret"), (HARD, "h", "s"), (FILE, "h", b"x")], "is a hard link"),
    "hard link through a link": (
        [(FILE, "f", b""), (LINK, "s", "{outside}/in"), (HARD, "h", "s/../f")], "is a hard link to",
    ),
    "path that is too long to resolve": (
        [member for n in range(17) for member in (
            (FOLDER, "/".join([*LETTERS[:n], "d" * 240]), b""), (LINK, "/".join(LETTERS[:n + 1]), "d" * 240),
        )], "lies behind the link 'a'",
    ),
    "character device": ([(tarfile.CHRTYPE, "zero", b"")], "neither a file, a folder nor a link"),
    "block device": ([(tarfile.BLKTYPE, "disk", b"")], "neither a file, a folder nor a link"),
    "deep path": ([(FILE, "a/" * 300 + "b", b"")], "more than 255 folders deep"),
    "long path": ([(FILE, "a" * 5000, b"")], "longer than 4096 characters"),
    "long target": ([(LINK, "a", "a/" * 20_000)], "longer than 4096 characters"),
    "FIFO": ([(tarfile.FIFOTYPE, "pipe", b"")], "neither a file, a folder nor a link"),
}  # fmt: skip
PYTHON = [(FILE, "bin/python", b"#!/bin/sh\ntouch {outside}/ran\n"), (FILE, "lib/python3.11/os.py", b"")]


@pytest.fixture
def outside(tmp_path):
    """Return a folder beside the archive's own, with a file that nothing may change."""
    (tmp_path / "outside/in").mkdir(parents=True)
    (tmp_path / "outside/secret").write_text("untouched")
    yield tmp_path / "outside"
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["in", "secret"]
    assert (tmp_path / "outside/secret").read_text() == "untouched"
    assert not list(tmp_path.rglob("escaped"))


def write_tar(path, members, outside="", **attributes):
    def filled(text):
        data = text if isinstance(text, bytes) else text.encode()
        data = data.replace(b"{outside}", os.fsencode(outside))
        return data if isinstance(text, bytes) else data.decode()

    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for kind, name, content in members:
            member = tarfile.TarInfo(filled(name))
            member.type, member.mode = kind, 0o755
            for attribute, value in attributes.items():
                setattr(member, attribute, value)
            data = filled(content) if kind == FILE else b""
            member.size, member.linkname = len(data), filled(content) if kind in (LINK, HARD) else ""
            tar.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_member_is_refused_and_nothing_is_written_outside(kind, tmp_path, outside):
    members, message = HOSTILE[kind]
    archive = write_tar(tmp_path / "x.tar.gz", members, outside)
    with pytest.raises(SpecInvalid) as raised:
        unpack_archive(archive, tmp_path / "folder")
    assert message in str(raised.value) and str(raised.value).startswith("x.tar.gz: ")
    assert not any(stat.S_ISFIFO(path.lstat().st_mode) for path in (tmp_path / "folder").rglob("*"))
    checked = check_archive(write_tar(tmp_path / "env.tar.gz", [*PYTHON, *members], outside))
    assert message in str(checked.faults[0])


@pytest.mark.slow
@pytest.mark.parametrize("door", ["--local", "--client"])
@pytest.mark.parametrize("kind", ["through a link", "absolute", "hard link to outside"])
def test_job_with_a_hostile_archive_is_refused(door, kind, tmp_path, outside, monkeypatch):
    archive = write_tar(tmp_path / "x.tar.gz", HOSTILE[kind][0], outside)
    if door == "--client":
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        task = LocalTask(
            build_job({"cluster_requirement": "worker:1", "task_command": "true", "archive": [f"data={archive}"]})
        )
        with pytest.raises(SpecInvalid, match=r"x\.tar\.gz: "):
            task.prepare(local(tmp_path / "jobs"))
        task.close()
        return
    words = ("--local", "-r", "worker:1", "--archive", f"data={archive}", "true")
    done = run(SUBMIT, *words, env={"XDG_STATE_HOME": str(tmp_path)})
    assert done.returncode == 2 and "x.tar.gz: " in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["../escaped", "a/../../escaped", "/escaped", "a/" * 3000 + "escaped"])
def test_hostile_zip_is_refused(name, tmp_path, outside):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(SpecInvalid, match=r"leads out of the archive's folder|more than 255 folders deep"):
        unpack_archive(tmp_path / "x.zip", tmp_path / "folder")


def test_unpacked_files_are_ours_without_special_rights(tmp_path):
    members = [
        (FOLDER, "bin", b""), (FILE, "bin/python3.11", b"x"), (LINK, "bin/python", "python3.11"),
        (HARD, "bin/python3", "bin/python3.11"), (LINK, "lib64", "/usr/lib64"), (FILE, "./late", b"y"),
    ]  # fmt: skip
    archive = write_tar(tmp_path / "x.tar.gz", members, mode=0o7777, uid=12345, gid=12345, uname="nobody")
    unpack_archive(archive, tmp_path / "folder")
    python = tmp_path / "folder/bin/python"
    assert python.read_text() == "x" and python.resolve().samefile(tmp_path / "folder/bin/python3")
    assert os.readlink(tmp_path / "folder/lib64") == "/usr/lib64"
    for path in (tmp_path / "folder").rglob("*"):
        assert path.is_symlink() or (path.lstat().st_mode & 0o7777, path.lstat().st_uid) == (0o755, os.geteuid())


def test_number_and_size_of_members_are_limited(tmp_path, monkeypatch):
    archive = write_tar(tmp_path / "x.tar.gz", [(FILE, f"f{n}", b"x" * 1000) for n in range(10)])
    monkeypatch.setattr(unpack, "_MOST_MEMBERS", 9)
    with pytest.raises(SpecInvalid, match=r"x\.tar\.gz: has more than 9 members"):
        unpack_archive(archive, tmp_path / "many")
    monkeypatch.setattr(unpack, "_MOST_BYTES", 3000)
    with pytest.raises(SpecInvalid, match="unpacks to more than 0 MiB"):
        unpack_archive(archive, tmp_path / "large")
    assert len(list((tmp_path / "large").iterdir())) == 3


def test_name_of_a_gigabyte_is_not_read_into_memory(tmp_path):
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(head.tobuf(tarfile.GNU_FORMAT)))
    with pytest.raises(SpecInvalid, match="can't be unpacked: a name has more than 1048576 bytes"):
        unpack_archive(tmp_path / "x.tar.gz", tmp_path / "folder")


def sparse_tar(headers=None, blocks=b"zz\n" + bytes(509)):
    """Return a tar with a sparse file, of the old format with an endless map or of one in extended headers."""
    member = tarfile.TarInfo("x")
    if headers is None:
        member.type = tarfile.GNUTYPE_SPARSE
        head = bytearray(member.tobuf(tarfile.GNU_FORMAT))
        head[482], head[148:156] = 1, b" " * 8
        head[148:156] = b"%06o\0 " % sum(head)
        return bytes(head) + (b"00000000001\0" * 42 + b"\1" + bytes(7)) * 100
    member.size, member.pax_headers = len(blocks), headers
    return member.tobuf(tarfile.PAX_FORMAT) + blocks


SPARSE = [None, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, {"GNU.sparse.map": "a,b"}, {"GNU.sparse.size": "q"}]


@pytest.mark.parametrize("headers", SPARSE)
def test_sparse_file_is_a_fault_before_its_map_is_read(headers, tmp_path):
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(gzip.compress(sparse_tar(headers), 1))
    with pytest.raises(SpecInvalid, match="it has a sparse file"):
        unpack_archive(archive, tmp_path / "folder")
    (fault,) = check_archive(archive).faults
    assert "it has a sparse file" in str(fault)


@examples(150)
@given(st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=12)), min_size=1, max_size=4), st.booleans())
def test_mutated_archive_is_unpacked_or_a_fault(tmp_path, changes, zipped):
    archive = tmp_path / ("m.zip" if zipped else "m.tar.gz")
    if zipped:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_LZMA) as made:
            made.writestr("a/b", "hello" * 100)
        content = bytearray(archive.read_bytes())
    else:
        content = bytearray(gzip.decompress(write_tar(archive, [*PYTHON, (LINK, "d" * 150, "x")]).read_bytes()))
    for at, new in changes:
        content[at % len(content) : at % len(content) + len(new)] = new
    archive.write_bytes(content if zipped else gzip.compress(content, 1))
    check_archive(archive, limit=PEEK)
    with contextlib.suppress(SpecInvalid), tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        unpack_archive(archive, Path(folder))


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
@pytest.mark.parametrize("content", [b"", b"nothing", gzip.compress(os.urandom(5000))[:-900], b"PK\x03\x04"])
def test_damaged_archive_is_a_fault(suffix, content, tmp_path):
    (tmp_path / f"x.{suffix}").write_bytes(content)
    with pytest.raises(SpecInvalid, match=rf"x\.{suffix}: can't be unpacked"):
        unpack_archive(tmp_path / f"x.{suffix}", tmp_path / "folder")


def test_check_runs_nothing_of_the_archive(tmp_path, outside):
    archive = write_tar(tmp_path / "env.tar.gz", PYTHON, outside)

    done = run(YTF, "env", "check", str(archive))
    assert done.returncode == 0 and f"ytf doctor --submit --environment {archive}" in done.stderr
    assert not (outside / "ran").exists()
