"""Parts of both programs: the common options of commands about a cluster, and errors as text and exit codes."""

import functools
import io
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..errors import MiniClusterError, ResourceManagerUnknown, SpecInvalid, TfYarnError, WaitTimeout
from ..runtime.common.contract import APPLICATION_ID
from ..runtime.common.local_job import SCHEME, is_local
from ..runtime.common.report import JobReport
from ..terminal import shared_options
from ..terminal.output import configure_logging, echo, print_json, report_without_state, show
from ..terminal.signals import Interrupted, Interruption
from ..terminal.summary import AFTER_REFUSAL, next_lines
from ..validation import parse_since, unexpected_position

if TYPE_CHECKING:
    from ..hadoop.cluster import Cluster
    from ..launch.launcher import Launcher

#: An id, alone or in the address of a page; YARN itself is the judge of the numbers.
_APPLICATION = re.compile(rf"(?P<page>https?://\S*?[/=])?(?P<id>{APPLICATION_ID})(?(page)(?:[/?&#]\S*)?)")


def run_command(command: click.Command, program: str, interruption: Interruption) -> NoReturn:
    """Run a command and end the process.

    The exit code is that of the error's reason; 2 if the parser refuses a word, 128 + n after signal n.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr: a locale without a letter must not end us
    try:
        check_arguments(sys.argv[1:])
        check_option_values(command, sys.argv[1:], program)
        result = command.main(sys.argv[1:], prog_name=program, standalone_mode=False, obj=interruption)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        echo(text.getvalue().rstrip("\n"))
        code = error.exit_code
    except TfYarnError as error:
        echo(f"{program}: {error}")
        if isinstance(error, ResourceManagerUnknown) and sys.platform == "linux":
            echo(f"next: {_minicluster()}")
        elif not isinstance(error, MiniClusterError):
            echo(error.hint)
            # `ytf kill` of an unknown application is no reason to submit another one.
            if error.command:
                echo(f"next: {error.command}")
            elif program == "ytf-submit" or error.reason not in AFTER_REFUSAL:
                for line in next_lines(JobReport("", reason=error.reason)):
                    echo(line)
        code = error.reason.exit_code
    except (Interrupted, click.Abort):
        code = interruption.exit_code
    except BrokenPipeError:
        # The reader of our output has ended; keep the interpreter from reporting that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def check_arguments(words: Sequence[str]) -> None:
    """Raise SpecInvalid for the first word of a shell that Python could not read as text."""
    for number, word in enumerate(words, 1):  # a word may be a secret
        if position := unexpected_position(word):
            raise SpecInvalid(
                f"character {position} of word {number} is not UTF-8: convert the script or file that holds it; if it "
                "is UTF-8, set LC_ALL=C.UTF-8, as the locale of this shell is another one"
            )


def check_option_values(command: click.Command, words: Sequence[str], program: str) -> None:
    """Raise UsageError for an option in the place of another option's value: the parser takes ``-f`` of ``--task -f``.

    A value that looks like an option can be written behind ``=``.
    """
    ctx = click.Context(command, info_name=program, **command.context_settings)
    rest = iter(words)
    for word in rest:
        options = _options_of(ctx)
        option = options.get(_dashed(word))
        if option is not None and not option.is_flag:
            value = next(rest, "")
            if _dashed(value) in options:
                raise click.UsageError(f"{word!r} needs a value, and {value!r} is an option.", ctx)
        elif word == "--" or (not word.startswith("-") and not ctx.allow_interspersed_args):
            group = ctx.command if isinstance(ctx.command, click.Group) and word != "--" else None
            if group is None or (below := group.get_command(ctx, word)) is None:
                return
            ctx = click.Context(below, parent=ctx, info_name=word, **below.context_settings)


def _dashed(word: str) -> str:
    """Return an option as the parser reads it; empty for another word, such as ``_f``."""
    return word.replace("_", "-") if word.startswith("-") else ""


def _options_of(ctx: click.Context) -> dict[str, click.Option]:
    """Return the options of a command by each of their names, with dashes."""
    return {
        name.replace("_", "-"): option
        for option in ctx.command.get_params(ctx)
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }


def _minicluster() -> str:
    """Return the command that leads to this user's minicluster: to the one that runs, else to a new one."""
    from ..minicluster.hadoop import MiniCluster

    try:
        ready = MiniCluster().status().ready
    except MiniClusterError:
        ready = False
    return 'eval "$(ytf minicluster env)"   # your minicluster is up' if ready else "ytf minicluster up"


def application_of(word: str) -> str | None:
    """Return the id that a word names: its own, or the first in the address of a page; None if there is none."""
    found = _APPLICATION.fullmatch(word)
    return found["id"] if found else None


def application_ids_only(ctx: click.Context, argument: click.Parameter, value: Any) -> Any:
    """Return the ids that words name; refuse another word before a cluster is asked. The callback of an argument."""
    if isinstance(value, tuple):
        return tuple(application_ids_only(ctx, argument, word) for word in value)
    if found := application_of(value):
        return found
    raise click.BadParameter(
        f"{value!r} is not the id of an application, such as "
        "application_1700000000000_0001; ytf list and ytf history show yours",
        ctx,
        argument,
    )


@dataclass(frozen=True)
class ClusterCall:
    """The common options of a command about a cluster.

    Attributes
    ----------
    resourcemanager : str or None
        Addresses as for `hadoop.cluster.discover`.
    as_json : bool
        Whether stdout gets JSON. Default False.
    user : str or None
        The user to impersonate; None for ourselves.
    """

    resourcemanager: str | None
    as_json: bool = False
    user: str | None = None

    def discover(self) -> "Cluster":
        """Return the cluster."""
        from ..hadoop.cluster import discover

        return discover(self.resourcemanager, user=self.user)

    def launcher(self) -> "Launcher":
        """Return a launcher on the cluster."""
        from ..launch.launcher import Launcher

        return Launcher(self.discover())

    @property
    def next_options(self) -> str:
        """The options that the next command needs to reach the same cluster as the same user; a blank leads."""
        given = {"resourcemanager": None if self.resourcemanager == SCHEME else self.resourcemanager, "user": self.user}
        return "".join(f" --{name} {shlex.quote(value)}" for name, value in given.items() if value)

    def print_result(self, document: Any, lines: Iterable[str]) -> None:
        """Print a document where JSON is asked for, else lines for people."""
        if self.as_json:
            print_json(document)
            return
        for line in lines:
            show(line)

    @contextmanager
    def reporting(self, application_id: str) -> Iterator[None]:
        """Print an error of ours as the report of an application, too, where JSON is asked for."""
        try:
            yield
        except TfYarnError as error:
            if self.as_json and not isinstance(error, WaitTimeout):  # that application goes on, so YARN has its report
                print_json(report_without_state(error, application_id).to_dict())
            raise


def cluster_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of each command about a cluster: ``--resourcemanager``, ``--user``, ``--json``, ``--verbose``."""
    return reading_options(shared_options.USER_OPTION(function))


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that only reads, as ourselves: ``--resourcemanager``, ``--json``, ``--verbose``.

    The command gets them as its argument ``call``, a `ClusterCall`. The id of a job of this machine names the machine
    too.
    """

    @functools.wraps(command)
    def function(
        *words: Any, resourcemanager: str | None, as_json: bool, verbose: bool, user: str | None = None, **values: Any
    ) -> Any:
        configure_logging(verbose, requests=verbose)
        named = [values.get("application_id"), values.get("target"), *values.get("application_ids", ())]
        here = resourcemanager is None and any(map(is_local, named))
        return command(*words, call=ClusterCall(SCHEME if here else resourcemanager, as_json, user), **values)

    for option in (
        shared_options.VERBOSE_OPTION,
        click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout."),
        shared_options.RESOURCEMANAGER_OPTION,
    ):
        option(function)
    return function


def parse_time(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Return the moment that a ``--since`` means, seconds since the epoch; None if it is not given."""
    try:
        return parse_since(value, time.time()) if value else None
    except SpecInvalid as error:
        raise click.BadParameter(str(error), context, option) from error
