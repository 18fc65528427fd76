"""`pack_environment`: an interpreter with its library and packages as a ``.tar.gz`` that runs in any folder of a node.

uv installs; conda-pack packs folders of conda; patchelf makes the interpreter find its libraries beside it.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import programs
from ..errors import FaultCode
from ..staging.archive import pack
from ..validation import check_faults, invalid, normalise, read_choice
from .check import NODES
from .pip_settings import read_pip_settings

#: Platforms of nodes, as uv knows them: wheels for a glibc of 2.28 or later, which RHEL 8 has.
PLATFORMS = {f"linux-{machine}": f"{machine}-manylinux_2_28" for machine in ("x86_64", "aarch64")}
#: Folders and files of an interpreter that no training needs.
_UNUSED = (
    "__pycache__",
    "test",
    "tests",
    "idlelib",
    "turtledemo",
    "tkinter",
    "_tkinter*",
    "nis.*",
    "ensurepip",
    "site-packages",
    "dist-packages",
    "config-*",
    "EXTERNALLY-MANAGED",
)
#: Every Linux with a glibc has these; they must fit its kernel and each other.
_OF_GLIBC = ("ld-linux", "libc.", "libm.", "libdl.", "libpthread.", "librt.", "libutil.", "libresolv.", "libnsl.")
#: The first line of a tool's report of a failure.
_ERROR = re.compile(r"error|\s*×|Traceback")
#: Finds the interpreter beside the script, wherever the archive is unpacked; the same words are a comment for Python.
_RELOCATABLE = '#!/bin/sh\n\'\'\'exec\' "$(dirname -- "$(realpath -- "$0")")"/python "$0" "$@"\n\' \'\'\'\n'


class PackFault(FaultCode):
    """Fault codes for an environment that can't be packed, or built on request."""

    NO_TOOL = "needs {tool}, which this Python lacks: pip install 'tf-yarn-ops[env]'"
    TOOL_FAILED = "{tool} ended with exit code {exit_code}:\n{text}"
    NOT_A_SOURCE = (
        "{given} is neither a file of requirements (.txt), a project (pyproject.toml), a venv nor a folder of conda"
    )
    NO_LOCK = "{given} has no uv.lock and no pylock.toml; make one: uv lock"
    OTHER_SYSTEM = "{given} was made for this machine ({here}) and can't be packed for {platform}"
    NOT_ABSOLUTE = "{given!r} is not an absolute path on the nodes"
    NO_FILE = "there is no {file} on this machine ({machine})"
    LOCAL_PACKAGE = (
        "{line!r} names a folder of this machine, whose changes would not be seen; pack it with: ytf env pack"
    )
    TOO_DEEP = "{file} is named by more than {most} files, each by the next: does a file name itself?"
    NO_FLOCK = "requirements:// locks its cache, which is not possible on Windows; pack it with: ytf env pack"
    OPEN_CACHE = "everybody may write to {folder}, so its archives can't be trusted; close it: chmod o-w {folder}"


@dataclass(frozen=True)
class Packing:
    """How an environment is packed.

    Parameters
    ----------
    platform : str, optional
        A key of `PLATFORMS`. Default: Linux on this machine's processor. Another system gets wheels only.
    python : str, optional
        A version (``3.11``) or an interpreter for a file of requirements or a project. Default: the one that runs.
    node_python : str, optional
        An interpreter that every node has, ``/usr/bin/python3.11``; the archive links to it. Default: the archive
        brings its own.
    echo : callable, optional
        Called with each line of progress. Default: nobody reads them.
    checkpoint : callable, optional
        Called several times a second; an error that it raises ends the packing. Default: nothing.
    """

    platform: str = NODES
    python: str = ""
    node_python: str = ""
    echo: Callable[[str], object] = lambda line: None
    checkpoint: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        here = f"{sys.platform}-{platform.machine()}"
        check_faults(normalise(self, {"platform": read_choice(*{here: 0, **PLATFORMS})}))

    @property
    def is_foreign(self) -> bool:
        """Whether the nodes are of another system than this machine."""
        return self.platform != f"{sys.platform}-{platform.machine()}"

    @cached_property
    def environ(self) -> dict[str, str]:
        """The variables of the tools: ours, and pip's settings for uv."""
        return {**os.environ, **read_pip_settings(os.environ), "UV_NO_PROGRESS": "1"}

    def step(self, line: str) -> None:
        """Report the beginning of a step."""
        self.echo(f"* {line}")

    def run(self, tool: str, *words: object, folder: Path | None = None, tolerant: bool = False) -> None:
        """Run a program; report its lines as they come.

        Raises
        ------
        SpecInvalid
            It has failed; the message has its lines.
        """
        lines: list[str] = []
        with programs.running_program(
            [tool, *map(str, words)],
            cwd=folder,
            env=self.environ,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:

            def read() -> None:
                for line in process.stdout or ():
                    lines.append(line.rstrip())
                    if not tolerant and not any(map(_ERROR.match, lines)):  # the error itself shows those
                        self.echo(f"  {lines[-1]}")

            reader = threading.Thread(target=read)
            reader.start()
            try:
                while reader.is_alive():
                    reader.join(0.2)
                    self.checkpoint()
            finally:
                process.terminate()  # no effect on one that has ended
                process.wait()
        if process.returncode and not tolerant:
            raise invalid(
                PackFault.TOOL_FAILED, tool=Path(tool).name, exit_code=process.returncode, text="\n".join(lines)[-8192:]
            )


def pack_environment(source: Path | None, target: Path, packing: Packing = Packing()) -> None:
    """Write a relocatable archive of an environment.

    Parameters
    ----------
    source : Path or None
        A file of requirements; a ``pyproject.toml`` or its folder, with a lock; a venv; a folder of conda. None is
        the environment of the running interpreter. Projects that a venv or the running environment has installed
        editable are built and packed as they are now.
    target : Path
        The ``.tar.gz`` to write. An older one is replaced when the new one is complete.
    packing : Packing, optional

    Raises
    ------
    SpecInvalid
        The source is not one of these, or a tool has failed; the message has the tool's own words.
    """
    target = target.absolute()
    if packing.node_python and not packing.node_python.startswith("/"):
        raise invalid(PackFault.NOT_ABSOLUTE, given=packing.node_python)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".ytf-env-", dir=target.parent) as folder:
        stage, archive = Path(folder, "environment"), Path(folder, "environment.tar.gz")
        if source and (source / "conda-meta").is_dir():
            _pack_conda(source, archive, packing)
        else:
            _fill(stage, source, packing)
            packing.step("writing the archive")
            packing.checkpoint()
            pack(stage, archive)
        os.replace(archive, target)


def find_uv() -> str:
    """Return the program uv: of this Python's packages, else on PATH."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return _find_tool("uv")


def _find_tool(name: str) -> str:
    beside = os.path.dirname(sys.executable)
    if (found := shutil.which(name, path=beside) or shutil.which(name)) is None:
        raise invalid(PackFault.NO_TOOL, tool=name)
    return found


def _describe(python: str | Path) -> dict[str, Any]:
    command = [python, "-I", Path(__file__).with_name("description.py")]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout))


def _fill(stage: Path, source: Path | None, packing: Packing) -> None:
    """Make the folder of the environment."""
    uv, installed = find_uv(), None
    python = packing.python or getattr(sys, "_base_executable", sys.executable)
    if source is None or (source / "pyvenv.cfg").is_file():
        installed = _describe(sys.executable if source is None else source / "bin" / "python")
        python = installed["interpreter"]
    wanted = _read_requirements(uv, source, stage.parent, packing) if source and not installed else []
    packing.step(f"making an environment for {packing.platform}")
    packing.run(uv, "venv", "--quiet", "--no-project", "--relocatable", "--python", python, stage)
    base = _describe(stage / "bin" / "python")
    foreign = ["--only-binary", ":all:", "--python-platform", PLATFORMS[packing.platform]] if packing.is_foreign else []
    no_index = ["--no-index"] if packing.environ.get("UV_NO_INDEX") else []
    install = ["pip", "install", "--python", stage / "bin" / "python", *no_index, *foreign]
    if installed:
        projects = [one["url"].removeprefix("file://") for one in installed["distributions"] if one["editable"]]
        if packing.is_foreign:
            pins = stage.parent / "pins.txt"
            pins.write_text("".join(f"{line}\n" for line in _pin(installed)), encoding="utf-8")
            wanted = [(["-r", pins], stage.parent)]
        else:
            packing.step(f"copying {len(installed['distributions'])} packages of {installed['prefix']}")
            _copy_packages(installed, base, stage)
        # A project is built here also for another system: its wheel must then be a pure one, or one for that system.
        wanted += [(["--no-deps", "--only-binary", ":none:", project], stage.parent) for project in projects]
    for words, folder in wanted:
        packing.step(f"installing {words[-1]}")
        packing.run(uv, *install, *words, folder=folder)
    _place_interpreter(uv, stage, base, packing)
    packing.step("compiling bytecode")
    # The sources have no time in the archive, so that the bytecode must not depend on one. Packages' own tests, half of
    # NumPy, stay in the archive without bytecode.
    packing.run(
        base["interpreter"],
        "-m",
        "compileall",
        "-q",
        "-j",
        "0",
        "-s",
        stage,
        "--invalidation-mode",
        "unchecked-hash",
        "-x",
        rf"{re.escape(str(stage))}/.*-packages/.*/tests/",
        stage / "lib",
        tolerant=True,
    )


def _read_requirements(uv: str, source: Path, folder: Path, packing: Packing) -> list[tuple[list[Any], Path]]:
    """Return uv's words for what a file or a project asks for, with the folder in which it reads them."""
    project = source if source.is_dir() else source.parent
    if source.suffix in (".txt", ".in") or source.name.startswith("pylock"):
        return [(["-r", source.absolute()], project)]
    if not (project / "pyproject.toml").is_file() or (source.is_file() and source.name != "pyproject.toml"):
        raise invalid(PackFault.NOT_A_SOURCE, given=source)
    if (project / "uv.lock").is_file():
        locked = folder / "locked.txt"
        packing.step(f"reading {project / 'uv.lock'}")
        packing.run(
            uv,
            "export",
            "--quiet",
            "--frozen",
            "--no-dev",
            "--no-editable",
            "--no-hashes",
            "-o",
            locked,
            folder=project,
        )
        return [(["-r", locked], project)]
    if (project / "pylock.toml").is_file():
        return [(["-r", project / "pylock.toml"], project), (["--no-deps", project], project)]
    raise invalid(PackFault.NO_LOCK, given=project)


def _pin(installed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requirements that lead to the same packages on another system."""
    for one in installed["distributions"]:
        if not one["editable"]:
            yield f"{one['name']} @ {one['url']}" if one["url"] else f"{one['name']}=={one['version']}"


def _copy_packages(installed: Mapping[str, Any], base: Mapping[str, Any], stage: Path) -> None:
    """Copy the packages of an environment, and their files elsewhere below its prefix, without editable projects."""
    prefix = Path(installed["prefix"])
    editable = {str(prefix / file) for one in installed["distributions"] if one["editable"] for file in one["files"]}
    editable |= {folder for folder in map(os.path.dirname, editable) if folder.endswith(".dist-info")}

    def leave_out(folder: str, names: Sequence[str]) -> set[str]:
        return {name for name in names if name == "__pycache__" or f"{folder}/{name}" in editable}

    for packages in installed["packages"]:
        if os.path.isdir(packages):
            shutil.copytree(packages, base["packages"][0], symlinks=True, ignore=leave_out, dirs_exist_ok=True)
    for file in (file for one in installed["distributions"] if not one["editable"] for file in one["files"]):
        origin = prefix / file
        if not str(origin).startswith(tuple(installed["packages"])) and origin.is_file():
            target = stage / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, target)
            _relocate_script(target, installed["prefix"])


def _relocate_script(script: Path, prefix: str) -> None:
    first, _, rest = script.read_bytes().partition(b"\n")
    if first.startswith(b"#!" + prefix.encode()) and b"python" in first:
        script.write_bytes(_RELOCATABLE.encode() + rest)


def _place_interpreter(uv: str, stage: Path, base: Mapping[str, Any], packing: Packing) -> None:
    """Replace the links of a venv to this machine's Python."""
    short = ".".join(base["version"].split(".")[:2])
    programs, name = stage / "bin", f"python{short}"
    for link in ("python", "python3", name):
        (programs / link).unlink(missing_ok=True)
    for link in {"python", "python3", name} - {Path(packing.node_python).name} if packing.node_python else ():
        (programs / link).symlink_to(packing.node_python)
    if packing.node_python:
        (stage / "pyvenv.cfg").write_text(f"home = {Path(packing.node_python).parent}\n", encoding="utf-8")
        return
    (stage / "pyvenv.cfg").unlink()
    packing.step(f"copying Python {base['version']}")
    library, program = Path(base["library"]), Path(base["interpreter"])
    if packing.is_foreign:
        found = stage.parent / "pythons"
        packing.run(
            uv, "python", "install", "--no-bin", "--install-dir", found, f"cpython-{short}-{packing.platform}-gnu"
        )
        home = next(path for path in found.glob("cpython-*") if not path.is_symlink())
        library, program = home / "lib" / name, home / "bin" / name
    shutil.copytree(
        library,
        stage / "lib" / name,
        ignore=shutil.ignore_patterns(*_UNUSED),
        ignore_dangling_symlinks=True,
        dirs_exist_ok=True,
    )
    shutil.copy(program, programs / name)
    for link in ("python", "python3"):
        (programs / link).symlink_to(name)
    if not packing.is_foreign:
        _bring_libraries(stage, programs / name, packing)
        _link_packages(stage, programs / name, name)


def _bring_libraries(stage: Path, program: Path, packing: Packing) -> None:
    """Copy the libraries of the interpreter that a node may lack, and let it look for them in the archive."""
    library = stage / "lib"
    users: dict[str, list[Path]] = {
        "$ORIGIN/../lib": [program],
        "$ORIGIN/../..": [*library.glob("python*/lib-dynload/*.so")],
    }
    binaries = [path for paths in users.values() for path in paths]
    ran = subprocess.run(["ldd", *binaries], capture_output=True, text=True, timeout=60)
    found = re.findall(r"^\s*(.+) => (/.*) \(", ran.stdout, re.MULTILINE)
    if needed := {name: path for name, path in found if not name.startswith(_OF_GLIBC)}:
        for name, path in needed.items():
            shutil.copy(path, library / name)
        users["$ORIGIN"] = [library / name for name in needed]
        for place, binaries in users.items():
            packing.run(_find_tool("patchelf"), "--set-rpath", place, *binaries)


def _link_packages(stage: Path, program: Path, name: str) -> None:
    """Lead an interpreter of Debian, which looks for packages elsewhere, to the packages."""
    ran = subprocess.run(
        [program, "-I", "-c", "import site; print(site.getsitepackages()[0])"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    place, packages = Path(ran.stdout.strip()), stage / "lib" / name / "site-packages"
    if place != packages:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(packages, place.parent))


def _pack_conda(source: Path, archive: Path, packing: Packing) -> None:
    if packing.is_foreign:
        raise invalid(
            PackFault.OTHER_SYSTEM, given=source, here=f"{sys.platform}-{platform.machine()}", platform=packing.platform
        )
    packing.step(f"packing {source} with conda-pack")
    packing.run(
        _find_tool("conda-pack"), "--quiet", "--compress-level", "1", "--prefix", source.absolute(), "--output", archive
    )
