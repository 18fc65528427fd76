"""Killing an application when there are seconds: one request first, everything else after it."""

import contextlib
import logging
import time
from dataclasses import replace

from ..errors import ApplicationNotFound, ClusterUnreachable, SubmissionRejected
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import ENDED, ResourceManager
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport, compose_diagnostics
from ..staging.staging_directory import StagingDirectory

logger = logging.getLogger(__name__)

#: Seconds that Airflow leaves a worker between SIGTERM and SIGKILL, less some.
LIMIT = 4.5
#: Seconds of one request; as long before the limit no other is begun.
_REQUEST = 1.5
#: Seconds between two tries while the ResourceManager recovers.
_AGAIN = 0.2


def quieten() -> None:
    """Keep the lines of each file's every step out of the task's log, unless somebody has asked for them."""
    for name in ("hdfs.client", "httpx"):
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)


def kill_now(cluster: Cluster, application_id: str, why: str, limit: float = LIMIT, patience: float = 0.0) -> bool:
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

    Returns
    -------
    bool
        Whether YARN has taken the kill. It never raises.
    """
    began = time.monotonic()
    hasty = replace(cluster, site=replace(cluster.site, request_timeout=min(_REQUEST, cluster.site.request_timeout)))
    report = JobReport(application_id, reason=Reason.KILLED, message=why, final_status="KILLED", state="KILLED",
                       user=cluster.user)
    with contextlib.closing(hasty.resourcemanager(max(_REQUEST, limit - _REQUEST))) as resourcemanager:
        try:
            state = _kill(resourcemanager, application_id, compose_diagnostics(report), began + limit)
        except ApplicationNotFound:
            logger.info("YARN does not know %s , there is nothing to kill", application_id)
            return True
        except (ClusterUnreachable, SubmissionRejected) as error:
            logger.error("%s could not be killed: %s", application_id, error)
            return False
        logger.info("killing %s : %s", application_id, why)
        _clear_away(resourcemanager, hasty, application_id, state, began + max(limit, patience))
    return True


def _clear_away(resourcemanager: ResourceManager, cluster: Cluster, application_id: str, state: str,
                until: float) -> None:
    """Delete the directory once the application has ended; what stays, the user's next submission deletes."""
    pause = 0.1
    while True:
        try:
            if state in ENDED:
                StagingDirectory(cluster).delete(application_id)
                return
            left: object = f"it is still {state}"
        except ClusterUnreachable as error:
            left = error
        except SubmissionRejected as error:
            left, until = error, 0.0
        if time.monotonic() >= until:
            logger.warning("%s was killed, but not all of it could be cleared away: %s", application_id, left)
            return
        time.sleep(pause)
        pause = min(1.0, pause * 1.5)
        with contextlib.suppress(ApplicationNotFound, ClusterUnreachable, SubmissionRejected):
            state = resourcemanager.state(application_id)


def _kill(resourcemanager: ResourceManager, application_id: str, diagnostics: str, until: float) -> str:
    """Kill; a ResourceManager that has just been started may have to recover the application first."""
    while True:
        try:
            return resourcemanager.kill(application_id, diagnostics)
        except ApplicationNotFound as error:
            if not resourcemanager.recovering(application_id):
                raise
            if time.monotonic() >= until:
                raise ClusterUnreachable(f"the ResourceManager is still recovering: {error}") from error
        time.sleep(_AGAIN)
