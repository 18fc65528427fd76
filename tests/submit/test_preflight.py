"""Local files are checked before a submission."""

import os
from pathlib import Path

import pytest

from support.place import job, read_proto
from tf_yarn_ops.errors import (
    SpecInvalid,
)


def test_all_missing_files_are_named_before_anything_is_asked(place, tmp_path):
    launcher = place.launcher()
    asked = len(place.yarn.requests)
    spec = job(files={"a": str(tmp_path / "a.csv")}, archives={"b": str(tmp_path / "b.zip")}, script="/none/train.py")
    with pytest.raises(SpecInvalid) as raised:
        launcher.submit(spec)
    assert len(raised.value.faults) == 3
    assert [fault.path for fault in raised.value.faults] == ["files.a", "archives.b", "script"]
    assert f"files.a: there is no {tmp_path}/a.csv on this machine" in str(raised.value)
    assert len(place.yarn.requests) == asked


def test_a_name_that_no_file_can_have_is_a_missing_file(place):
    with pytest.raises(SpecInvalid, match=r"script: there is no x+ on this machine"):
        place.launcher().submit(job(script="x" * 300))


def test_path_that_is_neither_file_nor_folder_is_a_fault(place, tmp_path):
    """A pipe, as `--file conf=<(make)` gives, can be read once, and a job's files are read twice."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecInvalid, match=r"files\.a: .*/pipe is neither a file nor a folder"):
        place.launcher().submit(job(files={"a": str(tmp_path / "pipe")}))


def test_the_launcher_reads_a_relative_script_from_the_working_directory(place, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print(1)")
    monkeypatch.chdir(tmp_path)
    place.launcher().submit(job(script="train.py"))
    file = read_proto(place).services["worker"].files["train.py"]
    assert Path(file.source.file).name == "train.py"
