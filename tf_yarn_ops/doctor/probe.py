"""`probe`: one request to one address of any kind; `probe_all`: to several at once, with one deadline."""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import TfYarnError
from ..hadoop.fast_import import import_httpx
from ..hadoop.gateway import place
from ..hadoop.security.authentication import Authentication
from ..hadoop.security.tickets import wants_negotiation
from ..hadoop.site import Site
from ..hadoop.transport import explain_failure, explain_response, is_json, is_redirect, open_client, seconds_ahead
from ..runtime.common.values import parse_json

logger = logging.getLogger(__name__)

#: Seconds that answers may take beyond the time limit of a request, which begins again with each piece.
_GRACE = 2.0


@dataclass(frozen=True)
class ProbeAnswer:
    """The answer of one address.

    Attributes
    ----------
    status : int or None
        HTTP status; None if there was no answer.
    document : mapping
        The JSON object of the answer; empty for any other content.
    why : str
        The first line of a failure.
    location : str
        Where a redirect leads; empty for any other answer.
    wants_ticket : bool
        Whether it is a 401 that asks for Kerberos.
    ahead : float or None
        Seconds by which the other clock is ahead of ours, by the header ``Date``, which has whole seconds.
    """

    status: int | None
    document: Mapping[str, Any]
    why: str = ""
    location: str = ""
    wants_ticket: bool = False
    ahead: float | None = None

    @property
    def failure(self) -> str:
        """What was wrong with the answer, in brackets."""
        return f"({self.why})" if self.status is None else f"(HTTP {self.status}: {self.why or 'an unknown answer'})"


def probe(
    url: str, path: str, authentication: Authentication, site: Site, trusted: Iterable[str], **parameters: str
) -> ProbeAnswer:
    """Send a GET request, follow no redirect, and return the answer of any kind.

    Parameters
    ----------
    url, path : str
    authentication : SimpleAuthentication, KerberosAuthentication or GatewayAuthentication
    site : Site
    trusted : iterable of str
        The addresses that may see a ticket.
    **parameters
        Further parts of the query.
    """
    httpx = import_httpx()
    try:
        with open_client(authentication, trusted, site.request_timeout, site.ca_file) as client:
            began = time.time()
            response = client.get(place(url, path), params={**authentication.parameters(), **parameters})
            middle = (began + time.time()) / 2
    except (httpx.HTTPError, httpx.InvalidURL, TfYarnError) as error:  # ours: no ticket, or no library for one
        why = str(error) if isinstance(error, TfYarnError) else explain_failure(error)
        logger.debug("GET %s%s gets no answer: %s", url, path, why)
        return ProbeAnswer(None, {}, why)
    try:
        found = parse_json(response.content) if is_json(response) else {}
    except ValueError:
        found = {}
    why = "" if response.status_code == 200 and is_json(response) else " ".join(explain_response(response).split())
    return ProbeAnswer(
        response.status_code,
        found if isinstance(found, dict) else {},
        why,
        response.headers["location"] if is_redirect(response) else "",
        response.status_code == 401 and wants_negotiation(response.headers.get("www-authenticate", "")),
        seconds_ahead(response, middle),
    )


def probe_all(
    urls: Iterable[str],
    path: str,
    authentication: Authentication,
    site: Site,
    trusted: Iterable[str],
    **parameters: str,
) -> dict[str, ProbeAnswer]:
    """Return the answer of each address; arguments as for `probe`. All are asked at once, with one deadline."""
    answers = {url: ProbeAnswer(None, {}, "no whole answer in time") for url in urls}

    def send(url: str) -> None:
        answers[url] = probe(url, path, authentication, site, trusted, **parameters)

    # Not a ThreadPoolExecutor: at the end of the process it waits for its threads, and one may hang on a server.
    threads = [threading.Thread(target=send, args=(url,), daemon=True) for url in answers]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + site.request_timeout + _GRACE
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(answers)  # a late answer changes nothing
