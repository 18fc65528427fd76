"""Machines that have no Java: settings of clusters that never start, and programs in the place of ``java`` and ``mvn``."""

import xml.etree.ElementTree
from dataclasses import replace
from pathlib import Path

from tf_yarn_ops.minicluster.daemon_settings import Settings


def make_settings(directory=Path("/clusters/one"), kind=Settings, **options):
    """Return settings whose ports count from 10000."""
    settings = kind(
        directory=directory,
        hadoop=Path("/cache/hadoop"),
        java_home=Path("/opt/jdk"),
        user="ada",
        memory=16384,
        **options,
    )
    return replace(settings, ports={name: 10000 + number for number, name in enumerate(settings.port_names)})


def read_xml(text):
    """Return the properties of a Hadoop configuration file."""
    return {entry.findtext("name"): entry.findtext("value") for entry in xml.etree.ElementTree.fromstring(text)}


def read_sites(settings):
    """Return the properties of a cluster by file name."""
    return {name: read_xml(text) for name, text in settings.build_files().items() if name.endswith(".xml")}


def write_script(path, text):
    """Write an executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def write_java(folder, version, home=None):
    """Write a ``java`` that answers with its version; return its folder."""
    write_script(
        folder / "bin" / "java",
        f'echo "    java.home = {home or folder}" >&2\necho "    java.version = {version}" >&2\n',
    )
    return folder / "bin"


def make_machine(folder, patch):
    """Make a machine with Java 17 and a Maven that makes one jar and counts its calls."""
    write_java(folder / "jdk", "17")
    write_script(
        folder / "bin" / "mvn",
        f"echo call >> {folder}/calls\n"
        'for a in "$@"; do case "$a" in -DoutputDirectory=*) out="${a#*=}" ;; esac; done\n'
        'mkdir -p "$out" && touch "$out/hadoop-common-3.4.3.jar"\n',
    )
    patch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")
    patch.setenv("JAVA_HOME", f"{folder}/jdk")
    patch.setenv("YTF_CACHE", f"{folder}/cache")
    patch.delenv("YTF_MINICLUSTER_DIR", raising=False)
    return folder
