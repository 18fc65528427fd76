"""A cluster's folder: its settings in ``state.json``, its lock, and what a start writes: configuration and shims."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import MiniClusterError
from .daemon_settings import Settings
from .marked_processes import wait_until
from .ports import choose_ports
from .shims import build_shims

#: The most memory that a NodeManager offers, MiB.
_MEMORY = 16384
#: NodeManagers refuse disks that are more than 99 % full (see daemon_settings.py); logs and HDFS need some MiB.
_FREE_SHARE, _FREE_BYTES = 0.01, 256 * 2**20
#: Paths become parts of class paths, lists with commas, URIs and shell scripts.
_PATH = re.compile(r"[A-Za-z0-9/._+@=~-]+")
_LOCK_SECONDS = 180.0
_S = TypeVar("_S", bound=Settings)


def prepare_folder(settings: _S) -> _S:
    """Prepare a cluster's folder for the start; return the settings with ports: those of an earlier start if free.

    Raises
    ------
    MiniClusterError
        A path has characters that Hadoop misreads, or the disk is full.
    """
    directory = settings.directory
    for path in (directory, settings.hadoop, settings.java_home):
        if not _PATH.fullmatch(str(path)):
            raise MiniClusterError(f"Hadoop cannot work in {str(path)!r}: use a path of letters, digits and /._+@=~-")
    check_disk(directory)
    before = load_settings(directory, type(settings))
    settings = dataclasses.replace(settings, ports=choose_ports(settings.port_names, before.ports if before else {}))
    _write(settings)
    _save(settings)
    return settings


def check_disk(directory: Path) -> None:
    """Refuse a disk that is too full for a NodeManager.

    Raises
    ------
    MiniClusterError
        Less than 1 % or 256 MiB is free.
    """
    usage = shutil.disk_usage(directory)
    if usage.free < max(_FREE_BYTES, usage.total * _FREE_SHARE):
        raise MiniClusterError(
            f"the disk of {directory} is full ({usage.free // 2**20} MiB of {usage.total // 2**20} MiB are free,"
            " Hadoop needs 1 % and 256 MiB): free some, or use another folder (--dir)"
        )


def _write(settings: Settings) -> None:
    directory = settings.directory
    shims = build_shims(settings)
    files = {
        **{settings.configuration / name: text for name, text in settings.build_files().items()},
        **{settings.shims / name: text for name, text in shims.items()},
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # Hadoop's jars on Maven do not contain the start pages of NameNode and DataNode.
    shutil.copytree(Path(__file__).with_name("pages"), settings.pages, dirs_exist_ok=True)
    for name in shims:
        (settings.shims / name).chmod(0o755)
    shutil.rmtree(directory / "tmp", ignore_errors=True)
    for folder in (settings.logs, directory / "tmp"):
        folder.mkdir(exist_ok=True)
    for log in settings.logs.glob("*.log"):
        log.replace(log.with_suffix(".log.1"))
    # A job's PUBLIC files need parent folders that all users can open.
    for name, mode in {"": "755", **settings.folders}.items() if settings.light else ():
        (directory / "files" / name).mkdir(exist_ok=True)
        (directory / "files" / name).chmod(int(mode, 8))


def node_memory() -> int:
    """Return the memory that a NodeManager offers, MiB: at most that of the machine."""
    return min(_MEMORY, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20)


def load_settings(directory: Path, kind: type[_S]) -> _S | None:
    """Return the settings of the last start in this folder, or None.

    Raises
    ------
    MiniClusterError
        The file is not a `state.json` of this kind of cluster.
    """
    path = directory / "state.json"
    try:
        values = json.loads(path.read_text())
        if (schema := values.pop("schema")) != kind.schema:
            raise ValueError(f"its schema is {schema!r}, not {kind.schema!r}")
        values |= {
            entry.name: Path(values[entry.name])
            for entry in dataclasses.fields(kind)
            if entry.type in (Path, Path | None) and values[entry.name]
        }
        return kind(**values)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MiniClusterError(f"{path} is not readable ({error}): remove {directory} and start again") from error


def _save(settings: Settings) -> None:
    """Write the settings by a rename, so that the file is always complete."""
    values = {"schema": settings.schema, **dataclasses.asdict(settings)}
    fresh = settings.directory / "state.json.tmp"
    fresh.write_text(json.dumps(values, indent=2, default=str) + "\n")
    os.replace(fresh, settings.directory / "state.json")


@contextlib.contextmanager
def lock_folder(directory: Path) -> Iterator[None]:
    """Hold the folder's lock while daemons are started or stopped.

    Raises
    ------
    MiniClusterError
        Another process holds it for minutes.
    """
    import fcntl  # not on Windows, where this module has to be imported

    with (directory / "lock").open("a") as file:

        def take() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        if not wait_until(take, _LOCK_SECONDS):
            raise MiniClusterError(f"another `up` or `down` has held {directory} for {_LOCK_SECONDS:.0f} s: try again")
        yield
