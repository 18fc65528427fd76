"""Hadoop's jars: Maven fetches them once, by the packaged ``pom.xml``, into a cache folder."""

import hashlib
import http.client
import io
import logging
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from .. import programs
from ..errors import MiniClusterError

#: The version of Hadoop, and the size of its jars, MB.
VERSION, SIZE = "3.4.3", 90

_FETCH_SECONDS = 900.0
#: The Maven of a machine without one, and where it comes from unless MVNW_REPOURL, which Maven's wrapper reads, too,
#: names another repository.
_MAVEN = "apache-maven-3.9.9"
_MAVEN_SHA512 = (
    "a555254d6b53d267965a3404ecb14e53c3827c09c3b94b5678835887ab404556"
    "bfaf78dcfe03ba76fa2508649dca8531c74bca4d5846513522404d48e8c4ac8b"
)
_CENTRAL = "https://repo.maven.apache.org/maven2"
_LOG = logging.getLogger(__name__)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the cache folder: ``$YTF_CACHE``, else ``tf_yarn_ops`` in the user's cache."""
    if environ.get("YTF_CACHE"):
        return Path(environ["YTF_CACHE"]).absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "tf_yarn_ops"


def fetch_hadoop(
    environ: Mapping[str, str],
    java_home: Path,
    progress: Callable[[str], None],
    version: str = VERSION,
    size: int = SIZE,
    options: Sequence[str] = (),
) -> Path:
    """Return the folder with Hadoop's ``jars``; fetch them, with further options of Maven, if the cache lacks them.

    The folder appears by a rename and is therefore always complete. If two processes fetch at once, the first wins.

    Raises
    ------
    MiniClusterError
        Maven is missing or fails, or the disk is full.
    """
    target = cache_folder(environ) / f"hadoop-{version}"
    if target.is_dir():
        return target
    maven = find_maven(f"Hadoop {version}", environ)
    progress(f"fetching Hadoop {version} (once, {size} MB) into {target}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target.parent).free // 10**6
        if free < size:
            raise MiniClusterError(
                f"the disk of the cache {target.parent} has {free} MB free, Hadoop needs {size} MB:"
                " free some, or set YTF_CACHE"
            )
        staging = Path(tempfile.mkdtemp(prefix=f".hadoop-{version}-", dir=target.parent))
    except OSError as error:
        raise MiniClusterError(f"the cache {target.parent} cannot be written ({error}): set YTF_CACHE") from error
    try:
        with resources.as_file(resources.files(__package__) / "pom.xml") as pom:
            goal = ["--file", str(pom), "dependency:copy-dependencies", f"-Dhadoop.version={version}",
                    "-DincludeScope=runtime", f"-DoutputDirectory={staging}/jars", *options]  # fmt: skip
            run_maven(maven, goal, staging / "jars", {**environ, "JAVA_HOME": str(java_home)})
        staging.chmod(0o755)
        publish(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def find_maven(product: str, environ: Mapping[str, str]) -> str:
    """Return the path of Maven, which fetches a product: that on PATH, else one in the cache.

    Raises
    ------
    MiniClusterError
        It is neither on PATH nor in the cache, and could not be fetched.
    """
    maven = shutil.which("mvn", path=environ.get("PATH", ""))
    target = cache_folder(environ) / _MAVEN
    if maven or target.is_dir():
        return maven or str(target / "bin" / "mvn")
    url = f"{environ.get('MVNW_REPOURL') or _CENTRAL}/org/apache/maven/apache-maven/{_MAVEN[13:]}/{_MAVEN}-bin.tar.gz"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            archive = answer.read()
        if hashlib.sha512(archive).hexdigest() != _MAVEN_SHA512:
            raise OSError("its SHA-512 is another one")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".maven-", dir=target.parent) as staging:
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(staging)
            publish(Path(staging) / _MAVEN, target)
    except (OSError, http.client.HTTPException) as error:
        raise MiniClusterError(
            f"Maven is missing, which fetches {product} once, and {url} could not be fetched ({error}):"
            " install it (apt-get install maven), or name a mirror of Maven Central by MVNW_REPOURL"
        ) from error
    return str(target / "bin" / "mvn")


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
        ran = programs.run_program(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=dict(environ), timeout=_FETCH_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MiniClusterError(f"Maven could not fetch Hadoop: {error}") from error
    if ran.returncode != 0 or not any(jars.glob("hadoop-*.jar")):
        errors = [line for line in ran.stdout.splitlines() if "ERROR" in line] or ran.stdout.splitlines()
        output = "\n".join(errors[:3])
        raise MiniClusterError(
            f"Maven could not fetch Hadoop (exit {ran.returncode}): check the network, the disk and Maven's"
            f" settings.xml, then try again\n{output}"
        )


def publish(staging: Path, target: Path) -> None:
    """Rename a complete folder to its final name, unless another process was first."""
    try:
        os.rename(staging, target)
    except OSError:
        if not target.is_dir():
            raise
