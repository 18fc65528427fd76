"""`kill_now`: kill an application within the seconds that Airflow leaves; the kill is the first request."""

import contextlib
import logging

from ..errors import ClusterUnreachable, SubmissionRejected
from ..follow.kill import StillEnding, kill_application
from ..follow.session import Session
from ..hadoop.cluster import Cluster

logger = logging.getLogger(__name__)

#: Seconds; Airflow sends a worker SIGKILL 5 s after SIGTERM.
KILL_LIMIT = 4.5
#: Seconds for one request, at most.
_REQUEST = 1.5
#: Seconds for a kill whose limit is over before it begins.
_LEAST = 1.0


def kill_now(
    cluster: Cluster,
    application_id: str,
    why: str,
    limit: float = KILL_LIMIT,
    patience: float = 0.0,
    attempt: int | None = None,
) -> bool:
    """Kill an application and delete its directory within a time limit. Never raises.

    Parameters
    ----------
    cluster : Cluster
    application_id : str
        An id that was only reserved counts as killed.
    why : str
        A sentence, which YARN keeps.
    limit : float, optional
        Seconds for the kill and its repetitions. Default 4.5.
    patience : float, optional
        Seconds to wait for the end of the killed application, so that its directory can be deleted; no effect below
        ``limit``. Default 0.
    attempt : int, optional
        The attempt of the task that kills, for the report's ``killed_by_attempt``.

    Returns
    -------
    bool
        Whether YARN has accepted the kill.
    """
    limit = max(limit, _LEAST)
    request = min(_REQUEST, limit / 2)
    with contextlib.closing(Session.with_short_timeout(cluster, request, limit - request)) as session:
        try:
            kill_application(
                session, application_id, why, timeout=max(limit, patience), look_first=False, attempt=attempt
            )
        except StillEnding as error:
            logger.warning("%s was killed, but has not ended in time: %s", application_id, error)
        except (ClusterUnreachable, SubmissionRejected) as error:
            logger.error("%s could not be killed: %s", application_id, error)
            return False
    return True
