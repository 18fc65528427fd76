"""Killing an application when there are seconds: one request first, everything else after it."""

import contextlib
import logging

from ..errors import ClusterUnreachable, SubmissionRejected
from ..follow.kill import StillEnding, kill
from ..follow.session import Session
from ..hadoop.cluster import Cluster

logger = logging.getLogger(__name__)

#: Seconds that Airflow leaves a worker between SIGTERM and SIGKILL, less some.
LIMIT = 4.5
#: Seconds of one request; as long before the limit no other is begun.
_REQUEST = 1.5


def quieten() -> None:
    """Keep the lines of each file's every step out of the task's log, unless somebody has asked for them."""
    for name in ("hdfs.client", "httpx"):
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)


def kill_now(cluster: Cluster, application_id: str, why: str, limit: float = LIMIT, patience: float = 0.0,
             attempt: int | None = None) -> bool:
    """Kill an application and delete its directory, as far as that goes in time.

    Parameters
    ----------
    cluster : Cluster
    application_id : str
        May be one that was only reserved.
    why : str
        A sentence, kept by YARN.
    limit : float, optional
        Seconds after which no kill is tried. Default 4.5.
    patience : float, optional
        Seconds for which a killed application's end is waited for, to delete its directory, where
        that is longer. Default 0.
    attempt : int, optional
        The attempt of the task that kills, for the report's ``killed_by_attempt``.

    Returns
    -------
    bool
        Whether YARN has taken the kill. It never raises.
    """
    with contextlib.closing(Session.hasty(cluster, _REQUEST, max(_REQUEST, limit - _REQUEST))) as session:
        try:
            kill(session, application_id, why, timeout=max(limit, patience), look_first=False, attempt=attempt)
        except StillEnding as error:
            logger.warning("%s was killed, but not all of it could be cleared away: %s", application_id, error)
        except (ClusterUnreachable, SubmissionRejected) as error:
            logger.error("%s could not be killed: %s", application_id, error)
            return False
    return True
