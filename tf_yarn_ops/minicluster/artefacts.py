"""Hadoop's jars: Maven fetches them once, by the packaged ``pom.xml``, into a cache folder."""

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from ..errors import MiniClusterError
from .java import Java
from .versions import DEFAULT, VERSIONS, HadoopVersion

_FETCH_SECONDS = 900.0
_LOG = logging.getLogger(__name__)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the cache folder: ``$YTF_CACHE``, else ``tf_yarn_ops`` in the user's cache."""
    if environ.get("YTF_CACHE"):
        return Path(environ["YTF_CACHE"]).absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "tf_yarn_ops"


def hadoop_folder(environ: Mapping[str, str], number: str = DEFAULT) -> Path:
    """Return the folder of a Hadoop, which holds ``jars`` and exists only if it is complete."""
    return cache_folder(environ) / f"hadoop-{number}"


def fetch_hadoop(environ: Mapping[str, str], java: Java, progress: Callable[[str], None],
                 version: HadoopVersion = VERSIONS[DEFAULT]) -> Path:
    """Return the folder of Hadoop's jars; fetch them if they are not in the cache.

    The folder appears by a rename and is therefore always complete. If two processes fetch at once, the first wins.

    Raises
    ------
    MiniClusterError
        Maven is missing or fails, or the disk is full.
    """
    target = hadoop_folder(environ, version.number)
    if target.is_dir():
        return target
    maven = find_maven(version.number, environ)
    progress(f"fetching Hadoop {version.number} (once, {version.size} MB) into {target}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".hadoop-{version.number}-", dir=target.parent))
    except OSError as error:
        raise MiniClusterError(f"the cache {target.parent} cannot be written ({error}): set YTF_CACHE") from error
    try:
        _copy_jars(maven, version, staging / "jars", {**environ, "JAVA_HOME": str(java.home)})
        staging.chmod(0o755)
        publish(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def find_maven(version: str, environ: Mapping[str, str]) -> str:
    """Return the path of Maven, which fetches a version of Hadoop.

    Raises
    ------
    MiniClusterError
        It is not on PATH.
    """
    maven = shutil.which("mvn", path=environ.get("PATH", ""))
    if not maven:
        raise MiniClusterError(
            f"Maven is missing, which fetches Hadoop {version} once: install it (apt-get install maven) and try again"
        )
    return maven


def _copy_jars(maven: str, version: HadoopVersion, jars: Path, environ: Mapping[str, str]) -> None:
    with resources.as_file(resources.files(__package__) / "pom.xml") as pom:
        goal = ["--file", str(pom), "dependency:copy-dependencies", f"-Dhadoop.version={version.number}",
                "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]  # fmt: skip
        if version.left_out:
            goal.append(f"-DexcludeGroupIds={version.left_out}")
        run_maven(maven, goal, jars, environ)


def run_maven(maven: str, goal: Sequence[str], jars: Path, environ: Mapping[str, str]) -> None:
    """Run a goal of Maven that copies jars of Hadoop into the folder ``jars``.

    Raises
    ------
    MiniClusterError
        It failed; the message has its errors.
    """
    command = [maven, "--quiet", "--batch-mode", *goal]
    _LOG.info("running %s", command)
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=dict(environ), timeout=_FETCH_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MiniClusterError(f"Maven could not fetch Hadoop: {error}") from error
    if ran.returncode != 0 or not any(jars.glob("hadoop-*.jar")):
        errors = [line for line in ran.stdout.splitlines() if "ERROR" in line] or ran.stdout.splitlines()
        said = "\n".join(errors[:3])
        raise MiniClusterError(
            f"Maven could not fetch Hadoop (exit {ran.returncode}): check the network, the disk and Maven's"
            f" settings.xml, then try again\n{said}"
        )


def publish(staging: Path, target: Path) -> None:
    """Rename a complete folder to its final name, unless another process was first."""
    try:
        os.rename(staging, target)
    except OSError:
        if not target.is_dir():
            raise
