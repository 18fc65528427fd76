"""A node without the interpreter of the job's environment: another Python of the node tells its name to YARN."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from support.fake_yarn import application
from support.place import ID
from support.waiting import until
from tf_yarn_ops.follow.yarn_report import read_yarn_report
from tf_yarn_ops.job.parts import Environment
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.runtime.common.contract import JOB_FILE, RUNTIME_FILE, dump_job
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.submit.application import build, build_runtime_job
from tf_yarn_ops.submit.runtime_zip import runtime_zip


@pytest.fixture
def master(yarn, tmp_path):
    """Return a function that starts the application master's script for an environment, with these programs on PATH."""
    yarn.add(application(state="RUNNING", user="ann") | {"id": ID})
    started = []

    def start(environment, programs=("python3",)):
        spec = JobSpec(command="true", tasks={"worker": TaskSpec()}, environment=Environment.parse(environment))
        job = build_runtime_job(spec)._replace(resourcemanagers=(yarn.url,), user="ann")
        (tmp_path / RUNTIME_FILE).write_bytes(runtime_zip())
        (tmp_path / JOB_FILE).write_bytes(dump_job(job))
        (tmp_path / "bin").mkdir()
        for program in programs:
            (tmp_path / "bin" / program).symlink_to(sys.executable if program == "python3" else shutil.which(program))
        script = build(spec).master.script
        started.append(
            subprocess.Popen(
                [shutil.which("bash"), "-c", script],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={"PATH": str(tmp_path / "bin"), "SKEIN_APPLICATION_ID": ID, "NM_HOST": "node7"},
                start_new_session=True,
            )
        )
        return started[0]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "interpreter"),
    [
        ("venv:///opt/no such $folder", "/opt/no such $folder/bin/python"),
        ("python:///opt/python3", "/opt/python3"),
        ("environment.tar.gz", "environment/bin/python"),
    ],
)
def test_the_report_names_the_interpreter_and_the_host(yarn, master, environment, interpreter):
    master(environment)
    until(lambda: yarn.apps[ID]["state"] == "KILLED")
    report = read_yarn_report(yarn.apps[ID])
    assert (report.reason, report.final_status) == (Reason.ENVIRONMENT_INVALID, "KILLED")
    assert report.message == (
        f"there is no Python {interpreter} on node7: correct the environment, or name one that every "
        "node has (venv:///folder, python:///path, or an archive with bin/python)"
    )


def test_without_any_python_the_exit_code_says_so(yarn, master):
    process = master("venv:///nowhere", ())
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 127 and "python3" in output


def test_a_reader_of_skeins_text_says_what_to_set():
    skein = "Application driver failed with exit code 127, see logs for more information."
    report = read_yarn_report(application(state="FAILED", finalStatus="FAILED", diagnostics=skein))
    assert report.reason is Reason.ENVIRONMENT_INVALID
    assert report.message.startswith(f"The node of the application master could not start the job's Python: {skein}")
    assert "Name an environment that every node has" in report.message
