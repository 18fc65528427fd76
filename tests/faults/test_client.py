"""Faults of the client, in every gap of a submission, and every deadline once; on the real daemons."""

import signal
import subprocess
import sys
import time

import pytest

from support.client_rows import LEFT_ALONE, ROWS, left_alone
from support.faults import FOREVER, Matrix, Rig, check, job
from tf_yarn_ops.job.parts import Deadlines, Environment
from tf_yarn_ops.runtime.common.reasons import Reason

# The first row waits for the cluster, each later one for what is played before it.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MATRIX = Matrix()

#: Without Skein's client, tests/secure/test_pairs.py leaves a job alone.
MATRIX.rows += [row for row in ROWS if row.fault != LEFT_ALONE]


@MATRIX.row(f"{LEFT_ALONE}, submitted by Skein's client", Reason.LEASE_EXPIRED, 120)
def left_alone_by_skein(rig):
    return left_alone(rig, "--submit_with", "skein")


PROGRAM = f"""\
import sys
from tf_yarn_ops import JobSpec, Launcher, TaskSpec, discover

job = JobSpec(command="{FOREVER}", tasks={{"worker": TaskSpec(memory=256)}}, environment=f"venv://{{sys.prefix}}",
              lease=20, queue=sys.argv[2])
launcher = Launcher(discover())

def on_change(report):
    print(report.application_id, flush=True)

if sys.argv[1] == "run":
    launcher.run(job, on_change=on_change)
else:
    launcher.wait(launcher.submit(job), on_change=on_change)
"""


def program(rig, call, number, expect=None, queue="default"):
    """Send a signal to a Python program that waits for its training: for its end, or in the queue ``full`` for its start."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, call, queue],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=rig.folder,
        env=rig.access.environ,
    )
    application = process.stdout.readline().strip()
    if queue != "full":
        rig.live(application)
    struck = time.time()
    process.send_signal(number)
    process.wait(60)
    outcome = rig.end(application, struck, expect=expect)
    return outcome, process.communicate(timeout=60)[1], application


@MATRIX.row("a Python program gets SIGINT in Launcher.run", Reason.KILLED, 60)
def ctrl_c_in_run(rig):
    outcome, err, application = program(rig, "run", signal.SIGINT)
    assert f"killing {application}" in err and "KeyboardInterrupt" in err, err
    return outcome


@MATRIX.row("a Python program gets SIGINT in Launcher.wait", Reason.KILLED, 60)
def ctrl_c_in_wait(rig):
    return program(rig, "wait", signal.SIGINT, queue="full")[0]


@MATRIX.row("a Python program gets SIGKILL in Launcher.run, lease of 20 s", Reason.LEASE_EXPIRED, 120)
def python_killed(rig):
    def expect(report):
        assert "Its last holder, a Python program (process " in report.message, report.message

    return program(rig, "run", signal.SIGKILL, expect)[0]


# -- deadlines: allocation and heartbeat are rows of test_container.py, the others of test_program.py --


@MATRIX.row("the queue deadline passes", Reason.QUEUE_TIMEOUT, 90)
def queue_deadline(rig):
    def expect(report):
        assert "longer than the 0.1 s of the queue deadline" in report.message, report.message

    submitted = time.time()
    spec = job(queue="full", deadlines=Deadlines(stop_grace=1, queue=0.1))
    return rig.end(rig.submit(spec), submitted, expect=expect)


@MATRIX.row("the registration deadline passes", Reason.REGISTRATION_TIMEOUT, 240)
def registration_deadline(rig):
    """The interpreter hangs where it should be an agent."""
    home = rig.folder / "hangs"
    (home / "bin").mkdir(parents=True)
    python = home / "bin" / "python"
    python.write_text(f'#!/bin/bash\ncase " $* " in *" agent "*) exec sleep 600;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)

    def expect(report):
        assert "no agent registered within 4 s from worker_0" in report.message, report.message

    submitted = time.time()
    spec = job(environment=Environment("venv", str(home)), deadlines=Deadlines(stop_grace=1, registration=4))
    return rig.end(rig.submit(spec), submitted, expect=expect)


@MATRIX.row("YARN's lifetime of the application passes", Reason.TOTAL_TIMEOUT, 60)
def lifetime(rig):
    def blow(application):
        rig.launcher.session.resourcemanager.set_lifetime(application, time.time() + 5)

    return rig.strike(job(), blow)


@pytest.fixture(scope="module")
def rig(minicluster, tmp_path_factory):
    rig = Rig(minicluster)
    rig.folder = tmp_path_factory.mktemp("clients")
    return rig


@pytest.mark.parametrize("row", MATRIX.rows, ids=str)
def test_a_fault_of_the_client_or_of_time_ends_as_the_matrix_says(row, played):
    check(row, played)
