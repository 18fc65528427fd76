"""``ytf tensorboard``: TensorBoard on this machine, on the output of applications that run or have ended long ago."""

import functools
import os
import shlex
import sys
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ..errors import SpecInvalid
from ..history.local_board import LocalBoard, Shown, event_files
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.output import echo
from ..terminal.signals import Interrupted, Interruption
from .command_line import ClusterCall, application_of, cluster_options

if TYPE_CHECKING:
    from ..launch.launcher import Launcher


@click.command()
@click.argument("target", metavar="APP|PATH")
@click.option(
    "--compare", metavar="APP|PATH", multiple=True, help="Show this one beside it; may be given several times."
)
@click.option("--port", type=click.IntRange(1, 65535), metavar="<port>", help="Listen here.  [default: a free port]")
@click.option(
    "--browser/--no_browser",
    default=True,
    help="Open the browser, or print the address only.  [default: open, where there is a screen]",
)
@click.option(
    "--args",
    "arguments",
    metavar="<arguments>",
    default="",
    help="Further arguments of the program tensorboard: --samples_per_plugin=images=100.",
)
@cluster_options
@click.pass_obj
def tensorboard(
    obj: Interruption,
    target: str,
    compare: tuple[str, ...],
    port: int | None,
    browser: bool,
    arguments: str,
    call: ClusterCall,
) -> int:
    """Show the curves of applications in TensorBoard on this machine.

    APP is an application that runs or has ended; the history knows those that YARN has forgotten. PATH is a folder of
    this machine or a URL in HDFS. The page is shown until Ctrl-C.
    """
    launcher = functools.cache(call.launcher)  # a cluster is asked only for applications and URLs
    try:
        shown = [_resolve(word, launcher) for word in dict.fromkeys((target, *compare))]
        board = LocalBoard(shown, lambda url: launcher().cluster.open_path(url), port or 0, shlex.split(arguments))
        try:
            board.start()
            url = f"http://127.0.0.1:{board.port}/"
            call.print_result({"url": url, "runs": [one._asdict() for one in shown]}, [url])
            echo("Ctrl-C ends TensorBoard")
            if browser and (sys.platform == "darwin" or {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)):
                webbrowser.open(url)
            while (code := board.wait(board.refresh())) is None:
                pass
            return code
        except Interrupted:
            return 0
        finally:
            board.end()
    except Interrupted:
        return obj.exit_code


def _resolve(word: str, launcher: "Callable[[], Launcher]") -> Shown:
    """Return the event files of an application or a path."""
    application_id = application_of(word)
    if not application_id:
        return Shown(word.rstrip("/").rpartition("/")[2] or word, word)
    report = launcher().report(application_id)
    if not event_files(vars(report)):
        from ..history.histories import read_record

        record = read_record(launcher().cluster, application_id, report.user)
        report = JobReport.from_dict(record) if record else report
    if place := event_files(vars(report)):
        number = application_id.split("_")[1 if application_id.startswith("local") else 2]
        return Shown(f"{report.name}-{number}" if report.name else application_id, place)
    if report.reason is Reason.LOST:
        raise SpecInvalid(f"neither YARN nor the history knows {application_id}; give the path of its output instead")
    raise SpecInvalid(f"{application_id} has no output path; give the path of its event files instead")
