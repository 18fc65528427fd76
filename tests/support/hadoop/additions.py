"""Classes and jars that the daemons need besides Hadoop's jars; made once, in folders beside them."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path

from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster.artefacts import find_maven, publish, run_maven

#: The file system of `prepare_local_files`, by the property of Hadoop that names it.
LOCAL_FILES = {
    "fs.AbstractFileSystem.file.impl": "tf_yarn_ops.minicluster.LocalFiles",
    "fs.file.impl": "tf_yarn_ops.minicluster.LocalFiles$Older",
}

#: Hadoop's LinuxContainerExecutor, and that of `prepare_local_files`.
LINUX_EXECUTOR = "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor"
LOCALIZING_EXECUTOR = "tf_yarn_ops.minicluster.LocalizingExecutor"

_LOCAL_SOURCES = ("LocalFiles.java", "LocalizingExecutor.java")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_COMPILE_SECONDS = 120.0


def prepare_security(
    hadoop: Path, version: str, environ: Mapping[str, str], java_home: Path, progress: Callable[[str], None]
) -> Path:
    """Return the folder with what a secured cluster needs; make it if it is missing.

    Its ``jars`` has the class library of MapReduce, which Skein's Java client uses on secured clusters. Its ``classes``
    has a class that replaces Hadoop's own in the NodeManager (``SecureIOUtils.java``).

    Raises
    ------
    MiniClusterError
        Maven or the Java compiler is missing or fails, or the disk is full.
    """
    target = hadoop.with_name(f"{hadoop.name}-secured")
    if target.is_dir():
        return target
    maven, compiler = find_maven(version, environ), find_compiler(java_home)
    if not compiler.is_file():
        raise MiniClusterError(
            f"{compiler} is missing, which compiles a class for secured clusters once: install a JDK"
            " (apt-get install openjdk-17-jdk-headless), not only a JRE, or point JAVA_HOME at one"
        )
    progress("preparing Hadoop for secured clusters (once)")
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        goal = [_PLUGIN, f"-Dartifact=org.apache.hadoop:hadoop-mapreduce-client-core:{version}",
                f"-DoutputDirectory={staging}/jars"]  # fmt: skip
        run_maven(maven, goal, staging / "jars", {**environ, "JAVA_HOME": str(java_home)})
        compile_classes(compiler, ["SecureIOUtils.java"], hadoop / "jars", staging / "classes")
        staging.chmod(0o755)
        publish(staging, target)
    except OSError as error:
        raise MiniClusterError(f"{target} cannot be made: {error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def prepare_local_files(hadoop: Path, java_home: Path, progress: Callable[[str], None]) -> Path | None:
    """Return the folder with the daemons' local file system and localizer (`_LOCAL_SOURCES`); make it if it is missing.

    Without a Java compiler, or if it fails, return None: the daemons use Hadoop's own, which take more CPU.
    """
    compiler = find_compiler(java_home)
    sources = b"".join((resources.files(__package__) / name).read_bytes() for name in _LOCAL_SOURCES)
    target = hadoop / f"local-files-{hashlib.sha256(sources).hexdigest()[:12]}"
    if target.is_dir():
        return target
    if not compiler.is_file():
        return None
    try:
        with (hadoop / "local-files.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if target.is_dir():  # another process has made it meanwhile
                return target
            staging = Path(tempfile.mkdtemp(prefix=".local-files-", dir=hadoop))
            try:
                compile_classes(compiler, _LOCAL_SOURCES, hadoop / "jars", staging)
                staging.chmod(0o755)
                publish(staging, target)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except (OSError, MiniClusterError) as error:
        progress(f"YARN's daemons use Hadoop's own local file system and localizer ({error})")
        return None
    return target


def find_compiler(java_home: Path) -> Path:
    """Return the path of the Java compiler, which a JRE does not have."""
    return java_home / "bin" / "javac"


def compile_classes(compiler: Path, names: Iterable[str], jars: Path, classes: Path) -> None:
    """Compile sources of this package into a folder; raise MiniClusterError if that fails."""
    with resources.as_file(resources.files(__package__)) as folder:
        # Byte code of Java 8 runs on each Java that can run Hadoop.
        command = [str(compiler), "-nowarn", "-Xlint:-options", "-source", "8", "-target", "8",
                   "-cp", os.pathsep.join(map(str, sorted(jars.glob("hadoop-*.jar")))),
                   "-implicit:none", "-proc:none", "-d", str(classes), *(str(folder / name) for name in names)]  # fmt: skip
        classes.mkdir(exist_ok=True)
        try:
            ran = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_COMPILE_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise MiniClusterError(f"{compiler} does not end: {error}") from error
    if ran.returncode != 0:
        raise MiniClusterError(f"{compiler} failed (exit {ran.returncode}): {ran.stdout.strip()}")
