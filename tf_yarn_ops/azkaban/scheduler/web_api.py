"""`WebServer`: as much of Azkaban's AJAX interface as a backfill needs.

References
----------
Azkaban, "API Documentation" (docs/ajaxApi.rst): Authenticate, Fetch Executions of a Flow, Execute a Flow, Fetch a Flow
Execution. The parameters of an execution (``flowInfo``) are not documented; ``ExecutorServlet`` answers them since 2.5.
What else is not documented stands in ``LoginAbstractAzkabanServlet``: the answers without a session, and in
``jobpage.vm`` and ``propertypage.vm``: the properties that a job inherits, which no answer in JSON has.
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from ...errors import ClusterUnreachable, SubmissionRejected
from ...hadoop.fast_import import import_httpx
from ...hadoop.security.authentication import SimpleAuthentication
from ...hadoop.transport import Addresses, Failover, Service, client_options, explain_response, send_request
from ...runtime.common.values import parse_json

if TYPE_CHECKING:
    import httpx

AZKABAN = Service(
    "Azkaban web server", "url", "Check the address (--url or $AZKABAN_URL) and that the server runs", False
)
#: Seconds for one request.
_TIMEOUT = 30.0
#: Executions in one answer.
_PAGE = 100
#: The query of a link from a job's page to a file of properties that the job inherits.
_PROPERTY_LINK = re.compile(r'href="[^"?]*\?([^"]*&prop=[^"]*)"')
_REFERENCE = re.compile(r"\$\{([^{}]+)\}")
#: The name of a property on a page.
_PROPERTY_NAME = re.compile(r'<td class="property-key">([^<]*)</td>')
#: The cookie of a session; in a query it would stand in the server's access log.
_COOKIE = "azkaban.browser.session.id"
#: Azkaban's states of an execution that has ended. All others, those of later releases too, count as live.
FLOW_ENDED = (
    "SUCCEEDED",
    "FAILED",
    "KILLED",
    "CANCELLED",
    "SKIPPED",
    "DISABLED",
    "FAILED_SUCCEEDED",
    "EXECUTION_STOPPED",
)


def referred_names(text: str) -> list[str]:
    """Return the names that a text refers to, as in ``/models/${date}``."""
    return _REFERENCE.findall(text)


class FlowExecution(NamedTuple):
    """An execution of a flow in Azkaban's list."""

    execution_id: int
    status: str


class FlowJob(NamedTuple):
    """A job of a flow, or of a flow embedded in it, with the properties that the job sets itself."""

    flow: str
    name: str
    properties: Mapping[str, str]


class FlowRequest(NamedTuple):
    """What an execution was started with: the parameters of the flow, and whether jobs were disabled."""

    parameters: Mapping[str, str]
    disabled: bool


class WebServer:
    """A client of one Azkaban web server; it logs in when it has to.

    Parameters
    ----------
    url : str
        ``https://azkaban:8443``.
    user, password : str
    ca_file : str, optional
        Certificates (PEM) for https. Default: the machine's.
    patience : float, optional
        Seconds for which a question is repeated while the server does not answer. Default 120.

    Raises
    ------
    ClusterUnreachable
        From every method: the server does not answer, or the answer is not Azkaban's.
    SubmissionRejected
        From every method: Azkaban refuses the login or the request.
    """

    def __init__(self, url: str, user: str, password: str, *, ca_file: str | None = None, patience: float = 120.0):
        self._url = url.rstrip("/")
        self._user, self._password = user, password
        self._patience = patience
        self._session = ""
        # No ticket and no name of a Hadoop user goes to this server.
        self._client = import_httpx().Client(**client_options(SimpleAuthentication(user), [url], _TIMEOUT, ca_file))

    def executions(self, project: str, flow: str) -> Iterator[FlowExecution]:
        """Yield the executions of a flow, the latest first."""
        start = 0
        while True:
            found = self._query(
                "/manager", ajax="fetchFlowExecutions", project=project, flow=flow, start=str(start), length=str(_PAGE)
            )
            page = [FlowExecution(int(item["execId"]), str(item["status"])) for item in self._list(found, "executions")]
            yield from page
            start += len(page)
            if not page or start >= int(found.get("total") or 0):
                return

    def flow_request(self, execution_id: int) -> FlowRequest:
        """Return what an execution was started with."""
        found = self._query("/executor", ajax="flowInfo", execid=str(execution_id))
        parameters = found.get("flowParam") or {}
        return FlowRequest({str(name): str(value) for name, value in parameters.items()}, bool(found.get("disabled")))

    def status(self, execution_id: int) -> str:
        """Return Azkaban's state of an execution."""
        return str(self._query("/executor", ajax="fetchexecflow", execid=str(execution_id)).get("status") or "")

    def execute(self, project: str, flow: str, parameters: Mapping[str, str]) -> int:
        """Start a flow beside its other executions; return the id of the execution.

        The request is sent once, because Azkaban would start the flow for each repetition.
        """
        values = {f"flowOverride[{name}]": value for name, value in parameters.items()}
        # As POST: a proxy may repeat a GET, and Azkaban writes the parameters of a GET into its log.
        found = self._query(
            "/executor",
            0.0,
            "POST",
            ajax="executeFlow",
            project=project,
            flow=flow,
            concurrentOption="ignore",
            **values,
        )
        try:
            execution_id = int(found["execid"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._unexpected(f"its answer to executeFlow has no execid: {found}") from error
        if execution_id < 1:  # a locked flow
            raise SubmissionRejected(f"Azkaban has not started {flow}: {found.get('message') or 'it does not say why'}")
        return execution_id

    def jobs(self, project: str, flow: str) -> list[FlowJob]:
        """Return the jobs of a flow and of the flows embedded in it."""
        return list(
            self._jobs(project, flow, self._query("/manager", ajax="fetchflowgraph", project=project, flow=flow))
        )

    def _jobs(self, project: str, flow: str, graph: Mapping[str, Any]) -> Iterator[FlowJob]:
        for node in self._list(graph, "nodes"):
            if "flowId" in node:
                yield from self._jobs(project, str(node["flowId"]), node)
            else:
                job = str(node["id"])
                info = self._query("/manager", ajax="fetchJobInfo", project=project, flowName=flow, jobName=job)
                yield FlowJob(flow, job, info.get("overrideParams") or {})

    def inherited_names(self, project: str, jobs: Iterable[FlowJob]) -> set[str]:
        """Return the names that the properties inherited by these jobs set or refer to."""
        links = [
            html.unescape(link)
            for job in jobs
            for link in _PROPERTY_LINK.findall(self._page(project=project, flow=job.flow, job=job.name))
        ]
        # Jobs share most files: one page for each.
        queries = {link.partition("&prop=")[2]: dict(parse_qsl(link)) for link in links}
        pages = [html.unescape(self._page(**query)) for query in queries.values()]
        return {name for page in pages for name in (*_PROPERTY_NAME.findall(page), *referred_names(page))}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _query(
        self, path: str, patience: float | None = None, method: str = "GET", **parameters: str
    ) -> dict[str, Any]:
        """Return the answer to a question; log in first if there is no session, or if it has ended."""
        fresh = not self._session
        if fresh:
            self._log_in()
        found = self._read(
            self._send(
                method,
                path,
                self._patience if patience is None else patience,
                **{"params" if method == "GET" else "data": parameters},
            )
        )
        error = found.get("error")
        if found.get("status") == "error" and found.get("action") == "login":  # a POST without a session
            error = "session"
        if error == "session" and not fresh:
            self._session = ""
            return self._query(path, patience, method, **parameters)
        if error:
            raise SubmissionRejected(f"Azkaban refuses {parameters['ajax']}: {error}")
        return found

    def _log_in(self) -> None:
        values = {"action": "login", "username": self._user, "password": self._password}
        found = self._read(self._send("POST", "/", self._patience, data=values))
        if not found.get("session.id"):
            raise SubmissionRejected(f"Azkaban refuses the login of {self._user}: {found.get('error') or 'no session'}")
        self._session = str(found["session.id"])

    def _page(self, **parameters: str) -> str:
        """Return a page of the project manager. The session is that of an answer just before."""
        return self._send("GET", "/manager", self._patience, params=parameters).text

    def _send(self, method: str, path: str, patience: float, **options: Any) -> "httpx.Response":
        headers = {"X-Requested-With": "XMLHttpRequest"} | (
            {"Cookie": f"{_COOKIE}={self._session}"} if self._session else {}
        )
        return send_request(
            self._client, Failover(Addresses([self._url], AZKABAN), patience), method, path, headers=headers, **options
        )

    def _read(self, response: "httpx.Response") -> dict[str, Any]:
        try:
            found = parse_json(response.content)
        except ValueError as error:
            raise self._unexpected(f"HTTP {response.status_code}, {explain_response(response)}") from error
        if not isinstance(found, dict):
            raise self._unexpected(f"a JSON {type(found).__name__} in place of an object")
        return found

    def _list(self, found: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        items = found.get(key)
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            raise self._unexpected(f"its answer has no list of {key}")
        return items

    def _unexpected(self, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"{self._url} answers, but not as an Azkaban web server: {why}")
