"""``python -m tf_yarn_ops.oozie.action``: the program of the shell action, which Oozie's launcher starts.

It reads the job's document and Oozie's variables, trains once for each request, and prints the
outputs of the action. Stdout holds nothing but them; progress goes to stderr, which is the launcher's log.
"""

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from ..errors import Cancelled, TfYarnError
from ..follow.lease import with_lease
from ..follow.sweep import OLD_DAYS, sweep_old
from ..hadoop.cluster import Cluster, discover
from ..hadoop.security.container_tokens import ContainerTokens
from ..job.document import read_document
from ..job.request import find_job_warnings
from ..job.spec import JobSpec
from ..launch.launcher import Launcher
from ..launch.run import EngineRun
from ..runtime.common.clock import local_clock
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..staging.staging_directory import REPORTS_FOLDER, StagingDirectory
from ..submit.preflight import with_absolute_sources
from ..terminal.output import configure_logging, echo
from ..terminal.output_properties import format_outputs, outputs_of
from ..terminal.signals import Interruption
from .action_ending import ActionEnding
from .fields import fill
from .launched import Launched
from .packed_job import CHILD_IDS, FIRST_OUTPUTS, PACKED_JOB_FILE, values_of

logger = logging.getLogger(__name__)


class ActionRun:
    """Runs the action once.

    Parameters
    ----------
    environ : mapping of str to str
        The environment that Oozie's launcher has made.
    interruption : Interruption
        With its handlers installed.
    """

    def __init__(self, environ: Mapping[str, str], interruption: Interruption):
        self._environ = dict(environ)
        self._interruption = interruption
        self._run = EngineRun(echo_with_time, self._notify)
        self._cluster: Cluster | None = None

    def __call__(self) -> tuple[JobReport, str | None]:
        """Train, or go on with the training; return its report, and the path of the report in the file system."""
        outcome = self._run.settle(self._train)
        if isinstance(outcome.error, Cancelled):
            raise outcome.error
        for line in outcome.lines("the next attempt of the action goes on with it"):
            echo_with_time(line)
        return outcome.report, None if outcome.error else self._store(outcome.report)

    def _train(self) -> JobReport:
        launched = Launched.read(self._environ)
        values = values_of(self._environ)
        job = self._read_job(values)
        # The launcher's process may run as the NodeManager's user. Kerberos, where it is on, knows the user better.
        if values.get("user"):
            self._environ.setdefault("HADOOP_USER_NAME", values["user"])
        self._cluster = discover(environ=self._environ, user=job.user, tokens=ContainerTokens.read(self._environ))
        launcher = Launcher(self._cluster, environ=self._environ, holder="an action of Oozie")
        ending = ActionEnding(self._cluster, launched, self._run, launcher.cancel)
        ending.watch(self._interruption.wakeup())
        with self._interruption.on_signal(lambda: None):  # `ActionEnding` reacts, in its thread
            ending.connect()
            listed = launcher.session.resourcemanager.find(tags=[launched.request_tag], user=launcher.cluster.user)
            job = replace(job, tags=tuple(dict.fromkeys([*job.tags, *launched.tags])))
            # Oozie gives up after the last attempt of a launcher, and leaves its applications.
            job = with_lease(job, launcher.cluster.site.unreachable_timeout)
            return self._run.train(launcher, job, launched.identify(listed))

    def _read_job(self, values: Mapping[str, str]) -> JobSpec:
        job = JobSpec.from_dict(fill(read_document(PACKED_JOB_FILE), values))
        for doubt in find_job_warnings(job):
            echo_with_time(f"warning: {doubt}")
        return with_absolute_sources(job)

    def _notify(self, application_id: str) -> None:
        echo_with_time(f"training in {application_id}")

    def _store(self, report: JobReport) -> str | None:
        """Write the report into the file system; return its URL, or None if that failed."""
        assert self._cluster is not None
        folder = f"{self._cluster.staging}/{REPORTS_FOLDER}"
        path = f"{folder}/{report.application_id}.json"
        try:
            staging = StagingDirectory(self._cluster)
            with closing(staging.filesystem):
                staging.make_private(folder)
                staging.filesystem.replace(path, json.dumps(report.to_dict(), indent=1).encode(), 0o600)
                sweep_old(staging, REPORTS_FOLDER, self._cluster.site.history_days or OLD_DAYS)
        except (TfYarnError, OSError) as error:
            logger.warning("the report can't be stored at %s: %s", path, error)
            return None
        return f"{self._cluster.storage.filesystem}{path}"


def echo_with_time(line: str) -> None:
    """Write a line into the launcher's log, with the time."""
    echo(f"{local_clock()} {line}")


def run_action(environ: Mapping[str, str], interruption: Interruption, outputs: int) -> int:
    """Run the action; return its exit code.

    Parameters
    ----------
    environ : mapping of str to str
    interruption : Interruption
    outputs : int
        The file descriptor for the outputs of the action.
    """
    configure_logging(verbose=True)
    try:
        report, path = ActionRun(environ, interruption)()
    except Cancelled as error:
        echo_with_time(str(error))
        return Reason.KILLED.exit_code  # as when the wait sees the end before the signal
    text = format_outputs(outputs_of(report, report_path=path), first=environ.get(FIRST_OUTPUTS, "").split()).encode()
    try:
        Path(CHILD_IDS).write_bytes(f"{report.application_id}\n".encode() + text)
    except OSError as error:
        logger.warning("%s can't be written, so Oozie does not show why the training failed: %s", CHILD_IDS, error)
    while text:
        text = text[os.write(outputs, text) :]
    return (report.reason or Reason.AM_FAILED).exit_code


def main() -> NoReturn:
    """Run the action. What other code writes to stdout goes to stderr: Oozie reads all of stdout as properties."""
    outputs = os.dup(1)
    os.dup2(2, 1)
    with Interruption() as interruption:
        code = run_action(os.environ, interruption, outputs)
    sys.exit(code)


if __name__ == "__main__":
    main()
