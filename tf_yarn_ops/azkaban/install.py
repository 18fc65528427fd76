"""The plugin's folder, put where Azkaban's executors look for job types.

An executor that finds a half-written plugin loads none at all and does not start: each
file is written beside its place and renamed, and ``private.properties``, without which a
folder is passed over, comes last.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ..errors import SpecInvalid
from .properties import format_properties, parse_properties

NAME = "tensorflow-yarn"
MODULE = "tf_yarn_ops.azkaban"
#: In this order they are written; Azkaban passes over a folder without the last.
FILES = ("plugin.properties", "private.properties")
PROCESS_JOB = "azkaban.jobExecutor.ProcessJob"
HADOOP_SHELL = "azkaban.jobtype.HadoopShell"
WHITELIST = "command.whitelist.regex"
#: Where an executor listens, unless its executor.port says otherwise.
RELOAD_URL = "http://EXECUTOR:12321/executor?action=reloadJobTypePlugins"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")


@dataclass(frozen=True)
class Installed:
    """What an installation has done.

    Attributes
    ----------
    folder : Path
    command : str
        What Azkaban will start.
    written : tuple of str
        Files that are new or have changed.
    notes : tuple of str
        What was repaired, kept or found to be wrong nearby.
    """

    folder: Path
    command: str
    written: tuple[str, ...]
    notes: tuple[str, ...]


def render(python: str, *, secure: bool = False, limits: str | None = None) -> dict[str, bytes]:
    """Give the plugin's files.

    Parameters
    ----------
    python : str
        Absolute path of the interpreter.
    secure : bool, optional
        Azkaban's HadoopShell, which adds delegation tokens and lets no other command pass.
    limits : str, optional
        Absolute path of the site's limits, if it is not the usual one.
    """
    command = _command(python, limits)
    texts = {name: (resources.files(__package__) / "plugin" / name).read_text("ascii") for name in FILES}
    plugin = texts["plugin.properties"].replace("command=@PYTHON@ -I -X utf8 -m tf_yarn_ops.azkaban\n",
                                                format_properties({"command": command}).decode("ascii"))
    private = texts["private.properties"]
    if secure:
        # Java matches the whole command. A backslash before every character that means something.
        expression = re.sub(r"([^A-Za-z0-9_/ ])", r"\\\1", command)
        private = private.replace(PROCESS_JOB, HADOOP_SHELL)
        private = private.replace("Azkaban's own process job", "Azkaban's shell with delegation tokens")
        private += format_properties({WHITELIST: expression}).decode("ascii")
    return {"plugin.properties": plugin.encode("ascii"), "private.properties": private.encode("ascii")}


def install(directory: Path, *, name: str = NAME, python: str | None = None, secure: bool = False,
            limits: str | None = None) -> Installed:
    """Install the job type, or bring an older installation up to date.

    Parameters
    ----------
    directory : Path
        ``azkaban.jobtype.plugin.dir`` of the executor.
    name : str, optional
        The folder, which is the ``type`` of jobs.
    python : str, optional
        Default: the interpreter that runs this.
    secure, limits : optional
        As `render` takes them.

    Raises
    ------
    SpecInvalid
        The directory is none, the folder is another plugin's, or the interpreter does not have this package.
    """
    python = python or sys.executable
    faults = _faults(directory, name, python, limits)
    if faults:
        raise SpecInvalid(faults)
    files = render(python, secure=secure, limits=limits)
    folder = directory / name
    notes = [*_look_at(folder), *_loosened(folder, secure, limits)]
    folder.mkdir(exist_ok=True)
    written = []
    for file in FILES:
        there = _read(folder / file)
        content = files[file] + _kept(there or {}, parse_properties(files[file]), file, notes)
        if not (folder / file).is_file() or (folder / file).read_bytes() != content:
            _replace(folder / file, content)
            written.append(file)
    notes += _broken_neighbours(directory, name)
    return Installed(folder, parse_properties(files["plugin.properties"])["command"], tuple(written), tuple(notes))


def _command(python: str, limits: str | None) -> str:
    words = [python, "-I", "-X", "utf8", "-m", MODULE, *(["--limits", limits] if limits else [])]
    return " ".join(f'"{word}"' if " " in word else word for word in words)


def _faults(directory: Path, name: str, python: str, limits: str | None) -> list[str]:
    faults = []
    if not directory.is_dir():
        faults.append(f"--dir: there is no folder {directory}; give azkaban.jobtype.plugin.dir of the executor, which "
                      "is plugins/jobtypes unless it was changed")
    if not _NAME.match(name):
        faults.append(f"--name: {name!r} can't be a job type; use letters, digits, '.', '-' and '_'")
    for option, path in (("--python", python), ("--limits", limits or "/")):
        if not os.path.isabs(path):
            faults.append(f"{option}: {path!r} is not an absolute path")
        if any(letter in path for letter in "\"'$\\\n") or not path.isascii():
            faults.append(f"{option}: {path!r} has a quote, a '$', a backslash or a letter beyond ASCII, which "
                          "Azkaban's command line does not take")
    if not faults:
        run = subprocess.run([python, "-I", "-X", "utf8", "-c", f"import {MODULE}.jobtype"], capture_output=True,
                             text=True, timeout=60, check=False, cwd="/", stdin=subprocess.DEVNULL)
        if run.returncode:
            last = (run.stderr.strip().splitlines() or ["no message"])[-1]
            faults.append(f"--python: {shlex.quote(python)} -I can't import {MODULE}: {last}; install "
                          "tf-yarn-ops into it")
    if not faults and _owner(directory / name) == "other":
        faults.append(f"--name: {directory / name} is another plugin; give --name another name, or "
                      "remove that folder")
    return faults


def _read(path: Path) -> dict[str, str] | None:
    try:
        return parse_properties(path.read_bytes())
    except (OSError, SpecInvalid):
        return None


def _owner(folder: Path) -> str:
    """Whose plugin a folder holds: ``ours``, ``other``, or ``nobody`` where nothing in it would load."""
    plugin, private = (_read(folder / file) or {} for file in FILES)
    if MODULE in plugin.get("command", "").split():
        return "ours"
    return "other" if private.get("jobtype.class") or any(folder.glob("*.jar")) else "nobody"


def _look_at(folder: Path) -> list[str]:
    if folder.is_dir() and any(folder.iterdir()) and _owner(folder) == "nobody":
        return [f"{folder} held a broken plugin, which no executor could load; repaired"]
    return []


def _loosened(folder: Path, secure: bool, limits: str | None) -> list[str]:
    """What an earlier installation held its jobs to, and this one does not."""
    plugin, private = (_read(folder / file) or {} for file in FILES)
    words = plugin.get("command", "").replace('"', "").split(" --limits ")
    lost = [*(["--secure"] if private.get("jobtype.class") == HADOOP_SHELL and not secure else []),
            *([f"--limits {words[1]}"] if len(words) == 2 and not limits else [])]
    return [f"warning: this installation was {option}, and no longer is; install again with it to keep it"
            for option in lost]


def _kept(there: Mapping[str, str], ours: Mapping[str, str], file: str, notes: list[str]) -> bytes:
    """Lines that the site has added."""
    kept = {name: value for name, value in there.items() if name not in (*ours, "jobtype.class", "command", WHITELIST)}
    if kept:
        notes.append(f"{file}: kept {', '.join(kept)}")
    return format_properties(kept)


def _replace(path: Path, content: bytes) -> None:
    """Write beside, and rename: whoever reads sees the old file or the new one."""
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o644)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _broken_neighbours(directory: Path, name: str) -> list[str]:
    """What would keep the executor from loading any plugin, ours included."""
    broken = []
    for private in sorted(directory.glob("*/private.properties")):
        found = _read(private)
        if private.parent.name != name and not (found or {}).get("jobtype.class"):
            why = "can't be read" if found is None else "names no jobtype.class"
            broken.append(f"warning: {private} {why}: the executor will load no plugin at all until that is mended")
    return broken
