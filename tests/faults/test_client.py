"""Faults of the client, in every gap of a submission, and every deadline once; on the real daemons."""

import signal
import sys
import time

import pytest

from support.client_process import Client
from support.fake_yarn import until
from support.faults import FOREVER, Matrix, Outcome, Rig, check, job, wanted
from tf_yarn_ops.job.parts import Deadlines, Environment
from tf_yarn_ops.runtime.common.reasons import Reason

# The first row waits for the cluster, each later one for what is played before it.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MATRIX = Matrix()

GAPS = {"before": "before the submission", "during": "during the submission", "after": "just after the submission",
        "waiting": "while it waits"}
BY_SIGNAL = {signal.SIGINT: 130, signal.SIGTERM: 143}


def unique(name):
    return f"{name} {time.monotonic_ns()}"


def signalled(number, gap):
    def play(rig):
        client = Client(rig, unique("signal"), FOREVER, gap)
        struck = time.monotonic()
        client.process.send_signal(number)
        client.process.send_signal(number)
        if gap != "waiting":
            client.go_on()
        code, report = client.end()
        seconds = time.monotonic() - struck
        assert code == BY_SIGNAL[number], report
        known = client.applications()
        assert len(known) <= 1
        ids = {*known, *filter(None, [report["application_id"]])}
        return Outcome(Reason(report["reason"]), seconds, tuple(ids), rig.left(*ids), report["message"])
    return play


def killed(gap):
    def play(rig):
        run_id, gate = unique("sigkill"), rig.folder / f"gate {time.monotonic_ns()}"
        command = f"until [ -e '{gate}' ]; do sleep 0.1; done"
        client = Client(rig, run_id, command, gap)
        struck = time.monotonic()
        client.process.kill()
        client.process.communicate(timeout=20)
        again = Client(rig, run_id, command)
        gate.touch()
        code, report = again.end()
        seconds = time.monotonic() - struck
        assert (code, again.applications()) == (0, [report["application_id"]])
        return Outcome(Reason(report["reason"]), seconds, tuple(again.applications()),
                       rig.left(*again.applications()))  # fmt: skip
    return play


for _gap, _when in GAPS.items():
    for _number in BY_SIGNAL:
        MATRIX.row(f"the client gets {_number.name} {_when}", Reason.KILLED, 60)(signalled(_number, _gap))
    MATRIX.row(f"the client gets SIGKILL {_when} and is called again", Reason.SUCCEEDED, 240)(killed(_gap))


@MATRIX.row("the client gets SIGKILL while it waits and is not called again, lease of 20 s", Reason.LEASE_EXPIRED, 120)
def left_alone(rig):
    """A client without a name for its training has a lease by default; here it is a short one."""
    tag = f"left-{time.monotonic_ns()}"
    client = Client(rig, None, FOREVER, options=["--lease", "20", "--tag", tag])
    application = until(lambda: rig.launcher.resourcemanager.find([tag]), 120, 0.4)[0]["id"]
    rig.live(application)
    struck = time.time()
    client.process.kill()
    client.process.communicate(timeout=20)

    def expect(report):
        holder = f"Its last holder, ytf-submit (process {client.process.pid} on "
        assert holder in report.message and "had to renew it within 20 s." in report.message, report.message

    return rig.end(application, struck, expect=expect)


def succeeds(rig, *clients):
    started = time.monotonic()
    told = [client.end() for client in clients]
    seconds = time.monotonic() - started
    assert [code for code, _ in told] == [0] * len(clients), told
    ids = {report["application_id"] for _, report in told}
    assert ids == set(clients[0].applications()) and len(ids) == 1
    return Outcome(Reason(told[0][1]["reason"]), seconds, tuple(ids), rig.left(*ids))


@MATRIX.row("two clients race with one identity", Reason.SUCCEEDED, 240)
def racing(rig):
    run_id = unique("race")
    return succeeds(rig, *[Client(rig, run_id, "sleep 1") for _ in range(2)])


@MATRIX.row("the disk of the client's working directory is full", Reason.SUCCEEDED, 240)
def disk_full(rig):
    """No file of the client may grow by a byte, wherever it is."""
    limit = ["bash", "-c", 'trap "" XFSZ; ulimit -f 0; ! echo x 2>/dev/null >probe && exec "$@"', "bash"]
    return succeeds(rig, Client(rig, unique("full"), "true", before=["env", "-C", str(rig.folder), *limit]))


@MATRIX.row("http_proxy leads to nowhere", Reason.SUCCEEDED, 240)
def proxy(rig):
    nowhere = dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"), "http://127.0.0.1:1")
    return succeeds(rig, Client(rig, unique("proxy"), "true", **nowhere))


# -- deadlines: allocation and heartbeat are rows of test_faults_container.py, stop_grace of test_faults_program.py --


def overdue(rig, words, **deadlines):
    def expect(report):
        assert all(word in report.message for word in words), report.message

    submitted = time.time()
    return rig.end(rig.submit(job(deadlines=Deadlines(stop_grace=1, **deadlines))), submitted, expect=expect)


@MATRIX.row("the queue deadline passes", Reason.QUEUE_TIMEOUT, 90)
def queue_deadline(rig):
    """An application master needs longer than this to start, whatever the machine."""
    return overdue(rig, ["longer than the 0.1 s of the queue deadline"], queue=0.1)


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


@MATRIX.row("the execution deadline passes", Reason.EXECUTION_TIMEOUT, 240)
def execution_deadline(rig):
    return overdue(rig, ["the training took longer than 2 s", "running: worker:0"], execution=2)


@MATRIX.row("the total deadline passes", Reason.TOTAL_TIMEOUT, 240)
def total_deadline(rig):
    return overdue(rig, ["the job took longer than 6 s"], total=6)


@MATRIX.row("YARN's lifetime of the application passes", Reason.TOTAL_TIMEOUT, 60)
def lifetime(rig):
    def blow(application):
        rig.launcher.resourcemanager.set_lifetime(application, time.time() + 1)

    return rig.strike(job(), blow)


@pytest.fixture(scope="module")
def played(request, minicluster, tmp_path_factory):
    rig = Rig(minicluster)
    rig.folder = tmp_path_factory.mktemp("clients")
    with MATRIX.playing(rig, wanted(request)) as played:
        yield played


@pytest.mark.parametrize("row", MATRIX.rows, ids=lambda row: row.fault)
def test_a_fault_of_the_client_or_of_time_ends_as_the_matrix_says(row, played):
    check(row, played)
