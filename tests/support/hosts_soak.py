"""A soak on several hosts by hand: jobs without a pause, and random faults of the network and of daemons.

``python tests/support/hosts_soak.py --minutes 10 --seed 1``, as root. Clients on edge call ``ytf-submit`` with an
identity, again after exit codes 4 and 5 and after their own SIGKILL, as an engine does; an Airflow with two Celery
workers trains beside them (`support.hosts_airflow`). Exit code 1 when a training ends with a wrong status, two
applications of one train at the same time, more than one succeeds, or something is left. It ends with a table of all
calls and faults, and with the report and the logs of each training that ended wrong. HDFS keeps two copies of each
block: no DataNode is taken while one has fewer.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from support.celery_site import installed_servers
from support.hadoop.hosts import HostsCluster
from support.hosts_rig import HostsRig
from support.packages import product_wheel
from support.programs import ROOT, SUBMIT
from support.waiting import until
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.hadoop.resourcemanager import ENDED

HOSTS, CLIENTS = 3, 3
NODES = [f"n{number}" for number in range(1, HOSTS + 1)]
#: Seconds between two faults, and how long one lasts: nodes expire after 20 s.
PAUSES, LASTS = (5, 20), (3, 45)
#: Seconds for one call of a client, and the most calls for one training.
CALL, CALLS = 600, 12
#: Processes of a job that get SIGKILL.
PROGRAMS = ("agent", "coordinator")
#: Faults that take a DataNode, and all others.
TAKING, OTHERS = ("unplug", "unplug", "datanode"), ("block", "edge", "nodemanager", "client", *PROGRAMS)
WRITES = """python3 -c '
import fsspec, os, time
for number in range(5):
    path = "hdfs:///tmp/soak/%s-%s-%d" % (os.environ["YTF_APPLICATION_ID"], os.environ["TASK_INDEX"], number)
    with fsspec.open(path, "wb") as file:
        file.write(b"x" * 100000)
    with fsspec.open(path, "rb") as file:
        assert len(file.read()) == 100000
    time.sleep(1)
'"""
#: Exit code of a job, and its command, by how often it is chosen.
JOBS = [(0, "sleep 5"), (0, WRITES), (0, "for n in $(seq 20); do echo step $n; sleep 1; done"), (1, "sleep 3; exit 3")]


class HostsSoak:
    """One soak on one cluster."""

    def __init__(self, rig, seed, minutes):
        self.rig, self.random, self.seed, self.over = rig, random.Random(seed), seed, threading.Event()
        self.deadline = time.monotonic() + minutes * 60
        self.sums, self.wrong, self.keys, self.together, self.at_once = Counter(), [], [], set(), set()
        self.processes = {}

    def note_wrong(self, text):
        self.wrong.append(text)
        print(f"WRONG {text}", flush=True)

    def client(self, number):
        count = 0
        while time.monotonic() < self.deadline:
            count += 1
            key = f"soak-{number}-{count}"
            self.keys.append(key)
            try:
                self.train(key, *self.random.choice(JOBS))
            except Exception as error:  # everything that is not as it has to be is in the sum
                self.note_wrong(f"{key}: {type(error).__name__}: {error}")

    def evidence(self, key):
        """Return the report and the logs of a training's applications."""
        return self.rig.evidence(" ".join(app["id"] for app in self.rig.applications() if app["name"] == key))

    def train(self, key, expected, command):
        words = ["--wait", "--json", "--run_id", key, "--name", key, "-m", "256", "-r", "worker:2", "--stop_grace", "2",
                 "--heartbeat_timeout", "20", "--environment", f"venv://{sys.prefix}", command]  # fmt: skip
        for _ in range(CALLS):
            self.processes[key] = process = self.rig.popen(*SUBMIT, *words, stderr=subprocess.PIPE)
            out, err = process.communicate(timeout=CALL)
            code, reason = process.returncode, re.search(r'"reason": "(\w+)"', out)
            self.sums["call", f"{reason[1] if reason else '-'} {code}"] += 1
            if re.search("^Traceback", err, re.M):
                self.note_wrong(f"{key}: {err[-2000:]}")
            if code == expected:
                return
            if code not in (4, 5, -signal.SIGKILL):
                self.note_wrong(f"{key}: exit {code}, not {expected}: {out[-1500:]} {err[-1500:]}")
                return
            time.sleep(2)
        self.note_wrong(f"{key}: no end after {CALLS} calls: {out[-1000:]} {err[-1000:]}")

    def airflow(self):
        """Run the Airflow on edge to its end, and take over what it says."""
        folder = self.rig.cluster.directory / "airflow"
        words = ["--deadline", self.deadline, "--seed", self.seed, "--folder", folder / "site", "--jobs", json.dumps(JOBS),
                 "--wheel", product_wheel(folder / "source"), "--resourcemanager", "http://master.lab.test:8088"]  # fmt: skip
        own = [f"HOME={Path.home()}", f"PYTHONPATH={ROOT}:{ROOT / 'tests'}"]  # the cache of installed servers
        words = ["env", *own, sys.executable, "-m", "support.hosts_airflow", *words]
        with (folder / "client.log").open("w") as log:
            process = self.rig.popen(*map(str, words), stderr=log)
        for line in process.stdout:
            for kind, text in json.loads(line).items():
                if kind == "begun":
                    self.keys.append(text)
                elif kind == "wrong":
                    self.note_wrong(text)
                else:
                    self.sums[kind, text] += 1
                    print(f"Airflow: {kind}: {text}", flush=True)
        if process.wait():
            self.note_wrong(f"Airflow: exit {process.returncode}: {(folder / 'client.log').read_text()[-4000:]}")

    def watch(self):
        """Note trainings of which two applications run, or have programs, at once."""
        while not self.over.wait(2):
            applications = self.applications()
            running = Counter(app["name"] for app in applications if app["state"] == "RUNNING")
            self.together |= {name for name, count in running.items() if count > 1}
            names = {app["id"]: app["name"] for app in applications}
            training = Counter(names.get(application) for application in training_applications())
            self.at_once |= {name for name, count in training.items() if name and count > 1}

    def applications(self):
        try:
            return self.rig.applications()
        except OSError:
            return []

    def strike(self):
        """Choose a fault; return it and what undoes it, if there is something to undo."""
        cluster, node = self.rig.cluster, self.random.choice(NODES)
        peer = self.random.choice([other for other in NODES if other != node])
        fault = self.random.choice([*(TAKING if self.rig.has_all_copies() else ()), *OTHERS])
        daemon = {"datanode": "dn", "nodemanager": "nm"}.get(fault, "") + node[1:].replace("1", "")
        if fault == "unplug":
            cluster.unplug(node)
            return f"{node} is cut off", lambda: cluster.plug(node)
        if fault == "block":
            cluster.block(node, peer)
            return "two nodes are cut off from each other", lambda: cluster.unblock(node)
        if fault == "edge":
            cluster.unplug("edge")
            return "edge is cut off", lambda: cluster.plug("edge")
        if fault in ("datanode", "nodemanager"):
            cluster.stop_daemon(daemon, signal.SIGKILL)
            return f"{fault} SIGKILL", lambda: cluster.start_daemon(daemon)
        if fault == "client":
            live = [process for process in self.processes.values() if process.poll() is None]
            for process in live[:1]:
                process.kill()
            return "client SIGKILL", None
        live = [app["id"] for app in self.applications() if app["state"] == "RUNNING"]
        found = [pid for app in live for pid in cluster.processes_on(node, app) if is_program(pid, fault)]
        for pid in found[:1]:
            os.kill(pid, signal.SIGKILL)
        return f"{fault} SIGKILL", None

    def strike_until_the_end(self):
        while time.monotonic() < self.deadline - 60:
            time.sleep(self.random.uniform(*PAUSES))
            try:
                fault, undo = self.strike()
                self.sums["fault", re.sub(r"n\d", "a node", fault)] += 1
                print(f"{self.deadline - time.monotonic():.0f} s left: {fault}; {len(self.keys)} begun", flush=True)
                if undo is not None:
                    time.sleep(self.random.uniform(*LASTS))
                    undo()
            except (MiniClusterError, OSError) as error:  # the strikes go on
                print(f"no fault: {error}", flush=True)

    def run(self):
        work = [threading.Thread(target=self.client, args=[number], daemon=True) for number in range(CLIENTS)]
        work += [threading.Thread(target=one, daemon=True) for one in (self.airflow, self.strike_until_the_end)]
        watching = threading.Thread(target=self.watch, daemon=True)
        for thread in (*work, watching):
            thread.start()
        for thread in work:
            thread.join()
        self.over.set()
        watching.join()
        self.rig.restore()
        until(lambda: all(app["state"] in ENDED for app in self.rig.applications()), 120, 1, "the end of all")
        applications = self.rig.applications()
        for key in self.keys:
            succeeded = [app["id"] for app in applications if (app["name"], app["finalStatus"]) == (key, "SUCCEEDED")]
            if len(succeeded) > 1:
                self.wrong.append(f"{key} succeeded {len(succeeded)} times: {succeeded}")
        self.wrong += [f"two applications of {key} ran at once" for key in self.together]
        self.wrong += [f"programs of two applications of {key} ran at once" for key in self.at_once]
        self.wrong += [f"left: {found}" for app in applications for found in self.rig.left(app["id"])]


def is_program(pid, program):
    """Return whether a process is an agent, or a coordinator, which has a watchdog of the same name."""
    try:
        return f".ytf.zip\0{program}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def training_applications():
    """Return the applications that have a user's program on any host."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                environ = Path(f"/proc/{entry}/environ").read_bytes()
                found |= {match.decode() for match in re.findall(rb"(?:^|\0)YTF_APPLICATION_ID=([^\0]+)", environ)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    installed_servers()  # from a registry, which edge does not reach
    with tempfile.TemporaryDirectory() as folder, HostsCluster(Path(folder) / "hosts", HOSTS) as cluster:
        soak = HostsSoak(HostsRig(cluster), options.seed, options.minutes)
        soak.run()
        for (kind, what), count in sorted(soak.sums.items()):
            print(f"{count:4d}  {kind:6s} {what}")
        faults = sum(count for (kind, _), count in soak.sums.items() if kind == "fault")
        print(f"{len(soak.keys)} trainings, {faults} faults, {len(soak.wrong)} wrong", *soak.wrong, sep="\n")
        for key in dict.fromkeys(key for key in soak.keys for text in soak.wrong if re.search(rf"\b{key}\b", text)):
            print(soak.evidence(key), flush=True)
    return bool(soak.wrong)


if __name__ == "__main__":
    raise SystemExit(main())
