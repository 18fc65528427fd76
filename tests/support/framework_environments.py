"""Environments with PyTorch, JAX and PyArrow, each made once below the cache folder; they are too large for .venv.

PyTorch is Debian's, unpacked and not installed: the wheels of PyPI need CUDA's libraries (2 GB) to be imported.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.azkaban_site import made_once
from tf_yarn_ops.environments.pip_settings import read_pip_settings

PINS = Path(__file__).parent / "framework_pins"
_SECONDS = 600
#: Debian's packages are for its own Python.
DEBIANS_PYTHON = "/usr/bin/python3"
HAVE_APT = shutil.which("apt-get") is not None and os.path.exists(DEBIANS_PYTHON)


def jax_python():
    """Return an interpreter that has JAX for the CPU and Keras, and the variables that it needs."""
    return pinned_python("jax"), {"JAX_PLATFORMS": "cpu"}


def pinned_python(name):
    """Return an interpreter of an environment with what a file of pins names."""
    pins = PINS / f"{name}.txt"

    def make(folder):
        uv, venv = [sys.executable, "-m", "uv"], folder / "venv"
        _run([*uv, "venv", "--quiet", "--python", sys.executable, venv])
        _run(
            [*uv, "pip", "sync", "--quiet", "--require-hashes", "--python", venv / "bin" / "python", pins],
            env=os.environ | read_pip_settings(os.environ),
        )

    folder = made_once("{}-python{}.{}".format(name, *sys.version_info), [pins], make)
    return str(folder / "venv" / "bin" / "python")


def tf_keras_python():
    """Return this interpreter, and the variables with which it has tf_keras."""
    library = "lib/python{}.{}/site-packages".format(*sys.version_info)
    return sys.executable, {"PYTHONPATH": str(Path(pinned_python("tf_keras")).parents[1] / library)}


def pytorch_python():
    """Return an interpreter that has PyTorch for the CPU, and the variables that it needs."""
    folder = made_once("debian-pytorch", [Path(__file__)], _make_pytorch)
    libraries = sorted({str(file.parent) for file in folder.rglob("*.so.*")})
    return DEBIANS_PYTHON, {
        "PYTHONPATH": str(folder / "usr/lib/python3/dist-packages"),
        "LD_LIBRARY_PATH": ":".join(libraries),
    }


def _make_pytorch(folder):
    """Unpack Debian's python3-torch and what it needs."""
    planned = ["apt-get", "install", "--simulate", "--no-install-recommends", "python3-torch"]
    if subprocess.run(planned, capture_output=True, timeout=_SECONDS).returncode:
        _run(["apt-get", "update", "-q"])
    packages = [line.split()[1] for line in _run(planned).splitlines() if line.startswith("Inst ")]
    _run(["apt-get", "download", "-q", *packages], cwd=folder)
    for package in folder.glob("*.deb"):
        _run(["dpkg", "-x", package, folder])
        package.unlink()


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
