"""`end_abandoned`: end the applications of a deployment whose callers are over.

A caller usually ends its application itself. It can't if it does not learn that it is over: Airflow removes the
trigger of a task that a person marks as failed. If no triggerer runs then, the training would continue to its end.
"""

import logging
import random
import time
from collections.abc import Callable

from ..errors import TfYarnError
from ..hadoop.cluster import Cluster
from ..hadoop.resourcemanager import LIVE
from .claims import watching_caller
from .identity import deployment_tag
from .launcher import Launcher

logger = logging.getLogger(__name__)


def end_abandoned(cluster: Cluster, deployment: str, over: Callable[[str], str], *, most: int | None = None,
                  seconds: float | None = None, besides: str = "") -> list[str]:
    """Kill the live applications of a deployment whose callers are over. Return their ids.

    Applications without a watching caller stay: a submission of a command line, one by Skein's Java client, one that
    goes on on purpose. An application that cannot be looked at or killed is logged and left.

    Parameters
    ----------
    cluster : Cluster
    deployment : str
        See `Identity`.
    over : callable
        Called with the key of an identity; returns a sentence that says why its caller is over, or nothing.
    most : int, optional
        Look at this number of applications, chosen at random. Default: at all.
    seconds : float, optional
        Look at no further application after this time. Default: no limit.
    besides : str, optional
        An application to leave alone: that of the caller.

    Raises
    ------
    ClusterUnreachable
        YARN does not list its applications.
    """
    began, ended = time.monotonic(), []
    launchers: dict[str, Launcher] = {cluster.user: Launcher(cluster)}
    try:
        found = launchers[cluster.user].resourcemanager.find([deployment_tag(deployment)], LIVE)
        found = [application for application in found if application["id"] != besides]
        if most is not None:
            found = random.sample(found, min(most, len(found)))
        for application in found:
            if seconds is not None and time.monotonic() - began > seconds:
                break
            user = str(application["user"])
            launcher = launchers.get(user) or launchers.setdefault(user, Launcher(cluster.acting_for(user)))
            try:
                key = watching_caller(launcher.staging(), application)
                why = over(key) if key else ""
                if why:
                    logger.warning("%s is ended: %s", application["id"], why)
                    launcher.kill(application["id"], why)
                    ended.append(str(application["id"]))
            except TfYarnError as error:
                logger.warning("%s , which may run for nothing, was left: %s", application["id"], error)
    finally:
        for launcher in launchers.values():
            launcher.close()
    return ended
