"""Parts of both programs: the common options of commands about a cluster, and errors as text and exit codes."""

import os
import shlex
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from ..errors import MiniClusterError, TfYarnError
from ..runtime.common.report import JobReport
from ..terminal.output import say
from ..terminal.signals import Interrupted, Interruption
from ..terminal.summary import SUBMIT_AGAIN, next_line


def run(command: click.Command, program: str, interruption: Interruption) -> NoReturn:
    """Run a command and end the process.

    The exit code is that of the error's reason; 2 if the parser refuses a word, 128 + n after signal n.
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
            say(error.hint)
            # `ytf kill` of an unknown application is no reason to submit another one.
            if program == "ytf-submit" or error.reason not in SUBMIT_AGAIN:
                say(next_line(JobReport("", reason=error.reason)))
        code = error.reason.exit_code
    except (Interrupted, click.Abort):
        code = 128 + (interruption.number or 2)
    except BrokenPipeError:
        # The reader of our output has ended; keep the interpreter from reporting that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def cluster_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of each command about a cluster: ``--resourcemanager``, ``--user``, ``--json``, ``--verbose``."""
    acting = click.option("--user", metavar="<name>",
                          help="Act for this user, as Hadoop's proxyuser settings allow it.  [default: yourself]")
    return reading_options(acting(function))


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that only reads, as ourselves: ``--resourcemanager``, ``--json``, ``--verbose``."""
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="Log each request to stderr."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout."),
        click.option("--resourcemanager", metavar="<URL>",
                     help="http://host:8088, comma-separated for several.  "
                          "[default: YTF_RESOURCEMANAGER, site.yaml, HADOOP_CONF_DIR]"),
    ):  # fmt: skip
        function = option(function)
    return function


def next_options(resourcemanager: str | None, user: str | None) -> str:
    """Return the options that the next command needs to reach the same cluster as the same user; a blank leads."""
    given = {"resourcemanager": resourcemanager, "user": user}
    return "".join(f" --{name} {shlex.quote(value)}" for name, value in given.items() if value)
