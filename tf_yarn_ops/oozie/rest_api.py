"""`Oozie`: the REST interface of an Oozie server, as far as a start of an application needs it.

References
----------
Oozie 5.2.1, "Web services API", version 2: ``POST /v2/jobs`` with a Hadoop configuration as XML answers
``{"id": ...}``; with ``action=dryrun`` it only checks. ``GET /v2/jobs`` lists jobs, and with ``external-id`` it answers
the ``id`` of one workflow, which is empty if there is none.
"""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

from ..errors import ClusterUnreachable, SubmissionRejected
from ..hadoop.security.authentication import Authentication
from ..hadoop.transport import Addresses, Failover, Service, explain_response, open_client, send_request
from ..runtime.common.values import parse_json
from .packed_job import APP_PATH, COORDINATOR_PATH, WORKFLOW_PATH

_OOZIE = Service("Oozie server", "oozie", "Check the address (--oozie or $OOZIE_URL) and that the server runs", False)
#: The states of a coordinator that still starts workflows, now or after a resume.
_LIVE = (
    "PREP",
    "RUNNING",
    "RUNNINGWITHERROR",
    "PREPSUSPENDED",
    "SUSPENDED",
    "SUSPENDEDWITHERROR",
    "PREPPAUSED",
    "PAUSED",
    "PAUSEDWITHERROR",
)


#: Those of a workflow.
_LIVE_WORKFLOW = ("PREP", "RUNNING", "SUSPENDED")
#: Seconds: Oozie reads HDFS before it answers a dry run or a start.
_LEAST_TIMEOUT = 60.0


class OozieRefused(SubmissionRejected):
    """The Oozie server has refused a request."""

    hint = "Correct the workflow, the options or the rights that Oozie names, pack the application again, run it."


class OozieUnreachable(ClusterUnreachable):
    """The Oozie server does not answer, or the answer is not Oozie's."""

    command = "curl $OOZIE_URL/v1/admin/status"
    hint = "Check --oozie or $OOZIE_URL. A server that works answers systemMode NORMAL."


class StartUnconfirmed(OozieUnreachable):
    """Oozie has not answered the start of an application, and may still start it."""

    def __init__(self, message: str, name: str, kind: str):
        super().__init__(message)
        self.command = f"oozie jobs -oozie $OOZIE_URL -jobtype {kind} -filter {shlex.quote(f'name={name}')}"

    hint = "Check for the job before you repeat the command; what has started is found and not started twice."


class Oozie:
    """A client of an Oozie server.

    Parameters
    ----------
    url : str
        ``http://host:11000/oozie``.
    user : str
        The user of the jobs.
    authentication : SimpleAuthentication, KerberosAuthentication or GatewayAuthentication
    timeout : float
        Seconds for an answer; at least `_LEAST_TIMEOUT`.
    ca_file : str, optional
        Certificates (PEM) for https.

    Raises
    ------
    OozieUnreachable
        From every method: the server does not answer, or the answer is not Oozie's.
    OozieRefused
        From every method: the server refuses the request.
    """

    def __init__(self, url: str, user: str, authentication: Authentication, timeout: float, ca_file: str | None = None):
        self._url = url.rstrip("/")
        self._user = user
        self._parameters = authentication.parameters()
        self._client = open_client(authentication, [self._url], max(timeout, _LEAST_TIMEOUT), ca_file)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def live_coordinators(self, name: str) -> list[dict[str, Any]]:
        """Return Oozie's objects of the user's coordinators of this name that have not ended."""
        return list(self._list("coord", name, _LIVE).get("coordinatorjobs") or ())

    def live_workflows(self, name: str, path: str) -> list[str]:
        """Return the ids of the user's workflows of this name and application path that have not ended."""
        # These characters separate the parts of a filter; without a name all are listed.
        found = self._list("wf", "" if {";", "="} & {*name} else name, _LIVE_WORKFLOW).get("workflows") or ()
        # The list has no paths.
        return [
            str(job["id"]) for job in found if self._query("GET", path=f"/v2/job/{job['id']}").get("appPath") == path
        ]

    def find_workflow(self, external_id: str) -> str:
        """Return the id of the workflow, live or ended, that was started with an external id; empty without one."""
        return str(self._query("GET", jobtype="wf", **{"external-id": external_id}).get("id") or "")

    def _list(self, kind: str, name: str, states: Iterable[str]) -> dict[str, Any]:
        texts = (f"user={self._user}", *([f"name={name}"] if name else ()), *(f"status={state}" for state in states))
        return self._query("GET", jobtype=kind, len="1000", filter=";".join(texts))

    def check(self, properties: Mapping[str, str], handed_over: Iterable[str]) -> None:
        """Let the server check an application without starting it.

        Parameters
        ----------
        properties : mapping of str to str
            Those of ``job.properties``.
        handed_over : iterable of str
            The names of the values that the coordinator hands over to its workflow.
        """
        # The dry run of a coordinator does not look into its workflow.
        workflow = {**dict.fromkeys(handed_over, "1"), **properties, WORKFLOW_PATH: properties[APP_PATH]}
        workflow.pop(COORDINATOR_PATH, None)
        self._submit(workflow, action="dryrun")
        if COORDINATOR_PATH in properties:
            self._submit(properties, action="dryrun")

    def start(self, properties: Mapping[str, str]) -> str:
        """Start an application; return the id of its job."""
        # A coordinator starts by itself.
        return self._submit(properties, **({} if COORDINATOR_PATH in properties else {"action": "start"}))

    def _submit(self, properties: Mapping[str, str], **parameters: str) -> str:
        pairs = "".join(
            f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
            for name, value in {**properties, "user.name": self._user}.items()
        )
        return str(self._query("POST", f"<configuration>{pairs}</configuration>", **parameters)["id"])

    def _query(self, method: str, content: str = "", path: str = "/v2/jobs", **parameters: str) -> dict[str, Any]:
        """Return the answer of a path."""
        try:
            # One try: a repetition of a request that was served would start the job twice.
            response = send_request(
                self._client,
                Failover(Addresses([self._url], _OOZIE), patience=0.0),
                method,
                path,
                params={**self._parameters, **parameters},
                content=content.encode(),
                headers={"Content-Type": "application/xml;charset=UTF-8"},
            )
        except ClusterUnreachable as error:
            raise OozieUnreachable(str(error)) from error
        if response.status_code in (200, 201):
            try:
                found = parse_json(response.content)
                return {"id": found["id"]} if method == "POST" else {**found}
            except (ValueError, KeyError, TypeError) as error:
                raise OozieUnreachable(
                    f"{self._url} answers, but not as an Oozie server: {explain_response(response)}"
                ) from error
        if response.status_code == 404:
            raise OozieUnreachable(
                f"{self._url} answers, but has no Oozie: its address ends with /oozie, as in http://host:11000/oozie"
            )
        code = response.headers.get("oozie-error-code")
        why = response.headers.get("oozie-error-message") or explain_response(response)
        if code or 400 <= response.status_code < 500:
            raise OozieRefused(f"Oozie refuses the application ({code or response.status_code}): {why}")
        raise OozieUnreachable(f"{self._url} answers {response.status_code}: {why}")
