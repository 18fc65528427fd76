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

from ..errors import SpecInvalid, TfYarnError
from ..follow.live_report import LiveReports
from ..follow.log_reader import Logs, default_task
from ..follow.log_stream import LogLine, LogStream
from ..follow.yarn_report import read_yarn_report
from ..hadoop.cluster import Cluster
from ..history.histories import with_recorded_tasks
from ..runtime.common.escaping import escape_controls

logger = logging.getLogger(__name__)

#: Seconds between two looks, lines that a look may tell, and characters of a line.
SCAN_SECONDS, MOST_LINES, LONGEST = 5.0, 200, 2000
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
        self._cluster, self._tasks = cluster, tuple(tasks)
        self._masking = masking
        self._mask: Callable[[str], str] = _hide
        self._log = log
        self._resourcemanager = cluster.backend()
        self._live = LiveReports(cluster)
        self._logs = Logs(cluster, self._resourcemanager)
        self._stream: LogStream | None = None
        self._ended = asyncio.Event()

    async def follow(self, application_id: Callable[[], str]) -> None:
        """Log new lines until `end` is called, and then the remaining ones.

        Parameters
        ----------
        application_id : callable
            Returns the application that trains now.
        """
        # At once: the file of the secrets goes when the application ends.
        try:
            self._mask = await _in_thread(self._masking)
        except TfYarnError as error:
            self._log.warning(
                "stream_logs: no lines of the program, because its secrets are not known here (%s); to "
                "see them: ytf logs %s",
                error,
                application_id(),
            )
            return
        ended, tries = False, _LAST_TRIES
        while tries:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), SCAN_SECONDS)
            if ended:  # the last poll has failed
                await asyncio.sleep(SCAN_SECONDS)
            # The end may have come before the first poll.
            ended = self._ended.is_set()
            try:
                await self._poll(application_id())
                tries = 0 if ended else tries
            except SpecInvalid as error:  # the job has no such task, so another poll is of no use
                self._log.warning("stream_logs: %s", error)
                return
            except TfYarnError as error:
                logger.debug("no lines of %s: %s", application_id(), error)
                tries -= ended
                if not tries:
                    self._log.warning(
                        "stream_logs: the last lines are not known here (%s); to see them: ytf logs %s",
                        error,
                        application_id(),
                    )

    def end(self) -> None:
        """Make `follow` log the remaining lines and return."""
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
        application = self._resourcemanager.get(application_id)
        report = with_recorded_tasks(self._cluster, read_yarn_report(application, self._live.fetch(application)))
        if self._stream is None:
            if not report.tasks:
                return [], Counter()
            chosen = {_ALL: "*:*", _CHIEF: default_task(report)}
            self._stream = LogStream(self._logs, [chosen.get(name, name) for name in self._tasks])
        lines: deque[LogLine] = deque()
        left_out: Counter[str] = Counter()
        for line in self._stream.poll(application, report):
            lines.append(line)
            if len(lines) > MOST_LINES:  # the end of a log says why the job failed
                left_out[lines.popleft().task] += 1
        return [f"{line.task} | {mask_line(line.text, self._mask)}" for line in lines], left_out

    def close(self) -> None:
        """Close the connections."""
        with contextlib.ExitStack() as stack:
            for one in (self._resourcemanager, self._live, self._logs, self._stream):
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


def _hide(line: str) -> str:
    return ""


async def _in_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_READERS, contextvars.copy_context().run, call)
