"""`Repeating`: a job of which nothing has trained, for want of containers or of a master, is submitted again."""

import logging
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..follow.identity import Identity, may_try_again
from ..job.spec import JobSpec
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport

if TYPE_CHECKING:
    from .launcher import Launcher

logger = logging.getLogger(__name__)

#: Seconds before the next submission, jittered, growing with each: two jobs that each held half
#: of what they need are not to meet again.
RETRY_PAUSE = 10.0
#: Seconds before it where YARN could not launch the application master.
LAUNCH_PAUSE = 1.0


def pause_before(retry: int) -> float:
    """Give the seconds to wait before a retry, counted from 1."""
    return RETRY_PAUSE * retry * random.uniform(0.5, 1.5)


class Repeating:
    """One call of `Launcher.run`.

    Parameters
    ----------
    launcher : Launcher
    spec : JobSpec
    identity : Identity or None
    on_reserved : callable or None
    """

    def __init__(self, launcher: "Launcher", spec: JobSpec, identity: Identity | None,
                 on_reserved: Callable[[str], None] | None):
        self._launcher = launcher
        self._spec = spec
        self._identity = identity
        self._on_reserved = on_reserved

    def run(self, timeout: float | None, on_change: Callable[[JobReport], None] | None,
            poll_interval: float) -> JobReport:
        """Give the last report."""
        ended: list[JobReport] = []
        while True:
            report = self._start()
            if report.reason is None:
                report = self._launcher.wait(report.application_id, timeout=timeout, on_change=on_change,
                                             poll_interval=poll_interval, identity=self._identity)
            ended.append(report)
            if not may_try_again(ended, self._spec.restart.allocation_retries):
                return report
            pause = pause_before(len(ended)) if report.reason is Reason.ALLOCATION_TIMEOUT else LAUNCH_PAUSE
            logger.info("%s: nothing has trained; submitting again in %.0f s: %s",
                        report.application_id, pause, report.message)
            self._pause(pause)

    def _start(self) -> JobReport:
        if self._identity is None:
            return JobReport(self._launcher.submit(self._spec, self._on_reserved))
        return self._launcher.ensure(self._spec, self._identity, self._on_reserved)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._launcher.checkpoint()
            time.sleep(min(0.2, left))
