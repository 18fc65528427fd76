"""One job of Azkaban, from its properties to its exit code.

The lines of Azkaban's log are written here: the bare id of the application as soon as it is reserved, the reason as
the last line. Azkaban decides by the exit code alone, and reads the output properties only if it is 0.
"""

import logging
import os
from argparse import ArgumentParser
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..errors import Cancelled, Fault, SpecInvalid, Superseded, TfYarnError
from ..follow.kill import kill_application
from ..follow.lease import usual_lease, with_lease
from ..follow.session import Session
from ..hadoop.cluster import discover
from ..hadoop.site import find_site
from ..job.request import find_job_warnings
from ..job.spec import JobSpec
from ..launch.claims import Claims
from ..launch.launcher import Launcher
from ..launch.run import EngineRun, dry_run_text, orphan_lines
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..submit.preflight import check_environment, with_absolute_sources
from ..terminal.signals import Interruption
from ..validation import noting
from .console import Console, tame
from .inherited import launcher_environment, replace_own
from .job import read_azkaban_job
from .job_execution import JobExecution, project_folder, with_tags
from .limited_ending import LimitedEnding
from .limits import Limits, read_limits
from .outputs import output_properties, write_job_outputs
from .previous import check_previous
from .properties import parse_properties
from .request import AzkabanRequest, check_sources

logger = logging.getLogger(__name__)

#: Seconds for the answer to the last call, and for its repetitions.
_HASTE = 2.0
_IGNORED = "{}: ignored, because a job sets no variables of its launcher; tf.env.NAME sets a variable of its tasks"

_OPTIONS = ArgumentParser("the launcher", add_help=False, allow_abbrev=False)
_OPTIONS.add_argument("--secure", action="store_true")
_OPTIONS.add_argument("--limits")
_OPTIONS.add_argument("--plugin", type=Path)


class JobRun:
    """Runs one job.

    Parameters
    ----------
    console : Console
    interruption : Interruption
        With its handlers of TERM and INT installed.
    environ : mapping of str to str
        The environment of the launcher.
    limits_file : str, optional
        The file of the site's limits, as for `limits.read_limits`.
    secure : bool, optional
        Whether jobs may name files of their project only, if the limits do not say it. Default false.
    plugin : Path, optional
        The folder of the job type. Default: none, so that no variable in its files counts.
    """

    def __init__(
        self,
        console: Console,
        interruption: Interruption,
        environ: Mapping[str, str],
        limits_file: str | None = None,
        secure: bool = False,
        plugin: Path | None = None,
    ):
        self._console = console
        self._interruption = interruption
        self._environ = dict(environ)
        self._limits_file = limits_file
        self._secure = secure
        self._plugin = plugin
        self._launcher: Launcher | None = None
        self._run = EngineRun(self._echo, self._echo)
        self._ending = LimitedEnding(self._stop, self._last_call, self._no_answer)

    def __call__(self) -> int:
        """Run the job; return the exit code."""
        self._ending.start(self._interruption.wakeup())
        try:
            outcome = self._run.settle(self._train)
        except Exception as fault:  # A fault of this program must not leave an application that no launcher follows.
            logger.exception("the launcher has failed")
            self._ending.request(f"its launcher has failed: {type(fault).__name__}", 1)
            self._last_call()
            return 1
        report, error = outcome.report, outcome.error
        if isinstance(error, Cancelled):
            return self._conclude(Reason.KILLED, f"{self._ending.why or error}")
        if error is not None and self._ending.why:
            self._warn_of_orphan(str(error))
            return self._conclude(Reason.KILLED, self._ending.why)
        if report.application_id or error is not None:
            alone = error is not None and "\n" not in str(error)  # the last line says it
            for line in outcome.lines("a retry goes on with it")[1 if alone else 0 :]:
                self._echo(line)
        return self._conclude(report.reason or Reason.AM_FAILED, report.message if error is None else _gist(error))

    def _train(self) -> JobReport:
        """Return the report of the training; without an id if nothing was to be submitted."""
        properties = read_job_properties(self._environ)
        execution = JobExecution.read(properties)
        limits = read_limits(self._limits_file)
        self._environ, ignored = launcher_environment(self._environ, properties, self._plugin, limits.environ)
        replace_own(self._environ)
        if ignored:
            self._echo(_IGNORED.format(", ".join(ignored)))
        folder = project_folder(properties, execution)
        job, request = self._read_job(properties, execution, limits, folder)
        if request.dry_run:
            check_environment(job)
            for line in dry_run_text(job).splitlines():
                self._echo(line)
            return JobReport("", reason=Reason.SUCCEEDED, message="nothing was submitted, tf.dry_run is set")
        cluster = discover(environ=self._environ, user=job.user, site=limits.identify(find_site(self._environ)))
        launcher = Launcher(
            cluster,
            strict_placement=request.strict_placement,
            environ=self._environ,
            holder=f"the launcher of {execution}",
        )
        job = with_lease(job, cluster.site.unreachable_timeout)
        # From here a signal only sets a flag: the launcher kills the application at a point where that is safe.
        self._launcher = launcher
        with self._interruption.on_signal(self._signalled):
            if self._ending.why:
                raise Cancelled(self._ending.why)
            patience = job.lease or usual_lease(cluster.site.unreachable_timeout)
            identity = execution.identity(request.previous, patience, folder)
            check_previous(launcher.session, identity, job.user or cluster.user, self._echo)
            over = execution.attempt >= execution.retries  # Azkaban starts no other attempt
            try:
                report = self._run.train(launcher, job, identity)
                over |= report.reason is Reason.SUCCEEDED
            except Superseded:
                over = True
                raise
            finally:
                with suppress(TfYarnError):  # A newer execution that waits then waits until the lease runs out.
                    claims = Claims(launcher.session, job.user, identity)
                    (claims.end_run if over or self._ending.why else claims.renew_run)()
        path = self._environ.get("JOB_OUTPUT_PROP_FILE")
        if path and report.reason is Reason.SUCCEEDED:
            write_job_outputs(path, output_properties(report))
        return report

    def _read_job(
        self, properties: Mapping[str, str], execution: JobExecution, limits: Limits, folder: Path
    ) -> tuple[JobSpec, AzkabanRequest]:
        """Return the job as it will be submitted, with absolute paths."""

        def complete(job: JobSpec, request: AzkabanRequest, faults: list[Fault]) -> JobSpec:
            if not request.says("deadlines.total"):
                job = limits.with_deadline(job)
            if not request.faults:  # A value with a fault was replaced by a default, which limits must not judge.
                with noting(faults):
                    limits.check_job(job)
            with noting(faults):
                check_sources(job, request)
            with noting(faults):
                job = replace(job, user=limits.user(properties))
            with noting(faults):
                job = with_tags(with_absolute_sources(job), execution, request)
            return job

        only_project = limits.files == "project" or (limits.files is None and self._secure)
        job, request = read_azkaban_job(
            properties, Path.cwd(), limits.defaults, complete, folder if only_project else None
        )
        for warning in (*request.warnings, *find_job_warnings(job)):
            self._echo(f"warning: {warning}")
        # Azkaban deletes the project as soon as the flow ends, even if a launcher still runs in it.
        os.chdir("/")
        return job, request

    def _signalled(self) -> None:
        """Request the end of the process; this runs in a signal handler."""
        self._ending.signalled(self._interruption.number or 15)

    def _stop(self) -> None:
        """Tell the launcher to cancel; end the process if there is no launcher yet."""
        if self._launcher is None:
            os._exit(self._ending.code)
        self._launcher.cancel(self._ending.why)

    def _last_call(self) -> None:
        """Kill the application over a new connection, because the ordinary ending has taken too long."""
        last = self._run.application_id
        if self._launcher is not None and last:
            # Write nothing before the kill: without a reader the pipe may block.
            session = Session.with_short_timeout(self._launcher.cluster, _HASTE, _HASTE)
            try:
                kill_application(session, last, self._ending.why, timeout=None, look_first=False)
                self._echo(f"killed {last} by a last call")
            except TfYarnError as error:
                self._warn_of_orphan(str(error))
        self._conclude(Reason.KILLED, self._ending.why)

    def _no_answer(self) -> None:
        self._warn_of_orphan("the ResourceManager does not answer")
        self._conclude(Reason.KILLED, self._ending.why)

    def _warn_of_orphan(self, why: str) -> None:
        for line in orphan_lines(self._run.application_id, why) if self._run.application_id else ():
            self._echo(line)

    def _echo(self, line: str) -> None:
        self._console.echo(tame(line, self._run.application_ids))

    def _conclude(self, reason: Reason, message: str) -> int:
        """Write the last line; return the exit code."""
        self._echo(f"{reason.value}: {' '.join(message.split())}" if message else reason.value)
        return self._ending.code if self._ending.why else reason.exit_code


def _gist(error: TfYarnError) -> str:
    """Return the line of an error that Azkaban's overview shows: of several faults the first one, and their number."""
    faults = error.faults if isinstance(error, SpecInvalid) else ()
    if len(faults) < 2:
        return str(error).partition("\n")[0]
    more = len(faults) - 1
    return f"{faults[0]} (and {more} more {'fault' if more == 1 else 'faults'}, listed above)"


def read_job_properties(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the job's properties from the file that Azkaban has written.

    Raises
    ------
    SpecInvalid
        Azkaban did not start this program, or the file is not a properties file.
    """
    path = environ.get("JOB_PROP_FILE")
    if not path:
        raise SpecInvalid(
            "JOB_PROP_FILE is not set: only Azkaban starts this program, through the job type that "
            "`ytf azkaban install-jobtype` installs"
        )
    try:
        return parse_properties(Path(path).read_bytes())
    except OSError as error:
        raise SpecInvalid(f"JOB_PROP_FILE cannot be read: {error}") from error


def log_to_console(console: Console) -> None:
    """Send the package's log and the warnings of other packages to the job's log."""
    handler = logging.StreamHandler(console)
    handler.setFormatter(_Plain("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("tf_yarn_ops").setLevel(logging.INFO)


class _Plain(logging.Formatter):
    """Formats a line without the time, which Azkaban adds, and with the level from WARNING on."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.levelno < logging.WARNING else f"{record.levelname.lower()}: {text}"


def run_job(console: Console, interruption: Interruption, words: list[str], environ: Mapping[str, str]) -> int:
    """Run the job that the environment describes; return the exit code.

    The words are those of the installed command: ``--secure``, ``--limits FILE`` for the site's limits, ``--plugin
    FOLDER`` for the folder of the job type.
    """
    log_to_console(console)
    options, unknown = _OPTIONS.parse_known_args(words)
    if unknown:
        console.echo(
            f"{Reason.SPEC_INVALID.value}: the only options are --secure, --limits FILE and --plugin FOLDER; "
            f"given: {' '.join(words)}"
        )
        return Reason.SPEC_INVALID.exit_code
    return JobRun(console, interruption, environ, options.limits, options.secure, options.plugin)()
