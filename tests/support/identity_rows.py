"""Exactly one application trains for one identity; on a plain and on a secured cluster."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.cluster_jobs import job
from support.faults import processes_of
from support.gaps import GAPS, STOP_IN_GAPS
from support.two_nodes import directories
from support.waiting import until
from tf_yarn_ops.errors import Superseded
from tf_yarn_ops.hadoop.resourcemanager import LIVE
from tf_yarn_ops.launch.claims import Claims
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.reasons import Reason


def found(launcher, identity):
    return launcher.session.resourcemanager.find(tags=[identity.tag])


def live(launcher, identity):
    return [item["id"] for item in found(launcher, identity) if item["state"] in LIVE]


def claimed(launcher, identity):
    """Return the applications that clients have claimed for an identity."""
    claim = Claims(launcher.session, None, identity).latest()
    return {claim.application_id} if claim else set()


#: A client in a process of its own; it stops at a gap, which is named on its command line.
CLIENT = (
    """\
import json, os, signal, sys, time
from tf_yarn_ops.launch import launcher as launchers
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.errors import Cancelled
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.job.spec import JobSpec

url, spec, key, gap = sys.argv[1:]
launcher = launchers.Launcher(discover(url))
signal.signal(signal.SIGTERM, lambda number, frame: launcher.cancel())

def stop(name):
    if name == gap:
        print("stopped", flush=True)
        sys.stdin.readline()

"""
    + STOP_IN_GAPS
    + """
identity = Identity(key)
try:
    report = launcher.ensure(JobSpec.from_dict(json.loads(spec)), identity)
    if gap == "waiting":
        print("stopped", flush=True)
    launcher.wait(report.application_id, identity=identity)
except Cancelled:
    sys.exit(143)
"""
)


#: A training that goes on, once it has room.
LASTING = job("sleep 600")


def client_in(access, identity, gap, spec):
    words = [access.hadoop.resourcemanager_url, json.dumps(spec.to_dict()), identity.key, gap]
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=access.environ,
        text=True,
    )
    assert process.stdout.readline() == "stopped\n"
    return process


def killed_in_a_gap_and_called_again_trains_once(access, launcher, gap, spec=LASTING):
    identity = Identity(f"sigkill {gap} {time.time()}")
    process = client_in(access, identity, gap, spec)
    process.kill()
    process.wait(60)
    before = live(launcher, identity)
    assert len(before) == (gap in ("submitted", "marked", "waiting"))
    report = launcher.ensure(spec, identity)
    assert live(launcher, identity) == [report.application_id]
    assert before in ([], [report.application_id])
    assert len(found(launcher, identity)) == 1
    if gap in ("claimed", "staging"):  # what the dead client had claimed was submitted, not something else
        assert Claims(launcher.session, None, identity).latest().number == 0
    assert launcher.kill(report.application_id, "enough").reason is Reason.KILLED
    until(lambda: report.application_id not in directories(launcher))


def term_in_a_gap_leaves_nothing(access, launcher, gap, spec=LASTING):
    identity = Identity(f"term {gap} {time.time()}")
    process = client_in(access, identity, gap, spec)
    process.send_signal(signal.SIGTERM)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(60) == 143
    assert live(launcher, identity) == []
    applications = {item["id"] for item in found(launcher, identity)} | claimed(launcher, identity)
    until(lambda: not applications & set(directories(launcher)), 60)
    for item in found(launcher, identity):
        until(lambda item=item: not processes_of(item["id"]))


def a_failed_attempt_is_not_repeated_but_the_next_one_trains(access, launcher):
    key = f"retry {time.time()}"
    first = launcher.ensure(job("exit 3"), Identity(key, attempt=1))
    assert launcher.wait(first.application_id, timeout=120).reason is Reason.TASK_FAILED
    next_attempt_trains(access, launcher, key, first)


def next_attempt_trains(access, launcher, key, first):
    """Call again the first attempt, which has failed, and then the next one."""
    assert launcher.ensure(job("exit 3"), Identity(key, attempt=1)).application_id == first.application_id
    second = launcher.ensure(job("true"), Identity(key, attempt=2))
    assert second.application_id != first.application_id
    assert launcher.wait(second.application_id, timeout=120).reason is Reason.SUCCEEDED
    assert access.launcher().ensure(job("true"), Identity(key, attempt=9)).reason is Reason.SUCCEEDED
    assert len(found(launcher, Identity(key))) == 2


def a_stale_older_generation_wakes_up(access, launcher, spec=LASTING):
    key = f"stale {time.time()}"
    old = client_in(access, Identity(key), "claimed", spec)  # generation 0, stopped before its submission
    newer = launcher.ensure(spec, Identity(key, generation=1))
    old.stdin.write("\n")
    old.stdin.flush()
    assert old.wait(60) == 1  # Superseded
    assert live(launcher, Identity(key)) == [newer.application_id]
    with pytest.raises(Superseded, match=newer.application_id):
        launcher.ensure(spec, Identity(key, generation=0, attempt=5))
    report = launcher.ensure(spec, Identity(key, generation=2))
    assert live(launcher, Identity(key)) == [report.application_id]
    assert launcher.report(newer.application_id).reason is Reason.SUPERSEDED
    launcher.kill(report.application_id, "enough")


def a_race_trains_once(access, launcher):
    identity = Identity(f"race {time.time()}")

    def client(_):
        one = access.launcher()
        report = one.ensure(job("sleep 0.2"), identity)
        return one.wait(report.application_id, identity=identity, timeout=300)

    with ThreadPoolExecutor(2) as pair:
        first, second = pair.map(client, range(2))
    assert first == second and first.reason is Reason.SUCCEEDED
    assert [item["id"] for item in found(launcher, identity)] == [first.application_id]


def play_at_once(access, launcher, everything):
    """Play the rows, a few at a time; otherwise those with SIGKILL before, and SIGTERM behind a submission."""
    all_gaps = [*GAPS, "waiting"]
    rows = [(killed_in_a_gap_and_called_again_trains_once, gap) for gap in (all_gaps if everything else ["claimed"])]
    rows += [(term_in_a_gap_leaves_nothing, gap) for gap in (all_gaps if everything else ["submitted"])]
    if everything:
        rows += [
            (a_failed_attempt_is_not_repeated_but_the_next_one_trains,),
            (a_stale_older_generation_wakes_up,),
            (a_race_trains_once,),
        ]
    with ThreadPoolExecutor(4) as pool:
        played = [pool.submit(row, access, launcher, *more) for row, *more in rows]
    for row in played:
        row.result()
