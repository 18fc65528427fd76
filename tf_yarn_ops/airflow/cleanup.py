"""End applications whose tasks in Airflow are over: at each submission, and by a task of its own.

Airflow notifies neither a worker nor a triggerer when a person ends a deferred task and no triggerer runs. A triggerer
looks only when a trigger is cancelled: its first question for the state of a task makes it build an API server inside
itself, and it does nothing else meanwhile.
"""

import json
import logging
import math
import random
import time
from contextlib import ExitStack, closing
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import TfYarnError
from .versions import BaseOperator

if TYPE_CHECKING:
    from ..hadoop.cluster import Cluster

logger = logging.getLogger(__name__)

#: Applications and seconds that one submission spends on the applications of other tasks; seconds for one request.
_MOST, _SECONDS, _REQUEST = 20, 5.0, 1.5


class TensorFlowYarnCleanupOperator(BaseOperator):
    """End trainings of this Airflow that still run although their tasks are over.

    Parameters
    ----------
    tf_yarn_conn_id : str, optional
        As in `TensorFlowYarnOperator`.
    **kwargs
        Arguments of every Airflow operator.

    Returns
    -------
    list of str
        The ids of the applications that were ended.
    """

    template_fields = ("tf_yarn_conn_id",)
    ui_color = "#fdecd2"

    def __init__(self, *, tf_yarn_conn_id: str | None = "tf_yarn_default", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tf_yarn_conn_id = tf_yarn_conn_id

    def execute(self, context: Any) -> list[str]:
        """Check all live applications of this Airflow."""
        from .hook import YarnHook
        from .task_instance import deployment_id

        ended = end_abandoned(YarnHook(self.tf_yarn_conn_id).get_conn(), deployment_id(context))
        self.log.info("%d applications were ended", len(ended))
        return ended


def over(key: str) -> str:
    """Return a sentence that says why the task of an identity is over; empty if it is not, or another engine's.

    Parameters
    ----------
    key : str
        See `task_instance.identity_of`.
    """
    from .kill_state import FINAL
    from .task_instance import state_by_key

    state = state_by_key(key)
    if state not in FINAL:
        return ""
    _, dag_id, run_id, task_id, map_index = json.loads(key)
    index = f"[{map_index}]" if int(map_index) >= 0 else ""
    return f"Ended by Airflow: its task {dag_id}.{task_id}{index} of run {run_id} is over ({state})"


def end_abandoned(
    cluster: "Cluster", deployment: str, *, most: int | None = None, seconds: float | None = None, besides: str = ""
) -> list[str]:
    """Kill the live applications of a deployment whose tasks are over. Return their ids.

    Applications without a watching task stay: a submission of a command line, one by Skein's Java client, one that
    goes on on purpose. An application that cannot be looked at or killed is logged and left.

    Parameters
    ----------
    cluster : Cluster
    deployment : str
        See `launch.identity.Identity`.
    most : int, optional
        Check this number of applications, chosen at random. Default: all.
    seconds : float, optional
        Limit of the whole call; one request in progress may exceed it. Default: no limit.
    besides : str, optional
        An application to leave alone: that of the caller.

    Raises
    ------
    ClusterUnreachable
        YARN does not list its applications.
    """
    from ..follow.kill import KILL_TIMEOUT, StillEnding, kill_application
    from ..follow.session import Session
    from ..hadoop.resourcemanager import LIVE
    from ..launch.claims import watching_caller
    from ..launch.identity import deployment_tag

    until, ended = math.inf if seconds is None else time.monotonic() + seconds, []
    with ExitStack() as stack:

        @cache
        def session_of(user: str) -> Session:
            owner = cluster.acting_for(user)
            session = Session(owner) if seconds is None else Session.with_short_timeout(owner, _REQUEST, seconds)
            return stack.enter_context(closing(session))

        found = session_of(cluster.user).resourcemanager.find([deployment_tag(deployment)], LIVE)
        found = [application for application in found if application["id"] != besides]
        if most is not None:
            found = random.sample(found, min(most, len(found)))
        for application in found:
            name, session = str(application["id"]), session_of(str(application["user"]))
            if time.monotonic() > until:
                break
            try:
                key = watching_caller(session.staging(), application)
                why = over(key) if key else ""
                if why:
                    logger.warning("%s is ended: %s", name, why)
                    kill_application(session, name, why, timeout=min(KILL_TIMEOUT, max(0.0, until - time.monotonic())))
                    ended.append(name)
            except StillEnding as error:
                ended.append(name)
                logger.warning("%s", error)
            except TfYarnError as error:
                logger.warning("%s was left running; no task waits for it: %s", name, error)
    return ended


def kill_abandoned(cluster: "Cluster", deployment: str, application_id: str) -> None:
    """End abandoned applications, except the given one, within seconds. Never raises an error of the cluster."""
    try:
        end_abandoned(cluster, deployment, most=_MOST, seconds=_SECONDS, besides=application_id)
    except TfYarnError as error:
        logger.debug("no look at the applications of other tasks: %s", error)
