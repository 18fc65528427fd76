"""Start an application on an Oozie server, over its REST interface.

References
----------
Oozie 5.2.1, "Web services API", version 2: ``POST /v2/jobs`` with a Hadoop configuration as XML answers
``{"id": ...}``.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

from ..errors import ClusterUnreachable, SubmissionRejected
from ..hadoop.authentication import Authentication
from ..hadoop.fast_import import import_httpx
from ..hadoop.transport import Addresses, Failover, Service, client_options, explain, send

OOZIE = Service("Oozie server", "oozie", "Check the address (--oozie or $OOZIE_URL) and that the server runs", False)


def start_job(url: str, properties: Mapping[str, str], authentication: Authentication, timeout: float,
              ca_file: str | None = None) -> str:
    """Submit an application and start it; return the id of its job.

    Parameters
    ----------
    url : str
        ``http://host:11000/oozie``.
    properties : mapping of str to str
        Those of ``job.properties``, and ``user.name``.
    authentication : SimpleAuthentication, KerberosAuthentication or GatewayAuthentication
    timeout : float
        Seconds for the answer.
    ca_file : str, optional
        Certificates (PEM) for https.

    Raises
    ------
    ClusterUnreachable
        The server does not answer, or the answer is not Oozie's.
    SubmissionRejected
        The server refuses the application.
    """
    url = url.rstrip("/")
    # A coordinator starts by itself.
    action = {} if "oozie.coord.application.path" in properties else {"action": "start"}
    with import_httpx().Client(**client_options(authentication, [url], timeout, ca_file)) as client:
        # One try: a repetition of a request that was served would start the job twice.
        response = send(client, Failover(Addresses([url], OOZIE), patience=0.0), "POST", "/v2/jobs",
                        params={**authentication.parameters(), **action}, content=_configuration(properties),
                        headers={"Content-Type": "application/xml;charset=UTF-8"})
    if response.status_code in (200, 201):
        try:
            return str(response.json()["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterUnreachable(f"{url} answers, but not as an Oozie server: {explain(response)}") from error
    code = response.headers.get("oozie-error-code")
    why = response.headers.get("oozie-error-message") or explain(response)
    if code or 400 <= response.status_code < 500:
        raise SubmissionRejected(f"Oozie refuses the application ({code or response.status_code}): {why}")
    raise ClusterUnreachable(f"{url} answers {response.status_code}: {why}")


def _configuration(properties: Mapping[str, str]) -> bytes:
    root = ElementTree.Element("configuration")
    for name, value in properties.items():
        pair = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(pair, "name").text = name
        ElementTree.SubElement(pair, "value").text = value
    text: bytes = ElementTree.tostring(root, encoding="utf-8")
    return text
