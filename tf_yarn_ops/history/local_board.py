"""`LocalBoard`: TensorBoard on this machine, on the event files of applications that run or have ended long ago.

Event files in HDFS are copied over WebHDFS, and again as they grow, so this machine needs no library of HDFS.
"""

import functools
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Cancelled, SpecInvalid, TfYarnError
from ..hadoop.filesystem import FileSystem
from ..runtime.tensorboard.event_copies import COPY_INTERVAL, COPY_REST, EventCopies
from ..runtime.tensorboard.tensorboard_program import until_it_listens

logger = logging.getLogger(__name__)

#: Seconds for TensorBoard's end after SIGTERM.
_GRACE = 5.0
#: Where TensorBoard writes: stdout has the address alone.
_STDERR = 2


class Shown(NamedTuple):
    """What one run of the comparison is: its name in TensorBoard, and the path or URL of its event files."""

    name: str
    place: str


class LocalBoard:
    """One process of TensorBoard; the kernel ends it with the thread that has started it.

    Parameters
    ----------
    shown : sequence of Shown
        One is TensorBoard's folder itself, several lie in it.
    open_path : callable
        As `Cluster.open_path`; called for URLs only.
    port : int, optional
        Default: a free one.
    arguments : sequence of str, optional
        Further arguments of the program.
    plugins : bool, optional
        As in `EventCopies`. Default True.

    Attributes
    ----------
    port : int
        Where TensorBoard listens, on 127.0.0.1.
    """

    def __init__(
        self,
        shown: Sequence[Shown],
        open_path: Callable[[str], tuple[FileSystem, str]],
        port: int = 0,
        arguments: Sequence[str] = (),
        plugins: bool = True,
    ):
        self.port = port or _free_port()
        self._shown, self._open_path, self._arguments, self._plugins = shown, open_path, arguments, plugins
        self._folder = Path(tempfile.mkdtemp(prefix="ytf-tensorboard-"))
        self._opened: list[FileSystem] = []
        self._copies: list[EventCopies] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._starting, self._ended, self._fault = threading.Lock(), False, ""

    def start(self) -> None:
        """Copy the event files, and return when TensorBoard listens.

        Raises
        ------
        SpecInvalid
            TensorBoard is not installed or ends, or there is no such folder.
        SubmissionRejected, ClusterUnreachable
            HDFS refuses, or does not answer.
        Cancelled
            `end` was called.
        """
        words = [
            _find_program(),
            "--logdir",
            str(self._gather()),
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            *self._arguments,
        ]
        end_with_us = None
        if sys.platform == "linux":
            from ..runtime.common.processes import set_parent_death_signal

            end_with_us = functools.partial(set_parent_death_signal, signal.SIGTERM)
        with self._starting:
            if self._ended:
                raise Cancelled("TensorBoard was ended before it had started")
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=_STDERR, start_new_session=True, preexec_fn=end_with_us
            )
        if not until_it_listens(self._process, self.port):
            raise SpecInvalid(
                f"TensorBoard ended with exit code {self._process.returncode}; its own words are on the terminal"
            )

    def _gather(self) -> Path:
        """Return the folder for TensorBoard, with links to local folders and copies of those in HDFS."""
        names: set[str] = set()
        for one in self._shown:
            name = re.sub(r"[^\w.@=+ -]", "_", one.name)
            while name in names or name in ("", ".", ".."):
                name += "_"
            names.add(name)
            if "://" in one.place.removeprefix("file://"):
                self._copy(one.place, self._folder / name)
                continue
            local = Path(one.place.removeprefix("file://"))
            if not local.is_dir():
                raise SpecInvalid(
                    f"{one.place} of {one.name} is no folder of this machine; start TensorBoard where "
                    "the folder is mounted, or let the job write to hdfs://"
                )
            (self._folder / name).symlink_to(local.resolve())
        return self._folder / names.pop() if len(names) == 1 else self._folder

    def _copy(self, place: str, folder: Path) -> None:
        files, path = self._open_path(place)
        self._opened.append(files)
        if files.status(path) is None:
            raise SpecInvalid(f"{place} does not exist")
        copies = EventCopies(files, path, str(folder), self._plugins)
        copies.refresh()
        self._copies.append(copies)

    def refresh(self) -> float:
        """Copy new events; return the seconds until the next time."""
        began, fault = time.monotonic(), ""
        for copies in self._copies:
            try:
                copies.refresh()
            except (TfYarnError, OSError) as error:
                fault = str(error)
        if fault and fault != self._fault and not self._ended:
            logger.warning("new events can't be copied: %s", fault)
        self._fault = fault
        return max(COPY_INTERVAL, COPY_REST * (time.monotonic() - began))

    def wait(self, seconds: float) -> int | None:
        """Return TensorBoard's exit code; None if it still runs after this time."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """End TensorBoard with all its processes, also one that starts, and delete the copies; safe in any thread."""
        with self._starting:
            self._ended = True
        if self._process is not None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                self.wait(_GRACE)
        for files in self._opened:
            files.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # at each call: a copy may have gone on meanwhile


def event_files(job: Mapping[str, Any]) -> str:
    """Return the folder with a job's event files, by its report or its status; empty if none is known."""
    return str(job.get("tensorboard_logdir") or job.get("working_path") or job.get("output_path") or "")


def _find_program() -> str:
    """Return the program tensorboard of this Python's environment, else of PATH."""
    beside = Path(sys.executable).with_name("tensorboard")
    found = str(beside) if beside.exists() else shutil.which("tensorboard")
    if not found:
        raise SpecInvalid("TensorBoard is not installed on this machine; pip install tensorboard")
    return found


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
