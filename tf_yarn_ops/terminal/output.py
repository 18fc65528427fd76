"""Text for people on stderr, JSON for programs on stdout, and reports of errors that stopped a command.

Programs and people supply parts of most lines, so a terminal gets each control character escaped.
"""

import json
import logging
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..errors import TfYarnError
from ..runtime.common.escaping import escape_controls
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..runtime.common.values import plain_values

#: The loggers of requests.
_REQUESTS = ("tf_yarn_ops.hadoop", "tf_yarn_ops.doctor.probe")


def echo(text: str) -> None:
    """Write a line for people to stderr."""
    click.echo(escape_controls(text), err=True)


def show(text: str, *, data: bool = False, nl: bool = True) -> None:
    """Write a line to stdout; ``data``, such as the log of a program, goes unchanged into a pipe or a file."""
    click.echo(text if data and not sys.stdout.isatty() else escape_controls(text), nl=nl, color=True)


class _EscapingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record))


def configure_logging(verbose: bool, requests: bool = False) -> None:
    """Send the package's log to stderr: warnings only, each step if `verbose`, and each request if `requests`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_EscapingFormatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("tf_yarn_ops").setLevel(logging.INFO if verbose else logging.WARNING)
    logging.getLogger("tf_yarn_ops.transfers").setLevel(logging.INFO)
    if requests:
        for name in _REQUESTS:
            logging.getLogger(name).setLevel(logging.DEBUG)


def terminal_columns() -> int:
    """Return the width of the terminal, characters; 100 without one."""
    return shutil.get_terminal_size((100, 24)).columns


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: columns as wide as their widest cell, two spaces between them, no cell cut off.

    Line breaks in cells are escaped, too.
    """
    rows = [[escape_controls(cell, kept="") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def format_number(value: object, digits: int = 4) -> str:
    """Return a value as text, a float with so many digits; ``-`` for None."""
    return "-" if value is None else f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def print_json(document: Any) -> None:
    """Write a document to stdout as JSON."""
    show(json.dumps(plain_values(document), indent=2, ensure_ascii=False, allow_nan=False))


def report_without_state(error: TfYarnError, application_id: str) -> JobReport:
    """Return a report without a state, because YARN did not answer; the application may still run."""
    return JobReport(application_id, reason=error.reason, message=str(error))


def report_of_error(error: TfYarnError, application_id: str = "") -> JobReport:
    """Return the report of a submission that failed; without a state if its application may still run."""
    if application_id and error.reason is Reason.CLUSTER_UNREACHABLE:
        return report_without_state(error, application_id)
    status = "KILLED" if error.reason in (Reason.KILLED, Reason.SUPERSEDED) else "FAILED"
    return JobReport(application_id, state=status, final_status=status, reason=error.reason, message=str(error))
