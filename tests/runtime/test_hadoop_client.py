"""The agent finds the node's Hadoop client for libhdfs, or says where it has looked."""

import os
import shlex

import pytest

from tf_yarn_ops.runtime.agent.hadoop_client import NoClient, find_client


@pytest.fixture
def node(tmp_path):
    """Return a folder of a node with a Hadoop client, its command and a Java."""
    home, java = tmp_path / "hadoop", tmp_path / "java"
    for path in (home / "lib/native/libhdfs.so", java / "lib/server/libjvm.so"):
        path.parent.mkdir(parents=True)
        path.touch()
    put_hadoop(home, 'echo "a warning"; echo "/conf:$HADOOP_CONF_DIR:$1:$2"')
    return tmp_path


def put_hadoop(home, script):
    (home / "bin").mkdir(exist_ok=True)
    (home / "bin/hadoop").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin/hadoop").chmod(0o755)


def of_yarn(node, **more):
    """Return the environment of a container on this node."""
    return {
        "HADOOP_COMMON_HOME": f"{node}/hadoop",
        "JAVA_HOME": f"{node}/java",
        "PATH": os.defpath,
        "HADOOP_CONF_DIR": "/etc/conf",
        **more,
    }


def test_variables_are_those_of_libhdfs_arrow_and_java(node):
    assert find_client(of_yarn(node)) == {
        "CLASSPATH": "/conf:/etc/conf:classpath:--glob",
        "HADOOP_HDFS_HOME": f"{node}/hadoop",
        "ARROW_LIBHDFS_DIR": f"{node}/hadoop/lib/native",
        "LIBHDFS_OPTS": f"-Xmx512m -Xrs -Djava.library.path={node}/hadoop/lib/native",
        "JAVA_HOME": f"{node}/java",
        "LD_LIBRARY_PATH": f"{node}/java/lib/server",
    }


def test_values_of_the_node_stay(node):
    own = {"HADOOP_HDFS_HOME": f"{node}/hdfs", "LIBHDFS_OPTS": "-Xmx1g", "LD_LIBRARY_PATH": "/opt/lib"}
    found = find_client(of_yarn(node, **own))
    assert {name: found[name] for name in own} == {**own, "LD_LIBRARY_PATH": f"/opt/lib:{node}/java/lib/server"}


@pytest.mark.parametrize(("folder", "others"), [("hadoop/lib64", ""), ("elsewhere", "hadoop/lib/native")])
def test_libhdfs_is_found_where_distributions_put_it(node, folder, others):
    if not others:
        (node / "hadoop/lib/native/libhdfs.so").unlink()
    (node / folder).mkdir()
    (node / folder / "libhdfs.so").touch()
    found = find_client(of_yarn(node, ARROW_LIBHDFS_DIR=f"{node}/elsewhere"))
    assert found["ARROW_LIBHDFS_DIR"] == f"{node}/{folder}"


def test_hadoop_and_java_on_the_path_are_enough(node):
    (node / "bin").mkdir()
    (node / "java/bin").mkdir()
    (node / "java/bin/java").touch(0o755)
    (node / "bin/hadoop").symlink_to(node / "hadoop/bin/hadoop")
    (node / "bin/java").symlink_to(node / "java/bin/java")
    found = find_client({"PATH": f"{node}/bin:{os.defpath}"})
    assert (found["HADOOP_HDFS_HOME"], found["JAVA_HOME"]) == (f"{node}/hadoop", f"{node}/java")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "rm {}/hadoop/bin/hadoop",
            "no program hadoop in {}/hadoop/bin, /bin, /usr/bin, /opt/cloudera/parcels/CDH/bin",
        ),
        (
            "rm {}/hadoop/lib/native/libhdfs.so",
            "no libhdfs.so in {}/hadoop/lib/native, {}/hadoop/lib64, {}/hadoop/lib, /opt",
        ),
        ("rm {}/java/lib/server/libjvm.so", "no libjvm.so of Java in {}/java"),
        (
            "printf '#!/bin/sh\necho JAVA_HOME is not set >&2; exit 3' > {}/hadoop/bin/hadoop",
            "{}/hadoop/bin/hadoop classpath --glob: exit code 3: JAVA_HOME is not set",
        ),
        (
            "printf '#!/bin/sh\ntrue' > {}/hadoop/bin/hadoop",
            "{}/hadoop/bin/hadoop classpath --glob: exit code 0: no output",
        ),
        (
            "printf 'no script' > {}/hadoop/bin/hadoop",
            "{}/hadoop/bin/hadoop classpath --glob: [Errno 8] Exec format error",
        ),
    ],
)
def test_a_missing_part_is_named_with_the_places(node, change, message):
    assert os.system(change.replace("{}", shlex.quote(str(node)))) == 0
    with pytest.raises(NoClient) as caught:
        find_client(of_yarn(node))
    assert str(caught.value).startswith(message.replace("{}", str(node)))
