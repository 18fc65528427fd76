"""Hadoop's jars in the cache."""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from support.javas import java_home
from support.machines import write_script
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


def test_missing_maven_is_fetched_once_by_its_hash(tmp_path, monkeypatch):
    name, folder = "apache-maven-3.9.9", tmp_path / "mirror/org/apache/maven/apache-maven/3.9.9"
    write_script(tmp_path / name / "bin" / "mvn", "true\n")
    folder.mkdir(parents=True)
    with tarfile.open(folder / f"{name}-bin.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / name, name)
    environ = {"YTF_CACHE": f"{tmp_path}/cache", "MVNW_REPOURL": f"file://{tmp_path}/mirror"}
    with pytest.raises(MiniClusterError, match=r"could not be fetched \(its SHA-512 is another one\): install it"):
        artefacts.find_maven("Hadoop", environ)
    assert not (tmp_path / "cache").exists()
    digest = hashlib.sha512((folder / f"{name}-bin.tar.gz").read_bytes()).hexdigest()
    monkeypatch.setattr(artefacts, "_MAVEN_SHA512", digest)
    assert artefacts.find_maven("Hadoop", environ) == f"{tmp_path}/cache/{name}/bin/mvn"
    shutil.rmtree(tmp_path / "mirror")
    assert os.access(artefacts.find_maven("Hadoop", environ), os.X_OK)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [name]


def test_maven_that_cannot_be_fetched_is_one_line(tmp_path):
    with pytest.raises(MiniClusterError) as caught:
        artefacts.find_maven("Hadoop 3.4.3", {"YTF_CACHE": f"{tmp_path}", "MVNW_REPOURL": "file:///nowhere"})
    assert re.fullmatch(
        r"Maven is missing, which fetches Hadoop 3.4.3 once, and file:///nowhere/\S+ could not be fetched"
        r" \(.*\): install it .*, or name a mirror of Maven Central by MVNW_REPOURL",
        str(caught.value),
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


@pytest.mark.cluster
@pytest.mark.matrix
def test_maven_of_the_cache_runs_on_the_java_of_a_wheel(tmp_path):
    environ = {"PATH": "/usr/bin:/bin", "YTF_CACHE": str(tmp_path), "JAVA_HOME": str(java_home(11))}
    maven = artefacts.find_maven("Hadoop", {**os.environ, **environ, "PATH": "/nowhere"})
    ran = subprocess.run([maven, "--version"], env=environ, capture_output=True, text=True, timeout=60)
    assert ran.stdout.startswith("\x1b[1mApache Maven 3.9.9") or ran.stdout.startswith("Apache Maven 3.9.9"), ran
