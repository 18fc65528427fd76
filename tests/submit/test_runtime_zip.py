"""The runtime zip: the same bytes everywhere, byte code that saves time and never decides."""

import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import zipfile

import pytest

from tf_yarn_ops.submit.runtime_zip import runtime_zip
from tf_yarn_ops.submit.yarn_request import skein_jar

DIGEST = "import hashlib; from tf_yarn_ops.submit.runtime_zip import runtime_zip; print(hashlib.sha256(runtime_zip()).hexdigest())"
#: Where a module's code came from: zipimport names the file that it executed.
ORIGIN = "import sys; sys.path.insert(0, sys.argv[1]); import tf_yarn_ops.runtime.agent.agent as a; print(a.__file__)"


def members():
    with zipfile.ZipFile(io.BytesIO(runtime_zip())) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


def test_every_class_of_the_application_master_runs_on_java_8():
    """A class file has its version in its byte 7; 52 is that of Java 8."""
    with zipfile.ZipFile(skein_jar()) as archive:
        versions = {name: archive.read(name)[7] for name in archive.namelist() if name.endswith(".class")}
    assert "com/anaconda/skein/ApplicationMaster.class" in versions
    assert max(versions.values()) <= 52


@pytest.mark.slow
@pytest.mark.parametrize("loaded", ["json", "tf_yarn_ops.runtime.agent.agent, skein, numpy", "httpx, rich.console"])
def test_the_bytes_do_not_depend_on_what_the_process_holds(loaded):
    assert run("-c", f"import {loaded}; {DIGEST}").strip() == hashlib.sha256(runtime_zip()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O",), ("-OO",), ("-X", "pycache_prefix=/nowhere", "-B")], ids=" ".join)
def test_the_bytes_do_not_depend_on_compiled_modules(flags):
    assert run(*flags, "-c", DIGEST).strip() == hashlib.sha256(runtime_zip()).hexdigest()


def test_every_module_of_ours_and_of_the_packages_has_its_byte_code():
    found = members()
    sources = {name for name in found if name.endswith(".py")} - {
        "__main__.py",
        "program/sitecustomize.py",
        "tf_yarn_ops/__init__.py",
    }
    assert {name for name in found if name.endswith(".pyc")} == {f"{name}c" for name in sources}
    assert "tf_yarn_ops/runtime/agent/agent.py" in sources


def test_the_same_python_takes_the_byte_code(tmp_path):
    target = tmp_path / "runtime.zip"
    target.write_bytes(runtime_zip())
    assert run("-I", "-S", "-c", ORIGIN, str(target)).strip() == f"{target}/tf_yarn_ops/runtime/agent/agent.pyc"


def test_another_python_compiles_the_source(tmp_path):
    target = tmp_path / "runtime.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members().items():
            foreign = name.endswith(".pyc") and content.startswith(importlib.util.MAGIC_NUMBER)
            archive.writestr(name, b"\0\0\r\n" + content[4:] if foreign else content)
    assert run("-I", "-S", "-c", ORIGIN, str(target)).strip() == f"{target}/tf_yarn_ops/runtime/agent/agent.py"


#: The zip's first line of code, in a Python that claims to be an old one.
OLD = "import runpy, sys; sys.version_info = (3, 8); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def run_with_an_old_python(tmp_path, *programs):
    target = tmp_path / "runtime.zip"
    target.write_bytes(runtime_zip())
    for name in programs:
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    return subprocess.run(
        [sys.executable, "-c", OLD, str(target), "agent", "worker"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": str(tmp_path)},
    )


def test_a_python_that_is_too_old_says_what_is_needed_and_where(tmp_path):
    ran = run_with_an_old_python(tmp_path, "python3.8")
    assert ran.returncode == 127
    assert ran.stderr == f"tf_yarn_ops needs Python 3.9, found {sys.version.split()[0]} on {os.uname()[1]}\n"


def test_a_python_that_is_too_old_leaves_it_to_the_newest_on_path(tmp_path):
    ran = run_with_an_old_python(tmp_path, "python3.8", "python3.9", "python3.12")
    assert (ran.returncode, ran.stdout) == (0, f"python3.12 {tmp_path}/runtime.zip agent worker\n")


def test_a_name_of_a_resource_takes_the_place_of_skeins():
    with zipfile.ZipFile(io.BytesIO(runtime_zip((("yarn.io/fpga", "example.com/accelerator"),)))) as archive:
        content = archive.read("com/anaconda/skein/MsgUtils.class")
    assert b"\x01\x00\x17example.com/accelerator" in content and b"\x01\x00\x0byarn.io/gpu" in content
    assert b"yarn.io/fpga" not in content
