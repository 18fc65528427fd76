"""``python -m tf_yarn_ops.submit.skein_java_process FOLDER LAUNCHER``: submit once through Skein's Java client.

It is a process of its own, because Skein may wait for ever and needs another environment. It reads
``application.proto`` and the certificate in FOLDER. Its last line on stdout is ``submitted <application id>``,
``refused <why>``, or ``broken <why>`` when Skein's JVM ended without an answer: YARN may have accepted the application.

LAUNCHER is the pid of the parent. When the parent ends, or closes our standard input, this process and all processes
that it started end at once, so that no application is submitted without a client.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from ..hadoop.fast_import import import_skein
from ..runtime.common.processes import descendants, send_signal, set_child_subreaper, set_parent_death_signal

#: Options that halve the start time and the memory of the JVM.
JAVA_OPTIONS = "-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
PROTO, CERTIFICATE, KEY, LOG = "application.proto", "client.crt", "client.key", "driver.log"


def main(folder: Path) -> str:
    """Submit the application in ``folder``; return the line that answers the parent."""
    skein = import_skein()
    from skein import exceptions, proto

    message = proto.ApplicationSpec()
    message.ParseFromString((folder / PROTO).read_bytes())
    application = skein.ApplicationSpec.from_protobuf(message)
    security = skein.Security(cert_bytes=(folder / CERTIFICATE).read_bytes(), key_bytes=(folder / KEY).read_bytes())
    try:
        with skein.Client(security=security, log=str(folder / LOG), java_options=JAVA_OPTIONS) as client:
            return f"submitted {client.submit(application)}"
    except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
        return f"broken {_cause(str(error))}"
    except skein.SkeinError as error:
        return f"{'refused' if str(error).strip() else 'broken'} {_cause(str(error))}"


def bind(launcher: int) -> None:
    """Let this process end with its parent, and all processes that Skein starts end with this one."""
    set_parent_death_signal()
    if os.getppid() != launcher:
        sys.exit(1)
    set_child_subreaper()
    subprocess.Popen = _Bound  # type: ignore[assignment,misc]  # Skein starts its JVM in a session of its own
    source = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # child processes neither hold nor read our input
    threading.Thread(target=_end_with_input, args=(source,), daemon=True, name="launcher").start()


class _Bound(subprocess.Popen):  # type: ignore[type-arg]
    """A process that the kernel kills when this one ends, even by SIGKILL."""

    def __init__(self, args: Any, **options: Any):
        parent = os.getpid()

        def before() -> None:
            set_parent_death_signal()
            if os.getppid() != parent:
                os._exit(1)

        super().__init__(args, preexec_fn=before, **options)


def _end_with_input(source: int) -> None:
    while os.read(source, 4096):
        pass
    send_signal(descendants(), signal.SIGKILL)
    os._exit(1)


def _cause(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.rstrip().endswith("exception:")]
    return (lines[0] if lines else "no reason given")[:500]


if __name__ == "__main__":
    bind(int(sys.argv[2]))
    sys.stdout.write(main(Path(sys.argv[1])) + "\n")
