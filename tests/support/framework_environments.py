"""Environments with PyTorch, JAX and PyArrow, each made once below the cache folder; they are too large for .venv.

PyTorch is Debian 13's, unpacked with all that it needs, Python and libc too: the wheels of PyPI need CUDA's
libraries (2 GB) to be imported.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.azkaban_site import made_once
from tf_yarn_ops.environments.pip_settings import read_pip_settings

PINS = Path(__file__).parent / "framework_pins"
_SECONDS = 600
#: Debian 13's Python runs without a chroot: its loader gets the folders of libraries.
PYTORCH_PYTHON = """\
#!/bin/sh
R=$(cd "$(dirname "$0")/../.." && pwd)
L=$R/usr/lib/x86_64-linux-gnu
exec $L/ld-linux-x86-64.so.2 --inhibit-cache --library-path $L:$L/blas:$L/lapack:$R/usr/lib --argv0 "$0" $R/usr/bin/python3 "$@"
"""
NEEDS_APT = pytest.mark.skipif(
    not shutil.which("apt-get") or platform.freedesktop_os_release().get("ID") != "debian",
    reason="PyTorch is Debian's package",
)


def jax_python():
    """Return an interpreter that has JAX for the CPU and Keras, and the variables that it needs."""
    return pinned_python("jax", "keras"), {"JAX_PLATFORMS": "cpu"}


def pinned_python(*names):
    """Return an interpreter of an environment with what files of pins name."""
    pins = [PINS / f"{name}.txt" for name in names]

    def make(folder):
        venv = folder / "venv"
        _run([sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, venv])
        _install(pins, "--python", venv / "bin" / "python")

    folder = made_once("{}-python{}.{}".format(names[0], *sys.version_info), pins, make)
    return str(folder / "venv" / "bin" / "python")


def _install(pins, *where):
    """Install the wheels of files of pins."""
    lists = [word for file in pins for word in ("--requirement", file)]
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    _run([*command, "--require-hashes", *lists, *where], env=os.environ | read_pip_settings(os.environ))


def tf_keras_python():
    """Return this interpreter, and the variables with which it has tf_keras."""
    library = "lib/python{}.{}/site-packages".format(*sys.version_info)
    return sys.executable, {"PYTHONPATH": str(Path(pinned_python("tf_keras")).parents[1] / library)}


def pytorch_python():
    """Return an interpreter that has PyTorch for the CPU and Keras, and the variables that it needs."""
    keras = PINS / "keras.txt"
    folder = made_once("debian13-pytorch", [Path(__file__), keras], lambda folder: _make_pytorch(folder, keras))
    packages = f"{folder / 'usr/lib/python3/dist-packages'}:{folder / 'keras'}"
    return str(folder / "usr/bin/pytorch"), {"PYTHONPATH": packages, "USE_LIBUV": "0", "OMP_NUM_THREADS": "1"}


def _make_pytorch(folder, keras):
    """Unpack python3-torch and what it needs; add Keras."""
    site = _run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]).split()[0]
    (folder / "sources.list").write_text(
        f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {site} trixie main\n"
    )
    (folder / "status").touch()
    (folder / "lists/partial").mkdir(parents=True)
    options = [
        f"Dir::State={folder}", f"Dir::State::status={folder}/status", f"Dir::Cache={folder}/cache",
        f"Dir::Etc::sourcelist={folder}/sources.list", "Dir::Etc::sourceparts=/dev/null",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false", "APT::Sandbox::User=root",
    ]  # fmt: skip
    options = [word for option in options for word in ("-o", option)]
    _run(["apt-get", "update", "-q", *options])
    planned = _run(["apt-get", "install", "--simulate", "--no-install-recommends", "python3-torch", *options])
    packages = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
    _run(["apt-get", "download", "-q", *packages, *options], cwd=folder)
    for package in folder.glob("*.deb"):
        _run(["dpkg", "-x", package, folder])
        package.unlink()
    for name in "cache", "lists", "usr/share/doc":
        shutil.rmtree(folder / name, ignore_errors=True)
    # Debian builds without libuv, and torchrun opens its stores with libuv unless it is refused here.
    distributed = folder / "usr/lib/python3/dist-packages/torch/distributed"
    for file in *distributed.glob("elastic/rendezvous/*.py"), distributed / "rendezvous.py":
        source = re.sub(
            r"(multi_tenant=True|is_master=False),(?!\s*use_libuv)", r"\1, use_libuv=False,", file.read_text()
        )
        file.write_text(source)
    program = folder / "usr/bin/pytorch"
    program.write_text(PYTORCH_PYTHON)
    program.chmod(0o755)
    _install([keras], "--target", folder / "keras", "--python", program)


def _run(words, **options):
    ran = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        **options,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    return ran.stdout
