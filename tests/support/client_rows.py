"""The rows of the fault matrix that strike at a client; played on a plain and on a secured cluster."""

import shutil
import signal
import time
from dataclasses import replace

from support.client_process import Client
from support.faults import FOREVER, Matrix, Outcome, once
from support.hadoop.hosts import set_by_clock
from support.waiting import until
from tf_yarn_ops.runtime.common.reasons import Reason

MATRIX = Matrix()
ROWS = MATRIX.rows
#: A client of a secured cluster has nothing on PATH.
BASH, ENV = shutil.which("bash"), shutil.which("env")

GAPS = {
    "before": "before the submission",
    "during": "during the submission",
    "after": "just after the submission",
    "waiting": "while it waits",
}
#: Words in front of a client: no file of it may grow by a byte, wherever it is.
FULL_DISK = [BASH, "-c", 'trap "" XFSZ; ulimit -f 0; ! echo x 2>/dev/null >probe && exec "$@"', BASH]
#: A task that YARN's SIGTERM does not end.
STUBBORN = "trap '' TERM; while :; do sleep 1; done"
#: Variables of proxies that are not there.
NO_PROXIES = dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"), "http://127.0.0.1:1")
BY_SIGNAL = {signal.SIGINT: 130, signal.SIGTERM: 143}


def unique(name):
    return f"{name} {time.monotonic_ns()}"


def signalled(number, gap):
    """Return a row that signals a client in a gap; a job that need not run is in the queue ``full``."""

    @once
    def play(rig):
        options = () if gap == "waiting" else ("--queue", "full")
        client = Client(rig, unique("signal"), STUBBORN, gap, options=options)
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


def killed_in(*gaps):
    """Return a row that kills a client in each of these gaps of one training; the client that comes after them ends it."""

    def play(rig):
        run_id, gate = unique("sigkill"), rig.folder / f"gate {time.monotonic_ns()}"
        command = f"until [ -e '{gate}' ]; do sleep 0.1; done"
        struck = time.monotonic()
        for gap in gaps:
            client = Client(rig, run_id, command, gap)
            client.process.kill()
            client.process.communicate(timeout=60)
        again = Client(rig, run_id, command)
        gate.touch()
        code, report = again.end()
        seconds = time.monotonic() - struck
        assert (code, again.applications()) == (0, [report["application_id"]])
        return Outcome(Reason(report["reason"]), seconds, tuple(again.applications()),
                       rig.left(*again.applications()))  # fmt: skip

    return play


killed = once(killed_in(*GAPS))
by_signal = {gap: signalled(number, gap) for number, gap in zip((*BY_SIGNAL, *BY_SIGNAL), GAPS, strict=True)}
for _number, (_gap, _when) in zip((*BY_SIGNAL, *BY_SIGNAL), GAPS.items(), strict=True):  # each signal in two gaps
    MATRIX.row(f"the client gets {_number.name} {_when}", Reason.KILLED, 60)(by_signal[_gap])
    MATRIX.row(f"the client gets SIGKILL {_when} and is called again", Reason.SUCCEEDED, 240)(killed)
MATRIX.row("YARN's kill while a task ignores SIGTERM", Reason.KILLED, 60)(by_signal["waiting"])


LEFT_ALONE = "the client gets SIGKILL while it waits and is not called again, lease of 20 s"


@MATRIX.row(LEFT_ALONE, Reason.LEASE_EXPIRED, 120)
def left_alone(rig, *options):
    """A client without a name for its training has a lease by default; here it is a short one."""
    tag = f"left-{time.monotonic_ns()}"
    client = Client(rig, None, FOREVER, options=["--lease", "20", "--tag", tag, *options])
    application = until(lambda: rig.launcher.session.resourcemanager.find([tag]), 120, 0.4)[0]["id"]
    rig.live(application)
    struck = time.time()
    client.process.kill()
    client.process.communicate(timeout=60)

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


@MATRIX.row("two clients race with one identity and clocks 10 minutes ahead and behind, lease of 20 s",
            Reason.SUCCEEDED, 240)  # fmt: skip
def racing(rig):
    """The task outlasts the lease, which both renew."""
    run_id = unique("race")
    clocks = [[ENV, *set_by_clock(rig.folder, seconds)] for seconds in (600, -600)]
    return succeeds(
        rig, *[Client(rig, run_id, "sleep 25", before=clock, options=["--lease", "20"]) for clock in clocks]
    )


@once
def without_disk_and_proxy(rig):
    """No file of the client may grow by a byte, wherever it is, and no proxy of its environment answers."""
    before = [ENV, "-C", str(rig.folder), *FULL_DISK]
    return succeeds(rig, Client(rig, unique("full"), "true", before=before, **NO_PROXIES))


MATRIX.row("the disk of the client's working directory is full", Reason.SUCCEEDED, 240)(without_disk_and_proxy)
MATRIX.row("http_proxy leads to nowhere", Reason.SUCCEEDED, 240)(without_disk_and_proxy)


KILLED_WHILE_IT_WAITS = f"the client gets SIGKILL {GAPS['waiting']} and is called again"
#: The second call finds the training by a ticket of its own; the lease is one that a ticket has set.
SECURED_ROWS = [
    replace(row, play=killed_in("waiting")) if row.fault == KILLED_WHILE_IT_WAITS else row
    for row in ROWS
    if row.fault in (KILLED_WHILE_IT_WAITS, LEFT_ALONE)
]
