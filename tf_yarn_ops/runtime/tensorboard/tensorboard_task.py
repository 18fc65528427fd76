"""The program of the TensorBoard task: copy event files from HDFS, run TensorBoard on the loopback, serve its front.

It is the command of the task, so the agent starts and ends it like any other. It ends with TensorBoard's exit code.
"""

import os
import shlex
import subprocess
import threading
import time
from functools import partial
from typing import Callable, List, Optional
from urllib.parse import urlsplit

from ..common.committed_output import MOST_SUCCESS, SUCCESS_FILE, CommitPlan, find_results, read_success
from ..common.contract import Job, read_job, write_line
from ..common.file_storage import LocalFolder
from ..common.hdfs import Hdfs, JobFiles, open_job_files
from ..common.mutual_tls import server_context
from ..common.processes import reserve_port
from .event_copies import COPY_INTERVAL, COPY_REST, EventCopies
from .front import Front
from .tensorboard_program import until_it_listens

#: The folder in the working directory with the copies of event files.
COPIES = "tensorboard-events"
#: The link in the working directory to an output of the nodes that is committed.
LINK = "tensorboard-output"


#: Writes a line to the container's log.
log_line = partial(write_line, "tf_yarn_ops tensorboard: ")


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
    logdir, moves = plan.logdir, None
    follow: Optional[Callable[[], object]] = None
    if job.commit and logdir == job.output:
        moves, logdir = job.commit, job.commit.working_url(os.environ["YTF_APPLICATION_ID"])
    files = open_job_files(job, logdir)
    if isinstance(files, Hdfs):
        log_line("event files below %s are copied into this container", logdir)
        follow = partial(refresh_copies, EventCopies(files, urlsplit(logdir).path, COPIES), files, moves)
        try_to(follow)
        logdir = COPIES
    elif moves and not moves.location:
        os.symlink(logdir, LINK)
        follow = partial(follow_link, logdir, moves)
        logdir = LINK
    held = reserve_port("127.0.0.1")  # TensorBoard binds it, too
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
    if follow:
        threading.Thread(target=keep_following, args=(follow,), daemon=True).start()
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


def find_result(files: JobFiles, plan: CommitPlan) -> Optional[str]:
    """Return where this application has committed its output; None before, also if there is another result."""
    for _, result in reversed(find_results(plan, files.list)):
        success = read_success(files.read_appended("%s/%s" % (result, SUCCESS_FILE), 0, 1, MOST_SUCCESS))
        if success and success.application_id == os.environ["YTF_APPLICATION_ID"]:
            return result
    return None


def refresh_copies(copies: EventCopies, files: Hdfs, plan: Optional[CommitPlan]) -> None:
    """Copy new event files, also of a working folder from the place where it is committed."""
    if plan and not files.exists(copies.path) and (result := find_result(files, plan)):
        copies.path = result
    copies.refresh()


def follow_link(working: str, plan: CommitPlan) -> None:
    """Let the link, which TensorBoard reads, follow the working folder to the place where it is committed."""
    if os.path.exists(working):
        return
    result = find_result(LocalFolder("/"), plan)
    if result and os.readlink(LINK) != result:
        os.symlink(result, LINK + ".new")
        os.replace(LINK + ".new", LINK)


def keep_following(follow: Callable[[], object]) -> None:
    """Follow the event files for ever."""
    while True:
        began = time.monotonic()
        try_to(follow)
        time.sleep(max(COPY_INTERVAL, COPY_REST * (time.monotonic() - began)))


_last_fault: Optional[str] = None


def try_to(follow: Callable[[], object]) -> None:
    """Follow the event files once; log a fault when it is another one than last time."""
    global _last_fault
    fault = None
    try:
        follow()
    except OSError as error:
        fault = str(error)
        if fault != _last_fault:
            log_line("event files can't be copied: %s", fault)
    _last_fault = fault
