"""Archives of Hadoop's classes (AppCDS), with which the JVMs of a cluster start with a third less of CPU.

They are made once for a Java and lie beside Hadoop's jars. A JVM that cannot use its archive starts without it, and
says nothing.

References
----------
JEP 310 and the manual page of ``java``, "Application Class Data Sharing": the class path with which an archive was
made has to be a prefix of the class path that uses it, and each jar keeps its size and time of change.
"""

import fcntl
import gzip
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from tf_yarn_ops.errors import MiniClusterError

from .additions import compile_classes, find_compiler

#: The lists of classes that the daemons, and Skein's application master, load for a job. They are recorded by
#: ``python -m benchmarks.record_classes``.
DAEMONS, MASTER = "daemons", "master"
_LIST = "classes-%s.txt.gz"
#: The class that hands out keys: see `throwaway_keys`.
KEYS = "ThrowawayKeys.java"

#: The runtime's name in a container: `runtime.common.contract.RUNTIME_FILE`, which this room does not see.
_RUNTIME = ".ytf.zip"
#: The folder beside Hadoop's jars with copies of signed jars, and the files of a signature.
_UNSIGNED = "unsigned"
_SIGNATURE = re.compile(r"META-INF/[^/]+\.(SF|RSA|DSA|EC)")
_DUMP_SECONDS = 300.0
_UNLOCKED = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions")
#: Map an archive to the address for which it was made. Java 17 and later choose another one, so that attackers do not
#: know it, and write to each page of the archive: 0.15 s of CPU for each JVM. Older releases ignore the option.
_IN_PLACE = (*_UNLOCKED, "-XX:ArchiveRelocationMode=0")
#: Trust the byte code of jars, as that of an archive is trusted: a fifth of the CPU of a ResourceManager's start.
_UNVERIFIED = (*_UNLOCKED, "-XX:-BytecodeVerificationRemote")


def class_path(hadoop: Path, archives: Path | None) -> tuple[str, ...]:
    """Return the class path of Hadoop's jars; with archives, other jars stand before them."""
    before = (str(own_jar(hadoop)), f"{hadoop / _UNSIGNED}/*") if archives else ()
    return (*before, f"{hadoop}/jars/*")


def own_jar(hadoop: Path) -> Path:
    """Return the path of the jar with our classes; it exists if there was a Java compiler when it was to be made."""
    return hadoop / f"tf-yarn-ops-{hashlib.sha256(_read(KEYS)).hexdigest()[:12]}.jar"


def use_archive(folder: Path | None, name: str) -> tuple[str, ...]:
    """Return the flags for a JVM that reads its classes from an archive, or starts without it if it does not fit.

    Without an archive a JVM does not verify the classes that it reads from jars.
    """
    return (
        _UNVERIFIED if folder is None else (*_IN_PLACE, f"-XX:SharedArchiveFile={folder / name}.jsa", "-Xlog:cds*=off")
    )


def prepare(hadoop: Path, java_home: Path, progress: Callable[[str], None]) -> Path | None:
    """Return the folder of the archives for a Java; make them if they are missing, and return None if that fails.

    If two processes make them at once, the second waits for the first. A failure leaves its log in the folder, and no
    later call tries again.
    """
    try:
        _make_own_jar(hadoop, java_home, progress)
        folder = hadoop / f"classes-{_identify(hadoop, java_home)}"
        if not folder.is_dir():
            with _alone(hadoop):
                if not folder.is_dir():
                    progress("archiving Hadoop's classes (once for this Java, half a minute, 200 MB)")
                    _make(hadoop, java_home, folder)
        return folder if (folder / f"{DAEMONS}.jsa").is_file() else None
    except OSError as error:
        progress(f"Hadoop starts without an archive of its classes ({error})")
        return None


@contextmanager
def _alone(hadoop: Path) -> Iterator[None]:
    """Let other processes wait until this one has made its files."""
    with (hadoop / "classes.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _identify(hadoop: Path, java_home: Path) -> str:
    """Return a hash of the Java, Skein's jar, the class path and the lists of classes, on which the archives depend."""
    modules, skein = (java_home / "lib" / "modules").stat(), _find_skein_jar()
    # A JDK may make our jar after a Java without a compiler has made archives. They do not fit a class path with it.
    paths = f"{_RUNTIME}:{':'.join(class_path(hadoop, hadoop))} {own_jar(hadoop).is_file()}"
    about = hashlib.sha256(f"{java_home} {modules.st_size} {modules.st_mtime_ns} {paths}".encode())
    # Each virtual environment has a Skein of its own: the same content, installed at another time.
    for content in (skein.read_bytes() if skein else b"", _read(_LIST % DAEMONS), _read(_LIST % MASTER)):
        about.update(hashlib.sha256(content).digest())
    return about.hexdigest()[:12]


def _make(hadoop: Path, java_home: Path, folder: Path) -> None:
    jars = hadoop / "jars"
    # This process holds the lock, so these folders are left from killed starts.
    for abandoned in folder.parent.glob(".classes-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=".classes-", dir=folder.parent))
    dumps: list[subprocess.Popen[bytes]] = []
    try:
        _copy_unsigned(jars, staging / _UNSIGNED, hadoop / _UNSIGNED)
        ours = f"{own_jar(hadoop)}:{hadoop / _UNSIGNED}/*:{jars}/*"
        class_paths = {DAEMONS: ours}
        if (skein := _find_skein_jar()) is not None:
            # The master's class path begins with the runtime, which has no classes, and ./*, which has this jar. Both
            # differ from job to job: Java compares neither the size of what was an empty folder when the archive was
            # made, nor the time of a jar that had the time 0.
            runtime, jar = staging / _RUNTIME, staging / ".skein.jar"
            runtime.mkdir()
            shutil.copyfile(skein, jar)
            os.utime(jar, (0, 0))
            class_paths[MASTER] = f"./{runtime.name}:./{jar.name}:{ours}"
        for name, class_path in class_paths.items():
            dumps.append(_start_dump(staging, java_home, name, class_path))
        ended = [_ended_well(dump) for dump in dumps]
        if all(ended):
            for file in staging.iterdir():
                if file.is_dir():
                    file.rmdir()
                elif file.suffix != ".jsa":
                    file.unlink()
        else:
            for archive in staging.glob("*.jsa"):
                archive.unlink()
        staging.chmod(0o755)
        os.rename(staging, folder)
    finally:
        for dump in dumps:  # an interruption, or a second dump that did not start, leaves them running
            dump.kill()
            dump.wait()
        shutil.rmtree(staging, ignore_errors=True)


def _copy_unsigned(jars: Path, staging: Path, target: Path) -> None:
    """Copy the jars of Bouncy Castle without their signatures; an archive takes no class of a signed jar.

    A ResourceManager and Skein's application master make a certificate with these classes at each start, and Java would
    check each of them.
    """
    if target.is_dir():
        return
    staging.mkdir()
    for jar in sorted(jars.glob("bc*.jar")):
        with zipfile.ZipFile(jar) as signed, zipfile.ZipFile(staging / jar.name, "w", zipfile.ZIP_DEFLATED) as plain:
            for item in signed.infolist():
                if item.filename == "META-INF/MANIFEST.MF":  # the digests of all entries stand behind an empty line
                    plain.writestr(item, signed.read(item).replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n\n")
                elif not _SIGNATURE.fullmatch(item.filename):
                    plain.writestr(item, signed.read(item))
    staging.chmod(0o755)
    os.rename(staging, target)


def _make_own_jar(hadoop: Path, java_home: Path, progress: Callable[[str], None]) -> None:
    """Make the jar with our classes, if there is a Java compiler.

    A failure of a Java's compiler leaves its log, and no later call with this Java tries again. The jar stands first
    on class paths, because Java asks each jar for providers until it has found ours, and Bouncy Castle's is slow.
    """
    compiler, target = find_compiler(java_home), own_jar(hadoop)
    failure = target.with_name(f"{target.stem}-{hashlib.sha256(bytes(java_home)).hexdigest()[:8]}.log")
    if target.exists() or failure.exists() or not compiler.is_file():
        return
    try:
        with _alone(hadoop), tempfile.TemporaryDirectory(dir=hadoop, prefix=".classes-") as name:
            classes, fresh = Path(name, "classes"), Path(name, target.name)
            if target.exists():
                return
            try:
                compile_classes(compiler, [KEYS], hadoop / "jars", classes)
            except MiniClusterError as error:
                failure.write_text(f"{error}\n")
                raise
            with zipfile.ZipFile(fresh, "w") as jar:
                jar.writestr("META-INF/services/java.security.Provider", "tf_yarn_ops.minicluster.ThrowawayKeys\n")
                for file in sorted(classes.rglob("*.class")):
                    jar.write(file, file.relative_to(classes))
            os.rename(fresh, target)
    except (MiniClusterError, OSError) as error:
        progress(f"Java makes all RSA keys itself ({error})")


def _start_dump(staging: Path, java_home: Path, name: str, class_path: str) -> subprocess.Popen[bytes]:
    (staging / f"{name}.txt").write_bytes(gzip.decompress(_read(_LIST % name)))
    command = [
        f"{java_home}/bin/java", "-Xshare:dump", f"-XX:SharedClassListFile={name}.txt", f"-XX:SharedArchiveFile={name}.jsa",
        "-cp", class_path,
    ]  # fmt: skip
    with (staging / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=staging)


def _ended_well(dump: subprocess.Popen[bytes]) -> bool:
    try:
        return dump.wait(_DUMP_SECONDS) == 0
    except subprocess.TimeoutExpired:
        return False


def _read(name: str) -> bytes:
    return (resources.files(__package__) / name).read_bytes()


def _find_skein_jar() -> Path | None:
    spec = importlib.util.find_spec("skein")
    folders = spec.submodule_search_locations if spec else None
    jar = Path(next(iter(folders or ()), "")) / "java" / "skein.jar"
    return jar if jar.is_file() else None
