"""The coordinator's live report, fetched through YARN's proxy while the application runs."""

import logging
from collections.abc import Mapping
from typing import Any

from ..errors import TfYarnError
from ..hadoop.cluster import Cluster
from ..hadoop.fast_import import import_httpx
from ..hadoop.transport import CONNECT_TIMEOUT, HEADERS, is_json
from ..runtime.common.report import JobReport

logger = logging.getLogger(__name__)

#: Below the tracking URL; the coordinator serves it.
PAGE = "pages/ytf/status.json"
#: Seconds; whoever watches has YARN's own data in any case.
_TIMEOUT = 2.0
_MAX_HOPS = 3


class LiveReports:
    """Reads live reports of running applications.

    Parameters
    ----------
    cluster : Cluster
    """

    def __init__(self, cluster: Cluster):
        self._authentication = cluster.authentication
        self._resourcemanagers = cluster.resourcemanagers
        self._ca_file = cluster.site.ca_file
        self._client: Any = None

    def fetch(self, application: Mapping[str, Any]) -> JobReport | None:
        """Give the coordinator's report; None when it does not answer in time.

        Parameters
        ----------
        application : mapping
            The ``app`` object of YARN's REST interface.
        """
        document = self.fetch_document(application)
        try:
            return JobReport.from_dict(document) if document else None
        except (ValueError, TypeError, AttributeError):
            logger.debug("what the tracking page of %s says is no report", application["id"])
            return None

    def fetch_document(self, application: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give the page as it is: the report with the key ``cluster_spec``; None without an answer."""
        url = str(application.get("trackingUrl") or "")
        if application.get("state") != "RUNNING" or "://" not in url:
            return None
        httpx = import_httpx()
        if self._client is None:
            self._client = httpx.Client(
                trust_env=False, verify=self._ca_file or url.startswith("https:"), headers=HEADERS,
                timeout=httpx.Timeout(_TIMEOUT, connect=min(_TIMEOUT, CONNECT_TIMEOUT)),
                follow_redirects=True, max_redirects=_MAX_HOPS,
                **self._authentication.http_options(self._resourcemanagers))
        try:
            answer = self._client.get(f"{url.rstrip('/')}/{PAGE}", params=self._authentication.parameters())
            if answer.status_code != 200 or not is_json(answer):
                return None
            document = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, TfYarnError, ValueError) as error:
            logger.debug("no live report of %s: %s", application["id"], error)
            return None
        return document if isinstance(document, dict) else None

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None
