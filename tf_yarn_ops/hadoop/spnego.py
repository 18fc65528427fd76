"""SPNEGO: a Kerberos ticket when a service asks for one, and the cookie that replaces it from then on.

In come the addresses that may see a ticket; out go the options of an httpx client that answers a 401. A redirect may
lead to any address, so no other address gets a ticket or the cookie.
"""

import asyncio
import base64
import http.cookiejar
import logging
import re
import threading
from collections.abc import AsyncGenerator, Generator, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ClusterUnreachable, SubmissionRejected
from .fast_import import import_httpx

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

#: Object identifier of the SPNEGO mechanism, RFC 4178.
_SPNEGO = "1.3.6.1.5.5.2"
_PORTS = {"http": 80, "https": 443}
#: Hadoop's signed token. It is quoted, because it contains ``=`` and ``&``.
_COOKIE = re.compile(r'hadoop\.auth=("[^"]*"|[^;,\s]*)')
_NEGOTIATE = re.compile(r"Negotiate\b[ \t]*([A-Za-z0-9+/=]*)", re.IGNORECASE)


def import_gssapi() -> Any:
    """Return the module ``gssapi``.

    Raises
    ------
    SubmissionRejected
        The extra ``kerberos`` is not installed, or the machine lacks MIT Kerberos.
    """
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise SubmissionRejected("the cluster wants Kerberos, and this Python lacks the library for it: "
                                 f"pip install 'tf-yarn-ops[kerberos]' ({error})") from error
    return gssapi


def principal() -> str:
    """Return the principal of this process's ticket, such as ``ann@EXAMPLE.COM``.

    Raises
    ------
    SubmissionRejected
        The extra ``kerberos`` is not installed.
    ClusterUnreachable
        There is no valid ticket; the same call succeeds with a new one.
    """
    gssapi = import_gssapi()
    try:
        credentials = gssapi.Credentials(usage="initiate")
        name, left = str(credentials.name), credentials.lifetime
    except gssapi.exceptions.GSSError as error:
        raise _no_ticket(error) from error
    logger.debug("the Kerberos ticket of %s is valid for %s s", name, left)
    return name


def short_name(name: str) -> str:
    """Return the first part of a principal: ``ann`` of ``ann/host@EXAMPLE.COM``."""
    return re.split("[/@]", name, maxsplit=1)[0]


def wants_negotiation(header: str) -> bool:
    """Return whether a ``WWW-Authenticate`` header offers SPNEGO."""
    return bool(_NEGOTIATE.search(header))


class Negotiator:
    """The tickets and cookies for some addresses.

    Parameters
    ----------
    urls : iterable of str
        The configured addresses. No other address gets a ticket or a cookie.
    """

    def __init__(self, urls: Iterable[str]):
        self._origins = frozenset(_origin(url) for url in urls)
        self._cookies: dict[str, str] = {}
        self._lock = threading.Lock()

    def cookie(self, url: str) -> str | None:
        """Return the ``Cookie`` header for an address that has accepted a ticket; None for any other address."""
        with self._lock:
            return self._cookies.get(_origin(url))

    def learn(self, url: str, set_cookie: str) -> None:
        """Keep the cookie of a ``Set-Cookie`` header; drop the kept cookie if the header empties it."""
        found, origin = _COOKIE.search(set_cookie), _origin(url)
        if found is None or origin not in self._origins:
            return
        with self._lock:
            if found.group(1).strip('"'):
                self._cookies[origin] = found.group(0)
            else:
                self._cookies.pop(origin, None)

    def asked(self, url: str, status: int, header: str) -> bool:
        """Return whether a response asks for a ticket, and its address may see one."""
        return status == 401 and wants_negotiation(header) and _origin(url) in self._origins

    def begin(self, url: str) -> tuple[Any, str]:
        """Return a security context with the service of an address, and the ``Authorization`` header for it.

        Raises
        ------
        SubmissionRejected
            The extra ``kerberos`` is not installed.
        ClusterUnreachable
            There is no valid ticket, or the KDC gives none for this service.
        """
        gssapi = import_gssapi()
        principal()
        host = urlsplit(url).hostname
        try:
            name = gssapi.Name(f"HTTP@{host}", gssapi.NameType.hostbased_service)
            context = gssapi.SecurityContext(
                name=name, mech=gssapi.OID.from_int_seq(_SPNEGO), usage="initiate",
                flags=[gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.out_of_sequence_detection])
            token = base64.b64encode(context.step() or b"").decode()
            logger.debug("got a ticket for HTTP/%s", host)
        except gssapi.exceptions.GSSError as error:
            if "expired" in str(error).lower():
                raise _no_ticket(error) from error
            raise ClusterUnreachable(f"Kerberos gives no ticket for HTTP/{host} ({_text(error)}). Check the name in "
                                     "the address and /etc/krb5.conf (or $KRB5_CONFIG)") from error
        return context, f"Negotiate {token}"

    def confirm(self, context: Any, url: str, header: str) -> None:
        """Check the proof of the service's own identity, if it sent one.

        Raises
        ------
        ClusterUnreachable
            The proof is wrong.
        """
        found = _NEGOTIATE.search(header)
        if found is None or not found.group(1):
            return
        try:
            if not context.complete:
                context.step(base64.b64decode(found.group(1)))
            proven = context.complete  # raises the error of the step before, which gssapi has kept
        except (import_gssapi().exceptions.GSSError, ValueError) as error:
            raise ClusterUnreachable(f"{_origin(url)} can't prove that it is HTTP/{urlsplit(url).hostname}: "
                                     f"{_text(error)}") from error
        logger.debug("%s has %s its identity", _origin(url), "proven" if proven else "not proven")


def negotiation_options(urls: Iterable[str]) -> dict[str, Any]:
    """Return the options of an httpx client, blocking or not, that sends tickets to these addresses."""
    import_httpx()
    import httpx

    negotiator = Negotiator(urls)

    class Negotiation(httpx.Auth):
        def sync_auth_flow(self, request: "httpx.Request") -> Generator["httpx.Request", "httpx.Response", None]:
            response = yield _prepared(negotiator, request)
            again = _again(negotiator, response)
            if again is not None:
                context, again.headers["Authorization"] = negotiator.begin(str(again.url))
                _finish(negotiator, context, (yield again))

        async def async_auth_flow(
                self, request: "httpx.Request") -> AsyncGenerator["httpx.Request", "httpx.Response"]:
            response = yield _prepared(negotiator, request)
            again = _again(negotiator, response)
            if again is not None:
                # It may ask the KDC, and libkrb5 blocks the thread.
                context, header = await asyncio.to_thread(negotiator.begin, str(again.url))
                again.headers["Authorization"] = header
                _finish(negotiator, context, (yield again))

    return {"auth": Negotiation(), "cookies": _closed_jar()}


def _prepared(negotiator: Negotiator, request: "httpx.Request") -> "httpx.Request":
    cookie = negotiator.cookie(str(request.url))
    if cookie:
        request.headers["Cookie"] = cookie
    return request


def _again(negotiator: Negotiator, response: "httpx.Response") -> "httpx.Request | None":
    """Return the request to repeat with a ticket; None when the response stands."""
    request = response.request
    negotiator.learn(str(request.url), response.headers.get("set-cookie", ""))
    if not negotiator.asked(str(request.url), response.status_code, response.headers.get("www-authenticate", "")):
        return None
    request.headers.pop("Cookie", None)
    return request


def _finish(negotiator: Negotiator, context: Any, response: "httpx.Response") -> None:
    url = str(response.request.url)
    negotiator.learn(url, response.headers.get("set-cookie", ""))
    if response.status_code < 400:
        negotiator.confirm(context, url, response.headers.get("www-authenticate", ""))


def _closed_jar() -> http.cookiejar.CookieJar:
    """Return a cookie jar that stays empty, because a jar sends a cookie to every port of its host."""
    return http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))


def _origin(url: str) -> str:
    split = urlsplit(url)
    return f"{split.scheme}://{split.hostname}:{split.port or _PORTS.get(split.scheme, 0)}"


def _no_ticket(error: Exception) -> ClusterUnreachable:
    return ClusterUnreachable(f"there is no valid Kerberos ticket ({_text(error)}). Run kinit, or name a keytab in "
                              "$KRB5_CLIENT_KTNAME")


def _text(error: Exception) -> str:
    """Return the mechanism's own text, without the general text before it."""
    words = [part.strip() for part in re.split(r"Minor \(\d+\): ", str(error))]
    return (words[-1] or str(error)).splitlines()[0][:300]
