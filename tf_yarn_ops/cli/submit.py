"""``ytf-submit``: submit a job from the words of a shell, and with ``--wait`` follow it to its end."""

import difflib
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..errors import Cancelled, Fault, FaultCode, GeneralFault, SpecInvalid, TfYarnError
from ..job.document import read_document
from ..job.options import OPTIONS
from ..job.request import build_job, find_job_warnings
from ..job.spec import JobSpec, TaskSpec
from ..launch.run import EngineRun, RunOutcome, dry_run_text, orphan_lines
from ..runtime.common.local_job import SCHEME
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..terminal.output import configure_logging, echo, print_json, report_of_error, show, terminal_columns
from ..terminal.output_properties import format_outputs, outputs_of, write_output_file
from ..terminal.progress import make_progress
from ..terminal.signals import Interruption
from ..terminal.summary import describe
from ..validation import check_faults, noting, parse_count
from .command_line import ClusterCall
from .manual import SYNOPSIS, manual_page
from .parameters import ALL, SUBMISSION, parser_option

if TYPE_CHECKING:
    from ..follow.log_stream import LogLine
    from ..launch.identity import Identity
    from ..launch.launcher import Launcher
    from .client import LocalTask


class CommandLineFault(FaultCode):
    """Fault codes for the words of a call."""

    NEEDS_A_WAITER = "needs {other}: YARN would end the job, because no client waits for it and moves its end"
    NEEDS_A_NAME = "needs {other}, the name of the training"
    NEEDS_A_READER = "needs {other}: without it nobody reads the lines; ytf logs -f shows them later"
    NEEDS_DRY_RUN = "needs {other}: a submission reads the files of the job"
    NEEDS_WAIT = "needs {other}: only a job that has ended has results"
    ONE_STDOUT = "- and {other} would both write to stdout; give one of them a file"
    EMPTY_NAME = "it is empty; give a name for the training"
    TWO_PLACES = "it and {other} name two places; give one of them"
    SEVERAL_ARGUMENTS = "{given} words were given; quote the whole command as one word: {quoted}"


class ManualCommand(click.Command):
    """A command whose help is the manual page; an unknown option is an error about quoting."""

    def get_help(self, ctx: click.Context) -> str:
        return manual_page()

    def get_usage(self, ctx: click.Context) -> str:
        return f"Usage: {SYNOPSIS}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = {option.name.removeprefix("task_"): option.name for option in ALL}
            near = difflib.get_close_matches(error.option_name.lstrip("-"), names, n=1, cutoff=0.7)
            hint = f" (did you mean '--{names[near[0]]}'?)" if near else ""
            raise click.UsageError(f"No such option {error.option_name!r}{hint}. Options of your own program belong "
                                   "to the task_command: quote it as one word.", ctx) from error  # fmt: skip


def _submit(**values: Any) -> int:
    settings = {option.name: values.pop(option.name) for option in SUBMISSION}
    configure_logging(bool(settings["verbose"]))
    submission = CommandLineRun(settings, click.get_current_context().obj)
    try:
        return submission.run(values)
    except TfYarnError as error:
        report = report_of_error(error, submission.engine_run.application_id)
        if settings["json"]:
            print_json(report.to_dict())
        if settings["output_properties"] and not (settings["json"] and settings["output_properties"] == "-"):
            submission.write_outputs(report)
        raise


class CommandLineRun:
    """One call of ``ytf-submit``.

    Parameters
    ----------
    settings : mapping of str to value
        The options of `SUBMISSION` by their keys.
    interruption : Interruption
    """

    def __init__(self, settings: Mapping[str, Any], interruption: Interruption):
        if settings["local"] and settings["resourcemanager"]:
            raise SpecInvalid(Fault("local", CommandLineFault.TWO_PLACES, {"other": "resourcemanager"}))
        self.settings = {**settings, **({"resourcemanager": SCHEME, "wait": True} if settings["local"] else {})}
        self.interruption = interruption
        self._printed = self._ended = ""
        self._log_tasks: tuple[str, ...] = ()
        self._call = ClusterCall(self.settings["resourcemanager"])
        self.engine_run = EngineRun(echo, lambda application_id: None, 0.2 if _is_local(self.settings) else 0.5)

    def run(self, values: dict[str, Any]) -> int:
        """Submit the job, and follow it if the options ask for that; return the exit code."""
        wants_client = bool(values.pop("client"))
        client_command = _take_client_command(values) if wants_client else None
        standard = not (values["task_memory"] or values["spec"])
        job = read_command_line(values, bool(self.settings["offline"]))
        identity = read_identity(self.settings)
        waits = wants_client or bool(self.settings["wait"])
        check_settings(self.settings, job, waits)
        self._log_tasks = () if wants_client or not waits else read_log_tasks(self.settings, job)
        way, ways = self.settings["submit_with"], OPTIONS["submit_with"].kind.choices
        if way not in (None, *ways):
            raise SpecInvalid(Fault("submit_with", GeneralFault.NOT_A_CHOICE, {"given": way, "allowed": ways}))
        for doubt in find_job_warnings(job):
            echo(f"warning: {doubt}")
        from ..submit.preflight import check_environment, file_faults, find_file_warnings

        if not self.settings["offline"]:
            check_faults(file_faults(job))
            for doubt in find_file_warnings(job, _is_local(self.settings)):
                echo(f"warning: {doubt}")
        if self.settings["dry_run"]:
            if not (self.settings["offline"] or _is_local(self.settings)):
                check_environment(job)
            show(dry_run_text(job), data=True, nl=False)
            return 0
        from ..launch.launcher import Launcher

        self._call = replace(self._call, user=job.user)
        launcher = Launcher(
            self._call.discover(),
            submit_with=way,
            strict_placement=bool(self.settings["strict_placement"]),
            holder="ytf-submit",
        )
        if standard and "rest" in launcher.session.resourcemanager.ways:
            echo(f"each task gets {TaskSpec().memory} MiB of memory, as --task_memory is not given")

        def cancel() -> None:
            # This runs in a signal handler: sys.stderr may be in the middle of a line.
            does = (
                f"{self._ended} has ended; the rest of its log is not shown"
                if self._ended
                else f"killing {self.engine_run.application_id or 'the submission'}"
            )
            os.write(2, f"\nytf-submit: {does}\n".encode())
            launcher.cancel()

        # From here a signal only sets a flag: the launcher kills the application at a point where that is safe.
        with self.interruption.on_signal(cancel):
            if wants_client:
                from .client import LocalTask

                with closing(LocalTask(job, client_command)) as client:
                    outcome = self.engine_run.settle(lambda: self._follow(launcher, job, identity, client))
                    return self._end(launcher, outcome)
            if self.settings["wait"]:
                return self._end(launcher, self.engine_run.settle(lambda: self._follow(launcher, job, identity)))
            outcome = self.engine_run.settle(lambda: self._submit(launcher, job, identity))
            if outcome.error is not None or outcome.report.reason is Reason.LOST:
                return self._end(launcher, outcome)  # YARN may have forgotten an earlier submission of this identity
            if self.settings["json"]:
                print_json(launcher.report(self.engine_run.application_id).to_dict())
            else:
                click.echo(self.engine_run.application_id)
            return 0

    def _submit(self, launcher: "Launcher", job: JobSpec, identity: "Identity | None") -> JobReport:
        """Submit the job, or attach to its application, without following it."""
        if identity:
            return launcher.ensure(job, identity, self.engine_run.reserved)
        return JobReport(launcher.submit(job, self.engine_run.reserved))

    def _follow(self, launcher: "Launcher", job: JobSpec, identity: "Identity | None",
                client: "LocalTask | None" = None) -> JobReport:  # fmt: skip
        """Submit the job, or attach to its application, and follow it to its end."""
        if client is not None:
            job = client.prepare(launcher.cluster, launcher.session.checkpoint)
        with make_progress(plain=client is not None or bool(self._log_tasks)) as progress:

            def show(report: JobReport) -> None:
                self._print_id(report)
                self._ended = report.application_id if report.reason else ""
                if client is None or not client.running:
                    progress.show(report)
                if client is not None and report.state == "RUNNING" and report.rounds:
                    client.start(
                        report.application_id,
                        report.rounds[-1].number,
                        lambda: launcher.cluster_spec(report.application_id, report.rounds[-1].number),
                    )

            report = self.engine_run.train(
                launcher,
                job,
                identity,
                show,
                tasks=self._log_tasks,
                on_line=self._show_line if self._log_tasks else None,
                agent_lines=bool(self.settings["verbose"]),
            )
        self._print_id(report)
        return report

    def _end(self, launcher: "Launcher", outcome: RunOutcome) -> int:
        """Show how the job has ended, after a signal by its state in YARN; return the exit code."""
        report, error, number = outcome.report, outcome.error, self.interruption.number
        if error is not None and number is None and not outcome.left:
            raise error
        if error is not None and number is not None:
            if not isinstance(error, Cancelled):
                for line in orphan_lines(self.engine_run.application_id, str(error), self._call.next_options):
                    echo(line)
            elif self.engine_run.application_id:
                found = launcher.report(self.engine_run.application_id)
                # YARN has no state for an id that was reserved and never submitted.
                report = replace(report, state="") if found.reason is Reason.LOST else found
        self._conclude(report)
        return report.exit_code if error is None or number is None else self.interruption.exit_code

    def _conclude(self, report: JobReport) -> None:
        interrupted = self.interruption.number == signal.SIGINT
        for line in describe(report, time.time(), self._call.next_options, terminal_columns(), interrupted=interrupted):
            echo(line)
        if self.settings["json"]:
            print_json(report.to_dict())
        if self.settings["output_properties"]:
            self.write_outputs(report)

    def write_outputs(self, report: JobReport) -> None:
        """Write the output properties of a job that has ended; warn if that fails, because the job's end counts."""
        try:
            write_output_file(self.settings["output_properties"], format_outputs(outputs_of(report)))
        except SpecInvalid as error:
            echo(f"warning: {error}")

    def _show_line(self, line: "LogLine") -> None:
        """Show a line of a program: on stdout for a job on this machine, else beside the id on stdout."""
        text = f"{line.task} | {line.text}"
        if _is_local(self.settings) and not self.settings["json"]:
            show(text, data=True)
        else:
            echo(text)

    def _print_id(self, report: JobReport) -> None:
        """Write the id to stdout once YARN has accepted the application; on a terminal the table shows the id."""
        shown = sys.stdout.isatty() and sys.stderr.isatty()
        taken = self.settings["json"] or self.settings["output_properties"] == "-"
        if report.application_id != self._printed and not taken and not shown:
            self._printed = report.application_id
            click.echo(report.application_id)


def _is_local(settings: Mapping[str, Any]) -> bool:
    return str(settings.get("resourcemanager")).startswith(SCHEME)


def read_log_tasks(settings: Mapping[str, Any], job: JobSpec) -> tuple[str, ...]:
    """Return the names of the tasks whose lines ``--logs`` asks for; a job with one task shows them by default."""
    given = "none" if settings["no_logs"] else settings["logs"]
    names = [f"{name}:{index}" for name, task in job.tasks.items() for index in range(task.instances)]
    if given is None:
        given = "all" if _is_local(settings) else "chief" if len(names) == 1 else "none"
    chief = next((name for name in ("chief:0", "worker:0") if name in names), names[0])
    words = {"chief": (chief,), "all": ("*:*",), "none": ()}
    patterns = words.get(given) or tuple(word.strip() for word in given.split(",") if given not in words)
    check_faults(
        [
            Fault("logs", GeneralFault.NOT_A_CHOICE, {"given": pattern, "allowed": (*words, *names)})
            for pattern in patterns
            if not any(fnmatchcase(name, pattern) for name in names)
        ]
    )
    return patterns


def read_identity(settings: Mapping[str, Any]) -> "Identity | None":
    """Return the identity that ``--run_id`` and ``--generation`` name; each call is a new attempt."""
    run_id, generation = settings["run_id"], settings["generation"]
    if run_id is None:
        if generation is not None:
            raise SpecInvalid(Fault("generation", CommandLineFault.NEEDS_A_NAME, {"other": "run_id"}))
        return None
    from ..launch.identity import Identity

    faults: list[Fault] = []
    number = 0
    with noting(faults, "generation"):
        number = parse_count(generation or 0, least=0)
    if not run_id.strip():
        faults.append(Fault("run_id", CommandLineFault.EMPTY_NAME))
    check_faults(faults)
    return Identity(f"ytf-submit {run_id}", number, attempt=time.time_ns() // 1_000_000)


def check_settings(settings: Mapping[str, Any], job: JobSpec, waits: bool) -> None:
    """Raise SpecInvalid for each option that can't be obeyed beside the others."""
    target, unread = settings["output_properties"], not (waits or settings["dry_run"])
    conflicts = (
        (settings["offline"] and not settings["dry_run"], "offline", CommandLineFault.NEEDS_DRY_RUN, "dry_run"),
        (settings["logs"] not in (None, "none") and unread, "logs", CommandLineFault.NEEDS_A_READER, "wait"),
        (target is not None and unread, "output_properties", CommandLineFault.NEEDS_WAIT, "wait"),
        (target == "-" and settings["json"], "output_properties", CommandLineFault.ONE_STDOUT, "json"),
        (job.lease and not waits, "lease", CommandLineFault.NEEDS_A_WAITER, "wait"),
    )
    check_faults([Fault(name, code, {"other": other}) for broken, name, code, other in conflicts if broken])


def read_command_line(values: dict[str, Any], offline: bool = False) -> JobSpec:
    """Return the job of the parsed options over the file of ``--spec``; raise SpecInvalid with every fault.

    ``offline`` leaves out the faults of the local files that the options name.
    """
    words = values.pop("words")
    if len(words) > 1:
        shown = {"given": len(words), "quoted": shlex.quote(" ".join(words))}
        raise SpecInvalid(Fault("task_command", CommandLineFault.SEVERAL_ARGUMENTS, shown))
    path = values.pop("spec")
    options = {name: value for name, value in values.items() if value not in (None, ())}
    faults: list[Fault] = []
    document = read_document(path, faults=faults) if path else None
    with noting(faults):
        job = build_job({**options, "task_command": words[0] if words else None}, document)
    if not faults:
        return job
    refused = SpecInvalid([*faults, *([] if offline else _faults_of_files(options))])
    if not (words or path or options):
        refused.command = "ytf-submit -h"
    raise refused


def _faults_of_files(options: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of the local files that options name; those of a valid job are found before its submission."""
    from ..submit.preflight import fault_of_file, local_path

    named = [("script", options["script"])] if "script" in options else []
    for name in ("file", "archive"):
        for text in options.get(name, ()):
            own, equals, path = text.partition("=")
            named.append((name, path if equals and "/" not in own else text))
    return [
        fault
        for where, source in named
        if (path := local_path(source)) is not None and (fault := fault_of_file(where, path))
    ]


def _take_client_command(values: dict[str, Any]) -> str | None:
    """Remove ``--command client=...`` from the request, which has no such task type; return the command."""
    own = [text for text in values["command"] if text.startswith("client=")]
    values["command"] = tuple(text for text in values["command"] if text not in own)
    return own[-1].partition("=")[2] if own else None


submit = click.version_option(__version__)(
    ManualCommand(
        "ytf-submit",
        callback=_submit,
        params=[
            *(parser_option(option) for option in ALL),
            click.Argument(["words"], nargs=-1, metavar="<task_command>"),
        ],
        context_settings={
            "help_option_names": ["-h", "--help"],
            "token_normalize_func": lambda name: name.replace("-", "_"),
        },
    )
)
