"""This package with its dependencies in one file (PEX), for nodes that have neither.

The file fits the Python version and the platform of the machine that packs it.
"""

import importlib.util
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from .. import programs
from ..errors import HadoopClientUnfit

DISTRIBUTION = "tf-yarn-ops"
_SECONDS = 600.0


class PexFailed(HadoopClientUnfit):
    """The file can't be made on this machine."""

    hint = "Correct what the message says, or name an interpreter of the nodes with --python instead of --pex."


def write_pex(target: Path) -> None:
    """Write the file.

    In a virtual environment its installed packages are taken; otherwise pip fetches them.

    Raises
    ------
    PexFailed
        PEX is not installed, or fails.
    """
    if importlib.util.find_spec("pex") is None:
        raise PexFailed("pex is missing, which packs it: pip install 'tf-yarn-ops[oozie]'")
    try:
        needed = [one for one in metadata.requires(DISTRIBUTION) or () if "extra ==" not in one]
    except metadata.PackageNotFoundError as error:
        raise PexFailed(
            f"{DISTRIBUTION} is not installed for {sys.executable}, so its dependencies are not known: pip install it"
        ) from error
    package = Path(__file__).resolve().parents[1]
    installed = ["--venv-repository", sys.prefix] if sys.prefix != sys.base_prefix else []
    command = [
        sys.executable,
        "-m",
        "pex",
        *installed,
        "-P",
        f"{package.name}@{package.parent}",
        *needed,
        "--python-shebang",
        "/usr/bin/env python3",
        "-o",
        str(target.absolute()),
    ]
    try:
        ran = programs.run_program(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            cwd=package.parent,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PexFailed(f"pex could not pack the file: {error}") from error
    if ran.returncode != 0:
        output = "\n".join((ran.stderr or ran.stdout).splitlines()[-5:])
        raise PexFailed(f"pex could not pack the file (exit {ran.returncode}): {output}")
