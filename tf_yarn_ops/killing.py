"""Killing an application as a caller wants it: with the reason kept by YARN, until it is gone."""

import logging
import time
from typing import TYPE_CHECKING

from .errors import ApplicationNotFound, ClusterUnreachable
from .resourcemanager import ENDED
from .runtime.reasons import Reason
from .runtime.report import JobReport, compose_diagnostics
from .status import kill_report, unsubmitted_report

if TYPE_CHECKING:
    from .launcher import Launcher

logger = logging.getLogger(__name__)

#: Seconds until a kill has to be done; YARN needs 0.1 s, after a fail-over some more.
KILL_TIMEOUT = 30.0
#: Diagnostics of our kills; YARN keeps 64 KB but sends them with every list.
_KILL_DIAGNOSTICS = 8 * 1024


def kill(launcher: "Launcher", application_id: str, why: str, reason: Reason, timeout: float) -> JobReport:
    """Do what `Launcher.kill` promises."""
    deadline = time.monotonic() + timeout
    resourcemanager = launcher.resourcemanager
    try:
        found = resourcemanager.get_recovered(application_id, timeout)
        if found["state"] not in ENDED:
            text = compose_diagnostics(kill_report(found, reason, why, launcher.live.fetch(found)), _KILL_DIAGNOSTICS)
            logger.info("killing %s : %s", application_id, why)
            resourcemanager.kill(application_id, text)
        while found["state"] not in ENDED:
            if time.monotonic() >= deadline:
                raise ClusterUnreachable(f"{application_id} is {found['state']} {timeout:g} s after the kill")
            time.sleep(0.05)
            found = resourcemanager.get(application_id)
    except ApplicationNotFound:
        launcher.forget(application_id)
        return unsubmitted_report(application_id, why)
    return launcher.read(found)
