"""A soak of committed outputs, by hand: ``./dev bench commit --soak 10``.

Trainings of four identities commit into the HDFS of a real pair of NameNodes, generation after generation. Each is a
process of ``ytf-submit --local --wait`` that is called again until it exits 0. At random moments a client, coordinator,
agent or program gets SIGKILL, and now and then the active NameNode does. Readers poll the outputs all the time.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from support.airflow_site import environments
from support.hadoop import HadoopCluster
from tf_yarn_ops.runtime.common.committed_output import LATEST_FILE, MOST_SUCCESS, SUCCESS_FILE, VERSION, read_success
from tf_yarn_ops.runtime.common.file_storage import StorageAway
from tf_yarn_ops.runtime.common.hdfs import Hdfs

#: The outputs, each with its mode.
OUTPUTS = {"one": "replace", "two": "replace", "three": VERSION, "four": VERSION}
PARTS = 5
#: The part of the calls in which something is killed.
SHARE = 0.6
#: Calls after which a training has failed for good.
CALLS = 60
#: Seconds between two losses of the active NameNode.
FAILOVER = 120
#: Seconds for which a reader waits for a NameNode.
PATIENCE = 120.0
_PROGRAM = f"""
cd $DTF_OUTPUT_PATH
for part in {" ".join(map(str, range(PARTS)))}; do echo $part > part-$part.$YTF_APPLICATION_ID; sleep 0.1; done
"""
#: What a command line holds, the first that fits; anything else is the program.
KINDS = {"client": "ytf-submit", "coordinator": ".zip local ", "agent": ".zip agent "}


class Reader(threading.Thread):
    """Polls one output until it is closed; counts what it sees, and keeps what it must not see.

    Parameters
    ----------
    files : Hdfs
    path : str
    mode : str
    """

    def __init__(self, files: Hdfs, path: str, mode: str):
        super().__init__(daemon=True)
        self._files, self._path, self._mode = files, path, mode
        self.polls, self.bad = 0, list[str]()
        #: Where the result of each generation was, and who made it.
        self.results: dict[int, tuple[str, str]] = {}
        self._latest = 0
        self._closed = threading.Event()

    def run(self) -> None:
        while not self._closed.wait(0.02):
            try:
                self.poll()
            except Exception as error:  # a reader that ends would see nothing any more
                self.bad.append(f"{self._path}: {error!r}")

    def poll(self) -> None:
        """Poll at all results once."""
        self.polls += 1
        try:
            for folder in self._folders():
                self.check_result(folder)
        except StorageAway:  # both NameNodes, longer than its patience
            return

    def sees(self, generation: int) -> bool:
        """Return whether there is a result of a generation; poll while the NameNodes are away."""
        last = time.monotonic() + 2 * PATIENCE
        while generation not in self.results and not self.bad and time.monotonic() < last:
            self.poll()
        return generation in self.results

    def _folders(self) -> Iterator[str]:
        if self._mode != VERSION:
            yield self._path
            return
        names = [status.name for status in self._files.list(self._path)]
        yield from (f"{self._path}/{name}" for name in names if name.isdigit())
        if LATEST_FILE in names:
            latest = int(self._content(f"{self._path}/{LATEST_FILE}") or 0)
            if 0 < latest < self._latest:
                self.bad.append(f"{LATEST_FILE} went from {self._latest} back to {latest}")
            self._latest = max(latest, self._latest)

    def check_result(self, folder: str) -> None:
        """Poll at one result: a listing of HDFS shows one moment."""
        seen = None
        for _ in range(20):
            listed = {status.name: status.length for status in self._files.list(folder)}
            if not listed:
                return
            if SUCCESS_FILE not in listed:
                self.bad.append(f"{folder} without {SUCCESS_FILE}: {sorted(listed)}")
                return
            success = read_success(self._content(f"{folder}/{SUCCESS_FILE}"))
            if success is None:  # it has just been replaced
                continue
            listed = {name: size for name, size in listed.items() if not name.startswith("_")}
            if listed != dict(success.files) and success.application_id != seen:
                seen = success.application_id  # the listing may be that of the result before
                continue
            own = [name for name, size in success.files if name.endswith(success.application_id) and size == 2]
            if listed != dict(success.files) or len(own) < PARTS:
                self.bad.append(f"{folder} of {success.application_id}: {listed} instead of {success.files}")
            made = (folder if self._mode == VERSION else "", success.application_id)
            if self.results.setdefault(success.generation, made) != made:
                self.bad.append(f"generation {success.generation}: {made} and {self.results[success.generation]}")
            return

    def _content(self, path: str) -> bytes | None:
        return self._files.read_appended(path, 0, 1, MOST_SUCCESS)

    def close(self) -> None:
        self._closed.set()
        self.join()


class Trainer(threading.Thread):
    """Trains one identity, generation after generation, until the time is over."""

    def __init__(
        self, name: str, place: Path, output: str, site: Path, until: float, chance: random.Random, reader: Reader
    ):
        super().__init__(daemon=True)
        self.title, self.counts, self.bad, self.generation = name, Counter[str](), list[str](), 0
        self._output, self._until, self._chance, self._reader = output, until, chance, reader
        #: Seconds of the latest call in which nothing was killed.
        self._usual = 5.0
        self._mark = f"XDG_STATE_HOME={place / name}"
        self._log = place / f"{name}.log"
        self._environ = {**os.environ, "XDG_STATE_HOME": str(place / name), "YTF_SITE": str(site)}

    def run(self) -> None:
        while time.monotonic() < self._until and not self.bad:
            for _ in range(CALLS):
                if self._call():
                    break
            else:
                self.bad.append(f"{self.title}: generation {self.generation} has not succeeded, see {self._log}")
                return
            if not self._reader.sees(self.generation):
                self.bad.append(f"{self.title}: generation {self.generation} succeeded, and there is no result of it")
            self.bad += self._reader.bad
            self.counts["trainings"] += 1
            self.generation += 1

    def _call(self) -> bool:
        """Call ``ytf-submit`` once, with or without a kill; return whether it says that the training has succeeded."""
        program = str(Path(sys.executable).with_name("ytf-submit"))
        words = [program, "--local", "--wait", "-r", "worker:1", "-m", "256", "--environment", f"venv://{sys.prefix}"]
        words += [
            "--run_id",
            self.title,
            "--generation",
            str(self.generation),
            "--output",
            self._output,
            "--mirror",
            "all",
        ]
        words += ["--commit", OUTPUTS[self.title], "--heartbeat_timeout", "5", "--stop_grace", "1", _PROGRAM]
        kind = self._chance.choice([*KINDS, "program"]) if self._chance.random() < SHARE else ""
        moment, began = self._chance.uniform(0.0, self._usual / 2), time.monotonic()
        with self._log.open("ab") as log:
            client = subprocess.Popen(words, env=self._environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.counts["calls"] += 1
        if kind:
            self._strike(kind, client, moment)
        client.wait(300)
        if client.returncode == 0 and not kind:
            self._usual = time.monotonic() - began
        return client.returncode == 0

    def _strike(self, kind: str, client: "subprocess.Popen[bytes]", moment: float) -> None:
        """Kill a process of a kind, so many seconds after it has been seen."""
        while client.poll() is None:
            for pid, variables in environments():
                if self._mark.encode() in variables and _kind_of(pid) == kind:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        client.wait(moment)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        self.counts[f"SIGKILL: {kind}"] += 1
                    return
            time.sleep(0.2)

    def end_all(self) -> None:
        """Kill what is left."""
        for pid, variables in environments():
            if self._mark.encode() in variables:
                os.kill(pid, signal.SIGKILL)


def _kind_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
    return next((kind for kind, text in KINDS.items() if text in words), "program")


def run(seconds: float, seed: int) -> dict[str, int]:
    """Soak for so many seconds; return what was counted.

    Raises
    ------
    RuntimeError
        A reader has seen what must not be, or a training has not succeeded.
    """
    with tempfile.TemporaryDirectory(prefix="ytf-soak-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        place.chmod(0o755)
        with HadoopCluster(place / "hadoop", ha=True) as cluster:
            return _soak(cluster, place, seconds, random.Random(seed))


def _soak(cluster: HadoopCluster, place: Path, seconds: float, chance: random.Random) -> dict[str, int]:
    filesystem, urls = cluster.default_filesystem, list(cluster.namenode_urls)
    site = place / "site.yaml"
    site.write_text(yaml.safe_dump({"namenodes": {filesystem: urls}}))
    until, counts = time.monotonic() + seconds, Counter[str]()
    readers, trainers = [], []
    for name, mode in OUTPUTS.items():
        path, files = f"/soak/{name}/model", Hdfs(urls, cluster.settings.user, {}, patience=PATIENCE)
        readers.append(Reader(files, path, mode))
        after = Reader(files, path, mode)
        own = random.Random(chance.random())
        trainers.append(Trainer(name, place, f"{filesystem}{path}", site, until, own, after))
    for thread in (*readers, *trainers):
        thread.start()
    while any(trainer.is_alive() for trainer in trainers):
        pause = time.monotonic() + FAILOVER
        while time.monotonic() < pause and any(trainer.is_alive() for trainer in trainers):
            time.sleep(0.5)
        if time.monotonic() < until:
            cluster.failover("nn")
            counts["failovers of the NameNode"] += 1
    for trainer in trainers:
        trainer.end_all()
        counts += trainer.counts
    bad = []
    for reader, trainer in zip(readers, trainers, strict=True):
        reader.close()
        counts["polls of the readers"] += reader.polls
        counts["results seen"] += len(reader.results)
        bad += [*reader.bad, *trainer.bad]
    if bad:
        raise RuntimeError(f"{dict(counts)}; {len(bad)} times what must not be, the first: {bad[0]}")
    return dict(counts)
