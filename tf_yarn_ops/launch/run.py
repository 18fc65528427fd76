"""`EngineRun`: one run of a job in the process of an engine; every door follows and reports its training with it.

A door keeps its request, its exit, and what its engine alone knows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import TfYarnError
from ..job.spec import JobSpec
from ..runtime.common.masking import mask_options
from ..runtime.common.report import JobReport
from ..terminal.output import report_of_error
from ..terminal.progress import Lines
from ..terminal.summary import describe

if TYPE_CHECKING:
    from .identity import Identity
    from .launcher import Launcher


@dataclass(frozen=True)
class RunOutcome:
    """How a run has ended.

    Attributes
    ----------
    report : JobReport
        With a reason: of the application, or of the error.
    error : TfYarnError or None
        The error that ended the run without a report of the application.
    """

    report: JobReport
    error: TfYarnError | None = None

    @property
    def left(self) -> str:
        """The id of an application that may still run, because YARN did not answer; empty if there is none."""
        return self.report.application_id if self.error is not None and not self.report.state else ""

    def lines(self, later: str, options: str = "") -> list[str]:
        """Return the lines for people.

        Parameters
        ----------
        later : str
            What becomes of an application that may still run.
        options : str, optional
            As in `summary.describe`.
        """
        if self.error is None:
            return list(describe(self.report, time.time(), options))
        left = orphan_lines(self.left, later, options) if self.left else []
        return [*str(self.error).splitlines(), self.error.hint, *left]


def orphan_lines(application_id: str, why: str, options: str = "") -> list[str]:
    """Return the lines about an application that may still run."""
    return [f"{application_id} may still run: {why}", f"next: ytf kill {application_id}{options}"]


@dataclass
class EngineRun:
    """The run of one request.

    Attributes
    ----------
    echo : callable
        Writes a line of the progress.
    announce : callable
        Called with the id of each application that trains for the request, before anything is staged.
    poll_interval : float
        Seconds between two requests for the application's state.
    application_ids : list of str
        The ids that were announced, the latest last.
    """

    echo: Callable[[str], object]
    announce: Callable[[str], object]
    poll_interval: float = 1.0
    application_ids: list[str] = field(default_factory=list)

    @property
    def application_id(self) -> str:
        """The id of the last application; empty until one is reserved."""
        return self.application_ids[-1] if self.application_ids else ""

    def settle(self, work: Callable[[], JobReport]) -> RunOutcome:
        """Do the work of the run; return its report, or that of the error of ours that ended it."""
        try:
            return RunOutcome(work())
        except TfYarnError as error:
            return RunOutcome(report_of_error(error, self.application_id), error)

    def reserved(self, application_id: str) -> None:
        """Announce an application, unless it was the last one."""
        if application_id not in self.application_ids[-1:]:
            self.application_ids.append(application_id)
            self.announce(application_id)

    def train(
        self,
        launcher: "Launcher",
        job: JobSpec,
        identity: "Identity | None",
        show: Callable[[JobReport], object] | None = None,
        **options: Any,
    ) -> JobReport:
        """Submit a job, or attach to it, and follow it to its end; see `Launcher.run`.

        Parameters
        ----------
        launcher : Launcher
        job : JobSpec
        identity : Identity or None
        show : callable, optional
            Shows each changed report. Default: `echo` gets one line per change.
        **options
            As in `Launcher.run`.
        """
        follow = show or Lines(self.echo).show

        def note(report: JobReport) -> None:
            self.reserved(report.application_id)  # the training may go on in another application
            follow(report)

        return launcher.run(
            job, identity, on_reserved=self.reserved, on_change=note, poll_interval=self.poll_interval, **options
        )


def dry_run_text(job: JobSpec) -> str:
    """Return the job and its Skein application as two YAML documents, with secrets masked."""
    import yaml

    from ..submit.application import build
    from ..submit.preflight import with_absolute_sources

    application = build(with_absolute_sources(job)).to_yaml()
    text = yaml.safe_dump(mask_options(job.to_dict()), sort_keys=False, allow_unicode=True)
    # The application has no variables or commands of the job.
    return (
        "# The job, as --spec reads it; relative paths begin in the folder of the file\n"
        f"{text}---\n# The application, as Skein reads it\n{application}"
    )
