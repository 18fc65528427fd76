"""Packages made by a test, installed without an index: wheels, projects, and a pip.conf that knows no other place."""

import os
import shutil
import subprocess
import sys
import zipfile

from support.source import PACKAGE, ROOT

#: A build backend of a few lines, so that a project needs none from an index.
_BACKEND = """\
import pathlib, zipfile

def build_wheel(folder, config=None, metadata=None):
    name = "digits-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        write(wheel, "digits.py", pathlib.Path("digits.py").read_text())
    return name

def build_editable(folder, config=None, metadata=None):
    name = "digits-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        write(wheel, "__editable__.digits-1.0.pth", str(pathlib.Path.cwd()))
    return name

def write(wheel, name, text):
    about = "digits-1.0.dist-info/"
    wheel.writestr(name, text)
    wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\\nName: digits\\nVersion: 1.0\\nRequires-Dist: shapes\\n")
    wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(about + "entry_points.txt", "[console_scripts]\\nshow-digits = digits:show\\n")
    wheel.writestr(about + "RECORD", f"{name},,\\n{about}METADATA,,\\n{about}WHEEL,,\\n{about}entry_points.txt,,\\n{about}RECORD,,\\n")
"""
_PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "digits"
version = "1.0"
requires-python = ">=3.9"
dependencies = ["shapes"]
scripts = {show-digits = "digits:show"}
"""


def make_wheel(folder, name, files, tag="py3-none-any"):
    """Write a wheel with version 1.0."""
    about = f"{name}-1.0.dist-info"
    files = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    folder.mkdir(exist_ok=True, parents=True)
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{about}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"]))


def make_project(folder):
    """Write the project digits, whose module prints where it and the package shapes lie."""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(_PROJECT)
    (folder / "backend.py").write_text(_BACKEND)
    (folder / "digits.py").write_text(
        "import shapes, sys\ndef show():\n    print(sys.prefix, __file__, shapes.__file__, sep='\\n')\n"
    )
    return folder


def offline(folder, home):
    """Return the variables of a user whose pip.conf names a folder of wheels and no index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "XDG_"))}
    home.mkdir(exist_ok=True)
    (home / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {folder}\n")
    return kept | {"HOME": str(home), "PIP_CONFIG_FILE": str(home / "pip.conf")}


def product_wheel(folder):
    """Build the wheel of the checkout in a folder, without an index; return its path."""
    folder.mkdir(exist_ok=True, parents=True)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    words = [sys.executable, "setup.py", "-q", "bdist_wheel"]
    ran = subprocess.run(words, cwd=folder, timeout=120, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel
