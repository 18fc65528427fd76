"""`ProgramLines`: the lines of the job's program in the log of the Airflow task, while a worker or the triggerer waits.

Input: the addresses of the cluster and the names of tasks. Output: a bounded number of masked lines for each look.
"""

import asyncio
import contextlib
import contextvars
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import ApplicationNotFound, SpecInvalid, TfYarnError
from ..follow.log_reader import Logs, default_task
from ..follow.log_stream import LogLine, LogStream
from ..follow.session import Session
from ..hadoop.cluster import Cluster
from ..runtime.common.escaping import escape_controls

logger = logging.getLogger(__name__)

#: Seconds between two looks, lines that a look may tell, and characters of a line.
SCAN_SECONDS, MOST_LINES, LONGEST = 5.0, 200, 2000
#: Seconds in which the secrets are read before a wait begins, whose end deletes their file.
_SECRETS_SECONDS = 10.0
#: Seconds for the lines of the program that are left at the end; YARN may need some to collect a log.
LAST_SECONDS = 30.0
#: How often the lines are read at the end, as long as YARN does not answer.
_LAST_TRIES = 3
#: Characters behind the end of a shown line that are masked too, twice: a secret of so many may begin in the line.
_OVERLAP = 4096
_ALL, _CHIEF = "all", "chief"
#: A triggerer may follow many tasks. asyncio's own pool has few threads, which their waits need.
_READERS = ThreadPoolExecutor(8, thread_name_prefix="tf-yarn-lines")


class ProgramLines:
    """Writes the new lines of tasks' logs.

    Parameters
    ----------
    cluster : Cluster
    tasks : sequence of str
        ``chief`` (the chief, else the first task), ``all``, or names of tasks with ``*`` and ``?``.
    masking : callable
        Returns the function that masks the secrets in a line. Called once, in a thread, before the first line is read;
        may raise `TfYarnError`: then no line is shown.
    log : logging.Logger
        The log of the Airflow task.
    """

    def __init__(
        self, cluster: Cluster, tasks: Sequence[str], masking: Callable[[], Callable[[str], str]], log: logging.Logger
    ):
        self._tasks = tuple(tasks)
        self._masking = masking
        self._mask: Callable[[str], str] = lambda line: ""
        self._log = log
        self._session = Session(cluster)
        self._logs = Logs(self._session)
        self._stream: LogStream | None = None
        self._ended = asyncio.Event()
        self._secrets_read = asyncio.Event()
        self._application_id: Callable[[], str] = str
        self._task: asyncio.Task[None] | None = None

    async def start(self, application_id: Callable[[], str]) -> None:
        """Log new lines in a task of the event loop until `finish` or `close`; wait some seconds for the secrets.

        Parameters
        ----------
        application_id : callable
            Returns the application that trains now.
        """
        self._application_id = application_id
        self._task = asyncio.ensure_future(self._follow())
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._secrets_read.wait(), _SECRETS_SECONDS)

    async def finish(self) -> None:
        """Log the remaining lines."""
        self.end()
        if self._task is not None and (await asyncio.wait({self._task}, timeout=LAST_SECONDS))[1]:
            self._log.warning(
                "stream_logs: the last lines of the program did not come within %.0f s; all of them: ytf logs %s",
                LAST_SECONDS,
                self._application_id(),
            )

    async def show(self, application_id: str) -> None:
        """Log the lines of an application that has ended, and close."""
        try:
            await self.start(lambda: application_id)
            await self.finish()
        finally:
            self.close()

    async def _follow(self) -> None:
        try:
            self._mask = await _in_thread(self._masking)
        except TfYarnError as error:
            self._log.warning(
                "stream_logs: no lines of the program, because its secrets are not known here (%s); to "
                "see them: ytf logs %s",
                error,
                self._application_id(),
            )
            return
        finally:
            self._secrets_read.set()
        ended, tries = False, _LAST_TRIES
        while tries:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), SCAN_SECONDS)
            if ended:  # the last poll has failed
                await asyncio.sleep(SCAN_SECONDS)
            # The end may have come before the first poll.
            ended = self._ended.is_set()
            try:
                await self._poll(self._application_id())
                tries = 0 if ended else tries
            except (SpecInvalid, ApplicationNotFound) as error:  # another poll is of no use
                self._log.warning("stream_logs: %s", error)
                return
            except TfYarnError as error:
                logger.debug("no lines of %s: %s", self._application_id(), error)
                tries -= ended
                if not tries:
                    self._log.warning(
                        "stream_logs: the last lines are not known here (%s); to see them: ytf logs %s",
                        error,
                        self._application_id(),
                    )

    def end(self) -> None:
        """Let the task log the remaining lines and end."""
        self._ended.set()

    async def _poll(self, application_id: str) -> None:
        """Log the new lines of an application; after its end, all remaining ones."""
        lines, left_out = await _in_thread(lambda: self._read(application_id))
        for task, number in left_out.items():
            self._log.info(
                "%s lines of %s are left out; all of them: ytf logs %s --task %s", number, task, application_id, task
            )
        for line in lines:
            self._log.info("%s", escape_controls(line))

    def _read(self, application_id: str) -> tuple[Sequence[str], Counter[str]]:
        application = self._session.resourcemanager.get(application_id)
        report = self._session.read_report(application)
        if self._stream is None:
            if not report.tasks:
                return [], Counter()
            chosen = {_ALL: "*:*", _CHIEF: default_task(report)}
            self._stream = LogStream(self._logs, [chosen.get(name, name) for name in self._tasks])
        lines, left_out = deque[LogLine](), Counter[str]()
        for line in self._stream.poll(application, report):
            lines.append(line)
            if len(lines) > MOST_LINES:  # the end of a log says why the job failed
                left_out[lines.popleft().task] += 1
        return [f"{line.task} | {mask_line(line.text, self._mask)}" for line in lines], left_out

    def close(self) -> None:
        """End the task and close the connections."""
        if self._task is not None:
            self._task.cancel()
        with contextlib.ExitStack() as stack:
            for one in (self._session, self._logs, self._stream):
                if one is not None:
                    stack.callback(one.close)


def mask_line(text: str, mask: Callable[[str], str]) -> str:
    """Return the begin of a line, at most `LONGEST` characters, without secrets; the time does not grow with the line.

    Parameters
    ----------
    text : str
    mask : callable
        Masks the secrets of a text of at most 10,192 characters.
    """
    head = text[: LONGEST + 2 * _OVERLAP]
    masked = mask(head)
    # A secret that the cut has halved is not known by its half, and masks let it move to the front.
    return masked[: LONGEST if head == text else max(0, min(LONGEST, len(masked) - _OVERLAP))]


async def _in_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_READERS, contextvars.copy_context().run, call)
