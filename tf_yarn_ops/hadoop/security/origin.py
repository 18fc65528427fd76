"""Secrets of a request go to the configured addresses only: the same scheme, host and port."""

import http.cookiejar
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..fast_import import import_httpx

if TYPE_CHECKING:
    import httpx

#: The ports of addresses without one.
DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL: ``https://rm.example:443``."""
    split = urlsplit(url)
    return f"{split.scheme}://{split.hostname or ''}:{split.port or DEFAULT_PORTS.get(split.scheme, 0)}"


def closed_jar() -> http.cookiejar.CookieJar:
    """Return a cookie jar that stays empty, because a jar sends a cookie to every port of its host."""
    return http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))


def header_options(
    urls: Iterable[str], name: str, value: Callable[[], str], on_refusal: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Return the options of an httpx client that sends a header to these addresses and to no other.

    Parameters
    ----------
    urls : iterable of str
    name : str
        The header.
    value : callable
        Returns its value for each request.
    on_refusal : callable, optional
        Called when an address has answered 401 to the header. Default: nothing.
    """
    import_httpx()
    import httpx

    origins = frozenset(map(origin_of, urls))

    class HeaderAuth(httpx.Auth):
        def auth_flow(self, request: "httpx.Request") -> Generator["httpx.Request", "httpx.Response", None]:
            if origin_of(str(request.url)) in origins:
                request.headers[name] = value()
            response = yield request
            if response.status_code == 401 and name in request.headers:
                on_refusal()

    return {"auth": HeaderAuth(), "cookies": closed_jar()}
