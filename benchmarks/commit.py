"""Committed output: what a commit costs, and a soak that kills coordinators while a reader polls the output."""

import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from tf_yarn_ops.hadoop.cluster import local
from tf_yarn_ops.job.parts import Deadlines
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.launch.launcher import Launcher
from tf_yarn_ops.runtime.common.committed_output import SUCCESS_FILE, CommitPlan, read_success
from tf_yarn_ops.runtime.common.file_storage import LocalFolder
from tf_yarn_ops.runtime.common.hdfs import Hdfs
from tf_yarn_ops.runtime.common.local_job import running_coordinator
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.master.commit import OutputCommit

from .hadoop import hadoop
from .samples import Figures, Samples, interleave

TITLE = "Commit: one rename is wanted, however many files; in the soak, no result that is not whole or comes twice"
#: Trainings of a soak.
TRAININGS, QUICK_TRAININGS = 100, 6
_PROGRAM = """
for part in 1 2 3 4 5; do echo $YTF_APPLICATION_ID > $DTF_OUTPUT_PATH/part-$part; sleep 0.1; done
"""


def measure(runs: int, quick: bool) -> Samples:
    """Measure commits to a real HDFS and to a folder of this machine, then the soak on this machine."""
    with hadoop() as cluster, tempfile.TemporaryDirectory(prefix="ytf-bench-") as folder:
        known = cluster.launcher.cluster
        stores = {"HDFS": (Hdfs(known.webhdfs, known.user, {}), "/tmp/bench"), "a folder": (LocalFolder("/"), folder)}
        sizes = (1, 20) if quick else (1, 2_000)
        cases = {
            f"{size:,} files in {name}": lambda store=store, size=size: _commit(*store, size)
            for name, store in stores.items()
            for size in sizes
        }
        samples = interleave(cases, runs, Samples())
    number = QUICK_TRAININGS if quick else TRAININGS
    samples.add(f"soak of {number} trainings", soak(number, random.Random(1)))
    return samples


def _commit(files: Hdfs | LocalFolder, parent: str, size: int) -> Figures:
    """Commit a folder with so many files."""
    plan = CommitPlan("new", f"{parent}/{time.monotonic_ns()}/model")
    made = OutputCommit(plan, "application_1_1", files)
    made.prepare()
    for number in range(size):
        files.create(f"{made.working_url}/part-{number:05d}", b"", 0o644)
    began = time.perf_counter()
    made.commit({})
    return {"commit, ms": 1000 * (time.perf_counter() - began)}


class _Reader:
    """Polls one output until it is closed; counts what it sees, and keeps what it must not see."""

    def __init__(self, output: Path):
        self.output, self.polls, self.bad = output, 0, list[str]()
        self.results: dict[int, str] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.wait(0.002):
            self.polls += 1
            try:
                folder = os.open(self.output, os.O_RDONLY | os.O_DIRECTORY)  # this result, also if it is replaced
            except FileNotFoundError:
                continue
            try:
                self._look(folder)
            except FileNotFoundError as error:
                if os.fstat(folder).st_nlink and os.path.exists(f"/proc/self/fd/{folder}/{SUCCESS_FILE}"):
                    self.bad.append(str(error))
            finally:
                os.close(folder)

    def _look(self, folder: int) -> None:
        with open(os.open(SUCCESS_FILE, os.O_RDONLY, dir_fd=folder), "rb") as file:
            success = read_success(file.read())
        if success is None or len(success.files) != 5:
            self.bad.append(f"{success}")
            return
        for name, size in success.files:
            if os.stat(name, dir_fd=folder).st_size != size:
                self.bad.append(f"{name} of {success.application_id}")
        if self.results.setdefault(success.generation, success.application_id) != success.application_id:
            self.bad.append(f"two results of generation {success.generation}")

    def close(self) -> None:
        self._closed.set()
        self._thread.join()


def soak(number: int, chance: random.Random) -> Figures:
    """Train generation after generation of one training; SIGKILL most of their coordinators at random moments."""
    with tempfile.TemporaryDirectory(prefix="ytf-bench-") as place:
        output, kills, retries = Path(place) / "models" / "digits", 0, 0
        reader = _Reader(output)
        try:
            with contextlib.closing(Launcher(local(f"{place}/jobs"))) as launcher:
                for generation in range(number):
                    for attempt in range(50):
                        kill = attempt < 3 and chance.random() < 0.7
                        identity = Identity("soak", generation, attempt)
                        if _train(launcher, output, identity, chance.uniform(0.1, 2.5) if kill else None):
                            break
                        kills, retries = kills + kill, retries + 1
                    else:
                        raise RuntimeError(f"generation {generation} has not succeeded")
                    marker = read_success((output / SUCCESS_FILE).read_bytes())
                    if marker is None or marker.generation != generation:
                        reader.bad.append(f"generation {generation} succeeded without its result")
        finally:
            reader.close()
        if reader.bad:
            raise RuntimeError(f"{len(reader.bad)} bad results, the first: {reader.bad[0]}")
        return {"kills": kills, "retries": retries, "polls": reader.polls, "results seen": len(reader.results)}


def _train(launcher: Launcher, output: Path, identity: Identity, kill_after: float | None) -> bool:
    """Return whether the training has succeeded; kill its coordinator after so many seconds."""

    def strike(application_id: str) -> None:
        if kill_after is not None:
            threading.Timer(kill_after, _kill, (launcher, application_id)).start()

    spec = JobSpec(
        tasks={"worker": TaskSpec(memory=256)},
        command=_PROGRAM,
        output=str(output),
        commit="replace",
        environment=f"venv://{sys.prefix}",
        deadlines=Deadlines(stop_grace=1, heartbeat=5),
    )
    report = launcher.run(spec, identity, on_reserved=strike)
    return report.reason is Reason.SUCCEEDED


def _kill(launcher: Launcher, application_id: str) -> None:
    pid = running_coordinator(str(launcher.resourcemanager.folder(application_id)))  # type: ignore[attr-defined]
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
