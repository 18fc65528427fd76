"""The public names: found where the documents say, loaded when they are used. Their types: documents/test_types.py."""

import re
import subprocess
import sys

import pytest

import tf_yarn_ops
from support.source import ROOT
from tf_yarn_ops.errors import TfYarnError


def test_a_public_name_is_there_and_comes_from_the_package():
    for name in set(tf_yarn_ops.__all__) - {"__version__"}:
        value = getattr(tf_yarn_ops, name)
        assert value.__name__ == name and value.__module__.startswith("tf_yarn_ops.")
    assert isinstance(tf_yarn_ops.__version__, str)


def test_every_error_is_public():
    def below(error):
        return {error.__name__}.union(*map(below, error.__subclasses__()))

    public = {
        name
        for name in tf_yarn_ops.__all__
        if isinstance(value := getattr(tf_yarn_ops, name), type) and issubclass(value, TfYarnError)
    }
    assert {name for name in below(TfYarnError) if hasattr(sys.modules["tf_yarn_ops.errors"], name)} == public


def test_dir_lists_the_public_names_before_they_are_loaded():
    script = "import sys, tf_yarn_ops; print(*dir(tf_yarn_ops)); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    names, modules = map(str.split, run.stdout.splitlines())
    assert set(tf_yarn_ops.__all__) <= set(names)
    assert [name for name in modules if name.startswith("tf_yarn_ops")] == ["tf_yarn_ops"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'tf_yarn_ops' has no attribute 'Launch'"):
        tf_yarn_ops.Launch  # noqa: B018
    with pytest.raises(ImportError):
        from tf_yarn_ops import Launch  # noqa: F401


def test_dir_lists_the_public_names_only():
    assert dir(tf_yarn_ops) == sorted(tf_yarn_ops.__all__)


def test_launcher_and_report_have_a_repr_of_one_line(yarn):
    launcher = tf_yarn_ops.Launcher(tf_yarn_ops.discover(yarn.url, {"HADOOP_USER_NAME": "ann"}))
    assert repr(launcher) == f"<Launcher of ann on {yarn.url}>"
    report = tf_yarn_ops.JobReport("application_1_0001", reason=tf_yarn_ops.Reason.KILLED, message="by Ann")
    assert repr(report) == "<JobReport application_1_0001 KILLED: by Ann>"


def test_launcher_shows_only_what_the_reference_documents(yarn):
    launcher = tf_yarn_ops.Launcher(tf_yarn_ops.discover(yarn.url, {"HADOOP_USER_NAME": "ann"}))
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    members = re.search(r"autoclass:: tf_yarn_ops\.Launcher\n   :members: (.+)", page)[1].split(", ")
    assert [name for name in dir(launcher) if not name.startswith("_")] == sorted([*members, "cluster", "session"])
