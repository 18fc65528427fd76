"""A folder as an archive."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from tf_yarn_ops.errors import ClusterUnreachable, SpecInvalid
from tf_yarn_ops.staging import archive as folder


def folder_with_everything(at):
    at.mkdir()
    (at / "b.txt").write_text("b")
    (at / "bin").mkdir()
    (at / "bin" / "tool").write_text("#!/bin/sh\n")
    (at / "bin" / "tool").chmod(0o755)
    (at / "link").symlink_to("bin/tool")
    os.link(at / "b.txt", at / "hard.txt")
    os.mkfifo(at / "pipe")
    return at


def packed(path):
    target = path.with_suffix(".tar.gz")
    folder.pack(path, target)
    return target.read_bytes()


def test_a_folder_is_packed_the_same_every_time(tmp_path):
    first = packed(folder_with_everything(tmp_path / "one"))
    other = folder_with_everything(tmp_path / "two")
    os.utime(other / "b.txt", (1, 1))
    assert packed(other) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        assert archive.getnames() == ["b.txt", "bin", "bin/tool", "hard.txt", "link"]
        assert archive.getmember("bin/tool").mode & 0o111
        assert archive.getmember("link").linkname == "bin/tool"
        assert archive.extractfile("hard.txt").read() == b"b"


def test_a_folder_whose_files_can_not_be_read_is_a_fault_of_the_request(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "rglob", lambda path, pattern: [path / "gone"])
    with pytest.raises(SpecInvalid, match=r"can't be packed: .* No such file"):
        folder.pack(tmp_path, tmp_path / "target")


@pytest.mark.parametrize("size", [1, 1 << 20], ids=["small", "large"])
def test_full_disk_is_not_a_fault_of_the_request(tmp_path, size):
    """A small one is written when the file is closed, no earlier."""
    (tmp_path / "file").write_bytes(os.urandom(size))
    with pytest.raises(ClusterUnreachable, match=r"can't be packed on this machine: .* No space left") as raised:
        folder.pack(tmp_path, Path("/dev/full"))
    assert raised.value.reason.retryable
