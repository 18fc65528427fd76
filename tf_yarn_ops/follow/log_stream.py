"""`LogStream`: the new lines of many tasks' logs, look by look, through restarts, until the application has ended.

Input: YARN's object and the report of each look at an application. Output: whole lines with the task that wrote them.
The stream itself never waits for the application, and never asks for its state.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..errors import SpecInvalid, did_you_mean
from ..runtime.common.escaping import REDRAWN, last_states
from ..runtime.common.report import JobReport
from .log_reader import COORDINATOR, MASTER, LogFile, Logs, find_log

#: Logs that are read at the same time.
_AT_ONCE = 8
#: Bytes that the end of an ended application's log has at most; a look at a running one reads no more, either.
LAST_BYTES = 4 * 1024 * 1024
#: Seconds between two states of a progress bar, which redraws its line by carriage returns.
BAR_SECONDS = 10.0
#: Longest line, bytes; a longer one is cut into several.
_LONGEST = 64 * 1024


@dataclass(frozen=True)
class LogLine:
    """A line of a task's log.

    Attributes
    ----------
    task : str
        ``worker:1``, ``coordinator`` or ``master``.
    start : int
        The number of times that the task's command had been started when the line was read.
    text : str
        Without the line feed.
    """

    task: str
    start: int
    text: str


class _Reader:
    """How far one log has been read."""

    def __init__(self, logs: Logs, task: str, file: LogFile):
        self.task = task
        self.file = file
        self._logs = logs
        self.start = 0
        self.offset = 0
        self._rest = b""
        self._redrawn, self._state, self._state_at = False, "", -BAR_SECONDS

    def named(self, lines: Iterable[str]) -> Iterator[LogLine]:
        """Yield the lines with the task."""
        return (LogLine(self.task, self.start, line) for line in lines)

    def read(self) -> list[str]:
        """Return the new whole lines of a log on its node, and at times the state of a progress bar."""
        lines = self._lines(self._logs.new_bytes(self.file, self.offset) or b"")
        state, now = _decode(self._rest) if self._redrawn else "", time.monotonic()
        if state not in ("", self._state) and now - self._state_at >= BAR_SECONDS:
            self._state, self._state_at = state, now
            lines.append(state)
        return lines

    def finish(self, ended: bool) -> Iterator[str]:
        """Yield the lines behind those that were read, wherever the log is now; the last may lack its line feed.

        Of more than `LAST_BYTES` only the last ones; a line says what is left out.
        """
        kept: deque[bytes] = deque()
        size, end, found = 0, self.offset, False
        for place, chunk in self._logs.content(self.file, ended, LAST_BYTES, over=True):
            found = True
            new = chunk[max(0, self.offset - place) :]
            if new:
                kept.append(new)
                size, end = size + len(new), place + len(chunk)
            while size - len(kept[0] if kept else b"") >= LAST_BYTES:
                size -= len(kept.popleft())
        if not found:
            yield f"[{self._logs.why_missing(self.task, self.file)}]"
        left_out = end - size - self.offset
        if left_out > 0:
            # The begin of the line that is cut goes too.
            self._rest, kept[0] = b"", kept[0].partition(b"\n")[2] or kept[0]
            yield (
                f"[{left_out / 1e6:.1f} MB of this log are left out; all of it: "
                f"ytf logs {self.file.application_id} --task {self.task}]"
            )
        for new in kept:
            yield from self._lines(new)
        if self._rest:
            yield _decode(self._rest)

    def _lines(self, new: bytes) -> list[str]:
        self.offset += len(new)
        *whole, rest = (self._rest + new).split(b"\n")
        if self._redrawn and whole:
            whole[0] = _last_state(whole[0])
        self._redrawn = rest.count(b"\r") >= REDRAWN or (self._redrawn and not whole)
        rest = _last_state(rest) if self._redrawn else rest
        cut = len(rest) // _LONGEST * _LONGEST
        self._rest = rest[cut:]
        return [
            _decode(line[at : at + _LONGEST])
            for line in (*whole, *filter(None, [rest[:cut]]))
            for at in range(0, max(1, len(line)), _LONGEST)
        ]


class LogStream:
    """Reads the logs of an application's tasks as they grow.

    Parameters
    ----------
    logs : Logs
    patterns : sequence of str, optional
        Names of tasks, with ``*`` and ``?``: ``worker:*``; ``coordinator`` and ``master`` are the logs of the
        application master. Default: all tasks.
    """

    def __init__(self, logs: Logs, patterns: Sequence[str] = ("*:*",)):
        self._logs = logs
        self._patterns = tuple(patterns)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="logs")
        self._readers: dict[str, _Reader] = {}
        self._ended = ""

    def poll(self, application: Mapping[str, Any], report: JobReport) -> Iterator[LogLine]:
        """Yield the new lines since the last look; after the end of the application, all that is left.

        Parameters
        ----------
        application : mapping
            The ``app`` object of YARN's REST interface.
        report : JobReport
            The report of the same look, with the tasks.

        Raises
        ------
        SpecInvalid
            The job has tasks, and a pattern fits none of them.
        """
        if report.application_id == self._ended:
            return
        for reader in self._find(application, report):
            while lines := reader.read():
                yield from reader.named(lines)
        if report.reason is not None:
            for reader in self._readers.values():
                yield from reader.named(reader.finish(report.finished_at is not None))
            self._readers.clear()
            self._ended = report.application_id
        else:
            readers = list(self._readers.values())
            for reader, lines in zip(readers, self._pool.map(_Reader.read, readers), strict=True):
                yield from reader.named(lines)

    def _find(self, application: Mapping[str, Any], report: JobReport) -> Iterator[_Reader]:
        """Find the logs of the tasks that have containers; yield the readers whose containers were replaced."""
        starts = {task.task: task.starts for task in report.tasks}
        for name in choose_tasks(report, self._patterns):
            try:
                file = find_log(application, report, name)
            except SpecInvalid:  # it has no container yet, or at the end: nothing has run in it
                if report.reason is not None and name in self._readers and not self._readers[name].offset:
                    del self._readers[name]
                continue
            reader = self._readers.get(name)
            if reader is None or reader.file.container_id != file.container_id:
                if reader is not None:
                    yield reader
                reader = self._readers[name] = _Reader(self._logs, name, file)
            # A live report names the node; the one of an ended application does not.
            reader.file = file if file.node else reader.file
            reader.start = starts.get(name, 1)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def choose_tasks(report: JobReport, patterns: Sequence[str]) -> list[str]:
    """Return the names of the logs that patterns mean, in the order of the request.

    Parameters
    ----------
    report : JobReport
        With the tasks, as far as they are known.
    patterns : sequence of str
        As in `LogStream`. A pattern with ``*`` or ``?`` does not mean the logs of the application master.

    Raises
    ------
    SpecInvalid
        The job has tasks, and a pattern fits none of them.
    """
    tasks = [task.task for task in report.tasks]
    names = [*tasks, COORDINATOR, MASTER]
    wrong = [
        pattern
        for pattern in patterns
        if pattern not in names and not any(fnmatchcase(task, pattern) for task in tasks)
    ]
    if tasks and wrong and not report.omitted_tasks:
        unmatched = "; ".join(
            f"{report.application_id} has no task {pattern!r}{did_you_mean(pattern, names)}" for pattern in wrong
        )
        raise SpecInvalid(f"{unmatched}; it has {', '.join(names)}")
    return [
        name
        for name in names
        if name in patterns or (name in tasks and any(fnmatchcase(name, pattern) for pattern in patterns))
    ]


def _last_state(line: bytes) -> bytes:
    return line[line.rstrip(b"\r").rfind(b"\r") + 1 :]


def _decode(line: bytes) -> str:
    return last_states(line.decode("utf-8", "replace"))
