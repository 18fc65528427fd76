"""The coordinator's program in the application master: a watchdog process, and its child with the event loop.

The watchdog kills a coordinator that is silent for a minute, so that the application fails instead of hanging. It also
kills the coordinator when the application master has died; usually the NodeManager does, but it may have died too.
"""

import asyncio
import logging
import os
import resource
import select
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Awaitable, List

from ..common.contract import VERDICT_SECRET, Job, read_job
from ..common.local_job import is_local
from ..common.processes import end_with_parent
from ..common.reasons import Reason
from ..common.report import JobReport, compose_diagnostics
from . import record_writer as history
from .containers import SkeinContainers
from .coordinator import Coordinator
from .lifecycle import Verdict
from .listener import PortsTaken, listen_on_first_free
from .partition import POLL_SECONDS, await_loss
from .verdict import (
    FIRST_CONTACT_SECONDS,
    RESOURCEMANAGER_SECONDS,
    VerdictRejected,
    end_application,
    kill_by_rest,
    resourcemanager_knows,
    wait_for_resourcemanager,
)

logger = logging.getLogger(__name__)

#: Seconds between two bytes of the coordinator, and seconds of silence after which the watchdog kills it.
HEARTBEAT_INTERVAL = 5.0
WATCHDOG_SECONDS = 60.0
#: A shell's exit code for a program that does not exist.
NOT_FOUND = 127


def fork_watchdog() -> int:
    """Fork: the child continues as the coordinator, the parent watches it.

    Returns
    -------
    int
        The descriptor of the pipe into which the child has to write. The parent does not return; it exits with the
        child's code.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        end_with_parent(parent)
        return writer
    os.close(writer)
    master = os.getppid()
    while True:
        readable, _, _ = select.select([reader], [], [], WATCHDOG_SECONDS)
        if not readable:
            sys.stderr.write("tf_yarn_ops: the coordinator was silent for %d s, killing it\n" % WATCHDOG_SECONDS)
            os.kill(child, signal.SIGKILL)
            break
        if not os.read(reader, 4096):
            break
        if os.getppid() != master:
            sys.stderr.write("tf_yarn_ops: the application master is gone, ending the coordinator\n")
            os.kill(child, signal.SIGKILL)
            break
    _, status = os.waitpid(child, 0)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def run_loop(main: Awaitable[None]) -> None:
    """Run the coordinator's event loop, without the wait of `asyncio.run` for threads, which may hang in a call."""
    asyncio.new_event_loop().run_until_complete(main)


async def send_heartbeats(descriptor: int) -> None:
    """Show the watchdog that the event loop runs."""
    while True:
        os.write(descriptor, b".")
        await asyncio.sleep(HEARTBEAT_INTERVAL)


async def coordinate(coordinator: Coordinator, secret: str) -> None:
    """Coordinate the job and end the application with its verdict, which the secret proves; see `verdict_tag`."""
    began = time.monotonic()
    job, application_id, containers = coordinator.state.job, coordinator.state.application_id, coordinator.containers
    listener = None
    try:
        listener = listen_on_first_free(job.ports, "127.0.0.1" if is_local(application_id) else "")
        logger.info("Listening on port %d for %d tasks", listener.getsockname()[1], len(job.tasks()))
    except PortsTaken as error:
        coordinator.apply(Verdict(Reason.AM_FAILED, f"the coordinator cannot listen: {error}"))
    await containers.connect()
    finding = asyncio.ensure_future(find_resourcemanager(job, application_id))
    snapshots = history.Snapshots(job, application_id, lambda: coordinator.state.lifecycle, coordinator.status)
    await coordinator.run(listener, snapshots.leave(), end_when_lost(coordinator, finding))
    report = coordinator.report()
    keeping = history.begin_record(job, application_id, coordinator.status(live=False), snapshots)
    seen = finding.done()
    finding.cancel()
    left = RESOURCEMANAGER_SECONDS if seen else max(0.0, FIRST_CONTACT_SECONDS - (time.monotonic() - began))
    await wait_for_resourcemanager(job, application_id, left, seen)
    await asyncio.wait([keeping], timeout=history.RECORD_HOLD_SECONDS)
    await end_application(containers, job, report, secret)
    await asyncio.wait([keeping], timeout=history.WRITE_SECONDS)
    logger.info("Ended after %.1f s", time.monotonic() - began)


async def find_resourcemanager(job: Job, application_id: str) -> None:
    """Return when a ResourceManager has shown the application, or asked for a login; it may be away at the start.

    If the first attempt shows neither, and the job names a ResourceManager, it logs a warning.
    """
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1)  # a name service may be silent for long
    look = partial(resourcemanager_knows, job, application_id)
    known = await loop.run_in_executor(thread, look)
    if not known and job.resourcemanagers:  # because of a firewall or a certificate, for example
        logger.warning(
            "No ResourceManager answers the coordinator at %s: the verdict will %s",
            ", ".join(job.resourcemanagers),
            "not wait for it" if known is None else f"wait for it in the first {FIRST_CONTACT_SECONDS:.0f} s",
        )
    while not known:
        await asyncio.sleep(POLL_SECONDS)
        known = await loop.run_in_executor(thread, look)


async def end_when_lost(coordinator: Coordinator, finding: "asyncio.Future[None]") -> None:
    """End the job when this node is cut off from YARN, if a ResourceManager was ever found from it."""
    await asyncio.shield(finding)
    coordinator.apply(await await_loss(coordinator.state.job))


def allow_many_connections() -> None:
    """Raise the soft limit of open files to the hard limit, because every agent has a connection."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(arguments: List[str]) -> int:
    """Run the coordinator of this application master.

    Parameters
    ----------
    arguments : list of str
        The application id, for readers of ``ps`` only; and the interpreter of the job's environment, if this node does
        not have it and another one runs this program.

    Returns
    -------
    int
        The exit code, of a refusal; else the process has ended before.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    job = read_job()
    application_id = os.environ["SKEIN_APPLICATION_ID"]
    secret = os.environ.pop(VERDICT_SECRET, "")
    if len(arguments) > 1:
        return _refuse(job, application_id, arguments[1], secret)
    pulse = fork_watchdog()
    allow_many_connections()

    async def all_of_it() -> None:
        beating = asyncio.ensure_future(send_heartbeats(pulse))
        await coordinate(Coordinator(job, application_id, SkeinContainers(job)), secret)
        beating.cancel()

    try:
        run_loop(all_of_it())
        code = 0
    except Exception as error:  # say why, and end the application
        logger.exception("The coordinator failed")
        code = 1
        message = f"the coordinator failed: {type(error).__name__}: {error}"
        report = error.report if isinstance(error, VerdictRejected) else _failed(job, application_id, message)
        _kill(job, report, secret)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)  # threads may hang in a call


def _refuse(job: Job, application_id: str, missing: str, secret: str) -> int:
    """End the application because this node lacks the interpreter of its environment; return the exit code."""
    host = os.environ.get("NM_HOST") or os.uname().nodename
    message = (
        f"there is no Python {missing} on {host}: correct the environment, or name one that every node has "
        "(venv:///folder, python:///path, or an archive with bin/python)"
    )
    logger.error("%s", message)
    _kill(job, _failed(job, application_id, message, Reason.ENVIRONMENT_INVALID), secret)
    return NOT_FOUND


def _kill(job: Job, report: JobReport, secret: str) -> None:
    diagnostics = compose_diagnostics(report, secret=secret)
    kill_by_rest(job, report.application_id, diagnostics)


def _failed(job: Job, application_id: str, message: str, reason: Reason = Reason.AM_FAILED) -> JobReport:
    return JobReport(
        application_id,
        name=job.name,
        queue=job.queue,
        user=job.user,
        state="FAILED",
        final_status="FAILED",
        reason=reason,
        message=message,
        versions={"tf_yarn_ops": job.version_of_package},
    )
