"""`ActionEnding`: end the training of an action whose launcher has been killed, and leave it to a further attempt
otherwise.

SIGTERM reaches the action in two cases. After ``oozie job -kill`` YARN ends the launcher's application, and nobody
goes on with the training. After the death of the launcher's JVM, a preemption or a stop of the NodeManager, YARN ends
one attempt only, and the next one goes on with the training. The ResourceManager knows which of them it is. There is
little time: SIGKILL follows after ``yarn.nodemanager.sleep-delay-before-sigkill.ms`` (250 ms). So a thread asks and
kills, over a connection that is open already.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ..errors import TfYarnError
from ..follow.kill import kill_application
from ..follow.session import Session
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import ENDED
from ..launch.run import EngineRun
from ..terminal.signals import await_signal
from .launched import Launched

logger = logging.getLogger(__name__)

#: Seconds for one request, and for its repetitions; and how long the launcher is asked for.
_HASTE = 5.0
#: Seconds between two requests for the launcher's state.
_PAUSE = 0.02
WHY = "Oozie or YARN has ended the launcher of the action"


class ActionEnding:
    """Decides about the training after SIGTERM or SIGINT.

    Parameters
    ----------
    cluster : Cluster
    launched : Launched
        This start of the action.
    run : EngineRun
        Knows the application to kill.
    cancel : callable
        Called with a sentence when the training has to end; safe in any thread.
    """

    def __init__(self, cluster: Cluster, launched: Launched, run: EngineRun, cancel: Callable[[str], None]):
        self._session = Session.with_short_timeout(cluster, _HASTE, _HASTE)
        self._launched = launched
        self._run = run
        self._cancel = cancel
        self._parent = os.getppid()

    def watch(self, signals: int) -> threading.Thread:
        """Return a thread that waits for a signal; ``signals`` is the file descriptor of `Interruption.wakeup`."""
        thread = threading.Thread(target=self._watch, args=(signals,), daemon=True, name="ending")
        thread.start()
        return thread

    def connect(self) -> None:
        """Open the connection to the ResourceManager, so that a signal need not wait for it."""
        with suppress(TfYarnError):
            self._session.resourcemanager.get(self._launched.launcher_id)

    def _watch(self, signals: int) -> None:
        await_signal(signals)
        if not self._is_final():
            # An exit code could make the launcher, if it still runs, the end of the action.
            logger.warning("YARN ends this attempt of the launcher only; the training goes on for the next one")
            return
        self._cancel(WHY)
        last, number = self._run.application_id, self._launched.number
        try:
            if last:
                kill_application(self._session, last, WHY, timeout=None, look_first=False, attempt=number)
        except TfYarnError as error:
            logger.warning("%s may still run: %s", last, error)

    def _is_final(self) -> bool:
        """Return whether no further attempt of the launcher follows.

        The state is that of before the kill until the ResourceManager has stored it, so ask again. If SIGKILL comes
        before the answer, the training is left to the next attempt or to its lease. A launcher that still runs after
        all is not being ended: somebody has sent the signal to the action alone.
        """
        if not self._launched.container:  # there is no launcher
            return True
        until = time.monotonic() + _HASTE
        while time.monotonic() < until:
            with suppress(TfYarnError):
                launcher = self._session.resourcemanager.get(self._launched.launcher_id)
                if launcher["state"] in ENDED:
                    return True
                if self._launched.container not in launcher.get("amContainerLogs", ""):
                    return False
            time.sleep(_PAUSE)
        return os.getppid() == self._parent
