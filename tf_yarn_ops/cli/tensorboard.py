"""``ytf tensorboard``: TensorBoard on this machine, on the output of applications that run or have ended long ago.

Event files in HDFS are copied over WebHDFS, and again as they grow, so this machine needs no library of HDFS.
"""

import functools
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..errors import TfYarnError
from ..runtime.common.contract import APPLICATION_ID
from ..runtime.common.event_copies import COPY_INTERVAL, COPY_REST, EventCopies
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.output import print_json, say
from ..terminal.signals import Interrupted
from .command_line import ClusterCall, cluster_options

if TYPE_CHECKING:
    from ..launch.launcher import Launcher

_APPLICATION = re.compile(APPLICATION_ID)
#: Seconds between two looks whether TensorBoard listens, and for its end after SIGTERM.
_LOOK, _GRACE = 0.2, 5.0
#: Where TensorBoard writes: stdout has the address alone.
_STDERR = 2


class Shown(NamedTuple):
    """What one run of the comparison is: its name in TensorBoard, and the path or URL of its event files."""

    name: str
    place: str


class NotShown(click.ClickException):
    """TensorBoard can't show what was asked for; the text says why, and what to do."""


@click.command()
@click.argument("target", metavar="APP|PATH")
@click.option("--compare", metavar="APP|PATH", multiple=True,
              help="Show this one beside it; may be given several times.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="<port>", help="Listen here.  [default: a free port]")
@click.option("--browser/--no_browser", default=True,
              help="Open the browser, or print the address only.  [default: open, where there is a screen]")
@click.option("--args", "arguments", metavar="<arguments>", default="",
              help="Further arguments of the program tensorboard: --samples_per_plugin=images=100.")
@cluster_options
def tensorboard(target: str, compare: tuple[str, ...], port: int | None, browser: bool, arguments: str,
                call: ClusterCall) -> int:
    """Show the curves of applications in TensorBoard on this machine.

    APP is an application that runs or has ended; the history knows those that YARN has forgotten. PATH is a folder of
    this machine or a URL in HDFS. The page is shown until Ctrl-C.
    """
    program = _find_program()
    site = _Site(call)
    try:
        shown = [site.resolve(word) for word in dict.fromkeys((target, *compare))]
        with tempfile.TemporaryDirectory(prefix="ytf-tensorboard-") as folder:
            logdir, mirrors = site.gather(shown, Path(folder))
            words = [program, "--logdir", str(logdir), "--host", "127.0.0.1", "--port", str(port or _free_port()),
                     *shlex.split(arguments)]
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=_STDERR) as board:
                try:
                    url = _until_it_listens(board, int(words[words.index("--port") + 1]))
                    if call.as_json:
                        print_json({"url": url, "runs": [one._asdict() for one in shown]})
                    else:
                        click.echo(url)
                    say("Ctrl-C ends TensorBoard")
                    if browser and _has_screen():
                        webbrowser.open(url)
                    return _keep(board, mirrors)
                except Interrupted:
                    return 0
                finally:
                    _end(board)
    except Interrupted as interrupted:
        return interrupted.exit_code
    finally:
        site.close()


class _Site:
    """The cluster, which is asked only for applications and URLs."""

    def __init__(self, call: ClusterCall):
        self._call = call

    @functools.cached_property
    def launcher(self) -> "Launcher":
        return self._call.launcher()

    def close(self) -> None:
        if "launcher" in vars(self):
            self.launcher.close()

    def resolve(self, word: str) -> Shown:
        """Return the event files of an application or a path."""
        match = _APPLICATION.fullmatch(word)
        if not match:
            return Shown(word.rstrip("/").rpartition("/")[2] or word, word)
        report = self.launcher.report(word)
        if not (report.tensorboard_logdir or report.output_path):
            from ..history.histories import read_record

            record = read_record(self.launcher.cluster, word)
            report = JobReport.from_dict(record) if record else report
        place = report.tensorboard_logdir or report.output_path
        if place:
            number = match[1 if word.startswith("local") else 2]
            return Shown(f"{report.name}-{number}" if report.name else word, place)
        if report.reason is Reason.LOST:
            raise NotShown(f"neither YARN nor the history knows {word}; give the path of its output instead")
        raise NotShown(f"{word} has no output path; give the path of its event files instead")

    def gather(self, shown: Sequence[Shown], folder: Path) -> tuple[Path, list[EventCopies]]:
        """Return the folder for TensorBoard, and the copies in it: one run is the folder itself, several lie in it."""
        mirrors: list[EventCopies] = []
        names: set[str] = set()
        for one in shown:
            name = re.sub(r"[^\w.@=+ -]", "_", one.name)
            while name in names or name in ("", ".", ".."):
                name += "_"
            names.add(name)
            if "://" not in one.place.removeprefix("file://"):
                local = Path(one.place.removeprefix("file://"))
                if not local.is_dir():
                    raise NotShown(f"{one.place} of {one.name} is no folder of this machine; call ytf tensorboard "
                                   "where the folder is mounted, or let the job write to hdfs://")
                (folder / name).symlink_to(local.resolve())
                continue
            mirror = self._mirror(one.place, folder / name)
            mirror.refresh()
            mirrors.append(mirror)
        return (folder / names.pop() if len(shown) == 1 else folder), mirrors

    def _mirror(self, place: str, folder: Path) -> EventCopies:
        files, path = self.launcher.cluster.open_path(place)
        if files.status(path) is None:
            raise NotShown(f"{place} does not exist")
        return EventCopies(files, path, str(folder))


def _find_program() -> str:
    """Return the program tensorboard of this Python's environment, else of PATH."""
    beside = Path(sys.executable).with_name("tensorboard")
    found = str(beside) if beside.exists() else shutil.which("tensorboard")
    if not found:
        raise NotShown("TensorBoard is not installed on this machine; pip install tensorboard")
    return found


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def _until_it_listens(board: "subprocess.Popen[bytes]", port: int) -> str:
    while board.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return f"http://127.0.0.1:{port}/"
        except OSError:
            time.sleep(_LOOK)
    raise NotShown(f"TensorBoard ended with exit code {board.returncode}; its own words are above")


def _has_screen() -> bool:
    return bool(sys.platform == "darwin" or {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ))


def _keep(board: "subprocess.Popen[bytes]", mirrors: Sequence[EventCopies]) -> int:
    """Copy new events until TensorBoard ends; return its exit code."""
    told = ""
    while True:
        began, fault = time.monotonic(), ""
        for mirror in mirrors:
            try:
                mirror.refresh()
            except TfYarnError as error:
                fault = str(error)
        if fault and fault != told:
            say(f"new events can't be copied: {fault}")
        told = fault
        try:
            return board.wait(max(COPY_INTERVAL, COPY_REST * (time.monotonic() - began)))
        except subprocess.TimeoutExpired:
            continue


def _end(board: "subprocess.Popen[bytes]") -> None:
    board.terminate()
    try:
        board.wait(_GRACE)
    except subprocess.TimeoutExpired:
        board.kill()
