"""Prepare a cluster's folder: choose the ports, write configuration and shims, make the folders."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..errors import MiniClusterError
from . import state
from .daemon_settings import Settings
from .ports import choose_ports
from .shims import build_shims

#: The most memory that a NodeManager offers, MiB.
_MEMORY = 16384
#: NodeManagers refuse disks that are more than 99 % full (see daemon_settings.py); logs and HDFS need some MiB.
_FREE_SHARE, _FREE_BYTES = 0.01, 256 * 2**20
#: Paths become parts of class paths, lists with commas, URIs and shell scripts.
_PATH = re.compile(r"[A-Za-z0-9/._+@=~-]+")
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
    before = state.load(directory, type(settings))
    settings = replace(settings, ports=choose_ports(settings.port_names, before.ports if before else {}))
    _write(settings)
    state.save(settings)
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
