"""SPNEGO: a Kerberos ticket when a service asks for one, and the cookie that replaces it from then on.

Input: the addresses that may see a ticket. Output: what lets an httpx client answer a 401. A redirect may lead to any
address, so no other address gets a ticket or the cookie. Import this module after `import_httpx`.
"""

import base64
import logging
import re
import threading
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from ...errors import ClusterUnreachable
from .origin import origin_of
from .tickets import NEGOTIATE, Tickets, wants_negotiation

if TYPE_CHECKING:
    from .gssapi import Context

logger = logging.getLogger(__name__)

#: Hadoop's signed token. It is quoted, because it contains ``=`` and ``&``.
_COOKIE = re.compile(r'hadoop\.auth=("[^"]*"|[^;,\s]*)')


class Negotiation(httpx.Auth):
    """Sends tickets to some addresses, with errors as `Tickets.begin`, and keeps their cookies.

    Parameters
    ----------
    urls : iterable of str
        The configured addresses. No other address gets a ticket or a cookie.
    tickets : Tickets
    """

    def __init__(self, urls: Iterable[str], tickets: Tickets):
        self._origins = frozenset(map(origin_of, urls))
        self._tickets = tickets
        self._cookies: dict[str, str] = {}
        self._lock = threading.Lock()

    def cookie(self, url: str) -> str | None:
        """Return the ``Cookie`` header for an address that has accepted a ticket; None for any other address."""
        with self._lock:
            return self._cookies.get(origin_of(url))

    def learn(self, url: str, set_cookie: str) -> None:
        """Keep the cookie of a ``Set-Cookie`` header; drop the kept cookie if the header empties it."""
        found, origin = _COOKIE.search(set_cookie), origin_of(url)
        if found is None or origin not in self._origins:
            return
        with self._lock:
            if found.group(1).strip('"'):
                self._cookies[origin] = found.group(0)
            else:
                self._cookies.pop(origin, None)

    def requires_ticket(self, url: str, status: int, header: str) -> bool:
        """Return whether a response asks for a ticket, and its address may see one."""
        return status == 401 and wants_negotiation(header) and origin_of(url) in self._origins

    def confirm(self, context: "Context", url: str, header: str) -> None:
        """Check the proof of the service's own identity, if it sent one.

        Raises
        ------
        ClusterUnreachable
            The proof is wrong.
        """
        found = NEGOTIATE.search(header)
        if found is None or not found.group(1):
            return
        from .gssapi import GssError

        try:
            if not context.complete:
                context.step(base64.b64decode(found.group(1)))
        except (GssError, ValueError) as error:
            raise ClusterUnreachable(
                f"{origin_of(url)} can't prove that it is HTTP/{urlsplit(url).hostname}: {error}"
            ) from error
        logger.debug("%s has %s its identity", origin_of(url), "proven" if context.complete else "not proven")

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if cookie := self.cookie(str(request.url)):
            request.headers["Cookie"] = cookie
        response = yield request
        url, headers = str(request.url), response.headers
        self.learn(url, headers.get("set-cookie", ""))
        if not self.requires_ticket(url, response.status_code, headers.get("www-authenticate", "")):
            return
        request.headers.pop("Cookie", None)
        context, token = self._tickets.begin(urlsplit(url).hostname or "")
        request.headers["Authorization"] = f"Negotiate {base64.b64encode(token).decode()}"
        response = yield request
        self.learn(url, response.headers.get("set-cookie", ""))
        if response.status_code < 400:
            self.confirm(context, url, response.headers.get("www-authenticate", ""))
