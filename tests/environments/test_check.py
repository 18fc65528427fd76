"""Faults of archives, each on a real archive with a real interpreter."""

import io
import os
import platform
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tf_yarn_ops.environments.check import PEEK, ArchiveFault, ArchiveWarning, check_archive
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.submit.preflight import check_environment

HERE = f"linux-{platform.machine()}"
WHEEL = "lib/python3.11/site-packages/{}-1.0.dist-info/WHEEL"
PYTHON = Path(sys.executable).resolve()


def tar(path, files, folder=""):
    """Write an archive: a text or bytes is a file, a tuple a link, a path a copy."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            if isinstance(content, Path):
                archive.add(content, folder + name)
                continue
            member = tarfile.TarInfo(folder + name)
            if isinstance(content, tuple):
                member.type, member.linkname = tarfile.SYMTYPE, content[0]
                archive.addfile(member)
            else:
                data = content if isinstance(content, bytes) else content.encode()
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path


GOOD = {
    "bin/python": ("python3.11",),
    "bin/python3.11": PYTHON,
    "bin/tool": "#!/bin/sh\n",
    "lib/python3.11/os.py": "",
    WHEEL.format("pure"): "Tag: py3-none-any\n",
    WHEEL.format("binary"): f"Tag: cp311-cp311-manylinux_2_17_{platform.machine()}\n",
    WHEEL.format("stable"): f"Tag: cp38-abi3-linux_{platform.machine()}\n",
    "lib/python3.11/site-packages/setuptools/_vendor/x-1.dist-info/WHEEL": "Tag: cp27-none-any\n",
}
WITHOUT = {name: content for name, content in GOOD.items() if not name.startswith("bin/python")}
SITE = "lib/python3.11/site-packages/"


def test_pipe_is_no_archive(tmp_path):
    os.mkfifo(tmp_path / "pipe.tar.gz")
    (fault,) = check_archive(tmp_path / "pipe.tar.gz").faults
    assert fault.code is ArchiveFault.NOT_READ and "it is no regular file" in str(fault)


def test_good_archive_has_neither_fault_nor_doubt(tmp_path):
    report = check_archive(tar(tmp_path / "good.tar.gz", GOOD, folder="./"))
    assert (report.faults, report.doubts, report.python, report.packages) == ((), (), "3.11", 3)


@pytest.mark.parametrize(
    "files, fault",
    [
        (WITHOUT, "has no bin/python"),
        ({**WITHOUT, "bin/python": ("python3.11",)}, "bin/python leads to bin/python3.11, which is not in the archive"),
        (
            {**WITHOUT, "bin/python": b"\xcf\xfa\xed\xfe" + bytes(60)},
            f"bin/python is for macOS, and the nodes run {HERE}",
        ),
        (
            {**WITHOUT, "bin/python": b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x16\x00"},
            f"bin/python is for linux-s390x, and the nodes run {HERE}",
        ),
        (
            {"bin/python": ("python3.11",), "bin/python3.11": PYTHON},
            "has an interpreter without its library: lib/pythonX.Y/os.py is missing",
        ),
        (
            {"bin/python": ("python3.8",), "bin/python3.8": PYTHON, "lib/python3.8/os.py": ""},
            "has Python 3.8, and the agent needs 3.9 or later",
        ),
        (
            {
                **GOOD,
                WHEEL.format("other"): "Tag: cp312-cp312-manylinux_2_17_x86_64\nTag: cp311-cp311-macosx_11_0_arm64\n",
            },
            f"other was built for cp312-cp312-manylinux_2_17_x86_64, cp311-cp311-macosx_11_0_arm64, and the interpreter is Python 3.11 on {HERE}",
        ),
        (
            {**GOOD, "bin/tool": "#!/home/ann/env/bin/python3\n"},
            "bin/tool names /home/ann/env/bin/python3, a path of the machine that made the archive",
        ),
        (
            {**GOOD, f"{SITE}easy-install.pth": "./egg\n/home/ann/project\n"},
            f"{SITE}easy-install.pth names /home/ann/project, a path of the machine that made the archive",
        ),
        (
            {**GOOD, f"{SITE}__editable__.digits-1.0.pth": "import __editable___digits_1_0_finder"},
            "digits is installed editable, so its code is not in the archive",
        ),
    ],
)
def test_fault_of_an_archive_is_found(tmp_path, files, fault):
    report = check_archive(tar(tmp_path / "bad.tar.gz", files))
    assert list(map(str, report.faults)) == [fault]


@pytest.mark.parametrize(
    "files, fault",
    [
        ({"bin/python": b"\x7fELF"}, f"bin/python is for linux-machine 0, and the nodes run {HERE}"),
        ({WHEEL.format("odd"): "Tag: x\n"}, ""),
        ({WHEEL.format("odd"): "Tag: cp3x-abi3-any\n"}, "odd was built for cp3x-abi3-any"),
        ({f"lib/python3.{'9' * 5000}/os.py": ""}, "is longer than 4096 characters"),
        ({f"lib/python3.{'9' * 200}/os.py": ""}, ""),
    ],
)
def test_hostile_content_of_an_archive_is_at_most_a_fault(tmp_path, files, fault):
    report = check_archive(tar(tmp_path / "hostile.tar.gz", {**GOOD, **files}), limit=PEEK)
    assert any(fault in str(found) for found in report.faults) if fault else not report.faults


def test_check_ends_at_the_first_member_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.environments.unpack._MOST_MEMBERS", 3)
    archive = tar(tmp_path / "many.tar.gz", {f"f{number}": "" for number in range(9)})
    report = check_archive(archive)
    assert [str(fault) for fault in report.faults] == ["has more than 3 members"]


def test_content_in_a_folder_is_found_with_the_remedy(tmp_path):
    archive = tar(tmp_path / "inner.tar.gz", GOOD, folder="tf-env/")
    for limit in (None, PEEK):
        (fault,) = check_archive(archive, limit=limit).faults
        assert (
            str(fault)
            == "has no bin/python; it is in tf-env: pack the folder's content (tar -C tf-env -czf A.tar.gz .)"
        )


def test_zip_is_a_doubt_and_other_files_are_faults(tmp_path):
    with zipfile.ZipFile(tmp_path / "env.zip", "w") as archive:
        archive.writestr("bin/python", "")
    (tmp_path / "env.tar.gz").write_bytes(b"nothing")
    cut = tar(tmp_path / "cut.tar.gz", GOOD)
    cut.write_bytes(cut.read_bytes()[:-100])
    found = [fault.code for name in ("env.tar.gz", "cut.tar.gz") for fault in check_archive(tmp_path / name).faults]
    assert found == [ArchiveFault.NOT_READ, ArchiveFault.NOT_READ]
    zipped = check_archive(tmp_path / "env.zip")
    assert not zipped.faults and [doubt.code for doubt in zipped.doubts] == [ArchiveWarning.ZIP]


def test_what_nodes_have_to_bring_is_a_doubt(tmp_path):
    files = {**WITHOUT, "bin/python": ("/usr/bin/python3.11",), "lib/libcuda.so": ("/opt/cuda/libcuda.so",)}
    report = check_archive(tar(tmp_path / "linked.tar.gz", files))
    assert not report.faults
    assert list(map(str, report.doubts)) == [
        "bin/python leads to /usr/bin/python3.11, which every node needs",
        "lib/libcuda.so leads to /opt/cuda/libcuda.so, which every node needs",
    ]


def test_archive_larger_than_a_nodes_cache_is_a_doubt(tmp_path, monkeypatch):
    monkeypatch.setattr("tf_yarn_ops.environments.check._CACHE_OF_NODE", 0)
    (doubt,) = check_archive(tar(tmp_path / "large.tar.gz", GOOD)).doubts
    assert doubt.code is ArchiveWarning.LARGE


def test_a_look_assumes_nothing_about_the_rest(tmp_path):
    archive = tar(tmp_path / "late.tar.gz", {"a/large": bytes(1 << 20), **GOOD})
    assert check_archive(archive, limit=1 << 10).faults == ()


def test_job_with_a_hopeless_archive_is_refused(tmp_path):
    archive = tar(tmp_path / "inner.tar.gz", GOOD, folder="tf-env/")
    job = JobSpec(tasks={"worker": 1}, command="true", environment=str(archive))
    with pytest.raises(SpecInvalid, match=r"^environment: has no bin/python; it is in tf-env"):
        check_environment(job)


def test_job_with_a_doubtful_archive_is_warned(tmp_path, caplog):
    archive = tar(
        tmp_path / "linked.tar.gz",
        {**WITHOUT, "bin/python": ("/usr/bin/python3.11",), "bin/tool": "#!/home/ann/bin/python\n"},
    )
    check_environment(JobSpec(tasks={"worker": 1}, command="true", environment=str(archive)))
    assert [record.getMessage().split(".tar.gz ")[1] for record in caplog.records] == [
        "bin/tool names /home/ann/bin/python, a path of the machine that made the archive",
        "bin/python leads to /usr/bin/python3.11, which every node needs",
    ]
