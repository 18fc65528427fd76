"""The benchmarks' own minicluster, and what all that run on it need: cold clients, bare Skein, YARN's clock."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support.hadoop import HadoopCluster
from tf_yarn_ops.hadoop.cluster import discover
from tf_yarn_ops.launch.launcher import Launcher

from .processes import peak_memory

#: Size of each task's container, MiB.
MEMORY = 256
#: Submits N services' containers with the same command, without coordinator, and ends.
_BARE = f"""\
import sys, skein
spec = skein.ApplicationSpec(name="bare", services={{"worker": skein.Service(
    instances=int(sys.argv[1]), resources=skein.Resources(memory="{MEMORY} MiB", vcores=1), script=sys.argv[2])}})
with skein.Client(log=sys.argv[3]) as client:
    print(client.submit(spec))
"""


class Ended(NamedTuple):
    """A client process that has ended: when it began (seconds since the epoch), how long it took, its peak memory
    in MiB with that of its children, the last line of its stdout."""

    began: float
    seconds: float
    peak_mib: float
    answer: str


class Hadoop:
    """A minicluster of the benchmarks."""

    def __init__(self, cluster: HadoopCluster, folder: Path):
        self.cluster, self.folder = cluster, folder
        self.environ = {
            **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
            **cluster.environ,
            "SKEIN_CONFIG": str(folder / "skein"),
            "no_grpc_proxy": "127.0.0.1,localhost",
        }
        self.launcher = Launcher(discover(cluster.resourcemanager_url, self.environ), environ=self.environ)
        self._marks = 0

    def marks(self) -> Path:
        """Return a new folder into which commands write the times of what happens to them."""
        self._marks += 1
        folder = self.folder / f"marks{self._marks}"
        folder.mkdir()
        return folder

    def submit(self, count: int, command: str, *options: str) -> Ended:
        """Run ``ytf-submit`` in a cold process."""
        program = str(Path(sys.executable).parent / "ytf-submit")
        return self.run(
            [
                program,
                *options,
                "--environment",
                f"venv://{sys.prefix}",
                "-m",
                str(MEMORY),
                "-r",
                f"worker:{count}",
                command,
            ]
        )

    def submit_at_once(self, count: int, command: str, *options: str) -> list[Ended]:
        """Run as many ``ytf-submit`` at once, each in a cold process; the kernel tells their peaks."""
        program = str(Path(sys.executable).parent / "ytf-submit")
        arguments = [program, *options, "--environment", f"venv://{sys.prefix}", "-m", str(MEMORY), "-r", "worker:1"]
        began, start = time.time(), time.monotonic()
        running: dict[int, Path] = {}
        for number in range(count):
            out, log = self.folder / f"answer{number}", self.folder / f"client{number}.log"
            with out.open("w") as stdout, log.open("w") as stderr:
                process = subprocess.Popen(
                    [*arguments, command],
                    env=self.environ,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=self.folder,
                )
            running[process.pid] = out
        ended = []
        while running:
            pid, status, used = os.wait4(-1, 0)
            if pid not in running:
                continue
            seconds, out = time.monotonic() - start, running.pop(pid)
            if status:
                raise RuntimeError((self.folder / out.name.replace("answer", "client")).with_suffix(".log").read_text())
            ended.append(Ended(began, seconds, used.ru_maxrss / 1024, out.read_text().split()[-1]))
        return ended

    def submit_bare(self, count: int, command: str) -> Ended:
        """Run ``skein.Client`` in a cold process; it does not wait for the end."""
        return self.run([sys.executable, "-c", _BARE, str(count), command, str(self.folder / "skein.log")])

    def run(self, command: list[str]) -> Ended:
        """Run a client to its end and watch its memory."""
        began, start = time.time(), time.monotonic()
        with open(self.folder / "client.log", "w") as log:
            process = subprocess.Popen(
                command,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.folder,
            )
        watch = _Memory(process.pid)
        stdout, _ = process.communicate()
        seconds = time.monotonic() - start
        if process.returncode:
            log_text = (self.folder / "client.log").read_text()
            raise RuntimeError(f"{command[0]} ended with {process.returncode}\n{log_text}")
        return Ended(began, seconds, watch.end(), stdout.split()[-1])

    def finish(self, application_id: str) -> dict[str, Any]:
        """Wait until an application has ended well; give YARN's object of it."""
        while not (found := self.launcher.session.resourcemanager.get(application_id))["finishedTime"]:
            time.sleep(0.1)
        if found["finalStatus"] != "SUCCEEDED":
            raise RuntimeError(f"{application_id} ended as {found['finalStatus']}: {found['diagnostics'][:2000]}")
        return found

    def quieten(self) -> None:
        """Wait until the node has let go of everything, so that one run does not pay for the one before."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            nodes = self.launcher.session.resourcemanager.nodes()
            if not any(node.get("numContainers") for node in nodes):
                time.sleep(1)
                return
            time.sleep(0.1)


class _Memory:
    """Follows the peaks of a process and of all below it."""

    def __init__(self, pid: int):
        self._pid, self._peaks = pid, dict[int, float]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.wait(0.02):
            todo = [self._pid]
            while todo:
                pid = todo.pop()
                with contextlib.suppress(OSError, ValueError):
                    self._peaks[pid] = max(self._peaks.get(pid, 0.0), peak_memory(pid))
                    for task in Path(f"/proc/{pid}/task").iterdir():
                        todo += map(int, (task / "children").read_text().split())

    def end(self) -> float:
        """Return the sum of the peaks, MiB."""
        self._over.set()
        self._thread.join()
        return sum(self._peaks.values())


@contextlib.contextmanager
def hadoop(**options: Any) -> Iterator[Hadoop]:
    """Yield a running cluster of our own, with the options of `HadoopCluster`, and leave nothing of it behind."""
    with tempfile.TemporaryDirectory(prefix="ytf-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with HadoopCluster(folder / "hadoop", **options) as cluster:
            ours = Hadoop(cluster, folder)
            try:
                yield ours
            finally:
                ours.launcher.close()


def times(folder: Path, kind: str) -> list[float]:
    """Return the times that commands wrote into ``kind.*``, seconds since the epoch."""
    return [float(path.read_text()) for path in folder.glob(f"{kind}.*")]
