"""`SkeinSubmitter`: an application to YARN through Skein's own Java client, the fallback.

It knows Kerberos and every file system that Hadoop's client knows, and costs a JVM.
There is no reserved id: only tags tell a second submission from the first.
"""

import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from . import application as applications
from .bundle import runtime_zip
from .certificate import mint
from .cluster import Cluster
from .errors import ClusterUnreachable, SubmissionRejected
from .folder import pack
from .imports import import_skein
from .preflight import local_path, with_absolute_sources
from .skeinchild import CERTIFICATE, KEY, LOG, PROTO
from .spec import JobSpec

logger = logging.getLogger(__name__)

#: Seconds for the start of the JVM, the uploads and the submission.
SUBMIT_TIMEOUT = 900.0


class SkeinSubmitter:
    """Submits applications through ``skein.Client``.

    Parameters
    ----------
    cluster : Cluster
    environ : mapping of str to str, optional
        For ``yarn``, JAVA_HOME and HADOOP_CONF_DIR. Default: the process's environment.
    checkpoint : callable, optional
        Called between the steps; raises when the submission shall end.
    """

    def __init__(self, cluster: Cluster, *, environ: Mapping[str, str] | None = None,
                 checkpoint: Callable[[], None] = lambda: None):
        self._cluster = cluster
        self._environ = dict(os.environ if environ is None else environ)
        self._checkpoint = checkpoint

    def submit(self, spec: JobSpec, tags: Iterable[str] = ()) -> str:
        """Submit a job; give its application id when YARN has accepted it.

        Raises
        ------
        SubmissionRejected
            There is no Hadoop client here, or YARN refused the job.
        ClusterUnreachable
            No answer in time.
        """
        if shutil.which("yarn", path=self._environ.get("PATH")) is None:
            raise SubmissionRejected("submitting with Skein needs Hadoop's client: no 'yarn' on PATH. Put it there, "
                                     "or submit over HTTP (submit_with: rest)")
        with tempfile.TemporaryDirectory(prefix="ytf-") as name:
            folder = Path(name)
            self._write(spec, folder, tags)
            self._checkpoint()
            return self._run(folder)

    def _run(self, folder: Path) -> str:
        package = str(Path(__file__).parent.parent)
        environ = {
            **self._environ, "HADOOP_USER_NAME": self._cluster.login,
            "PYTHONPATH": os.pathsep.join(filter(None, [package, self._environ.get("PYTHONPATH")])),
            # Skein's channel is on loopback; gRPC would send it to http_proxy.
            "no_grpc_proxy": "127.0.0.1,localhost",
        }
        if self._cluster.secure:
            del environ["HADOOP_USER_NAME"]
        command = [sys.executable, "-m", "tf_yarn_ops.skeinchild", str(folder)]
        try:
            done = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SUBMIT_TIMEOUT, check=False)
        except subprocess.TimeoutExpired as error:
            raise ClusterUnreachable(f"submitting with Skein took longer than {SUBMIT_TIMEOUT:g} s") from error
        word, _, answer = (done.stdout.strip().splitlines() or [""])[-1].partition(" ")
        if word == "submitted":
            return answer
        if word == "refused":
            raise SubmissionRejected(f"Skein's Java client could not submit: {answer}")
        log = folder / LOG
        last = (done.stderr + (log.read_text(errors="replace") if log.exists() else "")).strip().splitlines()[-3:]
        raise SubmissionRejected(f"Skein's Java client ended with exit code {done.returncode}: {' | '.join(last)}")

    def _write(self, spec: JobSpec, folder: Path, tags: Iterable[str]) -> None:
        skein = import_skein()
        spec = with_absolute_sources(spec)
        settings: dict[str, Any] = {"base_port": self._cluster.site.base_port(secrets.randbelow(1 << 16)),
                                    "resourcemanagers": self._cluster.resourcemanagers, "user": self._cluster.user}
        site = self._cluster.site
        application = applications.build(spec, am_java_options=site.am_java_options,
                                         docker_folders=site.docker_folders, **settings)
        own = {applications.RUNTIME_SOURCE: _secret(folder / "runtime.zip", runtime_zip()),
               applications.JOB_SOURCE: _secret(folder / "job.json", applications.job_file(spec, **settings))}
        packed: dict[Path, Path] = {}
        for part in (application.master, *application.services.values()):
            for file in part.files.values():
                path = local_path(file.source)
                if file.source in own:
                    file.source = str(own[file.source])
                elif path is not None and path.is_dir():
                    if path not in packed:
                        packed[path] = folder / f"{len(packed)}.tar.gz"
                        with packed[path].open("wb") as target:
                            pack(path, target)
                    file.source, file.type = str(packed[path]), skein.FileType.ARCHIVE
        application.tags = {*application.tags, *tags}
        credentials = mint()
        application.master.security = skein.Security(cert_bytes=credentials.certificate, key_bytes=credentials.key)
        _secret(folder / PROTO, application.to_protobuf().SerializeToString())
        client = mint()
        _secret(folder / CERTIFICATE, client.certificate)
        _secret(folder / KEY, client.key)


def _secret(path: Path, content: bytes) -> Path:
    path.touch(0o600)
    path.write_bytes(content)
    return path
