"""Prepare a cluster's folder: choose the settings, write configuration and shims, make the folders."""

import os
import pwd
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import MiniClusterError
from . import additions, class_archive, pages, state
from .artefacts import fetch_hadoop
from .certificates import make_stores
from .configuration import Settings, build_configuration, port_names
from .daemons import kerberos_flags, open_java
from .java import find_java
from .kdc import check_programs, make_realm
from .labels import check_labels
from .ports import choose_ports, taken_ports
from .shims import build_shims
from .throwaway_keys import write_keys
from .versions import DEFAULT, find_version

#: The most memory that a NodeManager offers, MiB.
_MEMORY = 16384
#: NodeManagers refuse disks that are more than 99 % full (see configuration.py); logs and HDFS need some MiB.
_FREE_SHARE, _FREE_BYTES = 0.01, 256 * 2**20
#: Paths become parts of class paths, lists with commas, URIs and shell scripts.
_PATH = re.compile(r"[A-Za-z0-9/._+@=~-]+")


def install(
    directory: Path, environ: Mapping[str, str], progress: Callable[[str], None], *, nodes: int = 1,
    light: bool = False, stock: bool = False, labels: Mapping[str, str] | None = None, version: str | None = None,
    ha: bool | None = None, kerberos: bool = False, https: bool = False, ticket_lifetime: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> Settings:
    """Prepare a cluster's folder for the start; keep the data and the free ports of an earlier start.

    Raises
    ------
    MiniClusterError
        Java, Maven or MIT Kerberos is missing or does not fit, the folder has data of another version of Hadoop, or of
        a cluster that differs in high availability, a path has characters that Hadoop misreads, the disk is full, a
        label is invalid or names an unknown node, or options exclude each other.
    """
    check_labels(labels or {}, nodes)
    before = state.load(directory)
    hadoop_version = find_version(version or (before.version if before else DEFAULT))
    if before and before.version != hadoop_version.number:
        raise MiniClusterError(
            f"{directory} has data of Hadoop {before.version}, which {hadoop_version.number} may not read: use another"
            " folder (--dir), or delete this one"
        )
    ha = before.ha if ha is None and before else bool(ha)
    if before and before.ha != ha:
        raise MiniClusterError(
            f"{directory} has data of a cluster {'with' if before.ha else 'without'} high availability: use another"
            " folder (--dir), or delete this one"
        )
    _check_security(kerberos, light, ticket_lifetime, environ)
    java = find_java(environ, hadoop_version)
    hadoop = fetch_hadoop(environ, java, progress, hadoop_version)
    check_paths(directory, hadoop, java.home)
    check_disk(directory)
    # The lists of classes were recorded with the default version.
    classes = class_archive.prepare(hadoop, java, progress) if hadoop_version.number == DEFAULT else None
    local_files = additions.prepare_local_files(hadoop, java, progress) if hadoop_version.number == DEFAULT else None
    security = additions.prepare_security(hadoop, hadoop_version.number, environ, java, progress) if kerberos else None
    names = port_names(nodes, light, kerberos, ha)
    ports = {name: before.ports[name] for name in names if name in before.ports} if before else {}
    if len(ports) < len(names) or taken_ports(ports):
        ports = choose_ports(names)
    settings = Settings(
        directory=directory, hadoop=hadoop, java_home=java.home, user=pwd.getpwuid(os.getuid()).pw_name,
        ports=ports, memory=min(_MEMORY, _machine_memory()), nodes=nodes, light=light, stock=stock,
        labels=labels or {}, classes=classes, version=hadoop_version.number, java=java.version, ha=ha,
        kerberos=kerberos, https=https, ticket_lifetime=ticket_lifetime, properties=properties or {},
        additions=security, local_files=local_files,
    )  # fmt: skip
    _write(settings)
    write_keys(settings)
    if https:
        make_stores(settings.stores)
        settings.site_file.write_text(f"ca_file: {settings.stores.ca_file}\n")
    if kerberos:
        make_realm(settings, environ)
    state.save(settings)
    return settings


def _check_security(kerberos: bool, light: bool, ticket_lifetime: int | None, environ: Mapping[str, str]) -> None:
    if ticket_lifetime is not None and not kerberos:
        raise MiniClusterError("a ticket's lifetime needs a cluster with Kerberos (--kerberos)")
    if ticket_lifetime is not None and ticket_lifetime <= 0:
        raise MiniClusterError(f"a ticket lives for 1 second or longer, not {ticket_lifetime}")
    if kerberos and light:
        raise MiniClusterError("Kerberos needs HDFS, which a light cluster leaves out: leave out --light or --kerberos")
    if kerberos:
        check_programs(environ)


def check_paths(*paths: Path) -> None:
    """Refuse paths that Hadoop misreads.

    Raises
    ------
    MiniClusterError
        A path has other characters than letters, digits and ``/._+@=~-``.
    """
    for path in paths:
        if not _PATH.fullmatch(str(path)):
            raise MiniClusterError(f"Hadoop cannot work in {str(path)!r}: use a path of letters, digits and /._+@=~-")


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
    shims = build_shims(
        directory, settings.hadoop / "jars", settings.java_home,
        (*open_java(settings.java), *kerberos_flags(settings)), settings.additions,
    )  # fmt: skip
    files = {
        **{settings.configuration / name: text for name, text in build_configuration(settings).items()},
        **{settings.shims / name: text for name, text in shims.items()},
        **{settings.pages / name: text for name, text in pages.FILES.items()},
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in shims:
        (settings.shims / name).chmod(0o755)
    shutil.rmtree(directory / "tmp", ignore_errors=True)
    for folder in (settings.logs, directory / "tmp"):
        folder.mkdir(exist_ok=True)
    for log in settings.logs.glob("*.log"):
        log.replace(log.with_suffix(".log.1"))
    if settings.light:
        _make_folders(directory / "files", settings.user)


def _make_folders(root: Path, user: str) -> None:
    # The same as in HDFS. A job's PUBLIC files need parent folders that all users can open.
    rights = {"": 0o755, "user": 0o755, f"user/{user}": 0o755, "tmp": 0o1777, "tmp/logs": 0o1777}
    for name, mode in rights.items():
        (root / name).mkdir(exist_ok=True)
        (root / name).chmod(mode)


def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
