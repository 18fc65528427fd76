"""`TensorFlowYarnTrigger`: follows an application while its task is deferred.

Input: plain values, which Airflow's database keeps in clear text. Output: one event, which names the application that
ended and the reason, see `outcome`.
"""

import asyncio
import contextlib
import contextvars
import logging
import os
import time
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from airflow.triggers.base import BaseTrigger, TriggerEvent

from .versions import cancelled_triggers_query_state

#: Airflow kills all tasks of a DAG run at once when the run is marked as failed. asyncio's own pool has six threads on
#: two cores, with which 38 of 50 kills started too late.
_KILLERS = ThreadPoolExecutor(32, thread_name_prefix="tf-yarn-kill")
#: Seconds for a kill, less than Airflow's ``[triggerer] on_kill_timeout`` of 30; of them, after a pause of the
#: triggerer, for Airflow's answer: for its first one a triggerer builds an API server in itself.
_KILLED, _ANSWERED = 28.0, 20.0
#: Looks through the sockets of the process, for one trigger after the other.
_SCANNER = ThreadPoolExecutor(1, thread_name_prefix="tf-yarn-log")
#: Seconds for Airflow to read the last lines of a trigger.
_READ = 30.0


class TensorFlowYarnTrigger(BaseTrigger):
    """Fires when an application has ended.

    Parameters
    ----------
    application_id : str
    cluster : mapping
        Addresses and names without secrets, see `following.cluster_to_dict`.
    identity : mapping
        See `identity.Identity`.
    deadline : float, optional
        Seconds since the epoch after which the application is killed. Default: none.
    queue_timeout : float, optional
        Seconds in the queue after which the application is killed. Default 0: no limit.
    poll_interval : float, optional
        Seconds between two list calls; all triggers of a deployment with the same interval share them. Default 5.
    on_kill : {"kill", "leave"}, optional
        Whether the application is killed or continues when Airflow ends the task. Default ``kill``.
    lease : mapping, optional
        See `lease.Lease`, without its holder. Default: no lease.
    lines : mapping, optional
        The lines of the program that the log shows: ``tasks``, their names, and ``masks``, the path of the file with
        the secrets, see `masks`; empty if there are none. Default: no lines.
    """

    def __init__(
        self,
        application_id: str,
        cluster: Mapping[str, Any],
        identity: Mapping[str, Any],
        deadline: float | None = None,
        queue_timeout: float = 0.0,
        poll_interval: float = 5.0,
        on_kill: str = "kill",
        lease: Mapping[str, Any] | None = None,
        lines: Mapping[str, Any] | None = None,
    ):
        super().__init__()  # type: ignore[no-untyped-call]
        self.application_id = application_id
        self.cluster = dict(cluster)
        self.identity = dict(identity)
        self.deadline = deadline
        self.queue_timeout = queue_timeout
        self.poll_interval = poll_interval
        self.kill_policy = on_kill
        self.lease = None if lease is None else dict(lease)
        self.lines = None if lines is None else dict(lines)
        self._followed_id = application_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments of this trigger."""
        return "tf_yarn_ops.airflow.trigger.TensorFlowYarnTrigger", {
            "application_id": self.application_id, "cluster": self.cluster, "identity": self.identity,
            "deadline": self.deadline, "queue_timeout": self.queue_timeout, "poll_interval": self.poll_interval,
            "on_kill": self.kill_policy, "lease": self.lease, "lines": self.lines,
        }  # fmt: skip

    async def run(self) -> AsyncGenerator[TriggerEvent, None]:
        """Wait for the end of the application; yield one event, see `build_event`."""
        try:
            # The first import takes half a second; in a thread it does not hold up other triggers.
            followed, program = await asyncio.to_thread(lambda: (self._followed(), self._program()))
            from .following import follow
            from .pauses import pauses

            with pauses().measured():
                report = await follow(followed, cast(logging.Logger, self.log), self._moved, program)
        except asyncio.CancelledError:
            # Without a number it runs in `airflow dags test` or `tasks test`, and its cancellation is a Ctrl-C.
            if self.trigger_id is None or (cancelled_triggers_query_state() and await asyncio.to_thread(self._is_over)):
                await self.on_kill()
            raise
        from .outcome import build_event

        await _await_read_log()
        yield TriggerEvent(build_event(self.application_id, report))  # type: ignore[no-untyped-call]

    def _is_over(self) -> bool:
        from .cleanup import over

        return bool(over(str(self.identity["key"])))

    async def on_kill(self) -> None:
        """Kill the application: its task was cleared, or marked as failed or as success."""
        if self.kill_policy == "leave":
            self.log.info("%s is left alone", self._followed_id)
            return
        from .pauses import pauses

        ask = self.trigger_id is not None and pauses().may_be_replaced()
        kill = asyncio.get_running_loop().run_in_executor(_KILLERS, contextvars.copy_context().run, self._kill, ask)
        done, _ = await asyncio.wait({kill}, timeout=_KILLED)  # wait_for would cancel a kill that is still queued
        if not done:
            self.log.error("%s has not ended in time; its kill goes on", self._followed_id)
            return
        kill.result()

    def _kill(self, ask: bool) -> None:
        from .fast_kill import kill_now
        from .outcome import KILLED_BY_AIRFLOW

        followed, until = self._followed(), time.monotonic() + _KILLED
        if ask and self._may_continue():
            return
        kill_now(
            followed.cluster,
            self._followed_id,
            KILLED_BY_AIRFLOW,
            patience=until - time.monotonic(),
            attempt=followed.identity.attempt,
        )

    def _may_continue(self) -> bool:
        """Return whether another triggerer follows the application, or may follow it, and log which."""
        from .task_instance import answer_within, state_by_key

        self.log.info("this triggerer stood still: it requests the state of the task of %s", self._followed_id)
        state = answer_within(_ANSWERED, lambda: state_by_key(str(self.identity["key"])))
        if state == "deferred":
            self.log.info("%s is left to the triggerer that follows it now", self._followed_id)
        elif not state:
            self.log.warning(
                "%s is left: this triggerer stood still, and Airflow does not answer whether another one follows it; "
                "if its task is over, the next training of this Airflow or its cleanup ends it",
                self._followed_id,
            )
        return state in ("", "deferred")

    def _program(self) -> Any:
        """Return the lines of the program that this trigger shows; None without any."""
        if self.lines is None:
            return None
        from . import masks
        from .following import cluster_from_dict
        from .streamed_log import ProgramLines

        cluster, path, log = cluster_from_dict(self.cluster), self.lines["masks"], cast(logging.Logger, self.log)
        return ProgramLines(
            cluster, self.lines["tasks"], lambda: masks.masking(masks.read(cluster, path) if path else ()), log
        )

    def _moved(self, application_id: str) -> None:
        self._followed_id = application_id

    def _followed(self) -> Any:
        from ..follow.lease import Lease, client_name
        from ..launch.identity import Identity
        from .following import HOLDER, FollowedJob, cluster_from_dict
        from .hook import quieten

        quieten()
        return FollowedJob(
            cluster_from_dict(self.cluster), self.application_id, Identity(**self.identity), self.deadline,
            self.queue_timeout, self.poll_interval, kill=self.kill_policy == "kill",
            lease=None if self.lease is None else Lease(**self.lease, holder=client_name(HOLDER)))  # fmt: skip


async def _await_read_log() -> None:
    """Return when Airflow has read the lines that its triggerer has logged.

    Since 3.0 they pass a socket to another process, which closes the log of a trigger that has ended. What it reads
    later, as on a busy machine, is not in the log of the task (apache/airflow#66158).
    """
    loop, until = asyncio.get_running_loop(), time.monotonic() + _READ
    while time.monotonic() < until and await loop.run_in_executor(_SCANNER, _has_unread_bytes):
        await asyncio.sleep(0.2)


def _has_unread_bytes() -> bool:
    """Return whether this process has written to another one of this machine what that one has not read yet.

    False on a system without Linux's lists of descriptors and of sockets.
    """
    try:
        import fcntl
        import termios

        ours = {f"socket:[{line.split()[6]}]" for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
        numbers = os.listdir("/proc/self/fd")
    except (ImportError, OSError):
        return False
    for number in numbers:
        with contextlib.suppress(OSError):  # another thread has closed it
            if os.readlink(f"/proc/self/fd/{number}") in ours and any(
                fcntl.ioctl(int(number), termios.TIOCOUTQ, bytes(4))
            ):
                return True
    return False
