"""``python -m tf_yarn_ops.submit.skein_java_process FOLDER LAUNCHER SECONDS``: submit through Skein's Java client.

It is a process of its own, because Skein may wait for ever and needs another environment. It reads
``application.proto`` and the certificate in FOLDER. Its last line on stdout is ``submitted <application id>``,
``refused <why>``, or ``broken <why>`` when Skein's JVM ended without an answer: YARN may have accepted the application.

LAUNCHER is the pid of the parent. When the parent ends, or closes our standard input, all processes that this one
started end at once, so that no application is submitted without a client. Then this process deletes the directory of
the unfinished submission, which has the job's key; FOLDER too, if the parent can't do that any more. SECONDS is the
time for this deletion; the parent kills this process when it takes longer.
"""

import os
import pickle
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ApplicationNotFound, TfYarnError
from ..hadoop.fast_import import import_skein
from ..runtime.common.processes import descendants, send_signal, set_child_subreaper, set_parent_death_signal

if TYPE_CHECKING:
    from ..hadoop.cluster import Cluster

#: Options that halve the start time and the memory of the JVM.
JAVA_OPTIONS = "-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
PROTO, CERTIFICATE, KEY, LOG, CLUSTER = ("application.proto", "client.crt", "client.key", "driver.log",
                                         "cluster.pickle")
#: Skein's driver writes this line before it makes the directory of an application.
_DIRECTORY = re.compile(r"Uploading application resources to (\S*/(application_\d+_\d+))")
_ending = threading.Event()


def main(folder: Path) -> str:
    """Submit the application in ``folder``; return the line that answers the parent."""
    skein = import_skein()
    from skein import exceptions, proto

    message = proto.ApplicationSpec()
    message.ParseFromString((folder / PROTO).read_bytes())
    application = skein.ApplicationSpec.from_protobuf(message)
    security = skein.Security(cert_bytes=(folder / CERTIFICATE).read_bytes(), key_bytes=(folder / KEY).read_bytes())
    try:
        with skein.Client(security=security, log=str(folder / LOG), java_options=java_options()) as client:
            return f"submitted {client.submit(application)}"
    except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
        return f"broken {_cause(str(error))}"
    except skein.SkeinError as error:
        return f"{'refused' if str(error).strip() else 'broken'} {_cause(str(error))}"


def java_options() -> list[str]:
    """Return the options of the JVM; Java does not read $KRB5_CONFIG, so it is told the file."""
    options = JAVA_OPTIONS.split()
    told = " ".join(os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    files = [path for path in os.environ.get("KRB5_CONFIG", "").split(":") if os.path.isfile(path)]
    if files and "java.security.krb5.conf" not in told:
        options.append(f"-Djava.security.krb5.conf={files[0]}")
    return options


def bind(folder: Path, launcher: int, seconds: float) -> None:
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
    threading.Thread(target=_end_with_input, args=(source, wake, folder, launcher, seconds),
                     daemon=True, name="launcher").start()
    if os.getppid() != launcher:
        os.kill(os.getpid(), signal.SIGTERM)


class _Bound(subprocess.Popen):  # type: ignore[type-arg]
    """A process that the kernel kills when this one ends, even by SIGKILL."""

    def __init__(self, args: Any, **options: Any):
        parent = os.getpid()

        def before() -> None:
            set_parent_death_signal()
            if os.getppid() != parent:
                os._exit(1)

        super().__init__(args, preexec_fn=before, **options)


def _end_with_input(source: int, wake: int, folder: Path, launcher: int, seconds: float) -> None:
    """End this process at the end of its input, or at a signal."""
    while True:
        ready, _, _ = select.select([source, wake], [], [])
        if wake in ready or not os.read(source, 4096):
            break
    _ending.set()
    try:
        send_signal(descendants(), signal.SIGKILL)
        left = delete_unfinished(folder, seconds)
        if left:
            os.write(1, f"left {left}\n".encode())
    finally:
        if os.getppid() != launcher:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def delete_unfinished(folder: Path, seconds: float) -> str:
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


def _delete_unknown(cluster: "Cluster", url: str, application_id: str) -> None:
    if not _known(cluster, application_id):
        _delete(cluster, url, application_id)


def _known(cluster: "Cluster", application_id: str) -> bool:
    try:
        cluster.resourcemanager().get(application_id)
    except ApplicationNotFound:
        return False
    return True


def _delete(cluster: "Cluster", url: str, application_id: str) -> None:
    """Delete the directory over HTTP, else with Hadoop's own client.

    Skein's client stages on the default file system, and `StagingDirectory` deletes on that of ``staging_url``.
    """
    from ..hadoop.transport import RestUnavailable
    from ..staging.staging_directory import StagingDirectory

    if cluster.site.staging_url and urlsplit(url)[:2] != urlsplit(cluster.filesystem)[:2]:
        refusal = RestUnavailable(f"it is not on {cluster.filesystem}, and there is no 'hadoop' on PATH")
    else:
        try:
            StagingDirectory(cluster).delete(application_id)
            return
        except RestUnavailable as error:
            refusal = error
    hadoop = shutil.which("hadoop")
    if hadoop is None:
        raise refusal
    subprocess.run([hadoop, "fs", "-rm", "-r", "-f", "-skipTrash", url], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _cause(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.rstrip().endswith("exception:")]
    return (lines[0] if lines else "no reason given")[:500]


if __name__ == "__main__":
    bind(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    answer = main(Path(sys.argv[1]))
    while _ending.is_set():  # the thread ends the process
        signal.pause()
    sys.stdout.write(answer + "\n")
