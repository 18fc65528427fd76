"""`Ending`: kill the application as soon as YARN ends the launcher.

``oozie job -kill`` ends the launcher's application. Its processes get SIGTERM, and SIGKILL after
``yarn.nodemanager.sleep-delay-before-sigkill.ms`` (250 ms). Oozie then kills the applications with the tag of the
action, but not those that are older than the action, which a rerun has adopted. So a thread kills the application the
moment the signal comes, over a connection that is open already.
"""

import logging
import os
import select
import signal
import threading
from typing import TYPE_CHECKING

from ..errors import TfYarnError
from ..follow.kill import kill
from ..follow.session import Session

if TYPE_CHECKING:
    from ..hadoop.cluster import Cluster

logger = logging.getLogger(__name__)

#: Seconds for the request that kills, and for its repetitions.
_HASTE = 5.0
WHY = "Oozie or YARN has ended the launcher of the action"


class Ending:
    """Kills the application of an action after SIGTERM or SIGINT.

    Parameters
    ----------
    cluster : Cluster
    attempt : int
        The number of this start of the action, for the report's ``killed_by_attempt``.
    """

    def __init__(self, cluster: "Cluster", attempt: int):
        self._session = Session.hasty(cluster, _HASTE, _HASTE)
        self._attempt = attempt
        self._application_id = ""

    def watch(self, signals: int) -> None:
        """Wait in a thread for a signal; ``signals`` is the file descriptor of `Interruption.wakeup`."""
        threading.Thread(target=self._watch, args=(signals,), daemon=True, name="ending").start()

    def follow(self, application_id: str) -> None:
        """Name the application to kill, and open the connection to the ResourceManager."""
        if application_id == self._application_id:
            return
        self._application_id = application_id
        try:
            self._session.resourcemanager.state(application_id)
        except TfYarnError as error:  # an id that is only reserved is unknown; the connection is open
            logger.debug("the connection for a kill: %s", error)

    def _watch(self, signals: int) -> None:
        while True:
            select.select([signals], [], [])
            if {signal.SIGTERM, signal.SIGINT} & set(os.read(signals, 64)):
                break
        if not self._application_id:
            return
        try:
            kill(self._session, self._application_id, WHY, timeout=None, look_first=False, attempt=self._attempt)
        except TfYarnError as error:
            logger.warning("%s may still run: %s", self._application_id, error)
