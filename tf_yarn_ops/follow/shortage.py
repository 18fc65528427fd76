"""`PendingContainers`: tell which containers a running job still waits for, and what the cluster has free."""

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import TfYarnError
from ..hadoop.backend import Backend
from ..runtime.common.report import JobReport
from ..runtime.common.status import PENDING

logger = logging.getLogger(__name__)

#: Seconds after the start of the application master in which containers usually come.
_PATIENCE = 5.0
#: Seconds between two questions about one application.
_INTERVAL = 15.0


class PendingContainers:
    """Asks the ResourceManager about jobs that wait for containers, each at most every `_INTERVAL` seconds.

    Parameters
    ----------
    resourcemanager : Backend
    """

    def __init__(self, resourcemanager: Backend):
        self._resourcemanager = resourcemanager
        self._known: dict[str, tuple[float, str]] = {}

    def complete(self, report: JobReport) -> JobReport:
        """Return the report of a running job with a sentence about its missing containers, if it waits for any."""
        waits = any(task.state == PENDING and task.host is None for task in report.tasks)
        if (
            not waits
            or report.state != "RUNNING"
            or self._resourcemanager.now() - (report.started_at or 0.0) < _PATIENCE
        ):
            self._known.pop(report.application_id, None)
            return report
        asked, text = self._known.get(report.application_id, (float("-inf"), ""))
        if time.monotonic() - asked >= _INTERVAL:
            text = self._describe(report)
            self._known[report.application_id] = time.monotonic(), text
        return replace(report, message=f"{report.message} {text}".strip())

    def _describe(self, report: JobReport) -> str:
        try:
            requests = self._resourcemanager.resource_requests(report.application_id)
            return describe_shortage(requests, self._resourcemanager.nodes(), len(report.tasks))
        except (TfYarnError, ValueError, KeyError, TypeError) as error:
            logger.debug("the missing containers of %s are not known: %s", report.application_id, error)
            return ""


def describe_shortage(requests: Sequence[Mapping[str, Any]], nodes: Sequence[Mapping[str, Any]], tasks: int) -> str:
    """Return a sentence about the containers that YARN has not given yet; empty if there are none.

    Parameters
    ----------
    requests : sequence of mapping
        YARN's ``resourceRequests`` of the application.
    nodes : sequence of mapping
        The running nodes.
    tasks : int
        The containers of the whole job.
    """
    missing: Counter[int] = Counter()
    for request in requests:
        if request.get("resourceName") == "*":
            missing[int(request["capability"]["memory"])] += int(request["numContainers"])
    missing = +missing
    if not missing:
        return ""
    sizes = " and ".join(f"{count} of {memory} MiB" for memory, count in sorted(missing.items()))
    free = [int(node.get("availMemoryMB") or 0) for node in nodes]
    return (
        f"Missing {sum(missing.values())} of {tasks} containers: {sizes}; free in the cluster: {sum(free)} MiB, "
        f"on one node at most {max(free, default=0)} MiB."
    )
