"""The fault matrix: rows, the rig on which they are played, and what every row has to leave behind: nothing.

A row is a function that gets the rig, plays its fault on the real daemons and gives an `Outcome`.
The rows of a file are played at once, a few at a time; those that need the whole cluster come after.
``docs/operations/reliability.md`` has a line for every row, which tests/documents/test_reliability.py holds to this.
"""

import contextlib
import functools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from support.access import plain
from support.waiting import PATIENCE, until
from tf_yarn_ops.errors import ApplicationNotFound, TfYarnError
from tf_yarn_ops.hadoop.cluster import local
from tf_yarn_ops.hadoop.resourcemanager import ENDED
from tf_yarn_ops.job.parts import Deadlines, Environment, RestartPolicy
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport

OURS = Environment("venv", sys.prefix)
FOREVER = "exec tail -f /dev/null"
AT_ONCE = 4
#: What an ending may take to take everything with it, seconds.
LEFT_SECONDS = 60 * PATIENCE


def job(command=FOREVER, losses=0, **fields):
    """Return a small job: one worker, unless `tasks` says more."""
    fields.setdefault("tasks", {"worker": TaskSpec(instances=fields.pop("workers", 1), memory=256)})
    fields.setdefault("deadlines", Deadlines(stop_grace=2, heartbeat=15))
    fields.setdefault("restart", RestartPolicy(max_container_losses=losses))
    return JobSpec(**{"command": command, "environment": OURS, **fields})


@dataclass(frozen=True)
class Outcome:
    """How a row ended.

    Attributes
    ----------
    reason : Reason or None
        None: a client that a signal ended before there was an application.
    seconds : float
        From the fault until a client that looks every second has seen the final status,
        or to the refusal.
    applications : tuple of str
    left : tuple of str
        What was still there afterwards; has to be empty.
    """

    reason: Reason | None
    seconds: float
    applications: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True)
class Row:
    """A fault, what it has to end as, and within how many seconds after the fault, times ``PATIENCE``."""

    fault: str
    reason: Reason | None
    limit: float
    play: Callable[["Rig"], Outcome]
    alone: bool = False

    def __str__(self):
        """Return the name of its test, without blanks: tools cut a test's name at the first one."""
        return self.fault.replace(" ", "-")

    def check(self, outcome):
        """Hold an outcome to what the matrix says."""
        assert outcome.reason is self.reason, outcome
        assert outcome.left == (), outcome
        assert outcome.seconds <= self.limit * PATIENCE, f"longer than {self.limit * PATIENCE:g} s: {outcome}"


@dataclass
class Matrix:
    """The rows of one file."""

    rows: list[Row] = field(default_factory=list)

    def row(self, fault, reason, limit, *, alone=False):
        """Add the decorated function as a row."""

        def add(play):
            assert fault not in [row.fault for row in self.rows]
            self.rows.append(Row(fault, reason, limit, play, alone))
            return play

        return add

    @contextlib.contextmanager
    def playing(self, rig, wanted=None):
        """Play the rows; inside, `check` waits for one of them."""
        rows = [row for row in self.rows if wanted is None or row.fault in wanted]
        together = [row for row in rows if not row.alone]
        left = threading.Semaphore(0)
        with ThreadPoolExecutor(AT_ONCE) as pool, ThreadPoolExecutor(1) as single:
            played = {row.fault: pool.submit(_play_beside, row, rig, left) for row in together}
            played |= {
                row.fault: single.submit(_play_alone, row, rig, left, len(together)) for row in rows if row.alone
            }
            yield played
            for future in played.values():
                future.cancel()
        rig.close()


def once(play):
    """Return a function that plays on each rig once, for several rows, which get the same result or exception."""
    played: dict[Rig, Future] = {}
    lock = threading.Lock()

    @functools.wraps(play)
    def replay(rig):
        with lock:
            if rig not in played:
                played[rig] = Future()
                try:
                    played[rig].set_result(play(rig))
                except Exception as error:
                    played[rig].set_exception(error)
        return played[rig].result()

    return replay


def _play(row, rig):
    """Play a row and check it; a failure has all that is known of the row's applications with it."""
    try:
        row.check(outcome := row.play(rig))
        return outcome
    except Exception as error:
        with contextlib.suppress(Exception):  # the failure counts, not what the cluster answers afterwards
            error.add_note(rig.evidence(str(error)))
        raise


def _play_beside(row, rig, done):
    try:
        return _play(row, rig)
    finally:
        done.release()


def _play_alone(row, rig, done, before):
    for _ in range(before):
        done.acquire()
    try:
        return _play(row, rig)
    finally:
        for _ in range(before):
            done.release()


def wanted(request):
    """Return the faults whose tests were selected: with ``-k`` a row is played without the others of its file."""
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    return {found["row"].fault for found in params if isinstance(found.get("row"), Row)}


def check(row: Row, played: dict[str, "Future[Outcome]"]) -> None:
    """Hold a row's outcome to what the matrix says."""
    played[row.fault].result()


class Rig:
    """A real cluster, and hands to strike at what runs on it.

    Parameters
    ----------
    hadoop : MiniCluster
    access : support.access.Access, optional
        How clients reach it. Default: without Kerberos.
    """

    def __init__(self, hadoop, access=None):
        self.hadoop = hadoop
        self.access = access or plain(hadoop)
        self.url = hadoop.resourcemanager_url
        self.launcher = self.new_launcher()

    def new_launcher(self, **site):
        """Return a launcher of one row's own."""
        return self.access.launcher(**site)

    def close(self):
        """Kill what a failed row has left."""
        for report in self.launcher.list():
            self.launcher.kill(report.application_id, "its test ended")
        self.launcher.close()

    def evidence(self, text):
        """Return the reports of the applications that a text names."""
        found = sorted({*re.findall(r"application_\d+_\d+", text)})
        return "\n".join(str(self.launcher.report(application)) for application in found)

    # -- playing ------------------------------------------------------------------------------

    def submit(self, spec):
        """Return the id of an application that YARN has accepted."""
        return self.launcher.submit(spec)

    def live(self, application, seconds=180, round_number=1):
        """Wait until all commands of a job have started, in this round."""

        def started():
            report = self.launcher.report(application)
            assert report.reason is None, report
            return report if report.tasks and all(task.starts >= round_number for task in report.tasks) else None

        return until(started, seconds)

    def strike(self, spec, blow, timeout=280, expect=None):
        """Submit, let `blow` (which gets the application id) strike once all commands run, wait for the end."""
        application = self.submit(spec)
        self.live(application)
        struck = time.time()
        blow(application)
        return self.end(application, struck, timeout, expect)

    def run(self, spec, expect=None, timeout=280):
        """Submit a job whose program is the fault; the clock runs from the end of the task that ended it."""
        return self.end(self.submit(spec), None, timeout, expect)

    def end(self, application, since=None, timeout=280, expect=None):
        """Wait for the end and look for what is left.

        Parameters
        ----------
        application : str
        since : float, optional
            When the fault struck, seconds since the epoch. Default: when the task that failed first (else the
            last one) ended.
        timeout : float, optional
        expect : callable, optional
            Gets the report; asserts what is the row's own.
        """
        report = self.launcher.wait(application, timeout=timeout, poll_interval=1)
        seen = time.time()
        if expect:
            expect(report)
        if since is None:
            since = _ended_at(report)
        return Outcome(report.reason, seen - since, (application,), self.left(application),
                       f"{report.message} {application}")  # fmt: skip

    def refused(self, action, says=""):
        """Return the outcome of a call that has to be refused with these words; only for a row that is played alone."""
        before = self.traces()
        started = time.monotonic()
        try:
            action()
        except TfYarnError as error:
            seconds = time.monotonic() - started
            assert says in str(error), error
            new = tuple(self.traces() - before)
            return Outcome(error.reason, seconds, new, self.left(*new), str(error))
        raise AssertionError("it was not refused")

    def traces(self):
        """Return the ids of all applications that YARN knows, in any state, or that have a directory."""
        files = self.launcher.session.staging(self.launcher.cluster.user).filesystem
        names = {status.name for status in files.list(self.launcher.cluster.staging)}
        known = {item["id"] for item in self.launcher.session.resourcemanager.find()}
        return known | {name for name in names if name.startswith("application_")}

    def left(self, *applications):
        """Return what is left of applications that have ended; waits for it to go."""
        deadline = time.monotonic() + LEFT_SECONDS
        while True:
            found = [text for application in applications for text in self._found(application)]
            if not found or time.monotonic() > deadline:
                return tuple(found)
            time.sleep(0.4)

    def _found(self, application):
        try:
            state = self.launcher.session.resourcemanager.get(application)["state"]
        except ApplicationNotFound:  # its id was reserved, and no more
            state = ENDED[0]
        found = [] if state in ENDED else [f"{application} is {state}"]
        found += [f"process {pid}: {words}" for pid, words in processes_of(application)]
        files = self.launcher.session.staging(self.launcher.cluster.user).filesystem
        if files.status(f"{self.launcher.cluster.staging}/{application}"):
            found.append(f"the directory of {application}")
        return found

    # -- what runs ----------------------------------------------------------------------------

    def agents(self, application, service="worker"):
        """Return the pids of the agents of a service."""
        return [
            pid
            for pid, words in processes_of(application)
            if f".ytf.zip agent {service} {application}" in words and "bash" not in words
        ]

    def commands(self, application):
        """Return the pids of all processes of users' commands."""
        mark = f"YTF_APPLICATION_ID={application}".encode()
        return [pid for pid in _pids() if mark in _read(pid, "environ")]

    def coordinator(self, application):
        """Return the pid of the coordinator; its parent is the watchdog."""
        found = [pid for pid, words in processes_of(application)
                 if f".ytf.zip coordinator {application}" in words and "bash" not in words]  # fmt: skip
        parents = {pid: int(_read(pid, "stat").rpartition(b")")[2].split()[1]) for pid in found}
        return next(pid for pid in found if parents[pid] in found)

    def master(self, application):
        """Return the pid of Skein's application master."""
        return next(
            pid
            for pid, words in processes_of(application)
            if "com.anaconda.skein.ApplicationMaster" in words and "bash" not in words
        )

    def coordinator_port(self, application):
        """Return the port on which the coordinator listens, from its own log."""

        def said():
            text = Path(f"/proc/{self.coordinator(application)}/fd/1").read_text(errors="replace")
            return re.search(r"Listening on port (\d+)", text)

        return int(until(said, 60, 0.1)[1])

    def container(self, application, task="worker:0"):
        """Return YARN's id of a task's container."""
        return next(t.container_id for t in self.launcher.report(application).tasks if t.task == task)


class LocalRig(Rig):
    """This machine in place of a cluster; jobs lie below ``folder``."""

    def __init__(self, folder):
        self.folder = folder
        self.launcher = Launcher(local(folder))


def kill(pids, number=signal.SIGKILL):
    """Signal processes; there has to be one."""
    pids = [pids] if isinstance(pids, int) else list(pids)
    assert pids, "there is nothing to strike at"
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def processes_of(application):
    """Return pid and command line of every living process whose environment names the application."""
    return [
        (pid, _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace"))
        for pid in _pids()
        if application.encode() in _read(pid, "environ") and pid != os.getpid() and _living(pid)
    ]


def _pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _read(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _living(pid):
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"], [b"X"])


def _ended_at(report: JobReport) -> float:
    ended = {task.task: task.finished_at for task in report.tasks if task.finished_at}
    if report.first_failure in ended:
        return ended[report.first_failure]
    awaited = [task.finished_at for task in report.tasks if task.finished_at and task.state in ("succeeded", "failed")]
    return max(awaited, default=report.started_at or report.submitted_at)
