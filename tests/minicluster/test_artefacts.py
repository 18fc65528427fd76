"""Hadoop's jars in the cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.machines import write_script
from support.programs import ROOT
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import artefacts
from tf_yarn_ops.minicluster.java import find_java


def fetch():
    return artefacts.fetch_hadoop(os.environ, find_java(os.environ), lambda line: None)


def test_hadoop_is_fetched_once_and_appears_as_a_whole(machine):
    (machine / "cache" / ".hadoop-3.4.3-interrupted" / "jars").mkdir(parents=True)
    assert fetch() == fetch() == machine / "cache" / "hadoop-3.4.3"
    assert (machine / "calls").read_text() == "call\n"
    assert [path.name for path in (machine / "cache" / "hadoop-3.4.3" / "jars").iterdir()] == [
        "hadoop-common-3.4.3.jar"
    ]
    assert sorted(path.name for path in (machine / "cache").iterdir()) == [".hadoop-3.4.3-interrupted", "hadoop-3.4.3"]


def test_losing_the_race_to_fetch_takes_the_winners(machine):
    maven = machine / "bin" / "mvn"
    maven.write_text(maven.read_text() + f"mkdir -p {machine}/cache/hadoop-3.4.3/jars/of-the-winner\n")
    assert (fetch() / "jars" / "of-the-winner").is_dir()
    assert [path.name for path in (machine / "cache").iterdir()] == ["hadoop-3.4.3"]


def test_a_failing_maven_is_quoted_and_leaves_nothing(machine):
    write_script(machine / "bin" / "mvn", 'echo noise\necho "[ERROR] no network"\nexit 7\n')
    with pytest.raises(MiniClusterError) as caught:
        fetch()
    assert str(caught.value) == (
        "Maven could not fetch Hadoop (exit 7): check the network, the disk and Maven's settings.xml, then try again\n"
        "[ERROR] no network"
    )
    assert list((machine / "cache").iterdir()) == []


def test_missing_maven_is_reported_in_one_line(machine):
    (machine / "bin" / "mvn").unlink()
    with pytest.raises(MiniClusterError) as caught:
        artefacts.fetch_hadoop({"YTF_CACHE": f"{machine}/cache"}, find_java(os.environ), lambda line: None)
    assert str(caught.value) == (
        "Maven is missing, which fetches Hadoop 3.4.3 once: install it (apt-get install maven) and try again"
    )


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"YTF_CACHE": "/c"}, "/c"),
        ({"YTF_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/tf_yarn_ops"),
        ({}, str(Path.home() / ".cache" / "tf_yarn_ops")),
    ],
)
def test_cache_folder(environ, folder):
    assert str(artefacts.cache_folder(environ)) == folder


def test_module_fetches_without_packages_of_python(machine):
    """``./dev demo`` runs it beside the installation."""
    command = [sys.executable, "-S", "-m", "tf_yarn_ops.minicluster.artefacts"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    folder = machine / "cache" / "hadoop-3.4.3"
    assert folder.is_dir() and f"fetching Hadoop 3.4.3 (once, 90 MB) into {folder}" in ran.stderr
    (machine / "jdk" / "bin" / "java").unlink()
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, "has no bin/java: install JDK" in ran.stderr) == (1, True), ran.stderr
