"""Text for people on stderr, JSON for programs on stdout, and reports of errors that stopped a command."""

import json
import logging
import sys
from typing import Any

import click

from ..errors import TfYarnError
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, plain_values

#: The loggers of requests.
_REQUESTS = ("tf_yarn_ops.hadoop", "tf_yarn_ops.doctor.probe")


def say(text: str) -> None:
    """Write a line for people to stderr."""
    click.echo(text, err=True)


def configure_logging(verbose: bool, requests: bool = False) -> None:
    """Send the package's log to stderr: warnings only, each step if `verbose`, and each request if `requests`."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("tf_yarn_ops").setLevel(logging.INFO if verbose else logging.WARNING)
    if requests:
        for name in _REQUESTS:
            logging.getLogger(name).setLevel(logging.DEBUG)


def print_json(document: Any) -> None:
    """Write a document to stdout as JSON."""
    click.echo(json.dumps(plain_values(document), indent=2, ensure_ascii=False, allow_nan=False))


def report_without_state(error: TfYarnError, application_id: str) -> JobReport:
    """Return a report without a state, because YARN did not answer; the application may still run."""
    return JobReport(application_id, reason=error.reason, message=str(error))


def report_of_error(error: TfYarnError, application_id: str = "") -> JobReport:
    """Return the report of a submission that failed; without a state if its application may still run."""
    if application_id and error.reason is Reason.CLUSTER_UNREACHABLE:
        return report_without_state(error, application_id)
    status = "KILLED" if error.reason in (Reason.KILLED, Reason.SUPERSEDED) else "FAILED"
    return JobReport(application_id, state=status, final_status=status, reason=error.reason, message=str(error))
