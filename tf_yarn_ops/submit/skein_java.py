"""`SkeinJavaSubmitter`: submit through Skein's own Java client, when HTTP is closed.

It supports Kerberos and every file system of Hadoop's client, but it starts a JVM. It reserves no id: only YARN tags
tell a second submission from the first.

Skein may wait for ever and needs another environment, so `run_child` submits in a process of its own. Between the two
processes lies a folder: the application, its certificate, the cluster and the log of Skein's driver.
"""

import functools
import json
import logging
import os
import pickle
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import (
    ApplicationNotFound,
    ClusterUnreachable,
    Fault,
    HadoopClientUnfit,
    SpecInvalid,
    SubmissionRejected,
    TfYarnError,
)
from ..follow.kill import take_back
from ..follow.session import Session
from ..follow.sweep import sweep_ended
from ..hadoop.cluster import Cluster
from ..hadoop.fast_import import import_skein
from ..hadoop.resourcemanager import LIVE
from ..hadoop.security.authentication import OTHER_USERS
from ..hadoop.transport import RestUnavailable
from ..job.spec import JobSpec
from ..runtime.common.contract import VERDICT_SECRET, dump_job
from ..runtime.common.datanodes import NO_DATANODE
from ..runtime.common.processes import (
    descendants,
    end_with_parent,
    send_signal,
    set_child_subreaper,
    set_parent_death_signal,
)
from ..runtime.common.report import verdict_tag
from ..staging.archive import pack
from ..staging.staging_directory import StagingDirectory, plain_name
from .application import JOB_SOURCE, RUNTIME_SOURCE, build, plan_runtime_job, renamed_resources
from .certificate import mint
from .placement import check_placement, read_surroundings
from .preflight import CLIENT_CONFIG, check_environment, local_path, with_absolute_sources
from .registry_login import LoginFault
from .runtime_zip import runtime_zip

logger = logging.getLogger(__name__)

#: Seconds for the start of the JVM, the uploads and the submission.
SUBMIT_TIMEOUT = 900.0
#: Seconds after the end of Skein's client in which YARN may still list an application that it has submitted.
_ORPHAN_SECONDS = 3.0
#: Seconds between two checkpoints.
_INTERVAL = 0.25
#: Seconds for the deletion of an unfinished submission, and for the end of its processes, which delete it.
_DELETION, _GRACE = 25.0, 30.0
#: Skein reads a path as a URL, and YARN writes its last part into a script; any other path gets a link of a plain name.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._+/-]*")
#: ``-I`` leaves the working directory out of the module path; the child imports from this process's path.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tf_yarn_ops.submit.skein_java import run_child; run_child(*sys.argv[2:])"
)
#: The files in the folder between the two processes.
PROTO, CERTIFICATE, KEY, LOG, CLUSTER = (
    "application.proto",
    "client.crt",
    "client.key",
    "driver.log",
    "cluster.pickle",
)
#: Options that halve the start time and the memory of the JVM.
JAVA_OPTIONS = "-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
#: Skein's driver writes this line before it makes the directory of an application.
_DIRECTORY = re.compile(r"Uploading application resources to (\S*/(application_\d+_\d+))")
#: Causes that Hadoop's client and Skein hide: a pattern of their texts and logs, and our sentence.
_HIDDEN = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (
            r"org[/.]apache[/.]hadoop[/.]mapreduce[/.]security[/.]TokenCache",
            "the class path of 'yarn classpath --glob' lacks hadoop-mapreduce-client-core; install the MapReduce "
            "client of this Hadoop (folder share/hadoop/mapreduce)",
        ),
        (
            r"No rules applied to|Cannot locate default realm|Can't get Kerberos realm|Cannot find KDC for realm",
            "Java finds no krb5.conf for the realm of the ticket; write /etc/krb5.conf, or set "
            "JDK_JAVA_OPTIONS=-Djava.security.krb5.conf=FILE",
        ),
        (
            r"JAVA_HOME \S* ?(?:is not set|does not exist|could not be found)|"
            r"No such file or directory: '[^']*/bin/java'|"
            r"No such file or directory: 'java'",
            "JAVA_HOME leads to no Java; set it to a Java that this Hadoop knows, or leave it out and put java on PATH",
        ),
        (
            r"0\.0\.0\.0:803[0-3]\b|Wrong FS: \S*, expected: file:",
            "Hadoop's client does not know where the ResourceManager and the file system are; let HADOOP_CONF_DIR name "
            "the folder with the cluster's core-site.xml and yarn-site.xml",
        ),
        (
            r"SIMPLE authentication is not enabled|Client cannot authenticate via:\[TOKEN, KERBEROS\]",
            "Hadoop's client does not use Kerberos, or finds no ticket; check hadoop.security.authentication in the "
            "core-site.xml of HADOOP_CONF_DIR",
        ),
    )
)
#: Hadoop's client repeats a request to this machine, which is its default for the ResourceManager.
_STUCK = re.compile(r"Retrying connect to server: 0\.0\.0\.0/0\.0\.0\.0:\d+\. Already tried [3-9]")
#: Texts of Hadoop's client about a service that is away, starting or in standby; the same submission may succeed later.
_AWAY = re.compile(
    r"connection exception|Connection (?:refused|reset)|No ?Route ?To ?Host|Socket ?Timeout|timed out|"
    r"Broken ?pipe|Unknown ?Host|safe ?mode|StandbyException|not supported in state standby|"
    r"RetriableException|EOFException|Failed to failover|" + NO_DATANODE.pattern,
    re.IGNORECASE,
)


class SkeinJavaSubmitter:
    """Submits applications through ``skein.Client``.

    Parameters
    ----------
    session : Session
    strict_placement : bool, optional
        Refuse a container that no running node could hold.
    environ : mapping of str to str, optional
        For ``yarn``, JAVA_HOME and HADOOP_CONF_DIR. Default: the process's environment.
    refusal : RestUnavailable, optional
        Why HTTP is closed, for messages. Default: it is not known to be.
    """

    reserves = False

    def __init__(
        self,
        session: Session,
        strict_placement: bool = False,
        environ: Mapping[str, str] | None = None,
        refusal: RestUnavailable | None = None,
    ):
        self._session, self._cluster, self._checkpoint = session, session.cluster, session.checkpoint
        self._strict_placement, self._refusal = strict_placement, refusal
        self._environ = dict(os.environ if environ is None else environ)
        # Whether YARN may have an application whose id is unknown: Skein's client has run, without a clear answer.
        self._uncertain = False

    def check(self, spec: JobSpec) -> None:
        """Check queues, labels and nodes before Skein's client starts.

        If the ResourceManager can't be read, log it; YARN then checks the submission alone.
        """
        check_environment(spec)
        if others := renamed_resources(spec):
            given = ", ".join(name for _, name in others)
            raise SubmissionRejected(
                f"Skein's Java client can't request {given}: only a submission over HTTP can"
                + (f", which is closed: {self._refusal}" if self._refusal else "; give submit_with rest")
            )
        if spec.docker.client_config:
            raise SpecInvalid(Fault(CLIENT_CONFIG, LoginFault.NEEDS_REST))
        try:
            around = read_surroundings(spec, self._session.yarn)
        except TfYarnError as error:
            logger.log(
                logging.WARNING if self._strict_placement else logging.DEBUG,
                "submitting without a check of queues, labels and nodes: %s",
                error,
            )
        else:
            check_placement(spec, around, self._strict_placement)

    def reserve(self, spec: JobSpec) -> str:
        """Return no id: Skein's client has it only after YARN has accepted the application."""
        return ""

    def submit(self, spec: JobSpec, application_id: str = "", tags: Iterable[str] = ()) -> str:
        """Submit a job; return its application id when YARN has accepted it.

        If the client or this process ends before that, find the application by all its tags, and kill it.

        Raises
        ------
        HadoopClientUnfit
            This machine has no Hadoop client, or one that can't submit.
        SubmissionRejected
            YARN refused the job.
        ClusterUnreachable
            There was no answer in time, or this machine can't run the client.
        """
        # Another user's application may have the tags of an identity; nobody else has this one.
        user = spec.user or self._cluster.user if tags else None
        tags = tuple(tags) or (f"tfy-{secrets.token_hex(8)}",)
        self._uncertain = False
        try:
            self._check_client()
            with tempfile.TemporaryDirectory(prefix="ytf-") as name:
                folder = Path(name)
                self._write(spec, folder, tags)
                with suppress(RestUnavailable):  # no file system over HTTP, nothing to sweep
                    sweep_ended(self._session.staging(), self._session.resourcemanager, "")
                self._checkpoint()
                return self._run(folder)
        except BaseException as error:
            if self._uncertain:
                self._take_back(tags, user, error)
            if isinstance(error, HadoopClientUnfit) and self._refusal is not None:
                raise HadoopClientUnfit(
                    f"{error}. Submission over HTTP is closed: {self._refusal}", http_closed=True
                ) from error
            if isinstance(error, OSError) and not isinstance(error, TfYarnError):
                raise ClusterUnreachable(f"this machine can't run Skein's Java client: {error}") from error
            raise

    def _take_back(self, tags: Sequence[str], user: str | None, error: BaseException) -> None:
        """Find and kill an application that Skein's client has submitted without returning its id."""
        until = time.monotonic() + _ORPHAN_SECONDS
        try:
            while time.monotonic() < until:
                for application in self._session.resourcemanager.find(tags=tags[:1], states=LIVE, user=user):
                    if set(tags) <= set(application["applicationTags"].split(",")):
                        take_back(self._session, application["id"], error)
                        return
                time.sleep(0.25)
        except (SubmissionRejected, ClusterUnreachable) as second:
            logger.warning("YARN may have accepted the application; it could not be asked: %s", second)

    def _check_client(self) -> None:
        """Raise HadoopClientUnfit if this machine lacks Hadoop's client, or its configuration is no cluster's."""
        if shutil.which("yarn", path=self._environ.get("PATH")) is None:
            raise HadoopClientUnfit(
                "submitting with Skein needs Hadoop's client: no 'yarn' on PATH. Put the bin folder of Hadoop there"
            )
        folder = self._environ.get("HADOOP_CONF_DIR")
        if folder and not Path(folder, "core-site.xml").is_file():
            raise HadoopClientUnfit(
                "submitting with Skein needs the cluster's configuration: HADOOP_CONF_DIR "
                f"{folder} has no core-site.xml. Copy core-site.xml, hdfs-site.xml and "
                "yarn-site.xml from the cluster"
            )

    def _run(self, folder: Path) -> str:
        output, errors = folder / "stdout", folder / "stderr"
        path = [*filter(None, sys.path), str(Path(__file__).parent.parent.parent)]
        command = [
            sys.executable,
            "-I",
            "-X",
            "utf8",
            "-c",
            _START,
            json.dumps(path),
            str(folder),
            str(os.getpid()),
            str(_DELETION),
        ]
        environ = self._environment(folder)
        with output.open("wb") as stdout, errors.open("wb") as stderr:
            self._uncertain = True
            try:
                child = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr)
            except OSError:
                self._uncertain = False  # it was not started
                raise
        try:
            self._await(child, folder / LOG)
        finally:
            _end(child)
            for line in _read(output).splitlines():
                if line.startswith("left "):
                    logger.warning("could not delete %s", line.removeprefix("left "))
        everything = _read(errors) + _read(folder / LOG)
        word, _, answer = (_read(output).strip().splitlines() or [""])[-1].partition(" ")
        if word == "submitted":
            self._uncertain = False
            return answer
        if word in ("refused", "broken"):
            failure = ClusterUnreachable if word == "broken" else _failure(answer)
            self._uncertain = failure is ClusterUnreachable
            if hidden := _hidden_cause(answer + everything):
                raise HadoopClientUnfit(f"Skein's Java client could not submit ({answer}): {hidden}")
            raise failure(f"Skein's Java client could not submit: {answer}")
        last = " | ".join(everything.strip().splitlines()[-3:])
        logger.debug("the end of the log of Skein's Java client: %s", last)
        if hidden := _hidden_cause(everything):
            raise HadoopClientUnfit(f"Skein's Java client could not start: {hidden}")
        if child.returncode < 0:
            raise ClusterUnreachable(f"Skein's Java client was ended by signal {-child.returncode}: {last}")
        raise _failure(last)(f"Skein's Java client ended with exit code {child.returncode}: {last}")

    def _environment(self, folder: Path) -> dict[str, str]:
        """Return the environment of the Java client, in which only the cluster's user can submit.

        On a secured cluster it gets a copy of the tickets that the other requests use: Java reads no other cache than
        a file, and another cache may have another user's ticket.
        """
        environ = {
            name: value
            for name, value in self._environ.items()
            if name not in (*OTHER_USERS, "HADOOP_USER_NAME") and not name.startswith("PYTHON")
        }
        if self._cluster.security.kerberos:
            tickets = _secret(folder / "tickets", b"")
            self._cluster.site.tickets.copy_to(tickets)
            environ["KRB5CCNAME"] = f"FILE:{tickets}"
        else:
            environ["HADOOP_USER_NAME"] = self._cluster.login
        # Skein's channel is on the loopback; gRPC would send it to http_proxy.
        return environ | {"no_grpc_proxy": "127.0.0.1,localhost"}

    def _await(self, child: "subprocess.Popen[bytes]", log: Path) -> None:
        """Wait until the submission ends, runs out of time, or a checkpoint raises an error."""
        until = time.monotonic() + SUBMIT_TIMEOUT
        while True:
            try:
                child.wait(_INTERVAL)
                return
            except subprocess.TimeoutExpired:
                self._checkpoint()
            text = _read(log)
            if _STUCK.search(text) and (hidden := _hidden_cause(text)):  # Hadoop's client would go on for minutes
                raise HadoopClientUnfit(f"Skein's Java client can't submit: {hidden}")
            if time.monotonic() >= until:
                raise ClusterUnreachable(f"submitting with Skein took longer than {SUBMIT_TIMEOUT:g} s")

    def _write(self, spec: JobSpec, folder: Path, tags: Iterable[str]) -> None:
        skein = import_skein()
        spec = with_absolute_sources(spec)
        job = plan_runtime_job(self._cluster, spec, secrets.randbelow(1 << 16), tags)
        application = build(spec, self._cluster.site, job)
        if (viewers := job.viewers) and not viewers.groups:  # its driver knows no class path for our pages
            application.acls.ui_users = [spec.user or self._cluster.user, *viewers.users]
        own = {
            RUNTIME_SOURCE: _secret(folder / "runtime.zip", runtime_zip()),
            JOB_SOURCE: _secret(folder / "job.json", dump_job(job)),
        }
        packed: dict[Path, Path] = {}
        for part in (application.master, *application.services.values()):
            for file in part.files.values():
                path = local_path(file.source)
                if file.source in own:
                    file.source = str(own[file.source])
                elif path is not None and path.is_dir():
                    if path not in packed:
                        packed[path] = folder / f"{len(packed)}.tar.gz"
                        pack(path, packed[path])
                    file.source, file.type = str(packed[path]), skein.FileType.ARCHIVE
                elif path is not None and (not _PLAIN_PATH.fullmatch(str(path)) or len(path.name) > 200):
                    if path not in packed:
                        packed[path] = folder / f"{len(packed)}-{plain_name(path.name)}"
                        packed[path].symlink_to(path)
                    file.source = str(packed[path])
        verdict_secret = secrets.token_hex(16)
        application.master.env[VERDICT_SECRET] = verdict_secret
        application.tags = {*application.tags, *tags, verdict_tag(verdict_secret)}
        credentials = mint()
        application.master.security = skein.Security(cert_bytes=credentials.certificate, key_bytes=credentials.key)
        _secret(folder / CLUSTER, pickle.dumps(self._cluster.acting_for(spec.user or self._cluster.user)))
        _secret(folder / PROTO, application.to_protobuf().SerializeToString())
        client = mint()
        _secret(folder / CERTIFICATE, client.certificate)
        _secret(folder / KEY, client.key)


def _failure(text: str) -> type[SubmissionRejected] | type[ClusterUnreachable]:
    """Return the kind of error in a text of Hadoop's client: the cluster was away, or it refused the request."""
    return ClusterUnreachable if _AWAY.search(text) else SubmissionRejected


def _hidden_cause(text: str) -> str:
    """Return our sentence for a cause that a text hides; empty for all others."""
    return next((sentence for pattern, sentence in _HIDDEN if pattern.search(text)), "")


def _secret(path: Path, content: bytes) -> Path:
    path.touch(0o600)
    path.write_bytes(content)
    return path


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the child and its processes: the child kills them at the end of its input, else the kernel does."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""


# --- the child ----------------------------------------------------------------------------------
_child_ends = threading.Event()


def run_child(folder: str, launcher: str, seconds: str) -> None:
    """Submit the application in a folder; the whole program of the child.

    Its last line on stdout is ``submitted <application id>``, ``refused <why>``, or ``broken <why>`` when Skein's JVM
    ended without an answer: YARN may have accepted the application.

    When the parent ends, or closes our standard input, all processes that this one started end at once, so that no
    application is submitted without a client. Then this process deletes the directory of the unfinished submission,
    which has the job's key; the folder too, if the parent can't do that any more.

    Parameters
    ----------
    folder : str
    launcher : str
        The pid of the parent.
    seconds : str
        The time for the deletion; the parent kills this process when it takes longer.
    """
    _bind(Path(folder), int(launcher), float(seconds))
    answer = _submit_with_skein(Path(folder))
    while _child_ends.is_set():  # the thread ends the process
        signal.pause()
    sys.stdout.write(answer + "\n")


def _submit_with_skein(folder: Path) -> str:
    """Submit the application in ``folder``; return the line that answers the parent."""
    skein = import_skein()
    from skein import exceptions, proto

    message = proto.ApplicationSpec()
    message.ParseFromString((folder / PROTO).read_bytes())
    application = skein.ApplicationSpec.from_protobuf(message)
    security = skein.Security(cert_bytes=(folder / CERTIFICATE).read_bytes(), key_bytes=(folder / KEY).read_bytes())
    try:
        with skein.Client(security=security, log=str(folder / LOG), java_options=_java_options()) as client:
            return f"submitted {client.submit(application)}"
    except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
        return f"broken {_cause(str(error))}"
    except skein.SkeinError as error:
        return f"{'refused' if str(error).strip() else 'broken'} {_cause(str(error))}"


def _java_options() -> list[str]:
    """Return the options of the JVM; Java does not read $KRB5_CONFIG, so a property names the file."""
    options = JAVA_OPTIONS.split()
    given = " ".join(os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    files = [path for path in os.environ.get("KRB5_CONFIG", "").split(":") if os.path.isfile(path)]
    if files and "java.security.krb5.conf" not in given:
        options.append(f"-Djava.security.krb5.conf={files[0]}")
    return options


def _bind(folder: Path, launcher: int, seconds: float) -> None:
    """Let this process end with its parent, and all processes that Skein starts end with this one."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: None)  # the thread below reads it
    for number in (signal.SIGINT, signal.SIGHUP):  # the terminal's; the parent says what to do
        signal.signal(number, signal.SIG_IGN)
    set_parent_death_signal(signal.SIGTERM)
    set_child_subreaper()
    subprocess.Popen = _Bound  # type: ignore[assignment,misc]  # Skein starts its JVM in a session of its own
    source = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # child processes neither hold nor read our input
    threading.Thread(
        target=_end_with_input, args=(source, wake, folder, launcher, seconds), daemon=True, name="launcher"
    ).start()
    if os.getppid() != launcher:
        os.kill(os.getpid(), signal.SIGTERM)


class _Bound(subprocess.Popen):  # type: ignore[type-arg]
    """A process that the kernel kills when this one ends, even by SIGKILL."""

    def __init__(self, args: Any, **options: Any):
        super().__init__(args, preexec_fn=functools.partial(end_with_parent, os.getpid()), **options)


def _end_with_input(source: int, wake: int, folder: Path, launcher: int, seconds: float) -> None:
    """End this process at the end of its input, or at a signal."""
    while True:
        ready, _, _ = select.select([source, wake], [], [])
        if wake in ready or not os.read(source, 4096):
            break
    _child_ends.set()
    try:
        send_signal(descendants(), signal.SIGKILL)
        if left := _delete_unfinished(folder, seconds):
            os.write(1, f"left {left}\n".encode())
    finally:
        if os.getppid() != launcher:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def _delete_unfinished(folder: Path, seconds: float) -> str:
    """Delete the directory of a submission that YARN does not know; return what is left and why, else nothing."""
    try:
        found = _DIRECTORY.findall((folder / LOG).read_text("utf-8", "replace"))
        cluster: Cluster = pickle.loads((folder / CLUSTER).read_bytes())  # written by our parent
    except OSError:
        return ""
    if not found:
        return ""
    url, application_id = found[-1]
    deletion = ThreadPoolExecutor(1).submit(_delete_unknown, cluster, url, application_id)
    if not wait([deletion], seconds).done:
        return f"{url}: the deletion did not end within {seconds:g} s"
    try:
        deletion.result()
    except (TfYarnError, OSError, subprocess.SubprocessError) as error:
        return f"{url}: {' '.join(str(error).split())}"
    return ""


def _delete_unknown(cluster: Cluster, url: str, application_id: str) -> None:
    """Delete the directory over HTTP, else with Hadoop's own client, unless YARN knows the application.

    Skein's client stages on the default file system, and `StagingDirectory` deletes on that of ``staging_url``.
    """
    with suppress(ApplicationNotFound):
        cluster.resourcemanager().get(application_id)
        return
    if cluster.site.staging_url and urlsplit(url)[:2] != urlsplit(cluster.storage.filesystem)[:2]:
        refusal = RestUnavailable(f"it is not on {cluster.storage.filesystem}, and there is no 'hadoop' on PATH")
    else:
        try:
            StagingDirectory(cluster).delete(application_id)
            return
        except RestUnavailable as error:
            refusal = error
    if (hadoop := shutil.which("hadoop")) is None:
        raise refusal
    subprocess.run(
        [hadoop, "fs", "-rm", "-r", "-f", "-skipTrash", url],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _cause(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.rstrip().endswith("exception:")]
    return (lines[0] if lines else "no reason given")[:500]
