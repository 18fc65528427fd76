"""``ytf azkaban``: install the job type on an executor, and run a flow for past dates."""

import os
from datetime import datetime
from pathlib import Path

import click

from ..errors import ClusterUnreachable, Fault, FaultCode, GeneralFault, SubmissionRejected
from ..hadoop.configuration import system_user
from ..runtime.common.report import list_names
from ..terminal.diagnosis import leave, show_result, summary_line
from ..terminal.output import echo
from ..validation import check_faults
from .install import JOBTYPE_NAME, RELOAD_URL, write_jobtype

_DATE = click.DateTime(["%Y-%m-%d"])
_UNREACHABLE = "Check --url and that Azkaban's web server runs. Executions that have started continue."
_REFUSED = "Correct the login, the project, the flow or your rights in Azkaban, as the message says."


class BackfillFault(FaultCode):
    """Fault codes for the words of a backfill."""

    NOT_A_PAIR = "{given!r} is not NAME=FORMAT, for example date=%Y-%m-%d"
    BACKWARDS = "{given} is before the first date, {first}"
    NO_PASSWORD = "missing; give a file with the password, or set AZKABAN_PASSWORD"


@click.group()
def azkaban() -> None:
    """Administer the Azkaban job type, and run flows for past dates."""


@azkaban.command("install-jobtype")
@click.option(
    "--dir",
    "directory",
    required=True,
    metavar="<folder>",
    type=click.Path(path_type=Path),
    help="The executor's azkaban.jobtype.plugin.dir, usually plugins/jobtypes.",
)
@click.option("--name", metavar="<name>", help="The value of type= in jobs.  [default: tensorflow-yarn]")
@click.option(
    "--secure/--no-secure",
    default=None,
    help="Run as Azkaban's HadoopShell, which fetches delegation tokens and refuses other commands; jobs may "
    "name files of their project only.  "
    "[default: as installed before, else no-secure]",
)
@click.option(
    "--limits",
    metavar="<file>",
    help="The site's limits.  [default: as installed before, else /etc/tf_yarn_ops/azkaban.yaml]",
)
@click.option(
    "--check",
    is_flag=True,
    help="Install nothing: check the installed job type and its cluster, as the user who calls this. Call it "
    "as the user of the launcher.",
)
@click.option("--python", metavar="<path>", help="The interpreter of the jobs.  [default: the one that runs ytf]")
def install_jobtype(
    directory: Path, name: str | None, secure: bool | None, limits: str | None, check: bool, python: str | None
) -> int:
    """Install or update the job type on this executor."""
    if check:
        return _check(directory, name or JOBTYPE_NAME)
    done = write_jobtype(directory, name=name or JOBTYPE_NAME, secure=secure, limits=limits, python=python)
    for file in done.written:
        echo(f"wrote {done.folder / file}")
    if not done.written:
        echo(f"{done.folder} is up to date")
    for note in done.notes:
        echo(note)
    echo(f"jobs with type={done.folder.name} run {done.command}")
    echo(
        "note: a job can still make the dynamic loader run its code in the launcher (env.LD_PRELOAD), with the rights "
        "of the launcher's user; with execute.as.user these are the rights of the job's own user"
    )
    echo("next, for each executor: send a POST request to its reload URL, or restart it")
    click.echo(RELOAD_URL)
    return 0


@azkaban.command("backfill")
@click.option(
    "--url",
    envvar="AZKABAN_URL",
    required=True,
    metavar="<URL>",
    help="The web server, https://azkaban:8443.  [default: $AZKABAN_URL]",
)
@click.option(
    "--login",
    metavar="<user>",
    envvar="AZKABAN_USER",
    default=system_user,
    show_default="you",
    help="The user in Azkaban; $AZKABAN_USER.",
)
@click.option(
    "--password-file",
    metavar="<file>",
    type=click.Path(path_type=Path),
    help="A file with the user's password.  [default: $AZKABAN_PASSWORD]",
)
@click.option("--ca-file", metavar="<file>", help="Certificates (PEM) for https.  [default: the machine's]")
@click.option("--project", required=True, metavar="<name>", help="The project in Azkaban.")
@click.option("--flow", required=True, metavar="<name>", help="The flow of the project.")
@click.option("--from", "first", required=True, type=_DATE, metavar="<date>", help="The first date, 2026-11-01.")
@click.option("--to", "last", required=True, type=_DATE, metavar="<date>", help="The last date; it is run too.")
@click.option(
    "--every", type=click.IntRange(1), default=1, show_default=True, metavar="<n>", help="Days between two dates."
)
@click.option(
    "--parameter",
    "pairs",
    multiple=True,
    metavar="<name>=<format>",
    help="A parameter of the flow with a date, as strftime formats it. Repeatable.  [default: date=%Y-%m-%d]",
)
@click.option(
    "--at-once",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="<n>",
    help="How many dates run at the same time.",
)
@click.option("--keep-going", is_flag=True, help="Start further dates after one has failed.")
@click.option("--again", is_flag=True, help="Run dates again that have succeeded.")
def backfill(
    url: str,
    login: str,
    password_file: Path | None,
    ca_file: str | None,
    project: str,
    flow: str,
    first: datetime,
    last: datetime,
    every: int,
    pairs: tuple[str, ...],
    at_once: int,
    keep_going: bool,
    again: bool,
) -> int:
    """Run a flow for past dates, one after the other or some at once.

    Dates that have succeeded are left out, and those that run are waited for, so the same command can be repeated.
    Ctrl-C ends only the command; what runs in Azkaban continues.
    """
    from .scheduler.backfill import Backfill, Plan, dates_between
    from .scheduler.web_api import WebServer

    parameters, faults = dict[str, str](), list[Fault]()
    for pair in pairs or ("date=%Y-%m-%d",):
        name, equals, form = pair.partition("=")
        parameters[name] = form
        faults += [] if name and equals else [Fault("parameter", BackfillFault.NOT_A_PAIR, {"given": pair})]
    if last < first:
        faults.append(Fault("to", BackfillFault.BACKWARDS, {"given": f"{last:%Y-%m-%d}", "first": f"{first:%Y-%m-%d}"}))
    password = _password(password_file, faults)
    check_faults(faults)
    plan = Plan(project, flow, dates_between(first.date(), last.date(), every), parameters, at_once, keep_going, again)
    server = WebServer(url, login, password, ca_file=ca_file)
    try:
        left = Backfill(server, plan, echo).run()
    except (ClusterUnreachable, SubmissionRejected) as error:
        echo(f"ytf azkaban backfill: {error}")
        echo(_UNREACHABLE if isinstance(error, ClusterUnreachable) else _REFUSED)
        echo("next: the same command again")
        return error.reason.exit_code
    finally:
        server.close()
    if left:
        since = f" with --from {left[0]}" if again else ""  # the dates before would run once more
        echo(
            f"{len(left)} of {len(plan.dates)} dates have no success: {list_names(left)}. "
            f"next: the same command again{since}"
        )
    else:
        echo(f"all {len(plan.dates)} dates are done")
    return 1 if left else 0


def _password(file: Path | None, faults: list[Fault]) -> str:
    """Return the password of a file, or of the environment."""
    if file is None:
        if "AZKABAN_PASSWORD" not in os.environ:
            faults.append(Fault("password_file", BackfillFault.NO_PASSWORD))
        return os.environ.get("AZKABAN_PASSWORD", "")
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        faults.append(Fault("password_file", GeneralFault.UNREADABLE_FILE, {"file": str(file), "error": str(error)}))
        return ""


def _check(directory: Path, name: str) -> int:
    """Print the checks; return the exit code."""
    from .checking import check_installation

    echo(f"checking as {system_user()}; jobs run as the user of Azkaban's executor, with execute.as.user as their own")
    diagnosis = check_installation(directory, name, lambda result: show_result(result.to_dict()))
    click.echo(f"\n{summary_line(diagnosis.to_dict())}")
    return leave(diagnosis.exit_code, diagnosis.hanging)
