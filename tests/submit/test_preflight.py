"""Local files are checked before a submission."""

import os
import socket
from pathlib import Path

import pytest

from support.place import job, read_proto
from tf_yarn_ops.errors import ResourcesImpossible, SpecInvalid
from tf_yarn_ops.hadoop.resourcemanager import Allocation
from tf_yarn_ops.job.parts import DockerSettings, Environment
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.submit.preflight import check_maximum, file_faults, find_file_warnings
from tf_yarn_ops.validation import check_faults


def test_all_missing_files_are_named_before_anything_is_asked(place, tmp_path):
    launcher = place.launcher()
    asked = len(place.yarn.requests)
    spec = job(files={"a": str(tmp_path / "a.csv")}, archives={"b": str(tmp_path / "b.zip")}, script="/none/train.py")
    with pytest.raises(SpecInvalid) as raised:
        launcher.submit(spec)
    assert len(raised.value.faults) == 3
    assert [fault.path for fault in raised.value.faults] == ["files.a", "archives.b", "script"]
    assert f"files.a: there is no {tmp_path}/a.csv on this machine ({socket.gethostname()})" in str(raised.value)
    assert len(place.yarn.requests) == asked


def test_missing_relative_file_is_reported_with_machine_and_folder(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecInvalid) as raised:
        place.launcher().submit(job(script="train.py"))
    where = f"{socket.gethostname()}, in {tmp_path}"
    assert str(raised.value) == f"script: there is no train.py on this machine ({where})"


def test_a_path_that_no_file_can_have_is_a_missing_file(place):
    with pytest.raises(SpecInvalid, match=r"script: there is no x+/train.py on this machine"):
        place.launcher().submit(job(script=f"{'x' * 300}/train.py"))


def test_path_that_is_neither_file_nor_folder_is_a_fault(place, tmp_path):
    """A pipe, as `--file conf=<(make)` gives, can be read once, and a job's files are read twice."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecInvalid, match=r"files\.a: .*/pipe is neither a file nor a folder"):
        place.launcher().submit(job(files={"a": str(tmp_path / "pipe")}))


def test_folder_with_the_name_of_an_archive_is_a_fault(tmp_path):
    (tmp_path / "data.tar.gz").mkdir()
    with pytest.raises(SpecInvalid, match=r"archives\.data: .*/data\.tar\.gz is a folder, not an archive"):
        check_faults(file_faults(job(archives={"data": str(tmp_path / "data.tar.gz")})))


@pytest.mark.parametrize("where", ["script", "docker.client_config", "environment"])
def test_folder_in_place_of_a_file_is_a_fault(tmp_path, where):
    folder = str(tmp_path)
    docker, requirements = Environment("docker", "trainer:1"), Environment("requirements", folder)
    values = {
        "script": {"script": folder, "files": {"data": folder}},
        "docker.client_config": {"environment": docker, "docker": DockerSettings(client_config=folder)},
        "environment": {"environment": requirements},
    }[where]
    with pytest.raises(SpecInvalid) as raised:
        check_faults(file_faults(job(**values)))
    assert str(raised.value) == f"{where}: {folder} is a folder, not a file"


def test_file_that_can_not_be_read_is_a_fault(tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read all files
    with pytest.raises(SpecInvalid, match=r"script: .*/train\.py can't be read"):
        check_faults(file_faults(job(script=str(tmp_path / "train.py"))))


def test_maximum_holds_for_the_application_master_too():
    spec = job(am_memory=5000)
    check_maximum(spec, Allocation(5000, 4, 0))
    with pytest.raises(ResourcesImpossible, match="the application master asks for 5000 MiB"):
        check_maximum(spec, Allocation(4999, 4, 0))


def test_the_launcher_reads_a_relative_script_from_the_working_directory(place, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print(1)")
    monkeypatch.chdir(tmp_path)
    place.launcher().submit(job(script="train.py"))
    file = read_proto(place).services["worker"].files["train.py"]
    assert Path(file.source.file).name == "train.py"


FIT = "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()\nm = tf.keras.Sequential()\nm.fit(d)\n"


@pytest.mark.parametrize(
    ("program", "values", "warned"),
    [
        (FIT, {}, True),
        (FIT.replace("MultiWorkerMirrored", "experimental.ParameterServer"), {}, True),
        (FIT, {"env": {"TF_USE_LEGACY_KERAS": "1"}}, False),
        (FIT, {"command": "TF_USE_LEGACY_KERAS=1 python train.py"}, False),
        (FIT, {"tasks": {"worker": TaskSpec(memory=512)}}, False),
        (FIT.replace("m.fit(d)", "step(d)"), {}, False),
        (FIT.replace("MultiWorkerMirrored", "Mirrored"), {}, False),
        (FIT.replace("import tensorflow", "import tf_keras, tensorflow"), {}, False),
    ],
)
def test_keras_fit_in_several_workers_is_warned_of(tmp_path, program, values, warned):
    script = tmp_path / "train.py"
    script.write_text(program)
    found = find_file_warnings(job(script=str(script), **values), local=False)
    assert [f"{script} seems to call Keras's fit" in warning for warning in found] == [True] * warned
