"""Faults of containers, connections, the coordinator and Skein's application master, on the real daemons."""

import contextlib
import ctypes
import itertools
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.faults import FOREVER, Matrix, Rig, check, job, kill, once
from support.waiting import until
from tf_yarn_ops.hadoop.site import PORTS
from tf_yarn_ops.job.parts import Deadlines, Environment, RestartPolicy
from tf_yarn_ops.job.spec import TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.submit.certificate import mint

# The first row waits for the cluster, each later one for what is played before it.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MATRIX = Matrix()
SMALL = {"memory": 256}


def says(*words):
    def expect(report):
        assert all(word in report.message for word in words), report.message

    return expect


# -- containers -----------------------------------------------------------------------------------


@MATRIX.row("YARN kills the container of a ps, only workers may be lost", Reason.CONTAINER_LOST, 90)
def killed_by_yarn(rig):
    def blow(application):
        container = rig.container(application, "ps:0")
        path = f"/ws/v1/cluster/containers/{container}/signal/FORCEFUL_SHUTDOWN"
        answer = rig.launcher.session.resourcemanager.request("POST", path)
        assert answer.status_code == 200, answer.text

    spec = job(losses=3, tasks={"worker": TaskSpec(**SMALL), "ps": TaskSpec(**SMALL, max_container_losses=0)})
    return rig.strike(spec, blow, expect=says("ps:0 was lost"))


@MATRIX.row("an agent gets SIGTERM, as from YARN, and another one SIGKILL, two losses allowed", Reason.SUCCEEDED, 120)
def agents_replaced(rig):
    """Each time YARN gives a container, which takes the vacated index, and all tasks start again."""
    application = rig.submit(job(f"[ $YTF_ROUND = 3 ] || {FOREVER}", losses=2, workers=2))
    containers = []
    for number, round_number in ((signal.SIGTERM, 1), (signal.SIGKILL, 2)):
        live = rig.live(application, round_number=round_number)
        containers.append({task.container_id for task in live.tasks})
        struck = time.time()
        kill(rig.agents(application)[:1], number)

    def expect(report):
        assert ["was lost" in each.cause for each in report.rounds[1:]] == [True, True], report
        assert [task.task for task in report.tasks] == ["worker:0", "worker:1"], report
        containers.append({task.container_id for task in report.tasks})
        assert [len(new - old) for old, new in itertools.pairwise(containers)] == [1, 1], containers

    return rig.end(application, struck, expect=expect)


@MATRIX.row("an agent is frozen (SIGSTOP)", Reason.HEARTBEAT_LOST, 90)
def agent_sigstop(rig):
    return rig.strike(
        job(), lambda application: kill(rig.agents(application), signal.SIGSTOP), expect=says("its agent was silent")
    )


HOG = "python -c \"b = bytearray(700 << 20); b[::4096] = b'x' * len(b[::4096]); import time; time.sleep(600)\""


@once
def grown(rig):
    """Run a training that needs a second application with more memory; return the ids of both."""
    ids = []
    begun = rig.folder / "memory"
    command = f"if mkdir {begun}; then exec {HOG}; fi; exec {HOG.replace('600', '5')}"
    spec = job(command, restart=RestartPolicy(max_container_losses=3, memory_growth=4))
    ended = rig.launcher.run(spec, Identity("grows"), on_reserved=ids.append, poll_interval=1, timeout=230)
    assert (len(ids), ended.memory_mib) == (2, {"worker": 1024}), ended
    return ids


@MATRIX.row("a container grows over its memory", Reason.OUT_OF_MEMORY, 240)
def over_memory(rig):
    """No container is replaced, although three may be lost."""

    def expect(report):
        assert len(report.rounds) == 1, report
        assert re.search(r"[\d.]+ ?[MG]B of 256 ?MB physical memory", report.message), report.message

    return rig.end(grown(rig)[0], expect=expect)


@MATRIX.row("a container grows over its memory, with memory_growth", Reason.SUCCEEDED, 240)
def over_memory_with_growth(rig):
    return rig.end(grown(rig)[1])


@MATRIX.row("containers are preempted by the other queue", Reason.PREEMPTED, 90, alone=True)
def preempted(rig):
    hungry = {"worker": TaskSpec(instances=3, memory=4800)}
    other = []

    def blow(application):
        tasks = {"worker": TaskSpec(memory=6144)}
        other.append(rig.submit(job("true", tasks=tasks, losses=3, queue="default")))

    outcome = rig.strike(job(tasks=hungry, queue="low"), blow, expect=says("reempted"))
    assert rig.launcher.wait(other[0], timeout=150).reason is Reason.SUCCEEDED
    return outcome


@MATRIX.row("the allocation never completes", Reason.ALLOCATION_TIMEOUT, 90)
def never_allocated(rig):
    tasks = {"worker": TaskSpec(instances=2, memory=256, gpus=2)}  # the node has two
    submitted = time.time()
    application = rig.submit(job(tasks=tasks, deadlines=Deadlines(allocation=3, stop_grace=1)))

    def expect(report):
        says("1 of 2 containers were not allocated within 3 s: worker_")(report)
        assert {task.starts for task in report.tasks} == {0}, "the agent that has registered waits for the cluster spec"
        assert {task.state for task in report.tasks} == {"killed"}, report

    return rig.end(application, submitted, expect=expect)


def archive_in_hdfs(rig, name, content):
    """Put a file to where a job names it; give its URI."""
    files = rig.launcher.session.staging(rig.launcher.cluster.user).filesystem
    files.makedirs("/tmp/faults", 0o777)
    files.delete(f"/tmp/faults/{name}")
    assert files.create(f"/tmp/faults/{name}", content, 0o644)
    return f"{rig.launcher.cluster.storage.default}/tmp/faults/{name}"


def submit_without(rig, path, spec):
    """Submit a job, and delete a file of it in HDFS when all is staged, before YARN gets the request; return its id."""
    with contextlib.closing(Launcher(rig.launcher.cluster)) as launcher:
        resourcemanager = launcher.session.resourcemanager
        send = resourcemanager.submit

        def delete_and_send(*arguments, **options):
            launcher.session.staging(launcher.cluster.user).filesystem.delete(path)
            send(*arguments, **options)

        resourcemanager.submit = delete_and_send
        return launcher.submit(spec)


@MATRIX.row("an archive is missing when it is localised", Reason.SUBMISSION_REJECTED, 90)
def missing_archive(rig):
    source = archive_in_hdfs(rig, "missing.zip", b"PK\x05\x06" + b"\0" * 18)
    submitted = time.time()
    application = submit_without(rig, "/tmp/faults/missing.zip", job("true", archives={"data": source}))
    return rig.end(application, submitted, expect=says("a file of the job is gone", source))


@MATRIX.row("the environment's archive is missing when it is localised", Reason.SUBMISSION_REJECTED, 90)
def missing_environment(rig):
    source = archive_in_hdfs(rig, "environment.zip", b"PK\x05\x06" + b"\0" * 18)
    submitted = time.time()
    spec = job("true", environment=Environment("archive", source))
    application = submit_without(rig, "/tmp/faults/environment.zip", spec)
    return rig.end(application, submitted, expect=says("start the application master: a file of the job is", source))


@MATRIX.row("an archive is broken when it is localised", Reason.SUBMISSION_REJECTED, 90)
def broken_archive(rig):
    source = archive_in_hdfs(rig, "broken.zip", b"no archive at all " * 100)
    submitted = time.time()
    return rig.end(
        rig.submit(job("true", archives={"data": source})), submitted, expect=says("an archive of the job is broken")
    )


@MATRIX.row("the interpreter is missing on the nodes", Reason.ENVIRONMENT_INVALID, 90)
def interpreter_missing(rig):
    submitted = time.time()
    return rig.end(
        rig.submit(job("true", environment=Environment("venv", "/no/such/folder"))),
        submitted,
        expect=says("there is no Python /no/such/folder/bin/python on "),
    )


@MATRIX.row("the interpreter is missing on a worker's node", Reason.CONTAINER_LOST, 90)
def agents_interpreter_missing(rig):
    """The application master's is there: the folder is that of the nodes, and one node lacks it."""
    home = rig.folder / "half"
    (home / "bin").mkdir(parents=True)
    python = home / "bin" / "python"
    python.write_text(
        f'#!/bin/bash\ncase " $* " in *" agent "*) exec /no/such/python "$@";; esac\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    submitted = time.time()
    application = rig.submit(job("true", environment=Environment("venv", str(home))))
    outcome = rig.end(application, submitted, expect=says("worker:0 was lost: before its agent called"))
    (task,) = rig.launcher.report(application).tasks
    assert task.container_id.startswith("container_") and task.container_id in task.log_url  # where its log says why
    return outcome


# -- connections: the job goes on -----------------------------------------------------------------


class Stranger:
    """Somebody who connects to a coordinator: in clear text, or with whatever certificate it has."""

    def __init__(self, rig, application, credentials=None, folder=None, tls=True):
        self.socket = socket.create_connection(("127.0.0.1", rig.coordinator_port(application)), 10)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if credentials == "own":
                home = Path(os.readlink(f"/proc/{rig.coordinator(application)}/cwd"))
                context.load_cert_chain(home / ".skein.crt", home / ".skein.pem")
            elif credentials:
                (folder / "crt").write_bytes(credentials.certificate)
                (folder / "key").write_bytes(credentials.key)
                context.load_cert_chain(folder / "crt", folder / "key")
            self.socket = context.wrap_socket(self.socket)
        self.socket.settimeout(20)

    def ask(self, content):
        """Send; give what comes until the other end closes."""
        heard = b""
        with contextlib.suppress(OSError):
            self.socket.sendall(content)
        with contextlib.suppress(OSError):
            while data := self.socket.recv(65536):
                heard += data
                if heard.endswith(b"\n"):
                    break
        self.socket.close()
        return heard


def registration(**change):
    message = {"type": "register", "version": 1, "container": "worker_0", "nonce": "mine", "host": "h", "port": 1,
               "round": 1, "start": 0, "yarn_container": "", "node_http": "", "unfit": None}  # fmt: skip
    return json.dumps(message | change).encode() + b"\n"


STRANGERS: dict[str, Callable[[Rig, str], None]] = {}
RESET = "the connection of an agent is reset"


def stranger(fault):
    """Add the decorated function as a row: it gets a running application, which has to go on."""

    def add(visit):
        STRANGERS[fault] = visit
        survived(fault)
        return visit

    return add


def survived(fault):
    """Add a row of the job that survives all these faults: one round, one start, success."""

    @MATRIX.row(fault, Reason.SUCCEEDED, 90)
    def play(rig):
        outcome, failed = visited(rig)
        if failed.get(fault):
            raise failed[fault]
        return outcome


@once
def visited(rig):
    """Let all strangers come to a job at once, then reset its connection; return its outcome, and what failed.

    Its Python has no packages.
    """
    home, gate, failed = rig.folder / "bare", rig.folder / "visited", {}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    command = f"until [ -e {gate} ]; do sleep 0.1; done"
    application = rig.submit(job(command, losses=0, environment=Environment("venv", str(home))))
    rig.live(application)
    struck = time.time()
    try:
        for visits in (STRANGERS, {RESET: reset_agent}):
            with ThreadPoolExecutor(len(visits)) as pool:
                played = {fault: pool.submit(visit, rig, application) for fault, visit in visits.items()}
            failed |= {fault: done.exception() for fault, done in played.items()}
        assert rig.launcher.report(application).reason is None
    finally:
        gate.touch()

    def expect(report):
        assert len(report.rounds) == 1 and report.tasks[0].starts == 1, report

    return rig.end(application, struck, expect=expect), failed


survived("the Python of the nodes has no packages")


@pytest.fixture(scope="module")
def rig(minicluster, tmp_path_factory):
    rig = Rig(minicluster)
    rig.folder = tmp_path_factory.mktemp("strangers")
    return rig


@stranger("a second agent says that it is worker_0")
def connects_twice(rig, application):
    answer = json.loads(Stranger(rig, application, "own").ask(registration()))
    assert answer["type"] == "refused" and "registered already" in answer["why"]


@stranger("an agent of another protocol version")
def wrong_version(rig, application):
    answer = json.loads(Stranger(rig, application, "own").ask(registration(version=99)))
    assert answer["type"] == "refused" and "version 99" in answer["why"]


@stranger("a stranger without certificate")
def no_certificate(rig, application):
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        assert Stranger(rig, application).ask(registration()) == b""


@stranger("a stranger with a certificate of another job")
def wrong_certificate(rig, application):
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        assert Stranger(rig, application, mint(), rig.folder).ask(registration()) == b""


@stranger("a stranger that sends garbage")
def garbage(rig, application):
    assert b"refused" not in Stranger(rig, application, tls=False).ask(b"GET / HTTP/1.1\r\n\r\n")
    assert Stranger(rig, application, "own").ask(b"\xff\x00 garbage\n") == b""


@stranger("a stranger that sends a line of 1 MB")
def long_line(rig, application):
    assert Stranger(rig, application, "own").ask(b"x" * 1_000_000 + b"\n") == b""


@stranger("a stranger that sends half a line and is silent")
def half_a_line(rig, application):
    started = time.monotonic()
    assert Stranger(rig, application, "own").ask(registration()[:30]) == b""
    assert time.monotonic() - started < 60, "it was let wait"


_LIBC = ctypes.CDLL(None, use_errno=True)
_PIDFD_GETFD = 438


def reset_connections(pid, port):
    """Reset every connection of a process that came in on a port: both ends see it, as when a firewall does it."""
    inodes = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if int(words[1].rpartition(":")[2], 16) == port and words[3] == "01":
                inodes[f"socket:[{words[9]}]"] = True
    pidfd, count = os.pidfd_open(pid), 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(entry) in inodes:
                copy = _LIBC.syscall(_PIDFD_GETFD, pidfd, int(entry.name), 0)
                assert copy >= 0, os.strerror(ctypes.get_errno())
                # An address of no family: the kernel sends the reset and forgets the connection.
                assert _LIBC.connect(copy, ctypes.create_string_buffer(16), 16) == 0
                os.close(copy)
                count += 1
    os.close(pidfd)
    return count


survived(RESET)


def reset_agent(rig, application):
    pid = rig.coordinator(application)
    log = Path(os.readlink(f"/proc/{pid}/fd/1"))
    assert reset_connections(pid, rig.coordinator_port(application)) == 1
    until(lambda: "worker_0 is back as worker:0" in log.read_text(errors="replace"))


# -- coordinator and application master -------------------------------------------------------------


@MATRIX.row("the coordinator gets SIGKILL", Reason.AM_FAILED, 90)
def coordinator_sigkill(rig):
    return rig.strike(job(), lambda application: kill(rig.coordinator(application)))


@MATRIX.row("the coordinator is frozen (SIGSTOP)", Reason.AM_FAILED, 150)
def coordinator_sigstop(rig):
    spec = job(deadlines=Deadlines(stop_grace=2, heartbeat=60))
    return rig.strike(spec, lambda application: kill(rig.coordinator(application), signal.SIGSTOP), timeout=280)


@MATRIX.row("the application master's JVM gets SIGKILL", Reason.AM_FAILED, 90)
def master_sigkill(rig):
    return rig.strike(job(), lambda application: kill(rig.master(application)))


@MATRIX.row("all 16 ports of the coordinator are taken", Reason.AM_FAILED, 90)
def ports_taken(rig):
    base = next(base for base in range(31000, 32000, PORTS) if _free(base))
    launcher = rig.new_launcher(coordinator_ports=f"{base}-{base + PORTS - 1}")
    with contextlib.ExitStack() as stack:
        for port in range(base, base + PORTS):
            stack.enter_context(socket.create_server(("", port)))
        submitted = time.time()
        application = launcher.submit(job("true"))
        return rig.end(application, submitted, expect=says(f"the ports {base} to {base + PORTS - 1} are all taken"))


def _free(base):
    try:
        with contextlib.ExitStack() as stack:
            for port in range(base, base + PORTS):
                stack.enter_context(socket.create_server(("", port)))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("row", MATRIX.rows, ids=str)
def test_a_fault_below_the_program_ends_as_the_matrix_says(row, played):
    check(row, played)
