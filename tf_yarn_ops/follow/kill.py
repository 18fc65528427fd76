"""Killing an application as a caller wants it: with the reason kept by YARN, until it is gone."""

import contextlib
import logging
import time
from typing import TYPE_CHECKING

from ..errors import ApplicationNotFound, ClusterUnreachable
from ..hadoop.resourcemanager import ENDED
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, compose_diagnostics
from .yarn_report import kill_report, lost_report, unsubmitted_report

if TYPE_CHECKING:
    from ..launch.launcher import Launcher

logger = logging.getLogger(__name__)

#: Seconds until a kill has to be done; YARN needs 0.1 s, after a fail-over some more.
KILL_TIMEOUT = 30.0
#: Diagnostics of our kills; YARN keeps 64 KB but sends them with every list.
_KILL_DIAGNOSTICS = 8 * 1024
#: Seconds after which an application that still lives is killed again.
_ASK_AGAIN = 5.0


def kill(launcher: "Launcher", application_id: str, why: str, reason: Reason, timeout: float) -> JobReport:
    """Do what `Launcher.kill` promises.

    A ResourceManager that restarts knows no application until it has recovered them, and forgets a kill that
    it has accepted and not yet done: what was there is looked for until its end, and killed again.
    """
    began = time.monotonic()
    try:
        found = launcher.resourcemanager.get_recovered(application_id, timeout)
    except ApplicationNotFound:
        launcher.forget(application_id)
        return unsubmitted_report(application_id, why)
    text, ask_at = "", began
    while found["state"] not in ENDED:
        now = time.monotonic()
        if text and now >= began + timeout:
            raise ClusterUnreachable(f"{application_id} is {found['state']} {timeout:g} s after the kill")
        if now >= ask_at:
            if not text:
                logger.info("killing %s : %s", application_id, why)
                live = launcher.live.fetch(found)
                text = compose_diagnostics(kill_report(found, reason, why, live), _KILL_DIAGNOSTICS)
            with contextlib.suppress(ApplicationNotFound):
                launcher.resourcemanager.kill(application_id, text)
            ask_at = time.monotonic() + _ASK_AGAIN
        time.sleep(0.05)
        try:
            found = launcher.resourcemanager.get_recovered(application_id, began + timeout - time.monotonic())
        except ApplicationNotFound:
            launcher.forget(application_id)
            return lost_report(application_id)
    return launcher.read(found)
