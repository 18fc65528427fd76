"""Faults of YARN and HDFS themselves, on two NodeManagers of this file's own."""

import contextlib
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from support.faults import Matrix, Outcome, Rig, check, job, kill, once, processes_of
from support.hadoop import HadoopCluster
from support.recovery import slow_recovery
from support.waiting import until
from tf_yarn_ops.doctor.examination import examine
from tf_yarn_ops.doctor.known import Question
from tf_yarn_ops.doctor.symptoms import Symptom
from tf_yarn_ops.errors import ClusterUnreachable, LogMissing
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.runtime.common.reasons import Reason

# The first row waits for the cluster, each later one for what is played before it.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MATRIX = Matrix()
OUTAGE = 20
EXPIRY = r"(<name>yarn.nm.liveness-monitor.expiry-interval-ms</name><value>)\d+"


def expire_after(cluster, seconds):
    """Let nodes that are silent for so long be lost; the ResourceManager reads it when it is restarted."""
    path = cluster.directory / "conf" / "yarn-site.xml"
    text, found = re.subn(EXPIRY, rf"\g<1>{seconds * 1000}", path.read_text())
    assert found
    path.write_text(text)


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    queue = "yarn.scheduler.capacity.root"
    stopped = {
        f"{queue}.queues": "default,low,stopped",
        f"{queue}.stopped.capacity": "0",
        f"{queue}.stopped.state": "STOPPED",
    }
    with HadoopCluster(tmp_path_factory.mktemp("faults"), nodes=2, properties=stopped) as cluster:
        expire_after(cluster, 60)
        yield cluster


def gated(rig, name, **fields):
    """Return a job that ends well once its gate is opened, and the gate."""
    gate = rig.hadoop.directory / f"gate-{name}"
    return job(f"until [ -e {gate} ]; do sleep 0.1; done", **fields), gate


def went_on(report):
    assert len(report.rounds) == 1 and all(task.starts == 1 for task in report.tasks), report


# -- what is refused ------------------------------------------------------------------------------


@MATRIX.row("the queue does not exist", Reason.SUBMISSION_REJECTED, 30, alone=True)
def no_queue(rig):
    return rig.refused(lambda: rig.submit(job(queue="nowhere")))


@MATRIX.row("a request above the maximum allocation", Reason.RESOURCES_IMPOSSIBLE, 30, alone=True)
def above_maximum(rig):
    return rig.refused(lambda: rig.submit(job(tasks={"worker": TaskSpec(memory="900g")})))


def admin(rig, *words):
    subprocess.run(words, env={**os.environ, **rig.hadoop.environ}, check=True, capture_output=True, timeout=90)


@MATRIX.row("the queue is stopped", Reason.SUBMISSION_REJECTED, 30, alone=True)
def stopped_queue(rig):
    return rig.refused(lambda: rig.submit(job(queue="stopped")), "STOPPED")


@once
def namenode_without_datanode(rig):
    """Submit to a NameNode in safe mode, then out of it; return both refusals.

    It has not seen its DataNode since its start.
    """
    rig.hadoop.stop_daemon("dn", signal.SIGKILL)
    rig.hadoop.stop_daemon("nn", signal.SIGKILL)
    rig.hadoop.start_daemon("nn")
    try:
        admin(rig, "hdfs", "dfsadmin", "-safemode", "enter")
        safe = rig.refused(lambda: rig.submit(job()), "safe mode")
        admin(rig, "hdfs", "dfsadmin", "-safemode", "leave")
        found = {
            result.check: result.finding
            for result in examine(Question({**os.environ, **rig.hadoop.environ}, rig.url)).results
        }
        assert found["staging"].symptom is Symptom.STAGING_NOT_NOW, found
        return safe, rig.refused(lambda: rig.submit(job()), "no DataNode for the content now")
    finally:
        rig.hadoop.start_daemon("dn")
        until(lambda: takes_files(rig))


@MATRIX.row("the NameNode is in safe mode at the submission", Reason.CLUSTER_UNREACHABLE, 30, alone=True)
def safe_mode(rig):
    return namenode_without_datanode(rig)[0]


@MATRIX.row("HDFS has no live DataNode at the submission", Reason.CLUSTER_UNREACHABLE, 30, alone=True)
def no_datanode(rig):
    return namenode_without_datanode(rig)[1]


def takes_files(rig):
    with contextlib.suppress(ClusterUnreachable):
        return rig.launcher.session.staging(rig.launcher.cluster.user).filesystem.create(
            f"/tmp/{time.monotonic_ns()}", b"x", 0o600
        )
    return False


# -- the ResourceManager ----------------------------------------------------------------------------


@once
def outage(rig):
    """Play one outage of 20 s for five rows: two jobs that run, two clients that wait, one that submits.

    The first job ends while the restarted ResourceManager still recovers its applications.
    """
    first, first_gate = gated(rig, "recovery")
    spec, gate = gated(rig, "outage", lease=240)  # the outage is shorter than three quarters of it
    ending, application = rig.submit(first), rig.submit(spec)
    for name in (ending, application):
        rig.live(name)
    found, before = SimpleNamespace(application=application), rig.traces()
    impatient = rig.new_launcher(unreachable_timeout=5)

    def gives_up(call):
        started = time.monotonic()
        with pytest.raises(ClusterUnreachable) as raised:
            call()
        return raised.value, time.monotonic() - started

    def wait_and_submit():
        found.struck = time.time()
        found.waiting = pool.submit(rig.end, application, found.struck, expect=went_on)
        gave_up = pool.submit(gives_up, lambda: impatient.wait(application, poll_interval=0.2))
        found.refused = gives_up(lambda: rig.submit(job()))
        found.gave_up = gave_up.result()
        until(lambda: time.time() - found.struck > OUTAGE, 60, 0.5)

    expire_after(rig.hadoop, 15)
    with ThreadPoolExecutor(3) as pool:
        with slow_recovery(rig.hadoop, wait_and_submit):
            ended = pool.submit(rig.end, ending, time.time(), expect=went_on)
            first_gate.touch()
            until(lambda: not rig.commands(ending))
        gate.touch()
        found.patient, found.recovery = found.waiting.result(), ended.result()
    new = tuple(rig.traces() - before)
    found.submission = outcome_of(found.refused, new, rig.left(*new))
    found.impatient = outcome_of(found.gave_up, found.patient.applications, found.patient.left)
    return found


def outcome_of(told, applications, left):
    error, seconds = told
    return Outcome(error.reason, seconds, applications, left, str(error))


@MATRIX.row(
    "the job ends while a restarted ResourceManager still recovers its applications", Reason.SUCCEEDED, 180, alone=True
)
def rm_recovers(rig):
    return outage(rig).recovery


@MATRIX.row("the ResourceManager is restarted while the job runs", Reason.SUCCEEDED, 180, alone=True)
def rm_restart(rig):
    found = outage(rig)
    assert "Attempt recovered" in rig.launcher.session.resourcemanager.get(found.application)["diagnostics"]
    return found.patient


@MATRIX.row("the ResourceManager is down for 20 s while a client waits", Reason.SUCCEEDED, 180, alone=True)
def rm_down_while_waiting(rig):
    return outage(rig).patient


@MATRIX.row("the ResourceManager is down at the submission", Reason.CLUSTER_UNREACHABLE, 30, alone=True)
def rm_down_at_submission(rig):
    return outage(rig).submission


@MATRIX.row(
    "the ResourceManager is down for longer than unreachable_timeout (5 s)", Reason.CLUSTER_UNREACHABLE, 30, alone=True
)
def rm_down_for_too_long(rig):
    return outage(rig).impatient


# -- nodes --------------------------------------------------------------------------------------


def node_of(rig, container):
    """Return the daemon's name of the NodeManager below which a container's agent runs."""
    for name in ("nm", "nm2"):
        if f"{rig.hadoop.directory}/{name}/" in container:
            return name
    raise AssertionError(container)


def spread(rig, spec):
    """Submit a job of two workers on two nodes; give it with the node that has no application master."""
    application = rig.submit(spec)
    rig.live(application)
    homes = {os.readlink(f"/proc/{pid}/cwd") for pid in rig.agents(application)}
    assert {node_of(rig, home) for home in homes} == {"nm", "nm2"}
    masters = node_of(rig, os.readlink(f"/proc/{rig.master(application)}/cwd"))
    return application, next(name for name in ("nm", "nm2") if name != masters)


BIG = {"worker": TaskSpec(instances=2, memory=9 * 1024)}


def both_nodes(rig):
    until(lambda: len(rig.launcher.session.resourcemanager.nodes()) == 2)


@MATRIX.row("a worker's NodeManager is frozen (SIGSTOP)", Reason.NODE_LOST, 180, alone=True)
def nm_sigstop(rig):
    both_nodes(rig)
    application, victim = spread(rig, job(tasks=BIG))
    pid = rig.hadoop.pid(victim)
    struck = time.time()
    kill(pid, signal.SIGSTOP)
    try:
        outcome = rig.end(application, struck)
        lost = next(task.task for task in rig.launcher.report(application).tasks if task.state == "lost")
        with pytest.raises(LogMissing, match="NodeManager hangs"):
            list(rig.launcher.log(application, lost))
        return outcome
    finally:
        kill(pid, signal.SIGCONT)


@once
def node_killed(rig):
    """Kill a NodeManager, and all that it runs of the job whose master it has; return what became of two jobs.

    A worker of the other job goes on, on the dead node. It stays away: no row follows.
    """
    both_nodes(rig)
    application, victim = spread(rig, job(tasks=BIG))
    # Only the node without the first master has room for this one, and then none for its worker.
    room = rig.hadoop.settings.memory - BIG["worker"].memory
    mastered = rig.submit(job(am_memory=room, tasks={"worker": TaskSpec(memory=room // 2)}))
    rig.live(mastered)
    mark = f"{rig.hadoop.directory}/{victim}/"
    assert node_of(rig, os.readlink(f"/proc/{rig.master(mastered)}/cwd")) == victim
    struck = time.time()
    rig.hadoop.stop_daemon(victim, signal.SIGKILL)
    for number in (signal.SIGSTOP, signal.SIGKILL):  # all at one moment: the master must not see its driver end
        for pid, _ in processes_of(mastered):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/cwd").startswith(mark):
                    os.kill(pid, number)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda name: rig.end(name, struck), (application, mastered)))


@MATRIX.row("a worker's NodeManager gets SIGKILL and stays away", Reason.NODE_LOST, 180, alone=True)
def nm_sigkill(rig):
    return node_killed(rig)[0]


@MATRIX.row("the node of the application master is lost", Reason.NODE_LOST, 180, alone=True)
def masters_node(rig):
    """A SIGKILL of everything that the node runs of a job, as a power failure does."""
    return node_killed(rig)[1]


@pytest.fixture(scope="module")
def rig(hadoop):
    return Rig(hadoop)


@pytest.mark.parametrize("row", MATRIX.rows, ids=str)
def test_a_fault_of_the_cluster_ends_as_the_matrix_says(row, played):
    check(row, played)
