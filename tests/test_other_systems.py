"""Machines that submit may lack what only Unix has: macOS and Windows, as far as Linux can stand in for them."""

import os
import subprocess
import sys
import tempfile

import pytest

from support.fake_yarn import FakeYarn, serving
from support.place import ID, USER, Place
from support.programs import ROOT
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, compose_diagnostics

#: Others may import these modules, as asyncio has other ones on Windows; the calls are gone for everybody.
NO_UNIX = """\
import asyncio, builtins, ctypes, os, signal, sys

UNIX = {"pwd", "grp", "fcntl", "resource", "termios", "tty", "pty", "syslog"}
real_import, real_library = builtins.__import__, ctypes.CDLL

def import_of_windows(name, globals=None, *others, **options):
    if name in UNIX and (globals or {}).get("__name__", "").startswith("tf_yarn_ops"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real_import(name, globals, *others, **options)

def library_of_windows(name, *others, **options):
    if name is None:
        raise TypeError("bad argument type for built-in operation")
    return real_library(name, *others, **options)

builtins.__import__, ctypes.CDLL = import_of_windows, library_of_windows
for module, names in ((os, "getuid geteuid getgid fork setsid killpg uname"), (signal, "SIGKILL SIGHUP SIGCHLD SIGUSR1")):
    for name in names.split():
        delattr(module, name)
"""


def run(script, *words, timeout=60):
    """Run a script in a Python without Unix; return how it ended."""
    with tempfile.TemporaryDirectory() as home:  # Airflow writes there.
        env = {"PATH": os.environ["PATH"], "HOME": home, "USER": USER, "YTF_SITE": ""}
        return subprocess.run([sys.executable, "-c", NO_UNIX + script, *words], capture_output=True, text=True,
                              timeout=timeout, cwd=ROOT, env=env, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("name", ["pwd", "fcntl", "resource", "termios"])
def test_a_module_of_unix_is_missing_for_us_alone(name):
    ours = f"exec('import {name}', {{'__name__': 'tf_yarn_ops.any'}})"
    assert f"No module named '{name}'" in run(ours).stderr
    assert run(f"import {name}").returncode == 0


def test_ytf_submit_submits_and_follows_without_unix(tmp_path):
    with serving(yarn := FakeYarn()):
        place = Place(yarn, tmp_path / "files")
        report = JobReport(ID, state="FINISHED", final_status="SUCCEEDED", reason=Reason.SUCCEEDED)

        def end(method, path):
            if ID in yarn.apps:
                yarn.end(ID, compose_diagnostics(report), "FINISHED", "SUCCEEDED")

        yarn.faults.append(end)
        done = run("from tf_yarn_ops.cli import submit_main; submit_main()",
                   "--resourcemanager", yarn.url, "--wait", "-r", "worker:1", "true")
    assert (done.returncode, done.stdout.split()) == (0, [ID]), done.stderr
    assert place.yarn.apps[ID]["user"] == USER


@pytest.mark.slow
def test_airflow_loads_its_operator_and_the_rest_without_unix():
    done = run("import tf_yarn_ops.airflow as ours\n"
               "from tf_yarn_ops.airflow import execution, outcome, streamed_log, task_instance\n"
               "names = [getattr(ours, name) for name in ours.__all__]\n"
               "ours.TensorFlowYarnOperator(task_id='a', cluster_requirement='worker:1', task_command='true')\n"
               "print(len(names))\n", timeout=120)
    assert int(done.stdout.split()[-1]) > 10, done.stderr
