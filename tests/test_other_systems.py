"""Machines that submit may lack what only Unix has: macOS and Windows, as far as Linux can stand in for them."""

import json
import os
import subprocess
import sys
import tempfile
from functools import partial

import pytest

from support.fake_yarn import STAMP, FakeYarn, application, serving, verdict_text
from support.place import ID, USER, Place
from support.programs import ROOT
from tf_yarn_ops.runtime.common.contract import RETURNED
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, TaskReport

#: Others may import these modules, as asyncio has other ones on Windows; the calls are gone for everybody.
NO_UNIX = """\
import asyncio, builtins, ctypes, os, platform, signal, sys, sysconfig, urllib.request

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
sysconfig.get_config_vars()  # of this machine
sys.platform, platform.machine = "darwin", lambda: "arm64"
"""
LOG = "=====\nLogType:worker.log\nLogLength:8\nLogContents:\ntrained\nEnd of LogType:worker.log\n*****\n\n"
SUBMIT = "from tf_yarn_ops.cli import submit_main; submit_main()"
YTF = "from tf_yarn_ops.cli import main; main()"
FUNCTION = """
import tf_yarn_ops
try:
    print(tf_yarn_ops.run(lambda: 7, {"worker": 1}, cluster=sys.argv[1]).value)
except tf_yarn_ops.SpecInvalid as error:
    sys.exit(str(error))
"""
#: Without a scheduler. Airflow imports psutil, which needs its library for the platform.
OPERATOR = """
sys.platform = "linux"
sys.path.insert(0, "tests")
import tf_yarn_ops.airflow as ours
from support import airflow_setup
from tf_yarn_ops.airflow import execution, outcome, streamed_log, task_instance
loaded = [getattr(ours, name) for name in ours.__all__]
operator = ours.TensorFlowYarnOperator(task_id="train", cluster_requirement="worker:1", task_command="true")
operator.execute(airflow_setup.context_of(airflow_setup.TaskInstance()))
"""


def run(script, *words, timeout=60, **variables):
    """Run a script in a Python without Unix; return how it ended."""
    with tempfile.TemporaryDirectory() as home:  # Airflow writes there.
        env = {"PATH": os.environ["PATH"], "HOME": home, "USER": USER, "YTF_SITE": "", **variables}
        return subprocess.run(
            [sys.executable, "-c", NO_UNIX + script, *words],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
def place(tmp_path):
    """Return a `Place` where every job succeeds at once."""
    with serving(yarn := FakeYarn()):
        made = Place(yarn, tmp_path / "files")
        container = f"container_{STAMP}_0001_01_000002"
        task = TaskReport(
            "worker:0",
            "succeeded",
            container_id=container,
            log_url=f"{yarn.url}/node/containerlogs/{container}/{USER}/worker.log",
        )
        yarn.pages[f"/ws/v1/node/containerlogs/{container}/worker.log"] = ("text/plain", LOG)
        report = JobReport(
            ID,
            state="FINISHED",
            final_status="SUCCEEDED",
            reason=Reason.SUCCEEDED,
            tasks=(task,),
            metrics={RETURNED: 7},
        )

        def end(method, path):
            if "body" in yarn.apps.get(ID, ()):
                made.end()

        made.end = partial(yarn.end, ID, verdict_text(report), "FINISHED", "SUCCEEDED")
        yarn.faults.append(end)
        yield made


#: Import each module of Unix as others do, then as a module of ours does.
IMPORT_UNIX = """
for name in sorted(UNIX):
    exec(f"import {name}", {"__name__": "any"})
    try:
        exec(f"import {name}", {"__name__": "tf_yarn_ops.any"})
    except ModuleNotFoundError as error:
        print(error.name)
"""


def test_a_module_of_unix_is_missing_for_us_alone():
    done = run(IMPORT_UNIX)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"]


def test_ytf_submit_submits_and_follows_without_unix(place):
    done = run(SUBMIT, "--resourcemanager", place.url, "--wait", "-r", "worker:1", "true")
    assert (done.returncode, done.stdout.split()) == (0, [ID]), done.stderr
    assert place.yarn.apps[ID]["user"] == USER


def test_function_runs_without_unix(place):
    done = run(FUNCTION, place.url)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "command, shown", [("status", "RUNNING"), ("logs", "trained"), ("kill", "KILLED"), ("list", ID)]
)
def test_ytf_reads_and_kills_without_unix(place, command, shown):
    place.yarn.add(application(user=USER))
    if command == "logs":
        place.end()
    done = run(YTF, command, *([] if command == "list" else [ID]), "--resourcemanager", place.url)
    assert done.returncode == 0 and shown in done.stdout + done.stderr, done


@pytest.mark.slow
def test_airflow_runs_its_operator_and_loads_the_rest_without_unix(place):
    done = run(
        OPERATOR,
        timeout=120,
        AIRFLOW_VAR_TF_YARN_DEPLOYMENT_ID="test",
        AIRFLOW_VAR_TF_YARN_MACHINES="{}",
        AIRFLOW_CONN_TF_YARN_DEFAULT=json.dumps({"conn_type": "tf_yarn", "host": place.url}),
    )
    assert done.returncode == 0, done.stderr
    assert place.yarn.apps[ID]["user"] == USER


@pytest.mark.slow
@pytest.mark.parametrize(
    "script, words, sentence",
    [
        (SUBMIT, ["--local", "-r", "worker:1", "true"], "local:// runs jobs on Linux only; name a cluster"),
        (FUNCTION, ["local://"], "local:// runs jobs on Linux only; name a cluster"),
        (YTF, ["status", "local_1700000000000_0001"], "local:// runs jobs on Linux only; name a cluster"),
        (YTF, ["minicluster", "up"], "a minicluster runs on Linux only"),
        (SUBMIT, ["--client", "-r", "worker:1", "true"], "--client runs the command here, on Linux only"),
        (SUBMIT, ["--submit_with", "skein", "-r", "worker:1", "true"], "Skein's Java client runs on Linux only"),
        (
            SUBMIT,
            ["--environment", "requirements://constraints.txt", "-r", "worker:1", "true"],
            "requirements:// locks its cache",
        ),
        (YTF, ["list"], "no ResourceManager is known. Give --resourcemanager"),
    ],
)
def test_what_needs_linux_is_refused_with_a_sentence(place, script, words, sentence):
    done = run(script, *words, **({} if script == YTF else {"YTF_RESOURCEMANAGER": place.url}))
    assert done.returncode in (1, 2, 3, 4) and sentence in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_apple_silicon_packs_for_linux_by_default():
    done = run("from tf_yarn_ops.environments.pack import Packing\nprint(Packing().platform, Packing().is_foreign)")
    assert done.stdout == "linux-aarch64 True\n", done.stderr
