"""A soak by hand: jobs without a pause, a seeded random fault every few seconds, and the sum at the end.

``python tests/support/soak.py --minutes 30 --seed 1``. Not part of ``./dev test``. Exit code 1 when a job has another
reason than its fault allows, something is left, or an identity has trained twice.
"""

import argparse
import contextlib
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from support.client_process import Client
from support.faults import FOREVER, Rig, job, kill
from support.hadoop import HadoopCluster
from support.recovery import slow_recovery
from tf_yarn_ops.errors import ClusterUnreachable, MiniClusterError, WaitTimeout
from tf_yarn_ops.follow.yarn_report import never_launched, read_yarn_report
from tf_yarn_ops.launch.identity import Identity
from tf_yarn_ops.runtime.common.reasons import Reason

CLIENTS = 3
#: Seconds for a job: YARN gives up an application master that does not answer after 600.
WAIT = 900
#: Seconds after which a job that nothing but its fault can end has lost what was struck.
STRIKE_AGAIN = 120
#: What the whole cluster goes through, and how often, seconds.
CLUSTER_FAULTS = (30, 60)
#: Seconds for which a ResourceManager that starts slowly answers 404 for all applications.
RECOVERY = 60


def blow_for(rig, name, number):
    """Return what strikes a running job."""
    targets = {"program": rig.commands, "agent": rig.agents, "coordinator": rig.coordinator, "master": rig.master}
    return lambda application: kill(targets[name](application), number)


#: Fault, what it may end as, losses allowed, command.
FAULTS = {
    "none": (Reason.SUCCEEDED, 3, "sleep 3"),
    "exit 3": (Reason.TASK_FAILED, 3, "sleep 1; exit 3"),
    "program SIGKILL": (Reason.TASK_FAILED, 3, FOREVER),
    "program SIGSEGV": (Reason.TASK_FAILED, 3, FOREVER),
    "agent SIGKILL": (Reason.CONTAINER_LOST, 0, FOREVER),
    "agent SIGKILL, replaced": (Reason.SUCCEEDED, 3, f"[ $YTF_ROUND -gt 1 ] || {FOREVER}"),
    "coordinator SIGKILL": (Reason.AM_FAILED, 3, FOREVER),
    "master SIGKILL": (Reason.AM_FAILED, 3, FOREVER),
    "killed by its client": (Reason.KILLED, 3, FOREVER),
}
CLIENT_FAULTS = ("before", "during", "after", "waiting")
#: What a job may end as as well when its node was killed in its life: the minicluster has one.
OF_THE_NODE = (Reason.NODE_LOST, Reason.CONTAINER_LOST, Reason.HEARTBEAT_LOST)


class Soak:
    """One soak on one cluster."""

    def __init__(self, rig, seed, minutes):
        self.rig, self.random = rig, random.Random(seed)
        self.deadline = time.monotonic() + minutes * 60
        self.lock = threading.Lock()
        self.sums, self.wrong, self.identities = Counter(), [], []
        self.killed_at = {"nm": 0.0, "rm": 0.0}

    def choose(self, values):
        with self.lock:
            return self.random.choice(values)

    def client(self, number):
        """Run jobs until the time is over."""
        count = 0
        while time.monotonic() < self.deadline:
            count += 1
            key = f"soak {number} {count} {time.time_ns()}"
            fault = self.choose([*FAULTS, *(f"client SIGKILL {gap}" for gap in CLIENT_FAULTS)])
            try:
                self.client_dies(key, fault) if fault.startswith("client") else self.play(key, fault)
            except Exception as error:  # everything that is not as it has to be is in the sum
                self.note(fault, f"{type(error).__name__}: {error}", None)

    def note(self, fault, wrong, reason):
        with self.lock:
            self.sums[fault, reason.value if reason else "-"] += 1
            if wrong:
                self.wrong.append(f"{fault}: {wrong}")
                print(f"WRONG {fault}: {wrong}", flush=True)

    def play(self, key, fault):
        expected, losses, command = FAULTS[fault]
        identity, began = Identity(key), time.monotonic()
        self.identities.append(identity)
        launcher = self.patiently(self.rig.new_launcher)
        spec = job(command, losses)
        application = self.patiently(lambda: launcher.ensure(spec, identity)).application_id
        report = self.end(launcher, application, identity, fault if command == FOREVER or "replaced" in fault else None)
        left = self.patiently(lambda: self.rig.left(application))
        launcher.close()
        right = report.reason is expected or self.lost_its_node(report.reason, began) or self.never_began(report, began)
        wrong = "" if right else f"{report.reason}: {report.message} ({application})"
        self.note(fault, wrong or (f"left: {left}" if left else ""), report.reason)

    def end(self, launcher, application, identity, fault):
        """Return the report of the end. What a lost node took away before the fault struck is struck again."""
        deadline, strikes = time.monotonic() + WAIT, 0
        while True:
            if fault and self.strike(launcher, application, fault, deadline):
                strikes += 1
            if strikes > 1:
                with self.lock:
                    self.sums[f"{fault}, struck again", ""] += 1
            left = deadline - time.monotonic()
            try:
                return launcher.wait(application, timeout=min(left, STRIKE_AGAIN) if fault else left, identity=identity)
            except WaitTimeout:
                if time.monotonic() >= deadline:
                    raise

    def strike(self, launcher, application, fault, deadline):
        """Wait until the job runs, and do to it what the fault says; False when it has ended, or there was no target."""
        name, _, number = fault.partition(" ")
        while self.patiently(lambda: launcher.report(application)).reason is None and time.monotonic() < deadline:
            with contextlib.suppress(AssertionError):  # it has ended, or its node has
                self.patiently(lambda: self.rig.live(application))
                if fault.startswith("killed"):
                    self.patiently(lambda: launcher.kill(application, "the soak wants it"))
                else:
                    blow_for(self.rig, name, getattr(signal, number.partition(",")[0]))(application)
                return True
            time.sleep(1)
        return False

    def lost_its_node(self, reason, began):
        """Whether a daemon was killed since a job began, and that is what its reason says.

        Without a ResourceManager only the silence of an agent says that its container has ended.
        """
        silent = reason is Reason.HEARTBEAT_LOST and self.killed_at["rm"] >= began
        return silent or (reason in OF_THE_NODE and self.killed_at["nm"] >= began)

    def never_began(self, report, began):
        """Whether the ResourceManager was killed between storing an attempt and launching it, and gave it up."""
        return report.reason is Reason.AM_FAILED and "timed out" in report.message and self.killed_at["rm"] >= began

    def stopping_client(self, key, command, gap):
        """Return a client that has come to its gap."""

        def start():
            try:
                return Client(self.rig, key, command, gap, patience=WAIT)
            except AssertionError as error:
                if Reason.CLUSTER_UNREACHABLE.hint in str(error):
                    raise ClusterUnreachable(str(error)) from error
                raise

        return self.patiently(start)

    def client_dies(self, key, fault):
        gap = fault.rpartition(" ")[2]
        began = time.monotonic()
        gate = self.rig.folder / f"gate {time.monotonic_ns()}"
        command = f"until [ -e '{gate}' ]; do sleep 0.1; done"
        client = self.stopping_client(key, command, gap)
        self.identities.append(client.identity)
        client.process.kill()
        client.process.communicate(timeout=60)

        def call_again():
            """Call it as a scheduler does while the ResourceManager is away."""
            again = Client(self.rig, key, command)
            gate.touch()
            code, report = again.end(WAIT)
            if code == 4:
                raise ClusterUnreachable(key)
            return code, report

        code, report = self.patiently(call_again)
        left = self.patiently(lambda: self.rig.left(report["application_id"]))
        reason = Reason(report["reason"])
        wrong = "" if code == 0 or self.lost_its_node(reason, began) else f"exit {code}: {report}"
        self.note(fault, wrong or (f"left: {left}" if left else ""), reason)

    def patiently(self, action):
        """Ask again while no ResourceManager is active, for at most `WAIT` seconds."""
        deadline = time.monotonic() + WAIT
        while True:
            try:
                return action()
            except ClusterUnreachable:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(1)

    def strike_at_the_cluster(self):
        """Kill the ResourceManager or the NodeManager and start it again, now and then.

        Every other ResourceManager recovers its applications for `RECOVERY` seconds.
        """
        while time.monotonic() < self.deadline - 60:
            with self.lock:
                pause, name = self.random.uniform(*CLUSTER_FAULTS), self.random.choice(["rm", "rm slowly", "nm"])
            time.sleep(pause)
            try:
                self.killed_at[name[:2]] = time.monotonic()
                if name == "rm slowly":
                    with slow_recovery(self.rig.hadoop):
                        time.sleep(RECOVERY)
                else:
                    self.rig.hadoop.stop_daemon(name, signal.SIGKILL)
                    self.rig.hadoop.start_daemon(name)
                with self.lock:
                    self.sums[f"{name} SIGKILL and start", ""] += 1
            except MiniClusterError as error:  # the strikes go on
                self.note(f"{name} SIGKILL", str(error), None)
            left = (self.deadline - time.monotonic()) / 60
            print(f"{left:.0f} minutes left: {len(self.identities)} begun, {len(self.wrong)} wrong", flush=True)

    def run(self):
        threads = [threading.Thread(target=self.client, args=[number], daemon=True) for number in range(CLIENTS)]
        threads.append(threading.Thread(target=self.strike_at_the_cluster, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for identity in self.identities:
            found = list(map(read_yarn_report, self.rig.launcher.session.resourcemanager.find(tags=[identity.tag])))
            trained = [report for report in found if not never_launched(report)]
            self.sums["application master that YARN could not launch", ""] += len(found) - len(trained)
            if len(trained) > 1:
                ends = ", ".join(f"{report.application_id} {report.reason}: {report.message}" for report in trained)
                self.wrong.append(f"{identity.key} trained {len(trained)} times: {ends}")
        files = self.rig.launcher.session.staging(self.rig.launcher.cluster.user).filesystem
        left = [status.name for status in files.list(self.rig.launcher.cluster.staging)
                if status.name.startswith("application_")]  # fmt: skip
        self.wrong += [f"left in HDFS: {name}" for name in left]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, HadoopCluster(Path(folder) / "hadoop") as hadoop:
        rig = Rig(hadoop)
        rig.folder = Path(folder)
        soak = Soak(rig, options.seed, options.minutes)
        soak.run()
        for (fault, reason), count in sorted(soak.sums.items()):
            print(f"{count:4d}  {fault:30s} {reason}")
        print(f"{len(soak.identities)} trainings, {len(soak.wrong)} wrong", *soak.wrong, sep="\n")
        rig.close()
    return bool(soak.wrong)


if __name__ == "__main__":
    raise SystemExit(main())
