"""Install the plugin's folder where Azkaban's executors look for job types.

An executor that finds an incomplete plugin does not start. Therefore each file is written under another name and
renamed, and ``private.properties`` comes last: executors skip a folder without it.
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

JOBTYPE_NAME = "tensorflow-yarn"
MODULE = "tf_yarn_ops.azkaban"
#: In the order of writing. Azkaban skips a folder without the last file.
JOBTYPE_FILES = ("plugin.properties", "private.properties")
PROCESS_JOB = "azkaban.jobExecutor.ProcessJob"
HADOOP_SHELL = "azkaban.jobtype.HadoopShell"
WHITELIST = "command.whitelist.regex"
#: For an executor with the default executor.port.
RELOAD_URL = "http://EXECUTOR:12321/executor?action=reloadJobTypePlugins"
#: Seconds for the start of an interpreter.
_START = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")


@dataclass(frozen=True)
class Installed:
    """The result of an installation.

    Attributes
    ----------
    folder : Path
    command : str
        The command that Azkaban will start.
    written : tuple of str
        New or changed files.
    notes : tuple of str
        Sentences about kept lines and restrictions.
    """

    folder: Path
    command: str
    written: tuple[str, ...]
    notes: tuple[str, ...]


def render(
    python: str, *, secure: bool = False, limits: str | None = None, folder: Path | None = None
) -> dict[str, bytes]:
    """Return the content of the plugin's files by their names.

    Parameters
    ----------
    python : str
        Absolute path of the interpreter.
    secure : bool, optional
        Use Azkaban's HadoopShell, which fetches delegation tokens and refuses other commands. Jobs may name files of
        their project only, unless the limits say otherwise.
    limits : str, optional
        Absolute path of the site's limits. Default: `limits.DEFAULT_PATH`.
    folder : Path, optional
        The plugin's folder, so that the launcher can tell the administrator's variables from those of a job.
        Default: unknown, and no ``env.*`` property reaches the launcher.
    """
    words = [
        *(python, "-I", "-X", "utf8", "-m", MODULE),
        *(["--secure"] if secure else []),
        *(["--limits", limits] if limits else []),
        *(["--plugin", str(folder)] if folder else []),
    ]
    command = " ".join(f'"{word}"' if " " in word else word for word in words)
    texts = {name: (resources.files(__package__) / "plugin" / name).read_text("ascii") for name in JOBTYPE_FILES}
    plugin = texts["plugin.properties"].replace(
        "command=@PYTHON@ -I -X utf8 -m tf_yarn_ops.azkaban\n", format_properties({"command": command}).decode("ascii")
    )
    private = texts["private.properties"]
    if secure:
        # Java matches the whole command. Put a backslash before every character with a meaning.
        expression = re.sub(r"([^A-Za-z0-9_/ ])", r"\\\1", command)
        private = private.replace(PROCESS_JOB, HADOOP_SHELL)
        private += format_properties({WHITELIST: expression}).decode("ascii")
    return {"plugin.properties": plugin.encode("ascii"), "private.properties": private.encode("ascii")}


def write_jobtype(
    directory: Path,
    *,
    name: str = JOBTYPE_NAME,
    python: str | None = None,
    secure: bool | None = None,
    limits: str | None = None,
) -> Installed:
    """Install the job type, or update an older installation.

    Parameters
    ----------
    directory : Path
        ``azkaban.jobtype.plugin.dir`` of the executor.
    name : str, optional
        Name of the folder, which is also the ``type`` of jobs.
    python : str, optional
        Absolute path of an interpreter. Default: the one that runs this function.
    secure : bool, optional
        As for `render`. Default: as in the earlier installation, else false.
    limits : str, optional
        As for `render`; an empty text means the default file. Default: as in the earlier installation.

    Raises
    ------
    SpecInvalid
        The directory does not exist, the folder holds another plugin, a path or the name is not allowed, or the
        interpreter lacks this package.
    """
    python, folder = python or sys.executable, directory / name
    was_secure, old_limits = _restrictions(folder) if _NAME.match(name) else (False, None)
    notes = []
    if secure is None and was_secure:
        notes.append("kept --secure of the earlier installation; --no-secure ends it")
    if limits is None and old_limits:
        notes.append(f"kept --limits {old_limits} of the earlier installation; --limits '' ends it")
    secure = was_secure if secure is None else secure
    limits = old_limits if limits is None else limits or None
    if faults := _faults(directory, name, python, limits):
        raise SpecInvalid(faults)
    files = render(python, secure=secure, limits=limits, folder=folder.absolute())
    folder.mkdir(exist_ok=True)
    written = []
    for file in JOBTYPE_FILES:
        content = files[file] + _kept(_read(folder / file), parse_properties(files[file]), file, notes)
        if not (folder / file).is_file() or (folder / file).read_bytes() != content:
            _replace(folder / file, content)
            written.append(file)
    return Installed(folder, parse_properties(files["plugin.properties"])["command"], tuple(written), tuple(notes))


def _faults(directory: Path, name: str, python: str, limits: str | None) -> list[str]:
    faults = []
    if not directory.is_dir():
        faults.append(
            f"--dir: there is no folder {directory}; give the executor's azkaban.jobtype.plugin.dir, usually "
            "plugins/jobtypes"
        )
    if not _NAME.match(name):
        faults.append(f"--name: {name!r} cannot be a job type; use letters, digits, '.', '-' and '_'")
    for option, path in (("--python", python), ("--limits", limits or "/"), ("--dir", str(directory.absolute()))):
        if not os.path.isabs(path):
            faults.append(f"{option}: {path!r} is not an absolute path")
        if any(letter in path for letter in "\"'$\\\n") or not path.isascii():
            faults.append(
                f"{option}: {path!r} has a quote, a '$', a backslash or a character beyond ASCII, which "
                "Azkaban's command line does not allow"
            )
    if not faults and (why := _fault_of_interpreter(python)):
        faults.append(f"--python: {why}")
    if not faults and _owner(directory / name) == "other":
        faults.append(f"--name: {directory / name} is another plugin; give another --name, or remove that folder")
    return faults


def _fault_of_interpreter(python: str) -> str:
    """Return why an interpreter can't start the launcher, and what helps; empty if it can."""
    try:
        run = subprocess.run(
            [python, "-I", "-X", "utf8", "-c", f"import {MODULE}.jobtype"],
            capture_output=True,
            text=True,
            timeout=_START,
            check=False,
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{shlex.quote(python)} can't be started: {error}; install the job type with another --python"
    if not run.returncode:
        return ""
    last = (run.stderr.strip().splitlines() or ["no message"])[-1]
    return f"{shlex.quote(python)} -I can't import {MODULE}: {last}; install tf-yarn-ops for this interpreter"


def _read(path: Path) -> dict[str, str]:
    try:
        return parse_properties(path.read_bytes())
    except (OSError, SpecInvalid):
        return {}


def _owner(folder: Path) -> str:
    """Return ``ours``, ``other`` or ``none``: the folder has our plugin, another plugin, or no complete plugin."""
    plugin, private = (_read(folder / file) for file in JOBTYPE_FILES)
    if MODULE in plugin.get("command", "").split():
        return "ours"
    return "other" if private.get("jobtype.class") or any(folder.glob("*.jar")) else "none"


def _restrictions(folder: Path) -> tuple[bool, str | None]:
    """Return whether an installed plugin is secure, and the site's limits that its command names."""
    plugin, private = (_read(folder / file) for file in JOBTYPE_FILES)
    if _owner(folder) != "ours":
        return False, None
    words = shlex.split(plugin["command"])
    limits = words[words.index("--limits") + 1] if "--limits" in words else None
    return private.get("jobtype.class") == HADOOP_SHELL, limits


def _kept(there: Mapping[str, str], ours: Mapping[str, str], file: str, notes: list[str]) -> bytes:
    """Return the lines that the site has added to a file, and note them."""
    kept = {name: value for name, value in there.items() if name not in (*ours, "jobtype.class", "command", WHITELIST)}
    if kept:
        notes.append(f"{file}: kept {', '.join(kept)}")
    return format_properties(kept)


def _replace(path: Path, content: bytes) -> None:
    """Replace a file by a rename, so that a reader sees the old content or the new one."""
    with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as folder, Path(folder, path.name).open("wb") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        os.replace(file.name, path)
