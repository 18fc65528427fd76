"""What both programs share: errors become a text on stderr and the exit code of their reason."""

import os
import sys
from typing import NoReturn

import click

from ..errors import MiniClusterError, TfYarnError
from ..runtime.common.report import JobReport
from ..terminal.output import say
from ..terminal.signals import Interrupted, Interruption
from ..terminal.summary import next_line


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
