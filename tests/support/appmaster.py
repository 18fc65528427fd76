"""Skein's application master on the wire, without Java: gRPC in front, local processes as containers.

The coordinator and the agents of the tests are the real programs out of the real
runtime zip; only what stands behind Skein's gRPC service is made here.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from skein.proto import skein_pb2, skein_pb2_grpc

from support.fake_yarn import SECRET
from support.waiting import until
from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.runtime.common.contract import (
    JOB_FILE,
    RUNTIME_FILE,
    VERDICT_SECRET,
    HistoryPlan,
    dump_job,
    load_job,
)
from tf_yarn_ops.runtime.common.report import JobReport, parse_diagnostics, verdict_tag
from tf_yarn_ops.submit.application import build_runtime_job, coordinator_ports
from tf_yarn_ops.submit.certificate import mint
from tf_yarn_ops.submit.runtime_zip import runtime_zip

STATES = skein_pb2.Container.State
APPLICATION = "application_1700000000000_0042"


@dataclass
class LocalContainer:
    """A container: a folder and a process group."""

    service: str
    instance: int
    folder: Path
    process: subprocess.Popen | None = None
    state: str = "REQUESTED"
    message: str = ""
    started_at: float = 0.0

    @property
    def id(self):
        return f"{self.service}_{self.instance}"

    @property
    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def kill(self, number=signal.SIGKILL):
        """Signal the whole group, as a NodeManager does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


@dataclass
class AppMaster(skein_pb2_grpc.AppMasterServicer):
    """One job on this machine.

    Parameters
    ----------
    folder : Path
    spec : JobSpec
    python : str, optional
        Interpreter of the agents.
    master_python : str, optional
        Interpreter of the coordinator.
    hold : set of str, optional
        Ids of containers that are never allocated.
    base_port : int, optional
        Default: any.
    agents_see : int, optional
        First port that the agents try, where something stands between them and the coordinator.
    hiccups : dict of str to int, optional
        How many calls of a method fail before one is answered.
    resourcemanagers : tuple of str, optional
        URLs that the coordinator may ask.
    history : HistoryPlan, optional
        Where the coordinator writes its record.
    nodes : dict of str to str
        The addresses of containers' nodes, where they are not ``127.0.0.1:8042``.
    heartbeat : float, optional
        Seconds between two looks for containers that have ended.
    allow_exec : bool, optional
        Whether ``ytf exec`` runs commands beside the tasks.
    """

    folder: Path
    spec: JobSpec
    python: str = sys.executable
    master_python: str = sys.executable
    hold: frozenset[str] = frozenset()
    base_port: int = 0
    agents_see: int = 0
    hiccups: dict[str, int] = field(default_factory=dict)
    resourcemanagers: tuple[str, ...] = ()
    history: HistoryPlan | None = None
    nodes: dict[str, str] = field(default_factory=dict)
    heartbeat: float = 0.02
    allow_exec: bool = False
    containers: list[LocalContainer] = field(default_factory=list)
    progress: list[float] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)
    ended: list[tuple[int, str]] = field(default_factory=list)
    coordinator: subprocess.Popen | None = None

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.credentials = mint()
        self.base_port = self.base_port or random.randrange(20000, 29000)
        self.job = load_job(self.job_file(self.base_port))
        self.lock = threading.RLock()
        self.stopped = False
        self.server = grpc.server(ThreadPoolExecutor(8))
        skein_pb2_grpc.add_AppMasterServicer_to_server(self, self.server)
        pair = (self.credentials.key, self.credentials.certificate)
        secure = grpc.ssl_server_credentials([pair], self.credentials.certificate, require_client_auth=True)
        self.address = f"127.0.0.1:{self.server.add_secure_port('127.0.0.1:0', secure)}"
        self.server.start()
        am = self.lay_out(self.folder / "am")
        self.coordinator = self.run(
            [self.master_python, RUNTIME_FILE, "coordinator", APPLICATION], am, {VERDICT_SECRET: SECRET}
        )
        self.coordinator_log = am / "log"
        for name, plan in self.job.services.items():
            for _ in plan.indices:
                self.add(name)
        self.reaper = threading.Thread(target=self.reap, daemon=True)
        self.reaper.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        self.reaper.join()
        for process in [self.coordinator, *(c.process for c in self.containers)]:
            if process:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.server.stop(None)

    def job_file(self, base_port):
        return dump_job(
            build_runtime_job(self.spec)._replace(
                ports=coordinator_ports(base_port),
                resourcemanagers=self.resourcemanagers,
                user="tester",
                history=self.history,
                allow_exec=self.allow_exec,
            )
        )

    def lay_out(self, folder, base_port=0):
        folder.mkdir()
        base_port = base_port or self.base_port
        for name, content in (
            (RUNTIME_FILE, runtime_zip()),
            (".skein.crt", self.credentials.certificate),
            (".skein.pem", self.credentials.key),
            (JOB_FILE, self.job_file(base_port)),
        ):
            (folder / name).write_bytes(content)
        return folder

    def run(self, command, folder, env):
        address = {"SKEIN_APPMASTER_ADDRESS": self.address, "SKEIN_APPLICATION_ID": APPLICATION, "NM_HOST": "127.0.0.1"}
        inherited = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        with open(folder / "log", "wb") as log:
            return subprocess.Popen(
                command,
                cwd=folder,
                env={**inherited, **address, **env},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def add(self, service):
        with self.lock:
            instance = sum(c.service == service for c in self.containers)
            container = LocalContainer(service, instance, self.folder / f"{service}_{instance}")
            self.containers.append(container)
            if container.id not in self.hold:
                self.lay_out(container.folder, self.agents_see)
                env = {
                    "SKEIN_CONTAINER_ID": container.id,
                    "CONTAINER_ID": f"container_{container.id}",
                    "NM_HTTP_PORT": "1",
                }
                command = [self.python, "-I", "-S", RUNTIME_FILE, "agent", service, APPLICATION]
                container.process = self.run(command, container.folder, env)
                container.state, container.started_at = "RUNNING", time.time()
            return container

    def reap(self):
        """Notice containers that end, and restart the failed ones as Skein does."""
        restarts = dict.fromkeys(self.job.services, self.spec.restart.max_container_losses)
        while not self.stopped:
            with self.lock:
                for container in self.containers:
                    if container.state != "RUNNING" or container.process.poll() is None:
                        continue
                    container.state = "FAILED" if container.process.returncode else "SUCCEEDED"
                    container.kill()
                    container.message = container.message or "Container failed during execution, see logs."
                    if container.process.returncode and restarts[container.service] > 0 and not self.ended:
                        restarts[container.service] -= 1
                        self.add(container.service)
            threading.Event().wait(self.heartbeat)

    # -- what tests ask ---------------------------------------------------------------------

    def container(self, name):
        """Return the container of this id."""
        return next(c for c in self.containers if c.id == name)

    def wait(self, seconds=30.0) -> JobReport:
        """Return the report with which the coordinator ended the application."""
        try:
            until(lambda: self.ended, seconds, what="the end of the job")
        except AssertionError as error:
            logs = [f"{c.id}:\n{c.log}" for c in self.containers if c.process]
            raise AssertionError("\n".join([str(error), self.coordinator_log.read_text(), *logs])) from None
        self.coordinator.wait(60)
        assert len(self.ended) == 1, "the application was ended twice"
        report, proven = parse_diagnostics(self.ended[0][1], APPLICATION, [verdict_tag(SECRET)])
        assert report is not None and proven
        assert (self.ended[0][0] == skein_pb2.FinalStatus.SUCCEEDED) == (report.reason.value == "SUCCEEDED")
        return report

    def log_says(self, text, seconds=30.0):
        """Wait until the coordinator has logged this."""
        until(lambda: text in self.coordinator_log.read_text(), seconds, what=f"the log line {text!r}")

    # -- Skein's service --------------------------------------------------------------------

    def hiccup(self, method, context):
        """Fail as a Java exception in Skein's handler does, as often as the test wants it."""
        if self.hiccups.get(method, 0) > 0:
            self.hiccups[method] -= 1
            context.abort(grpc.StatusCode.UNKNOWN, "a hiccup")

    def getContainers(self, request, context):
        self.hiccup("getContainers", context)
        with self.lock:
            return skein_pb2.ContainersResponse(
                containers=[
                    skein_pb2.Container(
                        service_name=c.service,
                        instance=c.instance,
                        state=STATES.Value(c.state),
                        exit_message=c.message,
                        start_time=int(1000 * c.started_at),
                        yarn_node_http_address=self.nodes.get(c.id, "127.0.0.1:8042") if c.process else "",
                    )
                    for c in self.containers
                    if not request.states or STATES.Value(c.state) in request.states
                ]
            )

    def killContainer(self, request, context):
        container = self.container(f"{request.service_name}_{request.instance}")
        with self.lock:
            container.state = "KILLED"
            if container.process:
                container.kill()
        return skein_pb2.Empty()

    def addContainer(self, request, context):
        container = self.add(request.service_name)
        return skein_pb2.Container(service_name=container.service, instance=container.instance)

    def SetProgress(self, request, context):
        self.hiccup("SetProgress", context)
        self.progress.append(round(request.progress, 3))
        return skein_pb2.Empty()

    def AddProxy(self, request, context):
        self.pages[request.route] = request.target
        return skein_pb2.Empty()

    def UiInfo(self, request, context):
        return skein_pb2.UIInfoResponse(ui_address=["http://127.0.0.1:1/"], proxy_prefix="/pages")

    def shutdown(self, request, context):
        self.hiccup("shutdown", context)
        self.ended.append((request.final_status, request.diagnostics))
        return skein_pb2.Empty()
