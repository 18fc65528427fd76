"""A soak by hand: trainings one after the other while seeded faults strike; not collected by pytest.

``python tests/soak.py --minutes 30 --seed 1`` starts a cluster of its own. Some threads play the
scheduler: each starts ``ytf-submit --wait --run_id`` in a process of its own, and again while the
exit code says that the infrastructure failed or the client itself was killed. Every few seconds a
fault strikes. At the end every application has to have a reason that its faults explain, no
identity has trained twice (two at once, or again after a success), and nothing may be left.
The figures stand in docs/reliability.md.
"""

import argparse
import collections
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from fake_yarn import until
from faults import Rig, kill, processes_of

from tf_yarn_ops.minicluster import MiniCluster
from tf_yarn_ops.runtime.reasons import Reason
from tf_yarn_ops.runtime.report import JobReport
from tf_yarn_ops.status import read_report

SCHEDULERS = 3
#: Seconds between two faults, at least and at most.
PAUSE = (3.0, 9.0)
#: What a training's steps take, seconds; it works until then, whoever is struck beside it.
WORK = (4, 12)
#: One training may take so long with all that strikes it, seconds.
LIMIT = 420.0
CALLS = 8
#: The first word of the name tells whether the program fails by itself.
PROGRAM = "for i in $(seq {steps}); do sleep 1; done; exit {code}"
#: Exit codes of a client after which a scheduler calls it again, besides its own death by SIGKILL.
AGAIN = {4, 5}


@dataclass
class Ledger:
    """What was done to whom."""

    struck: dict[str, list[str]] = field(default_factory=lambda: collections.defaultdict(list))
    faults: collections.Counter = field(default_factory=collections.Counter)
    clients: dict[str, subprocess.Popen] = field(default_factory=dict)
    ended: list[dict] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


#: What each fault may make of the application that it strikes, besides what the program itself ends as.
#: Containers and clients have budgets, so a fault may also be survived.
EXPLAINS = {
    "client SIGKILL": set(),
    "client SIGTERM": {Reason.KILLED},
    "agent SIGKILL": {Reason.CONTAINER_LOST},
    "agent SIGSTOP": {Reason.HEARTBEAT_LOST, Reason.CONTAINER_LOST},
    "command SIGKILL": {Reason.TASK_FAILED},
    "coordinator SIGKILL": {Reason.AM_FAILED},
    "AM JVM SIGKILL": {Reason.AM_FAILED},
    "application killed in YARN": {Reason.KILLED},
    "RM restart": set(),
    "NodeManager SIGKILL": {Reason.CONTAINER_LOST, Reason.AM_FAILED, Reason.NODE_LOST, Reason.HEARTBEAT_LOST,
                            Reason.KILLED, Reason.ALLOCATION_TIMEOUT, Reason.REGISTRATION_TIMEOUT},
}  # fmt: skip
#: How often each is drawn; what hits everybody is rare.
WEIGHTS = {"RM restart": 1, "NodeManager SIGKILL": 1}
COMMON = 5


class Soak:
    """Schedulers, a striker, and the books."""

    def __init__(self, rig: Rig, folder: Path, seed: int, minutes: float):
        self.rig, self.folder, self.random = rig, folder, random.Random(seed)
        self.until = time.monotonic() + minutes * 60
        self.ledger = Ledger()
        self._number = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        """Start trainings and faults until the time is over; then let the last trainings end."""
        threads = [threading.Thread(target=self._schedule) for _ in range(SCHEDULERS)]
        striker = threading.Thread(target=self._strike)
        for thread in (*threads, striker):
            thread.start()
        for thread in (*threads, striker):
            thread.join()

    # -- the scheduler --------------------------------------------------------------------------

    def _schedule(self) -> None:
        while time.monotonic() < self.until:
            with self._lock:
                self._number += 1
                name = f"soak-{self._number}"
                steps, code = self.random.randint(*WORK), int(self.random.random() < 0.15)
            self._train(name, steps, code)

    def _train(self, name: str, steps: int, code: int) -> None:
        began, exits = time.monotonic(), []
        while len(exits) < CALLS:
            exits.append(self._call(name, steps, code))
            if exits[-1] not in AGAIN and exits[-1] != -signal.SIGKILL:
                break
        record = {"name": name, "code": code, "exits": exits, "seconds": round(time.monotonic() - began, 1)}
        self.ledger.ended.append(record)
        print(json.dumps(record), flush=True)

    def _call(self, name: str, steps: int, code: int) -> int:
        command = [str(Path(sys.executable).parent / "ytf-submit"), "--wait", "--json", "--run_id", name, "--tag", name,
                   "--resourcemanager", self.rig.url, "--environment", f"venv://{sys.prefix}", "-r", "chief:1,worker:1",
                   "-m", "256", "--heartbeat_timeout", "15", "--stop_grace", "2", "--registration_timeout", "60",
                   "--allocation_timeout", "120", PROGRAM.format(steps=steps, code=code)]  # fmt: skip
        with open(self.folder / f"{name}.log", "a") as log:
            client = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder)
        self.ledger.clients[name] = client
        try:
            return client.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.ledger.wrong.append(f"{name} has not ended after {LIMIT:.0f} s")
            client.kill()
            return client.wait()
        finally:
            self.ledger.clients.pop(name, None)

    # -- the striker ----------------------------------------------------------------------------

    def _strike(self) -> None:
        faults = list(EXPLAINS)
        weights = [WEIGHTS.get(fault, COMMON) for fault in faults]
        while time.monotonic() < self.until:
            time.sleep(self.random.uniform(*PAUSE))
            fault = self.random.choices(faults, weights)[0]
            try:
                if self._blow(fault):
                    self.ledger.faults[fault] += 1
            except (AssertionError, StopIteration, OSError):
                pass  # whoever was aimed at has ended in the meantime

    def _blow(self, fault: str) -> bool:
        """Strike; tell whether there was somebody."""
        if fault in ("RM restart", "NodeManager SIGKILL"):
            return self._daemon("rm" if fault == "RM restart" else "nm", fault)
        if fault.startswith("client"):
            return self._client(fault)
        running = [report for report in self.rig.launcher.list() if report.state == "RUNNING"]
        if not running:
            return False
        application = self.random.choice(running).application_id
        self.ledger.struck[application].append(fault)
        if fault == "application killed in YARN":
            self.rig.launcher.resourcemanager.kill(application, "")
            return True
        number = signal.SIGSTOP if fault.endswith("SIGSTOP") else signal.SIGKILL
        if fault.startswith("agent"):
            pids = self.rig.agents(application, self.random.choice(("chief", "worker")))
        elif fault.startswith("command"):
            pids = self.rig.commands(application)
        else:
            finder = self.rig.coordinator if fault.startswith("coordinator") else self.rig.master
            pids = finder(application)
        kill(pids, number)
        return True

    def _client(self, fault: str) -> bool:
        clients = list(self.ledger.clients.items())
        if not clients:
            return False
        name, client = self.random.choice(clients)
        if fault == "client SIGTERM":
            for application in self._applications(name):
                self.ledger.struck[application["id"]].append(fault)
            self.ledger.struck[name].append(fault)
        client.send_signal(signal.SIGTERM if fault == "client SIGTERM" else signal.SIGKILL)
        return True

    def _daemon(self, name: str, fault: str) -> bool:
        for report in self.rig.launcher.list():
            self.ledger.struck[report.application_id].append(fault)
        self.rig.hadoop.stop_daemon(name, signal.SIGKILL)
        self.rig.hadoop.start_daemon(name)
        return True

    # -- the books ------------------------------------------------------------------------------

    def _applications(self, name: str) -> list[dict]:
        return self.rig.launcher.resourcemanager.find(tags=[name])

    def balance(self) -> None:
        """Find everything that is not as it should be."""
        for record in self.ledger.ended:
            applications = sorted(self._applications(record["name"]), key=lambda item: item["startedTime"])
            reports = [read_report(item) for item in applications]
            for item, report in zip(applications, reports, strict=True):
                self._explain(record, item["id"], report)
                left = self.rig.left(item["id"])
                self.ledger.wrong += [f"{record['name']}: left over: {text}" for text in left]
            self._train_once(record, applications, reports)

    def _explain(self, record: dict, application: str, report: JobReport) -> None:
        struck = self.ledger.struck[application] + self.ledger.struck[record["name"]]
        allowed = {Reason.TASK_FAILED} if record["code"] else {Reason.SUCCEEDED}
        for fault in struck:
            allowed |= EXPLAINS[fault]
        if report.reason not in allowed:
            self.ledger.wrong.append(f"{record['name']}: {application} ended as {report.reason}, struck by "
                                     f"{struck or 'nothing'}: {report.message}")

    def _train_once(self, record: dict, applications: list[dict], reports: list[JobReport]) -> None:
        for earlier, later in itertools.pairwise(applications):
            if later["launchTime"] and later["launchTime"] < earlier["finishedTime"]:
                self.ledger.wrong.append(f"{record['name']}: {earlier['id']} and {later['id']} ran at once")
        won = [n for n, report in enumerate(reports) if report.reason is Reason.SUCCEEDED]
        if won and won != [len(reports) - 1]:
            self.ledger.wrong.append(f"{record['name']}: trained again after a success")
        last = reports[-1] if reports else None
        if last and record["exits"][-1] == 0 and last.reason is not Reason.SUCCEEDED:
            self.ledger.wrong.append(f"{record['name']}: the client ended with 0, YARN with {last.reason}")
        if last and last.reason is Reason.SUCCEEDED and record["exits"][-1] not in (0, 128 + signal.SIGTERM):
            self.ledger.wrong.append(f"{record['name']}: YARN succeeded, the client ended with {record['exits']}")

    def tell(self) -> None:
        """Print the figures."""
        reasons = collections.Counter()
        for record in self.ledger.ended:
            for item in self._applications(record["name"]):
                reasons[str(getattr(read_report(item).reason, "value", None))] += 1
        seconds = [record["seconds"] for record in self.ledger.ended]
        print(json.dumps({
            "trainings": len(self.ledger.ended), "applications": sum(reasons.values()), "reasons": reasons,
            "faults": sum(self.ledger.faults.values()), "by kind": self.ledger.faults,
            "calls of clients": sum(len(record["exits"]) for record in self.ledger.ended),
            "seconds of a training, median and longest": [statistics.median(seconds), max(seconds)],
            "wrong": self.ledger.wrong}, indent=1))  # fmt: skip


def main() -> int:
    """Run the soak; 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ytf-soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with MiniCluster(folder / "hadoop") as hadoop:
            rig = Rig(hadoop)
            soak = Soak(rig, folder, options.seed, options.minutes)
            soak.run()
            until(lambda: not rig.launcher.list(), 300, 0.5)
            soak.balance()
            soak.tell()
            leftover = [words for report in rig.launcher.list() for words in processes_of(report.application_id)]
            rig.close()
    return int(bool(soak.ledger.wrong or leftover))


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    sys.exit(main())
