"""``ytf azkaban install-jobtype --check``: the checks with the eyes of the installed job type."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from support.fake_yarn import closed_address
from support.programs import ROOT, YTF
from tf_yarn_ops.azkaban import checking
from tf_yarn_ops.azkaban.commands import azkaban
from tf_yarn_ops.azkaban.install import JOBTYPE_NAME, write_jobtype
from tf_yarn_ops.doctor.examination import Diagnosis

QUEUES = [
    {"type": "capacitySchedulerLeafQueueInfo", "queueName": name, "queuePath": f"root.{name}", "state": "RUNNING"}
    for name in ("ml", "default")
]


@pytest.fixture
def plugins(tmp_path):
    folder = tmp_path / "jobtypes"
    folder.mkdir()
    return folder


@pytest.fixture
def place(yarn, tmp_path):
    """Return a fake cluster whose file system is a folder of the test."""
    files = tmp_path / "files"
    files.mkdir()
    yarn.conf |= {"fs.defaultFS": "viewfs://mini", "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{files}"}
    yarn.rights = {"SUBMIT_APPLICATIONS": True, "ADMINISTER_QUEUE": False}
    yarn.queues = QUEUES
    return yarn


def check(folder, *words, **env):
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run([*YTF, "azkaban", "install-jobtype", "--dir", str(folder), "--check", *words], timeout=60,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT,
                          env={**kept, "YTF_SITE": "/dev/null", "COLUMNS": "300", **env})  # fmt: skip


@pytest.mark.slow
def test_the_limits_name_the_cluster_and_the_queue(plugins, place, tmp_path):
    limits = tmp_path / "limits.yaml"
    limits.write_text(f"environ: {{YTF_RESOURCEMANAGER: '{place.url}'}}\nqueues: [ml]")
    write_jobtype(plugins, limits=str(limits))
    before = sorted((plugins / JOBTYPE_NAME).iterdir())
    # The launcher drops a user's name, and the variables of the limits win.
    done = check(plugins, HADOOP_USER_NAME="bob", YTF_RESOURCEMANAGER=closed_address())
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok       configuration   {place.url} from YTF_RESOURCEMANAGER" in done.stdout
    assert "may submit to ml" in done.stdout and "bob" not in done.stdout
    assert "checking as " in done.stderr
    assert sorted((plugins / JOBTYPE_NAME).iterdir()) == before and not place.apps


@pytest.mark.slow
def test_the_variables_of_the_plugin_are_checked(plugins, place):
    write_jobtype(plugins)
    with open(plugins / JOBTYPE_NAME / "plugin.properties", "a") as file:
        file.write(f"env.YTF_RESOURCEMANAGER={place.url}\n")
    done = check(plugins)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok       configuration   {place.url} from YTF_RESOURCEMANAGER" in done.stdout


@pytest.mark.slow
def test_a_fault_is_the_exit_code(plugins):
    write_jobtype(plugins)
    assert check(plugins, YTF_RESOURCEMANAGER=closed_address()).returncode == 4


def test_missing_plugin_can_not_be_checked(plugins):
    done = check(plugins)
    assert done.returncode == 2 and "does not hold this job type: install it first" in done.stderr
    assert not list(plugins.iterdir())


def test_interpreter_without_the_package_is_reported(plugins):
    write_jobtype(plugins)
    plugin = plugins / JOBTYPE_NAME / "plugin.properties"
    other = plugins / "python"
    other.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'tf_yarn_ops'\" >&2; exit 1\n")
    other.chmod(0o755)
    plugin.write_text(plugin.read_text().replace(sys.executable, str(other)))
    done = check(plugins)
    assert done.returncode == 2 and f"the job type's interpreter {other} -I can't import" in done.stderr


@pytest.mark.slow
def test_a_check_that_hangs_does_not_keep_the_command_from_ending(plugins, monkeypatch):
    write_jobtype(plugins)
    monkeypatch.setattr(checking, "examine", lambda question, on_result: Diagnosis((), hanging=True))
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    CliRunner().invoke(azkaban, ["install-jobtype", "--dir", str(plugins), "--check"])
    assert ended == [0]


@pytest.mark.slow
def test_faulty_limits_are_reported(plugins, tmp_path):
    limits = tmp_path / "limits.yaml"
    limits.write_text("queus: [ml]")
    write_jobtype(plugins, limits=str(limits))
    done = check(plugins)
    assert done.returncode == 2 and "queus: unknown key (did you mean 'queues'?)" in done.stderr
