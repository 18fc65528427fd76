"""A whole Airflow of this machine: its processes, each ours, driven by REST as people drive it.

No ``airflow standalone``: it leaves children behind. Every process that has this site's
AIRFLOW_HOME in its environment belongs to the site, whatever its parent is, and ends with the site.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psutil

from support.airflow_run import Run
from support.azkaban_site import made_once
from support.programs import ROOT
from support.waiting import until
from tf_yarn_ops.minicluster.ports import choose_ports

#: The processes and their words; what must answer first stands first.
COMPONENTS = {
    "api-server": ["api-server", "--host", "127.0.0.1", "--workers", "1"],
    "dag-processor": ["dag-processor"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
#: Everything that Airflow waits for, made short: rows are about us, not about its patience.
SETTINGS = {
    "CORE__EXECUTOR": "LocalExecutor",
    "CORE__PARALLELISM": "10",
    "CORE__LOAD_EXAMPLES": "False",
    # The examples begin when their test unpauses them; the rows' DAGs say that they are not paused.
    "CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
    # The API server asks for a connection in its event loop; with the default of 15 it waits for itself.
    "DATABASE__SQL_ALCHEMY_POOL_SIZE": "100",
    # Each process would read all migrations at its start; the database is a copy of one that has had them.
    "DATABASE__CHECK_MIGRATIONS": "False",
    "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "CORE__MAX_ACTIVE_TASKS_PER_DAG": "100",
    "CORE__MAX_ACTIVE_RUNS_PER_DAG": "100",
    "API__SECRET_KEY": "only of this test",
    "API_AUTH__JWT_SECRET": "only of this test, and long enough for a key of SHA-512, which has 64 bytes",
    "API__EXPOSE_CONFIG": "True",
    "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    "DAG_PROCESSOR__REFRESH_INTERVAL": "3600",
    # The scheduler sleeps for two seconds, or until the next of these times: each loop costs what a request does.
    "SCHEDULER__JOB_HEARTBEAT_SEC": "5",
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "5",
    "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "2",
    "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "8",
    "SCHEDULER__POOL_METRICS_INTERVAL": "3600",
    "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "4",
    "SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "4",
    "TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
    "WORKERS__EXECUTION_API_TIMEOUT": "30",
    # Each of them stands for several requests, within about a quarter of a minute.
    "WORKERS__MAX_FAILED_HEARTBEATS": "1",
    "WORKERS__MIN_HEARTBEAT_INTERVAL": "4",
}
READY = 300.0
#: The file with the DAGs of the rows.
ROWS = Path(__file__).parent / "airflow_dags" / "rows.py"
#: What a process imports, or has as its local settings, that builds the API for tasks.
FEW_VERSIONS = Path(__file__).with_name("few_versions.py")
#: Read by the process from which Airflow's are forked. SQLite allows one write at a time, so no write waits for the disk.
#: The API server writes its audit log in its event loop, in which others wait to finish their writes: there it gives up
#: at once, and `AirflowSite.call` tries again. What every task imports and makes is made once.
LOCAL_SETTINGS = """\
import asyncio
import sqlite3
import sys

import few_versions
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool

@event.listens_for(Engine, "connect")
def do_not_wait_for_the_disk(connection, record):
    connection.cursor().execute("PRAGMA synchronous = OFF")

@event.listens_for(Pool, "checkout")
def do_not_hold_up_the_event_loop(connection, record, proxy):
    if isinstance(connection, sqlite3.Connection):
        waits = 20000 if asyncio._get_running_loop() is None else 50
        connection.execute(f"PRAGMA busy_timeout = {waits}")

from airflow.jobs import triggerer_job_runner

make_api_server = triggerer_job_runner.in_process_api_server
triggerer_job_runner.in_process_api_server = lambda: (
    print("the triggerer makes an API server", file=sys.stderr, flush=True), make_api_server())[1]

import airflow.providers.standard.operators.empty
import airflow.sdk.execution_time.supervisor
import airflow.sdk.execution_time.task_runner
import anyio._backends._asyncio
import cryptography.hazmat.backends.openssl.backend
import cryptography.x509
import httpx
import jinja2.ext
import skein
import tf_yarn_ops.airflow.execution
import tf_yarn_ops.airflow.operator
import tf_yarn_ops.follow.watch
import tf_yarn_ops.submit.certificate
import tf_yarn_ops.submit.rest
from tf_yarn_ops.submit.runtime_zip import runtime_zip

runtime_zip()
"""
#: Forks a process of Airflow for each line of its input, and answers with its pid: the imports are most of a start.
FORKS = """\
import gc, json, os, signal, sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import airflow.__main__
import airflow.api_fastapi.app
import airflow.api_fastapi.execution_api.routes
import airflow.cli.commands.api_server_command
import airflow.dag_processing.bundles.local
import airflow.dag_processing.manager
import airflow.jobs.scheduler_job_runner
import airflow.jobs.triggerer_job_runner

gc.freeze()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    words, environ, log = json.loads(line)
    if not (pid := os.fork()):
        break
    print(pid, file=answers, flush=True)
else:
    sys.exit()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
os.setsid()
answers.close()
output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
    os.dup2(file, number)
os.environ.update(environ)
sys.argv = ["airflow", *words]
airflow.__main__.main()
"""


class Forked(psutil.Process):
    """A process that another one has forked, as `subprocess.Popen` shows its own."""

    def poll(self):
        return None if self.is_running() else 0


def plain_environ():
    """Return the environment of this process without any setting of an Airflow or a Hadoop."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "AWS_", "HADOOP", "YTF_"))
    }


def migrated_database():
    """Return the file of an empty database. The cache keeps it: the migration takes seconds of CPU."""

    def migrate(home):
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env={**plain_environ(), "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
            text=True,
            timeout=300,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=home,
        )
        assert done.returncode == 0, done.stdout[-4000:]

    return made_once("airflow-database", [ROOT / "constraints.txt"], migrate) / "airflow.db"


class AirflowSite:
    """Airflow in a folder of its own.

    Parameters
    ----------
    home : Path
        AIRFLOW_HOME.
    dags : Path
        Folder of the DAG files.
    database : Path
        An empty database, which is copied.
    environ : dict
        Added to every process's environment: connections, further settings.
    """

    python = sys.executable
    components = COMPONENTS

    def __init__(self, home, dags, database, environ=None):
        self.home, self.dags, self.database = Path(home), Path(dags), Path(database)
        self.port = choose_ports(["api-server"])["api-server"]
        self.url = f"http://127.0.0.1:{self.port}"
        self.environ = {
            **plain_environ(),
            **{f"AIRFLOW__{name}": value for name, value in SETTINGS.items()},
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__PORT": str(self.port),
            # setproctitle would write over what /proc shows as the environment.
            "SPT_NOENV": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            **(environ or {}),
        }
        self.running, self._forks = {}, None
        self._writing = threading.Lock()
        self.client = httpx.Client(base_url=self.url, timeout=180, trust_env=False)

    def __enter__(self):
        try:
            self.prepare()
            for name in self.components:
                self.start(name)
            self.await_ready()
            # The DAGs stay as they are: it would only take a percent of a core, and a parse for each task that is lost.
            self.stop("dag-processor")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    def prepare(self):
        """Make the home and the database."""
        (self.home / "config").mkdir(parents=True, exist_ok=True)
        (self.home / "config" / "airflow_local_settings.py").write_text(LOCAL_SETTINGS)
        shutil.copy(FEW_VERSIONS, self.home / "config")
        shutil.copy(self.database, self.home / "airflow.db")

    # --- processes

    def start(self, name, **environ):
        """Start a component; a setting in ``environ`` is this process's alone, as on a machine of its own."""
        self.fork(name, self.components[name], self.environ, environ)

    def fork(self, name, words, environ, own, prefix=()):
        """Fork a component from a process that has imported Airflow; all have its environment, and their own settings."""
        if self._forks is None:
            with open(self.home / "forks.log", "ab") as log:
                self._forks = subprocess.Popen([*prefix, self.python, "-c", FORKS], env=environ, cwd=self.home, text=True,
                                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                               start_new_session=True)  # fmt: skip
        print(json.dumps([words, own, str(self.home / f"{name}.log")]), file=self._forks.stdin, flush=True)
        answer = self._forks.stdout.readline()
        assert answer, self.tail("forks")
        self.running[name] = Forked(int(answer))

    def run(self, name, words, environ):
        """Start a process of the site, which writes to a log of this name."""
        with open(self.home / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                words,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.home,
            )

    def stop(self, name, number=signal.SIGTERM, timeout=60):
        """End a component with all its children; SIGTERM lets it end them itself."""
        process = self.running.pop(name)
        family = psutil.Process(process.pid).children(recursive=True)
        if number == signal.SIGKILL:
            for child in family:
                end(child.pid, signal.SIGKILL)
        process.send_signal(number)
        await_end(process, number, timeout)
        for child in psutil.wait_procs(family, 10)[1]:
            end(child.pid, signal.SIGKILL)

    def kill_alone(self, name):
        """Kill a component and leave its children to themselves."""
        process = self.running.pop(name)
        process.kill()
        process.wait(60)

    @contextmanager
    def suspended(self, process):
        """Stop a process with its children for a while.

        They stop while this process holds the lock of Airflow's database: else all others wait in vain for one that does,
        and end themselves.
        """
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        try:
            with closing(sqlite3.connect(self.home / "airflow.db", timeout=60, isolation_level=None)) as connection:
                connection.execute("BEGIN EXCLUSIVE")
                for member in family:
                    member.suspend()
                until(lambda: all(map(is_stopped, family)))
            yield
        finally:
            for member in family:
                member.resume()

    def pids(self):
        """Return the pids of all processes of the site, found by their environment."""
        wanted = f"AIRFLOW_HOME={self.home}".encode()
        return [pid for pid, variables in environments() if wanted in variables and pid != os.getpid()]

    def close(self):
        for pid in self.pids():  # the scheduler would wait for its tasks
            end(pid, signal.SIGKILL)
        for process in self.running.values():
            process.wait(30)
        if self._forks:
            self._forks.communicate(timeout=30)
        self.running.clear()
        self.client.close()
        until(lambda: not self.pids(), 60, 0.1)

    def await_ready(self):
        """Wait until all are at work and every DAG is known."""

        def healthy():
            self.check_running()
            try:
                health = self.client.get("/api/v2/monitor/health").json()
            except (httpx.HTTPError, ValueError):
                return False
            return all(part.get("status") == "healthy" for part in health.values())

        until(healthy, READY, 0.2)
        # The API that tasks talk to is built at its first call, which takes seconds.
        self.client.get("/execution/health/ping").raise_for_status()
        token = self.client.get("/auth/token").json()["access_token"]
        self.client.headers["Authorization"] = f"Bearer {token}"

        def parsed():
            faults = self.get("importErrors")["import_errors"]
            assert not faults, "\n".join(fault["stack_trace"] for fault in faults)
            known = {Path(dag["fileloc"]) for dag in self.get("dags", limit=100)["dags"]}
            return known >= {*self.dags.glob("*.py")}

        until(parsed, READY, 0.2)

    def check_running(self):
        """Fail if one of the processes has ended by itself."""
        for name, process in [*self.running.items()]:
            assert process.poll() is None, f"{name} has ended:\n{self.tail(name)}"

    def tail(self, name, lines=40):
        return "\n".join((self.home / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def query(self, statement, *values):
        """Return the first row of a query of Airflow's database, or None; ``?`` stands for a value.

        Fail where a process has ended by itself: no test waits for what a dead scheduler would do.
        """
        self.check_running()
        database = f"file:{self.home}/airflow.db?mode=ro"
        with closing(sqlite3.connect(database, timeout=30, uri=True)) as connection:
            return connection.execute(statement, values).fetchone()

    # --- REST

    def call(self, method, path, **body):
        """Change something. One at a time, and again where SQLite was locked: Airflow then answers 500."""

        def answered():
            response = self.client.request(method, f"/api/v2/{path}", json=body or None)
            return response if response.status_code != 500 else None

        with self._writing:
            response = until(answered, 180, 0.1)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text[:2000]}"
        return response.json() if response.content else None

    def get(self, path, **parameters):
        self.check_running()
        response = self.client.get(f"/api/v2/{path}", params=parameters)
        assert response.is_success, f"GET {path}: {response.status_code} {response.text[:2000]}"
        return response.json()

    def connect(self, name, url, **extra):
        """Make a connection to a ResourceManager."""
        self.call("POST", "connections", connection_id=name, conn_type="tf_yarn", host=url, extra=json.dumps(extra))

    def trigger(self, dag, run=None, **conf):
        """Start a DAG run and return it."""
        run = run or f"row-{time.time_ns()}"
        self.call("POST", f"dags/{dag}/dagRuns", dag_run_id=run, logical_date=None, conf=conf)
        return Run(self, dag, run)


def environments():
    """Yield pid and environment, a set of bytes, of every process that this user may read."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                yield int(entry), set(Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"))
            except OSError:
                continue


def is_stopped(process):
    """Return whether all threads of a process have stopped for a signal."""
    try:
        return all(psutil.Process(thread.id).status() == psutil.STATUS_STOPPED for thread in process.threads())
    except psutil.NoSuchProcess:  # a thread that has ended meanwhile
        return False


def end(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def await_end(process, number, seconds):
    """Wait for the end of a process that has a signal; after so many seconds it gets it again, twice at most.

    Airflow's scheduler raises SystemExit in its handler. Where that comes while Python is in a callback of its
    garbage collector ("Exception ignored in ..."), it is lost, and the scheduler continues.
    """
    for _ in range(2):
        try:
            return process.wait(seconds)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            process.send_signal(number)
    return process.wait(seconds)
