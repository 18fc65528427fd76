"""`LiveReports`: the coordinator's report of a running application, fetched through YARN's proxy."""

import logging
import re
import threading
from collections.abc import Mapping
from typing import Any

from ..errors import TfYarnError
from ..hadoop.cluster import Cluster
from ..hadoop.fast_import import import_httpx
from ..hadoop.transport import (
    PAGE_LIMITS,
    RESOURCEMANAGER,
    RedirectRefused,
    explain_401,
    is_json,
    open_client,
)
from ..runtime.common.report import JobReport
from ..runtime.common.status import APPLICATION_HEADER, read_status
from ..runtime.common.values import parse_json

logger = logging.getLogger(__name__)

#: The pages below the tracking URL that the coordinator serves.
PAGE, LOG, STACK = "pages/ytf/status.json", "pages/ytf/log.txt", "pages/ytf/stack.txt"
_BYTES = "pages/ytf/log.bin"
#: Seconds that the page may be silent; without it a report still has YARN's own data.
_TIMEOUT = 2.0
_MAX_HOPS = 3
_APPLICATION = re.compile(r"application_\d+_\d+")


class LiveReports:
    """Reads the live reports of running applications; safe for several threads.

    Parameters
    ----------
    cluster : Cluster

    Attributes
    ----------
    obstacle : str
        Why this client could not reach the last page that it asked for; empty if YARN's proxy could be asked.
    """

    def __init__(self, cluster: Cluster):
        self.obstacle = ""
        self._authentication = cluster.authentication
        self._addresses = (*cluster.resourcemanagers, *cluster.proxies)
        self._ca_file = cluster.site.ca_file
        self._client: Any = None
        self._refused: set[str] = set()
        self._opening = threading.Lock()

    def fetch(self, application: Mapping[str, Any]) -> JobReport | None:
        """Return the coordinator's report; None when it does not answer in time.

        Parameters
        ----------
        application : mapping
            The ``app`` object of YARN's REST interface.
        """
        document = self.fetch_document(application, only="report")
        try:
            return JobReport.from_dict(document) if document else None
        except ValueError:
            logger.debug("the tracking page of %s has no report", application["id"])
            return None

    def fetch_document(self, application: Mapping[str, Any], **query: str) -> dict[str, Any] | None:
        """Return the document of ``status.json``, which is large for many tasks; None if the page does not answer.

        Parameters
        ----------
        application : mapping
            The ``app`` object of YARN's REST interface.
        **query
            ``only="report"`` for the report in it.
        """
        answer = self._get_page(application, PAGE, **query)
        try:
            document = parse_json(answer.content) if answer and answer.status_code == 200 and is_json(answer) else None
        except (TfYarnError, ValueError) as error:
            logger.debug("no live report of %s: %s", application["id"], error)
            return None
        if not isinstance(document, dict):
            return None
        if document.get("application_id") != application["id"]:
            self._log_refusal(str(application["id"]))
            return None
        return read_status(document, f"the page of {application['id']}")

    def fetch_log(self, application: Mapping[str, Any], task: str, page: str = LOG) -> str | None:
        """Return the end of the log of a task, ``worker:1``, or with `STACK` the stacks of its processes.

        None if the coordinator or the task's agent does not answer.
        """
        answer = self._get_own(application, page, task=task)
        return None if answer is None else str(answer.text)

    def fetch_log_part(
        self, application: Mapping[str, Any], container_id: str, offset: int
    ) -> tuple[int, int, bytes] | None:
        """Return a part of the log of a task's container, which no gateway on the way changes.

        Parameters
        ----------
        application : mapping
            The ``app`` object of YARN's REST interface.
        container_id : str
        offset : int
            Bytes from the begin; below 0 from the end.

        Returns
        -------
        (int, int, bytes) or None
            Where the part begins, the length of the whole log, and at most some hundred KiB. None if the coordinator
            or the container's agent does not answer.
        """
        answer = self._get_own(application, _BYTES, container=container_id, offset=str(offset))
        head, _, content = (b"" if answer is None else answer.content).partition(b"\n")
        try:
            begin, length = map(int, head.split())
        except ValueError:
            return None
        return begin, length, content

    def _get_own(self, application: Mapping[str, Any], page: str, **query: str) -> Any:
        """Return the answer of a page of the application itself; None if there is none."""
        answer = self._get_page(application, page, **query)
        if answer is None or answer.status_code != 200:
            return None
        # The page may lead to that of another application at any time, so only the answer itself can name its own.
        if answer.headers.get(APPLICATION_HEADER) != application["id"]:
            self._log_refusal(str(application["id"]))
            return None
        return answer

    def _get_page(self, application: Mapping[str, Any], page: str, **query: str) -> Any:
        """Return the answer of a page below the tracking URL; None if there is none."""
        url = str(application.get("trackingUrl") or "")
        if application.get("state") != "RUNNING" or "://" not in url:
            return None
        httpx = import_httpx()
        name, address = str(application["id"]), f"{url.rstrip('/')}/{page}"
        try:
            hosts = {httpx.URL(one).host for one in (*self._addresses, address)}
            rule = {"allowed": lambda url: url.host in hosts and not _leads_elsewhere(url, name)}
            query |= self._authentication.parameters()
            answer = self._open_client().get(address, params=query, extensions=rule)
        except RedirectRefused:
            self._log_refusal(name)
            return None
        except (httpx.HTTPError, httpx.InvalidURL, TfYarnError, ValueError) as error:
            logger.debug("no live report of %s: %s", application["id"], error)
            self.obstacle = f"{url}: {error}" if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else ""
            return None
        self.obstacle = (
            ""
            if answer.status_code != 401
            else (
                f"{explain_401(answer, RESOURCEMANAGER)}. YARN's own web proxy is configured by yarn.web-proxy.address "
                "in the ResourceManager's /conf or in HADOOP_CONF_DIR"
            )
        )
        return answer

    def _log_refusal(self, application_id: str) -> None:
        if application_id not in self._refused:  # an open page asks every 2 s
            self._refused.add(application_id)
            logger.warning("the page of %s is not read: it does not show that it is its own", application_id)

    def _open_client(self) -> Any:
        with self._opening:
            if self._client is None:
                self._client = open_client(
                    self._authentication, self._addresses, _TIMEOUT, self._ca_file, PAGE_LIMITS, _MAX_HOPS
                )
            return self._client

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _leads_elsewhere(url: Any, application_id: str) -> bool:
    """Return whether a page is that of another application.

    YARN shows the page of an unmanaged application as its user has registered it. A server that may see all jobs would
    show them the page of another user.
    """
    return any(found != application_id for found in _APPLICATION.findall(url.path))
