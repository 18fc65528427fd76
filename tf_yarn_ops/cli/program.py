"""What both programs share: errors become a text on stderr and the exit code of their reason."""

import json
import logging
import os
import sys
from typing import Any, NoReturn

import click

from ..errors import MiniClusterError, TfYarnError
from ..runtime.reasons import Reason
from ..runtime.report import JobReport, plain_values
from .signals import Interrupted, Interruption
from .summary import next_line


def say(text: str) -> None:
    """Write a line for people: stderr."""
    click.echo(text, err=True)


def run(command: click.Command, program: str, interruption: Interruption) -> NoReturn:
    """Run a command to its exit code.

    Exit codes are those of the reason table; 2 also for words that the parser refuses,
    128 + n after a signal.
    """
    try:
        result = command.main(prog_name=program, standalone_mode=False, obj=interruption)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except TfYarnError as error:
        say(f"{program}: {error}")
        if not isinstance(error, MiniClusterError):
            say(error.reason.hint)
            following = next_line(JobReport("", reason=error.reason))
            # `ytf kill` of a job that is gone could submit nothing better: only ytf-submit is told to submit again.
            if program == "ytf-submit" or "ytf-submit" not in following:
                say(following)
        code = error.reason.exit_code
    except (Interrupted, click.Abort):
        code = 128 + (interruption.number or 2)
    except BrokenPipeError:
        # Whoever read us has gone; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def configure_logging(verbose: bool) -> None:
    """Send the package's log to stderr: warnings, with ``--verbose`` each step."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("tf_yarn_ops").setLevel(logging.INFO if verbose else logging.WARNING)


def print_json(document: Any) -> None:
    """Write a document to stdout."""
    click.echo(json.dumps(plain_values(document), indent=2, ensure_ascii=False, allow_nan=False))


def unknown_report(error: TfYarnError, application_id: str) -> JobReport:
    """Give the report of an application that could not be asked for or killed: it goes on, for all we know."""
    return JobReport(application_id, reason=error.reason, message=str(error))


def report_of(error: TfYarnError, application_id: str = "") -> JobReport:
    """Give the report of a job that never came to run, or that may run still: then nothing is said of its state."""
    if application_id and error.reason is Reason.CLUSTER_UNREACHABLE:
        return unknown_report(error, application_id)
    status = "KILLED" if error.reason in (Reason.KILLED, Reason.SUPERSEDED) else "FAILED"
    return JobReport(application_id, state=status, final_status=status, reason=error.reason, message=str(error))
