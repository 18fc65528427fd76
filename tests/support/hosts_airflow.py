"""Airflow on the edge host of the soak on several hosts: two Celery workers, DAG runs without a pause, random kills.

`support.hosts_soak` starts ``python -m support.hosts_airflow`` in the network and with the names of edge. Each line of
its output is a JSON object: ``begun``, ``fault``, ``call`` or ``wrong`` with a text.
"""

import argparse
import json
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import httpx
import psutil

from support.airflow_rows import kill_both
from support.airflow_site import ROWS
from support.celery_site import WORKERS, CeleryAirflowSite
from support.waiting import until

KINDS = ("deferred", "sync")
#: Seconds between two kills, and until what was killed starts again.
PAUSES, LASTS = (15, 45), (2, 25)
#: Seconds for one DAG run with all its retries.
RUN = 1200
ENDED = ("success", "failed")
QUEUED = {"TASK_QUEUED_TIMEOUT": "60", "TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "10", "NUM_STUCK_IN_QUEUED_RETRIES": "20"}


class EdgeAirflowSite(CeleryAirflowSite):
    """Its machines know the names of the cluster's hosts too."""

    def prepare(self):
        # A killed worker may have taken a message of which no task has begun.
        self.environ |= {f"AIRFLOW__SCHEDULER__{name}": value for name, value in QUEUED.items()}
        super().prepare()
        with (self.folder / "hosts").open("a") as hosts:
            hosts.write(Path("/etc/hosts").read_text())


class AirflowSoak:
    """The clients of one Airflow.

    Parameters
    ----------
    site : EdgeAirflowSite
    jobs : list
        Exit code and command of each, by how often it is chosen.
    deadline : float
        When the last run begins, by the monotonic clock.
    seed : int
    """

    def __init__(self, site, jobs, deadline, seed):
        self.site, self.jobs, self.deadline, self.random = site, jobs, deadline, random.Random(seed)
        self.training, self.over = {}, threading.Event()

    def client(self, kind):
        count = 0
        while time.monotonic() < self.deadline:
            count += 1
            key = f"soak-airflow-{kind}-{count}"
            say(begun=key)
            try:
                self.train(kind, key, *self.random.choice(self.jobs))
            except Exception as error:  # everything that is not as it has to be is in the sum
                say(wrong=f"{key}: {type(error).__name__}: {error}")

    def train(self, kind, key, expected, command):
        run = self.site.trigger(f"soak_{kind}", key, command=command)
        self.training[kind] = run
        state = until(lambda: run.peek("state") in ENDED and run.state in ENDED and run.state, RUN, 2, run.log)
        say(call=f"Airflow, {kind}: {state} at try {min(run.peek('try_number'), 3)}")
        log = run.log()
        if state != ("failed" if expected else "success") or (expected and "TASK_FAILED" not in log):
            say(wrong=f"{key}: {state}: {log[-6000:]}")

    def strike(self):
        """Choose a process of Airflow and kill it; return what it was, and what starts it again."""
        fault = self.random.choice(["worker", "child", "child", "triggerer"])
        if fault == "child":
            run = self.training.get("sync")
            pid = run and run.peek("state") == "running" and run.peek("pid")
            if pid and psutil.pid_exists(int(pid)):
                worker = psutil.Process(int(pid))
                kill_both(worker, worker.parent())
            return "process of an Airflow task and its supervisor SIGKILL", None
        name = self.random.choice(WORKERS) if fault == "worker" else fault
        self.site.stop(name, signal.SIGKILL)
        return f"{'Celery worker' if fault == 'worker' else 'triggerer'} SIGKILL", lambda: self.site.start(name)

    def strike_until_the_end(self):
        while not self.over.wait(self.random.uniform(*PAUSES)) and time.monotonic() < self.deadline:
            try:
                fault, undo = self.strike()
            except psutil.Error as error:
                say(note=f"no fault: {error}")
                continue
            say(fault=fault)
            if undo is not None:
                self.over.wait(self.random.uniform(*LASTS))
                undo()

    def run(self):
        clients = [threading.Thread(target=self.client, args=[kind], daemon=True) for kind in KINDS]
        striking = threading.Thread(target=self.strike_until_the_end, daemon=True)
        for thread in (*clients, striking):
            thread.start()
        for thread in clients:
            thread.join()
        self.over.set()
        striking.join()


def say(**words):
    print(json.dumps(words), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deadline", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--resourcemanager", required=True)
    parser.add_argument("--jobs", type=json.loads, required=True)
    options = parser.parse_args()
    dags = options.folder / "dags"
    dags.mkdir(parents=True)
    shutil.copy(ROWS.with_name("soak_rows.py"), dags)
    with EdgeAirflowSite(options.folder, dags, options.wheel) as site:
        site.connect("tf_yarn_default", options.resourcemanager)
        site.await_worker()
        say(note="Airflow is up")
        AirflowSoak(site, options.jobs, options.deadline, options.seed).run()


if __name__ == "__main__":
    try:
        main()
    except (AssertionError, httpx.HTTPError) as error:
        say(wrong=f"Airflow: {type(error).__name__}: {error}")
        raise
