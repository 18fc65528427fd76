"""The program of the TensorBoard task: copy event files from HDFS, run TensorBoard on the loopback, serve its front.

It is the command of the task, so the agent starts and ends it like any other. It ends with TensorBoard's exit code.
"""

import os
import shlex
import subprocess
import threading
import time
from typing import List, Optional
from urllib.parse import urlsplit

from ..common.contract import Job, read_job
from ..common.hdfs import Hdfs
from ..common.mutual_tls import server_context
from .event_copies import COPY_INTERVAL, COPY_REST, EventCopies
from .front import Front, reserve_loopback_port
from .tensorboard_program import until_it_listens

#: The folder in the working directory with the copies of event files.
COPIES = "tensorboard-events"


def log_line(text: str, *args: object) -> None:
    """Write a line to the container's log."""
    os.write(2, ("tf_yarn_ops tensorboard: %s\n" % (text % args)).encode("utf-8", "replace"))


def main(arguments: List[str]) -> int:
    """Run TensorBoard and its front until TensorBoard ends.

    Parameters
    ----------
    arguments : list of str
        Not used.

    Returns
    -------
    int
        TensorBoard's exit code; 127 if the program does not exist.
    """
    job = read_job()
    plan = job.tensorboard
    assert plan is not None
    logdir, mirror = plan.logdir, None
    namenodes = job.namenodes.get(urlsplit(logdir).netloc) if urlsplit(logdir).scheme == "hdfs" else None
    if namenodes:
        mirror = EventCopies(Hdfs(namenodes, job.user, os.environ, job.authorities), urlsplit(logdir).path, COPIES)
        log_line("event files below %s are copied into this container", logdir)
        copy(mirror)
        logdir = COPIES
    held = reserve_loopback_port()
    port = held.getsockname()[1]
    words = [
        "tensorboard",
        "--logdir",
        logdir,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--reuse_port",
        "true",
        *plan.arguments,
    ]
    log_line("starts %s", shlex.join(words))
    try:
        board = subprocess.Popen(words, env={**os.environ, "TB_PORT": str(port)})
    except OSError as error:
        log_line("tensorboard can't be started: %s; install it into the environment of the job", error.strerror)
        return 127
    if mirror:
        threading.Thread(target=keep_copying, args=(mirror,), daemon=True).start()
    if until_it_listens(board, port):
        serve_front(job, port)
    code = board.wait()
    return code if code >= 0 else 128 - code


def serve_front(job: Job, port: int) -> None:
    """Start the front: plain HTTP on the node's name if the site wants that, else mutual TLS for the coordinator.

    The front of a job of this machine listens on the loopback interface only, as the coordinator does.
    """
    assert job.tensorboard is not None
    host = os.environ["YTF_HOST"]
    address = host if job.tensorboard.direct or host == "127.0.0.1" else ""
    front = Front((address, int(os.environ["YTF_PORT"])), port, None if job.tensorboard.direct else server_context())
    threading.Thread(target=front.serve_forever, daemon=True).start()


def keep_copying(mirror: EventCopies) -> None:
    """Copy new event files for ever."""
    while True:
        began = time.monotonic()
        copy(mirror)
        time.sleep(max(COPY_INTERVAL, COPY_REST * (time.monotonic() - began)))


_last_fault: Optional[str] = None


def copy(mirror: EventCopies) -> None:
    """Copy new event files once; log a fault when it is another one than last time."""
    global _last_fault
    try:
        mirror.refresh()
        fault = None
    except OSError as error:
        fault = str(error)
        if fault != _last_fault:
            log_line("event files can't be copied: %s", fault)
    _last_fault = fault
