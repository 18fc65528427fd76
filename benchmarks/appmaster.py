"""Skein's application master as far as a coordinator asks it, without Java and without containers.

The coordinator is the real program out of the real runtime zip. All containers are
running from the start; who speaks for them is the benchmark's affair.
"""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from skein.proto import skein_pb2, skein_pb2_grpc

from tf_yarn_ops.job.spec import JobSpec
from tf_yarn_ops.runtime.common.contract import CERTIFICATE_FILE, JOB_FILE, KEY_FILE, RUNTIME_FILE, dump_job
from tf_yarn_ops.runtime.common.report import JobReport, parse_diagnostics
from tf_yarn_ops.submit.application import build_runtime_job, coordinator_ports
from tf_yarn_ops.submit.certificate import mint
from tf_yarn_ops.submit.runtime_zip import runtime_zip

APPLICATION = "application_1700000000000_0043"
HOST = "127.0.0.1"


class AppMaster(skein_pb2_grpc.AppMasterServicer):  # type: ignore[misc]
    """One job whose coordinator runs; a context manager.

    Parameters
    ----------
    folder : Path
        Becomes the working directory of the coordinator.
    spec : JobSpec
    """

    def __init__(self, folder: Path, spec: JobSpec):
        self.folder = folder
        ports = coordinator_ports(random.randrange(20000, 29000))
        self.job = build_runtime_job(spec)._replace(ports=ports, user="bench")
        self.job_file = dump_job(self.job)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ended: list[str] = []
        self._asked, self._over = threading.Event(), threading.Event()

    def __enter__(self) -> "AppMaster":
        credentials = mint()
        self._contents = {
            RUNTIME_FILE: runtime_zip(),
            JOB_FILE: self.job_file,
            CERTIFICATE_FILE: credentials.certificate,
            KEY_FILE: credentials.key,
        }
        self.lay_out(self.folder)
        self._server = grpc.server(ThreadPoolExecutor(8))
        skein_pb2_grpc.add_AppMasterServicer_to_server(self, self._server)
        secure = grpc.ssl_server_credentials(
            [(credentials.key, credentials.certificate)], credentials.certificate, require_client_auth=True
        )
        self.address = f"{HOST}:{self._server.add_secure_port(f'{HOST}:0', secure)}"
        self._server.start()
        self.log = self.folder / "log"
        self.coordinator = self.run([sys.executable, "-u", RUNTIME_FILE, "coordinator", APPLICATION], self.folder, {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._server.stop(None)

    def lay_out(self, folder: Path) -> None:
        """Put the files of a container into its folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._contents.items():
            (folder / name).write_bytes(content)

    def run(self, command: list[str], folder: Path, env: dict[str, str]) -> "subprocess.Popen[bytes]":
        """Start a program as a NodeManager would: own process group, log in its folder."""
        inherited = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        ours = {"SKEIN_APPMASTER_ADDRESS": self.address, "SKEIN_APPLICATION_ID": APPLICATION, "NM_HOST": HOST}
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**inherited, **ours, **env},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def port(self) -> int:
        """Wait until the coordinator listens and knows Skein; give its port."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.coordinator.poll() is None:
            found = re.search(r"Listening on port (\d+)", self.log.read_text())
            if found and self._asked.is_set():
                return int(found.group(1))
            time.sleep(0.02)
        raise RuntimeError(f"the coordinator does not listen\n{self.log.read_text()}")

    def wait(self, seconds: float = 60.0) -> JobReport:
        """Return the report with which the coordinator ended the application."""
        if not self._over.wait(seconds):
            raise RuntimeError(f"no end of the job within {seconds:g} s\n{self.log.read_text()[-4000:]}")
        self.coordinator.wait(20)
        report = parse_diagnostics(self._ended[0], APPLICATION)[0]
        if report is None:
            raise RuntimeError(f"no report in the diagnostics: {self._ended[0][:500]}")
        return report

    # -- Skein's service --------------------------------------------------------------------

    def getContainers(self, request: Any, context: Any) -> Any:
        """All containers run."""
        running = skein_pb2.Container.State.Value("RUNNING")
        self._asked.set()
        return skein_pb2.ContainersResponse(
            containers=[
                skein_pb2.Container(service_name=name, instance=instance, state=running)
                for name, plan in self.job.services.items()
                for instance in range(len(plan.indices))
            ]
        )

    def SetProgress(self, request: Any, context: Any) -> Any:
        """Taken."""
        return skein_pb2.Empty()

    def AddProxy(self, request: Any, context: Any) -> Any:
        """Taken."""
        return skein_pb2.Empty()

    def UiInfo(self, request: Any, context: Any) -> Any:
        """Any address."""
        return skein_pb2.UIInfoResponse(ui_address=[f"http://{HOST}:1/"], proxy_prefix="/pages/")

    def shutdown(self, request: Any, context: Any) -> Any:
        """Keep the diagnostics."""
        self._ended.append(request.diagnostics)
        self._over.set()
        return skein_pb2.Empty()
